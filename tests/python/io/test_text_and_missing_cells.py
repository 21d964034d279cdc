"""Files with text, booleans and missing cells give the results of data frames."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from command_line import run
from table_files import loans

import eigenfeat as ef
from eigenfeat import GEMClassifier, TableClassifier, open_rows
from eigenfeat.exceptions import BadRowError


def classifier():
    """A pool of two views that are quick to fit."""
    return TableClassifier(views=["columns", "gem"])


@pytest.fixture(scope="module")
def credit():
    return loans()


def written(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix == ".feather":
        frame.reset_index(drop=True).to_feather(path)
    else:
        frame.to_csv(path, index=False)
    return path


def predicted(model, rows, method="predict_proba"):
    return np.concatenate(list(getattr(model, method)(rows)))


def assert_same_columns(one, other):
    assert one.names_ == other.names_
    assert one.kinds_ == other.kinds_
    assert one.feature_names_.tolist() == other.feature_names_.tolist()
    assert one.groups_.tolist() == other.groups_.tolist()


# ---- files and data frames -----------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv.gz", "tsv", "parquet"])
def test_a_file_gives_the_results_of_its_frame(tmp_path, credit, form):
    path = tmp_path / f"credit.{form}"
    if form == "tsv":
        credit.to_csv(path, sep="\t", index=False)
    else:
        written(credit, path)
    X = credit.drop(columns="kind")
    expected = classifier().fit(X, credit["kind"])
    model = classifier().fit(open_rows(path, "kind"))
    assert_same_columns(model.columns_, expected.columns_)
    assert (model.n_features_in_, model.feature_names_in_.tolist()) == (5, list(X))
    np.testing.assert_array_equal(
        predicted(model, open_rows(path, "kind")), expected.predict_proba(X)
    )
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    assert model.score(open_rows(path, "kind")) == expected.score(X, credit["kind"])


def test_larger_files_are_read_block_by_block(tmp_path, credit):
    path = written(credit, tmp_path / "credit.csv")
    rows = open_rows(path, "kind", block_rows=70)
    rows.memory = 0.0
    model = TableClassifier().fit(rows)
    assert [view.name for view in model.views_ if view.weight > 0] == ["gem"]
    assert all("blocks" in view.note for view in model.views_ if view.weight == 0)
    X = credit.drop(columns="kind")
    expected = GEMClassifier().fit(X, credit["kind"])
    assert_same_columns(model.columns_, expected.columns_)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=0.02)
    found = predicted(model, open_rows(path, "kind", block_rows=31))
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-6)


# ---- later files ---------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path, credit):
    return classifier().fit(open_rows(written(credit, tmp_path / "fit.csv"), "kind"))


def test_unknown_and_missing_categories(tmp_path, credit, model):
    new = credit[:4].drop(columns="kind").assign(job=["pilot", None, " nurse ", "clerk"])
    found = predicted(model, open_rows(written(new, tmp_path / "new.csv")))
    np.testing.assert_array_equal(found, model.predict_proba(new))
    assert np.isfinite(found).all()


def test_types_of_later_files_may_differ(tmp_path, credit):
    codes = credit.assign(town=credit["town"].map({"Ulm": "7", "Bern": "8"}).fillna("x"))
    fitted = classifier().fit(open_rows(written(codes, tmp_path / "fit.csv"), "kind"))
    some = codes[codes["town"] != "x"].drop(columns="kind")  # numbers alone
    found = predicted(fitted, open_rows(written(some, tmp_path / "new.csv")))
    np.testing.assert_array_equal(found, fitted.predict_proba(some))
    typed = some.assign(town=some["town"].astype(int))
    found = predicted(fitted, open_rows(written(typed, tmp_path / "new.parquet")))
    np.testing.assert_array_equal(found, fitted.predict_proba(some))


def test_text_in_a_column_of_numbers(tmp_path, credit, model):
    new = credit.drop(columns="kind").astype({"age": object})
    new.loc[5, "age"] = "old"
    with pytest.raises(BadRowError, match=r"line 7, column 'age': expected a number, got 'old'"):
        predicted(model, open_rows(written(new, tmp_path / "new.csv")))
    new["age"] = "old"
    with pytest.raises(ValueError, match="column 'age': expected numbers, got text"):
        predicted(model, open_rows(written(new, tmp_path / "new.csv")))


def test_missing_numbers_after_a_fit_without_missing_numbers(tmp_path, credit):
    whole = credit[credit["age"].notna()]
    model = classifier().fit(open_rows(written(whole, tmp_path / "fit.csv"), "kind"))
    ef.save(model, tmp_path / "m.efm")
    why = "a missing value; the fit had no missing values: fit the model to rows with missing val"
    for form in ("csv", "parquet"):
        new = written(credit, tmp_path / f"new.{form}")
        rows = open_rows(new, "kind")
        for read in (lambda rows=rows: predicted(model, rows), lambda rows=rows: model.score(rows)):
            with pytest.raises(BadRowError, match=f"column 'age': expected a .* got .*{why}"):
                read()
        page = ("report", tmp_path / "m.efm", new, "-o", tmp_path / "page.html")
        for command in (("evaluate", tmp_path / "m.efm", new), page):
            status, _, err = run(*command)
            assert (status, why in err) == (1, True)
            assert err.endswith("the missing values in the file; --skip-bad leaves such rows out\n")
        status, out, err = run("predict", tmp_path / "m.efm", new, "-o", "-")
        assert (status, out) == (1, "")
        line = rf"new\.{form}: (line|row) [0-9]+, column 'age': expected .*--skip-bad leaves such"
        assert re.search(line, err)
    with pytest.raises(ValueError, match=r"in row [0-9]+, column 'age'; fit .* SimpleImputer$"):
        model.predict(credit.drop(columns="kind"))


def test_arrays_are_refused_after_a_fit_to_a_table(tmp_path, model):
    np.save(tmp_path / "X.npy", np.zeros((3, 5)))
    with pytest.raises(
        ValueError, match=r"X\.npy: expected a table with the [0-9] columns of the fit"
    ):
        model.predict(open_rows(tmp_path / "X.npy"))


def test_files_without_names(tmp_path, credit):
    credit.to_csv(tmp_path / "fit.csv", index=False, header=False)
    rows = open_rows(tmp_path / "fit.csv", 5, header=False)
    model = classifier().fit(rows)
    assert not hasattr(model, "feature_names_in_")
    assert model.columns_.kinds_ == ["number", "category", "number", "category", "number"]
    X = credit.drop(columns="kind")
    expected = classifier().fit(X, credit["kind"]).predict_proba(X)
    np.testing.assert_array_equal(predicted(model, rows), expected)
    X.to_csv(tmp_path / "new.csv", index=False, header=False)
    found = predicted(model, open_rows(tmp_path / "new.csv", header=False))
    np.testing.assert_array_equal(found, expected)


def test_identifiers_are_left_out_and_dates_are_numbers(tmp_path, credit):
    more = credit.assign(
        id=[f"customer {i}" for i in range(300)], since=pd.date_range("2020-01-01", periods=300)
    )
    more = more[["id", "age", "since", "job", "owner", "town", "debts", "kind"]]
    dated = more.drop(columns=["id", "kind"])
    expected = classifier().fit(dated, credit["kind"])
    for form in ("csv", "parquet"):
        path = written(more, tmp_path / f"fit.{form}")
        with pytest.warns(UserWarning, match=r"values nearly all differ \('id'\) are left out"):
            model = classifier().fit(open_rows(path, "kind"))
        found = predicted(model, open_rows(path, "kind"))
        np.testing.assert_array_equal(found, expected.predict_proba(dated))
        block = open_rows(path, "kind").prepared_for(model, fitted=True).table()
        assert block.X["id"].isna().all()
        np.testing.assert_array_equal(model.predict_proba(block.X), found)
        bare = written(dated, tmp_path / f"new.{form}")  # without the columns that the fit left out
        np.testing.assert_array_equal(predicted(model, open_rows(bare)), found)


def test_a_file_warns_and_encodes_as_its_frame(tmp_path, credit, monkeypatch):
    """Row numbers are reported, and columns of many categories become target statistics."""
    random = np.random.RandomState(1)
    many = pd.concat([credit] * 4, ignore_index=True).assign(customer_id=np.arange(1200) + 7)
    many["shop"] = [f"shop {i}" for i in random.randint(0, 150, 1200)]
    path, X = written(many, tmp_path / "fit.csv"), many.drop(columns="kind")
    warning = r"row numbers or identifiers \('customer_id'\) are used as features"
    with pytest.warns(UserWarning, match=warning):
        expected = classifier().fit(X, many["kind"])
    with pytest.warns(UserWarning, match=warning):
        model = classifier().fit(open_rows(path, "kind"))
    assert_same_columns(model.columns_, expected.columns_)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_array_equal(
        predicted(model, open_rows(path, "kind")), expected.predict_proba(X)
    )
    first = open_rows(path, "kind").prepared_for(model, fitted=True)
    block = first.prepared_for(model, fitted=True).table()
    np.testing.assert_array_equal(model.predict_proba(block.X), expected.predict_proba(X))
    monkeypatch.chdir(tmp_path)
    fit = ("fit", "fit.csv", "-o", "m.efm", "--set", "views=columns", "--target")
    for more in (("kind",), ("debts", "--task", "regression")):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            status, _, err = run(*fit, *more)
        assert status == 0
        assert "warning: columns of whole numbers that look like row numbers or" in err
        assert "'customer_id'" in err


def test_text_is_refused_without_categories(tmp_path, credit):
    path = written(credit, tmp_path / "credit.csv")
    for estimator in (TableClassifier(categorical_features=None), ef.GEM(), ef.MultinomialLogit()):
        with pytest.raises(ValueError, match="column 'job': expected numbers, got text"):
            estimator.fit(open_rows(path, "kind"))


def test_bad_rows_of_a_table_with_text(tmp_path, credit):
    text = written(credit, tmp_path / "credit.csv").read_text().splitlines()
    text[5] = "old,clerk,True,Ulm,1,bad"
    text.insert(9, "1,clerk,True")
    (tmp_path / "bad.csv").write_text("\n".join(text) + "\n")
    for options in ({}, {"mark_bad": True}):  # marked rows have no labels
        with pytest.raises(
            BadRowError, match=r"line 6, column 'age': expected a number, got 'old'"
        ):
            classifier().fit(open_rows(tmp_path / "bad.csv", "kind", **options))
    rows = open_rows(tmp_path / "bad.csv", "kind", skip_bad=True)
    model = classifier().fit(rows)
    good = credit.drop(index=4).drop(columns="kind")
    expected = classifier().fit(good, credit["kind"].drop(index=4))
    np.testing.assert_array_equal(model.predict_proba(good), expected.predict_proba(good))
    (tmp_path / "none.csv").write_text(text[0] + 2 * "\n1,clerk,True,Ulm,1,")
    with pytest.raises(ValueError, match=r"none\.csv: expected at least one row, got none; 2 bad"):
        classifier().fit(open_rows(tmp_path / "none.csv", "kind", skip_bad=True))


@pytest.mark.filterwarnings("default")
def test_a_typing_error_ends_fits_to_files_and_is_missing_in_frames(tmp_path, rng):
    frame = pd.DataFrame({"a": rng.normal(size=200), "kind": np.resize(["u", "v"], 200)})
    frame["a"] = frame["a"].astype(object)
    frame.loc[7, "a"] = "oops"
    path = written(frame, tmp_path / "rows.csv")
    with pytest.raises(BadRowError, match=r"line 9, column 'a': expected a number, got 'oops'"):
        TableClassifier(["columns"]).fit(open_rows(path, "kind"))
    with pytest.warns(UserWarning, match=r"1 are missing \(such as 'oops'\)"):
        expected = TableClassifier(["columns"]).fit(pd.read_csv(path)[["a"]], frame["kind"])
    model = TableClassifier(["columns"]).fit(open_rows(path, "kind", na_values=["oops"]))
    clean = frame[["a"]].drop(index=7).astype(float)
    np.testing.assert_allclose(model.predict_proba(clean), expected.predict_proba(clean))


@pytest.mark.usefixtures("undrawn")
def test_text_instead_of_a_date_makes_a_row_bad(tmp_path, credit):
    dated = credit.assign(since=pd.date_range("2020-01-01", periods=300).astype(str))
    model = classifier().fit(dated.drop(columns="kind"), dated["kind"])
    dated.loc[4, "since"] = "soon"
    for form, place in (("csv", "line 6"), ("parquet", "row 4")):
        path = written(dated, tmp_path / f"new.{form}")
        with pytest.raises(BadRowError, match=f"{place}, column 'since': expected a date, got 'so"):
            predicted(model, open_rows(path, "kind"))
        assert len(predicted(model, open_rows(path, "kind", skip_bad=True))) == 299
    ef.save(model, tmp_path / "m.efm")
    rows = [tmp_path / "m.efm", tmp_path / "new.csv", "--target", "kind"]
    page = ["-o", tmp_path / "page.html"]
    for command in (["report", *rows, *page], ["inspect", *rows], ["evaluate", *rows, "--cv", "2"]):
        status, _, err = run(*command)
        assert (status, "new.csv: line 6, column 'since': expected a date" in err) == (1, True), err
    assert run("report", *rows, *page, "--skip-bad")[0] == 0


# ---- types of columns ---------------------------------------------------------------------------


def passengers(n, n_numeric=0):
    """Passengers with numeric tickets; after the first `n_numeric`, some tickets are text."""
    random = np.random.RandomState(0)
    sex, fare = random.choice(["female", "male"], n), random.gamma(2, 15, n).round(2)
    ticket = random.randint(1000, 1020, n).astype(str)
    odd = (random.rand(n) < 0.3) & (np.arange(n) >= n_numeric)
    frame = pd.DataFrame({"sex": sex, "ticket": np.where(odd, "F.C. 12750", ticket)})
    frame = frame.assign(fare=fare, deck=random.choice(["1", "2"], n))
    return frame.assign(survived=((sex == "female") & (fare > 10)).astype(int))


@pytest.mark.parametrize("n_numeric", [0, 4000])
def test_columns_that_mix_numbers_and_text_are_text(tmp_path, n_numeric):
    frame = passengers(600 + n_numeric, n_numeric)
    path = written(frame, tmp_path / "titanic.csv")
    with pytest.warns(UserWarning, match=r"read as text: 'ticket' \('F.C. 12750'\); categorical"):
        model = GEMClassifier().fit(open_rows(path, "survived"))
    assert model.columns_.kinds_ == ["category", "category", "number", "number"]
    X = frame.drop(columns="survived")
    found = predicted(model, open_rows(path, "survived"))
    np.testing.assert_allclose(found, model.predict_proba(X.astype({"deck": int})), atol=1e-6)
    for number in ("1004", "1007"):  # numbers alone, in a later file
        some = written(X[:9].assign(ticket=number), tmp_path / "new.csv")
        expected = model.predict_proba(X[:9].assign(ticket=number).astype({"deck": int}))
        np.testing.assert_allclose(predicted(model, open_rows(some)), expected, atol=1e-6)


def test_text_in_a_later_file_makes_a_column_categorical(tmp_path):
    frame = passengers(900, 600)
    written(frame[:600], tmp_path / "1.csv")
    written(frame[600:], tmp_path / "2.csv")
    rows = open_rows([tmp_path / "1.csv", tmp_path / "2.csv"], "survived", categorical=["ticket"])
    assert rows.prepared_for(GEMClassifier(), fitted=False).encoder.kinds_[1] == "category"
    rows = open_rows([tmp_path / "1.csv", tmp_path / "2.csv"], "survived")
    with pytest.warns(UserWarning, match="'ticket'"):
        assert rows.prepared_for(GEMClassifier(), fitted=False).encoder.kinds_[1] == "category"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_columns_can_be_declared_categorical(tmp_path, form):
    frame = passengers(400).astype({"deck": int})
    path = written(frame, tmp_path / f"rows.{form}")
    rows = open_rows(path, "survived", categorical=["deck", 1])
    model = GEMClassifier().fit(rows)
    assert model.columns_.kinds_ == ["category", "category", "number", "category"]
    X = frame.drop(columns="survived").astype({"deck": "category"})
    expected = GEMClassifier().fit(X, frame["survived"])
    found = predicted(model, open_rows(path, "survived"))
    np.testing.assert_allclose(found, expected.predict_proba(X), atol=1e-6)
    with pytest.raises(ValueError, match="column 'deck': expected numbers, got text"):
        ef.MultinomialLogit().fit(open_rows(path, "survived", columns=["deck"], categorical=[3]))
    with pytest.raises(ValueError, match=r"categorical: expected a column of .* got 'dek'"):
        open_rows(path, "survived", categorical=["dek"])


def test_na_values(tmp_path):
    frame = passengers(400).astype({"deck": int})
    frame = frame.assign(ticket="T" + frame["ticket"].str[-1])
    lines = written(frame, tmp_path / "rows.csv").read_text().splitlines()
    marked, empty = list(lines), list(lines)
    for i in range(3, 400, 7):
        cells = lines[i].split(",")
        marked[i] = ",".join([cells[0], " -", "?", *cells[3:]])
        empty[i] = ",".join([cells[0], "", "", *cells[3:]])
    (tmp_path / "marked.csv").write_text("\n".join(marked) + "\n")
    (tmp_path / "empty.csv").write_text("\n".join(empty) + "\n")
    path = tmp_path / "marked.csv"
    with pytest.raises(BadRowError, match=r"column 'fare': .* got '\?'; na_values \(--na-values '"):
        GEMClassifier().fit(open_rows(path, "survived"))
    model = GEMClassifier().fit(open_rows(path, "survived", na_values=["?", "-"]))
    rows = open_rows(tmp_path / "empty.csv", "survived")
    expected = predicted(GEMClassifier().fit(rows), rows)
    np.testing.assert_array_equal(predicted(model, open_rows(path)), expected)  # as in the fit
    np.testing.assert_array_equal(predicted(model, rows), expected)
    (tmp_path / "one.csv").write_text("\n".join([marked[0], marked[3]]) + "\n")
    np.testing.assert_array_equal(predicted(model, open_rows(tmp_path / "one.csv")), expected[2:3])
    for wrong in ("?", [1]):
        with pytest.raises(ValueError, match="na_values: expected "):
            open_rows(path, na_values=wrong)


def test_a_model_remembers_that_na_is_a_category(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{i % 5},{('EU', 'NA')[i % 2]},{i % 4 // 2 + i % 2}" for i in range(60)]
    path.write_text("\n".join(["a,region,kind", *lines, ""]))
    rows = open_rows(path, "kind", keep_default_na=False)
    model = GEMClassifier().fit(rows)
    np.testing.assert_array_equal(predicted(model, open_rows(path)), predicted(model, rows))


def test_labels_are_text_if_the_labels_of_the_fit_are(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,kind\n" + "".join(f"{i % 2}.{i},{'1b'[i % 2]}\n" for i in range(20)))
    model = GEMClassifier().fit(open_rows(path, "kind"))
    path.write_text("a,kind\n0.1,1\n0.2,1\n")
    assert model.score(open_rows(path, "kind")) == 1.0


def test_a_first_line_with_the_names_of_the_fit_is_a_header(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("2024,2025,kind\n" + "1,3,0\n5,2,1\n" * 10)
    model = GEMClassifier().fit(open_rows(path, "kind"))
    path.write_text("2024,2025\n5,2\n1,3\n")  # without a fit, these are three rows
    assert predicted(model, open_rows(path)).argmax(axis=1).tolist() == [1, 0]


def test_missing_labels_are_read_as_by_pandas(tmp_path):
    path = tmp_path / "rows.csv"
    for text in ("", "NA", " nan", "NULL", "None", '"NA"', "<NA>"):
        path.write_text(f"a,kind\n1,EU\n2,AS\n3,{text}\n4,EU\n")
        with pytest.raises(BadRowError, match="line 4, column 'kind': expected a label, got"):
            list(open_rows(path, "kind"))
        with pytest.raises(ValueError, match="missing"):
            GEMClassifier().fit(frame := pd.read_csv(path, skipinitialspace=True), frame["kind"])
        (block,) = open_rows(path, "kind", skip_bad=True)
        assert block.y.tolist() == ["EU", "AS", "EU"]
    path.write_text("a,kind\n1,NA\n2,AS\n3,NA\n4,EU\n")
    (block,) = open_rows(path, "kind", keep_default_na=False)
    assert block.y.tolist() == ["NA", "AS", "NA", "EU"]
    (block,) = open_rows(path, "kind", keep_default_na=False, na_values=["AS"], skip_bad=True)
    assert block.y.tolist() == ["NA", "NA", "EU"]


@pytest.mark.filterwarnings("ignore:.*columns that mix numbers and text")
def test_titanic_from_the_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = passengers(500, 100)
    frame["fare"] = frame["fare"].astype(object).where(np.arange(500) % 9 > 0, "?")
    written(frame, tmp_path / "titanic.csv")
    more = ("--target", "survived", "--na-values", "?,-", "--categorical", "ticket,deck")
    status, _, err = run("fit", "titanic.csv", *more, "-o", "m.efm", "--set", "views=gem")
    assert (status, err) == (0, "")
    assert ef.load("m.efm").columns_.kinds_ == ["category", "category", "number", "category"]
    assert run("predict", "m.efm", "titanic.csv", "-o", "found.csv")[0] == 0
    assert pd.read_csv("found.csv")["prediction"].notna().all()
    found = run("inspect", "titanic.csv", "--na-values", "?")[1]
    assert "    ticket: category, 21 levels" in found
    assert "    fare: number, " in found


# ---- the command line ----------------------------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
def test_commands_on_a_table_with_text(tmp_path, credit, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(credit[:200], tmp_path / "train.csv")
    written(credit[200:], tmp_path / "test.csv")
    given = ("train.csv", "--target", "kind", "-o")
    assert run("fit", *given, "m.efm", "--set", "views=columns,gem")[0] == 0
    X, y = credit.drop(columns="kind"), credit["kind"]
    expected = classifier().fit(X[:200], y[:200]).predict_proba(X[200:])
    assert run("predict", "m.efm", "test.csv", "--proba", "-o", "found.csv")[0] == 0
    found = pd.read_csv("found.csv")[["p_bad", "p_good"]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert run("fit", *given, "b.efm", "--memory", "0")[0] == 0
    assert run("search", *given, "s.efm", "--grid", "penalty=0.03,0.3")[0] == 0
    for name in ("b.efm", "s.efm"):
        assert run("evaluate", name, "test.csv")[0] == 0
    status, _, err = run("fit", *given, "g.efm", "--features")
    assert status == 1
    assert err.startswith("eigenfeat: train.csv: column 'job': expected numbers, got text")

"""Tables with words, categories, booleans and gaps in `GEMClassifier` and its relatives."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from table_files import loans

from eigenfeat import GEMClassifier, TableClassifier, TableRegressor, open_rows
from eigenfeat.samples.columns import TableColumns, has_categories


def classifier():
    """A pool of two views, whose fits are quick."""
    return TableClassifier(views=["columns", "gem"])


def credit(n=200):
    """Loans with more types of columns, and their labels."""
    frame = loans(n).astype({"town": "category", "debts": "Int64"})
    frame["phone"] = pd.array(frame["age"] > 30, dtype="boolean")
    frame.loc[0, "phone"] = pd.NA
    frame.loc[1, "debts"] = pd.NA
    return frame.drop(columns="kind"), frame["kind"].to_numpy()


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("kind", [TableClassifier, TableRegressor, GEMClassifier])
def test_columns_of_one_name_are_refused(kind, text):
    frame = pd.DataFrame(np.eye(40)[:, :3], columns=["age", "debts", "age"])
    if text:
        frame["job"] = ["clerk", "smith"] * 20
    with pytest.raises(
        ValueError, match="X: expected columns of different names, got two named 'a"
    ):
        kind().fit(frame, np.arange(40) % 2)


def test_columns_of_every_kind():
    frame, _ = credit()
    columns = TableColumns().fit(frame)
    assert columns.kinds_ == ["number", "category", "number", "category", "number", "number"]
    Z = columns.transform(frame)
    assert Z.dtype == np.float64
    assert Z.shape == (200, len(columns.feature_names_))
    missing = [name for name in columns.feature_names_ if "None" in name]
    assert missing == ["job_None"]
    assert np.isnan(Z[1, list(columns.feature_names_).index("debts")])


def test_columns_in_another_order_or_missing_are_refused():
    frame, y = credit()
    model = classifier().fit(frame, y)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="job"):
        model.predict(frame.drop(columns="job"))
    text = (
        r"^X: expected a table with the 6 columns of the fit \('age', .*, \.\.\.\), some of which "
    )
    with pytest.raises(ValueError, match=text + "are categories, got ndarray$"):
        model.predict(np.zeros((3, 6)))


@pytest.mark.parametrize("make", [classifier, lambda: TableRegressor("columns")])
def test_a_table_without_rows(make):
    frame, _ = credit()
    y = np.arange(200) % 2
    for table in (frame, pa.Table.from_pandas(frame)):
        with pytest.raises(ValueError, match=r"^X: expected at least one sample, got none$"):
            make().fit(table[:0], y[:0])
        with pytest.raises(ValueError, match=r"^X: expected at least one sample, got none$"):
            make().fit(table, y).predict(table[:0])


@pytest.mark.parametrize("columns", [["age"], ["age", "job"]])
def test_infinite_numbers_are_named(columns):
    frame, y = credit()
    frame = frame[columns].fillna({"age": 40.0})
    model = classifier().fit(frame, y)
    frame.loc[3, "age"] = -np.inf
    for table in (frame, pa.Table.from_pandas(frame)):
        for use in (model.predict, lambda X: classifier().fit(X, y)):
            with pytest.raises(ValueError, match="finite numbers, got -inf in row 3, column 'age'"):
                use(table)


def test_frames_of_numbers_are_fitted_as_arrays():
    X = np.random.RandomState(0).randn(100, 4)
    y = (X[:, 0] > 0).astype(int)
    frame = pd.DataFrame(X, columns=list("abcd"))
    assert not has_categories(frame)
    expected = classifier().fit(X, y).decision_function(X)
    model = classifier().fit(frame, y)
    assert not hasattr(model, "columns_")
    np.testing.assert_array_equal(model.decision_function(frame), expected)


DAYS = ["2020-02-29", "1969-12-31", "2024-01-01"]
PARTS = [[18321, 2, 5, 0], [-1, 12, 2, 0], [19723, 1, 0, 0]]


@pytest.mark.parametrize(
    "column",
    [
        DAYS,
        [datetime.date.fromisoformat(day) for day in DAYS],
        np.array(DAYS, dtype="datetime64[ns]"),
        pd.to_datetime(DAYS).tz_localize("UTC").tz_convert("Asia/Tokyo"),
        pd.array(DAYS, dtype="string"),
        ["2020-02-29 02:00:00+02", "1969-12-30T18:30-0530", "2024-01-01T00:00:00Z"],
    ],
    ids=["text", "objects", "numpy", "zone", "string", "offsets"],
)
def test_dates_are_days_and_parts_of_the_calendar(column):
    columns = TableColumns().fit(pd.DataFrame({"d": column}))
    assert columns.kinds_ == ["date"]
    assert columns.feature_names_.tolist() == ["d_day", "d_month", "d_weekday", "d_hour"]
    np.testing.assert_array_equal(columns.transform(pd.DataFrame({"d": column})), PARTS)
    new = pd.DataFrame({"d": ["2020-02-29 18:30", None]})
    found = columns.transform(new)
    np.testing.assert_allclose(found, [[18321 + 18.5 / 24, 2, 5, 18], [np.nan] * 4])
    with pytest.raises(ValueError, match=r"expected dates in column 'd'.* 'soon' in row 1"):
        columns.transform(new.assign(d=["2020-02-29", "soon"]))


@pytest.mark.parametrize("end", ["-1234", "+02:00", "T10:00+24:00", "T10:00-02:60"])
def test_codes_that_begin_like_dates_are_no_dates(end):
    columns = TableColumns()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        columns.fit(pd.DataFrame({"d": 3 * [f"2024-01-15{end}"]}))
    assert columns.kinds_ == ["category"]


def test_dates_beyond_the_year_9999_are_no_numbers():
    day = "12024-02-29"
    columns = TableColumns().fit(pd.DataFrame({"x": [1.0, 2.0]}))
    dates = pd.Series(np.array(["NaT", day], dtype="datetime64[s]"))
    with pytest.raises(ValueError, match=rf"expected numbers in column 'x'.*{day}.* in row 1"):
        columns.transform(pd.DataFrame({"x": dates}))
    as_category = TableColumns().fit(pd.DataFrame({"x": 3 * ["a", day]}))
    assert as_category.transform(pd.DataFrame({"x": dates}))[1].tolist() == [1.0, 0.0]


def test_days_beyond_the_calendar_of_python(tmp_path):
    days = np.array(["2024-02-29", "NaT", "12024-02-29"], dtype="datetime64[D]")
    table = pa.table({"d": pa.array(days), "x": [1.0, 2.0, 3.0], "y": ["a", "b", "a"]})
    parquet.write_table(table, tmp_path / "days.parquet")
    table = table.drop_columns("y")
    expected = TableColumns().fit(table).transform(table)
    (block,) = open_rows(tmp_path / "days.parquet", "y").frames()
    np.testing.assert_array_equal(TableColumns().fit(block.X).transform(block.X), expected)


@pytest.mark.parametrize("X", [pd.DataFrame(index=range(9)), np.empty((9, 0))], ids=["frame", ""])
def test_a_table_without_columns(X):
    with pytest.raises(ValueError, match=r"expected at least one column|0 feature\(s\)"):
        classifier().fit(X, np.arange(9) % 2)


# ---- numbers as text, row numbers ----------------------------------------------------------------


def test_text_that_looks_like_numbers_is_read_as_numbers():
    random = np.random.RandomState(0)
    charges = (100 * random.rand(300)).round(2)
    text = charges.astype(str).astype(object)
    text[:11] = " "
    text[11] = "?"
    frame = pd.DataFrame({"charges": text, "x": random.randn(300)})
    with pytest.warns(UserWarning, match=r"'charges'.*read as numbers, of which 12 .*such as '\?'"):
        columns = TableColumns().fit(frame)
    assert columns.kinds_ == ["numeric text", "number"]
    expected = np.where(np.arange(300) < 12, np.nan, charges)
    np.testing.assert_array_equal(columns.transform(frame)[:, 0], expected)
    numbers = columns.transform(frame.assign(charges=charges))
    np.testing.assert_array_equal(numbers[:, 0], charges)


AMOUNTS = np.array([3.5, 12.25, 950.0, 1234.5, 1_234_567.25, *np.arange(1000, 1100) / 8 * 80])


@pytest.mark.parametrize(
    "form",
    ["{:,.2f}", "${:,.2f}", "-${:,.2f}", "\u20ac {:.2f}", "{:.2f}%", "+{:.2f} %", "$-{:,.2f}"],
)
@pytest.mark.parametrize("repeats", [1, 2])
def test_amounts_of_money_and_percents_are_numbers(form, repeats, tmp_path):
    text = [form.format(value) for value in AMOUNTS] * repeats + ["n.a.", ""]
    frame = pd.DataFrame({"price": text, "x": range(len(text))})
    numbers = np.append(np.tile(AMOUNTS, repeats), [np.nan, np.nan])
    sign = -1.0 if "-" in form else 1.0
    with pytest.warns(UserWarning, match=r"'price' .* such as .* of which 2 are missing .*'n.a.'"):
        columns = TableColumns().fit(frame)
    assert columns.kinds_ == ["numeric text", "number"]
    np.testing.assert_array_equal(columns.transform(frame)[:, 0], sign * numbers)
    frame.assign(y=0).to_csv(tmp_path / "prices.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (block,) = open_rows(tmp_path / "prices.csv", "y").frames()
        np.testing.assert_array_equal(columns.transform(block.X)[:, 0], sign * numbers)


@pytest.mark.parametrize("most", [999, 99_999])
def test_a_file_with_separators_of_thousands_is_read_as_its_frame(tmp_path, most):
    text = [f"{i:,}" for i in range(2, 300)] + [f"{i:,}" for i in range(1001, most, 997)]
    frame = pd.DataFrame(
        {"n": text, "x": range(len(text)), "y": (len(text) * ["a", "b"])[: len(text)]}
    )
    frame.to_csv(tmp_path / "n.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = classifier().fit(open_rows(tmp_path / "n.csv", "y"))
        expected = classifier().fit(pd.read_csv(tmp_path / "n.csv").drop(columns="y"), frame["y"])
        (found,) = model.predict_proba(open_rows(tmp_path / "n.csv"))
        X = pd.read_csv(tmp_path / "n.csv").drop(columns="y")
        np.testing.assert_array_equal(found, expected.predict_proba(X))


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        ([f"{i:,}" if i % 2 else f"{i}" for i in range(900, 1200)], "left out"),  # two styles
        ([f"{i}" for i in range(100)] + ["$5"] * 40, "category"),  # two signs
        ([f"{i}a" if i % 9 == 0 else f"{i}" for i in range(100, 200)] * 2, "category"),
        ([f"{i},5" for i in range(100)], "left out"),
        ([f"{i},{999 - i}" if i % 3 else f"{i}" for i in range(100, 300)], "left out"),  # lists
    ],
)
def test_numbers_in_several_forms_are_not_read_as_numbers(texts, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        columns = TableColumns().fit(pd.DataFrame({"a": texts, "x": range(len(texts))}))
    assert columns.kinds_ == [kind, "number"]


@pytest.mark.parametrize(
    ("form", "others"),
    [
        ("{}.5", {"$7.5": np.nan, "1,250.5": 1250.5, "7.5%": np.nan}),
        ("${}.5", {"7.5": 7.5, "\u20ac7.5": np.nan, "$1,250.5": 1250.5}),
        ("{} %", {"7": 7.0, "7%": 7.0, "$7": np.nan}),
    ],
)
def test_numbers_with_other_signs_are_missing(form, others):
    frame = pd.DataFrame({"a": [form.format(i) for i in range(100)], "x": range(100)})
    new = pd.DataFrame({"a": [*others], "x": 0})
    fitted = pd.concat([frame, new]) if form == "{}.5" else frame
    with pytest.warns(UserWarning, match="'a' holds text that looks like numbers"):
        columns = TableColumns().fit(fitted)
    np.testing.assert_array_equal(columns.transform(new)[:, 0], [*others.values()])


@pytest.mark.parametrize("form", ["{:.3f}", "{:.2f}"])
def test_numbers_among_words_have_the_decimal_point_of_the_file(tmp_path, form):
    numbers = np.linspace(1.0, 3.0, 101)[1:]
    texts = [form.format(number) for number in numbers] + ["none"] * 3
    found = []
    for decimal, delimiter in (".,", ",;"):
        lines = [f"{text};{'ab'[i % 2]}".replace(".", decimal) for i, text in enumerate(texts)]
        path = tmp_path / f"{ord(decimal)}.csv"
        path.write_text("\n".join(["n;y", *lines, ""]).replace(";", delimiter))
        rows = open_rows(path, "y", decimal=decimal, delimiter=delimiter)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (block,) = rows.frames()
            found.append(TableColumns().fit(block.X).transform(block.X)[:, 0])
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_allclose(found[1][:100], numbers, atol=0.01)


def test_with_semicolons_a_comma_may_be_a_decimal_point(tmp_path):
    lines = [f"{i / 8 + 1:.3f};{'ab'[i % 2]}".replace(".", ",") for i in range(100)]
    (tmp_path / "n.csv").write_text("\n".join(["n;y", *lines, ""]))
    rows = open_rows(tmp_path / "n.csv", "y", delimiter=";")
    with pytest.raises(ValueError, match=r"'1,000'; if ',' is the decimal point, set decimal="):
        classifier().fit(rows)


def test_the_numbers_of_codes_are_no_numbers_with_units():
    codes = [f"{i}a" if i % 9 == 0 else f"{i}" for i in range(100, 200)] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableColumns().fit(pd.DataFrame({"a": codes, "x": np.arange(200) % 7}))


def test_codes_as_text_stay_categories():
    codes = np.arange(300) % 60
    for values in (codes.astype(str), np.char.zfill(codes.astype(str), 4)):
        assert TableColumns().fit(pd.DataFrame({"c": values})).kinds_ == ["category"]
    declared = pd.Series(np.arange(300) / 7).repeat(2).astype("category")
    assert TableColumns().fit(pd.DataFrame({"c": declared})).kinds_ == ["category"]


def test_numbers_as_text_in_new_samples_are_numbers():
    columns = TableColumns().fit(
        pd.DataFrame({"n": [1.5, 2, 3], "b": [True, False, True], "w": "w"})
    )
    new = pd.DataFrame({"n": ["1.50", " ", "-2e1"], "b": ["True", "False", None], "w": "w"})
    found = columns.transform(new)[:, :2]
    np.testing.assert_array_equal(found, [[1.5, 1], [np.nan, 0], [-20, np.nan]])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("row", np.arange(100)),
        ("time", np.arange(100)[::-1] ** 2),
        ("drawn", np.random.RandomState(0).permutation(150)[:100]),
        ("PassengerId", np.random.RandomState(0).permutation(10**6)[:100]),
        ("customer_id", np.random.RandomState(0).permutation(10**6)[:100]),
    ],
)
def test_row_numbers_and_identifiers_are_reported(name, values):
    x = np.random.RandomState(1).randn(100)
    frame = pd.DataFrame({"x": x, name: values})
    with pytest.warns(UserWarning, match=f"identifiers .'{name}'. are used as features"):
        TableClassifier(["columns"]).fit(frame, x > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableClassifier(["columns"]).fit(frame.assign(**{name: values % 50}), x > 0)
        prices = np.random.RandomState(0).permutation(10**6)[:100]
        TableClassifier(["columns"]).fit(pd.DataFrame({"x": x, "price": prices}), x > 0)


# ---- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", [False, True])
def test_gaps_of_text_whose_values_all_differ_are_a_category(tmp_path, declared):
    """An example is the column of passengers' cabins, most of which are unknown."""
    rng = np.random.default_rng(0)
    filled = rng.random(300) < 0.3
    cabin = pd.Series([f"C{i}" if known else None for i, known in enumerate(filled)], dtype=object)
    frame = pd.DataFrame({"cabin": cabin, "age": rng.uniform(20, 70, 300)})
    y = np.where(filled, "yes", "no")
    frame.assign(y=y).to_csv(tmp_path / "fit.csv", index=False)
    if declared:
        frame["cabin"] = frame["cabin"].astype("category")
    gaps = r"of columns whose values nearly all differ \('cabin'\), only whether a cell is missing"
    with pytest.warns(UserWarning, match=gaps):
        model = classifier().fit(frame, y)
    assert list(model.columns_.feature_names_) == ["cabin_None", "cabin_infrequent_sklearn", "age"]
    assert (model.columns_.kinds_, list(model.columns_.groups_)) == (
        ["category", "number"],
        [0, 0, 1],
    )
    assert model.score(frame, y) == 1
    new = pd.DataFrame({"cabin": ["Z9", None, ""], "age": 40.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.predict(new).tolist() == ["yes", "no", "no"]
    with pytest.warns(UserWarning, match=gaps):
        of_file = classifier().fit(open_rows(tmp_path / "fit.csv", "y"))
    np.testing.assert_array_equal(of_file.predict_proba(new), model.predict_proba(new))
    complete = frame.assign(cabin=[f"C{i}" for i in range(300)])
    with pytest.warns(UserWarning, match=r"values nearly all differ \('cabin'\) are left out"):
        assert TableColumns().fit(complete).kinds_ == ["left out", "number"]


def test_the_regressor_takes_words():
    frame, _ = credit(300)
    frame = frame.fillna({"age": 40.0, "debts": 0}).assign(phone=True)
    y = frame["age"] * 0.1 + (frame["job"] == "smith") * 5.0
    model = TableRegressor(["columns", "splines"]).fit(frame[:200], y[:200])
    assert model.score(frame[200:], y[200:]) > 0.95
    assert (model.n_features_in_, list(model.feature_names_in_)) == (6, list(frame.columns))
    few = TableRegressor(["columns", "splines"]).fit(frame[["age", "debts"]], y)
    assert few.score(frame[["age", "debts"]], y) < 0.6
    new = frame[:2].assign(job=["pilot", None])
    assert np.isfinite(model.predict(new)).all()
    with pytest.raises(ValueError, match="'job'"):
        TableRegressor(categorical_features=None).fit(frame, y)
    with pytest.raises(ValueError, match="expected a table with the 6 columns of the fit"):
        model.predict(np.zeros((3, 6)))
    assert not hasattr(model.set_params(views="columns").fit(frame[["age"]], y), "columns_")

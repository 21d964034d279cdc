"""`eigenfeat fit`, `predict`, `transform` and `inspect` on files."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import run
from flat_gem import plain_params
from saved_files import change_value
from table_files import csv_text, table_of, write_table

import eigenfeat
from eigenfeat import GEM, LDG, ClassMoments, GEMClassifier, TableClassifier, open_rows


@pytest.fixture
def problem(rng):
    """Three classes that overlap a little, with text labels."""
    y = rng.integers(0, 3, 600)
    X = rng.standard_normal((600, 5)) * (1 + y[:, None]) + y[:, None]
    return X, np.array(["ant", "bee", "moth"])[y]


@pytest.fixture
def files(tmp_path, problem):
    X, y = problem
    (tmp_path / "rows.csv").write_text(csv_text(X[:400], y[:400]))
    write_table(tmp_path / "new.parquet", table_of(X[400:], y[400:]))
    np.save(tmp_path / "rows.npy", X[:400])
    return tmp_path


def fitted(folder, *more, data="rows.csv", output="model.efm"):
    target = folder / "y.npy" if data.endswith("npy") else "kind"
    arguments = ["fit", folder / data, "--target", target, "-o", folder / output, *more]
    status, out, err = run(*arguments)
    assert status == 0, err
    return out


def test_a_fit_to_a_file_is_that_of_the_array(files, problem):
    X, y = problem
    said = json.loads(fitted(files, "--seed", "3", "--json"))
    assert said.pop("seconds") > 0
    views, measures = said.pop("views"), said.pop("measures")
    assert {view["name"] for view in views if view["weight"] > 0} >= {"gem"}
    assert 0.7 < measures["balanced_accuracy"] < measures["auc"] < 1
    assert said == {
        "status": "ok",
        "command": "fit",
        "output": str(files / "model.efm"),
        "estimator": "TableClassifier",
        "rows": 400,
        "in_memory": True,
        "skipped": 0,
        "features": 5,
        "classes": ["ant", "bee", "moth"],
        "columns": {"number": 5},
        "left_out": {},
        "figures_from": "out of fold",
    }
    model = eigenfeat.load(files / "model.efm")
    expected = TableClassifier(random_state=3).fit(X[:400], y[:400])
    assert plain_params(model) == plain_params(expected)
    assert model.feature_names_in_.tolist() == [f"x{j}" for j in range(5)]
    del model.feature_names_in_
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_predictions_of_every_kind_of_file(files, problem):
    X, _ = problem
    fitted(files, "--set", "views=columns,gem")
    model = eigenfeat.load(files / "model.efm")
    del model.feature_names_in_
    # In the blocks of the command, because the size of a block changes roundings of its last rows.
    parts = [model.predict_proba(X[i : min(i + 64, 600)]) for i in range(400, 600, 64)]
    labels, chances = model.predict(X[400:]), np.concatenate(parts)
    command = ["predict", files / "model.efm", files / "new.parquet", "--block-rows", "64", "-o"]
    out = files / "found.csv"
    status, said, _ = run(*command, out)
    assert (status, said) == (0, f"{out}: 200 rows, {out.stat().st_size:,} bytes\n")
    assert pd.read_csv(out)["prediction"].tolist() == labels.tolist()
    assert run(*command, out, "--proba")[0] == 0
    expected = pd.DataFrame(chances, columns=["p_ant", "p_bee", "p_moth"])
    expected.insert(0, "prediction", labels)
    pd.testing.assert_frame_equal(pd.read_csv(out), expected, check_dtype=False, rtol=1e-12)
    assert run(*command, files / "found.npy")[0] == 0
    np.testing.assert_array_equal(np.load(files / "found.npy"), labels)
    status, said, _ = run(*command, files / "found.npy", "--proba", "--json")
    found = json.loads(said)
    assert (found["rows"], found["classes"]) == (200, ["ant", "bee", "moth"])
    np.testing.assert_array_equal(np.load(files / "found.npy"), chances)
    assert run(*command, files / "found.parquet", "--proba")[0] == 0
    found = pd.read_parquet(files / "found.parquet")
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-12)


def test_predictions_keep_columns_as_they_are(files, problem):
    X, _ = problem
    fitted(files, "--set", "views=columns,gem")
    names = [f"x{j}" for j in range(5)]
    new = pd.DataFrame(X[400:], columns=names).assign(
        id=np.arange(200), code=[f"{i:03}" for i in range(200)], note=None
    )
    new.loc[150, ["note", "code"]] = "NA", None  # in a later block than the first
    new[["code", "note", *names, "id"]].to_csv(files / "new.csv", index=False)
    new.to_parquet(files / "new.parquet")
    command = ["predict", files / "model.efm"]
    more = ["--block-rows", "64", "--keep", "note,id", "--keep", "code", "-o"]
    assert run(*command, files / "new.csv", "-o", files / "plain.csv")[0] == 0
    labels = (files / "plain.csv").read_text().splitlines()[1:]
    texts = [f",{i},{i:03},{label}" for i, label in enumerate(labels)]
    texts[150] = f"NA,150,,{labels[150]}"
    for source in ("new.csv", "new.parquet"):
        assert run(*command, files / source, *more, files / "found.csv")[0] == 0
        expected = ["note,id,code,prediction", *texts]
        assert (files / "found.csv").read_text().splitlines() == expected
    assert run(*command, files / "new.parquet", *more, files / "found.parquet")[0] == 0
    found = pd.read_parquet(files / "found.parquet")
    assert found["id"].tolist() == new["id"].tolist()
    assert found["note"].notna().to_numpy().nonzero()[0].tolist() == [150]
    assert found["prediction"].tolist() == labels
    for options, message in {
        ("--keep", "idd"): "--keep: expected a column of ",
        ("--keep", "id", "--skip-bad"): "--keep: expected none with --skip-bad",
    }.items():
        status, out, err = run(*command, files / "new.csv", *options, "-o", "-")
        assert (status, out) == (2, "")
        assert message in err
    status, _, err = run(*command, files / "new.csv", "--keep", "id", "-o", files / "a.npy")
    assert (status, "--keep: expected none with .npy" in err) == (2, True)


def test_features_of_files(files, problem):
    X, y = problem
    fitted(files, "--features", "--set", "n_directions=2", output="gem.efm")
    gem = GEM(n_directions=2).fit(X[:400], y[:400])
    command = ["transform", files / "gem.efm", files / "new.parquet", "-o"]
    status, said, err = run(*command, files / "found.npy", "--json")
    assert (status, err) == (0, "")
    expected = gem.transform(X[400:])
    assert json.loads(said)["columns"] == expected.shape[1]
    np.testing.assert_array_equal(np.load(files / "found.npy"), expected)
    assert run(*command, files / "found.csv")[0] == 0
    found = pd.read_csv(files / "found.csv")
    assert list(found) == gem.get_feature_names_out().tolist()
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    ldg = LDG(n_components=2).fit(X[:400], y[:400])
    eigenfeat.save(ldg, files / "ldg.efm")
    command = ["transform", files / "ldg.efm", files / "new.parquet", "--drop", "kind", "-o"]
    assert run(*command, files / "found.npy")[0] == 0
    np.testing.assert_array_equal(np.load(files / "found.npy"), ldg.transform(X[400:]))


def test_a_fit_from_moments(files, problem):
    X, y = problem
    eigenfeat.save(ClassMoments().update(X[:400], y[:400]), files / "rows.efm")
    arguments = ["fit", "--moments", files / "rows.efm", "-o", files / "gem.efm", "--json"]
    status, said, _ = run(*arguments, "--set", "ridge=0.1")
    assert status == 0
    found = json.loads(said)
    assert (found["estimator"], found["weight"], found["features"]) == ("GEM", 400, 5)
    expected = GEM(ridge=0.1).fit_moments(eigenfeat.load(files / "rows.efm"))
    np.testing.assert_array_equal(
        eigenfeat.load(files / "gem.efm").transform(X), expected.transform(X)
    )


def test_inspecting_a_model(files):
    fitted(files, "--model", "gem")
    status, said, _ = run("inspect", files / "model.efm", "--json")
    found = json.loads(said)
    assert status == 0
    assert found["kind"] == "model"
    assert found["estimator"] == "GEMClassifier"
    assert found["versions"]["eigenfeat"] == eigenfeat.__version__
    assert found["parameters"]["gem__ridge"] is None
    assert found["parameters"]["gem__powers"] == [1, 2, 3]
    assert found["classes"] == ["ant", "bee", "moth"]
    assert found["feature_names"] == [f"x{j}" for j in range(5)]
    assert (found["layers"], found["logit"]) == (1, "MultinomialLogit")
    assert found["bytes"] == (files / "model.efm").stat().st_size
    text = run("inspect", files / "model.efm")[1]
    for line in ("kind: model", "3 classes: 'ant', 'bee', 'moth'", "gem__ridge=None"):
        assert line in text
    damaged = bytearray((files / "model.efm").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (files / "model.efm").write_bytes(damaged)
    status, _, err = run("inspect", files / "model.efm")
    assert (status, len(err.splitlines())) == (1, 1)
    assert err.startswith(f"eigenfeat: {files / 'model.efm'}: ")


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("classes_", None),
        ("file_layout_", 3),
        ("file_layout_", "text"),
        ("layers_", None),
        ("logit_", "text"),
        ("n_features_in_", None),
    ],
)
def test_attributes_of_other_types_end_in_one_line(files, name, other):
    fitted(files, "--model", "gem")
    model = files / "model.efm"
    change_value(model, name, to=other)
    for command in (
        ("predict", model, files / "new.parquet", "-o", files / "labels.csv"),
        ("evaluate", model, files / "new.parquet"),
        ("inspect", model),
    ):
        status, _, err = run(*command)
        assert status in ((0, 1) if command[0] == "inspect" else (1,))
        assert status == 0 or (err.startswith("eigenfeat: ") and err.count("\n") == 1)


def test_attributes_of_wrong_types_are_errors_of_the_model(files):
    fitted(files, "--model", "gem")
    change_value(files / "model.efm", "file_layout_", to=3)
    status, _, err = run("inspect", files / "model.efm")
    start = f"eigenfeat: {files / 'model.efm'}: expected a model whose attributes fit each other"
    assert (status, err.startswith(f"{start}, got TypeError: ")) == (1, True)


def test_errors_about_rows_are_not_those_of_a_model(files, monkeypatch):
    def broken(*_, **__):
        raise TypeError("a mistake of the program")

    monkeypatch.setattr("eigenfeat.cli.inspect.described", broken)
    with pytest.raises(TypeError, match="a mistake of the program"):
        run("inspect", files / "rows.csv")


def test_a_pool_is_described_with_its_views_and_importances(files):
    fitted(files, "--set", "views=columns,boosting_pairs")
    found = json.loads(run("inspect", files / "model.efm", "--json")[1])
    assert list(found["views"]) == ["columns"]
    assert found["unused_views"] == {"boosting_pairs": "fewer than 1,000 samples"}
    assert found["rows_of_fit"] == 400
    command = ["inspect", files / "model.efm", files / "new.parquet", "--target", "kind"]
    found = json.loads(run(*command, "--json")[1])
    importances = {one["name"]: one["importance"] for one in found["importances"]}
    assert sorted(importances) == [f"x{j}" for j in range(5)]
    assert min(importances.values()) > 0
    assert list(importances.values()) == sorted(importances.values(), reverse=True)
    assert found["importances_from"] == "200 rows, rise in log loss"


def test_the_description_of_many_columns_and_categories_fits_on_a_screen(tmp_path):
    names = [f"column {j}" for j in range(60)]
    words = [f"a word of some length with number {i}" for i in range(30)]
    lines = [",".join([*(words[(i + j) % 30] for j in range(60)), str(i % 2)]) for i in range(90)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([",".join([*names, "kind"]), *lines]) + "\n")
    model = GEMClassifier().fit(open_rows(path, "kind", columns=names[:15]))
    eigenfeat.save(model, tmp_path / "m.efm")
    for name in ("m.efm", "rows.csv"):
        text = run("inspect", tmp_path / name)[1]
        assert len(text.splitlines()) <= 50
        assert max(map(len, text.splitlines())) <= 300
    assert "    column 0: 30 ('a word of" in run("inspect", tmp_path / "m.efm")[1]
    found = json.loads(run("inspect", tmp_path / "m.efm", "--json")[1])
    assert found["categories"]["column 14"] == sorted(words)


def test_inspecting_moments_and_a_transformer(files, problem):
    eigenfeat.save(ClassMoments().update(*problem), files / "rows.efm")
    found = json.loads(run("inspect", files / "rows.efm", "--json")[1])
    counts = [{"label": c, "weight": int((problem[1] == c).sum())} for c in ("ant", "bee", "moth")]
    assert (found["kind"], found["features"], found["weight"]) == ("class moments", 5, 600)
    assert found["classes"] == counts
    eigenfeat.save(LDG(n_components=2).fit(*problem), files / "ldg.efm")
    found = json.loads(run("inspect", files / "ldg.efm", "--json")[1])
    assert (found["estimator"], found["parameters"]["n_components"]) == ("LDG", 2)


@pytest.mark.filterwarnings("default")
def test_inspecting_rows_says_how_a_fit_reads_them(tmp_path, rng):
    n = 100
    table = pd.DataFrame({
        "id": [f"person {i}" for i in range(n)],
        "age": np.r_[20:119, np.nan],
        "born": pd.date_range("2020-01-01", periods=n).astype(str),
        "town": np.resize(["Ulm", "Bern", None, "Ulm"], n),
        "void": np.nan,
        "price": np.arange(n) * 1.5,
        "kind": np.resize(["u", "v", "u"], n),
    })  # fmt: skip
    for form in ("csv", "parquet"):
        path = tmp_path / f"rows.{form}"
        table.to_csv(path, index=False) if form == "csv" else table.to_parquet(path)
        status, out, err = run("inspect", path, "--target", "kind", "--drop", "price")
        assert (status, err.count("\n")) == (0, 1)
        assert err.startswith("warning: columns whose values nearly all differ ('id')")
        lines = out.splitlines()
        assert "  rows: 100" in lines
        start = lines.index("  columns:")
        assert lines[start + 1 :] == [
            "    id: left out, text of 100 distinct values",
            "    age: number, 20 to 118, 99 distinct values, 1 missing",
            "    born: date, 2020-01-01 to 2020-04-09, 100 distinct values",
            "    town: category, 2 levels, 25 missing",
            "    void: left out, no value, 100 missing",
            "    price: not used",
            "    kind: target",
            "  target: kind, 2 classes: 'u' (67), 'v' (33)",
        ]
        found = json.loads(run("inspect", path, "--target", "price", "--json")[1])
        assert found["target"] == {"name": "price", "distinct": 100, "min": 0, "max": 148.5}
    (tmp_path / "bare.csv").write_text("u,1.5,2\nv,2.5,3\n")
    found = json.loads(run("inspect", tmp_path / "bare.csv", "--target", "0", "--json")[1])
    assert [column["kind"] for column in found["columns"]] == ["target", "number", "number"]
    text = (tmp_path / "rows.csv").read_text().replace(",25.0,", ",old,")
    (tmp_path / "rows.csv").write_text(text)
    out = run("inspect", tmp_path / "rows.csv")[1]
    assert "  rows: 100\n" in out
    assert "  bad rows: 1, at which a fit stops without --skip-bad\n" in out


def test_inspecting_the_first_rows_of_a_large_file(tmp_path):
    rows = pd.DataFrame(np.zeros((300_000, 30), np.float32), columns=[f"x{j}" for j in range(30)])
    rows.to_parquet(tmp_path / "rows.parquet")
    found = json.loads(run("inspect", tmp_path / "rows.parquet", "--json")[1])
    assert found["rows"] == 300_000
    assert 160_000 < found["rows_read"] < 300_000
    assert found["columns"][3]["distinct"] == 1


def test_inspecting_a_file_that_cannot_be_read_to_its_end_fails(tmp_path, monkeypatch):
    """`eigenfeat inspect FILE && eigenfeat fit FILE` then stops where the fit would stop."""
    monkeypatch.chdir(tmp_path)
    rows = "x,kind\n" + "1.5,ant\n2.5,bee\n" * 200_000
    files = {
        "late.csv": rows.encode() + "3.5,fée\n".encode("latin-1"),
        "header.csv": b"x,kind\n",
        "gaps.csv": b"x,kind\n1,\n2,\n",
    }
    for name, content in files.items():
        Path(name).write_bytes(content)
        status, out, err = run("inspect", name, "--target", "kind")
        fit = run("fit", name, "--target", "kind", "-o", "m.efm", "--skip-bad")
        assert (status, out) == (1, "")
        assert fit[::2] == (1, err)
        found = json.loads(run("inspect", name, "--target", "kind", "--json")[1])
        assert (found["status"], found["kind"]) == ("error", "data")
    Path("bad.csv").write_text("x,kind\n1,ant\n2,bee\n3,ant,4\n")
    status, out, _ = run("inspect", "bad.csv")
    assert (status, "bad rows: 1, at which a fit stops" in out) == (0, True)


def test_inspecting_rows(files):
    status, said, _ = run("inspect", files / "rows.csv", "--json")
    found = json.loads(said)
    assert status == 0
    assert (found["format"], found["rows"], found["n_columns"]) == ("csv", 400, 6)
    assert (found["delimiter"], found["header"]) == (",", True)
    values = {"kind": "category", "missing": 0, "distinct": 3}
    assert found["columns"][5] == {"name": "kind", "type": "string"} | values
    assert "    kind: category, 3 levels\n" in run("inspect", files / "rows.csv")[1]
    found = json.loads(run("inspect", files / "new.parquet", "--json")[1])
    assert (found["format"], found["rows"], found["row_groups"]) == ("parquet", 200, 1)
    found = json.loads(run("inspect", files / "rows.npy", "--json")[1])
    assert (found["shape"], found["type"]) == ([400, 5], "float64")
    (files / "a.svm").write_text("1 3:1\n")
    found = json.loads(run("inspect", files / "a.svm", "--json")[1])
    assert (found["format"], found["n_columns"], found["zero_based"]) == ("svmlight", 3, False)

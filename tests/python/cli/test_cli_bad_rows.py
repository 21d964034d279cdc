"""`--skip-bad`: outputs keep step with inputs, and every row left out is counted."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run
from flat_gem import gem_classifier
from scipy.sparse import csr_matrix
from table_files import csv_text, svmlight_text, table_of, write_table

import eigenfeat as ef
from eigenfeat import GEM, open_rows

BAD = [0, 7, 8, 63, 64, 199]


@pytest.fixture
def model(tmp_path, rng):
    """A classifier in a file, and rows to predict."""
    y = rng.integers(0, 3, 300)
    X = rng.standard_normal((300, 4)) * (1 + y[:, None]) + y[:, None]
    fitted = gem_classifier(n_directions=2).fit(X, np.array(["ant", "bee", "moth"])[y])
    ef.save(fitted, tmp_path / "model.efm")
    ef.save(gem_classifier(n_directions=2).fit(X, y), tmp_path / "numbers.efm")
    ef.save(GEM(n_directions=2).fit(X, y), tmp_path / "gem.efm")
    return fitted, X[:200]


def damaged(X):
    """The rows with holes of every kind."""
    X = X.copy()
    X[BAD[:3], [0, 1, 3]] = np.nan, np.inf, -np.inf
    X[BAD[3:]] = np.nan
    return X


def bad_csv(X):
    """CSV lines some of which have text, too few fields, too many, or none."""
    lines = csv_text(X).splitlines()
    wrong = ["x,1,2,3", "1,2", "1,2,3,4,5", "nan,1,2,3", "1,,3,4", ",,,"]
    for row, line in zip(BAD, wrong, strict=True):
        lines[1 + row] = line
    return "\n".join([*lines[:5], "", *lines[5:]]) + "\n"


@pytest.fixture(params=["csv", "parquet"])
def new(request, tmp_path, model):
    """A file of bad rows, with options."""
    path, X = tmp_path / f"new.{request.param}", model[1]
    if request.param == "csv":
        path.write_text(bad_csv(X))
        return [path, "--block-rows", "50"]
    write_table(path, table_of(damaged(X), np.zeros(len(X))), 37)
    return [path, "--drop", "kind", "--block-rows", "50"]


def test_predictions_of_bad_rows_are_empty(tmp_path, model, new):
    fitted, X = model
    command = ["predict", tmp_path / "model.efm", *new, "--skip-bad", "-o"]
    labels, chances = fitted.predict(X), fitted.predict_proba(X)
    labels[BAD], chances[BAD] = "", np.nan
    out = tmp_path / "found.csv"
    status, said, err = run(*command, out, "--proba")
    assert (status, err) == (0, "")
    assert said == f"{out}: 200 rows (6 bad rows left empty), {out.stat().st_size:,} bytes\n"
    lines = pd.read_csv(out)
    assert lines["prediction"].fillna("").tolist() == labels.tolist()
    np.testing.assert_allclose(lines.drop(columns="prediction"), chances, rtol=1e-6)
    status, said, _ = run(*command, tmp_path / "found.npy", "--json")
    found = json.loads(said)
    assert (found["rows"], found["skipped"]) == (200, 6)
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), labels)
    assert run(*command, tmp_path / "found.npy", "--proba")[0] == 0
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), chances, rtol=1e-6)
    status, _, err = run(*[part for part in command if part != "--skip-bad"], out)
    assert (status, len(err.splitlines())) == (1, 1)


def test_whole_numbers_that_are_missing(tmp_path, model):
    X = model[1]
    np.save(tmp_path / "new.npy", damaged(X))
    command = ["predict", tmp_path / "numbers.efm", tmp_path / "new.npy", "--skip-bad", "-o"]
    status, _, err = run(*command, tmp_path / "found.npy")
    assert status == 2
    assert "--skip-bad: expected --proba or an output in .csv or .parquet, got .npy" in err
    assert not (tmp_path / "found.npy").exists()
    labels = ef.load(tmp_path / "numbers.efm").predict(X).tolist()
    expected = [None if i in BAD else label for i, label in enumerate(labels)]
    for name in ("found.parquet", "found.csv"):
        assert run(*command, tmp_path / name)[0] == 0
        if name.endswith("csv"):
            found = pd.read_csv(tmp_path / name, skip_blank_lines=False)
        else:
            found = pd.read_parquet(tmp_path / name)
        found = found["prediction"].astype("Int64")
        assert [None if value is pd.NA else value for value in found] == expected


def test_bad_rows_at_the_end_count_too(tmp_path, rng):
    X, y = rng.standard_normal((105, 3)), np.arange(105) % 2
    X[100:] = np.inf
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "y.npy", y)
    rows = open_rows(tmp_path / "a.npy", tmp_path / "y.npy", skip_bad=True, block_rows=50)
    assert rows.n_skipped is None
    assert [len(block) for block in rows] == [50, 50]
    assert (rows.n_rows, rows.n_skipped) == (100, 5)
    with pytest.raises(ValueError, match=r"^mark_bad: expected False with skip_bad, got True$"):
        open_rows(tmp_path / "a.npy", skip_bad=True, mark_bad=True)
    more = ["--target", tmp_path / "y.npy", "--skip-bad", "--block-rows", "50", "--json"]
    more += ["-o", tmp_path / "out.efm"]
    for command in (["moments"], ["fit"], ["fit", "--memory", "0"]):
        found = json.loads(run(*command, tmp_path / "a.npy", *more)[1])
        assert (found["rows"], found["skipped"]) == (100, 5)


def test_labels_do_no_harm_to_predictions(tmp_path, model):
    fitted, X = model
    lines = svmlight_text(X, np.arange(200)).splitlines()
    (tmp_path / "new.svm").write_text(
        "\n".join([*lines[:150], "0.5" + lines[150][3:], *lines[151:]])
    )
    command = ["predict", tmp_path / "model.efm", tmp_path / "new.svm", "--block-rows", "40", "-o"]
    status, _, err = run(*command, tmp_path / "found.npy")
    assert (status, err) == (0, "")
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), fitted.predict(csr_matrix(X)))

"""`eigenfeat evaluate` on files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from sklearn.metrics import confusion_matrix, log_loss
from table_files import arrow_modules, csv_text

import eigenfeat as ef


@pytest.fixture
def files(tmp_path, rng, monkeypatch):
    arrow_modules()
    monkeypatch.chdir(tmp_path)
    y = rng.integers(0, 3, 500)
    X = (rng.standard_normal((500, 4)) * (1 + y[:, None])).astype(np.float32)
    kinds = np.array(["ant", "bee", "moth"])[y]
    (tmp_path / "train.csv").write_text(csv_text(X[:300], kinds[:300]))
    (tmp_path / "test.csv").write_text(csv_text(X[300:], kinds[300:]))
    assert run("fit", "train.csv", "--target", "kind", "-o", "model.efm")[0] == 0
    return X[300:], kinds[300:]


def test_figures_are_those_of_predictions_in_memory(files):
    X, y = files
    status, out, err = run("evaluate", "model.efm", "test.csv", "--target", "kind", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    model = ef.load("model.efm")
    del model.feature_names_in_
    proba = model.predict_proba(X)
    expected = confusion_matrix(y, model.classes_[proba.argmax(axis=1)])
    assert found["confusion"] == expected.tolist()
    assert found["classes"] == ["ant", "bee", "moth"]
    assert found["accuracy"] == pytest.approx(np.trace(expected) / 200)
    assert found["errors"] == 200 - np.trace(expected)
    assert found["log_loss"] == pytest.approx(log_loss(y, proba), rel=1e-5)
    assert found["standard_error"] == pytest.approx(
        np.sqrt(found["accuracy"] * (1 - found["accuracy"]) / 200)
    )
    command = ["evaluate", "model.efm", "test.csv", "--target", "kind", "--json"]
    parts = json.loads(run(*command, "--block-rows", "7")[1])
    assert parts["confusion"] == found["confusion"]
    assert parts["log_loss"] == pytest.approx(found["log_loss"], rel=1e-5)


def test_the_text_names_classes_and_what_is_confused(files):
    y = files[1]
    _, out, _ = run("evaluate", "model.efm", "test.csv", "--target", "kind")
    lines = out.splitlines()
    assert lines[0].startswith("model.efm: accuracy 0.")
    assert "errors in 200 rows, log loss " in lines[0]
    table = [line.split() for line in lines[3:6]]
    assert [row[0] for row in table] == ["ant", "bee", "moth"]
    assert [int(row[-1]) for row in table] == [int((y == c).sum()) for c in np.unique(y)]
    assert lines[-1].startswith("most often confused: ")


def test_unknown_labels_and_bad_rows_are_counted(files):
    text = Path("test.csv").read_text().splitlines()
    text[3] = text[3].replace("ant", "wasp").replace("bee", "wasp").replace("moth", "wasp")
    text[5] = "nan" + text[5][text[5].index(",") :]
    Path("test.csv").write_text("\n".join(text) + "\n")
    command = ["evaluate", "model.efm", "test.csv", "--target", "kind"]
    assert run(*command)[0] == 1
    found = json.loads(run(*command, "--skip-bad", "--json")[1])
    assert found["unknown_labels"] == {"wasp": 1}
    assert (found["skipped"], found["rows"], int(np.sum(found["confusion"]))) == (1, 199, 198)
    assert (
        "labels that the model does not know, and were left out: 'wasp'"
        in run(*command, "--skip-bad")[1]
    )


def test_what_cannot_be_evaluated_is_named(files):
    X = files[0]
    assert "--target: expected the column of labels" in run("evaluate", "model.efm", "test.csv")[2]
    Path("other.csv").write_text(csv_text(X, np.arange(len(X)) % 3))
    status, _, err = run("evaluate", "model.efm", "other.csv", "--target", "kind")
    assert status == 1
    assert "other.csv: expected labels among those of model.efm, ['ant', 'bee', 'moth'], got" in err
    ef.save(ef.TableRegressor().fit(X, X[:, 0]), "regressor.efm")
    status, _, err = run("evaluate", "regressor.efm", "test.csv", "--target", "kind")
    assert status == 1
    assert "test.csv: line 2, column 'kind': expected a float label" in err

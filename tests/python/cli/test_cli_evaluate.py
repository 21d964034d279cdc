"""`eigenfeat evaluate` on files."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import run
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    confusion_matrix,
    log_loss,
    roc_auc_score,
)
from sklearn.model_selection import FixedThresholdClassifier
from table_files import csv_text

import eigenfeat as ef


@pytest.fixture
def files(insects):
    fit = ["fit", "train.csv", "--target", "kind", "-o", "model.efm", "--set", "views=columns,gem"]
    assert run(*fit)[0] == 0
    X, kinds = insects
    return X[300:], kinds[300:]


def test_figures_are_those_of_predictions_in_memory(files):
    X, y = files
    command = ["evaluate", "model.efm", "test.csv", "--target", "kind", "--json"]
    status, out, err = run(*command)
    assert (status, err) == (0, "")
    found = json.loads(out)
    model = ef.load("model.efm")
    del model.feature_names_in_
    proba = np.asarray(model.predict_proba(X), dtype=float)
    proba /= proba.sum(axis=1, keepdims=True)
    predicted = model.classes_[proba.argmax(axis=1)]
    expected = confusion_matrix(y, predicted)
    assert found["confusion"] == expected.tolist()
    assert found["classes"] == ["ant", "bee", "moth"]
    assert found["accuracy"] == pytest.approx(np.trace(expected) / 200)
    assert found["errors"] == 200 - np.trace(expected)
    assert found["log_loss"] == pytest.approx(log_loss(y, proba), rel=1e-5)
    assert found["standard_error"] == pytest.approx(
        np.sqrt(found["accuracy"] * (1 - found["accuracy"]) / 200)
    )
    shares = np.array([(y == c).mean() for c in model.classes_])
    assert found["majority_accuracy"] == pytest.approx(shares.max())
    assert found["prior_log_loss"] == pytest.approx(-(shares * np.log(shares)).sum())
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, predicted))
    assert found["auc"] == pytest.approx(roc_auc_score(y, proba, multi_class="ovr"))
    rarest = int(shares.argmin())
    area = average_precision_score(y == model.classes_[rarest], proba[:, rarest])
    assert found["positive"] == model.classes_[rarest]
    assert found["average_precision"] == pytest.approx(area)
    assert found["base_rate"] == pytest.approx(shares.min())
    parts = json.loads(run(*command, "--block-rows", "7")[1])
    assert parts["confusion"] == found["confusion"]
    assert parts["log_loss"] == pytest.approx(found["log_loss"], rel=1e-5)


def test_the_text_names_classes_and_what_is_confused(files):
    y = files[1]
    _, out, _ = run("evaluate", "model.efm", "test.csv", "--target", "kind")
    lines = out.splitlines()
    said = " ".join(out.split())
    assert re.match(r"model.efm: \d+ errors in 200 rows .*; always predicting '\w+' makes", said)
    assert "Measures come from rows that, as far as is known, had no part in the fit." in said
    start = next(at for at, line in enumerate(lines) if line.startswith("class "))
    table = [line.split() for line in lines[start + 1 : start + 4]]
    assert [row[0] for row in table] == ["ant", "bee", "moth"]
    assert [int(row[1]) for row in table] == [int((y == c).sum()) for c in np.unique(y)]
    assert any(line.startswith("most often confused: ") for line in lines)
    assert max(map(len, lines)) <= 100


def test_a_model_that_finds_no_fraud_does_not_look_good(tmp_path, rng, monkeypatch):
    monkeypatch.chdir(tmp_path)
    y = np.where(np.arange(1000) % 50 == 0, "fraud", "fine")
    Path("rows.csv").write_text(csv_text(rng.standard_normal((1000, 3)), y))
    fit = ["fit", "rows.csv", "--target", "kind", "-o", "m.efm", "--set", "views=columns"]
    status, out, _ = run(*fit, "--holdout", "0.5")
    assert status == 0
    said = " ".join(out.split())
    assert "No better than a constant: 10 errors in 500 rows (2.0%)" in said
    assert "None of the 10 rows of class 'fraud' is found." in said
    assert "The saved model is fitted to all rows." in said
    assert said.index("balanced accuracy 0.5000 0.5000") < said.index(" accuracy 0.9800")
    for more, where in (((), "training"), (("--cv", "4"), "cross-validated")):
        command = ["evaluate", "m.efm", "rows.csv", "--target", "kind", "--json", *more]
        status, out, err = run(*command)
        warning = "warning: rows.csv: the fit has read this file: measures are too good; --cv 5"
        assert (status, err.startswith(warning)) == (0, not more)
        found = json.loads(out)
        assert (found["figures_from"], found["rows"]) == (where, 1000)
        assert found["verdict"].startswith("No better than a constant: 20 errors in 1,000 rows")


@pytest.mark.usefixtures("undrawn")
def test_the_class_of_interest(files):
    X, y = files
    model = ef.load("model.efm")
    del model.feature_names_in_
    proba = np.asarray(model.predict_proba(X), dtype=float)
    command = ["evaluate", "model.efm", "test.csv", "--target", "kind"]
    for code, label in enumerate(("ant", "bee", "moth")):
        found = json.loads(run(*command, "--positive", label, "--json")[1])
        assert (found["positive"], found["positive_is_chosen"]) == (label, True)
        assert found["base_rate"] == pytest.approx((y == label).mean())
        area = average_precision_score(y == label, proba[:, code])
        assert found["average_precision"] == pytest.approx(area)
        assert f"average precision of '{label}'  " in run(*command, "--positive", label)[1]
    wrong = "--positive: expected one of the classes ['ant', 'bee', 'moth'], got 'bees'"
    for more in ((), ("--cv", "2")):
        status, _, err = run(*command, "--positive", "bees", *more)
        assert (status, err) == (2, f"eigenfeat: {wrong}\n")
    status, _, err = run("report", *command[1:], "-o", "page.html", "--positive", "bees")
    assert (status, err, Path("page.html").exists()) == (2, f"eigenfeat: {wrong}\n", False)
    assert run("report", *command[1:], "-o", "page.html", "--positive", "bee")[0] == 0
    assert "Average precision of &#x27;bee&#x27;" in Path("page.html").read_text()


def test_the_class_of_interest_is_given_as_text(tmp_path, rng, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = rng.standard_normal((60, 2)), np.arange(60) % 3 // 2
    Path("rows.csv").write_text(csv_text(X, y))
    ef.save(LinearDiscriminantAnalysis().fit(X, y), "m.efm")
    command = ["evaluate", "m.efm", "rows.csv", "--target", "kind", "--json"]
    assert json.loads(run(*command)[1])["base_rate"] == pytest.approx(1 / 3)
    found = json.loads(run(*command, "--positive", "0")[1])
    assert (found["positive"], found["base_rate"]) == (0, pytest.approx(2 / 3))
    ef.save(ef.TableRegressor(["columns"]).fit(X, y), "r.efm")
    status, _, err = run("evaluate", "r.efm", *command[2:4], "kind", "--positive", "0")
    assert status == 2
    assert err == "eigenfeat: --positive: expected no label for a regression, got '0'\n"


def test_labels_that_are_fractions_are_named_in_full(tmp_path, rng, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = np.array([0.5, 1 / 7 + 2, 3.5, 4.5, 5.5])
    X, y = rng.standard_normal((100, 2)), np.repeat(labels, [30, 20, 20, 20, 10])
    Path("rows.csv").write_text(csv_text(X, y))
    ef.save(DummyClassifier(strategy="most_frequent").fit(X, y), "m.efm")
    status, out, _ = run("evaluate", "m.efm", "rows.csv", "--target", "kind")
    assert status == 0
    said = " ".join(out.split())
    assert "None of the 20 rows of class 4.5 is found. No sample of 1 other class is found." in said
    # In the table of the classes and in the confusion matrix.
    assert sum(line.startswith(f"{labels[1]} ") for line in out.splitlines()) == 2


def test_a_model_with_a_threshold_is_measured_by_its_predictions(files):
    X, y = files
    rare = np.where(y == "ant", "ant", "other")
    Path("rare.csv").write_text(csv_text(X, rare))
    model = FixedThresholdClassifier(LinearDiscriminantAnalysis(), threshold=0.9)
    ef.save(model.fit(X, rare), "rare.efm")
    found = json.loads(run("evaluate", "rare.efm", "rare.csv", "--target", "kind", "--json")[1])
    assert found["accuracy"] == pytest.approx(model.score(X, rare))
    assert found["confusion"] == confusion_matrix(rare, model.predict(X)).tolist()


@pytest.mark.usefixtures("undrawn")
def test_a_column_of_weights(files, rng):
    X, y = files
    weight = rng.integers(0, 4, len(y))
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X.astype(float), columns=names)
    frame.assign(count=weight, kind=y).to_csv("weighted.csv", index=False)
    given = ["weighted.csv", "--target", "kind", "--weight", "count", "--json"]
    fit = ["fit", *given, "-o", "w.efm", "--set", "views=columns"]
    found = json.loads(run(*fit, "--holdout", "0.3")[1])
    assert found["features"] == 4
    model = ef.TableClassifier(["columns"]).fit(frame, y, weight)
    np.testing.assert_allclose(ef.load("w.efm").predict_proba(frame), model.predict_proba(frame))
    found = json.loads(run("evaluate", "w.efm", *given)[1])
    assert found["accuracy"] == pytest.approx(model.score(frame, y, weight))
    shares = np.bincount(np.unique(y, return_inverse=True)[1], weight) / weight.sum()
    assert found["majority_accuracy"] == pytest.approx(shares.max())
    again = json.loads(run("evaluate", "w.efm", *given, "--cv", "3")[1])
    assert again["majority_accuracy"] == pytest.approx(shares.max())
    page = ["report", "w.efm", *given, "-o", "w.html", "--max-rows", "150"]
    assert run(*page)[0] == 0
    frame.assign(count=np.where(y == y[0], "few", "many"), kind=y).to_csv("text.csv", index=False)
    for more, expected, text in (
        (("--weight", "cost"), 2, "--weight: expected a column of weighted.csv"),
        (("--skip-bad",), 2, "--weight: expected none with --skip-bad"),
        (("--weight", "kind"), 2, "--weight: expected another column than the target, got kind"),
        (("text.csv",), 1, "text.csv: column 'count': expected numbers, got text\n"),
    ):
        for command in (("evaluate", "w.efm"), ("fit", "-o", "x.efm"), ("compare",)):
            files = given[1:-1] if more == ("text.csv",) else given[:-1]
            status, _, err = run(*command, *files, *more)
            assert (status, text in err) == (expected, True), err


def test_classes_without_weight_are_not_measured(files, recwarn):
    X, y = files
    frame = pd.DataFrame(X.astype(float), columns=["a", "b", "c", "d"])
    model = ef.TableClassifier(["columns"]).fit(frame, y)
    ef.save(model, "w.efm")
    first = model.classes_[0]
    frame.assign(count=np.where(y == first, 0, 2), kind=y).to_csv("rows.csv", index=False)
    frame[y != first].assign(kind=y[y != first]).to_csv("others.csv", index=False)
    command = ["evaluate", "w.efm", "--target", "kind", "--json"]
    found = json.loads(run(*command, "rows.csv", "--weight", "count")[1])
    others = json.loads(run(*command, "others.csv")[1])
    for name in ("chance", "positive", "base_rate", "balanced_accuracy", "auc", "log_loss"):
        assert found[name] == pytest.approx(others[name]), name
    assert not [one for one in recwarn if "class" in str(one.message)]
    unknown = np.append("new", y[1:])
    frame.assign(count=1 * (unknown == "new"), kind=unknown).to_csv("rows.csv", index=False)
    status, out, _ = run(*command, "rows.csv", "--weight", "count")
    assert (status, "expected at least one positive weight" in out) == (1, True)


def test_new_fits_measure_rows_that_they_have_not_seen(files, rng):
    """Labels without any relation to the columns are predicted by chance."""
    X, _ = files
    Path("noise.csv").write_text(csv_text(X, np.array(["a", "b"])[rng.integers(0, 2, len(X))]))
    fit = ["fit", "noise.csv", "--target", "kind", "-o", "f.efm", "--set", "views=forest"]
    assert run(*fit)[0] == 0
    before = Path("f.efm").read_bytes()
    command = ["evaluate", "f.efm", "noise.csv", "--target", "kind", "--json"]
    assert json.loads(run(*command)[1])["accuracy"] > 0.9
    assert 0.35 < json.loads(run(*command, "--cv", "3")[1])["accuracy"] < 0.65
    found = json.loads(run(*command, "--holdout", "0.25", "--seed", "1")[1])
    assert found["rows"] == 50
    assert json.loads(run(*command, "--holdout", "0.25", "--seed", "1")[1]) == found
    assert Path("f.efm").read_bytes() == before


def test_unknown_labels_and_bad_rows_are_counted(files):
    text = Path("test.csv").read_text().splitlines()
    text[3] = text[3].replace("ant", "wasp").replace("bee", "wasp").replace("moth", "wasp")
    text[5] = "far" + text[5][text[5].index(",") :]
    Path("test.csv").write_text("\n".join(text) + "\n")
    command = ["evaluate", "model.efm", "test.csv", "--target", "kind"]
    assert run(*command)[0] == 1
    found = json.loads(run(*command, "--skip-bad", "--json")[1])
    assert found["unknown_labels"] == {"wasp": 1}
    assert (found["skipped"], found["rows"], int(np.sum(found["confusion"]))) == (1, 199, 198)
    lines = run(*command, "--skip-bad")[1].splitlines()
    assert "left out 1 row with labels that the model does not know: 'wasp'" in lines
    assert "left out 1 bad row" in lines


def test_what_cannot_be_evaluated_is_named(files):
    X = files[0]
    Path("other.csv").write_text(csv_text(X, np.arange(len(X)) % 3))
    status, _, err = run("evaluate", "model.efm", "other.csv", "--target", "kind")
    assert status == 1
    assert "other.csv: column 'kind': expected labels among those of model.efm, " in err
    assert "['ant', 'bee', 'moth'], got ['0', '1', '2']" in err
    ef.save(ef.TableRegressor("columns").fit(X, X[:, 0]), "regressor.efm")
    status, _, err = run("evaluate", "regressor.efm", "test.csv", "--target", "kind")
    assert status == 1
    assert "test.csv: line 2, column 'kind': expected a number, got" in err


@pytest.mark.usefixtures("undrawn")
def test_the_target_is_that_of_the_fit(files):
    X, y = files
    expected = run("evaluate", "model.efm", "test.csv", "--target", "kind")
    assert run("evaluate", "model.efm", "test.csv") == expected
    assert run("report", "model.efm", "test.csv", "-o", "page.html")[0] == 0
    found = json.loads(run("inspect", "model.efm", "test.csv", "--json")[1])
    assert (found["target"], len(found["importances"])) == ("kind", 4)
    Path("other.csv").write_text(csv_text(X, y).replace("kind", "kinds"))
    status, _, err = run("evaluate", "model.efm", "other.csv")
    listed = "--target: expected a column of other.csv (x0, x1, x2, x3, kinds), got 'kind'"
    assert err == f"eigenfeat: {listed} (did you mean 'kinds'?), the target of model.efm\n"
    assert status == 2
    status, _, err = run("evaluate", "model.efm", "test.csv", "--target", "knid")
    assert (status, "got 'knid' (did you mean 'kind'?)\n" in err) == (2, True)


def test_the_target_of_files_without_names_is_a_place(files):
    X, y = files
    model = ef.TableClassifier(["columns"])
    np.save("rows.npy", np.column_stack([y == "ant", X]))
    ef.save(model.fit(ef.open_rows("rows.npy", 0)), "model.efm")
    assert json.loads(run("evaluate", "model.efm", "rows.npy", "--json")[1])["classes"] == [0, 1]
    Path("rows.svm").write_text("1 1:1 4:2\n0 2:1\n")  # lines begin with labels
    assert run("evaluate", "model.efm", "rows.svm")[0] == 0

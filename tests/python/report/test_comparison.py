"""Models compared on one table: measures, order, and reasons of failures."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from eigenfeat import TableClassifier, TableRegressor
from eigenfeat.report import compare, comparison_figure
from eigenfeat.report.held_out import cross_predict, held_out_parts
from eigenfeat.report.peers import peer_table, peers

PEERS = {
    *("class shares", "logistic regression", "random forest", "HistGradientBoosting", "SVM"),
    *("LightGBM", "CatBoost", "XGBoost"),
}


class Failing(ClassifierMixin, BaseEstimator):
    """A classifier that refuses all samples."""

    def fit(self, X, y):
        raise ValueError("no such samples")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Fit our classifier and regressor with one view only, as no test here needs a small error."""
    from eigenfeat.report import comparison

    def classifier(**options):
        return TableClassifier(["columns"], **options)

    def regressor(**options):
        return TableRegressor(["columns"], **options)

    monkeypatch.setattr(comparison, "TableClassifier", classifier)
    monkeypatch.setattr(comparison, "TableRegressor", regressor)


@pytest.fixture
def few_peers(monkeypatch):
    """Leave out the peers that take long to fit."""

    def few(*arguments, **options):
        quick = {"class shares", "logistic regression", "SVM"}
        return [peer for peer in peers(*arguments, **options) if peer.name in quick]

    monkeypatch.setattr("eigenfeat.report.comparison.peers", few)


@pytest.fixture(scope="module")
def loans():
    """A table with words, gaps, dates and an empty column, whose label needs the word."""
    random = np.random.default_rng(0)
    job = random.choice(["clerk", "smith", "nurse"], 150)
    age = np.where(random.random(150) < 0.1, np.nan, random.integers(18, 80, 150))
    since = pd.date_range("2020-01-01", periods=150)[random.permutation(150)]
    frame = pd.DataFrame({"job": job, "age": age, "since": since, "empty": np.nan})
    frame.loc[3, "job"] = None
    wrong = random.random(150) < 0.1
    return frame, np.where((job == "smith") ^ wrong, "bad", "good"), 10 * (job == "smith") + age


def test_the_forest_gets_the_columns_of_the_linear_model(loans):
    """Categories are one-hot, as integer codes would order words by the alphabet."""
    table = peer_table(loans[0])
    found = {peer.name: peer for peer in peers(table, regression=True, random_state=0, n_threads=1)}
    for name in ("ridge", "random forest"):
        # The age, whether it is missing, 4 parts of the date, and 3 words or none.
        assert found[name].model.fit(table, np.arange(150.0))[-1].n_features_in_ == 10


def test_a_table_with_words_gaps_and_dates(loans):
    X, y, _ = loans
    seen = []
    found = compare(X, y, cv=2, models={"failing": Failing()}, progress=seen.append)
    assert {*found.index} == {"TableClassifier", "failing", *PEERS}
    assert sorted(line["model"] for line in seen) == sorted(found.index)
    assert found.loc["failing", "note"] == "ValueError: no such samples"
    assert {*found["note"]} <= {"", "not installed", "ValueError: no such samples"}
    measured = found[found["n_folds"] == 2]
    assert measured["log_loss"].is_monotonic_increasing
    assert measured.index.equals(found.index[: len(measured)])
    assert found[len(measured) :].drop(columns=["n_folds", "note"]).isna().all(axis=None)
    assert (measured.loc[["logistic regression", "random forest", "SVM"], "accuracy"] > 0.75).all()
    assert (measured["fit_seconds"] > 0).all()
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    chances = cross_val_predict(DummyClassifier(), X, y, cv=folds, method="predict_proba")
    assert found.loc["class shares", "log_loss"] == pytest.approx(log_loss(y, chances))
    left, right = comparison_figure(found).axes
    assert [text.get_text() for text in left.get_yticklabels()][-1] == found.index[0]
    assert (left.get_xlabel(), right.get_xlabel()) == ("log loss", "seconds of a fit")


def test_a_regression(loans):
    X, _, target = loans
    known, models = ~np.isnan(target), {"mean again": DummyRegressor()}
    found = compare(X[known], target[known], task="regression", cv=2, models=models)
    error = found["root_mean_squared_error"]
    assert error["mean"] == error["mean again"]
    assert error.dropna().is_monotonic_increasing
    assert (found.loc[["ridge", "TableRegressor"], "r2"] > 0.9).all()


def test_weights_count_in_fits_and_measures(loans):
    X, y, _ = loans
    weight = np.where(y == "bad", 3.0, 1.0)
    found = compare(X, y, cv=2, sample_weight=weight)
    assert {*found["note"]} <= {"", "not installed"}
    share = weight[y == "bad"].sum() / weight.sum()
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert found.loc["class shares", "log_loss"] == pytest.approx(entropy, abs=0.01)


@pytest.mark.usefixtures("few_peers")
def test_the_class_of_interest(loans, tmp_path, monkeypatch):
    X, y, target = loans
    assert "average_precision" not in compare(X, y, cv=2)
    for label in ("good", "bad"):
        found = compare(X, y, cv=2, pos_label=label)
        shares = found.loc["class shares", "average_precision"]
        assert shares == pytest.approx((y == label).mean(), abs=0.02)
        assert found.loc["TableClassifier", "average_precision"] > shares
    with pytest.raises(ValueError, match=r"pos_label: expected .* \['bad', 'good'\], got 'ugly'"):
        compare(X, y, pos_label="ugly")
    with pytest.raises(ValueError, match="pos_label: expected no label for a regression"):
        compare(X, np.nan_to_num(target), task="regression", pos_label="bad")
    monkeypatch.chdir(tmp_path)
    X.assign(loan=y).to_csv("loans.csv", index=False)
    command = ("compare", "loans.csv", "--target", "loan", "--cv", "2")
    status, out, _ = run(*command, "--positive", "good")
    assert (status, "average precision" in out) == (0, True)
    status, _, err = run(*command, "--positive", "ugly")
    wrong = "--positive: expected one of the classes ['bad', 'good'], got 'ugly'"
    assert (status, err) == (2, f"eigenfeat: {wrong}\n")


@pytest.mark.usefixtures("few_peers")
def test_lists_and_regressors_for_classes():
    X, y = np.random.default_rng(0).standard_normal((40, 2)).tolist(), ["a", "b"] * 20
    found = compare(X, y, cv=2, models={"mean": DummyRegressor()})
    assert found.loc["TableClassifier", "n_folds"] == 2
    assert found.loc["mean", "note"] == "a regressor, which predicts no classes"


@pytest.mark.usefixtures("few_peers")
def test_a_model_takes_the_place_of_its_namesake():
    X, y = np.random.default_rng(0).standard_normal((40, 2)), ["a", "b"] * 20
    shares, given = DummyClassifier(strategy="prior"), DummyClassifier(strategy="uniform")
    found = compare(X, y, cv=2, models={"TableClassifier": given, "SVM": shares})
    assert found.index.is_unique
    assert found.loc["TableClassifier", "log_loss"] == pytest.approx(np.log(2))


def test_bad_arguments_are_named(loans):
    X, y, _ = loans
    many = np.arange(4000) % 200
    for given, message in (
        ({"y": y[:3]}, "y: expected 150 labels"),
        ({"task": "ranking"}, "task: expected 'auto', 'classification' or 'regression'"),
        ({"cv": 1}, "cv: expected 2 to "),
        ({"cv": "two"}, "cv: expected 2 to .*, got 'two'"),
        ({"X": np.zeros(150)}, "X: expected a data frame or a dense array"),
        ({"X": csr_array(np.eye(150))}, "X: expected a data frame or a dense array"),
        ({"y": np.where(np.arange(150) == 3, None, y)}, "y: expected a label for every sample"),
        ({"y": np.append(np.inf, np.arange(149) / 7)}, "y: expected finite numbers"),
        ({"task": "regression"}, "y: expected numbers for a regression"),
        ({"time_limit": 0}, "time_limit: expected a number > 0, got 0"),
        ({"n_threads": 0}, "n_threads: expected an integer >= 1, got 0"),
        ({"y": np.full(150, "good")}, r"at least two classes, got 1 class \('good'\)"),
        ({"y": np.where(np.arange(150) == 3, "rare", y)}, "got one of class 'rare'"),
        ({"X": np.zeros((4000, 1)), "y": many}, "'auto' for 200 distinct numbers in y"),
    ):
        with pytest.raises(ValueError, match=message):
            compare(**{"X": X, "y": y, **given})


def test_from_the_shell(loans, tmp_path, monkeypatch):
    X, y, _ = loans
    monkeypatch.chdir(tmp_path)
    X.assign(kind=y).to_csv("rows.csv", index=False)
    quick = ["--cv", "2", "--time-limit", "0.001"]
    command = ["compare", "rows.csv", "--target", "kind", *quick]
    status, out, err = run(*command, "--picture", "models.png")
    assert status == 0, err
    lines = out.splitlines()
    assert lines[0].startswith("rows.csv: 150 rows, 4 columns, target 'kind'; 2 folds; ")
    assert lines[1].split()[:3] == ["log", "loss", "AUC"]
    assert ": time limit after 1 of 2 folds" in " ".join(lines)
    assert (tmp_path / "models.png").read_bytes()[:4] == b"\x89PNG"
    found = json.loads(run(*command, "--json")[1])
    assert {one["name"] for one in found["models"]} == {"TableClassifier", *PEERS}
    forest = next(one for one in found["models"] if one["name"] == "random forest")
    assert (forest["n_folds"], forest["note"]) == (1, "time limit after 1 of 2 folds")
    assert (forest["rows"], int(np.sum(forest["confusion"]))) == (75, 75)
    assert [one["label"] for one in forest["by_class"]] == forest["classes"] == ["bad", "good"]
    np.save("X.npy", X[["age"]])  # with gaps
    np.save("y.npy", y)
    assert (
        run("compare", "X.npy", "--target", "y.npy", *command[4:], "--time-limit", "0.001")[0] == 0
    )


def test_figures_of_small_targets_have_their_digits(loans, tmp_path, monkeypatch):
    X, _, _ = loans
    monkeypatch.chdir(tmp_path)
    y = 1e-12 * np.random.default_rng(0).standard_normal(len(X))
    X[["age"]].assign(metres=y).to_csv("rows.csv", index=False)
    quick = ["--cv", "2", "--time-limit", "0.001", "--task", "regression", "--json"]
    status, out, err = run("compare", "rows.csv", "--target", "metres", *quick)
    assert status == 0, err
    found = {one["name"]: one for one in json.loads(out)["models"]}
    assert 0.5e-12 < found["mean"]["root_mean_squared_error"] < 2e-12


@pytest.mark.parametrize("kind", ["float64", "Int64", "array"])
def test_one_gap_in_a_column_ends_no_fold(rng, kind):
    X = pd.DataFrame(rng.integers(0, 50, (120, 3)), columns=list("abc"), dtype=float)
    y = (X["a"] + X["b"] > 50).astype(int).to_numpy()
    X.loc[7, "b"] = np.nan
    given = X.to_numpy() if kind == "array" else X.astype(kind)
    parts = held_out_parts(y, cv=4)
    held = cross_predict(TableClassifier(["columns"]), given, y, parts)
    np.testing.assert_array_equal(held.rows, np.arange(120))
    assert np.isfinite(held.proba).all()

"""GEMClassifierCV: candidates equal models fitted alone, and `cv_results_` describes them."""

import numpy as np
import pytest
from flat_gem import gem_classifier
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, StratifiedShuffleSplit

from eigenfeat import GEMClassifierCV

GRID = {
    "gem__ridge": [0.1, 0.5],
    "gem__threshold": [1.5, 3.0],
    "gem__n_directions": [2, 4],
    "logit__penalty": [0.1, 0.01],
}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900] / 16, y[:900]


@pytest.fixture(scope="module")
def search(digits):
    return GEMClassifierCV(gem_classifier(scale="none"), GRID, random_state=3).fit(*digits)


def test_every_candidate_equals_a_model_fitted_alone(digits, search):
    X, y = digits
    splitter = StratifiedShuffleSplit(1, test_size=1 / 6, random_state=3)
    train, test = (np.sort(rows) for rows in next(splitter.split(X, y)))
    assert len(search.results_) == 16
    for result in search.results_[::8]:
        options = {"scale": "none", "temperature": 1.0, **result["params"]}
        alone = gem_classifier(**options).fit(X[train], y[train])
        error = np.mean(alone.predict(X[test]) != y[test])
        assert abs(error - result["error"]) <= 1 / len(test)
        assert result["n_directions_kept"] == alone.layers_[-1].directions.shape[1]
        logarithms = alone.predict_log_proba(X[test])[np.arange(len(test)), y[test]]
        assert result["log_loss"] == pytest.approx(-logarithms.mean(), rel=0.02)


def test_the_best_comes_first_and_is_refitted(digits, search):
    X, y = digits
    ranks = [(result["error"], result["log_loss"]) for result in search.results_]
    assert ranks == sorted(ranks)
    assert search.best_params_ == search.results_[0]["params"]
    assert search.best_score_ == pytest.approx(1 - search.results_[0]["error"])
    alone = gem_classifier(scale="none", **search.best_params_).fit(X, y)
    assert np.array_equal(alone.predict_proba(X), search.predict_proba(X))


def test_folds_log_loss_and_no_refit(digits):
    X, y = digits
    found = GEMClassifierCV(
        gem_classifier(n_directions=2),
        {"logit__penalty": [1.0, 0.01]},
        cv=3,
        scoring="log_loss",
        refit=False,
    ).fit(X, y)
    assert found.best_params_ == {"logit__penalty": 0.01}
    assert all(len(result["errors"]) == 3 for result in found.results_)
    with pytest.raises(NotFittedError):
        found.predict(X)


class ByColumn(KFold):
    """Folds of samples whose first entries are close."""

    def split(self, X, y=None, groups=None):
        order = np.argsort(X[:, 0], kind="stable")
        return ((order[train], order[test]) for train, test in super().split(X))


def test_splitters_may_read_the_samples(digits):
    X, y = digits[0][:, 20:], digits[1]
    grid = {"logit__penalty": [0.1]}
    model = gem_classifier(n_directions=1)
    found, listed = (
        GEMClassifierCV(model, grid, cv=cv, refit=False).fit(X, y)
        for cv in (ByColumn(3), list(ByColumn(3).split(X)))
    )
    assert found.results_[0]["errors"] == listed.results_[0]["errors"]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"rigde": [1]}, "grid: expected parameters of GEMClassifier, .*, got 'rigde'"),
        ({"ridge": [1.0]}, "perhaps 'gem__ridge', got 'ridge'"),
        ({"gem__ridge": 1.0}, "grid: expected a sequence of values of gem__ridge, got 1.0"),
        ({"gem__ridge": []}, "grid: expected a sequence of values of gem__ridge"),
    ],
)
def test_unfit_grids_are_named(digits, grid, message):
    with pytest.raises(ValueError, match=message):
        GEMClassifierCV(grid=grid).fit(*digits)


def test_pairs_of_row_numbers_with_class_weights(digits):
    """Class weights become weights of rows, which splits by row numbers must subset."""
    X, y = digits
    base = gem_classifier(n_directions=2, scale="none", class_weight="balanced")
    pairs = [(np.arange(600), np.arange(600, 900))]
    found = GEMClassifierCV(base, {"logit__penalty": [0.1]}, cv=pairs, refit=False).fit(X, y)
    alone = base.set_params(logit__penalty=0.1).fit(X[:600], y[:600])
    right = alone.predict(X[600:]) == y[600:]
    weight = (len(y) / np.bincount(y))[y[600:]]
    assert found.best_score_ == pytest.approx(weight @ right / weight.sum())

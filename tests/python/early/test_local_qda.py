"""`LocalQDA` against plain loops, and as an estimator."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import cross_val_score

from eigenfeat.early import LocalQDA


def plain(X, y, x, kn, floor):
    """Discriminants of one row, one class and one column after the other."""
    scores = []
    for label in np.unique(y):
        rows = X[y == label]
        distances = np.round(((rows - x) ** 2).sum(axis=1), 10)  # ties are broken by row number
        near = rows[np.argsort(distances, kind="stable")[:kn]]
        score = np.log(len(rows) / len(X))
        for i in range(X.shape[1]):
            mean = near[:, i].mean()
            variance = ((near[:, i] - mean) ** 2).mean() + floor
            score -= (x[i] - mean) ** 2 / (2 * variance) + np.log(variance) / 2
        scores.append(score)
    return np.array(scores)


@pytest.mark.parametrize("kn", [1, 3, 1000])
def test_discriminants_equal_plain_loops(rng, kn):
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = LocalQDA(kn, variance_floor=1e-2).fit(X, y)
    points = X[:20] + 0.1 * rng.standard_normal((20, 13))
    expected = np.array([plain(X, y, x, kn, 1e-2) for x in points])
    assert_allclose(model.decision_function(points), expected, rtol=1e-9)
    assert_array_equal(model.predict(points), expected.argmax(axis=1))
    means, variances = model.local_gaussians(points)
    scores = model.offsets(variances) - 0.5 * ((points[:, None] - means) ** 2 / variances).sum(2)
    assert_allclose(scores, model.decision_function(points), rtol=1e-9)


def test_two_classes_and_probabilities():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    model = LocalQDA(8, variance_floor=1e-2).fit(X, y)
    floor = 1e-2 * X.var(axis=0).mean()
    scores = np.array([plain(X, y, x, 8, floor) for x in X[::7]])
    assert_allclose(model.decision_function(X[::7]), scores[:, 1] - scores[:, 0], rtol=1e-8)
    assert_allclose(model.predict_proba(X[::7]).sum(axis=1), 1.0)


def test_cross_validation_counts_the_errors_of_refitted_models():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = LocalQDA(n_folds=4).fit(X, y)
    assert list(model.cv_errors_) == [1, 2, 4, 8, 16, 32, 64]
    folds = np.empty(len(y), dtype=int)
    for g in range(3):
        folds[y == g] = np.arange((y == g).sum()) % 4
    splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(4)]
    for kn, error in model.cv_errors_.items():
        wrong = 0
        for train, test in splits:
            # Cross-validation uses the class frequencies of all samples.
            one = LocalQDA(kn).fit(X[train], y[train])
            one.priors_ = np.bincount(y) / len(y)
            wrong += (one.predict(X[test]) != y[test]).sum()
        assert error == wrong / len(y)
    best = min(model.cv_errors_.values())
    assert model.n_neighbors_ == min(m for m, e in model.cv_errors_.items() if e == best)
    assert cross_val_score(LocalQDA(), X, y, cv=4).mean() > 0.95


def test_equal_samples_of_a_small_unit():
    X = np.full((2, 5), 1e-148) * [[1.0], [1.0 + 1e-15]]
    model = LocalQDA().fit(X, [0, 1])
    assert np.isfinite(model.predict_proba(X)).all()

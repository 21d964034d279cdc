"""CalibratedLeastSquares: the steps of its docstring, on rows of any kind."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from eigenfeat import GEM
from eigenfeat.expansion import ExpandedFeatures
from eigenfeat.linear.calibrated import CalibratedLeastSquares, ScoreMap, on_simplex


@pytest.fixture(scope="module")
def digits():
    """GEM features of 900 digits to fit to and of the others to test on, with their labels."""
    X, y = load_digits(return_X_y=True)
    gem = GEM(n_directions=3, pairs="hypercube").fit(X[:900], y[:900])
    rows = [
        ExpandedFeatures(part.astype(np.float32), gem.directions_, gem.offset_)
        for part in (X[:900], X[900:])
    ]
    return rows[0], y[:900], rows[1], y[900:]


@pytest.fixture
def overlapping(rng):
    """400 rows of three classes that no plane separates, 6 columns of different sizes."""
    y = np.arange(400) % 3
    X = rng.standard_normal((400, 6)) + rng.standard_normal((3, 6))[y]
    return X * [1, 2, 0.1, 10, 1, 5], y


# ---- the reference -------------------------------------------------------------------------------


def simplex_by_bisection(rows):
    """Subtract a number from each row so that its positive entries sum to 1."""
    low, high = rows.min(axis=1, keepdims=True) - 1, rows.max(axis=1, keepdims=True)
    for _ in range(200):
        middle = (low + high) / 2
        above = np.maximum(rows - middle, 0).sum(axis=1, keepdims=True) > 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.maximum(rows - low, 0)


def reference(X, y, weight=None, *, steps, ridge=0.5, powers=4, calibration_ridge=1e-2):
    """W, with the constant last, and P, and squared errors; plain float64 formulas."""
    w = np.ones(len(y)) if weight is None else weight
    n, Y = w.sum(), np.eye(y.max() + 1)[y]
    Phi = np.column_stack([X, np.ones(len(X))])
    square = w @ Phi**2 / n
    square[-1] = 0
    H = 0.5 * Phi.T @ (w[:, None] * Phi) + ridge * np.sqrt(n) * np.diag(square)
    W = np.linalg.solve(2 * H, Phi.T @ (w[:, None] * Y))
    errors = []
    for step in range(steps + 1):
        Z = Phi @ W
        T = 2 * (Z - Z.min(axis=0)) / np.ptp(Z, axis=0) - 1
        F = np.hstack([*(T**a for a in range(1, powers + 1)), np.ones((len(X), 1))])
        gram = F.T @ (w[:, None] * F)
        shrink = calibration_ridge * np.diag(gram)
        shrink[-1] = 0
        A = np.linalg.solve(gram + np.diag(shrink), F.T @ (w[:, None] * Y))
        P = simplex_by_bisection(F @ A)
        errors.append(w @ ((Y - P) ** 2).sum(axis=1) / n)
        if step < steps:
            W = W + np.linalg.solve(H, Phi.T @ (w[:, None] * (Y - P)))
    return W, P, errors


@pytest.mark.parametrize("steps", [0, 1, 2, 6])
def test_steps_agree_with_the_formulas(overlapping, steps):
    X, y = overlapping
    model = CalibratedLeastSquares(n_iterations=steps).fit(X, y)
    W, P, errors = reference(X, y, steps=steps)
    # The metric is float32, with an error of about 1e-6 per step.
    assert_allclose(model.coef_, W[:-1].T, atol=1e-4 * np.abs(W).max())
    assert_allclose(model.intercept_, W[-1], atol=1e-4 * np.abs(W).max())
    assert_allclose(model.error_history_, errors, rtol=1e-4)
    assert_allclose(on_simplex(model.decision_function(X)), P, atol=1e-3)
    assert_allclose(model.predict_proba(X), (400 * P + 0.5) / 401.5, atol=1e-3)
    assert model.n_iter_ == steps


def test_the_ridge_agrees_with_the_formulas(overlapping):
    X, y = overlapping
    model = CalibratedLeastSquares(n_iterations=3, ridge=3.0).fit(X, y)
    assert_allclose(model.error_history_, reference(X, y, steps=3, ridge=3.0)[2], rtol=1e-4)


def test_weights_agree_with_the_formulas(overlapping, rng):
    X, y = overlapping
    weight = rng.integers(0, 4, 400).astype(float)
    kept = weight > 0
    model = CalibratedLeastSquares(n_iterations=3).fit(X, y, weight)
    _, P, errors = reference(X[kept], y[kept], weight[kept], steps=3)
    assert_allclose(model.error_history_, errors, rtol=1e-4)
    assert_allclose(on_simplex(model.decision_function(X[kept])), P, atol=1e-3)
    assert model.n_rows_ == weight.sum()


def test_calibration_clips_new_scores():
    low, high = np.array([0.0, -1.0]), np.array([1.0, 1.0])
    calibration = ScoreMap(low, high, np.vstack([np.eye(2), np.zeros((6, 2)), [[0.5, 0.5]]]))
    scores = np.array([[0.5, 0.0], [1.0, -1.0], [9.0, -9.0]])
    assert_array_equal(calibration.apply(scores), [[0.5, 0.5], [1.5, -0.5], [1.5, -0.5]])


# ---- rows of every kind --------------------------------------------------------------------------


def test_features_with_stored_projections_and_as_arrays(digits):
    X, y, rest, _ = digits
    expected = CalibratedLeastSquares().fit(X, y)
    for rows, queries in ((X.stored(), rest.stored()), (X.toarray(), rest.toarray())):
        model = CalibratedLeastSquares().fit(rows, y)
        assert model.n_features_in_ == X.shape[1]
        assert_allclose(model.predict_proba(queries), expected.predict_proba(rest), atol=0.02)
        assert np.mean(model.predict(queries) != expected.predict(rest)) < 0.01


def test_rows_far_from_zero(overlapping):
    """Columns far from 0 are centred within `fit`; coef_ is for the rows as they are."""
    X, y = overlapping
    far = X + 1e4 * X.std(axis=0)
    model = CalibratedLeastSquares().fit(far, y)
    assert model.score(far, y) > CalibratedLeastSquares().fit(X, y).score(X, y) - 0.02
    P = on_simplex(model.decision_function(far))
    assert_allclose(((np.eye(3)[y] - P) ** 2).sum(axis=1).mean(), model.error_history_[-1], 1e-4)


# ---- options and contract ------------------------------------------------------------------------


def test_degenerate_columns(overlapping):
    X, y = overlapping
    X = np.column_stack([X, np.zeros(400), np.full(400, 7.0), X[:, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = CalibratedLeastSquares().fit(X, y)
        nothing = CalibratedLeastSquares().fit(np.zeros((400, 1)), y)
    assert model.score(X, y) > 0.5
    assert_allclose(nothing.predict_proba([[5.0]])[0], np.bincount(y) / 400, atol=1e-3)

"""Joint moves of rows and SVM: the objective, its stationary points, and max-margin PCA."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from svm_reference import class_weights, dual_objective
from svm_reference import objective as svm_objective

from eigenfeat._base.core import core
from eigenfeat.maxmargin import MaxMarginPCA, MaxMarginShift, MulticlassSVM

SVM = MulticlassSVM(C=0.1, tol=1e-6, max_iter=5000)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:120] / 16, y[:120]


def plain_objective(M, X, y, W, b, C, sigma2):
    """The objective J for means M of rows X, by loops."""
    value = 0.5 * ((W**2).sum() + (b**2).sum())
    for m, x, own in zip(M, X, y, strict=True):
        hinge = max((c != own) + (W[c] - W[own]) @ m + b[c] - b[own] for c in range(len(W)))
        value += ((m - x) ** 2).sum() / (2 * sigma2) + C * hinge
    return value


def best_duals(rows, y, W, b, cost, sigma2):
    """Duals (n, k) of the best means of rows (n, d) for these weights."""
    given = (np.asarray(y, dtype=np.int32), np.full(len(rows), cost), 1.0, sigma2)
    start = np.zeros((len(rows), len(W)))
    return core.hinge_envelope(rows @ W.T + b, W @ W.T, *given, start, 1e-9, 1000, 1).duals


# ---- rows and SVM --------------------------------------------------------------------------------


@pytest.mark.parametrize(("sigma2", "intercept"), [(0.5, True), (50.0, False), (1e5, True)])
def test_joint_moves_are_a_stationary_point(digits, sigma2, intercept):
    """m = x + sigma2 a eta with the a of an SVM of the moved rows, whose weights are eta."""
    X, y = digits
    svm = clone(SVM).set_params(fit_intercept=intercept)
    shift = MaxMarginShift(PCA(2), sigma2=sigma2, svm=svm, moves="joint", tol=1e-13, max_iter=2000)
    shift.fit(X, y)
    M = shift.shift(X, y)
    W, b = shift.class_coef_, shift.intercept_
    assert_allclose(shift.objective_, plain_objective(M, X, y, W, b, 0.1, sigma2), rtol=1e-7)
    duals = best_duals(X, y, W, b, 0.1, sigma2)
    assert_allclose(X + sigma2 * duals @ W, M, atol=1e-6 * np.abs(M - X).max())
    # These duals and weights are feasible for the SVM of the moved rows, and its gap is tiny.
    assert_allclose(duals.T @ M, W, atol=2e-3 * np.abs(W).max())
    primal = svm_objective(M, y, np.full(len(y), 0.1), W, b)
    gap = primal - dual_objective(M, y, duals, intercept=intercept)
    assert abs(gap) <= 1e-3 * primal
    # J falls from its value at the SVM of the rows, and never rises.
    history = shift.objective_history_
    assert len(history) >= shift.n_iter_ > 1
    assert np.diff(history).max() <= 1e-8 * history[0]
    assert history[-1] < 0.999 * history[0]


def test_joint_moves_in_other_units(digits):
    """Rows s x, costs C / s^2 and sigma2 s^4 have moves s times as long."""
    X, y = digits
    svm = clone(SVM).set_params(fit_intercept=False)
    known = MaxMarginShift(sigma2=9.0, svm=svm, moves="joint").shift(X, y) - X
    for scale in (2.0**-30, 2.0**100):
        svm.set_params(C=0.1 / scale**2)
        other = MaxMarginShift(sigma2=9.0 * scale**4, svm=svm, moves="joint").shift(scale * X, y)
        assert_allclose(other / scale - X, known, atol=1e-6 * np.abs(known).max())
    with pytest.raises(ValueError, match="sigma2: expected a smaller scale"):
        MaxMarginShift(sigma2=1e300, moves="joint").fit(1e-9 * X, y)


def test_joint_moves_of_other_kinds_of_rows(digits):
    X, y = digits
    given = {"sigma2": 20.0, "svm": SVM, "moves": "joint"}
    known = MaxMarginShift(**given).shift(X, y)
    assert_allclose(MaxMarginShift(**given).shift(X[::-1], y[::-1])[::-1], known, atol=1e-2)
    repeated = MaxMarginShift(PCA(2), **given).fit(np.repeat(X[:40], 3, axis=0), y[:40].repeat(3))
    assert np.isfinite(repeated.objective_)
    still = MaxMarginShift(PCA(2), **given | {"sigma2": 0.0}).fit(X, y)
    assert np.isnan(still.objective_)
    weights = class_weights(still.svm_)
    assert_allclose(still.class_coef_, weights[0], atol=1e-12)
    assert_allclose(still.intercept_, weights[1], atol=1e-12)


def test_the_joint_scale_is_chosen(digits):
    X, y = digits
    given = {"svm": MulticlassSVM(C=0.1), "moves": "joint"}
    shift = MaxMarginShift(PCA(3), scales=(0.7,), cv=2, **given).fit(X, y)
    assert 0.6 < shift.relative_shift_ < 0.8
    same = MaxMarginShift(PCA(3), sigma2=shift.sigma2_, **given).fit(X, y)
    assert_array_equal(same.transform(X), shift.transform(X))


# ---- max-margin PCA ------------------------------------------------------------------------------


def test_max_margin_pca_with_all_components_is_the_joint_shift(digits):
    X, y = digits
    X = X[:, 18:26] - X[:, 18:26].mean(axis=0)
    given = {"sigma2": 1.0, "svm": MulticlassSVM(C=0.1)}
    whole = MaxMarginPCA(8, **given, max_iter=50).fit(X, y)
    shift = MaxMarginShift(**given, moves="joint").fit(X, y)
    assert_allclose(whole.objective_, shift.objective_, rtol=1e-4)


@pytest.mark.parametrize("sigma2", [0.1, 10.0, 1e3])
def test_sweeps_never_raise_the_objective(digits, sigma2):
    X, y = digits
    model = MaxMarginPCA(4, sigma2=sigma2, svm=SVM).fit(X, y)
    W = model.components_
    assert_allclose(W @ W.T, np.eye(4), atol=1e-12)
    history = np.array(model.objective_history_)
    assert len(history) == model.n_iter_ > 2
    assert np.diff(history).max() <= 1e-8 * history[0]
    features = model.transform(X)
    spread = features.T @ features
    assert_allclose(spread, np.diag(np.diag(spread)), atol=1e-9 * spread.max())
    assert (np.diff(np.diag(spread)) <= 0).all()
    # J is its value at these weights and the best features for them.
    nu, b = model.feature_coef_, model.feature_intercept_
    duals = best_duals(features, y, nu, b, 0.1, sigma2)
    Z = features + sigma2 * duals @ nu
    rest = ((X - X.mean(axis=0)) ** 2).sum() - (features**2).sum()
    expected = plain_objective(Z, features, y, nu, b, 0.1, sigma2) + rest / (2 * sigma2)
    assert_allclose(model.objective_, expected, rtol=1e-3)
    assert model.objective_ <= expected * (1 + 1e-3)


def test_max_margin_pca_with_sigma2_0_is_pca(digits):
    X, y = digits
    peer = PCA(3, svd_solver="full").fit(X)
    for rows in (X, X[:50], X.astype(np.float32)):
        model = MaxMarginPCA(3, sigma2=0.0).fit(rows, y[: len(rows)])
        expected = PCA(3, svd_solver="full").fit_transform(rows)
        assert_allclose(np.abs(model.transform(rows)), np.abs(expected), atol=1e-4)
        assert model.relative_shift_ == 0.0
    assert_allclose(model.mean_, peer.mean_, atol=1e-6)
    assert model.get_feature_names_out().tolist() == [f"maxmarginpca{i}" for i in range(3)]


def test_max_margin_pca_of_other_rows(digits):
    X, y = digits
    shifted = MaxMarginPCA(3, sigma2=5.0, svm=SVM).fit(np.hstack([X, np.full((120, 1), 7.0)]), y)
    assert np.abs(shifted.components_[:, -1]).max() < 1e-9
    partly = MaxMarginPCA(3, sigma2=5.0, svm=SVM).fit(X, y, np.arange(120) % 3)
    assert np.isfinite(partly.objective_)
    with pytest.raises(ValueError, match="n_components: expected at most 64"):
        MaxMarginPCA(65, sigma2=1.0).fit(X, y)


def test_max_margin_pca_warns_of_sweeps_that_were_not_enough(rng):
    X, y = rng.standard_normal((60, 6)), np.arange(60) % 3
    given = {"sigma2": 5.0, "svm": SVM, "tol": 1e-4}
    with pytest.warns(ConvergenceWarning, match="MaxMarginPCA: 2 sweeps were not enough"):
        short = MaxMarginPCA(2, **given, max_iter=2).fit(X, y)
    assert short.n_iter_ == len(short.objective_history_) == 2
    long = MaxMarginPCA(2, **given, max_iter=1000).fit(X, y)  # a warning would be an error
    assert 2 < long.n_iter_ < 1000
    for sigma2, scales in ((0.0, (1.0,)), ("cv", (0.0, 0.01))):  # rough fits of a search are silent
        MaxMarginPCA(2, sigma2=sigma2, svm=SVM, scales=scales, max_iter=300, tol=1e-3).fit(X, y)

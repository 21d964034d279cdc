"""Completions learned from incomplete rows: expectation and maximisation against plain loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from eigenfeat.early import GaussianCompletion, MixtureCompletion


def plain(X, shrinkage, ridge, iterations):
    """Row by row, from the column means and the covariance of rows filled with them."""
    n, d = X.shape

    def regular(filled, extra):
        mean = filled.mean(axis=0)
        S = (filled - mean).T @ (filled - mean) / n + extra
        level = np.trace(S) / d
        return mean, (1 - shrinkage) * S + (shrinkage + ridge) * level * np.eye(d)

    mean, S = regular(np.where(np.isnan(X), np.nanmean(X, axis=0), X), 0.0)
    for _ in range(iterations):
        filled, extra = X.copy(), np.zeros((d, d))
        for row in filled:
            u = np.isnan(row)
            gain = np.linalg.solve(S[np.ix_(~u, ~u)], S[np.ix_(~u, u)]).T
            row[u] = mean[u] + gain @ (row[~u] - mean[~u])
            extra[np.ix_(u, u)] += (S[np.ix_(u, u)] - gain @ S[np.ix_(~u, u)]) / n
        mean, S = regular(filled, extra)
    return mean, S


@pytest.fixture
def holes(rng):
    """Gaussian rows (80, 5), and the same with a third of the entries missing."""
    X = rng.standard_normal((80, 5)) @ rng.standard_normal((5, 5)) + [0, 1, -2, 3, 100]
    return X, np.where(rng.random(X.shape) < 0.3, np.nan, X)


def test_iterations_are_those_of_plain_loops(holes):
    X = holes[1][~np.isnan(holes[1]).all(axis=1)]
    for shrinkage, ridge in ((0.0, 0.0), (0.2, 0.05)):
        for iterations in (1, 4):
            with pytest.warns(ConvergenceWarning, match=f"max_iter={iterations} iterations"):
                model = GaussianCompletion(shrinkage, ridge, max_iter=iterations, tol=0).fit(X)
            mean, S = plain(X, shrinkage, ridge, iterations)
            assert model.n_iter_ == iterations
            assert_allclose(model.mean_, mean, rtol=1e-9)
            assert_allclose(model.covariance_, S, rtol=0, atol=1e-9 * np.trace(S))


def test_likelihood_climbs_to_a_maximum(holes):
    X = holes[1][~np.isnan(holes[1]).all(axis=1)]
    model = GaussianCompletion(0, 0, tol=1e-7, max_iter=5000).fit(X)
    assert np.all(np.diff(model.log_likelihoods_) >= -1e-12)

    def likelihood(mean, S):
        total = 0.0
        for row in X:
            k = ~np.isnan(row)
            total += multivariate_normal(mean[k], S[np.ix_(k, k)]).logpdf(row[k])
        return total / len(X)

    top = likelihood(model.mean_, model.covariance_)
    assert_allclose(top, model.log_likelihoods_[-1], atol=1e-6)
    rng = np.random.default_rng(5)
    for _ in range(20):
        step = 1e-3 * rng.standard_normal((5, 5))
        other = (np.eye(5) + step) @ model.covariance_ @ (np.eye(5) + step).T
        assert likelihood(model.mean_ + 0.01 * rng.standard_normal(5), other) < top


def test_complete_rows_and_rows_without_anything_change_nothing(holes):
    X, punched = holes
    model = GaussianCompletion().fit(X)
    assert model.n_iter_ == 1
    assert model.log_likelihoods_.shape == (0,)
    empty = np.full((3, 5), np.nan)
    first = GaussianCompletion().fit(punched)
    again = GaussianCompletion().fit(np.concatenate([empty, punched]))
    assert_array_equal(again.mean_, first.mean_)
    assert_array_equal(again.covariance_, first.covariance_)
    for threads in (1, 2, 7):
        other = GaussianCompletion(n_threads=threads).fit(punched)
        assert_array_equal(other.covariance_, first.covariance_)


def test_classes_are_learned_apart_with_one_ridge(rng, holes):
    X = np.concatenate([holes[1], 5 + 2 * holes[1][::-1]])
    y = np.repeat(["a", "b"], 80)
    model = MixtureCompletion(0.1, 0.0).fit(X, y)
    assert 0 < model.n_iter_ < 200
    for k, label in enumerate("ab"):
        alone = GaussianCompletion(0.1, 0.0, tol=1e-6).fit(X[y == label])
        assert_allclose(model.means_[k], alone.mean_, rtol=0.01, atol=0.05)
        assert_allclose(model.covariances_[k], alone.covariance_, rtol=0, atol=0.1)
    # What is never known in a class stays at what all rows say.
    X[y == "a", 2] = np.nan
    partly = MixtureCompletion(0.1).fit(X, y)
    assert_allclose(partly.means_[0, 2], np.nanmean(X[:, 2]), rtol=1e-6)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X.__setitem__((slice(None), 3), np.nan), "NaN only in column 3"),
        (lambda X: X.__setitem__(slice(0, 40), np.nan), "NaN only in class 0$"),
        (lambda X: X.__setitem__((0, 0), np.inf), "infinity"),
    ],
)
def test_errors_leave_the_estimator_as_it_was(holes, spoil, message):
    X, punched = holes
    y = np.repeat([0, 1], 40)
    model = MixtureCompletion().fit(X, y)
    before = model.means_.copy()
    spoil(punched)
    with pytest.raises(ValueError, match=message):
        model.fit(punched, y)
    assert_array_equal(model.means_, before)
    with pytest.raises(ValueError, match="max_iter"):
        GaussianCompletion(max_iter=0).fit(X)
    with pytest.raises(ValueError, match="samples that differ, got equal ones"):
        GaussianCompletion().fit([[1.0, np.nan], [1.0, 2.0], [np.nan, 2.0]])
    with pytest.raises(ValueError, match="ridge: expected one that makes"):
        GaussianCompletion(0, 0).fit(np.where(np.eye(3, 9) > 0, np.nan, X[:3, [0] * 9]))

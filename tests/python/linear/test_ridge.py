"""Ridge regression against scikit-learn's, and its leave-one-out predictions against refits."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from eigenfeat.linear.ridge import fit_ridge, solve_ridge


def problem(rng, n, p):
    X = rng.standard_normal((n, p)) * 10.0 ** np.arange(p) + 5.0
    return X, np.column_stack([X[:, 0] ** 2, X[:, 1] + rng.standard_normal(n)])


def reference(X, y, weight, penalty):
    return Ridge(alpha=penalty * weight.sum(), solver="svd").fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("n", [5_000, 60, 4])
def test_predictions_are_those_of_ridge_on_standardised_features(rng, n):
    X, y = problem(rng, n, 6)
    weight = rng.random(n) + 0.1
    found, _ = fit_ridge(X.__getitem__, y, weight / weight.sum())
    mean = np.average(X, axis=0, weights=weight)
    size = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    expected = reference(X / size, y, weight, found.penalty)
    assert_allclose(found.predict(X), expected.predict(X / size), rtol=1e-6)


@pytest.mark.parametrize("n", [5_000, 30])
def test_left_out_predictions_are_those_of_refits(rng, n):
    X, y = problem(rng, n, 3)
    X.sort(axis=0)  # blocks of samples have different means
    weight = rng.random(n) + 0.1
    found, left_out = fit_ridge(X.__getitem__, y, weight / weight.sum(), common_scale=True)
    mean = np.average(X, axis=0, weights=weight)
    size = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight).mean())
    for i in rng.permutation(n)[:30]:
        rest = np.arange(n) != i
        # the penalty is relative to the weight of all samples
        penalty = found.penalty * weight.sum() / weight[rest].sum()
        one = reference(X[rest] / size, y[rest], weight[rest], penalty)
        assert_allclose(left_out(np.array([i]))[0], one.predict(X[i : i + 1] / size)[0], rtol=1e-6)


def test_errors_of_some_of_many_samples_choose_the_penalty(rng):
    n, p = 30_000, 200
    X = rng.standard_normal((n, p))
    y = 0.02 * X[:, :1] + rng.standard_normal((n, 1))
    order = np.argsort(np.abs(y[:, 0]))  # the first samples have the smallest errors
    X, y, share = X[order], y[order], rng.random(n) + 0.1
    share /= share.sum()
    found, left_out = fit_ridge(X.__getitem__, y, share)
    residuals = y - left_out(np.arange(n))
    assert_allclose(found.error, share @ residuals[:, 0] ** 2, rtol=0.05)
    assert found.penalty > 1e-2  # of 200 features one counts, and little


def test_without_features_and_with_constant_features(rng):
    y = rng.standard_normal((20, 1))
    share = np.full(20, 0.05)
    for X in (np.empty((20, 0)), np.full((20, 2), 0.1)):
        found, _ = fit_ridge(X.__getitem__, y, share)
        assert_allclose(found.predict(X), np.full((20, 1), y.mean()))


@pytest.mark.parametrize("common_scale", [False, True])
@pytest.mark.parametrize(("n", "p"), [(5_000, 6), (40, 6), (20, 60)])
def test_the_chosen_penalty_gives_the_chosen_regression(rng, n, p, common_scale):
    X = rng.standard_normal((n, p)) + np.arange(p)
    X[:, 3] = 2.0
    y = np.column_stack([X[:, 0] ** 2, X[:, 1] + rng.standard_normal(n)])
    share = rng.random(n) + 0.1
    problem = X.__getitem__, y, share / share.sum()
    chosen, _ = fit_ridge(*problem, common_scale=common_scale)
    solved = solve_ridge(*problem, chosen.penalty, common_scale=common_scale)
    assert_allclose(solved.predict(X), chosen.predict(X), rtol=1e-8, atol=1e-8)


def test_many_outputs_take_little_memory(rng):
    X, y = rng.standard_normal((4_000, 50)), rng.standard_normal((4_000, 200))
    share = np.full(4_000, 1 / 4_000)
    tracemalloc.start()
    fit_ridge(X.__getitem__, y, share)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * y.nbytes

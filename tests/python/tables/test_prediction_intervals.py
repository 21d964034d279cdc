"""Intervals of `TableRegressor`: coverage, widths that follow the noise, weights, bad arguments."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.model_selection import train_test_split

from eigenfeat import TableRegressor

FAST = ["columns", "splines", "kernel"]


def noisy(seed, n):
    """A target whose noise grows with the first column."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    noise = 0.1 + np.maximum(X[:, 0], 0)
    return X, np.sin(3 * X[:, 1]) + noise * rng.standard_normal(n)


def covered(ends, y):
    return (ends[..., 0] <= y) & (y <= ends[..., 1])


@pytest.mark.parametrize(
    "data", [load_diabetes, lambda **_: make_friedman1(1_000, noise=1.0, random_state=0)]
)
def test_new_targets_are_covered(data):
    X, y = data(return_X_y=True)
    coverages, shares = [0.5, 0.9], []
    for seed in range(3):
        A, B, a, b = train_test_split(X, y, test_size=0.5, random_state=seed)
        model = TableRegressor(FAST).fit(A, a)
        shares.append([covered(model.predict_interval(B, one), b).mean() for one in coverages])
    assert_allclose(np.mean(shares, axis=0), coverages, rtol=0, atol=0.05)


def test_widths_follow_the_noise():
    X, y = noisy(0, 3_000)
    ends = TableRegressor(FAST).fit(X[:1_000], y[:1_000]).predict_interval(X[1_000:])
    quiet, inside = X[1_000:, 0] < 0, covered(ends, y[1_000:])
    width = np.ptp(ends, axis=1)
    assert width[~quiet].mean() > 2.5 * width[quiet].mean()
    assert inside[~quiet].mean() > 0.82
    assert inside[quiet].mean() > 0.88
    assert abs(inside.mean() - 0.9) < 0.03


def test_few_samples_are_covered():
    shares = []
    for seed in range(8):
        X, y = noisy(seed, 1_030)
        ends = TableRegressor(FAST).fit(X[:30], y[:30]).predict_interval(X[30:])
        shares.append(covered(ends, y[30:]).mean())
    assert 0.84 < np.mean(shares) < 0.97


def test_too_few_samples_have_infinite_intervals():
    X, y = noisy(0, 30)
    model = TableRegressor("columns").fit(X[:8], y[:8])  # 8 / 9 < 0.9
    assert_array_equal(model.predict_interval(X, 0.9), np.tile([-np.inf, np.inf], (30, 1)))
    assert np.isfinite(model.predict_interval(X, 0.88)).all()


def test_ends_of_a_target_without_negative_values_are_not_negative():
    X, y = noisy(4, 600)
    Y = np.column_stack([np.exp(3 * y), y])  # a price, and a target of both signs
    model = TableRegressor(FAST).fit(X[:400], Y[:400])
    ends = model.predict_interval(X[400:])
    half = (ends[:, 0, 1] - model.predict(X[400:])[:, 0])[:, None]
    unclipped = model.predict(X[400:])[:, 0, None] + half * [-1, 1]
    assert (unclipped < 0).any()
    assert_allclose(ends[:, 0], np.maximum(unclipped, 0), atol=1e-12)
    assert ends[:, 1].min() < 0
    prices = TableRegressor("columns").fit(X[:8], Y[:8, 0])
    assert_array_equal(prices.predict_interval(X[:2]), [[0, np.inf]] * 2)


def test_intervals_contain_the_prediction_and_grow_with_the_coverage():
    X, y = noisy(1, 400)
    model = TableRegressor(FAST).fit(X[:200], y[:200])
    narrow, wide = model.predict_interval(X, 0.5), model.predict_interval(X, 0.95)
    assert_allclose(narrow.mean(axis=1), model.predict(X))
    assert (np.ptp(narrow, axis=1) > 0).all()
    assert (np.ptp(wide, axis=1) > np.ptp(narrow, axis=1)).all()


def test_weights_count_in_the_quantile():
    X, y = noisy(2, 2_400)
    loud = X[:, 0] > 0
    weight = np.where(loud, 1.0, 1e-3)  # new samples are loud
    models = [
        TableRegressor(FAST).fit(X[:400], y[:400], factor * weight[:400]) for factor in (1, 1024)
    ]
    ends = [model.predict_interval(X[400:]) for model in models]
    assert_allclose(ends[0], ends[1])
    steps = np.diff(models[0].spread_.total[:, 0], prepend=0.0)
    assert_allclose(np.sort(steps), np.sort(weight[:400] / weight[:400].mean()), rtol=1e-6)
    assert covered(ends[0], y[400:])[loud[400:]].mean() > 0.86
    without = TableRegressor(FAST).fit(X[:400][loud[:400]], y[:400][loud[:400]])
    some = np.where(loud, 1.0, 0.0)[:400]
    zero = TableRegressor(FAST).fit(X[:400], y[:400], some)
    assert_array_equal(zero.predict_interval(X), without.predict_interval(X))


def test_several_and_constant_outputs():
    X, y = noisy(3, 600)
    Y = np.column_stack([y, 100.0 - 10.0 * y, np.full(len(y), 2.0)])
    model = TableRegressor(FAST).fit(X[:400], Y[:400])
    ends = model.predict_interval(X[400:], coverage=0.8)
    assert ends.shape == (200, 3, 2)
    assert_allclose(ends[:, 2], 2.0)
    for output in (0, 1):
        assert abs(covered(ends[:, output], Y[400:, output]).mean() - 0.8) < 0.1


def test_bad_coverages_are_named():
    X, y = noisy(5, 30)
    model = TableRegressor("columns").fit(X, y)
    for coverage in (0, 1, -0.1, 90, np.nan, None, "0.9", True):
        with pytest.raises(ValueError, match="coverage: expected a number"):
            model.predict_interval(X, coverage)

"""ITML against the optimality conditions of its programme, and its ranking."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from eigenfeat.ldg import ITML
from eigenfeat.ldg.metric_learning import learnt_metric, ranked_by_information


@pytest.mark.parametrize("slack", [0.1, 10.0])
def test_metric_is_optimal(rng, slack):
    """Stationarity, feasibility and complementarity of (2.11) with slack."""
    gaps = rng.standard_normal((24, 5)) * [1.0, 2.0, 0.5, 0.0, 1.0]
    same = rng.random(24) < 0.5
    bounds = (1.0, 8.0)
    metric, sweeps, weights = learnt_metric(
        gaps, same, bounds, slack=slack, tol=1e-9, max_iter=4_000
    )
    assert sweeps <= 4_000
    assert np.all(weights >= 0)
    sign = np.where(same, 1.0, -1.0)
    inverse = np.eye(5) + (gaps.T * (sign * weights)) @ gaps
    assert_allclose(np.linalg.inv(metric), inverse, rtol=1e-6, atol=1e-8)
    held = 1 / (1 / np.where(same, *bounds) - sign * weights / slack)
    excess = sign * (np.einsum("ij,jk,ik->i", gaps, metric, gaps) - held) / held
    assert np.all(excess <= 1e-4)
    assert np.all(np.abs(excess[weights > 1e-4]) <= 1e-4)


def test_sweeps_that_do_not_suffice_warn():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="ITML: 3 sweeps were not enough"):
        ITML(n_pairs=40, tol=1e-300, max_iter=3).fit(X, y)


def test_pairs_beyond_memory_and_features_beyond_columns():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="n_components: expected at most 4"):
        ITML(7).fit(X, y)
    with pytest.raises(MemoryError, match="n_pairs"):
        ITML(n_pairs=2**31 - 1).fit(X, y)


def test_distances_of_features_follow_the_metric_in_any_unit():
    X, y = load_iris(return_X_y=True)
    model = ITML(tol=1e-2).fit(X, y)
    reduced = model.transform(X)
    gap = X[3] - X[70]
    assert_allclose(((reduced[3] - reduced[70]) ** 2).sum(), gap @ model.metric_ @ gap, rtol=1e-9)
    scaled = ITML(tol=1e-2).fit(1e-120 * X, y)
    assert_allclose(scaled.metric_, model.metric_, rtol=1e-6)
    assert_allclose(scaled.bounds_, 1e-240 * model.bounds_, rtol=1e-9)
    kept = ITML(2, tol=1e-2).fit(X, y).components_
    for row in kept:
        assert np.abs(model.components_ - row).max(axis=1).min() < 1e-9


def test_fewer_rows_than_columns(rng):
    """In the span of the rows the metric is rotated with them; outside the span, the identity."""
    y = np.repeat([0, 1, 2], 4)
    few = rng.standard_normal((12, 5)) * [3, 2, 1, 1, 1] + y[:, None]
    frame = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    inner = ITML(n_pairs=60, tol=1e-6).fit(few, y)
    model = ITML(n_pairs=60, tol=1e-6).fit(few @ frame[:5] + 7, y)
    expected = np.eye(30) + frame[:5].T @ (inner.metric_ - np.eye(5)) @ frame[:5]
    assert_allclose(model.metric_, expected, atol=1e-8 * np.abs(inner.metric_).max())
    assert_allclose(model.components_.T @ model.components_, expected, atol=1e-7)
    for m in (3, 5, 8):  # features on which the rows differ come first
        reduced = ITML(m, n_pairs=60, tol=1e-6).fit(few @ frame[:5] + 7, y)
        sizes = reduced.transform(few @ frame[:5] + 7).std(axis=0)
        assert_array_equal(sizes > 1e-8, np.arange(m) < 5)


def test_ranking_is_relevance_less_redundancy(rng):
    codes = rng.integers(0, 3, 300)
    signal = (codes == 1) + 0.0
    other = (codes == 2) + 0.0
    features = np.column_stack([rng.standard_normal(300), signal, signal, other])
    ranked = ranked_by_information(features, codes, 4)
    assert ranked[0] in (1, 3)
    assert set(ranked[:2]) == {1, 3}  # a copy adds no information


def test_columns_whose_squares_overflow(rng):
    X, y = rng.standard_normal((20, 3)), np.arange(20) % 2
    expected, found = ITML(n_pairs=20).fit(X, y), ITML(n_pairs=20).fit(X * 2.0**700, y)
    assert_array_equal(found.components_, expected.components_)
    assert np.isinf(found.bounds_).any()

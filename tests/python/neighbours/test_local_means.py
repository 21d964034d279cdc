"""Local neighbours and LDG's scatters against plain loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat.neighbours.local_means import (
    local_gaussians,
    local_neighbours,
    local_scatters,
    scatters_of_neighbours,
)


def plain_neighbours(X, codes, n_classes, k, queries=None, groups=None):
    """By full sorting of longdouble distances; ties by row number."""
    X = np.asarray(X, dtype=np.longdouble)
    same = queries is None
    Q = X if same else np.asarray(queries, dtype=np.longdouble)
    out = np.full((len(Q), n_classes, k), -1, dtype=np.int64)
    for i, row in enumerate(Q):
        distance = ((row - X) ** 2).sum(axis=1)
        for c in range(n_classes):
            allowed = np.asarray(codes) == c
            if same:
                allowed[i] = False
            if groups is not None:
                allowed &= np.asarray(groups) != groups[i]
            members = np.flatnonzero(allowed)
            nearest = members[np.argsort(distance[members], kind="stable")][:k]
            out[i, c, : len(nearest)] = nearest
    return out


def plain_scatters(X, codes, neighbours, priors, queries=None, query_codes=None):
    """(3.9) and (3.10), pair by pair."""
    X = np.asarray(X, dtype=np.longdouble)
    Q = X if queries is None else np.asarray(queries, dtype=np.longdouble)
    own = codes if query_codes is None else query_codes
    d = X.shape[1]
    V, A = np.zeros((2, d, d))
    for i, row in enumerate(Q):
        for c in range(neighbours.shape[1]):
            found = neighbours[i, c][neighbours[i, c] >= 0]
            if len(found) == 0:
                continue
            gap = (row - X[found].mean(axis=0)).astype(float)
            A += priors[c] * np.outer(gap, gap)
            if c == own[i]:
                V += np.outer(gap, gap)
    return V, A


def draw(rng, n, d, n_classes, dtype):
    codes = rng.integers(n_classes, size=n)
    X = rng.standard_normal((n, d)) + 2.0 * rng.standard_normal((n_classes, d))[codes]
    return X.astype(dtype), codes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "d", "n_classes", "k"), [(1, 1, 1, 1), (37, 3, 4, 5), (150, 20, 2, 64), (400, 40, 3, 7)]
)
def test_neighbours_are_those_of_plain_sorting(rng, n, d, n_classes, k, dtype):
    X, codes = draw(rng, n, d, n_classes, dtype)
    expected = plain_neighbours(X, codes, n_classes, k)
    np.testing.assert_array_equal(local_neighbours(X, codes, n_classes, k), expected)
    groups = rng.integers(5, size=n)
    expected = plain_neighbours(X, codes, n_classes, k, groups=groups)
    np.testing.assert_array_equal(local_neighbours(X, codes, n_classes, k, groups=groups), expected)
    queries = rng.standard_normal((50, d)).astype(dtype)
    expected = plain_neighbours(X, codes, n_classes, k, queries=queries)
    found = local_neighbours(X, codes, n_classes, k, queries=queries)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["rows", "graph"])
@pytest.mark.parametrize(
    ("n", "d", "n_classes", "k"), [(40, 3, 2, 3), (150, 210, 4, 5), (90, 7, 1, 2)]
)
def test_scatters_are_those_of_plain_loops(rng, n, d, n_classes, k, method, dtype):
    X, codes = draw(rng, n, d, n_classes, dtype)
    codes[:n_classes] = np.arange(n_classes)
    found = local_scatters(X, codes, n_classes, k, method=method)
    neighbours = plain_neighbours(X, codes, n_classes, k)
    priors = np.bincount(codes, minlength=n_classes) / n
    V, A = plain_scatters(X, codes, neighbours, priors)
    # Sums of n products of differences; the graph's are of rows times differences.
    bound = 8 * np.finfo(dtype).eps * (k + np.sqrt(n)) * n * float(np.abs(X).max()) ** 2
    np.testing.assert_allclose(found.within, V, rtol=0, atol=bound)
    np.testing.assert_allclose(found.weighted, A, rtol=0, atol=bound)
    assert found.within.dtype == found.weighted.dtype == np.float64
    np.testing.assert_array_equal(found.weighted, found.weighted.T)


def test_one_search_serves_smaller_numbers(rng):
    X, codes = draw(rng, 120, 4, 3, np.float64)
    neighbours = local_neighbours(X, codes, 3, 9)
    for k in (1, 4, 9):
        direct = local_scatters(X, codes, 3, k)
        sliced = scatters_of_neighbours(X, codes, neighbours[:, :, :k])
        np.testing.assert_array_equal(sliced.within, direct.within)
        np.testing.assert_array_equal(sliced.weighted, direct.weighted)


def test_short_classes_use_what_there_is(rng):
    X = rng.standard_normal((23, 3))
    codes = np.array([0] * 20 + [1] * 3)
    found = local_scatters(X, codes, 3, 5)
    assert found.short_classes.tolist() == [1, 2]
    neighbours = plain_neighbours(X, codes, 3, 5)
    V, A = plain_scatters(X, codes, neighbours, [20 / 23, 3 / 23, 0.0])
    np.testing.assert_allclose(found.within, V, rtol=1e-12)
    np.testing.assert_allclose(found.weighted, A, rtol=1e-12)


def test_groups_and_neighbours_are_checked(rng):
    X, codes = draw(rng, 9, 2, 2, np.float64)
    with pytest.raises(ValueError, match="groups: expected one per sample, and no queries"):
        local_neighbours(X, codes, 2, 1, queries=X, groups=codes)
    with pytest.raises(ValueError, match="neighbours: expected shape"):
        scatters_of_neighbours(X, codes, np.zeros((8, 2, 1), dtype=int))
    with pytest.raises(ValueError, match="neighbours: expected numbers of samples or -1, got 9"):
        scatters_of_neighbours(X, codes, np.full((9, 2, 1), 9))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gaussians_are_means_and_variances_of_the_neighbours(rng, dtype):
    X = (rng.standard_normal((60, 37)) + 100.0).astype(dtype)
    Q = (rng.standard_normal((21, 37)) + 100.0).astype(dtype)
    codes = np.repeat([0, 2, 3], [40, 17, 3])  # class 1 has none, class 3 few
    neighbours = local_neighbours(X, codes, 4, 5, queries=Q)
    means, variances = local_gaussians(X, neighbours, ridge=0.25, queries=Q, n_threads=1)
    assert means.shape == variances.shape == (21, 4, 37)
    assert np.isnan(means[:, 1]).all()
    assert np.isnan(variances[:, 1]).all()
    for c, count in ((0, 5), (2, 5), (3, 3)):
        near = X[neighbours[:, c, :count]].astype(np.float64)
        eps = np.finfo(dtype).eps
        assert_allclose(means[:, c], near.mean(axis=1), rtol=10 * eps)
        assert_allclose(variances[:, c], near.var(axis=1) + 0.25, rtol=100 * eps)
    for threads in (2, 7):
        again = local_gaussians(X, neighbours, ridge=0.25, queries=Q, n_threads=threads)
        assert_array_equal(again, (means, variances))
    with pytest.raises(ValueError, match="ridge"):
        local_gaussians(X, neighbours, ridge=0.0, queries=Q)
    with pytest.raises(ValueError, match="neighbours: expected 3 dimensions"):
        local_gaussians(X, neighbours[0])

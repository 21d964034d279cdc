"""Local neighbours, and LDG's scatters about their means."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat.neighbours.local_means import (
    knn_correct,
    local_neighbours,
    local_scatters,
    scatters_of_neighbours,
)


def draw(rng, n, d, n_classes, dtype):
    codes = rng.integers(n_classes, size=n)
    X = rng.standard_normal((n, d)) + 2.0 * rng.standard_normal((n_classes, d))[codes]
    return X.astype(dtype), codes


def nearest(X, allowed, row, k):
    """The nearest allowed samples by full sorting, or -1; ties by index."""
    distance = np.where(allowed, ((X - row) ** 2).sum(axis=1), np.inf)
    found = np.argsort(distance, kind="stable")[:k]
    out = np.full(k, -1)
    out[: len(found)] = np.where(allowed[found], found, -1)
    return out


def test_neighbours_agree_with_plain_sorting(rng):
    X, codes = draw(rng, 90, 5, 3, np.float64)
    queries, groups = rng.standard_normal((20, 5)), rng.integers(5, size=90)
    own = local_neighbours(X, codes, 3, 40)
    apart = local_neighbours(X, codes, 3, 40, groups=groups)
    of_queries = local_neighbours(X, codes, 3, 40, queries=queries)
    for c in range(3):
        member = codes == c
        for i in range(20):
            assert_array_equal(own[i, c], nearest(X, member & (np.arange(90) != i), X[i], 40))
            assert_array_equal(apart[i, c], nearest(X, member & (groups != groups[i]), X[i], 40))
            assert_array_equal(of_queries[i, c], nearest(X, member, queries[i], 40))


def test_the_nearest_decides_without_a_majority_of_three(rng):
    X, codes = rng.standard_normal((60, 2)), rng.integers(3, size=60)
    queries, query_codes = rng.standard_normal((20, 2)), rng.integers(3, size=20)

    def vote(allowed, row):
        first, second, third = codes[nearest(X, allowed, row, 3)]
        return second if second == third else first

    left_out = [vote(np.arange(60) != i, X[i]) for i in range(60)]
    assert_array_equal(knn_correct(X, codes), left_out == codes)
    votes = [vote(np.ones(60, dtype=bool), row) for row in queries]
    found = knn_correct(X, codes, queries=queries, query_codes=query_codes)
    assert_array_equal(found, votes == query_codes)


@pytest.mark.parametrize("method", ["rows", "graph"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scatters_are_sums_about_local_means(rng, method, dtype):
    X, codes = draw(rng, 150, 20, 4, dtype)
    neighbours = local_neighbours(X, codes, 4, 5)
    found = local_scatters(X, codes, 4, 5, method=method)
    gaps = X[:, None] - X[neighbours].astype(np.float64).mean(axis=2)
    own, priors = gaps[np.arange(150), codes], np.bincount(codes) / 150
    tolerance = {"rtol": 0, "atol": 1e5 * np.finfo(dtype).eps}
    assert_allclose(found.within, own.T @ own, **tolerance)
    assert_allclose(found.weighted, np.einsum("c,ncd,nce->de", priors, gaps, gaps), **tolerance)
    assert found.within.dtype == found.weighted.dtype == np.float64
    assert_array_equal(found.weighted, found.weighted.T)


def test_lists_of_fewer_neighbours_are_prefixes_of_longer_lists(rng):
    X, codes = draw(rng, 120, 4, 3, np.float64)
    neighbours = local_neighbours(X, codes, 3, 9)
    for k in (1, 4, 9):
        direct = local_scatters(X, codes, 3, k)
        sliced = scatters_of_neighbours(X, codes, neighbours[:, :, :k])
        assert_array_equal(sliced.within, direct.within)
        assert_array_equal(sliced.weighted, direct.weighted)


def test_small_classes_use_all_their_samples(rng):
    X = rng.standard_normal((23, 3))
    codes = np.array([0] * 20 + [1] * 3)
    found = local_scatters(X, codes, 3, 5)
    assert found.short_classes.tolist() == [1, 2]
    others = [np.delete(X[20:], i, axis=0).mean(axis=0) for i in range(3)]
    own = local_scatters(X[:20], codes[:20], 1, 5).within
    gaps = X[20:] - others
    assert_allclose(found.within, own + gaps.T @ gaps, rtol=1e-12)


def test_groups_and_neighbours_are_checked(rng):
    X, codes = draw(rng, 9, 2, 2, np.float64)
    with pytest.raises(ValueError, match="groups: expected one per sample, and no queries"):
        local_neighbours(X, codes, 2, 1, queries=X, groups=codes)
    with pytest.raises(ValueError, match="neighbours: expected shape"):
        scatters_of_neighbours(X, codes, np.zeros((8, 2, 1), dtype=int))
    with pytest.raises(ValueError, match="neighbours: expected numbers of samples or -1, got 9"):
        scatters_of_neighbours(X, codes, np.full((9, 2, 1), 9))

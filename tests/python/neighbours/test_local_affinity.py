"""Sums of local scatters against explicit affinities; misuse."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from relatives_reference import affinities

from eigenfeat.neighbours.local_affinity import affinity_sums


def explicit(X, counts, k, laplacian, plain):
    y = np.repeat(np.arange(len(counts)), counts)
    A = affinities(X, y, k)
    np.fill_diagonal(A, 0)
    L = np.diag(A.sum(axis=1)) - A
    return np.array(
        [
            X.T @ (L * own[y] + np.diag(other[y])) @ X
            for own, other in zip(laplacian, plain, strict=True)
        ]
    )


@pytest.mark.parametrize("d", [3, 66])
@pytest.mark.parametrize("k", [1, 7, 200])
def test_they_are_those_of_explicit_affinities(rng, d, k):
    counts = np.array([60, 1, 0, 140])
    X = rng.standard_normal((201, d))
    X[10:20] = X[10]  # equal rows have no affinity to others while k < 10
    laplacian, plain = rng.standard_normal((2, 3, 4))
    found = affinity_sums(X, counts, k, laplacian=laplacian, plain=plain)
    expected = explicit(X, counts, k, laplacian, plain)
    assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())
    assert np.array_equal(found, found.transpose(0, 2, 1))
    copies = affinity_sums(
        np.asfortranarray(X), counts.tolist(), k, laplacian=laplacian, plain=plain, n_threads=3
    )
    assert copies.tobytes() == found.tobytes()


def test_rows_of_a_class_too_large_to_keep(rng):
    X = rng.standard_normal((2100, 65))
    ones = np.ones((1, 1))
    found = affinity_sums(X, np.array([2100]), 5, laplacian=ones, plain=0 * ones)[0]
    norms = np.einsum("ij,ij->i", X, X)
    squares = norms + norms[:, None] - 2 * X @ X.T
    np.fill_diagonal(squares, np.inf)
    sigma = np.sqrt(np.partition(squares, 4, axis=1)[:, 4])
    A = np.exp(-squares / np.outer(sigma, sigma))
    expected = X.T @ ((np.diag(A.sum(axis=1)) - A) @ X)
    assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())

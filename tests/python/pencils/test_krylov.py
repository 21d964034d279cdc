"""The block Lanczos solver by itself, on problems large enough for it to iterate."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat import generalized_eigh
from eigenfeat.pencils import Status
from problems import LARGE, pencil


@pytest.fixture(scope="module")
def large():
    return pencil(np.random.default_rng(3), LARGE)


@pytest.fixture(scope="module")
def values(large):
    return scipy.linalg.eigh(*large, driver="gvd", eigvals_only=True)[::-1]


def solve(A, B, m, **options):
    result = generalized_eigh(A, B, n_vectors=m, solver="krylov", **options)
    assert result.status is Status.OK
    return result


def test_it_says_what_it_did(large):
    result = solve(*large, 3)
    assert result.solver == "krylov"
    assert 3 <= result.iterations <= LARGE
    assert generalized_eigh(*large, n_vectors=3, solver="subset").iterations == 0


@pytest.mark.parametrize("m", [1, 20, 60])
def test_its_eigenvalues_are_the_full_solver_s(large, values, check_pencil, m):
    result = solve(*large, m)
    assert_allclose(result.eigenvalues, values[:m], rtol=1e-9)
    assert np.all(result.residuals <= 1e-10)
    check_pencil(*large, result.eigenvalues, result.vectors)


def test_threshold(large, values):
    limit = np.sqrt(values[6] * values[7])
    result = solve(*large, 30, threshold=limit)
    assert (result.n_eigenpairs, result.solver) == (7, "krylov")
    assert_allclose(result.eigenvalues[:7], values[:7], rtol=1e-9)
    assert solve(*large, 3, threshold=2 * values[0]).n_eigenpairs == 0


def test_multiple_eigenvalues(large, check_pencil):
    B = large[1]
    one_hot = np.zeros((LARGE, LARGE))
    one_hot[np.arange(50), np.arange(50)] = 1
    few = np.diag(np.r_[np.full(15, 3.0), np.full(LARGE - 15, 1.0)])
    identity = np.eye(LARGE)
    zero = np.zeros((LARGE, LARGE))
    cases = [(identity, identity), (B, B), (one_hot, identity), (few, identity), (zero, B)]
    for above, below in cases:
        result = solve(above, below, 20)
        assert result.n_eigenpairs == 20
        check_pencil(above, below, result.eigenvalues, result.vectors)
    assert_allclose(solve(few, identity, 20).eigenvalues, [3.0] * 15 + [1.0] * 5)


def test_indefinite_and_low_rank_numerators(large, check_pencil, rng):
    A, B = large
    indefinite = A - 0.05 * np.eye(LARGE)
    rows = rng.standard_normal((4, LARGE))
    for above in (indefinite, rows.T @ rows):
        result = solve(above, B, 8)
        check_pencil(above, B, result.eigenvalues, result.vectors)


def test_threads_and_stacks(large):
    A, B = large
    stack = np.stack([A, A + 0.1 * B, 2 * A])
    one, two, seven = (
        generalized_eigh(stack, B, n_vectors=6, solver="krylov", n_threads=t) for t in (1, 2, 7)
    )
    for other in (two, seven):
        assert_array_equal(one.eigenvalues, other.eigenvalues)
        assert_array_equal(one.vectors, other.vectors)
    assert_allclose(one.eigenvalues[1], one.eigenvalues[0] + 0.1, rtol=1e-9)
    assert_allclose(one.eigenvalues[2], 2 * one.eigenvalues[0], rtol=1e-9)
    assert_allclose(one.vectors[2], one.vectors[0], atol=1e-7)

"""The relaxation for a sparse direction: certificates, planted directions, few iterations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat.ldg._solving.admm import sparse_direction

EPS = np.finfo(float).eps


def symmetric(rng, d):
    matrix = rng.standard_normal((d, d))
    return matrix + matrix.T


@pytest.mark.parametrize(
    ("d", "sparsity"), [(2, 1.0), (2, 6.0), (13, 1.5), (13, 1e3), (30, 1.0), (30, 3.0)]
)
def test_every_result_is_feasible_and_certified(rng, d, sparsity):
    C = symmetric(rng, d)
    found = sparse_direction(C, sparsity, tol=1e-5, max_iter=5000)
    spread = np.ptp(np.linalg.eigvalsh(C))
    assert found.residuals.max() <= 1e-5
    assert np.linalg.eigvalsh(found.matrix)[0] >= -100 * d * EPS
    assert_allclose(np.trace(found.matrix), 1, atol=100 * d * EPS)
    assert np.abs(found.matrix).sum() <= sparsity * (1 + 1e-12)
    assert_allclose(found.value, np.sum(C * found.matrix), atol=1e-12 * spread * d)
    assert -1e-12 * spread <= found.value - found.bound <= 2e-4 * spread
    assert_allclose(found.leading, np.linalg.eigvalsh(found.matrix)[-1], atol=1e-12)
    assert_allclose(np.linalg.norm(found.vector), 1, atol=1e-14)
    assert found.vector[np.argmax(np.abs(found.vector))] > 0
    if sparsity == 1:
        assert_array_equal(np.flatnonzero(found.vector), [np.argmin(np.diag(C))])
    if sparsity >= d:
        assert_allclose(found.value, np.linalg.eigvalsh(C)[0], rtol=1e-12)


def test_a_planted_sparse_direction_is_found(rng):
    d, planted = 50, np.zeros(50)
    planted[[3, 17, 29, 44]] = [0.5, -0.5, 0.5, 0.5]
    rows = rng.standard_normal((200, d))
    C = rows.T @ rows / 200 - 4.0 * np.outer(planted, planted)
    found = sparse_direction(C, 3.5, tol=1e-4, max_iter=3000)
    assert found.residuals.max() <= 1e-4
    assert_array_equal(np.flatnonzero(found.vector), np.flatnonzero(planted))
    assert found.leading > 1 - 1e-3
    dense = np.linalg.eigh(C)[1][:, 0]
    assert np.count_nonzero(np.abs(dense) > 1e-3) > 40


@pytest.mark.parametrize("C", [np.zeros((4, 4)), 3.0 * np.eye(4), -np.ones((1, 1))])
def test_directions_that_are_all_equal(C):
    found = sparse_direction(C, 1.5, tol=1e-4, max_iter=10)
    assert np.count_nonzero(found.vector) == 1
    assert found.value == found.bound == C[0, 0]


def test_too_few_iterations_still_give_a_certificate(rng):
    found = sparse_direction(symmetric(rng, 30), 3.0, tol=1e-8, max_iter=3)
    assert found.residuals.max() > 1e-8
    assert found.n_iter == 3
    assert found.bound <= found.value  # certified all the same


# Minima for the matrix of `conic_problem` by a conic solver, by sparsity.
CONIC = {1.5: -3.273724072231, 2.0: -3.968896359518, 3.0: -5.142724576937, 5.0: -6.915268889404}


def conic_problem():
    i, j = np.indices((12, 12))
    return np.cos(1.0 + i * j) + np.cos(1.0 + i + j) - 0.3 * (i == j) * np.sqrt(1.0 + i)


@pytest.mark.parametrize("sparsity", CONIC)
def test_minimum_of_a_conic_solver(sparsity):
    C = conic_problem()
    found = sparse_direction(C, sparsity, tol=1e-7, max_iter=20000)
    spread = np.ptp(np.linalg.eigvalsh(C))
    assert_allclose(found.value, CONIC[sparsity], atol=1e-5 * spread)
    assert_allclose(found.bound, CONIC[sparsity], atol=1e-5 * spread)

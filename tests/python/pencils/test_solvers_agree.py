"""Random pencils of many kinds: all solvers find the same eigenvalues, with accurate vectors.

Thirty pencils by default; `EIGENFEAT_FUZZ` sets their number and `EIGENFEAT_FUZZ_SEED` their seed.
`.ci/long` runs some thousands.
"""

import os
import warnings

import numpy as np
import pytest

from eigenfeat import generalized_eigh
from eigenfeat.pencils import Status

CASES = int(os.environ.get("EIGENFEAT_FUZZ", 30))
SEED = int(os.environ.get("EIGENFEAT_FUZZ_SEED", 0))
SOLVERS = ("full", "subset", "tridiagonal", "krylov")
ORDERS = (1, 2, 3, 7, 16, 33, 64, 100, 150)


def rotation(rng, d):
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


def symmetric(Q, values):
    A = (Q * values) @ Q.T
    return (A + A.T) / 2


def diagonal(rng, d):
    """Graded entries over up to 18 orders of magnitude, some negative."""
    a, b = (10 ** rng.uniform(-rng.uniform(0, 18), 0, d) for _ in range(2))
    return np.diag(a * rng.choice([1, 1, -1], d)), np.diag(b)


def graded(rng, d):
    """Columns of different units."""
    unit = 10 ** rng.uniform(-4, 4, d)
    X, Y = rng.standard_normal((2, 2 * d + 5, d)) * unit
    return X.T @ X, Y.T @ Y


def clustered(rng, d):
    """Few different eigenvalues."""
    values = rng.choice([4.0, 2.0, 1.0, 0.0], d)
    return symmetric(rotation(rng, d), values), np.eye(d)


def low_rank(rng, d):
    """A of fewer samples than columns, and B with a ridge."""
    X = rng.standard_normal((max(1, d // 3), d))
    Y = rng.standard_normal((d + 3, d))
    return X.T @ X, Y.T @ Y / d + 0.1 * np.eye(d)


def with_empty_columns(rng, d):
    """Columns that are zero in A, and coupled to no other column in B."""
    A, B = low_rank(rng, d)
    empty = rng.random(d) < 0.6
    A[empty] = A[:, empty] = 0.0
    B[empty] = B[:, empty] = 0.0
    B[np.diag_indices(d)] += 0.1 + empty
    return A, B


def arrow(rng, d):
    """One large and many small eigenvalues, as in moments of images."""
    Q = rotation(rng, d)
    values = np.append(rng.random(d - 1), 1e3)
    return symmetric(Q, values), symmetric(rotation(rng, d), 0.5 + rng.random(d))


KINDS = (diagonal, graded, clustered, low_rank, with_empty_columns, arrow)


def case(number):
    rng = np.random.default_rng([SEED, number])
    d = int(rng.choice(ORDERS))
    A, B = KINDS[number % len(KINDS)](rng, d)
    dtype = (
        np.float32 if rng.random() < 0.25 and KINDS[number % len(KINDS)] is not diagonal else float
    )
    power = int(rng.integers(-30, 30))  # of the unit of A
    return (A * 2.0**power).astype(dtype), B.astype(dtype), int(rng.integers(1, d + 1))


@pytest.mark.parametrize("number", range(CASES))
def test_all_solvers_agree(number):
    A, B, m = case(number)
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the status is looked at below
        for solver in SOLVERS:
            results.append(generalized_eigh(A, B, n_vectors=m, solver=solver))
    reference = results[0]
    if reference.status != Status.OK:
        pytest.skip("the reference itself is not accurate")
    eps = np.finfo(A.dtype).eps
    size = np.abs(reference.eigenvalues).max() + np.finfo(float).tiny
    condition = np.linalg.cond(B / np.sqrt(np.outer(np.diag(B), np.diag(B))))
    for solver, result in zip(SOLVERS, results, strict=True):
        assert result.status == Status.OK, solver
        assert result.solver == solver or solver not in ("full", "subset")
        assert (result.n_eigenpairs, result.vectors.shape) == (m, (len(A), m))
        assert result.eigenvalues.dtype == result.vectors.dtype == A.dtype
        assert np.all(result.residuals <= (1e-4 if A.dtype == np.float32 else 1e-10)), solver
        gap = np.abs(result.eigenvalues - reference.eigenvalues).max()
        assert gap <= 1e3 * len(A) * eps * condition * size, solver
        V = result.vectors.astype(float)
        unit = np.einsum("ij,ik,kj->j", V, B.astype(float), V)
        assert np.allclose(unit, 1, atol=1e3 * len(A) * eps), solver

"""What several test files share: fixed random numbers, and slow and obvious references."""

import os

# The references' BLAS, before NumPy starts it: its threads would fight those under test for the
# cores. The package's own copy has one thread anyway.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Idle threads sleep rather than spin. Beside other programs, spinning makes short parallel regions
# take several times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Commands wrap their output at the width of the terminal, which tests do not depend on.
os.environ["COLUMNS"] = "100"

import numpy as np
import pytest


@pytest.fixture
def rng():
    """Fixed random numbers, new for every test."""
    return np.random.default_rng(20140621)


@pytest.fixture
def reference_moments():
    """Function: weight, mean, second moment and covariance of one class, row by row in longdouble.

    Two passes; good to about 1e-16 relative even for rows far from zero.
    """

    def compute(X, y, c, weights=None):
        rows = np.asarray(X, dtype=np.longdouble)[np.asarray(y) == c]
        w = np.ones(len(y)) if weights is None else np.asarray(weights)
        w = w.astype(np.longdouble)[np.asarray(y) == c]
        total = w.sum()
        mean = (w[:, None] * rows).sum(axis=0) / total
        covariance = np.zeros((rows.shape[1], rows.shape[1]), dtype=np.longdouble)
        for weight, row in zip(w, rows - mean, strict=True):
            covariance += weight * np.outer(row, row)
        covariance /= total
        second = covariance + np.outer(mean, mean)
        return tuple(np.asarray(a, dtype=float) for a in (total, mean, second, covariance))

    return compute


@pytest.fixture
def check_pencil():
    """Function: assert that a result is the m largest eigenpairs of (A, B), B-normalised.

    The reference is an eigenvalue solver without generalized ones: the eigenvalues of L^-1 A L^-T,
    with B = L L^T, in float64. Rounding perturbs eigenvalues by eps * |L^-1 A L^-T| * cond(B).
    """

    def check(A, B, values, vectors, *, eps=None, slack=100.0):
        eps = np.finfo(vectors.dtype).eps if eps is None else eps
        A, B = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
        V, lam = np.asarray(vectors, dtype=float), np.asarray(values, dtype=float)
        d, m = V.shape
        inverse = np.linalg.inv(np.linalg.cholesky(B))
        spectrum = np.linalg.eigvalsh(inverse @ A @ inverse.T)
        expected, size = spectrum[::-1][:m], np.abs(spectrum).max()
        condition = np.linalg.cond(B)
        bound = slack * eps * d
        assert np.all(np.diff(lam) <= 0)
        np.testing.assert_allclose(lam, expected, rtol=0, atol=bound * size * condition)
        gram = V.T @ B @ V
        np.testing.assert_allclose(gram, np.eye(m), rtol=0, atol=bound * condition)
        norms = np.linalg.norm(V, axis=0)
        residual = np.linalg.norm(A @ V - B @ V * lam, axis=0)
        scale = np.linalg.norm(A, 2) + np.abs(lam) * np.linalg.norm(B, 2)
        assert np.all(residual <= bound * scale * norms)
        top = np.argmax(np.abs(V), axis=0)
        assert np.all(V[top, np.arange(m)] > 0)

    return check

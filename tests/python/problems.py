"""Rows and pencils for tests, and how to compare moments with the reference."""

import numpy as np
from numpy.testing import assert_allclose

EPS = np.finfo(float).eps
EPS32 = np.finfo(np.float32).eps


def pencil(rng, d, dtype=np.float64, *, indefinite=False):
    """A with a decaying spectrum, as moments of data have, and a well-conditioned B."""
    decay = 1.0 / np.arange(1, d + 1)
    rows = rng.standard_normal((3 * d + 5, d))
    A = (rows * decay).T @ (rows * decay) / len(rows)
    if indefinite:
        A = A - 0.05 * np.eye(d)
    rows = rng.standard_normal((3 * d + 5, d)) @ rng.standard_normal((d, d)) / np.sqrt(d)
    B = rows.T @ rows / len(rows) + 0.2 * np.eye(d)
    A, B = ((M + M.T) / 2 for M in (A, B))
    return A.astype(dtype), B.astype(dtype)


def sample(rng, n=200, d=5, k=3, loc=0.0, scale=1.0):
    """Rows and labels; every class occurs."""
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    return loc + scale * rng.standard_normal((n, d)), y


def reference_moments(X, y, c, weights=None):
    """Weight, mean, second moment and covariance of one class, row by row in longdouble.

    Two passes; good to about 1e-16 relative even for rows far from zero.
    """
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


def assert_agrees(moments, X, y, weights=None, *, eps=EPS, slack=20.0):
    """Read-outs of all classes against the reference, to slack * eps * sqrt(n) of their size."""
    for c in np.unique(y):
        weight, mean, second, covariance = reference_moments(X, y, c, weights)
        bound = slack * eps * np.sqrt(len(y))
        assert_allclose(moments.weight(c), weight, rtol=bound)
        assert_allclose(moments.mean(c), mean, rtol=0, atol=bound * np.abs(mean).max() + 1e-300)
        spread = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
        error = np.abs(moments.covariance(c) - covariance)
        assert np.all(error <= bound * spread + 1e-300)
        size = np.sqrt(np.outer(np.diag(second), np.diag(second)))
        assert np.all(np.abs(moments.second_moment(c) - second) <= bound * size + 1e-300)

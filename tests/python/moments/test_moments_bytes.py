"""Moments of bytes, in integers, against sums of 64 bits."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat import ClassMoments


def digits_like(n=700, d=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 256, (n, d), dtype=np.uint8)
    X[:, 3] = 0
    X[::2, 5] = 0
    y = rng.integers(0, 3, n)
    X[y == 1, 40:90] = 0
    return X, y


def expected(X):
    wide, n = X.astype(np.int64), len(X)
    sums = wide.sum(axis=0)
    scatter = (n * (wide.T @ wide) - np.outer(sums, sums)) / n
    return sums / n, scatter / n


def test_exact():
    X, y = digits_like()
    exact = ClassMoments().update(X, y)
    for c in range(3):
        mean, covariance = expected(X[y == c])
        assert_array_equal(exact.mean(c), mean)
        assert_array_equal(exact.covariance(c), covariance)


def test_as_floats_and_in_batches():
    X, y = digits_like()
    exact = ClassMoments().update(X, y)
    batches = ClassMoments()
    for part in np.array_split(np.arange(len(y)), 3):
        batches.update(X[part], y[part])
    floats = ClassMoments().update(X.astype(float), y)
    mixed = ClassMoments().update(X[:300], y[:300]).update(X[300:].astype(np.float64), y[300:])
    for other in (batches, floats, mixed):
        for c in range(3):
            scale = np.abs(exact.covariance(c)).max()
            assert_allclose(other.covariance(c), exact.covariance(c), atol=1e-12 * scale)
            assert_allclose(other.mean(c), exact.mean(c), rtol=1e-13)


def test_weights_columns_and_few_samples():
    X, y = digits_like()
    twos = ClassMoments().update(X, y, np.full(len(y), 2.0))
    exact = ClassMoments().update(X, y)
    columns = ClassMoments().update(np.asfortranarray(X), y)
    for c in range(3):
        scale = np.abs(exact.covariance(c)).max()
        assert_allclose(twos.covariance(c), exact.covariance(c), atol=1e-12 * scale)
        assert_allclose(columns.covariance(c), exact.covariance(c), atol=1e-12 * scale)
    wide, labels = np.tile(X[:20], (1, 10)), y[:20]  # of which the samples are kept
    few = ClassMoments().update(wide, labels)
    for c in np.unique(labels):
        assert_allclose(few.covariance(c), expected(wide[labels == c])[1], atol=1e-9)

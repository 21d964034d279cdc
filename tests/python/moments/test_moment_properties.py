"""What holds of class moments for any rows: order, units, weights and kinds of rows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from eigenfeat import ClassMoments

EPS = np.finfo(float).eps
few = settings(max_examples=30, deadline=None, derandomize=True)


@st.composite
def labelled_rows(draw):
    """Rows of whole numbers with repetitions and zeros, labels, and counts of 0 to 3."""
    n, d = draw(st.integers(1, 30)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    X = rng.integers(-3, 4, (n, d)) * 1.0
    y = rng.integers(0, draw(st.integers(1, 4)), n)
    return X, y, rng.integers(0, 4, n), rng


def assert_same(a, b, tolerance=64 * EPS):
    assert np.array_equal(a.classes_, b.classes_)
    for c in a.classes_:
        assert_allclose(a.weight(c), b.weight(c), rtol=tolerance)
        if a.weight(c) > 0:
            for name in ("mean", "second_moment", "covariance"):
                one, other = getattr(a, name)(c), getattr(b, name)(c)
                # Both are made of sums of products of numbers up to 3.
                assert_allclose(one, other, rtol=tolerance, atol=9 * tolerance)


@few
@given(labelled_rows())
def test_order_of_rows_does_not_matter(sample):
    X, y, _, rng = sample
    order = rng.permutation(len(y))
    assert_same(ClassMoments().update(X, y), ClassMoments().update(X[order], y[order]))


@few
@given(labelled_rows())
def test_a_weight_is_so_many_rows(sample):
    X, y, counts, _ = sample
    weighted = ClassMoments().update(X, y, counts)
    repeated = ClassMoments().update(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    for c in repeated.classes_:  # a class whose rows all have weight 0 is known by its name alone
        assert weighted.weight(c) == repeated.weight(c)
        for name in ("mean", "covariance"):
            one, other = getattr(weighted, name)(c), getattr(repeated, name)(c)
            assert_allclose(one, other, rtol=64 * EPS, atol=9 * 64 * EPS)
    assert sum(map(weighted.weight, weighted.classes_)) == counts.sum()


@few
@given(labelled_rows(), st.integers(-60, 60))
def test_units_of_columns_scale_moments_exactly(sample, exponent):
    X, y, _, _ = sample
    factors = np.ones(X.shape[1])
    factors[0] = 2.0**exponent
    plain, scaled = ClassMoments().update(X, y), ClassMoments().update(X * factors, y)
    for c in plain.classes_:
        assert np.array_equal(scaled.mean(c), plain.mean(c) * factors)
        expected = plain.covariance(c) * np.outer(factors, factors)
        assert np.array_equal(scaled.covariance(c), expected)


@few
@given(labelled_rows())
def test_kinds_of_rows_agree(sample):
    X, y, _, _ = sample
    dense = ClassMoments().update(X, y)
    for rows in (sp.csr_array(X), np.asfortranarray(X), X.tolist()):
        assert_same(dense, ClassMoments().update(rows, y))
    # A batch of float32 rows is summed about a mean in float32.
    single = ClassMoments().update(X.astype(np.float32), y)
    assert_same(dense, single, 4 * np.finfo(np.float32).eps)


@few
@given(labelled_rows())
def test_a_column_twice_has_its_moments_twice(sample):
    X, y, _, _ = sample
    twice = ClassMoments().update(np.hstack([X, X[:, :1]]), y)
    for c in twice.classes_:
        covariance = twice.covariance(c)
        assert np.array_equal(covariance, covariance.T)
        assert_allclose(covariance[0], covariance[-1], rtol=64 * EPS, atol=9 * 64 * EPS)
        assert np.linalg.eigvalsh(covariance).min() >= -1e-13 * max(1.0, np.abs(covariance).max())

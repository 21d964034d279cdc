"""Rows of two domains: which are which, and each standardised apart."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat.ldg._solving.domains import DomainScaler, split_domains


def test_source_is_above_zero_and_target_below():
    X = np.zeros((4, 2))
    assert_array_equal(split_domains(X, None, [1, -2, 3, -1]), [True, False, True, False])
    assert_array_equal(split_domains(X, np.zeros(4), [1.0, -2.0, 3.0, -1.0])[:2], [True, False])
    assert_array_equal(split_domains(X, None, np.array([1, -1, 1, 1], object))[1:3], [False, True])
    assert split_domains(X, None, None).all()


def test_each_domain_is_standardised_apart(rng):
    source = rng.permutation(np.arange(50) < 35)
    X = rng.standard_normal((50, 4)) * [1.0, 1e-200, 1e200, 3.0] + [0.0, 0.0, 0.0, 1e6]
    X[~source] *= 7
    X[source, 0] = 0.1  # constant in the source only
    scaler = DomainScaler.learn(X, source)
    Z = scaler.apply(X, source)
    assert scaler.varying.tolist() == [False, True, True, True]
    assert_array_equal(Z[:, 0], 0)
    for members in (source, ~source):
        part = X[members][:, 1:] * [1e200, 1e-200, 1.0]
        expected = (part - part.mean(axis=0)) / part.std(axis=0)
        assert_allclose(Z[members][:, 1:], expected, atol=1e-9)


def test_without_a_target_its_units_are_the_sources(rng):
    X = rng.standard_normal((30, 3)) + 5
    scaler = DomainScaler.learn(X, np.ones(30, dtype=bool))
    assert_array_equal(scaler.apply(X, np.zeros(30, bool)), scaler.apply(X, np.ones(30, bool)))


def test_no_column_that_varies_in_both(rng):
    X = rng.standard_normal((6, 2))
    X[:3, 0], X[3:, 1] = 0.1, 7.3
    with pytest.raises(ValueError, match="X: expected a column that varies in every domain"):
        DomainScaler.learn(X, np.arange(6) < 3)


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        ([1, -1], r"expected shape \(3,\), got \(2,\)"),
        ([1, 0, -1], r"expected numbers above 0 \(source\) or below 0 \(target\), got 0 in row 1"),
        ([1, -1, 0.5], "got 0.5 in row 2"),
        ([1, -1, np.nan], "got nan in row 2"),
        ([True, False, True], "got dtype bool"),
        (["s", "t", "s"], "got dtype <U1"),
        ([1, 2, 3], "got no sample of the target"),
        ([-1, -1, -1], "got no sample of the source"),
        ([[1], [1, 2], [3]], r"expected shape \(3,\)"),
    ],
)
def test_what_is_no_domain(domain, message):
    with pytest.raises(ValueError, match=f"sample_domain: .*{message}"):
        split_domains(np.zeros((3, 2)), None, domain)

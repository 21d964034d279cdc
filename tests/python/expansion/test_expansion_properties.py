"""What holds of expanded projections for any rows: kinds of rows, order, units, signs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from eigenfeat.expansion.features import expand

few = settings(max_examples=25, deadline=None, derandomize=True)
EXPANSIONS = ("half_wave", "shifted", "polynomial", "none")


@st.composite
def projected(draw):
    n, d, F = (draw(st.integers(1, most)) for most in (20, 8, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    return X, rng.standard_normal((d, F)), rng.standard_normal(F), rng


@pytest.mark.parametrize("expansion", EXPANSIONS)
@few
@given(problem=projected())
def test_dense_and_sparse_rows_in_any_order(expansion, problem):
    X, directions, offset, rng = problem
    whole = expand(X, directions, offset, expansion=expansion)
    scale = 1e-12 * max(1.0, np.abs(whole).max())
    assert_allclose(
        expand(sp.csr_array(X), directions, offset, expansion=expansion), whole, 1e-7, scale
    )
    order = rng.permutation(len(X))
    assert_allclose(
        expand(X[order], directions, offset, expansion=expansion), whole[order], 1e-7, scale
    )
    single = expand(X.astype(np.float32), directions, offset, expansion=expansion)
    assert single.dtype == np.float32
    powers = 1 if expansion == "none" else 3  # square roots of small projections are less exact
    assert_allclose(single, whole, rtol=1e-2, atol=1e-2 * powers)


@few
@given(projected(), st.integers(-20, 20))
def test_half_waves_are_homogeneous_and_change_places_with_the_sign(problem, exponent):
    X, directions, offset, _ = problem
    F, factor = directions.shape[1], 4.0**exponent
    whole = expand(X, directions, offset).reshape(len(X), 2, 3, F)
    mirrored = expand(X, -directions, -offset).reshape(whole.shape)
    assert np.array_equal(mirrored, whole[:, ::-1])
    scaled = expand(X, directions * factor, offset * factor).reshape(whole.shape)
    for number, power in enumerate((1, 2, 3)):
        expected = whole[:, :, number] * factor ** (power / 2)
        assert_allclose(scaled[:, :, number], expected, rtol=1e-12)
    assert (whole.min(axis=1) == 0).all()  # a projection has one sign
    assert_allclose(whole[:, 0, 1] - whole[:, 1, 1], X @ directions + offset, rtol=0, atol=1e-12)

"""What holds of LDG for any rows: order, units of columns, duplicated rows' labels, kinds."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from eigenfeat import LDG

few = settings(max_examples=10, deadline=None, derandomize=True)


@st.composite
def labelled_rows(draw):
    n, d = draw(st.integers(24, 60)), draw(st.integers(3, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    y = np.arange(n) % 3
    return rng.standard_normal((n, d)) * np.arange(1, d + 1) + 2 * np.eye(d)[y], y, rng


def projector(X, y, **options):
    """Onto the span of the directions, in the units of standardised columns."""
    model = LDG(2, gamma=0.5, n_neighbors=3, **options).fit(X, y)
    found = model.transform(X)
    found = found - found.mean(axis=0)
    Q = np.linalg.qr(found)[0]
    return Q @ Q.T


@few
@given(labelled_rows(), st.integers(-30, 30))
def test_order_units_labels_and_kinds_of_rows(problem, exponent):
    X, y, rng = problem
    whole = projector(X, y)
    order = rng.permutation(len(y))
    moved = projector(X[order], y[order])
    assert_allclose(moved, whole[np.ix_(order, order)], rtol=0, atol=1e-6)
    units = 2.0 ** rng.integers(-abs(exponent), abs(exponent) + 1, X.shape[1])
    assert_allclose(projector(X * units, y), whole, rtol=0, atol=1e-6)
    assert_allclose(projector(X, np.array(["b", "c", "a"])[y]), whole, rtol=0, atol=1e-6)
    assert_allclose(projector(sp.csr_array(X).toarray(order="F"), y), whole, rtol=0, atol=1e-6)

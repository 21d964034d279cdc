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


def test_repeated_rows_are_another_problem(rng):
    """Why LDG takes no weights: a copy is its row's nearest neighbour, and V (3.9) becomes 0."""
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 4)) + 2.0 * rng.standard_normal((3, 4))[y]
    given = {"n_components": 2, "n_neighbors": 1, "gamma": 0.5}
    once = LDG(**given).fit(X, y)
    twice = LDG(**given).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    # Without V the directions are those of the largest A: weights of 2 would give 2 (V - gamma A).
    assert np.abs(np.abs(once.components_ @ twice.components_.T) - np.eye(2)).max() > 0.01
    assert twice.eigenvalues_.max() < 0 < LDG(**given | {"gamma": 0.0}).fit(X, y).eigenvalues_.min()
    alone = LDG(**given | {"gamma": 0.0}).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert np.abs(alone.eigenvalues_).max() < 1e-12

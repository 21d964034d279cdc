"""What holds of local scatters for any rows: order, motions of space, units, empty columns."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from eigenfeat.neighbours.local_means import local_neighbours, local_scatters

few = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def labelled_rows(draw):
    n, d, k = draw(st.integers(6, 40)), draw(st.integers(1, 5)), draw(st.integers(2, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    return rng.standard_normal((n, d)), np.arange(n) % k, k, rng


def scatters(X, y, k, method="auto"):
    found = local_scatters(X, y, k, 3, method=method)
    return found.within, found.weighted


@few
@given(labelled_rows())
def test_order_of_rows_and_a_motion_of_space(problem):
    X, y, k, rng = problem
    V, A = scatters(X, y, k)
    order = rng.permutation(len(y))
    rotation = np.linalg.qr(rng.standard_normal((X.shape[1], X.shape[1])))[0]
    for rows, codes, Q in (
        (X[order], y[order], np.eye(X.shape[1])),
        (X @ rotation + 1.0, y, rotation),
    ):
        V2, A2 = scatters(rows, codes, k)
        assert_allclose(V2, Q.T @ V @ Q, rtol=0, atol=1e-11 * np.trace(V))
        assert_allclose(A2, Q.T @ A @ Q, rtol=0, atol=1e-11 * np.trace(A))


@few
@given(labelled_rows(), st.integers(-60, 60))
def test_units_of_all_rows_and_columns_of_zeros(problem, exponent):
    X, y, k, _ = problem
    factor = 2.0**exponent
    wide = np.hstack([X * factor, np.zeros((len(X), 2))])
    assert np.array_equal(local_neighbours(wide, y, k, 3), local_neighbours(X, y, k, 3))
    for one, other in zip(scatters(X, y, k), scatters(wide, y, k), strict=True):
        assert_allclose(other[: len(one), : len(one)], one * factor**2, rtol=1e-12)
        assert not other[len(one) :].any()


@few
@given(labelled_rows())
def test_ways_to_sum_agree_and_both_matrices_are_scatters(problem):
    X, y, k, _ = problem
    for rows, graph in zip(scatters(X, y, k, "rows"), scatters(X, y, k, "graph"), strict=True):
        size = np.trace(rows)
        assert_allclose(graph, rows, rtol=0, atol=1e-11 * size)
        assert np.linalg.eigvalsh(rows).min() >= -1e-12 * size

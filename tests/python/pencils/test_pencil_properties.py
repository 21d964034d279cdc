"""What holds of generalized eigenvalues for any matrices: units, rotations, duplicated columns."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from eigenfeat import ClassMoments, generalized_eigh
from eigenfeat.pencils import pair_directions

few = settings(max_examples=20, deadline=None, derandomize=True)


@st.composite
def pencils(draw):
    """A positive semidefinite and a well conditioned positive definite matrix."""
    d = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    half = rng.standard_normal((d, draw(st.integers(1, 2 * d))))
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return half @ half.T, rotation * rng.uniform(0.5, 2, d) @ rotation.T, rng


@few
@given(pencils(), st.sampled_from(["full", "subset", "krylov"]))
def test_solvers_find_the_same_pairs(pencil, solver):
    A, B, _ = pencil
    m = max(1, len(A) // 2)
    one, other = generalized_eigh(A, B, m, solver="full"), generalized_eigh(A, B, m, solver=solver)
    assert_allclose(other.eigenvalues, one.eigenvalues, rtol=0, atol=1e-9 * one.eigenvalues[0])
    gram = other.vectors.T @ B @ other.vectors
    assert_allclose(gram, np.eye(m), rtol=0, atol=1e-9)


@few
@given(pencils(), st.integers(-200, 200), st.integers(-200, 200))
def test_units_of_matrices_scale_eigenvalues(pencil, a, b):
    A, B, _ = pencil
    plain, scaled = generalized_eigh(A, B), generalized_eigh(A * 2.0**a, B * 2.0**b)
    expected = plain.eigenvalues * 2.0 ** (a - b)
    assert_allclose(scaled.eigenvalues, expected, rtol=0, atol=1e-11 * expected[0])


@few
@given(pencils())
def test_an_invertible_map_leaves_eigenvalues(pencil):
    A, B, rng = pencil
    C = np.linalg.qr(rng.standard_normal(A.shape))[0] * rng.uniform(0.5, 2, len(A))
    mapped = generalized_eigh(C.T @ A @ C, C.T @ B @ C)
    expected = generalized_eigh(A, B).eigenvalues
    assert_allclose(mapped.eigenvalues, expected, rtol=0, atol=1e-10 * expected[0])


@few
@given(st.integers(0, 2**31), st.integers(-40, 40))
def test_duplicated_columns_and_units_of_all_rows_leave_projections(seed, exponent):
    """A column twice is one of sqrt(2) times its length: the other pairs see the same rows."""
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 4)) * (1 + y[:, None])
    longer = X * np.array([np.sqrt(2), 1, 1, 1])
    twice = np.hstack([X, X[:, :1]])
    options = {"n_directions": 2, "ridge": 0.1}
    found = [
        pair_directions(ClassMoments().update(rows, y), **options)
        for rows in (longer, np.hstack([longer, np.zeros((60, 1))]), twice, longer * 2.0**exponent)
    ]
    # The ridge is relative to the mean of the denominator's diagonal: one column more lowers it.
    assert_allclose(found[2].eigenvalues, found[1].eigenvalues, rtol=1e-8)
    assert_allclose(found[3].eigenvalues, found[0].eigenvalues, rtol=1e-8)
    for k in range(len(found[2].eigenvalues)):
        one, other = longer @ found[1].vectors[:4, k], twice @ found[2].vectors[:, k]
        assert_allclose(np.abs(one), np.abs(other), rtol=0, atol=1e-6 * np.abs(one).max())

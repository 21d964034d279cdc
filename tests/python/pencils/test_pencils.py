"""Generalized eigenproblems: thresholds, degenerate cases, stacks and kinds of arrays."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat import generalized_eigh
from eigenfeat.pencils import Status
from problems import pencil

SOLVERS = ["full", "subset", "tridiagonal", "krylov"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_threshold_keeps_eigenvalues_above_it(rng, solver):
    A, B = pencil(rng, 50)
    every = generalized_eigh(A, B)
    limit = np.sqrt(every.eigenvalues[4] * every.eigenvalues[5])
    result = generalized_eigh(A, B, n_vectors=12, threshold=limit, solver=solver)
    assert result.n_eigenpairs == 5
    assert_allclose(result.eigenvalues[:5], every.eigenvalues[:5], rtol=1e-9)
    assert_allclose(result.vectors[:, :5], every.vectors[:, :5], atol=1e-7)
    assert np.isnan(result.eigenvalues[5:]).all()
    assert np.isnan(result.vectors[:, 5:]).all()
    nothing = generalized_eigh(A, B, n_vectors=3, threshold=1e9, solver=solver)
    assert (nothing.n_eigenpairs, nothing.status) == (0, Status.OK)
    assert np.isnan(nothing.eigenvalues).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "B",
    [
        np.zeros((3, 3)),
        np.ones((3, 3)),
        np.diag([1.0, 0.0, 1.0]),
        np.diag([1.0, -1.0, 1.0]),
        np.array([[1.0, 1, 0], [1, 1 + 1e-16, 0], [0, 0, 1]]),
    ],
)
def test_a_single_singular_denominator_is_an_error(solver, B):
    with pytest.raises(np.linalg.LinAlgError, match=r"not positive definite.*pencil 0"):
        generalized_eigh(np.eye(3), B, solver=solver)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_singular_denominator_changes_no_other_pencil_of_a_stack(rng, solver):
    pencils = [pencil(rng, 9) for _ in range(4)]
    A, B = (np.stack(matrices) for matrices in zip(*pencils, strict=True))
    B[2] = np.outer(B[2, 0], B[2, 0])
    with pytest.warns(RuntimeWarning, match="not positive definite.*: pencil 2$"):
        result = generalized_eigh(A, B, n_vectors=3, solver=solver)
    assert result.status.tolist() == [0, 1, 0, 0] or result.status.tolist() == [0, 0, 1, 0]
    assert result.status[2] == Status.NOT_POSITIVE_DEFINITE
    assert result.n_eigenpairs.tolist() == [3, 3, 0, 3]
    assert np.isnan(result.eigenvalues[2]).all()
    assert np.isnan(result.vectors[2]).all()
    for i in (0, 1, 3):
        alone = generalized_eigh(A[i], B[i], n_vectors=3, solver=solver)
        assert_array_equal(result.vectors[i], alone.vectors)
    with pytest.raises(np.linalg.LinAlgError, match="pencil 0, pencil 1"):
        generalized_eigh(A, np.zeros_like(A), solver=solver)


def test_every_kind_of_array_is_taken(rng):
    A, B = pencil(rng, 6)
    expected = generalized_eigh(A, B).eigenvalues
    for a, b in [
        (A.tolist(), B.tolist()),
        (np.asfortranarray(A), B[::-1, ::-1][::-1, ::-1]),
        (A.astype(">f8"), B),
        (A.astype(np.float32), B),
    ]:
        result = generalized_eigh(a, b)
        assert result.eigenvalues.dtype == float
        assert_allclose(result.eigenvalues, expected, rtol=1e-5)
    whole = generalized_eigh(np.diag([4, 9]), np.diag([1, 3]))
    assert_allclose(whole.eigenvalues, [4, 3])
    assert_allclose(whole.vectors, [[1, 0], [0, 1 / np.sqrt(3)]])


def test_asymmetry_above_rounding_errors_is_an_error(rng):
    A, B = pencil(rng, 8)
    A[2, 5] *= 1 + 1e-15
    assert_array_equal(generalized_eigh(A, B).eigenvalues, generalized_eigh(A.T, B).eigenvalues)
    stack = np.stack([A, A])
    stack[1, 2, 5] += 0.25
    with pytest.raises(ValueError, match=r"A: expected symmetric.*item 1, entries \((2, 5|5, 2)\)"):
        generalized_eigh(stack, B)
    B[3, 4] = np.nan
    with pytest.raises(
        ValueError, match=r"B: expected finite numbers, got nan in item 0, .*\(3, 4\)"
    ):
        generalized_eigh(A, B)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.eye(3), np.eye(4)), {}, r"B: expected a shape that fits A's \(3, 3\), got \(4, 4\)"),
        ((np.ones((2, 3)), np.eye(3)), {}, "A: expected shape"),
        ((np.ones(3), np.eye(3)), {}, "A: expected shape"),
        ((np.ones((0, 0)), np.ones((0, 0))), {}, "A: expected shape"),
        ((np.ones((2, 3, 3)), np.ones((4, 3, 3))), {}, "B: expected a shape"),
        ((np.eye(3) * 1j, np.eye(3)), {}, "A: expected real numbers"),
        ((np.eye(3), np.eye(3)), {"n_vectors": 4}, r"n_vectors: expected an integer in 1\.\.3"),
        ((np.eye(3), np.eye(3)), {"n_vectors": 0}, "n_vectors: expected"),
    ],
)
def test_misuse_is_named(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        generalized_eigh(*arguments, **options)

"""Checks of the structure of matrices: sparse formats, and symmetry."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["symmetric_matrices", "well_formed"]


def well_formed(X: Any, name: str = "X") -> Any:
    """Return a checked sparse matrix, sorted and without duplicates.

    The checks take one pass over the entries. The result shares arrays with `X`, unless `X` is
    unsorted, has duplicates, or has a format other than CSR and CSC. `X` is unchanged: SciPy's
    flags of sorted entries, which may be outdated, are determined again for the result. ValueError
    if pointers or indices are out of range, or arrays have wrong lengths.
    """
    if X.ndim != 2:
        raise ValueError(f"{name}: expected a 2-D sparse matrix, got shape {X.shape}")
    if not (hasattr(X, "format") and (hasattr(X, "indptr") or hasattr(X, "row"))):
        X = X.tocsr()
    try:
        result = _checked(X)
    except ValueError as error:
        raise ValueError(
            f"{name}: expected a well-formed sparse matrix ({X.format}), got wrong arrays: {error}"
        ) from None
    if not result.has_canonical_format:
        result = result.copy()
        result.sum_duplicates()
    return result


def _checked(X: Any) -> Any:
    """Return a CSR or CSC matrix that shares the arrays of X; ValueError if they are invalid."""
    if X.format == "coo":
        return type(X)((X.data, (X.row, X.col)), shape=X.shape).tocsr()
    parts = (np.require(part, requirements="A") for part in (X.data, X.indices, X.indptr))
    result = type(X)(tuple(parts), shape=X.shape)
    result.check_format(full_check=True)
    if (np.diff(result.indptr) < 0).any():  # SciPy checks this only if there are entries
        raise ValueError("indptr must be a non-decreasing sequence")
    return result.tocsr() if X.format == "bsr" else result


# ---- symmetric matrices --------------------------------------------------------------------------


def symmetric_matrices(stack: npt.NDArray[Any], name: str) -> list[npt.NDArray[Any]]:
    """Return the matrices of a stack (n, d, d), checked for finite entries and symmetry.

    Asymmetries up to 100 eps times the largest magnitude are rounding errors; such a matrix is
    replaced by the mean of itself and its transpose.
    """
    return [_symmetric(matrix, name, item) for item, matrix in enumerate(stack)]


def _symmetric(matrix: npt.NDArray[Any], name: str, item: int) -> npt.NDArray[Any]:
    finite = np.isfinite(matrix)
    if not finite.all():
        i, j = np.argwhere(~finite)[0]
        raise ValueError(
            f"{name}: expected finite numbers, got {matrix[i, j]} in item {item}, entry ({i}, {j})"
        )
    if np.array_equal(matrix, matrix.T):
        return matrix
    half = matrix / 2
    gap = np.abs(half - half.T)
    i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
    if gap[i, j] > 100 * np.finfo(matrix.dtype).eps * np.abs(half).max():
        raise ValueError(
            f"{name}: expected symmetric matrices, got {matrix[i, j]} and "
            f"{matrix[j, i]} in item {item}, entries ({i}, {j}) and ({j}, {i})"
        )
    symmetric: npt.NDArray[Any] = half + half.T
    return symmetric

"""Checks of the structure of matrices: sparse formats, and symmetry."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["symmetric_matrices", "well_formed"]

_COMPRESSED = {"csr": ("rows", "column"), "csc": ("columns", "row"), "bsr": ("block rows", "block")}


def well_formed(X: Any, name: str = "X") -> Any:
    """Return a checked sparse matrix, sorted and without duplicates.

    The checks take one pass over the entries. A matrix that is unsorted, has duplicates, or has a
    format other than CSR and CSC is converted to a new one; the given matrix is unchanged.

    Raises
    ------
    ValueError
        If pointers or indices are out of range, or arrays have wrong lengths.
    """
    if X.ndim != 2:
        raise ValueError(f"{name}: expected a 2-D sparse matrix, got shape {X.shape}")
    if not (hasattr(X, "format") and (hasattr(X, "indptr") or hasattr(X, "row"))):
        X = X.tocsr()
    if X.format == "coo":
        for indices, count, axis in zip((X.row, X.col), X.shape, ("row", "column"), strict=True):
            if len(indices) != len(X.data):
                _refuse(name, X, f"{len(indices)} {axis} indices for {len(X.data)} values")
            _check_range(name, X, indices, count, axis)
        return _ordered(X.tocsr())
    if X.format == "bsr":
        down, across = X.data.shape[1:] if X.data.ndim == 3 else (0, 0)
        if not (down and across) or X.shape[0] % down or X.shape[1] % across:
            _refuse(name, X, f"blocks of shape {X.data.shape[1:]} in a matrix of {X.shape}")
        _check_compressed(name, X, X.shape[0] // down, X.shape[1] // across)
        return _ordered(X.tocsr())
    _check_compressed(name, X, *(X.shape if X.format == "csr" else X.shape[::-1]))
    return _ordered(X)


def _check_compressed(name: str, X: Any, n_major: int, n_minor: int) -> None:
    """Raise ValueError for invalid `indptr` or `indices` of a matrix with `n_major` rows."""
    major, minor = _COMPRESSED[X.format]
    starts, indices = X.indptr, X.indices
    if starts.ndim != 1 or starts.dtype.kind not in "iu" or len(starts) != n_major + 1:
        _refuse(name, X, f"{np.size(starts)} pointers for {n_major} {major}")
    if starts[0] != 0:
        _refuse(name, X, f"{starts[0]} as the first pointer")
    falls = np.flatnonzero(starts[1:] < starts[:-1])
    if len(falls):
        at = int(falls[0])
        _refuse(name, X, f"the pointer {starts[at + 1]} after {starts[at]}")
    if indices.ndim != 1 or len(indices) != len(X.data):
        _refuse(name, X, f"{np.size(indices)} indices for {len(X.data)} values")
    if starts[-1] > len(indices):
        _refuse(name, X, f"pointers up to {starts[-1]} for {len(indices)} values")
    _check_range(name, X, indices[: int(starts[-1])], n_minor, minor)


def _check_range(name: str, X: Any, indices: npt.NDArray[Any], count: int, axis: str) -> None:
    if indices.dtype.kind not in "iu":
        _refuse(name, X, f"{axis} indices of {indices.dtype}")
    if len(indices) and (indices.min() < 0 or indices.max() >= count):
        wrong = int(np.argmax((indices < 0) | (indices >= count)))
        _refuse(name, X, f"the {axis} index {indices[wrong]} at {wrong}, of {count}")


def _refuse(name: str, X: Any, what: str) -> None:
    raise ValueError(f"{name}: expected a well-formed sparse matrix ({X.format}), got {what}")


def _ordered(X: Any) -> Any:
    """Return the checked matrix without outdated flags; a sorted copy if it is unsorted.

    SciPy and scikit-learn compute maxima and norms from the stored entries.
    """
    used = int(X.indptr[-1])
    parts = X.data[:used], X.indices[:used], X.indptr
    fresh = type(X)(tuple(np.require(part, requirements="A") for part in parts), shape=X.shape)
    if fresh.has_canonical_format:
        whole = used == len(X.data) and all(part.flags.aligned for part in parts)
        return X if whole else fresh
    fresh = fresh.copy()
    fresh.sum_duplicates()
    return fresh


# ---- symmetric matrices --------------------------------------------------------------------------


def symmetric_matrices(stack: npt.NDArray[Any], name: str) -> list[npt.NDArray[Any]]:
    """Return the matrices of a stack (n, d, d), checked for finite entries and symmetry.

    Asymmetries up to 100 eps times the largest magnitude are rounding errors; such a matrix is
    replaced by the mean of itself and its transpose.
    """
    return [_symmetric(matrix, name, item) for item, matrix in enumerate(stack)]


def _symmetric(matrix: npt.NDArray[Any], name: str, item: int) -> npt.NDArray[Any]:
    # A finite sum has finite terms, and needs no array of flags.
    with np.errstate(over="ignore", invalid="ignore"):
        total = matrix.sum()
    if not np.isfinite(total) and not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(
            f"{name}: expected finite numbers, got {matrix[i, j]} in item {item}, entry ({i}, {j})"
        )
    if _equals_transpose(matrix):
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


def _equals_transpose(matrix: npt.NDArray[Any], tile: int = 256) -> bool:
    """Whether a matrix is exactly symmetric; compared in tiles that fit the cache."""
    d = len(matrix)
    return all(
        np.array_equal(matrix[i : i + tile, j : j + tile], matrix[j : j + tile, i : i + tile].T)
        for i in range(0, d, tile)
        for j in range(0, i + 1, tile)
    )

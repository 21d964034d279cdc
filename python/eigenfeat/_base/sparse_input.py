"""Sparse matrices as users give them: SciPy and the core trust indices, which are checked here."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["well_formed"]

_COMPRESSED = {"csr": ("rows", "column"), "csc": ("columns", "row"), "bsr": ("block rows", "block")}


def well_formed(X: Any, name: str = "X") -> Any:
    """A sparse matrix once its arrays are known to be one; sorted, with one entry for each place.

    The checks take one pass over the entries. A matrix with entries out of order or stored twice,
    or in a format other than CSR and CSC, comes back as another one; the caller's stays as it is.

    Raises
    ------
    ValueError
        If pointers or indices are out of range, or arrays have other lengths than they should.
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
    """ValueError unless `indptr` and `indices` are those of so many rows, or columns in CSC."""
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
    """The checked matrix, without flags that may be out of date; a copy if it is out of order.

    SciPy's maxima and norms, and scikit-learn's, are of the entries that are stored.
    """
    used = int(X.indptr[-1])
    fresh = type(X)((X.data[:used], X.indices[:used], X.indptr), shape=X.shape)
    if fresh.has_canonical_format:
        return X if used == len(X.data) else fresh
    fresh = fresh.copy()
    fresh.sum_duplicates()
    return fresh

"""Deviations and order of the columns of samples, and signs of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from eigenfeat._base.types import Floats
from eigenfeat._base.validation import is_rounding, varying

__all__ = [
    "column_signs",
    "deviations",
    "in_any_order",
    "mean_variance",
    "signed",
]

_Array = npt.NDArray[np.float64]
_BLOCK = 256  # columns or samples that are processed at a time
_TINY = float(np.finfo(np.float64).tiny)


def deviations(X: Any, weights: _Array | None = None) -> _Array:
    """Return standard deviations (d,) of the columns of X (n, d); exactly 0 for constant columns.

    X is an array or a CSR matrix without duplicates; samples may have weights (n,). Arrays are read
    in blocks of columns, to avoid a float64 copy. Columns are divided by their largest magnitudes,
    so that squares neither vanish nor overflow.
    """
    if hasattr(X, "indptr"):
        return _sparse_deviations(X, np.ones(X.shape[0]) if weights is None else weights)
    out = np.zeros(X.shape[1])
    for first in range(0, X.shape[1], _BLOCK):
        part = X[:, first : first + _BLOCK].astype(np.float64)
        peak = np.abs(part).max(axis=0, initial=0.0)
        part /= np.where(peak > 0, peak, 1.0)
        part -= np.average(part, axis=0, weights=weights)
        spread = np.sqrt(np.average(part * part, axis=0, weights=weights))
        constant = is_rounding(spread, peak > 0, len(X), _floating(X))
        out[first : first + _BLOCK] = np.where(constant, 0.0, spread * peak)
    return out


def _sparse_deviations(X: Any, weights: _Array) -> _Array:
    n, d = X.shape
    columns, values = X.indices, X.data.astype(np.float64)
    share = np.repeat(weights, np.diff(X.indptr))
    peak = np.zeros(d)
    np.maximum.at(peak, columns, np.abs(values))
    values /= np.where(peak > 0, peak, 1.0)[columns]
    total = np.cumsum(weights)[-1]  # in the order of bincount, so that full columns have no zeros
    mean = np.bincount(columns, share * values, minlength=d) / total
    squares = np.bincount(columns, share * (values - mean[columns]) ** 2, minlength=d)
    zeros = total - np.bincount(columns, share, minlength=d)
    variance = (squares + np.maximum(zeros, 0.0) * mean**2) / total
    return varying(variance, peak > 0, n, _floating(X)) * peak


def in_any_order(X: Any) -> NDArray[np.int64]:
    """Return the columns' indices (d,) in an order that does not depend on their order in X.

    Rounding of distances depends on the order in which columns are added, and breaks ties between
    equidistant samples. In the returned order, results are bit-for-bit independent of the order in
    X. Columns are sorted by their sums with fixed weights of the samples; ties keep their order.
    """
    n, d = X.shape
    weights = np.sqrt(np.arange(1.0, n + 1.0)) % 1.0 / max(n, 1)
    if hasattr(X, "indptr"):
        entries = X.data * np.repeat(weights, np.diff(X.indptr))
        return np.argsort(np.bincount(X.indices, entries, minlength=d), kind="stable")
    sums = np.zeros(d)
    for first in range(0, n, _BLOCK):
        part = X[first : first + _BLOCK].astype(np.float64, order="C")
        sums += (part * weights[first : first + _BLOCK, None]).sum(axis=0)
    return np.argsort(sums, kind="stable")


def mean_variance(X: npt.NDArray[Any]) -> float:
    """Return the mean variance of the columns that vary, or 1: a unit for ridges."""
    spread = deviations(X)
    spread = spread[spread > 0]
    return max(float(np.mean(spread**2)), _TINY) if len(spread) else 1.0


def _floating(X: npt.NDArray[Any]) -> Any:
    return X.dtype if X.dtype == np.float32 else np.float64


def column_signs(vectors: Floats) -> NDArray[np.float64]:
    """Sign of the entry of largest magnitude of each column."""
    top = np.argmax(np.abs(vectors), axis=0)
    return np.where(vectors[top, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def signed(vectors: Floats) -> NDArray[np.float64]:
    """Flip signs of columns so that the entry of largest magnitude is positive."""
    return np.asarray(vectors * column_signs(vectors), dtype=np.float64)

"""Functions of arrays of samples: deviations and order of columns, shrinkage, signs of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike, DTypeLike, NDArray

from eigenfeat._base.types import Floats

__all__ = [
    "column_signs",
    "deviations",
    "in_any_order",
    "is_rounding",
    "ledoit_wolf",
    "mean_variance",
    "signed",
    "varying",
]

_Array = npt.NDArray[np.float64]
_UNKNOWN_SAMPLES = 2**20  # assumed number of samples if it is unknown
_BLOCK = 256  # columns or samples that are processed at a time
_TINY = float(np.finfo(np.float64).tiny)


def is_rounding(
    deviation: ArrayLike,
    size: ArrayLike,
    n_samples: int = _UNKNOWN_SAMPLES,
    dtype: DTypeLike = np.float64,
) -> NDArray[np.bool_]:
    """Whether deviations (d,) of columns are within rounding errors; True if all numbers are 0.

    `deviation` is a standard deviation or half a range; `size` (d,) is the largest magnitude of the
    entries or of the mean. Entries have errors of ``eps * size``; the error of their mean, summed
    pairwise, is ``log2(n)`` times as large.
    """
    steps = 4.0 * (2.0 + np.log2(max(n_samples, 1)))
    rounding = steps * float(np.finfo(dtype).eps) * np.abs(np.asarray(size, np.float64))
    return np.asarray(~(np.asarray(deviation) > rounding))


def varying(
    variance: ArrayLike,
    size: ArrayLike,
    n_samples: int = _UNKNOWN_SAMPLES,
    dtype: DTypeLike = np.float64,
) -> _Array:
    """Return standard deviations (d,) from variances; exactly 0 for constant columns.

    Variances of constant columns may be negative by rounding.
    """
    deviation: Any = np.sqrt(np.maximum(variance, 0.0))
    return np.where(is_rounding(deviation, size, n_samples, dtype), 0.0, deviation)


def deviations(X: Any) -> _Array:
    """Return standard deviations (d,) of the columns of X (n, d); exactly 0 for constant columns.

    X is an array or a CSR matrix without duplicates. Arrays are read in blocks of columns, to avoid
    a float64 copy. Columns are divided by their largest magnitudes, so that squares neither vanish
    nor overflow.
    """
    if hasattr(X, "indptr"):
        return _sparse_deviations(X)
    out = np.zeros(X.shape[1])
    for first in range(0, X.shape[1], _BLOCK):
        part = X[:, first : first + _BLOCK].astype(np.float64)
        peak = np.abs(part).max(axis=0, initial=0.0)
        part /= np.where(peak > 0, peak, 1.0)
        part -= part.mean(axis=0)
        spread = np.sqrt((part * part).mean(axis=0))
        constant = is_rounding(spread, peak > 0, len(X), _floating(X))
        out[first : first + _BLOCK] = np.where(constant, 0.0, spread * peak)
    return out


def _sparse_deviations(X: Any) -> _Array:
    n, d = X.shape
    columns, values = X.indices, X.data.astype(np.float64)
    peak = np.zeros(d)
    np.maximum.at(peak, columns, np.abs(values))
    values /= np.where(peak > 0, peak, 1.0)[columns]
    mean = np.bincount(columns, values, minlength=d) / n
    squares = np.bincount(columns, (values - mean[columns]) ** 2, minlength=d)
    zeros = n - np.bincount(columns, minlength=d)
    return varying((squares + zeros * mean**2) / n, peak > 0, n, _floating(X)) * peak


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


def ledoit_wolf(centred: _Array, covariance: _Array, shares: _Array | None = None) -> float:
    """Return Ledoit and Wolf's shrinkage in [0, 1] of centred samples (n, d).

    O. Ledoit and M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices",
    2004. The fourth moments are summed as fourth powers of the lengths. `shares` (n,) are
    weights that sum to 1; the number of samples is then Kish's effective number.
    """
    d = centred.shape[1]
    mean = np.trace(covariance) / d
    if not mean > 0:
        return 1.0
    # Divide by the mean variance, so that fourth powers neither overflow nor vanish.
    squares = ((centred / np.sqrt(mean)) ** 2).sum(axis=1) ** 2
    n = float(len(centred)) if shares is None else 1.0 / float(np.sum(shares**2))
    fourth = squares.sum() / n if shares is None else shares @ squares
    size = ((covariance / mean) ** 2).sum()
    beta = (fourth - size) / (d * n)
    delta = (size - d) / d
    return float(np.clip(beta / delta, 0.0, 1.0)) if delta > 0 else 1.0

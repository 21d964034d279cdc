"""What rounding leaves open: constant columns, signs of vectors, and in which order to add."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from eigenfeat._base.types import Floats

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

__all__ = [
    "deviations",
    "in_any_order",
    "is_rounding",
    "mean_variance",
    "rounding",
    "signed",
    "varying",
]

_Array = npt.NDArray[np.float64]
_BLOCK = 256  # columns, or samples
_TINY = float(np.finfo(np.float64).tiny)
_MANY = 2**20  # samples, where their number is not known


def rounding(size: ArrayLike, n_samples: int = _MANY, dtype: DTypeLike = np.float64) -> _Array:
    """Largest deviation that rounding alone explains in columns of this size.

    Entries are off by ``eps * size``, and their mean, summed pairwise, by ``log2(n)`` times that.

    Parameters
    ----------
    size : (d,) array-like
        Largest magnitudes of the columns, or magnitudes of their means.
    n_samples : int
        Number of entries of a column.
    dtype : dtype
        Type in which the entries were rounded.

    Returns
    -------
    (d,) array
    """
    steps = 4.0 * (2.0 + np.log2(max(n_samples, 1)))
    return np.asarray(steps * float(np.finfo(dtype).eps) * np.abs(np.asarray(size, np.float64)))


def is_rounding(
    deviation: ArrayLike, size: ArrayLike, n_samples: int = _MANY, dtype: DTypeLike = np.float64
) -> npt.NDArray[np.bool_]:
    """Whether deviations (d,) of columns of these sizes are rounding alone, also where both are 0.

    The deviation may be a standard deviation or half a range.
    """
    return np.asarray(~(np.asarray(deviation) > rounding(size, n_samples, dtype)))


def deviations(X: npt.NDArray[Any]) -> _Array:
    """Standard deviations (d,) of the columns of an array (n, d); exactly 0 of constant ones.

    By blocks of columns, so that rows are never copied whole in float64; in units of the columns'
    largest entries, so that squares neither vanish nor overflow.
    """
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


def in_any_order(X: Any) -> NDArray[np.int64]:
    """Indices (d,) of the columns of an array or CSR matrix, in an order that they alone decide.

    Samples at equal distances are told apart by rounding, which depends on the order in which
    columns are added. In this order results are the same bits however the columns came. It is that
    of the columns' sums with fixed weights of the samples; columns of equal sums stay in place.
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
    """Mean variance of the columns that vary, a unit for what is added to squares; 1 if none is."""
    spread = deviations(X)
    spread = spread[spread > 0]
    return max(float(np.mean(spread**2)), _TINY) if len(spread) else 1.0


def _floating(X: npt.NDArray[Any]) -> Any:
    return X.dtype if X.dtype == np.float32 else np.float64


def varying(
    variance: ArrayLike, size: ArrayLike, n_samples: int = _MANY, dtype: DTypeLike = np.float64
) -> _Array:
    """Standard deviations (d,) of columns from their variances; exactly 0 of constant ones.

    Rounding may have made variances of constant columns negative.
    """
    deviation: Any = np.sqrt(np.maximum(variance, 0.0))
    return np.where(is_rounding(deviation, size, n_samples, dtype), 0.0, deviation)


def signed(vectors: Floats) -> NDArray[np.float64]:
    """Vectors (d, m), one a column, each with a positive entry of largest magnitude."""
    top = np.argmax(np.abs(vectors), axis=0)
    signs = np.where(vectors[top, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(vectors * signs, dtype=np.float64)

"""The core's class moments: fed with checked rows, and as named arrays for files and pickles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from eigenfeat._base.core import core
from eigenfeat._base.validation import CsrRows, RealArray, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "add_to_scatter",
    "core_arrays",
    "restored_core",
    "same_class",
    "update_core",
    "update_core_bytes",
]

_Array = npt.NDArray[np.float64]

_MOST_BYTE_ROWS = 1 << 22  # at once: sums of products of those of a class fit 64 bits


def core_arrays(core: core.ClassMoments, k: int) -> Iterator[tuple[str, _Array]]:
    """Yield the first `k` classes by name and array.

    ``weights`` (k,), and for each class with weight, at index i, ``mean_high_i`` and
    ``mean_low_i`` (d,) and ``scatter_i`` (d (d + 1) / 2,).
    """
    weights = np.array([core.weight(i) for i in range(k)])
    yield "weights", weights
    for i in np.flatnonzero(weights > 0).tolist():
        yield f"mean_high_{i}", core.mean_high(i)
        yield f"mean_low_{i}", core.mean_low(i)
        yield f"scatter_{i}", core.packed_scatter(i)


def restored_core(
    array: Callable[[str, tuple[int, ...]], _Array], k: int, d: int
) -> core.ClassMoments:
    """The core whose arrays, asked for by name and shape, are given.

    Raises
    ------
    ValueError
        If a number is not finite or a weight negative.
    """
    weights = array("weights", (k,))
    good = np.isfinite(weights) & (weights >= 0)
    if not good.all():
        i = int(np.argmin(good))
        raise ValueError(f"weights: expected finite numbers >= 0, got {weights[i]} of class {i}")
    restored = core.ClassMoments(k, d)  # which takes memory for classes with weight alone
    for i in np.flatnonzero(weights > 0).tolist():
        high = array(f"mean_high_{i}", (d,))
        low = array(f"mean_low_{i}", (d,))
        scatter = array(f"scatter_{i}", (d * (d + 1) // 2,))
        wrong = [part[~np.isfinite(part)] for part in (high, low, scatter)]
        if any(map(len, wrong)):
            value = np.concatenate(wrong)[0]
            raise ValueError(f"moments of class {i}: expected finite numbers, got {value}")
        restored.restore(i, float(weights[i]), high, low, scatter)
    return restored


def add_to_scatter(core: core.ClassMoments, index: int, scatter: ArrayLike) -> None:
    """Add a symmetric matrix to the scatter of a class with weight, whose mean stays.

    Raises
    ------
    ValueError
        If the matrix is not finite or has another shape.
    """
    added, d = np.asarray(scatter, dtype=np.float64), core.n_features
    if added.shape != (d, d) or not np.isfinite(added).all():
        raise ValueError(f"scatter: expected finite numbers of shape ({d}, {d}), got {show(added)}")
    packed = core.packed_scatter(index) + added[np.tril_indices(d)]
    high, low = core.mean_high(index), core.mean_low(index)
    core.restore(index, core.weight(index), high, low, packed)


def same_class(a: core.ClassMoments, i: int, b: core.ClassMoments, j: int) -> bool:
    """Whether class i of `a` and class j of `b` agree bit for bit."""
    if a.weight(i) != b.weight(j):
        return False
    return a.weight(i) == 0 or (
        np.array_equal(a.mean_high(i), b.mean_high(j))
        and np.array_equal(a.mean_low(i), b.mean_low(j))
        and np.array_equal(a.packed_scatter(i), b.packed_scatter(j))
    )


def update_core(
    core: core.ClassMoments,
    rows: RealArray | CsrRows,
    codes: npt.NDArray[np.int32],
    weights: _Array | None,
    n_threads: int,
) -> None:
    """Take in a batch of checked rows, their class indices and their weights."""
    if isinstance(rows, CsrRows):
        core.update_csr(
            rows.data, rows.indices, rows.indptr, rows.n_columns, codes, weights, n_threads
        )
    else:
        core.update_dense(rows, codes, weights, n_threads)


def update_core_bytes(
    core: core.ClassMoments,
    rows: npt.NDArray[np.uint8],
    codes: npt.NDArray[np.int32],
    n_threads: int,
) -> None:
    """Take in a batch of bytes (n, d) of weight 1, in integers."""
    for start in range(0, len(rows), _MOST_BYTE_ROWS):
        part = slice(start, start + _MOST_BYTE_ROWS)
        core.update_bytes(rows[part], codes[part], n_threads)

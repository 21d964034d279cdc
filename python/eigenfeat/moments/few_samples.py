"""Samples of many columns whose moments are not formed before somebody asks for a matrix.

The moments of n samples of d columns, k matrices of d x d, have rank n at most. Where n is at most
half of d, the samples themselves are smaller than any of them, and what estimators need follows
from the samples: weights, means and variances directly, directions from problems in their span
(``pencils/class_matrices.py``). The batches are kept as they came, with the merges, so that
matrices that are formed after all have the same bits as if they had been formed at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eigenfeat._base.core import core
from eigenfeat._base.threads import cached_property
from eigenfeat._base.validation import CsrRows
from eigenfeat.moments.state import update_core

if TYPE_CHECKING:
    from eigenfeat._base.validation import RealArray

__all__ = ["FEWEST_COLUMNS", "FewSamples"]

_Array = npt.NDArray[np.float64]

FEWEST_COLUMNS = 200  # below, matrices are small
_MOST_SPARSE_COLUMNS = 20_000  # of sparse samples, which the span needs as an array
_LARGEST = 1e100  # whose squares and their sums are finite; larger ones are the core's to refuse


@dataclass(frozen=True, eq=False)
class _Batch:
    rows: RealArray | CsrRows
    codes: npt.NDArray[np.int32]
    weights: _Array | None
    n_threads: int


@dataclass(frozen=True, eq=False)
class _Merge:
    parts: _Parts
    n_classes: int
    class_map: npt.NDArray[np.int32]
    n_threads: int


_Parts: TypeAlias = "tuple[_Batch | _Merge, ...]"


@dataclass(frozen=True, eq=False)
class FewSamples:
    """Checked samples, their class indices and weights, batch by batch; immutable.

    Attributes
    ----------
    n_features : int
        d, columns.
    n_samples : int
        At most half of d.
    """

    n_features: int
    n_samples: int = 0
    _parts: _Parts = ()

    def added(
        self,
        rows: RealArray | CsrRows,
        codes: npt.NDArray[np.int32],
        weights: _Array | None,
        n_threads: int,
    ) -> FewSamples | None:
        """With another batch, copied; None where moments had better be formed."""
        count = self.n_samples + rows.shape[0]
        if not self._are_few(count) or not _are_plain(rows, weights, self.n_features):
            return None
        if isinstance(rows, CsrRows):
            copied: Any = replace(
                rows, data=rows.data.copy(), indices=rows.indices.copy(), indptr=rows.indptr.copy()
            )
        else:
            copied = np.array(rows, order="C")
        batch = _Batch(copied, codes.copy(), None if weights is None else weights.copy(), n_threads)
        return FewSamples(self.n_features, count, (*self._parts, batch))

    def merged(
        self, other: FewSamples, n_classes: int, class_map: npt.NDArray[np.int32], n_threads: int
    ) -> FewSamples | None:
        """With the samples of another object, of so many classes; None as for `added`."""
        count = self.n_samples + other.n_samples
        if not self._are_few(count):
            return None
        merge = _Merge(other._parts, n_classes, class_map, n_threads)
        return FewSamples(self.n_features, count, (*self._parts, merge))

    def form(self, n_classes: int) -> core.ClassMoments:
        """The core's moments."""
        return _formed(self._parts, n_classes, self.n_features)

    def are_few_with(self, count: int) -> bool:
        """Whether there are few samples with so many more."""
        return self._are_few(self.n_samples + count)

    def _are_few(self, count: int) -> bool:
        return self.n_features >= FEWEST_COLUMNS and 2 * count <= self.n_features

    @cached_property
    def samples(self) -> tuple[_Array, npt.NDArray[np.int32], _Array]:
        """Samples (n, d), class indices (n,) and weights (n,), without those of weight 0."""
        X, codes, weights = (np.concatenate(part) for part in zip(*_flat(self._parts), strict=True))
        some = weights > 0
        return (X, codes, weights) if some.all() else (X[some], codes[some], weights[some])

    def weight(self, index: int) -> float:
        """Weight of a class."""
        _, codes, weights = self.samples
        return float(weights[codes == index].sum())

    def mean(self, index: int) -> _Array:
        """Mean (d,) of a class with weight."""
        X, codes, weights = self.samples
        own = codes == index
        mean: _Array = weights[own] @ X[own] / weights[own].sum()
        return mean

    def variance(self, index: int) -> _Array:
        """Variances (d,) of the columns in a class with weight."""
        X, codes, weights = self.samples
        own = codes == index
        variance: _Array = weights[own] @ (X[own] - self.mean(index)) ** 2 / weights[own].sum()
        return variance


def _are_plain(rows: RealArray | CsrRows, weights: _Array | None, n_columns: int) -> bool:
    """Whether nothing about the samples is to be refused, or too large to be kept."""
    if isinstance(rows, CsrRows):
        inside = (rows.indices >= 0) & (rows.indices < n_columns)
        if n_columns > _MOST_SPARSE_COLUMNS or not inside.all():
            return False
    entries = rows.data if isinstance(rows, CsrRows) else rows
    limit = _LARGEST if entries.dtype == np.float64 else 1e15
    if weights is not None and not (weights >= 0).all() & (weights < _LARGEST).all():
        return False
    return bool((np.abs(entries) < limit).all())


def _formed(parts: _Parts, n_classes: int, d: int) -> core.ClassMoments:
    result = core.ClassMoments(n_classes, d)
    for part in parts:
        if isinstance(part, _Batch):
            update_core(result, part.rows, part.codes, part.weights, part.n_threads)
        else:
            result.merge(_formed(part.parts, part.n_classes, d), part.class_map, part.n_threads)
    return result


def _flat(parts: _Parts) -> list[tuple[_Array, npt.NDArray[np.int32], _Array]]:
    out = []
    for part in parts:
        if isinstance(part, _Batch):
            n = part.rows.shape[0]
            weights = np.ones(n) if part.weights is None else part.weights
            out.append((_array(part.rows), part.codes, weights))
        else:
            out += [(X, part.class_map[codes], w) for X, codes, w in _flat(part.parts)]
    return out


def _array(rows: RealArray | CsrRows) -> _Array:
    if not isinstance(rows, CsrRows):
        return rows.astype(np.float64)
    out = np.zeros(rows.shape)
    of = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    np.add.at(out, (of, rows.indices), rows.data)
    return out

"""Few samples of many columns, which class moments keep until a matrix is requested.

The moments of n samples of d columns are k matrices (d, d) of rank at most n. If n is at most
d / 2, the samples are smaller than one such matrix. Weights, means and variances are then computed
from the samples, directions in their span (``pencils/span.py``). Batches are kept apart, so that
matrices formed later equal accumulated matrices bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.validation import CsrRows, RealArray

__all__ = ["FewSamples", "SampleBatch"]

_Array = npt.NDArray[np.float64]
_MAX_SPARSE_COLUMNS = 20_000  # with more, dense copies of sparse samples are too large
# Sums of squares of smaller entries are finite; the core checks larger entries.
_MAX_ENTRY, _MAX_FLOAT32_ENTRY = 1e100, 1e15


@dataclass(frozen=True, eq=False)
class SampleBatch:
    """Checked samples, their class indices and weights."""

    rows: RealArray | CsrRows
    codes: npt.NDArray[np.int32]
    weights: _Array | None

    @property
    def arrays(self) -> tuple[_Array, npt.NDArray[np.int32], _Array]:
        """Samples as an array, their class indices and weights."""
        n, rows = self.rows.shape[0], self.rows
        weights = np.ones(n) if self.weights is None else self.weights
        if not isinstance(rows, CsrRows):
            return rows.astype(np.float64), self.codes, weights
        out = np.zeros(rows.shape)
        np.add.at(out, (np.repeat(np.arange(n), np.diff(rows.indptr)), rows.indices), rows.data)
        return out, self.codes, weights


@dataclass(frozen=True, eq=False)
class FewSamples:
    """Checked samples, their class indices and weights, batch by batch; immutable."""

    n_features: int  # d
    n_samples: int = 0  # at most half of d
    batches: tuple[SampleBatch, ...] = ()

    def added(
        self, rows: RealArray | CsrRows, codes: npt.NDArray[np.int32], weights: _Array | None
    ) -> FewSamples | None:
        """Return these samples and a copy of a batch; None if the batch needs further checks."""
        if not _are_plain(rows, weights, self.n_features):
            return None
        if isinstance(rows, CsrRows):
            copied: Any = replace(
                rows, data=rows.data.copy(), indices=rows.indices.copy(), indptr=rows.indptr.copy()
            )
        else:
            copied = np.array(rows, order="C")
        batch = SampleBatch(copied, codes.copy(), None if weights is None else weights.copy())
        return self._with((batch,), rows.shape[0])

    def merged(self, other: FewSamples, class_map: npt.NDArray[np.int32]) -> FewSamples:
        """Return the samples of both objects; `class_map` maps class indices of `other`."""
        theirs = (replace(batch, codes=class_map[batch.codes]) for batch in other.batches)
        return self._with(tuple(theirs), other.n_samples)

    def _with(self, batches: tuple[SampleBatch, ...], n_samples: int) -> FewSamples:
        return FewSamples(self.n_features, self.n_samples + n_samples, self.batches + batches)

    @cached_property
    def samples(self) -> tuple[_Array, npt.NDArray[np.int32], _Array]:
        """Samples (n, d) of positive weight, their class indices (n,) and weights (n,)."""
        parts = zip(*(batch.arrays for batch in self.batches), strict=True)
        X, codes, weights = (np.concatenate(part) for part in parts)
        used = weights > 0
        return (X, codes, weights) if used.all() else (X[used], codes[used], weights[used])

    def weight(self, index: int) -> float:
        """Weight of a class."""
        _, codes, weights = self.samples
        return float(weights[codes == index].sum())

    def mean(self, index: int) -> _Array:
        """Mean (d,) of a class of positive weight."""
        X, codes, weights = self.samples
        own = codes == index
        mean: _Array = weights[own] @ X[own] / weights[own].sum()
        return mean

    def variance(self, index: int) -> _Array:
        """Variances (d,) of the columns in a class of positive weight."""
        X, codes, weights = self.samples
        own = codes == index
        variance: _Array = weights[own] @ (X[own] - self.mean(index)) ** 2 / weights[own].sum()
        return variance


def _are_plain(rows: RealArray | CsrRows, weights: _Array | None, n_columns: int) -> bool:
    """Whether the batch needs no further checks and may be kept."""
    if isinstance(rows, CsrRows):
        inside = (rows.indices >= 0) & (rows.indices < n_columns)
        if n_columns > _MAX_SPARSE_COLUMNS or not inside.all():
            return False
    entries = rows.data if isinstance(rows, CsrRows) else rows
    limit = _MAX_ENTRY if entries.dtype == np.float64 else _MAX_FLOAT32_ENTRY
    if weights is not None and not (weights >= 0).all() & (weights < _MAX_ENTRY).all():
        return False
    return bool((np.abs(entries) < limit).all())

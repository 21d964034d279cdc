"""Directions as combinations of the samples of two classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from eigenfeat._base.state import OmitsCaches
from eigenfeat._base.types import DType, Floats
from eigenfeat._base.validation import physical_memory
from eigenfeat.gem._randomized.samples import SparseRows

if TYPE_CHECKING:
    from numpy.typing import DTypeLike
    from scipy.sparse import csc_matrix, csr_array

    from eigenfeat.gem._randomized.samples import ClassSamples

__all__ = ["Combination", "RowCombinations"]

Array = NDArray[np.float64]

GROUP_BYTES = 300e6  # of directions that are formed at a time
KEPT_BYTES = 256e6  # of formed directions that are kept in memory


@dataclass(frozen=True, eq=False)
class Combination:
    """``X_above^T upper + X_below^T lower``: the directions (d', m) of a pair of classes."""

    above: int  # class of the numerator
    below: int  # class of the denominator
    upper: Array  # (n_above, m)
    lower: Array  # (n_below, m)

    def __len__(self) -> int:
        return int(self.upper.shape[1])


@dataclass(eq=False)
class RowCombinations(OmitsCaches):
    """F directions of d features, each a combination of sparse samples.

    With a million features of text, a direction has half a million entries but combines about ten
    thousand samples. The coefficients are kept with the samples; directions are formed in groups
    when they are used, in one pass over the samples. A direction is zero in each feature that is
    zero in all samples of its two classes.
    """

    _caches = frozenset({"_formed"})

    columns: NDArray[np.int64]  # (d',) indices of the features with entries
    factor: Array  # (d',) multipliers of the features' entries
    by_column: list[SparseRows]  # (d', n_c) transposed samples of each class
    combinations: list[Combination]
    n_features: int
    _formed: NDArray[Any] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, classes: ClassSamples, combinations: list[Combination]) -> RowCombinations:
        """Directions over the samples of a fit."""
        by_column = [rows.transposed() for rows in classes.rows]
        return cls(classes.columns, classes.factor, by_column, combinations, classes.n_features)

    @property
    def shape(self) -> tuple[int, int]:
        """Features and directions."""
        return self.n_features, sum(len(pair) for pair in self.combinations)

    @property
    def dtype(self) -> DType:
        """Type of the samples."""
        return self.by_column[0].dtype

    def __repr__(self) -> str:
        d, n = self.shape
        return f"RowCombinations({n} directions of {len(self.combinations)} pairs, {d} features)"

    def groups(self, dtype: DTypeLike, n_threads: int = 0) -> Iterator[tuple[int, Floats]]:
        """Yield groups of directions: the index of the first direction, and an array (d', w)."""
        if self._formed is not None:
            yield 0, self._formed.astype(dtype, copy=False)
            return
        room = GROUP_BYTES / 8 / max(len(self.columns), 1)
        first = 0
        group: list[Combination] = []
        width = 0
        for pair in self.combinations:
            if group and width + len(pair) > room:
                yield first, self._form(group, n_threads).astype(dtype, copy=False)
                first, group, width = first + width, [], 0
            group.append(pair)
            width += len(pair)
        formed = self._form(group, n_threads)
        if first == 0 and formed.size * self.dtype.itemsize <= KEPT_BYTES:
            self._formed = formed.astype(self.dtype, copy=False)
        yield first, formed.astype(dtype, copy=False)

    def _form(self, group: list[Combination], n_threads: int) -> Array:
        widths = [len(pair) for pair in group]
        out = np.zeros((len(self.columns), sum(widths)))
        at = 0
        for pair, width in zip(group, widths, strict=True):
            for c, factors in ((pair.above, pair.upper), (pair.below, pair.lower)):
                self.by_column[c].times(factors, out, out_at=at, add=True, n_threads=n_threads)
            at += width
        out *= self.factor[:, None]
        return out

    def project(
        self, X: Floats | csr_array, offset: Array | None = None, n_threads: int | None = None
    ) -> Floats:
        """Projections ``X @ self + offset`` (n, F), in X's type, of an array or CSR matrix X."""
        if X.shape[1] != self.n_features:
            raise ValueError(f"X: expected {self.n_features} columns, got {X.shape[1]}")
        X = sparse.csr_array(X)
        dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        values = X.data.astype(dtype, copy=False)
        rows = SparseRows(values, X.indices, X.indptr, self.n_features).in_columns(self.columns)
        out = np.empty((X.shape[0], self.shape[1]), dtype=dtype)
        for first, directions in self.groups(dtype, n_threads or 0):
            block = np.ascontiguousarray(directions)
            rows.times(block, out, out_at=first, n_threads=n_threads or 0)
        if offset is not None:
            out += offset.astype(dtype)
        return out

    def tocsc(self) -> csc_matrix:
        """All directions as a sparse array (d, F)."""
        parts = []
        for _, directions in self.groups(self.dtype):
            block = sparse.csr_array(directions)
            rows = self.columns[block.nonzero()[0]]
            parts.append(
                sparse.csc_array(
                    (block.data, (rows, block.indices)),
                    shape=(self.n_features, block.shape[1]),
                )
            )
        return sparse.hstack(parts, format="csc")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        """`toarray` for NumPy, float64 by default."""
        return self.toarray().astype(np.float64 if dtype is None else dtype, copy=False)

    def toarray(self) -> Floats:
        """All directions as an array (d, F).

        Raises
        ------
        MemoryError
            If the array does not fit into the machine's memory.
        """
        needed = self.shape[0] * self.shape[1] * self.dtype.itemsize
        if needed > physical_memory():
            raise MemoryError(f"directions: {self.shape} as an array take {needed:,} bytes")
        out = np.zeros(self.shape, dtype=self.dtype)
        for first, directions in self.groups(self.dtype):
            out[self.columns, first : first + directions.shape[1]] = directions
        return out

"""Sparse samples as operators: products with blocks of vectors, and the samples of each class.

Products are bit-for-bit identical for any number of threads. No matrix of columns by columns is
formed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from eigenfeat._base.core import core
from eigenfeat._base.state import OmitsCaches
from eigenfeat._base.types import DType
from eigenfeat.moments.columns import deviations
from eigenfeat.samples.labelled import Block

__all__ = ["ClassSamples", "SparseRows", "sort_by_class"]

_Array = NDArray[np.float64]
_Values = NDArray[Any]

_BLOCK_BYTES = 32e6  # dense copies of samples while kernels are computed


@dataclass(eq=False)
class SparseRows(OmitsCaches):
    """Compressed sparse rows (n, d) with 32-bit column indices."""

    _caches = frozenset({"_transposed"})

    data: _Values  # (nnz,) float32 or float64
    indices: NDArray[np.int32]  # (nnz,) columns, in any order
    indptr: NDArray[np.int64]  # (n + 1,)
    n_columns: int
    _transposed: SparseRows | None = field(default=None, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.indptr) - 1, self.n_columns

    @property
    def dtype(self) -> DType:
        """Type of the values."""
        return self.data.dtype

    def checked(self) -> SparseRows:
        """These rows; ValueError if `indptr` decreases or a column is out of range."""
        core.check_compact_rows(self.data, self.indices, self.indptr, self.n_columns)
        return self

    def in_columns(self, columns: NDArray[np.int64]) -> SparseRows:
        """These rows restricted to `columns`, which are renumbered from 0."""
        number = np.full(self.n_columns, -1, dtype=np.int32)
        number[columns] = np.arange(len(columns), dtype=np.int32)
        indices = number[self.indices]
        known = indices >= 0
        indptr = np.concatenate([[0], np.cumsum(known)])[self.indptr]
        return SparseRows(self.data[known], indices[known], indptr, len(columns))

    def transposed(self) -> SparseRows:
        """The transpose, computed once."""
        if self._transposed is None:
            found = core.transpose_rows(self.data, self.indices, self.indptr, self.n_columns)
            self._transposed = SparseRows(found.data, found.indices, found.indptr, self.shape[0])
        return self._transposed

    def times(
        self,
        V: _Values,
        out: _Values | None = None,
        *,
        at: int = 0,
        out_at: int = 0,
        width: int | None = None,
        add: bool = False,
        n_threads: int = 0,
    ) -> _Values:
        """``X @ V`` for `width` columns of V from `at` on.

        `V` and `out` are C-contiguous arrays of float64, or of float32 with float32 samples. The
        columns of `out` from `out_at` on receive the product, or with `add` its sum with `out`.
        """
        width = V.shape[1] - at if width is None else width
        if out is None:
            out = np.empty((self.shape[0], width), dtype=V.dtype)
        core.multiply_rows(
            self.data,
            self.indices,
            self.indptr,
            self.n_columns,
            V=V,
            v_first=at,
            out=out,
            out_first=out_at,
            width=width,
            add=add,
            n_threads=n_threads,
        )
        return out

    def transposed_times(self, U: _Values, out: _Values | None = None, **options: Any) -> _Values:
        """``X^T @ U``, with the options of `times`."""
        return self.transposed().times(U, out, **options)

    def squared_norms(self) -> _Array:
        """Squared norm (n,) of each row; infinite if it overflows."""
        owner = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        with np.errstate(over="ignore"):
            squares = self.data.astype(np.float64) ** 2
        return np.bincount(owner, squares, minlength=self.shape[0]).astype(np.float64)

    def kernel(self, n_threads: int = 0) -> _Array:
        """``X @ X^T`` (n, n), by blocks of rows made dense."""
        n, d = self.shape
        out = np.empty((n, n))
        size = int(np.clip(_BLOCK_BYTES / (8 * max(d, 1)) // 8 * 8, 8, 128))
        for first in range(0, n, size):
            last = min(first + size, n)
            part = slice(self.indptr[first], self.indptr[last])
            block = np.zeros((d, last - first))
            rows = np.repeat(np.arange(last - first), np.diff(self.indptr[first : last + 1]))
            np.add.at(block, (self.indices[part], rows), self.data[part])
            self.times(block, out, out_at=first, n_threads=n_threads)
        return out


@dataclass(eq=False)
class ClassSamples:
    """The samples of each class, times the roots of their weights and the columns' factors.

    Only columns with entries are kept, ordered by falling frequency for locality.
    """

    rows: list[SparseRows]  # one for each class, (n_c, d')
    roots: list[_Array]  # (n_c,) roots of the weights, which sum to 1 in each class
    columns: NDArray[np.int64]  # (d',) indices of the kept columns
    factor: _Array  # (d',) factors of the columns
    origin: _Array | None  # (d,) subtracted from dense samples
    means: _Array  # (k, d') means of the classes, in these units
    mean: _Array  # (d',) mean of all samples
    squares: _Array  # (k,) mean squared norm of a class's samples
    n_features: int  # d

    @property
    def dtype(self) -> DType:
        """Type of the samples."""
        return self.rows[0].dtype


def sort_by_class(block: Block, *, scaled: bool, movable: bool) -> tuple[ClassSamples, _Array]:
    """Sort samples by class, scale columns if `scaled`, and return the divisors, too.

    If `movable`, the origin does not matter: dense samples are centred first, which keeps digits if
    their mean is large.
    """
    X, codes = block.X, np.asarray(block.y)
    k = int(codes.max()) + 1
    share = np.ones(len(codes)) if block.weight is None else block.weight
    totals = np.bincount(codes, share, minlength=k)
    divisors = np.ones(X.shape[1])
    if scaled:
        deviation = deviations(X, share)
        divisors = np.where(deviation > 0, deviation, 1.0)
    origin = None
    if not sparse.issparse(X):
        origin = (share @ X) / share.sum() if movable else None
        X = sparse.csr_array(X if origin is None else (X - origin).astype(X.dtype))
    roots = np.sqrt(share / totals[codes])
    members = [np.flatnonzero(codes == c) for c in range(k)]
    rows, columns = _rows_of_classes(X, members, roots, divisors)
    parts = [roots[own] for own in members]
    means = np.stack(
        [
            own.transposed_times(np.ascontiguousarray(root[:, None]))[:, 0]
            for own, root in zip(rows, parts, strict=True)
        ]
    )
    squares = np.array([float(own.squared_norms().sum()) for own in rows])
    mean = totals / totals.sum() @ means
    factor, d = 1.0 / divisors[columns], int(X.shape[1])
    return ClassSamples(rows, parts, columns, factor, origin, means, mean, squares, d), divisors


def _rows_of_classes(
    X: Any, members: list[NDArray[np.intp]], roots: _Array, divisors: _Array
) -> tuple[list[SparseRows], NDArray[np.int64]]:
    """Compressed rows of each class, and the indices of their columns."""
    counts = np.bincount(X.indices, minlength=X.shape[1])
    used = max(int(np.count_nonzero(counts)), 1)
    columns = np.argsort(-counts, kind="stable")[:used]
    number = np.zeros(X.shape[1], dtype=np.int32)
    number[columns] = np.arange(used, dtype=np.int32)
    rows = []
    for own in members:
        part = X[own]
        values = part.data * np.repeat(roots[own], np.diff(part.indptr)) / divisors[part.indices]
        parts = values.astype(X.dtype), number[part.indices], part.indptr.astype(np.int64)
        rows.append(SparseRows(*parts, used).checked())
    return rows, columns.astype(np.int64)

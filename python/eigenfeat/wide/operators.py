"""Rows of a huge dimension as operators: products with dense blocks, and nothing of d x d.

`SparseRows` are compressed rows with 32-bit columns; `DenseRows` an array or a memory-mapped file,
gone through in blocks. Both carry factors of rows and columns, and give the same bits for every
number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from eigenfeat._base.core import core
from eigenfeat._base.saved import Saved, fits
from eigenfeat._base.types import DType

__all__ = ["DenseRows", "SparseRows"]

_Array = npt.NDArray[Any]

_BLOCK_BYTES = 32e6


@dataclass(eq=False)
class SparseRows(Saved):
    """Compressed sparse rows (n, d).

    Attributes
    ----------
    data : (nnz,) array of float32 or float64
    indices : (nnz,) array of int32
        Columns, in any order.
    indptr : (n + 1,) array of int64
    n_columns : int
    """

    _saved: ClassVar[dict[str, str]] = {
        "data": "numbers n",
        "indices": "whole n",
        "indptr": "whole p",
        "n_columns": "count",
    }

    data: _Array
    indices: npt.NDArray[np.int32]
    indptr: npt.NDArray[np.int64]
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
        """The same, once it is known that its arrays are a matrix.

        Raises
        ------
        ValueError
            If `indptr` falls somewhere, or a column is out of range.
        """
        core.check_compact_rows(self.data, self.indices, self.indptr, self.n_columns)
        return self

    def transposed(self) -> SparseRows:
        """Columns as rows, made when first asked for."""
        if self._transposed is None:
            parts = core.transpose_rows(self.data, self.indices, self.indptr, self.n_columns)
            self._transposed = SparseRows(*parts, self.shape[0])
        return self._transposed

    def times(
        self,
        V: _Array,
        out: _Array | None = None,
        *,
        at: int = 0,
        out_at: int = 0,
        width: int | None = None,
        add: bool = False,
        n_threads: int = 0,
    ) -> _Array:
        """``X @ V``, of `width` columns of V from `at` on into those of `out` from `out_at` on.

        V and `out` are C-contiguous, float64, or float32 with float32 values.
        """
        width = V.shape[1] - at if width is None else width
        if out is None:
            out = np.empty((self.shape[0], width), dtype=V.dtype)
        core.multiply_rows(
            self.data, self.indices, self.indptr, self.n_columns,
            V, at, out, out_at, width, add, n_threads,
        )  # fmt: skip
        return out

    def transposed_times(self, U: _Array, out: _Array | None = None, **options: Any) -> _Array:
        """``X^T @ U``; options as in `times`."""
        return self.transposed().times(U, out, **options)

    def squared_norms(self) -> npt.NDArray[np.float64]:
        """Sum of squares of each row (n,)."""
        return _row_sums(self.data.astype(np.float64) ** 2, self.indptr)

    def slice(self, first: int, last: int) -> SparseRows:
        """Rows first to last - 1, without a copy."""
        begin, end = self.indptr[first], self.indptr[last]
        starts = self.indptr[first : last + 1] - begin
        return SparseRows(self.data[begin:end], self.indices[begin:end], starts, self.n_columns)

    def kernel(self, n_threads: int = 0) -> npt.NDArray[np.float64]:
        """``X @ X^T`` (n, n), by blocks of rows made dense."""
        n, d = self.shape
        out = np.empty((n, n))
        size = int(np.clip(_BLOCK_BYTES / (8 * max(d, 1)) // 8 * 8, 8, 128))
        for first in range(0, n, size):
            part = self.slice(first, min(first + size, n))
            block = np.zeros((d, part.shape[0]))
            rows = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
            np.add.at(block, (part.indices, rows), part.data)
            self.times(block, out, out_at=first, n_threads=n_threads)
        return out

    def _check_loaded(self) -> None:
        fits(self.data.dtype in (np.float32, np.float64), "SparseRows.data")
        fits(self.indices.dtype == np.int32 and self.indptr.dtype == np.int64, "SparseRows.indices")
        fits(len(self.indptr) > 0 and self.n_columns < 2**31, "SparseRows.indptr")
        self.checked()


@dataclass(eq=False)
class DenseRows:
    """Rows ``row_factor[:, None] * (X[rows] - origin) * column_factor`` of an array or a memmap.

    Nothing wider than a block is ever copied.

    Attributes
    ----------
    X : (N, d) array
    rows : (n,) array of int
        Which of them, ascending.
    row_factor : (n,) array
    column_factor, origin : (d,) arrays
    """

    X: _Array
    rows: npt.NDArray[np.int64]
    row_factor: npt.NDArray[np.float64]
    column_factor: npt.NDArray[np.float64]
    origin: npt.NDArray[np.float64]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rows), int(self.X.shape[1])

    @property
    def dtype(self) -> DType:
        """Type of the values."""
        return self.X.dtype

    def _blocks(self) -> Any:
        n, d = self.shape
        size = int(np.clip(_BLOCK_BYTES / (8 * d), 16, 1024))
        for first in range(0, n, size):
            part = slice(first, min(first + size, n))
            yield part, self.X[self.rows[part]] - self.origin

    def times(
        self,
        V: _Array,
        out: _Array | None = None,
        *,
        at: int = 0,
        out_at: int = 0,
        width: int | None = None,
        add: bool = False,
        n_threads: int = 0,
    ) -> _Array:
        """As `SparseRows.times`; threads are the BLAS's own."""
        width = V.shape[1] - at if width is None else width
        if out is None:
            out = np.empty((self.shape[0], width), dtype=V.dtype)
        scaled = self.column_factor[:, None] * V[:, at : at + width]
        target = out[:, out_at : out_at + width]
        for part, block in self._blocks():
            product = self.row_factor[part, None] * (block @ scaled)
            target[part] = target[part] + product if add else product
        return out

    def transposed_times(
        self,
        U: _Array,
        out: _Array | None = None,
        *,
        at: int = 0,
        out_at: int = 0,
        width: int | None = None,
        add: bool = False,
        n_threads: int = 0,
    ) -> _Array:
        """As `SparseRows.transposed_times`."""
        width = U.shape[1] - at if width is None else width
        if out is None:
            out = np.empty((self.shape[1], width), dtype=U.dtype)
        total = np.zeros((self.shape[1], width))
        for part, block in self._blocks():
            total += block.T @ (self.row_factor[part, None] * U[part, at : at + width])
        total *= self.column_factor[:, None]
        target = out[:, out_at : out_at + width]
        target[...] = target + total if add else total
        return out

    def squared_norms(self) -> npt.NDArray[np.float64]:
        """Sum of squares of each row (n,)."""
        out = np.empty(len(self.rows))
        for part, block in self._blocks():
            out[part] = self.row_factor[part] ** 2 * ((block * self.column_factor) ** 2).sum(axis=1)
        return out

    def kernel(self, n_threads: int = 0) -> npt.NDArray[np.float64]:
        """``X @ X^T`` (n, n), by blocks of columns."""
        n, d = self.shape
        out = np.zeros((n, n))
        size = int(np.clip(_BLOCK_BYTES / (8 * n), 64, 8192))
        for first in range(0, d, size):
            part = slice(first, first + size)
            block = (self.X[:, part][self.rows] - self.origin[part]) * self.column_factor[part]
            out += block @ block.T
        out *= self.row_factor[:, None]
        out *= self.row_factor
        return out


def _row_sums(
    values: npt.NDArray[np.float64], indptr: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Sums of consecutive values; `np.add.reduceat` has no empty ranges."""
    out = np.zeros(len(indptr) - 1)
    filled = np.flatnonzero(np.diff(indptr) > 0)
    if len(filled):
        out[filled] = np.add.reduceat(values, indptr[filled])
    return out

"""Samples of a huge dimension as operators, and class by class: nothing of d x d is formed.

`SparseRows` are compressed rows with 32-bit columns; `DenseRows` an array or a memory-mapped file,
gone through in blocks. Both carry factors of rows and columns, and give the same bits for every
number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from eigenfeat._base.core import core
from eigenfeat._base.state import OmitsCaches
from eigenfeat._base.types import DType, Floats
from eigenfeat._base.validation import in_order
from eigenfeat.moments.class_moments import varying
from eigenfeat.pencils.fitted_directions import ScaleReport, by_rule, scale_report

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Columns", "DenseRows", "Rows", "SparseRows", "WideClasses", "wide_classes"]

Array = NDArray[np.float64]
_Values = NDArray[Any]

_BLOCK_BYTES = 32e6


@dataclass(eq=False)
class SparseRows(OmitsCaches):
    """Compressed sparse rows (n, d)."""

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
        """The same; ValueError if `indptr` falls somewhere, or a column is out of range."""
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
        V: _Values,
        out: _Values | None = None,
        *,
        at: int = 0,
        out_at: int = 0,
        width: int | None = None,
        add: bool = False,
        n_threads: int = 0,
    ) -> _Values:
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

    def transposed_times(self, U: _Values, out: _Values | None = None, **options: Any) -> _Values:
        """``X^T @ U``; options as in `times`."""
        return self.transposed().times(U, out, **options)

    def squared_norms(self) -> NDArray[np.float64]:
        """Sum of squares of each row (n,)."""
        return _row_sums(self.data.astype(np.float64) ** 2, self.indptr)

    def slice(self, first: int, last: int) -> SparseRows:
        """Rows first to last - 1, without a copy."""
        begin, end = self.indptr[first], self.indptr[last]
        starts = self.indptr[first : last + 1] - begin
        return SparseRows(self.data[begin:end], self.indices[begin:end], starts, self.n_columns)

    def kernel(self, n_threads: int = 0) -> NDArray[np.float64]:
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


@dataclass(eq=False)
class DenseRows:
    """Rows ``row_factor[:, None] * (X[rows] - origin) * column_factor`` of an array or a memmap.

    Nothing wider than a block is ever copied.
    """

    X: _Values  # (N, d)
    rows: NDArray[np.int64]  # (n,) which of them, ascending
    row_factor: NDArray[np.float64]  # (n,)
    column_factor: NDArray[np.float64]  # (d,)
    origin: NDArray[np.float64]  # (d,)

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
        V: _Values,
        out: _Values | None = None,
        *,
        at: int = 0,
        out_at: int = 0,
        width: int | None = None,
        add: bool = False,
        n_threads: int = 0,
    ) -> _Values:
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
        U: _Values,
        out: _Values | None = None,
        *,
        out_at: int = 0,
        add: bool = False,
        n_threads: int = 0,
    ) -> _Values:
        """``X^T @ U``, into the columns of `out` from `out_at` on; threads are the BLAS's own."""
        width = U.shape[1]
        if out is None:
            out = np.empty((self.shape[1], width), dtype=U.dtype)
        total = np.zeros((self.shape[1], width))
        for part, block in self._blocks():
            total += block.T @ (self.row_factor[part, None] * U[part])
        total *= self.column_factor[:, None]
        target = out[:, out_at : out_at + width]
        target[...] = target + total if add else total
        return out

    def squared_norms(self) -> NDArray[np.float64]:
        """Sum of squares of each row (n,)."""
        out = np.empty(len(self.rows))
        for part, block in self._blocks():
            out[part] = self.row_factor[part] ** 2 * ((block * self.column_factor) ** 2).sum(axis=1)
        return out

    def kernel(self, n_threads: int = 0) -> NDArray[np.float64]:
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


def _row_sums(values: NDArray[np.float64], indptr: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums of consecutive values; `np.add.reduceat` has no empty ranges."""
    out = np.zeros(len(indptr) - 1)
    filled = np.flatnonzero(np.diff(indptr) > 0)
    if len(filled):
        out[filled] = np.add.reduceat(values, indptr[filled])
    return out


Rows: TypeAlias = SparseRows | DenseRows


# ---- classes -------------------------------------------------------------------------------------


_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class Columns:
    """How columns are standardised: ``(x - mean) / scale``; `varying` ones are not constant.

    They are given by a mask, or by indices in the order of the coordinates.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    varying: NDArray[np.bool_] | NDArray[np.int64]


@dataclass(eq=False)
class WideClasses:
    """Classes' rows times the roots of their weights and the columns' factors.

    Of sparse rows only the columns that occur, numbered by falling frequency, so that what is read
    most lies together.
    """

    rows: list[Rows]  # one for each class, (n_c, d')
    roots: list[Array]  # (n_c,) of the weights, which sum to 1 in each class
    columns: NDArray[np.int64] | None  # (d',) which these are; None for dense rows, which keep all
    factor: Array  # (d',) what the columns were multiplied by
    origin: Array  # (d',) what was taken away from dense rows before
    means: Array  # (k, d') of the rows, in these units and about this origin
    mean: Array  # (d',) of all rows
    squares: Array  # (k,) mean squared norm of a class's rows
    n_features: int  # d

    @property
    def dtype(self) -> DType:
        """Type of the rows."""
        return self.rows[0].dtype

    def index_of(self, rows: Rows) -> int:
        """The class whose rows these are."""
        return next(c for c, own in enumerate(self.rows) if own is rows)


def wide_classes(
    X: Floats | csr_array,
    codes: NDArray[np.intp],
    weight: Array | None,
    scale: str,
    constant: bool,
) -> tuple[WideClasses, ScaleReport]:
    """Sort rows (n, d) by class, and decide on the columns' scales.

    With "auto" sparse columns stay as they are: counts and what is made of them share a unit, and
    dividing rare terms by their tiny deviations would leave nothing else. Dense ones go by the
    rule of `by_rule`. `constant`: rows may be moved, which keeps the digits of those far from zero.
    """
    k = int(codes.max()) + 1
    share = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=np.float64)
    totals = np.bincount(codes, share, minlength=k)
    is_sparse = sparse.issparse(X)
    checked = in_order(X) if is_sparse else X
    mean, deviation = _column_statistics(checked, share / share.sum())
    basis = "given" if scale != "auto" else "rule"
    if scale == "auto":
        scale = "none" if is_sparse else by_rule(deviation)
    report = scale_report(scale, basis, deviation)
    roots = np.sqrt(share / totals[codes])
    members = [np.flatnonzero(codes == c) for c in range(k)]
    if is_sparse:
        rows, columns = _sparse_classes(checked, members, roots, report.column_scale)
        factor, origin = 1.0 / report.column_scale[columns], np.zeros(len(columns))
    else:
        columns, factor = None, 1.0 / report.column_scale
        origin = mean if constant else np.zeros(checked.shape[1])
        rows = [DenseRows(checked, own, roots[own], factor, origin) for own in members]
    parts = [roots[own] for own in members]
    means = np.stack([_mean(own, root) for own, root in zip(rows, parts, strict=True)])
    squares = np.array([float(own.squared_norms().sum()) for own in rows])
    classes = WideClasses(
        rows, parts, columns, factor, origin,
        means, totals / totals.sum() @ means, squares, int(checked.shape[1]),
    )  # fmt: skip
    return classes, report


def _mean(rows: Rows, root: Array) -> Array:
    return rows.transposed_times(np.ascontiguousarray(root[:, None]))[:, 0]


def _sparse_classes(
    X: Any, members: list[NDArray[np.intp]], roots: Array, scale: Array
) -> tuple[list[Rows], NDArray[np.int64]]:
    """Compressed rows of each class in the columns that occur, and which these are."""
    counts = np.bincount(X.indices, minlength=X.shape[1])
    used = max(int(np.count_nonzero(counts)), 1)
    columns = np.argsort(-counts, kind="stable")[:used]
    number = np.zeros(X.shape[1], dtype=np.int32)
    number[columns] = np.arange(used, dtype=np.int32)
    rows: list[Rows] = []
    for own in members:
        part = X[own]
        values = part.data * np.repeat(roots[own], np.diff(part.indptr))
        values /= scale[part.indices]
        rows.append(
            SparseRows(
                values.astype(X.dtype),
                number[part.indices],
                part.indptr.astype(np.int64),
                used,
            ).checked()
        )
    return rows, columns.astype(np.int64)


def _column_statistics(X: Any, share: Array) -> tuple[Array, Array]:
    """Means and standard deviations of the columns; 0 where rounding alone varies."""
    d = X.shape[1]
    if sparse.issparse(X):
        of_rows = np.repeat(share, np.diff(X.indptr))
        mean: Array = np.bincount(X.indices, of_rows * X.data, minlength=d).astype(np.float64)
        squares = np.bincount(X.indices, of_rows * X.data.astype(np.float64) ** 2, minlength=d)
        variance = squares - mean**2
        noise = 100 * np.finfo(np.float64).eps * squares
    else:
        mean, variance = np.zeros(d), np.zeros(d)
        blocks = [slice(first, first + _BLOCK) for first in range(0, X.shape[0], _BLOCK)]
        for block in blocks:
            mean += share[block] @ X[block]
        for block in blocks:
            variance += share[block] @ (X[block] - mean) ** 2
        return mean, varying(variance, mean, X.shape[0])
    return mean, np.where(variance > noise, np.sqrt(np.maximum(variance, 0.0)), 0.0)

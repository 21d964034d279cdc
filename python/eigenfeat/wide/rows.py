"""Rows of a huge dimension, class by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from eigenfeat._base.types import DType, Floats
from eigenfeat._base.validation import in_order
from eigenfeat.moments.class_moments import varying
from eigenfeat.pencils.fitted_directions import ScaleReport
from eigenfeat.wide.operators import DenseRows, SparseRows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from eigenfeat.wide.denominator import Rows

__all__ = ["Columns", "WideClasses", "wide_classes"]

Array = NDArray[np.float64]


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

    Attributes
    ----------
    rows : list of SparseRows or DenseRows
        One for each class, (n_c, d').
    roots : list of (n_c,) arrays
        Roots of the weights, which sum to 1 in each class.
    columns : (d',) array of int, or None
        Which columns these are; None for dense rows, which keep all.
    factor : (d',) array
        What the columns were multiplied by.
    origin : (d',) array
        What was taken away from dense rows before.
    means : (k, d') array
        Of the rows, in these units and about this origin.
    mean : (d',) array
        Of all rows.
    squares : (k,) array
        Mean squared norm of a class's rows.
    n_features : int
        d.
    """

    rows: list[Rows]
    roots: list[Array]
    columns: NDArray[np.int64] | None
    factor: Array
    origin: Array
    means: Array
    mean: Array
    squares: Array
    n_features: int

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
    most_spread: float,
) -> tuple[WideClasses, ScaleReport]:
    """Sort rows by class, and decide on the columns' scales.

    Parameters
    ----------
    X : (n, d) array, memmap or CSR matrix
    codes : (n,) array
        Classes from 0.
    weight : (n,) array or None
    scale : {"auto", "none", "columns"}
        "auto" leaves sparse columns as they are: counts and what is made of them share a unit, and
        dividing rare terms by their tiny deviations would leave nothing else. Dense ones are
        divided where the largest deviation is more than `most_spread` times the median.
    constant : bool
        Whether rows may be moved, which keeps the digits of dense rows far from zero.
    """
    k = int(codes.max()) + 1
    share = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=np.float64)
    totals = np.bincount(codes, share, minlength=k)
    is_sparse = sparse.issparse(X)
    checked = in_order(X) if is_sparse else X
    mean, deviation = _column_statistics(checked, share / share.sum())
    report = _report(scale, deviation, most_spread, is_sparse)
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


def _report(scale: str, deviation: Array, most_spread: float, is_sparse: bool) -> ScaleReport:
    positive = deviation[deviation > 0]
    spread = float(positive.max() / np.median(positive)) if positive.size else 1.0
    basis = "given" if scale != "auto" else "rule"
    if scale == "auto":
        scale = "columns" if spread > most_spread and not is_sparse else "none"
    divisors = np.ones_like(deviation)
    if scale == "columns":
        divisors = np.where(deviation > 0, deviation, 1.0)
    return ScaleReport(scale, basis, divisors, spread=spread)

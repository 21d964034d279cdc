r"""Representations of a table's columns that views read.

Ranks are values of a column's empirical distribution function, scaled to variance 1, so that no
column has a unit or a long tail; indicators of categories stay 0 and 1. Means, quantiles, knots and
landmarks, which need no labels, come from all samples. Directions and pairs of columns need labels:
out of fold, they come from the sums over the other folds alone.

The pairs of columns are found from the second moments of each class: the moments ``N_c = B^T B`` of
the bins' indicators B are the tables of counts of all pairs of columns. For columns i and j with
bins a and b, twice the gain

.. math:: G_{ij} = H(y | i) + H(y | j) - H(y) - H(y | i, j)

times the number of samples is approximately chi-squared, with ``(k - 1) (cells - bins_i - bins_j +
1)`` degrees of freedom, where the columns act additively on the logits; pairs with the largest
standardised excess are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.linalg.lapack import dpstrf, dtrtri

from eigenfeat._base.core import core
from eigenfeat._base.state import OmitsCaches
from eigenfeat._base.threads import resolve
from eigenfeat.expansion.features import core_rows

if TYPE_CHECKING:
    from eigenfeat._base.types import Codes, Floats

__all__ = ["BETWEEN", "MOST_BINS", "Interactions", "Kernel", "Table", "TableStatistics"]

_Array = NDArray[np.float64]
_Features = NDArray[np.float32]
_Float = TypeVar("_Float", np.float32, np.float64)

_KNOTS = 6  # knots of a spline, with both ends
_OUTER = 1  # quantiles outside the outermost knots on each side
_DEGREE = 3  # degree of splines
_MAX_SPLINES = 1_500  # spline features of all columns
_COLUMNS_AT_ONCE, _ROWS_AT_ONCE = 16, 1_024  # columns and rows that are copied at a time
_FEW_VALUES = 3  # columns with at most this many values have no splines and no bins
_GRID = 201  # quantiles of a column, from which ranks are interpolated
_BINS, _FINE = 8, 20  # bins of a numeric column: in pairs of columns, and alone
_LANDMARKS = 400  # maximum number of landmarks
_LEAST_DISTANCE = 1e-4  # squared, in feature space, of a landmark from the span of earlier ones
_PSEUDO = 10.0  # weight of the mean of all samples in the mean of a level
_MAX_INDICATORS = 6  # indicators of a column of categories that trees read, beside its levels
_MAX_PAIRED = 16  # numeric columns, which have 240 sums and differences
# Share of the way between two values at which an edge lies. The middle between 0.2 and 0.4 may be
# the value of a new sample, which rounding would move across it.
BETWEEN = (np.sqrt(5.0) - 1.0) / 2.0
MOST_BINS = 1200  # bins of all columns together
_MAX_COUNTS = 40_000_000  # entries of the tables of all pairs of bins, of all classes
_SPREAD = 64.0  # deviation of a constant column, in rounding errors of its largest magnitude


class Bins(NamedTuple):
    """Bins of the columns of a group (see `TableStatistics.groups`).

    Numbers have bins between `edges`, and their gaps have the last bin. Indicators of categories
    have a bin each, and one more bin for samples of no category.
    """

    size: int  # number of bins
    columns: NDArray[np.intp]
    edges: _Array


@dataclass(frozen=True, eq=False)
class TableStatistics(OmitsCaches):
    """Statistics of the columns that need no labels.

    Attributes
    ----------
    mean : (D,) array
        Means.
    scale : (D,) array
        Standard deviations, or the difference of two values; 0 for a column without spread. A
        penalty of standardised columns then shrinks categories, and rare ones most.
    indicator : (D,) array of bool
        Columns of two values, which have neither splines nor ranks.
    quantiles : (Q, D) array
        Quantiles of the columns at Q even probabilities, values of samples.
    below : (Q, D) array
        The next smaller value of a sample, or the quantile itself where it is the smallest.
    groups : (D,) array of int
        Columns of one group share their bins: the indicators of one column of categories, and a
        column of numbers with the indicator of its gaps.
    one_hot : (D,) array of int
        Like `groups`, but neighbouring indicators that are never 1 together form one group.
    n_gaps : int
        Number of columns at the end that are indicators of gaps.
    reach : float
        Number of standard deviations by which columns may exceed the range of the samples.
    """

    mean: _Array
    scale: _Array
    indicator: NDArray[np.bool_]
    quantiles: _Array
    below: _Array
    groups: NDArray[np.intp]
    one_hot: NDArray[np.intp]
    n_gaps: int = 0
    reach: float = 0.0

    @classmethod
    def fit(
        cls,
        X: _Array,
        weight: _Array | None,
        groups: NDArray[np.intp] | None = None,
        n_gaps: int = 0,
        reach: float = 0.0,
    ) -> TableStatistics:
        """Compute the statistics of complete samples X (n, D) with positive weights (n,)."""
        d = X.shape[1]
        w = None if weight is None or (weight == weight[0]).all() else weight / weight.max()
        mean, spread, unit = _mean_and_spread(X, w)
        constant = spread <= _SPREAD * np.finfo(X.dtype).eps
        quantiles, below = np.empty((2, _GRID, d), dtype=X.dtype)
        indicator = np.empty(d, dtype=bool)
        for j, (ascending, place) in enumerate(_ascending(X, w)):
            quantiles[:, j] = ascending[place]
            quantiles[0, j], quantiles[-1, j] = ascending[0], ascending[-1]
            first = np.searchsorted(ascending, quantiles[:, j])
            below[:, j] = ascending[np.maximum(first - 1, 0)]
            indicator[j] = np.count_nonzero(np.diff(ascending)) <= 1
        ends = quantiles[[0, -1]]
        binary = indicator & ((ends == 0) | (ends == 1)).all(axis=0)
        apart = quantiles[-1] - quantiles[0]
        groups = np.arange(d) if groups is None else groups
        return cls(
            mean * unit,
            np.where(constant, 0.0, np.where(indicator, apart, spread * unit)),
            indicator,
            quantiles,
            below,
            groups,
            _with_one_hot(X, groups, binary),
            n_gaps,
            reach,
        )

    @property
    def limits(self) -> tuple[_Array, _Array]:
        """Smallest and largest values (D,) of the columns, to which samples are clipped."""
        beyond = np.where(self.indicator, 0.0, self.reach * self.scale)
        return self.quantiles[0] - beyond, self.quantiles[-1] + beyond

    @cached_property
    def numeric(self) -> NDArray[np.intp]:
        """Columns with more than a few values, which have splines and bins."""
        several = (np.diff(np.sort(self.quantiles, axis=0), axis=0) > 0).sum(axis=0) >= _FEW_VALUES
        return np.flatnonzero(several & (self.scale > 0) & ~self.indicator)

    @cached_property
    def others(self) -> NDArray[np.intp]:
        """Columns with spread that have no splines."""
        rest = self.scale > 0
        rest[self.numeric] = False
        return np.flatnonzero(rest)

    @cached_property
    def categories(self) -> list[NDArray[np.intp]]:
        """Indicators of each column of at least three categories."""
        varying = np.flatnonzero(self.scale > 0)
        varying = varying[np.argsort(self.one_hot[varying], kind="stable")]
        groups = np.split(varying, 1 + np.flatnonzero(np.diff(self.one_hot[varying])))
        return [j for j in groups if len(j) > 2 and self.indicator[j].all()]

    @cached_property
    def levels(self) -> _Array:
        """Weights (D, C) of the indicators whose sums are the levels 1, 2, ... of C categories."""
        return self._numbered([np.arange(1, len(columns) + 1) for columns in self.categories])

    def levels_by(self, X: _Array, outputs: _Array, weight: _Array | None) -> _Array:
        """`levels`, ordered by means of the outputs (n, q) along their first principal axis.

        For two classes and for numbers, the best split of a node into two sets of levels is one
        between consecutive levels in this order (Fisher 1958). Levels below the mean of all samples
        are negative, so that an unknown category lies at the mean. Samples of mean 0 are added to
        each level, because means of few samples are extreme.
        """
        w = np.ones(len(X)) if weight is None else weight / weight.mean()
        centred = w[:, None] * (outputs - np.average(outputs, axis=0, weights=w))
        numbers = []
        for columns in self.categories:
            m = len(columns) + 1
            level = np.einsum("ij,j->i", X[:, columns], np.arange(1, m)).astype(np.intp)
            count = _PSEUDO + np.bincount(level, w, m)[1:]
            sums = np.transpose([np.bincount(level, one, m)[1:] for one in centred.T])
            _, _, axes = np.linalg.svd(sums / np.sqrt(count)[:, None], full_matrices=False)
            axis = axes[0] * np.sign(axes[0][np.abs(axes[0]).argmax()])
            means = np.einsum("ij,j->i", sums, axis) / count
            place = np.argsort(np.argsort(means, kind="stable")) - np.count_nonzero(means < 0)
            numbers.append(place + (place >= 0))
        return self._numbered(numbers)

    def _numbered(self, numbers: Sequence[NDArray[np.intp]]) -> _Array:
        """Weights (D, C) of the indicators, whose sums are these numbers of the levels."""
        out = np.zeros((len(self.mean), len(self.categories)))
        for place, columns in enumerate(self.categories):
            out[columns, place] = numbers[place]
        return out

    @cached_property
    def without_levels(self) -> NDArray[np.intp]:
        """Columns with spread, without indicators of many categories."""
        out = self.scale > 0
        for columns in self.categories:
            out[columns] = len(columns) <= _MAX_INDICATORS
        return np.flatnonzero(out)

    @cached_property
    def splines(self) -> list[BSpline]:
        """For each numeric column a vector of B-splines, constant beyond the outermost knots."""
        at = np.linspace(_OUTER, _GRID - 1 - _OUTER, _KNOTS).round().astype(np.intp)
        return [_basis(self.quantiles[at, j]) for j in self.numeric]

    @property
    def n_columns(self) -> int:
        """Number of columns with spread; the indicators of a category are one column."""
        return len(np.unique(self.groups[self.scale > 0]))

    @property
    def why_no_pairs(self) -> str:
        """Why trees do not read pairs of numeric columns; empty if they do."""
        allowed = 2 <= len(self.numeric) <= _MAX_PAIRED
        return "" if allowed else f"not 2 to {_MAX_PAIRED} numeric columns"

    @cached_property
    def numeric_pairs(self) -> NDArray[np.intp]:
        """Places (2, P) in `Table.ranks` of all pairs of numeric columns."""
        place = np.searchsorted(np.flatnonzero(self.scale > 0), self.numeric)
        return place[np.stack(np.triu_indices(len(place), 1))]

    def owners(self, features: str) -> NDArray[np.intp]:
        """Column (p,) that each feature of `Table.columns` or `Table.splines` is a function of."""
        if features == "columns":
            return np.flatnonzero(self.scale > 0)
        widths = [one.c.shape[1] for one in self.splines]
        return np.concatenate([np.repeat(self.numeric, widths), self.others])

    @cached_property
    def knots(self) -> tuple[_Array, NDArray[np.intp]]:
        """The knots of all splines, column after column, and the first knot of each column."""
        return _side_by_side([basis.t for basis in self.splines])

    @property
    def why_no_splines(self) -> str:
        """Why the columns have no splines; empty if the columns have splines."""
        if not len(self.numeric):
            return "no numeric column"
        many = _DEGREE * len(self.numeric) > _MAX_SPLINES  # each column has at least this degree
        many = many or sum(one.c.shape[1] for one in self.splines) > _MAX_SPLINES
        return f"more than {_MAX_SPLINES:,} features" if many else ""

    def edges(self, count: int) -> list[_Array]:
        """Edges, between values of samples, of each numeric column.

        There are `count` bins, or fewer where a column has ties.
        """
        step = (_GRID - 1) // count
        high, low = self.quantiles[step:-1:step], self.below[step:-1:step]
        edge = low + BETWEEN * (high - low)
        exists = high > low  # the smallest value has no edge below it
        return [np.unique(edge[exists[:, j], j]) for j in self.numeric]

    @cached_property
    def fine_edges(self) -> list[_Array]:
        """Edges of the finer bins of each numeric column."""
        return self.edges(_FINE)

    @cached_property
    def flat_fine_edges(self) -> tuple[_Array, NDArray[np.intp]]:
        """The edges of all finer bins, column after column, and the first edge of each column."""
        return _side_by_side(self.fine_edges)

    @cached_property
    def fine_starts(self) -> NDArray[np.intp]:
        """First indicator of the finer bins of each numeric column; last, their number."""
        starts = self.flat_fine_edges[1]
        return starts + np.arange(len(starts))  # a column has one bin more than edges

    @property
    def n_fine(self) -> int:
        """Number of indicators of finer bins."""
        return int(self.fine_starts[-1])

    @cached_property
    def ranked(self) -> NDArray[np.intp]:
        """Columns with spread and more than two values, which have ranks."""
        return np.flatnonzero((self.scale > 0) & ~self.indicator)

    @cached_property
    def ranked_quantiles(self) -> tuple[_Array, _Array]:
        """Quantiles of the ranked columns and their values of the distribution function.

        Both have shape (columns, Q). Equal quantiles have the mean of their probabilities.
        """
        quantiles = np.ascontiguousarray(self.quantiles[:, self.ranked].T)
        shares = np.empty(quantiles.shape)
        for q, share in zip(quantiles, shares, strict=True):
            first, last = np.searchsorted(q, q, "left"), np.searchsorted(q, q, "right") - 1
            share[:] = (first + last) / 2 / max(len(q) - 1, 1)
        return quantiles, shares

    @cached_property
    def bins(self) -> list[Bins]:
        """The bins of each group of columns with spread."""
        edges = dict(zip(self.numeric.tolist(), self.edges(_BINS), strict=True))
        gaps = len(self.groups) - self.n_gaps
        out = []
        for group in np.unique(self.groups[self.scale > 0]):
            columns = np.flatnonzero((self.groups == group) & (self.scale > 0))
            first = int(columns[0])
            own = edges[first] if first in edges else self._between(first)
            values = int(np.count_nonzero(columns < gaps))
            size = values + 1 if values > 1 else len(own) + len(columns)
            out.append(Bins(size, columns, own))
        return out

    @property
    def bin_counts(self) -> list[int]:
        """Number of bins of each group."""
        return [one.size for one in self.bins]

    def _between(self, j: int) -> _Array:
        """Edges between the different quantiles of a column of few values."""
        values = np.unique(self.quantiles[:, j])
        edges: _Array = values[:-1] + BETWEEN * (values[1:] - values[:-1])
        return edges

    @cached_property
    def flat_bin_edges(self) -> tuple[NDArray[np.intp], _Array, NDArray[np.intp]]:
        """First columns of the groups, edges of all groups, and the first edge of each group."""
        columns = np.array([one.columns[0] for one in self.bins], dtype=np.intp)
        return columns, *_side_by_side([one.edges for one in self.bins])

    def table(self, X: _Array, n_threads: int | None = None) -> Table:
        """Complete samples (n, D), as views read them."""
        return Table(self, np.ascontiguousarray(X, dtype=np.float64), n_threads)


def _mean_and_spread(X: _Array, weight: _Array | None) -> tuple[_Array, _Array, _Array]:
    """Means and standard deviations (D,) in the units (D,), which are the third result."""
    size = np.maximum(X.max(axis=0), -X.min(axis=0))
    unit = np.where(size > 0, size, 1.0)  # so that squares stay finite
    scaled = (X / unit).astype(np.float64, copy=False)
    mean = np.average(scaled, axis=0, weights=weight)
    scaled -= mean
    variance = np.average(np.square(scaled, out=scaled), axis=0, weights=weight)
    return mean, np.sqrt(variance), unit


def _ascending(X: _Array, weight: _Array | None) -> Iterator[tuple[_Array, NDArray[np.intp]]]:
    """Each column in ascending order, and the places of its quantiles."""
    n, at = len(X), np.linspace(0.0, 1.0, _GRID)
    # The factor keeps a quantile at its sample if `at` times the total is rounded up.
    place = np.searchsorted(np.arange(1.0, n + 1), at * n * (1 - 1e-12))
    for start in range(0, X.shape[1], _COLUMNS_AT_ONCE):
        columns = X[:, start : start + _COLUMNS_AT_ONCE].T.copy()
        for column in columns:
            if weight is None:
                column.sort()
                yield column, place
            else:
                order = np.argsort(column)
                cumulated = np.cumsum(weight[order])
                place = np.searchsorted(cumulated, at * cumulated[-1] * (1 - 1e-12))
                yield column[order], np.minimum(place, n - 1)
        del column, columns  # before the next columns are copied


def _with_one_hot(
    X: _Array, groups: NDArray[np.intp], binary: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """The groups, where neighbouring indicators that are never 1 together form one group.

    `binary` are the columns whose entries are all 0 or 1.
    """
    out, alone = groups.copy(), np.bincount(groups)[groups] == 1
    taken = np.ones(len(X), dtype=bool)
    for j in range(X.shape[1]):
        if not (alone[j] and binary[j]):
            taken[:] = True
            continue
        ones = X[:, j] == 1
        if taken.all() or (taken & ones).any():
            taken = ones
        else:
            taken, out[j] = taken | ones, out[j - 1]
    return out


def _side_by_side(parts: Sequence[_Array]) -> tuple[_Array, NDArray[np.intp]]:
    """Concatenated arrays as float64, and the start of each array; last, the total length."""
    starts = np.cumsum([0, *map(len, parts)], dtype=np.intp)
    return np.concatenate([*parts, np.empty(0)]).astype(np.float64, copy=False), starts


def _basis(knots: _Array) -> BSpline:
    """All cubic B-splines on these knots, without the last, whose sum with the others is 1."""
    inner = np.unique(knots)
    if len(inner) == 1:
        inner = np.array([inner[0], inner[0] + max(abs(inner[0]), 1.0)])
    step = (inner[1] - inner[0], inner[-1] - inner[-2])
    below = inner[0] - step[0] * np.arange(_DEGREE, 0, -1)
    above = inner[-1] + step[1] * np.arange(1, _DEGREE + 1)
    t = np.concatenate([below, inner, above])
    count = len(t) - _DEGREE - 1
    return BSpline(t, np.eye(count)[:, :-1], _DEGREE)


@dataclass(frozen=True, eq=False)
class Table:
    """Complete samples and their representations, which are computed when first needed."""

    statistics: TableStatistics
    X: _Array
    n_threads: int | None = None
    origin: tuple[Table, Codes | slice] | None = None  # a table, and indices of its samples

    def __len__(self) -> int:
        return len(self.X)

    def subset(self, indices: Codes | slice) -> Table:
        """Select samples by indices."""
        return Table(self.statistics, self.X[indices], self.n_threads, (self, indices))

    @property
    def without_gaps(self) -> _Array:
        """The columns without indicators of gaps."""
        return self.X[:, : self.X.shape[1] - self.statistics.n_gaps]

    @cached_property
    def columns(self) -> _Features:
        """Standardised columns with spread."""
        stat = self.statistics
        return self._standardised(np.flatnonzero(stat.scale > 0))

    def for_trees(self, levels: _Array, read: NDArray[np.intp] | None = None) -> _Features:
        """Columns, without indicators of many categories, and numbers of the categories' levels.

        `levels` are weights (D, c) of the indicators. Trees separate levels of neighbouring numbers
        by one threshold. `read` are the indices of features to compute instead of all.
        """
        out = self._standardised(self.statistics.without_levels, levels)
        return out if read is None or len(read) == out.shape[1] else out[:, read]

    def with_pairs(self, levels: _Array, read: NDArray[np.intp] | None = None) -> _Features:
        """`for_trees`, and sums and differences of the ranks of all pairs of numeric columns."""
        columns, pairs = self.for_trees(levels), self.statistics.numeric_pairs
        width, count = columns.shape[1], pairs.shape[1]
        if read is None:
            read = np.arange(width + 2 * count)
        own, other = read[read < width], read[read >= width] - width
        i, j = pairs[:, other % count]
        sign = np.where(other < count, 1, -1).astype(np.float32)
        return np.hstack([columns[:, own], self.ranks[:, i] + sign * self.ranks[:, j]])

    def _standardised(self, columns: NDArray[np.intp], levels: _Array | None = None) -> _Features:
        """Standardised columns, followed by the products of all columns with `levels`."""
        mean, scale = self.statistics.mean[columns], self.statistics.scale[columns]
        count = len(columns)
        width = count if levels is None else count + levels.shape[1]
        out = np.empty((len(self), width), dtype=np.float32, order="F")
        for rows in _pieces(len(self)):
            X = self.X[rows]
            np.clip((X[:, columns] - mean) / scale, -1e6, 1e6, out=out[rows, :count])
            if levels is not None:
                out[rows, count:] = np.einsum("ij,jk->ik", X, levels)
        return out

    @cached_property
    def splines(self) -> _Features:
        """B-splines of numeric columns, followed by the other columns, standardised."""
        stat = self.statistics
        splines = core.column_splines(self.X, stat.numeric, *stat.knots, resolve(self.n_threads))
        if not len(stat.others):
            return splines
        return np.concatenate([splines, self._standardised(stat.others)], axis=1)

    @cached_property
    def ranks(self) -> _Features:
        """Ranks of the columns, of variance 1 for columns without ties; indicators as 0 and 1."""
        if self.origin is not None and "ranks" in vars(self.origin[0]):
            return self.origin[0].ranks[self.origin[1]]
        stat = self.statistics
        threads = resolve(self.n_threads)
        ranks: _Features = core.column_ranks(self.X, stat.ranked, *stat.ranked_quantiles, threads)
        varying = np.flatnonzero(stat.scale > 0)
        binary = stat.indicator[varying]
        if not binary.any():
            return ranks
        low, high = stat.quantiles[[0, -1]][:, varying[binary]]
        out = np.empty((len(self.X), len(varying)), dtype=np.float32)
        for rows in _pieces(len(self)):
            out[rows, binary] = (self.X[rows][:, varying[binary]] - low) / (high - low)
        out[:, ~binary] = ranks
        return out

    @cached_property
    def bins(self) -> NDArray[np.int32]:
        """The bin (n, G) of each group of columns; gaps of numbers are in the last bin."""
        stat = self.statistics
        bins = core.column_bins(self.X, *stat.flat_bin_edges, resolve(self.n_threads))
        out: NDArray[np.int32] = bins.astype(np.int32)
        gaps = len(stat.groups) - stat.n_gaps
        for at, (count, columns, _) in enumerate(stat.bins):
            if len(columns) == 1:
                continue
            if columns[-1] >= gaps:  # numbers and the indicator of their gaps
                out[self.X[:, columns[-1]] > 0, at] = count - 1
            else:
                group = self.X[:, columns]
                out[:, at] = np.where(group.any(axis=1), group.argmax(axis=1), count - 1)
        return out

    @cached_property
    def fine(self) -> NDArray[np.intp]:
        """Indices (n, columns) of the indicators of finer bins that are 1, for numeric columns."""
        stat = self.statistics
        threads = resolve(self.n_threads)
        bins = core.column_bins(self.X, stat.numeric, *stat.flat_fine_edges, threads)
        return stat.fine_starts[:-1] + bins


def _pieces(n: int) -> Iterator[slice]:
    """Slices of n samples, so that intermediate results of a slice fit a cache."""
    return (slice(first, first + _ROWS_AT_ONCE) for first in range(0, n, _ROWS_AT_ONCE))


@dataclass(frozen=True, eq=False)
class Kernel:
    """Whitened Gaussian kernel with landmarks (Nyström features, Williams and Seeger 2001).

    Attributes
    ----------
    landmarks : (m, d) array
        Ranks of the samples that are landmarks.
    gamma : float
        Factor of the squared distances, relative to the total variance of the ranks.
    whitening : (m, m) array
        Inverse of the upper triangular Cholesky factor of the landmarks' kernel.
    """

    landmarks: _Features
    gamma: float
    whitening: _Features

    @classmethod
    def fit(cls, ranks: _Features, random: np.random.RandomState, sharpness: float = 1.0) -> Kernel:
        """Choose at most 400 landmarks; `gamma` is `sharpness` over the ranks' total variance.

        A Cholesky factorisation with pivoting orders samples that are drawn at random, and ends
        before samples that the landmarks nearly span.
        """
        indices = np.sort(random.permutation(len(ranks))[:_LANDMARKS])
        drawn = np.ascontiguousarray(ranks[indices])
        variance = float(ranks.var(axis=0, dtype=np.float64).sum())
        gamma = sharpness / variance if variance > 0 else 1.0
        gram = _gaussian(drawn, drawn, gamma, 1).astype(np.float64)
        root, order, m, _ = dpstrf(gram, tol=_LEAST_DISTANCE)
        inverse, _ = dtrtri(root[:m, :m])
        whitening = np.triu(inverse).astype(np.float32, order="C")
        return cls(drawn[order[:m] - 1], gamma, whitening)

    def features(self, ranks: _Features, n_threads: int | None = None) -> _Features:
        """Features (n, p) of ranks."""
        return _product(self.similarities(ranks, n_threads), self.whitening, n_threads)

    def similarities(self, ranks: _Features, n_threads: int | None = None) -> _Features:
        """Kernel (n, m) of ranks with the landmarks."""
        ranks = np.ascontiguousarray(ranks)  # else sums of squares depend on the number of rows
        return _gaussian(ranks, self.landmarks, self.gamma, n_threads)

    def scores(self, ranks: _Features, coef: _Array, n_threads: int | None = None) -> _Array:
        """Features of ranks times `coef` (m, q), without rounding the features to float32."""
        similar = self.similarities(ranks, n_threads).astype(np.float64)
        return _product(similar, self.weights(coef), n_threads)

    def weights(self, coef: _Array) -> _Array:
        """Weights (m, q) of the similarities, for the weights `coef` of the features."""
        weights: _Array = self.whitening.astype(np.float64) @ coef
        return weights


def _product(A: NDArray[_Float], B: Floats, n_threads: int | None) -> NDArray[_Float]:
    """``A B`` by the core, whose rounding depends neither on threads nor on the other samples."""
    B = np.ascontiguousarray(B, dtype=A.dtype)
    out: NDArray[_Float] = core_rows(A, False).scores(B, resolve(n_threads))
    return out


def _gaussian(A: _Features, B: _Features, gamma: float, n_threads: int | None) -> _Features:
    """``exp(-gamma |a - b|^2)`` of all rows a and b, in place."""
    out = _product(A, B.T, n_threads)
    out *= 2.0
    out -= np.einsum("ij,ij->i", A, A)[:, None]
    out -= np.einsum("ij,ij->i", B, B)
    np.minimum(out, 0.0, out=out)
    out *= gamma
    return np.exp(out, out=out)


@dataclass(frozen=True, eq=False)
class Interactions:
    """Indicators of bins of columns and of cells of pairs of columns.

    Attributes
    ----------
    counts : (G,) array of int
        Bins of the columns.
    pairs : (P, 2) array of int
        The pairs of columns.
    cells : list of (c,) array of int
        For each pair, the cells with training samples.
    """

    counts: NDArray[np.intp]
    pairs: NDArray[np.intp]
    cells: list[NDArray[np.intp]]

    @classmethod
    def fit(cls, counts: Sequence[int], tables: _Array, most: int) -> Interactions:
        """Fit to the tables of counts (k, bins, bins) of classes.

        The pairs that are chosen have at most `most` cells together.
        """
        sizes = np.asarray(counts, dtype=np.intp)
        chosen, total = [], 0
        for i, j, occupied in ranked_pairs(tables, sizes):
            if total + occupied > most:
                break
            chosen.append((i, j))
            total += occupied
        pairs = np.asarray(chosen, dtype=np.intp).reshape(-1, 2)
        counted, ends = tables.sum(axis=0), np.cumsum(sizes)
        own = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        cells = [np.flatnonzero(counted[own[i], own[j]]) for i, j in pairs]
        return cls(sizes, pairs, cells)

    def features(self, bins: NDArray[np.int32], fine: NDArray[np.intp], n_fine: int) -> _Features:
        """Indicators (n, p) of finer bins, of which those at `fine` are 1, of bins and of cells."""
        first = n_fine + int(self.counts.sum())
        n, width = len(bins), first + sum(map(len, self.cells))
        out = np.zeros((n, width), dtype=np.float32)
        entries, starts = out.reshape(-1), width * np.arange(n)[:, None]
        entries[starts + fine] = 1.0
        entries[starts + n_fine + np.cumsum([0, *self.counts[:-1]]) + bins] = 1.0
        i, j = self.pairs.T
        place = self._places.take(bins[:, i] * self.counts[j] + bins[:, j] + self._cell_starts)
        entries[(starts + first + place)[place >= 0]] = 1.0
        return out

    @cached_property
    def _cell_starts(self) -> NDArray[np.intp]:
        """First cell of each pair among all cells, with or without samples."""
        return np.cumsum([0, *self.counts[self.pairs].prod(axis=1)], dtype=np.intp)[:-1]

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """Index of the indicator of each cell; -1 for cells without training samples."""
        out = np.full(int(self.counts[self.pairs].prod(axis=1).sum()), -1)
        if self.cells:
            starts = zip(self._cell_starts, self.cells, strict=True)
            seen = np.concatenate([start + one for start, one in starts])
            out[seen] = np.arange(len(seen))
        return out


def bin_tables(
    bins: NDArray[np.int32],
    counts: Sequence[int],
    codes: Codes,
    n_classes: int,
    weight: _Array | None,
    n_threads: int | None = None,
) -> _Array:
    """Tables of counts (k, B, B) of all pairs of bins, for each class: second moments."""
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.intp)
    width = int(np.sum(counts))
    out, threads = np.zeros((n_classes, width, width)), resolve(n_threads)
    for c in range(n_classes):
        rows = np.flatnonzero(codes == c)
        B = np.zeros((len(rows), width), dtype=np.float64 if weight is not None else np.float32)
        B[np.arange(len(rows))[:, None], bins[rows] + starts] = 1.0
        weighted = B if weight is None else B * weight[rows, None]
        out[c] = core_rows(B, False).products(weighted, threads)
    return out


def interactions_fit_in(counts: Sequence[int], n_classes: int) -> bool:
    """Whether tables of all pairs of bins are small enough."""
    width = int(np.sum(counts)) if len(counts) else 0
    return len(counts) > 1 and width <= MOST_BINS and n_classes * width**2 <= _MAX_COUNTS


def ranked_pairs(tables: _Array, sizes: NDArray[np.intp]) -> list[tuple[int, int, int]]:
    """Pairs of columns with their numbers of cells, by descending standardised gain."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
    total = tables.sum(axis=0)

    def blocks(matrix: _Array) -> _Array:
        summed = np.add.reduceat(matrix, starts, axis=0)
        out: _Array = np.add.reduceat(summed, starts, axis=1)
        return out

    def entropy(counts: _Array) -> _Array:  # x log x
        return counts * np.log(np.where(counts > 0, counts, 1.0))

    joint = blocks(entropy(total)) - sum(blocks(entropy(one)) for one in tables)  # n H(y | i, j)
    occupied = blocks((total > 0).astype(np.float64))
    own = np.diag(joint)  # n H(y | i): bins of one column meet themselves alone
    classes = np.array([np.trace(one[: sizes[0], : sizes[0]]) for one in tables])
    base = float(entropy(np.array([classes.sum()])).sum() - entropy(classes).sum())
    gain = own[:, None] + own - base - joint
    used = np.diag(occupied)
    k = int((classes > 0).sum())
    freedom = np.maximum((k - 1) * np.maximum(occupied - used[:, None] - used + 1, 1), 1)
    score = (2.0 * gain - freedom) / np.sqrt(2.0 * freedom)
    i, j = np.tril_indices(len(sizes), -1)
    order = np.argsort(-score[i, j], kind="stable")
    return [(int(i[o]), int(j[o]), int(occupied[i[o], j[o]])) for o in order]

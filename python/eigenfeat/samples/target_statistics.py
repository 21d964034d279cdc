r"""Target statistics: the mean target of each category, shrunk towards the mean of all samples.

With weight W_l and mean t_l of the samples of category l, and the mean t of all samples, the
statistic of category l is

.. math:: s_l = \frac{W_l t_l + m t}{W_l + m}, \qquad m = \sigma^2 / \tau^2,

where :math:`\sigma^2` is the variance of targets within categories and :math:`\tau^2` the variance
of the categories' means, by analysis of variance (empirical Bayes; Micci-Barreca, "A preprocessing
scheme for high-cardinality categorical attributes", 2001). The targets of classes are their
indicators, so that the statistics are frequencies.

The statistic of a training sample comes from the samples of the other folds, as in scikit-learn's
`TargetEncoder`, so that features do not contain the sample's own label. t and m come from all
samples: if they came from the other folds, they would reveal the labels of the fold.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Codes, Floats
from eigenfeat.samples.blocks import ArrayBlocks, RowBlocks, add
from eigenfeat.samples.columns import TableColumns
from eigenfeat.samples.labelled import Block

__all__ = ["CategoryTargets", "FoldStatistics", "encoded_table", "with_statistics"]

_MAX_TARGETS = 10  # statistics per column
_FOLDS = 5  # folds of the training samples
_MIN_SHRINKAGE, _MAX_SHRINKAGE = 1.0, 1e9  # bounds of m, a number of samples

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CategoryTargets:
    """Targets whose means encode categories."""

    values: _Array  # (k, m) targets of the samples, or indicators of the classes
    names: list[str]  # of the columns of `values`
    mean: _Array  # (m,) weighted
    variance: _Array  # (m,) weighted
    codes: Codes  # (n,) row of `values` of each sample
    folds: NDArray[np.uint8]  # (n,) stratified by the targets; `_FOLDS` for samples of weight 0

    @classmethod
    def of(cls, y: Any, weight: _Array | None, *, continuous: bool) -> CategoryTargets:
        """Targets of checked labels (n,), or with `continuous` of numbers (n,) or (n, q)."""
        n = len(y)
        w = np.ones(n) if weight is None else weight
        if not continuous:
            labels, codes = np.unique(y[w > 0], return_inverse=True)
            return cls.of_classes(labels, codes, np.bincount(codes, w[w > 0]).astype(float), w > 0)
        values = np.asarray(y, dtype=np.float64).reshape(n, -1)
        q = values.shape[1]
        names = ["mean"] if q == 1 else [f"mean_{j}" for j in range(q)]
        return cls._of_values(values, names, w, np.arange(n), _folds(values[:, 0], w > 0))

    @classmethod
    def of_classes(
        cls, classes: NDArray[Any], codes: Codes, weight: _Array, used: NDArray[np.bool_]
    ) -> CategoryTargets:
        """Targets of classes (k,) with total weights (k,).

        `used` (n,) is the mask of the samples of positive weight, and `codes` their classes. There
        is one column for two classes, and one column per class for three to ten classes. With more
        classes, the ten classes with the largest variance have columns.
        """
        first = int(len(classes) == 2)
        names = [str(label) for label in classes[first:].tolist()]
        all_codes = np.zeros(len(used), dtype=codes.dtype)
        all_codes[used] = codes
        values = np.eye(len(classes))[:, first:]
        return cls._of_values(values, names, weight, all_codes, _folds(all_codes, used))

    @classmethod
    def _of_values(
        cls, values: _Array, names: list[str], weight: _Array, codes: Codes, folds: Any
    ) -> CategoryTargets:
        """Keep the columns of `values` with the largest variance; `weight` (k,) weights rows."""
        share = weight / weight.sum()
        mean = share @ values
        variance = share @ (values - mean) ** 2
        j = np.sort(np.argsort(-variance, kind="stable")[:_MAX_TARGETS])
        return cls(values[:, j], [names[i] for i in j], mean[j], variance[j], codes, folds)


def _folds(y: NDArray[Any], used: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Random folds of the samples in use, stratified by the values of y; `_FOLDS` for others."""
    rows = np.flatnonzero(used)
    drawn = rows[np.random.RandomState(0).permutation(len(rows))]
    folds = np.full(len(y), _FOLDS, dtype=np.uint8)
    folds[drawn[np.argsort(y[drawn], kind="stable")]] = np.arange(len(rows)) % _FOLDS
    return folds


@dataclass(frozen=True, eq=False)
class FoldStatistics:
    """Statistics that replace the codes of categories, by the fold of a sample."""

    # By the index of a column of L codes: (6, L, m) statistics from the samples outside of each of
    # five folds, and from all samples.
    by_fold: dict[int, _Array]
    folds: NDArray[np.uint8]  # (n,) of the samples

    @classmethod
    def fit(
        cls, blocks: RowBlocks, n_codes: Mapping[int, int], targets: CategoryTargets
    ) -> FoldStatistics:
        """Compute the statistics of columns with `n_codes` codes by index, in one pass."""
        sums = blocks.reduce(_fold_sums, add, n_codes, targets)
        by_fold = {
            place: _statistics(total, targets) for place, total in zip(n_codes, sums, strict=True)
        }
        return cls(by_fold, targets.folds)

    @property
    def tables(self) -> dict[int, _Array]:
        """Statistics (L, m) of all samples."""
        return {place: by_fold[-1] for place, by_fold in self.by_fold.items()}

    def encoded(self, X: Floats, rows: slice | Codes) -> Floats:
        """Replace codes by statistics; `rows` are the samples' indices among all samples."""
        widths = np.ones(X.shape[1], dtype=np.intp)
        for place, by_fold in self.by_fold.items():
            widths[place] = by_fold.shape[2]
        out = np.repeat(X, widths, axis=1)
        starts, folds = np.cumsum(widths) - widths, self.folds[rows]
        for place, by_fold in self.by_fold.items():
            start = starts[place]
            codes = X[:, place].astype(np.intp)
            out[:, start : start + widths[place]] = by_fold[folds, codes]
        return out


def _fold_sums(
    block: Block, n_codes: Mapping[int, int], targets: CategoryTargets
) -> tuple[_Array, ...]:
    """Sums (6, L, m + 1) of targets and of weights by fold and code, for each column of codes."""
    rows = slice(block.start, block.start + len(block))
    terms = np.column_stack([targets.values[targets.codes[rows]], np.ones(len(block))])
    if block.weight is not None:
        terms *= np.asarray(block.weight)[:, None]
    sums: list[_Array] = []
    for place, count in n_codes.items():
        cells = targets.folds[rows].astype(np.intp) * count + block.X[:, place].astype(np.intp)
        columns: list[_Array] = [
            np.bincount(cells, term, (_FOLDS + 1) * count).astype(np.float64, copy=False)
            for term in terms.T
        ]
        sums.append(np.stack(columns, axis=-1).reshape(_FOLDS + 1, count, -1))
    return tuple(sums)


def _statistics(sums: _Array, targets: CategoryTargets) -> _Array:
    """Statistics (6, L, m) by fold from the sums of `_fold_sums`."""
    n = float((targets.folds < _FOLDS).sum())
    total = sums.sum(axis=0)
    sums, total = sums * (n / total[:, -1].sum()), total * (n / total[:, -1].sum())
    m = _shrinkage(total, n, targets)
    outside = total - sums  # the last sums, of samples without weight, are 0
    return (outside[..., :-1] + m * targets.mean) / (np.maximum(outside[..., -1:], 0.0) + m)


def _shrinkage(total: _Array, n: float, targets: CategoryTargets) -> _Array:
    """The shrinkage m of each target, a number of samples."""
    used: _Array = total[total[:, -1] > 0]
    weight = used[:, -1]
    squares = weight @ (used[:, :-1] / weight[:, None] - targets.mean) ** 2  # between categories
    within = np.maximum(n * targets.variance - squares, 0.0) / max(n - len(used), 1)
    effective = max(n - float(weight @ weight) / n, 1.0)
    between = (squares - (len(used) - 1) * within) / effective
    ratio = np.full(len(within), _MAX_SHRINKAGE)
    np.divide(within, between, out=ratio, where=between > within / _MAX_SHRINKAGE)
    return np.clip(ratio, _MIN_SHRINKAGE, _MAX_SHRINKAGE)


# ---- samples of a fit, encoded -------------------------------------------------------------------


def encoded_table(
    X: Any, y: Any, sample_weight: _Array | None, *, continuous: bool
) -> tuple[TableColumns, Floats]:
    """Encoder of a table's columns, and the encoded samples (n, D), with NaN for missing numbers.

    Columns of many categories are encoded by out-of-fold statistics of the targets: checked labels
    y (n,), or with `continuous` numbers (n,) or (n, q). Samples of weight 0 are ignored.
    """
    encoder = TableColumns().fit(X, sample_weight)
    coded = encoder.transform(X)
    if not encoder.coded:
        return encoder, coded
    targets = CategoryTargets.of(y, sample_weight, continuous=continuous)
    blocks = ArrayBlocks(coded, sample_weight=sample_weight)
    encoder, statistics = with_statistics(encoder, blocks, targets)
    return encoder, statistics.encoded(coded, slice(None))


def with_statistics(
    encoder: TableColumns, blocks: RowBlocks, targets: CategoryTargets
) -> tuple[TableColumns, FoldStatistics]:
    """Return an encoder that replaces codes by statistics, and the statistics of `blocks`."""
    statistics = FoldStatistics.fit(blocks, encoder.coded, targets)
    result = copy.copy(encoder)  # blocks keep the encoder by codes
    result.set_statistics(statistics.tables, targets.names)
    return result, statistics

"""Sums over samples, as plain functions for any engine that can reduce.

Each sum has a function of one block and a function that merges two results. Merging is associative
and commutative up to rounding, so that `RowBlocks.reduce`, Dask, Spark's ``treeReduce`` or Ray may
use any tree. The functions have no side effects: a result that is lost with its worker can be
computed again.

The functions take blocks of raw samples. Sums over features, as `BlockSamples` reads them, are in
the files that use them (`labelled_moments`, `linear.logit_problem`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from eigenfeat._base.labels import LabelTable
from eigenfeat._base.types import Codes, DType, Labels
from eigenfeat._base.validation import check_weights
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.samples.blocks import Checksum, RowTransform, check_finite, check_known

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import DTypeLike

    from eigenfeat.samples.blocks import Block

__all__ = [
    "BlockScan",
    "Piece",
    "add",
    "merge_moments",
    "merge_pooled",
    "merge_scans",
    "moments",
    "pooled_moments",
    "scan",
    "sliced_moments",
    "targets",
]

_Array = npt.NDArray[np.float64]


def moments(
    block: Block,
    classes: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    n_threads: int | None = None,
) -> ClassMoments:
    """Class moments (Karampatziakis and Mineiro 2014, eq. 2) of one labelled block."""
    if block.y is None:
        raise ValueError(f"y: expected the labels of the samples from {block.start} on, got None")
    result = ClassMoments(classes, dtype)
    return result.update(block.X, block.y, block.weight, n_threads=n_threads)


def merge_moments(a: ClassMoments, b: ClassMoments) -> ClassMoments:
    """Merge two moments; changes and returns `a`."""
    return a.merge(b)


def pooled_moments(block: Block, reading: RowTransform, label: Hashable = 0) -> ClassMoments | None:
    """Moments of one block as one class, checked; None without samples of positive weight."""
    return _grouped_moments(block, reading, lambda rows: np.full(len(rows), label))


def merge_pooled(a: ClassMoments | None, b: ClassMoments | None) -> ClassMoments | None:
    """Merge two results of `pooled_moments`; changes and returns `a` unless it is None."""
    if a is None or b is None:
        return b if a is None else a
    return a.merge(b)


def sliced_moments(block: Block, reading: RowTransform, edges: _Array) -> ClassMoments | None:
    """Moments of the slices of a continuous target; `edges` are their lower ends but the first."""

    def slices(rows: Block) -> Labels:
        return np.searchsorted(edges, np.asarray(rows.y, dtype=np.float64), side="right")

    return _grouped_moments(block, reading, slices)


def _grouped_moments(
    block: Block, reading: RowTransform, labels_of: Callable[[Block], Labels]
) -> ClassMoments | None:
    checked = reading.checked(block)
    check_finite(checked.X, block.start)
    rows = reading.weighted(checked)
    if len(rows) == 0:
        return None
    return ClassMoments().update(rows.X, labels_of(rows), rows.weight, n_threads=reading.n_threads)


def targets(block: Block) -> list[tuple[int, Labels, _Array | None]]:
    """A list of one tuple: start of a block, targets and weights of its samples with weight."""
    if block.y is None:
        raise ValueError(f"y: expected the targets of the samples from {block.start} on, got None")
    y, weight = np.asarray(block.y), check_weights(block.weight, len(block), block.start)
    if weight is None:
        return [(block.start, y, None)]
    return [(block.start, y[weight > 0], weight[weight > 0])]


@dataclass(frozen=True, eq=False)
class Piece:
    """Labels of one block."""

    start: int
    n_samples: int
    codes: Codes  # (m,) indices into `labels`, of the samples with weight
    labels: tuple[Hashable, ...]
    weighted: npt.NDArray[np.bool_] | None  # mask of the samples with weight; None: all
    weights: _Array  # sums of the samples' weights by label


@dataclass(eq=False)
class BlockScan:
    """Result of a first pass over blocks."""

    n_features: int
    dtype: DType  # float32 if all blocks are, else float64
    sparse: bool  # whether some blocks are sparse
    checksum: Checksum
    table: LabelTable  # labels of samples with weight
    weight: float | None  # sum of the weights; None without weights
    heaviest: float  # largest weight; 0 without weights
    pieces: list[Piece] = field(default_factory=list)  # one per block, in any order
    moments: ClassMoments | None = None
    missing: bool = False  # whether some entries are missing


def scan(block: Block, reading: RowTransform, with_moments: bool = False) -> BlockScan:
    """Check one raw block; collect its labels and optionally the moments of its classes.

    Raises
    ------
    ValueError
        If samples are not finite (the message gives row and column), or labels are missing.
    """
    checked = reading.checked(block)
    missing = _is_incomplete(checked.X, block.start) if reading.allows_missing else False
    if not missing:
        check_finite(checked.X, block.start)
    if block.y is None:
        raise ValueError(f"y: expected the labels of the samples from {block.start} on, got None")
    n = len(checked)
    keep = None if checked.weight is None else checked.weight > 0
    rows = reading.weighted(checked)
    codes, table = LabelTable().encode(rows.y, len(rows), block.start)
    result = None
    if with_moments and len(rows) and not missing:
        result = ClassMoments().update(rows.X, rows.y, rows.weight, n_threads=reading.n_threads)
    narrow = codes.astype(np.min_scalar_type(max(len(table) - 1, 0)))
    weights = np.bincount(codes, rows.weight, len(table)).astype(np.float64)
    keep = None if keep is None or keep.all() else keep
    piece = Piece(block.start, n, narrow, table.labels, keep, weights)
    return BlockScan(
        checked.X.shape[1],
        checked.X.dtype,
        not isinstance(checked.X, np.ndarray),
        Checksum.of(checked.X),
        table,
        None if checked.weight is None else float(checked.weight.sum()),
        0.0 if checked.weight is None else float(checked.weight.max(initial=0.0)),
        [piece],
        result,
        missing,
    )


def merge_scans(a: BlockScan, b: BlockScan) -> BlockScan:
    """Merge two scans; changes and returns `a`."""
    if a.n_features != b.n_features:
        first, later = sorted([a, b], key=lambda part: min(p.start for p in part.pieces))
        start = min(piece.start for piece in later.pieces)
        raise ValueError(
            f"X: expected {first.n_features} columns, got {later.n_features} in the block from row "
            f"{start} on"
        )
    if (a.weight is None) != (b.weight is None):
        without = a if a.weight is None else b
        start = min(piece.start for piece in without.pieces)
        raise ValueError(
            "sample_weight: expected weights with all blocks or none, got none in the block from "
            f"row {start} on"
        )
    if b.table.dtype is not None:
        a.table = a.table.joined(b.table.labels, b.table.dtype, "y")
    a.dtype = np.result_type(a.dtype, b.dtype)
    a.sparse |= b.sparse
    a.missing |= b.missing
    a.checksum += b.checksum
    a.weight = None if a.weight is None or b.weight is None else a.weight + b.weight
    a.heaviest = max(a.heaviest, b.heaviest)
    a.pieces += b.pieces
    if a.moments is None or b.moments is None:
        a.moments = a.moments or b.moments
    else:
        a.moments.merge(b.moments)
    return a


def add(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Add tuples of numbers and arrays; changes the arrays of `a`."""
    result = list(a)
    for i, other in enumerate(b):
        result[i] += other
    return tuple(result)


def _is_incomplete(X: Any, start: int) -> bool:
    """Whether dense samples have NaN; ValueError if they have NaN and infinity."""
    if not isinstance(X, np.ndarray) or not np.isnan(X).any():
        return False
    check_known(X, start)
    return True

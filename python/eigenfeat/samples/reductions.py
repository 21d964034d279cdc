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
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from eigenfeat._base.types import Labels
from eigenfeat._base.validation import check_weights
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.samples.blocks import RowTransform, check_finite

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import DTypeLike

    from eigenfeat.samples.labelled import Block

__all__ = [
    "add",
    "grouped_moments",
    "moments",
    "one_group",
    "slices",
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


def grouped_moments(
    block: Block, reading: RowTransform, groups: Callable[[Block], Labels]
) -> ClassMoments | None:
    """Moments of the groups of a block's samples; None without samples of positive weight."""
    checked = reading.checked(block)
    check_finite(checked.X, block.start)
    rows = reading.weighted(checked)
    if len(rows) == 0:
        return None
    return ClassMoments().update(rows.X, groups(rows), rows.weight, n_threads=reading.n_threads)


def one_group(block: Block, label: Hashable) -> Labels:
    """The same label for all samples."""
    return np.full(len(block), label)


def slices(block: Block, edges: _Array) -> Labels:
    """Slices of a continuous target; `edges` are their lower ends but the first."""
    return np.searchsorted(edges, np.asarray(block.y, dtype=np.float64), side="right")


def targets(block: Block) -> list[tuple[int, Labels, _Array | None]]:
    """A list of one tuple: start of a block, targets and weights of its samples with weight."""
    if block.y is None:
        raise ValueError(f"y: expected the targets of the samples from {block.start} on, got None")
    y, weight = np.asarray(block.y), check_weights(block.weight, len(block), block.start)
    if weight is None:
        return [(block.start, y, None)]
    return [(block.start, y[weight > 0], weight[weight > 0])]


def add(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Add tuples of numbers and arrays; changes the arrays of `a`."""
    result = list(a)
    for i, other in enumerate(b):
        result[i] += other
    return tuple(result)

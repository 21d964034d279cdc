"""Class moments of rows that are distributed over workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eigenfeat.distributed.blocks import DaskBlocks
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.rows import reductions

if TYPE_CHECKING:
    from dask.array import Array
    from dask.dataframe import DataFrame, Series
    from numpy.typing import ArrayLike, DTypeLike

__all__ = ["class_moments"]


def class_moments(
    X: Array | DataFrame,
    y: Array | Series | str,
    sample_weight: Array | Series | str | None = None,
    classes: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    split_every: int = 4,
    n_threads: int = 1,
) -> ClassMoments:
    """Compute the moments of every class, in one pass and one tree of merges.

    Parameters
    ----------
    X, y, sample_weight
        As in `DaskBlocks`.
    classes, dtype
        As in `ClassMoments`.
    split_every : int >= 2, default=4
        Number of results that are merged in one task.
    n_threads : int, default=1
        Number of threads of a task.

    Returns
    -------
    ClassMoments
        Equal to those of one machine up to rounding, and bitwise equal for the same partitions,
        whatever the workers. A message between workers has ``4 k d (d + 1)`` bytes.
    """
    blocks = DaskBlocks(X, y, sample_weight, split_every=split_every, n_threads=n_threads)
    return blocks.reduce(reductions.moments, reductions.merge_moments, classes, dtype)

"""The sums over rows that fits are made of, as plain functions for any engine that can reduce.

Each is a pair: what one block of rows gives, and how two such results merge. Merging is associative
and commutative to rounding, so that any tree will do; `RowBlocks.reduce`, Dask, Spark's
``treeReduce`` or Ray call them alike. They have no effects, and a result that was lost with its
worker can be computed again.
"""

from __future__ import annotations

from typing import Any

from .blocks import Block
from .moments import ClassMoments

__all__ = ["merge_moments", "moments"]


def moments(
    block: Block, classes: Any = None, dtype: Any = None, n_threads: int | None = None
) -> ClassMoments:
    """Class moments (Karampatziakis and Mineiro 2014, eq. 2) of one block of labelled rows."""
    if block.y is None:
        raise ValueError(f"y: expected the labels of the rows from {block.start} on, got None")
    found = ClassMoments(classes, dtype)
    return found.update(block.X, block.y, block.weight, n_threads=n_threads)


def merge_moments(a: ClassMoments, b: ClassMoments) -> ClassMoments:
    """Moments of the rows of both; changes and returns `a`."""
    return a.merge(b)

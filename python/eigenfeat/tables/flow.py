"""Blocks on their way: memory that is used again, and a thread that reads ahead."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

import numpy as np

from eigenfeat._base.types import DType, Floats

__all__ = ["Buffers", "read_ahead"]

_Item = TypeVar("_Item")
_END = object()
_LINE_BYTES = 64  # of the cache


class Buffers:
    """Arrays of one shape whose memory is used again once nobody has a view of it.

    New memory costs a page fault for every 4 KB, which takes as long as reading them. With
    `by_columns` columns are contiguous, an odd number of cache lines from each other: otherwise
    many would have their places in few sets of the cache.
    """

    def __init__(
        self,
        rows: int,
        columns: int,
        dtype: DType,
        by_columns: bool = False,
        keep: int = 4,
    ) -> None:
        line = _LINE_BYTES // dtype.itemsize
        self._shape = (
            (columns, (rows // line | 1) * line + 2 * line) if by_columns else (rows, columns)
        )
        self._rows, self._by_columns = rows, by_columns
        self._dtype, self._keep = dtype, keep
        self._free: list[memoryview] = []

    def take(self) -> Floats:
        """Return an array with arbitrary entries."""
        size = max(self._shape[0] * self._shape[1], 1)
        try:
            memory = self._free.pop()
        except IndexError:
            try:
                memory = np.empty(size, dtype=self._dtype).data.cast("B")
            except MemoryError:
                wanted = size * self._dtype.itemsize
                raise MemoryError(
                    f"block_rows: expected blocks that fit into memory, got {self._rows} rows, "
                    f"which take {wanted:,} bytes"
                ) from None
        # The base of every view of this array is the array itself: it goes when the last one does.
        array = np.frombuffer(memory, dtype=self._dtype)
        weakref.finalize(array, self._return, memory).atexit = False
        view = array[: self._shape[0] * self._shape[1]].reshape(self._shape)
        return view[:, : self._rows].T if self._by_columns else view

    def _return(self, memory: memoryview) -> None:
        if len(self._free) < self._keep:
            self._free.append(memory)


def read_ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """The same items, each made by another thread while the one before it is in use.

    Closing the iterator waits for the item that is being made, and closes `items`.
    """
    with closing(items), ThreadPoolExecutor(1, "eigenfeat-read-ahead") as pool:  # type: ignore[type-var]
        ahead = pool.submit(next, items, _END)
        while (item := ahead.result()) is not _END:
            ahead = pool.submit(next, items, _END)
            yield item  # type: ignore[misc]
            del item  # its memory may be wanted for the next but one

"""Blocks on their way: memory that is used again, and a thread that reads ahead."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from eigenfeat._base.types import DType, Floats

__all__ = ["Buffers", "read_ahead"]

_Item = TypeVar("_Item")
_POLL_SECONDS = 0.2
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
        found = array[: self._shape[0] * self._shape[1]].reshape(self._shape)
        return found[:, : self._rows].T if self._by_columns else found

    def _return(self, memory: memoryview) -> None:
        if len(self._free) < self._keep:
            self._free.append(memory)


class _End:
    """The last thing in a queue: the error that ended the reading, or None."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def read_ahead(items: Iterator[_Item], depth: int = 1) -> Iterator[_Item]:
    """The same items, of which up to `depth` are made by another thread before they are asked for.

    Closing the iterator stops the thread, which closes `items`.
    """
    waiting: queue.Queue[Any] = queue.Queue(depth)
    stopped = threading.Event()

    def put(item: Any) -> None:
        while not stopped.is_set():
            try:
                return waiting.put(item, timeout=_POLL_SECONDS)
            except queue.Full:
                continue

    def work() -> None:
        error = None
        try:
            for item in items:
                put(item)
                del item  # its memory may be wanted for the next but one
                if stopped.is_set():
                    break
        except BaseException as failure:
            error = failure
        finally:
            if hasattr(items, "close"):
                items.close()
            put(_End(error))

    thread = threading.Thread(target=work, name="eigenfeat-read-ahead", daemon=True)
    thread.start()
    try:
        while not isinstance(item := waiting.get(), _End):
            yield item
            del item
        if item.error is not None:
            raise item.error
    finally:
        stopped.set()
        thread.join()

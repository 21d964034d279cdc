"""Rows of a Dask array or data frame as blocks, reduced where they are."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from eigenfeat import _threads
from eigenfeat._validation import check_whole
from eigenfeat.blocks import ArrayBlocks, Block, RowBlocks, joined

from ._dask import module
from ._partitions import Partitions, partitions

__all__ = ["DaskBlocks"]

_Result = TypeVar("_Result")


class DaskBlocks(RowBlocks):
    """Labelled rows of a Dask collection; a partition is one block, or several if it is large.

    Parameters
    ----------
    X : dask array of shape (n, d), or dask data frame
        Chunks may be arrays or CSR matrices. Columns are put into one chunk.
    y : dask array or series, array-like of shape (n,), or name of a column, optional
        Labels of any type that can be ordered. The column of a data frame is then no feature.
    sample_weight : the same kinds, optional
        Weights >= 0.
    block_rows : int, optional
        Rows of a block inside a partition; by default so many that a block has some 64 MB.
    split_every : int >= 2, default=4
        How many results are merged in one task. The shape of the tree depends on it and on the
        partitions alone.
    n_threads : int, default=1
        Threads of a task that is not told how many. A worker runs as many tasks side by side as
        it has threads of its own.

    Raises
    ------
    ValueError
        If labels or weights are not one a row, or `X` is not a matrix of rows.
    ImportError
        If there is no Dask.

    Notes
    -----
    Numbers of rows that Dask does not know (data frames, filtered arrays) are found by one pass
    over the partitions here. Every later pass makes the partitions anew from their source: rows
    that fit into the workers' memory are best persisted before, ``X = X.persist()``.
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        block_rows: int | None = None,
        split_every: int = 4,
        n_threads: int = 1,
    ) -> None:
        if block_rows is not None:
            block_rows = check_whole(block_rows, "block_rows", at_least=1)
        self.block_rows = block_rows
        self.split_every = check_whole(split_every, "split_every", at_least=2)
        self.n_threads = check_whole(n_threads, "n_threads", at_least=1)
        self._partitions: Partitions = partitions(X, y, sample_weight)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self._partitions.lengths)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self._partitions.n_features

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the columns, if all are strings."""
        return self._partitions.names

    def __iter__(self) -> Iterator[Block]:
        """Bring one partition after the other here."""
        for sources, start in self._sources():
            (part,) = module("dask").compute(sources)
            yield from _Pieces(self._partitions.read(*part), start, self.block_rows)

    def reduce(
        self,
        function: Callable[..., _Result],
        merge: Callable[[_Result, _Result], _Result],
        *arguments: Any,
    ) -> _Result:
        """Merge what a function returns for every block, on the workers; see `RowBlocks.reduce`.

        `arguments` are a task of their own in the graph: sent once, fetched by workers from each
        other, and there again when a worker is lost. So is each result that `merge` may change: it
        gets copies, for Dask may hand out a task's result twice.
        """
        dask = module("dask")
        pass_ = _Pass(
            self._partitions.read, function, merge, arguments, self.block_rows, self.n_threads
        )
        shared = _literal(pass_)
        leaf = dask.delayed(_of_partition, pure=False, traverse=False)
        node = dask.delayed(_of_results, pure=False, traverse=False)
        results = [leaf(shared, start, *sources) for sources, start in self._sources()]
        if not results:
            raise ValueError("X: expected at least one block of rows, got none")
        while len(results) > 1:
            groups = [
                results[i : i + self.split_every] for i in range(0, len(results), self.split_every)
            ]
            results = [node(shared, *group) if len(group) > 1 else group[0] for group in groups]
        return computed(results)[0]

    def take(self, rows: npt.NDArray[np.intp]) -> Block:
        """Rows by their numbers among all rows, ascending; only these are brought here."""
        wanted = np.asarray(rows, dtype=np.int64)
        dask = module("dask")
        pick = dask.delayed(_taken, pure=False, traverse=False)
        lengths, parts = self._partitions.lengths, []
        for (sources, start), length in zip(self._sources(), lengths, strict=True):
            first, last = np.searchsorted(wanted, [start, start + length])
            if last > first:
                local = _literal(wanted[first:last] - start)
                parts.append(pick(self._partitions.read, start, local, *sources))
        return joined(computed(parts))

    def _sources(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        """What each partition is read from, and the number of its first row."""
        starts = np.cumsum([0, *self._partitions.lengths])[:-1].tolist()
        return zip(self._partitions.sources, starts, strict=True)


def computed(tasks: Sequence[Any]) -> list[Any]:
    """Results of tasks, by whatever scheduler is current."""
    dask = module("dask")
    if "distributed" not in sys.modules:  # whose settings are not there yet, nor any client
        return list(dask.compute(*tasks))
    # What a pass needs goes with its graph, so that no lost worker takes it along; Dask would
    # rather have it scattered, and says so from 10 MB on.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        return list(dask.compute(*tasks))


def _literal(value: Any) -> Any:
    """A task that is nothing but a value."""
    return module("dask").delayed(value, pure=False, traverse=False)


@dataclass(frozen=True, eq=False)
class _Pass:
    """What all tasks of one pass over the rows share."""

    read: Callable[..., Any]
    function: Callable[..., Any]
    merge: Callable[[Any, Any], Any]
    arguments: tuple[Any, ...]
    block_rows: int | None
    n_threads: int


class _Pieces(RowBlocks):
    """Blocks of one partition, numbered among all rows."""

    def __init__(self, block: Block, start: int, block_rows: int | None) -> None:
        self._blocks = ArrayBlocks(block.X, block.y, block.weight, block_rows)
        self._start = start

    def __iter__(self) -> Iterator[Block]:
        return (replace(block, start=self._start + block.start) for block in self._blocks)


def _of_partition(pass_: _Pass, start: int, *sources: Any) -> Any:
    """One partition's share of a reduction."""
    with _threads.default(pass_.n_threads):
        blocks = _Pieces(pass_.read(*sources), start, pass_.block_rows)
        return blocks.reduce(pass_.function, pass_.merge, *pass_.arguments)


def _of_results(pass_: _Pass, *results: Any) -> Any:
    """Merge several results, and leave them as they are."""
    with _threads.default(pass_.n_threads):
        total = copy.deepcopy(results[0])
        for result in results[1:]:
            total = pass_.merge(total, copy.deepcopy(result))
        return total


def _taken(read: Callable[..., Block], start: int, rows: Any, *sources: Any) -> Block:
    block = read(*sources)
    (whole,) = _Pieces(block, start, max(len(block), 1))
    return whole.take(rows)

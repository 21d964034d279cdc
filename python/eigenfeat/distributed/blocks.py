"""Rows of a Dask array or data frame as blocks, reduced on their workers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from eigenfeat._base import threads
from eigenfeat._base.labels import plain_labels
from eigenfeat._base.validation import check_number, check_whole, physical_memory
from eigenfeat.distributed._dask import client_in_use, computed, module, persisted, workers_of
from eigenfeat.distributed._partitions import Partitions, partitions
from eigenfeat.distributed._persisted import PersistedPartitions
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.samples import reductions
from eigenfeat.samples.blocks import (
    ArrayBlocks,
    Block,
    Checksum,
    RowBlocks,
    RowTransform,
    joined,
    merge_read,
    read,
)

if TYPE_CHECKING:
    from dask.array import Array
    from dask.dataframe import DataFrame, Series
    from numpy.typing import ArrayLike, DTypeLike

__all__ = ["DaskBlocks", "class_moments"]

_Result = TypeVar("_Result")


class DaskBlocks(RowBlocks):
    """Blocks of labelled rows of a Dask collection.

    A partition is one block, or several if it is large.

    Parameters
    ----------
    X : dask array of shape (n, d), or dask data frame
        Chunks may be arrays or CSR matrices. Columns are merged into one chunk.
    y : dask array or series, array-like of shape (n,), or name of a column, optional
        Labels of any type that can be ordered. A named column is not used as a feature.
    sample_weight : the same kinds, optional
        Weights >= 0.
    block_rows : int, optional
        Rows of a block inside a partition; by default blocks have about 64 MB.
    split_every : int >= 2, default=4
        Number of results that are merged in one task. The shape of the tree depends only on it and
        on the partitions.
    n_threads : int, default=1
        Default number of threads of a task. A worker runs as many tasks in parallel as it has
        threads of its own.
    keep : float from 0 to 1, default=0.25
        Share of the workers' memory for caching projections between the passes of a fit.
        Projections that need more are recomputed in every pass; the result is the same.

    Raises
    ------
    ValueError
        If labels or weights do not have one entry for each row, or `X` is not a matrix of rows.
    ImportError
        If Dask is not installed.

    Notes
    -----
    Numbers of rows that Dask does not know (data frames, filtered arrays) are found by an initial
    pass over the partitions. Every later pass computes the partitions again from their source:
    persist rows that fit into the workers' memory before, ``X = X.persist()``.
    """

    def __init__(
        self,
        X: Array | DataFrame,
        y: Array | Series | str | None = None,
        sample_weight: Array | Series | str | None = None,
        *,
        block_rows: int | None = None,
        split_every: int = 4,
        n_threads: int = 1,
        keep: float = 0.25,
    ) -> None:
        if block_rows is not None:
            block_rows = check_whole(block_rows, "block_rows", at_least=1)
        self.block_rows = block_rows
        self.split_every = check_whole(split_every, "split_every", at_least=2)
        self.n_threads = check_whole(n_threads, "n_threads", at_least=1)
        self.keep = check_number(keep, "keep", at_least=0.0)
        self._stored: _StoredRows | None = None
        self._last: RowTransform | None = None
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
        *arguments: object,
    ) -> _Result:
        """Merge the results of a function for every block on the workers; see `RowBlocks.reduce`.

        `arguments` are a separate task in the graph: they are sent once, shared among workers, and
        recovered when a worker is lost. `merge` gets copies of the results that it may change,
        since Dask may use a task's result twice.
        """
        if not self._partitions.sources:
            raise ValueError("X: expected at least one block of rows, got none")
        given: tuple[Any, ...] = arguments
        if function is read and self._keeps(given[0]):
            return self._reduced_kept(merge, *given)
        pass_ = self._pass(function, merge, arguments)
        starts = [(start,) for _, start in self._sources()]
        rows = self._partitions
        return self._merged(pass_, _of_partition, starts, rows.sources, rows.persisted)

    def _keeps(self, reading: RowTransform) -> bool:
        """Whether to read by what workers keep: of masked rows, when they are read again."""
        again = self._last is reading or (
            self._stored is not None and self._stored.reading is reading
        )
        self._last = reading
        return (again or reading.mask is None) and _fits_memory(reading, self.n_rows, self.keep)

    def _reduced_kept(
        self, merge: Any, reading: RowTransform, function: Any, merge_inside: Any, *arguments: Any
    ) -> Any:
        """A pass of `eigenfeat.samples.blocks.read`, by what the workers keep of an earlier one."""
        if self._stored is None or self._stored.reading is not reading:
            self._stored = None
            parts = self._made(self._pass(_stored_blocks, merge, (reading,)))
            self._stored = _StoredRows(reading, parts, PersistedPartitions.of(parts))
        pass_ = self._pass(function, merge, (merge_inside, arguments))
        nothing: list[Any] = [()] * len(self._stored.parts)
        return self._merged(pass_, _of_stored, nothing, self._stored.parts, self._stored.persisted)

    def _made(self, pass_: _Pass) -> list[tuple[Any, ...]]:
        """What workers keep of every partition, once all have it."""
        shared = _literal(pass_)
        task = module("dask").delayed(_stored_partition, pure=False, traverse=False)
        made = [task(shared, start, *sources) for sources, start in self._sources()]
        return [(part,) for part in persisted(made)]

    def _pass(self, function: Any, merge: Any, arguments: tuple[Any, ...]) -> _Pass:
        read_ = self._partitions.read
        return _Pass(read_, function, merge, arguments, self.block_rows, self.n_threads)

    def _merged(
        self,
        pass_: _Pass,
        leaf: Any,
        starts: list[Any],
        sources: Any,
        persisted: PersistedPartitions | None,
    ) -> Any:
        """The results of ``leaf(pass_, *start, *source)``, merged in a tree."""
        if persisted is not None:
            kind = (pass_.function, *(part for part in pass_.arguments if callable(part)))
            with threads.default(self.n_threads):
                tree = persisted.reduced(
                    partial(leaf, pass_), pass_.merge, self.split_every, starts, kind
                )
            if tree is not None:
                return tree.root
        shared = _literal(pass_)
        task = module("dask").delayed(leaf, pure=False, traverse=False)
        leaves = [task(shared, *a, *source) for a, source in zip(starts, sources, strict=True)]
        return self._merged_by_tasks(shared, leaves)

    def _merged_by_tasks(self, shared: Any, results: list[Any]) -> Any:
        """A task for each merge of neighbours."""
        node = module("dask").delayed(_of_results, pure=False, traverse=False)
        while len(results) > 1:
            groups = [
                results[i : i + self.split_every] for i in range(0, len(results), self.split_every)
            ]
            results = [node(shared, *group) if len(group) > 1 else group[0] for group in groups]
        return computed(results)[0]

    def take(self, rows: npt.NDArray[np.intp]) -> Block:
        """Collect rows by their ascending indices among all rows; only these are sent."""
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


@dataclass(frozen=True, eq=False)
class _StoredRows:
    """What workers keep of the rows, read in one way."""

    reading: RowTransform
    parts: list[tuple[Any, ...]]
    persisted: PersistedPartitions | None


class _Pieces(RowBlocks):
    """Blocks of one partition, numbered among all rows."""

    def __init__(self, block: Block, start: int, block_rows: int | None) -> None:
        y = plain_labels(block.y, start=start)
        self._blocks = ArrayBlocks(block.X, y, block.weight, block_rows)
        self._start = start

    def __iter__(self) -> Iterator[Block]:
        return (replace(block, start=self._start + block.start) for block in self._blocks)


def _of_partition(pass_: _Pass, start: int, *sources: Any) -> Any:
    """One partition's share of a reduction."""
    with threads.default(pass_.n_threads):
        blocks = _Pieces(pass_.read(*sources), start, pass_.block_rows)
        return blocks.reduce(pass_.function, pass_.merge, *pass_.arguments)


def _stored_partition(pass_: _Pass, start: int, *sources: Any) -> list[_StoredBlock]:
    """One partition's rows as all passes read them."""
    with threads.default(pass_.n_threads):
        blocks = _Pieces(pass_.read(*sources), start, pass_.block_rows)
        return _stored_blocks(blocks, *pass_.arguments)


def _of_stored(pass_: _Pass, stored: list[_StoredBlock]) -> Any:
    """One partition's share of a reduction, by what is stored of it."""
    with threads.default(pass_.n_threads):
        return _reduced(stored, pass_.function, *pass_.arguments)


def _of_results(pass_: _Pass, *results: Any) -> Any:
    """Merge several results, and leave them as they are."""
    with threads.default(pass_.n_threads):
        total = copy.deepcopy(results[0])
        for result in results[1:]:
            total = pass_.merge(total, copy.deepcopy(result))
        return total


def _taken(read: Callable[..., Block], start: int, rows: Any, *sources: Any) -> Block:
    block = read(*sources)
    (whole,) = _Pieces(block, start, max(len(block), 1))
    return whole.take(rows)


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


# ---- projections that workers keep between the passes of a fit, if their memory allows it --------


@dataclass(frozen=True, eq=False)
class _StoredBlock:
    """One block as every pass reads it: pieces of features by their projections, and a checksum."""

    checksum: Checksum
    pieces: list[Block]

    def __sizeof__(self) -> int:
        arrays = [piece.X.projections for piece in self.pieces]
        return object.__sizeof__(self) + sum(array.nbytes for array in arrays)


def _fits_memory(reading: RowTransform, n_rows: int, share: float) -> bool:
    """Whether projections of so many rows take that share of the workers' memory at most.

    Rows that are not projected cost little to read.
    """
    if not reading.layers or reading.hidden:
        return False
    width = len(reading.layers[-1].offset)
    if reading.include_input:
        width += reading.layers[-1].directions.shape[0]
    return 4.0 * n_rows * width <= share * _memory()


def _stored_blocks(blocks: RowBlocks, reading: RowTransform) -> list[_StoredBlock]:
    """What `eigenfeat.samples.blocks.read` reads of blocks, before any function is called."""
    result = []
    for block in blocks:
        checked = reading.checked(block)
        pieces = list(reading.features(reading.weighted(checked)))
        result.append(_StoredBlock(Checksum.of(checked.X), pieces))
    return result


def _reduced(
    stored: Sequence[_StoredBlock],
    function: Callable[..., _Result],
    merge: Callable[[_Result, _Result], _Result],
    arguments: Sequence[Any],
) -> tuple[Checksum, _Result | None] | None:
    """As `eigenfeat.samples.blocks.read` for each of the blocks, merged: the same bits."""
    total: Any = None
    for block in stored:
        solution: Any = None
        for piece in block.pieces:
            result = function(piece, *arguments)
            solution = result if solution is None else merge(solution, result)
        pair = block.checksum, solution
        total = pair if total is None else merge_read(merge, total, pair)
    return total


def _memory() -> float:
    """Bytes that the workers may have together."""
    client = client_in_use()
    if client is None:
        return float(physical_memory())
    workers = workers_of(client).values()
    limits = [worker["memory_limit"] or physical_memory() for worker in workers]
    return float(np.sum(limits))

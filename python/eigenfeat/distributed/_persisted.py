"""Partitions that the workers hold already: a pass over them takes one task a worker."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from eigenfeat.distributed._dask import client_in_use, gathered, graphs_of_any_size, workers_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dask.delayed import Delayed

__all__ = ["MOST_BYTES", "PersistedPartitions", "Share", "Tree", "of_bundle"]

MOST_BYTES = 2**25  # of all partitions' results, for them to come here without a tree of tasks
_SHARE = 0.1  # of a worker's memory, which the partitions of one task take at most
_UNEVEN = 1.5  # times its share of the rows, which a thread has at most


@dataclass(frozen=True)
class Share:
    """What one task does."""

    address: str  # of the worker that has these partitions
    numbers: list[int]  # of the partitions, ascending


@dataclass(frozen=True)
class _Worker:
    """What a worker may be given."""

    n_threads: int
    memory: float

    @classmethod
    def of(cls, details: dict[str, Any]) -> _Worker:
        return cls(details["nthreads"], details["memory_limit"] or np.inf)


@dataclass(frozen=True)
class _Placement:
    """Which worker holds what."""

    workers: dict[str, _Worker]  # by address
    mine: dict[str, list[int]]  # numbers of its partitions, ascending, by address
    sizes: list[float]  # bytes of the partitions

    @classmethod
    def of(cls, client: Any, rows: list[Any], workers: dict[str, _Worker]) -> _Placement | None:
        """None if some rows are held by no worker."""
        if not rows or not workers:
            return None
        holders = client.who_has(rows)
        mine: dict[str, list[int]] = {address: [] for address in workers}
        for number, future in enumerate(rows):
            candidates = [address for address in holders.get(future.key, ()) if address in workers]
            if not candidates:
                return None
            chosen = min(candidates, key=lambda a: len(mine[a]) / workers[a].n_threads)
            mine[chosen].append(number)
        # Only of what is held: the scheduler has no answer for keys that it does not know yet.
        result = client.nbytes([future.key for future in rows], summary=False)
        return cls(workers, mine, [float(result.get(future.key, 0)) for future in rows])

    def shares(self) -> list[Share] | None:
        """A task a thread, or more where its rows are large; None if the rows are far from even."""
        even = sum(self.sizes) / self._n_threads
        for address, worker in self.workers.items():
            load = sum(self.sizes[i] for i in self.mine[address])
            if load > _UNEVEN * even * worker.n_threads + max(self.sizes):
                return None
        return [
            Share(address, numbers)
            for address, worker in self.workers.items()
            for numbers in _cut(self.mine[address], self.sizes, worker)
        ]

    @property
    def _n_threads(self) -> int:
        return sum(worker.n_threads for worker in self.workers.values())


class PersistedPartitions:
    """Rows of partitions that are persisted: rows of futures, and what belongs to them or None."""

    def __init__(self, futures: list[tuple[Any, ...]]) -> None:
        self.futures = futures
        self._placement: _Placement | None = None
        self._large: set[Any] = set()

    @classmethod
    def of(cls, sources: Iterable[tuple[Delayed | None, ...]]) -> PersistedPartitions | None:
        """Delayed sources that are futures and nothing else; None if one is not."""
        if "distributed" not in sys.modules:
            return None
        sources = list(sources)
        result = [tuple(None if part is None else _future(part) for part in row) for row in sources]
        pairs = zip(sources, result, strict=True)
        lazy = any((a is None) != (b is None) for row in pairs for a, b in zip(*row, strict=True))
        return None if lazy else cls(result)

    def reduced(
        self,
        leaf: Callable[..., Any],
        merge: Callable[[Any, Any], Any],
        fan_in: int,
        arguments: Sequence[tuple[Any, ...]],
        kind: Hashable,
    ) -> Tree | None:
        """Merge ``leaf(*arguments, *partition)`` of all partitions, by a task for each share.

        Results that no worker could merge come here. None where that is no good way: some rows are
        held by no worker, or most by one worker, or results of this `kind` are large.
        """
        client = client_in_use()
        if client is None or any(row[0].client is not client for row in self.futures):
            return None
        shares = self.shares(client)
        if shares is None or kind in self._large:
            return None
        tree = Tree(len(self.futures), fan_in, merge)
        run = partial(of_bundle, leaf, merge, (len(self.futures), fan_in))
        parts = [[*first, *row] for first, row in zip(arguments, self.futures, strict=True)]
        for solution in _by_workers(client, run, shares, parts):
            if solution is None:
                self._large.add(kind)
                return None
            for node, result in solution.items():
                tree.put(node, result)
        return tree

    def shares(self, client: Any) -> list[Share] | None:
        """The tasks of a pass; None where it is better to have one a partition."""
        holding = self._placed(client)
        return None if holding is None else holding.shares()

    def _placed(self, client: Any) -> _Placement | None:
        workers = {address: _Worker.of(details) for address, details in workers_of(client).items()}
        if self._placement is None or self._placement.workers != workers:
            self._placement = _Placement.of(client, [row[0] for row in self.futures], workers)
        return self._placement


def _by_workers(
    client: Any, run: Callable[..., Any], shares: Sequence[Share], parts: Sequence[list[Any]]
) -> list[Any]:
    """``run(numbers, parts)`` of each share, by the worker that has it, or one in its place."""
    with graphs_of_any_size():
        futures = [
            client.submit(
                run,
                share.numbers,
                [parts[number] for number in share.numbers],
                pure=False,
                workers=[share.address],
                allow_other_workers=True,
            )
            for share in shares
        ]
    return gathered(client, futures)


def _cut(numbers: list[int], sizes: list[float], worker: _Worker) -> list[list[int]]:
    """One worker's partitions, in order, cut evenly: a task a thread, or more if they are large."""
    total = sum(sizes[i] for i in numbers)
    pieces = max(worker.n_threads, int(np.ceil(total / (_SHARE * worker.memory))))
    ends = np.cumsum([sizes[i] for i in numbers])
    middles = ends - 0.5 * np.array([sizes[i] for i in numbers])
    piece = np.minimum(middles * pieces // max(total, 1.0), pieces - 1)
    cuts = np.flatnonzero(np.diff(piece)) + 1
    return [part.tolist() for part in np.split(np.array(numbers, dtype=int), cuts) if len(part)]


def _future(part: Any) -> Any:
    graph: Mapping[Any, Any] = part.__dask_graph__()
    value: Any = graph.get(part.key)
    while hasattr(value, "target"):  # another name of it
        value = graph.get(value.target)
    return value if isinstance(value, sys.modules["distributed"].Future) else None


# ---- the tree of merges, whose shape depends on the partitions alone -----------------------------


Node = tuple[int, int]
"""Level and position: partitions are level 0, and the levels above them merge neighbours."""


class Tree:
    """Results on their way up: those below a node are merged, in order, once all of them are here.

    Parameters
    ----------
    n_leaves : int
    fan_in : int >= 2
        How many results of one level are merged into one of the next.
    merge : callable
        ``merge(a, b)`` of neighbours; it may change `a`.

    Attributes
    ----------
    results : dict
        By node, what could not be merged so far.
    """

    def __init__(self, n_leaves: int, fan_in: int, merge: Callable[[Any, Any], Any]) -> None:
        self.n_leaves, self.fan_in, self.merge = n_leaves, fan_in, merge
        self.results: dict[Node, Any] = {}

    @property
    def root(self) -> Any:
        """What all results were merged to."""
        (result,) = self.results.values()
        return result

    def put(self, node: Node, result: Any) -> None:
        """Take in one result, and merge what can be merged."""
        self.results[node] = result
        level, position = node
        width = self._width(level)
        while width > 1:
            first = position // self.fan_in * self.fan_in
            below = [(level, i) for i in range(first, min(first + self.fan_in, width))]
            if any(child not in self.results for child in below):
                return
            merged = self._merged(self.results.pop(child) for child in below)
            level, position, width = level + 1, position // self.fan_in, -(-width // self.fan_in)
            self.results[level, position] = merged

    def _width(self, level: int) -> int:
        width = self.n_leaves
        for _ in range(level):
            width = -(-width // self.fan_in)
        return width

    def _merged(self, results: Iterable[Any]) -> Any:
        neighbours = iter(results)
        total = next(neighbours)
        for result in neighbours:
            total = self.merge(total, result)
        return total


def of_bundle(
    leaf: Callable[..., Any],
    merge: Callable[[Any, Any], Any],
    shape: tuple[int, int],
    numbers: Sequence[int],
    arguments: Sequence[Sequence[Any]],
) -> dict[Node, Any] | None:
    """Results of some partitions (`numbers`, ascending), merged as far as the tree allows, by node.

    ``leaf(*arguments[i])`` is one partition's result, `shape` the tree's number of leaves and
    fan-in. None if all partitions' results would be too large to be sent to one place.
    """
    tree = Tree(*shape, merge)
    for turn, number in enumerate(numbers):
        result = leaf(*arguments[turn])
        if turn == 0 and _message_bytes(result) * tree.n_leaves > MOST_BYTES:
            return None
        tree.put((0, number), result)
    return tree.results


def _message_bytes(result: Any) -> int:
    """Bytes of a result as it is sent."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        head = pickle.dumps(result, protocol=5, buffer_callback=buffers.append)
    except (pickle.PicklingError, AttributeError, TypeError):  # Dask can do more
        return 0
    return len(head) + sum(buffer.raw().nbytes for buffer in buffers)

"""The tree in which the partitions' results are merged: its shape depends on them alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["Node", "Tree"]

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

"""Nearest neighbours class by class, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from eigenfeat.expansion import expand

__all__ = ["ClassRows", "blocks"]

_Array = NDArray[np.float64]

BLOCK_NUMBERS = 2**22  # about 32 MB


def blocks(n: int, numbers_per_row: int) -> Iterator[slice]:
    """Slices of n rows, each with some BLOCK_NUMBERS numbers at most."""
    width = max(1, BLOCK_NUMBERS // max(1, numbers_per_row))
    for start in range(0, n, width):
        yield slice(start, min(start + width, n))


class ClassRows:
    """Training rows, sorted by class, and how far other rows are from them.

    Parameters
    ----------
    X : (n, d) array
    codes : (n,) array of int
        Classes 0, ..., n_classes - 1, of which some may have no rows.
    """

    def __init__(
        self, X: _Array, codes: NDArray[np.intp], n_classes: int, n_threads: int | None
    ) -> None:
        order = np.argsort(codes, kind="stable")
        self.rows = np.ascontiguousarray(X[order])
        self.starts = np.searchsorted(codes[order], np.arange(n_classes + 1))
        self.n_threads = n_threads
        # Distances are taken about the mean, so that rows far from 0 keep their digits.
        self.centre = self.rows.mean(axis=0)
        centred = self.rows - self.centre
        self._columns = np.ascontiguousarray(centred.T)
        self._squares = (centred**2).sum(axis=1)

    @property
    def n_classes(self) -> int:
        """How many classes there may be."""
        return len(self.starts) - 1

    def members(self, g: int) -> slice:
        """Class g's part of `rows`."""
        return slice(int(self.starts[g]), int(self.starts[g + 1]))

    def nearness(self, points: _Array) -> _Array:
        """(n, rows): squared distances, less a number for each point."""
        products = expand(
            points - self.centre, self._columns, None, wave="none", n_threads=self.n_threads
        )
        return np.asarray(self._squares - 2.0 * products)

    def nearest(self, nearness: _Array, g: int, count: int) -> NDArray[np.intp]:
        """(n, m) numbers in `rows` of class g's nearest, m = min(count, members), nearest first."""
        part = nearness[:, self.members(g)]
        m = min(count, part.shape[1])
        if m < part.shape[1]:
            found = np.sort(np.argpartition(part, m - 1, axis=1)[:, :m], axis=1)
        else:
            found = np.broadcast_to(np.arange(m), (len(part), m))
        by_distance = np.argsort(np.take_along_axis(part, found, axis=1), axis=1, kind="stable")
        return np.take_along_axis(found, by_distance, axis=1) + int(self.starts[g])

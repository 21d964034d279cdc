"""Minimum prediction lengths: from when on nearest neighbours stay what they are at the end.

Xing, Pei and Yu, "Early classification on time series", Knowledge and Information Systems 31, 2012.
Distances of prefixes grow sample by sample, the same sums for a pair and its mirror image, so that
ties are ties of equal numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

__all__ = ["Nearest", "grow", "nearest", "prediction_lengths", "unit_of"]

_Array = NDArray[np.float64]
_Flags = NDArray[np.bool_]
_Codes = NDArray[np.intp]


def unit_of(X: _Array) -> float:
    """A power of two about the rows' largest magnitude: squares of quotients do not overflow."""
    return float(np.ldexp(1.0, int(np.frexp(np.abs(X).max())[1]) - 1))


def grow(squares: _Array, new: _Array, known: _Array) -> None:
    """Add one sample, (m,) of new rows and (n,) of known ones, to squared distances (m, n)."""
    apart = new[:, None] - known
    apart *= apart
    squares += apart


@dataclass(frozen=True, eq=False)
class Nearest:
    """Nearest neighbours of m rows among n.

    Attributes
    ----------
    first : (m,) array of int
        The one with the lowest number.
    tied : (q,) array of int
        Rows that have several.
    among : (q, n) array of bool
        Which ones these have.
    """

    first: _Codes
    tied: _Codes
    among: _Flags

    def hits(self, sets: _Flags) -> tuple[_Flags, _Flags]:
        """For sets (c, n): whether some, and whether all, neighbours of each row are in them."""
        some = sets[:, self.first]
        every = some.copy()
        if len(self.tied):
            # Whole numbers below 2^24: single precision holds them, in whatever order they add.
            counts = sets.astype(np.float32) @ self.among.T.astype(np.float32)
            some[:, self.tied] = counts > 0
            every[:, self.tied] = counts == self.among.sum(axis=1)
        return some, every


def nearest(squares: _Array) -> Nearest:
    """Nearest neighbours by squared distances (m, n)."""
    first = squares.argmin(axis=1)
    least = np.take_along_axis(squares, first[:, None], axis=1)
    among = squares == least
    tied = np.flatnonzero(np.count_nonzero(among, axis=1) > 1)
    return Nearest(first, tied, among[tied])


def prediction_lengths(
    X: _Array, codes: _Codes, least_size: _Codes, relaxed: bool
) -> NDArray[np.int64]:
    """How many samples each training row takes before it may predict.

    Parameters
    ----------
    X : (n, d) array
    codes : (n,) array
        Class indices.
    least_size : (G,) array
        Clusters of fewer rows of a class are not used; single rows always are.
    relaxed : bool
        Only rows whose nearest neighbour at full length is of their class need to be stable.

    Returns
    -------
    (n,) array
        1 to d.
    """
    columns = np.ascontiguousarray((X / unit_of(X)).T)
    squares = _to_others(len(X))
    for column in columns:
        grow(squares, column, column)
    at_end = nearest(squares)
    clusters = _pure_clusters(squares, codes, least_size)
    sets = np.vstack([np.eye(len(X), dtype=bool), clusters])
    watched = _rightly_placed(at_end, codes) if relaxed else np.ones(len(X), dtype=bool)
    starts = _stable_from(columns, sets, at_end, watched)
    lengths = np.where(sets, starts[:, None], X.shape[1])
    return np.asarray(lengths.min(axis=0), dtype=np.int64)


def _to_others(n: int) -> _Array:
    """Distances of prefixes without samples; infinite to oneself."""
    squares = np.zeros((n, n))
    np.fill_diagonal(squares, np.inf)
    return squares


def _rightly_placed(found: Nearest, codes: _Codes) -> _Flags:
    """Rows that have a nearest neighbour of their own class."""
    right = np.asarray(codes[found.first] == codes)
    same = codes[found.tied, None] == codes
    right[found.tied] = (found.among & same).any(axis=1)
    return right


def _pure_clusters(squares: _Array, codes: _Codes, least_size: _Codes) -> _Flags:
    """(c, n): clusters of one class each, out of single linkage at full length."""
    n = len(codes)
    if n < 3:
        same = n == 2 and codes[0] == codes[1] and least_size[codes[0]] <= 2
        return np.ones((int(same), n), dtype=bool)
    filled = squares.copy()
    np.fill_diagonal(filled, 0.0)
    members: list[_Codes | None] = [np.array([i]) for i in range(n)]
    found: list[_Codes] = []
    for left, right in linkage(squareform(filled, checks=False), "single")[:, :2].astype(int):
        a, b = members[left], members[right]
        if a is None or b is None or codes[a[0]] != codes[b[0]]:
            members.append(None)
            continue
        both = np.concatenate([a, b])
        members.append(both)
        if len(both) >= least_size[codes[a[0]]]:
            found.append(both)
    sets = np.zeros((len(found), n), dtype=bool)
    for row, rows in enumerate(found):
        sets[row, rows] = True
    return sets


def _stable_from(
    columns: _Array, sets: _Flags, at_end: Nearest, watched: _Flags
) -> NDArray[np.int64]:
    """(c,): the length from which on each set is consistent and keeps its reverse neighbours."""
    alone = sets.sum(axis=1) == 1
    final = (at_end.hits(sets)[0] & ~sets)[:, watched]
    # A single row that is nobody's neighbour in the end tells nothing before it.
    usable = ~alone | final.any(axis=1)
    starts = np.full(len(sets), len(columns), dtype=np.int64)
    holding = np.zeros(len(sets), dtype=bool)
    squares = _to_others(columns.shape[1])
    for length, column in enumerate(columns, 1):
        grow(squares, column, column)
        some, every = nearest(squares).hits(sets)
        consistent = alone | ~(sets & ~every).any(axis=1)
        stable = ((some & ~sets)[:, watched] == final).all(axis=1)
        holds = consistent & stable & usable
        starts[holds & ~holding] = length
        holding = holds
    starts[~holding] = len(columns)
    return starts

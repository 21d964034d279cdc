"""Early classification by the nearest neighbour (Xing, Pei and Yu)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from sklearn.utils._param_validation import Interval

from eigenfeat._base.saved import fits
from eigenfeat._base.types import Labels
from eigenfeat.early.decisions import EarlyLabels
from eigenfeat.early.series_classifier import SeriesClassifier

__all__ = ["ECTS"]

_Array = NDArray[np.float64]
_Flags = NDArray[np.bool_]
_Codes = NDArray[np.intp]

BLOCK_NUMBERS = 2**21  # distances at a time


class ECTS(SeriesClassifier):
    """Early classification on time series by the nearest neighbour.

    Use it as a baseline; of 21 sets it is ahead of a chosen `ReliableClassifier` on one, Symbols,
    with few training series of different shapes. Tune `min_support`. User guide:
    :doc:`/guide/early_costs`.

    A training series may predict from its minimum prediction length (MPL) on, after which its
    neighbourhood no longer changes. A new series gets the class of its nearest neighbour as soon as
    that neighbour may predict; of several at the same distance those that may predict vote. The
    definition of the MPL, and where authors differ: :doc:`/guide/objectives`.

    Parameters
    ----------
    min_support : float in [0, 1], default=0.0
        Clusters with less than this share of their class are not used. Larger values give later
        decisions. A single series always has its own MPL.

    Attributes
    ----------
    classes_ : (G,) array
        Labels, sorted.
    lengths_ : (n,) array of int
        MPL of each training series, 1 to d.
    n_features_in_ : int
        Number of values of a series, d.

    Raises
    ------
    ValueError
        If series, labels or parameters are invalid.

    See Also
    --------
    FixedTime : One time for all series.
    ReliableClassifier : Any classifier, and a promise.

    References
    ----------
    Z. Xing, J. Pei, P. S. Yu, "Early prediction on time series: a nearest neighbor approach",
    IJCAI 2009; "Early classification on time series", Knowledge and Information Systems 31, 2012.
    N. Parrish, thesis, University of Washington, 2012, section 5.5. E. Kladis and others,
    "Evaluation of early time-series classification algorithms", 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.early import ECTS
    >>> X = np.array([[0.0, 1, 1, 1], [0, 1, 1, 2], [0, 5, 5, 5], [0, 5, 5, 6]])
    >>> model = ECTS().fit(X, ["low", "low", "high", "high"])
    >>> early = model.predict_early([[0, 1.2, 9, 9], [0, 5.5, 1, 1]])
    >>> early.label, early.time
    (array(['low', 'high'], dtype='<U4'), array([2, 2]))
    """

    _saved: ClassVar[dict[str, str]] = {
        "classes_": "labels k",
        "lengths_": "whole n",
        "_codes": "whole n",
        "_unit": "number",
        "_columns": "numbers d n",
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "min_support": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(self, min_support: float = 0.0) -> None:
        self.min_support = min_support

    def _learn(self, X: _Array, y: Labels, codes: NDArray[np.intp]) -> None:
        self._codes = codes
        least = np.ceil(self.min_support * np.bincount(codes) - 1e-9).astype(np.intp)
        self._unit = unit_of(X)
        self._columns = np.ascontiguousarray((X / self._unit).T)
        self.lengths_ = prediction_lengths(X, codes, least)

    def _labels(self, rows: _Array) -> Labels:
        codes = np.empty(len(rows), dtype=np.intp)
        for part in self._blocks(len(rows)):
            squares = np.zeros((len(rows[part]), len(self._codes)))
            for new, known in zip((rows[part] / self._unit).T, self._columns, strict=True):
                grow(squares, new, known)
            codes[part] = self._votes(squares, self.n_features_in_)[0]
        return self.classes_[codes]

    def predict_early(self, X: ArrayLike) -> EarlyLabels:
        """Decide each series as soon as its nearest neighbour may predict.

        Parameters
        ----------
        X : (m, d) array-like, or list of series
            Complete series; at each time only the values up to it are used. A shorter one is
            decided at its own end.

        Returns
        -------
        EarlyLabels
            Labels and times; at time d every series is decided.
        """
        rows, ends = self._series(X)
        codes = np.empty(len(rows), dtype=np.intp)
        time = np.empty(len(rows), dtype=np.int64)
        for part in self._blocks(len(rows)):
            codes[part], time[part] = self._early(rows[part])
        label = self.classes_[codes]
        ended = time > ends
        if ended.any():
            label[ended], time[ended] = self._labels(rows[ended]), ends[ended]
        return EarlyLabels(label, time)

    def _early(self, rows: _Array) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        codes = np.zeros(len(rows), dtype=np.intp)
        time = np.zeros(len(rows), dtype=np.int64)
        waiting = np.arange(len(rows))
        squares = np.zeros((len(rows), len(self._codes)))
        for length, known in enumerate(self._columns, 1):
            grow(squares, rows[waiting, length - 1] / self._unit, known)
            label, decided = self._votes(squares, length)
            codes[waiting[decided]], time[waiting[decided]] = label[decided], length
            if decided.any():
                waiting, squares = waiting[~decided], squares[~decided]
            if not len(waiting):
                break
        return codes, time

    def _votes(self, squares: _Array, length: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Classes of nearest neighbours that may predict, and where there is one."""
        neighbours = nearest(squares)
        ready = self.lengths_ <= length
        codes, decided = self._codes[neighbours.first], ready[neighbours.first]
        if len(neighbours.tied):
            voters = (neighbours.among & ready).astype(np.float64)
            ballots = voters @ np.eye(len(self.classes_))[self._codes]
            codes[neighbours.tied] = ballots.argmax(axis=1)
            decided[neighbours.tied] = voters.any(axis=1)
        return codes, decided

    def _blocks(self, m: int) -> Iterator[slice]:
        step = max(1, BLOCK_NUMBERS // len(self._codes))
        return (slice(start, start + step) for start in range(0, m, step))

    def _check_loaded(self) -> None:
        codes, k = self._codes, len(self.classes_)
        sound = len(codes) > 0 and codes.min() >= 0 and codes.max() < k and self._unit > 0
        fits(sound, "ECTS._codes")


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
    """Nearest neighbours of m rows among n."""

    first: _Codes  # (m,): the one with the lowest number
    tied: _Codes  # (q,): rows that have several
    among: _Flags  # (q, n): which ones these have

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


def prediction_lengths(X: _Array, codes: _Codes, least_size: _Codes) -> NDArray[np.int64]:
    """(n,): how many samples, 1 to d, each training row takes before it may predict.

    Clusters of fewer rows of a class than its `least_size` are not used; single rows always are.
    """
    columns = np.ascontiguousarray((X / unit_of(X)).T)
    squares = _to_others(len(X))
    for column in columns:
        grow(squares, column, column)
    at_end = nearest(squares)
    clusters = _pure_clusters(squares, codes, least_size)
    sets = np.vstack([np.eye(len(X), dtype=bool), clusters])
    starts = _stable_from(columns, sets, at_end)
    lengths = np.where(sets, starts[:, None], X.shape[1])
    return np.asarray(lengths.min(axis=0), dtype=np.int64)


def _to_others(n: int) -> _Array:
    """Distances of prefixes without samples; infinite to oneself."""
    squares = np.zeros((n, n))
    np.fill_diagonal(squares, np.inf)
    return squares


def _pure_clusters(squares: _Array, codes: _Codes, least_size: _Codes) -> _Flags:
    """(c, n): clusters of one class each, out of single linkage at full length."""
    n = len(codes)
    if n < 3:
        same = n == 2 and codes[0] == codes[1] and least_size[codes[0]] <= 2
        return np.ones((int(same), n), dtype=bool)
    filled = squares.copy()
    np.fill_diagonal(filled, 0.0)
    members: list[_Codes | None] = [np.array([i]) for i in range(n)]
    clusters: list[_Codes] = []
    for left, right in linkage(squareform(filled, checks=False), "single")[:, :2].astype(int):
        a, b = members[left], members[right]
        if a is None or b is None or codes[a[0]] != codes[b[0]]:
            members.append(None)
            continue
        both = np.concatenate([a, b])
        members.append(both)
        if len(both) >= least_size[codes[a[0]]]:
            clusters.append(both)
    sets = np.zeros((len(clusters), n), dtype=bool)
    for row, rows in enumerate(clusters):
        sets[row, rows] = True
    return sets


def _stable_from(columns: _Array, sets: _Flags, at_end: Nearest) -> NDArray[np.int64]:
    """(c,): the length from which on each set is consistent and keeps its reverse neighbours."""
    alone = sets.sum(axis=1) == 1
    final = at_end.hits(sets)[0] & ~sets
    # A single series that is nobody's neighbour at full length has no information before it.
    usable = ~alone | final.any(axis=1)
    starts = np.full(len(sets), len(columns), dtype=np.int64)
    holding = np.zeros(len(sets), dtype=bool)
    squares = _to_others(columns.shape[1])
    for length, column in enumerate(columns, 1):
        grow(squares, column, column)
        some, every = nearest(squares).hits(sets)
        consistent = alone | ~(sets & ~every).any(axis=1)
        stable = ((some & ~sets) == final).all(axis=1)
        holds = consistent & stable & usable
        starts[holds & ~holding] = length
        holding = holds
    starts[~holding] = len(columns)
    return starts

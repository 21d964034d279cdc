"""Baselines of early classification: the nearest neighbour (ECTS), and a fixed decision time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.neighbors import KNeighborsClassifier

from eigenfeat.early import EarlyDecisions
from eigenfeat.early.series import fold_masks

BLOCK_NUMBERS = 2**21  # distances at a time
MAX_TIMES = 20
TOLERANCE = 0.01  # loss of accuracy that an earlier time may have


class ECTS(ClassifierMixin, BaseEstimator):
    """Early classification on time series by the nearest neighbour (Xing, Pei and Yu 2009, 2012).

    A training series may predict from its minimum prediction length (MPL) on, after which its
    neighbourhood no longer changes. A new series gets the class of its nearest neighbour as soon as
    that neighbour may predict. Neighbours at equal distances vote if they may predict.

    With RNN^l(S) the series outside S whose nearest neighbour by prefixes of l values is in S, the
    MPL of a set S is the least k such that for all l from k to d

    1. RNN^l(S) = RNN^d(S), and
    2. the nearest neighbours of every series in S are in S (for more than one series).

    A series has the least MPL of the sets that contain it: itself, provided that it is the nearest
    neighbour of some complete series, and the clusters of one class in the single-linkage
    hierarchy. Condition 1 also applies to single series, and all neighbours at the same distance
    count. Clusters with less than the share `min_support` of their class are not used.
    """

    def __init__(self, min_support=0.0):
        self.min_support = min_support

    def fit(self, X, y):
        """Find the minimum prediction lengths of complete series (n, d)."""
        X = np.asarray(X, dtype=np.float64)
        self.classes_, self._codes = np.unique(y, return_inverse=True)
        least_size = np.ceil(self.min_support * np.bincount(self._codes) - 1e-9).astype(np.intp)
        self._unit = unit_of(X)
        self._columns = np.ascontiguousarray((X / self._unit).T)
        self.lengths_ = prediction_lengths(X, self._codes, least_size)
        return self

    def predict(self, X):
        """Labels of complete series (m, d)."""
        rows = np.asarray(X, dtype=np.float64)
        codes = np.empty(len(rows), dtype=np.intp)
        for part in self._blocks(len(rows)):
            squares = np.zeros((len(rows[part]), len(self._codes)))
            for new, known in zip((rows[part] / self._unit).T, self._columns, strict=True):
                grow(squares, new, known)
            codes[part] = self._votes(squares, len(self._columns))[0]
        return self.classes_[codes]

    def predict_early(self, X):
        """Labels and times of complete series, of which only the values up to the time are used."""
        rows = np.asarray(X, dtype=np.float64)
        codes = np.empty(len(rows), dtype=np.intp)
        time = np.empty(len(rows), dtype=np.int64)
        for part in self._blocks(len(rows)):
            codes[part], time[part] = self._early(rows[part])
        return EarlyDecisions(self.classes_[codes], time)

    def _early(self, rows):
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

    def _votes(self, squares, length):
        """Classes of nearest neighbours that may predict, and whether a series has one."""
        neighbours = nearest(squares)
        ready = self.lengths_ <= length
        codes, decided = self._codes[neighbours.first], ready[neighbours.first]
        if len(neighbours.tied):
            voters = (neighbours.among & ready).astype(np.float64)
            ballots = voters @ np.eye(len(self.classes_))[self._codes]
            codes[neighbours.tied] = ballots.argmax(axis=1)
            decided[neighbours.tied] = voters.any(axis=1)
        return codes, decided

    def _blocks(self, m):
        step = max(1, BLOCK_NUMBERS // len(self._codes))
        return (slice(start, start + step) for start in range(0, m, step))


def unit_of(X):
    """Return a power of two near the largest magnitude, so that squares of quotients are finite."""
    return float(np.ldexp(1.0, int(np.frexp(np.abs(X).max())[1]) - 1))


def grow(squares, new, known):
    """Add a time point of new series (m,) and known series (n,) to squared distances (m, n)."""
    apart = new[:, None] - known
    apart *= apart
    squares += apart


@dataclass(frozen=True, eq=False)
class Nearest:
    """Nearest neighbours of m rows among n."""

    first: np.ndarray  # (m,): the neighbour with the lowest index
    tied: np.ndarray  # (q,): rows with several neighbours
    among: np.ndarray  # (q, n): masks of the neighbours of these rows

    def hits(self, sets):
        """Return whether any, and whether all, neighbours of each row are in each set (c, n)."""
        any_in = sets[:, self.first]
        all_in = any_in.copy()
        if len(self.tied):
            # Counts below 2^24 are exact in single precision.
            counts = sets.astype(np.float32) @ self.among.T.astype(np.float32)
            any_in[:, self.tied] = counts > 0
            all_in[:, self.tied] = counts == self.among.sum(axis=1)
        return any_in, all_in


def nearest(squares):
    """Nearest neighbours by squared distances (m, n)."""
    first = squares.argmin(axis=1)
    least = np.take_along_axis(squares, first[:, None], axis=1)
    among = squares == least
    tied = np.flatnonzero(np.count_nonzero(among, axis=1) > 1)
    return Nearest(first, tied, among[tied])


def prediction_lengths(X, codes, least_size):
    """Return the minimum prediction length (n,), 1 to d, of each training series.

    Clusters of a class with fewer series than its `least_size` are not used.
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


def _to_others(n):
    """Return squared distances of empty prefixes; a series has an infinite distance from itself."""
    squares = np.zeros((n, n))
    np.fill_diagonal(squares, np.inf)
    return squares


def _pure_clusters(squares, codes, least_size):
    """Return the clusters (c, n) of single linkage, at full length, that have a single class."""
    n = len(codes)
    if n < 3:
        same = n == 2 and codes[0] == codes[1] and least_size[codes[0]] <= 2
        return np.ones((int(same), n), dtype=bool)
    filled = squares.copy()
    np.fill_diagonal(filled, 0.0)
    members = [np.array([i]) for i in range(n)]
    clusters = []
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


def _stable_from(columns, sets, at_end):
    """Return the length (c,) from which each set is consistent and keeps its reverse neighbours."""
    alone = sets.sum(axis=1) == 1
    final = at_end.hits(sets)[0] & ~sets
    # A single series that is nobody's nearest neighbour at full length may predict only at the end.
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


class FixedTime(ClassifierMixin, BaseEstimator):
    """Classify all series by their first `time` values (Parrish 2012, 5.6.5).

    `classifier` is the nearest neighbour by default. With ``time="cv"`` the time is the earliest of
    up to 20 evenly spaced times whose cross-validated accuracy is within .01 of the best.
    """

    def __init__(self, classifier=None, time="cv", *, n_folds=5):
        self.classifier = classifier
        self.time = time
        self.n_folds = n_folds

    def fit(self, X, y):
        """Fit the classifier to the first values, and to complete series (n, d)."""
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
        self.time_ = self._chosen_time(X, y) if self.time == "cv" else int(self.time)
        self.complete_classifier_ = self._new().fit(X, y)
        self.classes_ = self.complete_classifier_.classes_
        self.classifier_ = self._new().fit(X[:, : self.time_], y)
        return self

    def predict(self, X):
        """Labels of complete series."""
        return self.complete_classifier_.predict(X)

    def predict_early(self, X):
        """Labels by the first `time_` values."""
        label = self.classifier_.predict(np.asarray(X)[:, : self.time_])
        return EarlyDecisions(label, np.full(len(label), self.time_))

    def _new(self):
        return KNeighborsClassifier(1) if self.classifier is None else clone(self.classifier)

    def _chosen_time(self, X, y):
        d = X.shape[1]
        times = np.unique(np.ceil(np.linspace(0, d, min(d, MAX_TIMES) + 1)[1:]).astype(int))
        right = [self._right(X[:, :t], y) for t in times]
        self.cv_accuracies_ = {
            int(t): count / len(y) for t, count in zip(times, right, strict=True)
        }
        enough = max(self.cv_accuracies_.values()) - TOLERANCE - 1e-12
        return min(t for t, accuracy in self.cv_accuracies_.items() if accuracy >= enough)

    def _right(self, X, y):
        """Count the series that models of the other folds classify correctly."""
        right = 0
        for fold in fold_masks(y, self.n_folds):
            model = self._new().fit(X[~fold], y[~fold])
            right += int(np.sum(model.predict(X[fold]) == y[fold]))
        return right

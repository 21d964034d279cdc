"""Early classification by the nearest neighbour (Xing, Pei and Yu)."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval

from eigenfeat._base.saved import fits
from eigenfeat._base.types import Labels
from eigenfeat.incomplete._series.classifier import SeriesClassifier
from eigenfeat.incomplete._series.early_result import EarlyLabels
from eigenfeat.incomplete._series.prediction_lengths import (
    grow,
    nearest,
    prediction_lengths,
    unit_of,
)

__all__ = ["ECTS"]

_Array = NDArray[np.float64]

BLOCK_NUMBERS = 2**21  # distances that are held at a time


class ECTS(SeriesClassifier):
    r"""Early classification on time series by the nearest neighbour.

    Use it as a baseline. Tune `min_support`. User guide: :doc:`/guide/early_costs`.

    A training series may predict from its minimum prediction length (MPL) on. With :math:`RNN^l(S)`
    the series outside S whose nearest neighbour by prefixes of l samples is in S, the MPL of a set
    S is the least k such that for all l from k to d

    1. :math:`RNN^l(S) = RNN^d(S)`, and
    2. the nearest neighbours of every series in S are in S (for more than one series).

    The MPL of a series is the least MPL of the sets that contain it: the series itself, provided
    that it is the nearest neighbour of some full series, and the clusters of one class in the
    single-linkage hierarchy of the full series. It is d if no set has a smaller one. A new series
    gets the class of its nearest neighbour as soon as that neighbour may predict; of several at the
    same distance those that may predict vote.

    Parameters
    ----------
    min_support : float in [0, 1], default=0.0
        Clusters with less than this share of their class are not used. Larger values give later
        decisions. A single series always has its own MPL.
    relaxed : bool, default=False
        Condition 1 concerns only training series whose nearest neighbour at full length is of
        their class.

    Attributes
    ----------
    classes_ : (G,) array
        Labels, sorted.
    lengths_ : (n,) array of int
        MPL of each training series, 1 to d.
    n_features_in_ : int
        Number of samples of a series, d.

    Raises
    ------
    ValueError
        If rows, labels or parameters are invalid.

    See Also
    --------
    FixedTime : One time for all series.
    ReliableClassifier : Any classifier, and a promise.

    Notes
    -----
    The length of a single series, whose neighbourhood must not be empty at full length, is that of
    Parrish (2012), section 5.5, who cites the authors. Clusters of one class, consistent nearest
    neighbours and the support are those of Xing, Pei and Yu. The relaxed form counts only series
    that the others classify correctly at full length, as in the public implementation of Kladis and
    others (the ETS library, after the article of 2012). There this applies only to clusters, here
    also to single series: one that is the neighbour only of series that do not count cannot predict
    early. This package adds that all neighbours at the same distance count, and that they vote.

    Training takes O(n^2 d) operations for distances and O(n) for each cluster and length, and
    O(n^2) memory.

    References
    ----------
    Z. Xing, J. Pei, P. S. Yu, "Early prediction on time series: a nearest neighbor approach",
    IJCAI 2009; "Early classification on time series", Knowledge and Information Systems 31, 2012.
    N. Parrish, "Supervised Dimensionality Reduction for Different Learning Architectures", PhD
    thesis, University of Washington, 2012. E. Kladis and others, "Evaluation of early
    time-series classification algorithms", 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.incomplete import ECTS
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
        "relaxed": ["boolean"],
    }

    def __init__(self, min_support: float = 0.0, *, relaxed: bool = False) -> None:
        self.min_support = min_support
        self.relaxed = relaxed

    def _learn(self, X: _Array, y: Labels, codes: NDArray[np.intp]) -> None:
        self._codes = codes
        least = np.ceil(self.min_support * np.bincount(codes) - 1e-9).astype(np.intp)
        self._unit = unit_of(X)
        self._columns = np.ascontiguousarray((X / self._unit).T)
        self.lengths_ = prediction_lengths(X, codes, least, bool(self.relaxed))

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
            Complete series; at each time only the samples up to it are used. A shorter one is
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
        found = nearest(squares)
        ready = self.lengths_ <= length
        codes, decided = self._codes[found.first], ready[found.first]
        if len(found.tied):
            voters = (found.among & ready).astype(np.float64)
            ballots = voters @ np.eye(len(self.classes_))[self._codes]
            codes[found.tied] = ballots.argmax(axis=1)
            decided[found.tied] = voters.any(axis=1)
        return codes, decided

    def _blocks(self, m: int) -> Iterator[slice]:
        step = max(1, BLOCK_NUMBERS // len(self._codes))
        return (slice(start, start + step) for start in range(0, m, step))

    def _check_loaded(self) -> None:
        codes, k = self._codes, len(self.classes_)
        sound = len(codes) > 0 and codes.min() >= 0 and codes.max() < k and self._unit > 0
        fits(sound, "ECTS._codes")

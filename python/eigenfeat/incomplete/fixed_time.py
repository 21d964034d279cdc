"""A baseline for early classifiers: all series are decided at one fixed time."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils._param_validation import HasMethods, Interval

from eigenfeat._base.saved import fits
from eigenfeat._base.threads import count_cores
from eigenfeat._base.types import Estimator, Labels
from eigenfeat._base.validation import MOST
from eigenfeat.incomplete.decisions import EarlyLabels
from eigenfeat.incomplete.series_classifier import SeriesClassifier

__all__ = ["FixedTime"]

_Array = NDArray[np.float64]


class FixedTime(SeriesClassifier):
    """Classify every series by its first values, all at the same time.

    Use it as a baseline: an early classifier is worth its effort where series differ in the time
    that they need. Where they do not, it is the right choice (on Wafer its harmonic mean with the
    nearest neighbour is .960, that of a chosen `ReliableClassifier` .937). scikit-learn's
    ``GridSearchCV`` chooses the time. User guide: :doc:`/guide/early_costs`.

    Parameters
    ----------
    time : int
        Number of values before the decision.
    classifier : estimator or None, default=None
        Classifier that is cloned and fitted once on the first values and once on complete series;
        None: the nearest neighbour.

    Attributes
    ----------
    classes_ : (G,) array
        Labels, sorted.
    classifier_ : estimator
        Classifier fitted on the first `time` values.
    complete_classifier_ : estimator
        Classifier fitted on complete series.
    n_features_in_ : int
        Number of values of a series, d.

    Raises
    ------
    ValueError
        If samples, labels or parameters are invalid, or series are shorter than `time`.

    See Also
    --------
    ReliableClassifier : A time for each series.
    ECTS : Another baseline.

    References
    ----------
    N. Parrish, "Supervised Dimensionality Reduction for Different Learning Architectures", PhD
    thesis, University of Washington, 2012, section 5.6.5.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.incomplete import FixedTime
    >>> X = np.array([[0.0, 1, 1, 1], [0, 1, 1, 2], [0, 5, 5, 5], [0, 5, 5, 6]])
    >>> model = FixedTime(2).fit(X, ["low", "low", "high", "high"])
    >>> model.predict_early([[0, 1.2, 9, 9]]).label
    array(['low'], dtype='<U4')
    """

    _saved: ClassVar[dict[str, str]] = {
        "_time": "count",
        "classifier_": "estimator",
        "complete_classifier_": "estimator",
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "time": [Interval(Integral, 1, MOST, closed="both")],
        "classifier": [HasMethods(["fit", "predict"]), None],
    }

    def __init__(self, time: int, classifier: Estimator | None = None) -> None:
        self.time = time
        self.classifier = classifier

    def _learn(self, X: _Array, y: Labels, codes: NDArray[np.intp]) -> None:
        if self.time > X.shape[1]:
            raise ValueError(f"time: expected an integer in 1..{X.shape[1]}, got {self.time}")
        self._time = int(self.time)
        count_cores()
        plain = KNeighborsClassifier(1) if self.classifier is None else self.classifier
        self.complete_classifier_ = clone(plain).fit(X, y)
        at_end = self._time == X.shape[1]
        early = self.complete_classifier_ if at_end else clone(plain).fit(X[:, : self._time], y)
        self.classifier_ = early

    def _labels(self, rows: _Array) -> Labels:
        return np.asarray(self.complete_classifier_.predict(rows))

    def predict_early(self, X: ArrayLike) -> EarlyLabels:
        """Predict labels from the first `time` values.

        Parameters
        ----------
        X : (m, d) array-like, or list of series
            Complete series; later values are ignored.

        Returns
        -------
        EarlyLabels
            Labels, and `time` for each.
        """
        rows, ends = self._series(X)
        label = np.asarray(self.classifier_.predict(rows[:, : self._time]))
        return EarlyLabels(label, np.minimum(ends, self._time))

    def _check_loaded(self) -> None:
        fits(1 <= self._time <= self.n_features_in_, "FixedTime._time")

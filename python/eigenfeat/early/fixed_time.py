"""A baseline for early classifiers: all series are decided at one fixed time."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from eigenfeat._base.saved import fits
from eigenfeat._base.threads import count_cores
from eigenfeat._base.types import Estimator, Labels
from eigenfeat._base.validation import MOST
from eigenfeat.early.decisions import EarlyLabels
from eigenfeat.early.series import fold_masks
from eigenfeat.early.series_classifier import SeriesClassifier

__all__ = ["FixedTime"]

_Array = NDArray[np.float64]

MANY_TIMES = 20
TOLERANCE = 0.01  # of accuracy, for deciding earlier


class FixedTime(SeriesClassifier):
    """Classify every series by its first values, all at the same time.

    Use it as a baseline. Set `classifier`, and the time if it is known. User guide:
    :doc:`/guide/early_costs`.

    A baseline: an early classifier is worth its effort where series differ in the time that they
    need. Where they do not, it is the right choice (on Wafer its harmonic mean with the nearest
    neighbour is .960, that of `ReliableClassifierCV` .937).

    Parameters
    ----------
    classifier : estimator or None, default=None
        Classifier that is cloned and fitted once on the first values and once on complete series;
        None: the nearest neighbour.
    time : int or "cv", default="cv"
        Number of values before the decision. "cv": the earliest of up to 20 evenly spaced ones
        whose cross-validated accuracy is within .01 of the best.
    n_folds : int >= 2, default=5
        Folds of the cross-validation, stratified by class.

    Attributes
    ----------
    classes_ : (G,) array
        Labels, sorted.
    time_ : int
        The time of decision.
    classifier_ : estimator
        Classifier fitted on the first `time_` values.
    complete_classifier_ : estimator
        Classifier fitted on complete series.
    cv_accuracies_ : dict of int to float
        With "cv", the accuracy for each time.
    n_features_in_ : int
        Number of values of a series, d.

    Raises
    ------
    ValueError
        If samples, labels or parameters are invalid, or the times are not those of the series.

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
    >>> from eigenfeat.early import FixedTime
    >>> X = np.array([[0.0, 1, 1, 1], [0, 1, 1, 2], [0, 5, 5, 5], [0, 5, 5, 6]])
    >>> model = FixedTime(n_folds=2).fit(X, ["low", "low", "high", "high"])
    >>> model.time_
    2
    >>> model.predict_early([[0, 1.2, 9, 9]]).label
    array(['low'], dtype='<U4')
    """

    _saved: ClassVar[dict[str, str]] = {
        "time_": "count",
        "classifier_": "estimator",
        "complete_classifier_": "estimator",
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classifier": [HasMethods(["fit", "predict"]), None],
        "time": [Interval(Integral, 1, None, closed="left"), StrOptions({"cv"})],
        "n_folds": [Interval(Integral, 2, MOST, closed="both")],
    }

    def __init__(
        self,
        classifier: Estimator | None = None,
        time: int | str = "cv",
        *,
        n_folds: int = 5,
    ) -> None:
        self.classifier = classifier
        self.time = time
        self.n_folds = n_folds

    def _learn(self, X: _Array, y: Labels, codes: NDArray[np.intp]) -> None:
        self.__dict__.pop("cv_accuracies_", None)
        self.time_ = self._chosen_time(X, y)
        self.complete_classifier_ = self._new().fit(X, y)
        at_end = self.time_ == X.shape[1]
        early = self.complete_classifier_ if at_end else self._new().fit(X[:, : self.time_], y)
        self.classifier_ = early

    def _labels(self, rows: _Array) -> Labels:
        return np.asarray(self.complete_classifier_.predict(rows))

    def predict_early(self, X: ArrayLike) -> EarlyLabels:
        """Predict labels from the first `time_` values.

        Parameters
        ----------
        X : (m, d) array-like, or list of series
            Complete series; later values are ignored.

        Returns
        -------
        EarlyLabels
            Labels, and `time_` for each.
        """
        rows, ends = self._series(X)
        label = np.asarray(self.classifier_.predict(rows[:, : self.time_]))
        return EarlyLabels(label, np.minimum(ends, self.time_))

    def _new(self) -> Any:
        count_cores()
        return KNeighborsClassifier(1) if self.classifier is None else clone(self.classifier)

    def _chosen_time(self, X: _Array, y: NDArray[Any]) -> int:
        d = X.shape[1]
        if not isinstance(self.time, str):
            if self.time > d:
                raise ValueError(f"time: expected an integer in 1..{d}, got {self.time}")
            return int(self.time)
        times = np.unique(np.ceil(np.linspace(0, d, min(d, MANY_TIMES) + 1)[1:]).astype(int))
        right = [self._right(X[:, :t], y) for t in times]
        self.cv_accuracies_ = {
            int(t): float(count) / len(y) for t, count in zip(times, right, strict=True)
        }
        enough = max(self.cv_accuracies_.values()) - TOLERANCE - 1e-12
        return min(t for t, accuracy in self.cv_accuracies_.items() if accuracy >= enough)

    def _right(self, X: _Array, y: NDArray[Any]) -> int:
        """How many samples are classified right by what the other folds teach."""
        right = 0
        for fold in fold_masks(y, self.n_folds):
            model = self._new().fit(X[~fold], y[~fold])
            right += int(np.sum(np.asarray(model.predict(X[fold])) == y[fold]))
        return right

    def _check_loaded(self) -> None:
        fits(1 <= self.time_ <= self.n_features_in_, "FixedTime.time_")

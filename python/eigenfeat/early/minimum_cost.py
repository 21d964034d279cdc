"""Early decisions of least expected cost: waiting has a cost, and may avoid a wrong label."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.threads import count_cores
from eigenfeat._base.types import Estimator, Labels
from eigenfeat._base.validation import MOST, real_array, show, warn_caller
from eigenfeat.early.decisions import EarlyDecisions
from eigenfeat.early.series import (
    Layout,
    ended_rows,
    ignore_single_sample_warning,
    pushed_value,
    training_rows,
)
from eigenfeat.early.stages import convolutions, fit_stages
from eigenfeat.early.stopping import fitted_policy
from eigenfeat.samples.estimator import BaseEstimator, unchanged_on_error
from eigenfeat.signals.series import read_times

__all__ = ["CostDecision", "CostStream", "MinimumCostClassifier"]

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class CostDecision:
    """Decision about a series: label, number of values used, and expected cost."""

    label: Any
    time: int
    cost: float


class MinimumCostClassifier(ClassifierMixin, BaseEstimator):
    """Decide each series when waiting is expected to cost more than it saves.

    Use it where a delay has a cost. Set `delay_cost` first, then `classifier`. A series is decided
    at the first of several times at which waiting is not expected to save costs. The expected
    saving is a regression on the classifier's probabilities, learned by backward induction on
    held-out series. User guide: :doc:`/guide/early_costs`.

    Parameters
    ----------
    classifier : estimator or None, default=None
        Classifier with `predict_proba`, or with `decision_function`, which is calibrated; cloned
        for each time. None: `ConvolutionClassifier` with ``differences=False, contests=False,
        intervals=True, random_state=0``.
    delay_cost : float or (T,) array-like, default=1.2
        Nonnegative cost of waiting for the whole series, in proportion for shorter times; or the
        costs of deciding after 1, ..., T values, which do not decrease. The default leads to about
        the largest harmonic mean of accuracy and 1 - earliness.
    misclassification_cost : float, (G, G) array-like or None, default=None
        Cost of a wrong label, or a table with a row for each true class and a column for each
        decided class, in the order of `classes_`. None: 1.
    times : ascending integers in 1..T or None, default=None
        Times of decision; T is always included. None: up to `n_times`, equally spaced.
    n_times : int, default=20
        Maximum number of times if `times` is None.
    n_folds : int >= 2, default=5
        Stratified folds that hold out series. `ConvolutionClassifier` and `TableClassifier` have
        held-out probabilities of their own.

    Attributes
    ----------
    classes_ : (G,) array
        Labels, sorted.
    onset_ : int
        Number of leading values that are equal in all training series, and are left out.
    classifiers_ : list of estimators
        The classifier of each time.
    times_ : (p,) array of int
        Times of decision.
    costs_ : (p, G, G) array
        Costs by time, true class and decided class.
    policy_ : Policy
        Regressions of the expected savings of waiting.
    n_channels_ : int
        Number of channels.
    n_timepoints_ : int
        Number of values of the longest series.
    n_features_in_ : int
        Number of entries of a sample, ``n_channels_ * n_timepoints_``.

    See Also
    --------
    ReliableClassifier : Promises how often an early label is the final label.
    eigenfeat.signals.ConvolutionClassifier : The default classifier; its features are computed once
        for all times.

    References
    ----------
    F. A. Longstaff, E. S. Schwartz, Review of Financial Studies 14, 2001. J. M. Bilski, A.
    Jastrzebska, "CALIMERA", 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from eigenfeat.early import MinimumCostClassifier
    >>> random = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 40)
    >>> X = np.outer(2 * y - 1, np.arange(10)) / 3 + random.standard_normal((80, 10))
    >>> lda = LinearDiscriminantAnalysis()
    >>> slow = MinimumCostClassifier(lda, delay_cost=0.01).fit(X, y).predict_early(X)
    >>> fast = MinimumCostClassifier(lda, delay_cost=2.0).fit(X, y).predict_early(X)
    >>> bool(fast.time.mean() < slow.time.mean())
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classifier": [HasMethods(["fit"]), None],
        "delay_cost": [Real, "array-like"],
        "misclassification_cost": [Real, "array-like", None],
        "times": ["array-like", None],
        "n_times": [Interval(Integral, 1, MOST, closed="both")],
        "n_folds": [Interval(Integral, 2, MOST, closed="both")],
    }

    classes_: Labels
    n_channels_: int
    n_timepoints_: int

    def __init__(
        self,
        classifier: Estimator | None = None,
        delay_cost: ArrayLike = 1.2,
        misclassification_cost: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
        n_times: int = 20,
        n_folds: int = 5,
    ) -> None:
        self.classifier = classifier
        self.delay_cost = delay_cost
        self.misclassification_cost = misclassification_cost
        self.times = times
        self.n_times = n_times
        self.n_folds = n_folds

    def fit(self, X: ArrayLike, y: ArrayLike) -> MinimumCostClassifier:
        """Fit a classifier for each time, and learn when to decide.

        Parameters
        ----------
        X : (n, T) or (n, channels, T) array-like, or list of series
            Complete series; a shorter series is complete at its own end. Arrays with channels and
            lists may have missing values, which are NaN and are replaced by the last known value,
            or before the first known value by the mean of the training series; other arrays may
            not. NaN at the end of a series is a missing value: do not pad shorter series with NaN.
        y : (n,) array-like
            Labels.

        Returns
        -------
        MinimumCostClassifier
            The estimator itself; an error leaves it unchanged.
        """
        self._validate_params()
        with unchanged_on_error(self), ignore_single_sample_warning():
            checked, y, layout = training_rows(self, X, y)
            check_classification_targets(y)
            self.classes_, codes = np.unique(y, return_inverse=True)
            check_two_labels(self.classes_)
            if len(y) == len(self.classes_):
                raise ValueError(
                    "y: expected a class of two samples or more, got one sample of each class"
                )
            count_cores()
            self.n_channels_, self.n_timepoints_ = layout.channels, layout.length
            rows = layout.series(checked.rows)
            classifier = self._classifier()
            self._stages, held_out = fit_stages(
                classifier, rows, y, self._times_after, self.n_folds
            )
            self.onset_, self.times_ = self._stages.onset, self._stages.times
            self.classifiers_ = self._stages.models
            if held_out.skipped and self.times is not None:
                left_out = np.setdiff1d(self._times_after(self.onset_), self.times_)
                warn_caller(
                    f"times: left out {left_out.tolist()}, at which the classifier cannot be "
                    f"fitted: {held_out.skipped}",
                    UserWarning,
                )
            self.costs_ = self._costs()
            probabilities, series = held_out.stacked()
            costs_of_deciding = [
                table[codes[series], (p @ table).argmin(axis=1)]
                for table, p in zip(self.costs_, probabilities, strict=True)
            ]
            self.policy_ = fitted_policy(probabilities, np.stack(costs_of_deciding))
        return self

    def predict(self, X: ArrayLike) -> Labels:
        """Predict the labels of complete series.

        Parameters
        ----------
        X : (m, T) or (m, channels, T) array-like, or list of series
            As in `predict_early`.

        Returns
        -------
        (m,) array
        """
        series, last = self._series(X)[0], len(self.times_) - 1
        probability = self._stages.probabilities([last], series)[0]
        return self.classes_[(probability @ self.costs_[last]).argmin(axis=1)]

    def predict_early(self, X: ArrayLike) -> EarlyDecisions:
        """Decide series at the least expected cost.

        Parameters
        ----------
        X : (m, T) or (m, channels, T) array-like, or list of series
            Complete series; a decision at a time uses only the values up to that time. A shorter
            series is decided at its own end. NaN is a missing value, as in `fit`.

        Returns
        -------
        EarlyDecisions
            Labels, times and expected costs.
        """
        series, ends = self._series(X)
        code = np.zeros(len(series), dtype=np.intp)
        time = np.zeros(len(series), dtype=np.int64)
        cost = np.zeros(len(series))
        waiting = np.ones(len(series), dtype=bool)
        batch = 2  # times computed together; the number doubles, because most decisions are early
        begin = 0
        while begin < len(self.times_) and waiting.any():
            group = range(begin, min(begin + batch, len(self.times_)))
            undecided = np.flatnonzero(waiting)
            by_time = self._stages.probabilities(group, series[undecided])
            for k, probabilities in enumerate(by_time, begin):
                t, is_waiting = self.times_[k], waiting[undecided]
                rows, probability = undecided[is_waiting], probabilities[is_waiting]
                expected = probability @ self.costs_[k]
                code[rows] = expected.argmin(axis=1)
                cost[rows] = expected[np.arange(len(rows)), code[rows]]
                stop = self._stops(k, probability) | (ends[rows] <= t)
                time[rows[stop]] = np.minimum(t, ends[rows[stop]])
                waiting[rows[stop]] = False
            begin, batch = begin + batch, 2 * batch
        return EarlyDecisions(self.classes_[code], time, cost=cost)

    def stream(self) -> CostStream:
        """Open a stream for one series that arrives value by value.

        Returns
        -------
        CostStream
            Its `push` returns None before the time at which `predict_early` would decide, and then
            the decision.
        """
        return CostStream(self)

    def _series(self, X: Any) -> tuple[_Array, NDArray[np.int64]]:
        """Series (n, channels, T) without missing values, and their numbers of samples."""
        check_is_fitted(self)
        count_cores()  # without the warnings that a nested classifier would raise
        layout = Layout(self.n_channels_, self.n_timepoints_)
        checked = ended_rows(self, X, layout)
        series = self._stages.filled(layout.series(checked.rows))
        return series, checked.ends // layout.channels

    def _stops(self, k: int, probability: _Array) -> NDArray[np.bool_]:
        """Mask of the series for which waiting at the k-th time saves nothing."""
        if k == len(self.times_) - 1:
            return np.ones(len(probability), dtype=bool)
        return np.asarray(self.policy_.saving(k, probability) <= 0)

    def _classifier(self) -> Any:
        if self.classifier is None:
            return convolutions()
        if hasattr(self.classifier, "predict_proba"):
            return self.classifier
        if hasattr(self.classifier, "decision_function"):
            return CalibratedClassifierCV(self.classifier, cv=2, ensemble=False)
        raise ValueError(
            "classifier: expected a classifier with predict_proba or decision_function, got "
            f"{show(self.classifier)}"
        )

    def _costs(self) -> _Array:
        """Costs (p, G, G) by time, true class and decided class."""
        d, k = self.n_timepoints_, len(self.classes_)
        delay = _finite(self.delay_cost, "delay_cost")
        if delay.shape not in ((), (d,)):
            raise ValueError(
                f"delay_cost: expected a number or shape ({d},), got shape {delay.shape}"
            )
        if (np.diff(delay, prepend=0.0, axis=-1) < 0 if delay.ndim else delay < 0).any():
            raise ValueError(
                "delay_cost: expected nonnegative costs that do not decrease with time, got "
                f"{show(self.delay_cost)}"
            )
        by_time = delay * self.times_ / d if delay.ndim == 0 else delay[self.times_ - 1]
        table: Any = self.misclassification_cost
        table = _finite(1.0 if table is None else table, "misclassification_cost")
        if table.ndim == 0:
            if table < 0:
                raise ValueError(
                    f"misclassification_cost: expected a nonnegative cost, got {show(table.item())}"
                )
            table = np.where(np.eye(k) > 0, 0.0, table)
        if table.shape != (k, k):
            raise ValueError(
                f"misclassification_cost: expected a number or shape {(k, k)}, rows for true and "
                f"columns for decided classes in the order {show(self.classes_.tolist())}, got "
                f"shape {table.shape}"
            )
        return np.asarray(table + by_time[:, None, None])

    def _times_after(self, onset: int) -> NDArray[np.int64]:
        """Times of decision after `onset`, the number of leading values that all series share."""
        d = self.n_timepoints_
        if self.times is not None:
            times = np.union1d(read_times(self.times, "times", 1, d), [d])
            return times[times > onset]
        count = min(int(self.n_times), d - onset)
        share = np.arange(1, count + 1) / count
        later = np.maximum(np.ceil(share * (d - onset) - 1e-9), 1)  # 1e-9: no effect of rounding
        return np.unique(onset + later).astype(np.int64)


class CostStream:
    """Stream of one series that arrives value by value: see `MinimumCostClassifier.stream`.

    Parameters
    ----------
    model : MinimumCostClassifier
        Fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from eigenfeat.early import MinimumCostClassifier
    >>> y = np.repeat([0, 1], 50)
    >>> X = np.random.default_rng(0).standard_normal((100, 8)) + 3 * y[:, None]
    >>> model = MinimumCostClassifier(LinearDiscriminantAnalysis(), delay_cost=0.2).fit(X, y)
    >>> stream = model.stream()
    >>> [decision and decision.label.item() for decision in map(stream.push, [1.4, -1.0, -1.0])]
    [None, 0, 0]
    """

    def __init__(self, model: MinimumCostClassifier) -> None:
        check_is_fitted(model)
        self._model = model
        self.reset()

    @property
    def seen(self) -> int:
        """Number of values that the series has received, at most until its decision."""
        return self._seen

    @property
    def decision(self) -> CostDecision | None:
        """The decision, or None."""
        return self._decision

    def push(self, value: ArrayLike, *, time: int | None = None) -> CostDecision | None:
        """Push the next value.

        Parameters
        ----------
        value : float or (channels,) array-like
            As in `Stream.push`.
        time : int, optional
            As in `Stream.push`.

        Returns
        -------
        CostDecision or None
            The decision, from the deciding value on; None before.

        Raises
        ------
        ValueError
            As in `Stream.push`; then nothing is pushed.
        """
        length = self._model.n_timepoints_
        sample = pushed_value(value, self._model.n_channels_, decided=self._decision is not None)
        if self._decision is not None:
            return self._decision
        t = self._seen + 1 if time is None else time
        if not isinstance(t, Integral) or isinstance(t, bool) or not self._seen < t <= length:
            raise ValueError(
                f"time: expected an integer in {self._seen + 1}..{length}, got {show(time)}"
            )
        times = self._model.times_
        # Skipped values are missing; the series may be decided at the times of such values.
        for k in np.flatnonzero((times > self._seen) & (times < t)):
            if self._decide(int(k), int(times[k])) is not None:
                return self._decision
        k = int(np.searchsorted(times, t))
        try:
            self._samples[t - 1] = sample
            decision = self._decide(k, int(t)) if times[k] == t else None
        except BaseException:
            self._samples[t - 1] = np.nan
            raise
        self._seen = int(t)
        return decision

    def finish(self) -> CostDecision:
        """Decide the series, which has ended, from its known values.

        Returns
        -------
        CostDecision
            The decision, also if it was made before.

        Raises
        ------
        ValueError
            If the series has no known value; then nothing is decided.
        """
        if self._decision is None:
            if np.isnan(self._samples).all():
                raise ValueError("finish: expected at least one known sample, got none")
            k = int(np.searchsorted(self._model.times_, self._seen))
            self._decide(k, self._seen, ended=True)
        assert self._decision is not None
        return self._decision

    def reset(self) -> None:
        """Start a new series."""
        shape = self._model.n_timepoints_, self._model.n_channels_
        self._samples = np.full(shape, np.nan)
        self._seen, self._decision = 0, None

    _samples: _Array
    _seen: int
    _decision: CostDecision | None

    def _decide(self, k: int, seen: int, *, ended: bool = False) -> CostDecision | None:
        """Decide at the k-th time if waiting saves nothing or the series has ended."""
        model = self._model
        series = model._stages.filled(self._samples[None])
        probability = model._stages.probabilities([k], series)[0]
        if ended or model._stops(k, probability)[0]:
            expected = (probability @ model.costs_[k])[0]
            code = int(expected.argmin())
            self._seen = seen
            self._decision = CostDecision(model.classes_[code], seen, float(expected[code]))
        return self._decision


def _finite(values: Any, name: str) -> _Array:
    array = real_array(values, name, np.dtype(float))
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: expected finite costs, got {show(array[~np.isfinite(array)])}")
    return array

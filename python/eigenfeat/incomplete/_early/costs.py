"""Early decisions of least expected cost: the cost of waiting against its expected savings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.plain_rows import plain_rows
from eigenfeat._base.saved import fits
from eigenfeat._base.spread import is_rounding
from eigenfeat._base.threads import count_cores
from eigenfeat._base.types import Estimator, Labels
from eigenfeat._base.validation import MOST, real_array, show
from eigenfeat.incomplete._early.cost_tables import cost_tables
from eigenfeat.incomplete._early.waiting import Regression, fitted_policy, views_of
from eigenfeat.incomplete.decisions import EarlyLabels
from eigenfeat.incomplete.scores import given_times, harmonic_mean
from eigenfeat.incomplete.series import fold_masks, ignore_single_sample_warning, series_of
from eigenfeat.incomplete.series_classifier import SeriesClassifier

if TYPE_CHECKING:
    from eigenfeat.incomplete.reliable import ReliableClassifier

__all__ = ["CostDecisions", "MinimumCostClassifier"]

_Array = NDArray[np.float64]

PRICES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)


def _onset(X: _Array) -> int:
    """Number of leading samples in which all series are the same, to rounding."""
    half_range = X.max(axis=0) / 2 - X.min(axis=0) / 2
    varies = ~is_rounding(half_range, np.abs(X).max(initial=0.0), len(X))
    return int(varies.argmax()) if varies.any() else X.shape[1]


@dataclass(frozen=True, eq=False)
class CostDecisions(EarlyLabels):
    """Labels, times and expected costs of the decisions for n series.

    Attributes
    ----------
    label, time : (n,) arrays
        As in `EarlyLabels`.
    cost : (n,) array
        Expected cost of misclassification and delay at the time of decision, by the classifier's
        probabilities.
    """

    cost: _Array


class MinimumCostClassifier(SeriesClassifier):
    r"""Decide each series when waiting is expected to cost more than it saves.

    Use it where a delay has a cost. Set `delay_cost` first, then `classifier`, a dict of
    candidates. User guide: :doc:`/guide/early_costs`.

    For each of several times, one classifier is fitted to the samples up to it. A series is
    decided as the class with the least expected cost at the first time t at which

    .. math:: E[\text{value later} - \text{cost of deciding now} \mid p_t] \ge 0,

    where p_t are the classifier's probabilities. The expectation is a kernel ridge regression on
    held-out rows, by backward induction from the last time. It makes no promise about single
    decisions; `predict_early` accepts a `ReliableClassifier`, whose promise then holds as well.

    Parameters
    ----------
    classifier : estimator, dict of str to estimator, or None, default=None
        Classifier with `predict_proba`; cloned for each time. None: shrinkage LDA. A dict:
        candidates, of which the best in cross-validation is chosen: by the harmonic mean with
        delay_cost="harmonic", otherwise by the cost of its decisions.
    delay_cost : float, callable, array-like or "harmonic", default=0.5
        Cost of waiting. A number: the cost of the whole series, to which shorter times are
        proportional. A function of the number of samples. A table of shape (d,) by samples - 1, or
        (d, G, G), also by the true and the decided class. "harmonic": the number whose decisions
        have the largest cross-validated harmonic mean of accuracy and 1 - earliness.
    misclassification_cost : float, (G, G) array-like or None, default=None
        Cost of a wrong label; a table is indexed by the true class, then the decided one, classes
        sorted. None: 1.
    times : ascending integers in 1..d or None, default=None
        Times of decision; d is always included, and times up to `onset_` are left out. None: up
        to `n_times`, closer at first.
    n_times : int, default=20
        Maximum number of times if `times` is None.
    n_folds : int >= 2, default=5
        Folds that hold out rows from the classifiers, stratified by class.

    Attributes
    ----------
    classes_ : (G,) array
        Labels, sorted.
    onset_ : int
        Number of leading samples that are the same in all training series. They are left out.
    classifiers_ : list of estimators
        Fitted classifiers, one for each time, of the samples from `onset_` on.
    times_ : (p,) array of int
        Times of decision.
    costs_ : (p, G, G) array
        Costs by time, true class and decided class.
    delay_cost_ : float, callable or array
        The cost given or chosen.
    harmonic_mean_ : float
        With "harmonic", the cross-validated harmonic mean at the chosen cost.
    best_candidate_ : str
        With candidates, the name of the chosen one.
    candidate_scores_ : dict of str to float
        With candidates, harmonic means, or negative mean costs; NaN for those that could not be
        fitted.
    n_features_in_ : int
        Number of samples of a series, d.

    Raises
    ------
    ValueError
        If rows, labels, costs or parameters are invalid, or no fold can be fitted.

    See Also
    --------
    ReliableClassifier : A promise instead of a cost.
    ReliableClassifierCV : A compromise without costs.
    eigenfeat.signals.ConvolutionClassifier : A candidate for classes that differ in shape.

    References
    ----------
    F. A. Longstaff, E. S. Schwartz, "Valuing American options by simulation: a simple least-squares
    approach", Review of Financial Studies 14, 2001. J. M. Bilski, A. Jastrzebska, "CALIMERA: a new
    early time series classification method", Information Processing and Management 60, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.incomplete import MinimumCostClassifier
    >>> random = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 40)
    >>> X = np.outer(2 * y - 1, np.arange(10)) / 3 + random.standard_normal((80, 10))
    >>> slow = MinimumCostClassifier(delay_cost=0.01).fit(X, y).predict_early(X)
    >>> fast = MinimumCostClassifier(delay_cost=2.0).fit(X, y).predict_early(X)
    >>> bool(fast.time.mean() < slow.time.mean())
    True
    """

    _saved: ClassVar[dict[str, str]] = {
        "classes_": "labels k",
        "onset_": "count",
        "times_": "whole p",
        "costs_": "numbers p k k",
        "_policy": "of Policy",
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classifier": [HasMethods(["fit", "predict_proba"]), dict, None],
        "delay_cost": [Real, callable, "array-like", StrOptions({"harmonic"})],
        "misclassification_cost": [Real, "array-like", None],
        "times": ["array-like", None],
        "n_times": [Interval(Integral, 1, MOST, closed="both")],
        "n_folds": [Interval(Integral, 2, MOST, closed="both")],
    }

    def __init__(
        self,
        classifier: Estimator | dict[str, Estimator] | None = None,
        delay_cost: ArrayLike | Callable[[int], float] = 0.5,
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

    @ignore_single_sample_warning()
    def _learn(self, X: _Array, y: Labels, codes: NDArray[np.intp]) -> None:
        check_two_labels(self.classes_)
        for name in ("harmonic_mean_", "best_candidate_", "candidate_scores_"):
            self.__dict__.pop(name, None)
        count_cores()
        self.onset_ = _onset(X)
        if self.onset_ == X.shape[1]:
            raise ValueError("X: expected series that differ at some time, got the same in all")
        self.times_ = self._chosen_times(X.shape[1])
        chosen, held, seen = self._chosen(X, y, codes)
        self.costs_ = self._tables(self.delay_cost_)
        regressions = [Regression(views_of(p)) for p in held[:-1]]
        paid = self._paid(self.costs_, held, codes[seen])
        self._policy = fitted_policy(regressions, held, paid)
        self.classifiers_ = [self._fitted(chosen, X, y, t) for t in self.times_]

    def _labels(self, rows: _Array) -> Labels:
        return self.classes_[self._decided(len(self.times_) - 1, rows)[0]]

    def predict_early(
        self, X: ArrayLike, *, promise: ReliableClassifier | None = None
    ) -> CostDecisions:
        """Decide series at the least expected cost.

        Parameters
        ----------
        X : (m, d) array-like, or list of series
            Complete series; at each time only the samples up to it are used. A shorter one is
            decided at its own end.
        promise : ReliableClassifier, optional
            Fitted model. Series then wait until it decides them as well, and get its label, which
            is that of the complete series as often as it promises.

        Returns
        -------
        CostDecisions
            Labels, times and expected costs.
        """
        rows, ends = self._series(X)
        code = np.zeros(len(rows), dtype=np.intp)
        time = np.zeros(len(rows), dtype=np.int64)
        cost = np.zeros(len(rows))
        waiting = np.ones(len(rows), dtype=bool)
        given = rows if series_of(X) is None else X  # with their own ends
        kept = None if promise is None else promise.predict_early(given, steps=self.times_)
        for k, t in enumerate(self.times_):
            left = np.flatnonzero(waiting if kept is None else waiting & (kept.time <= t))
            if not len(left):
                continue
            code[left], cost[left], probability = self._decided(k, rows[left])
            if kept is not None:  # its label is what is decided, and paid for
                code[left] = np.searchsorted(self.classes_, kept.label[left])
                cost[left] = np.einsum("ni,in->n", probability, self.costs_[k][:, code[left]])
            stop = np.ones(len(left), dtype=bool)
            if k < len(self.times_) - 1:
                stop = (self._policy.saving(k, probability) <= 0) | (ends[left] <= t)
            time[left[stop]] = np.minimum(t, ends[left[stop]])
            waiting[left[stop]] = False
        return CostDecisions(self.classes_[code], time, cost)

    def waiting_saves(self, X: ArrayLike) -> _Array:
        """Return the expected savings of waiting, for series known up to one of `times_`.

        Parameters
        ----------
        X : (m, t) array-like
            The first t samples, t among `times_`.

        Returns
        -------
        (m,) array
            Positive where it is better to wait; 0 for complete series.
        """
        check_is_fitted(self)
        rows = real_array(plain_rows(X), "X", np.dtype(np.float64))
        known = rows.shape[1] if rows.ndim == 2 else -1
        k = int(np.searchsorted(self.times_, known))
        if k == len(self.times_) or self.times_[k] != known or not np.isfinite(rows).all():
            raise ValueError(
                f"X: expected finite rows of as many samples as one of times_, got {rows.shape}"
            )
        if k == len(self.times_) - 1:
            return np.zeros(len(rows))
        return self._policy.saving(k, self._probability(self.classifiers_[k], rows))

    def _candidates(self) -> dict[str, Any]:
        if self.classifier is None:
            return {"LDA": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")}
        if not isinstance(self.classifier, dict):
            return {"classifier": self.classifier}
        found = self.classifier
        if not found or not all(
            isinstance(name, str) and hasattr(one, "fit") and hasattr(one, "predict_proba")
            for name, one in found.items()
        ):
            raise ValueError(
                "classifier: expected names with classifiers that have predict_proba, at least "
                f"one, got {show(found)}"
            )
        return found

    def _chosen(
        self, X: _Array, y: NDArray[Any], codes: NDArray[np.intp]
    ) -> tuple[Any, list[_Array], NDArray[np.intp]]:
        """The classifier, its probabilities by time of rows it has not seen, and which they are."""
        candidates = self._candidates()
        self.delay_cost_ = self.delay_cost
        prices = PRICES if isinstance(self.delay_cost, str) else (self.delay_cost,)
        best: tuple[float, str, Any, list[_Array], NDArray[np.intp]] | None = None
        scores, failure = {}, None
        for name, candidate in candidates.items():
            try:
                held, seen = self._held_out(candidate, X, y)
            except ValueError as error:
                scores[name], failure = float("nan"), failure or error
                continue
            price, score = self.delay_cost, 0.0
            if len(prices) > 1 or len(candidates) > 1:
                price, score = self._tried(prices, held, codes[seen], y[seen])
            scores[name] = score
            if best is None or score > best[0]:
                best = score, name, price, held, seen
        if best is None:
            assert failure is not None
            raise failure
        score, name, self.delay_cost_, held, seen = best
        if len(prices) > 1:
            self.harmonic_mean_ = score
        if isinstance(self.classifier, dict):
            self.best_candidate_, self.candidate_scores_ = name, scores
        return candidates[name], held, seen

    def _chosen_times(self, d: int) -> NDArray[np.int64]:
        """Times of decision, without those at which all series are still the same."""
        if self.times is not None:
            times = given_times(self.times, d)
            return times[times > self.onset_]
        count = min(int(self.n_times), d - self.onset_)
        share = (np.arange(1, count + 1) / count) ** 1.5
        later = np.maximum(np.ceil(share * (d - self.onset_) - 1e-9), 1)
        return np.unique(self.onset_ + later).astype(np.int64)

    def _fitted(self, model: Any, X: _Array, y: NDArray[Any], t: int) -> Any:
        """The classifier at a time; class frequencies where these series do not differ yet."""
        seen = X[:, self.onset_ : t]
        if len(seen) and _onset(X) >= t:
            return DummyClassifier(strategy="prior").fit(seen, y)
        return clone(model).fit(seen, y)

    def _probability(self, model: Any, rows: _Array) -> _Array:
        """(n, G), of all classes, also those that a fold had none of."""
        out = np.zeros((len(rows), len(self.classes_)))
        found = np.asarray(model.predict_proba(rows[:, self.onset_ :]), dtype=float)
        found = np.nan_to_num(found)
        out[:, np.searchsorted(self.classes_, model.classes_)] = found
        total = out.sum(axis=1, keepdims=True)
        return np.where(total > 0, out / np.where(total > 0, total, 1.0), 1 / out.shape[1])

    def _held_out(
        self, model: Any, X: _Array, y: NDArray[Any]
    ) -> tuple[list[_Array], NDArray[np.intp]]:
        """Probabilities by time of rows that were not seen, and which rows these are."""
        parts: list[list[_Array]] = []
        rows: list[NDArray[np.intp]] = []
        failure = None
        for held in fold_masks(y, self.n_folds):
            try:
                at_times = []
                for t in self.times_:
                    fitted = self._fitted(model, X[~held], y[~held], t)
                    at_times.append(self._probability(fitted, X[held][:, :t]))
                parts.append(at_times)
                rows.append(np.flatnonzero(held))
            except ValueError as error:  # such as a class that is too small without the fold
                failure = f"{error} (by the first {t} samples)"
        if not parts:
            if failure is None:
                raise ValueError("y: expected a class of two rows or more, got one row of each")
            raise ValueError(
                "classifier: expected one that can be fitted to the series outside a fold, got "
                f"{show(model)}: {failure}"
            )
        return [np.concatenate(p) for p in zip(*parts, strict=True)], np.concatenate(rows)

    def _tables(self, delay_cost: Any) -> _Array:
        d, k = self.n_features_in_, len(self.classes_)
        return cost_tables(delay_cost, self.misclassification_cost, self.times_, d, k)

    def _paid(self, tables: _Array, held: list[_Array], codes: NDArray[np.intp]) -> _Array:
        """(p, n): what deciding at each time would have cost."""
        return np.stack(
            [
                table[codes, (p @ table).argmin(axis=1)]
                for table, p in zip(tables, held, strict=True)
            ]
        )

    def _decided(self, k: int, rows: _Array) -> tuple[NDArray[np.intp], _Array, _Array]:
        """Classes of least expected cost, that cost, and probabilities."""
        probability = self._probability(self.classifiers_[k], rows[:, : self.times_[k]])
        expected = probability @ self.costs_[k]
        code = expected.argmin(axis=1)
        return code, expected[np.arange(len(code)), code], probability

    def _tried(
        self, prices: Any, held: list[_Array], codes: NDArray[np.intp], y: NDArray[Any]
    ) -> tuple[Any, float]:
        """The price whose decisions do best, by policies of other folds, and how well."""
        right = np.zeros((len(prices), len(codes)), dtype=bool)
        time = np.zeros((len(prices), len(codes)))
        cost = np.zeros(len(codes))
        for out in fold_masks(y, self.n_folds):
            kept, fresh = [p[~out] for p in held], [p[out] for p in held]
            regressions = [Regression(views_of(p)) for p in kept[:-1]]
            for i, price in enumerate(prices):
                tables = self._tables(price)
                paid = self._paid(tables, kept, codes[~out])
                stop = fitted_policy(regressions, kept, paid).stops(fresh)
                labels = np.stack(
                    [(p @ t).argmin(axis=1) for p, t in zip(fresh, tables, strict=True)]
                )
                right[i, out] = labels[stop, np.arange(len(stop))] == codes[out]
                time[i, out] = self.times_[stop]
                cost[out] = self._paid(tables, fresh, codes[out])[stop, np.arange(len(stop))]
        if len(prices) == 1:
            return prices[0], -float(cost.mean())
        means = [
            harmonic_mean(float(r.mean()), float(t.mean()) / self.n_features_in_)
            for r, t in zip(right, time, strict=True)
        ]
        best = int(np.argmax(means))
        return prices[best], float(means[best])

    def _check_loaded(self) -> None:
        p, k, policy = len(self.times_), len(self.classes_), self._policy
        sound = len(self.classifiers_) == p > 0
        sound = sound and all(hasattr(one, "predict_proba") for one in self.classifiers_)
        fits(sound, "MinimumCostClassifier.classifiers_")
        fits(self.times_[-1] == self.n_features_in_, "MinimumCostClassifier.times_")
        fits(
            self.times_[0] > self.onset_ and np.all(np.diff(self.times_) > 0),
            "MinimumCostClassifier.times_",
        )
        sound = len(policy.fitted) == len(policy.regressions) == p - 1
        fits(sound, "MinimumCostClassifier._policy")
        for one, (coefficients, _) in zip(policy.regressions, policy.fitted, strict=True):
            fits(one.known.shape == (len(coefficients), k + 2), "MinimumCostClassifier._policy")

"""`ReliableClassifier`: classify incomplete samples whose labels are final."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from eigenfeat._base.labels import check_two_labels, plain_labels
from eigenfeat._base.types import Estimator, Labels, RandomState
from eigenfeat._base.validation import MOST, check_number, show
from eigenfeat.early.completion import filled
from eigenfeat.early.decisions import Decisions, EarlyDecisions, decide, decide_early
from eigenfeat.early.fitted import (
    PROMISES,
    FittedModel,
    correct_rule,
    fit_model,
    fit_prefixes,
    promise_names,
)
from eigenfeat.early.sampling import Sampled, SampledRule, largest_bound
from eigenfeat.early.series import (
    Series,
    decision_times,
    ended_rows,
    known_rows,
    stratified_draw,
    taus_of,
    training_rows,
)
from eigenfeat.early.set_rules import SETS
from eigenfeat.early.streams import Stream, Streams
from eigenfeat.samples.estimator import BaseEstimator, unchanged_on_error

__all__ = ["ReliableClassifier"]

_Array = NDArray[np.float64]
_Model = TypeVar("_Model", bound="ReliableClassifier")

# Attributes of the correction.
_CORRECTED = (
    "reliability_",
    "reliability_by_class_",
    "correction_",
    "decision_times_",
)


class ReliableClassifier(ClassifierMixin, BaseEstimator):
    """Classify incomplete samples as soon as the label of the complete sample is known.

    Use it where a required share of early labels has to be final. A sample is decided as class c
    if, given its known entries, the complete sample would be classified as c with probability at
    least `reliability`; held-out samples correct this rule. Choose `classifier` and `reliability`
    first. User guide: :doc:`/guide/early`.

    Parameters
    ----------
    classifier : estimator
        Any classifier, also in ``FrozenEstimator``.
    completion : estimator or None, default=None
        `GaussianCompletion` or `MixtureCompletion`. None: ``MixtureCompletion(overall=0.5)`` with
        the rule "pairwise", complete training samples and at most 32 classes, otherwise
        ``GaussianCompletion()``.
    rule : str or Sampled, default="auto"
        "auto": "pairwise" for linear and "quadratic" for quadratic discriminants, "sampled" for
        other classifiers. "mahalanobis", "box" and "chebyshev" are more cautious. "prefixes" also
        fits `ConvolutionClassifier` to the first values at up to 24 times, and decides earlier.
    reliability : float in (0, 1), default=0.95
        Required probability that an early label is the label of the complete sample.
    features : transformer or None, default=None
        Linear map of samples to the features that are classified, such as LDG or PCA.
    conditional : str, sequence of str or None, default="auto"
        Groups for which the promise holds: all series (None), by "true" class, by "predicted"
        class, or by "time" of decision. "auto": "true" if every class has enough held-out samples,
        else None, with a warning; decisions of a rare class may then all be wrong.
    target : label, sequence of labels or None, default=None
        Classes of interest: only they are decided before the end. None: all classes.
    correct : bool, float in (0, 1) or "average", default=True
        Whether held-out samples correct the rule, so that the promise does not depend on the
        completion's model. A number is the confidence over training sets; True means 0.9; "average"
        promises the share on average. Reliability 0.95 needs 45 held-out samples, 0.99 needs 230.
    held_out : int >= 2 or float in (0, 1), default=5
        Samples that correct the rule: a number of folds, or a share that is left out of the fit.
    random_state : int, RandomState or None, default=0
        Seed for "sampled" and for drawing held-out samples.
    n_threads : int or None, default=None
        Number of threads; None uses all OpenMP threads. Results do not depend on it.

    Attributes
    ----------
    classes_ : (G,) array
        Labels.
    classifier_ : estimator
        The fitted classifier.
    completion_ : estimator
        The fitted completion.
    features_ : estimator or None
        The fitted features.
    fitted_ : object
        All fitted parts and the rule.
    rule_ : str
        Name of the rule.
    largest_reliability_ : float
        The largest reliability that the rule's number of completions allows.
    reliability_ : float
        The promised reliability, if the rule is corrected.
    reliability_by_class_ : (G,) array
        Certified share of final labels among the series of each class, at most `reliability_`; NaN
        for classes without held-out samples. Each share holds with the confidence of `correct`.
    decision_times_ : (p,) array of int
        Numbers of values after which series may be decided.
    correction_ : Correction
        Thresholds that the scores of decisions must exceed, learned from held-out samples.
    n_channels_ : int
        Number of channels.
    n_timepoints_ : int
        Number of values of the longest series.
    n_features_in_ : int
        Number of entries of a sample, ``n_channels_ * n_timepoints_``.

    See Also
    --------
    ReliableClassifierCV : Chooses classifier, completion and reliability by cross-validation.
    MinimumCostClassifier : Weighs the cost of waiting, without a promise about single decisions.

    Notes
    -----
    With ``conditional="true"``: if held-out samples and a new sample of class k are exchangeable,
    then with the confidence ``P(early label = final label | class k) >= reliability`` for all
    classes k simultaneously, at `decision_times_`. This is a theorem for samples that are held out
    from the fit (``held_out=0.5``), and approximate for folds (:doc:`/guide/early_promises`).

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, chapter 5. V. Vovk et al., "Algorithmic
    learning in a random world", 2005. L. Ringel et al., ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from eigenfeat import ReliableClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X, y)
    >>> model.decide([[5.0, 3.4, 1.4, np.nan], [6.0, 2.9, np.nan, np.nan]]).labels
    array([0, None], dtype=object)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classifier": [HasMethods(["fit", "predict"])],
        "completion": [HasMethods(["fit", "condition"]), None],
        "rule": [StrOptions({"auto", "pairwise", *SETS, "sampled", "prefixes"}), Sampled],
        "reliability": [Interval(Real, 0, 1, closed="neither")],
        "features": [HasMethods(["fit", "transform"]), None],
        "conditional": [StrOptions({"auto", *PROMISES}), "array-like", None],
        "target": ["array-like", str, Real, "boolean", None],
        "correct": ["boolean", Interval(Real, 0, 1, closed="neither"), StrOptions({"average"})],
        "held_out": [
            Interval(Integral, 2, MOST, closed="both"),
            Interval(Real, 0, 1, closed="neither"),
        ],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        classifier: Estimator,
        completion: Estimator | None = None,
        rule: str | Sampled = "auto",
        reliability: float = 0.95,
        *,
        features: Estimator | None = None,
        conditional: str | Sequence[str] | None = "auto",
        target: Any = None,
        correct: bool | float | str = True,
        held_out: int | float = 5,
        random_state: RandomState = 0,
        n_threads: int | None = None,
    ) -> None:
        self.classifier = classifier
        self.completion = completion
        self.rule = rule
        self.reliability = reliability
        self.features = features
        self.conditional = conditional
        self.target = target
        self.correct = correct
        self.held_out = held_out
        self.random_state = random_state
        self.n_threads = n_threads

    # ---- fit

    def fit(self, X: ArrayLike, y: ArrayLike) -> ReliableClassifier:
        """Fit completion, features and classifier, and correct the rule.

        Parameters
        ----------
        X : (n, d) or (n, channels, times) array-like, or list of series
            Complete samples, or series of shape (times,) or (channels, times), which may differ in
            length; a shorter series is complete at its end. The completion fills missing values of
            series, which are NaN. NaN at the end of a series is a missing value: do not pad shorter
            series with NaN. Fill missing entries of samples first:
            ``GaussianCompletion().fit(X).transform(X)``.
        y : (n,) array-like
            Labels.

        Returns
        -------
        ReliableClassifier
            The estimator itself.

        Warns
        -----
        UserWarning
            If there are too few held-out samples for the promise, in a class or in total. The
            warning says which promise holds instead, or that all samples wait for their end.
        """
        self._validate_params()
        with unchanged_on_error(self):
            rows, y, layout = training_rows(self, X, y)
            check_classification_targets(y)
            check_two_labels(classes := np.unique(y))
            self._check_promises(classes)
            held_out = self._held_out_mask(y)
            fit_rows, fit_y = rows.take(~held_out), y[~held_out]
            model, known = fit_model(self, fit_rows, fit_y, layout), None
            if self.rule == "prefixes":
                model, known = fit_prefixes(model, fit_rows, fit_y)
            self._set_model(model)
            if held_out.any():
                self._correct(rows.take(held_out), y[held_out], classes)
            elif self.correct:
                self._correct(rows, y, classes, by_folds=True, known=known)
        return self

    def _check_promises(self, labels: Labels) -> None:
        """ValueError unless `conditional` and `target` are valid for these labels."""
        names, options = promise_names(self.conditional), ""
        allowed: tuple[str, ...] = PROMISES
        if self.correct == "average":
            allowed, options = ("true",), " with correct='average'"
        elif not self.correct:
            allowed, options = (), " with correct=False"
        valid = set(names) <= {*allowed} and len(set(names)) == len(names) > 0
        if self.conditional is not None and names != ("auto",) and not valid:
            groups = f", or some of {list(allowed)}" if allowed else ""
            raise ValueError(
                f"conditional: expected 'auto', None{groups}{options}, got {show(self.conditional)}"
            )
        if self.target is None:
            return
        targets = np.ravel(self.target).tolist()
        classes = [*getattr(self.classifier, "classes_", labels.tolist())]
        if not targets or any(label not in classes for label in targets):
            raise ValueError(
                f"target: expected labels among {show(labels.tolist())}, got {show(self.target)}"
            )

    def _held_out_mask(self, y: Labels) -> NDArray[np.bool_]:
        """Mask (n,) of a random share of each class, never of all its samples.

        All entries are False if the rule is corrected by folds or not at all.
        """
        n = len(y)
        if not self.correct or self.held_out > 1:
            return np.zeros(n, dtype=bool)
        m = round(self.held_out * n)
        if not 1 <= m <= n - 2:
            raise ValueError(
                "held_out: expected a share that leaves samples on both sides, got "
                f"{self.held_out} of {n} samples"
            )
        mask = stratified_draw(y, m, self.random_state, spare_last=True)
        if not mask.any():
            raise ValueError("held_out: expected a class of two samples or more, got none")
        return mask

    def _set_model(self, model: FittedModel) -> None:
        """Set the fitted attributes to the parts of a model, without a correction."""
        for name in _CORRECTED:
            self.__dict__.pop(name, None)
        layout, rule = model.layout, model.rule
        self.fitted_, self.n_features_in_ = model, layout.width
        self.n_channels_, self.n_timepoints_ = layout.channels, layout.length
        self.completion_, self.features_ = model.completion, model.features
        self.classifier_, self.classes_ = model.classifier, model.classes
        self.rule_ = model.rule_name if model.stages is None else "prefixes"
        self.largest_reliability_ = 1.0
        if isinstance(rule, SampledRule):
            self.largest_reliability_ = largest_bound(rule.n_samples)

    def _correct(
        self,
        rows: Series,
        y: Labels,
        classes: Labels,
        tau: float | None = None,
        **options: Any,
    ) -> None:
        """Correct the rule by held-out samples; `classes` are the labels of the fit."""
        self.reliability_ = float(self.reliability) if tau is None else tau
        self.correction_, steps, self.reliability_by_class_ = correct_rule(
            self, self.fitted_, rows, y, classes, self.reliability_, **options
        )
        self.fitted_ = replace(self.fitted_, correction=self.correction_)
        self.decision_times_ = np.append(steps, self.n_timepoints_)

    # ---- predictions and decisions

    def predict(self, X: ArrayLike) -> Labels:
        """Predict the labels of complete samples.

        Parameters
        ----------
        X : (n, d) or (n, channels, times) array-like, or list of series
            Complete samples, or series that have ended; `decide` takes incomplete samples. Missing
            values of series are filled by their conditional means.

        Returns
        -------
        (n,) array
        """
        model = self._model()
        rows = model.transform(filled(model.completion, ended_rows(self, X, model.layout).rows))
        return np.asarray(model.classifier.predict(rows))

    def decide(self, X: ArrayLike, reliability: ArrayLike | None = None) -> Decisions:
        """Decide samples where the rule allows it.

        Parameters
        ----------
        X : (n, d) or (n, channels, times) array-like, or list of series
            Samples, or the known values of series so far; NaN is missing, also at the end.
        reliability : float or (n,) array-like, optional
            tau in (0, 1); by default `reliability_`, or `reliability` without a correction.

        Returns
        -------
        Decisions
            Labels and reliabilities.
        """
        model = self._model()
        rows = known_rows(self, X, model.layout)
        return decide(model, rows, taus_of(self, reliability, len(rows)))

    def predict_early(
        self,
        X: ArrayLike,
        reliability: ArrayLike | None = None,
        *,
        steps: ArrayLike | None = None,
        trace: bool = False,
    ) -> EarlyDecisions:
        """Decide time series as early as possible, and every series at its end.

        Parameters
        ----------
        X : (n, d) or (n, channels, times) array-like, or list of series
            Series. At each time only the values up to it are used; at its own end each series is
            decided. Arrays with channels and lists may have missing values, which are NaN, also at
            the end of a series; other arrays may not.
        reliability : float or (n,) array-like, optional
            tau in (0, 1); by default `reliability_`, or `reliability` without a correction.
        steps : ascending integers in ``1..n_timepoints_``, optional
            Times of decision; the end is always included. The default is `decision_times_`, or all
            times if the rule is not corrected.
        trace : bool, default=False
            Whether to return classes and largest taus at all times.

        Returns
        -------
        EarlyDecisions
            Labels, times and reliabilities.
        """
        model = self._model()
        series = ended_rows(self, X, layout := model.layout)
        tau = taus_of(self, reliability, len(series.rows))
        times = decision_times(self, steps, layout.length)
        times = np.union1d(times[times > 0], [layout.length]).astype(np.int64) * layout.channels
        return decide_early(model, series, tau, times, trace)

    def stream(self, reliability: float | None = None, *, steps: ArrayLike | None = None) -> Stream:
        """Open a stream for one series that arrives value by value.

        Parameters
        ----------
        reliability : float, optional
            As in `Stream`.
        steps : ascending integers in ``1..n_timepoints_``, optional
            As in `Stream`.

        Returns
        -------
        Stream
            Its `push` returns None until there is a decision.
        """
        return Stream(self, reliability, steps=steps)

    def streams(
        self, n_series: int, reliability: ArrayLike | None = None, *, steps: ArrayLike | None = None
    ) -> Streams:
        """Open streams for many series that arrive value by value.

        Parameters
        ----------
        n_series : int >= 1
            Number of series.
        reliability : float or (n_series,) array-like, optional
            As in `Streams`.
        steps : ascending integers in ``1..n_timepoints_``, optional
            As in `Streams`.

        Returns
        -------
        Streams
            Their `push` returns the indices of the series that it decides.
        """
        return Streams(self, n_series, reliability, steps=steps)

    def calibrate(
        self: _Model, X: ArrayLike, y: ArrayLike, *, agreement: float | None = None
    ) -> _Model:
        """Replace the correction of `fit` by a correction from further samples.

        The promises are then theorems, as with ``held_out=0.5``, and `fit` can use all of its
        samples.

        Parameters
        ----------
        X : (n, d) or (n, channels, times) array-like, or list of series
            Complete samples that were not used for fitting.
        y : (n,) array-like
            Labels, among those of the fit.
        agreement : float in (0, 1), optional
            Share of final labels to promise, the new `reliability_`; `reliability` by default.

        Returns
        -------
        ReliableClassifier
            The estimator itself.
        """
        model = self._model()
        tau = float(self.reliability) if agreement is None else check_number(agreement, "agreement")
        if not 0 < tau < 1:
            raise ValueError(f"agreement: expected a number in (0, 1), got {show(agreement)}")
        with unchanged_on_error(self):
            rows = ended_rows(self, X, model.layout)
            labels = column_or_1d(plain_labels(y))
            if len(labels) != len(rows.rows):
                raise ValueError(f"y: expected {len(rows.rows)} labels, got {len(labels)}")
            known = self.classes_.tolist()
            unknown = [label for label in np.unique(labels).tolist() if label not in known]
            if unknown:
                raise ValueError(f"y: expected labels among {show(known)}, got {show(unknown)}")
            self._correct(rows, labels, np.unique(labels), tau)
        return self

    def uncorrected(self: _Model) -> _Model:
        """Return a copy that uses the rule alone, without the correction of `fit`.

        Returns
        -------
        ReliableClassifier
            Copy that shares the fitted parts; its default tau is `reliability`.
        """
        check_is_fitted(self)
        plain = copy.copy(self)
        for name in _CORRECTED:
            plain.__dict__.pop(name, None)
        plain.fitted_ = replace(self.fitted_, correction=None)
        return plain

    def _model(self) -> FittedModel:
        """The fitted model with the current `n_threads`."""
        check_is_fitted(self)
        return replace(self.fitted_, n_threads=self.n_threads)

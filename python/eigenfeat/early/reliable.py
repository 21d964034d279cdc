"""`ReliableClassifier`: classify incomplete samples whose labels are final."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from eigenfeat._base.labels import check_two_labels, plain_labels
from eigenfeat._base.types import Estimator, Labels, RandomState
from eigenfeat._base.validation import MOST, check_number, show, warn_caller
from eigenfeat.early.completion import GaussianCompletion, filled
from eigenfeat.early.correction import (
    LEAST_TAU,
    MAX_THRESHOLDS,
    PROMISES,
    TIE,
    TIME_FIRST,
    ClassGroups,
    CorrectedRule,
    Correction,
    HeldOutDecisions,
    certified_by_class,
    held_out_decisions,
    least_samples,
    promised_shares,
    strictest,
)
from eigenfeat.early.decisions import Decisions, EarlyDecisions, EarlyRun
from eigenfeat.early.discriminants import (
    Affine,
    ClassCodes,
    Discriminants,
    Linear,
    Local,
    Quadratic,
    affine_of,
    discriminants_of,
)
from eigenfeat.early.rules import FittedModel, PairwiseRule, PrefixRule, Rule, TargetRule
from eigenfeat.early.sampling import Sampled, SampledRule, largest_bound, samples_of
from eigenfeat.early.series import (
    Layout,
    Rows,
    decision_times,
    fold_masks,
    ignore_single_sample_warning,
    known_rows,
    spread_steps,
    stratified_draw,
    taus_of,
    training_rows,
    whole_rows,
)
from eigenfeat.early.set_rules import SETS, SetRule
from eigenfeat.early.stages import KnownStages, convolutions, fit_stages
from eigenfeat.early.streams import Stream, Streams
from eigenfeat.samples.estimator import (
    BaseEstimator,
    unchanged_on_error,
    validate_data,
)

__all__ = ["ReliableClassifier"]

_Array = NDArray[np.float64]
_Model = TypeVar("_Model", bound="ReliableClassifier")

CONFIDENCE = 0.9  # of corrections with correct=True

MAX_TIMES = 48  # at which held-out samples are evaluated
MAX_PREFIX_TIMES = 24  # at which classifiers of the known values are fitted
MAX_SAMPLED_TIMES = 16  # at which rules that sample evaluate them
MAX_SAMPLES = 3000  # held-out samples that are evaluated
MAX_PREDICTIONS = 4e6  # of rules that sample

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
        Any classifier, also in ``FrozenEstimator``. Linear and quadratic discriminants need no
        sampling.
    completion : completion or None, default=None
        `GaussianCompletion` or `MixtureCompletion`; None means the former.
    rule : str or Sampled, default="auto"
        "auto" means "pairwise" for linear discriminants, "quadratic" for quadratic ones, and
        "sampled" for other classifiers. ``Sampled(n_samples=...)`` sets the number of completions.
        "mahalanobis", "box" and "chebyshev" are more cautious. "prefixes" decides series earlier:
        the score that the correction calibrates is the probability of the default rule times that
        of a `ConvolutionClassifier` of the values so far, which is fitted at up to 24 times.
    reliability : float in (0, 1), default=0.95
        Required probability that the complete sample has the same label.
    features : transformer or None, default=None
        Linear map of samples to the features that are classified, such as LDG or PCA.
    conditional : str, sequence of str or None, default="auto"
        Groups of series for which the promise holds. None: all series together. "true": the series
        of each class. "predicted": the series that are decided as each class. "time": the series
        that are decided up to each time. Classes with too few held-out samples share a group.
        "auto": "true" if every class has enough samples, else None, with a warning; a rare class
        may then be wrong throughout.
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
        The largest reliability that the rule's number of completions allows; 1 for other rules than
        "sampled".
    reliability_ : float
        The promised reliability, if the rule is corrected.
    reliability_by_class_ : (G,) array
        Certified share of final labels among the series of each class, at most `reliability_`; NaN
        for classes without held-out samples. Each holds with the confidence of `correct`.
    decision_times_ : (p,) array of int
        Numbers of values after which series are decided.
    correction_ : Correction
        Result of the held-out samples: the rule's own largest tau, or the score of "prefixes", must
        exceed ``correction_.threshold(tau)``.
    n_channels_ : int
        Number of channels.
    n_timepoints_ : int
        Number of values of the longest series.
    n_features_in_ : int
        The product of both.

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
    N. Parrish, thesis, University of Washington, 2012, chapter 5. V. Vovk, A. Gammerman, G. Shafer,
    "Algorithmic learning in a random world", 2005. L. Ringel, R. Cohen, D. Freedman, M. Elad, Y.
    Romano, "Early time classification with accumulated accuracy gap control", ICML 2024.

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
            series (NaN). Fill missing entries of samples first:
            ``GaussianCompletion().fit(X).transform(X)``.
        y : (n,) array-like
            Labels.

        Returns
        -------
        ReliableClassifier
            The estimator itself.
        """
        return self._fit_subset(X, y, slice(None))

    def _fit_subset(self, X: Any, y: Any, subset: Any) -> ReliableClassifier:
        """Fit to a subset of the samples, with the layout of all series."""
        self._validate_params()
        with unchanged_on_error(self):
            rows, y, layout = training_rows(self, X, y)
            rows, y = rows.take(subset), y[subset]
            check_classification_targets(y)
            check_two_labels(np.unique(y))
            self._check_promises(y)
            for name in _CORRECTED:
                self.__dict__.pop(name, None)
            held_out = None
            if self.correct and self.held_out < 1:
                mask = self._held_out_mask(y)
                held_out = rows.take(mask), y[mask]
                rows, y = rows.take(~mask), y[~mask]
            self._fit_parts(rows, y, layout)
            known = self._fit_prefixes(rows, y) if self.rule == "prefixes" else None
            if self.correct:
                self._correct(rows, y, held_out, float(self.reliability), known)
        return self

    def _check_promises(self, y: Labels) -> None:
        """ValueError unless `conditional` and `target` are valid for these labels."""
        names, options = _names(self.conditional), ""
        allowed: tuple[str, ...] = PROMISES
        if self.correct == "average":
            allowed, options = ("true",), " with correct='average'"
        elif not self.correct:
            allowed, options = (), " with correct=False"
        known = set(names) <= {*allowed} and len(set(names)) == len(names) > 0
        if self.conditional is not None and names != ("auto",) and not known:
            some = f", or some of {list(allowed)}" if allowed else ""
            raise ValueError(
                f"conditional: expected 'auto', None{some}{options}, got {show(self.conditional)}"
            )
        if self.target is None:
            return
        known_labels, targets = np.unique(y).tolist(), _targets(self.target)
        classes = [*getattr(self.classifier, "classes_", known_labels)]
        if not len(targets) or any(label not in classes for label in targets.tolist()):
            raise ValueError(
                f"target: expected labels among {show(known_labels)}, got {show(self.target)}"
            )

    def _held_out_mask(self, y: Labels) -> NDArray[np.bool_]:
        """Mask (n,) of a random share of each class, which leaves at least one sample."""
        n = len(y)
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

    def _fit_parts(self, rows: Rows, y: Labels, layout: Layout) -> None:
        """Fit the model, without the correction, to checked samples; NaN is missing."""
        model = self.fitted_ = _fit_model(self, rows, y, layout)
        self.n_features_in_ = layout.width
        self.n_channels_, self.n_timepoints_ = layout.channels, layout.length
        self.completion_, self.features_ = model.completion, model.features
        self.classifier_, self.classes_ = model.classifier, model.classes
        self.rule_ = "prefixes" if self.rule == "prefixes" else model.rule_name
        rule = model.plain_rule
        sampled = rule if isinstance(rule, SampledRule) else None
        self.largest_reliability_ = 1.0 if sampled is None else largest_bound(sampled.n_samples)

    def _fit_prefixes(self, rows: Rows, y: Labels) -> KnownStages:
        """Fit classifiers of the known values; return their held-out probabilities."""
        layout = self.fitted_.layout
        steps = spread_steps(layout.length, MAX_PREFIX_TIMES)

        def steps_after(onset: int) -> NDArray[np.int64]:
            if onset >= layout.length - 1:
                raise ValueError(
                    "X: expected series that differ before their last value with rule='prefixes'"
                )
            return steps[steps > onset]

        series = rows.rows.reshape(-1, layout.length, layout.channels)
        stages, held_out = fit_stages(convolutions(self.n_threads), series, y, steps_after)
        self.fitted_ = replace(self.fitted_, stages=stages)
        probabilities = held_out.probabilities[0].swapaxes(0, 1)
        return KnownStages(stages.times, stages.classes, probabilities)

    def _correct(
        self,
        rows: Rows,
        y: Labels,
        held_out: tuple[Rows, Labels] | None,
        tau: float,
        known: KnownStages | None = None,
    ) -> None:
        """Correct the rule by folds, or by samples that were held out from the fit."""
        model = self.fitted_
        self.correction_, steps, self.reliability_by_class_ = correct_rule(
            self, rows, y, held_out, tau, known
        )
        self.reliability_ = tau
        self.fitted_ = replace(model, rule=CorrectedRule(model.rule, self.correction_))
        self.decision_times_ = np.append(steps, model.layout.length)

    # ---- use

    def predict(self, X: ArrayLike) -> Labels:
        """Predict the labels of complete samples.

        Parameters
        ----------
        X : (n, d) or (n, channels, times) array-like, or list of series
            Complete samples, unlike `decide`, or series that have ended. Missing values of series
            are filled by their conditional means.

        Returns
        -------
        (n,) array
        """
        model = self._model()
        rows = model.transform(filled(model.completion, whole_rows(self, X, model.layout).rows))
        return np.asarray(model.classifier.predict(rows))

    def decide(self, X: ArrayLike, reliability: ArrayLike | None = None) -> Decisions:
        """Decide samples where the rule allows it.

        Parameters
        ----------
        X : (n, d) or (n, channels, times) array-like, or list of series
            Samples, or the known values of series so far; NaN is missing.
        reliability : float or (n,) array-like, optional
            tau in (0, 1); that of the estimator by default.

        Returns
        -------
        Decisions
            Labels and reliabilities.
        """
        model, rows = self._model(), self._rows(X)
        tau = taus_of(self, reliability, len(rows))
        codes, largest, decided, missing = model.decide(rows, tau)
        return Decisions(decided, self.classes_[codes], largest, missing)

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
            decided. Only arrays with channels and lists may have missing values.
        reliability : float or (n,) array-like, optional
            tau; that of the estimator by default.
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
        series = whole_rows(self, X, layout := model.layout)
        tau = taus_of(self, reliability, len(series.rows))
        at = decision_times(self, steps, layout.length)
        times = np.union1d(at[at > 0], [layout.length]).astype(np.int64) * layout.channels
        return EarlyRun(model, series, tau, times, trace).run()

    def stream(self, reliability: float | None = None, *, steps: ArrayLike | None = None) -> Stream:
        """Open a stream for one series that arrives value by value.

        Parameters
        ----------
        reliability : float, optional
            tau; that of the estimator by default.
        steps : ascending integers in 1..d, optional
            Numbers of values after which the series may be decided; by default as in
            `predict_early`.

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
        n_series : int
            Number of series.
        reliability : float or (n_series,) array-like, optional
            tau; that of the estimator by default.
        steps : ascending integers in 1..d, optional
            As in `stream`.

        Returns
        -------
        Streams
            Their `push` returns the indices of the series that it decides.
        """
        return Streams(self, n_series, reliability, steps=steps)

    def calibrate(
        self: _Model, X: ArrayLike, y: ArrayLike, *, agreement: float | None = None
    ) -> _Model:
        """Replace the correction of `fit` by that of further samples.

        The promises are then theorems, as with ``held_out=0.5``, and the fit uses all of its
        samples.

        Parameters
        ----------
        X : (n, d) or (n, channels, times) array-like, or list of series
            Complete samples that were not used for fitting.
        y : (n,) array-like
            Labels.
        agreement : float between 0 and 1, optional
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
            rows = whole_rows(self, X, model.layout)
            labels = column_or_1d(plain_labels(y))
            if len(labels) != len(rows.rows):
                raise ValueError(f"y: expected {len(rows.rows)} labels, got {len(labels)}")
            self.fitted_ = self.uncorrected().fitted_
            self._correct(rows, labels, (rows, labels), tau)
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
        rule = self.fitted_.rule
        if isinstance(rule, CorrectedRule):
            plain.fitted_ = replace(self.fitted_, rule=rule.rule)
        return plain

    def _model(self) -> FittedModel:
        """The fitted model with the current `n_threads`."""
        check_is_fitted(self)
        return replace(self.fitted_, n_threads=self.n_threads)

    def _rows(self, X: Any) -> _Array:
        check_is_fitted(self)
        if (rows := known_rows(X, self.fitted_.layout)) is not None:
            return rows
        options = {"dtype": np.float64, "order": "C", "ensure_all_finite": "allow-nan"}
        return np.asarray(validate_data(self, X, reset=False, **options))


# ---- parts of a fit


def _fit_model(estimator: ReliableClassifier, rows: Rows, y: Labels, layout: Layout) -> FittedModel:
    """Fit completion, features and classifier to samples, and create the rule; NaN is missing."""
    completion = GaussianCompletion(n_threads=estimator.n_threads)
    if estimator.completion is not None:
        completion = clone(estimator.completion)
    with ignore_single_sample_warning():
        completion = completion.fit(rows.rows, y)
        X = filled(completion, rows.rows)
        features = None if estimator.features is None else clone(estimator.features).fit(X, y)
        affine = affine_of(features, X.shape[1])
        inputs = X if features is None else features.transform(X)
        classifier = clone(estimator.classifier).fit(inputs, y)
    classes = np.asarray(getattr(classifier, "classes_", np.unique(y)))
    if classes.ndim != 1 or not np.all(classes[:-1] < classes[1:]):
        raise ValueError(f"classifier: expected ascending classes_, got {show(classes.tolist())}")
    name = "sampled" if isinstance(estimator.rule, Sampled) else estimator.rule
    name = "auto" if name == "prefixes" else name
    discriminants = _discriminants(name, classifier, inputs)
    if name == "auto" and (discriminants is None or isinstance(discriminants, Local)):
        name = "sampled"  # the only rule for discriminants that depend on all entries
    elif name == "auto":
        name = "pairwise" if isinstance(discriminants, Linear) else "quadratic"
    scores = None
    if isinstance(discriminants, Linear) and name in ("pairwise", "chebyshev", "mahalanobis"):
        scores = _scores_of(discriminants, affine)
    return FittedModel(
        layout=layout,
        classes=classes,
        classifier=classifier,
        completion=completion,
        features=features,
        rule_name=name,
        affine=affine,
        scores=scores,
        discriminants=discriminants,
        rule=_rule(estimator, name, ClassCodes(classes, classifier)),
        n_threads=estimator.n_threads,
    )


def _discriminants(name: str, classifier: Any, inputs: _Array) -> Discriminants | None:
    """The classifier's discriminants, if the rule uses them; ValueError if it needs others."""
    if name == "sampled":
        return None
    plain = classifier.estimator if isinstance(classifier, FrozenEstimator) else classifier
    try:
        functions = discriminants_of(plain, inputs)
    except ValueError:
        if name != "auto":
            raise
        return None
    of_linear = name in ("pairwise", "mahalanobis") and not isinstance(functions, Linear)
    if of_linear or (name == "box" and isinstance(functions, Quadratic) and not functions.diagonal):
        takes = "linear discriminants" if of_linear else "discriminants that are sums over columns"
        raise ValueError(
            f"rule: expected 'quadratic', 'chebyshev' or 'sampled', got {name!r}, which takes "
            f"{takes}, with {show(classifier)}"
        )
    return functions


def _scores_of(discriminants: Linear, affine: Affine | None) -> Affine:
    """Linear discriminants as a map of samples.

    Their mean is subtracted, so that a common part of the scores does not cancel in differences.
    """
    slopes = discriminants.slopes - discriminants.slopes.mean(axis=0)
    offsets = discriminants.offsets - discriminants.offsets.mean()
    if affine is None:
        return Affine(np.ascontiguousarray(slopes.T), offsets)
    return affine.then(slopes, offsets)


def _rule(estimator: ReliableClassifier, name: str, predict: ClassCodes) -> Rule:
    rule: Rule
    if name in SETS:
        rule = SetRule(SETS[name])
    elif name == "pairwise":
        rule = PairwiseRule()
    else:
        sampled = estimator.rule if isinstance(estimator.rule, Sampled) else Sampled()
        seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
        rule = SampledRule(predict, samples_of(sampled, float(estimator.reliability)), seed)
    if estimator.rule == "prefixes":
        rule = PrefixRule(rule)
    if estimator.target is None:
        return rule
    return TargetRule(rule, np.isin(predict.classes, _targets(estimator.target)))


def _targets(target: Any) -> NDArray[Any]:
    """Labels of the classes of interest."""
    return np.asarray(target if isinstance(target, (list, tuple, np.ndarray)) else [target])


# ---- the correction by held-out samples; `correction` has its theorems


def correct_rule(
    estimator: ReliableClassifier,
    rows: Rows,
    y: Labels,
    held_out: tuple[Rows, Labels] | None,
    tau: float,
    known: KnownStages | None = None,
) -> tuple[Correction, NDArray[np.int64], _Array]:
    """Learn the correction of a fitted rule by folds of its samples, or by held-out samples.

    `known` has the out-of-fold probabilities of the classifiers of the known values. Returns the
    correction, the numbers of values after which the rule was tested, and the share of final labels
    that is certified for each class.
    """
    model, layout = estimator.fitted_, estimator.fitted_.layout
    tested, labels = (rows, y) if held_out is None else held_out
    confidence = 0.0 if estimator.correct == "average" else float(estimator.correct)
    if isinstance(estimator.correct, bool | np.bool_):
        confidence = CONFIDENCE
    least = least_samples(tau, confidence)
    n_samples, n_times = _test_sizes(model.rule.cost, len(labels), layout.length - 1, least)
    random = check_random_state(estimator.random_state)
    groups = _class_groups(estimator, y, labels, least)
    promises = _promises(estimator.conditional, groups, least, tau)
    drawn = stratified_draw(labels, n_samples, random)
    if promises == ("true",):  # more of small groups
        group = groups(labels)
        for number in range(groups.n_groups):
            lacking = 2 * least - np.count_nonzero(drawn & (group == number))
            others = np.flatnonzero(~drawn & (group == number))
            drawn[random.permutation(others)[: max(lacking, 0)]] = True
    models: Iterable[tuple[FittedModel, NDArray[np.intp]]] = [(model, np.flatnonzero(drawn))]
    if held_out is None:
        models = _fold_models(estimator, rows, y, drawn, random, known)
    steps = spread_steps(layout.length, n_times) if model.stages is None else model.stages.times
    time_weight = TIME_FIRST if "time" in promises else TIE
    needs_tau = model.stages is None or "time" in promises
    floor = tau if needs_tau else LEAST_TAU
    parts, order = [], []
    for other, own in models if len(steps) else ():  # no times if samples have one entry
        own_rows, times = tested.take(own), steps * layout.channels
        parts.append(held_out_decisions(other, own_rows, times, promises, floor))
        order.append(own)
    if not parts:
        if len(steps):
            warn_caller(
                "correct: expected folds that the classifier can be fitted to, got none; samples "
                "are decided when they are complete",
                UserWarning,
            )
        nothing = Correction(np.zeros(1), np.zeros(1), confidence, 0, layout.width)
        return nothing, steps, np.full(len(model.classes), np.nan)
    decisions, labels = HeldOutDecisions.joined(parts), labels[np.concatenate(order)]
    thresholds = np.unique(np.append(0.0, decisions.largest_wrong))
    if "time" in promises:  # decisions begin after a time, whatever the rule's tau
        thresholds = np.append(0.0, time_weight * steps / layout.length + 1.0)
    elif "predicted" in promises and len(thresholds) > MAX_THRESHOLDS:
        at = np.linspace(0, len(thresholds) - 1, MAX_THRESHOLDS).round().astype(np.intp)
        thresholds = thresholds[at]
    given = decisions, thresholds, labels, groups, model.classes, confidence
    share = strictest(np.concatenate([promised_shares(one, *given) for one in promises]))
    correction = Correction(
        thresholds, share, confidence, len(labels), layout.width, time_weight, needs_tau
    )
    by_class = certified_by_class(decisions, labels, model.classes, correction, tau)
    return correction, steps, by_class


def _test_sizes(cost: int, n: int, n_times: int, least: int) -> tuple[int, int]:
    """Numbers of samples and times to test, at most n and `n_times`."""
    n_times = min(n_times, MAX_TIMES if cost == 1 else MAX_SAMPLED_TIMES)
    n_samples = int(np.clip(MAX_PREDICTIONS / (cost * max(n_times, 1)), 100, MAX_SAMPLES))
    if n >= least:  # enough samples to support the promise
        n_samples = max(n_samples, 2 * least)
    return min(n, n_samples), n_times


def _class_groups(
    estimator: ReliableClassifier, y: Labels, labels: Labels, least: int
) -> ClassGroups:
    """Groups of the classes by their numbers of held-out samples."""
    classes = np.unique(y)
    if "predicted" in _names(estimator.conditional):
        classes = np.union1d(classes, estimator.fitted_.classes)
    counts = np.array([np.count_nonzero(labels == label) for label in classes])
    if estimator.held_out > 1:  # no fold holds out the only sample of a class
        counts[counts == 1] = 0
    return ClassGroups.of(classes, counts, least)


def _names(conditional: Any) -> tuple[str, ...]:
    """Names of the promises."""
    if conditional is None:
        return ()
    return (conditional,) if isinstance(conditional, str) else tuple(conditional)


def _promises(conditional: Any, groups: ClassGroups, least: int, tau: float) -> tuple[str, ...]:
    """Names of the promises that hold; warns of classes with too few held-out samples."""
    names = _names(conditional)
    few = ", ".join(
        f"{count} of class {show(label)}"
        for label, count in zip(groups.classes.tolist(), groups.counts.tolist(), strict=True)
        if count < least
    )
    if few and names == ("auto",):
        warn_caller(
            f"conditional: expected at least {least} held-out samples of each class for a promise "
            f"by class at a reliability of {tau:g}, got {few}; the promise is a share of all "
            "samples together (None)",
            UserWarning,
        )
    elif few and {"true", "predicted"} & {*names}:
        warn_caller(
            f"conditional: expected at least {least} held-out samples of each class, got {few}; "
            "these classes share one promise"
            + ("" if groups.is_enough(least) else ", and all samples wait for their end"),
            UserWarning,
        )
    if names == ("auto",):
        names = () if few else ("true",)
    return names or ("all",)


def _fold_models(
    estimator: ReliableClassifier,
    rows: Rows,
    y: Labels,
    drawn: NDArray[np.bool_],
    random: np.random.RandomState,
    known: KnownStages | None,
) -> Iterator[tuple[FittedModel, NDArray[np.intp]]]:
    """For each fold, the model fitted without it and the indices of the drawn samples in it."""
    layout = estimator.fitted_.layout
    for fold in fold_masks(y, int(estimator.held_out), random):
        own = np.flatnonzero(fold & drawn)
        if not len(own):
            continue
        try:
            model = _fit_model(clone(estimator), rows.take(~fold), y[~fold], layout)
        except ValueError:  # for example, if a class is too small without the fold
            continue
        stages = None if known is None else known.take(own)
        yield replace(model, stages=stages), own

"""How a classifier of incomplete rows is fitted: its parts, its rule, and what folds say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import has_fit_parameter

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.types import Labels
from eigenfeat._base.validation import show
from eigenfeat.incomplete._classifiers.discriminants import (
    Discriminants,
    Linear,
    Local,
    LocalMeans,
    Opaque,
    discriminants_of,
)
from eigenfeat.incomplete._completion.affine import Affine, affine_of
from eigenfeat.incomplete._completion.models import GaussianCompletion, MixtureCompletion
from eigenfeat.incomplete._completion.sets import SETS
from eigenfeat.incomplete._rules.calibration import lower_bound
from eigenfeat.incomplete._rules.choice import candidates_of, choose, confidence_each
from eigenfeat.incomplete._rules.correction import CorrectedRule, Correction, Held, corrected
from eigenfeat.incomplete._rules.fitted import LOOKS, Fitted, filled
from eigenfeat.incomplete._rules.ideal import ClassCodes, IdealRule
from eigenfeat.incomplete._rules.learned import (
    LearnedRule,
    ThresholdRule,
    Thresholds,
    critical_of,
    learned,
)
from eigenfeat.incomplete._rules.pairwise import PairwiseRule
from eigenfeat.incomplete._rules.sample_sizes import SamplingRule, check_samples, samples_of
from eigenfeat.incomplete._rules.sampled import SampledRule
from eigenfeat.incomplete._rules.set_rule import SetRule
from eigenfeat.incomplete._series.folds import of_few_rows
from eigenfeat.incomplete._series.layout import training_rows
from eigenfeat.incomplete._series.steps import spread_steps
from eigenfeat.rows.estimator import unchanged_on_error
from eigenfeat.rows.row_weights import weighted_rows

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from eigenfeat.incomplete._rules.rule import Rule
    from eigenfeat.incomplete._series.layout import Layout, Rows

__all__ = ["ASKING", "Fitting"]

_Array = NDArray[np.float64]

# Scores whose covariances are kept whole: up to here k^2 numbers a pattern are next to nothing.
MANY_SCORES = 64

CONFIDENCE = 0.9  # of corrections, where nothing else is asked for
RISK = 0.01  # of what is sampled

# Rules that take no discriminants: they ask the classifier.
ASKING = ("ideal", "sampled", "learned")


class Fitting:
    """Methods of `ReliableClassifier` that `fit` is made of."""

    classifier: Any
    completion: Any
    rule: str
    reliability: float
    features: Any
    tail: str
    correct: Any
    held_out: float | None
    decision_times_: NDArray[np.int64]
    n_folds: int
    n_samples: Any
    horizon: int | None
    random_state: Any
    n_threads: int | None
    fitted_: Fitted
    correction_: Correction | Thresholds
    completion_results_: list[dict[str, Any]]
    _validate_params: Callable[[], None]
    _forget_calibration: Callable[[], None]

    def _fit_given(self, X: Any, y: Any, chosen: Any, sample_weight: Any = None) -> Any:
        """Fit to some of the rows, whose series are laid out as all of them would be."""
        self._validate_params()
        check_samples(self.n_samples)
        self._check_completions()
        with unchanged_on_error(self):
            found, y, layout = training_rows(self, X, y, self.horizon)
            found, y = found.some(chosen), y[chosen]
            numbers, y, weight = weighted_rows(np.arange(len(y))[:, None], y, sample_weight)
            found = replace(found.some(numbers[:, 0]), weight=weight)
            check_classification_targets(y)
            check_two_labels(np.unique(y))
            self._forget_calibration()
            kept, fresh = self._kept_out(len(y)), None
            if kept is not None:
                fresh, found, y = found.some(kept), found.some(~kept), y[~kept]
            self._fit_rows(found, y, layout)
            if self.correct is not False:
                self._correct(found, y, fresh)
        return self

    def _fit_rows(self, found: Rows, y: NDArray[Any], layout: Layout) -> None:
        """Fit everything but the correction to rows that are checked; NaN is missing."""
        core = self.fitted_ = fitted_to(self, found, y, layout)
        self.n_features_in_ = layout.width
        self.n_channels_, self.n_timepoints_ = layout.channels, layout.length
        self.completion_, self.features_ = core.completion, core.features
        self.classifier_, self.classes_, self.rule_ = core.classifier, core.classes, core.rule_name
        self.__dict__.pop("completion_results_", None)
        if core.choice is not None:
            self.completion_results_ = core.choice
        sampling = core.rule if isinstance(core.rule, SamplingRule) else None
        self.n_samples_ = 0 if sampling is None else sampling.n_samples
        self.largest_reliability_ = (
            1.0 if sampling is None else sampling.reach(sampling.n_samples, RISK)
        )

    def _check_completions(self) -> None:
        """Refuse a list of completions that cannot be chosen from."""
        candidates = _candidates(self)
        if candidates is not None and self.correct == "average" and self.held_out is None:
            expected = "expected a confidence, or held_out, where a completion is chosen"
            raise ValueError(f'correct: {expected}, got "average"')

    def _kept_out(self, n: int) -> NDArray[np.bool_] | None:
        """(n,): which rows are kept from the fit; None if folds correct the rule, or nothing."""
        if self.held_out is None or self.correct is False:
            return None
        m = round(self.held_out * n)
        if not 1 <= m <= n - 2:
            raise ValueError(
                f"held_out: expected a share that leaves rows on both sides, got {self.held_out} "
                f"of {n} rows"
            )
        kept = np.zeros(n, dtype=bool)
        kept[check_random_state(self.random_state).permutation(n)[:m]] = True
        return kept

    def _correct(self, found: Rows, y: NDArray[Any], kept: Rows | None) -> None:
        """Hold the rule to what folds show, or rows that were kept from the fit."""
        count = 1 if self.fitted_.choice is None else len(self.fitted_.choice)
        confidence = confidence_of(self, count)
        assert confidence is not None
        self.reliability_ = float(self.reliability)
        core = self.fitted_
        if isinstance(core.rule, LearnedRule):
            critical = core.rule.critical if kept is None else critical_of(core, kept)
            thresholds = Thresholds(critical, confidence)
            steps = spread_steps(core.layout.length, LOOKS)
            held = Held(thresholds.agreed(self.reliability_), thresholds.n)
            self.correction_ = thresholds
            self.fitted_ = replace(core, rule=ThresholdRule(core.rule, thresholds))
        else:
            refit = partial(_without, self, found, y, core.layout, completion=core.completion)
            tau, folds = self.reliability, self.n_folds
            correction, held, steps = corrected(core, refit, found, y, tau, folds, confidence, kept)
            self.correction_ = correction
            self.fitted_ = replace(core, rule=CorrectedRule(core.rule, correction))
        self.decision_times_ = np.append(steps, core.layout.length)
        self.held_out_agreement_, self.held_out_agreement_bound_ = float("nan"), 0.0
        if held.n:
            sure = CONFIDENCE if kept is not None else confidence_each(CONFIDENCE, count)
            self.held_out_agreement_ = held.agreed / held.n
            self.held_out_agreement_bound_ = float(lower_bound(held.agreed, held.n, sure))


def confidence_of(model: BaseEstimator, count: int) -> float | None:
    """Of the correction, chosen out of so many; 0 for shares on average, None without one."""
    if model.correct is False:
        return None
    if isinstance(model.correct, str):
        return 0.0
    confidence = CONFIDENCE if model.correct is True else float(model.correct)
    return confidence if model.held_out is not None else confidence_each(confidence, count)


def fitted_to(model: BaseEstimator, found: Rows, y: Labels, layout: Layout) -> Fitted:
    """Fit what the parameters of a `ReliableClassifier` say to rows; NaN is missing."""
    model, choice = _chosen(model, found, y, layout)
    given = GaussianCompletion(n_threads=model.n_threads)
    completion = given if model.completion is None else clone(model.completion)
    completion = _fitted("completion", completion, found.rows, y, found.weight)
    X = filled(completion, found.rows)
    features = None
    if model.features is not None:
        features = _fitted("features", clone(model.features), X, y, found.weight)
    affine = affine_of(features, X.shape[1])
    inputs = X if features is None else features.transform(X)
    classifier = _fitted("classifier", clone(model.classifier), inputs, y, found.weight)
    classes = _classes_of(classifier, y)
    discriminants = _read(model.rule, classifier, classes, inputs)
    name = model.rule if model.rule != "auto" else _rule_for(discriminants)
    rule = _rule(model, name, ClassCodes(classes, classifier), found, y, layout)
    few = isinstance(discriminants, Linear) and discriminants.count <= MANY_SCORES
    scores = None
    if few and name in ("pairwise", "chebyshev", "mahalanobis"):
        scores = _scores_of(discriminants, affine, X.shape[1])
    return Fitted(
        layout=layout,
        classes=classes,
        classifier=classifier,
        completion=completion,
        features=features,
        rule_name=name,
        affine=affine,
        scores=scores,
        discriminants=discriminants,
        rule=rule,
        n_threads=model.n_threads,
        choice=choice,
    )


def _fitted(name: str, part: Any, X: _Array, y: Labels, weight: _Array | None) -> Any:
    """A part, fitted with weights if there are any; ValueError if it takes none."""
    with of_few_rows():
        return _trained(name, part, X, y, weight)


def _trained(name: str, part: Any, X: _Array, y: Labels, weight: _Array | None) -> Any:
    if weight is None or isinstance(part, FrozenEstimator):
        return part.fit(X, y)
    if not has_fit_parameter(part, "sample_weight"):
        kind = type(part).__name__
        raise ValueError(
            f"sample_weight: expected None, as the {name} {kind} takes no weights, got weights"
        )
    return part.fit(X, y, sample_weight=weight)


def _candidates(model: Any) -> list[BaseEstimator] | None:
    """Completions to choose from; None where there is one."""
    if not isinstance(model.completion, str):
        return candidates_of(model.completion)
    n_threads = model.n_threads
    return [GaussianCompletion(n_threads=n_threads), MixtureCompletion(n_threads=n_threads)]


def _chosen(
    model: BaseEstimator, found: Rows, y: Labels, layout: Layout
) -> tuple[BaseEstimator, list[dict[str, Any]] | None]:
    """The model with one completion, and what there was to choose from, if anything."""
    candidates = _candidates(model)
    if candidates is None:
        return model, None
    best, results = choose(
        candidates,
        lambda completion, held: _without(model, found, y, layout, held, completion=completion),
        found,
        y,
        layout,
        tau=float(model.reliability),
        n_folds=model.n_folds,
        confidence=confidence_of(model, len(candidates)),
    )
    return clone(model).set_params(completion=candidates[best]), results


def _without(
    model: Any,
    found: Rows,
    y: NDArray[Any],
    layout: Layout,
    held: NDArray[np.bool_],
    **changes: Any,
) -> Fitted:
    """Fit to the rows that are not held out; ValueError where that cannot be done."""
    plain = clone(model).set_params(**changes)
    return fitted_to(plain, found.some(~held), y[~held], layout)


def _read(wanted: str, classifier: Any, classes: NDArray[Any], inputs: _Array) -> Discriminants:
    """The classifier's discriminants, where the rule needs any."""
    opaque = Opaque(np.arange(len(classes)))
    if wanted in ASKING:
        return opaque
    plain = classifier.estimator if isinstance(classifier, FrozenEstimator) else classifier
    try:
        return discriminants_of(plain, inputs)
    except ValueError:
        if wanted != "auto":
            raise
        return opaque


def _rule(
    model: Any, name: str, predict: ClassCodes, found: Rows, y: NDArray[Any], layout: Layout
) -> Rule:
    if name in SETS:
        return SetRule(SETS[name])
    if name == "pairwise":
        return PairwiseRule(model.tail)
    seed = int(check_random_state(model.random_state).randint(2**31 - 1))
    if name == "learned":
        refit = partial(_without, model, found, y, layout, rule="ideal")
        return LearnedRule(predict, *learned(refit, layout, found, y, model.n_folds, seed), seed)
    kind = SampledRule if name == "sampled" else IdealRule
    n = samples_of(model.n_samples, model.reliability, partial(kind.reach, risk=RISK))
    return kind(predict, n, RISK, seed)


def _classes_of(classifier: Any, y: NDArray[Any]) -> NDArray[Any]:
    classes = np.asarray(getattr(classifier, "classes_", np.unique(y)))
    if classes.ndim != 1 or not np.all(classes[:-1] < classes[1:]):
        raise ValueError(f"classifier: expected ascending classes_, got {show(classes.tolist())}")
    return classes


def _rule_for(discriminants: Discriminants) -> str:
    """The rule that decides earliest of those whose promise is about the complete row's label."""
    if isinstance(discriminants, Local | LocalMeans):  # another row has others
        return "ideal"
    if isinstance(discriminants, Opaque):
        return "sampled"
    return "pairwise" if isinstance(discriminants, Linear) else "quadratic"


def _scores_of(discriminants: Discriminants, affine: Affine | None, d: int) -> Affine:
    assert isinstance(discriminants, Linear)
    # About their mean, so that what scores have in common takes no digits from differences.
    slopes = discriminants.slopes - discriminants.slopes.mean(axis=0)
    offsets = discriminants.offsets - discriminants.offsets.mean()
    if affine is None:
        return Affine(np.ascontiguousarray(slopes.T), offsets)
    return affine.then(slopes, offsets)

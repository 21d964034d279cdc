"""The fitted model of `ReliableClassifier`: parts, decisions, and the test by held-out samples.

The theorems about the test are in `correction`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state

from eigenfeat._base import threads as _threads
from eigenfeat._base.types import Estimator, Labels
from eigenfeat._base.validation import show, warn_caller
from eigenfeat.early.completion import (
    Affine,
    Completion,
    Conditional,
    GaussianCompletion,
    MixtureCompletion,
    RunningStatistics,
    affine_of,
    filled,
)
from eigenfeat.early.correction import (
    MIN_TAU,
    TIE_WEIGHT,
    TIME_FIRST_WEIGHT,
    ClassGroups,
    Correction,
    HeldOutDecisions,
    certified_by_class,
    min_samples_for,
    promised_shares,
    strictest,
)
from eigenfeat.early.rules import (
    ClassCodes,
    Discriminants,
    Linear,
    Local,
    PairwiseRule,
    Quadratic,
    Rule,
    RuleInput,
    discriminants_of,
)
from eigenfeat.early.sampling import Sampled, SampledRule, samples_of
from eigenfeat.early.series import (
    ENDED_ADVICE,
    Layout,
    Series,
    blocks,
    fold_masks,
    ignore_single_sample_warning,
    spread_steps,
    stratified_draw,
)
from eigenfeat.early.set_rules import SETS, SetRule
from eigenfeat.early.stages import KnownStages, Stages, convolutions, fit_stages

if TYPE_CHECKING:
    from eigenfeat.regions.prefix_gaussian import PrefixGaussian

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

PROMISES = ("true", "predicted", "time")
CONFIDENCE = 0.9  # confidence of corrections with correct=True

# Limits of the test of a rule by held-out samples.
MAX_TIMES = 48  # times of evaluation
MAX_SAMPLED_TIMES = 16  # times of evaluation of rules that draw completions
MIN_SAMPLES, MAX_SAMPLES = 100, 3000  # held-out samples, as far as there are
MAX_PREDICTIONS = 4e6  # predicted labels of drawn completions
MAX_THRESHOLDS = 200  # thresholds of promises by label
TIMES_PER_BATCH = 8  # times that are evaluated together
MAX_NAMED_CLASSES = 5  # classes that a warning names

# Up to these limits, default completions have a Gaussian for each class.
MAX_CLASSES = 32
MAX_COVARIANCE_ENTRIES = 2**23
MAX_PREFIX_TIMES = 24  # times at which classifiers of the known values are fitted


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Everything that `ReliableClassifier.fit` learns. Immutable: streams share it."""

    layout: Layout
    classes: NDArray[Any]
    classifier: Any
    completion: Completion
    features: Any
    rule_name: str
    affine: Affine | None  # features as an affine map of the samples
    # Linear discriminants as an affine map of the samples; then scores are completed.
    scores: Affine | None
    discriminants: Discriminants | None
    rule: Rule
    n_threads: int | None
    is_target: NDArray[np.bool_] | None = None  # (k,) classes of interest; None: all
    stages: Stages | KnownStages | None = None  # classifiers of the known values
    correction: Correction | None = None

    @property
    def conditioned_map(self) -> Affine | None:
        """The map whose conditional distributions the rule receives: scores, or features."""
        return self.affine if self.scores is None else self.scores

    @property
    def gaussians(self) -> list[PrefixGaussian]:
        """The Gaussians of the completion, factorised for prefixes."""
        threads = self.completion.n_threads
        return self.completion.mixture_.prefix_models(self.conditioned_map, n_threads=threads)

    @property
    def width(self) -> int:
        """Number of features."""
        return self.layout.width if self.affine is None else self.affine.B.shape[1]

    def transform(self, rows: _Array) -> _Array:
        """Map complete samples to the inputs of the classifier."""
        return rows if self.features is None else self.features.transform(rows)

    def predict_codes(self, rows: _Array) -> _Codes:
        """Class indices of complete samples."""
        return ClassCodes(self.classes, self.classifier)(self.transform(rows))

    # ---- inputs of the rule

    def rule_input(self, rows: _Array) -> RuleInput:
        """Condition samples (NaN is missing) on their known entries.

        Classifiers of the known values take the values up to the last known value.
        """
        prefixes = None
        if self.stages is not None:
            seen = np.where(np.isnan(rows), 0, np.arange(1, rows.shape[1] + 1)).max(axis=1)
            prefixes = np.empty((len(rows), len(self.classes)))
            for t in np.unique(seen):
                prefixes[seen == t] = self._prefixes(rows[seen == t], t[None])
        return self._input(self._conditional(rows), prefixes)

    def prefix_input(self, rows: _Array, times: NDArray[np.int64]) -> RuleInput:
        """Condition every sample on its first entries, for several numbers of entries."""
        if np.isnan(rows[:, : times[-1]]).any():  # each sample has its own pattern
            later = np.arange(rows.shape[1]) >= times[:, None]
            seen = np.where(later, np.nan, rows[:, None]).reshape(-1, rows.shape[1])
            conditional = self._conditional(seen)
        else:
            conditional = self.completion.mixture_.after(rows, times, self.gaussians)
        return self._input(conditional, self._prefixes(rows, times))

    def running_input(self, statistics: RunningStatistics, series: _Codes, X: _Array) -> RuleInput:
        """Condition series without gaps, whose numbers of entries in `statistics` are equal."""
        conditional = self.completion.mixture_.running(statistics, series)
        prefixes = None
        if self.stages is not None:
            prefixes = self._prefixes(X[series], statistics.n_known[series[:1]])
        return self._input(conditional, prefixes)

    def _conditional(self, rows: _Array) -> Conditional:
        threads = self.completion.n_threads
        return self.completion.mixture_.condition(rows, self.conditioned_map, n_threads=threads)

    def _prefixes(self, rows: _Array, times: NDArray[np.int64]) -> _Array | None:
        """Probabilities (n p, k) by classifiers of the first entries, for p numbers of entries."""
        if self.stages is None:
            return None
        series = self.layout.series(rows)
        known = self.stages.after(series, -(-times // self.layout.channels))
        out = np.zeros((known.shape[0] * known.shape[1], len(self.classes)))
        # A frozen classifier may have other classes.
        shared = np.isin(self.stages.classes, self.classes)
        columns = self.classes.searchsorted(self.stages.classes[shared])
        out[:, columns] = known.reshape(len(out), -1)[:, shared]
        return out

    def _input(self, conditional: Conditional, prefixes: _Array | None) -> RuleInput:
        return RuleInput(
            self.discriminants,
            conditional,
            self.width,
            self.scores is not None,
            _threads.resolve(self.n_threads),
            prefixes,
        )

    # ---- decisions

    def score(self, rule_input: RuleInput, best: _Codes) -> _Array:
        """The rule's largest tau (n,) for the class `best`, without the correction.

        0 for classes other than the targets. With classifiers of the known values, tau is
        multiplied by their probability of the class.
        """
        tau = self.rule.bound(rule_input, best)
        if rule_input.prefixes is not None:
            tau = tau * rule_input.prefixes[np.arange(len(best)), best]
        return tau if self.is_target is None else np.where(self.is_target[best], tau, 0.0)

    def bound(self, rule_input: RuleInput, best: _Codes) -> _Array:
        """Largest tau (n,) at which each sample is decided as its class `best`, else 0."""
        tau = self.score(rule_input, best)
        if self.correction is None:
            return tau
        return self.correction.certified_tau(tau, self._known(rule_input))

    def decides(self, rule_input: RuleInput, best: _Codes, tau: _Array) -> NDArray[np.bool_]:
        """Mask of the samples that are decided as their class `best` at tau (n,)."""
        if self.correction is not None:
            tau = self.correction.min_tau(tau, self._known(rule_input))
            if not (tau <= 1).any():
                return np.zeros(len(best), dtype=bool)
        if rule_input.prefixes is not None:
            return self.score(rule_input, best) >= tau
        decided = self.rule.decides(rule_input, best, tau)
        return decided if self.is_target is None else decided & self.is_target[best]

    def may_decide(self, tau: _Array, known: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a decision is possible after each number (p,) of known entries, at any tau (n,).

        With too few held-out samples, the correction allows no decision before the end.
        """
        if self.correction is None or not len(tau):
            return np.ones(len(known), dtype=bool)
        return np.asarray(self.correction.min_tau(tau.min(), known) <= 1)

    def largest_tau(self, rule_input: RuleInput) -> tuple[_Array, _Codes]:
        """Largest tau (n,) at which each sample would be decided, and its class."""
        best = self.rule.best_classes(rule_input)
        return self.bound(rule_input, best), best

    def final_decisions(self, rows: _Array) -> tuple[_Codes, _Array]:
        """Classes of series at their end, and the largest tau of each: 1 if nothing is missing."""
        if not len(rows):
            return np.empty(0, dtype=np.intp), np.empty(0)
        codes = self.predict_codes(filled(self.completion, rows))
        tau = np.ones(len(rows))
        for part in self.incomplete_parts(np.isnan(rows).sum(axis=1)):
            largest, best = self.largest_tau(self.rule_input(rows[part]))
            tau[part] = np.where(best == codes[part], largest, 0.0)
        return codes, tau

    def _known(self, rule_input: RuleInput) -> _Codes:
        """Numbers (n,) of known entries."""
        return self.layout.width - rule_input.conditional.missing

    # ---- memory

    def incomplete_parts(self, missing: NDArray[np.intp]) -> Iterator[_Codes]:
        """Yield the indices of the incomplete rows, in blocks of bounded memory."""
        rows = np.flatnonzero(missing > 0)
        for part in blocks(len(rows), self.numbers_per_row()):
            yield rows[part]

    def numbers_per_row(self) -> int:
        """Approximate memory of the evaluation of one sample, in numbers."""
        k, parts = len(self.classes), len(self.completion.mixture_.weights)
        if self.scores is not None:
            return k * (parts * k + 4)
        covariances = self.rule_name in ("pairwise", "mahalanobis", "chebyshev")
        return self.width * (parts * (self.width if covariances else 1) + 4 * k)


# ---- the fit


def fit_model(estimator: Estimator, rows: Series, y: Labels, layout: Layout) -> FittedModel:
    """Fit the parts of a `ReliableClassifier` to samples, and create the rule; NaN is missing."""
    completion, X = estimator.completion, rows.rows
    if hasattr(estimator.classifier, "__sklearn_tags__") and is_regressor(estimator.classifier):
        raise ValueError(
            f"classifier: expected a classifier, got {type(estimator.classifier).__name__}"
        )
    never = np.isnan(X).all(axis=0)
    if never.any():
        sample, channel = divmod(int(never.argmax()), layout.channels)
        raise ValueError(
            "X: expected a known value of each channel at each time in at least one series, got "
            f"only NaN in channel {channel}, sample {sample}{ENDED_ADVICE}"
        )
    with ignore_single_sample_warning():
        if completion is None and np.isnan(X).any():
            completion = GaussianCompletion(n_threads=estimator.n_threads)
        if completion is not None:
            completion = clone(completion).fit(X, y)
            X = filled(completion, X)
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
    if completion is None:
        completion = _default_completion(name, X, y, estimator.n_threads)
    scores = None
    if isinstance(discriminants, Linear) and name in ("pairwise", "chebyshev", "mahalanobis"):
        scores = _scores_of(discriminants, affine)
    target = estimator.target
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
        is_target=None if target is None else np.isin(classes, np.ravel(target)),
    )


def fits_gaussian_per_class(n_classes: int, width: int) -> bool:
    """Whether a Gaussian of each class takes bounded memory."""
    return n_classes <= MAX_CLASSES and n_classes * width**2 <= MAX_COVARIANCE_ENTRIES


def _default_completion(name: str, X: _Array, y: Labels, n_threads: int | None) -> Completion:
    """The default completion for a rule, fitted to complete samples."""
    if name == "pairwise" and fits_gaussian_per_class(len(np.unique(y)), X.shape[1]):
        try:
            return MixtureCompletion(overall=0.5, n_threads=n_threads).fit(X, y)
        except ValueError:  # for example, equal samples in each class
            pass
    return GaussianCompletion(n_threads=n_threads).fit(X)


def _discriminants(name: str, classifier: Any, inputs: _Array) -> Discriminants | None:
    """Discriminants of the classifier, or None; ValueError if they do not suit the rule."""
    if name == "sampled":
        return None
    plain = classifier.estimator if isinstance(classifier, FrozenEstimator) else classifier
    try:
        functions = discriminants_of(plain, inputs)
    except ValueError:
        if name != "auto":
            raise
        return None
    needs_linear = name in ("pairwise", "mahalanobis") and not isinstance(functions, Linear)
    has_products = isinstance(functions, Quadratic) and not functions.diagonal
    if needs_linear or (name == "box" and has_products):
        needed = (
            "linear discriminants" if needs_linear else "discriminants that are sums over columns"
        )
        raise ValueError(
            f"rule: expected 'quadratic', 'chebyshev' or 'sampled' with {show(classifier)}, got "
            f"{name!r}, which needs {needed}"
        )
    return functions


def _scores_of(discriminants: Linear, affine: Affine | None) -> Affine:
    """Linear discriminants minus their mean, as a map of samples.

    Without a common term of the scores, differences of scores do not suffer from cancellation.
    """
    slopes = discriminants.slopes - discriminants.slopes.mean(axis=0)
    offsets = discriminants.offsets - discriminants.offsets.mean()
    if affine is None:
        return Affine(np.ascontiguousarray(slopes.T), offsets)
    return affine.then(slopes, offsets)


def _rule(estimator: Estimator, name: str, predict: ClassCodes) -> Rule:
    if name in SETS:
        return SetRule(SETS[name])
    if name == "pairwise":
        return PairwiseRule()
    sampled = estimator.rule if isinstance(estimator.rule, Sampled) else Sampled()
    seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    return SampledRule(predict, samples_of(sampled, float(estimator.reliability)), seed)


def fit_prefixes(model: FittedModel, rows: Series, y: Labels) -> tuple[FittedModel, KnownStages]:
    """Add classifiers of the known values; return the model and out-of-fold probabilities."""
    layout = model.layout
    steps = spread_steps(layout.length, MAX_PREFIX_TIMES)

    def steps_after(onset: int) -> NDArray[np.int64]:
        if onset >= layout.length - 1:
            raise ValueError(
                "X: expected series that differ before their last value with rule='prefixes'"
            )
        return steps[steps > onset]

    series = layout.series(rows.rows)
    stages, held_out = fit_stages(convolutions(model.n_threads), series, y, steps_after)
    probabilities = held_out.probabilities[0].swapaxes(0, 1)
    known = KnownStages(stages.times, stages.classes, probabilities)
    return replace(model, stages=stages), known


# ---- the test of the rule by samples outside of its fit


def correct_rule(
    estimator: Estimator,
    model: FittedModel,
    rows: Series,
    labels: Labels,
    classes: Labels,
    tau: float,
    *,
    by_folds: bool = False,
    known: KnownStages | None = None,
) -> tuple[Correction, NDArray[np.int64], _Array]:
    """Learn the correction of a `ReliableClassifier` from held-out samples.

    With `by_folds`, the samples are the training samples, and each is tested by a model that is
    fitted without its fold; `known` has the out-of-fold probabilities of the classifiers of the
    known values. `classes` are the labels of the fit. Returns the correction, the numbers of values
    after which the rule was tested, and the certified share of final labels of each class.
    """
    layout = model.layout
    confidence = 0.0 if estimator.correct == "average" else float(estimator.correct)
    if isinstance(estimator.correct, bool | np.bool_):
        confidence = CONFIDENCE
    min_samples = min_samples_for(tau, confidence)
    n_samples, n_times = _test_sizes(model.rule.cost, len(labels), layout.length - 1, min_samples)
    random = check_random_state(estimator.random_state)
    groups = _class_groups(estimator, model, classes, labels, min_samples)
    promises = _promises(estimator.conditional, groups, min_samples, tau)
    drawn = stratified_draw(labels, n_samples, random)
    if promises == ("true",):
        _draw_more(drawn, groups(labels), 2 * min_samples, random)
    models: Iterable[tuple[FittedModel, _Codes]] = [(model, np.flatnonzero(drawn))]
    if by_folds:
        models = _fold_models(estimator, rows, labels, layout, drawn, random, known)
    steps = spread_steps(layout.length, n_times) if model.stages is None else model.stages.times
    needs_tau = model.stages is None or "time" in promises
    required_tau = tau if needs_tau else MIN_TAU
    parts, order = [], []
    for fitted, indices in models if len(steps) else ():  # no times if samples have one entry
        times = steps * layout.channels
        parts.append(_held_out_decisions(fitted, rows.take(indices), times, promises, required_tau))
        order.append(indices)
    if not parts:
        if len(steps):
            warn_caller(
                "correct: expected folds to which the classifier can be fitted, got none; only "
                "complete samples are decided",
                UserWarning,
            )
        no_promise = Correction(np.zeros(1), np.zeros(1), confidence, 0, layout.width)
        return no_promise, steps, np.full(len(model.classes), np.nan)
    decisions, labels = HeldOutDecisions.joined(parts), labels[np.concatenate(order)]
    thresholds = _thresholds(decisions, promises, steps, layout.length)
    arguments = decisions, thresholds, labels, groups, model.classes, confidence
    correction = Correction(
        thresholds,
        strictest(np.concatenate([promised_shares(name, *arguments) for name in promises])),
        confidence,
        len(labels),
        layout.width,
        _time_weight(promises),
        needs_tau,
    )
    by_class = certified_by_class(decisions, labels, model.classes, correction, tau)
    return correction, steps, by_class


def _draw_more(
    drawn: NDArray[np.bool_], group: _Codes, min_count: int, random: np.random.RandomState
) -> None:
    """Draw further samples until each group has `min_count` or all of its samples."""
    for g in range(group.max(initial=-1) + 1):
        lacking = min_count - np.count_nonzero(drawn & (group == g))
        others = np.flatnonzero(~drawn & (group == g))
        drawn[random.permutation(others)[: max(lacking, 0)]] = True


def _time_weight(promises: Sequence[str]) -> float:
    """Weight of the share of known entries in the score."""
    return TIME_FIRST_WEIGHT if "time" in promises else TIE_WEIGHT


def _thresholds(
    decisions: HeldOutDecisions, promises: Sequence[str], steps: NDArray[np.int64], length: int
) -> _Array:
    """Thresholds of the score to test."""
    if "time" in promises:  # decisions begin after a time, at any tau of the rule
        return np.append(0.0, TIME_FIRST_WEIGHT * steps / length + 1.0)
    thresholds = np.unique(np.append(0.0, decisions.largest_wrong))
    if "predicted" in promises and len(thresholds) > MAX_THRESHOLDS:
        chosen = np.linspace(0, len(thresholds) - 1, MAX_THRESHOLDS).round().astype(np.intp)
        thresholds = thresholds[chosen]
    return thresholds


def _test_sizes(cost: int, n: int, n_times: int, min_samples: int) -> tuple[int, int]:
    """Numbers of samples and times to test, at most n and `n_times`."""
    n_times = min(n_times, MAX_TIMES if cost == 1 else MAX_SAMPLED_TIMES)
    n_samples = int(np.clip(MAX_PREDICTIONS / (cost * max(n_times, 1)), MIN_SAMPLES, MAX_SAMPLES))
    if n >= min_samples:  # enough samples to support the promise
        n_samples = max(n_samples, 2 * min_samples)
    return min(n, n_samples), n_times


def _class_groups(
    estimator: Estimator,
    model: FittedModel,
    classes: Labels,
    labels: Labels,
    min_samples: int,
) -> ClassGroups:
    """Groups of the classes by their numbers of held-out samples."""
    if "predicted" in promise_names(estimator.conditional):
        classes = np.union1d(classes, model.classes)
    counts = np.array([np.count_nonzero(labels == label) for label in classes])
    if estimator.held_out > 1:  # no fold holds out the only sample of a class
        counts[counts == 1] = 0
    return ClassGroups.of(classes, counts, min_samples)


def promise_names(conditional: Any) -> tuple[str, ...]:
    """Names of the promises."""
    if conditional is None:
        return ()
    return (conditional,) if isinstance(conditional, str) else tuple(conditional)


def _promises(
    conditional: Any, groups: ClassGroups, min_samples: int, tau: float
) -> tuple[str, ...]:
    """Names of the promises that hold; warns of classes with too few held-out samples."""
    names = promise_names(conditional)
    total = int(groups.counts.sum())
    waits = "" if total >= min_samples else ", and all samples wait for their end"
    small = [
        f"{count} of class {show(label)}"
        for label, count in zip(groups.classes.tolist(), groups.counts.tolist(), strict=True)
        if count < min_samples
    ]
    if len(small) > MAX_NAMED_CLASSES:
        small[MAX_NAMED_CLASSES:] = [
            f"and too few of {len(small) - MAX_NAMED_CLASSES} more classes"
        ]
    got = ", ".join(small)
    if small and names == ("auto",):
        warn_caller(
            f"conditional: expected at least {min_samples} held-out samples of each class for a "
            f"promise by class at a reliability of {tau:g}, got {got}; the promise holds for all "
            f"samples together (None){waits}",
            UserWarning,
        )
    elif small and {"true", "predicted"} & {*names}:
        warn_caller(
            f"conditional: expected at least {min_samples} held-out samples of each class, got "
            f"{got}; these classes share one promise"
            + ("" if groups.all_have(min_samples) else ", and all samples wait for their end"),
            UserWarning,
        )
    elif waits:
        warn_caller(
            f"correct: expected at least {min_samples} held-out samples for a reliability of "
            f"{tau:g}, got {total}; all samples wait for their end",
            UserWarning,
        )
    if names == ("auto",):
        names = () if small else ("true",)
    return names or ("all",)


def _fold_models(
    estimator: Estimator,
    rows: Series,
    y: Labels,
    layout: Layout,
    drawn: NDArray[np.bool_],
    random: np.random.RandomState,
    known: KnownStages | None,
) -> Iterator[tuple[FittedModel, _Codes]]:
    """For each fold, the model fitted without it and the indices of the drawn samples in it."""
    for fold in fold_masks(y, int(estimator.held_out), random):
        indices = np.flatnonzero(fold & drawn)
        if not len(indices):
            continue
        try:
            model = fit_model(clone(estimator), rows.take(~fold), y[~fold], layout)
        except ValueError:  # for example, if a class is too small without the fold
            continue
        stages = None if known is None else known.take(indices)
        yield replace(model, stages=stages), indices


def _held_out_decisions(
    model: FittedModel,
    samples: Series,
    times: NDArray[np.int64],
    promises: Sequence[str],
    required_tau: float,
) -> HeldOutDecisions:
    """Decisions about samples outside of the model's fit.

    Decisions that do not affect the promises have the score 0. For promises by label or time, these
    are decisions with a tau below `required_tau`; for other promises, decisions for the label of
    the complete sample.
    """
    scores_final = bool({"predicted", "time"} & {*promises})  # also decisions for the final label
    complete = filled(model.completion, samples.rows)
    final = model.predict_codes(complete)
    rows = np.where(samples.have_gaps[:, None], samples.rows, complete)
    running = times < samples.ends[:, None]
    codes = np.repeat(final[:, None], len(times) + 1, axis=1)
    score = np.where(running, 0.0, np.inf)
    for begin in range(0, len(times), TIMES_PER_BATCH):
        batch = slice(begin, min(begin + TIMES_PER_BATCH, len(times)))
        rule_input = model.prefix_input(rows, times[batch])
        best = model.rule.best_classes(rule_input)
        early = best.reshape(len(final), -1)
        codes[:, batch] = np.where(running[:, batch], early, codes[:, batch])
        row, time = np.nonzero(running[:, batch] & (scores_final | (early != final[:, None])))
        if len(row):
            items = row * (batch.stop - batch.start) + time
            tau = model.score(rule_input.take(items), best[items])
            scores = tau + _time_weight(promises) * times[batch][time] / model.layout.width
            decided = tau >= (required_tau if scores_final else MIN_TAU)
            score[row, begin + time] = np.where(decided, scores, 0.0)
    return HeldOutDecisions(score, codes)

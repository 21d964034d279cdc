"""The test of a rule by samples outside of its fit; `correction` has the theorems about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from eigenfeat._base.types import Estimator, Labels
from eigenfeat._base.validation import show, warn_caller
from eigenfeat.early.completion import filled
from eigenfeat.early.correction import (
    LEAST_TAU,
    TIE,
    TIME_FIRST,
    ClassGroups,
    Correction,
    HeldOutDecisions,
    certified_by_class,
    least_samples,
    promised_shares,
    strictest,
)
from eigenfeat.early.fitted import FittedModel, fit_model
from eigenfeat.early.series import Layout, Rows, fold_masks, spread_steps, stratified_draw
from eigenfeat.early.stages import KnownStages

__all__ = ["PROMISES", "correct_rule", "names_of"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

PROMISES = ("true", "predicted", "time")
CONFIDENCE = 0.9  # of corrections with correct=True

MAX_TIMES = 48  # at which held-out samples are evaluated
MAX_SAMPLED_TIMES = 16  # at which rules that sample evaluate them
MAX_SAMPLES = 3000  # held-out samples that are evaluated
MAX_PREDICTIONS = 4e6  # of rules that sample
MAX_THRESHOLDS = 200  # that are tested for promises by label
TIMES_PER_BATCH = 8


def correct_rule(
    estimator: Estimator,
    model: FittedModel,
    rows: Rows,
    labels: Labels,
    classes: Labels,
    tau: float,
    *,
    by_folds: bool = False,
    known: KnownStages | None = None,
) -> tuple[Correction, NDArray[np.int64], _Array]:
    """Learn the correction of a `ReliableClassifier` from held-out samples.

    `by_folds`: the samples are those of the fit, and each is tested by a model that is fitted
    without its fold; `known` has the out-of-fold probabilities of the classifiers of the known
    values. `classes` are the labels of the fit. Returns the correction, the numbers of values after
    which the rule was tested, and the share of final labels that is certified for each class.
    """
    layout = model.layout
    confidence = 0.0 if estimator.correct == "average" else float(estimator.correct)
    if isinstance(estimator.correct, bool | np.bool_):
        confidence = CONFIDENCE
    least = least_samples(tau, confidence)
    n_samples, n_times = _test_sizes(model.rule.cost, len(labels), layout.length - 1, least)
    random = check_random_state(estimator.random_state)
    groups = _class_groups(estimator, model, classes, labels, least)
    promises = _promises(estimator.conditional, groups, least, tau)
    drawn = stratified_draw(labels, n_samples, random)
    if promises == ("true",):
        _draw_more(drawn, groups(labels), 2 * least, random)
    models: Iterable[tuple[FittedModel, _Codes]] = [(model, np.flatnonzero(drawn))]
    if by_folds:
        models = _fold_models(estimator, rows, labels, layout, drawn, random, known)
    steps = spread_steps(layout.length, n_times) if model.stages is None else model.stages.times
    needs_tau = model.stages is None or "time" in promises
    floor = tau if needs_tau else LEAST_TAU
    parts, order = [], []
    for other, own in models if len(steps) else ():  # no times if samples have one entry
        times = steps * layout.channels
        parts.append(_held_out_decisions(other, rows.take(own), times, promises, floor))
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
    thresholds = _thresholds(decisions, promises, steps, layout.length)
    given = decisions, thresholds, labels, groups, model.classes, confidence
    correction = Correction(
        thresholds,
        strictest(np.concatenate([promised_shares(one, *given) for one in promises])),
        confidence,
        len(labels),
        layout.width,
        _time_weight(promises),
        needs_tau,
    )
    by_class = certified_by_class(decisions, labels, model.classes, correction, tau)
    return correction, steps, by_class


def _draw_more(
    drawn: NDArray[np.bool_], group: _Codes, least: int, random: np.random.RandomState
) -> None:
    """Draw further samples of groups with fewer than `least`, if they have more."""
    for number in range(group.max(initial=-1) + 1):
        lacking = least - np.count_nonzero(drawn & (group == number))
        others = np.flatnonzero(~drawn & (group == number))
        drawn[random.permutation(others)[: max(lacking, 0)]] = True


def _time_weight(promises: Sequence[str]) -> float:
    """Weight of the share of known entries in the score."""
    return TIME_FIRST if "time" in promises else TIE


def _thresholds(
    decisions: HeldOutDecisions, promises: Sequence[str], steps: NDArray[np.int64], length: int
) -> _Array:
    """Thresholds of the score to test."""
    if "time" in promises:  # decisions begin after a time, whatever the rule's tau
        return np.append(0.0, TIME_FIRST * steps / length + 1.0)
    thresholds = np.unique(np.append(0.0, decisions.largest_wrong))
    if "predicted" in promises and len(thresholds) > MAX_THRESHOLDS:
        at = np.linspace(0, len(thresholds) - 1, MAX_THRESHOLDS).round().astype(np.intp)
        thresholds = thresholds[at]
    return thresholds


def _test_sizes(cost: int, n: int, n_times: int, least: int) -> tuple[int, int]:
    """Numbers of samples and times to test, at most n and `n_times`."""
    n_times = min(n_times, MAX_TIMES if cost == 1 else MAX_SAMPLED_TIMES)
    n_samples = int(np.clip(MAX_PREDICTIONS / (cost * max(n_times, 1)), 100, MAX_SAMPLES))
    if n >= least:  # enough samples to support the promise
        n_samples = max(n_samples, 2 * least)
    return min(n, n_samples), n_times


def _class_groups(
    estimator: Estimator,
    model: FittedModel,
    classes: Labels,
    labels: Labels,
    least: int,
) -> ClassGroups:
    """Groups of the classes by their numbers of held-out samples."""
    if "predicted" in names_of(estimator.conditional):
        classes = np.union1d(classes, model.classes)
    counts = np.array([np.count_nonzero(labels == label) for label in classes])
    if estimator.held_out > 1:  # no fold holds out the only sample of a class
        counts[counts == 1] = 0
    return ClassGroups.of(classes, counts, least)


def names_of(conditional: Any) -> tuple[str, ...]:
    """Names of the promises."""
    if conditional is None:
        return ()
    return (conditional,) if isinstance(conditional, str) else tuple(conditional)


def _promises(conditional: Any, groups: ClassGroups, least: int, tau: float) -> tuple[str, ...]:
    """Names of the promises that hold; warns of classes with too few held-out samples."""
    names = names_of(conditional)
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
    estimator: Estimator,
    rows: Rows,
    y: Labels,
    layout: Layout,
    drawn: NDArray[np.bool_],
    random: np.random.RandomState,
    known: KnownStages | None,
) -> Iterator[tuple[FittedModel, _Codes]]:
    """For each fold, the model fitted without it and the indices of the drawn samples in it."""
    for fold in fold_masks(y, int(estimator.held_out), random):
        own = np.flatnonzero(fold & drawn)
        if not len(own):
            continue
        try:
            model = fit_model(clone(estimator), rows.take(~fold), y[~fold], layout)
        except ValueError:  # for example, if a class is too small without the fold
            continue
        stages = None if known is None else known.take(own)
        yield replace(model, stages=stages), own


def _held_out_decisions(
    model: FittedModel,
    samples: Rows,
    times: NDArray[np.int64],
    promises: Sequence[str],
    least: float,
) -> HeldOutDecisions:
    """Decisions about samples outside of the model's fit.

    Decisions that no promise depends on have the score 0: for promises by label or time those with
    a tau below `least`, for other promises those with the label of the complete sample.
    """
    right_too = bool({"predicted", "time"} & {*promises})
    full = filled(model.completion, samples.rows)
    final = model.predict_codes(full)
    shown = np.where(samples.have_gaps[:, None], samples.rows, full)
    running = times < samples.ends[:, None]
    codes = np.repeat(final[:, None], len(times) + 1, axis=1)
    score = np.where(running, 0.0, np.inf)
    for begin in range(0, len(times), TIMES_PER_BATCH):
        at = slice(begin, min(begin + TIMES_PER_BATCH, len(times)))
        rule_input = model.prefix_input(shown, times[at])
        best = model.rule.best_classes(rule_input)
        now = best.reshape(len(final), -1)
        codes[:, at] = np.where(running[:, at], now, codes[:, at])
        row, time = np.nonzero(running[:, at] & (right_too | (now != final[:, None])))
        if len(row):
            items = row * (at.stop - at.start) + time
            tau = model.score(rule_input.take(items), best[items])
            scores = tau + _time_weight(promises) * times[at][time] / model.layout.width
            decided = tau >= (least if right_too else LEAST_TAU)
            score[row, begin + time] = np.where(decided, scores, 0.0)
    return HeldOutDecisions(score, codes)

r"""The correction of a rule by held-out samples, and the rule that waits for it.

Every held-out sample is evaluated by a rule that was fitted without it, at several times and
reliabilities. Its `stable_from` is the number of known entries from which on the rule is never
wrong about it: the label that it would decide is always that of the complete sample. A new sample's
number is as likely to have any rank among those of n held-out samples (exchangeability), so that
the share of samples whose number is at most the j-th smallest is at least j / (n + 1) on average:
the argument of conformal prediction (Vovk, Gammerman and Shafer 2005), here across folds (Vovk
2015), whose models are not quite the one that is used. With a confidence, the share is Clopper and
Pearson's lower bound for j of n, which held-out samples of one fixed model would exceed with that
confidence (a tolerance limit, Wilks 1941).

A sample waits until that share reaches tau.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.lazy import cached_property
from eigenfeat._base.saved import Saved, fits
from eigenfeat._base.types import Labels
from eigenfeat._base.verbose import progress_bar, warn_caller
from eigenfeat.incomplete.fitted import FittedModel
from eigenfeat.incomplete.rules import Rule, RuleInput, RuleOutput, binomial_share
from eigenfeat.incomplete.series import Rows, fold_masks, spread_over_classes, spread_steps

__all__ = ["CorrectedRule", "Correction", "HeldOutResult", "correct_rule"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

# A tau between two of them is corrected as the smaller one, which may be decided much later.
GRID = (1e-12, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
MAX_TIMES = 48  # at which held-out rows are evaluated
MAX_SAMPLED_TIMES = 16  # by rules that sample
MAX_ROWS = 3000
MAX_PREDICTIONS = 4e6  # of rules that sample
TIMES_AT_ONCE = 8
LONG = 90.0  # seconds of which a warning tells
SLACK = 1e-12  # shares are compared with tau
MAX_CACHED = 64  # reliabilities whose least numbers of entries are cached


@dataclass(frozen=True, eq=False)
class Correction(Saved):
    """From how many known entries on held-out samples are never decided wrongly.

    Attributes
    ----------
    tau : (p,) array
        Reliabilities at which the rule was tried, ascending.
    stable_from : (p, n) array of int
        By reliability, ascending: numbers of known entries; d for samples that are wrong up to the
        last time.
    length : int
        How many entries complete samples have, d.
    confidence : float
        Of the bounds; 0 for shares on average.
    """

    _saved: ClassVar[dict[str, str]] = {
        "tau": "numbers p",
        "stable_from": "whole p n",
        "length": "count",
        "confidence": "number",
    }

    tau: _Array
    stable_from: NDArray[np.int64]
    length: int
    confidence: float

    @property
    def n(self) -> int:
        """How many samples were held out."""
        return int(self.stable_from.shape[1])

    def share(self, tau: _Array, known: _Codes) -> _Array:
        """(m,): the supported agreement at tau (m,) with so many known entries (m,)."""
        at = np.maximum(np.searchsorted(self.tau, tau, side="right") - 1, 0)
        return self._share_at(at, known)

    def cap(self, reliability: _Array, known: _Codes) -> _Array:
        """(m,): the largest tau up to a rule's `reliability` that `share` supports; 0 if none."""
        out = np.zeros(len(known))
        upper = np.append(self.tau[1:], 1.0)
        for k, (low, high) in enumerate(zip(self.tau, upper, strict=True)):
            share = self._share_at(np.full(len(known), k), known) + SLACK
            largest = np.minimum(np.minimum(reliability, high), share)
            reached = np.where(largest >= low, np.minimum(largest, reliability), 0.0)
            out = np.maximum(out, reached)
        return np.where(known >= self.length, reliability, out)

    def least_known(self, tau: float) -> int:
        """From how many known entries on samples may be decided at tau."""
        least = self._least.get(tau)
        if least is None:
            counts = np.arange(self.length)
            enough = self.share(np.full(self.length, tau), counts) >= tau - SLACK
            least = int(enough.argmax()) if enough.any() else self.length
            if len(self._least) >= MAX_CACHED:
                self._least.clear()
            self._least[tau] = least
        return least

    @cached_property
    def _least(self) -> dict[float, int]:
        return {}

    def _share_at(self, at: _Codes, known: _Codes) -> _Array:
        stable = np.empty(len(known), dtype=np.intp)
        for k in np.unique(at):
            some = at == k
            stable[some] = np.searchsorted(self.stable_from[k], known[some], side="right")
        return binomial_share(stable, self.n, self.confidence)

    def _check_loaded(self) -> None:
        tau, stable = self.tau, self.stable_from
        sound = len(tau) > 0 and tau[0] > 0 and tau[-1] < 1 and np.all(np.diff(tau) > 0)
        fits(sound and np.all(stable[:, 1:] >= stable[:, :-1]), "Correction")
        inside = not stable.size or (stable.min() >= 0 and stable.max() <= self.length)
        fits(inside, "Correction.stable_from")
        fits(self.length >= 1 and 0 <= self.confidence < 1, "Correction")


class CorrectedRule(Rule):
    """A rule that waits as long as held-out samples do not support it."""

    _saved: ClassVar[dict[str, str]] = {
        "rule": "of SetRule PairwiseRule SampledRule",
        "correction": "of Correction",
    }

    def __init__(self, rule: Rule, correction: Correction) -> None:
        self.rule = rule
        self.correction = correction

    @property
    def cost(self) -> int:  # type: ignore[override]
        """As of `Rule`."""
        return self.rule.cost

    def evaluate(self, rule_input: RuleInput, tau: _Array, target: int | None) -> RuleOutput:
        """As `Rule.evaluate`."""
        return self._corrected(rule_input, tau, self.rule.evaluate(rule_input, tau, target))

    def decide(self, rule_input: RuleInput, tau: _Array) -> RuleOutput:
        """As `Rule.decide`."""
        output = self.rule.decide(rule_input, tau)
        if output.decided.any():
            return self._corrected(rule_input, tau, output)
        return output

    def largest_tau(self, rule_input: RuleInput, target: int | None) -> tuple[_Array, _Codes]:
        """As `Rule.largest_tau`."""
        largest, best = self.rule.largest_tau(rule_input, target)
        return self.correction.cap(largest, self._known(rule_input)), best

    def certified_tau(self, rule_input: RuleInput, output: RuleOutput, items: _Codes) -> _Array:
        """As `Rule.certified_tau`."""
        largest = self.rule.certified_tau(rule_input, output, items)
        capped = self.correction.cap(largest, self._known(rule_input)[items])
        return np.maximum(capped, output.reliability[items])

    def best_scores(self, rule_input: RuleInput) -> _Codes:
        """As `Rule.best_scores`."""
        return self.rule.best_scores(rule_input)

    def least_known(self, tau: float) -> int:
        """As `Rule.least_known`."""
        return self.correction.least_known(tau)

    def _corrected(self, rule_input: RuleInput, tau: _Array, output: RuleOutput) -> RuleOutput:
        known = self._known(rule_input)
        supported = self.correction.share(tau, known) >= tau - SLACK
        decided = output.decided & (supported | (known >= self.correction.length))
        reliability = self.correction.cap(output.reliability, known)
        return RuleOutput(output.best, decided, reliability, output.checks, output.undecided_checks)

    def _known(self, rule_input: RuleInput) -> _Codes:
        conditional = rule_input.conditional
        return self.correction.length - conditional.missing[conditional.pattern]


class HeldOutResult(NamedTuple):
    """Number of held-out samples that the corrected rule decides as the complete sample, of n."""

    agreed: int
    n: int


# Fits to all rows but those whose flags it is given.
Refit = Callable[[NDArray[np.bool_]], FittedModel]


def correct_rule(
    model: FittedModel,
    refit: Refit,
    rows: Rows,
    y: Labels,
    tau: float,
    n_folds: int,
    confidence: float,
    held_out: Rows | None = None,
    verbose: int = 0,
) -> tuple[Correction, HeldOutResult, NDArray[np.int64]]:
    """Learn a correction of a model's rule from folds, or from samples that it was not fitted to.

    Parameters
    ----------
    model : FittedModel
    refit : callable
        Fits to all samples but those whose flags it is given.
    samples, y
        Samples and labels of the fit.
    tau : float
        The reliability that is promised.
    n_folds : int
    confidence : float
        As in `Correction`.
    held_out : Samples, optional
        They take the place of the folds.
    verbose : int
        Whether to show a progress bar.

    Returns
    -------
    Correction, HeldOutResult
    steps : (p,) array of int
        Numbers of samples at which samples were evaluated.
    """
    n, d = (rows if held_out is None else held_out).rows.shape
    grid = np.union1d(GRID, [tau])
    if model.rule.cost > 1:  # others take more samples; these serve looser and stricter ones
        grid = np.array([grid[0], tau])
    channels, length = model.layout.channels, model.layout.length
    n_rows, n_times = _sizes(model.rule.cost, n, length, _least_rows(tau, confidence))
    steps = spread_steps(length, n_times)
    times = steps * channels
    parts: list[_HeldOut] = []
    total = n_rows * len(times)
    with progress_bar(total, "ReliableClassifier", verbose) as bar:
        done = _Progress(bar, total, n_folds)
        if len(times) and held_out is not None:
            parts.append(_HeldOut(model, held_out.take(slice(0, n_rows)), grid, times, done))
        elif len(times):
            for other, own in _fold_models(refit, rows, y, n_rows, n_folds):
                parts.append(_HeldOut(other, own, grid, times, done))
    if not parts:
        if len(times):  # a row of one entry has no beginning
            warnings.warn(
                "correct: expected folds that the classifier can be fitted to, got none; rows are "
                "decided when they are complete",
                UserWarning,
                stacklevel=5,
            )
        none = np.empty((len(grid), 0), np.int64)
        return Correction(grid, none, d, confidence), HeldOutResult(0, 0), steps
    wrong = np.concatenate([part.wrong for part in parts], axis=1)
    stable_from = np.sort(_stable_from(wrong, times, d), axis=1)
    correction = Correction(grid, stable_from, d, confidence)
    at = int(np.searchsorted(grid, tau))
    late = times >= correction.least_known(tau)
    disagreed = sum(part.disagreements(at, late) for part in parts)
    return correction, HeldOutResult(wrong.shape[1] - disagreed, wrong.shape[1]), steps


def _fold_models(
    refit: Refit, rows: Rows, y: Labels, n_rows: int, n_folds: int
) -> Iterator[tuple[FittedModel, Rows]]:
    """For each fold the model without it, and samples of it, at most so many over all folds."""
    chosen = spread_over_classes(y, n_rows)
    for fold in fold_masks(y, n_folds):
        own = np.flatnonzero(fold & chosen)
        if not len(own):
            continue
        try:
            model = refit(fold)
        except ValueError:  # such as a class that is too small without the fold
            continue
        yield model, rows.take(own)


class _HeldOut:
    """Samples outside a fit, and when its rule would decide them as others than complete ones.

    Where the rule would decide a sample as the complete one, it need not be asked whether it does:
    only wrong decisions count. Labels are compared first, and the rule evaluates the others.

    Attributes
    ----------
    agrees : (m, times) array of bool
        Whether the label that would be decided is that of the complete sample.
    wrong : (p, m, times) array of bool
        By reliability, whether the sample would be decided, and wrongly.
    """

    def __init__(
        self,
        model: FittedModel,
        rows: Rows,
        grid: _Array,
        times: NDArray[np.int64],
        done: Callable[[int], None],
    ) -> None:
        self.model, self.grid, self.times = model, grid, times
        full = model.fill(rows.rows)
        final = model.predict_codes(full)
        self.shown = np.where(rows.have_gaps[:, None], rows.rows, full)
        running = times < rows.ends[:, None]
        self.agrees = np.empty(running.shape, dtype=bool)
        self.wrong = np.zeros((len(grid), *running.shape), dtype=bool)
        for begin in range(0, len(times), TIMES_AT_ONCE):
            at = slice(begin, min(begin + TIMES_AT_ONCE, len(times)))
            rule_input = model.prefix_input(self.shown, times[at])
            label = model.discriminants.labels[model.rule.best_scores(rule_input)]
            same = label.reshape(len(final), -1) == final[:, None]
            self.agrees[:, at] = same
            row, time = np.nonzero(~same & running[:, at])
            if len(row):
                others = rule_input.take(row * (at.stop - at.start) + time)
                for k, (decided, _) in enumerate(model.rule.evaluate_grid(others, grid)):
                    self.wrong[k, row, begin + time] = decided
            done(same.size)

    def disagreements(self, at: int, late: NDArray[np.bool_]) -> int:
        """How many samples get another label, at one tau, by their first decision at late times."""
        wrong = self.wrong[at] & late
        rows = np.flatnonzero(wrong.any(axis=1))
        first = wrong[rows].argmax(axis=1)
        before = self.agrees[rows] & late & (np.arange(len(late)) < first[:, None])
        row, time = np.nonzero(before)
        if not len(row):
            return len(rows)
        rule_input = self.model.prefix_input(self.shown[rows], self.times)
        earlier = rule_input.take(row * len(late) + time)
        right = list(self.model.rule.evaluate_grid(earlier, self.grid))[at][0]
        return len(rows) - len(np.unique(row[right]))


class _Progress:
    """Moves a bar, and warns once where the evaluation of held-out samples will take minutes."""

    def __init__(self, bar: Callable[[str, int], None], total: int, n_folds: int) -> None:
        self.bar = bar
        self.total = total
        self.n_folds = n_folds
        self.done, self.warned = 0, False
        self.started = time.perf_counter()

    def __call__(self, steps: int) -> None:
        self.done += steps
        self.bar(f"held-out samples at all times: {self.done} of {self.total}", steps)
        spent = time.perf_counter() - self.started
        left = spent * (self.total - self.done) / self.done
        if not self.warned and left > LONG:
            self.warned = True
            less = "correct=False, " + ("fewer folds, " if self.n_folds > 2 else "")
            warn_caller(
                f"fit: expected a fast classifier, got one that needs some {left / 60:.0f} more "
                f"minutes to label completions of held-out samples; {less}a faster classifier or "
                "a smaller reliability takes less",
                UserWarning,
            )


def _stable_from(wrong: NDArray[np.bool_], times: NDArray[np.int64], d: int) -> NDArray[np.int64]:
    """Entries from which on rows (..., times) are not decided wrongly; d if wrong at the last."""
    last = wrong.shape[-1] - wrong[..., ::-1].argmax(axis=-1)  # the time after the last wrong one
    return np.where(wrong.any(axis=-1), np.append(times, d)[last], 0)


def _sizes(cost: int, n: int, length: int, least: int) -> tuple[int, int]:
    """How many samples to evaluate, and at how many times."""
    times = min(length - 1, MAX_TIMES)
    if cost > 1:  # some millions of predictions, but rows enough to support what is promised
        times = min(times, MAX_SAMPLED_TIMES)
        rows = max(100, int(MAX_PREDICTIONS / (cost * max(times, 1))))
        return min(n, rows if n < least else max(rows, 2 * least)), times
    return min(n, MAX_ROWS), times


def _least_rows(tau: float, confidence: float) -> int:
    """How many samples can support tau, if all of them agree."""
    if confidence > 0:
        return int(np.ceil(np.log1p(-confidence) / np.log(tau)))
    return int(np.ceil(tau / (1 - tau)))

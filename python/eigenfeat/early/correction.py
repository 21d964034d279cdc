r"""Corrections of a rule by held-out samples, and the theorems about them.

**One threshold.** A rule is evaluated on every held-out sample at several times. :math:`S` of a
sample is the number of known entries from which on the rule never decides it wrongly, that is,
differently from the complete sample. A corrected rule decides nothing before :math:`m` entries are
known, so that the early label of a sample with :math:`S \le m` is final.

*All samples* (``conditional=None``). :math:`m` is the smallest number at which the lower bound
(Clopper and Pearson) of :math:`P(S \le m)` reaches tau. As :math:`P(S \le m)` grows with m, the
promise fails only if the bound is wrong at the largest m below the true quantile, a single event:
``P(early label = final label) >= tau`` with the confidence (a tolerance limit, Wilks 1941). On
average over held-out samples the share is at least j / (n + 1) for the j-th smallest S, since the
rank of a new sample's S among n others is uniform (conformal prediction, Vovk et al. 2005).

*By true class* (``"true"``). :math:`m` is the largest threshold of a class, each learned from the
samples of the class (Mondrian calibration, Vovk et al. 2005). With the confidence,
``P(early label = final label | Y = k) >= tau`` holds for all classes k simultaneously: m is at
least the threshold of the class with the largest true quantile, so that only the bound of this
class can break the promise. The samples of a class must be exchangeable; class frequencies may
change.

**Tests from late to early.** The other promises are about the time and the label of the decision,
which depend on m. Hypotheses "decisions from m on break the promise" are tested from the last time
to earlier ones until one is not rejected (fixed-sequence testing). A hypothesis is rejected if the
bounds of all of its cells reach tau. This needs no correction for the number of cells: if a cell
breaks the promise, a false rejection needs a wrong bound of this cell.

*By label* (``"predicted"``): ``P(final label = c | early label = c) >= tau`` for all classes c.

*By time* (``"time"``): ``P(early label = final label | decided after at most t values) >= tau`` for
all decision times t (accumulated accuracy gap, Ringel et al. 2024).

Several promises hold together if their tests reject together.

**Drawing.** Samples are held out at random from each class in proportion to its size. Given the
labels, held-out samples are then independent draws of their classes. The number of successes is a
sum of independent trials of unequal probabilities, whose upper tail is below that of a binomial
distribution (Hoeffding 1956). With folds instead of samples that are held out from the fit, the
models of the folds replace the final model, and the theorems hold approximately (cross-conformal
prediction, Vovk 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.state import OmitsCaches
from eigenfeat._base.types import Labels
from eigenfeat.early.completion import filled
from eigenfeat.early.rules import (
    SLACK,
    FittedModel,
    Rule,
    RuleInput,
    RuleOutput,
    clopper_pearson,
)
from eigenfeat.early.series import Rows

__all__ = [
    "PROMISES",
    "ClassGroups",
    "CorrectedRule",
    "Correction",
    "HeldOutDecisions",
    "certified_by_class",
    "held_out_decisions",
    "label_shares",
    "least_samples",
    "promised_shares",
    "stable_shares",
    "time_shares",
]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]
_Flags = NDArray[np.bool_]

PROMISES = ("true", "predicted", "time")
MAX_CACHED = 64  # reliabilities whose smallest numbers of entries are cached
TIMES_PER_BATCH = 8


# ---- bounds


def _supported(count: NDArray[np.int64], n: Any, confidence: float) -> _Array:
    """Lower bounds of a probability by `count` of n successes; without confidence, a mean."""
    if confidence > 0:
        return clopper_pearson(count, n, 1.0 - confidence)
    return np.asarray(count / (n + 1))


def least_samples(tau: float, confidence: float) -> int:
    """Number of samples that support tau if all of them agree."""
    if confidence > 0:
        return int(np.ceil(np.log1p(-confidence) / np.log(tau)))
    return int(np.ceil(tau / (1 - tau)))


# ---- promises


@dataclass(frozen=True, eq=False)
class ClassGroups:
    """Groups of classes: each class with enough samples, and a last group of the others."""

    classes: Labels  # (G,), sorted
    counts: NDArray[np.int64]  # (G,): numbers of held-out samples
    group: _Codes  # (G,)

    @classmethod
    def of(cls, classes: Labels, counts: NDArray[np.int64], least: int) -> ClassGroups:
        """Put classes with fewer than `least` samples into one group."""
        large = counts >= least
        return cls(classes, counts, np.where(large, np.cumsum(large) - 1, large.sum()))

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.group.max()) + 1

    def is_enough(self, least: int) -> bool:
        """Whether every group has at least `least` samples."""
        return bool((np.bincount(self.group, self.counts) >= least).all())

    def __call__(self, labels: Labels) -> _Codes:
        """Groups of labels, an array of any shape."""
        return np.asarray(self.group[np.searchsorted(self.classes, labels)])


def promised_shares(
    promise: str, decisions: HeldOutDecisions, labels: Labels, groups: ClassGroups, conf: float
) -> _Array:
    """Shares (r, p, q + 1) of final labels in the cells of a promise, by the first decision time.

    `labels` (m,) are the true ones of the held-out samples.
    """
    if promise == "all":
        return stable_shares(decisions.wrong, np.zeros(len(labels), dtype=np.intp), 1, conf)
    if promise == "true":
        return stable_shares(decisions.wrong, groups(labels), groups.n_groups, conf)
    if promise == "predicted":
        assert decisions.label is not None
        return label_shares(decisions, groups(decisions.label), groups.n_groups, conf)
    return time_shares(decisions, conf)


# ---- decisions about held-out samples


@dataclass(frozen=True, eq=False)
class HeldOutDecisions:
    """Decisions about m samples by rules that were not fitted to them, at p tau and q times."""

    wrong: _Flags  # (p, m, q) decisions that differ from the complete sample
    # For promises about the time or label of decisions; series that have ended count as decided.
    decided: _Flags | None = None  # (p, m, q)
    label: Labels | None = None  # (m, q + 1); the last label is of the complete sample

    @classmethod
    def joined(cls, parts: Sequence[HeldOutDecisions]) -> HeldOutDecisions:
        """The samples of several folds."""
        return cls(
            np.concatenate([one.wrong for one in parts], axis=1),
            _joined([one.decided for one in parts], axis=1),
            _joined([one.label for one in parts], axis=0),
        )


def _joined(parts: Sequence[NDArray[Any] | None], axis: int) -> NDArray[Any] | None:
    known = [one for one in parts if one is not None]
    return np.concatenate(known, axis=axis) if known else None


def held_out_decisions(
    model: FittedModel,
    samples: Rows,
    grid: _Array,
    times: NDArray[np.int64],
    done: Callable[[int], None],
    *,
    right_too: bool,
) -> HeldOutDecisions:
    """Evaluate a rule on samples outside of its fit, at each tau of a grid.

    Decisions with the label of the complete sample, which are right, are only evaluated with
    `right_too`.
    """
    full = filled(model.completion, samples.rows)
    final = model.predict_codes(full)
    shown = np.where(samples.have_gaps[:, None], samples.rows, full)
    running = times < samples.ends[:, None]
    codes = np.repeat(final[:, None], len(times) + 1, axis=1)
    decided = np.zeros((len(grid), *running.shape), dtype=bool)
    for begin in range(0, len(times), TIMES_PER_BATCH):
        at = slice(begin, min(begin + TIMES_PER_BATCH, len(times)))
        rule_input = model.prefix_input(shown, times[at])
        best = model.rule.best_classes(rule_input)
        now = best.reshape(len(final), -1)
        codes[:, at] = np.where(running[:, at], now, codes[:, at])
        row, time = np.nonzero(running[:, at] & (right_too | (now != final[:, None])))
        if len(row):
            items = row * (at.stop - at.start) + time
            of_grid = model.rule.evaluate_grid(rule_input.take(items), grid, best[items])
            for k, of_tau in enumerate(of_grid):
                decided[k, row, begin + time] = of_tau
        done(now.size)
    wrong = decided & (codes[:, :-1] != final[:, None])
    if not right_too:
        return HeldOutDecisions(wrong)
    return HeldOutDecisions(wrong, decided | ~running, model.classes[codes])


# ---- shares that decisions support, by the time from which on decisions are made


def stable_shares(wrong: _Flags, groups: _Codes, n_groups: int, confidence: float) -> _Array:
    """Share of the samples of each group that are never decided wrongly from a time on.

    Parameters
    ----------
    wrong : (p, m, q) array
    groups : (m,) array
        Group of each sample.
    n_groups : int
    confidence : float

    Returns
    -------
    (n_groups, p, q + 1) array
        Supported shares from 0 entries on, and from each of the q times on.
    """
    p, _, q = wrong.shape
    last = q - wrong[:, :, ::-1].argmax(axis=2)  # number of the last time with a wrong decision
    first_right = np.where(wrong.any(axis=2), last + 1, 0)
    sizes = np.bincount(groups, minlength=n_groups)
    out = np.empty((n_groups, p, q + 1))
    for group, size in enumerate(sizes):
        for k in range(p):
            counts = np.bincount(first_right[k, groups == group], minlength=q + 2)
            stable = np.cumsum(counts)[: q + 1]
            out[group, k] = _supported(stable, size, confidence)
    return out


def label_shares(
    decisions: HeldOutDecisions, groups: _Codes, n_groups: int, confidence: float
) -> _Array:
    """Share of the early labels of each group that are final, if decisions start at a time.

    `groups` (m, q + 1) are the groups of the labels at each time, and of the final label.
    """
    p, m, q = decisions.wrong.shape
    out = np.empty((n_groups, p, q + 1))
    for k, begin, at, right in _first_decisions(decisions):
        group = groups[np.arange(m), at]
        total = np.bincount(group, minlength=n_groups)
        count = np.bincount(group[right], minlength=n_groups)
        out[:, k, begin + 1] = _supported(count, total, confidence)
    out[:, :, 0] = out[:, :, 1]
    return out


def time_shares(decisions: HeldOutDecisions, confidence: float) -> _Array:
    """Smallest share of final labels among samples that are decided up to a time.

    Shares (1, p, q + 1) are by the time at which decisions start; each is the smallest over the
    later times up to which decisions are counted.
    """
    p, _, q = decisions.wrong.shape
    out = np.empty((1, p, q + 1))
    for k, begin, at, right in _first_decisions(decisions):
        total = np.cumsum(np.bincount(at, minlength=q + 1)[begin:])
        count = np.cumsum(np.bincount(at[right], minlength=q + 1)[begin:])
        out[0, k, begin + 1] = _supported(count, total, confidence).min()
    out[:, :, 0] = out[:, :, 1]
    return out


def _first_decisions(
    decisions: HeldOutDecisions,
) -> Iterator[tuple[int, int, _Codes, _Flags]]:
    """Yield tau, first time, the time of each sample's decision, and whether it is right."""
    assert decisions.decided is not None
    p, m, q = decisions.wrong.shape
    for k in range(p):
        at = np.full(m, q)
        right = np.column_stack([~decisions.wrong[k], np.ones(m, dtype=bool)])
        for begin in range(q - 1, -1, -1):
            at[decisions.decided[k, :, begin]] = begin
            yield k, begin, at, right[np.arange(m), at]


def certified_by_class(
    correction: Correction,
    decisions: HeldOutDecisions,
    labels: Labels,
    classes: Labels,
    tau: float,
) -> _Array:
    """Lower bounds (G,) of the share of final labels of each true class, at most tau.

    NaN for classes without held-out samples.
    """
    row = int(np.searchsorted(correction.tau, tau))
    column = int(np.searchsorted(correction.known, correction.least_known(tau)))
    known, codes = np.unique(labels, return_inverse=True)
    shares = stable_shares(decisions.wrong[[row]], codes, len(known), correction.confidence)
    shares = np.append(shares[:, 0], np.ones((len(known), 1)), axis=1)  # at the end all are final
    of_class = dict(zip(known.tolist(), shares[:, column].tolist(), strict=True))
    return np.minimum([of_class.get(label, np.nan) for label in classes.tolist()], tau)


# ---- the corrected rule


@dataclass(frozen=True, eq=False)
class Correction(OmitsCaches):
    """Certified shares of final labels, by the number of known entries.

    Attributes
    ----------
    tau : (p,) array
        Reliabilities at which the rule was tested, ascending.
    known : (q,) array of int
        Numbers of known entries, ascending from 0.
    share : (p, q) array
        Smallest certified share of all promises, if decisions at tau start at this number of known
        entries.
    length : int
        Number of entries of complete samples, d.
    confidence : float
        Confidence of the shares; 0 for shares on average.
    n : int
        Number of held-out samples.
    """

    tau: _Array
    known: NDArray[np.int64]
    share: _Array
    length: int
    confidence: float
    n: int

    @classmethod
    def of_shares(
        cls,
        shares: Sequence[_Array],
        tau: _Array,
        times: NDArray[np.int64],
        length: int,
        confidence: float,
        n: int,
    ) -> Correction:
        """Correct by the smallest share (r, p, q + 1) of several promises.

        A time is used only if the shares of all later times suffice.
        """
        known = np.append(0, times)
        smallest = np.zeros((len(tau), len(known)))
        if shares:
            smallest = np.concatenate(shares).min(axis=0)
        later = np.minimum.accumulate(smallest[:, ::-1], axis=1)[:, ::-1]
        return cls(tau, known, np.ascontiguousarray(later), length, confidence, n)

    def supported(self, tau: _Array, known: _Codes) -> _Array:
        """Certified shares (m,) at tau (m,) with `known` entries (m,)."""
        return np.asarray(self.share[self._row(tau), self._column(known)])

    def cap(self, reliability: _Array, known: _Codes) -> _Array:
        """Largest certified tau (m,) up to a rule's `reliability`; 0 without any."""
        out = np.zeros(len(known))
        upper, column = np.append(self.tau[1:], 1.0), self._column(known)
        for k, (low, high) in enumerate(zip(self.tau, upper, strict=True)):
            share = self.share[k, column] + SLACK
            largest = np.minimum(np.minimum(reliability, high), share)
            reached = np.where(largest >= low, np.minimum(largest, reliability), 0.0)
            out = np.maximum(out, reached)
        return np.where(known >= self.length, reliability, out)

    def least_known(self, tau: float) -> int:
        """Smallest number of known entries with which samples may be decided at tau."""
        least = self._least.get(tau)
        if least is None:
            enough = self.share[self._row(np.array(tau))] >= tau - SLACK
            least = int(self.known[enough.argmax()]) if enough.any() else self.length
            if len(self._least) >= MAX_CACHED:
                self._least.clear()
            self._least[tau] = least
        return least

    @cached_property
    def _least(self) -> dict[float, int]:
        return {}

    def _row(self, tau: _Array) -> _Codes:
        return np.maximum(np.searchsorted(self.tau, tau, side="right") - 1, 0)

    def _column(self, known: _Codes) -> _Codes:
        return np.searchsorted(self.known, known, side="right") - 1


class CorrectedRule(Rule):
    """A rule that waits until its decisions are certified by held-out samples."""

    def __init__(self, rule: Rule, correction: Correction) -> None:
        self.rule = rule
        self.correction = correction

    @property
    def cost(self) -> int:  # type: ignore[override]
        """As of `Rule`."""
        return self.rule.cost

    def decide(self, rule_input: RuleInput, tau: _Array, whole: bool = False) -> RuleOutput:
        """As `Rule.decide`."""
        output = self.rule.decide(rule_input, tau, whole)
        if not whole and not output.decided.any():
            return output
        known = self._known(rule_input)
        supported = self.correction.supported(tau, known) >= tau - SLACK
        decided = output.decided & (supported | (known >= self.correction.length))
        return RuleOutput(output.best, decided, self.correction.cap(output.reliability, known))

    def largest_tau(self, rule_input: RuleInput) -> tuple[_Array, _Codes]:
        """As `Rule.largest_tau`."""
        largest, best = self.rule.largest_tau(rule_input)
        return self.correction.cap(largest, self._known(rule_input)), best

    def certified_tau(self, rule_input: RuleInput, output: RuleOutput, items: _Codes) -> _Array:
        """As `Rule.certified_tau`."""
        largest = self.rule.certified_tau(rule_input, output, items)
        capped = self.correction.cap(largest, self._known(rule_input)[items])
        return np.maximum(capped, output.reliability[items])

    def best_classes(self, rule_input: RuleInput) -> _Codes:
        """As `Rule.best_classes`."""
        return self.rule.best_classes(rule_input)

    def least_known(self, tau: float) -> int:
        """As `Rule.least_known`."""
        return self.correction.least_known(tau)

    def _known(self, rule_input: RuleInput) -> _Codes:
        conditional = rule_input.conditional
        return self.correction.length - conditional.missing[conditional.pattern]

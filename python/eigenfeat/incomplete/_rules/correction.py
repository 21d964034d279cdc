r"""What held-out series say of a rule, and a rule that is held to it.

Every training row is judged by a rule that was fitted without its fold, at several times and
reliabilities. `since` is from how many known entries on the rule is never wrong about the row: the
label that it would decide is always that of the complete row. A new row's `since` is as likely to
have any rank among those of n held-out ones (exchangeability), so that the share of rows whose
`since` is at most the j-th smallest is at least j / (n + 1) on average: the argument of conformal
prediction (Vovk, Gammerman and Shafer 2005), here across folds (Vovk 2015), whose models are not
quite the one that is used. With a confidence, the share is Clopper and Pearson's lower bound for j
of n, which held-out rows of one fixed model would exceed with that confidence.

A row waits until that share reaches tau.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.lazy import cached_property
from eigenfeat._base.saved import Saved, fits
from eigenfeat._base.types import Labels
from eigenfeat.incomplete._rules.calibration import shown_share
from eigenfeat.incomplete._rules.fitted import (
    SLACK,
    fewest_rows,
    held_out_fits,
    since_of,
    sizes,
    trial,
)
from eigenfeat.incomplete._rules.rule import Case, Judgement, Rule
from eigenfeat.incomplete._series.steps import spread_steps

if TYPE_CHECKING:
    from eigenfeat.incomplete._rules.fitted import Fitted, Refit
    from eigenfeat.incomplete._series.layout import Rows

__all__ = ["CorrectedRule", "Correction", "Held", "corrected"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

# A tau between two of them is held to what the looser one showed, which may be much later.
GRID = (1e-12, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
KEPT = 64  # reliabilities whose least numbers of entries are kept


@dataclass(frozen=True, eq=False)
class Correction(Saved):
    """From how many known entries on held-out rows are never decided wrongly.

    Attributes
    ----------
    tau : (p,) array
        Reliabilities at which the rule was tried, ascending.
    since : (p, n) array of int
        By reliability, ascending: numbers of known entries; d for rows that are wrong up to the
        last look.
    length : int
        How many entries complete rows have, d.
    confidence : float
        Of the bounds; 0 for shares on average.
    """

    _saved: ClassVar[dict[str, str]] = {
        "tau": "numbers p",
        "since": "whole p n",
        "length": "count",
        "confidence": "number",
    }

    tau: _Array
    since: NDArray[np.int64]
    length: int
    confidence: float

    @property
    def n(self) -> int:
        """How many rows were held out."""
        return int(self.since.shape[1])

    def share(self, tau: _Array, known: _Codes) -> _Array:
        """(m,): what is shown of the agreement at tau (m,) with so many known entries (m,)."""
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
        """From how many known entries on rows may be decided at tau."""
        least = self._least.get(tau)
        if least is None:
            counts = np.arange(self.length)
            enough = self.share(np.full(self.length, tau), counts) >= tau - SLACK
            least = int(enough.argmax()) if enough.any() else self.length
            if len(self._least) >= KEPT:
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
            stable[some] = np.searchsorted(self.since[k], known[some], side="right")
        return shown_share(stable, self.n, self.confidence)

    def _check_loaded(self) -> None:
        tau, since = self.tau, self.since
        sound = len(tau) > 0 and tau[0] > 0 and tau[-1] < 1 and np.all(np.diff(tau) > 0)
        fits(sound and np.all(np.diff(since, axis=1) >= 0), "Correction")
        fits(
            not since.size or (since.min() >= 0 and since.max() <= self.length), "Correction.since"
        )
        fits(self.length >= 1 and 0 <= self.confidence < 1, "Correction")


class CorrectedRule(Rule):
    """A rule that waits as long as held-out rows do not support it."""

    _saved: ClassVar[dict[str, str]] = {
        "rule": "of SetRule PairwiseRule IdealRule SampledRule",
        "correction": "of Correction",
    }

    def __init__(self, rule: Rule, correction: Correction) -> None:
        self.rule = rule
        self.correction = correction

    @property
    def cost(self) -> int:  # type: ignore[override]
        return self.rule.cost

    def judge(self, case: Case, tau: _Array, target: int | None) -> Judgement:
        return self._held_back(case, tau, self.rule.judge(case, tau, target))

    def decides(self, case: Case, tau: _Array) -> Judgement:
        found = self.rule.decides(case, tau)
        if found.decided.any():
            return self._held_back(case, tau, found)
        return found

    def largest(self, case: Case, target: int | None) -> tuple[_Array, _Codes]:
        found, guess = self.rule.largest(case, target)
        return self.correction.cap(found, self._known(case)), guess

    def surely(self, case: Case, found: Judgement, items: _Codes) -> _Array:
        largest = self.rule.surely(case, found, items)
        capped = self.correction.cap(largest, self._known(case)[items])
        return np.maximum(capped, found.reliability[items])

    def least_known(self, tau: float) -> int:
        return self.correction.least_known(tau)

    def _held_back(self, case: Case, tau: _Array, found: Judgement) -> Judgement:
        known = self._known(case)
        shown = self.correction.share(tau, known) >= tau - SLACK
        decided = found.decided & (shown | (known >= self.correction.length))
        reliability = self.correction.cap(found.reliability, known)
        return Judgement(found.guess, decided, reliability, found.checks, found.open)

    def _known(self, case: Case) -> _Codes:
        return self.correction.length - case.known.missing[case.known.pattern]


@dataclass(frozen=True)
class Held:
    """How a corrected rule does on the rows that correct it.

    Attributes
    ----------
    agreed, n : int
        Rows whose decision is that of the complete row, of how many.
    """

    agreed: int
    n: int


def corrected(
    core: Fitted,
    refit: Refit,
    given: Rows,
    y: Labels,
    tau: float,
    n_folds: int,
    confidence: float,
    kept: Rows | None = None,
) -> tuple[Correction, Held, NDArray[np.int64]]:
    """Learn a correction of a model's rule from folds, or from rows that were kept from its fit.

    Parameters
    ----------
    core : Fitted
    refit : callable
        Fits to all rows but those whose flags it is given.
    given, y
        Rows and labels.
    tau : float
        The reliability that is promised.
    n_folds : int
    confidence : float
        As in `Correction`.
    kept : Rows, optional
        They take the place of the folds.

    Returns
    -------
    Correction, Held
    times : (p,) array of int
        After how many samples the rows were looked at.
    """
    n, d = (given if kept is None else kept).rows.shape
    grid = np.union1d(GRID, [tau])
    if core.rule.cost > 1:  # looser ones take more samples; what is shown of any tau serves them
        grid = grid[(grid >= tau) | (grid == grid[0])]
    channels, samples = core.layout.channels, core.layout.length
    rows, looks = sizes(core, n, samples, fewest_rows(tau, confidence))
    steps = spread_steps(samples, looks)
    times = steps * channels
    trials = []
    if len(times) and kept is not None:
        trials = [trial(core, kept.some(slice(0, rows)), grid, times)]
    elif len(times):
        held = held_out_fits(refit, given, y, rows, n_folds)
        trials = [trial(fitted, fresh, grid, times) for fitted, fresh in held]
    if not trials:
        warnings.warn(
            "correct: expected folds that the classifier can be fitted to, got none; rows are "
            "decided when they are complete",
            UserWarning,
            stacklevel=5,
        )
        none = np.empty((len(grid), 0), np.int64)
        return Correction(grid, none, d, confidence), Held(0, 0), steps
    decided = np.concatenate([trial[0] for trial in trials], axis=1)
    wrong = np.concatenate([trial[1] for trial in trials], axis=1)
    found = Correction(grid, np.sort(since_of(wrong, times, d), axis=1), d, confidence)
    at = int(np.searchsorted(grid, tau))
    late = times >= found.least_known(tau)
    first = (decided[at] & late).argmax(axis=1)
    early = (decided[at] & late).any(axis=1)
    disagreed = early & wrong[at][np.arange(len(first)), first]
    return found, Held(int(len(first) - disagreed.sum()), len(first)), steps

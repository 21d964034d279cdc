"""Early decisions of series: every sample at every time, in batches of bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Labels
from eigenfeat.incomplete._completion.conditional import Conditional, PrefixConditional
from eigenfeat.incomplete._series.results import EarlyDecisions
from eigenfeat.incomplete._series.row_blocks import BLOCK_NUMBERS, blocks

if TYPE_CHECKING:
    from eigenfeat.incomplete._rules.rule import Case, Judgement, Rule

__all__ = ["EarlyRun", "batches", "flattened"]

_Array = NDArray[np.float64]


def batches(
    n: int, n_times: int, numbers: int, most: int
) -> Iterator[tuple[NDArray[np.intp], slice]]:
    """Row numbers and slices of `most` times, of bounded memory; times ascend within rows."""
    span = int(np.clip(BLOCK_NUMBERS // numbers, 1, most))
    for part in blocks(n, numbers * span):
        rows = np.arange(part.start, part.stop)
        for begin in range(0, n_times, span):
            yield rows, slice(begin, min(begin + span, n_times))


def flattened(found: PrefixConditional, n_columns: int) -> Conditional:
    """Every row at every time as a row of its own, row by row."""
    n, p, parts, ell = found.means.shape
    return Conditional(
        found.weights.reshape(n * p, parts),
        found.means.reshape(n * p, parts, ell),
        found.variances,
        found.covariances,
        np.tile(np.arange(p), n),
        np.asarray(n_columns - found.steps, dtype=np.intp),
        found.spectra,
        found.gaussians,
    )


class EarlyRun:
    """Decisions of n series so far.

    Parameters
    ----------
    X : (n, d) array
    tau : (n,) array
    times : (p,) array of int
        When to look, the last one d.
    ends : (n,) array of int
        When each ends.
    last, sure : (n,) arrays
        Classes at the end, and how sure these are.
    """

    def __init__(
        self,
        X: _Array,
        tau: _Array,
        times: NDArray[np.int64],
        ends: NDArray[np.int64],
        last: NDArray[np.intp],
        sure: _Array,
    ) -> None:
        self.X = X
        self.tau = tau
        self.times = times
        self.last = last
        self.waiting = np.ones(len(X), dtype=bool)
        self.ends = ends
        self.time = ends.copy()
        self.label = last.copy()
        self.reliability = sure.copy()
        self.trace: tuple[NDArray[np.intp], _Array] | None = None

    def start_trace(self) -> None:
        """Keep what is found at all times, which for series of one sample are their ends alone."""
        p = len(self.times)
        sure = np.repeat(self.reliability[:, None], p, axis=1)
        self.trace = np.repeat(self.last[:, None], p, axis=1), sure

    def advance(
        self,
        rule: Rule,
        case_of: Callable[[_Array, NDArray[np.int64]], Case],
        rows: NDArray[np.intp],
        at: slice,
        trace: bool,
    ) -> None:
        """Look at some rows at some times; without a trace, only at those that wait."""
        times = self.times[at]
        looked = rows if trace else rows[self.waiting[rows]]
        looked = looked[self.ends[looked] > times[0]]
        if not len(looked):
            return
        case = case_of(self.X[looked], times)
        found = rule.decides(case, np.repeat(self.tau[looked], len(times)))
        if self.trace is not None:
            largest, score = rule.largest(case, None)
            shape = (len(looked), len(times))
            running = times < self.ends[looked][:, None]
            for kept, fresh in zip(
                self.trace, (case.discriminants.labels[score], largest), strict=True
            ):
                kept[looked, at] = np.where(running, fresh.reshape(shape), kept[looked, at])
        self._note(rule, case, found, looked, times)

    def _note(
        self,
        rule: Rule,
        case: Case,
        found: Judgement,
        looked: NDArray[np.intp],
        times: NDArray[np.int64],
    ) -> None:
        """Write down rows that are decided for the first time."""
        decided = found.decided.reshape(len(looked), len(times))
        decided &= times < self.ends[looked][:, None]
        fresh = np.flatnonzero(decided.any(axis=1) & self.waiting[looked])
        if not len(fresh):
            return
        first = decided[fresh].argmax(axis=1)
        items, rows = fresh * len(times) + first, looked[fresh]
        self.time[rows] = times[first]
        self.label[rows] = case.discriminants.labels[found.guess[items]]
        self.reliability[rows] = rule.surely(case, found, items)
        self.waiting[rows] = False

    def result(self, classes: Labels, channels: int) -> EarlyDecisions:
        """What was decided, with labels, and times in samples."""
        labels, sure = (None, None) if self.trace is None else self.trace
        return EarlyDecisions(
            classes[self.label],
            self.time // channels,
            self.reliability,
            self.times // channels,
            None if labels is None else classes[labels],
            sure,
        )

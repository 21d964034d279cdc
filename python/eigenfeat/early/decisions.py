"""Early decisions: labels, times and reliabilities; decisions about many series in batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Labels
from eigenfeat.early.completion import filled
from eigenfeat.early.rules import FittedModel
from eigenfeat.early.series import BLOCK_NUMBERS, Rows, blocks

__all__ = ["Decisions", "EarlyDecisions", "EarlyLabels", "EarlyRun", "StreamDecision"]

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EarlyLabels:
    """Labels and times of decision of n series.

    Attributes
    ----------
    label : (n,) array
        Labels at the time of decision.
    time : (n,) array of int
        Number of values used, 1 to d.
    """

    label: NDArray[Any]
    time: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decisions about n samples.

    Attributes
    ----------
    decided : (n,) array of bool
        Whether the sample may be classified now.
    label : (n,) array
        The class of the decision, or the most likely class of an undecided sample.
    reliability : (n,) array
        Largest tau at which the sample would be decided now, 0 for none; 1 for complete samples.
    missing : (n,) array of int
        Number of missing entries.
    """

    decided: NDArray[np.bool_]
    label: NDArray[Any]
    reliability: _Array
    missing: NDArray[np.intp]

    @property
    def labels(self) -> Labels:
        """Labels (n,), None for undecided samples."""
        out = self.label.astype(object)
        out[~self.decided] = None
        return out

    def __len__(self) -> int:
        return len(self.decided)


@dataclass(frozen=True, eq=False)
class EarlyDecisions(EarlyLabels):
    """Labels, times and reliabilities of n time series.

    Attributes
    ----------
    label : (n,) array
        As in `EarlyLabels`.
    time : (n,) array of int
        As in `EarlyLabels`.
    reliability : (n,) array
        The largest tau at which the series is decided at that time; 1 at its end.
    trace_label : (n, p) array or None
        With ``trace=True``, the label after each of `steps` values.
    trace_reliability : (n, p) array or None
        With ``trace=True``, the largest tau after each of `steps` values.
    steps : (p,) array of int
        The times at which series were evaluated.
    """

    reliability: _Array
    steps: NDArray[np.int64]
    trace_label: NDArray[Any] | None = None
    trace_reliability: _Array | None = None


@dataclass(frozen=True)
class StreamDecision:
    """Label of a series, number of values used, and the largest tau at that time."""

    label: Any
    time: int
    reliability: float


class EarlyRun:
    """Decisions about series as early as possible, in batches.

    `times` are the numbers of entries after which series may be decided; the last is d. With
    `trace`, all series are evaluated at all times.
    """

    def __init__(
        self,
        model: FittedModel,
        series: Rows,
        tau: _Array,
        times: NDArray[np.int64],
        trace: bool,
    ) -> None:
        self.model = model
        self.gaps = series.have_gaps
        # Entries after the end of series without gaps are not used.
        self.X = np.where(self.gaps[:, None], series.rows, filled(model.completion, series.rows))
        self.tau = tau
        self.times = times
        self.ends = series.ends
        self.last, self.reliability = model.final_decisions(series.rows)
        self.label, self.time = self.last.copy(), series.ends.copy()
        self.waiting = np.ones(len(self.X), dtype=bool)
        self.trace: tuple[NDArray[np.intp], _Array] | None = None
        if trace:  # at and after its end a series has the decision of its end
            p = len(times)
            largest = np.repeat(self.reliability[:, None], p, axis=1)
            self.trace = np.repeat(self.last[:, None], p, axis=1), largest

    def run(self) -> EarlyDecisions:
        """Decide all series."""
        model, times = self.model, self.times[:-1]
        together = 16 if model.rule.cost == 1 else 1  # times that are evaluated together
        for group in (np.flatnonzero(~self.gaps), np.flatnonzero(self.gaps)):
            numbers = model.numbers_per_row()
            span = int(np.clip(BLOCK_NUMBERS // numbers, 1, together))
            for part in blocks(len(group), numbers * span):
                for begin in range(0, len(times), span):
                    self._advance(group[part], slice(begin, min(begin + span, len(times))))
        channels, classes = model.layout.channels, model.classes
        labels, largest = (None, None) if self.trace is None else self.trace
        return EarlyDecisions(
            classes[self.label],
            self.time // channels,
            self.reliability,
            self.times // channels,
            None if labels is None else classes[labels],
            largest,
        )

    def _advance(self, rows: NDArray[np.intp], at: slice) -> None:
        """Evaluate series `rows` at times `at`; without a trace, only undecided series."""
        rule, times = self.model.rule, self.times[at]
        evaluated = rows if self.trace is not None else rows[self.waiting[rows]]
        evaluated = evaluated[self.ends[evaluated] > times[0]]
        if not len(evaluated):
            return
        rule_input = self.model.prefix_input(self.X[evaluated], times)
        best = rule.best_classes(rule_input)
        decided = rule.decides(rule_input, best, np.repeat(self.tau[evaluated], len(times)))
        running = times < self.ends[evaluated][:, None]
        if self.trace is not None:
            largest = rule.bound(rule_input, best)
            for table, values in zip(self.trace, (best, largest), strict=True):
                values = values.reshape(running.shape)
                table[evaluated, at] = np.where(running, values, table[evaluated, at])
        decided = decided.reshape(running.shape) & running
        new = np.flatnonzero(decided.any(axis=1) & self.waiting[evaluated])
        if len(new):
            first = decided[new].argmax(axis=1)
            items, rows = new * len(times) + first, evaluated[new]
            self.time[rows], self.label[rows] = times[first], best[items]
            self.reliability[rows] = rule.bound(rule_input.take(items), best[items])
            self.waiting[rows] = False

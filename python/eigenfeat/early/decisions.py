"""Early decisions: labels, times and reliabilities; decisions about many series in batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Labels
from eigenfeat.early.completion import filled
from eigenfeat.early.fitted import FittedModel
from eigenfeat.early.rules import SLACK
from eigenfeat.early.series import BLOCK_NUMBERS, Series, blocks

_Array = NDArray[np.float64]


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
        Largest tau at which the sample would be decided now; 0 if it is undecided at every tau, 1
        for complete samples.
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
        labels = self.label.astype(object)
        labels[~self.decided] = None
        return labels

    def __len__(self) -> int:
        return len(self.decided)


@dataclass(frozen=True, eq=False)
class EarlyDecisions:
    """Labels and times of decision of n series.

    Attributes
    ----------
    label : (n,) array
        Labels at the time of decision.
    time : (n,) array of int
        Number of values used, from 1 to the length of the series.
    reliability : (n,) array or None
        Set by `ReliableClassifier`: the largest tau at which the series is decided at `time`; 1 at
        its end.
    cost : (n,) array or None
        Set by `MinimumCostClassifier`: expected cost of misclassification and delay at `time`, by
        the classifier's probabilities.
    steps : (p,) array of int or None
        Set by `ReliableClassifier`: the times at which series were evaluated.
    trace_label : (n, p) array or None
        With ``trace=True``, the label after each of `steps` values.
    trace_reliability : (n, p) array or None
        With ``trace=True``, the largest tau after each of `steps` values.
    """

    label: NDArray[Any]
    time: NDArray[np.int64]
    reliability: _Array | None = None
    cost: _Array | None = None
    steps: NDArray[np.int64] | None = None
    trace_label: NDArray[Any] | None = None
    trace_reliability: _Array | None = None

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class StreamDecision:
    """Decision about a series: label, number of values used, and largest tau of the decision."""

    label: Any
    time: int
    reliability: float


def decide(model: FittedModel, rows: _Array, tau: _Array) -> Decisions:
    """Decide samples (n, d), NaN is missing, where the rule allows it at tau (n,)."""
    missing = np.isnan(rows).sum(axis=1)
    decided = missing == 0
    codes, largest = np.zeros(len(rows), dtype=np.intp), decided.astype(float)
    if decided.any():
        codes[decided] = model.predict_codes(rows[decided])
    for part in model.incomplete_parts(missing):
        largest[part], codes[part] = model.largest_tau(model.rule_input(rows[part]))
        decided[part] = largest[part] >= tau[part] - SLACK
    return Decisions(decided, model.classes[codes], largest, missing)


def decide_early(
    model: FittedModel, series: Series, tau: _Array, times: NDArray[np.int64], trace: bool
) -> EarlyDecisions:
    """Decide series as early as possible.

    `times` are the numbers of entries after which series may be decided; the last is d. With
    `trace`, all series are evaluated at all times.
    """
    gaps = series.have_gaps
    # Entries after the end of series without gaps are not used.
    X = np.where(gaps[:, None], series.rows, filled(model.completion, series.rows))
    codes, reliability = model.final_decisions(series.rows)
    time, waiting = series.ends.copy(), np.ones(len(X), dtype=bool)
    # At times from its end on, a series has its final decision.
    trace_codes = np.repeat(codes[:, None], len(times), axis=1) if trace else None
    trace_reliability = np.repeat(reliability[:, None], len(times), axis=1) if trace else None
    first = 0 if trace else int(np.count_nonzero(~model.may_decide(tau, times)))
    for batch, columns in _batches(model, gaps, first, len(times) - 1):
        batch_times = times[columns]
        rows = batch if trace else batch[waiting[batch]]
        rows = rows[series.ends[rows] > batch_times[0]]
        if not len(rows):
            continue
        running = batch_times < series.ends[rows][:, None]
        rule_input = model.prefix_input(X[rows], batch_times)
        best = model.rule.best_classes(rule_input)
        decided = model.decides(rule_input, best, np.repeat(tau[rows], len(batch_times)))
        if trace_codes is not None and trace_reliability is not None:
            bound = model.bound(rule_input, best)
            for table, values in ((trace_codes, best), (trace_reliability, bound)):
                values = values.reshape(running.shape)
                table[rows, columns] = np.where(running, values, table[rows, columns])
        decided = decided.reshape(running.shape) & running & waiting[rows][:, None]
        new = np.flatnonzero(decided.any(axis=1))
        if len(new):
            earliest = decided[new].argmax(axis=1)
            items, rows = new * len(batch_times) + earliest, rows[new]
            time[rows], codes[rows], waiting[rows] = batch_times[earliest], best[items], False
            reliability[rows] = model.bound(rule_input.take(items), best[items])
    return EarlyDecisions(
        model.classes[codes],
        time // model.layout.channels,
        reliability,
        steps=times // model.layout.channels,
        trace_label=None if trace_codes is None else model.classes[trace_codes],
        trace_reliability=trace_reliability,
    )


def _batches(
    model: FittedModel, gaps: NDArray[np.bool_], first: int, stop: int
) -> Iterator[tuple[NDArray[np.intp], slice]]:
    """Yield indices of series and slices of the times from `first` to `stop`.

    Series with gaps and series without gaps are in separate batches.
    """
    # Rules of cost 1 evaluate several times of a series together.
    numbers, max_times = model.numbers_per_row(), 16 if model.rule.cost == 1 else 1
    span = int(np.clip(BLOCK_NUMBERS // numbers, 1, max_times))
    for group in (np.flatnonzero(~gaps), np.flatnonzero(gaps)):
        for part in blocks(len(group), numbers * span):
            for begin in range(first, stop, span):
                yield group[part], slice(begin, min(begin + span, stop))

"""The fitted parts of a reliable classifier: what its rule receives, and its early decisions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base import threads as _threads
from eigenfeat._base.saved import Saved, fits
from eigenfeat.incomplete.completion import Completion
from eigenfeat.incomplete.decisions import EarlyDecisions
from eigenfeat.incomplete.discriminants import ClassCodes, Discriminants, LocalFull
from eigenfeat.incomplete.mixture import Affine, Conditional, PrefixConditional
from eigenfeat.incomplete.rules import Rule, RuleInput, RuleOutput, Shared
from eigenfeat.incomplete.series import BLOCK_NUMBERS, Layout, Rows, blocks

__all__ = ["EarlyRun", "FittedModel", "fill"]

_Array = NDArray[np.float64]

_NO_CODES = np.empty(0, dtype=np.intp)


def fill(completion: Completion, rows: _Array) -> _Array:
    """Rows with conditional means for what is missing."""
    if not np.isnan(rows).any():
        return rows
    return np.asarray(completion.transform(rows))


@dataclass(frozen=True, eq=False)
class FittedModel(Saved):
    """Everything that `ReliableClassifier.fit` learns; immutable, shared by streams and files.

    Attributes
    ----------
    layout : Layout
        How series lie in rows.
    classes : (G,) array
        Labels.
    classifier, completion, features : estimators
        `features` may be None.
    rule_name : str
    affine : Affine or None
        The features as a map of rows.
    scores : Affine or None
        Linear discriminants as a map of rows. Conditional distributions are then those of scores.
    discriminants : Discriminants
    rule : Rule
    n_threads : int or None
    """

    _saved: ClassVar[dict[str, str]] = {
        "layout": "of Layout",
        "classes": "labels k",
        "classifier": "estimator",
        "completion": "of GaussianCompletion MixtureCompletion",
        "features": "estimator?",
        "rule_name": "text",
        "affine": "of Affine?",
        "scores": "of Affine?",
        "discriminants": "of Linear Gaussians Local LocalFull LocalMeans Quadratic Opaque",
        "rule": "of SetRule PairwiseRule SampledRule CorrectedRule",
        "n_threads": "count?",
    }

    layout: Layout
    classes: NDArray[Any]
    classifier: Any
    completion: Completion
    features: Any
    rule_name: str
    affine: Affine | None
    scores: Affine | None
    discriminants: Discriminants
    rule: Rule
    n_threads: int | None

    @property
    def n_features(self) -> int:
        """Number of entries of a row."""
        return self.layout.width

    @property
    def conditioned_map(self) -> Affine | None:
        """The map whose conditional distributions the rule receives: scores, or features."""
        return self.affine if self.scores is None else self.scores

    @property
    def needs_covariance(self) -> bool:
        """Whether the rule takes conditional covariances."""
        if self.rule_name == "box":
            return self.discriminants.pair_axes
        return self.rule_name not in ("quadratic", "sampled")

    @property
    def needs_spectra(self) -> bool:
        """Whether it takes their spectra."""
        return self.rule_name == "quadratic"

    @property
    def width(self) -> int:
        """Number of features."""
        return self.n_features if self.affine is None else self.affine.B.shape[1]

    # ---- complete rows

    def fill(self, rows: _Array) -> _Array:
        """Rows with conditional means for what is missing."""
        return fill(self.completion, rows)

    def transform(self, rows: _Array) -> _Array:
        """What the classifier receives of complete rows."""
        return rows if self.features is None else self.features.transform(rows)

    def predict_codes(self, rows: _Array) -> NDArray[np.intp]:
        """Class indices of complete rows."""
        return ClassCodes(self.classes, self.classifier)(self.transform(rows))

    # ---- incomplete rows

    def rule_input(self, rows: _Array) -> RuleInput:
        """What the rule receives of rows; NaN is missing."""
        wanted = self.conditioned_map, self.needs_covariance, self.needs_spectra
        n_threads = self.completion.n_threads
        return self.input_of(self.completion.mixture_.condition(rows, *wanted, n_threads=n_threads))

    def prefix_input(self, rows: _Array, times: NDArray[np.int64]) -> RuleInput:
        """The same for every row after every number of entries, row by row."""
        if np.isnan(rows).any():  # each with a pattern of its own
            later = np.arange(rows.shape[1]) >= times[:, None]
            seen = np.where(later, np.nan, rows[:, None]).reshape(-1, rows.shape[1])
            return self.rule_input(seen)
        wanted = self.conditioned_map, self.needs_covariance, self.needs_spectra
        n_threads = self.completion.n_threads
        prefixes = self.completion.mixture_.after(rows, times, *wanted, n_threads=n_threads)
        return self.input_of(_flattened(prefixes, self.n_features))

    def input_of(self, conditional: Conditional, shared: Shared | None = None) -> RuleInput:
        """The same from conditional distributions."""
        threads = _threads.resolve(self.n_threads)
        by_scores = self.scores is not None
        return RuleInput(self.discriminants, conditional, self.width, by_scores, threads, shared)

    def incomplete_parts(self, missing: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """Numbers of the incomplete rows, in parts of bounded memory."""
        rows = np.flatnonzero(missing > 0)
        for part in blocks(len(rows), self.numbers_per_row()):
            yield rows[part]

    def numbers_per_row(self) -> int:
        """About how many numbers a row takes while it is evaluated."""
        k, parts = self.discriminants.count, len(self.completion.mixture_.weights)
        if self.scores is not None:
            return k * (parts * k + 4)
        forms = 4 * k * (self.width if isinstance(self.discriminants, LocalFull) else 1)
        return self.width * (parts * (self.width if self.needs_covariance else 1) + forms)

    def final_decisions(self, rows: _Array) -> tuple[NDArray[np.intp], _Array]:
        """Classes of series at their end, and the largest tau of each: 1 if nothing is missing."""
        codes = self.predict_codes(self.fill(rows)) if len(rows) else _NO_CODES
        tau = np.ones(len(rows))
        for part in self.incomplete_parts(np.isnan(rows).sum(axis=1)):
            largest, score = self.rule.largest_tau(self.rule_input(rows[part]), None)
            tau[part] = np.where(self.discriminants.labels[score] == codes[part], largest, 0.0)
        return codes, tau

    def decide(
        self, rows: _Array, tau: _Array, target: int | None
    ) -> tuple[RuleOutput, NDArray[np.intp]]:
        """Decide rows at tau (n,), of classes in place of scores, and their missing entries."""
        missing = np.isnan(rows).sum(axis=1)
        codes, complete = self._complete(rows, missing, target)
        none = np.zeros((2, len(rows)), np.intp)
        out = RuleOutput(codes, complete.copy(), complete.astype(float), *none)
        for part in self.incomplete_parts(missing):
            one = self.rule.evaluate(self.rule_input(rows[part]), tau[part], target)
            out.best[part] = self.discriminants.labels[one.best]
            out.decided[part] = one.decided
            out.reliability[part] = one.reliability
            out.checks[part], out.undecided_checks[part] = one.checks, one.undecided_checks
        return out, missing

    def largest_tau(self, rows: _Array, target: int | None) -> _Array:
        """(n,): the largest tau at which each row would be decided."""
        missing = np.isnan(rows).sum(axis=1)
        out = self._complete(rows, missing, target)[1].astype(float)
        for part in self.incomplete_parts(missing):
            out[part] = self.rule.largest_tau(self.rule_input(rows[part]), target)[0]
        return out

    def _complete(
        self, rows: _Array, missing: NDArray[np.intp], target: int | None
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Classes of the complete rows (0 elsewhere), and which of them are decided."""
        codes, full = np.zeros(len(rows), dtype=np.intp), missing == 0
        if full.any():
            codes[full] = self.predict_codes(rows[full])
        return codes, full & ((codes == target) if target is not None else True)

    def _check_loaded(self) -> None:
        d, functions = self.layout.width, self.discriminants
        affine, scores, rule = self.affine, self.scores, self.rule
        width = d if affine is None else affine.B.shape[1]
        length = getattr(getattr(rule, "correction", None), "length", d)
        fits(length == d, "FittedModel.rule")
        fits(affine is None or affine.B.shape[0] == d, "FittedModel.affine")
        fits(functions.width in (None, width), "FittedModel.discriminants")
        fits(functions.labels.max() < len(self.classes), "FittedModel.discriminants")
        fits(scores is None or scores.B.shape == (d, functions.count), "FittedModel.scores")
        fits(self.completion.n_features_in_ == d, "FittedModel.completion")
        fits(np.array_equal(self.classifier.classes_, self.classes), "FittedModel.classifier")


def _flattened(prefixes: PrefixConditional, n_columns: int) -> Conditional:
    """Every row at every time as a row of its own, row by row."""
    n, p, parts, ell = prefixes.means.shape
    return Conditional(
        prefixes.weights.reshape(n * p, parts),
        prefixes.means.reshape(n * p, parts, ell),
        prefixes.variances,
        prefixes.covariances,
        np.tile(np.arange(p), n),
        np.asarray(n_columns - prefixes.steps, dtype=np.intp),
        prefixes.spectra,
        prefixes.gaussians,
    )


class EarlyRun:
    """Series decided as early as possible: every row at every time, in batches.

    Parameters
    ----------
    model : FittedModel
    series : Rows
        n series that have ended.
    tau : (n,) array
    times : (p,) array of int
        Numbers of entries after which rows may be decided, the last one d.
    trace : bool
        Whether all rows are evaluated at all times.
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
        self.X = np.where(self.gaps[:, None], series.rows, model.fill(series.rows))
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
        together = 16 if model.rule.cost == 1 else 1  # times that may be evaluated in vain
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
        """Evaluate some rows at some times; without a trace, only those that wait."""
        rule, times = self.model.rule, self.times[at]
        evaluated = rows if self.trace is not None else rows[self.waiting[rows]]
        evaluated = evaluated[self.ends[evaluated] > times[0]]
        if not len(evaluated):
            return
        rule_input = self.model.prefix_input(self.X[evaluated], times)
        output = rule.decide(rule_input, np.repeat(self.tau[evaluated], len(times)))
        running = times < self.ends[evaluated][:, None]
        if self.trace is not None:
            largest, score = rule.largest_tau(rule_input, None)
            codes = self.model.discriminants.labels[score]
            for table, values in zip(self.trace, (codes, largest), strict=True):
                values = values.reshape(running.shape)
                table[evaluated, at] = np.where(running, values, table[evaluated, at])
        self._record(rule_input, output, evaluated, times, running)

    def _record(
        self,
        rule_input: RuleInput,
        output: RuleOutput,
        evaluated: NDArray[np.intp],
        times: NDArray[np.int64],
        running: NDArray[np.bool_],
    ) -> None:
        """Record rows that are decided for the first time."""
        decided = output.decided.reshape(running.shape) & running
        new = np.flatnonzero(decided.any(axis=1) & self.waiting[evaluated])
        if not len(new):
            return
        first = decided[new].argmax(axis=1)
        items, rows = new * len(times) + first, evaluated[new]
        self.time[rows] = times[first]
        self.label[rows] = self.model.discriminants.labels[output.best[items]]
        self.reliability[rows] = self.model.rule.certified_tau(rule_input, output, items)
        self.waiting[rows] = False

"""The fitted core of a classifier of incomplete rows, and what its rule sees of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base import threads as _threads
from eigenfeat._base.saved import Saved, fits
from eigenfeat._base.types import Labels
from eigenfeat.incomplete._rules.early import flattened
from eigenfeat.incomplete._rules.ideal import ClassCodes
from eigenfeat.incomplete._rules.rule import Case, Rule, Shared
from eigenfeat.incomplete._series.folds import held_out, spread_over_classes
from eigenfeat.incomplete._series.row_blocks import blocks

if TYPE_CHECKING:
    from eigenfeat.incomplete._classifiers.discriminants import Discriminants
    from eigenfeat.incomplete._completion.affine import Affine
    from eigenfeat.incomplete._completion.conditional import Conditional
    from eigenfeat.incomplete._completion.conditioning import Completion
    from eigenfeat.incomplete._series.layout import Layout, Rows

__all__ = [
    "LOOKS",
    "ROWS",
    "SLACK",
    "Fitted",
    "Refit",
    "fewest_rows",
    "filled",
    "held_out_fits",
    "since_of",
    "sizes",
    "trial",
]

_Array = NDArray[np.float64]

_NONE = np.empty(0, dtype=np.intp)

# Of held-out rows that a rule is held to.
LOOKS = 48  # times at most
ROWS = 3000  # rows at most
SLACK = 1e-12  # shares are compared with tau


@dataclass(frozen=True, eq=False)
class Fitted(Saved):
    """What a classifier of incomplete rows is once it is fitted, and what its rule sees of rows.

    The classifier, its streams, early runs and files share it; nothing changes it. Of series,
    `layout` says what their entries are.
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
        "discriminants": "of Linear Gaussians Local LocalMeans Quadratic Opaque",
        "rule": "of SetRule PairwiseRule IdealRule SampledRule LearnedRule CorrectedRule "
        "ThresholdRule",
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
    choice: list[dict[str, Any]] | None = None  # of the completion; files do not keep it here

    @property
    def n_features(self) -> int:
        """Number of entries of a row."""
        return self.layout.width

    @property
    def predict(self) -> ClassCodes:
        """Class indices by the classifier."""
        return ClassCodes(self.classes, self.classifier)

    @property
    def seen_as(self) -> Affine | None:
        """What conditional distributions are those of: scores, or features, of rows."""
        return self.affine if self.scores is None else self.scores

    @property
    def needs_covariance(self) -> bool:
        """Whether the rule takes conditional covariances."""
        if self.rule_name == "box":
            return self.discriminants.pair_axes
        return self.rule_name not in ("quadratic", "sampled", "learned")

    @property
    def needs_spectra(self) -> bool:
        """Whether it takes their spectra."""
        return self.rule_name == "quadratic"

    def filled(self, rows: _Array) -> _Array:
        """Rows with conditional means for what is missing."""
        return filled(self.completion, rows)

    def at_the_end(self, rows: _Array) -> tuple[NDArray[np.intp], _Array]:
        """What series are decided as at their end, and how surely: 1 if nothing is missing."""
        codes = self.codes(self.features_of(self.filled(rows))) if len(rows) else _NONE
        sure = np.ones(len(rows))
        for part in self.open_parts(np.isnan(rows).sum(axis=1)):
            largest, score = self.rule.largest(self.case(rows[part]), None)
            sure[part] = np.where(self.discriminants.labels[score] == codes[part], largest, 0.0)
        return codes, sure

    def held_out(self, given: Rows) -> tuple[_Array, NDArray[np.intp]]:
        """Rows to look at as they become known, and their classes at the end."""
        full = self.filled(given.rows)
        final = self.codes(self.features_of(full))
        return np.where(given.have_holes[:, None], given.rows, full), final

    def features_of(self, X: _Array) -> _Array:
        """What the classifier sees of complete rows."""
        return X if self.features is None else self.features.transform(X)

    def width(self) -> int:
        """How many features there are."""
        return self.n_features if self.affine is None else self.affine.B.shape[1]

    def case(self, rows: _Array) -> Case:
        """What the rule sees of rows."""
        wanted = self.seen_as, self.needs_covariance, self.needs_spectra
        given = self.completion
        return self.case_of(given.mixture_.condition(rows, *wanted, n_threads=given.n_threads))

    def case_of(self, known: Conditional, shared: Shared | None = None) -> Case:
        """The same, of what is known of them."""
        threads = _threads.resolve(self.n_threads)
        by_scores = self.scores is not None
        width = self.width()
        return Case(self.discriminants, known, width, by_scores, threads, shared)

    def early_case(self, rows: _Array, times: NDArray[np.int64]) -> Case:
        """Every row at every time, row by row."""
        if np.isnan(rows).any():  # each with a pattern of its own
            later = np.arange(rows.shape[1]) >= times[:, None]
            seen = np.where(later, np.nan, rows[:, None]).reshape(-1, rows.shape[1])
            return self.case(seen)
        wanted = self.seen_as, self.needs_covariance, self.needs_spectra
        given = self.completion
        found = given.mixture_.after(rows, times, *wanted, n_threads=given.n_threads)
        return self.case_of(flattened(found, self.n_features))

    def numbers(self) -> int:
        """About how many numbers a row takes while it is judged."""
        k, parts = self.discriminants.count, len(self.completion.mixture_.weights)
        if self.scores is not None:
            return k * (parts * k + 4)
        width = self.width()
        return width * (parts * (width if self.needs_covariance else 1) + 4 * k)

    def open_parts(self, missing: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """Numbers of the incomplete rows, in parts of bounded memory."""
        rows = np.flatnonzero(missing > 0)
        for part in blocks(len(rows), self.numbers()):
            yield rows[part]

    def codes(self, inputs: _Array) -> NDArray[np.intp]:
        """Class indices of rows of features."""
        return self.predict(inputs)

    def complete(
        self, rows: _Array, missing: NDArray[np.intp], wanted: int | None
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Classes of the complete rows (0 elsewhere), and which of them are decided."""
        labels, full = np.zeros(len(rows), dtype=np.intp), missing == 0
        if full.any():
            labels[full] = self.codes(self.features_of(rows[full]))
        return labels, full & ((labels == wanted) if wanted is not None else True)

    def _check_loaded(self) -> None:
        d, found = self.layout.width, self.discriminants
        affine, scores, rule = self.affine, self.scores, self.rule
        width = d if affine is None else affine.B.shape[1]
        length = getattr(getattr(rule, "correction", None), "length", d)
        fits(length == d, "Fitted.rule")
        fits(affine is None or affine.B.shape[0] == d, "Fitted.affine")
        fits(found.width in (None, width), "Fitted.discriminants")
        fits(found.labels.max() < len(self.classes), "Fitted.discriminants")
        fits(scores is None or scores.B.shape == (d, found.count), "Fitted.scores")
        fits(self.completion.n_features_in_ == d, "Fitted.completion")
        fits(np.array_equal(self.classifier.classes_, self.classes), "Fitted.classifier")


# Fits to all rows but those whose flags it is given.
Refit = Callable[[NDArray[np.bool_]], Fitted]


def held_out_fits(
    refit: Refit, given: Rows, y: Labels, most: int, n_folds: int
) -> Iterator[tuple[Fitted, Rows]]:
    """For each fold the model without it, and rows of it, at most so many over all folds."""
    chosen = spread_over_classes(y, most)
    for held in held_out(y, n_folds):
        own = np.flatnonzero(held & chosen)
        if not len(own):
            continue
        try:
            fitted = refit(held)
        except ValueError:  # such as a class that is too small without the fold
            continue
        yield fitted, given.some(own)


def since_of(wrong: NDArray[np.bool_], times: NDArray[np.int64], d: int) -> NDArray[np.int64]:
    """From how many known entries on rows are not decided wrongly; d if wrong at the last look.

    Parameters
    ----------
    wrong : (..., looks) array of bool
    times : (looks,) array of int
    d : int
    """
    last = wrong.shape[-1] - wrong[..., ::-1].argmax(axis=-1)  # the look after the last wrong one
    return np.where(wrong.any(axis=-1), np.append(times, d)[last], 0)


def sizes(core: Fitted, n: int, d: int, fewest: int) -> tuple[int, int]:
    """How many rows to hold out, and at how many times to look."""
    looks = min(d - 1, LOOKS)
    samples = core.rule.cost
    if samples > 1:  # some millions of predictions, but rows enough to show what is promised
        looks = min(looks, 16)
        rows = max(100, int(4e6 / (samples * max(looks, 1))))
        return min(n, rows if n < fewest else max(rows, 2 * fewest)), looks
    return min(n, ROWS), looks


def fewest_rows(tau: float, confidence: float) -> int:
    """How many rows can show tau, if all of them agree."""
    if confidence > 0:
        return int(np.ceil(np.log1p(-confidence) / np.log(tau)))
    return int(np.ceil(tau / (1 - tau)))


def trial(
    fitted: Fitted, given: Rows, grid: _Array, times: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(p, m, looks): whether rows that the model has not seen would be decided, and wrongly."""
    shown, final = fitted.held_out(given)
    ends = given.ends[:, None]
    decided = np.empty((len(grid), len(final), len(times)), dtype=bool)
    wrong = np.empty_like(decided)
    for begin in range(0, len(times), 8):
        at = slice(begin, min(begin + 8, len(times)))
        case = fitted.early_case(shown, times[at])
        shape = len(final), at.stop - at.start
        for k, (yes, score) in enumerate(fitted.rule.over(case, grid)):
            label = fitted.discriminants.labels[score].reshape(shape)
            decided[k, :, at] = yes.reshape(shape) & (times[at] < ends)
            wrong[k, :, at] = decided[k, :, at] & (label != final[:, None])
    return decided, wrong


def filled(completion: Completion, rows: _Array) -> _Array:
    """Rows with conditional means for what is missing."""
    if not np.isnan(rows).any():
        return rows
    return np.asarray(completion.transform(rows))

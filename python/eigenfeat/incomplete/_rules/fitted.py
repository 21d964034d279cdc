"""The fitted core of a classifier of incomplete rows, and what its rule sees of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base import threads as _threads
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

__all__ = ["LOOKS", "ROWS", "SLACK", "Fitted", "Refit", "filled", "held_out_fits"]

_Array = NDArray[np.float64]

_NONE = np.empty(0, dtype=np.intp)

# Of held-out rows that a rule is held to.
LOOKS = 48  # times at most
ROWS = 3000  # rows at most
SLACK = 1e-12  # shares are compared with tau


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a classifier of incomplete rows is once it is fitted, and what its rule sees of rows.

    The classifier, its streams, early runs and files share it; nothing changes it. Of series,
    `layout` says what their entries are.
    """

    layout: Layout
    classes: NDArray[Any]
    classifier: Any
    completion: Completion
    features: Any
    set: str
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
        if self.set == "box":
            return self.discriminants.pair_axes
        return self.set not in ("quadratic", "sampled", "learned")

    @property
    def needs_spectra(self) -> bool:
        """Whether it takes their spectra."""
        return self.set == "quadratic"

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


def filled(completion: Completion, rows: _Array) -> _Array:
    """Rows with conditional means for what is missing."""
    if not np.isnan(rows).any():
        return rows
    return np.asarray(completion.transform(rows))

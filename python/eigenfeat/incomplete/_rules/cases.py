"""What a fitted classifier's rule sees of rows: conditional distributions and discriminants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base import threads as _threads
from eigenfeat.incomplete._classifiers.discriminants import (
    Discriminants,
    Linear,
    Local,
    LocalMeans,
    Opaque,
    Quadratic,
)
from eigenfeat.incomplete._completion.affine import Affine
from eigenfeat.incomplete._completion.conditional import Conditional
from eigenfeat.incomplete._completion.conditioning import Completion
from eigenfeat.incomplete._rules.early import flattened
from eigenfeat.incomplete._rules.ideal import ClassCodes
from eigenfeat.incomplete._rules.rule import Case, Rule, Shared
from eigenfeat.incomplete._series.layout import Layout, Rows
from eigenfeat.incomplete._series.row_blocks import blocks

__all__ = ["Cases", "rule_for", "scores_of"]

_Array = NDArray[np.float64]

_NONE = np.empty(0, dtype=np.intp)


class Cases:
    """Methods of `ReliableClassifier` that make a rule's cases of rows."""

    n_threads: int | None
    n_features_in_: int
    classes_: NDArray[Any]
    classifier_: Any
    completion_: Completion
    features_: Any
    set_: str
    _layout: Layout
    _rule: Rule
    _affine: Affine | None
    _scores: Affine | None
    _discriminants: Discriminants

    @property
    def _needs_covariance(self) -> bool:
        if self.set_ == "box":
            return isinstance(self._discriminants, Quadratic)
        return self.set_ not in ("quadratic", "sampled", "learned")

    @property
    def _needs_spectra(self) -> bool:
        return self.set_ == "quadratic"

    def _filled(self, rows: _Array) -> _Array:
        """Rows with conditional means for what is missing."""
        if not np.isnan(rows).any():
            return rows
        return np.asarray(self.completion_.transform(rows))

    def _at_the_end(self, rows: _Array) -> tuple[NDArray[np.intp], _Array]:
        """What series are decided as at their end, and how surely: 1 if nothing is missing."""
        codes = self._codes(self._features_of(self._filled(rows))) if len(rows) else _NONE
        sure = np.ones(len(rows))
        for part in self._open_parts(np.isnan(rows).sum(axis=1)):
            largest, score = self._rule.largest(self._case(rows[part]), None)
            sure[part] = np.where(self._discriminants.labels[score] == codes[part], largest, 0.0)
        return codes, sure

    def _held_out(self, given: Rows) -> tuple[_Array, NDArray[np.intp]]:
        """Rows to look at as they become known, and their classes at the end."""
        full = self._filled(given.rows)
        final = self._codes(self._features_of(full))
        return np.where(given.have_holes[:, None], given.rows, full), final

    def _features_of(self, X: _Array) -> Any:
        return X if self.features_ is None else self.features_.transform(X)

    def _width(self) -> int:
        return self.n_features_in_ if self._affine is None else self._affine.B.shape[1]

    def _case(self, rows: _Array) -> Case:
        affine = self._affine if self._scores is None else self._scores
        known = self.completion_._conditioned(
            rows, affine, self._needs_covariance, self._needs_spectra
        )
        return self._case_of(known)

    def _case_of(self, known: Conditional, shared: Shared | None = None) -> Case:
        threads = _threads.resolve(self.n_threads)
        by_scores = self._scores is not None
        width = self._width()
        return Case(self._discriminants, known, width, by_scores, threads, shared)

    def _early_case(self, rows: _Array, times: NDArray[np.int64]) -> Case:
        """Every row at every time, row by row."""
        if np.isnan(rows).any():  # each with a pattern of its own
            later = np.arange(rows.shape[1]) >= times[:, None]
            seen = np.where(later, np.nan, rows[:, None]).reshape(-1, rows.shape[1])
            return self._case(seen)
        affine = self._affine if self._scores is None else self._scores
        found = self.completion_._prefixes(
            rows, times, affine, self._needs_covariance, self._needs_spectra
        )
        return self._case_of(flattened(found, self.n_features_in_))

    def _numbers(self) -> int:
        """About how many numbers a row takes while it is judged."""
        k, parts = self._discriminants.count, len(self.completion_._weights)
        if self._scores is not None:
            return k * (parts * k + 4)
        width = self._width()
        return width * (parts * (width if self._needs_covariance else 1) + 4 * k)

    def _open_parts(self, missing: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """Numbers of the incomplete rows, in parts of bounded memory."""
        rows = np.flatnonzero(missing > 0)
        for part in blocks(len(rows), self._numbers()):
            yield rows[part]

    def _codes(self, inputs: _Array) -> NDArray[np.intp]:
        """Class indices of rows of features."""
        return ClassCodes(self.classes_, self.classifier_)(inputs)

    def _complete(
        self, rows: _Array, missing: NDArray[np.intp], wanted: int | None
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Classes of the complete rows (0 elsewhere), and which of them are decided."""
        labels, full = np.zeros(len(rows), dtype=np.intp), missing == 0
        if full.any():
            labels[full] = self._codes(self._features_of(rows[full]))
        return labels, full & ((labels == wanted) if wanted is not None else True)


def rule_for(discriminants: Discriminants) -> str:
    """The rule that decides earliest of those whose promise is about the complete row's label."""
    if isinstance(discriminants, Local | LocalMeans):  # another row has others
        return "ideal"
    if isinstance(discriminants, Opaque):
        return "sampled"
    return "pairwise" if isinstance(discriminants, Linear) else "quadratic"


def scores_of(discriminants: Discriminants, affine: Affine | None, d: int) -> Affine:
    assert isinstance(discriminants, Linear)
    # About their mean, so that what scores have in common takes no digits from differences.
    slopes = discriminants.slopes - discriminants.slopes.mean(axis=0)
    offsets = discriminants.offsets - discriminants.offsets.mean()
    if affine is None:
        return Affine(np.ascontiguousarray(slopes.T), offsets)
    return affine.then(slopes, offsets)

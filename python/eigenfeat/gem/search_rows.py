"""Rows of a search by `GEMClassifierCV`, in memory or in blocks, and their splits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenfeat._base.types import Codes, Rows, Targets
from eigenfeat._base.validation import take_names
from eigenfeat.gem.search_splits import Split, Trial, candidate
from eigenfeat.rows.labelled import BlockRows, MemoryRows

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator

    from eigenfeat.gem.classifier import GEMClassifier
    from eigenfeat.rows.blocks import RowBlocks

__all__ = ["SearchRows"]


class SearchRows:
    """Checked rows with positive weight, and candidates whose parameters are checked.

    Parameters
    ----------
    base : GEMClassifier
    trials : list of Trial
    X, y, sample_weight
        As in `GEMClassifier.fit`.

    Attributes
    ----------
    classes : (k,) array
    codes : (n,) array
        Indices of the labels.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        If they have names.
    """

    def __init__(
        self,
        base: GEMClassifier,
        trials: list[Trial],
        X: Rows | RowBlocks,
        y: Targets,
        sample_weight: ArrayLike | None,
    ) -> None:
        models = [candidate(base, trial["params"]) for trial in trials]
        self.base, self._given = base, (X, y, sample_weight)
        checked = max(models, key=lambda model: model.n_clusters)  # blocks refuse it at once
        self.rows, _ = checked._rows(X, y, sample_weight, None, moments=False)
        self.classes, self.codes = self.rows.classes, self.rows.codes
        take_names(self, checked)

    def parts(self, splitter: BaseCrossValidator) -> Iterator[tuple[Codes, Codes]]:
        """Numbers of the rows to train on and of those to hold out, split by split.

        A splitter of the caller's may know rows by their numbers among all that were given. So it
        splits them all, those without weight with the first label, and these are left out then.
        """
        positive, labels = self._weighted, self.classes[self.codes]
        if positive is None:
            known = self.rows.block.X if isinstance(self.rows, MemoryRows) else None
            X = np.empty((len(labels), 0)) if known is None else known
            yield from splitter.split(X, labels)
            return
        given = np.full(len(positive), self.classes[0], dtype=labels.dtype)
        given[positive] = labels
        number = np.cumsum(positive) - 1
        for parts in splitter.split(np.empty((len(positive), 0)), given):
            train, held_out = (number[rows[positive[rows]]] for rows in map(_numbers, parts))
            yield train, held_out

    @property
    def n_given(self) -> int:
        """Rows that were given, be it without weight."""
        return len(self.codes if self._weighted is None else self._weighted)

    @property
    def _weighted(self) -> NDArray[np.bool_] | None:
        """Which rows were given with weight, if not all were."""
        if isinstance(self.rows, BlockRows):
            return self.rows.weighted
        weight = self._given[2]
        positive = np.ones(1, bool) if weight is None else np.asarray(weight) > 0
        return None if positive.all() else positive

    def fit(self, model: GEMClassifier) -> None:
        """Fit a classifier to all rows."""
        model.fit(*self._given)

    def split(self, train: ArrayLike, held_out: ArrayLike) -> Split:
        """The candidates' work on a part to train on and a part held out, by rows' numbers."""
        train, held_out = _numbers(train), _numbers(held_out)
        if not len(held_out):
            raise ValueError("cv: expected samples held out in every split, got none")
        lacking = np.bincount(self.codes[train], minlength=len(self.classes)) == 0
        if lacking.any():
            label = self.classes[lacking].tolist()[0]
            raise ValueError(
                "cv: expected samples of every class to train on in every split, got none of "
                f"class {label!r}"
            )
        for rows in (train, held_out):
            twice = np.flatnonzero(rows[1:] == rows[:-1])
            if not self.rows.in_memory and len(twice):
                raise ValueError(
                    "cv: expected splits that take a sample once, of blocks, got sample "
                    f"{rows[twice[0]]} twice"
                )
        return Split(self.base, self.rows.subset(train), self.rows.subset(held_out))


def _numbers(rows: Any) -> NDArray[np.int64]:
    """Numbers of rows, ascending, from any such numbers or a mask."""
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else np.sort(rows.astype(np.int64))

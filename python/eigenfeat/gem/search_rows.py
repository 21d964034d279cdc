"""The rows that `GEMClassifierCV` searches with, in memory or in blocks, and their splits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from eigenfeat._base.feature_names import take_names
from eigenfeat.gem.classifier import GEMClassifier
from eigenfeat.gem.search_splits import ArraySplit, BlockSplit, Split, Trial, candidate
from eigenfeat.linear.linear import check_two_labels
from eigenfeat.pencils.wide_rows import is_wide
from eigenfeat.rows.blocks import RowBlocks
from eigenfeat.rows.out_of_core import given_blocks, surveyed

__all__ = ["SearchRows", "rows_to_search"]


def rows_to_search(
    base: GEMClassifier, trials: list[Trial], X: Any, y: Any, sample_weight: Any
) -> SearchRows:
    """Rows and the candidates' parameters, checked."""
    models = [candidate(base, trial["params"]) for trial in trials]
    blocks = None if is_wide(X, "auto") else given_blocks(X, y, sample_weight)
    if blocks is None:
        return _ArrayRows(base, X, y, sample_weight)
    for model in models:
        model._check_block_parameters()
    return _BlockRows(base, blocks)


class SearchRows(ABC):
    """Checked rows with positive weight.

    Attributes
    ----------
    classes : (k,) array
    codes : (n,) array
        Indices of the labels.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        If they have names.
    """

    classes: NDArray[Any]
    codes: NDArray[Any]
    n_features_in_: int

    def parts(self, splitter: Any) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Numbers of the rows to train on and of those to hold out, split by split.

        A splitter of the caller's may know rows by their numbers among all that were given. So it
        splits them all, those without weight with the first label, and these are left out then.
        """
        X, kept = self._given()
        labels = self.classes[self.codes]
        if kept is None:
            yield from splitter.split(X, labels)
            return
        given = np.full(len(kept), self.classes[0], dtype=labels.dtype)
        given[kept] = labels
        number = np.cumsum(kept) - 1
        for parts in splitter.split(np.empty((len(kept), 0)), given):
            train, held = (number[rows[kept[rows]]] for rows in map(_numbers, parts))
            yield train, held

    @property
    def n_given(self) -> int:
        """Rows that were given, be it without weight."""
        X, kept = self._given()
        return int(X.shape[0] if kept is None else len(kept))

    def split(self, train: Any, held: Any) -> Split:
        """The candidates' work on a part to train on and a part held out, by rows' numbers."""
        train, held = _numbers(train), _numbers(held)
        if not len(held):
            raise ValueError("cv: expected rows held out in every split, got none")
        lacking = np.bincount(self.codes[train], minlength=len(self.classes)) == 0
        if lacking.any():
            label = self.classes[lacking].tolist()[0]
            raise ValueError(
                "cv: expected rows of every class to train on in every split, got none of "
                f"class {label!r}"
            )
        return self._split(train, held)

    @abstractmethod
    def _given(self) -> tuple[Any, NDArray[np.bool_] | None]:
        """What splitters see of the rows; and which were given with weight, if not all were."""

    @abstractmethod
    def fit(self, model: GEMClassifier) -> None:
        """Fit a classifier to all rows."""

    @abstractmethod
    def _split(self, train: NDArray[Any], held: NDArray[Any]) -> Split:
        """As `split`, checked."""


class _ArrayRows(SearchRows):
    def __init__(self, base: GEMClassifier, X: Any, y: Any, sample_weight: Any) -> None:
        self.base, self.given = base, (X, y, sample_weight)
        checked = clone(base)
        self.X, self.y, self.weight, _ = checked._training_rows(X, y, sample_weight, None)
        self.classes, self.codes = np.unique(self.y, return_inverse=True)
        take_names(self, checked)

    def _given(self) -> tuple[Any, NDArray[np.bool_] | None]:
        kept = np.ones(1, bool) if self.weight is None else np.asarray(self.given[2]) > 0
        return self.X, None if kept.all() else kept

    def fit(self, model: GEMClassifier) -> None:
        model.fit(*self.given)

    def _split(self, train: NDArray[Any], held: NDArray[Any]) -> Split:
        return ArraySplit(self.base, self.X, self.y, self.codes, self.weight, train, held)


class _BlockRows(SearchRows):
    def __init__(self, base: GEMClassifier, blocks: RowBlocks) -> None:
        self.base, self.blocks = base, blocks
        self.rows = surveyed(blocks, small=True, n_threads=base.n_threads)
        self.classes, self.codes = self.rows.classes, self.rows.codes
        check_two_labels(self.classes)
        self.n_features_in_ = self.rows.survey.n_features

    def _given(self) -> tuple[Any, NDArray[np.bool_] | None]:
        return np.empty((len(self.codes), 0)), self.rows.kept

    def fit(self, model: GEMClassifier) -> None:
        model.fit(self.blocks)

    def _split(self, train: NDArray[Any], held: NDArray[Any]) -> Split:
        for rows in (train, held):
            if (rows[1:] == rows[:-1]).any():
                raise ValueError("cv: expected splits that take a row once, of blocks, got others")
        return BlockSplit(self.base, self.rows, train, held)


def _numbers(rows: Any) -> NDArray[np.int64]:
    """Numbers of rows, ascending, from any such numbers or a mask."""
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else np.sort(rows.astype(np.int64))

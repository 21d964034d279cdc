"""Base classes of the linear classifiers: logits, probabilities and labels of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.labels import check_two_labels, plain_labels
from eigenfeat._base.saved import fits
from eigenfeat._base.threads import resolve
from eigenfeat._base.types import Codes, Floats, Labels, Rows, Targets, Weights
from eigenfeat._base.validation import FLOATS
from eigenfeat.expansion.features import CoreRows, ExpandedRows, core_rows
from eigenfeat.linear.logit_problem import LogitProblem, far_means
from eigenfeat.rows.estimator import (
    BaseEstimator,
    Verbose,
    given_blocks,
    keep_columns,
    validate_data,
    weighted_rows,
)
from eigenfeat.rows.labelled import LabelledRows
from eigenfeat.rows.memory import MemoryRows, scan_blocks
from eigenfeat.rows.out_of_core import BlockScores, FromLogits, over_blocks
from eigenfeat.rows.splits import check_held_out

if TYPE_CHECKING:
    from eigenfeat.rows.blocks import RowBlocks

    Features: TypeAlias = Rows | RowBlocks | ExpandedRows | LabelledRows
else:
    Features = Any

__all__ = ["Features", "LinearClassifier", "LinearModel"]

_MOST_PERMUTED = 1 << 25  # rows: beyond, a permutation takes more memory than all else


class LinearModel(BlockScores, ClassifierMixin, BaseEstimator):
    """Base class of linear classifiers, with scores ``X @ coef_.T + intercept_``."""

    _saved: ClassVar[dict[str, str]] = {
        "classes_": "labels k",
        "coef_": "numbers q d",
        "intercept_": "numbers q",
    }

    classes_: Labels
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    n_threads: int | None

    @over_blocks
    def decision_function(self, X: Features) -> Floats:
        """Logits of the classes.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix, ExpandedRows or RowBlocks
            Finite samples. For blocks, an iterator over the results of the blocks is returned.

        Returns
        -------
        (n, k) array, or (n,) with two classes
            With two classes, the logit of the second class over the first.

        Raises
        ------
        ValueError
            If features, or logits in the type of the features, are not finite.
        """
        check_is_fitted(self, "coef_")
        return self.scores_of(core_rows(self._rows(X, reset=False), True))

    def scores_of(self, rows: CoreRows) -> Floats:
        """Logits of features with the constant, as `decision_function` returns them."""
        check_is_fitted(self, "coef_")
        weights = np.ascontiguousarray(self.coef_, dtype=np.float64)
        constants = np.ascontiguousarray(self.intercept_, dtype=np.float64)
        scores = rows.class_scores(weights, constants, resolve(self.n_threads))
        if not np.isfinite(scores).all():
            finite = np.isfinite(scores).all(axis=1)
            row = int(np.argmin(finite))
            value = scores[row][~np.isfinite(scores[row])][0]
            raise ValueError(f"X: expected features of finite logits, got {value} in row {row}")
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _rows(self, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
        """Check rows; with `y`, return both."""
        if isinstance(X, ExpandedRows):
            if reset:
                self.n_features_in_ = X.shape[1]
                self.__dict__.pop("feature_names_in_", None)
            elif X.shape[1] != self.n_features_in_:
                raise ValueError(f"X: expected {self.n_features_in_} features, got {X.shape[1]}")
            if isinstance(y, str) and y == "no_validation":
                return X
            y = np.asarray(plain_labels(y))
            if y.shape != (len(X),):
                raise ValueError(
                    f"y: expected {len(X)} labels, one per sample, got shape {y.shape}"
                )
            return X, y
        options = {"accept_sparse": "csr", "dtype": FLOATS, "order": "C", "reset": reset}
        return validate_data(self, X, y, **options)

    def _labelled_rows(self, X: Any, y: Targets, sample_weight: Weights) -> MemoryRows:
        """Check rows, labels and weights in memory; leave out samples without weight."""
        X, y = self._rows(X, reset=True, y=y)
        check_classification_targets(y)
        rows = MemoryRows.of(*weighted_rows(X, y, sample_weight), self.n_threads)
        check_two_labels(rows.classes)
        self.classes_ = rows.classes
        return rows

    def _keep(self, W: NDArray[np.float64]) -> None:
        """Store the weights W (p, k), the constant's last."""
        if len(self.classes_) == 2:
            W = W[:, 1:] - W[:, :1]
        self.coef_ = np.ascontiguousarray(W[:-1].T)
        self.intercept_ = W[-1].copy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_loaded(self) -> None:
        """One row of weights for each class, or one for two of them."""
        k = len(self.classes_)
        fits(k >= 2 and len(self.coef_) == (1 if k == 2 else k), f"{type(self).__name__}.coef_")


class LinearClassifier(Verbose, LinearModel, FromLogits):
    """Base class of the fits: problems of all rows, of a sample, and of held-out rows."""

    fit_intercept: bool
    early_stopping: bool
    validation_fraction: float

    def _problems(
        self, X: Any, y: Targets, sample_weight: Weights, random: np.random.RandomState
    ) -> tuple[LogitProblem, LogitProblem | None, NDArray[np.float64] | None]:
        """Problems of the rows to fit and of those held out, and what columns are moved by."""
        rows, held_out = self._any_rows(X, y, sample_weight), None
        if self.early_stopping:
            rows, held = map(rows.subset, self._split(rows.codes, random))
            held_out = LogitProblem(held, constant=self.fit_intercept)
        centre = far_means(rows) if self.fit_intercept else None
        if centre is not None:
            rows = rows.read_as(replace(rows.reading, centre=centre))
        problem = LogitProblem(rows, constant=self.fit_intercept)
        self.n_features_in_ = problem.varying
        return problem, held_out, centre

    def _any_rows(self, X: Any, y: Targets, sample_weight: Weights) -> LabelledRows:
        """Rows in memory or in blocks, checked."""
        blocks = None
        if not isinstance(X, LabelledRows):
            blocks = given_blocks(X, y, sample_weight, estimator=self)
        if blocks is not None:
            X = scan_blocks(blocks, n_threads=self.n_threads)
        if not isinstance(X, LabelledRows):
            return self._labelled_rows(X, y, sample_weight)
        check_two_labels(X.classes)
        self.classes_ = X.classes
        keep_columns(self, blocks, X.n_features)
        return X

    def _sample(
        self, n: int, count: int | None, random: np.random.RandomState
    ) -> NDArray[np.intp] | None:
        """Row numbers for the Gram matrix, or None for all."""
        if count is None or count >= n:
            return None
        if n <= _MOST_PERMUTED:
            return np.sort(random.permutation(n)[:count])
        few = np.random.default_rng(random.randint(2**31 - 1))
        return np.sort(few.choice(n, count, replace=False, shuffle=False))

    def _split(self, codes: Codes, random: np.random.RandomState) -> list[NDArray[np.intp]]:
        """Numbers of rows to fit and of rows to hold out, class by class."""
        check_held_out(codes, self.classes_, self.validation_fraction, "early_stopping")
        options = {"stratify": codes, "random_state": random}
        parts = train_test_split(
            np.arange(len(codes)), test_size=self.validation_fraction, **options
        )
        return [np.sort(part) for part in parts]

"""What linear classifiers share: rows of any kind in, logits, probabilities and labels out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from eigenfeat import _threads
from eigenfeat._logit_problem import LogitProblem
from eigenfeat.features import ExpandedRows, take_rows

__all__ = ["LinearClassifier"]

FLOATS = [np.float64, np.float32]


class LinearClassifier(ClassifierMixin, BaseEstimator):
    """What the linear classifiers share: rows in, ``X @ coef_.T + intercept_`` out."""

    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    classes_: NDArray[Any]
    n_threads: int | None

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Logits.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or ExpandedRows
            Finite rows.

        Returns
        -------
        (n, k) array, or (n,) with two classes
            With two classes the logit of the second over the first.
        """
        check_is_fitted(self, "coef_")
        X = self._rows(X, reset=False)
        weights = np.vstack([self.coef_.T, self.intercept_])
        problem = LogitProblem.reader(X, _threads.resolve(self.n_threads))
        scores = problem.scores(weights)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Logarithms of the class probabilities, (n, k)."""
        return np.asarray(log_softmax(self._all_scores(X), axis=1))

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Class probabilities, (n, k)."""
        return np.asarray(softmax(self._all_scores(X), axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable labels, (n,)."""
        scores = self._all_scores(X)
        return self.classes_[np.argmax(scores, axis=1)]

    def _all_scores(self, X: Any) -> NDArray[Any]:
        scores = self.decision_function(X)
        return scores if scores.ndim == 2 else np.column_stack([np.zeros_like(scores), scores])

    def _rows(self, X: Any, *, reset: bool, y: Any = None) -> Any:
        """Check rows; with `y`, return both."""
        if isinstance(X, ExpandedRows):
            if reset:
                self.n_features_in_ = X.shape[1]
                self.__dict__.pop("feature_names_in_", None)
            elif X.shape[1] != self.n_features_in_:
                raise ValueError(f"X: expected {self.n_features_in_} features, got {X.shape[1]}")
            if y is None:
                return X
            y = np.asarray(y)
            if y.shape != (len(X),):
                raise ValueError(f"y: expected {len(X)} labels, one a row, got shape {y.shape}")
            return X, y
        options = {"accept_sparse": "csr", "dtype": FLOATS, "order": "C", "reset": reset}
        if y is None:
            return validate_data(self, X, **options)
        return validate_data(self, X, y, **options)

    def _labelled_rows(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, NDArray[np.int32], NDArray[np.float64] | None]:
        """Check rows, labels and weights; leave out rows without weight."""
        X, y = self._rows(X, reset=True, y=y)
        check_classification_targets(y)
        weight = None
        if sample_weight is not None:
            n = np.empty(len(y))
            weight = _check_sample_weight(
                sample_weight, n, dtype=np.float64, ensure_non_negative=True
            )
            kept = weight > 0
            if not kept.any():
                raise ValueError("sample_weight: expected at least one positive weight, got none")
            if not kept.all():
                X, y, weight = take_rows(X, kept), y[kept], weight[kept]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "y: expected rows of at least two classes, got 1 class "
                f"({self.classes_[0].item()!r})"
            )
        return X, codes.astype(np.int32), weight

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

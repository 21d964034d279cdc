"""What classifiers of complete rows share: checked rows, sorted classes, and labels by method."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.cores import count_cores
from eigenfeat._base.types import Labels, Rows
from eigenfeat._base.unchanged import unchanged_on_error
from eigenfeat.rows.checked import validate_data
from eigenfeat.rows.estimator import BaseEstimator

__all__ = ["RowClassifier"]

_Array = NDArray[np.float64]
_Classifier = TypeVar("_Classifier", bound="RowClassifier")


class RowClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of finite rows; a subclass says what `_learn` and `_labels` do."""

    classes_: NDArray[Any]

    def fit(self: _Classifier, X: ArrayLike, y: ArrayLike) -> _Classifier:
        """Fit to complete rows.

        Parameters
        ----------
        X : (n, d) array-like
            Finite rows, such as complete series.
        y : (n,) array-like
            Labels.

        Returns
        -------
        object
            The estimator itself. If an error is raised, it is unchanged.
        """
        self._validate_params()
        with unchanged_on_error(self):
            rows, labels = validate_data(self, X, y, dtype=np.float64, order="C")
            check_classification_targets(labels)
            self.classes_, codes = np.unique(labels, return_inverse=True)
            self._learn(rows, labels, codes)
        return self

    def predict(self, X: ArrayLike) -> Labels:
        """Predict the labels of complete rows.

        Parameters
        ----------
        X : (m, d) array-like
            Finite rows.

        Returns
        -------
        (m,) array
        """
        return self._labels(self._checked(X))

    def _learn(self, X: _Array, y: Labels, codes: NDArray[np.intp]) -> None:
        raise NotImplementedError

    def _labels(self, rows: _Array) -> Labels:
        raise NotImplementedError

    def _checked(self, X: Rows) -> _Array:
        check_is_fitted(self)
        count_cores()  # before a classifier inside asks
        return np.asarray(validate_data(self, X, dtype=np.float64, order="C", reset=False))

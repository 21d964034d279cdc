"""Base class of classifiers of complete samples."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.threads import count_cores
from eigenfeat._base.types import Labels, Rows
from eigenfeat.samples.estimator import BaseEstimator, unchanged_on_error, validate_data

__all__ = ["RowClassifier"]

_Array = NDArray[np.float64]
_Classifier = TypeVar("_Classifier", bound="RowClassifier")


class RowClassifier(ClassifierMixin, BaseEstimator):
    """Base class of classifiers of finite samples, with `_fit_checked` and `_labels`."""

    classes_: NDArray[Any]
    n_features_in_: int

    def fit(self: _Classifier, X: ArrayLike, y: ArrayLike) -> _Classifier:
        """Fit to complete samples.

        Parameters
        ----------
        X : (n, d) array-like
            Finite samples, such as complete series.
        y : (n,) array-like
            Labels.

        Returns
        -------
        object
            The estimator itself. If an error is raised, it is unchanged.
        """
        self._validate_params()
        with unchanged_on_error(self):
            rows, labels = self._training_rows(X, y)
            check_classification_targets(labels)
            self.classes_, codes = np.unique(labels, return_inverse=True)
            self._fit_checked(rows, labels, codes)
        return self

    def predict(self, X: ArrayLike) -> Labels:
        """Predict the labels of complete samples.

        Parameters
        ----------
        X : (m, d) array-like
            Finite samples.

        Returns
        -------
        (m,) array
        """
        return self._labels(self._checked(X))

    def _fit_checked(self, X: _Array, y: Labels, codes: NDArray[np.intp]) -> None:
        raise NotImplementedError

    def _labels(self, rows: _Array) -> Labels:
        raise NotImplementedError

    def _training_rows(self, X: ArrayLike, y: ArrayLike) -> tuple[_Array, Labels]:
        rows, labels = validate_data(self, X, y, dtype=np.float64, order="C")
        return rows, labels

    def _checked(self, X: Rows) -> _Array:
        check_is_fitted(self)
        count_cores()  # before a nested classifier counts them, with warnings
        return np.asarray(validate_data(self, X, dtype=np.float64, order="C", reset=False))

"""scikit-learn's multiclass SVM: liblinear, one thread, float64 inside."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC


def fitted(X: np.ndarray, y: np.ndarray, C: float, tol: float) -> LinearSVC:
    """Crammer and Singer's SVM with a penalised intercept."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(
            multi_class="crammer_singer", C=C, tol=tol, max_iter=100_000, random_state=0
        )
        return model.fit(X, y)

"""scikit-learn's logistic regression, by solver."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

SOLVERS = ("lbfgs", "newton-cg")


def fitted(
    solver: str, X: np.ndarray, y: np.ndarray, C: float, tol: float, max_iter: int = 10_000
) -> LogisticRegression:
    """A model with an intercept."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(C=C, solver=solver, tol=tol, max_iter=max_iter).fit(X, y)

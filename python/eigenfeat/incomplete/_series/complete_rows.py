"""Rows that have to be complete: an error says which one is not, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Labels
from eigenfeat.rows.estimator import validate_data

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

__all__ = ["complete_rows", "labelled_complete_rows"]

_Array = NDArray[np.float64]

_DECIDE = "; decide takes incomplete rows"
_FIT = (
    "; leave such rows out of fit, or fill them in with GaussianCompletion().fit(X).transform(X), "
    f"which learns from incomplete rows, too{_DECIDE}"
)


def complete_rows(estimator: BaseEstimator, X: ArrayLike) -> _Array:
    """Rows for a fitted estimator; ValueError, with advice, at the first NaN or infinity."""
    options = {"dtype": np.float64, "order": "C", "ensure_all_finite": False}
    rows = validate_data(estimator, X, reset=False, **options)
    return _finite(estimator, rows, _DECIDE)


def labelled_complete_rows(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike | None
) -> tuple[_Array, Labels]:
    """Rows and labels to fit on; ValueError, with advice, at the first NaN or infinity."""
    options = {"dtype": np.float64, "order": "C", "ensure_all_finite": False}
    rows, labels = validate_data(estimator, X, y, ensure_min_samples=2, **options)
    return _finite(estimator, rows, _FIT), labels


def _finite(estimator: Any, X: Any, advice: str) -> _Array:
    rows = np.asarray(X)
    if not np.isfinite(rows).all():
        i, j = np.argwhere(~np.isfinite(rows))[0].tolist()
        names = getattr(estimator, "feature_names_in_", None)
        column = f"column {j}" if names is None else f"column {j} ({names[j]!r})"
        if np.isnan(rows[i, j]):
            raise ValueError(f"X: expected complete rows, got NaN in row {i}, {column}{advice}")
        raise ValueError(f"X: expected finite rows, got {rows[i, j]} in row {i}, {column}")
    return rows

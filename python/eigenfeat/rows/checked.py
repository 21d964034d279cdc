"""scikit-learn's checks of rows and labels, after those of what it drops, changes or trusts."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils import validation

from eigenfeat._base.labels import plain_labels
from eigenfeat._base.plain_rows import plain_rows
from eigenfeat._base.text_columns import naming_text

__all__ = ["check_array", "validate_data"]


def validate_data(
    estimator: BaseEstimator, X: Any, y: Any = "no_validation", **options: Any
) -> Any:
    """As ``sklearn.utils.validation.validate_data``, for rows and labels of any origin.

    Masked entries are missing where NaN is allowed, and refused elsewhere; so are complex numbers,
    dates, sparse matrices that are not well formed, and missing labels. Messages name the column
    of a data frame, and the row.
    """
    X = plain_rows(X, missing=options.get("ensure_all_finite", True) is not True)
    y = plain_labels(y, what="target" if options.get("y_numeric") else "label")
    with naming_text(X):
        if options.get("reset", True):
            estimator.__dict__.pop("file_layout_", None)  # of an earlier fit
        return validation.validate_data(estimator, X, y, **options)


def check_array(X: Any, **options: Any) -> Any:
    """As ``sklearn.utils.validation.check_array``, likewise."""
    name = options.get("input_name") or "X"
    X = plain_rows(X, name, missing=options.get("ensure_all_finite", True) is not True)
    with naming_text(X):
        return validation.check_array(X, **options)

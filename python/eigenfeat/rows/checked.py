"""scikit-learn's checks of rows and labels, after those of what it drops, changes or trusts."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils import validation

from eigenfeat._base.labels import plain_labels
from eigenfeat._base.plain_rows import plain_rows
from eigenfeat._base.text_columns import naming_text
from eigenfeat.rows.columns import TableColumns, has_categories, is_table

__all__ = ["check_array", "validate_columns", "validate_data"]


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


def validate_columns(
    estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool, **options: Any
) -> Any:
    """Likewise, of an estimator that takes tables with categories, which become numbers.

    With ``categorical_features="from_dtype"``, a fit to a table with columns that are no numbers
    leaves their encoder in `columns_`.
    """
    if reset:
        estimator.__dict__.pop("columns_", None)
        if estimator.categorical_features is not None and has_categories(X):
            estimator.columns_ = TableColumns().fit(X)
    if not hasattr(estimator, "columns_"):
        return validate_data(estimator, X, y, reset=reset, **options)
    if not is_table(X):
        raise ValueError(
            "X: expected a table with the columns of the fit, some of which are categories, "
            f"got {type(X).__name__}"
        )
    validation.validate_data(estimator, X, reset=reset, skip_check_array=True)
    encoded = estimator.columns_.transform(X)
    if isinstance(y, str):
        return validation.check_array(encoded, **options)
    what = "target" if options.get("y_numeric") else "label"
    return validation.check_X_y(encoded, plain_labels(y, what=what), **options)


def check_array(X: Any, **options: Any) -> Any:
    """As ``sklearn.utils.validation.check_array``, likewise."""
    name = options.get("input_name") or "X"
    X = plain_rows(X, name, missing=options.get("ensure_all_finite", True) is not True)
    with naming_text(X):
        return validation.check_array(X, **options)

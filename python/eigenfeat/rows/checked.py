"""scikit-learn's check of rows, whose error names a cell that is text or a missing label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils import validation

from eigenfeat._base.text_columns import naming_text

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["validate_data"]


def validate_data(estimator: BaseEstimator, X: object, *arguments: Any, **options: Any) -> Any:
    """As ``sklearn.utils.validation.validate_data``."""
    with naming_text(X, arguments[0] if arguments else options.get("y")):
        if options.get("reset", True):
            estimator.__dict__.pop("file_layout_", None)  # of an earlier fit
        return validation.validate_data(estimator, X, *arguments, **options)

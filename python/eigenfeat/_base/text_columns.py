"""An error that names the column of text where rows should be numbers, or a missing label."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["naming_text"]


@contextmanager
def naming_text(X: object, y: object = None) -> Iterator[None]:
    """Name the column of `X` that holds text, or the row without a label in `y`, after an error."""
    try:
        yield
        if None in _objects(y):
            raise TypeError("scikit-learn lets None pass")
    except (ValueError, TypeError) as error:
        found = _first_text(X)
        if found is None:
            row = next((i for i, label in enumerate(_objects(y)) if _is_missing(label)), None)
            if row is None:
                raise
            raise ValueError(
                f"y: expected a label for every row, got a missing value in row {row}; leave out "
                "rows without a label"
            ) from error
        column, row, text = found
        raise ValueError(
            f"X: expected numbers, got text in column {column!r} ({text!r} in row {row}); encode "
            "such columns first, as skrub.tabular_pipeline(model) does, or scikit-learn's "
            "OneHotEncoder in a make_column_transformer"
        ) from error


def _first_text(X: Any) -> tuple[Any, int, str] | None:
    """Column, row and text of the first column that holds text that is no number."""
    for name, column in _columns(X):
        for row, value in enumerate(column.tolist()):
            if isinstance(value, str) and not _is_number(value):
                return name, row, value if len(value) <= 40 else value[:37] + "..."
    return None


def _objects(y: Any) -> list[Any]:
    """Labels that are objects, such as text; none if they are of another type."""
    if not (hasattr(y, "dtype") or isinstance(y, (list, tuple))):
        return []
    try:
        labels = np.asarray(y)
    except ValueError:
        return []
    return labels.tolist() if labels.dtype.kind == "O" and labels.ndim == 1 else []


def _is_missing(label: object) -> bool:
    """Whether a label is None, NaN, or a missing value of pandas."""
    nan = isinstance(label, (float, np.floating)) and label != label
    return label is None or nan or type(label).__name__ in ("NAType", "NaTType")


def _columns(X: Any) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Names, or numbers, and entries of the columns that are not of numbers."""
    if hasattr(X, "columns") and hasattr(X, "__dataframe__"):
        for name in X.columns:
            column = np.asarray(X[name])
            if column.dtype.kind in "OUST":
                yield name, column.astype(object)
        return
    if hasattr(X, "tocsr") or not isinstance(X, (np.ndarray, list, tuple)):
        return
    try:
        array = np.asarray(X, dtype=object)
    except ValueError:
        return
    if array.ndim == 2 and not (isinstance(X, np.ndarray) and X.dtype.kind not in "OUST"):
        for number in range(array.shape[1]):
            yield number, array[:, number]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

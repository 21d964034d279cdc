"""An error that names the column of text, where rows should be numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["naming_text"]


@contextmanager
def naming_text(X: object) -> Iterator[None]:
    """Say which column of `X` holds text, and what to do, if what is done inside fails of it."""
    try:
        yield
    except (ValueError, TypeError) as error:
        found = _first_text(X)
        if found is None:
            raise
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

"""An error that names the column of text, or dates, where rows should be numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ENCODE", "naming_text"]

ENCODE = (
    "encode such columns first, as skrub.tabular_pipeline(model) does, or scikit-learn's "
    "OneHotEncoder in a make_column_transformer"
)


@contextmanager
def naming_text(X: object) -> Iterator[None]:
    """Name the column of `X` that holds text, dates or complex numbers after an error."""
    try:
        yield
    except (ValueError, TypeError) as error:
        found = _first_text(X)
        if found is None:
            raise
        column, row, what, shown = found
        if what == "complex numbers":
            raise ValueError(
                f"X: expected real numbers, got {what} in column {column!r} ({shown} in row "
                f"{row}). Complex data not supported"
            ) from error
        raise ValueError(
            f"X: expected numbers, got {what} in column {column!r} ({shown} in row {row}); {ENCODE}"
        ) from error


def _first_text(X: Any) -> tuple[Any, int, str, str] | None:
    """Column, row, kind and text of the first cell that is no number."""
    for name, column in _columns(X):
        for row, value in enumerate(column.tolist()):
            if isinstance(value, str) and not _is_number(value):
                return name, row, "text", repr(value if len(value) <= 40 else value[:37] + "...")
            if isinstance(value, (date, time, timedelta)) and value == value:
                return name, row, "dates or times", str(value)[:40]
            if isinstance(value, (complex, np.complexfloating)):
                return name, row, "complex numbers", str(value)[:40]
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

"""Rows as users give them: masks, dates, complex numbers and sparse arrays are looked at first.

NumPy and SciPy drop masks and imaginary parts, turn dates into numbers, and trust the indices of a
sparse matrix; scikit-learn's checks come after that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, time, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from eigenfeat._base.validation import check_unmasked, refuse_complex, well_formed

__all__ = ["ENCODE", "naming_text", "plain_rows"]

ENCODE = (
    "encode such columns first, as skrub.tabular_pipeline(model) does, or scikit-learn's "
    "OneHotEncoder in a make_column_transformer"
)


def plain_rows(X: Any, name: str = "X", *, missing: bool = False) -> Any:
    """`X` without a mask; everything else as it is, unless rows cannot be like that.

    Parameters
    ----------
    X : object
        Anything. Sparse matrices with entries out of order or stored twice are copied.
    name : str
        What messages call it.
    missing : bool
        Whether NaN is a missing entry, which masked ones then become.

    Raises
    ------
    ValueError
        If numbers are complex, columns are dates, entries are masked that must not be missing, or
        the arrays of a sparse matrix are not a matrix.
    """
    if hasattr(X, "tocsr"):
        refuse_complex(X.dtype, name)
        return well_formed(X, name)
    if isinstance(X, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        try:
            X = np.ma.stack(X)
        except ValueError:
            return X  # rows of several lengths, which are refused anyway
    if isinstance(X, np.ma.MaskedArray):
        X = _unmasked(X, name, missing)
    if isinstance(X, np.ndarray):
        refuse_complex(X.dtype, name)
        _refuse_dates(X.dtype, name, f"an array of {X.dtype}")
    elif hasattr(X, "columns") and hasattr(X, "dtypes"):
        for column, dtype in zip(X.columns, X.dtypes, strict=False):
            _check_column(column, dtype, name)
    return X


def _unmasked(X: np.ma.MaskedArray[Any, Any], name: str, missing: bool) -> npt.NDArray[Any]:
    """The array, with NaN where it is masked."""
    if not missing:
        return check_unmasked(X, name)
    mask = np.ma.getmaskarray(X)
    if not mask.any():
        return X.data
    refuse_complex(X.dtype, name)
    _refuse_dates(X.dtype, name, f"an array of {X.dtype}")
    kind = X.dtype if X.dtype in (np.float32, np.float64, object) else np.dtype(np.float64)
    plain: npt.NDArray[Any] = X.data.astype(kind)
    plain[mask] = np.nan
    return plain


def _check_column(column: Any, dtype: Any, name: str) -> None:
    """ValueError if a column of a frame holds dates, durations or complex numbers."""
    where = f"{dtype} in column {column!r}"
    kind = getattr(dtype, "kind", "")
    if kind == "c":
        refuse_complex(dtype, name, where)
    temporal = getattr(dtype, "is_temporal", None)  # Polars
    if kind in ("m", "M") or (callable(temporal) and temporal()) or hasattr(dtype, "freq"):
        raise ValueError(f"{name}: expected numbers, got dates or times, {where}; {ENCODE}")


def _refuse_dates(dtype: np.dtype[Any], name: str, what: str) -> None:
    if dtype.kind in "mM":
        raise ValueError(f"{name}: expected numbers, got dates or times, {what}; {ENCODE}")


@contextmanager
def naming_text(X: object) -> Iterator[None]:
    """Name the column of `X` that holds text, dates or complex numbers after an error."""
    try:
        yield
    except (ValueError, TypeError) as error:
        result = _first_text(X)
        if result is None:
            raise
        column, row, what, shown = result
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

"""Columns of a table as numbers: numeric and boolean ones as they are, categories one-hot.

Missing numbers are NaN; a missing category is a category of its own. Categories that occur once are
pooled with each other, categories that `fit` has not seen have zeros in all of their columns, as in
scikit-learn's `OneHotEncoder`, which does the encoding.
"""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OneHotEncoder

from eigenfeat._base.saved import Saved, fits
from eigenfeat._base.speaking import warn_caller

__all__ = ["TableColumns", "has_categories", "is_table"]

_RARE = 2  # samples of a category, below which it is pooled with others
_MOST_CATEGORIES = 255  # of one column; the rarest beyond are pooled
_FEW = 50  # samples, of which different values do not make an identifier
_NEARLY_ALL = 0.9  # of the samples with different values: an identifier or free text

_Column = NDArray[Any]


def is_table(X: object) -> bool:
    """Whether X is a data frame or table: columns with names, each with a type of its own."""
    named = hasattr(X, "columns") or hasattr(X, "column_names")
    return named and not isinstance(X, np.ndarray) and hasattr(X, "shape") and len(X.shape) == 2


def has_categories(X: Any) -> bool:
    """Whether a table has columns of text, categories, dates or objects that are not numbers."""
    return is_table(X) and any(_values(X, name)[0] != "number" for name in _names(X))


class TableColumns(Saved):
    """Encoder of tables whose columns are numbers, booleans, text or categories.

    Attributes
    ----------
    names_ : list
        Names of the columns of the table.
    kinds_ : list of {"number", "category", "left out"}
        What each column is taken for.
    encoders_ : dict of name to OneHotEncoder
        Encoders of the categories.
    feature_names_ : (D,) array of str
        Names of the encoded columns.
    groups_ : (D,) array of int
        Index of the table's column that each encoded column comes from.
    indicator_ : (D,) array of bool
        Whether an encoded column is the indicator of a category.
    """

    _saved: ClassVar[dict[str, str]] = {
        "names_": "value",
        "kinds_": "value",
        "encoders_": "value",
        "feature_names_": "labels D",
        "groups_": "whole D",
        "indicator_": "flags D",
    }

    def _check_loaded(self) -> None:
        names, kinds, encoders = self.names_, self.kinds_, self.encoders_
        fits(type(names) is list and type(kinds) is list, "TableColumns.names_")
        fits(len(kinds) == len(names), "TableColumns.kinds_")
        coded = [name for name, kind in zip(names, kinds, strict=True) if kind == "category"]
        fits(type(encoders) is dict and list(encoders) == coded, "TableColumns.encoders_")
        fits(all(type(one) is OneHotEncoder for one in encoders.values()), "TableColumns.encoders_")
        fits(len(self.groups_) == 0 or self.groups_.max() < len(names), "TableColumns.groups_")
        fits(len(self.groups_) == 0 or self.groups_.min() >= 0, "TableColumns.groups_")

    def fit(self, X: Any) -> TableColumns:
        """Learn kinds and categories of the columns of a table.

        Warns
        -----
        UserWarning
            If columns are left out: dates, and text whose values nearly all differ. The message
            names them.
        """
        self.names_ = _names(X)
        _check_unique(self.names_)
        self.kinds_: list[str] = []
        self.encoders_: dict[Hashable, OneHotEncoder] = {}
        names: list[str] = []
        groups: list[int] = []
        indicator: list[bool] = []
        dates: list[Any] = []
        different: list[Any] = []
        for at, name in enumerate(self.names_):
            kind, values = _values(X, name)
            if kind == "category" and _is_identifier(values):
                different.append(name)
            elif kind == "date":
                dates.append(name)
            left_out = kind == "date" or name in different[-1:]
            self.kinds_.append("left out" if left_out else kind)
            if self.kinds_[-1] == "category":
                encoder = OneHotEncoder(
                    min_frequency=_RARE,
                    max_categories=_MOST_CATEGORIES,
                    handle_unknown="ignore",
                    sparse_output=False,
                ).fit(values[:, None])
                self.encoders_[name] = encoder
                new = [str(one) for one in encoder.get_feature_names_out([str(name)])]
            else:
                new = [str(name)] if self.kinds_[-1] == "number" else []
            names += new
            groups += [at] * len(new)
            indicator += [self.kinds_[-1] == "category"] * len(new)
        _warn_left_out(dates, different)
        self.feature_names_ = np.asarray(names, dtype=object)
        self.groups_ = np.asarray(groups, dtype=np.intp)
        self.indicator_ = np.asarray(indicator, dtype=bool)
        if not names:
            raise ValueError("X: expected a column of numbers or categories, got none")
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Encoded columns (n, D); NaN is a missing number.

        Raises
        ------
        ValueError
            If columns are missing, or a column of numbers has text; the message names it.
        """
        lacking = [name for name in self.names_ if name not in set(_names(X))]
        if lacking:
            raise ValueError(f"X: expected the columns of the fit, got none named {lacking[0]!r}")
        parts: list[NDArray[np.float64]] = []
        for name, kind in zip(self.names_, self.kinds_, strict=True):
            if kind == "left out":
                continue
            found, values = _values(X, name)
            if kind == "number":
                parts.append(_numbers(found, values, name)[:, None])
            else:
                values = _text(values) if found != "category" else values
                parts.append(np.asarray(self.encoders_[name].transform(values[:, None])))
        return np.ascontiguousarray(np.hstack(parts), dtype=np.float64)


def _names(X: Any) -> list[Any]:
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


def _check_unique(names: list[Any]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise ValueError(f"X: expected columns of different names, got two named {twice!r}")


def _values(X: Any, name: Any) -> tuple[str, _Column]:
    """Kind ("number", "category" or "date") and values of a column.

    Numbers are float64 with NaN; categories are objects, None where one is missing.
    """
    column = X[name]
    values = _as_array(column) if hasattr(column, "to_numpy") else np.asarray(column)
    if values.dtype.kind in "biuf" and not _is_categorical(column):
        return "number", values.astype(np.float64)
    if values.dtype.kind in "mM":
        return "date", values
    if values.dtype.kind == "c":
        raise ValueError(f"X: expected real numbers, got complex ones in column {name!r}")
    known = [value for value in values.tolist() if not _is_missing(value)]
    if not _is_categorical(column) and known and all(map(_is_number, known)):
        numeric = (np.nan if _is_missing(one) else float(one) for one in values.tolist())
        return "number", np.fromiter(numeric, dtype=np.float64, count=len(values))
    if not known and not _is_categorical(column):
        return "number", np.full(len(values), np.nan)
    if any(hasattr(value, "isoformat") for value in known[:1]):
        return "date", values
    return "category", _text(values)


def _as_array(column: Any) -> _Column:
    """The values of a column; missing ones of nullable numbers are NaN, others None."""
    dtype = getattr(column, "dtype", None)
    if type(dtype).__module__.startswith("pandas"):
        if getattr(dtype, "kind", "O") in "iuf":
            values: _Column = column.to_numpy(dtype=np.float64, na_value=np.nan)
            return values
        return np.asarray(column.astype(object))
    if type(column).__module__.startswith("pyarrow"):
        return np.asarray(column.to_pandas())
    return np.asarray(column.to_numpy())


def _is_categorical(column: Any) -> bool:
    """Whether a column is declared to be of categories, which may be numbers."""
    dtype = getattr(column, "dtype", getattr(column, "type", None))
    return "categor" in type(dtype).__name__.lower() or type(dtype).__name__ == "Enum"


def _is_missing(value: object) -> bool:
    nan = isinstance(value, (float, np.floating)) and value != value
    return value is None or nan or type(value).__name__ in ("NAType", "NaTType")


def _is_number(value: object) -> bool:
    return isinstance(value, (numbers.Number, np.bool_)) and not isinstance(value, complex)


def _text(values: Iterable[Any]) -> _Column:
    """Categories as text, so that they have one order; None is a missing one."""
    out = [None if _is_missing(one) else _name(one) for one in np.asarray(values).tolist()]
    return np.array(out, dtype=object)


def _name(value: Any) -> str:
    """The text of a category: that of 1.0 is that of 1, as gaps turn whole numbers into floats."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _is_identifier(values: _Column) -> bool:
    """Whether nearly all values differ, as those of identifiers and of free text."""
    known = [one for one in values.tolist() if one is not None]
    return len(known) >= _FEW and len(set(known)) > _NEARLY_ALL * len(known)


def _numbers(kind: str, values: _Column, name: Any) -> NDArray[np.float64]:
    if kind == "number":
        return values
    row = next(i for i, one in enumerate(values.tolist()) if not _is_missing(one))
    raise ValueError(
        f"X: expected numbers in column {name!r}, as in the fit, got {values[row]!r} in row {row}"
    )


def _warn_left_out(dates: list[Any], different: list[Any]) -> None:
    told = []
    if dates:
        told.append(f"columns of dates ({', '.join(map(repr, dates))})")
    if different:
        told.append(f"columns whose values nearly all differ ({', '.join(map(repr, different))})")
    if told:
        warn_caller(
            f"X: {' and '.join(told)} are left out; drop them, or derive numbers or categories "
            "from them first",
            UserWarning,
        )

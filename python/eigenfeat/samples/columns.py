"""Columns of a table as numbers: numeric and boolean ones as they are, categories one-hot.

Missing numbers are NaN; a missing category is a category of its own. Categories that occur once are
pooled with each other, categories that `fit` has not seen have zeros in all of their columns, as in
scikit-learn's `OneHotEncoder`, which does the encoding.
"""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OneHotEncoder

from eigenfeat._base.saved import Saved, fits
from eigenfeat._base.validation import is_table, warn_caller

__all__ = ["TableColumns", "column_counts", "count_categories", "has_categories"]

_RARE = 2  # samples of a category, below which it is pooled with others
_MOST_CATEGORIES = 255  # of one column; the rarest beyond are pooled
_FEW = 50  # samples, of which different values do not make an identifier
_NEARLY_ALL = 0.9  # of the samples with different values: an identifier or free text
_MOST_DIFFERENT = 1 << 18  # values of a column that are counted; more are free text

_Column = NDArray[Any]


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
        return self.fit_parts(_names(X), [column_counts(X)])

    def fit_parts(
        self, names: Sequence[Any], parts: Sequence[list[tuple[str, Counter[str | None]]]]
    ) -> TableColumns:
        """Learn columns from the results of `column_counts` for the parts of a table."""
        kinds: list[str] = []
        counts: dict[Any, Counter[str | None]] = {}
        for at, name in enumerate(names):
            kinds_of_parts = {part[at][0] for part in parts}
            kinds.append(min(kinds_of_parts))  # words in one part are words in all
            if kinds[-1] == "category":
                counts[name] = sum((part[at][1] for part in parts), Counter())
        return self.fit_counts(names, kinds, counts)

    def fit_counts(
        self,
        names: Sequence[Any],
        kinds: Sequence[str],
        counts: Mapping[Any, Mapping[str | None, int]],
    ) -> TableColumns:
        """Learn columns from their names, their kinds and the counts of their categories.

        Parameters
        ----------
        names : sequence
            Names of the columns, which differ.
        kinds : sequence of {"number", "category", "date"}
        counts : mapping of name to mapping
            Number of samples of each category of the columns of categories; None is a missing one.
        """
        _check_unique(list(names))
        self.names_ = list(names)
        self.kinds_: list[str] = []
        self.encoders_: dict[Hashable, OneHotEncoder] = {}
        encoded: list[str] = []
        groups: list[int] = []
        indicator: list[bool] = []
        dates = [name for name, kind in zip(names, kinds, strict=True) if kind == "date"]
        different = [name for name in counts if _is_identifier(counts[name])]
        for at, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            left_out = kind == "date" or name in different
            self.kinds_.append("left out" if left_out else kind)
            new = [str(name)] if self.kinds_[-1] == "number" else []
            if self.kinds_[-1] == "category":
                self.encoders_[name] = _encoder(counts[name])
                names_of_codes = self.encoders_[name].get_feature_names_out([str(name)])
                new = [str(one) for one in names_of_codes]
            encoded += new
            groups += [at] * len(new)
            indicator += [self.kinds_[-1] == "category"] * len(new)
        _warn_left_out(dates, different)
        self.feature_names_ = np.asarray(encoded, dtype=object)
        self.groups_ = np.asarray(groups, dtype=np.intp)
        self.indicator_ = np.asarray(indicator, dtype=bool)
        if not encoded:
            raise ValueError("X: expected a column of numbers or categories, got none")
        return self

    @property
    def used(self) -> list[int]:
        """Indices of the columns that are not left out."""
        return [at for at, kind in enumerate(self.kinds_) if kind != "left out"]

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Encoded columns (n, D); NaN is a missing number.

        ValueError if columns are missing, or a column of numbers has text; the message names it.
        """
        lacking = [name for name in self.names_ if name not in set(_names(X))]
        if lacking:
            raise ValueError(f"X: expected the columns of the fit, got none named {lacking[0]!r}")
        parts = []
        for at in self.used:
            name = self.names_[at]
            missing, values = _values(X, name)
            parts.append(_numbers(missing, values, name) if self.kinds_[at] == "number" else values)
        return self.encoded(parts)

    def encoded(self, columns: Sequence[_Column]) -> NDArray[np.float64]:
        """Encoded columns (n, D) of the values of the columns in use."""
        parts = []
        for at, column in zip(self.used, columns, strict=True):
            if self.kinds_[at] == "number":
                parts.append(np.asarray(column, dtype=np.float64)[:, None])
                continue
            codes: dict[Any, int] = {}  # of the values that differ, which alone are encoded
            values = column.tolist()
            code = [codes.setdefault(value, len(codes)) for value in values]
            different = _text(np.fromiter(codes, dtype=object, count=len(codes)))
            table = self.encoders_[self.names_[at]].transform(different[:, None])
            parts.append(np.asarray(table)[code] if values else np.empty((0, table.shape[1])))
        return np.ascontiguousarray(np.hstack(parts), dtype=np.float64)


def column_counts(X: Any) -> list[tuple[str, Counter[str | None]]]:
    """Kind of each column of a table, and number of samples of each category."""
    names = _names(X)
    _check_unique(names)
    counts: list[tuple[str, Counter[str | None]]] = []
    for name in names:
        kind, values = _values(X, name)
        plain = getattr(getattr(X[name], "dtype", None), "kind", "O") in "biuf"
        # Numbers among objects may be words in another part of the table.
        some = kind == "category" or (kind == "number" and not plain)
        counts.append((kind, Counter(_text(values).tolist() if some else ())))
    return counts


def count_categories(counts: Counter[str | None], values: _Column) -> None:
    """Add the values of some samples to the counts of the categories of a column."""
    if len(counts) <= _MOST_DIFFERENT:
        for value, count in Counter(values.tolist()).items():
            counts[None if _is_missing(value) else _name(value)] += count


def _encoder(counts: Mapping[str | None, int]) -> OneHotEncoder:
    """The encoder of samples with these counts.

    Which categories are pooled depends on the order of the counts alone, and on which are below
    `_RARE`: each distinct count is therefore replaced by its rank, and few samples are made.
    """
    ranks = {count: rank for rank, count in enumerate(sorted({*counts.values()} - {1}), _RARE)}
    names = sorted(counts, key=lambda name: (name is None, name))
    repeated = [name for name in names for _ in range(ranks.get(counts[name], 1))]
    return OneHotEncoder(
        min_frequency=_RARE,
        max_categories=_MOST_CATEGORIES,
        handle_unknown="ignore",
        sparse_output=False,
    ).fit(np.array(repeated, dtype=object)[:, None])


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


def _name(value: Any) -> str | None:
    """The text of a category: that of 1.0 is that of 1, as gaps turn whole numbers into floats.

    Blanks around text have no meaning, as in files; nothing else is a missing category.
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip() or None


def _is_identifier(counts: Mapping[str | None, int]) -> bool:
    """Whether nearly all values differ, as those of identifiers and of free text."""
    known = sum(count for name, count in counts.items() if name is not None)
    different = len(counts) - (None in counts)
    return different > _MOST_DIFFERENT or (known >= _FEW and different > _NEARLY_ALL * known)


def _numbers(kind: str, values: _Column, name: Any) -> NDArray[np.float64]:
    if kind == "number":
        return values
    row = next(i for i, one in enumerate(values.tolist()) if not _is_missing(one))
    raise ValueError(
        f"X: expected numbers in column {name!r}, as in the fit, got {values[row]!r} in row {row}"
    )


def _warn_left_out(dates: list[Any], different: list[Any]) -> None:
    left_out = []
    if dates:
        left_out.append(f"columns of dates ({', '.join(map(repr, dates))})")
    if different:
        left_out.append(
            f"columns whose values nearly all differ ({', '.join(map(repr, different))})"
        )
    if left_out:
        warn_caller(
            f"X: {' and '.join(left_out)} are left out; drop them, or derive numbers or categories "
            "from them first",
            UserWarning,
        )

"""Columns of a table as numbers.

Numbers and booleans stay as they are, with NaN for missing values. Durations become seconds; dates
become days since 1970, month, weekday and hour. A column of text becomes numbers if nearly all its
cells are numbers, unless these are codes; numbers may have separators of thousands, a sign of
currency or percent. All other columns are categories. Missing cells are a category. Categories that
occur once are pooled with each other; values that `fit` has not seen are encoded like these rare
categories. Columns of many categories are encoded by target statistics. Of text whose values nearly
all differ, such as free text, only the missing cells are a category.
"""

from __future__ import annotations

import datetime
import numbers
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.labels import as_objects, is_missing
from eigenfeat._base.validation import (
    column_names,
    counted,
    is_table,
    refuse_complex,
    show,
    show_items,
    warn_caller,
)
from eigenfeat.samples.categories import (
    Categories,
    category_codes,
    category_text,
    distinct_values,
    listed_values,
)

__all__ = [
    "TableColumns",
    "column_counts",
    "days_of",
    "has_categories",
    "merge_counts",
    "refuse_lacking",
    "warn_identifiers",
]

_MIN_SAMPLES = 2  # rarer categories are pooled
_MAX_INDICATORS = 50  # a column of more categories has target statistics
_MIN_IDENTIFIERS = 50  # samples of a column of identifiers
_IDENTIFIER_SHARE = 0.9  # smallest share of distinct values in a column of identifiers
_MAX_COUNTED = 1 << 18  # distinct values of a column of categories; text with more is left out
_NUMBER_SHARE = 0.95  # smallest share of numbers in a column of text that becomes numbers
_MAX_UNITS = 3  # distinct units in a column of numbers
_DATE_PARTS = ("day", "month", "weekday", "hour")
_MIN_UNKNOWN = 5  # fewer unknown values of a column cause no warning

_Array = NDArray[Any]
_Counts = Counter[str | None]
# Kinds of columns. If parts of a table differ, the column has the first of these kinds.
_KINDS = ("declared", "category", "date", "number", "empty")
_CATEGORY_KINDS = ("declared", "category")
_CONVERTED_TEXT = ("date", "numeric text")  # kinds of text that become numbers
_DURATIONS = (datetime.timedelta, datetime.time)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE = re.compile(
    r"(?P<local>[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?P<time>[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?)"
    r"(Z|(?(time)(?P<sign>[+-])(?P<hours>[01][0-9]|2[0-3])(:?(?P<minutes>[0-5][0-9]))?|(?!)))?"
)
_IDENTIFIER = re.compile(r"(.*[^a-z])?(id|index|key|nr|no|number|row|uuid|unnamed: [0-9]+)")
# Numbers with separators of thousands, a sign of currency or percent, as "-$1,250.50".
_ENGLISH_NUMBER = re.compile(
    r"(?P<sign>[+-])?(?P<currency>[$\u00a3\u00a5\u20ac\u20b9]?) ?(?(sign)|[+-]?)"
    r"(?P<integer>[1-9][0-9]{0,2}(,[0-9]{3})+|[0-9]+)(\.[0-9]+)?(?P<percent> ?%)?"
)
_NOT_IN_NUMBERS = re.compile("[$\u00a3\u00a5\u20ac\u20b9,% ]")
# All forms of numbers, which may also have a decimal comma or a unit.
_WRITTEN_NUMBER = re.compile(
    r"[+-]?(?P<currency>[$\u00a3\u00a5\u20ac\u20b9]?) ?[+-]?"
    r"([0-9]{1,3}([,'.][0-9]{3})+([.,][0-9]+)?|[0-9]+([.,][0-9]+)?)"
    r"(?P<unit> ?[^\W0-9_]{1,6}[23]?| ?[%\u00b0$\u00a3\u00a5\u20ac\u20b9])?"
)
# Days and months are at most 39, so that codes of groups of digits are not dates.
_WRITTEN_DATE = re.compile(
    r"([0-3]?[0-9][./-][0-3]?[0-9][./-]([0-9]{4}|[0-9]{2})"
    r"|[0-9]{4}[./-][0-3]?[0-9][./-][0-3]?[0-9]"
    r"|[0-3]?[0-9][. -]{1,2}[^\W0-9_]{3,9}[., -]{1,2}[0-9]{4}"
    r"|[^\W0-9_]{3,9} [0-3]?[0-9], [0-9]{4})"
    r"([ T][0-9]{1,2}:[0-9]{2}.{0,20})?"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def has_categories(X: Any) -> bool:
    """Whether a table has columns of text, categories, dates or other objects than numbers."""
    return is_table(X) and any(_is_encoded(_Column(X[name], name)) for name in _names(X))


def _is_encoded(column: _Column) -> bool:
    """Whether a column holds anything but plain numbers."""
    if column.kind != "number" or column.type == "m":
        return True
    return column.type == "O" and any(isinstance(v, _DURATIONS) for v in column.distinct[0])


def refuse_lacking(expected: Sequence[Any], names: Sequence[Any]) -> None:
    """Raise ValueError for columns of the fit, `expected`, that are not among `names`."""
    known = set(names)
    lacking = [name for name in expected if name not in known]
    if lacking:
        missing = show_items(lacking)
        raise ValueError(f"X: expected the columns of the fit, got none named {missing}")


def warn_identifiers(X: Any) -> None:
    """Warn of columns of a table whose whole numbers look like row numbers or identifiers.

    The numbers of such a column are distinct. They are sorted or fill a range, or the column is
    named like identifiers. Tables with two columns of one name are not searched.
    """
    names = column_names(X)
    found = []
    for name in names if 1 < len(names) == len({*names}) else []:
        column = _Column(X[name], name)
        if (
            column.type in "iuf"
            and len(column) >= _MIN_IDENTIFIERS
            and _looks_like_identifiers(column)
        ):
            found.append(name)
    if found:
        warn_caller(
            "X: columns of whole numbers that look like row numbers or identifiers "
            f"({show_items(found)}) are used as features; drop them if they mean nothing "
            "in new samples",
            UserWarning,
        )


def _looks_like_identifiers(column: _Column) -> bool:
    values = column.numbers()
    if not np.isfinite(values).all() or not np.array_equal(values, np.rint(values)):
        return False
    steps = np.diff(values)
    if not steps.any():
        return False
    if (steps > 0).all() or (steps < 0).all():
        return True
    if len(np.unique(values)) < len(values):
        return False
    return bool(np.ptp(values) < 2 * len(values)) or _is_named_identifier(column.name)


def _is_named_identifier(name: Any) -> bool:
    return _IDENTIFIER.fullmatch(_CAMEL.sub("_", str(name)).strip().lower()) is not None


class TableColumns:
    """Encoder of tables whose columns are numbers, booleans, text or categories.

    Attributes
    ----------
    names_ : list
        Names of the columns of the table.
    kinds_ : list of {"number", "numeric text", "date", "category", "left out"}
        Kind of each column.
    categories_ : dict of name to Categories
        Categories of the columns of kind "category".
    signs_ : dict of name to str
        Signs of currency or percent, or "", of the numbers in columns of numeric text.
    feature_names_ : (D,) array of str
        Names of the encoded columns. As in scikit-learn's `OneHotEncoder`, the indicators of a
        column "town" are "town_Ulm" for a category, "town_None" for missing values, and
        "town_infrequent_sklearn" for categories that occur once and for unseen categories.
    groups_ : (D,) array of int
        Index of the table's column that each encoded column comes from.
    indicator_ : (D,) array of bool
        Whether an encoded column is the indicator of a category.
    """

    def fit(self, X: Any, sample_weight: NDArray[np.float64] | None = None) -> TableColumns:
        """Learn kinds and categories of the columns of a table.

        Samples of weight 0 are ignored. Columns of many categories are encoded by codes until
        `set_statistics`.

        Warns
        -----
        UserWarning
            If columns are left out (columns without values, and text without gaps whose values
            nearly all differ), if only the gaps of such text are used, if text becomes numbers, and
            if text that looks like numbers or dates is not read as such. The message names the
            columns.
        """
        rows = None
        if sample_weight is not None and (sample_weight == 0).any():
            rows = np.flatnonzero(sample_weight)
            X = _rows(X, rows)
        return self.fit_counts(_names(X), column_counts(X, rows))

    def fit_counts(self, names: Sequence[Any], counted: list[tuple[str, _Counts]]) -> TableColumns:
        """Learn columns from their names and the result of `column_counts`."""
        self.names_ = list(names)
        self.kinds_: list[str] = []
        self.categories_: dict[Hashable, Categories] = {}
        self.signs_: dict[Hashable, str] = {}
        left_out: dict[str, list[Any]] = {}
        with_gaps: list[Any] = []  # columns of which only the missing cells are a category
        numeric: dict[Any, Mapping[str | None, int]] = {}
        written: dict[str, dict[Any, str]] = {"numbers": {}, "dates": {}}
        for name, (kind, counts) in zip(names, counted, strict=True):
            if kind in _CATEGORY_KINDS:
                declared = kind == "declared"
                kind = _kind_of_text(name, counts, declared)
                looks_like = "" if declared or kind in _CONVERTED_TEXT else _looks_like(counts)
                if looks_like:
                    texts = [text for text in counts if text is not None]
                    others = (text for text in texts if not _NUMBER.fullmatch(text))
                    written[looks_like][name] = next(others, texts[0])
            if kind == "identifier" and counts[None] >= _MIN_SAMPLES:
                with_gaps.append(name)
                self.categories_[name] = Categories([None], pools=True)
                self.kinds_.append("category")
                continue
            if kind in _LEFT_OUT:
                left_out.setdefault(kind, []).append(name)
                kind = "left out"
            if kind == "numeric text":
                numeric[name], self.signs_[name] = counts, _usual_signs(counts)
            if kind == "category":
                self.categories_[name] = _categories(counts)
            self.kinds_.append(kind)
        _warn_left_out(left_out)
        _warn_gaps(with_gaps)
        _warn_numeric(numeric, self.signs_)
        _warn_written(written)
        self._name_features()
        return self

    def _name_features(self, targets: Sequence[str] = ()) -> None:
        """Set names and groups of the encoded columns; `targets` names the statistics."""
        encoded: list[str] = []
        groups: list[int] = []
        indicator: list[bool] = []
        for at in self.used:
            name, categories = self.names_[at], self.categories_.get(self.names_[at])
            new = [str(name)]
            if self.kinds_[at] == "date":
                new = [f"{name}_{part}" for part in _DATE_PARTS]
            if categories is not None:
                new = categories.names(str(name), targets)
            encoded += new
            groups += [at] * len(new)
            indicator += [categories is not None and categories.indicates] * len(new)
        self.feature_names_ = np.asarray(encoded, dtype=object)
        self.groups_ = np.asarray(groups, dtype=np.intp)
        self.indicator_ = np.asarray(indicator, dtype=bool)
        if not encoded:
            raise ValueError("X: expected a column of numbers or categories, got none")

    @property
    def coded(self) -> dict[int, int]:
        """Number of codes of each encoded column that has codes, by its index."""
        columns = ((at, self.categories_.get(name)) for at, name in enumerate(self.names_))
        return {
            int(np.searchsorted(self.groups_, at)): len(categories.texts) + 1
            for at, categories in columns
            if categories is not None and categories.coded
        }

    def set_statistics(self, tables: Mapping[int, _Array], targets: Sequence[str]) -> None:
        """Encode each column of codes by the rows of a table (codes, statistics).

        `targets` names the statistics.
        """
        names = {place: self.names_[self.groups_[place]] for place in tables}
        self.categories_ = self.categories_ | {
            name: Categories(self.categories_[name].texts, statistics=tables[place])
            for place, name in names.items()
        }
        self._name_features(targets)

    @property
    def indicator_groups(self) -> NDArray[np.intp]:
        """Group (D,) of each encoded column: the indicators of one column are one group."""
        starts = np.ones(len(self.groups_), dtype=bool)
        starts[1:] = (np.diff(self.groups_) > 0) | ~self.indicator_[1:]
        return np.cumsum(starts) - 1

    def refuse(self, got: str, name: str = "X") -> NoReturn:
        """Raise ValueError for samples that are no table; the message lists the columns.

        In the message, `name` is the name of the samples, and `got` describes them.
        """
        raise ValueError(
            f"{name}: expected a table with the {counted(len(self.names_), 'column')} of the fit "
            f"({show_items(self.names_, 40)}), some of which are categories, got {got}"
        )

    @property
    def used(self) -> list[int]:
        """Indices of the columns that are not left out."""
        return [at for at, kind in enumerate(self.kinds_) if kind != "left out"]

    def transform(self, X: Any, start: int = 0) -> NDArray[np.float64]:
        """Encoded columns (n, D); NaN is a missing number.

        ValueError if columns are missing, or a column of numbers has text or infinity; the message
        names it. `start` is the index of the first row in messages.

        Warns
        -----
        UserWarning
            If none of the values of a column is a category of the fit. The message names it.
        """
        refuse_lacking(self.names_, _names(X))
        used = [self.names_[at] for at in self.used]
        rows = np.arange(start, start + len(X))
        Z = self._encoded([_Column(X[name], name, rows) for name in used])
        for row, at in np.argwhere(np.isinf(Z))[:1]:
            name = self.names_[self.groups_[at]]
            raise ValueError(
                f"X: expected finite numbers, got {Z[row, at]} in row "
                f"{start + row}, column {name!r}"
            )
        return Z

    def encoded(self, columns: Sequence[_Array]) -> NDArray[np.float64]:
        """Encoded columns (n, D) of the values of the columns in use; infinite for wrong dates."""
        pairs = zip(self.used, columns, strict=True)
        named = [_Column(values, self.names_[at]) for at, values in pairs]
        return self._encoded(named, lenient=True)

    def _encoded(self, columns: Sequence[_Column], lenient: bool = False) -> NDArray[np.float64]:
        n = len(columns[0])
        out = np.empty((n, len(self.feature_names_)))
        unknown = []
        start = 0
        for at, column in zip(self.used, columns, strict=True):
            if self.kinds_[at] != "category":
                if self.kinds_[at] == "date":
                    part = column.date_parts(lenient=lenient)
                else:
                    part = column.numbers(self.signs_.get(column.name))[:, None]
                out[:, start : start + part.shape[1]] = part
                start += part.shape[1]
                continue
            categories = self.categories_[column.name]
            code, texts = category_codes(*column.distinct)
            known = categories.codes_of(texts)
            codes = known[code]
            out[:, start : start + categories.width] = categories.encoded(codes)
            start += categories.width
            if not any(text is not None for text in categories.texts):
                continue
            present = np.array([text is not None for text in texts], dtype=bool)[code]
            unseen = present & (codes == len(categories.texts))
            if present.sum() >= _MIN_UNKNOWN and unseen.sum() == present.sum():
                unknown.append((column.name, texts[int(code[np.argmax(unseen)])]))
        _warn_unknown(unknown)
        return out


def column_counts(X: Any, rows: NDArray[np.intp] | None = None) -> list[tuple[str, _Counts]]:
    """Kind of each column of a table, and number of samples of each category.

    `rows` are the indices of the rows in messages, by default 0 to n - 1.
    """
    counts: list[tuple[str, _Counts]] = []
    for name in _names(X):
        column = _Column(X[name], name, rows)
        # Numbers among objects are counted as well: another part of the table may have text.
        counts.append((column.kind, column.counts() if column.type == "O" else Counter()))
    return counts


def merge_counts(
    a: list[tuple[str, _Counts]], b: list[tuple[str, _Counts]]
) -> list[tuple[str, _Counts]]:
    """Merge the results of `column_counts` for two parts of a table; changes the counts of `a`."""
    for (_, counts), (_, others) in zip(a, b, strict=True):
        if len(counts) <= _MAX_COUNTED:
            counts.update(others)
    return [
        (min(kind, other, key=_KINDS.index), counts)
        for (kind, counts), (other, _) in zip(a, b, strict=True)
    ]


def days_of(values: _Array) -> NDArray[np.float64]:
    """Days since 1970 of dates or their texts; NaN if missing, infinite for other values."""
    return _Column(values, "").date_parts(lenient=True)[:, 0]


def _categories(counts: Mapping[str | None, int]) -> Categories:
    """Categories of a column; those that occur once are pooled."""
    repeated = [text for text, count in counts.items() if count >= _MIN_SAMPLES]
    repeated.sort(key=lambda text: (text is None, text or ""))
    if len(repeated) > _MAX_INDICATORS:
        return Categories(repeated, coded=True)
    return Categories(repeated, pools=len(repeated) < len(counts))


def _rows(X: Any, indices: NDArray[np.intp]) -> Any:
    """Rows of a table, by their indices."""
    if hasattr(X, "iloc"):
        return X.iloc[indices]
    return X.take(indices) if hasattr(X, "take") else X[indices]


def _names(X: Any) -> list[Any]:
    """Names of the columns of a table; ValueError if two are equal."""
    names = column_names(X)
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise ValueError(f"X: expected columns of different names, got two named {twice!r}")
    return names


# ---- values of a column --------------------------------------------------------------------------


class _Column:
    """The values of one column of a pandas, polars or pyarrow table, or of an array.

    `rows` are the indices of the rows in messages, by default 0 to n - 1.
    """

    def __init__(self, column: Any, name: Any, rows: NDArray[np.intp] | None = None) -> None:
        self._column, self.name, self._rows = _as_series(column), name, rows
        # Whether the column is declared to be of categories, which may be numbers.
        self.declared = type(self._column.dtype).__name__ == "CategoricalDtype"
        letter = self._column.dtype.kind
        refuse_complex(self._column.dtype, "X", f"{self._column.dtype} in column {name!r}")
        # NumPy's letter of the type; "O" for objects, text and categories.
        self.type = letter if letter in "biufmM" and not self.declared else "O"

    def __len__(self) -> int:
        return len(self._column)

    @cached_property
    def values(self) -> _Array:
        """The values; missing objects are None or NaN.

        Dates and durations are in microseconds, the resolution of Python's types.
        """
        exact = isinstance(self._column.dtype, np.dtype)
        values = np.asarray(self._column if exact else self._column.astype(object))
        return values.astype(f"{values.dtype.kind}8[us]") if values.dtype.kind in "mM" else values

    def _converted(self, dtype: Any, missing: Any) -> _Array:
        """The values in a type of NumPy, with `missing` in place of missing values."""
        if isinstance(self._column, np.ndarray):
            return self._column.astype(dtype, copy=False)
        return np.asarray(self._column.to_numpy(dtype=dtype, na_value=missing))

    @property
    def kind(self) -> str:
        """Kind of the column: "number", "date", "category", "declared" or "empty".

        "declared" stands for columns whose type is categorical, "empty" for those without values.
        """
        if self.type in "biufm":
            return "number"
        if self.type == "M":
            return "date"
        known = [value for value in self.distinct[0] if not is_missing(value)]
        if not known:
            return "empty"
        if self.declared:
            return "declared"
        if all(_is_number(value) or isinstance(value, _DURATIONS) for value in known):
            return "number"
        return "date" if all(isinstance(value, datetime.date) for value in known) else "category"

    def numbers(self, signs: str | None = None) -> NDArray[np.float64]:
        """The values as numbers, NaN where they are missing; durations in seconds.

        ValueError for values that are not numbers. With `signs`, such values are missing, and
        numbers may have separators of thousands and these signs.
        """
        if self.type in "biuf":
            return self._converted(np.float64, np.nan)
        if self.type == "m":
            durations = self._converted("timedelta64[us]", np.timedelta64("NaT"))
            return np.asarray(durations / np.timedelta64(1, "s"))
        out = np.full(len(self), np.nan)
        for row, value in enumerate(listed_values(self.values)):
            number = _number(value)
            if number is None and signs is not None:
                number = _written_number(category_text(value) or "", signs)
            if number is not None:
                out[row] = number
            elif signs is None and category_text(value) is not None:
                raise self._error("numbers", value, row)
        return out

    def date_parts(self, *, lenient: bool = False) -> NDArray[np.float64]:
        """Days since 1970, month, weekday from 0 for Monday, and hour (n, 4) of dates.

        ValueError for values that are not dates; with `lenient` their parts are infinite.
        """
        import pandas

        wrong: list[int] = []  # indices of distinct values
        if self.type == "M":
            dates = pandas.to_datetime(pandas.Series(self._column), utc=True).dt.tz_localize(None)
            times = dates.to_numpy(dtype="datetime64[us]", na_value=np.datetime64("NaT"))
        else:
            values, indices = self.distinct
            distinct = np.full(len(values), np.datetime64("NaT"), dtype="datetime64[us]")
            for i, value in enumerate(values):
                if category_text(value) is None:
                    continue
                time = _time(value)
                if time is not None:
                    distinct[i] = time
                elif lenient:
                    wrong.append(i)
                else:
                    raise self._error("dates", value, int(np.argmax(indices == i)))
            times = distinct[indices]
        days = (times - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        calendar = pandas.Series(times).dt
        parts = np.column_stack([days, calendar.month, calendar.day_of_week, calendar.hour])
        if wrong:
            parts[np.isin(indices, wrong)] = np.inf
        return parts

    def _error(self, wanted: str, value: object, row: int) -> ValueError:
        return ValueError(
            f"X: expected {wanted} in column {self.name!r}, as in the fit, got {show(value)} in "
            f"row {self._row(row)}"
        )

    def _row(self, row: int) -> int:
        return row if self._rows is None else int(self._rows[row])

    @cached_property
    def distinct(self) -> tuple[list[Any], NDArray[np.intp]]:
        """Distinct values, and the index (n,) of each value among them."""
        try:
            if isinstance(self._column.dtype, np.dtype):
                return distinct_values(self.values)
            codes, distinct = self._column.factorize(use_na_sentinel=False)
            return list(distinct), codes
        except (TypeError, NotImplementedError):
            for row, value in enumerate(self.values.tolist()):
                if getattr(value, "__hash__", None) is None:
                    raise ValueError(
                        f"X: expected numbers or text in column {self.name!r}, got {show(value)} "
                        f"in row {self._row(row)}"
                    ) from None
            raise

    def counts(self) -> _Counts:
        """Number of samples of each category."""
        codes, texts = category_codes(*self.distinct)
        return Counter(
            dict(zip(texts, np.bincount(codes, minlength=len(texts)).tolist(), strict=True))
        )


def _as_series(column: Any) -> Any:
    """A column as a pandas series or an array, of exactly the same values."""
    library = type(column).__module__.split(".")[0]
    if library in ("pandas", "numpy"):
        return column
    import pandas

    if library == "pyarrow":
        series = pandas.Series(pandas.arrays.ArrowExtensionArray(column))
        letter = series.dtype.kind
        if letter in "biu" and column.null_count:
            return series  # NumPy has no missing integers
        plain = letter in "biufmM"
        return column.to_pandas(date_as_object=False) if plain else as_objects(column.to_pylist())
    if library != "polars":
        return np.asarray(column)
    kind = type(column.dtype).__name__
    if kind in ("Categorical", "Enum"):
        return pandas.Series(column.to_list(), dtype="category")
    if kind in ("Null", "Int128", "UInt128"):  # NumPy has no such types
        return as_objects(column.to_list())
    if column.dtype.is_integer() and column.null_count():
        return pandas.Series(column.to_list(), dtype=kind)  # polars would convert to float64
    return column.to_numpy()


def _is_number(value: object) -> bool:
    return isinstance(value, (numbers.Number, np.bool_)) and not isinstance(value, complex)


def _number(value: object) -> float | None:
    """Return a number, duration, truth value or numeric text as a float; None for other values."""
    if is_missing(value):
        return None
    if _is_number(value):
        return float(value)  # type: ignore[arg-type]
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, datetime.time):
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    text = category_text(value) or ""
    if text in ("True", "False"):
        return float(text == "True")
    return float(text) if _NUMBER.fullmatch(text) else None


def _written_number(text: str, signs: str) -> float | None:
    """The number that a text with these signs, or without signs, denotes; None for other text."""
    match = _ENGLISH_NUMBER.fullmatch(text)
    if match is None or _signs(match) not in ("", signs):
        return None
    return float(_NOT_IN_NUMBERS.sub("", text))


def _signs(match: re.Match[str]) -> str:
    """Signs of currency and percent of a number."""
    return match["currency"] + (match["percent"] or "").strip()


def _usual_signs(counts: Mapping[str | None, int]) -> str:
    """The most frequent signs of the numbers in a column of text."""
    cells = Counter[str]()
    for text, count in counts.items():
        if match := _ENGLISH_NUMBER.fullmatch(text or ""):
            cells[_signs(match)] += count
        elif _NUMBER.fullmatch(text or ""):  # with an exponent
            cells[""] += count
    return max(cells, key=cells.__getitem__)


def _time(value: Any) -> np.datetime64 | None:
    """Return a date or an ISO 8601 text as a time in UTC; None for other values."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    if isinstance(value, (datetime.date, np.datetime64)):
        return np.datetime64(value, "us")  # type: ignore[no-any-return, call-overload, unused-ignore]
    match = _DATE.fullmatch(str(value).strip())
    if match is None:
        return None
    try:
        time = np.datetime64(match["local"], "us")
    except ValueError:  # no such day
        return None
    if match["sign"] is None:
        return time
    east = np.timedelta64(60 * int(match["hours"]) + int(match["minutes"] or 0), "m")
    return time - east if match["sign"] == "+" else time + east


def _kind_of_text(name: Any, counts: Mapping[str | None, int], declared: bool) -> str:
    """Kind of a column of text: "category", "date", "numeric text" or "identifier".

    Columns declared as categories are neither dates nor numbers. Whole numbers are codes of
    categories unless nearly all differ.
    """
    texts = [text for text in counts if text is not None]
    identifies = _is_identifier(counts)
    if declared:
        return "identifier" if identifies else "category"
    if texts and all(_DATE.fullmatch(text) for text in texts):
        return "date" if all(_time(text) is not None for text in texts) else "category"
    if not identifies and len(texts) <= _MAX_INDICATORS:
        return "category"
    known = sum(counts[text] for text in texts)
    if _are_written_numbers(counts, _NUMBER_SHARE * known):
        return "numeric text"
    numeric = [text for text in texts if _NUMBER.fullmatch(text)]
    fractions = [text for text in numeric if not text.lstrip("+-").isdigit()]
    if sum(counts[text] for text in numeric) >= _NUMBER_SHARE * known:
        if 2 * len(fractions) > len(numeric):
            return "numeric text"
        codes = any(text.startswith("0") and text != "0" for text in numeric)
        if identifies and len(texts) < known and not codes and not _is_named_identifier(name):
            return "numeric text"
    return "identifier" if identifies else "category"


def _are_written_numbers(counts: Mapping[str | None, int], min_cells: float) -> bool:
    """Whether at least `min_cells` cells are numbers, some of them with separators or signs.

    All numbers must have the same sign of currency or percent, or no number may have a sign.
    Separators of thousands must be used in all numbers from 1,000 on, or in none. Texts such as
    "101" and "101,205,330", all of which begin with three digits, are lists of codes.
    """
    texts = [text for text in counts if text is not None]
    matches = [match for text in texts if (match := _ENGLISH_NUMBER.fullmatch(text))]
    if all(_NUMBER.fullmatch(match.string) for match in matches):
        return False
    signs = {_signs(match) for match in matches}
    groups = [match["integer"].split(",") for match in matches]  # of digits
    n_groups = {len(digits) for digits in groups}
    ungrouped = any(len(digits) == 1 and len(digits[0]) > 3 for digits in groups)
    are_codes = len(n_groups) > 1 and all(len(digits[0]) == 3 for digits in groups)
    n_cells = sum(counts[match.string] for match in matches)
    refused = are_codes or (ungrouped and max(n_groups) > 1)
    return n_cells >= min_cells and len(signs) == 1 and not refused


def _looks_like(counts: Mapping[str | None, int]) -> str:
    """Return "numbers" or "dates" for a column of text that people would read as such, else ""."""
    texts = [text for text in counts if text is not None]
    if texts and all(_WRITTEN_DATE.fullmatch(text) for text in texts):
        return "dates"
    if len(texts) <= _MAX_INDICATORS or all(_NUMBER.fullmatch(text) for text in texts):
        return ""
    units = Counter[tuple[str, str]]()
    for text in texts:
        match = _WRITTEN_NUMBER.fullmatch(text)
        if match is None:
            return ""
        units[match["currency"], (match["unit"] or "").strip()] += 1
    codes = 2 * units["", ""] > len(texts) and any(unit.isalpha() for _, unit in units)
    return "numbers" if len(units) <= _MAX_UNITS and not codes else ""


def _is_identifier(counts: Mapping[str | None, int]) -> bool:
    """Whether nearly all values differ, as identifiers and free text do."""
    known = sum(count for text, count in counts.items() if text is not None)
    n_distinct = len(counts) - (None in counts)
    return n_distinct > _MAX_COUNTED or (
        known >= _MIN_IDENTIFIERS and n_distinct > _IDENTIFIER_SHARE * known
    )


# ---- warnings ------------------------------------------------------------------------------------


_LEFT_OUT = {
    "identifier": "columns whose values nearly all differ",
    "empty": "columns without any value",
}


def _warn_left_out(left_out: Mapping[str, Sequence[Any]]) -> None:
    """Warn of columns that are left out, by the reason."""
    texts = [
        f"{what} ({', '.join(map(repr, left_out[reason]))})"
        for reason, what in _LEFT_OUT.items()
        if reason in left_out
    ]
    if texts:
        warn_caller(
            f"X: {' and '.join(texts)} are left out; drop them, or derive numbers or categories "
            "from them first",
            UserWarning,
        )


def _warn_gaps(names: Sequence[Any]) -> None:
    """Warn of columns of which only the places of missing cells are used."""
    if names:
        warn_caller(
            f"X: of columns whose values nearly all differ ({', '.join(map(repr, names))}), only "
            "whether a cell is missing is used; derive numbers or categories from their values",
            UserWarning,
        )


def _warn_numeric(
    numeric: Mapping[Any, Mapping[str | None, int]], signs: Mapping[Any, str]
) -> None:
    """Warn of columns of text that become numbers, and of their cells that are not numbers."""
    for name, counts in numeric.items():
        written = [text for text in counts if text is not None and not _NUMBER.fullmatch(text)]
        others = [text for text in written if _written_number(text, signs[name]) is None]
        read = next((x for x in written if _written_number(x, signs[name]) is not None), None)
        example = "" if read is None else f" such as {show(read)}"
        n_missing = counts.get(None, 0) + sum(counts[text] for text in others)
        missing = f", of which {n_missing} are missing" if n_missing else ""
        missing += f" (such as {show(others[0])})" if others else ""
        warn_caller(
            f"X: column {name!r} holds text that looks like numbers{example}, and is read as "
            f"numbers{missing}; convert it first to be sure",
            UserWarning,
        )


def _warn_written(written: Mapping[str, Mapping[Any, str]]) -> None:
    """Warn of columns of text that look like numbers or dates but are not read as such."""
    advice = {
        "numbers": "convert them first, such as '1,250.50 kg' to 1250.5",
        "dates": "write them as 2024-12-31, or convert them first",
    }
    for what, columns in written.items():
        if columns:
            shown = ", ".join(f"{name!r} ({show(text)})" for name, text in columns.items())
            warn_caller(
                f"X: columns of text that look like {what} are not read as {what}: {shown}; "
                f"{advice[what]}",
                UserWarning,
            )


def _warn_unknown(unknown: Sequence[tuple[Any, str | None]]) -> None:
    """Warn of columns without any category of the fit, given by name and first value."""
    for name, text in unknown:
        warn_caller(
            f"X: none of the values of column {name!r} is a category of the fit (the first is "
            f"{show(text)}); check how they are written",
            UserWarning,
        )

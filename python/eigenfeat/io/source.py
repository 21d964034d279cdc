"""Base class of files of samples: options, columns, labels, and samples in chunks."""

from __future__ import annotations

import difflib
import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import DType, Labels
from eigenfeat._base.validation import show, show_items
from eigenfeat.io.errors import MISSING_ENTRY, MISSING_LABEL, BadRowError, OptionError, not_finite

__all__ = [
    "Chunk",
    "ColumnChoice",
    "Options",
    "Source",
    "kind_of",
    "kind_of_floats",
    "kind_of_texts",
    "labels_of_array",
    "typed_labels",
]

Mask = npt.NDArray[np.bool_]
_TYPES: dict[str, Any] = {"int": np.int64, "uint": np.uint64, "float": np.float64, "bool": np.bool_}
_EXPECTED = {
    "int": "a whole number of 64 bits",
    "uint": "a whole number >= 0 of 64 bits",
    "float": "a number",
    "bool": "true or false",
}
_MAX_NAMES = 3  # names of columns in an error
_MAX_ADVISED = 20  # columns in the advice of an error
_MAX_LABEL_CHARACTERS = 1000  # an array of text has room for the longest text in each entry
_Typed = tuple[Labels, "Mask | None"]


@dataclass(frozen=True)
class Options:
    """Checked arguments of `open_rows`."""

    target: str | int | None
    columns: tuple[str | int, ...] | None
    drop: tuple[str | int, ...]
    categorical: tuple[str | int, ...]
    na_values: tuple[str, ...]
    keep_default_na: bool
    skip_bad: bool
    mark_bad: bool
    missing: bool
    labels: str
    format: str | None
    delimiter: str | None
    header: bool | None
    encoding: str | None
    decimal: str
    comment: str | None
    n_features: int | None
    zero_based: bool | None
    dtype: str | None
    block_rows: int | None


@dataclass(frozen=True)
class ColumnChoice:
    """Places of the feature columns and of the target column among all columns of a file.

    ``unclear`` are features that the options do not name, with an empty or a repeated name.
    """

    features: Sequence[int]
    target: int | None
    unclear: tuple[int, ...] = ()
    categorical: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, path: Path, names: Sequence[str], options: Options, indexes: Collection[int] = ()
    ) -> ColumnChoice:
        """Find the columns that the options name; OptionError for a missing or repeated name.

        Columns in `indexes` store the index of a data frame; they are features only if the options
        name them.
        """
        places: dict[str, list[int]] = {}
        for j, name in enumerate(names):
            places.setdefault(name, []).append(j)

        def all_of(column: str | int, option: str) -> list[int]:
            if isinstance(column, str) and column in places:
                return places[column]
            try:
                return [range(len(names))[int(column)]]
            except (ValueError, IndexError):
                raise OptionError(option, _no_column(path, names, column)) from None

        dropped = {place for column in options.drop for place in all_of(column, "drop")}

        def place_of(column: str | int, option: str) -> int:
            found = all_of(column, option)
            place, *others = [j for j in found if j not in dropped] or found
            if others:
                what = f"the number of a column of {path}, in which {show(column)} occurs"
                raise OptionError(option, f"expected {what} {1 + len(others)} times")
            return place

        target = None if options.target is None else place_of(options.target, "target")
        left_out = dropped | {target}
        if options.columns is not None:
            chosen = [place_of(column, "columns") for column in options.columns]
            if target in chosen:
                what = f"expected a column that is not a feature, got {options.target!r}"
                raise OptionError("target", what)
            if len({*chosen} - left_out) < len(chosen):
                what = "expected distinct columns without dropped columns"
                raise OptionError("columns", f"{what}, got {list(options.columns)!r}")
            unclear: list[int] = []
        else:
            left_out.update(indexes)
            chosen = [j for j in range(len(names)) if j not in left_out]
            count = Counter(names[j] for j in chosen)
            unclear = [j for j in chosen if not names[j].strip() or count[names[j]] > 1]
        if not chosen:
            what = f"{path}: expected at least one feature column, got none"
            if options.columns is None and not options.drop:
                raise ValueError(what)
            raise OptionError("drop" if options.columns is None else "columns", what)
        coded = [place for column in options.categorical for place in all_of(column, "categorical")]
        return cls(tuple(chosen), target, tuple(unclear), tuple(coded))


def _shown(places: Sequence[int]) -> str:
    return show_items(places, 60)


def _no_column(path: Path, names: Sequence[str], column: str | int) -> str:
    matches = difflib.get_close_matches(str(column), names, 1)
    hint = f" (did you mean {matches[0]!r}?)" if matches else ""
    listed = ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:3])}, ..., {names[-1]}"
    return f"expected a column of {path} ({listed}), got {column!r}{hint}"


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive samples of a file.

    The features `X` are a matrix, or a list of columns, which may have text; missing numbers are
    NaN. Masks are None if no sample is bad.
    """

    start: int  # number of the first sample in the file, from 0, bad samples included
    n: int  # number of samples
    X: Any
    y: Labels | None = None
    unlabelled: Mask | None = None  # samples without a label of the right type
    bad: Mask | None = None  # unreadable samples
    given: Any = None  # labels as they are in the file
    fraction: float | None = None  # of the file, up to the end of the chunk


class Source(ABC):
    """A file: its columns, and its samples in chunks. The file is closed between two passes."""

    format: ClassVar[str]
    sparse: ClassVar[bool] = False
    unit: ClassVar[str] = "row"  # "row" or "line", in errors

    path: Path
    named: bool = True  # whether the file names its columns
    names: Sequence[str]  # names of all columns
    types: Sequence[str]  # names of the columns' types in descriptions of files
    kinds: Sequence[str]  # "number", "bool", "text", "date" or "other"
    choice: ColumnChoice
    dtype: DType  # of the features in the file: float32 or float64
    mixed: Mapping[int, str] = {}  # columns that mix numbers and text, with an example of the text
    index_left_out: bool = False  # whether the first column, without a name, has row numbers
    thousands: Collection[int] = ()  # columns of numbers with separators of thousands
    label_kind: str | None = None  # as the option `labels`, or "uint"; None without labels
    n_rows: int | None = None  # number of samples, if the file stores it
    facts: dict[str, object]  # properties of the file's format, in descriptions of files

    def __init__(self, path: Path, options: Options, keys: Mapping[str, str]) -> None:
        """Open a file; `keys` maps columns to the values that the names of its folders give."""
        self.path, self._options, self._keys, self.facts = path, options, keys, {}

    @property
    def feature_names(self) -> Sequence[str]:
        """Names of the features."""
        return [self.names[index] for index in self.choice.features]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.choice.features)

    def check_features(self, text_columns: Collection[int]) -> None:
        """ValueError for features without a unique name, or of a type that is not accepted.

        Columns that are not features are not checked. `text_columns` may be text or dates.
        """
        names = self.names
        if self.choice.unclear:
            by_name: dict[str, list[int]] = {}
            for j in self.choice.unclear:
                by_name.setdefault(names[j].strip(), []).append(j)
            nameless = by_name.pop("", [])
            repeated = [j for places in by_name.values() for j in places[1:]]
            got = [f"{show(name)} for columns {_shown(js)}" for name, js in by_name.items()]
            got = [f"no name for column {_shown(nameless)}"] * bool(nameless) + got
            advice = ",".join(map(str, sorted(nameless + repeated)[:_MAX_ADVISED]))
            raise ValueError(
                f"{self.path}: expected a distinct name for each column, got "
                f"{', '.join(got[:_MAX_NAMES])}; leave such columns out with drop (--drop "
                f"{advice}), or choose the features by their numbers in columns (--columns)"
            )
        for j in () if self.sparse else self.choice.features:
            kind, advice = self.kinds[j], f"leave it out with drop (--drop {names[j]})"
            if kind == "other":
                what = f"expected numbers or text, got {show(self.types[j])[1:-1]}; {advice}"
            elif kind in ("text", "date") and j not in text_columns:
                advice += " or name the columns of numbers in columns (--columns)"
                what = f"expected numbers, got {'text' if kind == 'text' else 'dates'}; {advice}"
            else:
                continue
            raise ValueError(f"{self.path}: column {names[j]!r}: {what}")

    def identified(self, places: Sequence[int]) -> list[str | int]:
        """The name of each column, or its place if the name is not unique.

        Names identify columns of other files, where their places may differ.
        """
        count = Counter(self.names) if self.named else Counter[str]()
        return [self.names[j] if count[self.names[j]] == 1 else j for j in places]

    @property
    def target_name(self) -> str:
        """Name of the target column."""
        return "y" if self.choice.target is None else self.names[self.choice.target]

    @abstractmethod
    def chunks(self, skip: int) -> Iterator[Chunk]:
        """Yield chunks, starting with the chunk of sample `skip` or with an earlier chunk."""

    def complaint(self, row: int, column: int | None, value: Any, dtype: DType) -> BadRowError:
        """Return the error of a bad sample, whose `column` (None: label) has this value."""
        if column is None:
            absent = value is None or value != value or value == ""
            what = MISSING_LABEL if absent else self.unfit_label(value)
            return BadRowError(self.path, self.unit, row, self.target_name, what)
        what = MISSING_ENTRY
        if isinstance(value, str):
            what = f"expected a date, got {show(value)}"
        elif value == value:
            what = not_finite(value, dtype)
        return BadRowError(self.path, self.unit, row, self.feature_names[column], what)

    def unfit_label(self, value: object) -> str:
        """Return the message for a label of another kind."""
        expected = _EXPECTED.get(str(self.label_kind), "a label")
        earlier = " like earlier labels" if self._options.labels == "auto" else ""
        return f"expected {expected}{earlier}, got {show(value)}"

    def files(self) -> list[Path]:
        """All files that features and labels come from."""
        return [self.path]


# ---- labels --------------------------------------------------------------------------------------

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WHOLE = r"^[+-]?[0-9]{1,4000}$"


def kind_of(dtype: DType, asked: str) -> str:
    """Kind of the labels of an array."""
    own = {"b": "bool", "i": "int", "u": "uint" if dtype.itemsize == 8 else "int", "f": "float"}
    kind = own.get(dtype.kind, "str")
    return kind if asked == "auto" or (asked == "int" and kind == "uint") else asked


def kind_of_texts(texts: Iterable[str], asked: str) -> str:
    """Kind of labels from their texts without surrounding blanks."""
    known = [*texts]
    kinds = {"auto": ("int", "uint", "float", "bool"), "int": ("int", "uint")}.get(asked, ())
    for kind in kinds if known else ():
        if all(_as_label(text, kind) is not None for text in known):
            return kind
        if kind == "uint" and all(re.match(_WHOLE, text) for text in known):
            break  # whole numbers of more than 64 bits, which may be equal as floats
    return "str" if asked == "auto" else asked


def kind_of_floats(values: Labels, asked: str) -> str:
    """Kind of the first labels in a matrix of floats; whole numbers are integers."""
    if asked != "auto" or values.dtype.kind != "f":
        return kind_of(values.dtype, asked)
    finite = bool(len(values)) and bool(np.isfinite(values).all())
    return "int" if finite and np.array_equal(values, np.rint(values)) else "float"


def _as_label(value: Any, kind: str) -> Any:
    """A label of this kind; None if the value is missing or of another kind."""
    text = value.strip() if isinstance(value, str) else ""
    if value is None or value != value or (isinstance(value, str) and not text):
        return None
    if kind == "str":
        return text or str(value)
    if text and kind == "bool":
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
    if text:
        if not re.match(NUMBER if kind == "float" else _WHOLE, text):
            return None
        value = float(text) if kind == "float" else int(text)
    if kind == "bool":
        return bool(value) if value in (0, 1) else None
    if kind == "float":
        return float(value) if math.isfinite(value) else None
    low, high = (0, 2**64) if kind == "uint" else (-(2**63), 2**63)
    return int(value) if low <= value < high and value == int(value) else None


def typed_labels(distinct: Sequence[Any], codes: npt.NDArray[Any], kind: str) -> _Typed:
    """Labels ``distinct[codes]`` in the type of `kind`, and a mask of labels of other kinds.

    The mask is None if all labels are of the kind. ValueError if a label is a long text.
    """
    longest = max((len(value) for value in distinct if isinstance(value, str)), default=0)
    if longest > _MAX_LABEL_CHARACTERS:
        raise ValueError(
            f"expected labels of at most {_MAX_LABEL_CHARACTERS:,} characters, got {longest:,} "
            "characters, or a quote that is not closed"
        )
    labels = [_as_label(value, kind) for value in distinct]
    placeholder = "" if kind == "str" else 0
    filled = [placeholder if label is None else label for label in labels] or [placeholder]
    wrong: Mask = np.array([label is None for label in labels] or [True], dtype=bool)[codes]
    values = np.array(filled, dtype=_TYPES.get(kind, np.str_))[codes]
    return values, wrong if wrong.any() else None


def labels_of_array(values: Labels, kind: str) -> _Typed:
    """The labels of an array of numbers or text."""
    values = np.ascontiguousarray(values)
    if kind != "str" and values.dtype.kind in "biuf":
        with np.errstate(invalid="ignore"):
            converted = values.astype(_TYPES[kind])
        if np.array_equal(converted, values) and np.isfinite(values).all():
            return converted, None
    distinct, codes = np.unique(values, return_inverse=True)
    if distinct.dtype.kind == "S":
        distinct = distinct.astype(str)
    return typed_labels(distinct.tolist(), codes, kind)

"""Options of a reader, the columns that they choose, and the types of labels."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import DType, Floats, Labels
from eigenfeat._base.validation import show
from eigenfeat.tables.errors import BadRowError, OptionError, unfit_label, unfit_value

__all__ = [
    "LABEL_KINDS",
    "MOST_CHARACTERS",
    "Choice",
    "Chunk",
    "ColumnNumbers",
    "Options",
    "Source",
    "typed_labels",
    "whole_labels",
]

Mask = npt.NDArray[np.bool_]
LABEL_KINDS = ("auto", "int", "float", "bool", "str", "none")
MOST_CHARACTERS = 1000  # of a label: arrays of text are as wide as the longest
_TYPES = {"int": np.int64, "uint": np.uint64, "float": np.float64, "bool": np.bool_}


@dataclass(frozen=True)
class Options:
    """Arguments of `open_rows`, checked.

    ``missing`` says whether empty cells are NaN or bad, ``categories`` which columns, by names or
    places, are text to the model that reads them.
    """

    target: str | int | None = None
    columns: tuple[str | int, ...] | None = None
    drop: tuple[str | int, ...] = ()
    skip_bad: bool = False
    mark_bad: bool = False
    missing: bool = False
    labels: str = "auto"
    format: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    encoding: str | None = None
    decimal: str = "."
    comment: str | None = None
    x_name: str = "X"
    y_name: str = "y"
    n_features: int | None = None
    zero_based: bool | None = None
    dtype: str | None = None
    block_rows: int | None = None
    categories: tuple[str | int, ...] = ()
    any_type: bool = False  # columns may be no numbers, and without names: nobody reads them


@dataclass(frozen=True)
class Choice:
    """Places of the feature columns and of the target column among all columns of a file."""

    features: Sequence[int]
    target: int | None

    @classmethod
    def of(
        cls,
        path: Path,
        names: Sequence[str],
        options: Options,
        *,
        indexes: frozenset[int] = frozenset(),
        target: bool = True,
    ) -> Choice:
        """Find the columns that the options name; OptionError if one is not there, or twice.

        Columns in `indexes` number the rows: they are features only if they are asked for.
        """
        find = _Finder(path, names)
        goal = find(options.target, "target") if target and options.target is not None else None
        left_out = {place for column in options.drop for place in find.all(column)} | {goal}
        if options.columns is None:
            chosen = [j for j in range(len(names)) if j not in left_out and j not in indexes]
            if not options.any_type:
                find.check_names(chosen)
        else:
            chosen = [find(column, "columns") for column in options.columns]
            if goal in chosen or len(set(chosen)) < len(chosen) or left_out & {*chosen}:
                raise OptionError(
                    "columns",
                    "expected distinct columns without the target and those dropped, "
                    f"got {list(options.columns)!r}",
                )
        if not chosen:
            what = f"{path}: expected at least one feature column, got none"
            if options.columns is None and not options.drop:
                raise ValueError(what)
            raise OptionError("drop" if options.columns is None else "columns", what)
        return cls(tuple(chosen), goal)


class _Finder:
    """Places of columns by their names or numbers."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self._path, self._names = path, names
        numbered = isinstance(names, ColumnNumbers)
        self._place = {} if numbered else {n: j for j, n in reversed([*enumerate(names)])}
        self._count = Counter() if numbered else Counter(names)

    def __call__(self, column: str | int, option: str) -> int:
        if column in self._place:
            if self._count[str(column)] > 1:
                raise OptionError(
                    option,
                    f"expected the number of a column of {self._path}, in which "
                    f"{show(column)} occurs {self._count[str(column)]} times",
                )
            return self._place[str(column)]
        try:
            index = int(column)
        except ValueError:
            index = len(self._names)
        if not -len(self._names) <= index < len(self._names):
            raise OptionError(option, self._no_such(column))
        return index % len(self._names)

    def all(self, column: str | int) -> list[int]:
        """All columns of a name."""
        if self._count.get(str(column), 0) > 1 and isinstance(column, str):
            return [j for j, name in enumerate(self._names) if name == column]
        return [self(column, "drop")]

    def check_names(self, chosen: list[int]) -> None:
        """ValueError if features that nobody has asked for have no name, or that of another."""
        wrong = [j for j in chosen if not self._names[j].strip() or self._count[self._names[j]] > 1]
        if wrong and self._count:
            what = show([self._names[j] for j in wrong[:4]])
            raise ValueError(
                f"{self._path}: expected distinct column names, got {what} for the columns "
                f"{show(wrong)[1:-1]}; name the features in columns (--columns), or leave these "
                f"out with drop (--drop {','.join(map(str, wrong[:4]))})"
            )

    def _no_such(self, column: str | int) -> str:
        names = self._names
        near = difflib.get_close_matches(str(column), names, 1) if self._count else []
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        few = ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:3])}, ..., {names[-1]}"
        return f"expected a column of {self._path} ({few}), got {column!r}{hint}"


@dataclass(frozen=True, repr=False)
class ColumnNumbers(Sequence[str]):
    """The names "0", "1", ... of so many columns, none of which is stored.

    One wild index of a sparse row, damaged or not, makes billions of columns.
    """

    n_columns: int

    def __len__(self) -> int:
        return self.n_columns

    def __getitem__(self, index: Any) -> Any:
        chosen = range(self.n_columns)[index]
        return [str(j) for j in chosen] if isinstance(chosen, range) else str(chosen)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ColumnNumbers):
            return self.n_columns == other.n_columns
        return isinstance(other, (list, tuple)) and len(other) == len(self) and self[:] == [*other]

    def __repr__(self) -> str:
        return repr(self[:]) if self.n_columns <= 8 else f"['0', '1', ..., '{self.n_columns - 1}']"


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive rows of a file.

    Attributes
    ----------
    start : int
        Number of the first row in the file, from 0; bad rows are counted.
    n : int
        Number of rows.
    columns : list of (n,) arrays, or None
        Features column by column: numbers, NaN where a cell is empty; objects if they are text.
    matrix : (n, d) array or sparse matrix, or None
        Features, in place of the columns.
    y : (n,) array or None
        Labels.
    unlabelled, bad : (n,) arrays of bool, or None
        Rows without a label of the right type, and those that cannot be read; None: none.
    label_of : callable, or None
        The label of a row as it is in the file.
    """

    start: int
    n: int
    columns: list[npt.NDArray[Any]] | None = None
    matrix: Any = None
    y: Labels | None = None
    unlabelled: Mask | None = None
    bad: Mask | None = None
    label_of: Callable[[int], Any] | None = None

    def write(self, rows: slice, out: Floats) -> None:
        """Write the features of some rows to `out`, (m, d)."""
        with np.errstate(over="ignore", invalid="ignore"):  # NaN that signals
            if self.columns is None:
                out[:] = self.matrix[rows]
                return
            # Columns of a tile share the cache lines of its rows, unless they are contiguous.
            size = 4096 if out.flags.c_contiguous else max(len(out), 1)
            for first in range(0, len(out), size):
                tile = out[first : first + size]
                start = rows.start + first
                for j, column in enumerate(self.columns):
                    tile[:, j] = column[start : start + len(tile)]


class Source(ABC):
    """One file: its columns, and its rows in chunks. Holds no file open between two passes."""

    format: ClassVar[str]
    sparse: ClassVar[bool] = False
    columnar: ClassVar[bool] = False  # whether it stores columns, and not rows

    path: Path
    named: bool = True  # whether the file names its columns
    names: Sequence[str]  # of all columns
    types: Sequence[str]  # theirs, for people
    kinds: Sequence[str]  # "number", "bool", "text", "date" or "other"
    choice: Choice
    dtype: DType  # that the features have in the file: float32 or float64
    label_kind: str | None = None  # of LABEL_KINDS, or "uint"; None without labels
    n_rows: int | None = None  # where the file says so
    unit: ClassVar[str] = "row"  # what errors count

    @property
    def feature_names(self) -> Sequence[str]:
        """Names of the features."""
        return [self.names[index] for index in self.choice.features]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.choice.features)

    @property
    def target_name(self) -> str:
        """Name of the target column."""
        return "y" if self.choice.target is None else self.names[self.choice.target]

    @abstractmethod
    def chunks(self, skip: int) -> Iterator[Chunk]:
        """Chunks from the one on that holds row `skip`."""

    def complaint(
        self, row: int, column: int | None, value: Any, dtype: DType, *, missing: bool
    ) -> BadRowError:
        """Say what is wrong with a row, at a feature or (None) at the label, whose value is given.

        `missing` says whether empty cells are among what is wrong.
        """
        if column is None:
            absent = value is None or value != value or value == ""
            what = "expected a label, got a missing value"
            if not absent:
                what = unfit_label(value, str(self.label_kind))
            return BadRowError(self.path, self.unit, row, self.target_name, what)
        what = "expected a finite number, got NaN or a missing value"
        if value == value:
            what = unfit_value(value, dtype)
        return BadRowError(self.path, self.unit, row, self.feature_names[column], what)

    def fraction(self, row: int) -> float | None:
        """Part of the file that lies before a row, from 0 to 1, if known."""
        return None if self.n_rows is None else row / max(self.n_rows, 1)

    def files(self) -> list[Path]:
        """All files that rows and labels come from."""
        return [self.path]

    def facts(self) -> dict[str, object]:
        """What else the format knows of the file, for people."""
        return {}


# ---- labels --------------------------------------------------------------------------------------


def whole_labels(values: Labels) -> str:
    """Kind of the first labels of a matrix of floats, in which whole numbers are integers."""
    if values.dtype.kind != "f":
        return {"b": "bool", "i": "int", "u": "uint"}.get(values.dtype.kind, "str")
    finite = bool(len(values)) and bool(np.isfinite(values).all())
    return "int" if finite and np.array_equal(values, np.rint(values)) else "float"


def typed_labels(values: Labels, kind: str) -> tuple[Labels, Mask | None]:
    """Labels as the kind's type, and which of them are not fit for it (None: all are)."""
    if kind == "str":
        return (values if values.dtype.kind == "U" else values.astype(str)), None
    if values.dtype.kind not in "biuf":
        return np.zeros(len(values), _TYPES[kind]), np.ones(len(values), dtype=bool)
    wrong: Mask = np.zeros(len(values), dtype=bool)
    if values.dtype.kind == "f":
        wrong |= ~np.isfinite(values)
        if kind != "float":
            low = 0.0 if kind == "uint" else -(2.0**63)
            high = 2.0**64 if kind == "uint" else 2.0**63
            wrong |= ~((values == np.rint(values)) & (values >= low) & (values < high))
    if kind == "bool" and values.dtype.kind != "b":
        wrong |= (values != 0) & (values != 1)
    if kind == "int" and values.dtype.kind == "u":
        wrong |= values > np.uint64(2**63 - 1)
    if kind == "uint" and values.dtype.kind == "i":
        wrong |= values < 0
    if wrong.any():
        values = np.where(wrong, values.dtype.type(0), values)
    return values.astype(_TYPES[kind]), wrong if wrong.any() else None

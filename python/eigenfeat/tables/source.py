"""One file of samples: the options that it is read with, its columns, and its samples in chunks."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import DType, Labels
from eigenfeat._base.validation import show
from eigenfeat.tables.errors import MISSING_LABEL, BadRowError, OptionError, unfit

__all__ = ["LABEL_KINDS", "Choice", "Chunk", "Options", "Source", "typed_labels", "whole_labels"]

Mask = npt.NDArray[np.bool_]
LABEL_KINDS = ("auto", "int", "float", "bool", "str", "none")
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

        Columns in `indexes` number the samples: they are features only if they are asked for.
        """
        places: dict[str, list[int]] = {}
        for j, name in enumerate(names):
            places.setdefault(name, []).append(j)

        def all_of(column: str | int, option: str) -> list[int]:
            if isinstance(column, str) and column in places:
                return places[column]
            try:
                index = int(column)
            except ValueError:
                index = len(names)
            if not -len(names) <= index < len(names):
                raise OptionError(option, _no_such(path, names, column))
            return [index % len(names)]

        def one(column: str | int, option: str) -> int:
            place, *others = all_of(column, option)
            if others:
                raise OptionError(
                    option,
                    f"expected the number of a column of {path}, in which {show(column)} occurs "
                    f"{1 + len(others)} times",
                )
            return place

        goal = one(options.target, "target") if target and options.target is not None else None
        dropped = {place for column in options.drop for place in all_of(column, "drop")}
        if options.columns is None:
            left_out = dropped | indexes | {goal}
            chosen = [j for j in range(len(names)) if j not in left_out]
            wrong = [j for j in chosen if not names[j].strip() or len(places[names[j]]) > 1]
            if wrong and not options.any_type:
                raise ValueError(
                    f"{path}: expected distinct column names, got "
                    f"{show([names[j] for j in wrong[:4]])} for the columns {show(wrong)[1:-1]}; "
                    "name the features in columns (--columns), or leave these out with drop "
                    f"(--drop {','.join(map(str, wrong[:4]))})"
                )
        else:
            chosen = [one(column, "columns") for column in options.columns]
            if len({*chosen} - dropped - {goal}) < len(options.columns):
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


def _no_such(path: Path, names: Sequence[str], column: str | int) -> str:
    near = difflib.get_close_matches(str(column), names, 1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    few = ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:3])}, ..., {names[-1]}"
    return f"expected a column of {path} ({few}), got {column!r}{hint}"


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive samples of a file.

    Attributes
    ----------
    start : int
        Number of the first sample in the file, from 0; bad ones are counted.
    n : int
        Number of samples.
    X : list of (n,) arrays, (n, d) array, or sparse matrix
        Features: NaN where a number is missing; a list of columns may have objects, which are text.
    y : (n,) array or None
        Labels.
    unlabelled, bad : (n,) arrays of bool, or None
        Samples without a label of the right type, and those that cannot be read; None: none.
    label_of : callable, or None
        The label of a sample as it is in the file.
    fraction : float or None
        Part of the file up to the end of the chunk, if known.
    """

    start: int
    n: int
    X: Any
    y: Labels | None = None
    unlabelled: Mask | None = None
    bad: Mask | None = None
    label_of: Callable[[int], Any] | None = None
    fraction: float | None = None


class Source(ABC):
    """One file: its columns, and its samples in chunks. Holds no file open between two passes."""

    format: ClassVar[str]
    sparse: ClassVar[bool] = False
    unit: ClassVar[str] = "row"  # what errors count

    path: Path
    named: bool = True  # whether the file names its columns
    names: Sequence[str]  # of all columns
    types: Sequence[str]  # theirs, for people
    kinds: Sequence[str]  # "number", "bool", "text", "date" or "other"
    choice: Choice
    dtype: DType  # that the features have in the file: float32 or float64
    label_kind: str | None = None  # of LABEL_KINDS, or "uint"; None without labels
    n_rows: int | None = None  # where the file says so
    facts: dict[str, object]  # what else the format knows of the file, for people

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
        """Chunks from the one on that holds sample `skip`, or from an earlier one on."""

    def complaint(
        self, row: int, column: int | None, value: Any, dtype: DType, *, missing: bool
    ) -> BadRowError:
        """Say what is wrong with a sample, at a feature or (None) at the label, of this value.

        `missing` says whether missing values are allowed.
        """
        if column is None:
            absent = value is None or value != value or value == ""
            what = MISSING_LABEL if absent else unfit(value, str(self.label_kind))
            return BadRowError(self.path, self.unit, row, self.target_name, what)
        what = "expected a finite number, got NaN or a missing value"
        if value == value:
            what = unfit(value, dtype)
        return BadRowError(self.path, self.unit, row, self.feature_names[column], what)

    def files(self) -> list[Path]:
        """All files that features and labels come from."""
        return [self.path]


# ---- labels that are numbers ---------------------------------------------------------------------


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
            low, high = (0.0, 2.0**64) if kind == "uint" else (-(2.0**63), 2.0**63)
            wrong |= ~((values == np.rint(values)) & (values >= low) & (values < high))
    if kind == "bool" and values.dtype.kind != "b":
        wrong |= (values != 0) & (values != 1)
    if kind == "int" and values.dtype.kind == "u":
        wrong |= values > np.uint64(2**63 - 1)
    if kind == "uint" and values.dtype.kind == "i":
        wrong |= values < 0
    values = np.where(wrong, values.dtype.type(0), values)
    return values.astype(_TYPES[kind]), wrong if wrong.any() else None

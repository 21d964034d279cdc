"""Interface of a file format: columns, and chunks of rows from any restart point."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import DType, Floats, Labels
from eigenfeat.tables.damage import UnpackedFile
from eigenfeat.tables.errors import BadRowError, OptionError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = [
    "LABEL_KINDS",
    "Choice",
    "Chunk",
    "ColumnNumbers",
    "Options",
    "Source",
    "label_kind",
    "line_chunks",
    "open_bytes",
    "typed_labels",
]

_MOST_WHOLE = 2.0**63  # from which on floats are no int64
LABEL_KINDS = ("auto", "int", "float", "bool", "str", "none")
_Labels = tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]


@dataclass(frozen=True)
class Options:
    """Options for reading files; validated arguments of `open_rows`."""

    target: str | int | None = None
    columns: tuple[str | int, ...] | None = None
    drop: tuple[str | int, ...] = ()
    skip_bad: bool = False
    mark_bad: bool = False
    labels: str = "auto"
    delimiter: str | None = None
    header: bool | None = None
    x_name: str = "X"
    y_name: str = "y"
    n_features: int | None = None
    zero_based: bool | None = None
    dtype: str | None = None  # as asked for
    any_type: bool = False  # columns may be no numbers: nobody is going to read them


@dataclass(frozen=True)
class Choice:
    """Feature columns and target column of a file."""

    features: Sequence[int]
    target: int | None

    @classmethod
    def of(
        cls, path: Path, names: Sequence[str], options: Options, *, target: bool = True
    ) -> Choice:
        """Find the columns that the options name; ValueError if one is not there."""
        position = {name: index for index, name in enumerate(names)}

        def find(column: str | int, option: str) -> int:
            if column in position:
                return position[str(column)]
            try:
                index = int(column)
            except ValueError:
                index = len(names)
            if not -len(names) <= index < len(names):
                raise OptionError(option, _no_such_column(path, names, column))
            return index % len(names)

        wanted = options.target if target else None
        goal = None if wanted is None else find(wanted, "target")
        left_out = {find(column, "drop") for column in options.drop} | {goal}
        if options.columns is None:
            chosen = [index for index in range(len(names)) if index not in left_out]
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


def _no_such_column(path: Path, names: Sequence[str], column: str | int) -> str:
    near = difflib.get_close_matches(str(column), names, 1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    few = ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:3])}, ..., {names[-1]}"
    return f"expected a column of {path} ({few}), got {column!r}{hint}"


@dataclass(frozen=True, repr=False)
class ColumnNumbers(Sequence[str]):
    """The names "0", "1", ... of so many columns, none of which is kept.

    One wild index of a sparse row, damaged or not, makes billions of columns.
    """

    n_columns: int

    def __len__(self) -> int:
        return self.n_columns

    def __getitem__(self, index: Any) -> Any:
        found = range(self.n_columns)[index]
        return [str(j) for j in found] if isinstance(found, range) else str(found)

    def __repr__(self) -> str:
        return repr(self[:]) if self.n_columns <= 8 else f"['0', '1', ..., '{self.n_columns - 1}']"


class Chunk(ABC):
    """Rows of a file that were parsed, or can be read, together.

    Attributes
    ----------
    offset : int
        The restart point from which they can be found again: a byte, a row group, a batch, or 0.
    first : int
        Rows between the restart point and this chunk's first.
    dropped : int
        Bad rows that parsing has left out.
    lines : bytes
        The text that they were parsed from, of formats that are text.
    """

    offset: int = 0
    first: int = 0
    dropped: int = 0
    lines: bytes = b""

    @abstractmethod
    def __len__(self) -> int:
        """Rows."""

    @abstractmethod
    def labels(self, rows: slice) -> _Labels:
        """Labels of some rows, and which of them are fit (None: all)."""

    def value(self, row: int, column: int) -> float:
        """One feature of a dense row; NaN where it is missing."""
        raise NotImplementedError("sparse rows")


class DenseChunk(Chunk):
    """A chunk whose features fill rows of an array."""

    @abstractmethod
    def write(self, rows: slice, out: Floats) -> None:
        """Write the features of some rows to `out`, (m, d)."""


class SparseChunk(Chunk):
    """A chunk whose features are a CSR matrix."""

    @abstractmethod
    def matrix(self, rows: slice) -> csr_matrix:
        """Return the features of some rows, which are finite."""


class Source(ABC):
    """One file: its columns, and its rows in chunks. Holds no file open between two passes."""

    format: ClassVar[str]
    sparse: ClassVar[bool] = False
    columnar: ClassVar[bool] = False  # whether columns are read, and not rows

    path: Path
    names: Sequence[str]  # of all columns
    types: list[str]  # theirs, for people; one for all of `ColumnNumbers`
    choice: Choice
    dtype: DType  # that the features have in the file: float32 or float64
    label_kind: str | None = None  # of LABEL_KINDS but "auto"; None without a target
    n_rows: int | None = None  # where the file says so

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
    def chunks(self, offset: int, skip: int) -> Iterator[Chunk]:
        """Chunks from the one on that holds row `skip` after a restart point."""

    @abstractmethod
    def complaint(self, chunk: Chunk, row: int, column: int | None, dtype: DType) -> BadRowError:
        """Say what is wrong with a row of a chunk, at a feature or (None) at the label."""

    @abstractmethod
    def fraction(self, offset: int, skip: int) -> float | None:
        """Fraction of the file before a position, from 0 to 1, if known."""

    def widen(self, n_features: int) -> None:
        """Take rows to have so many columns, the most of all files; of sparse rows alone."""
        if n_features != self.n_features:
            raise ValueError(f"{self.path}: expected {n_features} columns, got {self.n_features}")

    def files(self) -> list[Path]:
        """All files that rows and labels come from."""
        return [self.path]

    def facts(self) -> dict[str, object]:
        """What else the format knows of the file, for people."""
        return {}


# ---- labels --------------------------------------------------------------------------------------


def label_kind(values: Labels, asked: str, *, whole: bool = False) -> str:
    """Kind of the labels whose first are given; `whole`: floats may stand for integers."""
    if asked != "auto":
        return asked
    kind = {"b": "bool", "i": "int", "u": "int", "f": "float"}.get(values.dtype.kind, "str")
    if kind == "float" and whole and len(values) and np.isfinite(values).all():
        return "int" if np.array_equal(values, np.rint(values)) else "float"
    return kind


def typed_labels(values: Labels, kind: str) -> _Labels:
    """Labels as the kind's type, and which of them are fit for it (None: all)."""
    if kind == "str":
        return (values if values.dtype.kind == "U" else values.astype(str)), None
    if values.dtype.kind not in "biuf":
        return values, np.zeros(len(values), dtype=bool)
    good: npt.NDArray[np.bool_] | None = None
    if values.dtype.kind == "f":
        good = np.isfinite(values)
        if kind != "float":
            good &= (values == np.rint(values)) & (np.abs(values) < _MOST_WHOLE)
        if good.all():
            good = None
        else:
            values = np.where(good, values, 0)
    if kind == "bool" and values.dtype.kind != "b":
        binary = (values == 0) | (values == 1)
        good = binary if good is None else good & binary
        good = None if good.all() else good
    if kind == "int" and values.dtype.kind == "u":
        return values, good
    return values.astype({"int": np.int64, "float": np.float64, "bool": np.bool_}[kind]), good


# ---- bytes of text files -------------------------------------------------------------------------


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed if its name ends in .gz."""
    if path.suffix == ".gz":
        return UnpackedFile(path)  # type: ignore[return-value]
    return open(path, "rb", buffering=0)


def line_chunks(path: Path, offset: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines of a file from a byte on, about `size` bytes at a time, each with its place.

    Cuts are after the last line that ends before a multiple of `size`, wherever reading starts.
    """
    with open_bytes(path) as file:
        file.seek(offset)
        rest: list[bytes] = []
        for data in _pieces(file, size, offset % size):
            cut = data.rfind(b"\n") + 1
            if not cut:
                rest.append(data)
                continue
            lines = b"".join([*rest, memoryview(data)[:cut]])
            rest = [data[cut:]]
            yield offset, lines
            offset += len(lines)
        if last := b"".join(rest):
            yield offset, last


def _pieces(file: IO[bytes], size: int, behind: int) -> Iterable[bytes]:
    if data := file.read(size - behind):
        yield data
    while data := file.read(size):
        yield data

"""Parquet and Arrow IPC files, and columns of Arrow's as features and labels."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import Labels
from eigenfeat._base.validation import show
from eigenfeat.tables.errors import arrow, damage_named
from eigenfeat.tables.source import Choice, Chunk, Mask, Options, Source, typed_labels

__all__ = ["IpcSource", "ParquetSource", "TableSource", "text_kind", "text_labels"]

_BATCH_BYTES = 64e6
_COLUMN_BUFFERS = 64e6
_WHOLE_GROUP = 16e6  # bytes of a row group that are read at once
_MOST_CHARACTERS = 1000  # of a label: arrays of text are as wide as the longest
_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WHOLE = r"^[+-]?[0-9]{1,4000}$"
_Piece = tuple[int, int, dict[int, Any], "Mask | None", "float | None"]


class TableSource(Source):
    """Base class for files that pyarrow reads as columns.

    Parts of a path such as ``year=2024/`` are columns, too, the same in all samples of the file.
    """

    def __init__(self, path: Path, options: Options, keys: Mapping[str, str]) -> None:
        arrow(str(path))
        self.path, self._options, self._keys, self.facts = path, options, keys, {}

    @abstractmethod
    def _pieces(self, wanted: list[int], skip: int) -> Iterator[_Piece]:
        """Start, number, arrays by column, bad ones, and place in the file of some samples."""

    def _set_columns(self, names: Sequence[str], indexes: frozenset[int] = frozenset()) -> None:
        """Choose among the columns of the file and those of its path."""
        self._stored = len(names)
        self.names = [*names, *self._keys]
        self.choice = Choice.of(self.path, self.names, self._options, indexes=indexes)

    def _set_types(self, types: Sequence[str], kinds: Sequence[str]) -> None:
        """Types and kinds of the columns of the file, beside those of its path."""
        words = [re.match(NUMBER, text) is None for text in self._keys.values()]
        self.types = [*types, *("string" if word else "double" for word in words)]
        self.kinds = [*kinds, *("text" if word else "number" for word in words)]
        for j in self.choice.features:
            if self.kinds[j] == "other" and not self._options.any_type:
                name = self.names[j]
                raise ValueError(
                    f"{self.path}: column {name!r}: expected numbers or text, got "
                    f"{show(self.types[j])[1:-1]}; leave it out with drop (--drop {name})"
                )

    def _set_label_kind(self, first: Source | None, stored: Callable[[int], str]) -> None:
        """The kind of labels: that of the first file, or else of a column."""
        goal = self.choice.target
        if goal is None:
            return
        if first is not None and first.label_kind is not None:
            self.label_kind = first.label_kind
        elif goal < self._stored:
            self.label_kind = stored(goal)
        else:
            self.label_kind = text_kind([self._keys[self.names[goal]]], self._options.labels)

    def chunks(self, skip: int) -> Iterator[Chunk]:
        """Yield chunks from the one on that holds sample `skip`."""
        goal = self.choice.target
        wanted = [j for j in (*self.choice.features, goal) if j is not None and j < self._stored]
        for start, n, arrays, bad, fraction in self._pieces(wanted, skip):
            for j in range(self._stored, len(self.names)):
                value: Any = self._keys[self.names[j]]
                if self.kinds[j] == "number" and j != goal:
                    value = float(value)
                arrays[j] = arrow(str(self.path)).array([value] * n)
            columns = [_values(arrays[j], self.kinds[j]) for j in self.choice.features]
            y = unlabelled = label_of = None
            if goal is not None:
                y, unlabelled, label_of = self._labels(arrays[goal])
            yield Chunk(start, n, columns, y, unlabelled, bad, label_of, fraction)

    def _labels(self, column: Any) -> tuple[Labels, Mask | None, Callable[[int], Any] | None]:
        """Labels as the type of the first ones, which are none, and what they are in the file."""
        kind = str(self.label_kind)
        if kind == "none":
            return np.zeros(len(column)), None, None
        pa = arrow("labels")
        column = _decoded(column)
        if pa.types.is_decimal(column.type):
            column = _whole_decimals(column)
        if pa.types.is_null(column.type) or _kind(column.type) not in ("number", "bool"):
            with damage_named(self.path, f"labels in column {self.target_name!r}"):
                texts = column.cast("string")
            try:
                return (*text_labels(texts, kind), None)
            except ValueError as error:
                raise ValueError(f"{self.path}: column {self.target_name!r}: {error}") from None
        zero = False if pa.types.is_boolean(column.type) else 0
        values = pa.compute.fill_null(column, zero).to_numpy(zero_copy_only=False)
        typed, wrong = typed_labels(values, kind)
        if column.null_count:
            absent = column.is_null().to_numpy(zero_copy_only=False)
            wrong = absent if wrong is None else wrong | absent
        return typed, wrong, lambda row: column[row].as_py()


class _StoredTable(TableSource):
    """Base class for files with Arrow schemas."""

    def _set_schema(self, schema: Any, first: Source | None) -> None:
        types = schema.types
        self._set_columns([str(name) for name in schema.names], _index_columns(schema))
        self._set_types([str(kind) for kind in types], [_kind(kind) for kind in types])
        floats = {str(types[j]) for j in self.choice.features if j < self._stored}
        small = floats and floats <= {"float", "halffloat"}
        self.dtype = np.dtype(np.float32 if small else np.float64)
        # Samples that are decoded at a time; every column of a batch costs some 10 us.
        rows = _BATCH_BYTES / (self.n_features * self.dtype.itemsize)
        self._batch_rows = int(np.clip(rows, 1024, 1 << 18))
        self._set_label_kind(first, lambda goal: self._stored_label_kind(types[goal]))

    def _stored_label_kind(self, kind: Any) -> str:
        types = arrow(str(self.path)).types
        while types.is_dictionary(kind):
            kind = kind.value_type
        if _kind(kind) == "other":
            raise ValueError(
                f"{self.path}: column {self.target_name!r}: expected labels that are numbers or "
                f"text, got {show(str(kind))[1:-1]}"
            )
        own = {"bool": "bool", "number": "int"}.get(_kind(kind), "str")
        if types.is_floating(kind) or (types.is_decimal(kind) and kind.scale > 0):
            own = "float"
        elif types.is_null(kind):
            own = "str"
        elif types.is_uint64(kind):
            own = "uint"
        asked = self._options.labels
        return own if asked == "auto" or (asked == "int" and own == "uint") else asked


class ParquetSource(_StoredTable):
    """A Parquet file, decoded in batches with all threads, from any row group on."""

    format = "parquet"
    _largest = 0  # bytes of a row group at most

    def __init__(
        self, path: Path, options: Options, keys: Mapping[str, str], first: Source | None
    ) -> None:
        super().__init__(path, options, keys)
        with self._open() as file:
            metadata = file.metadata
            groups = [metadata.row_group(g) for g in range(metadata.num_row_groups)]
            sizes = [group.num_rows for group in groups]
            self.n_rows = sum(sizes)
            if min(sizes, default=0) < 0 or self.n_rows != metadata.num_rows:
                raise ValueError(
                    f"{path}: it is damaged: expected {metadata.num_rows} rows in its row groups, "
                    f"got {self.n_rows}"
                )
            self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
            # Of a group, not of its columns: asked for a damaged one, pyarrow ends the process.
            self._largest = max((group.total_byte_size for group in groups), default=0)
            schema = file.schema_arrow
        self.facts = {"row_groups": len(sizes)}
        self._set_schema(schema, first)

    @contextmanager
    def _open(self, columns: int = 1) -> Iterator[Any]:
        """Open the file, to read so many columns."""
        from pyarrow import parquet

        # A buffer for each column, or else whole column chunks of a row group are read at once. A
        # damaged page may claim 2 GB, and a buffer would grow to it: small groups go without.
        buffer_size = int(np.clip(_COLUMN_BUFFERS / columns, 1 << 14, 1 << 18))
        if self._largest <= _WHOLE_GROUP:
            buffer_size = 0
        with open(self.path, "rb"):  # for Python's own error where it cannot be opened
            pass
        with damage_named(self.path, "a Parquet file"):
            file = parquet.ParquetFile(self.path, buffer_size=buffer_size, pre_buffer=False)
        with file, damage_named(self.path):
            yield file

    def _pieces(self, wanted: list[int], skip: int) -> Iterator[_Piece]:
        asked = {self.names[j] for j in wanted}
        read = [j for j in range(self._stored) if self.names[j] in asked]  # some occur twice
        names = [*dict.fromkeys(self.names[j] for j in read)]
        first = int(np.searchsorted(self._starts, skip, side="right")) - 1
        with self._open(max(len(wanted), 1)) as file:
            for group in range(first, len(self._starts) - 1):
                done, size = int(self._starts[group]), int(self._starts[group + 1])
                for batch in file.iter_batches(self._batch_rows, [group], names):
                    batch.validate(full=True)
                    n = batch.num_rows
                    part = (done + n) / max(int(self._starts[-1]), 1)
                    yield done, n, dict(zip(read, batch.columns, strict=True)), None, part
                    done += n
                if done != size:
                    raise ValueError(
                        f"{self.path}: it is damaged: expected {size} rows up to row group "
                        f"{group}, got {done}"
                    )


class IpcSource(_StoredTable):
    """An Arrow IPC file or stream (Feather is the former)."""

    format = "arrow"

    def __init__(
        self, path: Path, options: Options, keys: Mapping[str, str], first: Source | None
    ) -> None:
        super().__init__(path, options, keys)
        with self._open(None) as (schema, n_batches, _):
            self.facts = {} if n_batches is None else {"record_batches": n_batches}
        self._set_schema(schema, first)

    @contextmanager
    def _open(self, columns: list[int] | None) -> Iterator[tuple[Any, int | None, Any]]:
        """Schema, number of batches (None: not known), and the batches."""
        pa = arrow(str(self.path))
        from pyarrow import ipc

        options = ipc.IpcReadOptions(included_fields=columns)
        with open(self.path, "rb") as raw:
            stream = raw.read(6) != b"ARROW1"
        with damage_named(self.path), pa.memory_map(str(self.path)) as mapped:
            with damage_named(self.path, "an Arrow IPC file"):
                reader = (ipc.open_stream if stream else ipc.open_file)(mapped, options=options)
            if stream:
                yield reader.schema, None, reader
            else:
                count = reader.num_record_batches
                yield reader.schema, count, map(reader.get_batch, range(count))

    def _pieces(self, wanted: list[int], skip: int) -> Iterator[_Piece]:
        read, size, start = sorted(wanted), self._batch_rows, 0
        with self._open(read) as (_, count, batches):
            for number, batch in enumerate(batches, 1):
                batch.validate(full=True)
                part = number / count if count else None
                for first in range(0, batch.num_rows, size):
                    piece = batch.slice(first, size)
                    if start + piece.num_rows > skip:
                        columns = dict(zip(read, piece.columns, strict=True))
                        yield start, piece.num_rows, columns, None, part
                    start += piece.num_rows


# ---- types of Arrow ------------------------------------------------------------------------------


def _kind(kind: Any) -> str:
    """What a column of an Arrow type is to a model."""
    from pyarrow import types

    while types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind):
        return "bool"
    numbers = (types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    if any(is_one(kind) for is_one in numbers):
        return "number"
    if str(kind) in ("string", "large_string", "string_view"):
        return "text"
    return "date" if types.is_temporal(kind) else "other"


def _index_columns(schema: Any) -> frozenset[int]:
    """Columns that number the rows of a data frame: pandas' indexes, as it notes, and Dask's."""
    try:
        note = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        named = {name for name in note.get("index_columns", ()) if isinstance(name, str)}
    except (ValueError, AttributeError, TypeError, RecursionError):
        named = set()
    return frozenset(
        j for j, name in enumerate(schema.names) if name in named or _INDEX.fullmatch(name)
    )


def _decoded(column: Any) -> Any:
    from pyarrow import types

    while types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column


def _values(column: Any, kind: str) -> npt.NDArray[Any]:
    """A column as numbers, NaN where they are missing, or as objects if it is text."""
    if isinstance(column, np.ndarray):
        return column
    column = _decoded(column)
    if kind in ("number", "bool") and str(column.type) not in _PLAIN:
        column = column.cast("float64")  # booleans, decimals, and columns of nulls
    values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


_PLAIN = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_PLAIN |= {"float", "double", "halffloat"}


def _whole_decimals(column: Any) -> Any:
    """Decimals as 64-bit integers if they are, or as text, which is exact; else as floats."""
    if column.type.scale > 0:
        return column.cast("float64")
    try:
        return column.cast("int64")
    except ValueError:
        return column.cast("string")


# ---- labels that are text ------------------------------------------------------------------------


def _as_kind(text: str, kind: str) -> Any:
    """A text as a label; None if it is not of the kind."""
    if kind == "bool":
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
    if kind == "float":
        return float(text) if re.match(NUMBER, text) and isfinite(float(text)) else None
    if not re.match(_WHOLE, text):
        return None
    low, high = (0, 2**64) if kind == "uint" else (-(2**63), 2**63)
    return int(text) if low <= int(text) < high else None


def text_kind(texts: Sequence[str], asked: str) -> str:
    """Kind of labels whose first texts, without blanks around them, are given."""
    if asked not in ("auto", "int"):
        return asked
    known = [text for text in texts if text]
    kinds = ("int", "uint") if asked == "int" else ("int", "uint", "float", "bool")
    for kind in kinds if known else ():
        if all(_as_kind(text, kind) is not None for text in known):
            return kind
        if kind == "uint" and all(re.match(_WHOLE, text) for text in known):
            break  # whole numbers of more than 64 bits, which floats would confuse
    return "int" if asked == "int" else "str"


def text_labels(column: Any, kind: str) -> tuple[Labels, Mask | None]:
    """Labels from a string array, and which of them are missing or of another kind.

    Raises
    ------
    ValueError
        For labels that are longer than 1,000 characters, or have several lines.
    """
    pc = arrow("labels").compute
    encoded = pc.utf8_trim_whitespace(pc.fill_null(column, "")).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    different = encoded.dictionary.to_pylist() or [""]
    longest = max(map(len, different))
    if longest > _MOST_CHARACTERS:
        raise ValueError(
            f"expected labels of at most {_MOST_CHARACTERS:,} characters, got one of {longest:,}"
        )
    for text in different:
        if "\n" in text or "\r" in text:
            raise ValueError(f"expected labels of one line each, got {show(text)}")
    if kind == "str":
        return np.array(different, dtype=np.str_)[codes], _flags(different, "")[codes]
    labels = [_as_kind(text, kind) for text in different]
    types = {"int": np.int64, "uint": np.uint64, "float": np.float64, "bool": np.bool_}
    filled = [0 if label is None else label for label in labels]
    values: Labels = np.array(filled, dtype=types[kind])
    return values[codes], _flags(labels, None)[codes]


def _flags(values: Sequence[Any], absent: Any) -> Mask:
    return np.array([value == absent for value in values], dtype=bool)

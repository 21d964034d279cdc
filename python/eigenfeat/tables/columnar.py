"""Parquet and Arrow IPC files, and columns of Arrow's as rows of an array."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import Labels
from eigenfeat._base.validation import show
from eigenfeat.tables.columns import (
    MOST_CHARACTERS,
    Choice,
    Chunk,
    Mask,
    Options,
    Source,
    typed_labels,
)
from eigenfeat.tables.damage import arrow_damage_named
from eigenfeat.tables.errors import arrow

__all__ = ["IpcSource", "ParquetSource", "TableSource", "label_kind_of", "text_labels"]

_BATCH_BYTES = 64e6
_COLUMN_BUFFER = 1 << 18
_COLUMN_BUFFERS = 64e6
_WHOLE_GROUP = 16e6  # bytes of a row group that are read at once
_LARGE_BATCH = 1 << 28
_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")
INTEGER = r"^[+-]?[0-9]+$"
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
TRUTH = r"^(?i:true|false|0|1)$"
_PATTERNS = {"int": INTEGER, "uint": r"^\+?[0-9]+$", "float": NUMBER, "bool": TRUTH}


class TableSource(Source):
    """Base class for files that pyarrow reads as columns.

    Parts of a path such as ``year=2024/`` are columns, too, the same in all rows of the file.
    """

    columnar = True

    def __init__(self, path: Path, options: Options, keys: Mapping[str, str]) -> None:
        arrow(str(path))
        self.path, self._options, self._keys = path, options, keys

    @abstractmethod
    def _pieces(self, wanted: list[int], skip: int) -> Iterator[tuple[int, int, Any, Mask | None]]:
        """Start, number of rows, arrays by column, and rows that are bad, of consecutive rows."""

    def chunks(self, skip: int) -> Iterator[Chunk]:
        """Yield chunks from the one on that holds row `skip`."""
        goal = self.choice.target
        stored = len(self.names) - len(self._keys)
        wanted = [j for j in (*self.choice.features, goal) if j is not None and j < stored]
        for start, n, arrays, bad in self._pieces(wanted, skip):
            for j in range(stored, len(self.names)):
                arrays[j] = arrow(str(self.path)).array([self._keys[self.names[j]]] * n, "string")
            columns = [self._feature(arrays[j], j) for j in self.choice.features]
            labels: tuple[Any, Any, Any] = (None, None, None)
            if goal is not None:
                labels = self._labels(arrays[goal])
            y, unlabelled, label_of = labels
            yield Chunk(start, n, columns, None, y, unlabelled, bad, label_of)

    def _feature(self, column: Any, place: int) -> npt.NDArray[Any]:
        """A column as numbers, NaN where they are missing, or as objects if it is text."""
        if isinstance(column, np.ndarray):
            return column
        if place >= len(self.names) - len(self._keys) and self.kinds[place] == "number":
            return np.full(len(column), float(self._keys[self.names[place]]))
        from pyarrow import types

        column = _combined(column)
        while types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if types.is_decimal(column.type):
            column = column.cast("float64")
        values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind == "O" and self.kinds[place] in (
            "number",
            "bool",
        ):  # booleans, some missing
            values = np.array(
                [np.nan if v is None else v for v in values.tolist()], dtype=np.float64
            )
        return values

    def _labels(self, column: Any) -> tuple[Labels, Mask | None, Callable[[int], Any] | None]:
        """Labels as the type of the first ones, which are none, and what they are in the file."""
        kind = str(self.label_kind)
        if kind == "none":
            return np.zeros(len(column)), None, None
        pa = arrow("labels")
        pc, types = pa.compute, pa.types
        column = _combined(column)
        while types.is_dictionary(column.type):
            column = column.dictionary_decode()  # before nulls are looked for: it may have some
        if types.is_decimal(column.type):
            column = _whole_decimals(column)
        if types.is_integer(column.type) or types.is_floating(column.type):
            missing = _flags(column.is_null())
            values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
        elif types.is_boolean(column.type):
            missing = _flags(column.is_null())
            values = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
        else:
            try:
                return (*text_labels(column.cast("string"), kind), None)
            except ValueError as error:
                raise ValueError(f"{self.path}: column {self.target_name!r}: {error}") from None
        values, wrong = typed_labels(values, kind)
        return values, _either(missing, wrong), lambda row: column[row].as_py()

    def _choose(self, indexes: frozenset[int] = frozenset()) -> None:
        """Choose columns by the options, once names, types and kinds of all are known."""
        for name, text in self._keys.items():
            self.names = [*self.names, name]
            number = re.match(NUMBER, text) is not None
            self.kinds = [*self.kinds, "number" if number else "text"]
            self.types = [*self.types, "double" if number else "string"]
        self.choice = Choice.of(self.path, self.names, self._options, indexes=indexes)
        for j in self.choice.features:
            if self.kinds[j] == "other" and not self._options.any_type:
                name = self.names[j]
                raise ValueError(
                    f"{self.path}: column {name!r}: expected numbers or text, got "
                    f"{show(self.types[j])[1:-1]}; leave it out with drop (--drop {name})"
                )

    def _key_label_kind(self) -> str | None:
        """Kind of labels that are parts of the path; None if the target is another column."""
        goal, stored = self.choice.target, len(self.names) - len(self._keys)
        if goal is None or goal < stored:
            return None
        texts = arrow(str(self.path)).array([self._keys[self.names[goal]]], "string")
        return label_kind_of(texts, self._options.labels)


class _StoredTable(TableSource):
    """Base class for files with Arrow schemas."""

    def _set_schema(self, schema: Any, first: Source | None) -> None:
        types = schema.types
        self.names = [str(name) for name in schema.names]
        self.types, self.kinds = [str(kind) for kind in types], [_kind(kind) for kind in types]
        stored = len(self.names)
        self._choose(_index_columns(schema))
        floats = [types[j] for j in self.choice.features if j < stored]
        small = ("float", "halffloat")
        self.dtype = np.dtype(
            np.float32 if floats and all(str(kind) in small for kind in floats) else np.float64
        )
        if self.choice.target is None:
            return
        if first is not None and first.label_kind is not None:
            self.label_kind = first.label_kind
            return
        self.label_kind = self._key_label_kind() or self._stored_label_kind(
            types[self.choice.target]
        )

    def _stored_label_kind(self, kind: Any) -> str:
        pa = arrow(str(self.path))
        types = pa.types
        while types.is_dictionary(kind):
            kind = kind.value_type
        if types.is_decimal(kind):
            kind = pa.int64() if kind.scale <= 0 else pa.float64()
        kind_of_labels = "str"
        if types.is_integer(kind):
            kind_of_labels = "uint" if kind == pa.uint64() else "int"
        elif types.is_floating(kind):
            kind_of_labels = "float"
        elif types.is_boolean(kind):
            kind_of_labels = "bool"
        elif _kind(kind) == "other":
            raise ValueError(
                f"{self.path}: column {self.target_name!r}: expected labels that are numbers or "
                f"text, got {show(str(kind))[1:-1]}"
            )
        asked = self._options.labels
        return (
            kind_of_labels
            if asked == "auto" or (asked == "int" and kind_of_labels == "uint")
            else asked
        )

    @property
    def _batch_rows(self) -> int:
        """Rows that are decoded at a time; every column of a batch costs some 10 us."""
        return int(np.clip(_BATCH_BYTES / (self.n_features * self.dtype.itemsize), 1024, 1 << 18))


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
        self._set_schema(schema, first)

    @contextmanager
    def _open(self, columns: int = 1) -> Iterator[Any]:
        """Open the file, to read so many columns."""
        from pyarrow import parquet

        # A buffer for each column, or else whole column chunks of a row group are read at once. A
        # damaged page may claim 2 GB, and a buffer would grow to it: small groups go without.
        buffer_size = int(min(max(_COLUMN_BUFFERS / columns, 1 << 14), _COLUMN_BUFFER))
        if self._largest <= _WHOLE_GROUP:
            buffer_size = 0
        with open(self.path, "rb"):  # for Python's own error where it cannot be opened
            pass
        with arrow_damage_named(self.path, "a Parquet file"):
            file = parquet.ParquetFile(self.path, buffer_size=buffer_size, pre_buffer=False)
        with file, arrow_damage_named(self.path):
            yield file

    def _pieces(self, wanted: list[int], skip: int) -> Iterator[tuple[int, int, Any, Mask | None]]:
        names = [*dict.fromkeys(self.names[j] for j in wanted)]
        places: dict[str, list[int]] = {name: [] for name in names}  # a name may occur twice
        for j, name in enumerate(self.names):
            if name in places:
                places[name].append(j)
        read: list[int] = []
        first = int(np.searchsorted(self._starts, skip, side="right")) - 1
        with self._open(max(len(wanted), 1)) as file:
            for group in range(first, len(self._starts) - 1):
                done, size = int(self._starts[group]), int(self._starts[group + 1])
                for batch in file.iter_batches(self._batch_rows, [group], names):
                    batch.validate(full=True)
                    if not read:
                        left = {name: iter(at) for name, at in places.items()}
                        read = [next(left[name]) for name in batch.schema.names]
                    if done + batch.num_rows > skip:
                        yield (
                            done,
                            batch.num_rows,
                            dict(zip(read, batch.columns, strict=True)),
                            None,
                        )
                    done += batch.num_rows
                if done != size:
                    raise ValueError(
                        f"{self.path}: it is damaged: expected {size} rows up to row group "
                        f"{group}, got {done}"
                    )

    def facts(self) -> dict[str, object]:
        """Number of row groups."""
        return {"row_groups": len(self._starts) - 1}


class IpcSource(_StoredTable):
    """An Arrow IPC file or stream (Feather is the former), from any record batch on."""

    format = "arrow"

    def __init__(
        self, path: Path, options: Options, keys: Mapping[str, str], first: Source | None
    ) -> None:
        super().__init__(path, options, keys)
        with open(path, "rb") as raw:
            self._stream = raw.read(6) != b"ARROW1"
        self._counts: list[int] = []  # rows of the record batches that have been read
        with self._open(None) as (schema, n_batches, _):
            self._n_batches = n_batches
        self._set_schema(schema, first)

    @contextmanager
    def _open(self, columns: list[int] | None) -> Iterator[tuple[Any, int | None, Any]]:
        """Schema, number of batches (None: not known), and the reader."""
        pa = arrow(str(self.path))
        from pyarrow import ipc

        options = ipc.IpcReadOptions(included_fields=columns)
        known = "an Arrow IPC file"
        if self._stream:
            with arrow_damage_named(self.path), pa.OSFile(str(self.path)) as raw:
                with arrow_damage_named(self.path, known):
                    reader = ipc.open_stream(raw, options=options)
                with reader:
                    yield reader.schema, None, reader
            return
        # Batches are read at once, unless they are too large for that.
        with arrow_damage_named(self.path), pa.memory_map(str(self.path)) as mapped:
            with arrow_damage_named(self.path, known):
                reader = ipc.open_file(mapped, options=options)
            count = reader.num_record_batches
            if self.path.stat().st_size / max(count, 1) > _LARGE_BATCH:
                yield reader.schema, count, reader
                return
        with arrow_damage_named(self.path), pa.OSFile(str(self.path)) as raw:
            reader = ipc.open_file(raw, options=options)
            yield reader.schema, count, reader

    def _pieces(self, wanted: list[int], skip: int) -> Iterator[tuple[int, int, Any, Mask | None]]:
        read, size = sorted(wanted), self._batch_rows
        with self._open(read) as (_, count, reader):
            known = np.concatenate([[0], np.cumsum(self._counts, dtype=np.int64)])
            number = 0 if count is None else int(np.searchsorted(known, skip, side="right")) - 1
            start = int(known[number])
            for batch in reader if count is None else map(reader.get_batch, range(number, count)):
                batch.validate(full=True)
                if number == len(self._counts):
                    self._counts.append(batch.num_rows)
                for first in range(0, batch.num_rows, size):
                    piece = batch.slice(first, size)
                    if start + first + piece.num_rows > skip:
                        columns = dict(zip(read, piece.columns, strict=True))
                        yield start + first, piece.num_rows, columns, None
                start, number = start + batch.num_rows, number + 1

    def fraction(self, row: int) -> float | None:
        """Part of the record batches that lie before a row."""
        if not self._n_batches:
            return None
        ends = np.cumsum(self._counts)
        number = int(np.searchsorted(ends, row, side="right"))
        inside = 0.0
        if number < len(ends):
            inside = 1 - (int(ends[number]) - row) / max(self._counts[number], 1)
        return min((number + inside) / self._n_batches, 1.0)

    def facts(self) -> dict[str, object]:
        """Number of record batches, where the file says it."""
        return {} if self._n_batches is None else {"record_batches": self._n_batches}


# ---- types of Arrow ------------------------------------------------------------------------------


def _kind(kind: Any) -> str:
    """What a column of an Arrow type is to a model."""
    from pyarrow import types

    while types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind):
        return "bool"
    if any(
        test(kind)
        for test in (types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    ):
        return "number"
    view = getattr(types, "is_string_view", lambda _: False)
    if types.is_string(kind) or types.is_large_string(kind) or view(kind):
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


def _combined(column: Any) -> Any:
    if not hasattr(column, "num_chunks"):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _whole_decimals(column: Any) -> Any:
    """Decimals as 64-bit integers if they are, or as text, which is exact; else as floats."""
    pa = arrow("labels")
    if column.type.scale > 0:
        return column.cast("float64")
    try:
        return column.cast("int64")
    except pa.ArrowInvalid:
        return column.cast("string")


def _flags(column: Any) -> Mask | None:
    mask: Mask = np.asarray(column.to_numpy(zero_copy_only=False), dtype=bool)
    return mask if mask.any() else None


def _either(a: Mask | None, b: Mask | None) -> Mask | None:
    if a is None or b is None:
        return b if a is None else a
    return a | b


# ---- labels that are text ------------------------------------------------------------------------


def label_kind_of(texts: Any, asked: str) -> str:
    """Kind of labels whose first texts, without blanks around them, are given."""
    if asked not in ("auto", "int"):
        return asked
    pa = arrow("labels")
    pc = pa.compute
    texts = texts.filter(pc.not_equal(texts, ""))

    def fit(kind: str) -> bool:
        return bool(pc.all(pc.match_substring_regex(texts, _PATTERNS[kind])).as_py())

    if not len(texts):
        return "str" if asked == "auto" else asked
    for kind, number in (("int", "int64"), ("uint", "uint64")):
        if fit(kind):
            try:
                pc.replace_substring_regex(texts, r"^\+", "").cast(number)
            except pa.ArrowInvalid:
                continue
            return kind
    if asked == "int":
        return asked
    if fit("int"):
        return "str"  # longer than 64 bits
    return next((kind for kind in ("float", "bool") if fit(kind)), "str")


def text_labels(column: Any, kind: str) -> tuple[Labels, Mask | None]:
    """Labels from a string array, and which of them are missing or of another kind.

    Raises
    ------
    ValueError
        For labels that are longer than 1,000 characters, or have several lines.
    """
    pa = arrow("labels")
    pc = pa.compute
    texts = pc.utf8_trim_whitespace(pc.fill_null(column, ""))
    if kind != "str":
        return _number_labels(texts, kind)
    texts = texts.dictionary_encode()
    distinct = texts.dictionary.to_pylist() or [""]
    longest = max(map(len, distinct))
    if longest > MOST_CHARACTERS:
        raise ValueError(
            f"expected labels of at most {MOST_CHARACTERS:,} characters, got one of {longest:,}"
        )
    for text in distinct:
        if "\n" in text or "\r" in text:
            raise ValueError(f"expected labels of one line each, got {show(text)}")
    codes = texts.indices.to_numpy(zero_copy_only=False)
    values = np.array(distinct, dtype=np.str_)[codes]
    empty = np.array([text == "" for text in distinct])[codes]
    return values, empty if empty.any() else None


def _number_labels(texts: Any, kind: str) -> tuple[Labels, Mask | None]:
    pa = arrow("labels")
    pc = pa.compute
    fit = pc.match_substring_regex(texts, _PATTERNS[kind])
    plain = pc.replace_substring_regex(texts, r"^\+", "")
    number = {"int": "int64", "uint": "uint64", "float": "float64", "bool": "bool"}[kind]
    try:
        values = pc.if_else(fit, plain, "0").cast(number).to_numpy(zero_copy_only=False)
        wrong = ~np.asarray(fit.to_numpy(zero_copy_only=False), dtype=bool)
    except pa.ArrowInvalid:  # more than 64 bits
        values = np.zeros(len(texts), dtype=number)
        wrong = np.zeros(len(texts), dtype=bool)
        for row, (text, good) in enumerate(zip(plain.to_pylist(), fit.to_pylist(), strict=True)):
            try:
                values[row] = int(text) if good else 0
            except OverflowError:
                good = False
            wrong[row] = not good
    return values, wrong if wrong.any() else None

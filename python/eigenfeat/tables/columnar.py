"""Parquet and Arrow IPC files, and columns of Arrow's as rows of an array."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import DType, Floats, Labels
from eigenfeat._base.validation import show
from eigenfeat.tables.damage import arrow_damage_named, sound
from eigenfeat.tables.errors import BadRowError, arrow, missing_value, unfit_label, unfit_value
from eigenfeat.tables.source import Choice, Chunk, DenseChunk, Options, Source, label_kind

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import ChunkedArray

__all__ = ["ArrowChunk", "IpcSource", "ParquetSource", "column_labels"]

_TILE_ROWS = 4096  # rows of a column that are written before the next column's
_BATCH_BYTES = 64e6
_COLUMN_BUFFER = 1 << 18
_COLUMN_BUFFERS = 64e6
_WHOLE_GROUP = 16e6  # bytes of a row group that are read at once
_LARGE_BATCH = 1 << 28


class ArrowChunk(DenseChunk):
    """Rows of an Arrow table whose columns are called by their numbers in the file."""

    def __init__(
        self, source: Source, table: pa.Table, offset: int, first: int, dropped: int
    ) -> None:
        self.offset, self.first, self.dropped = offset, first, dropped
        self._n = table.num_rows
        names = map(str, source.choice.features)
        place = {name: j for j, name in enumerate(table.schema.names)}
        columns = table.columns  # one at a time, each would be looked for
        self._columns = [_numbers(columns[place[name]]) for name in names]
        target = source.choice.target
        self._labels = None if target is None else column_labels(columns[place[str(target)]])

    def __len__(self) -> int:
        return int(self._n)

    def write(self, rows: slice, out: Floats) -> None:
        """Write the features of some rows to `out`, (m, d)."""
        # Columns of a tile share the cache lines of its rows, unless they are contiguous.
        size = _TILE_ROWS if out.flags.c_contiguous else rows.stop - rows.start
        for start in range(rows.start, rows.stop, size):
            stop = min(start + size, rows.stop)
            tile = out[start - rows.start : stop - rows.start]
            with np.errstate(over="ignore", invalid="ignore"):  # NaN that signals
                for j, column in enumerate(self._columns):
                    tile[:, j] = column[start:stop]

    def labels(self, rows: slice) -> tuple[Labels, npt.NDArray[np.bool_] | None]:
        """Labels of some rows, and which of them are there (None: all)."""
        assert self._labels is not None
        values, fit = self._labels
        return values[rows], None if fit is None else fit[rows]

    def value(self, row: int, column: int) -> float:
        """One number; NaN where it is missing."""
        return float(self._columns[column][row])


def _numbers(column: Any) -> npt.NDArray[Any]:
    """A column as an array, NaN where values are missing."""
    found: npt.NDArray[Any] = _combined(column).to_numpy(zero_copy_only=False)
    if found.dtype.kind == "O":  # booleans some of which are missing, or nothing at all
        found = np.array([np.nan if v is None else v for v in found.tolist()], dtype=np.float64)
    return found


def column_labels(column: ChunkedArray) -> tuple[Labels, npt.NDArray[np.bool_] | None]:
    """Labels of a column as an array, and which of them are there (None: all)."""
    from pyarrow import compute as pc
    from pyarrow import types

    column = _combined(column)
    while types.is_dictionary(column.type):
        column = column.dictionary_decode()  # before nulls are looked for: it may have some
    fit = None if column.null_count == 0 else pc.is_valid(column).to_numpy(zero_copy_only=False)
    kind = column.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return pc.fill_null(column, False if types.is_boolean(kind) else 0).to_numpy(
            zero_copy_only=False
        ), fit
    texts = pc.fill_null(column.cast("string"), "").dictionary_encode()
    distinct = np.array(texts.dictionary.to_pylist() or [""], dtype=np.str_)
    codes = texts.indices.to_numpy(zero_copy_only=False)
    values = distinct[codes]
    empty = distinct == ""
    if empty.any():
        there = ~empty[codes]
        fit = there if fit is None else fit & there
    return values, fit if fit is None or not fit.all() else None


def _combined(column: Any) -> Any:
    if not hasattr(column, "num_chunks"):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


class _ColumnarSource(Source):
    """Base class for files with Arrow schemas."""

    columnar = True

    def _name_columns(self, schema: Any) -> None:
        self.names = list(schema.names)
        self.types = [str(kind) for kind in schema.types]

    def _set_columns(self, schema: Any, options: Options, first: Source | None) -> None:
        from pyarrow import types

        twice = {name for name in self.names if self.names.count(name) > 1}
        if twice:
            raise ValueError(f"{self.path}: expected distinct column names, got {sorted(twice)}")
        self.choice = Choice.of(self.path, self.names, options)
        kinds = [schema.types[j] for j in self.choice.features]
        for j, kind in zip(self.choice.features, kinds, strict=True):
            number = types.is_integer(kind) or types.is_floating(kind)
            fits = number or types.is_boolean(kind) or types.is_null(kind)
            if not (fits or options.any_type):
                name = self.names[j]
                raise ValueError(
                    f"{self.path}: column {name!r}: expected numbers, got {show(str(kind))[1:-1]}; "
                    f"leave it out with drop (--drop {name}) or name the columns of numbers in "
                    "columns (--columns)"
                )
        small = all(types.is_float32(kind) or types.is_float16(kind) for kind in kinds)
        self.dtype = np.dtype(np.float32 if small else np.float64)
        if self.choice.target is not None:
            self._check_labels(schema.types[self.choice.target])
            probe = self._probe_labels if first is None else None
            self.label_kind = label_kind(probe(), options.labels) if probe else first.label_kind  # type: ignore[union-attr]

    def _check_labels(self, kind: Any) -> None:
        """ValueError if nothing turns such a column into labels."""
        pa = arrow(str(self.path))
        try:
            column_labels(pa.nulls(0, kind))
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
            raise ValueError(
                f"{self.path}: column {self.target_name!r}: expected labels that are numbers or "
                f"text, got {show(str(kind))[1:-1]}"
            ) from None

    @property
    def _batch_rows(self) -> int:
        """Rows that are decoded at a time; every column of a batch costs some 10 us."""
        return int(np.clip(_BATCH_BYTES / (self.n_features * self.dtype.itemsize), 1024, 1 << 18))

    @property
    def _wanted(self) -> list[str]:
        """Names of the columns that have to be read."""
        target = [] if self.choice.target is None else [self.choice.target]
        return [self.names[j] for j in (*self.choice.features, *target)]

    def _probe_labels(self) -> npt.NDArray[Any]:
        chunk = next(self.chunks(0, 0), None)
        return (
            np.empty(0, dtype=np.int64) if chunk is None else chunk.labels(slice(0, len(chunk)))[0]
        )

    def _chunk(self, table: pa.Table, offset: int, first: int) -> ArrowChunk:
        numbers = {name: str(j) for j, name in enumerate(self.names)}
        table = table.rename_columns([numbers[name] for name in table.schema.names])
        return ArrowChunk(self, table, offset, first, 0)

    def chunks(self, offset: int, skip: int) -> Iterator[ArrowChunk]:
        """Yield batches; restart points are row groups or record batches."""
        raise NotImplementedError

    def _row(self, chunk: Chunk) -> int:
        """Number of a chunk's first row in the file."""
        raise NotImplementedError

    def complaint(self, chunk: Chunk, row: int, column: int | None, dtype: DType) -> BadRowError:
        """Say what is wrong with a row."""
        number = self._row(chunk) + row
        if column is None:
            values, fit = chunk.labels(slice(row, row + 1))
            missing = fit is not None or values[0] != values[0]
            what = (
                missing_value(label=True)
                if missing
                else unfit_label(values[0], str(self.label_kind))
            )
            return BadRowError(self.path, "row", number, self.target_name, what)
        value = chunk.value(row, column)
        what = "expected a finite number, got NaN or a missing value"
        if value == value:
            what = unfit_value(value, dtype)
        return BadRowError(self.path, "row", number, self.feature_names[column], what)


class ParquetSource(_ColumnarSource):
    """A Parquet file, decoded in batches with all threads; restart points are row groups."""

    format = "parquet"
    _largest = 0  # bytes of a row group at most

    def __init__(self, path: Path, options: Options, first: Source | None) -> None:
        arrow(str(path))
        self.path = path
        with self._open() as file:
            metadata = file.metadata
            sizes = [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
            self.n_rows = sum(sizes)
            if min(sizes, default=0) < 0 or self.n_rows != metadata.num_rows:
                raise ValueError(
                    f"{path}: it is damaged: expected {metadata.num_rows} rows in its row groups, "
                    f"got {self.n_rows}"
                )
            self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
            # Of a group, not of its columns: asked for a damaged one, pyarrow ends the process.
            groups = (metadata.row_group(g) for g in range(len(sizes)))
            self._largest = max((group.total_byte_size for group in groups), default=0)
            schema = file.schema_arrow
            self._name_columns(schema)
        self._set_columns(schema, options, first)

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

    def chunks(self, offset: int, skip: int) -> Iterator[ArrowChunk]:
        """Yield batches; a position within a row group is reached by decoding it from its start."""
        wanted = self._wanted
        with self._open(len(wanted)) as file:
            for group in range(offset, len(self._starts) - 1):
                done = 0
                for batch in file.iter_batches(self._batch_rows, [group], wanted):
                    if group > offset or done + batch.num_rows > skip or not skip:
                        yield self._chunk(sound(batch), group, done)
                    done += batch.num_rows
                size = int(self._starts[group + 1] - self._starts[group])
                if done != size:
                    raise ValueError(
                        f"{self.path}: it is damaged: expected {size} rows in row group {group}, "
                        f"got {done}"
                    )

    def _row(self, chunk: Chunk) -> int:
        return int(self._starts[chunk.offset]) + chunk.first

    def fraction(self, offset: int, skip: int) -> float:
        """Part of the rows that lie before a position."""
        group = min(offset, len(self._starts) - 1)
        return (int(self._starts[group]) + skip) / max(int(self._starts[-1]), 1)

    def facts(self) -> dict[str, object]:
        """Number of row groups."""
        return {"row_groups": len(self._starts) - 1}


class IpcSource(_ColumnarSource):
    """An Arrow IPC file or stream (Feather is the former); restart points are record batches."""

    format = "arrow"

    def __init__(self, path: Path, options: Options, first: Source | None) -> None:
        self.path = path
        with open(path, "rb") as raw:
            self._stream = raw.read(6) != b"ARROW1"
        with self._open(None) as (schema, n_batches, _):
            self._n_batches = n_batches
            self._name_columns(schema)
        self._counts: list[int] = []
        self._set_columns(schema, options, first)

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
                    found = ipc.open_stream(raw, options=options)
                with found:
                    yield found.schema, None, found
            return
        # Batches are read at once, unless they are too large for that.
        with arrow_damage_named(self.path), pa.memory_map(str(self.path)) as mapped:
            with arrow_damage_named(self.path, known):
                found = ipc.open_file(mapped, options=options)
            count = found.num_record_batches
            if self.path.stat().st_size / max(count, 1) > _LARGE_BATCH:
                yield found.schema, count, found
                return
        with arrow_damage_named(self.path), pa.OSFile(str(self.path)) as raw:
            found = ipc.open_file(raw, options=options)
            yield found.schema, count, found

    def chunks(self, offset: int, skip: int) -> Iterator[ArrowChunk]:
        """Yield pieces of record batches."""
        wanted = {*self._wanted}
        columns = [j for j, name in enumerate(self.names) if name in wanted]
        size = self._batch_rows
        with self._open(columns) as (_, count, reader):
            number = 0 if count is None else offset
            for batch in self._batches(reader, count, offset):
                self._note(number, batch.num_rows)
                if number >= offset:
                    for first in range(0, batch.num_rows, size):
                        piece = batch.slice(first, size)
                        if number > offset or first + piece.num_rows > skip or not skip:
                            yield self._chunk(piece, number, first)
                number += 1

    @staticmethod
    def _batches(reader: Any, count: int | None, offset: int) -> Iterator[Any]:
        if count is None:
            yield from map(sound, reader)
        else:
            get: Callable[[int], Any] = reader.get_batch
            yield from (sound(get(number)) for number in range(offset, count))

    def _note(self, number: int, rows: int) -> None:
        if number == len(self._counts):
            self._counts.append(rows)

    def _row(self, chunk: Chunk) -> int:
        if len(self._counts) < chunk.offset:  # after a restart
            with self._open([0]) as (_, count, reader):
                for number, batch in enumerate(self._batches(reader, count, 0)):
                    self._note(number, batch.num_rows)
                    if number >= chunk.offset:
                        break
        return sum(self._counts[: chunk.offset]) + chunk.first

    def fraction(self, offset: int, skip: int) -> float | None:
        """Part of the record batches that lie before a position."""
        if self._n_batches is None:
            return None
        inside = skip / self._counts[offset] if offset < len(self._counts) else 0.0
        return (offset + min(inside, 1.0)) / max(self._n_batches, 1)

    def facts(self) -> dict[str, object]:
        """Number of record batches, where the file says it."""
        return {} if self._n_batches is None else {"record_batches": self._n_batches}

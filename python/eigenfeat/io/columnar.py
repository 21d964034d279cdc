"""Parquet and Arrow IPC files, and Arrow columns as features and labels."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.validation import show
from eigenfeat.io.errors import arrow, damage_named
from eigenfeat.io.source import (
    NUMBER,
    Chunk,
    ColumnChoice,
    Mask,
    Options,
    Source,
    kind_of,
    kind_of_texts,
    labels_of_array,
    typed_labels,
)

__all__ = ["IpcSource", "ParquetSource", "TableSource"]

_BATCH_BYTES = 64e6  # features that are decoded at a time
_BUFFER_BYTES = 64e6  # buffers of all columns together
_MAX_UNBUFFERED_BYTES = 16e6  # largest row group that is read without buffers
_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")
_TICKS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # in a second
# Arrow's names of the types of numbers that NumPy has.
_NUMPY_TYPES = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_NUMPY_TYPES |= {"float", "double", "halffloat"}
_Piece = tuple[int, int, dict[int, Any], "Mask | None", "float | None"]


class TableSource(Source):
    """Base class for files that pyarrow reads as columns.

    Folders such as ``year=2024/`` in the path are further columns, constant in the file.
    """

    @abstractmethod
    def _pieces(self, wanted: list[int], skip: int) -> Iterator[_Piece]:
        """Yield start, number of samples, arrays by column, mask of bad samples, and fraction."""

    def _set_columns(self, names: Sequence[str], indexes: Collection[int] = ()) -> None:
        """Choose among the columns of the file and of its path."""
        self._stored = len(names)
        self.names = [*names, *self._keys]
        self.choice = ColumnChoice.of(self.path, self.names, self._options, indexes)

    def _set_types(
        self, types: Sequence[str], kinds: Sequence[str], label_kind: str | None
    ) -> None:
        """Set types and kinds of the columns, and the kind of labels in the file."""
        are_text = [re.match(NUMBER, value) is None for value in self._keys.values()]
        self.types = [*types, *("string" if is_text else "double" for is_text in are_text)]
        self.kinds = [*kinds, *("text" if is_text else "number" for is_text in are_text)]
        for j in self.choice.categorical:
            self.kinds[j] = "text"
        target = self.choice.target
        if target is not None and target >= self._stored:
            label_kind = kind_of_texts([self._keys[self.names[target]]], self._options.labels)
        self.label_kind = label_kind

    def chunks(self, skip: int) -> Iterator[Chunk]:
        """Yield chunks, starting with the chunk of sample `skip`."""
        pa, target, features = arrow(str(self.path)), self.choice.target, self.choice.features
        wanted = [j for j in (*features, target) if j is not None and j < self._stored]
        for start, n, arrays, bad, fraction in self._pieces(wanted, skip):
            for j in range(self._stored, len(self.names)):
                text = self._keys[self.names[j]]
                number = self.kinds[j] == "number" and j != target
                arrays[j] = pa.repeat(float(text) if number else text, n)
            columns = [self._values(arrays[j], self.kinds[j]) for j in features]
            y = wrong = given = None
            if target is not None and self.label_kind == "none":
                y = np.zeros(n)
            elif target is not None:
                given = _decoded(arrays[target])
                try:
                    y, wrong = self._labels(given)
                except ValueError as error:
                    raise ValueError(f"{self.path}: column {self.target_name!r}: {error}") from None
            yield Chunk(start, n, columns, y, wrong, bad, given, fraction)

    def _values(self, column: Any, kind: str) -> npt.NDArray[Any]:
        """A column of numbers as an array with NaN, a column of text as an array of categories."""
        column = _decoded(column)
        if kind == "text":
            return _exact(column)
        if _is_duration(column.type):
            ticks = column.cast(f"int{column.type.bit_width}").cast("float64", safe=False)
            seconds: npt.NDArray[Any] = ticks.to_numpy(zero_copy_only=False)
            return seconds / _TICKS[column.type.unit]
        if kind in ("number", "bool") and str(column.type) not in _NUMPY_TYPES:
            column = column.cast("float64")  # booleans, decimals, and columns of nulls
        values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return values

    def _labels(self, column: Any) -> tuple[npt.NDArray[Any], Mask | None]:
        """Labels as the type of their kind, and a mask of labels of other kinds."""
        kind = str(self.label_kind)
        if not column.null_count and str(column.type) in _NUMPY_TYPES:
            return labels_of_array(column.to_numpy(), kind)
        if _kind(column.type) not in ("number", "bool") or str(column.type) == "null":
            column = column.cast("string")
        encoded = column.dictionary_encode()
        distinct = [*encoded.dictionary.to_pylist(), None]
        codes = encoded.indices.fill_null(len(distinct) - 1).to_numpy(zero_copy_only=False)
        return typed_labels(distinct, codes, kind)


class _StoredTable(TableSource):
    """Base class for files with Arrow schemas."""

    def _set_schema(self, schema: Any) -> None:
        types = schema.types
        with damage_named(self.path):  # names may not be UTF-8
            names = [str(name) for name in schema.names]
        self._set_columns(names, _index_columns(schema))
        floats = {str(types[j]) for j in self.choice.features if j < self._stored}
        small = floats and floats <= {"float", "halffloat"}
        self.dtype = np.dtype(np.float32 if small else np.float64)
        # A column of a batch costs about 10 us, so that small batches are slow.
        rows = _BATCH_BYTES / (self.n_features * self.dtype.itemsize)
        self._batch_rows = int(np.clip(rows, 1024, 1 << 18))
        target, label_kind = self.choice.target, None
        if target is not None and target < self._stored:
            label_kind = self._stored_label_kind(types[target])
        kinds = ["number" if _is_duration(kind) else _kind(kind) for kind in types]
        self._set_types([str(kind) for kind in types], kinds, label_kind)

    def _stored_label_kind(self, kind: Any) -> str:
        types = arrow(str(self.path)).types
        while types.is_dictionary(kind):
            kind = kind.value_type
        if _kind(kind) == "other":
            raise ValueError(
                f"{self.path}: column {self.target_name!r}: expected labels that are numbers or "
                f"text, got {show(str(kind))[1:-1]}"
            )
        dtype: Any = str
        if types.is_decimal(kind):
            dtype = float if kind.scale > 0 else int
        elif str(kind) in {*_NUMPY_TYPES, "bool"}:
            dtype = kind.to_pandas_dtype()
        return kind_of(np.dtype(dtype), self._options.labels)


class ParquetSource(_StoredTable):
    """A Parquet file, decoded in batches with all threads, from any row group on."""

    format = "parquet"
    _largest = 0  # bytes of the largest row group

    def __init__(self, path: Path, options: Options, keys: Mapping[str, str]) -> None:
        super().__init__(path, options, keys)
        arrow(str(path))
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
            # Sizes of groups, because pyarrow aborts if it reads the size of a damaged column.
            self._largest = max((group.total_byte_size for group in groups), default=0)
            schema = file.schema_arrow
        self.facts = {"row_groups": len(sizes)}
        self._set_schema(schema)

    @contextmanager
    def _open(self, columns: int = 1) -> Iterator[Any]:
        """Open the file to read this number of columns."""
        from pyarrow import parquet

        # Buffers bound the memory of large row groups, whose columns would be read at once. Small
        # groups are read without buffers: a buffer grows to the size that a damaged page claims.
        buffer_size = int(np.clip(_BUFFER_BYTES / columns, 1 << 14, 1 << 18))
        if self._largest <= _MAX_UNBUFFERED_BYTES:
            buffer_size = 0
        with open(self.path, "rb"):  # raises Python's error for a file that cannot be opened
            pass
        with damage_named(self.path, "a Parquet file"):
            file = parquet.ParquetFile(self.path, buffer_size=buffer_size, pre_buffer=False)
        with file, damage_named(self.path):
            yield file

    def _pieces(self, wanted: list[int], skip: int) -> Iterator[_Piece]:
        wanted_names = {self.names[j] for j in wanted}
        read = [j for j in range(self._stored) if self.names[j] in wanted_names]  # names may repeat
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
    """An Arrow IPC file, such as Feather, or an Arrow IPC stream."""

    format = "arrow"

    def __init__(self, path: Path, options: Options, keys: Mapping[str, str]) -> None:
        super().__init__(path, options, keys)
        with self._open(None) as (schema, n_batches, _):
            self.facts = {} if n_batches is None else {"record_batches": n_batches}
        self._set_schema(schema)

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
    """Kind of a column of this Arrow type."""
    from pyarrow import types

    while types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind):
        return "bool"
    numbers = (types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    if any(is_number(kind) for is_number in numbers):
        return "number"
    if str(kind) in ("string", "large_string", "string_view"):
        return "text"
    return "date" if types.is_temporal(kind) else "other"


def _is_duration(kind: Any) -> bool:
    """Whether a type has durations or times of the day, which become seconds."""
    return str(kind).startswith(("duration", "time32", "time64"))


def _index_columns(schema: Any) -> list[int]:
    """Columns that store the index of a data frame, by pandas' metadata or Dask's names."""
    try:
        note = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        named = {name for name in note.get("index_columns", ()) if isinstance(name, str)}
    except (ValueError, AttributeError, TypeError, RecursionError):
        named = set()
    return [j for j, name in enumerate(schema.names) if name in named or _INDEX.fullmatch(name)]


def _exact(column: Any) -> npt.NDArray[Any]:
    """Exact values of a column of categories; objects if values are missing (None) or mixed."""
    if _kind(column.type) == "text":
        texts = column.dictionary_encode()  # equal texts share an object
        values: npt.NDArray[Any] = np.array([*texts.dictionary.to_pylist(), None], dtype=object)
        return values[texts.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    if not column.null_count and str(column.type) in {*_NUMPY_TYPES, "bool"}:
        values = column.to_numpy(zero_copy_only=False)
        return values
    try:
        return np.array(column.to_pylist(), dtype=object)
    except OverflowError:  # Python's dates end with the year 9999
        days: npt.NDArray[Any] = column.cast("timestamp[us]").to_numpy(zero_copy_only=False)
        return days


def _decoded(column: Any) -> Any:
    import pyarrow as pa

    while pa.types.is_dictionary(column.type):
        if str(column.type.value_type) == "string_view":  # pyarrow cannot index this type
            texts = column.dictionary.cast("large_string")
            column = pa.DictionaryArray.from_arrays(column.indices, texts)
        column = column.dictionary_decode()
    return column

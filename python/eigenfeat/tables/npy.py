"""NumPy's files: arrays in .npy, or stored or compressed in .npz."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.lib.format as npy
import numpy.typing as npt

from eigenfeat._base.types import DType
from eigenfeat.tables.damage import damage_named
from eigenfeat.tables.errors import (
    BadRowError,
    OptionError,
    missing_value,
    unfit_label,
    unfit_value,
)
from eigenfeat.tables.source import Choice, Chunk, DenseChunk, Options, Source, label_kind

__all__ = ["NpySource", "StoredArray"]

_READ_BYTES = 8 << 20
_PROBED_LABELS = 1 << 16
_MOST_DEFLATED = 1032  # bytes that come out of one, at most
_MOST_UNFILLED = 1 << 20  # columns of an array without rows, whose width no bytes bear out
_LOCAL_HEADER = 30  # bytes of a zip member's own header before its name


@dataclass(frozen=True)
class StoredArray:
    """An array in a file, of which some rows can be read without the others.

    ``start`` is the byte of its first number; ``member`` its name in a compressed archive, whose
    bytes can be read in order only.
    """

    path: Path
    shape: tuple[int, ...]
    dtype: DType
    fortran: bool
    start: int
    member: str | None = None

    @classmethod
    def in_npy(cls, path: Path) -> StoredArray:
        """The array of an .npy file. ValueError if it is none."""
        with open(path, "rb") as file:
            shape, fortran, dtype = _header(file, path)
            return cls(path, shape, dtype, fortran, file.tell())._complete(path.stat().st_size)

    @classmethod
    def in_npz(cls, path: Path, name: str, option: str) -> StoredArray:
        """An array of an .npz file by its name. ValueError if it is not there."""
        with _archive(path) as archive:
            names = [entry.removesuffix(".npy") for entry in archive.namelist()]
            if f"{name}.npy" not in archive.namelist():
                raise OptionError(
                    option, f"expected an array of {path} ({', '.join(names)}), got {name!r}"
                )
            info = archive.getinfo(f"{name}.npy")
            with archive.open(info) as file:
                shape, fortran, dtype = _header(file, path)
                header = file.tell()
        if info.compress_type != zipfile.ZIP_STORED:
            return cls(path, shape, dtype, fortran, header, info.filename)._unpacked(info)
        with open(path, "rb") as raw:
            raw.seek(info.header_offset + _LOCAL_HEADER - 4)
            sizes = np.frombuffer(raw.read(4), dtype="<u2")
        start = info.header_offset + _LOCAL_HEADER + int(sizes.sum()) + header
        return cls(path, shape, dtype, fortran, start)._complete(path.stat().st_size)

    def _complete(self, size: int) -> StoredArray:
        wanted = int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize
        if size - self.start < wanted:
            raise ValueError(
                f"{self.path}: expected {wanted} bytes of an array of shape {self.shape}, "
                f"got {size - self.start}: the file is truncated"
            )
        return self

    def _unpacked(self, info: zipfile.ZipInfo) -> StoredArray:
        """The same, once so many bytes may come out of the archive's member."""
        most = info.file_size
        if info.compress_type == zipfile.ZIP_DEFLATED:
            size = min(info.compress_size, self.path.stat().st_size)
            most = min(most, _MOST_DEFLATED * size)
        return self._complete(most)

    def open(self) -> OpenArray:
        """Open the file, to read rows."""
        return OpenArray(self)


class OpenArray:
    """Rows of a stored array; sequential reading is fastest. Use it in a with-statement."""

    def __init__(self, array: StoredArray) -> None:
        self._array = array
        self._width = int(np.prod(array.shape[1:], dtype=np.int64))
        self._archive: zipfile.ZipFile | None = None
        self._file: IO[bytes]
        if array.member is None:
            self._file = open(array.path, "rb", buffering=0)  # noqa: SIM115 (closed by __exit__)
        else:
            with damage_named(array.path, "an .npz file"):
                self._archive = zipfile.ZipFile(array.path)
                self._file = self._archive.open(array.member)

    def __enter__(self) -> OpenArray:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if self._archive is not None:
            self._archive.close()

    def read(self, first: int, out: npt.NDArray[Any]) -> None:
        """Fill `out`, a contiguous array of the file's dtype, with rows from `first` on."""
        if self._array.fortran and self._width > 1:
            n, size = self._array.shape[0], out.dtype.itemsize
            column = np.empty(len(out), dtype=out.dtype)
            for j in range(self._width):
                self._read_at((j * n + first) * size, column)
                out[:, j] = column
        else:
            self._read_at(first * self._width * out.dtype.itemsize, out)

    def _read_at(self, offset: int, out: npt.NDArray[Any]) -> None:
        path = self._array.path
        with damage_named(path):
            self._file.seek(self._array.start + offset)
        view = out.reshape(-1).view(np.uint8).data
        while len(view):
            with damage_named(path):
                count = self._file.readinto(view[:_READ_BYTES])  # type: ignore[attr-defined]
            if not count:
                raise OSError(f"{path}: ended before its last row: truncated")
            view = view[count:]


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    with damage_named(path, "an .npz file"), zipfile.ZipFile(path) as archive:
        yield archive


def _header(file: IO[bytes], path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    known = "an array in NumPy's format"
    try:
        with damage_named(path, known):
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(file)
    except ValueError as error:
        text = " ".join(str(error).split())
        raise ValueError(
            text if text.startswith(str(path)) else f"{path}: expected {known}, got {text[:80]}"
        ) from None
    if min(shape, default=0) < 0:
        raise ValueError(f"{path}: expected {known}, got shape {shape}")
    if dtype.hasobject:
        raise ValueError(f"{path}: expected an array of numbers or strings, got Python objects")
    return shape, fortran, dtype


class NpySource(Source):
    """A matrix of an .npy or .npz file, and its labels: a column, or another array."""

    format = "npy"

    def __init__(
        self, path: Path, options: Options, n_files: int, first: Source | None, *, zipped: bool
    ) -> None:
        self.path = path
        if zipped:
            self._rows = StoredArray.in_npz(path, options.x_name, "x_name")
        else:
            self._rows = StoredArray.in_npy(path)
        self._check_rows()
        self._labels = self._label_array(options, n_files, zipped)
        self.n_rows, width = self._rows.shape
        self.names = [str(j) for j in range(width)]
        self.types = [self._rows.dtype.name] * width
        self.choice = Choice.of(path, self.names, options, target=self._labels is None)
        small = self._rows.dtype.kind == "f" and self._rows.dtype.itemsize <= 4
        self.dtype = np.dtype(np.float32 if small else np.float64)
        if first is not None:
            self.label_kind = first.label_kind
        elif self._labels is not None or self.choice.target is not None:
            self.label_kind = label_kind(
                self._first_labels(), options.labels, whole=self._labels is None
            )

    def _check_rows(self) -> None:
        shape, kind = self._rows.shape, self._rows.dtype.kind
        if len(shape) != 2 or kind not in "biuf":
            raise ValueError(
                f"{self.path}: expected a matrix of real numbers (rows, columns), got shape "
                f"{shape}, dtype {self._rows.dtype}"
            )
        if not shape[0] and shape[1] > _MOST_UNFILLED:
            raise ValueError(f"{self.path}: expected rows of these columns, got shape {shape}")

    def _label_array(self, options: Options, n_files: int, zipped: bool) -> StoredArray | None:
        target = options.target
        if zipped and (target is None or isinstance(target, str)):
            found = self._zipped_labels(options)
        elif isinstance(target, str) and target.endswith(".npy"):
            if n_files > 1:
                raise OptionError(
                    "target", "expected a column, got a file, and more than one of rows"
                )
            found = StoredArray.in_npy(Path(target))
        else:
            return None
        if found is not None and found.shape != self._rows.shape[:1]:
            raise ValueError(
                f"{found.path}: expected {self._rows.shape[0]} labels, one per row of {self.path}, "
                f"got shape {found.shape}"
            )
        if found is not None and found.dtype.kind not in "biufUS":
            raise ValueError(
                f"{found.path}: expected labels that are numbers or strings, got {found.dtype}"
            )
        return found

    def _zipped_labels(self, options: Options) -> StoredArray | None:
        with _archive(self.path) as archive:
            names = archive.namelist()
        name = options.y_name if options.target is None else str(options.target)
        if f"{name}.npy" in names:
            return StoredArray.in_npz(self.path, name, "target")
        return None

    def _first_labels(self) -> npt.NDArray[Any]:
        count = min(_PROBED_LABELS, self._rows.shape[0])
        with self._opened() as chunk:
            return chunk.labels(slice(0, count))[0]

    @contextmanager
    def _opened(self) -> Iterator[_NpyChunk]:
        with ExitStack() as files:
            rows = files.enter_context(self._rows.open())
            labels = None if self._labels is None else files.enter_context(self._labels.open())
            yield _NpyChunk(self, rows, labels)

    @property
    def target_name(self) -> str:
        """Name of the target column."""
        return super().target_name if self._labels is None else self._labels.path.name

    def files(self) -> list[Path]:
        """The file, and that of the labels."""
        other = [] if self._labels is None else [self._labels.path]
        return [*dict.fromkeys([self.path, *other])]

    def facts(self) -> dict[str, object]:
        """Shape and order of the array."""
        labels = self._labels
        found: dict[str, Any] = {"shape": list(self._rows.shape)}
        found["order"] = "Fortran" if self._rows.fortran else "C"
        if labels is not None:
            found["labels"] = {"shape": list(labels.shape), "dtype": labels.dtype.name}
        return found

    def chunks(self, offset: int, skip: int) -> Iterator[_NpyChunk]:
        """Yield all rows as one chunk, whose rows are read when they are asked for."""
        with self._opened() as chunk:
            yield chunk

    def fraction(self, offset: int, skip: int) -> float:
        """Part of the rows that lie before a position."""
        return skip / max(self._rows.shape[0], 1)

    def complaint(self, chunk: Chunk, row: int, column: int | None, dtype: DType) -> BadRowError:
        """Say what is wrong with a row."""
        if column is not None:
            name = str(self.choice.features[column])
            what = unfit_value(chunk.value(row, column), dtype)
            return BadRowError(self.path, "row", row, name, what)
        value = chunk.labels(slice(row, row + 1))[0][0]
        path = self.path if self._labels is None else self._labels.path
        target = None if self.choice.target is None else str(self.choice.target)
        if value != value:
            return BadRowError(path, "row", row, target, missing_value(label=True))
        return BadRowError(path, "row", row, target, unfit_label(value, str(self.label_kind)))


class _NpyChunk(DenseChunk):
    """The rows of an array, read on demand while its files are open."""

    def __init__(self, source: NpySource, rows: OpenArray, labels: OpenArray | None) -> None:
        self._array, self._rows, self._labels = source._rows, rows, labels
        self._label_array = source._labels
        self._target = source.choice.target
        features = source.choice.features
        self._whole = features == tuple(range(self._array.shape[1]))
        self._columns = _as_slice(features)
        self._last: tuple[slice, npt.NDArray[Any]] | None = None

    def __len__(self) -> int:
        return self._array.shape[0]

    def write(self, rows: slice, out: npt.NDArray[Any]) -> None:
        if self._whole and self._array.dtype == out.dtype and out.flags.c_contiguous:
            self._rows.read(rows.start, out)
        else:
            with np.errstate(over="ignore", invalid="ignore"):  # NaN that signals
                out[:] = self.matrix(rows)[:, self._columns]

    def matrix(self, rows: slice) -> npt.NDArray[Any]:
        """Rows with all columns, in the file's dtype."""
        if self._last is None or self._last[0] != rows:
            self._last = None
            found = np.empty((rows.stop - rows.start, *self._array.shape[1:]), self._array.dtype)
            self._rows.read(rows.start, found)
            self._last = rows, found
        return self._last[1]

    def value(self, row: int, column: int) -> float:
        found: float = self.matrix(slice(row, row + 1))[:, self._columns][0, column]
        return found

    def labels(self, rows: slice) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
        if self._labels is None or self._label_array is None:
            values = np.ascontiguousarray(self.matrix(rows)[:, self._target])
        else:
            values = np.empty(rows.stop - rows.start, dtype=self._label_array.dtype)
            self._labels.read(rows.start, values)
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        if values.dtype.kind not in "US":
            return values, None
        fit = np.char.str_len(values) > 0
        return values, None if fit.all() else fit


def _as_slice(columns: Sequence[int]) -> Any:
    """Consecutive columns as a slice, which is copied faster."""
    first, last = columns[0], columns[-1] + 1
    return slice(first, last) if columns == tuple(range(first, last)) else list(columns)

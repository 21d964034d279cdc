"""NumPy's files: arrays in .npy, mapped into memory, and in .npz, read in order."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.lib.format as npy
import numpy.typing as npt

from eigenfeat._base.types import DType
from eigenfeat.tables.columns import Choice, Chunk, Options, Source, typed_labels, whole_labels
from eigenfeat.tables.damage import damage_named
from eigenfeat.tables.errors import BadRowError, OptionError

__all__ = ["ArraySource"]

_PIECE_BYTES = 16 << 20
_PROBED_LABELS = 1 << 16
_MOST_DEFLATED = 1032  # bytes that come out of one, at most
_MOST_UNFILLED = 1 << 20  # columns of an array without rows, whose width no bytes bear out
_MOST_BYTES = 1 << 30  # of a row, and of an array in Fortran order in an archive


@dataclass(frozen=True)
class StoredArray:
    """An array in a file; ``member`` is its name in an archive, ``start`` its first byte there."""

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
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
                start = file.tell()
        most = info.file_size
        if info.compress_type == zipfile.ZIP_DEFLATED:
            size = min(info.compress_size, path.stat().st_size)
            most = min(most, _MOST_DEFLATED * size)
        return cls(path, shape, dtype, fortran, start, info.filename)._complete(most)

    def _complete(self, size: int) -> StoredArray:
        wanted = int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize
        if size - self.start < wanted:
            raise ValueError(
                f"{self.path}: expected {wanted} bytes of an array of shape {self.shape}, "
                f"got {size - self.start}: the file is truncated"
            )
        row = int(np.prod(self.shape[1:], dtype=object)) * self.dtype.itemsize
        packed = self.fortran and self.member is not None
        for what, bytes_ in (("rows", row), ("a compressed array in C order", wanted * packed)):
            if bytes_ > _MOST_BYTES:
                raise ValueError(
                    f"{self.path}: expected {what} of at most {_MOST_BYTES:,} bytes, got {bytes_:,}"
                )
        return self

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """What gives rows when it is called with a slice; these are asked for in order."""
        if self.member is None:
            if not np.prod(self.shape):
                yield np.empty(self.shape, self.dtype).__getitem__
                return
            yield self._mapped
            return
        with damage_named(self.path, "an .npz file"), ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(self.path))
            file = stack.enter_context(archive.open(self.member))
            yield _InOrder(self, file)

    def _mapped(self, rows: slice) -> npt.NDArray[Any]:
        """Rows of a map of the file, which is made anew: pages that were read are let go of."""
        order: Any = "F" if self.fortran else "C"
        with damage_named(self.path):
            return np.memmap(self.path, self.dtype, "r", self.start, self.shape, order)[rows]


class _InOrder:
    """Rows of an array in an archive, one after the other."""

    def __init__(self, array: StoredArray, file: IO[bytes]) -> None:
        self._array, self._file = array, file
        self._whole: Any = None

    def __call__(self, rows: slice) -> npt.NDArray[Any]:
        array = self._array
        if array.fortran and len(array.shape) > 1:
            if self._whole is None:
                flat = self._read(0, array.shape[0])
                self._whole = flat.reshape(-1).reshape(array.shape, order="F")
            rows_read: npt.NDArray[Any] = self._whole[rows]
            return rows_read
        return self._read(rows.start, rows.stop)

    def _read(self, first: int, last: int) -> npt.NDArray[Any]:
        array = self._array
        out = np.empty((last - first, *array.shape[1:]), array.dtype)
        row = int(np.prod(array.shape[1:], dtype=np.int64)) * array.dtype.itemsize
        view = out.reshape(-1).view(np.uint8).data
        with damage_named(array.path):
            self._file.seek(array.start + first * row)
            while len(view):
                count = self._file.readinto(view[: 8 << 20])  # type: ignore[attr-defined]
                if not count:
                    raise ValueError(f"{array.path}: ended before its last row: truncated")
                view = view[count:]
        return out


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


class ArraySource(Source):
    """A matrix of an .npy or .npz file, and its labels: a column, or another array."""

    format = "npy"
    named = False

    def __init__(
        self, path: Path, options: Options, n_files: int, first: Source | None, *, zipped: bool
    ) -> None:
        self.path = path
        if zipped:
            self._rows = StoredArray.in_npz(path, options.x_name, "x_name")
        else:
            self._rows = StoredArray.in_npy(path)
        shape, kind = self._rows.shape, self._rows.dtype.kind
        if len(shape) != 2 or kind not in "biuf":
            raise ValueError(
                f"{path}: expected a matrix of real numbers (rows, columns), got shape "
                f"{shape}, dtype {self._rows.dtype}"
            )
        if not shape[0] and shape[1] > _MOST_UNFILLED:
            raise ValueError(f"{path}: expected rows of these columns, got shape {shape}")
        self._y = self._label_array(options, n_files, zipped)
        self.n_rows, width = shape
        self.names = [str(j) for j in range(width)]
        self.types, self.kinds = [self._rows.dtype.name] * width, ["number"] * width
        self.choice = Choice.of(path, self.names, options, target=self._y is None)
        small = kind == "f" and self._rows.dtype.itemsize <= 4
        self.dtype = np.dtype(np.float32 if small else np.float64)
        if first is not None:
            self.label_kind = first.label_kind
        elif self._y is not None or self.choice.target is not None:
            self.label_kind = options.labels
            if options.labels == "auto":
                self.label_kind = self._first_label_kind()

    def _label_array(self, options: Options, n_files: int, zipped: bool) -> StoredArray | None:
        target, member = options.target, None
        if zipped and (target is None or isinstance(target, str)):
            name = options.y_name if target is None else target
            with _archive(self.path) as archive:
                if f"{name}.npy" in archive.namelist():
                    member = name
            array = None if member is None else StoredArray.in_npz(self.path, member, "target")
        elif isinstance(target, str) and target.endswith(".npy"):
            if n_files > 1:
                raise OptionError(
                    "target", "expected a column, got a file, and more than one of rows"
                )
            array = StoredArray.in_npy(Path(target))
        else:
            return None
        if array is not None and array.shape != self._rows.shape[:1]:
            raise ValueError(
                f"{array.path}: expected {self._rows.shape[0]} labels, one per row of {self.path}, "
                f"got shape {array.shape}"
            )
        if array is not None and array.dtype.kind not in "biufUS":
            raise ValueError(
                f"{array.path}: expected labels that are numbers or strings, got {array.dtype}"
            )
        return array

    def _first_label_kind(self) -> str:
        some = slice(0, min(_PROBED_LABELS, self._rows.shape[0]))
        if self._y is None:
            with self._rows.opened() as rows:
                return whole_labels(rows(some)[:, self.choice.target])
        with self._y.opened() as labels:
            values = labels(some)
        if values.dtype.kind == "f":
            return "float"
        return "uint" if values.dtype == np.uint64 else whole_labels(values).replace("u", "")

    @property
    def target_name(self) -> str:
        """Name of the target column."""
        return super().target_name if self._y is None else self._y.path.name

    def chunks(self, skip: int) -> Iterator[Chunk]:
        """Yield pieces of the array."""
        n, width = self._rows.shape
        size = max(int(_PIECE_BYTES / max(width * self._rows.dtype.itemsize, 1)), 1)
        if self._rows.fortran:
            size = max(size, 4096)
        chosen = self.choice.features
        whole = tuple(chosen) == tuple(range(width))
        with ExitStack() as stack:
            rows = stack.enter_context(self._rows.opened())
            labels = None if self._y is None else stack.enter_context(self._y.opened())
            for start in range(skip, n, size):
                part = slice(start, min(start + size, n))
                matrix = rows(part)
                y = wrong = label_of = None
                if self.label_kind not in (None, "none"):
                    given = matrix[:, self.choice.target] if labels is None else labels(part)
                    y, wrong = self._typed(np.asarray(given))
                    label_of = given.__getitem__
                if not whole:
                    matrix = matrix[:, list(chosen)]
                yield Chunk(start, len(matrix), None, matrix, y, wrong, None, label_of)

    def _typed(self, values: npt.NDArray[Any]) -> tuple[Any, Any]:
        values = np.ascontiguousarray(values)
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        typed, wrong = typed_labels(values, str(self.label_kind))
        if values.dtype.kind in "US":
            empty = np.char.str_len(values) == 0
            wrong = empty if wrong is None else wrong | empty
        return typed, wrong if wrong is not None and wrong.any() else None

    def complaint(
        self, row: int, column: int | None, value: Any, dtype: DType, *, missing: bool
    ) -> BadRowError:
        """Say what is wrong with a row."""
        fault = super().complaint(row, column, value, dtype, missing=missing)
        if column is None and self._y is not None:
            text = str(fault).split(": ", 2)[2]
            return BadRowError(self._y.path, "row", row, None, text)
        return fault

    def files(self) -> list[Path]:
        """The file, and that of the labels."""
        other = [] if self._y is None else [self._y.path]
        return [*dict.fromkeys([self.path, *other])]

    def facts(self) -> dict[str, object]:
        """Shape and order of the array."""
        described: dict[str, Any] = {"shape": list(self._rows.shape)}
        described["order"] = "Fortran" if self._rows.fortran else "C"
        if self._y is not None:
            described["labels"] = {"shape": list(self._y.shape), "dtype": self._y.dtype.name}
        return described

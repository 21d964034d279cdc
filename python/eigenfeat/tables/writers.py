"""Columns into files, block by block: CSV, Parquet and NumPy's format."""

from __future__ import annotations

import csv
import io
import sys
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from eigenfeat._base.saved_files import naming, taking_the_place_of
from eigenfeat._base.types import DType
from eigenfeat.tables.errors import arrow

__all__ = ["SUFFIXES", "Writer", "missing_in", "open_writer"]

Missing = npt.NDArray[np.bool_] | None

SUFFIXES = (".csv", ".parquet", ".npy")


class Writer(ABC):
    """A file that is being written; once complete, it replaces an existing one."""

    def __init__(self, path: Path, names: list[str]) -> None:
        self.names = names
        self._whole: AbstractContextManager[Any] = taking_the_place_of(path)
        self._path = self._whole.__enter__()
        try:
            self.open()
        except BaseException as error:
            self._whole.__exit__(type(error), error, error.__traceback__)
            raise

    @abstractmethod
    def open(self) -> None:
        """Open the new file, and write what comes first."""

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close(complete=kind is None)
        except BaseException as failure:
            self._whole.__exit__(type(failure), failure, failure.__traceback__)
            raise
        self._whole.__exit__(kind, error, trace)

    @abstractmethod
    def write(self, *columns: npt.NDArray[Any], missing: Missing = None) -> None:
        """Write some rows: columns, or matrices of columns, side by side.

        Rows whose flag in `missing` is set are empty: without text, null, or NaN.
        """

    @abstractmethod
    def close(self, *, complete: bool) -> None:
        """Write what comes last, if all rows are there, and close the file."""


class CsvWriter(Writer):
    """CSV file; numbers have enough digits to be read back exactly."""

    def open(self) -> None:
        """Open the file, and write the names."""
        self._file: Any = open(  # noqa: SIM115
            self._path, "x", newline="", encoding="utf-8"
        )
        self._lines = csv.writer(self._file, lineterminator="\n")
        self._lines.writerow(self.names)

    def write(self, *columns: npt.NDArray[Any], missing: Missing = None) -> None:
        parts = [c[:, None] if c.ndim == 1 else c for c in columns]
        # Shortest digits are those of the column's own type: float32 has fewer.
        arrays = [part.astype(str) for part in parts]
        if missing is not None:
            for array in arrays:
                array[missing] = ""
        texts = [array.tolist() for array in arrays]
        self._lines.writerows(chain(*row) for row in zip(*texts, strict=True))

    def close(self, *, complete: bool) -> None:
        self._file.close()


class CsvStream(CsvWriter):
    """CSV to a stream, such as standard output."""

    def __init__(self, stream: Any, names: list[str]) -> None:
        self.names, self._whole = names, naming("standard output")
        self._whole.__enter__()
        self._file = stream
        self._lines = csv.writer(stream, lineterminator="\n")
        self._lines.writerow(names)

    def close(self, *, complete: bool) -> None:
        self._file.flush()
        if self._file is not sys.stdout and not isinstance(self._file, _Shown):
            self._file.close()


class _Shown:
    """A terminal, which characters that control it do not reach."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write printable text."""
        return self._stream.write(
            "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
        )

    def flush(self) -> None:
        """Write what has been kept back."""
        self._stream.flush()


class NpyWriter(Writer):
    """One column, or one matrix."""

    def open(self) -> None:
        """Open the file; its header comes with the first rows."""
        self._file = open(self._path, "xb")  # noqa: SIM115
        self._rows, self._dtype = 0, np.dtype(np.float64)
        self._rest: tuple[int, ...] = (len(self.names),)

    def write(self, *columns: npt.NDArray[Any], missing: Missing = None) -> None:
        (rows,) = columns
        if missing is not None:
            rows = np.array(rows)
            rows[missing] = missing_in(rows.dtype)
        rows = np.asarray(rows, dtype=rows.dtype.newbyteorder("<"), order="C")
        if not self._rows:
            self._rest, self._dtype = rows.shape[1:], rows.dtype
            self._file.write(self._header(0))
        self._file.write(rows.astype(self._dtype, copy=False).tobytes())
        self._rows += len(rows)

    def _header(self, rows: int) -> bytes:
        # Its length does not depend on the number of rows.
        out = io.BytesIO()
        about = {"descr": self._dtype.str, "fortran_order": False, "shape": (rows, *self._rest)}
        npy.write_array_header_1_0(out, about)
        return out.getvalue()

    def close(self, *, complete: bool) -> None:
        if complete:
            self._file.seek(0)
            self._file.write(self._header(self._rows))
        self._file.close()


class ParquetWriter(Writer):
    """A row group a block."""

    def __init__(self, path: Path, names: list[str]) -> None:
        arrow(str(path))
        super().__init__(path, names)

    def open(self) -> None:
        """Wait for the first rows, whose types are the file's."""
        self._file: Any = None

    def write(self, *columns: npt.NDArray[Any], missing: Missing = None) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        parts = [c[:, None] if c.ndim == 1 else c for c in columns]
        arrays = (np.ascontiguousarray(column) for part in parts for column in part.T)
        single = (pa.array(array, mask=missing) for array in arrays)
        table = pa.table(dict(zip(self.names, single, strict=True)))
        if self._file is None:
            self._file = parquet.ParquetWriter(self._path, table.schema)
        self._file.write_table(table)

    def close(self, *, complete: bool) -> None:
        if self._file is None and complete:
            self.write(np.empty((0, len(self.names))))
        if self._file is not None:
            self._file.close()


def missing_in(dtype: DType) -> float | str:
    """Missing value of a type in .npy files; ValueError if it has none."""
    known: dict[str, float | str] = {"f": np.nan, "U": ""}
    written = known.get(dtype.kind)
    if written is None:
        raise ValueError(
            f"expected numbers with a fraction, or text, for rows to be empty: {dtype}"
        )
    return written


def open_writer(path: Path, names: list[str]) -> Writer:
    """A writer for a file whose format its name says; of ``-``, CSV to standard output."""
    if str(path) == "-":
        return CsvStream(_Shown(sys.stdout) if sys.stdout.isatty() else sys.stdout, names)
    if path.exists() and not path.is_file() and not path.is_dir():  # a device, or a pipe
        return CsvStream(open(path, "w", newline="", encoding="utf-8"), names)
    kinds: dict[str, type[Writer]] = {
        ".csv": CsvWriter,
        ".parquet": ParquetWriter,
        ".npy": NpyWriter,
    }
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"{path}: expected a name that ends in one of {' '.join(SUFFIXES)}")
    return kind(path, names)

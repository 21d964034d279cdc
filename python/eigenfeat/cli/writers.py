"""Write columns to files block by block: CSV, Parquet and NumPy's format."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from eigenfeat._base.file_errors import naming
from eigenfeat._base.saved_files import taking_the_place_of
from eigenfeat.cli.files import STANDARD, check_output
from eigenfeat.cli.output import STANDARD_OUTPUT, UsageError, printable
from eigenfeat.io.errors import arrow
from eigenfeat.io.rows import FileRows

__all__ = ["check_writable", "open_writer"]

_Missing = npt.NDArray[np.bool_] | None
_Write = Callable[..., None]  # takes columns, and `missing`


def check_writable(path: Path, *inputs: FileRows | str) -> None:
    """Raise an error for an output file that is an input or cannot be written."""
    if str(path) == STANDARD:
        return
    if path.suffix.lower() not in _WRITERS and not _is_device(path):
        raise UsageError(
            f"--output: expected a name that ends in one of {' '.join(_WRITERS)}, got {path}"
        )
    check_output(path, *inputs)


def _is_device(path: Path) -> bool:
    """Whether a path is a device or a pipe, which receives the output directly."""
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def open_writer(path: Path, names: list[str]) -> Iterator[_Write]:
    """Yield a function that writes rows to a file; ``-`` is CSV on standard output.

    The name of the file determines its format. The function takes columns, or matrices of columns,
    side by side. Rows flagged in `missing` are empty: no text, null, or NaN. A new file replaces an
    existing one once it is complete; devices and pipes receive the output directly, as CSV.
    """
    if str(path) == STANDARD:
        with naming(STANDARD_OUTPUT):
            with _csv_lines(_escaped(sys.stdout), names) as write:
                yield write
            sys.stdout.flush()
    elif _is_device(path):
        with naming(str(path)), _to_csv(path, names, "w") as write:
            yield write
    else:
        with taking_the_place_of(path) as new, _WRITERS[path.suffix.lower()](new, names) as write:
            yield write


@contextmanager
def _csv_lines(stream: Any, names: list[str]) -> Iterator[_Write]:
    """Yield a function that writes lines of fields; the first line has the names.

    Nothing is written if there is an error before the first rows. Numbers have enough digits to be
    read back exactly.
    """
    lines = csv.writer(stream, lineterminator="\n")
    header = [names]

    def write(*columns: npt.NDArray[Any], missing: _Missing = None) -> None:
        # In the column's own type: float32 needs fewer digits than float64.
        texts = [(c[:, None] if c.ndim == 1 else c).astype(str) for c in map(_filled, columns)]
        for text in texts:
            if missing is not None:
                text[missing] = ""
        lines.writerows(header)
        header.clear()
        lines.writerows(chain(*row) for row in zip(*(t.tolist() for t in texts), strict=True))

    yield write
    lines.writerows(header)


def _filled(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A column with empty text in place of missing objects."""
    if column.dtype.kind != "O":
        return column
    return np.array(["" if value is None else value for value in column.tolist()], dtype=object)


def _escaped(stream: TextIO) -> Any:
    """The stream; for a terminal, a stream that escapes control characters."""
    if not stream.isatty():
        return stream
    return SimpleNamespace(write=lambda text: stream.write(printable(text)))


@contextmanager
def _to_csv(path: Path, names: list[str], mode: str = "x") -> Iterator[_Write]:
    with open(path, mode, newline="", encoding="utf-8") as file, _csv_lines(file, names) as write:
        yield write


@contextmanager
def _to_npy(path: Path, names: list[str]) -> Iterator[_Write]:
    """Write a column or matrix; the header has a fixed length and is rewritten at the end."""
    n, dtype, row_shape = 0, np.dtype(np.float64), (len(names),)

    def header() -> bytes:
        out = io.BytesIO()
        fields = {"descr": dtype.str, "fortran_order": False, "shape": (n, *row_shape)}
        npy.write_array_header_1_0(out, fields)  # type: ignore[no-untyped-call, unused-ignore]
        return out.getvalue()

    with open(path, "xb") as file:

        def write(rows: npt.NDArray[Any], *, missing: _Missing = None) -> None:
            nonlocal n, dtype, row_shape
            if missing is not None:
                rows = np.array(rows)
                rows[missing] = "" if rows.dtype.kind == "U" else np.nan
            if not n:
                row_shape, dtype = rows.shape[1:], rows.dtype.newbyteorder("<")
                file.write(header())
            file.write(np.asarray(rows, dtype=dtype, order="C").tobytes())
            n += len(rows)

        yield write
        file.seek(0)
        file.write(header())


@contextmanager
def _to_parquet(path: Path, names: list[str]) -> Iterator[_Write]:
    """Write a row group for each block; the first rows determine the types."""
    pa = arrow(str(path))
    from pyarrow import parquet

    file: Any = None

    def write(*columns: npt.NDArray[Any], missing: _Missing = None) -> None:
        nonlocal file
        matrices = [c[:, None] if c.ndim == 1 else c for c in columns]
        arrays = (np.ascontiguousarray(column) for matrix in matrices for column in matrix.T)
        arrow_arrays = (pa.array(array, mask=missing) for array in arrays)
        table = pa.table(dict(zip(names, arrow_arrays, strict=True)))
        if file is None:  # later rows may have text in columns without a value so far
            types = [pa.string() if type_ == pa.null() else type_ for type_ in table.schema.types]
            file = parquet.ParquetWriter(path, pa.schema(zip(names, types, strict=True)))
        file.write_table(table.cast(file.schema))

    try:
        yield write
        if file is None:
            write(np.empty((0, len(names))))
    finally:
        if file is not None:
            file.close()


_WRITERS = {".csv": _to_csv, ".parquet": _to_parquet, ".npy": _to_npy}

"""Damaged files: detected before their numbers are used, and named in the error.

Libraries tell of damage in a dozen ways (`zlib.error`, EOFError, a seek to a negative byte); here
all of them become one.
"""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from eigenfeat.tables.errors import arrow

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["UnpackedFile", "arrow_damage_named", "damage_named", "sound"]


def sound(batch: RecordBatch) -> RecordBatch:
    """The same record batch, once its offsets and codes are known to lie within it.

    pyarrow maps what a file says and follows it: an offset beyond the text, or a code beyond the
    dictionary, reads memory that belongs to something else. Numbers cost next to nothing here.
    pyarrow would also look at every character of a column of text; here only its offsets and its
    missing values are looked at, because labels are decoded once each, and strictly, when they are
    read.

    Raises
    ------
    pyarrow.ArrowInvalid
        If the batch's parts do not fit together.
    """
    from pyarrow import types

    for column in batch.columns:
        if types.is_string(column.type) or types.is_large_string(column.type):
            _check_text(column)
        else:
            column.validate(full=True)
    batch.validate()
    return batch


def _check_text(column: Any) -> None:
    """ArrowInvalid if texts begin or end outside the column's bytes, or nulls are miscounted."""
    import pyarrow as pa

    column.validate()
    present, offsets, text = column.buffers()
    if len(column) == 0 and (offsets is None or offsets.size == 0):
        return
    small = pa.types.is_string(column.type)
    kind, number = (pa.int32(), np.dtype(np.int32)) if small else (pa.int64(), np.dtype(np.int64))
    # Numbers with the same missing values: of them pyarrow looks at nothing else.
    numbers = [present, offsets]
    pa.Array.from_buffers(kind, len(column), numbers, column.null_count, column.offset).validate(
        full=True
    )
    start, count = column.offset * number.itemsize, len(column) + 1
    size = 0 if text is None else text.size
    if offsets.size < start + count * number.itemsize:
        raise pa.ArrowInvalid("offsets of text are missing")
    places = np.frombuffer(offsets, number, count, start)
    if places[0] < 0 or (len(column) > 0 and places[-1] > size):
        raise pa.ArrowInvalid("text lies beyond its column")
    if np.less(places[1:], places[:-1]).any():
        raise pa.ArrowInvalid("a text ends before it begins")


@contextmanager
def arrow_damage_named(path: str | os.PathLike[str], expected: str | None = None) -> Iterator[None]:
    """Turn pyarrow's errors into a ValueError that names the file.

    Parameters
    ----------
    path : path
        The file.
    expected : str, optional
        What the file should have been, while it is not known to be that.

    Raises
    ------
    ValueError
        If the file is damaged, or not what was expected.
    MemoryError
        If pyarrow gets less memory than the file asks for.
    """
    pa = arrow(os.fspath(path))
    try:
        yield
    except pa.ArrowCancelled:
        raise
    except pa.ArrowMemoryError as error:
        raise MemoryError(
            f"{os.fspath(path)}: it is damaged, or takes more memory than there is: {_short(error)}"
        ) from None
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise ValueError(_what(path, expected, error)) from None


@contextmanager
def damage_named(path: str | os.PathLike[str], expected: str | None = None) -> Iterator[None]:
    """Turn the errors of Python's archives and decompressors into a ValueError that names the file.

    Parameters as of `arrow_damage_named`. Errors of the system, as of a file that is not there, and
    ValueErrors stay what they are.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # those are of gzip, bz2, and of wild seeks
            raise
        raise ValueError(_what(path, expected, error)) from None
    except UnicodeDecodeError as error:
        raise ValueError(_what(path, expected, error)) from None
    except (ValueError, MemoryError, ImportError):
        raise
    except Exception as error:  # zipfile, zlib, lzma, struct and ast have one each, or several
        raise ValueError(_what(path, expected, error)) from None


class UnpackedFile(gzip.GzipFile):
    """A file that is decompressed as it is read; a ValueError names it where that fails."""

    def read(self, size: int | None = -1) -> bytes:
        """Read so many bytes."""
        with damage_named(self.name):
            return super().read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a byte."""
        with damage_named(self.name):
            return super().seek(offset, whence)


def _what(path: str | os.PathLike[str], expected: str | None, error: BaseException) -> str:
    what = "it is damaged:" if expected is None else f"expected {expected}, got"
    return f"{os.fspath(path)}: {what} {_short(error)}"


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:120]

"""Damaged files: detected before their numbers are used, and named in the error.

Libraries report damage in a dozen ways (`zlib.error`, EOFError, a seek to a negative byte); here
all of them become one.
"""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from eigenfeat.tables.errors import arrow

__all__ = ["arrow_damage_named", "damage_named", "open_bytes"]


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


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed if its name ends in .gz."""
    if path.suffix == ".gz":
        return _UnpackedFile(path)  # type: ignore[return-value]
    return open(path, "rb")


class _UnpackedFile(gzip.GzipFile):
    """A file that is decompressed as it is read; a ValueError names it where that fails."""

    def read(self, size: int | None = -1) -> bytes:
        """Read so many bytes."""
        with damage_named(self.name):
            return super().read(size)

    def read1(self, size: int = -1) -> bytes:
        """Read so many bytes at most."""
        with damage_named(self.name):
            return super().read1(size)


def _what(path: str | os.PathLike[str], expected: str | None, error: BaseException) -> str:
    what = "it is damaged:" if expected is None else f"expected {expected}, got"
    return f"{os.fspath(path)}: {what} {_short(error)}"


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:120]

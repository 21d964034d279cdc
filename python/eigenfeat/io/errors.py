"""Errors of files: invalid samples, wrong options, damage and missing packages."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from eigenfeat._base.types import DType
from eigenfeat._base.validation import show

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["BadRowError", "OptionError", "arrow", "damage_named", "not_finite", "open_bytes"]

MISSING_LABEL = "expected a label, got a missing value"
MISSING_NUMBER = "expected a number, got a missing value"
MISSING_ENTRY = "expected a finite number, got NaN or a missing value"
COMPLETE_FIT = (
    "; the fit had no missing values: fit the model to rows with missing values, or replace the "
    "missing values in the file"
)


class BadRowError(ValueError):
    """Error for an invalid row. The message names the file, the row or line and the column.

    Attributes
    ----------
    path : str
        Path of the file.
    row : int
        Index of the row from 0, or number of the line from 1.
    """

    def __init__(
        self, path: str | os.PathLike[str], unit: str, row: int, column: str | None, what: str
    ) -> None:
        # pickle calls __init__ with these arguments.
        super().__init__(path, unit, row, column, what)
        place = f"{unit} {row}" if column is None else f"{unit} {row}, column {column!r}"
        self._message = f"{os.fspath(path)}: {place}: {what}"
        self.path, self.row = str(Path(path)), row

    def __str__(self) -> str:
        return self._message


class OptionError(ValueError):
    """Error for an argument of `open_rows` that does not match the files or other arguments.

    Attributes
    ----------
    option : str
        Name of the argument.
    text : str
        The message without the name.
    """

    def __init__(self, option: str, text: str) -> None:
        super().__init__(option, text)  # pickle calls __init__ with these arguments
        self.option, self.text = option, text

    def __str__(self) -> str:
        return f"{self.option}: {self.text}"


def not_finite(value: object, dtype: DType) -> str:
    """Return the message for a value that is not a finite number of this type."""
    return f"expected a finite {dtype} number, got {show(value)}"


def arrow(feature: str) -> ModuleType:
    """Import pyarrow; the ImportError names the feature that needs it."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError:
        raise ImportError(f"{feature} needs pyarrow: pip install pyarrow") from None
    return pyarrow


@contextmanager
def damage_named(path: str | os.PathLike[str], expected: str | None = None) -> Iterator[None]:
    """Turn the errors of pyarrow, NumPy and decompressors into a ValueError that names the file.

    Libraries report damage by many types of errors, such as `zlib.error` and EOFError.
    `expected` is the format of a file that has not been recognised yet. Errors of the system, such
    as a missing file, and errors that name the file are not changed.
    """
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        is_named = isinstance(error, OptionError) or (
            isinstance(error, ValueError) and str(error).startswith(os.fspath(path))
        )
        is_system_error = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
        if is_named or is_system_error or type(error).__name__ == "ArrowCancelled":
            raise
        if isinstance(error, MemoryError):
            what = "it is damaged, or needs more memory than is available:"
            raise MemoryError(f"{os.fspath(path)}: {what} {text[:120]}") from None
        what = "it is damaged:" if expected is None else f"expected {expected}, got"
        raise ValueError(f"{os.fspath(path)}: {what} {text[:120]}") from None


def is_gzip(path: Path) -> bool:
    """Whether a file's name ends in .gz."""
    return path.suffix.lower() == ".gz"


def ending_of(path: Path) -> str:
    """Ending of a file's name in lower case, without .gz."""
    return Path(path.stem if is_gzip(path) else path).suffix.lower()


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed if its name ends in .gz."""
    return gzip.GzipFile(path) if is_gzip(path) else open(path, "rb")  # type: ignore[return-value]


def fraction_of(file: Any, path: Path) -> float:
    """Fraction of a file's bytes that have been read; the compressed bytes of .gz files count."""
    raw = getattr(file, "fileobj", None) or file
    return min(float(raw.tell()) / max(path.stat().st_size, 1), 1.0)

"""Files that are written completely or not at all, and archives that are read without trust.

Memory for an array in an archive is allocated after the length of its member is checked.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from typing import IO, Any

from numpy.lib import format as npy

from eigenfeat._base.file_errors import is_of_file, naming
from eigenfeat._base.validation import check_path

__all__ = [
    "FileFormatError",
    "check_array",
    "open_archive",
    "reading",
    "replacing",
    "taking_the_place_of",
]

_MAX_ITEM_BYTES = 4096  # largest item of an array without entries


class FileFormatError(ValueError):
    """A file that is foreign, truncated, damaged or not trusted; the message names the file."""


# ---- writing -------------------------------------------------------------------------------------


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a new file that replaces the file at `path` when the block ends.

    If the block raises, or the disk is full, the old file is unchanged. See `taking_the_place_of`.
    """
    with (
        taking_the_place_of(Path(check_path(path))) as scratch,
        open(scratch, "x+b") as file,
    ):
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def taking_the_place_of(target: Path) -> Iterator[Path]:
    """Yield the path of a new file, which is renamed to `target`, or removed after an error.

    A link still points to its file, and a replaced file keeps its permissions. Content for a
    character device, such as ``/dev/null``, is copied to the device. OSError if the target is a
    folder or a special file such as a pipe, or the file cannot be written. The error names
    `target`, or the missing folder.
    """
    try:
        mode = target.stat().st_mode
    except OSError:
        mode = None
    if mode is not None and stat.S_ISCHR(mode):
        with tempfile.TemporaryDirectory() as folder, naming(str(target), Path(folder, "part")):
            scratch = Path(folder, "part")
            yield scratch
            with open(scratch, "rb") as content, open(target, "wb") as device:
                shutil.copyfileobj(content, device)
        return
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if mode is not None and not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "expected a file to write, got a pipe or socket", str(target))
    real = Path(os.path.realpath(target))
    scratch = real.with_name(f".{real.name}.{secrets.token_hex(8)}.part")
    try:
        yield scratch
        if mode is not None:
            shutil.copymode(real, scratch)
        os.replace(scratch, real)
    except BaseException as error:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)
        if isinstance(error, OSError) and is_of_file(scratch, error):
            raise _naming_target(error, target) from None
        raise


def _naming_target(error: OSError, target: Path) -> OSError:
    """Return an error that names the target, or its missing folder, instead of the scratch file."""
    missing = target.parent
    while not missing.parent.is_dir() and missing.parent != missing:
        missing = missing.parent
    place = target if missing.is_dir() else missing
    return OSError(error.errno, error.strerror or str(error), str(place))


# ---- reading -------------------------------------------------------------------------------------


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file; errors of a damaged or hostile file become a one-line FileFormatError.

    Raises
    ------
    FileFormatError
        If the block raises an error that such a file can cause; the message begins with the path.
    OSError
        If the file cannot be opened or read.
    """
    name = check_path(path)
    with open(name, "rb") as file:
        try:
            yield file
        except FileFormatError as error:
            raise FileFormatError(f"{name}: cannot be loaded: {error}") from None
        except (MemoryError, Warning):
            raise
        except Exception as error:  # libraries report damage by many types of errors
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise
            detail = " ".join(str(error).split())[:200] or type(error).__name__
            raise FileFormatError(
                f"{name}: not an eigenfeat file, or a truncated or damaged one ({detail})"
            ) from error


def open_archive(file: IO[bytes]) -> zipfile.ZipFile:
    """Open a zip archive of uncompressed members; only its directory is read.

    FileFormatError if a member is compressed or encrypted, two members have the same name, or the
    members are longer than the file.
    """
    archive = zipfile.ZipFile(file)
    members = archive.infolist()
    if len({member.filename for member in members}) != len(members):
        raise FileFormatError("two members have the same name")
    for member in members:
        stored = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 1
        if not stored or member.compress_size != member.file_size:
            raise FileFormatError(f"member {member.filename[:40]!r} is compressed or encrypted")
    if sum(member.file_size for member in members) > file.seek(0, io.SEEK_END):
        raise FileFormatError("members are longer than the file")
    return archive


def check_array(archive: zipfile.ZipFile, member: str) -> tuple[int, ...]:
    """Return the shape of the array in an ``npy`` member; only its header is read.

    ValueError if the array has Python objects, or its size differs from the rest of the member.
    """
    with archive.open(member) as content:
        version = npy.read_magic(content)
        headers: dict[Any, Callable[..., Any]] = {
            (1, 0): npy.read_array_header_1_0,
            (2, 0): npy.read_array_header_2_0,
        }
        if version not in headers:
            raise ValueError("an array of an unknown version of NumPy's format")
        shape, _, dtype = headers[version](content)
        n_bytes = archive.getinfo(member).file_size - content.tell()
    if dtype.hasobject or not 0 < dtype.itemsize <= max(n_bytes, _MAX_ITEM_BYTES):
        raise ValueError(f"an array of dtype {dtype!s:.40}, not of numbers or text")
    if any(size < 0 for size in shape) or prod(shape) * dtype.itemsize != n_bytes:
        raise ValueError(f"an array of {prod(shape) * dtype.itemsize} bytes in {n_bytes}")
    return tuple(shape)

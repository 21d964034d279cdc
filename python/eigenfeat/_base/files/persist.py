"""Safe files: arrays and a JSON header in one npz archive, with no pickle inside.

``header.json`` holds the format's name and version, the kind of object and its own data (``meta``);
every array is a member ``<name>.npy``, so that ``numpy.load`` reads it too. One content has one
sequence of bytes, whatever the day, the versions of Python and NumPy or the machine, and a digest
over all of them (see `archive`), so that a damaged file is never taken for a whole one. Files are
written under another name in the same folder, flushed to the disk and then renamed: a reader sees
the old file or the new one, never a part. Reading checks names, counts and sizes before it takes
memory for an array, and takes no more than some 60 times the header's length for it.

Files of version 1 have a SHA-256 for each array in the header, ``arrays``, in place of the digest.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import struct
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.files.archive import (
    HEADER,
    NUMBERS,
    ArchiveReader,
    array_header,
    write_members,
)
from eigenfeat._base.validation import check_path

__all__ = [
    "FileFormatError",
    "Reader",
    "opened",
    "read",
    "replacing",
    "taking_the_place_of",
    "write",
]

FORMAT = "eigenfeat"
VERSION = 2
MAX_HEADER_BYTES = 64 * 2**20
_ARRAYS: dict[int, dict[str, type]] = {1: {"arrays": dict}, 2: {}}  # in headers of a version
NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")

_MALFORMED = (
    struct.error,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
)


class FileFormatError(ValueError):
    """A file that is foreign, truncated, damaged, or of a newer version. Names the path."""


def write(
    path: str | os.PathLike[str],
    kind: str,
    meta: dict[str, Any],
    arrays: Iterable[tuple[str, npt.NDArray[Any]]],
) -> None:
    """Write one object to `path`, atomically.

    Parameters
    ----------
    path : str or path-like
        Where to; used as it is, no suffix is added. An older file there is replaced at the end.
    kind : str
        What the file holds; `read` asks for the same word.
    meta : dict
        Anything that JSON can hold.
    arrays : iterable of (name, array)
        Lower-case names; arrays of numbers or bool. Taken one after the other, so that a
        generator needs memory for one array only.
    """
    with replacing(path) as file:
        _write_archive(file, kind, meta, arrays)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a new file that takes the place of the one at `path` once the block is through.

    If the block raises, or the disk is full, the old file stays as it was.
    """
    target = Path(check_path(path))
    with taking_the_place_of(target) as scratch, open(scratch, "x+b") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    _sync_folder(target.parent)


@contextmanager
def taking_the_place_of(target: Path) -> Iterator[Path]:
    """The path of a new file, which is renamed to `target` if all goes well, else removed.

    Errors name what the caller knows of: `target`, or the folder that is missing.
    """
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        yield scratch
        os.replace(scratch, target)
    except BaseException as error:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (scratch, str(scratch)):
            raise _about(error, target) from None
        raise


def _about(error: OSError, target: Path) -> OSError:
    """The error of a scratch file as one of the file that was asked for."""
    missing = target.parent
    while not missing.parent.is_dir() and missing.parent != missing:
        missing = missing.parent
    place = target if missing.is_dir() else missing
    return OSError(error.errno, error.strerror, str(place))


def _write_archive(
    file: IO[bytes],
    kind: str,
    meta: dict[str, Any],
    arrays: Iterable[tuple[str, npt.NDArray[Any]]],
) -> None:
    text = _text({"format": FORMAT, "version": VERSION, "kind": kind, "meta": meta})
    if len(text) > MAX_HEADER_BYTES:
        raise ValueError(f"meta: expected at most {MAX_HEADER_BYTES} bytes, got {len(text)}")

    def members() -> Iterator[tuple[str, list[bytes | memoryview]]]:
        yield HEADER, [text]
        taken: set[str] = set()
        for name, array in arrays:
            data = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
            dtype = data.dtype.str
            if not NAME.fullmatch(name) or name in taken or dtype not in NUMBERS:
                raise ValueError(f"arrays: unexpected name or dtype: {name!r}, {data.dtype}")
            taken.add(name)
            yield f"{name}.npy", [array_header(data.shape, dtype), _bytes(data)]

    write_members(file, members())


def _text(header: dict[str, Any]) -> bytes:
    return json.dumps(header, allow_nan=False, sort_keys=True).encode()


def _bytes(array: npt.NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _sync_folder(folder: Path) -> None:
    """Make the rename last through a power cut, where the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


class Reader:
    """An open file: ``kind``, ``meta``, and the arrays by name, each read when asked for."""

    def __init__(self, archive: ArchiveReader, kind: str | None) -> None:
        self._archive = archive
        header = _header(archive)
        self.kind: str = header["kind"]
        if self.kind != kind and kind is not None:
            raise FileFormatError(f"it holds {self.kind!r}, not {kind!r}")
        self.version: int = header["version"]
        self.meta: dict[str, Any] = header["meta"]
        self.names = sorted(name[:-4] for name in archive.names() - {HEADER})
        self._unread = set(self.names)
        self._digests = header.get("arrays", {})  # of version 1
        if self.version == 1 and self._digests.keys() != self._unread:
            raise FileFormatError("its members are not those that its header lists")

    def array(
        self, name: str, shape: tuple[int, ...] | None = None, dtype: str | None = "<f8"
    ) -> npt.NDArray[Any]:
        """One array, which must have this shape and dtype; None takes what there is."""
        if name not in self.names:
            raise FileFormatError(f"array {name} is missing")
        array = self._archive.array(f"{name}.npy")
        if shape not in (None, array.shape) or dtype not in (None, array.dtype.str):
            raise FileFormatError(f"array {name} has an unexpected shape or dtype")
        if self.version == 1:
            found = hashlib.sha256(_bytes(array)).hexdigest()
            if self._digests[name]["sha256"] != found:
                raise FileFormatError(f"array {name} does not match its checksum")
        self._unread.discard(name)
        return array

    def finish(self) -> None:
        """FileFormatError if an array was not asked for: nobody would have checked it."""
        if self._unread:
            raise FileFormatError(f"array {min(self._unread)} has no place in it")


def _header(archive: ArchiveReader) -> dict[str, Any]:
    if HEADER not in archive.names():
        raise ValueError(f"there is no {HEADER} in it")
    if archive.size(HEADER) > MAX_HEADER_BYTES:
        raise FileFormatError(f"its header is longer than {MAX_HEADER_BYTES} bytes")
    text = archive.content(HEADER)
    header = json.loads(text)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FileFormatError("its header is another program's")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise FileFormatError(f"its version is {version!r}")
    if version > VERSION:
        raise FileFormatError(
            f"it is of version {version}, newer than {VERSION}, the newest that this release reads"
        )
    if archive.sealed != (version > 1):
        raise ValueError("its end is not that of its version")
    if _text(header) != text:
        raise FileFormatError("its header is not as it was written")
    types = {"format": str, "version": int, "kind": str, "meta": dict}
    if {name: type(part) for name, part in header.items()} != types | _ARRAYS[version]:
        raise FileFormatError("its header is incomplete or has more than it may")
    return header


@contextmanager
def read(path: str | os.PathLike[str], kind: str | None) -> Iterator[Reader]:
    """Open a file that `write` made; everything wrong with it becomes a FileFormatError.

    Parameters
    ----------
    path : str or path-like
        The file.
    kind : str or None
        What it must hold; None for anything.

    Yields
    ------
    Reader
        Errors raised inside the block because of its content are translated as well, and so is an
        array that the block did not ask for.

    Raises
    ------
    FileFormatError
        One line that begins with the path.
    OSError
        If the file cannot be opened or read.
    """
    name = check_path(path)
    with open(name, "rb") as file, opened(file, name, kind) as reader:
        yield reader


@contextmanager
def opened(file: IO[bytes], name: str | bytes, kind: str | None) -> Iterator[Reader]:
    """What `read` does, with a binary file that is open, called `name` in errors."""
    try:
        reader = Reader(ArchiveReader(file), kind)
        yield reader
        reader.finish()
    except FileFormatError as error:
        raise FileFormatError(f"{name!s}: cannot be loaded: {error}") from None
    except _MALFORMED as error:
        raise FileFormatError(_foreign(name, error)) from error
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):
            raise
        raise FileFormatError(_foreign(name, error)) from error


def _foreign(name: str | bytes, error: Exception) -> str:
    detail = " ".join(str(error).split())[:120]
    return f"{name!s}: not an {FORMAT} file, or a truncated or damaged one ({detail})"

"""Safe files: arrays and a JSON header in one npz archive, with no pickle inside.

A file is an uncompressed zip archive. ``header.json`` holds the format's name and version, the
kind of object, its own data (``meta``), and for every array its shape, dtype and SHA-256; every
array is a member ``<name>.npy``, so that ``numpy.load`` reads it too. Files are written under
another name in the same folder, flushed to the disk and then renamed: a reader sees the old file or
the new one, never a part. Reading checks names, counts and sizes before it takes memory for an
array, and checksums after.
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
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.lib.format as npy
import numpy.typing as npt

__all__ = ["FileFormatError", "Reader", "read", "write"]

FORMAT = "eigenfeat"
VERSION = 1
HEADER = "header.json"
MAX_HEADER_BYTES = 64 * 2**20
MAX_MEMBERS = 2_000_000
MAX_NPY_HEADER = 4096
DTYPES = frozenset(["<f8", "<f4", "<i8", "<i4", "|u1", "|b1"])
NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")

_MALFORMED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    KeyError,
    OverflowError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
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
        Lower-case names; float, int64, int32, uint8 or bool arrays. Taken one after the other,
        so that a generator needs memory for one array only.
    """
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        with open(scratch, "xb") as file:
            _write_archive(file, kind, meta, arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _write_archive(
    file: IO[bytes],
    kind: str,
    meta: dict[str, Any],
    arrays: Iterable[tuple[str, npt.NDArray[Any]]],
) -> None:
    table: dict[str, Any] = {}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays:
            data = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            if not NAME.fullmatch(name) or name in table or data.dtype.str not in DTYPES:
                raise ValueError(f"arrays: unexpected name or dtype: {name!r}, {data.dtype}")
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                npy.write_array(member, data, version=(1, 0), allow_pickle=False)
            table[name] = {
                "shape": list(data.shape),
                "dtype": data.dtype.str,
                "sha256": _checksum(data),
            }
        header = {"format": FORMAT, "version": VERSION, "kind": kind, "meta": meta, "arrays": table}
        text = json.dumps(header, allow_nan=False, sort_keys=True).encode()
        if len(text) > MAX_HEADER_BYTES:
            raise ValueError(f"meta: expected at most {MAX_HEADER_BYTES} bytes, got {len(text)}")
        archive.writestr(zipfile.ZipInfo(HEADER), text)


def _checksum(array: npt.NDArray[Any]) -> str:
    return hashlib.sha256(array.reshape(-1).view(np.uint8).data).hexdigest()


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
    """An open file: ``meta``, and the arrays by name, each read when asked for."""

    def __init__(self, archive: zipfile.ZipFile, kind: str, size: int) -> None:
        self._archive = archive
        self._members = _members(archive, size)
        header = _header(archive, self._members, kind)
        self.meta: dict[str, Any] = header["meta"]
        self._arrays: dict[str, Any] = header["arrays"]
        if set(self._members) != {HEADER} | {f"{name}.npy" for name in self._arrays}:
            raise FileFormatError("its members are not those that its header lists")

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def array(self, name: str, shape: tuple[int, ...], dtype: str = "<f8") -> npt.NDArray[Any]:
        """One array, which must have this shape and dtype."""
        entry = self._arrays.get(name)
        if entry is None or entry["dtype"] != dtype or entry["shape"] != list(shape):
            raise FileFormatError(f"array {name} is missing or has an unexpected shape or dtype")
        member = self._members[f"{name}.npy"]
        wanted = int(np.prod([1, *shape], dtype=object)) * np.dtype(dtype).itemsize
        if not 0 <= member.file_size - wanted <= MAX_NPY_HEADER:
            raise FileFormatError(f"array {name} is {member.file_size} bytes long, not {wanted}")
        with self._archive.open(member) as file:
            array = _read_npy(file, shape, dtype)
        if array is None or _checksum(array) != entry["sha256"]:
            raise FileFormatError(f"array {name} does not match its checksum")
        return array


def _read_npy(file: IO[bytes], shape: tuple[int, ...], dtype: str) -> npt.NDArray[Any] | None:
    """The member's array, or None if it is not of this shape, dtype and length."""
    if npy.read_magic(file) != (1, 0):
        return None
    found = npy.read_array_header_1_0(file, max_header_size=MAX_NPY_HEADER)
    if found[0] != tuple(shape) or found[2].str != dtype or (found[1] and len(shape) > 1):
        return None
    array = np.empty(shape, dtype=dtype)
    data = file.read(array.nbytes)
    if len(data) != array.nbytes or file.read(1):
        return None
    array.reshape(-1).view(np.uint8)[:] = np.frombuffer(data, dtype=np.uint8)
    return array


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    entries = archive.infolist()
    if len(entries) > MAX_MEMBERS:
        raise FileFormatError(f"it has {len(entries)} members, more than {MAX_MEMBERS}")
    members = {entry.filename: entry for entry in entries}
    if len(members) != len(entries):
        raise FileFormatError("two members have the same name")
    for entry in entries:
        stored = entry.compress_type == zipfile.ZIP_STORED
        if not stored or entry.file_size != entry.compress_size or entry.file_size > size:
            raise FileFormatError(f"member {entry.filename!r} is not stored uncompressed")
    return members


def _header(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], kind: str
) -> dict[str, Any]:
    if HEADER not in members:
        raise FileFormatError(f"there is no {HEADER} in it")
    if members[HEADER].file_size > MAX_HEADER_BYTES:
        raise FileFormatError(f"its header is longer than {MAX_HEADER_BYTES} bytes")
    header = json.loads(archive.read(members[HEADER]))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FileFormatError("its header is another program's")
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise FileFormatError(f"its version is {version!r}")
    if version > VERSION:
        raise FileFormatError(
            f"it is of version {version}, newer than {VERSION}, the newest that this release reads"
        )
    if header.get("kind") != kind:
        raise FileFormatError(f"it holds {header.get('kind')!r}, not {kind!r}")
    if not isinstance(header.get("meta"), dict) or not isinstance(header.get("arrays"), dict):
        raise FileFormatError("its header is incomplete")
    for name, entry in header["arrays"].items():
        if not NAME.fullmatch(name) or set(entry) != {"shape", "dtype", "sha256"}:
            raise FileFormatError("its header lists an array that this format does not know")
    return header


@contextmanager
def read(path: str | os.PathLike[str], kind: str) -> Iterator[Reader]:
    """Open a file that `write` made; everything wrong with it becomes a FileFormatError.

    Parameters
    ----------
    path : str or path-like
        The file.
    kind : str
        What it must hold.

    Yields
    ------
    Reader
        Errors raised inside the block because of its content are translated as well.

    Raises
    ------
    FileFormatError
        One line that begins with the path.
    OSError
        If the file cannot be opened or read.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            with zipfile.ZipFile(file) as archive:
                yield Reader(archive, kind, size)
        except FileFormatError as error:
            raise FileFormatError(f"{os.fspath(path)}: cannot be loaded: {error}") from None
        except _MALFORMED as error:
            raise FileFormatError(_foreign(path, error)) from error
        except OSError as error:
            if error.errno not in (None, errno.EINVAL):
                raise
            raise FileFormatError(_foreign(path, error)) from error


def _foreign(path: str | os.PathLike[str], error: Exception) -> str:
    detail = " ".join(str(error).split())[:120]
    return f"{os.fspath(path)}: not an {FORMAT} file, or a truncated or damaged one ({detail})"

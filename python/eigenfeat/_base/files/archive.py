"""The container of a file: a zip archive of stored members, with one digest over the whole.

Python's `zipfile` writes and reads it. The archive's comment is the SHA-256 of all bytes before it:
a file that was damaged anywhere is refused before anything in it is looked at. A stranger's file
may have the right digest: members must have plain names that occur once, be stored uncompressed and
not overlap, so that they hold no more than the file is long. Dates, rights and systems are always
the same: one content has one sequence of bytes. Files of version 1 have no digest here.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import struct
import zipfile
from collections.abc import Iterable, Sequence
from math import prod
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

__all__ = ["HEADER", "ArchiveReader", "array_header", "write_members"]

HEADER = "header.json"
MEMBER = re.compile(r"[a-z][a-z0-9_]{0,99}\.npy|header\.json")
NUMBERS = ["<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1"]
MAX_DIRECTORY = 64 * 2**20

_DIGEST = 64  # hexadecimal digits
_END = struct.Struct("<4s4H2LH")
_WIDE_END = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_SIZE, _LOCAL_SIZE = 20, 30
_NPY = struct.Struct("<8sH")
_ARRAY = re.compile(
    rb"\{'descr': '([<|]\w\d)', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,19},)?|\d{1,19}(?:, \d{1,19}){1,7})\), \} *\n"
)
_UNIX = 3
_CHUNK = 2**19


# ---- writing -------------------------------------------------------------------------------------


def write_members(
    file: IO[bytes], members: Iterable[tuple[str, Sequence[bytes | memoryview]]]
) -> None:
    """Write an archive to an empty file that can be read, too.

    Parameters
    ----------
    file : binary file
    members : iterable of (name, parts)
        The content is the parts in a row.
    """
    with zipfile.ZipFile(file, "w") as archive:
        archive.comment = bytes(_DIGEST)  # room for it
        for name, parts in members:
            info = zipfile.ZipInfo(name)
            info.create_system = _UNIX
            info.file_size = sum(memoryview(part).nbytes for part in parts)
            with archive.open(info, "w") as member:
                for part in parts:
                    member.write(part)
    end = file.seek(-_DIGEST, os.SEEK_END)
    digest = _digest(file, end)
    file.seek(end)
    file.write(digest)


def array_header(shape: tuple[int, ...], dtype: str) -> bytes:
    """The header of an ``.npy`` file of version 1.0; its length is that of any number of rows."""
    out = io.BytesIO()
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(out, about)
    return out.getvalue()


def _digest(file: IO[bytes], end: int) -> bytes:
    """SHA-256 of the file's first `end` bytes, as the archive's comment has it."""
    found = hashlib.sha256()
    buffer = memoryview(bytearray(min(_CHUNK, end)))
    file.seek(0)
    for begin in range(0, end, _CHUNK):
        part = buffer[: end - begin]
        found.update(part[: file.readinto(part)])  # type: ignore[attr-defined]
    return found.hexdigest().encode()


# ---- reading -------------------------------------------------------------------------------------


class ArchiveReader:
    """Members by name; ValueError, or one of zipfile's errors, for what is no such archive.

    ``sealed`` says whether there is a digest, which was right then.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.sealed = _check_end(file)
        self._file, self._archive = file, zipfile.ZipFile(file)
        members = self._archive.infolist()
        self._members = {member.filename: member for member in members}
        if len(self._members) != len(members):
            raise ValueError("two members have the same name")
        end = 0
        for member in sorted(members, key=lambda member: member.header_offset):
            _check_member(member)
            if member.header_offset < end:
                raise ValueError("its members overlap")
            end = member.header_offset + _LOCAL_SIZE + len(member.filename) + member.file_size
        if end > self._archive.start_dir:
            raise ValueError("its members overlap")

    def names(self) -> set[str]:
        """Names of the members."""
        return set(self._members)

    def size(self, name: str) -> int:
        """Length of a member; KeyError if there is none of that name."""
        return self._members[name].file_size

    def content(self, name: str) -> bytes:
        """All of a member."""
        return self._archive.read(self._members[name])

    def array(self, name: str) -> npt.NDArray[Any]:
        """A member that holds an array of numbers, and nothing else."""
        member = self._members[name]
        self._file.seek(member.header_offset)
        local = self._file.read(_LOCAL_SIZE)
        if local[:4] != b"PK\3\4":
            raise ValueError(f"what precedes {name} is not as it was written")
        self._file.seek(sum(struct.unpack_from("<2H", local, 26)), os.SEEK_CUR)
        start = self._file.read(_NPY.size)
        magic, length = _NPY.unpack(start)
        header = _ARRAY.fullmatch(self._file.read(length))
        if magic != b"\x93NUMPY\x01\x00" or header is None or header[1].decode() not in NUMBERS:
            raise ValueError(f"{name} is not a plain array of numbers")
        dtype, shape = np.dtype(header[1].decode()), tuple(map(int, re.findall(rb"\d+", header[2])))
        wanted = prod(shape) * dtype.itemsize
        if member.file_size != _NPY.size + length + wanted:
            raise ValueError(f"{name} is {member.file_size} bytes long, too few or too many")
        array = np.empty(shape, dtype=dtype)
        if self._file.readinto(array.reshape(-1).view(np.uint8).data) != wanted:  # type: ignore[attr-defined]
            raise ValueError("the file ends early")
        return array


def _check_member(member: zipfile.ZipInfo) -> None:
    if not MEMBER.fullmatch(member.orig_filename):
        raise ValueError(f"it has a member called {member.orig_filename[:40]!r}")
    stored = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits
    if not stored or member.compress_size != member.file_size:
        raise ValueError(f"member {member.filename} is not stored uncompressed")


def _check_end(file: IO[bytes]) -> bool:
    """Whether the file ends in a digest, and the right one; ValueError if it is no archive."""
    size = file.seek(0, os.SEEK_END)
    for length in (_DIGEST, 0):
        begin = size - _END.size - length
        if begin < 0:
            continue
        file.seek(begin)
        tail = file.read(_END.size + length)
        signature, *_, directory, _, comment = _END.unpack_from(tail)
        if signature != b"PK\5\6" or comment != length:
            continue
        if max(directory, _wide_directory(file, begin)) > MAX_DIRECTORY:
            raise ValueError("its directory is missing or too long")
        if length and tail[-length:] != _digest(file, size - length):
            raise ValueError("it does not match its digest")
        return length > 0
    raise ValueError("its end is missing")


def _wide_directory(file: IO[bytes], end: int) -> int:
    """Length of the directory by the end record of 64 bits, if there is one before `end`."""
    begin = end - _LOCATOR_SIZE - _WIDE_END.size
    if begin < 0:
        return 0
    file.seek(begin)
    record = file.read(end - begin)
    if record[_WIDE_END.size :][:4] != b"PK\6\7":
        return 0
    signature, *_, directory, _ = _WIDE_END.unpack_from(record)
    return int(directory) if signature == b"PK\6\6" else MAX_DIRECTORY + 1

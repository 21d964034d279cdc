"""The zip archive of a file, as `persist` writes it and nothing else: one layout for one content.

Members lie one after the other without gaps, uncompressed, each after its local header; then the
central directory and the end record. Dates are 1980's first, access rights are 0600, there are no
comments, and extra fields only where sizes need 64 bits (those of arrays have them always, so that
they may grow). That is what Python's `zipfile` writes on Unix when told to. Reading takes names,
checksums and sizes from the directory, lays out the archive that they would give, and compares: a
single byte that differs, be it in a field that everyone else ignores, makes the file a damaged one.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import IO, Any

import numpy as np
import numpy.typing as npt

__all__ = ["HEADER", "ArchiveReader", "ArchiveWriter", "array_header"]

HEADER = "header.json"
MEMBER = re.compile(r"[a-z][a-z0-9_]{0,99}\.npy|header\.json")
MAX_DIRECTORY = 64 * 2**20
MAX_NPY_HEADER = 4096

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_NPY = struct.Struct("<8sH")

_FIELD_LIMIT = 2**31 - 1  # beyond which sizes and offsets go to a field of 64 bits
_COUNT_LIMIT = 2**16 - 1
_FULL = 2**32 - 1
_FIRST_DAY = 33
_UNIX = 3
_RIGHTS = 0o600 << 16
_MAGIC = b"\x93NUMPY\x01\x00"
_CHUNK = 2**24


@dataclass(frozen=True)
class Member:
    """Name, CRC-32 and length of one member."""

    name: str
    crc: int
    size: int

    @property
    def version(self) -> int:
        """Which version of zip it takes to read this member."""
        return 45 if self.name != HEADER or self.size > _FIELD_LIMIT else 20

    def local_header(self) -> bytes:
        """What precedes the content."""
        name, extra, sizes = self.name.encode(), b"", (self.size, self.size)
        if self.version == 45:
            extra, sizes = struct.pack("<2H2Q", 1, 16, self.size, self.size), (_FULL, _FULL)
        fields = (b"PK\3\4", self.version, 0, 0, 0, _FIRST_DAY, self.crc, *sizes)
        return _LOCAL.pack(*fields, len(name), len(extra)) + name + extra

    def directory_entry(self, offset: int) -> bytes:
        """The line of the central directory."""
        wide = [self.size, self.size] if self.size > _FIELD_LIMIT else []
        size = _FULL if wide else self.size
        if offset > _FIELD_LIMIT:
            wide, offset = [*wide, offset], _FULL
        extra = struct.pack(f"<2H{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
        version = 45 if wide else self.version
        system = version | _UNIX << 8
        fields = (b"PK\1\2", system, version, 0, 0, 0, _FIRST_DAY, self.crc, size, size)
        lengths = (len(self.name), len(extra), 0, 0, 0)
        return _CENTRAL.pack(*fields, *lengths, _RIGHTS, offset) + self.name.encode() + extra


def _offsets(members: list[Member]) -> list[int]:
    """Where each member begins, and where the last one ends."""
    lengths = (len(member.local_header()) + member.size for member in members)
    return list(accumulate(lengths, initial=0))


def _tail(members: list[Member]) -> bytes:
    """All that follows the members."""
    *starts, begin = _offsets(members)
    entries = zip(members, starts, strict=True)
    directory = b"".join(member.directory_entry(start) for member, start in entries)
    count, size = len(members), len(directory)
    wide = b""
    if count > _COUNT_LIMIT or begin > _FIELD_LIMIT or size > _FIELD_LIMIT:
        wide = _END64.pack(b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, begin)
        wide += _LOCATOR.pack(b"PK\6\7", 0, begin + size, 1)
    few = min(count, 2**16 - 1)
    end = _END.pack(b"PK\5\6", 0, 0, few, few, min(size, _FULL), min(begin, _FULL), 0)
    return directory + wide + end


def array_header(shape: tuple[int, ...], dtype: str) -> bytes:
    """The header of an ``.npy`` file of version 1.0, as NumPy pads it."""
    text = _described(shape, dtype)
    text += b" " * (21 - len(repr(shape[0])) if shape else 0)  # room for the length to grow
    padding = -(_NPY.size + len(text) + 1) % 64
    text += b" " * (padding or 64) + b"\n"
    return _NPY.pack(_MAGIC, len(text)) + text


def _described(shape: tuple[int, ...], dtype: str) -> bytes:
    return f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}".encode()


class ArchiveWriter:
    """Writes members one after the other to a file, then the directory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._members: list[Member] = []

    def add(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        """Write one member, whose content is the parts in a row."""
        parts = list(parts)
        crc = 0
        for part in parts:
            crc = zlib.crc32(part, crc)
        member = Member(name, crc, sum(memoryview(part).nbytes for part in parts))
        self._file.write(member.local_header())
        for part in parts:
            self._file.write(part)
        self._members.append(member)

    def finish(self) -> None:
        """Write what follows the members."""
        self._file.write(_tail(self._members))


class ArchiveReader:
    """Members by name, each read and checked when asked for; ValueError where a byte is wrong."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        members, tail = _directory(file, size)
        if len({member.name for member in members}) != len(members):
            raise ValueError("two members have the same name")
        *starts, begin = _offsets(members)
        if begin != size - len(tail) or _tail(members) != tail:
            raise ValueError("the archive's directory is not as it was written")
        entries = zip(members, starts, strict=True)
        self._members = {member.name: (member, start) for member, start in entries}

    def names(self) -> set[str]:
        """Names of the members."""
        return set(self._members)

    def size(self, name: str) -> int:
        """Length of a member; KeyError if there is none of that name."""
        return self._members[name][0].size

    def content(self, name: str) -> bytes:
        """All of a member."""
        member = self._begin(name)
        data = self._file.read(member.size)
        if len(data) != member.size or zlib.crc32(data) != member.crc:
            raise ValueError(f"{name} does not match its checksum")
        return data

    def array(self, name: str, shape: tuple[int, ...], dtype: str) -> npt.NDArray[Any]:
        """A member that holds an array of this shape and dtype, and nothing else."""
        member = self._begin(name)
        start = self._file.read(min(_NPY.size, member.size))
        magic, length = _NPY.unpack(start)
        wanted = int(np.prod([1, *shape], dtype=object)) * np.dtype(dtype).itemsize
        if magic != _MAGIC or length > MAX_NPY_HEADER or (_NPY.size + length) % 64:
            raise ValueError(f"{name} is not a plain array")
        if member.size != _NPY.size + length + wanted:
            raise ValueError(f"{name} is {member.size} bytes long, too few or too many")
        text, described = self._file.read(length), _described(shape, dtype)
        if text[: len(described)] != described or text[len(described) :].strip(b" ") != b"\n":
            raise ValueError(f"{name} is an array of another shape or dtype")
        array = np.empty(shape, dtype=dtype)
        crc = self._fill(array, zlib.crc32(text, zlib.crc32(start)))
        if crc != member.crc:
            raise ValueError(f"{name} does not match its checksum")
        return array

    def _begin(self, name: str) -> Member:
        """Go to the content of a member."""
        member, start = self._members[name]
        self._file.seek(start)
        header = member.local_header()
        if self._file.read(len(header)) != header:
            raise ValueError(f"what precedes {name} is not as it was written")
        return member

    def _fill(self, array: npt.NDArray[Any], crc: int) -> int:
        """Read the array's bytes; the CRC-32 up to their end."""
        view = array.reshape(-1).view(np.uint8).data
        for begin in range(0, len(view), _CHUNK):
            part = view[begin : begin + _CHUNK]
            if self._file.readinto(part) != len(part):  # type: ignore[attr-defined]
                raise ValueError("the file ends early")
            crc = zlib.crc32(part, crc)
        return crc


def _directory(file: IO[bytes], size: int) -> tuple[list[Member], bytes]:
    """The members that the directory lists, not yet believed, and all of the file from there on."""
    if size < _END.size:
        raise ValueError("it is too short")
    file.seek(size - _END.size)
    signature, *_, begin, comment = _END.unpack(file.read(_END.size))
    if signature != b"PK\5\6" or comment:
        raise ValueError("its end is missing")
    wide_size = _END64.size + _LOCATOR.size + _END.size
    if size >= wide_size:
        file.seek(size - wide_size)
        wide = _END64.unpack(file.read(_END64.size))
        begin = wide[-1] if wide[0] == b"PK\6\6" else begin
    if not 0 <= size - begin <= MAX_DIRECTORY:
        raise ValueError("its directory is missing or too long")
    file.seek(begin)
    tail = file.read(size - begin)
    return list(_listed(tail)), tail


def _listed(tail: bytes) -> Iterable[Member]:
    position = 0
    while tail[position : position + 4] == b"PK\1\2":
        fields = _CENTRAL.unpack_from(tail, position)
        method, crc, length, name_length, extra_length = (fields[i] for i in (4, 7, 9, 10, 11))
        position += _CENTRAL.size
        name = tail[position : position + name_length].decode("ascii")
        extra = tail[position + name_length : position + name_length + extra_length]
        position += name_length + extra_length
        if not MEMBER.fullmatch(name):
            raise ValueError(f"it has a member called {name[:40]!r}")
        if method:
            raise ValueError(f"member {name} is not stored uncompressed")
        if length == _FULL:
            length = struct.unpack_from("<Q", extra, 4)[0]
        yield Member(name, crc, length)

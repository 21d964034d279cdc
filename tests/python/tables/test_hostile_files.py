"""Damaged and hostile files: each ends in a clear FileFormatError, soon and in little memory.

`EIGENFEAT_FUZZ=1000000` makes so many damaged files instead of 10,000; `EIGENFEAT_FUZZ_SEED` draws
others.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import sys
import time
import tracemalloc
import zipfile

import numpy as np
import pytest
from fitted_models import MODELS
from saved_files import header_of, members, refusal, rewrite, saved

import eigenfeat as ef
from eigenfeat._base.files import persist
from eigenfeat.models import saving

CASES = int(os.environ.get("EIGENFEAT_FUZZ", 10_000))
SEED = int(os.environ.get("EIGENFEAT_FUZZ_SEED", 0))
FUZZED = (
    *("moments", "GEM", "GEMClassifier, deep", "GEMEnsemble", "MulticlassSVM, sparse"),
    *("ReliableClassifier, QDA", "FixedTime", "KernelLDG"),
)


def refusal_of(data):
    """The same for a file that is in memory, which is faster; it is called "model"."""
    try:
        with persist.opened(io.BytesIO(data), "model", None) as file:
            saving._loaded(file)
    except ef.FileFormatError as error:
        return str(error)
    return None


def sealed(data):
    """The bytes with the digest that they should have."""
    return data[:-64] + hashlib.sha256(data[:-64]).hexdigest().encode()


# ---- damage --------------------------------------------------------------------------------------


def damaged(whole, rng):
    """The file with something flipped, cut, put in, taken out, copied, exchanged or zeroed."""
    data = bytearray(whole)
    at, to = sorted(rng.integers(0, len(data), 2).tolist())
    some = int(rng.integers(1, 40))
    way = rng.integers(0, 9)
    if way <= 2:
        data[at] ^= 1 << int(rng.integers(0, 8))
    elif way == 3:
        data[at] = int(rng.integers(0, 256))
    elif way == 4:
        del data[at:]
    elif way == 5:
        data[at:at] = rng.bytes(some)
    elif way == 6:
        del data[at : at + some]
    elif way == 7:
        data[at : at + some] = data[to : to + some]
    else:
        data[at : at + some] = bytes(len(data[at : at + some]))
    return bytes(data)


@pytest.mark.parametrize("name", FUZZED)
def test_every_damaged_file_is_refused(tmp_path, name):
    path = saved(tmp_path, name)
    whole, rng = path.read_bytes(), np.random.default_rng([SEED, FUZZED.index(name)])
    accepted, unclear = [], []
    for number in range(CASES // len(FUZZED)):
        data = damaged(whole, rng)
        if data == whole:
            continue
        text = refusal_of(data)
        if text is None:
            accepted.append(number)
        elif not text.startswith("model: ") or "\n" in text or len(text) > 400:
            unclear.append(text)
    assert (accepted, unclear) == ([], [])
    assert refusal_of(whole) is None


def test_every_single_bit_counts(tmp_path):
    path = tmp_path / "model"
    ef.save(ef.ClassMoments().update([[1.0], [2.0]], ["a", "b"]), path)
    whole = path.read_bytes()
    accepted = []
    for bit in range(0, 8 * len(whole), 1 if CASES > 10_000 else 11):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        if refusal_of(data) is None:
            accepted.append(bit)
    assert accepted == []


def test_every_truncation_and_every_tail_is_refused(tmp_path):
    path = saved(tmp_path, "GEM")
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        assert "not an eigenfeat file" in refusal(path)
    for tail in (b"\0", b"PK\5\6" + bytes(18), whole, b"x" * 70_000):
        for data in (whole + tail, tail + whole):
            path.write_bytes(data)
            assert "not an eigenfeat file" in refusal(path)


# ---- archives ------------------------------------------------------------------------------------


def test_archives_of_other_layouts_are_refused(tmp_path):
    path = saved(tmp_path, "GEM")
    contents = members(path)
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, data in contents.items():
                archive.writestr(name, data)
        assert "not an eigenfeat file" in refusal(path)
    rewrite(path, {persist.HEADER: contents.pop(persist.HEADER)} | contents)
    assert refusal(path) is None  # the order of members is the writer's business


def test_a_bomb_is_not_unpacked(tmp_path):
    path = tmp_path / "bomb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("weights.npy", bytes(2**26))
        archive.writestr(persist.HEADER, bytes(2**26))
        archive.comment = bytes(64)
    path.write_bytes(sealed(path.read_bytes()))
    tracemalloc.start()
    assert "not stored uncompressed" in refusal(path)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@pytest.mark.parametrize(
    "name", ["../up.npy", "/etc/passwd", "a/b.npy", "a.npy\0.json", "A.npy", "a.npz", "", "a" * 300]
)
def test_names_of_members_are_plain(tmp_path, name):
    path = saved(tmp_path, "moments")
    plain = "Z" * len(name)  # zipfile would change some of the names
    rewrite(path, members(path) | {plain: b"x"})
    whole = path.read_bytes()
    assert whole.count(plain.encode()) == 2 or not name
    path.write_bytes(sealed(whole.replace(plain.encode(), name.encode()) if name else whole))
    assert "it has a member called" in refusal(path)


def end_of(whole):
    """Where the directory begins, and where its end record does."""
    end = len(whole) - 86
    return struct.unpack_from("<L", whole, end + 16)[0], end


def test_members_neither_overlap_nor_repeat(tmp_path):
    path = saved(tmp_path, "moments")
    whole = path.read_bytes()
    begin, end = end_of(whole)
    lines = [b"PK\1\2" + line for line in whole[begin:end].split(b"PK\1\2")[1:]]

    def with_lines(lines):
        directory, count = b"".join(lines), len(lines)
        record = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(directory), begin, 64)
        path.write_bytes(sealed(whole[:begin] + directory + record + bytes(64)))
        return refusal(path)

    assert with_lines(lines) is None
    assert "two members have the same name" in with_lines([*lines, lines[0]])
    at = [line[42:46] for line in lines]  # where each begins
    for there in (at[0], at[2], struct.pack("<L", begin - 1), struct.pack("<L", begin)):
        other = [lines[0], lines[1][:42] + there + lines[1][46:], *lines[2:]]
        assert with_lines(other) is not None
    quine = [line[:20] + struct.pack("<2L", begin, begin) + line[28:] for line in lines]
    assert "overlap" in with_lines(quine)


def test_declared_sizes_are_not_believed(tmp_path):
    path = saved(tmp_path, "moments")
    whole = path.read_bytes()
    begin, end = end_of(whole)
    for field, size in ((20, 4), (24, 4), (42, 4), (28, 2), (30, 2), (32, 2)):
        for value in (b"\xff" * size, b"\xfe" * size, bytes(size)):
            at = begin + field
            data = sealed(whole[:at] + value + whole[at + size :])
            path.write_bytes(data)
            assert data == whole or refusal(path) is not None
    huge = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2**16 - 1, 2**16 - 1, 2**32 - 1, 2**32 - 1, 64)
    where = struct.pack("<4sLQL", b"PK\6\7", 0, 2**62, 1)
    for size in (2**60, 2**26 + 1):
        wide = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 2**40, 2**40, size, 2**63)
        for last in (huge, whole[end:-64]):
            path.write_bytes(sealed(whole[:end] + wide + where + last + bytes(64)))
            assert "directory is missing or too long" in refusal(path)
    path.write_bytes(sealed(whole[:end] + bytes(56) + where + huge + bytes(64)))
    assert "directory is missing or too long" in refusal(path)


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has another unit elsewhere")
def test_a_sparse_file_of_many_gigabytes_takes_no_memory(tmp_path):
    import resource

    path = tmp_path / "hole"
    with open(path, "wb") as file:
        file.truncate(2**40)
        file.seek(0, os.SEEK_END)
        file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, 0, 0, 0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "there is no header.json in it" in refusal(path)
    with open(path, "wb") as file:
        file.truncate(2**28)
        file.seek(0, os.SEEK_END)
        file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, 0, 0, 64) + bytes(64))
    assert "does not match its digest" in refusal(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**16  # KiB


def test_a_link_is_followed_to_read_and_replaced_to_write(tmp_path):
    path = saved(tmp_path, "moments")
    whole = path.read_bytes()
    (tmp_path / "link").symlink_to(path)
    ef.load(tmp_path / "link")
    ef.save(MODELS["contrasts"](), tmp_path / "link")
    assert path.read_bytes() == whole
    assert not (tmp_path / "link").is_symlink()


# ---- headers -------------------------------------------------------------------------------------


def with_header(path, text):
    rewrite(path, members(path) | {persist.HEADER: text})
    return refusal(path)


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 10**6,
        b'{"a":' * 10**5,
        b"1" * 10**6,
        b"[" + b"1," * 10**5 + b"1]",
        b"\xff\xfe",
        b'"' + b"\\ud800" * 1000 + b'"',
        b"NaN",
        b"1e999",
        b"null",
        b"",
    ],
    ids=lambda text: text[:8].decode("latin-1"),
)
def test_headers_that_are_none(tmp_path, text):
    path = saved(tmp_path, "moments")
    started = time.perf_counter()
    assert with_header(path, text).startswith(f"{path}: ")
    assert time.perf_counter() - started < 5


def test_a_header_has_one_spelling(tmp_path):
    path = saved(tmp_path, "GEM")
    header = header_of(path)
    text = json.dumps(header, sort_keys=True)
    backwards = dict(reversed(header.items()))
    assert with_header(path, text.encode()) is None
    for other in (
        json.dumps(backwards),
        json.dumps(header, sort_keys=True, indent=1),
        text + " ",
        text.replace('"version": 2', '"version": 2, "version": 2'),
        text.replace('"version": 2', '"version": 2.0'),
        text.replace("1.5", "1.50"),
        text.replace("elm", "\\u0065lm"),
    ):
        assert other != text
        assert with_header(path, other.encode()) is not None


def test_files_of_the_future_say_so(tmp_path):
    path = saved(tmp_path, "GEM")
    header = header_of(path) | {"version": 3, "more": [1]}
    text = with_header(path, json.dumps(header).encode())
    assert "of version 3, newer than 2, the newest that this release reads" in text
    header = header_of(path) | {"version": 2, "kind": "planet"}
    header.pop("more")
    text = with_header(path, json.dumps(header, sort_keys=True).encode())
    assert "it holds 'planet', which this release does not know" in text


def test_a_long_header_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = saved(tmp_path, "moments")
    monkeypatch.setattr(persist, "MAX_HEADER_BYTES", 100)
    assert "its header is longer than 100 bytes" in refusal(path)
    with pytest.raises(ValueError, match="meta: expected at most 100 bytes"):
        MODELS["moments"]().save(path)

"""Damaged files of every format, read in child processes: none may crash, hang or fill memory.

A case is fine if reading ends in rows, or in a ValueError, an OSError or a MemoryError that names
the file or an argument. `EIGENFEAT_FUZZ=1000000` reads so many files in place of 440, and
`EIGENFEAT_FUZZ_SEED` draws others; `.ci/long` reads more than CI does.
"""

import faulthandler
import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from table_files import FORMATS, damaged, write_rows, write_table

import eigenfeat as ef
from eigenfeat.io.opening import described

OFTEN = ("rows.csv",)  # others are read in long runs
CASES = int(os.environ.get("EIGENFEAT_FUZZ", 440)) // len(FORMATS)
SEED = int(os.environ.get("EIGENFEAT_FUZZ_SEED", 0))
PATIENCE = 60.0  # seconds for a case
MEMORY = 512 << 20  # bytes beyond what reading the sound file takes


def sound(name, folder):
    """Path of a sound file, and the options with which it is read."""
    X, y = np.random.default_rng(5).standard_normal((23, 3)), np.arange(23) % 3
    kinds = y if ".svm" in name else np.array(["ash", "birch", "elm"])[y]
    path, options = write_rows(folder, name, X, kinds)
    if path.suffix in (".parquet", ".feather", ".arrow"):
        columns = {
            "whole": pa.array(y, pa.int16()),
            "truth": pa.array([None if j % 7 == 0 else bool(j % 2) for j in y]),
            "gaps": pa.array([None if j == 3 else float(j) for j in range(23)]),
            "kind": pa.array(kinds).dictionary_encode(),
        }
        write_table(path, pa.table({"x": X[:, 0], **columns}), rows=9)
    return path, options


def harmed(name, whole, rng):
    """A damaged file, often below its compression, checksums or index, which fit still."""
    if rng.random() < 0.5:
        return damaged(whole, rng)
    if name.endswith(".gz"):
        return gzip.compress(in_letters(damaged(gzip.decompress(whole), rng)))
    if name.endswith((".csv", ".tsv", ".svm")):
        return in_letters(damaged(whole, rng))
    if name.endswith(".npy"):
        return another_number(whole, rng)
    return damaged(whole[:-400], rng)[: len(whole) - 400].ljust(len(whole) - 400) + whole[-400:]


def in_letters(data):
    return bytes(byte & 127 or 48 for byte in data)


def another_number(data, rng):
    """Text one number of which is another: shapes, lengths and counts."""
    found = list(re.finditer(rb"\d+", data[:20_000]))
    if not found:
        return data
    match = found[int(rng.integers(0, len(found)))]
    number = rng.choice(["0", "1", "-1", "127", "2147483648", "4611686018427387904", "9" * 20])
    return data[: match.start()] + str(number).encode() + data[match.end() :]


def read(path, options):
    """Read a file as a user, or `eigenfeat inspect`, does."""
    described(path)
    for _ in ef.open_rows(path, **options):
        pass


def outcome(path, options):
    """Whether the file could be read; what reading said, if it is not as it should be."""
    try:
        read(path, options)
    except (ValueError, OSError, MemoryError) as error:
        text = str(error)
        named = re.match(r"[a-z_]+: ", text) or str(path.parent) in text
        return "refused" if named and len(text) < 1000 else f"{type(error).__name__}: {text}"
    return "read"


def work(name, folder):
    """In a child: a line with each case's number, and one with how it ended."""
    import resource  # not on every system, and the file is imported there

    path, options = sound(name, folder)
    whole = path.read_bytes()
    read(path, options | {"skip_bad": True})
    outcome(folder / "missing", options)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    for case in range(CASES):
        print(case, flush=True)
        rng = np.random.default_rng([SEED, FORMATS.index(name), case])
        path.write_bytes(harmed(name, whole, rng))
        ways = ({}, {"skip_bad": True}, {"mark_bad": True}, {"block_rows": 5})
        known = options | ways[int(rng.integers(0, len(ways)))]
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        text = outcome(path, known)
        filled = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - base > MEMORY
        print("filled memory" if filled else repr(text), flush=True)


@pytest.mark.skipif(sys.platform == "win32", reason="memory is not measured there")
@pytest.mark.parametrize(
    "name", [one if one in OFTEN else pytest.param(one, marks=pytest.mark.long) for one in FORMATS]
)
def test_damaged_files_neither_crash_nor_hang_nor_fill_memory(name, tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", __file__, name, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0, f"case {lines[-1:]}: {ran.stderr[-2000:]}"
    ended = dict(zip(lines[::2], lines[1::2], strict=True))
    assert {case: how for case, how in ended.items() if how not in ("'read'", "'refused'")} == {}
    assert len(ended) == CASES
    assert "'refused'" in ended.values()


if __name__ == "__main__":
    work(sys.argv[1], Path(sys.argv[2]))

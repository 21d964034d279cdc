"""Damaged files of every format, read in child processes: none may crash, hang or fill memory.

A case passes if reading returns rows, or raises a ValueError, an OSError or a MemoryError that
names the file or an argument. `EIGENFEAT_FUZZ` sets the number of files, 440 by default, and
`EIGENFEAT_FUZZ_SEED` the seed; `.ci/long` reads more files than `.ci/run`.
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

OFTEN = ("rows.csv",)  # other formats are read in long runs
CASES = int(os.environ.get("EIGENFEAT_FUZZ", 440)) // len(FORMATS)
SEED = int(os.environ.get("EIGENFEAT_FUZZ_SEED", 0))
MAX_SECONDS = 60.0  # of a case
MAX_BYTES = 512 << 20  # of a case, beyond the memory for the intact file


def write_intact(name, folder):
    """Write an intact file; return its path and options to read it."""
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


def damaged_inside(name, intact, rng):
    """Damage a file, often so that its compression, checksums and index stay valid."""
    if rng.random() < 0.5:
        return damaged(intact, rng)
    if name.endswith(".gz"):
        return gzip.compress(as_ascii(damaged(gzip.decompress(intact), rng)))
    if name.endswith((".csv", ".tsv", ".svm")):
        return as_ascii(damaged(intact, rng))
    if name.endswith(".npy"):
        return with_other_number(intact, rng)
    length = len(intact) - 400
    return damaged(intact[:length], rng)[:length].ljust(length) + intact[length:]


def as_ascii(data):
    return bytes(byte & 127 or 48 for byte in data)


def with_other_number(data, rng):
    """Replace a number of a header, such as a shape, a length or a count."""
    found = list(re.finditer(rb"\d+", data[:20_000]))
    if not found:
        return data
    match = found[int(rng.integers(0, len(found)))]
    number = rng.choice(["0", "1", "-1", "127", "2147483648", "4611686018427387904", "9" * 20])
    return data[: match.start()] + str(number).encode() + data[match.end() :]


def read(path, options):
    """Read a file as users and `eigenfeat inspect` do."""
    described(path)
    for _ in ef.open_rows(path, **options):
        pass


def outcome(path, options):
    """Return "read", "refused", or the text of an error that is not clear."""
    try:
        read(path, options)
    except (ValueError, OSError, MemoryError) as error:
        text = str(error)
        named = re.match(r"[a-z_]+: ", text) or str(path.parent) in text
        return "refused" if named and len(text) < 1000 else f"{type(error).__name__}: {text}"
    return "read"


def work(name, folder):
    """In a child process: print the number of each case, and its outcome on the next line."""
    import resource  # missing on Windows, where pytest imports this file, too

    path, options = write_intact(name, folder)
    intact = path.read_bytes()
    read(path, options | {"skip_bad": True})
    outcome(folder / "missing", options)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    for case in range(CASES):
        print(case, flush=True)
        rng = np.random.default_rng([SEED, FORMATS.index(name), case])
        path.write_bytes(damaged_inside(name, intact, rng))
        further = ({}, {"skip_bad": True}, {"mark_bad": True}, {"block_rows": 5})
        chosen = options | further[int(rng.integers(0, len(further)))]
        faulthandler.dump_traceback_later(MAX_SECONDS, exit=True)
        text = outcome(path, chosen)
        peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - base
        print("filled memory" if peak > MAX_BYTES else repr(text), flush=True)


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
    outcomes = dict(zip(lines[::2], lines[1::2], strict=True))
    assert {case: o for case, o in outcomes.items() if o not in ("'read'", "'refused'")} == {}
    assert len(outcomes) == CASES
    assert "'refused'" in outcomes.values()


if __name__ == "__main__":
    work(sys.argv[1], Path(sys.argv[2]))

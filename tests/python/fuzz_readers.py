"""Damaged files of every format, read in child processes: none may crash, hang or fill memory.

``python tests/python/fuzz_readers.py 100000`` makes so many files for each reader, ``--readers csv
npy`` for some of them, ``--seed`` draws others. ``--seconds 60`` in place of the number makes as
many as go into so many seconds, which the readers share. A case depends on the reader, the seed and
its number alone: ``--first 4711 --keep case.bin 1`` makes one again and keeps it.

A case is fine if reading ends in rows, or in a ValueError, an OSError or a MemoryError that names
the file or an argument; a child that ends by a signal, or is without progress, has crashed.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
from fuzz_files import FILES, damaged, inside, npy, table

READERS = ("csv", "parquet", "arrow", "npy", "svmlight", "model", "moments")
PATIENCE = 60.0  # seconds for a case
MEMORY = 512 << 20  # bytes beyond what reading sound files takes


# ---- reading -------------------------------------------------------------------------------------


def options_of(reader: str, name: str, rng: np.random.Generator, labels: str) -> dict[str, object]:
    """Arguments of `open_rows` for one case."""
    found: dict[str, object] = {}
    draw = rng.random()
    if draw < 0.3:
        found["skip_bad"] = True
    elif draw < 0.5:
        found["mark_bad"] = True
    if rng.random() < 0.3:
        found["block_rows"] = int(rng.integers(1, 12))
    if reader == "csv" and (name not in ("bare.csv", "truth.csv") or rng.random() < 0.7):
        found["target"] = -1 if name == "bare.csv" or rng.random() < 0.3 else "kind"
    if reader in ("parquet", "arrow"):
        texts = ["kind", "code", "long", "day", *["view"] * name.endswith(".arrow")]
        target = str(rng.choice(["a", "c", "d", *texts]))
        found |= {"target": target, "drop": [t for t in texts if t != target]}
        if rng.random() < 0.7:
            found["columns"] = [column for column in "abcd" if column != target]
            found.pop("drop")
    if reader == "npy" and rng.random() < 0.6:
        found["target"] = labels if rng.random() < 0.6 else int(rng.integers(0, 3))
    if reader == "svmlight" and rng.random() < 0.4:
        found["n_features"] = 3
    return found


def read(reader: str, path: Path, options: dict[str, object]) -> None:
    """Read a file as a user, or `eigenfeat inspect`, does."""
    import eigenfeat as ef
    from eigenfeat.io.opening import described

    if reader == "model":
        ef.load(path)
    elif reader == "moments":
        ef.ClassMoments.load(path)
    else:
        with suppress(ValueError, OSError, MemoryError):
            described(path)
        rows = ef.open_rows(path, **options)  # type: ignore[arg-type]
        for _ in rows:
            pass


class Cases:
    """The cases of one reader, by their numbers."""

    def __init__(self, reader: str, seed: int, folder: Path) -> None:
        self.reader, self.seed, self.folder = reader, seed, folder
        self.files = FILES[reader]()
        X, y = table()
        self.labels = npy(y), npy(np.arange(len(X)) % 3)

    def make(self, number: int) -> tuple[Path, dict[str, object]]:
        """Write a file; its path, and how it is to be read."""
        rng = np.random.default_rng([self.seed, READERS.index(self.reader), number])
        names = list(self.files)
        name = names[int(rng.integers(0, len(names)))]
        others = list(self.files.values())
        if rng.random() < 0.5:
            data = inside(name, self.files[name], others, rng)
        else:
            data = damaged(self.files[name], others, rng)
        path = self.folder / name
        path.write_bytes(data)
        if self.reader == "npy":
            labels = self.labels[int(rng.integers(0, 2))]
            if rng.random() < 0.5:
                labels = inside("labels.npy", labels, [labels], rng)
            (self.folder / "labels.npy").write_bytes(labels)
        options = options_of(self.reader, name, rng, str(self.folder / "labels.npy"))
        return path, options

    def outcome(self, number: int) -> tuple[str, str]:
        """How reading one ends: a kind, and for those that should not be what was said."""
        path, options = self.make(number)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                read(self.reader, path, options)
        except (ValueError, OSError, MemoryError) as error:
            text = str(error)
            argument = re.match(r"[a-z_]+: ", text)
            named = argument or str(path) in text or str(self.folder) in text
            kind = type(error).__name__
            return (kind, "") if named and len(text) < 1000 else ("unclear", f"{kind}: {text}")
        except Exception as error:
            return "escaped", f"{type(error).__name__}: {error}"
        # NumPy says that shapes such as (3L, 4) are Python 2's, scikit-learn which version it was.
        texts = [str(one.message) for one in caught]
        said = [text for text in texts if "Python 2" not in text and "unpickle" not in text]
        if said:
            return "warned", said[0]
        return "read", ""


BAD = ("crash", "memory", "escaped", "unclear", "warned")


# ---- child and parent ----------------------------------------------------------------------------


def work(reader: str, seed: int, first: int, count: int, seconds: float) -> None:
    """In a child: the number of each case before it, and as JSON how it ended."""
    import resource  # not on every system, and other functions of this file are imported there

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = Cases(reader, seed, folder)
        for file, data in cases.files.items():  # what sound files take is not counted
            (folder / file).write_bytes(data)
            columns = {"parquet": ["a"], "arrow": ["a"], "csv": [0, 1]}.get(reader)
            read(reader, folder / file, {"skip_bad": True, "columns": columns})
        for number in range(2**40, 2**40 + 20):  # nor what is imported at the first error
            cases.outcome(number)
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
        base, until, number = peak(), time.monotonic() + seconds, first
        while number < first + count and time.monotonic() < until and peak() < base + MEMORY:
            print(number, flush=True)
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            kind, text = cases.outcome(number)
            if peak() > base + MEMORY:
                kind, text = "memory", f"{(peak() - base) >> 20} MiB"
            print(json.dumps([kind, text[:300]]), flush=True)
            number += 1


def fuzz(
    reader: str, count: int, seed: int = 0, first: int = 0, seconds: float = 1e6
) -> tuple[Counter[str], list[str]]:
    """Kinds of outcome, and a line for each bad one."""
    kinds: Counter[str] = Counter()
    bad: list[str] = []
    last, until = first + count, time.monotonic() + seconds
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    while first < last and (left := until - time.monotonic()) > 0:
        some = str(min(last - first, 5000))
        command = [sys.executable, __file__, "--child", reader, str(seed), str(first), some]
        ran = subprocess.run(
            [*command, str(left)], capture_output=True, text=True, env=environment, check=False
        )
        lines = ran.stdout.splitlines()
        if ran.returncode:  # a crash, or what was without progress for too long
            said = f"status {ran.returncode}: {ran.stderr[-2000:]}"
            if len(lines) % 2 == 0:
                raise RuntimeError(f"the child failed between cases: {said}")
            lines.append(json.dumps(["crash", said]))
        for number, outcome in zip(lines[::2], lines[1::2], strict=True):
            first = int(number) + 1
            kind, text = json.loads(outcome)
            kinds[kind] += 1
            if kind in BAD:
                bad.append(f"{reader} case {number}: {kind}: {text}")
    return kinds, bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("count", type=int, nargs="?", help="of cases for each reader")
    parser.add_argument("--seconds", type=float, help="for all readers together, in place of count")
    parser.add_argument("--readers", nargs="+", choices=READERS, default=READERS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="write the first case here, and read nothing")
    options = parser.parse_args()
    if (options.count is None) == (options.seconds is None):
        parser.error("expected count or --seconds")
    share = 1e6 if options.seconds is None else options.seconds / len(options.readers)
    count = 2**40 if options.count is None else options.count
    if options.keep:
        with tempfile.TemporaryDirectory() as folder:
            cases = Cases(options.readers[0], options.seed, Path(folder))
            path, how = cases.make(options.first)
            options.keep.write_bytes(path.read_bytes())
            print(path.name, how)
        return 0
    failed = False
    for reader in options.readers:
        start = time.monotonic()
        kinds, bad = fuzz(reader, count, options.seed, options.first, share)
        said = ", ".join(f"{kind} {n:,}" for kind, n in sorted(kinds.items()))
        passed = time.monotonic() - start
        print(f"{reader}: {sum(kinds.values()):,} cases in {passed:.0f} s: {said}", flush=True)
        for line in bad[:20]:
            print(f"  {line}", flush=True)
        failed = failed or bool(bad)
    return int(failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        work(sys.argv[2], *map(int, sys.argv[3:6]), float(sys.argv[6]))
    else:
        sys.exit(main())

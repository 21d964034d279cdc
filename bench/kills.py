"""Kill runs of `eigenfeat moments` at random moments, go on, and compare the bytes of the results.

    python bench/kills.py --kills 20 --megabytes 400 --formats npy parquet csv

A run is started again with --resume after every SIGKILL, until it comes to its end; the moments of
that chain must be the bytes of a run that nothing has interrupted. Kills come after the program has
been loaded, within the time that the undisturbed run took from there, so that they hit reading,
adding up and writing of checkpoints.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from files import PIECE_BYTES, WRITERS, piece

CHILD = [sys.executable, "-m", "eigenfeat", "moments"]


def run(arguments, delay=None):
    """Run to the end, or kill after some seconds; whether it came to its end."""
    child = subprocess.Popen(
        [*CHILD, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        _, said = child.communicate(timeout=delay)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        child.communicate()
        return False
    if child.returncode:
        sys.exit(f"status {child.returncode}: {said}")
    return True


def torment(folder, name, options):
    """Kill and resume until enough kills have hit; the number of chains that they made."""
    n = int(options.megabytes * 1e6 / 4 / options.columns)
    size = max(int(PIECE_BYTES / 8 / 4 / options.columns), 1)
    starts = range(0, n, size)
    pieces = (piece(i, min(size, n - s), options.columns) for i, s in enumerate(starts))
    path, more = WRITERS[name](folder, pieces, n, options.columns)
    arguments = [str(path), *more, "--block-rows", str(options.block_rows)]
    arguments += ["--every", str(options.every), "-o"]
    whole, part = folder / "whole.efm", folder / "part.efm"
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import eigenfeat.cli.moments"], check=True)
    loaded = time.perf_counter()
    run([*arguments, str(whole)])
    ended = time.perf_counter()
    start, seconds = loaded - started, ended - loaded
    wanted, kills, chains, with_checkpoint = whole.read_bytes(), 0, 0, 0
    while kills < options.kills:
        part.unlink(missing_ok=True)
        while not run([*arguments, str(part), "--resume"], random.uniform(start, seconds)):
            kills += 1
            with_checkpoint += part.with_name("part.efm.checkpoint").exists()
        chains += 1
        if part.read_bytes() != wanted:
            sys.exit(f"{name}: the resumed run has other bytes after {kills} kills")
        print(
            f"{name}: {kills} kills, {chains} results, the same bytes", file=sys.stderr, flush=True
        )
    left = [file.name for file in folder.iterdir() if file.suffix in (".part", ".checkpoint")]
    print(
        f"{name:8} {kills} kills in {chains} runs of {seconds:.1f} s, {with_checkpoint} of them "
        f"after a checkpoint: all results are the same {len(wanted):,} bytes; left behind: {left}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--megabytes", type=float, default=200, help="of float32 rows")
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--block-rows", type=int, default=5000)
    parser.add_argument("--every", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--formats", nargs="+", choices=WRITERS, default=list(WRITERS))
    options = parser.parse_args()
    random.seed(options.seed)
    for name in options.formats:
        with tempfile.TemporaryDirectory() as folder:
            torment(Path(folder), name, options)


if __name__ == "__main__":
    main()

"""Seconds until the package is imported and the command line answers, side by side.

python bench/start.py                            # of what is installed
python bench/start.py OLD/python NEW/python      # of two source trees with a built core
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

PROGRAMS = {
    "an empty program": ["-c", ""],
    "import eigenfeat": ["-c", "import eigenfeat"],
    "from eigenfeat import ClassMoments": ["-c", "from eigenfeat import ClassMoments"],
    "from eigenfeat import GEM": ["-c", "from eigenfeat import GEM"],
    "eigenfeat --help": ["-m", "eigenfeat", "--help"],
    "eigenfeat --version": ["-m", "eigenfeat", "--version"],
}


def seconds(program: list[str], tree: str | None) -> float:
    environment = dict(os.environ) if tree is None else {**os.environ, "PYTHONPATH": tree}
    started = time.perf_counter()
    command = [sys.executable, *program]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trees", nargs="*", metavar="TREE", help="folders for PYTHONPATH")
    parser.add_argument("--rounds", type=int, default=5, help="the best of so many (default 5)")
    options = parser.parse_args()
    trees = options.trees or [None]
    for name, program in PROGRAMS.items():
        rounds = [[seconds(program, tree) for tree in trees] for _ in range(options.rounds)]
        best = [min(times) for times in zip(*rounds, strict=True)]
        print(f"{name:36}" + "".join(f"{value:9.3f} s" for value in best), flush=True)


if __name__ == "__main__":
    main()

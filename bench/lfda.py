"""Local Fisher discriminant analysis beside metric-learn's.

    python bench/lfda.py --python OTHER/bin/python --rows 5000 --threads 1

``--python`` is an interpreter that can import metric-learn; this one by default. Both find the same
subspace, or it says so: metric-learn's slip in reading distances is mended in the peer.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.linalg import subspace_angles

from eigenfeat.ldg import LocalFisher
from timing import Contender, Measurement, alternate, print_table, write_csv

N_COMPONENTS = 5
SHAPES = ((10, 2), (20, 2), (20, 10), (50, 5), (100, 10), (784, 10))  # columns, classes
PEER = Path(__file__).parent / "peers" / "metric_learn_lfda.py"


def two_modes_a_class(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of k classes, each of two modes, with correlated columns."""
    rng = np.random.default_rng(20070501)
    y = np.arange(n) % k
    centres = 1.5 * rng.standard_normal((k, 2, d))
    mix = np.eye(d) + 0.3 * rng.standard_normal((d, d)) / np.sqrt(d)
    return centres[y, rng.integers(0, 2, n)] + rng.standard_normal((n, d)) @ mix, y


class Peer:
    """The other process; ``why_not`` is None if it can."""

    def __init__(self, python: str, folder: Path, threads: int) -> None:
        self._target = folder / "components.npy"
        arguments = [str(folder / "rows.npz"), str(self._target), str(N_COMPONENTS), str(threads)]
        self._process = subprocess.Popen(
            [python, str(PEER), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        answer = self._answer()
        self.why_not = None if answer == "ready" else answer or "the other interpreter ended"

    def fit(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("fit\n")
        self._process.stdin.flush()
        if self._answer() != "done":
            raise RuntimeError("metric-learn failed; see above")

    def components(self) -> np.ndarray:
        self._process.communicate()
        return np.load(self._target)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def compared(python: str, n: int, d: int, k: int, threads: int, rounds: int) -> list[Measurement]:
    """Times of both, and the largest angle between their subspaces; nothing if it can't be."""
    X, y = two_modes_a_class(n, d, k)
    ours = LocalFisher(N_COMPONENTS, ridge=0)
    with tempfile.TemporaryDirectory() as name:
        np.savez(Path(name) / "rows.npz", X=X, y=y)
        peer = Peer(python, Path(name), threads)
        if peer.why_not:
            print(f"skipped: {peer.why_not}")
            return []
        contenders = [
            Contender("eigenfeat", lambda: ours.fit(X, y)),
            Contender("metric-learn", peer.fit),
        ]
        task = f"LFDA, {n} x {d} rows, {k} classes"
        table = alternate(task, contenders, threads, rounds)
        angle = subspace_angles(ours.components_.T, peer.components().T).max()
    table[0].note = f"angle between subspaces {angle:.0e}"
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    measured: list[Measurement] = []
    for threads in options.threads:
        for d, k in SHAPES:
            table = compared(options.python, options.rows, d, k, threads, options.rounds)
            if not table:
                return
            print_table(table, "eigenfeat")
            measured += table
    if options.csv:
        write_csv(options.csv, measured)


if __name__ == "__main__":
    main()

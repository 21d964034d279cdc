"""How far the solver that `solver="auto"` chooses for pencils is from the fastest one.

    python bench/solver_choice.py [--orders 50 100 ...] [--csv FILE]

One thread, float64. Pencils of an order are of two kinds: covariances of classes whose columns'
variances fall, as data have them, and Wishart matrices, whose eigenvalues lie close together: hard
for Krylov's method. One pencil alone, and nine that share a denominator, as in all pairs of ten
classes (three from an order of 1,000 on); 1 to 50 directions. For each, milliseconds a pencil by
all solvers, which one is chosen, and its time over that of the fastest. Below, the median and the
worst of these ratios. EIGENFEAT_CPU and OPENBLAS_CORETYPE choose the instructions.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np

import eigenfeat as ef

SOLVERS = ("full", "subset", "tridiagonal", "krylov")
DIRECTIONS = (1, 5, 20, 50)
ORDERS = (50, 100, 150, 200, 256, 300, 400, 600, 1000, 2000)
LARGE = 1000
KINDS = ("covariances", "Wishart")
LEAST_SECONDS = 0.05  # of a measurement; below, calls are repeated
FULL_UP_TO = 400  # beyond, the full solver is far behind, and takes minutes


def matrices(kind: str, d: int, count: int) -> np.ndarray:
    """So many positive definite matrices of one kind."""
    rng = np.random.default_rng(d)
    out = np.empty((count, d, d))
    for matrix in out:
        X = rng.standard_normal((2 * d, d))
        if kind == "covariances":
            X *= np.exp(0.5 * rng.standard_normal(d)) / np.sqrt(np.arange(1, d + 1))
        np.matmul(X.T, X, out=matrix)
        matrix /= 2 * d
        matrix[np.diag_indices(d)] += 0.1 * np.trace(matrix) / d
    return out


def seconds(A: np.ndarray, B: np.ndarray, m: int, solver: str) -> float:
    """Least time of a few calls, a pencil."""
    times: list[float] = []
    while len(times) < 2 or (sum(times) < LEAST_SECONDS and len(times) < 20):
        start = time.perf_counter()
        ef.generalized_eigh(A, B, n_vectors=m, solver=solver, n_threads=1)
        times.append(time.perf_counter() - start)
        if times[0] > 1.0:
            break
    return min(times) / len(A)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--orders", type=int, nargs="+", default=list(ORDERS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--csv", type=Path, help="to which rows are added")
    given = parser.parse_args()
    rows: list[list[object]] = []
    ratios = []
    print(f"instructions: {ef._core.tier()}")
    for kind in given.kinds:
        for d in given.orders:
            all_of_them = matrices(kind, d, 10)
            for sharing in (1, 9 if d < LARGE else 3):
                A, B = all_of_them[:sharing], all_of_them[9]
                for m in (m for m in DIRECTIONS if m <= d // 2):
                    which = [s for s in SOLVERS if s != "full" or d <= FULL_UP_TO]
                    found = {s: seconds(A, B, m, s) for s in which}
                    chosen = ef._core.choose_solver(d, m, float(sharing))
                    best = min(found, key=lambda s: found[s])
                    if chosen not in found:
                        found[chosen] = seconds(A, B, m, chosen)
                    ratio = found[chosen] / found[best]
                    ratios.append(ratio)
                    milliseconds = [f"{1e3 * found.get(s, np.nan):9.2f}" for s in SOLVERS]
                    print(
                        f"{kind:11} d {d:4} shared by {sharing} m {m:2} {' '.join(milliseconds)}"
                        f"  {chosen:11} {best:11} {ratio:5.2f}",
                        flush=True,
                    )
                    rows.append([ef._core.tier(), kind, d, sharing, m, chosen, ratio])
                    rows[-1] += [found.get(s, np.nan) for s in SOLVERS]
    late = f"{np.mean(np.array(ratios) > 1.2):.0%} above 1.2"
    print(f"chosen / fastest: median {np.median(ratios):.2f}, worst {np.max(ratios):.2f}, {late}")
    if given.csv is not None:
        with given.csv.open("a", newline="") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()

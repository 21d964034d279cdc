"""Refit the cost table by which `solver="auto"` chooses a solver for pencils.

    python bench/solver_costs.py [--orders 50 100 ...] [--csv FILE]

Measures one thread in float64 for each solver, order, number of directions and number of pencils
per denominator. Pencils are of two kinds: covariances with falling variances, as of data, and
Wishart matrices, whose eigenvalues lie close together. Prints the times, how far today's choice is
from the fastest solver, and a row of `kSolverCosts` (cpp/src/pencil/pencil.cpp) that is fitted to
the logarithms of the times. EIGENFEAT_CPU and OPENBLAS_CORETYPE choose the instructions.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

import eigenfeat as ef

SOLVERS = ("full", "subset", "tridiagonal", "krylov")
DIRECTIONS = (1, 5, 20, 50)
ORDERS = (50, 100, 150, 200, 256, 300, 400, 600, 1000, 2000)
LARGE_ORDER = 1000  # from here on a denominator has three pencils instead of nine
SMALLEST_KRYLOV = 256  # below, the Krylov solver gives pencils to the tridiagonal kernels
LARGEST_FULL = 400  # above, the full solver takes minutes
MIN_SECONDS = 0.05  # a shorter measurement is repeated
UNIT = 1e-10  # seconds


@dataclass(frozen=True)
class Case:
    """One measured size, with the seconds per pencil of each solver."""

    kind: str
    d: int
    m: int
    sharing: int
    seconds: dict[str, float]
    chosen: str

    @property
    def ratio(self) -> float:
        """Time of the chosen solver over the time of the fastest solver."""
        return self.seconds[self.chosen] / min(self.seconds.values())


def matrices(kind: str, d: int, count: int) -> np.ndarray:
    """Return `count` positive definite matrices of order d."""
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


def seconds_per_pencil(A: np.ndarray, B: np.ndarray, m: int, solver: str) -> float:
    """Best time of a few calls."""
    times: list[float] = []
    while len(times) < 2 or (sum(times) < MIN_SECONDS and len(times) < 20):
        start = time.perf_counter()
        ef.generalized_eigh(A, B, n_vectors=m, solver=solver, n_threads=1)
        times.append(time.perf_counter() - start)
        if times[0] > 1.0:
            break
    return min(times) / len(A)


def measure(kind: str, d: int) -> list[Case]:
    """Time all solvers for one kind and order, and print the times."""
    given = matrices(kind, d, 10)
    cases = []
    for sharing in (1, 9 if d < LARGE_ORDER else 3):
        for m in (m for m in DIRECTIONS if m <= d // 2):
            chosen = ef._core.choose_solver(d, m, float(sharing))
            solvers = [s for s in SOLVERS if s != "full" or d <= LARGEST_FULL or s == chosen]
            found = {s: seconds_per_pencil(given[:sharing], given[9], m, s) for s in solvers}
            cases.append(Case(kind, d, m, sharing, found, chosen))
            times = " ".join(f"{1e3 * found.get(s, np.nan):9.2f}" for s in SOLVERS)
            print(f"{kind:11} d {d:4} shared by {sharing} m {m:2} {times}  {chosen}", flush=True)
    return cases


def direct(p: np.ndarray, d: float, m: float, sharing: float) -> float:
    """Model of a solver that reduces each pencil: products of d, and of d and m."""
    return p @ np.array([d**3, d**2, d * m, d])[: len(p)]


def krylov(p: np.ndarray, d: float, m: float, sharing: float) -> float:
    """Model of the Krylov solver: columns times products, and a factor per denominator."""
    columns = p[0] * m + p[1]
    return columns * (p[2] * d**2 + p[3] * d) + (p[4] * d**3 + p[5] * d**2) / sharing


MODELS: dict[str, tuple[Callable[..., float], list[float]]] = {
    "full": (direct, [1.5, 1500.0]),  # sygvd
    "subset": (direct, [0.6, 500.0, 5000.0]),  # syevr with bisection for part of the spectrum
    "tridiagonal": (direct, [1.0, 50.0, 900.0, 15000.0]),
    "krylov": (krylov, [1.5, 20.0, 8.3, 200.0, 0.2, 50.0]),
}


def fitted(solver: str, cases: list[Case]) -> np.ndarray:
    """Fit a solver's constants, which are positive, to the logarithms of its times."""
    model, start = MODELS[solver]
    timed = [case for case in cases if solver in case.seconds]
    if solver == "krylov":
        timed = [case for case in timed if case.d >= SMALLEST_KRYLOV]

    def errors(logarithms: np.ndarray) -> np.ndarray:
        p = np.exp(logarithms)
        costs = [UNIT * model(p, case.d, case.m, case.sharing) for case in timed]
        return np.log(costs) - np.log([case.seconds[solver] for case in timed])

    # A weak pull to the start keeps constants that the sizes do not determine where they were.
    log_start = np.log(start)
    found = least_squares(lambda x: np.r_[errors(x), 0.01 * (x - log_start)], log_start)
    return np.exp(found.x)


def main() -> None:
    """Measure, and print the choice's quality and the refitted row."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--orders", type=int, nargs="+", default=list(ORDERS))
    parser.add_argument("--csv", type=Path, help="file to which the times are added")
    options = parser.parse_args()
    print(f"instructions: {ef._core.tier()}; milliseconds per pencil: {', '.join(SOLVERS)}")
    cases = [
        case
        for kind in ("covariances", "Wishart")
        for d in options.orders
        for case in measure(kind, d)
    ]
    ratios = np.array([case.ratio for case in cases])
    print(f"chosen / fastest: median {np.median(ratios):.2f}, worst {ratios.max():.2f}, ", end="")
    print(f"{np.mean(ratios > 1.2):.0%} above 1.2")
    for solver in SOLVERS:
        print(f"{solver}: {', '.join(f'{value:.3g}' for value in fitted(solver, cases))}")
    if options.csv is not None:
        with options.csv.open("a", newline="") as file:
            csv.writer(file).writerows(
                [ef._core.tier(), c.kind, c.d, c.sharing, c.m, c.chosen]
                + [c.seconds.get(s, np.nan) for s in SOLVERS]
                for c in cases
            )


if __name__ == "__main__":
    main()

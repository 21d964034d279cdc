"""Compare eigenfeat with its peers and with the machine's floor, in one run.

    python bench/run.py moments pencils deep transform logit ldg_nca --data DIR --threads 1 2

Every task alternates its implementations, prints a table of ratios, and replaces its lines in one
CSV file. Without ``--data``, random rows of the same shape are used. For AVX2 and SSE2, run the
command again with EIGENFEAT_CPU=v3 OPENBLAS_CORETYPE=Haswell and with EIGENFEAT_CPU=baseline
OPENBLAS_CORETYPE=Prescott.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import eigenfeat as ef
from eigenfeat.expansion.features import expand
from fits import imports, large_table, mnist, one_prediction, trust_regions
from ldg import ldg_by_hand, ldg_nca, ldg_selection
from logit import logit_dense, logit_gem
from peers import numpy_expansion, scipy_moments, scipy_pencils
from problems import N_CLASSES, Rows, class_second_moments, digits, gem_directions
from svm import svm_letters, svm_mnist, svm_small
from timing import Contender, Measurement, alternate, print_table, write_csv

ALL_PAIRS = [(i, j) for i in range(N_CLASSES) for j in range(N_CLASSES) if i != j]
RING = [(i, (i + 1) % N_CLASSES) for i in range(N_CLASSES)]


def moments(rows: Rows, threads: int, rounds: int) -> list[Measurement]:
    """Class moments of 60,000 x 784 rows in float64, float32 and, as MNIST's are stored, uint8."""
    X, y = rows.X, rows.y
    X64, pixels = X.astype(np.float64), np.clip(np.round(255 * X), 0, 255).astype(np.uint8)

    def ours(data: np.ndarray) -> Callable[[], object]:
        return lambda: ef.ClassMoments().update(data, y, n_threads=threads)

    contenders = [
        Contender("eigenfeat float64", ours(X64)),
        Contender("eigenfeat float32", ours(X)),
        Contender("eigenfeat uint8", ours(pixels)),
        Contender("floor: one dsyrk", lambda: scipy_moments.one_syrk(X64)),
        Contender("floor: one ssyrk", lambda: scipy_moments.one_syrk(X)),
        Contender("gather + dsyrk", lambda: scipy_moments.gather_and_syrk(X64, y, N_CLASSES)),
        Contender("gather + ssyrk", lambda: scipy_moments.gather_and_syrk(X, y, N_CLASSES)),
    ]
    return alternate(f"moments, {rows.source}", contenders, threads, rounds, memory=True)


def pencils(rows: Rows, threads: int, rounds: int) -> list[Measurement]:
    """The 90 ordered pairs, and ten in a ring; ridge 0.5, 20 directions each."""
    accumulated = ef.ClassMoments().update(rows.X.astype(np.float64), rows.y)
    C = class_second_moments(rows)
    # The peers' loops take equal times for all pairs, so that 18 pairs are enough; as in all 90
    # pairs, nine pairs share a Cholesky factor.
    few = [(i, j) for j in (2, 7) for i in range(N_CLASSES) if i != j]

    def ours(pairs: Any, solver: str) -> Callable[[], object]:
        return lambda: ef.pencils.pair_directions(
            accumulated,
            pairs,
            ridge=0.5,
            n_directions=20,
            threshold=None,
            solver=solver,
            n_threads=threads,
        )

    def peers(pairs: list[tuple[int, int]], note: str) -> list[Contender]:
        solvers = {
            "scipy eigh gvd": scipy_pencils.gvd,
            "scipy eigh gvx, 20 of 784": scipy_pencils.gvx,
            "cholesky + sygst + eigsh": scipy_pencils.cholesky_eigsh,
        }
        return [
            Contender(name, lambda solve=solve: solve(C, pairs, 0.5, 20), len(pairs), note=note)
            for name, solve in solvers.items()
        ]

    tasks = {
        "90 pencils": ("all", len(ALL_PAIRS), few, f"{len(few)} of the {len(ALL_PAIRS)} pairs"),
        "ten pencils in a ring": (RING, len(RING), RING, ""),
    }
    table: list[Measurement] = []
    for name, (pairs, n, pairs_of_peers, note) in tasks.items():
        contenders = [
            Contender(f"eigenfeat {solver}", ours(pairs, solver), n)
            for solver in ("auto", "krylov", "subset")
        ]
        contenders += peers(pairs_of_peers, note)
        task = f"{name}, d=784, {rows.source}"
        table += alternate(task, contenders, threads, rounds, unit="pencil")
    table[0].note = _accuracy(accumulated, C, 0.5)
    return table


def _accuracy(accumulated: ef.ClassMoments, C: np.ndarray, ridge: float) -> str:
    """Eigenvalues against the dense driver's, and residuals recomputed here."""
    result = ef.pencils.pair_directions(
        accumulated, "all", ridge=ridge, n_directions=20, threshold=None
    )
    worst_value = worst_residual = 0.0
    norms = [np.linalg.eigvalsh(scipy_pencils.ridged(C, j, ridge))[-1] for j in range(N_CLASSES)]
    for index, (i, j) in enumerate(ALL_PAIRS):
        mine = slice(20 * index, 20 * index + 20)
        (reference,) = scipy_pencils.gvd(C, [(i, j)], ridge, 20)
        values, V = result.eigenvalues[mine], result.vectors[:, mine]
        B = scipy_pencils.ridged(C, j, ridge)
        scale = values * norms[j] * np.linalg.norm(V, axis=0)
        worst_value = max(worst_value, float(np.max(np.abs(values / reference - 1))))
        residuals = np.linalg.norm(C[i] @ V - (B @ V) * values, axis=0) / scale
        worst_residual = max(worst_residual, float(residuals.max()))
    return f"eigenvalues to {worst_value:.0e}, residual {worst_residual:.0e}"


def deep(rows: Rows, threads: int, rounds: int) -> list[Measurement]:
    """Pencils of second-layer moments, d = 3,600."""
    second = second_layer_moments(rows)
    C = np.array([second.second_moment(c) for c in range(N_CLASSES)])
    del second
    B = scipy_pencils.ridged(C, 2, 0.1)
    numerators = [c for c in range(N_CLASSES) if c != 2]

    def ours(chosen: list[int]) -> Callable[[], object]:
        A = C[chosen]
        return lambda: ef.generalized_eigh(A, B, n_vectors=20, n_threads=threads)

    contenders = [
        Contender(
            "eigenfeat auto", ours(numerators), len(numerators), note="9 pencils, one denominator"
        ),
        Contender("eigenfeat auto, one pencil", ours([3]), 1),
        Contender(
            "scipy eigh gvd",
            lambda: scipy_pencils.gvd(C, [(3, 2)], 0.1, 20),
            1,
            1,
            note="one pencil, once",
        ),
    ]
    table = alternate(
        f"second-layer pencils, d=3,600, {rows.source}", contenders, threads, rounds, unit="pencil"
    )
    mine = ef.generalized_eigh(C[[3]], B, n_vectors=20, n_threads=threads)
    (reference,) = scipy_pencils.gvd(C, [(3, 2)], 0.1, 20)
    worst = np.max(np.abs(mine.eigenvalues[0] / reference - 1))
    table[1].note = f"eigenvalues to {worst:.0e}, residual {mine.residuals.max():.0e}"
    return table


def second_layer_moments(rows: Rows) -> ef.ClassMoments:
    """Moments of the 3,600 half waves max(0, +-v^T x)^(1/2) of 1,800 directions."""
    first = ef.GEM(ridge=0.1, n_directions=20, threshold=1.0, powers=(1,), scale="none")
    accumulated = ef.ClassMoments().update(rows.X, rows.y)
    first.fit_moments(accumulated)
    second = ef.ClassMoments()
    keep = np.r_[0:1800, first.directions_.shape[1] : first.directions_.shape[1] + 1800]
    for start in range(0, len(rows.X), 10_000):
        part = slice(start, start + 10_000)
        features = first.transform(rows.X[part])
        second.update(
            np.ascontiguousarray(features[:, keep[keep < features.shape[1]]]), rows.y[part]
        )
    return second


def transform(rows: Rows, threads: int, rounds: int) -> list[Measurement]:
    """60,000 rows to 10,932 float32 features."""
    V = gem_directions(rows, threads)
    contenders = [
        Contender("eigenfeat", lambda: expand(rows.X, V, n_threads=threads)),
        Contender("floor: the projection alone (sgemm)", lambda: rows.X @ V),
        Contender("numpy expression", lambda: numpy_expansion.expression(rows.X, V), rounds=2),
        Contender(
            "numpy by blocks with sqrt", lambda: numpy_expansion.by_blocks(rows.X, V), rounds=2
        ),
    ]
    return alternate(
        f"transform to {6 * V.shape[1]:,} features, {rows.source}",
        contenders,
        threads,
        rounds,
        memory=True,
    )


TASKS = {
    "moments": moments,
    "pencils": pencils,
    "deep": deep,
    "transform": transform,
    "logit": logit_dense,
    "logit_gem": logit_gem,
    "svm_mnist": svm_mnist,
    "svm_small": svm_small,
    "svm_letters": svm_letters,
    "ldg_selection": ldg_selection,
    "ldg_by_hand": ldg_by_hand,
    "ldg_nca": ldg_nca,
    "mnist": mnist,
    "large_table": large_table,
    "one_prediction": one_prediction,
    "imports": imports,
    "trust_regions": trust_regions,
}
FRESH = set(TASKS) - {"moments", "pencils", "deep", "transform"}  # tasks that read their own rows


def main() -> None:
    """Run the tasks that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "tasks", nargs="*", default=[], help=f"any of {', '.join(TASKS)} (default: all)"
    )
    parser.add_argument("--data", type=Path, help="folder that holds mnist.npz")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("bench_results.csv"))
    parser.add_argument("--rows", type=int, help="number of training rows, for a quick check")
    parser.add_argument(
        "--seconds", type=float, default=300.0, help="most seconds of a fit in logit (300)"
    )
    parser.add_argument(
        "--iterations", type=int, default=60, help="most iterations of a peer in logit_gem (60)"
    )
    arguments = parser.parse_args()
    names = arguments.tasks or list(TASKS)
    rows = None if FRESH.issuperset(names) else digits(arguments.data).first(arguments.rows)
    for name in names:
        for threads in arguments.threads:
            source = arguments if name in FRESH else rows
            table = TASKS[name](source, threads, arguments.rounds)
            for task in dict.fromkeys(row.task for row in table):
                part = [row for row in table if row.task == task]
                print_table(part, part[0].implementation)
            write_csv(arguments.output, table)


if __name__ == "__main__":
    main()

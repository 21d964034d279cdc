"""Incomplete rows: every figure that is asked of speed, beside what is measured.

    python bench/early_speed.py [--conic PYTHON] [--only TEXT]

PYTHON is an interpreter with Clarabel or SCS, which solve trust regions as semidefinite programs in
a process of their own; without it they are left out, and why is said. Rivals run in turn with ours
and with as many threads; figures are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from threadpoolctl import threadpool_limits

import eigenfeat as ef
from eigenfeat.early import GaussianCompletion, LocalQDA, ReliableClassifier
from eigenfeat.ldg import LDG
from peers.conic_region import SOLVERS
from peers.numpy_region import by_eigh, by_scipy, prefixes
from timing import Contender, alternate

OURS = "eigenfeat"


@dataclass
class Figure:
    """What was asked and what was measured; `good` is None where it could not be."""

    what: str
    asked: str
    measured: str
    good: bool | None


Task = Callable[[argparse.Namespace], Iterator[Figure]]


def main() -> None:
    """Run the tasks, tell each figure as it comes, and print them all in a table."""
    options = _options()
    figures = []
    with threadpool_limits(options.threads):
        for name, task in TASKS.items():
            if options.only.lower() not in name.lower():
                continue
            for figure in task(options):
                print(f"{figure.what}: {figure.measured} (asked: {figure.asked})", flush=True)
                figures.append(figure)
    _print_table(figures, options.threads)


def trust_regions(options: argparse.Namespace) -> Iterator[Figure]:
    """A batch of 1,000 dense indefinite quadratics of 100 variables."""
    n, d = 1000, 100
    rng = np.random.default_rng(options.seed)
    B = rng.standard_normal((n, d, d))
    A, g = (B + B.transpose(0, 2, 1)) / 2, rng.standard_normal((n, d))
    radius = np.ones(n)
    few = 20  # SciPy's time is the same for each
    _check_minima(A, g, radius, few)
    contenders = [
        Contender(
            OURS,
            lambda: ef.regions.trust_region_minimum(A, g, radius, n_threads=options.threads),
            n,
        ),
        Contender("NumPy", lambda: by_eigh(A, g, radius), n),
        Contender("SciPy", lambda: by_scipy(A[:few], g[:few], radius[:few]), few),
    ]
    ours, *rivals = _medians("trust regions", contenders, options)
    told = f"{1e6 * ours:.0f} us a problem"
    for name, seconds, asked in zip(
        ("NumPy's eigh and secular equation", "SciPy's exact subproblem"),
        rivals,
        (5, 20),
        strict=True,
    ):
        yield _ratio(f"trust regions, d = 100: {name}", seconds / ours, asked, told)
    for solver in SOLVERS:
        what = f"trust regions, d = 100: semidefinite program by {solver}"
        answer = _conic(options, solver, A, g, radius)
        if isinstance(answer, str):
            yield Figure(what, "1,000 times slower", answer, None)
        else:
            yield _ratio(what, answer / ours, 1000, told)


def _check_minima(A: np.ndarray, g: np.ndarray, radius: np.ndarray, few: int) -> None:
    found = ef.regions.trust_region_minimum(A, g, radius)
    assert np.all(np.abs(found.gap) <= 1e-12 * np.abs(found.value))
    for x in (by_eigh(A, g, radius), by_scipy(A[:few], g[:few], radius[:few])):
        m = len(x)
        values = np.einsum("ni,nij,nj->n", x, A[:m], x) + 2 * (g[:m] * x).sum(axis=1)
        np.testing.assert_allclose(values, found.value[:m], rtol=1e-8)


def _conic(
    options: argparse.Namespace, solver: str, A: np.ndarray, g: np.ndarray, radius: np.ndarray
) -> float | str:
    """Seconds for one problem, or why there are none."""
    script = Path(__file__).parent / "peers" / "conic_region.py"
    limits = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    hidden = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task.npz"
        np.savez(task, A=A[:1], g=g[:1], radius=radius[:1])
        try:
            done = subprocess.run(
                [options.conic, str(script), str(task), solver, "1"],
                capture_output=True,
                text=True,
                timeout=options.seconds,
                env=hidden | limits,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"more than {options.seconds:.0f} s for one"
    if done.returncode:
        return f"skipped: {done.stderr.strip().splitlines()[-1]}"
    answer = json.loads(done.stdout.splitlines()[-1])
    ours = ef.regions.trust_region_minimum(A[0], g[0], radius[0]).value
    np.testing.assert_allclose(answer["values"][0], ours, rtol=1e-4)
    return float(answer["seconds"])


def first_step(options: argparse.Namespace) -> Iterator[Figure]:
    """One sample of 1,024 is known: local QDA on the quadratic set, with and without LDG."""
    X, y, Z = _series(1000, 1024, 3, options.seed)
    rows = np.full((1000, 1024), np.nan)
    rows[:, 0] = Z[:1000, 0]
    local = LocalQDA(8, n_threads=options.threads)
    ldg = LDG(26, gamma=0.5, n_neighbors=8, standardize=False, n_threads=options.threads)
    plain = ReliableClassifier(
        local, rule="quadratic", correct=False, n_threads=options.threads
    ).fit(X, y)
    reduced = ReliableClassifier(
        local, rule="quadratic", features=ldg, correct=False, n_threads=options.threads
    ).fit(X, y)
    rng = np.random.default_rng(options.seed)
    for what, d, asked, model in (
        ("all 1,024 samples", 1024, 200.0, plain),
        ("26 features of LDG", 26, 5.0, reduced),
    ):
        a, g, c = rng.standard_normal((1000, d)), rng.standard_normal((1000, d)), np.ones(1000)
        contenders = [
            Contender("sign", lambda a=a, g=g, c=c: _signs(a, g, c, options.threads), len(a)),
            Contender("row", lambda model=model: model.decide(rows, 0.9), len(rows)),
        ]
        sign, row = (1e6 * seconds for seconds in _medians(what, contenders, options))
        yield Figure(
            f"minimum over a quadratic set, {what}",
            f"{asked:g} us",
            f"{sign:.2g} us",
            sign <= asked,
        )
        yield Figure(
            f"a row decided at t = 1, local QDA, {what}; completion and neighbours included",
            f"{asked:g} us",
            f"{row:.2g} us",
            row <= asked,
        )


def _signs(a: np.ndarray, g: np.ndarray, c: np.ndarray, threads: int) -> object:
    return ef.regions.certified_sign(a, g, c, 1.0, diagonal=True, n_threads=threads)


def nested_prefixes(options: argparse.Namespace) -> Iterator[Figure]:
    """All 149 proper prefixes of 150 columns: a mean and a covariance each."""
    d = 150
    rng = np.random.default_rng(options.seed)
    X = rng.standard_normal((300, d)) @ rng.standard_normal((d, d)) / np.sqrt(d)
    model = GaussianCompletion(n_threads=options.threads).fit(X)
    rows, steps = X[:100], np.arange(1, d)
    known = np.where(np.arange(d) < steps[:, None, None], rows, np.nan).reshape(-1, d)
    slow = prefixes(rows, model.mean_, model.covariance_)
    fast = model.condition(known).mean.reshape(len(steps), len(rows), d)
    for k, (means, _) in enumerate(slow):
        np.testing.assert_allclose(fast[k][:, k + 1 :], means, rtol=1e-6, atol=1e-6)
    contenders = [
        Contender(OURS, lambda: model.condition(known)),
        Contender("a factor each", lambda: prefixes(rows, model.mean_, model.covariance_)),
    ]
    ours, rival = _medians("prefixes", contenders, options)
    yield _ratio(
        "149 prefixes of 150 columns, 100 rows: a factor each", rival / ours, 10, _ms(ours)
    )


def simulation(options: argparse.Namespace) -> Iterator[Figure]:
    """8,000 series of 1,024 samples, templates plus noise: every step of every row is checked."""
    X, y, Z = _series(1000, 1024, 3, options.seed, 8000)
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    model = ReliableClassifier(lda, rule="pairwise", correct=False, n_threads=options.threads)
    started = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    early = model.predict_early(Z)
    seconds = time.perf_counter() - fitted
    agreement = float(np.mean(early.label == model.predict(Z)))
    yield Figure(
        "8,000 rows x 1,024 steps, shrinkage LDA, pairwise",
        "30 s",
        f"{seconds:.2f} s after {fitted - started:.1f} s to fit; "
        f"{np.mean(early.time):.0f} samples on average, {agreement:.3f} final",
        seconds <= 30.0,
    )


def _series(
    n: int, d: int, n_classes: int, seed: int, n_test: int = 1000
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training rows, labels and test rows: smooth templates plus noise that is correlated."""
    rng = np.random.default_rng(seed)
    waves = np.cos(np.pi * np.outer(np.arange(1, 9), (np.arange(d) + 0.5) / d))
    templates = rng.standard_normal((n_classes, 8)) @ waves
    codes = rng.integers(0, n_classes, n + n_test)
    noise = rng.standard_normal((n + n_test, d))
    for t in range(1, d):
        noise[:, t] = 0.9 * noise[:, t - 1] + np.sqrt(1 - 0.81) * noise[:, t]
    X = templates[codes] + 3 * noise
    return X[:n], codes[:n], X[n:]


TASKS: dict[str, Task] = {
    "trust regions": trust_regions,
    "first step": first_step,
    "prefixes": nested_prefixes,
    "simulation": simulation,
}


def _medians(
    task: str, contenders: Sequence[Contender], options: argparse.Namespace
) -> list[float]:
    table = alternate(task, contenders, options.threads, options.rounds)
    return [measurement.median for measurement in table]


def _ratio(what: str, ratio: float, asked: float, told: str) -> Figure:
    return Figure(what, f"{asked:,g} times slower", f"{ratio:,.3g} ({told})", ratio >= asked)


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def _print_table(figures: Sequence[Figure], threads: int) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"incomplete rows, {threads} thread(s)")
    for column in ("figure", "asked", "measured", ""):
        table.add_column(column)
    for figure in figures:
        verdict = {True: "yes", False: "NO", None: ""}[figure.good]
        table.add_row(figure.what, figure.asked, figure.measured, verdict)
    Console(width=170).print(table)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--conic", default=sys.executable, help="an interpreter with a conic solver"
    )
    parser.add_argument("--only", default="", help=f"part of one of: {', '.join(TASKS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=300.0, help="time for one conic program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()

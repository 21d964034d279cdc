"""Multinomial logistic regression against scikit-learn's: tasks of bench/run.py.

Each solver runs in its own process, so that a fit of more than `--seconds` can be ended and the
memory of each solver is measured alone. `--rounds` has no effect: a solver runs once for each
tolerance. The least objective comes from a separate, tight fit in float64, whose distance from the
minimum is bounded by its gradient, computed here by NumPy.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from peers import sklearn_logit
from problems import Rows, dense_classification, digits, gem_directions
from timing import Measurement, from_fresh_process, peak_extra_bytes

REACHED = 1e-4  # largest relative distance from the least objective of a fit that is counted
FEW_ITERATIONS = (3, 4, 5, 6, 8, 12)  # tried in turn until the test error is that of the peer
PENALTIES = (0.01, 1.0)  # scikit-learn's C
OURS = "eigenfeat"


# ---- dense rows: seconds to a relative objective of 1e-4 -----------------------------------------


def dense_runs(solver: str, dtype: str, C: float, threads: int) -> Iterator[tuple[float, ...]]:
    """(tolerance, seconds, objective in float64, iterations), from loose to tight."""
    rows = dense_classification(dtype)
    tolerances = (1e-2, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5) if solver == OURS else _peer_tolerances(dtype)
    for tol in tolerances:
        start = time.perf_counter()
        model = _fitted(solver, rows.X, rows.y, C, tol, threads)
        seconds = time.perf_counter() - start
        W, b = model.coef_.astype(np.float64), model.intercept_.astype(np.float64)
        yield tol, seconds, _objective(rows, C, W, b), int(np.max(model.n_iter_))


def reference_run(C: float, threads: int) -> Iterator[tuple[float, float]]:
    """(objective of a tight fit, upper bound of its distance from the minimum)."""
    rows = dense_classification("float64")
    yield _certified(_fitted(OURS, rows.X, rows.y, C, 1e-8, threads), rows, C)


def _certified(model: Any, rows: Rows, C: float) -> tuple[float, float]:
    """Objective in float64, and the bound |gradient|^2 C / 2 of a 1/C-strongly convex function.

    The intercept, which has no penalty, is first moved to its optimum for the fitted weights.
    """
    X, W, b = rows.X.astype(np.float64), model.coef_, model.intercept_.copy()
    Z, hot = X @ W.T, np.eye(len(W))[rows.y]
    for _ in range(50):  # n / 2 bounds the curvature
        b -= 2 * (softmax(Z + b, axis=1) - hot).mean(axis=0)
    gradient = (softmax(Z + b, axis=1) - hot).T @ X + W / C
    return _objective(rows, C, W, b), float((gradient**2).sum()) * C / 2


def _objective(rows: Rows, C: float, W: np.ndarray, b: np.ndarray) -> float:
    Z = rows.X.astype(np.float64) @ W.T + b
    loss = -log_softmax(Z, axis=1)[np.arange(len(Z)), rows.y].sum()
    return float(loss + (W**2).sum() / (2 * C))


def _peer_tolerances(dtype: str) -> tuple[float, ...]:
    # In float32 the gradient is rounded to about 1e-5: runs with smaller tolerances do not end.
    return (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4) + ((1e-5,) if dtype == "float64" else ())


def _fitted(solver: str, X: np.ndarray, y: np.ndarray, C: float, tol: float, threads: int) -> Any:
    if solver != OURS:
        return sklearn_logit.fitted(solver, X, y, C, tol)
    from eigenfeat.linear.logistic import MultinomialLogit

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MultinomialLogit(
            penalty=0, l2=1 / C, tol=tol, max_iter=10_000, n_threads=threads
        ).fit(X, y)


def logit_dense(options: argparse.Namespace, threads: int, _rounds: int) -> list[Measurement]:
    """Time fits of 6,000 x 1,000 rows in ten classes, at the loosest tolerance that is enough."""
    table: list[Measurement] = []
    for C in PENALTIES:
        runs = {}
        for solver in (OURS, *sklearn_logit.SOLVERS):
            for dtype in ("float32", "float64"):
                runs[solver, dtype] = from_fresh_process(
                    dense_runs, solver, dtype, C, threads, threads=threads, seconds=options.seconds
                )
        # The reference is not timed, so it may take ten times the limit.
        found = from_fresh_process(
            reference_run, C, threads, threads=threads, seconds=10 * options.seconds
        )
        if not found:
            raise RuntimeError(f"the reference at C={C:g} took too long: raise --seconds")
        least, excess = found[0]
        least = min([least, *(run[2] for done in runs.values() for run in done)])
        bound = f"known to {excess / least:.0e}"
        for (solver, dtype), done in runs.items():
            task = f"logit to {REACHED:.0e} of the least objective ({bound}), C={C:g}"
            table.append(_dense_row(task, f"{solver} {dtype}", done, least, threads, options))
    return table


def _dense_row(
    task: str,
    name: str,
    done: list[Any],
    least: float,
    threads: int,
    options: argparse.Namespace,
) -> Measurement:
    for tol, seconds, objective, iterations in done:
        if objective <= least * (1 + REACHED):
            note = f"tol {tol:.0e}, {iterations} iterations, {objective / least - 1:.0e} above"
            return Measurement(task, name, threads, seconds, seconds, 1, note=note)
    best = min((run[2] / least - 1 for run in done), default=np.inf)
    tried = f"tolerances to {done[-1][0]:.0e}" if done else "no tolerance"
    note = f"NOT REACHED: {tried} in {options.seconds:.0f} s each, {best:.0e} above"
    return Measurement(task, name, threads, options.seconds, options.seconds, 1, note=note)


# ---- GEM's expansion of MNIST, 10,932 columns ----------------------------------------------------


def gem_run(
    solver: str,
    data: Path | None,
    n: int | None,
    iterations: int | None,
    threads: int,
) -> Iterator[tuple[float, int, float, int]]:
    """(seconds, bytes, test error, iterations) of a fit to given rows and directions."""
    from eigenfeat.expansion.features import ExpandedFeatures

    train, test = digits(data).first(n), digits(data, "test")
    V = gem_directions(train, threads)
    rows, found = ExpandedFeatures(train.X, V), []

    def run() -> None:
        start = time.perf_counter()
        if solver == OURS:
            model = _fused(rows, train.y, iterations, threads)
        else:
            phi = rows.toarray()
            model = sklearn_logit.fitted(solver, phi, train.y, 1.0, 1e-4, iterations)
        found.append((time.perf_counter() - start, model))

    extra = peak_extra_bytes(run)
    seconds, model = found[0]
    wrong = 0
    for start in range(0, len(test.y), 5000):
        part = slice(start, start + 5000)
        held = ExpandedFeatures(test.X[part], V)
        predicted = model.predict(held if solver == OURS else held.toarray())
        wrong += int(np.sum(predicted != test.y[part]))
    yield seconds, extra, wrong / len(test.y), int(np.max(model.n_iter_))


def _fused(rows: Any, y: np.ndarray, iterations: int | None, threads: int) -> Any:
    from eigenfeat.linear.logistic import MultinomialLogit

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MultinomialLogit(penalty=0.02, max_iter=iterations or 200, n_threads=threads)
        return model.fit(rows.stored(n_threads=threads), y)


def logit_gem(options: argparse.Namespace, threads: int, _rounds: int) -> list[Measurement]:
    """The fused fit, against scikit-learn's lbfgs on all features in memory, float32.

    Our solver runs twice: to its optimum, and with the fewest iterations that reach the peer's test
    error.
    """
    task = f"logit on GEM's expansion, {options.rows or 60_000:,} rows"

    def measured(solver: str, iterations: int | None) -> Any:
        # A day: reading, directions and predictions count towards the limit, too.
        done = from_fresh_process(
            gem_run,
            solver,
            options.data,
            options.rows,
            iterations,
            threads,
            threads=threads,
            seconds=24 * 3600.0,
        )
        if not done:
            raise RuntimeError(f"{solver} ended without a result: is there enough memory?")
        return done[0]

    peer = measured("lbfgs", options.iterations)

    def row(name: str, run: Any, more: str = "") -> Measurement:
        seconds, extra, error, taken = run
        note = f"test error {error:.2%}, {taken} iterations{more}"
        if run is not peer:
            note += (
                f"; {peer[0] / seconds:.1f} x faster, {extra / max(peer[1], 1):.2f} of the memory"
            )
        return Measurement(task, name, threads, seconds, seconds, 1, "call", extra, note)

    for iterations in FEW_ITERATIONS:
        few = measured(OURS, iterations)
        if few[2] <= peer[2]:
            break
    return [
        row(OURS, measured(OURS, None)),
        row(f"{OURS}, stopped early", few),
        row("lbfgs", peer, f" (at most {options.iterations}), C=1, features formed"),
    ]

"""Throughput of each step, the cost model made of it, and a check of that model.

    python bench/scaling.py                   rates, the check, and what the model predicts
    python bench/scaling.py --workers 64 --rows 20000

The check runs many small workers one after another, merges their results in a tree, and compares
the critical path (the slowest worker, then the slowest merge of each level) with the prediction.
"""

from __future__ import annotations

import argparse
import pickle
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import cost_model
import eigenfeat as ef
from eigenfeat.expansion.features import ExpandedRows
from eigenfeat.linear.logit_problem import logit_terms, scaled_gram
from eigenfeat.samples import reductions
from eigenfeat.samples.blocks import Block

RATE_ROWS, RATE_COLUMNS, RATE_CLASSES, RATE_DIRECTIONS = 60_000, 1_000, 10, 500
CLOUD = cost_model.Cluster(workers=100, cores=32)
HUGE = {"n": 1e10, "d": 1_000, "k": 10, "directions": 900, "features": 5_400}
GRAM_ROWS = 20_000


def best(call: Callable[[], Any], rounds: int = 3) -> float:
    """Seconds of the fastest of several calls."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def rows(n: int, d: int, k: int, seed: int) -> Block:
    """Rows of k classes whose covariances differ."""
    random = np.random.default_rng(seed)
    y = random.integers(0, k, n)
    X = random.standard_normal((n, d), dtype=np.float32)
    X *= 1 + 0.1 * (np.arange(d)[None, :] % k == y[:, None])
    return Block(X, y)


def expanded(block: Block, directions: int, seed: int = 0) -> Block:
    """The block's features along random directions, recomputed in every pass."""
    random = np.random.default_rng(seed)
    d = block.X.shape[1]
    V = random.standard_normal((d, directions)) / np.sqrt(d)
    return Block(ExpandedRows(block.X, V), block.y.astype(np.int32), None)


def one_pass(features: Block, k: int, threads: int) -> Any:
    """The logit's loss and gradient."""
    W = np.zeros((features.X.shape[1] + 1, k))
    return logit_terms(features, True, threads, 0.0, W)


def measured_rates(threads: int) -> cost_model.Rates:
    """Rates of `threads` cores together, divided by their number."""
    n, d, k, F = RATE_ROWS, RATE_COLUMNS, RATE_CLASSES, RATE_DIRECTIONS
    block = rows(n, d, k, 0)
    seconds = best(lambda: reductions.moments(block, n_threads=threads))
    moments_rate = n * d * (d + 1) / seconds
    found = reductions.moments(block, n_threads=threads)
    message = len(pickle.dumps(found))
    merging = best(lambda: found.copy().merge(found, n_threads=1)) - best(found.copy)
    options = {"n_directions": 10, "ridge": 0.2, "n_threads": threads}
    seconds = best(lambda: ef.pencils.pair_directions(found, "all", **options), 1)
    pencil_rate = k * (k - 1) * float(d) ** 3 / seconds
    features = expanded(block, F)
    p = features.X.shape[1]
    seconds = best(lambda: one_pass(features, k, threads))
    pass_rate = n * (2.0 * d * F + 4.0 * p * k) / seconds
    few = Block(features.X.take(np.arange(10_000)), features.y[:10_000])
    seconds = best(lambda: scaled_gram(few, True, threads, np.ones(p + 1), True), 1)
    gram_rate = len(few) * p * (p + 1.0) / seconds
    return cost_model.Rates(
        moments_rate / threads,
        pass_rate / threads,
        gram_rate / threads,
        message / max(merging, 1e-9),
        pencil_rate / threads,
    )


def critical_path(results: list[Any], merge: Callable[[Any, Any], Any]) -> tuple[float, Any]:
    """Seconds of a tree's slowest merges, level by level, messages pickled as between workers."""
    total = 0.0
    while len(results) > 1:
        merged, slowest = [], 0.0
        for left, right in zip(results[::2], results[1::2], strict=False):
            message = pickle.dumps(right)
            started = time.perf_counter()
            merged.append(merge(left, pickle.loads(message)))
            slowest = max(slowest, time.perf_counter() - started)
        results = merged + ([results[-1]] if len(results) % 2 else [])
        total += slowest
    return total, results[0]


def simulated(workers: int, n: int, d: int, k: int, F: int) -> dict[str, float]:
    """Critical paths of moments and of one pass of the logit with so many one-core workers."""
    times: dict[str, list[float]] = {"moments": [], "pass": []}
    accumulated, gradients = [], []
    for worker in range(workers):
        block = rows(n, d, k, worker)
        started = time.perf_counter()
        accumulated.append(reductions.moments(block, n_threads=1))
        times["moments"].append(time.perf_counter() - started)
        features = expanded(block, F)
        started = time.perf_counter()
        gradients.append(one_pass(features, k, 1))
        times["pass"].append(time.perf_counter() - started)
    merging, whole = critical_path(accumulated, reductions.merge_moments)
    adding, _ = critical_path(gradients, reductions.add)
    seen = sum(whole.weight(c) for c in whole.classes_)
    if seen != workers * n:
        raise AssertionError(f"merged {seen} rows of {workers * n}")
    # The median worker: the slowest of many that run one after another met the machine's moods.
    return {
        "moments": float(np.median(times["moments"])) + merging,
        "logit, 1 passes": float(np.median(times["pass"])) + adding,
    }


def check(rates: cost_model.Rates, workers: int, n: int, console: Console) -> None:
    """Prediction beside simulation."""
    d, k, F = 300, 10, 200
    found = simulated(workers, n, d, k, F)
    features = expanded(rows(2, d, k, 0), F).X.shape[1]
    problem = cost_model.Problem(workers * n, d, k, F, features, passes=1)
    # In one process messages take no time, and rows are in memory.
    cluster = cost_model.Cluster(workers, 1, network=np.inf, latency=0.0, disk=np.inf)
    costs = [cost_model.moments(problem, cluster, rates), cost_model.logit(problem, cluster, rates)]
    table = Table(title=f"{workers} workers of one core, {n:,} rows of {d} columns each")
    for heading in ("step", "predicted s", "simulated s", "ratio"):
        table.add_column(heading, justify="left" if heading == "step" else "right")
    for cost in costs:
        seconds = found[cost.step]
        table.add_row(
            cost.step, f"{cost.total:.3f}", f"{seconds:.3f}", f"{seconds / cost.total:.2f}"
        )
    console.print(table)


def predict(rates: cost_model.Rates, console: Console) -> None:
    """A fit of ten thousand million rows."""
    problem = cost_model.Problem(**HUGE)
    cluster = CLOUD
    costs = [
        cost_model.moments(problem, cluster, rates),
        cost_model.pencils(problem, cluster, rates),
        cost_model.metric(problem, rates, cluster.cores, GRAM_ROWS),
        cost_model.logit(problem, cluster, rates),
    ]
    title = (
        f"{problem.n:.0e} rows x {problem.d} columns, {problem.k} classes, "
        f"{problem.directions} directions; {cluster.workers} machines of {cluster.cores} cores, "
        f"{cluster.network / 1e9:g} GB/s net, {cluster.disk / 1e9:g} GB/s disk each"
    )
    table = Table(title=title)
    for heading in ("step", "compute s", "read s", "messages s", "in all s"):
        table.add_column(heading, justify="left" if heading == "step" else "right")
    for cost in costs:
        numbers = (cost.compute, cost.read, cost.network, cost.total)
        table.add_row(cost.step, *(f"{value:,.1f}" for value in numbers))
    table.add_row("in all", "", "", "", f"{sum(cost.total for cost in costs):,.1f}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--workers", type=int, default=64, help="of the check (default 64)")
    parser.add_argument("--rows", type=int, default=20_000, help="of each (default 20,000)")
    parser.add_argument("--threads", type=int, default=1, help="cores that rates are taken from")
    options = parser.parse_args()
    console = Console(width=110)
    rates = measured_rates(options.threads)
    table = Table(title=f"rates of a core, of {options.threads} busy")
    table.add_column("step")
    table.add_column("rate", justify="right")
    for name, value in (
        ("moments, n d (d + 1) flops", f"{rates.moments / 1e9:.0f} Gflop/s"),
        ("logit's pass, 2 n d F + 4 n p k flops", f"{rates.passes / 1e9:.0f} Gflop/s"),
        ("Gram matrix, n p (p + 1) flops", f"{rates.gram / 1e9:.0f} Gflop/s"),
        ("class pairs, d^3 flops each", f"{rates.pencils / 1e9:.0f} Gflop/s"),
        ("merging moments", f"{rates.merge / 1e9:.2f} GB/s"),
    ):
        table.add_row(name, value)
    console.print(table)
    check(rates, options.workers, options.rows, console)
    predict(rates, console)


if __name__ == "__main__":
    main()

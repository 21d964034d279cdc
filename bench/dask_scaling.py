"""Dask with worker processes of one thread, against one process with as many threads.

    python bench/dask_scaling.py [--rows 1000000] [--workers 2] [--rounds 3]

Rows are persisted on the workers, as they are in memory on the other side. A ratio of at least 0.8
in the row "one process" says that Dask has 80% of its speed. The last table is the price of a pass:
few rows, of which nearly all time goes to Dask's tasks and messages.
"""

from __future__ import annotations

import argparse

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster, default_client, wait

from eigenfeat import GEM, ClassMoments, GEMClassifier, distributed
from eigenfeat.samples import ArrayBlocks
from timing import Contender, alternate, print_table

OURS = "Dask"


def rows_of_chunk(start: int, stop: int, d: int, k: int) -> np.ndarray:
    """Rows of k classes with covariances of their own; the same at every call."""
    random = np.random.default_rng(start)
    spread = 1 + 0.5 * ((np.arange(d) + 3 * np.arange(k)[:, None]) % k).astype(np.float32)
    rows = random.standard_normal((stop - start, d), dtype=np.float32)
    rows *= spread[labels_of_chunk(start, stop, k)]
    return rows


def labels_of_chunk(start: int, stop: int, k: int) -> np.ndarray:
    """Their labels."""
    return np.arange(start, stop) % k


def problem(n: int, d: int, k: int, chunk: int) -> tuple[da.Array, da.Array]:
    """Rows and labels, persisted on the workers: every second chunk on each of two."""
    client = default_client()
    workers = sorted(client.scheduler_info()["workers"])
    starts = range(0, n, chunk)
    lengths = tuple(min(chunk, n - start) for start in starts)
    X, y = {}, {}
    for i, start in enumerate(starts):
        where = {"workers": [workers[i % len(workers)]], "pure": False}
        stop = start + lengths[i]
        X["X", i, 0] = client.submit(rows_of_chunk, start, stop, d, k, **where)
        y["y", i] = client.submit(labels_of_chunk, start, stop, k, **where)
    wait([*X.values(), *y.values()])
    rows = da.Array(X, "X", (lengths, (d,)), dtype=np.float32)
    return rows, da.Array(y, "y", (lengths,), dtype=np.int64)


def moments(n: int, workers: int, rounds: int) -> None:
    """Class moments of 128 columns, 10 classes."""
    X, y = problem(n, 128, 10, max(n // 16, 1))
    here, labels = X.compute(), y.compute()
    contenders = [
        Contender("one process", lambda: ClassMoments().update(here, labels, n_threads=workers)),
        Contender(OURS, lambda: distributed.class_moments(X, y)),
    ]
    print_table(alternate(f"moments, {n:,} x 128", contenders, workers, rounds), OURS)


def classifier(n: int, workers: int, rounds: int) -> None:
    """GEMClassifier on 40 columns, 5 classes."""
    X, y = problem(n, 40, 5, max(n // 16, 1))
    here, labels = X.compute(), y.compute()
    options = {"gem": GEM(n_directions=3, scale="none")}
    blocks = ArrayBlocks(here, labels, block_rows=max(n // 16, 1))
    local = GEMClassifier(views="gem", **options, n_threads=workers)
    spread = distributed.GEMClassifier(views="gem", **options)
    contenders = [
        Contender("one process", lambda: local.fit(here, labels), note="keeps projections"),
        Contender("one process, blocks", lambda: local.fit(blocks), note="keeps nothing"),
        Contender(OURS, lambda: spread.fit(X, y), note="keeps projections"),
    ]
    table = alternate(f"GEMClassifier.fit, {n:,} x 40", contenders, workers, rounds)
    print_table(table, OURS)
    print(f"iterations of the logit: {local.logit_.n_iter_[0]} and {spread.logit_.n_iter_[0]}")


def small(workers: int, rounds: int) -> None:
    """A pass over next to nothing, in 1, 16 and 128 partitions."""
    for partitions in (1, 16, 128):
        X, y = problem(12_800, 20, 4, 12_800 // partitions)
        here, labels = X.compute(), y.compute()
        one = Contender("one process", lambda X=here, y=labels: ClassMoments().update(X, y))
        many = Contender(OURS, lambda X=X, y=y: distributed.class_moments(X, y))
        title = f"moments, 12,800 x 20 in {partitions} partitions"
        print_table(alternate(title, [one, many], workers, max(rounds, 5)), OURS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with (
        LocalCluster(
            n_workers=given.workers,
            threads_per_worker=1,
            dashboard_address=":0",
            memory_limit="3GB",
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(given.workers)
        moments(given.rows, given.workers, given.rounds)
        classifier(given.rows, given.workers, given.rounds)
        small(given.workers, given.rounds)


if __name__ == "__main__":
    main()

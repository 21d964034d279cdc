"""Fits on Dask while workers are killed at random moments: each must give the bits of a calm one.

    python bench/dask_kills.py [--runs 20] [--seed 0]

Every run kills one or two workers with SIGKILL, the first 0.2 to 2 s after its start. Rows are made
slowly by the chunk, so that a run takes a few seconds.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster
from distributed import Status

from eigenfeat import GEM, distributed

N, D, K, CHUNK = 16_000, 20, 4, 1_000
SETTINGS = {
    "distributed.scheduler.allowed-failures": 100,
    # A new worker may be slow to start on a busy machine.
    "distributed.deploy.lost-worker-timeout": "10 minutes",
    "distributed.comm.timeouts.connect": "5 minutes",
}


def rows_of_chunk(block_info: Any = None, seconds: float = 0.0) -> np.ndarray:
    """Rows of one chunk, the same at every call."""
    (start, stop), _ = block_info[None]["array-location"]
    time.sleep(seconds)
    random = np.random.default_rng(start)
    y = np.arange(start, stop) % K
    spread = 1 + (np.arange(D) + y[:, None]) % K
    return (random.random((stop - start, D)) * spread + 0.1 * y[:, None]).astype(np.float32)


def problem(seconds: float) -> tuple[da.Array, da.Array]:
    """Rows that take so many seconds a chunk, and their labels."""
    chunks = ((CHUNK,) * (N // CHUNK), (D,))
    meta = np.empty((0, D), np.float32)
    options = {"seconds": seconds, "chunks": chunks, "dtype": np.float32, "meta": meta}
    return da.map_blocks(rows_of_chunk, **options), da.arange(N, chunks=CHUNK) % K


def bits(seconds: float) -> dict[str, bytes]:
    """Moments, spread pencils, logit and classifier, one after the other."""
    X, y = problem(seconds)
    moments = distributed.class_moments(X, y)
    pairs = distributed.pair_directions(moments, constant=True, n_directions=5)
    logit = distributed.MultinomialLogit().fit(X, y)
    model = distributed.GEMClassifier(views="gem", gem=GEM(n_directions=3)).fit(X, y)
    return {
        "moments": np.concatenate([moments.covariance(c) for c in range(K)]).tobytes(),
        "pencils": pairs.vectors.tobytes() + pairs.eigenvalues.tobytes(),
        "logit": logit.coef_.tobytes() + logit.intercept_.tobytes(),
        "classifier": model.logit_.coef_.tobytes() + model.layers_[0].directions.tobytes(),
    }


def kill_some(client: Client, random: np.random.Generator, ended: threading.Event) -> list[str]:
    """Kill a worker, and then perhaps another; returns when."""
    told, started = [], time.monotonic()
    for delay in random.uniform(0.2, 2.0, size=random.integers(1, 3)):
        if ended.wait(delay):
            break
        # Nannies of Dask 2025.1 lose their way when a worker ends that they take to be starting.
        nannies = [n for n in client.cluster.workers.values() if n.process is not None]
        pids = [n.pid for n in nannies if n.process.status == Status.running and n.pid]
        if not pids:
            continue
        os.kill(int(random.choice(pids)), signal.SIGKILL)
        told.append(f"{time.monotonic() - started:.1f} s")
    return told


def one_run(client: Client, random: np.random.Generator, calm: dict[str, bytes]) -> bool:
    """Fit while workers are killed, and compare."""
    ended, told = threading.Event(), []
    killer = threading.Thread(target=lambda: told.extend(kill_some(client, random, ended)))
    started = time.monotonic()
    killer.start()
    try:
        found = bits(0.02)
    finally:
        ended.set()
        killer.join()
    took = time.monotonic() - started
    different = [name for name in calm if found[name] != calm[name]]
    verdict = "the same bits" if not different else f"other bits: {', '.join(different)}"
    print(f"{took:5.1f} s, killed at {', '.join(told) or 'no time'}: {verdict}", flush=True)
    client.wait_for_workers(2, timeout=120)
    return not different and bool(told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    random = np.random.default_rng(given.seed)
    with (
        dask.config.set(SETTINGS),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            memory_limit="700MB",
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):
        calm = bits(0.0)
        good = sum(one_run(client, random, calm) for _ in range(given.runs))
    print(f"{good} of {given.runs} runs had a worker killed and gave the same bits")


if __name__ == "__main__":
    main()

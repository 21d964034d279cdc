"""What the tests on Dask share: a small cluster, seeded rows made by the chunk, and a killer."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

import numpy as np

WORKERS = 2


@contextlib.contextmanager
def small_cluster(memory_limit="700MB"):
    """A client of two worker processes of one thread each, which a nanny starts again."""
    import dask
    from dask.distributed import Client, LocalCluster

    settings = {
        "distributed.scheduler.allowed-failures": 20,
        # A new worker may be slow to start on a busy machine.
        "distributed.deploy.lost-worker-timeout": "5 minutes",
        "distributed.comm.timeouts.connect": "2 minutes",
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=memory_limit,
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def seeded_rows(block_info=None, d=20, k=4, seconds=0.0):
    """Rows of one chunk, of k classes with covariances of their own; the same at every call."""
    threading.Event().wait(seconds)
    (start, stop), _ = block_info[None]["array-location"]
    random = np.random.default_rng(start)
    y = np.arange(start, stop) % k
    spread = 1 + (np.arange(d) + np.arange(k)[:, None]) % k
    rows = random.random((stop - start, d), dtype=np.float32)
    rows *= spread.astype(np.float32)[y]
    rows += 0.1 * y[:, None].astype(np.float32)
    return rows


def lazy_problem(n, chunk, d=20, k=4, seconds=0.0):
    """Dask array of rows made by the chunk, which takes some seconds, and their labels."""
    import dask.array as da

    meta = np.empty((0, d), np.float32)
    size = {"chunks": ((chunk,) * (n // chunk), (d,)), "dtype": np.float32}
    X = da.map_blocks(seeded_rows, d=d, k=k, seconds=seconds, meta=meta, **size)
    return X, da.arange(n, chunks=chunk) % k


def slowly(block, *arguments, function, seconds=0.15):
    """A reduction's function that takes its time, so that a worker can be lost meanwhile."""
    threading.Event().wait(seconds)
    return function(block, *arguments)


def worker_pids(client):
    """Process ids by worker address."""
    return client.run(os.getpid)


def safe_to_kill(client):
    """Process ids of workers that are up in their nannies' eyes, too.

    Nannies of Dask 2025.1 lose their way when a worker ends that they take to be starting, though
    it may be working already.
    """
    from distributed import Status

    nannies = client.cluster.workers.values()
    up = [nanny for nanny in nannies if getattr(nanny.process, "status", None) == Status.running]
    return sorted(pid for pid in (nanny.pid for nanny in up) if pid is not None)


def waited_for(client, count, ended, seconds=60.0):
    """Process ids of so many workers that are safe to kill, or of those there are in the end."""
    pids, deadline = safe_to_kill(client), time.monotonic() + seconds
    while len(pids) < count and time.monotonic() < deadline and not ended.wait(0.02):
        pids = safe_to_kill(client)
    return pids


@contextlib.contextmanager
def killing(client, delays):
    """Kill a worker after each of some seconds; yields the list of those that were killed."""
    ended, killed = threading.Event(), []

    def kill():
        for turn, delay in enumerate(delays):
            if ended.wait(delay):
                return
            pids = waited_for(client, 1, ended)
            victim = pids[turn % len(pids)]
            os.kill(victim, getattr(signal, "SIGKILL", signal.SIGTERM))  # Windows kills by that
            killed.append(victim)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()
        client.wait_for_workers(WORKERS, timeout=60)
        assert len(waited_for(client, WORKERS, threading.Event())) == WORKERS

"""A cluster without workers: an error after some time, and not before."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from dask_support import lazy_problem, slowly

from eigenfeat import distributed, reductions
from eigenfeat.distributed import DaskBlocks, _cluster

dask = pytest.importorskip("dask", reason="needs the extra 'dask'")
pytest.importorskip("distributed", reason="needs the extra 'dask'")

SECONDS = 0.5


@pytest.fixture
def cluster(monkeypatch):
    """One worker, a thread of this process, and a client that looks after it often."""
    from dask.distributed import Client, LocalCluster

    monkeypatch.setattr(_cluster, "_LOOK", 0.05)
    with (
        dask.config.set({"eigenfeat.no-workers-timeout": SECONDS}),
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        Client(cluster),
    ):
        yield cluster


def after(seconds, function, *arguments):
    timer = threading.Timer(seconds, function, arguments)
    timer.start()
    return timer


def reduced_slowly(X, y):
    blocks = DaskBlocks(X, y)
    return blocks.reduce(slowly_counted, int.__add__)


def slowly_counted(block):
    return slowly(block, function=len, seconds=0.1)


def test_a_cluster_without_workers_is_an_error(cluster):
    X, y = lazy_problem(4000, 250)
    timer = after(0.3, cluster.scale, 0)
    with pytest.raises(TimeoutError, match=r"workers: expected some, got none for 0\.5 s after"):
        reduced_slowly(X, y)
    timer.join()


def test_an_estimator_is_as_it_was_when_all_workers_are_lost(cluster):
    X, y = lazy_problem(2000, 250)
    model = distributed.GEM(n_directions=1, scale="none").fit(X, y)
    before = model.directions_.copy()
    cluster.scale(0)
    with pytest.raises(TimeoutError, match=r"no-workers-timeout"):
        model.fit(X + 1, y)
    np.testing.assert_array_equal(model.directions_, before)
    cluster.scale(1)
    assert model.fit(X + 1, y) is model


def test_workers_that_come_back_in_time_are_waited_for(cluster):
    X, y = lazy_problem(2000, 250)
    expected = DaskBlocks(X, y).reduce(reductions.moments, reductions.merge_moments)
    cluster.scale(0)
    with dask.config.set({"eigenfeat.no-workers-timeout": "1 minute"}):
        timer = after(2 * SECONDS, cluster.scale, 1)
        assert distributed.class_moments(X, y) == expected
    timer.join()


def test_a_first_worker_is_waited_for(cluster):
    from dask.distributed import Client

    cluster.scale(0)
    cluster.sync(cluster._correct_state)
    with Client(cluster):  # one that has seen none
        timer = after(3 * SECONDS, cluster.scale, 1)
        assert reduced_slowly(*lazy_problem(1000, 250)) == 1000
    timer.join()

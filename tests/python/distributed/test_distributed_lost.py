"""A cluster without workers: an error after some time, and not before."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from dask_support import lazy_problem, slowly

import eigenfeat
from eigenfeat import distributed
from eigenfeat.distributed import DaskBlocks, _dask
from eigenfeat.samples import reductions

dask = pytest.importorskip("dask", reason="needs the extra 'dask'")
pytest.importorskip("distributed", reason="needs the extra 'dask'")

SECONDS = 0.5


@pytest.fixture
def cluster(monkeypatch):
    """One worker, a thread of this process, and a client that looks after it often."""
    from dask.distributed import Client, LocalCluster

    monkeypatch.setattr(_dask, "_LOOK", 0.05)
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


@pytest.mark.long
def test_a_cluster_without_workers_is_an_error(cluster):
    X, y = lazy_problem(4000, 250)
    timer = after(0.3, cluster.scale, 0)
    with pytest.raises(TimeoutError, match=r"workers: expected some, got none for 0\.5 s after"):
        reduced_slowly(X, y)
    timer.join()


@pytest.mark.long
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


@pytest.mark.long
def test_workers_that_come_back_in_time_are_waited_for(cluster):
    X, y = lazy_problem(2000, 250)
    expected = DaskBlocks(X, y).reduce(reductions.moments, reductions.merge_moments)
    cluster.scale(0)
    with dask.config.set({"eigenfeat.no-workers-timeout": "1 minute"}):
        timer = after(2 * SECONDS, cluster.scale, 1)
        assert distributed.class_moments(X, y) == expected
    timer.join()


@pytest.mark.long
def test_a_client_that_is_closed_in_the_middle_is_an_error():
    """Soon, and one that says what happened; another client then works."""
    from dask.distributed import Client, LocalCluster

    X, y = lazy_problem(40_000, 250)
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50
    ) as cluster:
        client = Client(cluster)
        timer = after(2, client.close)  # a client that is closed before the reduction is not asked
        start = time.monotonic()
        with pytest.raises(Exception, match=r"(?i)clos|cancel|lost|client") as caught:
            reduced_slowly(X, y)
        assert time.monotonic() - start < 12  # the blocks take 16 seconds
        assert isinstance(caught.value, Exception)
        timer.join()
        with Client(cluster):
            few = lazy_problem(1000, 250)
            assert reduced_slowly(*few) == 1000


def test_a_client_that_knows_nothing_is_a_closed_one():
    """Dask's client forgets what its scheduler said as soon as it is being closed."""

    class Closing:
        def scheduler_info(self, n_workers=5):
            return {}

    with pytest.raises(RuntimeError, match="client: expected an open client, got one closed"):
        _dask.workers_of(Closing())


def test_partitions_of_unknown_size_are_measured(cluster):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    dd = pytest.importorskip("dask.dataframe", reason="needs the extra 'dask'")
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((600, 5)), np.arange(600) % 4
    frame = pd.DataFrame(X, columns=list("abcde")).assign(label=y)
    some = dd.from_pandas(frame, npartitions=4)
    some = some[some.label < 3]  # how many rows are left is known when they are read
    expected = eigenfeat.GEM(n_directions=2).fit(X[y < 3], y[y < 3])
    rows, labels = some.drop(columns="label"), some.label
    for given in ((rows, labels), (rows.to_dask_array(), labels.to_dask_array())):
        fitted = distributed.GEM(n_directions=2).fit(*given)
        found = np.asarray(fitted.transform(given[0]).compute())
        np.testing.assert_allclose(found, expected.transform(X[y < 3]), atol=1e-6)
    with pytest.raises(ValueError, match=r"rows|labels|y: "):
        distributed.GEM(n_directions=2).fit(rows.to_dask_array(), labels.to_dask_array()[:-1])

"""Worker processes that are killed, that are short of memory, that others use: the same bits."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from dask_support import killing, lazy_problem, slowly, small_cluster, worker_pids
from flat_gem import gem_classifier
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat import ClassMoments
from eigenfeat.samples import DaskBlocks, class_moments, reductions

da = pytest.importorskip("dask.array", reason="needs the extra 'dask'")
pytest.importorskip("distributed", reason="needs the extra 'dask'")

SLOW_MOMENTS = partial(slowly, function=reductions.moments)


@pytest.fixture(scope="module")
def client():
    """Two worker processes for all tests here."""
    with small_cluster(memory_limit="450MB") as client:
        yield client


@pytest.fixture
def problem(client):
    return lazy_problem(8000, 500)


def moments_in_spite_of_a_kill(client, blocks, seconds):
    """The process that was killed, and the moments, which are those of a calm pass."""
    calm = blocks.reduce(reductions.moments, reductions.merge_moments)
    with killing(client, [seconds]) as killed:
        found = blocks.reduce(SLOW_MOMENTS, reductions.merge_moments)
    assert len(killed) == 1
    assert found == calm
    return killed[0], calm


def test_moments_of_a_cluster_are_those_of_one_machine(client, problem):
    X, y = problem
    here = ClassMoments().update(X.compute(), y.compute())
    there = class_moments(X, y, dtype=np.float64)
    assert there == class_moments(X, y, dtype=np.float64)
    for c in range(4):
        assert_allclose(there.covariance(c), here.covariance(c), rtol=1e-6, atol=1e-6)


def test_moments_outlive_a_worker(client, problem):
    killed, _ = moments_in_spite_of_a_kill(client, DaskBlocks(*problem), 0.5)
    assert killed not in worker_pids(client).values()


def test_the_classifier_is_the_same_on_processes_and_threads(client):
    import dask

    rows = lazy_problem(4000, 500)
    spread = gem_classifier(n_directions=2).fit(*rows)
    with dask.config.set(scheduler="threads"):
        here = gem_classifier(n_directions=2).fit(*rows)
    assert_array_equal(spread.logit_.coef_, here.logit_.coef_)


def test_workers_have_less_memory_than_the_rows_take(client):
    """960 MB of rows, and two workers that end at 450 MB each, of which Python takes half."""
    X, y = lazy_problem(24_000_000, 200_000, d=10)
    limits = [worker["memory_limit"] for worker in client.scheduler_info()["workers"].values()]
    assert X.nbytes == 960_000_000 > sum(limits) > 0
    before = worker_pids(client)
    found = class_moments(X, y)
    assert sum(found.weight(c) for c in range(4)) == 24_000_000
    assert worker_pids(client) == before  # none was ended for its memory


# ---- rows that the workers hold ------------------------------------------------------------------


def held_and_lazy(client, n=8000, chunk=500):
    """The same rows twice: persisted, and made anew in every pass."""
    from dask.distributed import wait

    lazy = lazy_problem(n, chunk)
    held = [part.persist() for part in lazy]
    wait(held)
    return held, lazy


def moments_by(split_every, X, y):
    blocks = DaskBlocks(X, y, split_every=split_every)
    return blocks.reduce(reductions.moments, reductions.merge_moments)


@pytest.mark.parametrize("split_every", [2, 4, 16])
def test_samples_in_memory_of_workers_give_the_same_bits(client, split_every):
    held, lazy = held_and_lazy(client)
    here = held[1].compute()
    expected = moments_by(split_every, *lazy)
    assert moments_by(split_every, *held) == expected
    assert moments_by(split_every, held[0], here) == expected
    assert moments_by(split_every, lazy[0], here) == expected


def test_the_classifier_outlives_a_worker(client):
    held, lazy = held_and_lazy(client, 4000, 500)
    options = {"n_directions": 2, "scale": "none"}
    calm = gem_classifier(**options).fit(*lazy)
    with killing(client, [0.05]) as killed:
        found = gem_classifier(**options).fit(*held)
    assert len(killed) == 1
    assert_array_equal(found.logit_.coef_, calm.logit_.coef_)
    assert_array_equal(found.layers_[0].directions, calm.layers_[0].directions)

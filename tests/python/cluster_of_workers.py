"""Worker processes that are killed, that are short of memory, that others use: the same bits."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from dask_support import WORKERS, killing, lazy_problem, slowly, small_cluster, worker_pids
from flat_gem import gem_classifier, nested
from numpy.testing import assert_allclose, assert_array_equal

import eigenfeat
from eigenfeat import ClassMoments, distributed
from eigenfeat.distributed import DaskBlocks, pencils
from eigenfeat.pencils import pair_directions
from eigenfeat.samples import reductions

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
    there = distributed.class_moments(X, y, dtype=np.float64)
    assert there == distributed.class_moments(X, y, dtype=np.float64)
    for c in range(4):
        assert_allclose(there.covariance(c), here.covariance(c), rtol=1e-6, atol=1e-6)


def test_moments_outlive_a_worker(client, problem):
    killed, _ = moments_in_spite_of_a_kill(client, DaskBlocks(*problem), 0.5)
    assert killed not in worker_pids(client).values()


def solved_slowly(*arguments):
    slowly(None, function=lambda block: None, seconds=0.4)
    return SOLVED(*arguments)


SOLVED = pencils._solved


def test_pencils_outlive_a_worker(client, problem, monkeypatch):
    moments = distributed.class_moments(*problem)
    options = {"constant": True, "n_directions": 4}
    calm = pair_directions(moments, **options)
    monkeypatch.setattr(pencils, "_solved", solved_slowly)
    with killing(client, [0.6]) as killed:
        found = distributed.pair_directions(moments, **options)
    assert len(killed) == 1
    for name in ("vectors", "eigenvalues", "offset", "residuals", "status"):
        assert_array_equal(getattr(found, name), getattr(calm, name))


def test_the_classifier_is_the_same_on_processes_and_threads(client):
    import dask

    rows = lazy_problem(4000, 500)
    spread = distributed.GEMClassifier(**nested({"views": "gem", "n_directions": 2})).fit(*rows)
    with dask.config.set(scheduler="threads"):
        here = distributed.GEMClassifier(**nested({"views": "gem", "n_directions": 2})).fit(*rows)
    assert_array_equal(spread.logit_.coef_, here.logit_.coef_)


def test_large_pencils_are_solved_on_the_workers(client, problem, monkeypatch):
    moments = distributed.class_moments(*problem)
    calls = []
    spread = pencils.solve_pencils
    monkeypatch.setattr(pencils, "solve_pencils", lambda *a: calls.append(1) or spread(*a))
    few = distributed.GEM(n_directions=2).fit_moments(moments)
    assert not calls
    monkeypatch.setattr(pencils, "_MANY", 1.0)
    many = distributed.GEM(n_directions=2).fit_moments(moments)
    assert len(calls) == 1
    local = eigenfeat.GEM(n_directions=2).fit_moments(moments)
    for model in (few, many):
        assert_array_equal(model.directions_, local.directions_)
        assert_array_equal(model.offset_, local.offset_)


def test_workers_have_less_memory_than_the_rows_take(client):
    """960 MB of rows, and two workers that end at 450 MB each, of which Python takes half."""
    X, y = lazy_problem(24_000_000, 200_000, d=10)
    limits = [worker["memory_limit"] for worker in client.scheduler_info()["workers"].values()]
    assert X.nbytes == 960_000_000 > sum(limits) > 0
    before = worker_pids(client)
    found = distributed.class_moments(X, y)
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


@pytest.mark.parametrize("split_every", [2, 4, 16])
def test_samples_in_memory_of_workers_give_the_same_bits(client, split_every):
    held, lazy = held_and_lazy(client)
    here = held[1].compute()
    expected = distributed.class_moments(*lazy, split_every=split_every)
    assert DaskBlocks(*held)._partitions.persisted is not None
    assert distributed.class_moments(*held, split_every=split_every) == expected
    assert distributed.class_moments(held[0], here, split_every=split_every) == expected
    assert distributed.class_moments(lazy[0], here, split_every=split_every) == expected


def test_a_pass_over_samples_in_memory_has_a_task_for_each_worker(client):
    held, _ = held_and_lazy(client)
    blocks = DaskBlocks(*held)
    tasks = blocks.reduce(ran_by, frozenset.union)
    assert len(tasks) == WORKERS
    starts = blocks.reduce(starts_of, tuple.__add__)
    assert starts == tuple(range(0, 8000, 500))


def ran_by(block):
    from dask.distributed import get_worker

    return frozenset([get_worker().get_current_task()])


def starts_of(block):
    return (block.start,)


def test_large_results_are_merged_on_the_workers(client, monkeypatch):
    held, _ = held_and_lazy(client)
    blocks = DaskBlocks(*held)
    found = blocks.reduce(large, np.add, 2**19)
    assert_array_equal(found, np.full(2**19, 8000.0))
    assert blocks._partitions.persisted._large  # as it is in the next pass
    assert_array_equal(blocks.reduce(large, np.add, 2**19), found)


def large(block, size):
    return np.full(size, float(len(block)))


def test_rows_of_one_worker_are_shared_by_all(client):
    from dask.distributed import wait

    lazy, y = lazy_problem(8000, 500, d=7)  # others than in other tests
    one = next(iter(worker_pids(client)))
    X = client.persist(lazy, workers=[one])
    wait(X)
    blocks = DaskBlocks(X, y)
    assert blocks._partitions.persisted.shares(client) is None
    found = blocks.reduce(reductions.moments, reductions.merge_moments)
    assert found == distributed.class_moments(lazy, y)


def test_projections_are_cached_by_all_workers_alike(client):
    from dask.distributed import wait

    X, y = lazy_problem(8000, 500, d=9)
    one, other = worker_pids(client)
    parts = [
        client.persist(X[a:b], workers=[w]) for a, b, w in ((0, 7500, one), (7500, 8000, other))
    ]
    X = da.concatenate(parts).persist()
    wait(X)
    blocks = DaskBlocks(X, y)
    assert blocks._partitions.persisted.shares(client) is None
    gem_classifier(n_directions=1, scale="none").fit(blocks)
    kept = blocks._stored.persisted.shares(client)
    assert sorted(len(share.numbers) for share in kept) == [8, 8]


def test_the_classifier_outlives_a_worker(client):
    held, lazy = held_and_lazy(client, 4000, 500)
    options = {"n_directions": 2, "scale": "none"}
    calm = distributed.GEMClassifier(**nested(dict(**options))).fit(*lazy)
    with killing(client, [0.05]) as killed:
        found = distributed.GEMClassifier(**nested(dict(**options))).fit(*held)
    assert len(killed) == 1
    assert_array_equal(found.logit_.coef_, calm.logit_.coef_)
    assert_array_equal(found.layers_[0].directions, calm.layers_[0].directions)

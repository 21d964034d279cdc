"""Fits on a Dask cluster: bit-for-bit equal on processes and threads, with little memory."""

import os

import numpy as np
import pytest
from dask_support import lazy_problem
from flat_gem import gem_classifier
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat import ClassMoments
from eigenfeat.samples import class_moments

dask = pytest.importorskip("dask", reason="needs the extra 'dask'")
distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def client():
    """Two worker processes of one thread each."""
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "450MB"}
    with (
        distributed.LocalCluster(dashboard_address=":0", silence_logs=50, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_moments_of_a_cluster_are_those_of_one_machine(client):
    X, y = lazy_problem(8000, 500)
    here = ClassMoments().update(X.compute(), y.compute())
    there = class_moments(X, y, dtype=np.float64)
    assert there == class_moments(X, y, dtype=np.float64)
    for c in range(4):
        assert_allclose(there.covariance(c), here.covariance(c), rtol=1e-6, atol=1e-6)


def test_the_classifier_is_the_same_on_processes_and_threads(client):
    samples = lazy_problem(4000, 500)
    spread = gem_classifier(n_directions=2).fit(*samples)
    with dask.config.set(scheduler="threads"):
        here = gem_classifier(n_directions=2).fit(*samples)
    assert_array_equal(spread.logit_.coef_, here.logit_.coef_)


def test_workers_have_less_memory_than_the_samples_take(client):
    """960 MB of samples, and two workers of 450 MB each, of which Python takes half."""
    X, y = lazy_problem(24_000_000, 200_000, d=10)
    limits = [worker["memory_limit"] for worker in client.scheduler_info()["workers"].values()]
    assert X.nbytes == 960_000_000 > sum(limits) > 0
    before = client.run(os.getpid)
    found = class_moments(X, y)
    assert sum(found.weight(c) for c in range(4)) == 24_000_000
    assert client.run(os.getpid) == before  # no worker was ended for its memory


def test_samples_in_memory_of_workers_give_the_same_bits(client):
    lazy = lazy_problem(8000, 500)
    held = [part.persist() for part in lazy]
    distributed.wait(held)

    expected, labels = class_moments(*lazy), held[1].compute()
    for X, y in (held, (held[0], labels), (lazy[0], labels)):
        assert class_moments(X, y) == expected

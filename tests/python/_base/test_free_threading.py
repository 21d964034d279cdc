"""Objects that several Python threads use at once, with Python's lock or without it."""

import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from command_line import python
from every_estimator import outputs, seeded
from sklearn.datasets import load_digits

from eigenfeat import ClassMoments

FREE = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
N_THREADS = 8


@pytest.fixture(autouse=True)
def switch_often():
    """Let threads take turns as often as they can where Python has its lock."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600].astype(np.float32), y[:600]


def together(work):
    """Results of ``work(i)`` in threads that start at the same moment."""
    start = Barrier(N_THREADS)

    def begin(i):
        start.wait(60)
        return work(i)

    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(begin, range(N_THREADS)))


@pytest.mark.skipif(not FREE, reason="this Python always has its lock")
def test_the_compiled_module_does_not_switch_the_lock_on():
    code = "import sys, eigenfeat._core; print(sys._is_gil_enabled())"
    done = python(code)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_moments_are_updated_merged_and_read_at_once(rng):
    n, d, batches = 40, 12, 25
    X = rng.standard_normal((N_THREADS, batches, n, d))
    y = rng.integers(0, 5, (N_THREADS, batches, n))
    shared, twin = ClassMoments(classes=range(5)), ClassMoments(classes=range(5))

    def work(i):
        for rows, labels in zip(X[i], y[i], strict=True):
            shared.update(rows, labels, n_threads=1 + i % 2)
            twin.merge(ClassMoments().update(rows, labels))
            seen = shared.copy()
            active = seen.active_classes
            assert len(active)
            for label in active.tolist():
                found = seen.covariance(label)
                assert np.isfinite(found).all()
                assert np.array_equal(found, found.T)
            shared.merge(ClassMoments(classes=range(5)))
        return shared == shared  # a comparison locks both sides

    assert all(together(work))
    rows, labels = X.reshape(-1, d), y.ravel()
    for found in (shared, twin):
        for c in range(5):
            own = rows[labels == c]
            assert found.weight(c) == len(own)
            # Threads add the rows in any order. Moments are of size 1, and errors of rounding grow
            # with the square root of the number of rows.
            close = {"rtol": 0, "atol": 64 * np.finfo(float).eps * np.sqrt(len(own))}
            np.testing.assert_allclose(found.mean(c), own.mean(axis=0), **close)
            np.testing.assert_allclose(found.covariance(c), np.cov(own.T, bias=True), **close)


def test_moments_compared_in_both_orders_do_not_deadlock(rng):
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 3
    a, b = ClassMoments().update(X, y), ClassMoments().update(X, y)

    def work(i):
        for _ in range(50):
            first, second = (a, b) if i % 2 else (b, a)
            first == second  # noqa: B015, the comparison locks both
        return True

    assert all(together(work))


LONG = ("GEMClassifier, deep", "MulticlassSVM", "ReliableClassifier")


@pytest.mark.parametrize(
    "name",
    ["GEMClassifier", "LDG", *(pytest.param(name, marks=pytest.mark.long) for name in LONG)],
)
def test_models_are_fitted_and_used_at_once(name, digits):
    """Models of each thread and a shared model have the bits of a fit in one thread."""
    X, y = digits
    X, y = (X[y < 3], y[y < 3]) if name == "ReliableClassifier" else (X, y)

    def bits(model):
        return [part.tobytes() for part in outputs(model, X[:200]).values()]

    shared = seeded(name)[0].fit(X, y)
    expected = bits(shared)

    def work(i):
        own = seeded(name)[0].fit(X, y)
        return [bits(model) for model in (shared, own, shared)]

    for found in together(work):
        assert found == [expected] * 3

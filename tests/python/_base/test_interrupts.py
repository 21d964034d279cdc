"""Ctrl-C ends long work in the core, and leaves objects as they were."""

import sys

import pytest
from command_line import python

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform == "win32", reason="the tests send POSIX signals"),
]

# One call of the core works for many seconds, in short blocks. SIGINT arrives after a few tenths of
# a second.
SETUP = """
import os, signal, sys, threading, time
import numpy as np
import eigenfeat as ef

# A job that a script has started in the background ignores SIGINT, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
X, y = rng.standard_normal((4000, 200)), np.arange(4000) % 40
moments = ef.ClassMoments().update(X, y)
before = moments.covariance(3).tobytes(), moments.weight(3)
sent = []

def send():
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

def pairs(n_threads=THREADS):
    return ef.pencils.pair_directions(moments, "all", ridge=0.5, solver="full", n_threads=n_threads)

def unchanged():
    return before == (moments.covariance(3).tobytes(), moments.weight(3))
"""


def run(code, threads=2):
    setup = SETUP.replace("THREADS", str(threads))
    done = python(setup + code, "-W", "ignore::DeprecationWarning")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_ctrl_c_ends_a_long_call(threads):
    code = """
threading.Timer(0.3, send).start()
try:
    pairs()
except KeyboardInterrupt:
    print(time.perf_counter() - sent[0], unchanged())
first = ef.pencils.pair_directions(ef.ClassMoments().update(X, y % 3), n_threads=THREADS)
assert first.eigenvalues.size
""".replace("THREADS", str(threads))
    seconds, same = run(code, threads)
    assert float(seconds) < 1
    assert same == "True"


def test_an_update_that_is_interrupted_leaves_moments_as_they_were():
    code = """
more, labels = rng.standard_normal((100_000, 200)), np.zeros(100_000, dtype=int)
threading.Timer(0.3, send).start()
twin = moments.copy()
try:
    while True:
        twin.update(more, labels)
except KeyboardInterrupt:
    updates = (twin.weight(0) - moments.weight(0)) / 100_000
expected = moments.copy()
for _ in range(int(updates)):
    expected.update(more, labels)
print(updates == int(updates), twin.covariance(0).tobytes() == expected.covariance(0).tobytes())
"""
    assert run(code) == ["True", "True"]


def test_a_handler_of_the_programs_own_runs_after_the_call():
    code = """
few = ef.ClassMoments().update(X, y % 12)
ended = []
signal.signal(signal.SIGINT, lambda *_: ended.append(time.perf_counter()))
threading.Timer(0.1, send).start()
start = time.perf_counter()
found = ef.pencils.pair_directions(few, "all", ridge=0.5, solver="full", n_threads=2)
assert np.isfinite(found.eigenvalues).all()
while not ended: time.sleep(0.01)
print(len(ended))
"""
    assert run(code) == ["1"]


def test_another_thread_is_not_interrupted():
    code = """
found = []
few = ef.ClassMoments().update(X, y % 12)
def compute(): found.append(
    ef.pencils.pair_directions(few, "all", ridge=0.5, solver="full", n_threads=2).vectors.tobytes())
compute()
worker = threading.Thread(target=compute)
worker.start()
try:
    threading.Timer(0.1, send).start()
    time.sleep(30)
except KeyboardInterrupt:
    worker.join()
    print(len(found) == 2 and found[0] == found[1])
"""
    assert run(code) == ["True"]


@pytest.mark.parametrize("solver", ["full", "subset"])
def test_ctrl_c_acts_between_two_large_pencils(solver):
    """One call of LAPACK is not interrupted, and the next call does not begin."""
    code = f"""
root = rng.standard_normal((500, 500)) / 22
A = np.array([root @ root.T] * 60)
threading.Timer(0.3, send).start()
try:
    ef.generalized_eigh(A, np.eye(500), n_vectors=5, solver="{solver}", n_threads=THREADS)
except KeyboardInterrupt:
    print(time.perf_counter() - sent[0])
"""
    for threads in (1, 2):
        assert float(run(code.replace("THREADS", str(threads)))[0]) < 1


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_acts_between_the_steps_of_one_large_pencil(threads):
    code = """
root = rng.standard_normal((2000, 2000)) / 45
A = root @ root.T
threading.Timer(0.8, send).start()
try:
    B = np.eye(2000) + 0.1 * A
    ef.generalized_eigh(A, B, n_vectors=150, solver="krylov", n_threads=THREADS)
except KeyboardInterrupt:
    print(time.perf_counter() - sent[0])
"""
    assert float(run(code.replace("THREADS", str(threads)))[0]) < 1

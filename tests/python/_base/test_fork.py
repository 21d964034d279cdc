"""A forked child may use the package after its parent has used threads.

The child computes on one thread, with bit-for-bit equal results. Tests run in a new interpreter,
which starts its own threads and forks itself, so that pytest is not forked.
"""

import multiprocessing
from pathlib import Path

import pytest
from command_line import python

pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)

# Enough rows for several threads. Parents do not call LAPACK of NumPy and SciPy: how its threads
# behave after a fork depends on these packages.
SETUP = """
import hashlib, multiprocessing, os, signal, sys, threading, warnings
import numpy as np
import eigenfeat as ef
sys.path.insert(0, PLACE)
from every_estimator import outputs, seeded

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
y = np.arange(1500) % 3
X = rng.standard_normal((1500, 60)) + 0.3 * y[:, None]

def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()

def moments():
    accumulated = ef.ClassMoments().update(X, y, n_threads=2)
    return digest(accumulated.covariance(0), accumulated.covariance(2))

def pairs():
    accumulated = ef.ClassMoments().update(X, y, n_threads=2)
    found = ef.pencils.pair_directions(accumulated, ridge=0.1, n_directions=3, n_threads=2)
    return digest(found.vectors)

def of_estimator(name):
    def work():
        model = seeded(name)[0].set_params(n_threads=2).fit(X[:300], y[:300])
        return digest(*outputs(model, X).values())
    return work

fitted = ef.GEMClassifier(gem=ef.GEM(n_directions=3), n_threads=2)

def predict():
    if not hasattr(fitted, "classes_"):
        fitted.fit(X, y)
    return digest(fitted.predict_proba(X))

def n_tasks():
    # threads of this process; 2 where the system does not say
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 2

def in_child(work):
    ours, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=lambda: theirs.send(work()))
    child.start()
    there = ours.poll(60)
    answer = ours.recv() if there else "the child hangs"
    if not there:
        child.kill()
    child.join()
    return answer
"""


def run(code):
    setup = SETUP.replace("PLACE", repr(str(Path(__file__).parents[1])))
    done = python(setup + code, "-W", "ignore")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.long
def test_a_child_does_what_its_parent_did():
    code = """
names = ("GEM", "LDG", "MultinomialLogit", "MulticlassSVM")
for work in (moments, pairs, *map(of_estimator, names), predict):
    before = work()
    assert n_tasks() > 1, "the parent used no threads"
    print(in_child(work) == before, work() == before)
"""
    for line in run(code).splitlines():
        assert line == "True True"


@pytest.mark.long
def test_a_child_of_a_thread_that_has_used_threads():
    """Each thread has its own team of threads, which a child does not have."""
    code = """
before = moments()
found = []
def compute():
    found.append(moments() == before)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if moments() == before else 3)
    found.append(os.waitpid(child, 0)[1])
thread = threading.Thread(target=compute)
thread.start()
thread.join()
print(found)
"""
    assert run(code) == "[True, 0]\n"


@pytest.mark.long
def test_children_forked_while_other_threads_compute():
    """Locks that other threads hold at the time of the fork do not block the child."""
    code = """
before = moments()
stop = threading.Event()
def compute():
    while not stop.is_set():
        moments()
others = [threading.Thread(target=compute) for _ in range(3)]
for thread in others: thread.start()
print({in_child(moments) for _ in range(15)} == {before})
stop.set()
for thread in others: thread.join()
"""
    assert run(code) == "True\n"


@pytest.mark.long
def test_a_child_forked_while_another_thread_solves():
    """What the other thread has not finished is computed by the child itself."""
    code = """
from eigenfeat.rayleigh import RayleighPCA
inside, enough = threading.Event(), threading.Event()
parent = os.getpid()
class Slow(RayleighPCA):
    def _solve(self, *arguments):
        if os.getpid() == parent:
            inside.set()
            enough.wait()
        return super()._solve(*arguments)
model = Slow().partial_fit(X)
expected = digest(RayleighPCA().fit(X).directions_)
def read():
    return digest(model.directions_) == expected
other = threading.Thread(target=read)
other.start()
inside.wait()
print(in_child(read))
enough.set()
other.join()
print(read())
"""
    assert run(code) == "True\nTrue\n"

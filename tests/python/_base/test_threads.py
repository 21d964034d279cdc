"""Threads: numbers of threads, several Python threads, and our copy of BLAS."""

import importlib.util
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from command_line import python
from every_estimator import ESTIMATORS, outputs, rows_for, seeded
from sklearn.datasets import load_wine
from threadpoolctl import threadpool_info, threadpool_limits

import eigenfeat
from eigenfeat import FisherLDA

CROWD = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from threadpoolctl import threadpool_limits
from eigenfeat import ClassMoments, _core, generalized_eigh
from eigenfeat.pencils import pair_directions

LIMITS
rng = np.random.default_rng(0)
X, y = rng.standard_normal((600, 80)), np.arange(600) % 3
A = rng.standard_normal((6, 80, 80))
A = A + A.swapaxes(1, 2)
B = np.eye(80) + 0.1 * np.cov(X.T)

def work(i):
    solver = ("full", "subset", "tridiagonal", "krylov")[i % 4]
    moments = ClassMoments().update(X, y)
    pairs = pair_directions(moments, ridge=0.1, n_directions=3, solver=solver)
    result = generalized_eigh(A, B, n_vectors=4, solver=solver)
    return i % 4, moments.covariance(0).tobytes(), pairs.vectors.tobytes(), result.vectors.tobytes()

alone = {r[0]: r for r in map(work, range(4))}
with ThreadPoolExecutor(12) as pool:
    for r in pool.map(work, range(36)):
        assert r == alone[r[0]], "other threads change the result"
assert _core.blas_threads() in (0, 1)
print("done")
"""


@pytest.mark.long
@pytest.mark.parametrize("omp", ["2", "4"])
@pytest.mark.parametrize("limits", ["", "threadpool_limits(4, user_api='blas')"])
def test_many_python_threads_at_once_leave_nothing_on_stderr(omp, limits):
    """Also if every BLAS of the process, including the core's, has been given four threads."""
    finished = python(CROWD.replace("LIMITS", limits), OMP_NUM_THREADS=omp)
    assert finished.stderr == ""
    assert finished.returncode == 0
    assert finished.stdout == "done\n"


def test_omp_num_threads_is_the_default():
    code = "from eigenfeat import _core; print(_core.default_threads())"
    assert python(code, OMP_NUM_THREADS="3").stdout == "3\n"


def without_a_given_number(code):
    finished = python(code, unset=["OMP_NUM_THREADS"])
    assert finished.stderr == ""
    return finished.stdout


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_affinity_is_the_default_whenever_it_is_set():
    code = (
        "import os; first = min(os.sched_getaffinity(0)); before = {first};"
        "from eigenfeat import _core; free = _core.default_threads(); BOUND;"
        "print(free, _core.default_threads())"
    )
    bind = "os.sched_setaffinity(0, {first})"
    free, bound = map(int, without_a_given_number(code.replace("BOUND", bind)).split())
    assert 1 <= free <= len(os.sched_getaffinity(0))
    assert bound == 1
    earlier = code.replace("before = {first}", bind).replace("BOUND", "pass")
    assert without_a_given_number(earlier) == "1 1\n"


def test_the_number_that_threadpoolctl_sets_counts():
    code = (
        "from threadpoolctl import threadpool_limits; from eigenfeat import _core;"
        "free = _core.default_threads()\n"
        "with threadpool_limits(5, user_api='openmp'): print(_core.default_threads())\n"
        "print(_core.default_threads() == free)"
    )
    assert without_a_given_number(code) == "5\nTrue\n"


SHOWN = "import os; before = dict(os.environ); from eigenfeat import _core; "
SHOWN += "assert dict(os.environ) == before; print('same')"


# This process's settings of idle threads.
WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def waiting(**environment):
    """Settings of idle threads that the runtime of the core prints, by name."""
    finished = python(SHOWN, unset=WAITING, OMP_DISPLAY_ENV="verbose", **environment)
    assert finished.stdout == "same\n"
    if "GOMP_SPINCOUNT" not in finished.stderr:
        pytest.skip("this OpenMP runtime does not say how its threads wait")
    return dict(re.findall(r"(OMP_WAIT_POLICY|GOMP_SPINCOUNT) = '(\w+)'", finished.stderr))


def test_idle_threads_sleep_soon_and_the_environment_stays_as_it_was():
    policy = waiting()
    assert policy["OMP_WAIT_POLICY"] == "PASSIVE"
    assert int(policy["GOMP_SPINCOUNT"]) < 10_000


def test_the_users_wait_policy_counts():
    assert waiting(OMP_WAIT_POLICY="active")["OMP_WAIT_POLICY"] == "ACTIVE"
    assert waiting(GOMP_SPINCOUNT="77777")["GOMP_SPINCOUNT"] == "77777"


@pytest.mark.long
def test_waiting_threads_take_no_time_of_other_programs():
    """In each of 100 pauses of 10 ms after a parallel region, threads could spin for 3 ms."""
    code = """
import time
import numpy as np
from eigenfeat import ClassMoments
X, y = np.random.default_rng(0).standard_normal((3000, 60)), np.arange(3000) % 3
moments = ClassMoments()
asleep = 0.0
for _ in range(100):
    moments.update(X, y, n_threads=2)
    before = time.process_time()
    time.sleep(0.01)
    asleep += time.process_time() - before
print(asleep)
"""
    assert float(python(code, unset=WAITING).stdout) < 0.1


@pytest.mark.long
def test_a_program_may_end_while_daemon_threads_are_in_the_core():
    """At exit Python ends threads that request its lock; in a destructor this would abort."""
    code = """
import threading, time
import numpy as np
import eigenfeat as ef

rng = np.random.default_rng(0)
X, y = rng.standard_normal((4000, 100)), np.arange(4000) % 10
within = threading.Semaphore(0)

def work():
    while True:
        within.release()
        ef.pencils.pair_directions(ef.ClassMoments().update(X, y), ridge=0.5, n_threads=2)

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
for _ in range(6):
    within.acquire()
time.sleep(0.05)
print("end", flush=True)
"""
    for _ in range(3):
        done = python(code)
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


# ---- our copy of BLAS ----------------------------------------------------------------------------


def test_a_copy_of_the_package_finds_the_installed_blas(tmp_path):
    if importlib.util.find_spec("scipy_openblas32") is None:
        pytest.skip("this installation contains its BLAS")
    package = Path(eigenfeat.__file__).parent
    if not any(path.suffix != ".pyi" for path in package.glob("_core*")):
        pytest.skip("the core of an editable installation is in another folder")
    shutil.copytree(package, tmp_path / "eigenfeat")
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import eigenfeat; "
    script += "eigenfeat.ClassMoments(); print(eigenfeat.__file__)"
    done = python(script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path))


@pytest.mark.filterwarnings("ignore")
def test_the_threads_of_numpys_blas_do_not_change_a_bit(rng):
    n = d = 100
    y = np.arange(n) % 3
    X = rng.standard_normal((n, d)) * np.linspace(0.5, 3, d) + y[:, None] * rng.random(d)
    domains = {"sample_domain": np.where(np.arange(n) % 2, 1, -1)}
    # Estimators whose fits take long.
    left_out = {"TableClassifier, all", "TableRegressor, all", "ReliableClassifier, local"}
    for name in ESTIMATORS.keys() - left_out:
        rows = rows_for(name, X)
        found = []
        for n_threads in (1, 2):
            model, arguments = seeded(name)
            with threadpool_limits(n_threads, user_api="blas"):
                model.fit(rows, y, **(domains if arguments else {}))
                found.append(outputs(model, rows[:30]))
        for method in found[0]:
            np.testing.assert_array_equal(*(one[method] for one in found), err_msg=name)


def blas_threads():
    """Threads of the libraries of NumPy and SciPy; the core keeps its own at one."""
    libraries = (one for one in threadpool_info() if one["user_api"] == "blas")
    own = "scipy_openblas32"
    return {p: one["num_threads"] for one in libraries if own not in (p := one["filepath"])}


def test_fits_in_several_threads_leave_the_threads_of_blas_as_they_were():
    X, y = load_wine(return_X_y=True)
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with ThreadPoolExecutor(4) as pool:
            for _ in pool.map(lambda _: FisherLDA().fit(X, y), range(40)):
                pass
        assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_the_threads_of_blas_that_its_parent_had():
    """The number is restored even if a thread used one BLAS thread at the time of the fork."""
    code = """
import os, threading
from threadpoolctl import threadpool_info
from eigenfeat._base.threads import one_blas_thread

def count():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

def in_child(check):
    child = os.fork()
    if child == 0:
        os._exit(0 if check() else 1)
    assert os.waitpid(child, 0)[1] == 0

before, entered, leave = count(), threading.Event(), threading.Event()

def work():
    with one_blas_thread():
        entered.set()
        leave.wait()

other = threading.Thread(target=work)
other.start()
entered.wait()
in_child(lambda: count() == before)
with one_blas_thread():
    in_child(lambda: count() == {1})
leave.set()
other.join()
assert count() == before
"""
    done = python(code, "-W", "ignore", OPENBLAS_NUM_THREADS="2")
    assert done.returncode == 0, done.stderr

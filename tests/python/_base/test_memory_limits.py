"""Limits of address space (ulimit -v) end in MemoryError, never in the end of the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

resource = pytest.importorskip("resource", reason="limits are set by the system's resource module")

if not sys.platform.startswith("linux"):
    pytest.skip("reads /proc/self/status", allow_module_level=True)

SETUP = """
import os, resource, sys
import numpy as np
import eigenfeat as ef

rng = np.random.default_rng(0)
X, y = rng.standard_normal((1500, 150)), np.arange(1500) % 10
ef.pair_directions(ef.ClassMoments().update(X[:200, :9], y[:200] % 3), ridge=0.5)

def space():
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("VmSize:")).split()[1]) << 10

def limit(mebibytes):
    size = space() + int(mebibytes * 2**20)
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))

def unlimited():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

def pairs(n_threads=2):
    moments = ef.ClassMoments().update(X, y, n_threads=n_threads)
    return ef.pair_directions(moments, ridge=0.5, solver="full", n_threads=n_threads).vectors
"""


def run(code, *, limit=None):
    def set_limit():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    return subprocess.run(
        [sys.executable, "-c", SETUP + code],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        preexec_fn=set_limit,
    )


@pytest.mark.parametrize("mebibytes", [1, 8, 20, 33, 50, 70])
def test_a_call_with_too_little_memory_ends_in_memory_error(mebibytes):
    done = run(f"""
limit({mebibytes})
try:
    pairs(n_threads=4)
    print("done")
except MemoryError:
    print("MemoryError")
unlimited()
assert np.isfinite(pairs()).all()
""")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() in ("done", "MemoryError")


def test_threads_take_turns_where_there_is_room_for_one_buffer():
    """Threads, their stacks and the work arrays are there; further buffers are not to be had."""
    done = run("""
small = ef.ClassMoments().update(X[:, :60], y)
def few(n_threads): return ef.pair_directions(small, ridge=0.5, n_threads=n_threads).vectors
import threading
expected = few(1)
limit(200)
for _ in range(5):
    assert np.array_equal(few(4), expected)
errors = []
def work():
    for _ in range(5):
        if not np.array_equal(few(2), expected):
            errors.append(1)
workers = [threading.Thread(target=work) for _ in range(3)]
[worker.start() for worker in workers]
[worker.join() for worker in workers]
print(len(errors))
""")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "0"


def test_there_are_more_buffers_where_there_is_plenty_of_room():
    """Calls on several threads at once under a limit that leaves 4 GiB; the bits are the same."""
    done = run("""
expected = pairs(1)
limit(4096)
before = space()
assert np.array_equal(pairs(3), expected)
print(space() - before < 2**30)
""")
    assert (done.returncode, done.stderr, done.stdout.strip()) == (0, "", "True")


def test_calls_of_lapack_have_a_thread_only_where_there_is_plenty_of_room():
    """Its stack and heap are missing otherwise where NumPy's BLAS ends the process without them."""
    done = run("""
import signal, threading
from eigenfeat._base.interruptible import interruptible
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
def on_main():
    return interruptible(lambda: threading.current_thread() is threading.main_thread(), 1e12)
found = [on_main()]
for mebibytes in (4, 40, 100, 4096):
    limit(mebibytes)
    found.append(on_main())
    unlimited()
print(*found)
""")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["False", "True", "True", "True", "False"]


def test_a_forked_child_works_under_a_limit():
    done = run("""
expected = pairs(2)
limit(300)
assert np.array_equal(pairs(2), expected)
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(pairs(2), expected) else 3)
print(os.waitpid(child, 0)[1])
""")
    assert (done.returncode, done.stdout.strip()) == (0, "0")


def test_too_little_memory_to_load_the_core_is_a_memory_error():
    found = set()
    for mebibytes in (20, 60, 100, 140):
        script = f"""
import resource, numpy as np
with open("/proc/self/status") as file:
    size = int(next(line for line in file if line.startswith("VmSize:")).split()[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (size + ({mebibytes} << 20),) * 2)
try:
    import eigenfeat
    eigenfeat._core
    print("done")
except MemoryError as error:
    print("MemoryError" if "ulimit" in str(error) or "memory" in str(error) else repr(error))
"""
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        found.add(done.stdout.strip())
    assert found <= {"done", "MemoryError"}
    assert "MemoryError" in found


@pytest.mark.parametrize("mebibytes", [320, 400, 500])
def test_a_process_under_a_limit_from_its_start(mebibytes):
    """Where NumPy can be imported at all, which is not ours to say."""
    script = "import numpy"
    first = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20,) * 2),
    )
    if first.returncode != 0:
        pytest.skip("NumPy does not start with so few addresses")
    done = run("print(pairs().shape[0])", limit=mebibytes << 20)
    assert done.returncode == 0 or "MemoryError" in done.stderr
    assert "OpenBLAS" not in done.stderr

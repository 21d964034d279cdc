"""Runs `cluster_of_workers.py` in a process of its own, which can be ended when it hangs.

Its tests kill worker processes, and now and then Dask starts none in their place. Then they are run
again; a wrong result is never tried twice.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("dask.array", reason="needs the extra 'dask'")
pytest.importorskip("distributed", reason="needs the extra 'dask'")

TESTS = Path(__file__).parents[1] / "cluster_of_workers.py"
SECONDS, TRIES = 240, 3


def exit_status(output):
    """Exit status of the tests, or None if they hang; no process is left."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(TESTS)]
    root = TESTS.parents[2]
    with open(output, "w") as log:
        child = subprocess.Popen(
            command, cwd=root, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return child.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if hasattr(os, "killpg"):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
            child.kill()
            child.wait()


@pytest.mark.long
def test_a_cluster_of_workers(tmp_path):
    log = tmp_path / "log"
    for _ in range(TRIES):
        status = exit_status(log)
        if status is not None:
            assert status == 0, log.read_text()
            return
    pytest.skip(f"Dask's workers did not come back in {TRIES} runs of {SECONDS} s")

"""Measure scores, seconds and memory of a method on a problem, in a separate process."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import textwrap
import time
import warnings
from pathlib import Path
from unittest.mock import patch

from bench.papers.choosing import score, train
from bench.papers.protocol import Outcome

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def measure(job, step):
    """Run a job in a new process, whose memory is measured and whose crash does not end this one.

    The outcome has a `failure` if there was an error or the process was killed.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_work, args=(job, theirs), daemon=True)
    try:
        with _thread_variables(job.context.threads):
            process.start()
        theirs.close()
        while not isinstance(message := ours.recv(), Outcome):
            step(message)
        return message
    except EOFError:
        process.join()
        reason = f"the process ended early (exit code {process.exitcode})"
        return job.problem.outcome(job.problem.name, job.method.name, failure=reason)
    finally:
        if process.pid is not None:
            process.terminate()
            process.join()
        ours.close()


def run(job, step):
    """Run a job in this process, and measure its memory; the outcome reports errors."""
    outcome = job.problem.outcome(job.problem.name, job.method.name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            (job.problem.study or _train_and_test)(job, outcome, step)
        except Exception as error:
            outcome.failure = _one_line(error)
    told = [w.message for w in caught if issubclass(w.category, (UserWarning, RuntimeWarning))]
    outcome.warnings = list(dict.fromkeys(map(_one_line, told)))
    outcome.peak_bytes = peak_bytes()
    return outcome


def _train_and_test(job, outcome, step):
    """Load, choose, train, and read the test samples once at the end."""
    step("loading")
    data = job.load()
    model = train(job.method, data, job.problem.objective, job.context, outcome, step)
    step("testing")
    test = data.test()
    started = time.perf_counter()
    outcome.scores = score(model, test)
    outcome.test_seconds = time.perf_counter() - started
    if job.method.ensemble:
        outcome.members = [score(member, test) for member in model.members_]
    outcome.n_train, outcome.n_test = len(data.train), len(test)
    outcome.directions = _n_directions(model)


def peak_bytes():
    """Return the peak memory of this process, including the interpreter; 0 except on Linux.

    `ru_maxrss` would include the parent at the time of the fork.
    """
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(re.search(r"VmHWM:\s+(\d+)", text)[1]) * 1024


def _work(job, connection):
    """Send steps and finally an outcome; the parent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection.send(run(job, connection.send))


def _thread_variables(threads):
    """Set environment variables that limit the threads of a new process's libraries."""
    given = {} if threads is None else dict.fromkeys(THREAD_VARIABLES, str(threads))
    return patch.dict(os.environ, given)


def _n_directions(model):
    """Return the number of directions of a model, of its last layer or of its first member."""
    if hasattr(model, "directions_"):
        return int(model.directions_.shape[1])
    if hasattr(model, "layers_"):
        return len(model.layers_[-1].offset)
    inside = list(getattr(model, "members_", []))[:1]
    inside += [part for _, part in getattr(model, "steps", [])]
    found = [count for part in inside if part is not None and (count := _n_directions(part))]
    return found[-1] if found else None


def _one_line(error):
    """Return the kind and the beginning of an error or a warning."""
    text = textwrap.shorten(str(error), 200, placeholder=" ...")
    return f"{type(error).__name__}: {text}".removesuffix(": ")

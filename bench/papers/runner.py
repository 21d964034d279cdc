"""Run a protocol: its methods in order, tables, a CSV file, and pictures."""

from __future__ import annotations

import dataclasses
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
from bench.papers.protocol import Job, NothingToRunError, Outcome, Run, check_files
from bench.papers.tables import show, write_csv

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

# ---- all methods ---------------------------------------------------------------------------------


def reproduce(
    protocol, folder, output, context, *, peers=False, only=(), console=None, measure=None
):
    """Run a protocol's methods, print its tables and write its CSV file, and pictures if any.

    The file, ``<protocol>.csv`` or ``<protocol>-quick.csv``, is rewritten after every method, and
    the tables are printed even if the run is interrupted. With `peers`, methods of other packages
    run, too. With `only`, those methods run whose "problem: method" contains one of its texts;
    upper and lower case are equal. `measure` runs one job; by default the protocol chooses between
    a new process and this one. Before any method runs, DataError is raised for a data file that is
    missing or lacks arrays, and NothingToRunError if `only` leaves no method.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = console or Console()
    jobs = _jobs(protocol, folder, context, peers, only)
    check_files([job.problem for job in jobs], folder)
    output.mkdir(parents=True, exist_ok=True)
    file = output / f"{protocol.name}{'-quick' if context.quick else ''}.csv"
    measure = measure or (run_alone if protocol.alone else run_job)
    run = Run(protocol, [], context, folder)
    try:
        with Progress(console=console) as progress:
            task = progress.add_task("", total=len(jobs))
            for job in jobs:
                progress.update(task, description=job.name)
                run.outcomes.append(measure(_informed(job, run.outcomes)))
                write_csv(file, protocol.lines(run))
                progress.advance(task)
    finally:
        if run.outcomes:
            for told in (*protocol.tell(run), *_remarks(run.outcomes)):
                show(told, console)
            show(f"Figures in {file.resolve()}", console)
    for name, figure in protocol.draw(run):
        figure.savefig(output / name)
        show(f"Picture in {(output / name).resolve()}", console)
    return run.outcomes


def _jobs(protocol, folder, context, peers, only):
    jobs = [
        Job(problem, method, folder, context)
        for problem in protocol.of(context)
        for method in problem.methods
        if (peers or not method.peer or only)
    ]
    kept = [job for job in jobs if any(part.lower() in job.name.lower() for part in only or [""])]
    if not kept:
        names = ", ".join(dict.fromkeys(job.method.name for job in jobs))
        raise NothingToRunError(f"only: expected part of a method's name out of {names}, got none")
    return kept


def _informed(job, outcomes):
    """Set the number of directions of a job whose method copies the number of an earlier method."""
    other = (job.problem.name, job.method.directions_of)
    sizes = [one.directions for one in outcomes if (one.problem, one.method) == other]
    if not sizes:
        return job
    return job._replace(context=dataclasses.replace(job.context, directions=sizes[-1]))


def _remarks(outcomes):
    """Yield failures and warnings."""
    for outcome in outcomes:
        name = f"{outcome.problem}, {outcome.method}"
        if outcome.failure:
            yield f"{name} failed: {outcome.failure}"
        for text in outcome.warnings:
            yield f"{name} warned: {text}"


# ---- one method ----------------------------------------------------------------------------------


def run_alone(job):
    """Run a job in a new process, whose memory is measured and whose crash does not end this one.

    The outcome has a `failure` if there was an error or the process was killed.
    """
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_work, args=(job, sender), daemon=True)
    threads = job.context.threads
    limits = {} if threads is None else dict.fromkeys(THREAD_VARIABLES, str(threads))
    try:
        with patch.dict(os.environ, limits):
            process.start()
        sender.close()
        return receiver.recv()
    except EOFError:
        process.join()
        reason = f"the process ended early (exit code {process.exitcode})"
        return job.problem.outcome(job.problem.name, job.method.name, failure=reason)
    finally:
        if process.pid is not None:
            process.terminate()
            process.join()
        receiver.close()


def _work(job, connection):
    """Send the outcome of a job; the parent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection.send(run_job(job))


def run_job(job):
    """Run a job in this process, and measure its memory; the outcome reports errors."""
    outcome: Outcome = job.problem.outcome(job.problem.name, job.method.name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            (job.problem.study or _train_and_test)(job, outcome)
        except Exception as error:
            outcome.failure = _one_line(error)
    told = [w.message for w in caught if issubclass(w.category, (UserWarning, RuntimeWarning))]
    outcome.warnings = list(dict.fromkeys(map(_one_line, told)))
    outcome.peak_bytes = _peak_bytes()
    return outcome


def _train_and_test(job, outcome):
    """Load, choose, train, and read the test samples once at the end."""
    data = job.load()
    model = train(job.method, data, job.problem.objective, job.context, outcome)
    test = data.test()
    started = time.perf_counter()
    outcome.scores = score(model, test)
    outcome.test_seconds = time.perf_counter() - started
    if job.method.ensemble:
        outcome.members = [score(member, test) for member in model.members_]
    outcome.n_train, outcome.n_test = len(data.train), len(test)
    outcome.directions = _n_directions(model)


def _peak_bytes():
    """Return the peak memory of this process, including the interpreter; 0 except on Linux.

    `ru_maxrss` would include the parent at the time of the fork.
    """
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(re.search(r"VmHWM:\s+(\d+)", text)[1]) * 1024


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

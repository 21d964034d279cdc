"""Run a protocol: its methods in order, tables, CSV files and pictures."""

from __future__ import annotations

import dataclasses
import warnings
from functools import partial

from bench.papers import measuring, tables
from bench.papers.protocol import Job, NothingToRunError, Run, check_files


def reproduce(
    protocol, folder, output, context, *, peers=False, only=(), console=None, measure=None
):
    """Run a protocol's methods, print its tables and write its CSV files, and pictures if any.

    Files, ``<protocol>.csv`` with "-quick" in its name after a quick run, are written anew after
    every method, and the tables are printed even if the run is interrupted, so that nothing is lost
    that was finished. `peers` says whether methods that are not the package's run, too. With `only`
    those run whose name contains one of its texts, in any case of letters; with a colon it is
    compared with "problem: method", so that "wine:" are all methods on wine. `measure` runs one
    job, by default as the protocol says. DataError tells of a data file that is missing or does not
    hold what it should, NothingToRunError that `only` leaves no method; nothing has run then.
    """
    from rich.console import Console

    console = console or Console()
    jobs = _jobs(protocol, folder, context, peers, only)
    asked = tuple(p for p in protocol.problems if any(job.problem is p for job in jobs))
    check_files(dataclasses.replace(protocol, problems=asked), folder, context)
    output.mkdir(parents=True, exist_ok=True)
    stem = f"{protocol.name}{'-quick' if context.quick else ''}"
    outcomes = []
    done = Run(protocol, outcomes, context, folder)

    def save():
        for end, (fields, lines) in protocol.lines(done).items():
            tables.write_csv(output / f"{stem}{end}.csv", fields, lines)

    try:
        measure = measure or (measuring.measure if protocol.alone else measuring.run)
        _run_all(protocol, jobs, outcomes, measure, console, save)
    finally:
        for told in (*protocol.tell(done), *tables.remarks(outcomes)):
            tables.tell(told, console)
        if outcomes:
            tables.tell(f"Figures in {(output / f'{stem}.csv').resolve()}", console)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Creating legend")  # which a busy machine is slow at
        for name, figure in protocol.draw(done):
            figure.savefig(output / name)
            tables.tell(f"Picture in {(output / name).resolve()}", console)
    return outcomes


def _jobs(protocol, folder, context, peers, only):
    jobs = [
        Job(problem, method, folder, context)
        for problem in protocol.of(context)
        for method in problem.methods
        if (peers or not method.peer or only)
    ]

    def wanted(job, part):
        whole = ":" in part or protocol.parts  # where a method's name alone says little
        return part.lower() in (_name(protocol, job) if whole else job.method.name).lower()

    kept = [job for job in jobs if not only or any(wanted(job, part) for part in only)]
    if not kept:
        names = ", ".join(dict.fromkeys(job.method.name for job in jobs))
        parts = protocol.parts or f"a method's name out of {names}"
        raise NothingToRunError(f"only: expected part of {parts}, got none")
    return kept


def _name(protocol, job):
    return f"{job.problem.name}{protocol.joined}{job.method.name}"


def _run_all(protocol, jobs, outcomes, measure, console, save):
    """Append one outcome after another, behind a bar of the jobs that are done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
        task = progress.add_task("starting", total=len(jobs))

        def tell(name, text):
            progress.update(task, description=f"{name}, {text}")

        for job in jobs:
            step = partial(tell, _name(protocol, job))
            step("starting")
            outcomes.append(measure(_informed(job, outcomes), step))
            save()
            progress.advance(task)


def _informed(job, outcomes):
    """Tell a method that is to be as large as another one how large that one was."""
    other = (job.problem.name, job.method.directions_of)
    sizes = [one.directions for one in outcomes if (one.problem, one.method) == other]
    if not sizes:
        return job
    return job._replace(context=dataclasses.replace(job.context, directions=sizes[-1]))

"""A protocol from beginning to end: its methods one after another, a table, and a CSV file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.papers import (
    covertype,
    defaults,
    ldg,
    ldg_small,
    ldg_transfer,
    mnist,
    speech,
)
from bench.papers.measuring import Job, Outcome, measure
from bench.papers.protocol import (
    Context,
    Method,
    NothingToRunError,
    Problem,
    Protocol,
    check_files,
)
from bench.papers.table import comparison, heading, remarks, write_csv

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["PROTOCOLS", "reproduce"]

PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        mnist.PROTOCOL,
        covertype.PROTOCOL,
        speech.PROTOCOL,
        defaults.PROTOCOL,
        ldg.PROTOCOL,
        ldg_small.PROTOCOL,
        ldg_transfer.PROTOCOL,
    )
}

Measure = Callable[[Job, Callable[[str], None]], Outcome]


def reproduce(
    protocol: Protocol,
    folder: Path,
    output: Path,
    context: Context,
    *,
    peers: bool = False,
    only: Sequence[str] = (),
    console: Console | None = None,
    measure: Measure = measure,
) -> list[Outcome]:
    """Run a protocol's methods, print its tables and write its CSV file, and pictures if any.

    The file is written anew after every method, and the tables are printed even if the run is
    interrupted, so that nothing is lost that was finished.

    Parameters
    ----------
    protocol : Protocol
    folder : Path
        Where the data files are.
    output : Path
        Folder for ``<protocol>.csv``, with "-quick" in its name after a quick run.
    context : Context
    peers : bool
        Whether methods that are not the package's run, too.
    only : sequence of str
        If given, methods whose name contains one of these run, in any case of letters. With a
        colon it is compared with "problem: method", so that "wine:" are all methods on wine.
    console : rich.console.Console, optional
        Where to print; a new one by default.
    measure : callable
        Runs one job; by default in a process of its own.

    Returns
    -------
    list of Outcome

    Raises
    ------
    DataError
        If a data file is missing or does not hold what it should. Nothing has run then.
    NothingToRunError
        If `only` leaves no method.
    """
    from rich.console import Console

    console = console or Console()
    check_files(protocol, folder)
    jobs = _jobs(protocol, folder, context, peers, only)
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"{protocol.name}{'-quick' if context.quick else ''}.csv"
    outcomes: list[Outcome] = []
    try:
        _run_all(jobs, outcomes, measure, console, lambda: _save(protocol, outcomes, context, path))
    finally:
        _show(protocol, outcomes, console)
        if outcomes:
            console.print(f"Figures in {path.resolve()}", soft_wrap=True, highlight=False)
    if protocol.report is not None:
        with console.status("drawing"):
            drawn = protocol.report.draw(protocol, outcomes, context, output, folder)
        for picture in drawn:
            console.print(f"Picture in {picture.resolve()}", soft_wrap=True, highlight=False)
    return outcomes


def _jobs(
    protocol: Protocol, folder: Path, context: Context, peers: bool, only: Sequence[str]
) -> list[Job]:
    jobs = [
        Job(problem, method, folder, context)
        for problem in protocol.problems
        for method in problem.methods
        if (peers or not method.peer or only) and _wanted(problem, method, only)
    ]
    if not jobs:
        names = ", ".join(dict.fromkeys(m.name for p in protocol.problems for m in p.methods))
        raise NothingToRunError(f"only: expected part of a method's name out of {names}, got none")
    return jobs


def _wanted(problem: Problem, method: Method, only: Sequence[str]) -> bool:
    """Whether a method's name, or "problem: method", has one of the parts."""
    name = f"{problem.name}: {method.name}".lower()
    return not only or any(
        part.lower() in (name if ":" in part else method.name.lower()) for part in only
    )


def _run_all(
    jobs: list[Job],
    outcomes: list[Outcome],
    measure: Measure,
    console: Console,
    save: Callable[[], None],
) -> None:
    """Append one outcome after another, behind a bar of the jobs that are done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
        task = progress.add_task("starting", total=len(jobs))
        for job in jobs:
            name = f"{job.problem.name}: {job.method.name}"

            def step(text: str, name: str = name) -> None:
                progress.update(task, description=f"{name}, {text}")

            step("starting")
            outcomes.append(measure(_informed(job, outcomes), step))
            save()
            progress.advance(task)


def _informed(job: Job, outcomes: list[Outcome]) -> Job:
    """Tell a method that is to be as large as another one how large that one was."""
    sizes = [
        outcome.directions
        for outcome in outcomes
        if (outcome.problem, outcome.method) == (job.problem.name, job.method.directions_of)
    ]
    if not sizes:
        return job
    context = dataclasses.replace(job.context, directions=sizes[-1])
    return dataclasses.replace(job, context=context)


def _save(protocol: Protocol, outcomes: list[Outcome], context: Context, path: Path) -> None:
    if protocol.report is not None:
        protocol.report.write(protocol, outcomes, context, path)
    else:
        write_csv(protocol.problems, outcomes, context, path)


def _show(protocol: Protocol, outcomes: list[Outcome], console: Console) -> None:
    if protocol.report is not None:
        for told in protocol.report.tell(protocol, outcomes):
            if isinstance(told, str):
                console.print(told, highlight=False, markup=False, soft_wrap=True)
            else:
                _print_whole(told, console)
        return
    for problem in protocol.problems:
        if not _begun(problem, outcomes):
            continue
        plain = partial(console.print, highlight=False, markup=False, soft_wrap=True)
        plain()
        title, *rest = heading(problem, outcomes).splitlines()
        plain(title, style="bold")
        for line in rest:
            plain(line)
        _print_whole(comparison(problem, outcomes), console)
        for remark in remarks(problem, outcomes):
            plain(remark, style="dim")


def _print_whole(table: Table, console: Console) -> None:
    """Print a table at the width that it needs, so that no figure is cut short."""
    from rich.measure import Measurement

    width = console.width
    unbounded = console.options.update(width=1_000)
    console.width = max(width, Measurement.get(console, unbounded, table).maximum)
    try:
        console.print(table)
    finally:
        console.width = width


def _begun(problem: Problem, outcomes: list[Outcome]) -> bool:
    return any(outcome.problem == problem.name for outcome in outcomes)

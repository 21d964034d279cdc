"""Chapter 5 of Parrish's thesis: early decisions on the archive's time series.

Its other sets are not at hand; those here have an official split. Rows of the test part are in
random order, and at most so many are taken.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.papers import settings
from bench.papers.early_figures import QUICK_SETS, SETS
from bench.papers.early_methods import METHODS, EarlyData, EarlyMethod, Trial
from bench.papers.protocol import (
    Context,
    Data,
    NothingToRunError,
    Problem,
    Protocol,
    Rows,
    check_files,
    read_arrays,
)

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["QUICK_SETS", "SETS", "load", "official", "reproduce_early"]

ARRAYS = {
    "X_train": "(n, d) series for training",
    "y_train": "(n,) labels",
    "X_test": "(m, d) series for testing",
    "y_test": "(m,) labels",
}


def official(path: Path, context: Context) -> Data:
    """Return an official split."""
    X, y, X_test, y_test = read_arrays(path, *ARRAYS)
    return Data(Rows(X, y), lambda: Rows(X_test, y_test))


def load(name: str, folder: Path, context: Context) -> EarlyData:
    """Return a set's split with some of its test rows, in an order that the seed says."""
    data = official(_path(name, folder), context)
    test = data.test()
    limit = settings.EARLY_QUICK_ROWS if context.quick else settings.EARLY_TEST_ROWS
    limit = limit if context.rows is None else context.rows
    # Shuffled even where all are taken, so that the first ones are a random part.
    test = test[np.random.RandomState(context.seed).permutation(len(test))[:limit]]
    wide = data.train.X.astype(np.float64), test.X.astype(np.float64)
    slow = settings.EARLY_QUICK_SLOW_ROWS if context.quick else settings.EARLY_SLOW_ROWS
    return EarlyData(wide[0], data.train.y, wide[1], test.y, slow)


def reproduce_early(
    folder: Path,
    output: Path,
    context: Context,
    *,
    only: Sequence[str] = (),
    console: Console | None = None,
) -> list[Trial]:
    """Run every method on every set, print tables, and write ``early.csv`` and pictures.

    The file is written anew after every method, and what is finished is printed even if the run is
    interrupted.

    Parameters
    ----------
    folder : Path
        Where ``ucr/<set>.npz`` are.
    output : Path
        Folder for the file and the pictures.
    context : Context
    only : sequence of str
        If given, methods whose name contains one of these run, in any case of letters.
    console : rich.console.Console, optional

    Returns
    -------
    list of Trial

    Raises
    ------
    DataError
        If a data file is missing or does not hold what it should. Nothing has run then.
    NothingToRunError
        If `only` leaves no method.
    """
    from rich.console import Console

    from bench.papers import early_tables

    console = console or Console()
    names = QUICK_SETS if context.quick else SETS
    check_files(_protocol(names), folder)
    jobs = [(name, m) for name in names for m in METHODS if _wanted(m, name, only)]
    if not jobs:
        known = ", ".join(method.name for method in METHODS)
        raise NothingToRunError(f"only: expected part of a method's name out of {known}, got none")
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"early{'-quick' if context.quick else ''}.csv"
    trials: list[Trial] = []
    try:
        _run_all(
            jobs,
            folder,
            context,
            trials,
            console,
            lambda: early_tables.write_csv(trials, context, path),
        )
    finally:
        early_tables.show(trials, console)
        if trials:
            written = _draw(trials, folder, output)
            for line in (f"Figures in {path.resolve()}", *written):
                console.print(line, soft_wrap=True, highlight=False)
    return trials


def _run_all(
    jobs: Sequence[tuple[str, EarlyMethod]],
    folder: Path,
    context: Context,
    trials: list[Trial],
    console: Console,
    save: Callable[[], None],
) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
        task = progress.add_task("starting", total=len(jobs))
        for name, method in jobs:

            def step(text: str, told: str = f"{name}: {method.name}") -> None:
                progress.update(task, description=f"{told}, {text}")

            trial = Trial(name, method.name)
            trials.append(trial)
            _run(method, load(name, folder, context), trial, context, step)
            save()
            progress.advance(task)


def _run(
    method: EarlyMethod,
    data: EarlyData,
    trial: Trial,
    context: Context,
    step: Callable[[str], None],
) -> None:
    """Collect a method's points; its failure is told in the tables and stops nothing else."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(context.threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of folds without a class, and the SVM's iterations
        try:
            for point in method.run(data, trial, context.threads, step):
                trial.points.append(point)
        except (ValueError, ImportError, ArithmeticError, MemoryError) as error:
            trial.failure = f"{type(error).__name__}: {' '.join(str(error).split())}"


def _draw(trials: Sequence[Trial], folder: Path, output: Path) -> list[str]:
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        return ["No pictures: matplotlib is missing"]
    from bench.papers.early_pictures import draw

    lengths = {
        name: int(read_arrays(_path(name, folder), "X_train")[0].shape[1])
        for name in dict.fromkeys(trial.problem for trial in trials)
    }
    return [f"  {path.name}" for path in draw(trials, lengths, output)]


def _wanted(method: EarlyMethod, name: str, only: Sequence[str]) -> bool:
    here = method.sets is None or name in method.sets
    return here and (not only or any(part.lower() in method.name.lower() for part in only))


def _path(name: str, folder: Path) -> Path:
    return folder / "ucr" / f"{name}.npz"


def _protocol(names: Sequence[str]) -> Protocol:
    """The sets as problems, for what checks their files."""
    problems = tuple(
        Problem(
            name=name,
            title=name,
            split="official split",
            file=f"ucr/{name}.npz",
            arrays=ARRAYS,
            load=official,
            methods=(),
        )
        for name in names
    )
    return Protocol("early", "early decisions, chapter 5 of the thesis", problems)

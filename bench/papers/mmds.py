"""Tables 1, 3 and 4 and Figures 2 and 3 of the paper on max-margin data shifting, measured."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bench.papers import mmds_data, mmds_faces, mmds_settings
from bench.papers.mmds_shifting import (
    Learn,
    Outcome,
    Parts,
    Shifter,
    chosen_move,
    held_out,
    scores_of,
)
from bench.papers.protocol import Context, DataError, NothingToRunError, Rows
from bench.papers.writing import write_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["Outcome", "run"]

FILES = (
    "mnist.npz",
    "opencv_digits.npz",
    "ocr_letters.npz",
    "faces_yale.npz",
    "faces_yaleb.npz",
    "faces_orl.npz",
    "microarray_standins.npz",
)


# ---- the tables ----------------------------------------------------------------------------------


class Features:
    """A data set's rows, or their kernel features of several widths, which experiments share."""

    def __init__(self, data: str, features: str, folder: Path, context: Context) -> None:
        split = mmds_data.load(data, folder, quick=context.quick)
        self.quick, self.threads = context.quick, context.threads
        self._test = split.test
        self._kernels: list[Any] = [None]
        if features == "kernel":
            self._kernels = [
                mmds_data.kernel(data, split.train.X, width, quick=context.quick)
                for width in mmds_settings.KERNEL_WIDTHS
            ]
        self._trains = [_mapped(kernel, split.train) for kernel in self._kernels]
        self._parts: dict[tuple[int, float], Parts] = {}

    def parts(self, width: int, C: float) -> Parts:
        """Shifters of parts of the training rows by an SVM of this C, and the rows kept back."""
        if (width, C) not in self._parts:
            self._parts[width, C] = held_out(self._trains[width], C, self.threads)
        return self._parts[width, C]

    def _width(self, make: Learn) -> int:
        """The kernel's width, by number, that is best for an extractor of rows as they are."""
        C = mmds_settings.FIT_C[0]
        scores = [
            float(scores_of(self.parts(width, C), make, 0.0).mean()) if len(self._trains) > 1 else 0
            for width in range(len(self._trains))
        ]
        return int(np.argmax(scores))

    def measure(self, case: mmds_settings.Case) -> Outcome:
        """Accuracies without moves, and with those that held-out rows prefer to none.

        The kernel's width is chosen for the extractor and rows as they are, and serves both.
        """
        make = partial(mmds_data.extractor, case.extractor, case.n_components, quick=self.quick)
        scales = mmds_settings.QUICK_SCALES if self.quick else mmds_settings.SCALES
        width = self._width(make)
        C, scale = chosen_move({C: self.parts(width, C) for C in mmds_settings.FIT_C}, make, scales)
        shifter = Shifter(self._trains[width], C, self.threads)
        test = _mapped(self._kernels[width], self._test)
        original = shifter.accuracy(make(), 0.0, test)
        return Outcome(
            case.table,
            case.data,
            case.extractor,
            case.n_components,
            original,
            shifter.accuracy(make(), scale, test) if scale else original,
            scale,
            *case.paper,
        )

    def curve(self, data: str, extractor: str) -> Outcome:
        """Accuracy and reconstruction error of test rows for each of many scales: Figure 3."""
        make = partial(mmds_data.extractor, extractor, 10, quick=self.quick)
        width = self._width(make)
        shifter = Shifter(self._trains[width], mmds_settings.CURVE_C, self.threads)
        test = _mapped(self._kernels[width], self._test)
        curve = []
        for scale in mmds_settings.CURVE_SCALES:
            learnt = make()
            accuracy = shifter.accuracy(learnt, scale, test)
            rebuilt = learnt.inverse_transform(learnt.transform(test.X))
            error = float(((rebuilt - test.X) ** 2).sum(axis=1).mean())
            curve.append((scale, accuracy, error))
        best = max(curve, key=lambda point: point[1])
        return Outcome("Figure 3", data, extractor, 10, curve[0][1], best[1], best[0], curve=curve)


def _mapped(kernel: Any, rows: Rows) -> Rows:
    """A kernel's features of rows; without one, rows as they are."""
    return rows if kernel is None else Rows(kernel.transform(rows.X).astype(np.float32), rows.y)


# ---- all of it -----------------------------------------------------------------------------------


def run(
    folder: Path,
    output: Path,
    context: Context,
    *,
    only: Sequence[str] = (),
    console: Console | None = None,
) -> list[Outcome]:
    """Run the experiments, print their tables, write ``mmds.csv`` and draw pictures.

    The file is written anew after every experiment, and what is finished is printed even if the
    run is interrupted.

    Parameters
    ----------
    folder : Path
        Where the data files are.
    output : Path
        Folder for the file and the pictures.
    context : Context
    only : sequence of str
        If given, experiments run whose table, data or extractor contains one of these.
    console : rich.console.Console, optional

    Returns
    -------
    list of Outcome

    Raises
    ------
    DataError
        If a data file is missing.
    NothingToRunError
        If `only` leaves nothing.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from bench.papers import mmds_pictures

    for file in FILES:
        if not (folder / file).is_file():
            raise DataError(f"data: expected {folder / file}, got no such file")
    console = console or Console()
    jobs = [job for job in _jobs(folder, context) if _wanted(job[0], only)]
    if not jobs:
        raise NothingToRunError("only: expected part of a table, data set or extractor, got none")
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"mmds{'-quick' if context.quick else ''}.csv"
    outcomes: list[Outcome] = []
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with (
            warnings.catch_warnings(),
            Progress(*columns, TextColumn("{task.description}"), console=console) as progress,
        ):
            warnings.simplefilter("ignore", ConvergenceWarning)
            # Two faces of each of many people look like a regression.
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            task = progress.add_task("starting", total=len(jobs))
            for name, job in jobs:
                progress.update(task, description=name)
                outcomes.append(job())
                _write(outcomes, context, path)
                progress.advance(task)
    finally:
        for table in _tables(outcomes):
            console.print(table)
        if outcomes:
            console.print(f"Figures in {path.resolve()}", soft_wrap=True, highlight=False)
    pictures = mmds_pictures.draw(outcomes, folder, output, context)
    for picture in pictures:
        console.print(f"  {picture.name}", highlight=False)
    return outcomes


def _jobs(folder: Path, context: Context) -> Iterator[tuple[str, Callable[[], Outcome]]]:
    shared: dict[tuple[str, str], Features] = {}

    def features(data: str, kind: str) -> Features:
        if (data, kind) not in shared:
            shared.clear()  # one at a time is held
            shared[data, kind] = Features(data, kind, folder, context)
        return shared[data, kind]

    for faces in (*mmds_settings.FACES, *mmds_settings.STANDINS):
        yield f"Table 1, {faces.name}, PCA", partial(mmds_faces.measure, faces, folder, context)
    order = sorted(mmds_settings.CASES, key=lambda c: (c.data != "MNIST", c.data, c.features))
    for case in order:
        name = f"{case.table}, {case.data}, {case.extractor} {case.n_components}"
        yield name, lambda c=case: features(c.data, c.features).measure(c)  # type: ignore[misc]
    for extractor, kind in (("PCA", "rows"), ("AE", "rows"), ("KPCA", "kernel")):
        yield (
            f"Figure 3, MNIST, {extractor}",
            lambda e=extractor, k=kind: (  # type: ignore[misc]
                features("MNIST", k).curve("MNIST", e)
            ),
        )


def _wanted(name: str, only: Sequence[str]) -> bool:
    return not only or any(part.lower() in name.lower() for part in only)


def _write(outcomes: Sequence[Outcome], context: Context, path: Path) -> None:
    """Write one line for each outcome; the file is replaced as a whole."""
    lines = [asdict(outcome) | {"quick": context.quick} for outcome in outcomes]
    write_lines(path, list(lines[0]), lines)


def _tables(outcomes: Sequence[Outcome]) -> Iterator[Table]:
    from rich import box
    from rich.table import Table

    titles = {
        "Table 1": "Table 1: PCA of faces and of gene expressions, few rows a class",
        "Table 4": "Table 4: three extractors in 5, 10 and 20 dimensions",
        "Table 3": "Table 3: five extractors of kernel features, 5 dimensions",
        "Figure 3": "Figure 3: best of the scales, on the test rows",
    }
    for name, title in titles.items():
        rows = [outcome for outcome in outcomes if outcome.table == name]
        if not rows:
            continue
        table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left")
        table.add_column("data", no_wrap=True)
        table.add_column("extractor", no_wrap=True)
        for heading in ("paper %", "", "measured %", "", "move"):
            table.add_column(heading, justify="right", no_wrap=True)
        for row in rows:
            spread = "" if row.deviation is None else f" ± {row.deviation:.1f}"
            table.add_row(
                row.data,
                f"{row.extractor} {row.n_components}",
                _percent(row.paper_original),
                _percent(row.paper_shifted),
                _percent(row.original),
                _percent(row.shifted) + spread,
                f"{row.scale:g}",
            )
        yield table


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"

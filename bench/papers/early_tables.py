"""Early decisions beside the thesis's figures: tables for the terminal, and one CSV line a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.papers import settings
from bench.papers.early_figures import FIRST_STEP, SECONDS, SETS
from bench.papers.early_methods import METHODS, Point, Trial
from bench.papers.protocol import Context
from bench.papers.session import _print_whole as print_whole
from bench.papers.writing import write_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "FIELDS",
    "calibration_table",
    "first_step_table",
    "seconds_table",
    "set_table",
    "show",
    "write_csv",
]

FIELDS = (
    "problem",
    "method",
    "knob",
    "value",
    "n_test",
    "reliability",
    "accuracy",
    "mean_time",
    "earliness",
    "harmonic_mean",
    "seconds_per_row",
    "fit_seconds",
    "features",
    "first_step_seconds",
    "chosen",
    "tau",
    "nominal_reliability",
    "nominal_mean_time",
    "failure",
    "quick",
    "threads",
    "seed",
)
KNOBS = {method.name: method.knob for method in METHODS}
PLAIN, REDUCED = "local QDA, quadratic", "local QDA on LDG, quadratic"


def show(trials: Sequence[Trial], console: Console) -> None:
    """Print a table for every set, then Tables 5.2 to 5.4, then what failed."""
    plain = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    for name in dict.fromkeys(trial.problem for trial in trials):
        plain()
        plain(name, style="bold")
        print_whole(set_table([trial for trial in trials if trial.problem == name]), console)
    for title, table in (
        ("Tables 5.2 and 5.3: milliseconds a test row at tau 0.9", seconds_table(trials)),
        ("Table 5.4: milliseconds a test row to decide at t = 1", first_step_table(trials)),
        (
            "Calibrated for an agreement on one half of the test rows, tried on the other, beside "
            "a tau of as much",
            calibration_table(trials),
        ),
    ):
        if table.row_count:
            plain(title, style="bold")
            print_whole(table, console)
    for trial in trials:
        if trial.failure:
            plain(f"{trial.problem}: {trial.method} failed: {trial.failure}", style="red")


def set_table(trials: Sequence[Trial]) -> Table:
    """Return the runs of every method on one set."""
    table = _table("method", "", "rows", "reliability", "accuracy", "mean\ntime", "harmonic\nmean")
    table.add_column("ms\na row", justify="right")
    for trial in trials:
        for place, point in enumerate(trial.points):
            table.add_row(
                trial.method if place == 0 else "",
                f"{KNOBS[trial.method]} {point.value:g}",
                f"{point.n_test:,}",
                f"{point.reliability:.3f}",
                f"{point.accuracy:.3f}",
                f"{point.mean_time:.1f}",
                f"{point.harmonic_mean:.3f}",
                _milliseconds(point.seconds),
                end_section=place == len(trial.points) - 1,
            )
    return table


def seconds_table(trials: Sequence[Trial]) -> Table:
    """Return the thesis's and our times of the sets and completions it compares."""
    sets = (SETS[0], SETS[2], SETS[3])
    columns = [f"{name}\n{who}" for name in sets for who in ("thesis", "here")]
    table = _table("method", *columns)
    for method, paper in SECONDS.items():
        ours = [_at(trials, name, method) for name in sets]
        if not any(ours):
            continue
        cells = []
        for seconds, point in zip(paper, ours, strict=True):
            cells += [f"{1e3 * seconds:,.0f}", _milliseconds(point.seconds) if point else ""]
        table.add_row(method, *cells)
    return table


def first_step_table(trials: Sequence[Trial]) -> Table:
    """Return the thesis's and our features of LDG, and times with and without them."""
    table = _table(
        "set",
        "LDG features\nthesis",
        "\nhere",
        "all samples\nthesis",
        "\nhere",
        "LDG\nthesis",
        "\nhere",
    )
    for name, paper in FIRST_STEP.items():
        plain, reduced = _trial(trials, name, PLAIN), _trial(trials, name, REDUCED)
        if plain is None and reduced is None:
            continue
        table.add_row(
            name,
            str(paper.features),
            str(reduced.features) if reduced else "",
            str(paper.all_milliseconds),
            _first(plain),
            str(paper.ldg_milliseconds),
            _first(reduced),
        )
    return table


def calibration_table(trials: Sequence[Trial]) -> Table:
    """Return agreements wanted and realised, and times of decision, nominal and calibrated."""
    table = _table(
        "set",
        "wanted",
        "nominal\nrealised",
        "\nmean time",
        "calibrated\ntau",
        "\nrealised",
        "\nmean time",
    )
    for method in dict.fromkeys(t.method for t in trials if t.nominal):
        table.add_row(method)
        for trial in (t for t in trials if t.method == method):
            points = {point.value: point for point in trial.points}
            for wanted, nominal in trial.nominal.items():
                cells = ["not certified", "", ""]
                if wanted in points:
                    tau, point = f"{trial.taus[wanted]:.3g}", points[wanted]
                    cells = [tau, f"{point.reliability:.3f}", f"{point.mean_time:.1f}"]
                told = [f"{nominal.reliability:.3f}", f"{nominal.mean_time:.1f}"]
                table.add_row(f"  {trial.problem}", f"{wanted:g}", *told, *cells)
    return table


def write_csv(trials: Sequence[Trial], context: Context, path: Path) -> None:
    """Write one line for each run; the file is replaced as a whole, or left as it was."""
    write_lines(path, FIELDS, (line for trial in trials for line in _lines(trial, context)))


def _lines(trial: Trial, context: Context) -> Iterator[dict[str, object]]:
    common: dict[str, object] = {
        "problem": trial.problem,
        "method": trial.method,
        "knob": KNOBS[trial.method],
        "fit_seconds": f"{trial.fit_seconds:.4f}",
        "features": trial.features or "",
        "first_step_seconds": "" if trial.first_seconds is None else f"{trial.first_seconds:.3e}",
        "chosen": trial.chosen,
        "failure": trial.failure,
        "quick": context.quick,
        "threads": context.threads,
        "seed": context.seed,
    }
    if not trial.points:
        yield common
    for point in trial.points:
        shares = ("reliability", "accuracy", "mean_time", "earliness", "harmonic_mean")
        yield {
            **common,
            "value": f"{point.value:g}",
            "n_test": point.n_test,
            **{name: f"{getattr(point, name):.6f}" for name in shares},
            "seconds_per_row": f"{point.seconds:.3e}",
            **_nominal(trial, point.value),
        }


def _nominal(trial: Trial, wanted: float) -> dict[str, str]:
    """What was certified, and what a tau of the agreement itself does."""
    if wanted not in trial.taus:
        return {}
    nominal = trial.nominal[wanted]
    return {
        "tau": f"{trial.taus[wanted]:g}",
        "nominal_reliability": f"{nominal.reliability:.6f}",
        "nominal_mean_time": f"{nominal.mean_time:.6f}",
    }


def _table(first: str, *columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _trial(trials: Sequence[Trial], name: str, method: str) -> Trial | None:
    found = [t for t in trials if (t.problem, t.method) == (name, method) and not t.failure]
    return found[0] if found else None


def _at(trials: Sequence[Trial], name: str, method: str) -> Point | None:
    trial = _trial(trials, name, method)
    points = trial.points if trial else []
    return next((p for p in points if p.value == settings.EARLY_TABLE_TAU), None)


def _first(trial: Trial | None) -> str:
    seconds = trial.first_seconds if trial else None
    return "" if seconds is None else _milliseconds(seconds)


def _milliseconds(seconds: float) -> str:
    value = 1e3 * seconds
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"

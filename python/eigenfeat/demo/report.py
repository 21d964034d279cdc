"""The demonstration's table, for the terminal and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING

import numpy as np

from eigenfeat._base.saved_files import taking_the_place_of
from eigenfeat.demo.digits import OURS, Outcome

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["comparison_table", "write_csv"]


def comparison_table(outcomes: Mapping[str, Outcome], title: str) -> Table:
    """Return a table of columns, test error (mean and standard deviation) and seconds.

    Parameters
    ----------
    outcomes : mapping of str to Outcome
        Results by method; see :func:`eigenfeat.demo.digits.compare`.
    title : str
        Title above the table.
    """
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    table.add_column("logistic regression on")
    for heading in ("columns", "test error %", "\u00b1", "C", "seconds"):
        table.add_column(heading, justify="right")
    for name, outcome in outcomes.items():
        errors = 100 * np.array(outcome.errors)
        table.add_row(
            name,
            f"{outcome.n_columns:,}",
            f"{errors.mean():.2f}",
            f"{_spread(errors):.2f}",
            f"{median_low(outcome.penalties):g}",
            f"{np.mean(outcome.seconds):.2f}",
            style="bold green" if name == OURS else None,
        )
    return table


def write_csv(outcomes: Mapping[str, Outcome], path: Path) -> None:
    """Write one line for each method and split."""
    with (
        taking_the_place_of(path) as scratch,
        scratch.open("x", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(["method", "columns", "split", "error", "C", "seconds"])
        for name, outcome in outcomes.items():
            for split, error in enumerate(outcome.errors):
                details = (outcome.penalties[split], f"{outcome.seconds[split]:.4f}")
                writer.writerow([name, outcome.n_columns, split, f"{error:.6f}", *details])


def _spread(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0

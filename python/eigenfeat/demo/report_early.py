"""Output of the demonstration of early decisions: one signal step by step, and a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from eigenfeat.demo.early import LENGTH, TAU, Demonstration, Look
from eigenfeat.incomplete import EarlyScores

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["looks_table", "scores_table", "show"]

BAR = 24  # characters for a tau of 1
SHOWN = 18  # lines of a signal's table, the last ones in full


def show(shown: Demonstration, console: Console) -> None:
    """Print the decision about one signal step by step, the calibration, and the comparison."""
    plain = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    plain(
        f'One signal of {LENGTH} samples, of the kind "{shown.kind}", at tau {TAU:g}', style="bold"
    )
    console.print(looks_table(shown.looks))
    plain("Calibration on held-out signals", style="bold")
    plain(f"  {shown.calibration}")
    plain()
    plain("Signals that none has seen", style="bold")
    console.print(scores_table(shown.scores))


def looks_table(looks: Sequence[Look]) -> Table:
    """Return a table of the signal's label and largest tau after each sample."""
    table = _table("samples", "value", "would be", "for tau up to")
    every = max(1, -(-len(looks) // SHOWN))
    for look in looks:
        if look.seen % every and len(looks) - look.seen >= 3:
            continue
        sure = look.outlook.reliability
        bar = "\u2588" * round(BAR * sure)
        text = "decided" if look.decided else f"{sure:.2f}"
        table.add_row(
            str(look.seen),
            f"{look.value:.2f}",
            str(look.outlook.label),
            f"{bar} {text}",
            style="bold green" if look.decided else None,
        )
    return table


def scores_table(scores: Mapping[str, EarlyScores]) -> Table:
    """Return a table with one line of scores for each method."""
    table = _table("method", "reliability", "accuracy", "mean time", "harmonic mean")
    for name, one in scores.items():
        figures = (one.reliability, one.accuracy, one.harmonic_mean)
        told = ["" if figure is None else f"{figure:.3f}" for figure in figures]
        time = f"{one.mean_time:.1f} of {LENGTH}"
        table.add_row(name, told[0], told[1], time, told[2])
    return table


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for column in columns:
        text = column in ("method", "would be", "for tau up to")
        table.add_column(column, justify="left" if text else "right", no_wrap=True)
    return table

"""Tables for the terminal, means with deviations, and CSV files that are replaced as a whole."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eigenfeat._base.files.persist import replacing

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def new_table(headings: Sequence[str], names: int = 1, title: str = "") -> Table:
    """Return a table without rows; the first columns are names, numbers stand on the right."""
    from rich import box
    from rich.table import Table

    style = {"box": box.SIMPLE_HEAD, "pad_edge": False, "padding": (0, 1, 0, 0)}
    table = Table(title=title or None, title_justify="left", **style)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < names else "right", no_wrap=True)
    return table


def tell(told: Any, console: Console) -> None:
    """Print a line of text as it is, or a table at the width that it needs, so that none is cut."""
    from rich.measure import Measurement

    if isinstance(told, tuple):  # text and its style
        console.print(told[0], style=told[1], highlight=False, markup=False, soft_wrap=True)
        return
    if isinstance(told, str):
        console.print(told, highlight=False, markup=False, soft_wrap=True)
        return
    width = console.width
    unbounded = console.options.update(width=1_000)
    console.width = max(width, Measurement.get(console, unbounded, told).maximum)
    try:
        console.print(told)
    finally:
        console.width = width


def mean_and_deviation(values: Sequence[float], digits: int) -> str:
    """Return "mean ± deviation", without the second of a single value, or "" of none."""
    if not len(values):
        return ""
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def mean_fields(name: str, values: Sequence[float]) -> dict[str, str]:
    """Return the two fields of a file that have the mean and the deviation, as far as they are."""
    found = {name: f"{np.mean(values):.6f}"} if values else {}
    if len(values) > 1:
        found[f"{name}_deviation"] = f"{np.std(values, ddof=1):.6f}"
    return found


def write_csv(path: Path, fields: Sequence[str], lines: Iterable[Mapping[str, object]]) -> None:
    """Write a heading and lines; fields that a line does not have stay empty."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fields)
    writer.writeheader()
    writer.writerows(lines)
    with replacing(path) as file:
        file.write(text.getvalue().encode())

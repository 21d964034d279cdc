"""Tables for the terminal, means with deviations, and CSV files that are replaced as a whole."""

from __future__ import annotations

import csv
import io

import numpy as np

from eigenfeat._base.saved_files import replacing

HOW = ("quick", "threads", "seed")  # options of the run in each line of a file


def new_table(headings, names=1, title=""):
    """Return a table without rows; the first columns are names, numbers stand on the right."""
    from rich import box
    from rich.table import Table

    style = {"box": box.SIMPLE_HEAD, "pad_edge": False, "padding": (0, 1, 0, 0)}
    table = Table(title=title or None, title_justify="left", **style)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < names else "right", no_wrap=True)
    return table


def tell(told, console):
    """Print text, text with a style, or a table at its full width."""
    from rich.measure import Measurement

    if isinstance(told, (str, tuple)):
        text, style = (told, None) if isinstance(told, str) else told
        console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)
        return
    width = console.width
    unbounded = console.options.update(width=1_000)
    console.width = max(width, Measurement.get(console, unbounded, told).maximum)
    try:
        console.print(told)
    finally:
        console.width = width


def remarks(outcomes):
    """Yield failures and warnings."""
    for outcome in outcomes:
        if outcome.failure:
            yield f"{outcome.problem}, {outcome.method} failed: {outcome.failure}", "red"
        for text in outcome.warnings:
            yield f"{outcome.problem}, {outcome.method} warned: {text}", "dim"


def mean_and_deviation(values, digits):
    """Return "mean ± deviation", the mean of a single value, or "" without values."""
    if not len(values):
        return ""
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def mean_fields(name, values):
    """Return fields for the mean and, of several values, the deviation."""
    found = {name: f"{np.mean(values):.6f}"} if values else {}
    if len(values) > 1:
        found[f"{name}_deviation"] = f"{np.std(values, ddof=1):.6f}"
    return found


def picked(source, *names):
    """Return attributes by their names."""
    return {name: getattr(source, name) for name in names}


def write_csv(path, fields, lines):
    """Write a heading and lines, with empty cells for missing fields."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fields)
    writer.writeheader()
    writer.writerows(lines)
    with replacing(path) as file:
        file.write(text.getvalue().encode())

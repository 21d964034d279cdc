"""Functions for all displays: figures without pyplot, colours, legends, checks of arguments."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

import numpy as np

from eigenfeat._base.validation import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

ACCENT, BLUE, GREEN, MUTED = "#b2182b", "#2166ac", "#1b7837", "#9aa5b1"
# Okabe and Ito's colours, which colour-blind readers can distinguish.
CLASS_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")
MARKERS = "os^DvPX"


def class_style(number: int) -> tuple[str, str]:
    """Return colour and marker of the class with this index; the first 49 classes differ."""
    n = len(CLASS_COLOURS)
    return CLASS_COLOURS[number % n], MARKERS[(number + number // n) % len(MARKERS)]


def new_figure(width: float, height: float) -> Figure:
    """Create a figure of this size in inches, without pyplot."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=110, layout="constrained")


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or new axes on a figure of this size."""
    if ax is None:
        return new_figure(width, height).subplots()
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise ValueError(f"ax: expected Matplotlib axes or None, got {show(ax)}")
    return ax


def panel_figure(ax: Axes | None, width: float, height: float) -> Figure | SubFigure:
    """Create a figure for panels, or a subfigure in place of `ax`, which is switched off."""
    if ax is None:
        return new_figure(width, height)
    place = axes_or_new(ax, width, height).get_subplotspec()
    if place is None:
        raise ValueError("ax: expected axes of a grid, as by subplots(), got axes without a grid")
    ax.set_axis_off()
    parent = ax.figure
    assert parent is not None
    return parent.add_subfigure(place)


def root_figure(axes: Axes) -> Figure:
    """Return the figure of axes, also of axes in a subfigure."""
    parent = axes.figure
    assert parent is not None
    return parent.figure


def plain(*axes: Axes, grid: Literal["x", "y", "both"] | None = None) -> None:
    """Remove the top and right spines of axes, and draw a faint grid."""
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        if grid is not None:
            ax.grid(axis=grid, alpha=0.25)
            ax.set_axisbelow(True)


def legend_above(ax: Axes, handles: Sequence[Any] = ()) -> None:
    """Draw a legend between title and axes, in as many columns as fit."""
    handles = list(handles) or ax.get_legend_handles_labels()[0]
    if not handles:
        return
    longest = max(len(str(handle.get_label())) for handle in handles)
    width = ax.bbox.width / root_figure(ax).dpi * 72  # points
    columns = min(len(handles), max(1, int(width / (5.0 * longest + 34))))
    ax.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns,
        fontsize=9, frameon=False, borderaxespad=0.1, columnspacing=1.2, handlelength=1.6,
    )  # fmt: skip
    rows = -(-len(handles) // columns)
    ax.set_title(ax.get_title(), fontsize=10, pad=8 + 14.5 * rows)


def wrapped(text: str, figure: Figure | SubFigure, size: float, columns: float = 1) -> str:
    """Break a text of this font size into lines that fit the width of a figure's columns."""
    inches = figure.bbox.width / figure.figure.dpi / columns
    n_letters = max(12, int(72 * inches / (0.54 * size)))  # a letter's width is half its height
    return "\n".join(textwrap.fill(line, n_letters) for line in text.split("\n"))


def short(label: object, limit: int = 24) -> str:
    """Shorten a label to fit beside an axis."""
    text = str(label)
    return text if len(text) <= limit else text[: limit - 1] + "\u2026"


def short_tau(tau: float) -> str:
    """Format a probability with enough digits to distinguish it from 0 and 1."""
    if 0.5 < tau < 1:
        digits = max(2, int(np.ceil(-np.log10(1 - tau) - 1e-6)) + 1)
        return f"{tau:.{digits}f}".rstrip("0")
    return f"{tau:.2g}"


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a value is an ordered collection, and not a string."""
    return isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes))

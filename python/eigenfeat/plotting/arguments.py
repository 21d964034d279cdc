"""What pictures are drawn of and on, checked before anything is drawn."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.extras import require
from eigenfeat._base.validation import real_array, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from numpy.typing import ArrayLike

__all__ = [
    "axes_or_new",
    "check_mapping",
    "check_names",
    "check_shares",
    "new_figure",
    "panel_figure",
    "plain",
    "root_figure",
    "wrapped",
]


def new_figure(width: float, height: float) -> Figure:
    """A figure of that size in inches, without pyplot."""
    require("matplotlib", "pictures")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=110, layout="constrained")


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """`ax`, or new axes on a figure of that size."""
    if ax is None:
        return new_figure(width, height).subplots()
    require("matplotlib", "pictures")
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise ValueError(f"ax: expected Matplotlib's axes or None, got {show(ax)}")
    return ax


def panel_figure(ax: Axes | None, width: float, height: float) -> Figure | SubFigure:
    """A figure of that size for several panels, or the place of `ax`, which is switched off."""
    if ax is None:
        return new_figure(width, height)
    place = axes_or_new(ax, width, height).get_subplotspec()
    if place is None:
        raise ValueError("ax: expected axes of a grid, as subplots() makes, got axes placed freely")
    ax.set_axis_off()
    parent = ax.figure
    assert parent is not None
    return parent.add_subfigure(place)


def root_figure(axes: Axes) -> Figure:
    """The whole figure that axes are on, be it on a part of it."""
    parent = axes.figure
    assert parent is not None
    return parent.figure


def plain(*axes: Axes, grid: Literal["x", "y", "both"] | None = None) -> None:
    """Take the frame above and on the right from axes, and draw faint lines across them."""
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        if grid is not None:
            ax.grid(axis=grid, alpha=0.25)


def wrapped(text: str, figure: Figure | SubFigure, size: float, columns: float = 1) -> str:
    """The lines of a text of that font size, broken to the width of a figure's columns."""
    inches = figure.bbox.width / figure.figure.dpi / columns
    most = max(12, int(72 * inches / (0.54 * size)))  # a letter is about half as wide as high
    return "\n".join(textwrap.fill(line, most) for line in text.split("\n"))


def check_mapping(value: object, name: str, of: str, least: str = "at least one") -> None:
    """Refuse what is no mapping, and one without entries."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{name}: expected a mapping of {of}, got {show(value)}")
    if not value:
        raise ValueError(f"{name}: expected {least}, got none")


def check_names(value: object, name: str) -> tuple[str, ...]:
    """Names that come in a sequence, and not one name alone."""
    if (
        not isinstance(value, Sequence)
        or isinstance(value, (str, bytes))
        or not all(isinstance(one, str) for one in value)
    ):
        raise ValueError(f"{name}: expected a sequence of names, got {show(value)}")
    return tuple(value)


def check_shares(values: ArrayLike, name: str, *, at_most: float = 1.0) -> NDArray[np.float64]:
    """One number or several (n,), each in [0, at_most]."""
    shares = np.atleast_1d(real_array(values, name)).astype(np.float64)
    if shares.ndim != 1 or not shares.size:
        raise ValueError(f"{name}: expected numbers in one dimension, got shape {shares.shape}")
    good = (shares >= 0) & (shares <= at_most) & np.isfinite(shares)
    if not good.all():
        bound = f"numbers in [0, {at_most:g}]"
        raise ValueError(f"{name}: expected {bound}, got {shares[np.argmin(good)]}")
    return shares

"""Plots of results of several methods: errors, accuracy by dimension, sparsity, many data sets.

Every function returns its figure or axes, and shows or writes nothing. Matplotlib is imported when
a function is called; figures are made without pyplot, so no window system is needed and nothing has
to be closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.validation import MOST, check_number, check_whole, real_array, show
from eigenfeat.plotting.arguments import (
    axes_or_new,
    check_mapping,
    check_names,
    check_shares,
    new_figure,
    plain,
)
from eigenfeat.plotting.colours import ACCENT, CLASS_COLOURS, MARKS, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

__all__ = ["plot_accuracies", "plot_accuracy", "plot_comparison", "plot_errors", "plot_sparsity"]

GREY = "#6b7280"
COLUMNS = 3  # panels a line

Curve = Mapping[int, Any]


def plot_accuracy(
    curves: Mapping[str, Curve],
    ax: Axes | None = None,
    title: str = "",
    styles: Mapping[str, int] | None = None,
    whole: Sequence[str] = (),
    legend: bool = True,
) -> Axes:
    """Plot accuracy by dimension: lines for means over splits, bands for standard deviations.

    Parameters
    ----------
    curves : mapping of str to mapping of int to array-like
        For each method and dimension, accuracies between 0 and 1, one for each split.
    ax : matplotlib.axes.Axes, optional
    title : str
    styles : mapping of str to int, optional
        Index of each method's colour and marker; by default in order.
    whole : sequence of str
        Methods that keep all columns: each is a dashed horizontal line.
    legend : bool, default=True

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If there is no curve.

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, Figures 3.4, 3.5, 3.8 and 4.5.
    """
    _check_curves(curves, "curves")
    whole = check_names(whole, "whole")
    if styles is not None:
        _check_styles(styles, curves)
    axes = axes_or_new(ax, 6.4, 4.4)
    numbers = dict(zip(curves, range(len(curves)), strict=True)) if styles is None else styles
    most = max((max(curve) for name, curve in curves.items() if name not in whole), default=1)
    for name, curve in curves.items():
        number = numbers[name] % len(CLASS_COLOURS)
        if name in whole:
            mean = 100 * float(np.mean(list(curve.values())))
            axes.axhline(mean, color=CLASS_COLOURS[number], ls="--", lw=1.3, label=name)
        else:
            _draw_curve(axes, name, curve, number)
    axes.set(xlabel="dimensions kept", ylabel="test accuracy in %", title=title)
    axes.set_xlim(0.5, most + 0.5)
    _number_wholly(axes)
    axes.grid(axis="y", color="#e5e9ee", lw=0.8)
    axes.set_axisbelow(True)
    plain(axes)
    if legend:
        axes.figure.legend(loc="outside lower center", ncols=min(len(curves), 4), frameon=False)
    return axes


def plot_accuracies(
    panels: Mapping[str, Mapping[str, Curve]], title: str, whole: Sequence[str] = ()
) -> Figure:
    """Plot `plot_accuracy` for several data sets, with one legend below all of them.

    Parameters
    ----------
    panels : mapping of str to curves
        Curves of each data set.
    title : str
    whole : sequence of str
        As in `plot_accuracy`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If there is no panel, or a panel has no curve.
    """
    check_mapping(panels, "panels", "curves by data set", "a data set at least")
    for curves in panels.values():
        _check_curves(curves, "panels")
    whole = check_names(whole, "whole")
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    styles = {name: number for number, name in enumerate(names)}
    columns = min(COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    width = max(3.7 * columns + 0.3, 7.0)
    figure = new_figure(width, 2.75 * lines + 1.2)
    grid = figure.subplots(lines, columns, squeeze=False)
    for ax, (name, curves) in zip(grid.flat, panels.items(), strict=False):
        plot_accuracy(curves, ax, name, styles, whole, legend=False)
    for place, ax in enumerate(grid.flat):
        if place >= len(panels):
            ax.set_axis_off()
        if place % columns:
            ax.set_ylabel("")
        if place + columns < len(panels):
            ax.set_xlabel("")
    keys = {
        label: handle
        for ax in grid.flat
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.suptitle(
        f"{title}\nLines: means over splits; bands: one standard deviation", fontsize=12
    )
    figure.legend(
        keys.values(), keys.keys(), loc="outside lower center", frameon=False,
        ncols=min(len(keys), int(width / 1.7)),
    )  # fmt: skip
    return figure


def plot_sparsity(
    nonzeros: Mapping[str, ArrayLike],
    n_columns: int | None = None,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Plot the number of columns with weight in each direction; the thesis's Figure 3.6.

    Parameters
    ----------
    nonzeros : mapping of str to (splits, directions) array
        Counts by method; for one fit, (directions,).
    n_columns : int, optional
        Number of columns of the data, the maximum count, which is drawn as a line.
    ax : matplotlib.axes.Axes, optional
    legend : bool, default=True

    Returns
    -------
    matplotlib.axes.Axes
    """
    check_mapping(nonzeros, "nonzeros", "counts by method")
    counts_of = {name: _counts(given) for name, given in nonzeros.items()}
    if n_columns is not None:
        check_whole(n_columns, "n_columns", at_least=1, at_most=MOST)
    axes = axes_or_new(ax, 6.8, 4.4)
    for number, (name, counts) in enumerate(counts_of.items()):
        curve = {i + 1: counts[:, i] for i in range(counts.shape[1])}
        _draw_curve(axes, name, curve, number % len(CLASS_COLOURS), unit=1.0, most=np.inf)
    if n_columns is not None:
        axes.axhline(n_columns, color=GREY, lw=0.9, ls=":", zorder=0)
        axes.annotate(
            f"all {n_columns} columns", (1, n_columns), (0, 4), textcoords="offset points",
            color=GREY, fontsize=9,
        )  # fmt: skip
    axes.set_ylim(0, 1.12 * (n_columns or axes.get_ylim()[1]))
    axes.set(
        xlabel="direction, in the order found",
        ylabel="columns with weight",
        title="Columns that each direction has weight on",
    )
    _number_wholly(axes)
    plain(axes)
    if legend:
        axes.figure.legend(loc="outside lower center", ncols=min(len(nonzeros), 3), frameon=False)
    return axes


def plot_errors(errors: Mapping[str, ArrayLike], ax: Axes | None = None, best: str = "") -> Axes:
    """Plot error rates of several methods: one dot for each split, a bar for the mean.

    Parameters
    ----------
    errors : mapping of str to (s,) array
        Error rates between 0 and 1 of each method, one for each split.
    ax : matplotlib.axes.Axes, optional
    best : str
        The method to draw in colour.

    Returns
    -------
    matplotlib.axes.Axes
    """
    check_mapping(errors, "errors", "error rates by method")
    percents = {name: 100 * check_shares(of, "errors") for name, of in errors.items()}
    if not isinstance(best, str):
        raise ValueError(f"best: expected the name of a method, got {show(best)}")
    axes = axes_or_new(ax, 7.6, 0.62 * len(errors) + 1.35)
    names = list(errors)[::-1]
    for place, name in enumerate(names):
        percent = percents[name]
        colour = ACCENT if name == best else MUTED
        axes.barh(place, percent.mean(), height=0.56, color=colour, alpha=0.85)
        spread = np.linspace(-0.16, 0.16, len(percent)) if len(percent) > 1 else np.zeros(1)
        axes.plot(percent, place + spread, "o", ms=3.5, mfc="white", mec="black", mew=0.8)
        axes.text(
            max(percent.max(), percent.mean()), place, f"  {percent.mean():.2f}%", va="center"
        )
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(0, 1.15 * max(float(percent.max()) for percent in percents.values()))
    axes.set_xlabel("test error in % (bars: mean, circles: single splits)")
    plain(axes)
    return axes


def plot_comparison(
    accuracies: Mapping[str, Mapping[str, Sequence[float]]],
    best: str,
    printed: Mapping[str, float] | None = None,
    title: str = "",
) -> Figure:
    """Plot one method's accuracy on many data sets among others, one line for each set, sorted.

    Parameters
    ----------
    accuracies : mapping of str to mapping of str to sequence of float
        For each set and method, accuracies between 0 and 1, one for each split.
    best : str
        The method in colour, with its standard deviation over splits.
    printed : mapping of str to float, optional
        Accuracy of that method in another source, in percent, for each set.
    title : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    check_mapping(accuracies, "accuracies", "accuracies by set and method")
    for methods in accuracies.values():
        check_mapping(methods, "accuracies", "accuracies by method")
        for given in methods.values():
            check_shares(given, "accuracies")
    if not isinstance(best, str) or not any(best in methods for methods in accuracies.values()):
        raise ValueError(f"best: expected a method of accuracies, got {show(best)}")
    if printed is not None:
        check_mapping(printed, "printed", "figures by set")
    chosen = [name for name in accuracies if best in accuracies[name]]
    order = sorted(chosen, key=lambda name: float(np.mean(accuracies[name][best])))
    figure = new_figure(8.2, 0.36 * len(order) + 2.0)
    axes = figure.subplots()
    for place, name in enumerate(order):
        others = [100 * float(np.mean(v)) for m, v in accuracies[name].items() if m != best]
        ours = 100 * np.asarray(accuracies[name][best], dtype=float)
        first = place == 0
        axes.plot(
            others, [place] * len(others), "|", ms=11, mew=1.6, color=GREY, alpha=0.8,
            label="the other methods" if first else None,
        )  # fmt: skip
        spread = float(np.std(ours, ddof=1)) if len(ours) > 1 else 0.0
        axes.errorbar(
            ours.mean(), place, xerr=spread, fmt="o", ms=6, color=CLASS_COLOURS[0], capsize=2.5,
            lw=1.2, label=f"{best}, mean and deviation over splits" if first else None,
        )  # fmt: skip
    marked = [(_printed(printed, name), i) for i, name in enumerate(order) if printed is not None]
    if marked:
        values, places = zip(*marked, strict=True)
        axes.plot(
            values, places, "D", ms=7, mfc="none", mec=CLASS_COLOURS[1], mew=1.5,
            label=f"{best} in the thesis",
        )  # fmt: skip
    axes.set_yticks(range(len(order)), order)
    axes.set(xlabel="test accuracy in %, mean over splits", title=title)
    axes.grid(axis="x", color="#e5e9ee", lw=0.8)
    axes.set_axisbelow(True)
    plain(axes)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def _check_curves(curves: Any, name: str) -> None:
    check_mapping(curves, name, "curves by method", "a method at least")
    for curve in curves.values():
        check_mapping(curve, name, "accuracies by dimension")
        for dimension, given in curve.items():
            check_whole(dimension, name, at_least=1)
            check_shares(given, name)


def _check_styles(styles: Any, curves: Mapping[str, Curve]) -> None:
    check_mapping(styles, "styles", "numbers by method")
    for name in curves:
        check_whole(styles.get(name), "styles", at_least=0)


def _counts(given: Any) -> NDArray[Any]:
    counts = np.atleast_2d(real_array(given, "nonzeros"))
    if counts.ndim != 2 or not counts.size:
        raise ValueError(f"nonzeros: expected (splits, directions), got shape {counts.shape}")
    check_shares(counts.ravel(), "nonzeros", at_most=float(MOST))
    return counts


def _printed(printed: Mapping[str, float], name: str) -> float:
    if name not in printed:
        raise ValueError(f"printed: expected a figure for {name!r}, got none")
    return check_number(printed[name], "printed", at_least=0.0)


def _draw_curve(
    ax: Axes, name: str, curve: Curve, number: int, unit: float = 100.0, most: float = 100.0
) -> None:
    """Draw a line of means with a band of deviations, which does not leave 0 .. most."""
    dimensions = np.array(sorted(curve))
    values = [unit * np.asarray(curve[m], dtype=float) for m in dimensions]
    mean = np.array([one.mean() for one in values])
    spread = np.array([one.std(ddof=1) if len(one) > 1 else 0.0 for one in values])
    low, high = np.clip([mean - spread, mean + spread], 0.0, most)
    colour = CLASS_COLOURS[number]
    ax.plot(
        dimensions, mean, color=colour, lw=1.6, label=name, marker=MARKS[number], ms=3.6,
        markevery=max(1, len(dimensions) // 12),
    )  # fmt: skip
    if len(dimensions) > 1:
        ax.fill_between(dimensions, low, high, color=colour, alpha=0.14, lw=0)
    else:  # a point has no band
        ax.vlines(dimensions, low, high, color=colour, lw=1.4, alpha=0.6)


def _number_wholly(ax: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))

"""Curves of accuracy, numbers of columns, and many sets on one picture."""

from __future__ import annotations

import numpy as np

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "os^DvPX"
GREY = "#6b7280"
COLUMNS = 3  # panels per line


def figure_of(width, height, dpi=110):
    """Return a figure without pyplot."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=dpi, layout="constrained")


def draw_accuracy(ax, curves, title, styles=None, whole=()):
    """Draw accuracy by dimension: means over splits, and bands of one standard deviation.

    `curves` has, by method and dimension, accuracies between 0 and 1, one for each split; methods
    in `whole` keep all columns and are dashed lines. `styles` numbers the methods.
    """
    styles = styles or {name: number for number, name in enumerate(curves)}
    most = max((max(curve) for name, curve in curves.items() if name not in whole), default=1)
    for name, curve in curves.items():
        number = styles[name] % len(COLOURS)
        if name in whole:
            mean = 100 * float(np.mean(list(curve.values())))
            ax.axhline(mean, color=COLOURS[number], ls="--", lw=1.3, label=name)
        else:
            _draw_curve(ax, name, curve, number)
    ax.set(xlabel="dimensions kept", ylabel="test accuracy in %", title=title)
    ax.set_xlim(0.5, most + 0.5)
    _plain(ax)


def accuracy_panels(panels, title, whole=()):
    """Return `draw_accuracy` for several data sets, with one legend below all of them."""
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    styles = {name: number for number, name in enumerate(names)}
    columns = min(COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    width = max(3.7 * columns + 0.3, 7.0)
    figure = figure_of(width, 2.75 * lines + 1.2)
    grid = figure.subplots(lines, columns, squeeze=False)
    for ax, (name, curves) in zip(grid.flat, panels.items(), strict=False):
        draw_accuracy(ax, curves, name, styles, whole)
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
    columns = min(len(keys), int(width / 1.7))
    figure.legend(
        keys.values(), keys.keys(), loc="outside lower center", frameon=False, ncols=columns
    )
    return figure


def draw_sparsity(ax, nonzeros, n_columns):
    """Draw the number of columns with weight in each direction, (splits, directions) by method."""
    for number, (name, counts) in enumerate(nonzeros.items()):
        curve = {i + 1: counts[:, i] for i in range(counts.shape[1])}
        _draw_curve(ax, name, curve, number % len(COLOURS), unit=1.0, most=np.inf)
    ax.axhline(n_columns, color=GREY, lw=0.9, ls=":", zorder=0)
    ax.annotate(
        f"all {n_columns} columns", (1, n_columns), (0, 4), textcoords="offset points",
        color=GREY, fontsize=9,
    )  # fmt: skip
    ax.set(xlabel="direction", ylabel="columns with weight", ylim=(0, 1.12 * n_columns))
    ax.set_title("Columns that each direction has weight on")
    _plain(ax)


def comparison(accuracies, best, printed, title):
    """Return one method's accuracy on many sets among others, a line for each set, sorted.

    `printed` has the accuracy of that method in the thesis, in percent.
    """
    order = sorted(accuracies, key=lambda name: float(np.mean(accuracies[name][best])))
    figure = figure_of(8.2, 0.36 * len(order) + 2.0)
    ax = figure.subplots()
    for place, name in enumerate(order):
        others = [100 * float(np.mean(v)) for m, v in accuracies[name].items() if m != best]
        ours = 100 * np.asarray(accuracies[name][best], dtype=float)
        spread = float(np.std(ours, ddof=1)) if len(ours) > 1 else 0.0
        labels = ("the other methods", f"{best}, mean and deviation over splits")
        others_label, ours_label = labels if place == 0 else (None, None)
        ax.plot(others, [place] * len(others), "|", ms=11, mew=1.6, color=GREY, label=others_label)
        ax.errorbar(
            ours.mean(), place, xerr=spread, fmt="o", ms=6, color=COLOURS[0], capsize=2.5,
            lw=1.2, label=ours_label,
        )  # fmt: skip
    ax.plot(
        [printed[name] for name in order], range(len(order)), "D", ms=7, mfc="none", mew=1.5,
        mec=COLOURS[1], label=f"{best} in the thesis",
    )  # fmt: skip
    ax.set_yticks(range(len(order)), order)
    ax.set(xlabel="test accuracy in %, mean over splits", title=title)
    _plain(ax, "x")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw_curve(ax, name, curve, number, unit=100.0, most=100.0):
    """Draw a line of means with a band of deviations, which does not leave 0 .. most."""
    from matplotlib.ticker import MaxNLocator

    dimensions = np.array(sorted(curve))
    values = [unit * np.asarray(curve[m], dtype=float) for m in dimensions]
    mean = np.array([one.mean() for one in values])
    spread = np.array([one.std(ddof=1) if len(one) > 1 else 0.0 for one in values])
    low, high = np.clip([mean - spread, mean + spread], 0.0, most)
    ax.plot(
        dimensions, mean, color=COLOURS[number], lw=1.6, label=name, marker=MARKERS[number],
        ms=3.6, markevery=max(1, len(dimensions) // 12),
    )  # fmt: skip
    if len(dimensions) > 1:
        ax.fill_between(dimensions, low, high, color=COLOURS[number], alpha=0.14, lw=0)
    else:  # a point has no band
        ax.vlines(dimensions, low, high, color=COLOURS[number], lw=1.4, alpha=0.6)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _plain(ax, axis="y"):
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=axis, color="#e5e9ee", lw=0.8)
    ax.set_axisbelow(True)

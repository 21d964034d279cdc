"""Plots of a fitted GEM: filters, projections by class, spectra, and a comparison of errors.

Every function returns its figure or axes, and shows or writes nothing. Matplotlib is imported when
a function is called; figures are made without pyplot, so no window system is needed and nothing has
to be closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import Rows
from eigenfeat._base.validation import CsrRows, check_rows, check_whole, show
from eigenfeat.plotting.arguments import axes_or_new, check_mapping, check_shares, new_figure

if TYPE_CHECKING:
    from collections.abc import Hashable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from eigenfeat.gem.gem import GEM

__all__ = ["plot_errors", "plot_filters", "plot_projections", "plot_spectrum"]

ACCENT, MUTED = "#b2182b", "#9aa5b1"
FILTER_COLOURS = "RdBu_r"
SPECTRUM_COLOURS = "viridis"


def plot_filters(
    gem: GEM,
    pairs: Sequence[tuple[Hashable, Hashable]] | None = None,
    n_filters: int = 5,
    image_shape: tuple[int, int] | None = None,
) -> Figure:
    """Plot the leading directions of some class pairs as images; the paper's Figure 1.

    Parameters
    ----------
    gem : GEM or GEMClassifier
        Model fitted on rows that are images; of a classifier the first layer.
    pairs : sequence of (numerator, denominator) labels, optional
        Pairs, with one line of images each; by default the five pairs with the largest eigenvalues.
    n_filters : int, default=5
        Maximum number of images in a line.
    image_shape : (rows, columns), optional
        Shape of the images; square by default.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If a pair has no direction, or the size of the rows does not match the image.

    References
    ----------
    Karampatziakis and Mineiro, ICML 2014, Figure 1.
    """
    gem = _fitted(gem)
    check_whole(n_filters, "n_filters", at_least=1)
    shape = _image_shape(gem.n_features_in_, image_shape)
    chosen = leading_pairs(gem, 5) if pairs is None else _pairs(pairs)
    found = [_columns_of(gem, pair)[:n_filters] for pair in chosen]
    width = max(len(columns) for columns in found)
    figure = new_figure(1.15 * width + 1.9, 1.28 * len(chosen) + 1.15)
    axes = figure.subplots(len(chosen), width, squeeze=False)
    for line, (pair, columns) in enumerate(zip(chosen, found, strict=True)):
        for ax, column in zip(axes[line], columns, strict=False):
            image = _draw_filter(ax, gem, int(column), shape)
        _clear(axes[line], len(columns))
        axes[line, 0].set_ylabel(
            f"{pair[0]} against {pair[1]}", rotation=0, ha="right", va="center", labelpad=8
        )
    bar = figure.colorbar(image, ax=axes, shrink=0.6, aspect=25, pad=0.03, ticks=[-1, 0, 1])
    bar.ax.set_yticklabels(["negative", "0", "positive"])
    bar.set_label("weight of the pixel, each image on its own scale")
    figure.suptitle(
        "Directions that are large on the first class and small on the second\n"
        "\u03bb: mean square on the first, where that on the second (with the ridge) is 1",
        fontsize=11,
    )
    return figure


def plot_projections(
    gem: GEM,
    X: Rows,
    y: ArrayLike,
    pair: tuple[Hashable, Hashable] | None = None,
    rank: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Plot boxplots, by class, of rows projected on one direction; the paper's Figure 2.

    Parameters
    ----------
    gem : GEM or GEMClassifier
        Fitted model; of a classifier the first layer.
    X : (n, d) array or sparse matrix
        Rows.
    y : (n,) array
        Labels.
    pair : (numerator, denominator) labels, optional
        Pair of classes; by default the pair with the largest eigenvalue.
    rank : int, default=0
        Index of the direction of the pair.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If the pair has no direction of that rank.

    References
    ----------
    Karampatziakis and Mineiro, ICML 2014, Figure 2.
    """
    gem = _fitted(gem)
    chosen = leading_pairs(gem, 1)[0] if pair is None else _pair(pair, "pair")
    columns = _columns_of(gem, chosen)
    whole = isinstance(rank, Integral) and not isinstance(rank, bool)
    if not whole or not 0 <= rank < len(columns):
        raise ValueError(
            f"rank: expected 0 to {len(columns) - 1} for pair {chosen}, got {show(rank)}"
        )
    column = int(columns[rank])
    rows = check_rows(X, n_columns=gem.n_features_in_)
    if not np.isfinite(rows.data if isinstance(rows, CsrRows) else rows).all():
        raise ValueError("X: expected finite numbers, got NaN or infinity")
    factor: Any = rows if isinstance(rows, np.ndarray) else X
    values = np.asarray(factor @ gem.directions_[:, column]).ravel()
    values = values + gem.offset_[column]
    given = np.asarray(y)
    if given.shape != values.shape:
        raise ValueError(f"y: expected {len(values)} labels, one a row, got {show(y)}")
    labels = np.unique(given)
    groups = [values[given == label] for label in labels]
    axes = axes_or_new(ax, 7.2, 4.4)
    boxes = axes.boxplot(
        groups,
        patch_artist=True,
        widths=0.65,
        medianprops={"color": "black"},
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": MUTED},
    )
    axes.set_xticks(range(1, len(labels) + 1), [str(label) for label in labels])
    for label, box in zip(labels, boxes["boxes"], strict=True):
        box.set_facecolor(_role_colour(label, chosen))
    sizes = {label: float(np.mean(v**2)) for label, v in zip(labels, groups, strict=True)}
    _label_projections(axes, chosen, rank, sizes)
    return axes


def plot_spectrum(gem: GEM, n_named: int = 3) -> Figure:
    """Plot eigenvalues by rank for every pair, and the largest of each pair as a matrix.

    Parameters
    ----------
    gem : GEM or GEMClassifier
        Fitted model; of a classifier the first layer.
    n_named : int, default=3
        Number of pairs with the largest eigenvalues that are labelled.

    Returns
    -------
    matplotlib.figure.Figure
    """
    gem = _fitted(gem)
    check_whole(n_named, "n_named", at_least=0)
    figure = new_figure(11.0, 4.6)
    left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
    _draw_curves(left, gem, n_named)
    image = _draw_leading_values(right, gem)
    bar = figure.colorbar(image, ax=right, label="largest eigenvalue (log scale)")
    for axis in (bar.ax.yaxis, left.yaxis):
        _number_plainly(axis)
    figure.suptitle(
        "Eigenvalue: mean square of the first class along a direction, "
        "where that of the second (with the ridge) is 1",
        fontsize=11,
    )
    return figure


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
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def leading_pairs(gem: GEM, count: int) -> list[tuple[Hashable, Hashable]]:
    """Return the `count` class pairs with the largest eigenvalues, largest first."""
    gem = _fitted(gem)
    check_whole(count, "count", at_least=1)
    first = np.flatnonzero(gem.ranks_ == 0)
    order = first[np.argsort(-gem.eigenvalues_[first], kind="stable")][:count]
    return [(gem.pairs_[c, 0], gem.pairs_[c, 1]) for c in order]


def _columns_of(gem: GEM, pair: tuple[Hashable, Hashable]) -> NDArray[np.intp]:
    """Return which columns of `directions_` belong to a pair, by rank."""
    of_pair = (gem.pairs_[:, 0] == pair[0]) & (gem.pairs_[:, 1] == pair[1])
    columns = np.flatnonzero(of_pair)
    if not len(columns):
        raise ValueError(f"pair: expected one that has directions, got {tuple(pair)}")
    return columns[np.argsort(gem.ranks_[columns], kind="stable")]


def _image_shape(d: int, shape: tuple[int, int] | None) -> tuple[int, int]:
    side = round(float(np.sqrt(d)))
    if shape is None:
        shape = side, side
    elif not isinstance(shape, (Sequence, np.ndarray)) or len(shape) != 2:
        raise ValueError(f"image_shape: expected rows and columns, got {show(shape)}")
    rows, columns = (check_whole(size, "image_shape", at_least=1) for size in shape)
    if rows * columns != d:
        raise ValueError(f"image_shape: expected {d} pixels, got {rows} x {columns}")
    return rows, columns


def _fitted(gem: Any) -> Any:
    """A fitted GEM, or what stands for the first layer of a classifier."""
    if not hasattr(gem, "fit") and not isinstance(gem, SimpleNamespace):
        raise ValueError(f"gem: expected a fitted GEM, got {show(gem)}")
    if hasattr(gem, "fit"):
        check_is_fitted(gem)
    if hasattr(gem, "layers_"):
        layer = gem.layers_[0]
        names = ("eigenvalues", "pairs", "ranks", "offset")
        return SimpleNamespace(
            **{f"{name}_": getattr(layer, name) for name in names},
            directions_=layer.directions,
            classes_=gem.classes_,
            n_features_in_=gem.n_features_in_,
            threshold=gem.threshold if gem.depth == 1 else None,
        )
    if not hasattr(gem, "pairs_") or not hasattr(gem, "directions_"):
        raise ValueError(f"gem: expected a fitted GEM, got {show(gem)}")
    return gem


def _pairs(pairs: Any) -> list[tuple[Hashable, Hashable]]:
    good = isinstance(pairs, (Sequence, np.ndarray)) and not isinstance(pairs, (str, bytes))
    if not good or not len(pairs):
        raise ValueError(f"pairs: expected pairs of labels, got {show(pairs)}")
    return [_pair(pair, "pairs") for pair in pairs]


def _pair(pair: Any, name: str) -> tuple[Hashable, Hashable]:
    good = isinstance(pair, (Sequence, np.ndarray)) and not isinstance(pair, (str, bytes))
    if not good or len(pair) != 2 or any(np.ndim(label) for label in pair):
        raise ValueError(f"{name}: expected two labels in each, got {show(pair)}")
    return pair[0], pair[1]


def _draw_filter(ax: Axes, gem: GEM, column: int, shape: tuple[int, int]) -> Any:
    pixels = gem.directions_[:, column].reshape(shape)
    image = ax.imshow(pixels / np.abs(pixels).max(), cmap=FILTER_COLOURS, vmin=-1, vmax=1)
    ax.set_title(f"\u03bb = {gem.eigenvalues_[column]:.3g}", fontsize=9)
    ax.set(xticks=[], yticks=[])
    return image


def _clear(line: Sequence[Axes], used: int) -> None:
    for ax in line[used:]:
        ax.set_axis_off()


def _role_colour(label: Any, pair: tuple[Hashable, Hashable]) -> str:
    if label == pair[0]:
        return "#ef8a62"
    return "#67a9cf" if label == pair[1] else "#e5e9ee"


def _label_projections(
    ax: Axes, pair: tuple[Any, Any], rank: int, mean_squares: Mapping[Any, float]
) -> None:
    from matplotlib.patches import Patch

    ax.axhline(0, color="black", lw=0.6, zorder=0)
    ax.set_xlabel("class of the row")
    ax.set_ylabel("projection on the direction")
    which = "Leading direction" if rank == 0 else f"Direction of rank {rank}"
    ax.set_title(f"{which} of {pair[0]} against {pair[1]}, class by class")
    keys = [
        Patch(
            facecolor=_role_colour(label, pair),
            edgecolor="black",
            label=f"{label}: mean square {mean_squares[label]:.3g}",
        )
        for label in pair
        if label in mean_squares
    ]
    ax.legend(handles=keys, fontsize=9, framealpha=0.9)
    ax.spines[["top", "right"]].set_visible(False)


def _number_plainly(axis: Any) -> None:
    """Label a logarithmic axis with 1, 2, 5, 10, ... instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _draw_curves(ax: Axes, gem: GEM, n_named: int) -> None:
    named = leading_pairs(gem, n_named)
    every = leading_pairs(gem, len(gem.ranks_))
    for pair in reversed(every):
        values = gem.eigenvalues_[_columns_of(gem, pair)]
        ranks = np.arange(1, len(values) + 1)
        if pair in named:
            label = f"{pair[0]} against {pair[1]}"
            ax.plot(ranks, values, lw=2, label=label, zorder=3, color=f"C{named.index(pair)}")
        else:
            ax.plot(ranks, values, lw=0.7, color=MUTED, alpha=0.6)
    if isinstance(gem.threshold, (int, float)) and gem.threshold > 0:
        ax.axhline(gem.threshold, color="black", ls="--", lw=0.9)
        ax.annotate(
            f"threshold {gem.threshold:g}", (1, gem.threshold), (2, 4), textcoords="offset points"
        )
    ax.set_yscale("log")
    ax.set(xlabel="rank of the direction within its pair", ylabel="eigenvalue (log scale)")
    ax.set_title(f"All {len(every)} class pairs, one line each", fontsize=10)
    ax.legend(title="largest", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)


def _draw_leading_values(ax: Axes, gem: GEM) -> Any:
    from matplotlib.colors import LogNorm

    labels = [c for c in gem.classes_ if c in gem.pairs_]
    # Clusters and groups of classes have other names.
    labels += [name for name in dict.fromkeys(gem.pairs_.ravel()) if name not in labels]
    matrix = np.full((len(labels), len(labels)), np.nan)
    for column in np.flatnonzero(gem.ranks_ == 0):
        above, below = (labels.index(c) for c in gem.pairs_[column])
        matrix[above, below] = gem.eigenvalues_[column]
    image = ax.imshow(matrix, cmap=SPECTRUM_COLOURS, norm=LogNorm())
    names = [str(label) for label in labels]
    if len(names) <= 30:
        ax.set_xticks(range(len(names)), names)
        ax.set_yticks(range(len(names)), names)
    ax.set(xlabel="class kept small (denominator)", ylabel="class made large (numerator)")
    ax.set_title("Largest eigenvalue of each pair", fontsize=10)
    return image

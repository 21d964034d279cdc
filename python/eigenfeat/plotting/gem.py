"""Plots of a fitted GEM: filters, projections by class, spectra, and a comparison of errors.

Every function returns its figure or axes, and shows or writes nothing. Matplotlib is imported when
a function is called; figures are made without pyplot, so no window system is needed and nothing has
to be closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from eigenfeat._base.types import Rows
from eigenfeat._base.validation import show
from eigenfeat.plotting.arguments import axes_or_new, check_mapping, check_shares
from eigenfeat.plotting.colours import ACCENT, MUTED
from eigenfeat.plotting.directions import gem_to_draw
from eigenfeat.plotting.filters import FiltersDisplay
from eigenfeat.plotting.projections import ProjectionsDisplay
from eigenfeat.plotting.spectrum import SpectrumDisplay

if TYPE_CHECKING:
    from collections.abc import Hashable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from eigenfeat.gem.gem import GEM

__all__ = ["plot_errors", "plot_filters", "plot_projections", "plot_spectrum"]


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
    display = FiltersDisplay.from_estimator(
        gem_to_draw(gem, "gem"), pairs=pairs, n_filters=n_filters, image_shape=image_shape
    )
    return display.figure_


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
    found = gem_to_draw(gem, "gem")
    return ProjectionsDisplay.from_estimator(found, X, y, pair=pair, rank=rank, ax=ax).ax_


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
    return SpectrumDisplay.from_estimator(gem_to_draw(gem, "gem"), n_named=n_named).figure_


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

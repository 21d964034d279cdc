"""Eigenvalues of pairs of classes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eigenfeat._base.types import Floats
from eigenfeat.plotting import figures
from eigenfeat.plotting.directions import Pair, directions_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from sklearn.base import BaseEstimator

__all__ = ["SpectrumDisplay"]

N_NAMED = 3  # curves with a name
MAX_NAMED_CLASSES = 20  # a matrix of more classes has no names beside it


class SpectrumDisplay:
    """Eigenvalues of pairs of classes by rank, and the largest of each pair as a matrix.

    Pairs with a large eigenvalue are separated by their first direction alone.

    Parameters
    ----------
    eigenvalues : mapping of (numerator, denominator) labels to (k,) arrays
        Eigenvalues by rank of each pair, pairs with the largest first.
    labels : sequence of labels
        Classes in the order of the matrix.
    threshold : float, optional
        Smallest eigenvalue that the model keeps, which is drawn as a line if it is positive.

    Attributes
    ----------
    axes_ : (2,) array of Axes
        Axes of the curves and of the matrix.
    ax_ : Axes
        Axes of the curves.
    figure_ : Figure
        The whole figure.
    lines_ : dict of pairs of labels to Line2D
        The curve of each pair.
    image_ : AxesImage
        The matrix, with a row for each numerator and a column for each denominator.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat import GEM
    >>> from eigenfeat.plotting import SpectrumDisplay
    >>> X, y = load_digits(n_class=4, return_X_y=True)
    >>> display = SpectrumDisplay.from_estimator(GEM().fit(X, y))
    >>> len(display.lines_)
    12
    """

    def __init__(
        self,
        eigenvalues: Mapping[Pair, Floats],
        labels: Sequence[Hashable],
        threshold: float | None = None,
    ) -> None:
        self.eigenvalues, self.labels, self.threshold = eigenvalues, labels, threshold

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, ax: Axes | None = None, **kwargs: Any
    ) -> SpectrumDisplay:
        """Draw the eigenvalues of a fitted model.

        Parameters
        ----------
        estimator : GEM or GEMClassifier
            Fitted model. A classifier shows its first layer, a search or pipeline the first part
            that has directions of pairs.
        ax : matplotlib.axes.Axes, optional
            Axes that the panels replace; by default a new figure. The figure of these axes should
            have ``layout="constrained"``.
        **kwargs
            Further arguments of `Axes.plot` for all curves.

        Returns
        -------
        SpectrumDisplay
        """
        directions = directions_of(estimator, paired=True)
        values = {
            pair: directions.values[directions.columns(pair)] for pair in directions.leading_pairs()
        }
        return cls(values, directions.labels, directions.threshold).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> SpectrumDisplay:
        """Draw the curves and the matrix. The three pairs with the largest eigenvalues are named.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes that the panels replace; by default a new figure. The figure of these axes should
            have ``layout="constrained"``.
        **kwargs
            Further arguments of `Axes.plot` for all curves.

        Returns
        -------
        SpectrumDisplay
        """
        figure = figures.panel_figure(ax, 9.6, 4.4)
        self.axes_ = figure.subplots(1, 2)
        self.ax_ = self.axes_[0]
        self.figure_ = figures.root_figure(self.ax_)
        self._draw_curves(kwargs)
        self.image_ = self._draw_matrix(figure)
        return self

    def _draw_curves(self, options: Mapping[str, Any]) -> None:
        from matplotlib.ticker import MaxNLocator

        ax, curves = self.ax_, self.eigenvalues
        self.lines_: dict[Pair, Any] = {}
        for place, (pair, values) in reversed(list(enumerate(curves.items()))):
            style: dict[str, Any] = {"lw": 0.7, "color": figures.MUTED, "alpha": 0.6}
            if place < N_NAMED:
                name = f"{figures.short(pair[0], 16)} against {figures.short(pair[1], 16)}"
                color, _ = figures.class_style(place)
                style = {"lw": 2, "zorder": 3, "color": color, "label": name}
            ranks = np.arange(1, len(values) + 1)
            (self.lines_[pair],) = ax.plot(ranks, values, **{**style, **options})
        if self.threshold is not None and self.threshold > 0:
            ax.axhline(self.threshold, color="black", ls="--", lw=0.9)
            text = f"threshold {self.threshold:g}"
            ax.annotate(text, (1, self.threshold), (2, 4), textcoords="offset points")
        ax.set_yscale("log")
        ax.set(xlabel="rank within the pair", ylabel="eigenvalue (log scale)")
        ax.set_title(f"Eigenvalues of {len(curves)} pairs of classes", fontsize=10)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        _number_plainly(ax.yaxis)
        figures.plain(ax, grid="y")
        figures.legend_above(ax, list(self.lines_.values())[::-1][:N_NAMED])

    def _draw_matrix(self, figure: Any) -> AxesImage:
        from matplotlib.colors import LogNorm

        ax, labels = self.axes_[1], list(self.labels)
        place = {label: number for number, label in enumerate(labels)}
        matrix = np.full((len(labels), len(labels)), np.nan)
        for (numerator, denominator), values in self.eigenvalues.items():
            matrix[place[numerator], place[denominator]] = values[0]
        image: AxesImage = ax.imshow(matrix, cmap="viridis", norm=LogNorm())
        names = [figures.short(label, 12) for label in labels]
        if len(names) <= MAX_NAMED_CLASSES:
            upright = max(map(len, names)) <= 3
            ax.set_xticks(range(len(names)), names, rotation=0 if upright else 90)
            ax.set_yticks(range(len(names)), names)
        ax.set(xlabel="denominator (small)", ylabel="numerator (large)")
        ax.set_title("Largest eigenvalue of each pair", fontsize=10)
        _number_plainly(figure.colorbar(image, ax=ax, shrink=0.85).ax.yaxis)
        return image


def _number_plainly(axis: Any) -> None:
    """Label a logarithmic axis with 1, 2, 5, 10, ... instead of powers of ten."""
    from matplotlib.ticker import LogLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")

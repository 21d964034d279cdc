"""Eigenvalues of a fitted GEM."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Floats
from eigenfeat._base.validation import check_whole
from eigenfeat.plotting.arguments import panel_figure, plain, root_figure, wrapped
from eigenfeat.plotting.colours import MUTED, SPECTRUM_COLOURS
from eigenfeat.plotting.directions import columns_of, gem_to_draw, leading_pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.lines import Line2D
    from sklearn.base import BaseEstimator

__all__ = ["SpectrumDisplay"]

Pair = tuple[Hashable, Hashable]


class SpectrumDisplay:
    """Eigenvalues by rank for every pair of classes, and the largest of each pair as a matrix.

    Parameters
    ----------
    eigenvalues : mapping of (numerator, denominator) labels to (k,) arrays
        Eigenvalues by rank of each pair; pairs with the largest eigenvalues come first.
    labels : sequence of labels
        Classes in the order of the matrix.
    threshold : float, optional
        Smallest eigenvalue that the model kept, which is drawn as a line if it is positive.

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
        The matrix, numerators in lines and denominators in columns.
    colorbar_ : Colorbar
        Colour bar of the matrix.

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

    axes_: NDArray[Any]
    ax_: Axes
    figure_: Figure
    lines_: dict[Pair, Line2D]
    image_: AxesImage
    colorbar_: Colorbar

    def __init__(
        self,
        eigenvalues: Mapping[Pair, Floats],
        labels: Sequence[Hashable],
        threshold: float | None = None,
    ) -> None:
        self.eigenvalues, self.labels, self.threshold = eigenvalues, labels, threshold

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, n_named: int = 3, ax: Axes | None = None, **kwargs: Any
    ) -> SpectrumDisplay:
        """Draw the eigenvalues of a fitted model.

        Parameters
        ----------
        estimator : GEM or GEMClassifier
            Fitted model; of a classifier the first layer.
        n_named, ax, **kwargs
            As of `plot`.

        Returns
        -------
        SpectrumDisplay

        Raises
        ------
        ValueError
            If the estimator is not a GEM.
        """
        gem = gem_to_draw(estimator, "estimator")
        pairs = leading_pairs(gem, len(gem.ranks_))
        values = {pair: gem.eigenvalues_[columns_of(gem, pair)] for pair in pairs}
        labels = [label for label in gem.classes_ if label in gem.pairs_]
        # Clusters and groups of classes have other names.
        labels += [name for name in dict.fromkeys(gem.pairs_.ravel()) if name not in labels]
        limit = gem.threshold if isinstance(gem.threshold, (int, float)) else None
        return cls(values, labels, limit).plot(ax, n_named=n_named, **kwargs)

    def plot(self, ax: Axes | None = None, *, n_named: int = 3, **kwargs: Any) -> SpectrumDisplay:
        """Draw the curves and the matrix.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes of a grid of subplots. They are switched off, and the two panels take their place;
            ``layout="constrained"`` of their figure makes room for titles. By default a new figure
            is made.
        **kwargs
            Further arguments of `Axes.plot` for all curves.

        Returns
        -------
        SpectrumDisplay
        """
        check_whole(n_named, "n_named", at_least=0)
        figure = panel_figure(ax, 11.0, 4.6)
        self.axes_ = figure.subplots(1, 2, width_ratios=[1.15, 1])
        self.ax_ = self.axes_[0]
        self.figure_ = root_figure(self.ax_)
        self._draw_curves(n_named, kwargs)
        self.image_ = self._draw_largest(self.axes_[1])
        self.colorbar_ = figure.colorbar(
            self.image_, ax=self.axes_[1], label="largest eigenvalue (log scale)"
        )
        for axis in (self.colorbar_.ax.yaxis, self.ax_.yaxis):
            _number_plainly(axis)
        told = (
            "Eigenvalue: mean square of the first class along a direction, "
            "where that of the second (with the ridge) is 1"
        )
        figure.suptitle(wrapped(told, figure, 11), fontsize=11)
        return self

    def _draw_curves(self, n_named: int, options: Mapping[str, Any]) -> None:
        ax, self.lines_ = self.ax_, {}
        for place, (pair, values) in reversed(list(enumerate(self.eigenvalues.items()))):
            style: dict[str, Any] = {"lw": 0.7, "color": MUTED, "alpha": 0.6}
            if place < n_named:
                name = f"{pair[0]} against {pair[1]}"
                style = {"lw": 2, "color": f"C{place}", "zorder": 3, "label": name}
            ranks = np.arange(1, len(values) + 1)
            (self.lines_[pair],) = ax.plot(ranks, values, **{**style, **options})
        if self.threshold is not None and self.threshold > 0:
            ax.axhline(self.threshold, color="black", ls="--", lw=0.9)
            ax.annotate(
                f"threshold {self.threshold:g}", (1, self.threshold), (2, 4),
                textcoords="offset points",
            )  # fmt: skip
        ax.set_yscale("log")
        ax.set(xlabel="rank of the direction within its pair", ylabel="eigenvalue (log scale)")
        ax.set_title(f"All {len(self.eigenvalues)} class pairs, one line each", fontsize=10)
        if n_named:
            named = list(self.lines_.values())[::-1][:n_named]  # the largest above
            ax.legend(handles=named, title="largest", fontsize=9)
        plain(ax)

    def _draw_largest(self, ax: Axes) -> AxesImage:
        from matplotlib.colors import LogNorm

        labels = list(self.labels)
        matrix = np.full((len(labels), len(labels)), np.nan)
        for (above, below), values in self.eigenvalues.items():
            matrix[labels.index(above), labels.index(below)] = values[0]
        image = ax.imshow(matrix, cmap=SPECTRUM_COLOURS, norm=LogNorm())
        names = [str(label) for label in labels]
        if len(names) <= 30:
            ax.set_xticks(range(len(names)), names)
            ax.set_yticks(range(len(names)), names)
        ax.set(xlabel="class kept small (denominator)", ylabel="class made large (numerator)")
        ax.set_title("Largest eigenvalue of each pair", fontsize=10)
        return image


def _number_plainly(axis: Any) -> None:
    """Label a logarithmic axis with 1, 2, 5, 10, ... instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())

"""Directions of a fitted GEM as images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Floats
from eigenfeat._base.validation import check_whole
from eigenfeat.plotting.arguments import panel_figure, root_figure, wrapped
from eigenfeat.plotting.colours import FILTER_COLOURS
from eigenfeat.plotting.directions import (
    check_image_shape,
    check_pairs,
    columns_of,
    gem_to_draw,
    leading_pairs,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from sklearn.base import BaseEstimator

__all__ = ["FiltersDisplay"]


class FiltersDisplay:
    """Leading directions of pairs of classes as images.

    Parameters
    ----------
    images : sequence of (k, rows, columns) arrays
        Directions as images, one array for each pair.
    eigenvalues : sequence of (k,) arrays
        Eigenvalues of the directions.
    pairs : sequence of (numerator, denominator) labels
        Pairs of classes, one for each line of images.

    Attributes
    ----------
    axes_ : (pairs, most images of a pair) array of Axes
        Axes of the images; those that are not used are switched off.
    ax_ : Axes
        The first of them.
    figure_ : Figure
        The whole figure.
    images_ : list of lists of AxesImage
        Images by pair. Each is scaled to -1 .. 1 by its largest absolute weight.
    colorbar_ : Colorbar
        Colour bar of all images.

    References
    ----------
    Karampatziakis and Mineiro, ICML 2014, Figure 1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat import GEM
    >>> from eigenfeat.plotting import FiltersDisplay
    >>> X, y = load_digits(n_class=4, return_X_y=True)
    >>> display = FiltersDisplay.from_estimator(GEM().fit(X, y), pairs=[(3, 2)])
    >>> display.ax_.get_ylabel()
    '3 against 2'
    """

    axes_: NDArray[Any]
    ax_: Axes
    figure_: Figure
    images_: list[list[AxesImage]]
    colorbar_: Colorbar

    def __init__(
        self,
        images: Sequence[Floats],
        eigenvalues: Sequence[Floats],
        pairs: Sequence[tuple[Hashable, Hashable]],
    ) -> None:
        self.images, self.eigenvalues, self.pairs = images, eigenvalues, pairs

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        pairs: Sequence[tuple[Hashable, Hashable]] | None = None,
        n_filters: int = 5,
        image_shape: tuple[int, int] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> FiltersDisplay:
        """Draw the directions of a fitted model.

        Parameters
        ----------
        estimator : GEM or GEMClassifier
            Model fitted on rows that are images; of a classifier the first layer.
        pairs : sequence of (numerator, denominator) labels, optional
            Pairs; by default the five pairs with the largest eigenvalues.
        n_filters : int, default=5
            Maximum number of images of a pair.
        image_shape : (rows, columns), optional
            Shape of the images; square by default.
        ax, **kwargs
            As of `plot`.

        Returns
        -------
        FiltersDisplay

        Raises
        ------
        ValueError
            If the estimator is not a GEM, a pair has no direction, or the size of the rows does
            not match the image.
        """
        gem = gem_to_draw(estimator, "estimator")
        check_whole(n_filters, "n_filters", at_least=1)
        shape = check_image_shape(gem.n_features_in_, image_shape)
        chosen = leading_pairs(gem, 5) if pairs is None else check_pairs(pairs)
        found = [columns_of(gem, pair)[:n_filters] for pair in chosen]
        images = [gem.directions_[:, columns].T.reshape(-1, *shape) for columns in found]
        values = [gem.eigenvalues_[columns] for columns in found]
        return cls(images, values, chosen).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> FiltersDisplay:
        """Draw a line of images for each pair.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes of a grid of subplots. They are switched off, and the images take their place;
            ``layout="constrained"`` of their figure makes room for titles. By default a new figure
            is made.
        **kwargs
            Further arguments of `Axes.imshow`, such as ``cmap``.

        Returns
        -------
        FiltersDisplay
        """
        width = max(len(images) for images in self.images)
        names = [f"{above} against {below}" for above, below in self.pairs]
        longer = max(0, max(map(len, names)) - 14)  # than what the figure has room for
        size = 1.15 * width + 1.9 + 0.1 * longer, 1.28 * len(names) + 1.15
        figure = panel_figure(ax, *size)
        axes = figure.subplots(len(names), width, squeeze=False)
        options = {"cmap": FILTER_COLOURS, "vmin": -1, "vmax": 1, **kwargs}
        self.images_ = []
        for line, images, values, name in zip(
            axes, self.images, self.eigenvalues, names, strict=True
        ):
            drawn = []
            for place, pixels, value in zip(line, images, values, strict=False):
                drawn.append(place.imshow(pixels / np.abs(pixels).max(), **options))
                place.set_title(f"\u03bb = {value:.3g}", fontsize=9)
                place.set(xticks=[], yticks=[])
            for place in line[len(drawn) :]:
                place.set_axis_off()
            line[0].set_ylabel(name, rotation=0, ha="right", va="center", labelpad=8)
            self.images_.append(drawn)
        bar = figure.colorbar(
            self.images_[-1][-1], ax=axes, shrink=0.6, aspect=25, pad=0.03, ticks=[-1, 0, 1]
        )
        bar.ax.set_yticklabels(["negative", "0", "positive"])
        bar.set_label("weight of the pixel, each image on its own scale")
        told = (
            "Directions that are large on the first class and small on the second\n"
            "\u03bb: mean square on the first, where that on the second (with the ridge) is 1"
        )
        figure.suptitle(wrapped(told, figure, 11), fontsize=11)
        self.axes_, self.ax_, self.colorbar_ = axes, axes[0, 0], bar
        self.figure_ = root_figure(self.ax_)
        return self

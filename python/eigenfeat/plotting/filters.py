"""Directions of a fitted model as images."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from eigenfeat._base.types import Floats, Rows
from eigenfeat._base.validation import check_rows, check_whole, show
from eigenfeat.plotting import figures
from eigenfeat.plotting.directions import Pair, check_image_shape, directions_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

__all__ = ["FiltersDisplay"]


class FiltersDisplay:
    """Directions as images, for models of images.

    Each line of images has the leading directions of a pair of classes, after the mean images of
    both classes if samples are given. Components of a reduction fill the lines in order.

    Parameters
    ----------
    images : sequence of (k, rows, columns) arrays
        Directions as images, one array per line.
    titles : sequence of sequences of str
        Titles of the images of each line, mean images first.
    names : sequence of str
        Labels beside the lines.
    means : sequence of (2, rows, columns) arrays, optional
        Mean images of the classes of each line.
    explanation : str, default=""
        Title of the figure.

    Attributes
    ----------
    axes_ : (lines, columns) array of Axes
        Axes of the images; unused axes are switched off.
    ax_ : Axes
        The first entry of `axes_`.
    figure_ : Figure
        The whole figure.
    images_ : list of lists of AxesImage
        Directions by line. Each direction is scaled to -1 .. 1 by its largest absolute weight.
    colorbar_ : Colorbar
        Colour bar of all directions.

    References
    ----------
    Karampatziakis and Mineiro, ICML 2014, Figure 1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat import GEM
    >>> from eigenfeat.plotting import FiltersDisplay
    >>> X, y = load_digits(n_class=4, return_X_y=True)
    >>> gem = GEM().fit(X, y)
    >>> display = FiltersDisplay.from_estimator(gem, X, y, pairs=[(3, 2)], n_filters=3)
    >>> display.axes_.shape
    (1, 5)
    """

    def __init__(
        self,
        images: Sequence[Floats],
        titles: Sequence[Sequence[str]],
        names: Sequence[str],
        means: Sequence[Floats] | None = None,
        explanation: str = "",
    ) -> None:
        self.images, self.titles, self.names = images, titles, names
        self.means, self.explanation = means, explanation

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Rows | None = None,
        y: ArrayLike | None = None,
        *,
        pairs: Sequence[Pair] | None = None,
        n_filters: int = 5,
        image_shape: tuple[int, int] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> FiltersDisplay:
        """Draw the directions of a fitted model.

        Parameters
        ----------
        estimator : GEM, GEMClassifier, LDG or another model with directions
            Model fitted on images as rows of pixels. A classifier shows its first layer, a search
            or pipeline the first part that has directions.
        X : (n, d) array-like, optional
            Samples for the mean images of the classes of each pair.
        y : (n,) array-like, optional
            Labels of the samples `X`.
        pairs : sequence of (numerator, denominator) labels, optional
            Pairs; by default the five pairs with the largest eigenvalues.
        n_filters : int, default=5
            Maximum number of directions per line; a reduction has three lines.
        image_shape : (rows, columns), optional
            Shape of the images; square by default.
        ax : matplotlib.axes.Axes, optional
            Axes that the images replace; by default a new figure. The figure of these axes should
            have ``layout="constrained"``.
        **kwargs
            Further arguments of `Axes.imshow` for the directions, such as ``cmap``.

        Returns
        -------
        FiltersDisplay
        """
        directions = directions_of(estimator, paired=pairs is not None)
        check_whole(n_filters, "n_filters", at_least=1)
        shape = check_image_shape(len(directions.weights), image_shape)
        weights = directions.weights.T.reshape(-1, *shape)
        if not len(directions.pairs):
            starts = range(0, min(len(weights), 3 * n_filters), n_filters)
            images = [weights[at : at + n_filters] for at in starts]
            titles = [[f"component {at + k + 1}" for k in range(n_filters)] for at in starts]
            return cls(images, titles, [""] * len(images)).plot(ax, **kwargs)
        chosen = directions.leading_pairs(5) if pairs is None else _check_pairs(pairs)
        columns = [directions.columns(pair)[:n_filters] for pair in chosen]
        titles = [[f"\u03bb = {directions.values[c]:.3g}" for c in line] for line in columns]
        means = None
        if X is not None:
            means = [_means(X, y, pair, shape) for pair in chosen]
            titles = [
                [*(f"mean of {figures.short(label, 8)}" for label in pair), *line]
                for pair, line in zip(chosen, titles, strict=True)
            ]
        title = "\u03bb: mean square of the first class / the second"
        names = [
            f"{figures.short(above)} against {figures.short(below)}" for above, below in chosen
        ]
        return cls([weights[line] for line in columns], titles, names, means, title).plot(
            ax, **kwargs
        )

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> FiltersDisplay:
        """Draw the lines of images.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes that the images replace; by default a new figure. The figure of these axes should
            have ``layout="constrained"``.
        **kwargs
            Further arguments of `Axes.imshow` for the directions, such as ``cmap``.

        Returns
        -------
        FiltersDisplay
        """
        n_means = 0 if self.means is None else 2
        width = n_means + max(len(images) for images in self.images)
        names = [textwrap.fill(name, 11) for name in self.names]
        longest = max(len(line) for name in names for line in name.split("\n"))
        inches = max(1.05 * width + 0.1 + 0.085 * longest, 3.6)  # of images, and of characters
        figure = figures.panel_figure(ax, inches, 1.3 * len(names) + 0.95)
        axes = figure.subplots(len(names), width, squeeze=False)
        options = {"cmap": "RdBu_r", "vmin": -1, "vmax": 1, **kwargs}
        self.images_: list[list[Any]] = []
        for ax in axes.flat:
            ax.set_axis_off()
        means: Sequence[Any] = [()] * len(names) if self.means is None else self.means
        for line, before, images, titles in zip(axes, means, self.images, self.titles, strict=True):
            tiny = np.finfo(images[0].dtype).tiny
            scaled = [pixels / max(float(np.abs(pixels).max()), tiny) for pixels in images]
            styles = [{"cmap": "gray_r"}] * n_means + [options] * len(images)
            drawn = []
            shown = zip(line, [*before, *scaled], styles, titles, strict=False)
            for ax, pixels, style, title in shown:
                drawn.append(ax.imshow(pixels, **style))
                ax.set_title(title, fontsize=9)
                ax.set_axis_on()
                ax.set(xticks=[], yticks=[])
            self.images_.append(drawn[n_means:])
        for ax, name in zip(axes[:, 0], names, strict=True):
            ax.set_ylabel(name, rotation=0, ha="right", va="center", labelpad=6)
        bar = figure.colorbar(
            self.images_[-1][-1], ax=axes, location="bottom", shrink=0.6, aspect=28, pad=0.03,
            ticks=[-1, 0, 1], label="weight of a pixel, scaled per direction",
        )  # fmt: skip
        bar.ax.set_xticklabels(["negative", "0", "positive"])
        if self.explanation:
            figure.suptitle(figures.wrapped(self.explanation, figure, 10), fontsize=10)
        self.axes_, self.ax_, self.colorbar_ = axes, axes[0, 0], bar
        self.figure_ = figures.root_figure(self.ax_)
        return self


def _check_pairs(pairs: Any) -> list[Pair]:
    if not figures.is_sequence(pairs) or not len(pairs):
        raise ValueError(f"pairs: expected pairs of labels, got {show(pairs)}")
    for pair in pairs:
        if not figures.is_sequence(pair) or len(pair) != 2 or any(np.ndim(label) for label in pair):
            raise ValueError(f"pairs: expected pairs of labels, got {show(pair)}")
    return [(above, below) for above, below in pairs]


def _means(X: Rows, y: Any, pair: Pair, shape: tuple[int, int]) -> Floats:
    """Return mean images of the classes of a pair, blank for a class without samples."""
    check_rows(X, n_columns=shape[0] * shape[1])
    samples: Any = X if hasattr(X, "tocsr") else np.asarray(X)
    labels = np.asarray(y)
    if labels.shape != (samples.shape[0],):
        raise ValueError(f"y: expected {samples.shape[0]} labels, one per sample, got {show(y)}")
    images = []
    for label in pair:
        members = samples[labels == label]
        images.append(np.asarray(members.mean(axis=0) if members.shape[0] else np.zeros(shape)))
    return np.stack([mean.reshape(shape) for mean in images])

"""Samples in the first features of a reduction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import Rows
from eigenfeat._base.validation import real_array, show
from eigenfeat.plotting.figures import (
    axes_or_new,
    class_style,
    legend_above,
    plain,
    root_figure,
    short,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

__all__ = ["EmbeddingDisplay"]

MOST_IN_LEGEND = 7


class EmbeddingDisplay:
    """Samples in one or two features of a reduction, coloured by class.

    With more than seven classes, the names of the classes are written at the medians of their
    samples instead of into a legend.

    Parameters
    ----------
    features : (n, m) array
        Reduced samples, of which the first two columns are used. With one column, each class has
        its own line, and samples are spread in height so that they do not overlap.
    y : (n,) array
        Labels.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Axes and figure that were drawn on.
    points_ : list of PathCollection
        Samples of each class, in the order of `numpy.unique`.

    See Also
    --------
    sklearn.manifold.TSNE : Embeddings that are not given by a function of the columns.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from eigenfeat import LDG
    >>> from eigenfeat.plotting import EmbeddingDisplay
    >>> X, y = load_wine(return_X_y=True)
    >>> display = EmbeddingDisplay.from_estimator(LDG(n_components=2).fit(X, y), X, y)
    >>> display.ax_.get_xlabel()
    'first component'
    """

    ax_: Axes
    figure_: Figure
    points_: list[Any]

    def __init__(self, features: ArrayLike, y: ArrayLike) -> None:
        self.features, self.y = features, y

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Rows,
        y: ArrayLike,
        *,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> EmbeddingDisplay:
        """Transform samples with a fitted transformer, and draw them.

        Parameters
        ----------
        estimator : transformer
        X, y : samples and labels
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        EmbeddingDisplay
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "transform"):
            raise ValueError(f"estimator: expected a transformer, got {show(estimator)}")
        return cls(estimator.transform(X), y).plot(ax, **kwargs)

    def plot(
        self, ax: Axes | None = None, *, title: str = "", legend: bool = True, **kwargs: Any
    ) -> EmbeddingDisplay:
        """Draw the samples.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default new ones.
        title : str
        legend : bool, default=True
            Whether to name the classes.
        **kwargs
            Further arguments of `Axes.scatter`.

        Returns
        -------
        EmbeddingDisplay

        Raises
        ------
        ValueError
            If there is no column, or the numbers of samples and labels differ.
        """
        points, labels = real_array(self.features, "features"), np.asarray(self.y)
        if points.ndim != 2 or points.shape[1] < 1 or labels.shape != points.shape[:1]:
            raise ValueError(
                "features: expected samples with at least one column and a label for each in y, "
                f"got {points.shape} and {labels.shape}"
            )
        if not np.isfinite(points).all():
            raise ValueError("features: expected finite numbers, got NaN or infinity")
        axes, classes = axes_or_new(ax, 5.6, 4.8), np.unique(labels)
        flat, self.points_ = points.shape[1] == 1, []
        for number, label in enumerate(classes):
            own = points[labels == label]
            # The golden ratio's multiples spread neighbours in height.
            spread = 0.6 * ((np.arange(len(own)) * 0.6180339887498949) % 1.0) - 0.3
            heights = number + spread if flat else own[:, 1]
            colour, marker = class_style(number)
            style: dict[str, Any] = {"s": 17, "alpha": 0.75, "linewidths": 0, "label": short(label)}
            style |= {"marker": marker, "color": colour, **kwargs}
            self.points_.append(axes.scatter(own[:, 0], heights, **style))
            if legend and not flat and len(classes) > MOST_IN_LEGEND:
                _write_over(axes, np.median(own[:, :2], axis=0), short(label, 16))
        axes.set(xlabel="first component", title=title)
        if flat:
            axes.set_yticks(range(len(classes)), [short(label) for label in classes])
            axes.set(ylabel="class", ylim=(-0.6, len(classes) - 0.4))
        else:
            axes.set_ylabel("second component")
            if legend and len(classes) <= MOST_IN_LEGEND:
                legend_above(axes)
        plain(axes)
        self.ax_, self.figure_ = axes, root_figure(axes)
        return self


def _write_over(ax: Axes, place: Any, text: str) -> None:
    from matplotlib.patheffects import withStroke

    ax.text(
        place[0], place[1], text, ha="center", va="center", fontsize=10, weight="bold",
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )  # fmt: skip

"""Samples projected on a direction of a fitted GEM."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from eigenfeat._base.types import Rows
from eigenfeat._base.validation import CsrRows, check_rows, real_array, show
from eigenfeat.plotting.directions import Pair, check_pair, directions_of
from eigenfeat.plotting.figures import (
    MUTED,
    axes_or_new,
    legend_above,
    plain,
    root_figure,
    short,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from sklearn.base import BaseEstimator

__all__ = ["ProjectionsDisplay"]


class ProjectionsDisplay:
    """Samples projected on one direction, as a boxplot per class.

    Projections of the first class of the pair have a large mean square, and those of the second a
    small one.

    Parameters
    ----------
    projections : (n,) array
        Values of the samples on the direction.
    y : (n,) array
        Labels.
    pair : (numerator, denominator) labels
        Pair of classes that the direction belongs to.
    rank : int, default=0
        Index of the direction among those of the pair.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Axes and figure that were drawn on.
    boxes_ : dict of str to list of artists
        Result of `Axes.boxplot`; classes are in ascending order.

    References
    ----------
    Karampatziakis and Mineiro, ICML 2014, Figure 2.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat import GEM
    >>> from eigenfeat.plotting import ProjectionsDisplay
    >>> X, y = load_digits(n_class=4, return_X_y=True)
    >>> display = ProjectionsDisplay.from_estimator(GEM().fit(X, y), X, y, pair=(3, 2))
    >>> len(display.boxes_["boxes"])
    4
    """

    ax_: Axes
    figure_: Figure
    boxes_: dict[str, Any]

    def __init__(self, projections: ArrayLike, y: ArrayLike, pair: Pair, rank: int = 0) -> None:
        self.projections, self.y, self.pair, self.rank = projections, y, pair, rank

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Rows,
        y: ArrayLike,
        *,
        pair: Pair | None = None,
        rank: int = 0,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ProjectionsDisplay:
        """Project samples on a direction of a fitted model, and draw them.

        Parameters
        ----------
        estimator : GEM or GEMClassifier
            Fitted model; of a classifier the first layer.
        X : (n, d) array or sparse matrix
            Samples.
        y : (n,) array
            Labels.
        pair : (numerator, denominator) labels, optional
            Pair of classes; by default the pair with the largest eigenvalue.
        rank : int, default=0
            Index of the direction of the pair.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        ProjectionsDisplay

        Raises
        ------
        ValueError
            If the estimator is not a GEM, or the pair has no direction of that rank.
        """
        directions = directions_of(estimator, paired=True)
        chosen = directions.leading_pairs(1)[0] if pair is None else check_pair(pair, "pair")
        columns = directions.columns(chosen)
        whole = isinstance(rank, Integral) and not isinstance(rank, bool)
        if not whole or not 0 <= rank < len(columns):
            raise ValueError(
                f"rank: expected 0 to {len(columns) - 1} for pair {chosen}, got {show(rank)}"
            )
        column = int(columns[rank])
        samples = check_rows(X, n_columns=len(directions.weights))
        if not np.isfinite(samples.data if isinstance(samples, CsrRows) else samples).all():
            raise ValueError("X: expected finite numbers, got NaN or infinity")
        factor: Any = samples if isinstance(samples, np.ndarray) else X
        values = (
            np.asarray(factor @ directions.weights[:, column]).ravel() + directions.offset[column]
        )
        return cls(values, y, chosen, rank).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ProjectionsDisplay:
        """Draw a box for each class.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default new ones.
        **kwargs
            Further arguments of `Axes.boxplot`, such as ``showfliers``.

        Returns
        -------
        ProjectionsDisplay

        Raises
        ------
        ValueError
            If there is not one finite number and one label per sample.
        """
        from matplotlib.patches import Patch

        values, y = real_array(self.projections, "projections"), np.asarray(self.y)
        if values.ndim != 1 or not values.size or not np.isfinite(values).all():
            raise ValueError(
                "projections: expected finite numbers in one dimension, got "
                f"{show(self.projections)}"
            )
        if y.shape != values.shape:
            raise ValueError(f"y: expected {len(values)} labels, one per sample, got {show(y)}")
        pair = check_pair(self.pair, "pair")
        labels = np.unique(y)
        groups = [values[y == label] for label in labels]
        axes = axes_or_new(ax, 6.4, 4.2)
        options = {
            "widths": 0.65,
            "medianprops": {"color": "black"},
            "flierprops": {"marker": ".", "markersize": 3, "markeredgecolor": MUTED},
            **kwargs,
            "patch_artist": True,  # boxes have the colours of their classes
        }
        self.boxes_ = axes.boxplot(groups, **options)
        names = [short(label, 16) for label in labels]
        upright = sum(map(len, names)) <= 50
        axes.set_xticks(range(1, len(labels) + 1), names, rotation=0 if upright else 90)
        roles = dict(zip(pair, ("#ef8a62", "#67a9cf"), strict=True))
        keys = {}
        for label, group, box in zip(labels, groups, self.boxes_["boxes"], strict=True):
            box.set_facecolor(roles.get(label, "#e5e9ee"))
            label_text = f"{short(label)}: mean square {float(np.mean(group**2)):.3g}"
            keys[label] = Patch(facecolor=box.get_facecolor(), edgecolor="black", label=label_text)
        axes.axhline(0, color="black", lw=0.6, zorder=0)
        which = "Leading direction" if self.rank == 0 else f"Direction of rank {self.rank}"
        first, second = map(short, pair)
        axes.set(xlabel="class of the samples", ylabel="projection on the direction")
        axes.set_title(f"{which} of {first} against {second}", fontsize=10)
        legend_above(axes, [keys[label] for label in pair if label in keys])
        plain(axes)
        self.ax_, self.figure_ = axes, root_figure(axes)
        return self

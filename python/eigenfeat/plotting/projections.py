"""Rows projected on a direction of a fitted GEM."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from eigenfeat._base.types import Floats, Labels, Rows
from eigenfeat._base.validation import CsrRows, check_rows, real_array, show
from eigenfeat.plotting.arguments import axes_or_new, plain, root_figure
from eigenfeat.plotting.colours import MUTED
from eigenfeat.plotting.directions import check_pair, columns_of, gem_to_draw, leading_pairs

if TYPE_CHECKING:
    from collections.abc import Hashable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from sklearn.base import BaseEstimator

__all__ = ["ProjectionsDisplay"]


class ProjectionsDisplay:
    """Rows projected on one direction, as boxplots by class.

    Parameters
    ----------
    projections : (n,) array
        Values of the rows on the direction.
    y : (n,) array
        Labels.
    pair : (numerator, denominator) labels
        Pair of classes that the direction belongs to.
    rank : int, default=0
        Index of the direction among those of the pair.

    Attributes
    ----------
    ax_ : Axes
        Axes that were drawn on.
    figure_ : Figure
        Their figure.
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

    def __init__(
        self, projections: Floats, y: Labels, pair: tuple[Hashable, Hashable], rank: int = 0
    ) -> None:
        self.projections, self.y, self.pair, self.rank = projections, y, pair, rank

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Rows,
        y: ArrayLike,
        *,
        pair: tuple[Hashable, Hashable] | None = None,
        rank: int = 0,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ProjectionsDisplay:
        """Project rows on a direction of a fitted model, and draw them.

        Parameters
        ----------
        estimator : GEM or GEMClassifier
            Fitted model; of a classifier the first layer.
        X : (n, d) array or sparse matrix
            Rows.
        y : (n,) array
            Labels.
        pair : (numerator, denominator) labels, optional
            Pair of classes; by default the pair with the largest eigenvalue.
        rank : int, default=0
            Index of the direction of the pair.
        ax, **kwargs
            As of `plot`.

        Returns
        -------
        ProjectionsDisplay

        Raises
        ------
        ValueError
            If the estimator is not a GEM, or the pair has no direction of that rank.
        """
        gem = gem_to_draw(estimator, "estimator")
        chosen = leading_pairs(gem, 1)[0] if pair is None else check_pair(pair, "pair")
        columns = columns_of(gem, chosen)
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
        values = np.asarray(factor @ gem.directions_[:, column]).ravel() + gem.offset_[column]
        return cls.from_predictions(y, values, pair=chosen, rank=rank, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        projections: ArrayLike,
        *,
        pair: tuple[Hashable, Hashable],
        rank: int = 0,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ProjectionsDisplay:
        """Draw rows that are projected already.

        Parameters
        ----------
        y : (n,) array
            Labels.
        projections : (n,) array
            Values of the rows on the direction, such as
            ``X @ gem.directions_[:, 0] + gem.offset_[0]``.
        pair : (numerator, denominator) labels
            Pair of classes that the direction belongs to.
        rank : int, default=0
            Index of the direction of the pair, for the title.
        ax, **kwargs
            As of `plot`.

        Returns
        -------
        ProjectionsDisplay

        Raises
        ------
        ValueError
            If there is not one finite number and one label for each row.
        """
        values, labels = real_array(projections, "projections"), np.asarray(y)
        if values.ndim != 1 or not values.size or not np.isfinite(values).all():
            raise ValueError(
                f"projections: expected finite numbers in one dimension, got {show(projections)}"
            )
        if labels.shape != values.shape:
            raise ValueError(f"y: expected {len(values)} labels, one per row, got {show(y)}")
        return cls(values, labels, check_pair(pair, "pair"), rank).plot(ax, **kwargs)

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
        """
        labels = np.unique(self.y)
        groups = [self.projections[self.y == label] for label in labels]
        axes = axes_or_new(ax, 7.2, 4.4)
        options = {
            "widths": 0.65,
            "medianprops": {"color": "black"},
            "flierprops": {"marker": ".", "markersize": 3, "markeredgecolor": MUTED},
            **kwargs,
            "patch_artist": True,  # boxes have the colours of their classes
        }
        self.boxes_ = axes.boxplot(groups, **options)
        axes.set_xticks(range(1, len(labels) + 1), [str(label) for label in labels])
        for label, box in zip(labels, self.boxes_["boxes"], strict=True):
            box.set_facecolor(_role_colour(label, self.pair))
        sizes = {label: float(np.mean(v**2)) for label, v in zip(labels, groups, strict=True)}
        _label_projections(axes, self.pair, self.rank, sizes)
        self.ax_, self.figure_ = axes, root_figure(axes)
        return self


def _role_colour(label: Any, pair: tuple[Hashable, Hashable]) -> str:
    if label == pair[0]:
        return "#ef8a62"
    return "#67a9cf" if label == pair[1] else "#e5e9ee"


def _label_projections(
    ax: Axes, pair: tuple[Hashable, Hashable], rank: int, mean_squares: Mapping[Any, float]
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
    plain(ax)

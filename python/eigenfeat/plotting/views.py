"""Views that a classifier pools, with their weights and losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import check_vector, show
from eigenfeat.plotting.figures import BLUE, axes_or_new, is_sequence, plain, root_figure, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure
    from sklearn.base import BaseEstimator

__all__ = ["ViewsDisplay"]


class ViewsDisplay:
    """Weights of the views that a classifier pools, with their out-of-fold log losses.

    Parameters
    ----------
    names : sequence of str
        Names of the views.
    weights : (m,) array
        Their weights in the pool; 0 for views that are not used.
    losses : (m,) array, optional
        Out-of-fold log loss of each view alone; NaN where it was not computed.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Axes and figure that were drawn on.
    bars_ : BarContainer
        Bars of the views, the first one above.

    Examples
    --------
    >>> from eigenfeat.plotting import ViewsDisplay
    >>> display = ViewsDisplay(["columns", "gem"], [0.25, 0.75], [0.41, 0.33]).plot()
    >>> [float(bar.get_width()) for bar in display.bars_]
    [0.25, 0.75]
    """

    ax_: Axes
    figure_: Figure
    bars_: BarContainer

    def __init__(
        self, names: Sequence[str], weights: ArrayLike, losses: ArrayLike | None = None
    ) -> None:
        self.names, self.weights, self.losses = names, weights, losses

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, ax: Axes | None = None, **kwargs: Any
    ) -> ViewsDisplay:
        """Draw the views of a fitted classifier.

        Parameters
        ----------
        estimator : classifier with `views_`
            Fitted model, whose views have a name, a weight and a log loss.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        ViewsDisplay

        Raises
        ------
        ValueError
            If the estimator has no views.
        """
        if not hasattr(estimator, "fit"):
            raise ValueError(f"estimator: expected a fitted classifier, got {show(estimator)}")
        check_is_fitted(estimator)
        views = getattr(estimator, "views_", None)
        if not views:
            raise ValueError(f"estimator: expected one with views, got {show(estimator)}")
        names, weights, losses = zip(
            *((view.name, view.weight, view.log_loss) for view in views), strict=True
        )
        return cls(names, weights, losses).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ViewsDisplay:
        """Draw a bar for each view.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default new ones.
        **kwargs
            Further arguments of `Axes.barh`.

        Returns
        -------
        ViewsDisplay
        """
        if not is_sequence(self.names) or not len(self.names):
            raise ValueError(f"names: expected a sequence of names, got {show(self.names)}")
        names, n = [short(name) for name in self.names], len(self.names)
        weights = check_vector(self.weights, n, "weights", positive=False)
        losses = np.full(n, np.nan)
        if self.losses is not None:
            losses = np.asarray(self.losses, dtype=np.float64)
        if losses.shape != (n,):
            raise ValueError(f"losses: expected shape ({n},), got {losses.shape}")
        axes = axes_or_new(ax, 6.0, 0.42 * n + 1.1)
        places = np.arange(n)[::-1]
        self.bars_ = axes.barh(places, weights, **{"height": 0.62, "color": BLUE, **kwargs})
        for place, weight, loss in zip(places, weights, losses, strict=True):
            label_text = f" {weight:.2f}" if weight else " not used"
            label_text += "" if np.isnan(loss) else f", log loss {loss:.3f}"
            axes.text(weight, place, label_text, va="center")
        axes.set_yticks(places, names)
        axes.set(xlabel="weight in the pool", xlim=(0, 1.6 * max(float(weights.max()), 1e-9)))
        plain(axes)
        self.ax_, self.figure_ = axes, root_figure(axes)
        return self

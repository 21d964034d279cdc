"""Scores of early decisions against the average time of decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenfeat._base.validation import MOST, check_vector, check_whole, show
from eigenfeat.incomplete import EarlyCurve, reliability_curve
from eigenfeat.plotting.arguments import axes_or_new, check_mapping, plain, root_figure
from eigenfeat.plotting.colours import COLOURS
from eigenfeat.plotting.taus import fitted_reliable, short_tau

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from sklearn.base import BaseEstimator

__all__ = ["EarlyCurvesDisplay", "check_score"]

MARKERS = "os^Dv<>P"
SCORES = {
    "reliability": "test reliability: share of labels that are final",
    "accuracy": "test accuracy",
    "harmonic_mean": "harmonic mean of accuracy and 1 - earliness",
}
TAUS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


class EarlyCurvesDisplay:
    """A score of early decisions against their average time, a curve for each method.

    Parameters
    ----------
    curves : mapping of str to EarlyCurve or (times, values)
        Curves by method, in the order of the legend.
    n_samples : int, optional
        Number of samples of a complete series: the end of the horizontal axis.

    Attributes
    ----------
    ax_ : Axes
        Axes that were drawn on.
    figure_ : Figure
        Their figure.
    lines_ : dict of str to Line2D
        The curve of each method.

    References
    ----------
    Parrish (2012), Figures 5.6 to 5.11.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from eigenfeat.incomplete import ReliableClassifier
    >>> from eigenfeat.plotting import EarlyCurvesDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.standard_normal((200, 8)) + y[:, None]
    >>> model = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X[:100], y[:100])
    >>> display = EarlyCurvesDisplay.from_estimator(model, X[100:], y[100:], tau=[0.5, 0.9])
    >>> list(display.lines_)
    ['ReliableClassifier']
    """

    ax_: Axes
    figure_: Figure
    lines_: dict[str, Line2D]

    def __init__(
        self,
        curves: Mapping[str, EarlyCurve | tuple[ArrayLike, ArrayLike]],
        n_samples: int | None = None,
    ) -> None:
        self.curves, self.n_samples = curves, n_samples

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike,
        y: ArrayLike,
        *,
        tau: ArrayLike = TAUS,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> EarlyCurvesDisplay:
        """Decide series early with a fitted model at several reliabilities, and draw its scores.

        Parameters
        ----------
        estimator : ReliableClassifier or ReliableClassifierCV
            Fitted model; of a search the best estimator.
        X : (n, d) array-like
            Complete series.
        y : (n,) array-like
            True labels.
        tau : (p,) array-like, default=(0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
            Ascending reliabilities in (0, 1), one point of the curve each.
        name : str, optional
            Name in the legend; by default that of the estimator's class.
        ax, **kwargs
            As of `plot`.

        Returns
        -------
        EarlyCurvesDisplay

        Raises
        ------
        ValueError
            If the estimator is not a ReliableClassifier, reliabilities are invalid, or series and
            labels do not match.
        """
        model = fitted_reliable(estimator, "estimator")
        curve = reliability_curve(model, X, y, tau)
        named = type(estimator).__name__ if name is None else name
        return cls({named: curve}, int(model.n_timepoints_)).plot(ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        score: str = "reliability",
        named: int = 2,
        **kwargs: Any,
    ) -> EarlyCurvesDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default new ones.
        score : {"reliability", "accuracy", "harmonic_mean"}, default="reliability"
            Score of an `EarlyCurve` on the vertical axis.
        named : int, default=2
            Number of curves, the first that have a tau, whose points are labelled with it where
            there is room.
        **kwargs
            Further arguments of `Axes.plot` for all curves.

        Returns
        -------
        EarlyCurvesDisplay
        """
        check_score(score, "score")
        check_mapping(self.curves, "curves", "curves by method")
        points = [_points(curve, score) for curve in self.curves.values()]
        if self.n_samples is not None:
            check_whole(self.n_samples, "n_samples", at_least=1, at_most=MOST)
        check_whole(named, "named", at_least=0)
        axes = axes_or_new(ax, 6.8, 4.4)
        self.lines_ = {}
        for place, (name, (times, values)) in enumerate(zip(self.curves, points, strict=True)):
            style: dict[str, Any] = {"color": COLOURS[place % 8], "marker": MARKERS[place % 8]}
            style |= {"ms": 5, "lw": 1.6, "label": name, "zorder": 3 - place / 100, **kwargs}
            (self.lines_[name],) = axes.plot(times, values, **style)
        axes.set(xlabel="average time of decision (samples)", ylabel=SCORES[score])
        axes.set_xlim(0, self.n_samples)
        axes.margins(y=0.08)
        plain(axes, grid="both")
        axes.legend(fontsize=9, framealpha=0.9)
        _name_taus(axes, self.curves, score, named)
        self.ax_, self.figure_ = axes, root_figure(axes)
        return self


def check_score(score: object, name: str) -> None:
    """Refuse what is no score of an `EarlyCurve`."""
    if not isinstance(score, str) or score not in SCORES:
        raise ValueError(f"{name}: expected one of {', '.join(SCORES)}, got {show(score)}")


def _points(curve: Any, score: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if isinstance(curve, EarlyCurve):
        return curve.mean_time, getattr(curve, score)
    if not isinstance(curve, (Sequence, np.ndarray)) or len(curve) != 2:
        raise ValueError(f"curves: expected an EarlyCurve or times and values, got {show(curve)}")
    n = np.size(curve[0])
    times, values = (check_vector(one, n, "curves", positive=False) for one in curve)
    return times, values


def _name_taus(ax: Axes, curves: Mapping[str, Any], score: str, named: int) -> None:
    """Write tau beside points of the first curves, where nothing is written or marked yet."""
    figure_drawn = root_figure(ax)
    figure_drawn.draw_without_rendering()
    unit = figure_drawn.dpi / 72  # pixels a point
    marks = [
        ax.transData.transform(np.column_stack(_points(one, score))) / unit
        for one in curves.values()
    ]
    taken: list[tuple[float, ...]] = [
        (x - 4, x + 4, y - 4, y + 4) for x, y in np.concatenate(marks)
    ]
    left, low, right, high = np.asarray(ax.bbox.extents) / unit
    taken += [(-np.inf, left, -np.inf, np.inf), (right, np.inf, -np.inf, np.inf)]
    taken += [(-np.inf, np.inf, -np.inf, low), (-np.inf, np.inf, high, np.inf)]
    with_tau = [k for k, one in enumerate(curves.values()) if isinstance(one, EarlyCurve)]
    for place in with_tau[:named]:
        curve = list(curves.values())[place]
        points = np.column_stack(_points(curve, score))
        for k in reversed(range(len(points))):
            text = short_tau(curve.tau[k])
            spot = _free_spot(marks[place][k], 5.0 * len(text), taken)
            if spot is not None:
                colour = COLOURS[place % 8]
                ax.annotate(
                    text,
                    (points[k, 0], points[k, 1]),
                    spot,
                    textcoords="offset points",
                    fontsize=8,
                    color=colour,
                    zorder=5,
                )


def _free_spot(
    point: NDArray[np.float64], width: float, taken: list[tuple[float, ...]]
) -> tuple[float, float] | None:
    """Where a text beside a point covers nothing, in points from it; it is taken then."""
    height = 8.0
    beside, above = (5.0, -5.0 - width), (4.0, -4.0 - height)
    for right, up in (
        (beside[0], above[1]),
        (beside[1], above[0]),
        (beside[0], above[0]),
        (beside[1], above[1]),
    ):
        x, y = point[0] + right, point[1] + up
        box = (x, x + width, y, y + height)
        if not any(_overlap(box, other) for other in taken):
            taken.append(box)
            return right, up
    return None


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]

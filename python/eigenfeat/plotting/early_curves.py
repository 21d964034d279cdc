"""Scores of early decisions against the average time of decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenfeat._base.validation import MOST, check_vector, check_whole, show
from eigenfeat.incomplete import EarlyCurve, reliability_curve
from eigenfeat.plotting.early_decision import fitted_reliable
from eigenfeat.plotting.figures import (
    axes_or_new,
    class_style,
    is_sequence,
    legend_above,
    plain,
    root_figure,
    short,
    short_tau,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from sklearn.base import BaseEstimator

__all__ = ["EarlyCurvesDisplay"]

SCORES = {
    "reliability": "share of final labels",
    "accuracy": "accuracy",
    "harmonic_mean": "harmonic mean of accuracy and 1 - earliness",
}
TAUS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
APART = 30.0  # points between taus


class EarlyCurvesDisplay:
    """A score of early decisions against their average time, one curve per method.

    Parameters
    ----------
    curves : mapping of str to EarlyCurve or (times, values)
        Curves by method, in the order of the legend.
    n_samples : int, optional
        Number of samples of a complete series: the end of the horizontal axis.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Axes and figure that were drawn on.
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
        estimator : ReliableClassifier
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
            As in `plot`.

        Returns
        -------
        EarlyCurvesDisplay

        Raises
        ------
        ValueError
            If the estimator is not a ReliableClassifier, reliabilities are invalid, or series and
            labels do not match.
        """
        model = fitted_reliable(estimator)
        curve = reliability_curve(model, X, y, tau)
        shown = type(estimator).__name__ if name is None else name
        return cls({shown: curve}, int(model.n_timepoints_)).plot(ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        score: str = "reliability",
        named: int = 1,
        **kwargs: Any,
    ) -> EarlyCurvesDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default new ones.
        score : {"reliability", "accuracy", "harmonic_mean"}, default="reliability"
            Score of an `EarlyCurve` on the vertical axis.
        named : int, default=1
            Number of curves, the first that have a tau, whose points are labelled with it where
            they are far enough from each other.
        **kwargs
            Further arguments of `Axes.plot` for all curves.

        Returns
        -------
        EarlyCurvesDisplay
        """
        if not isinstance(score, str) or score not in SCORES:
            raise ValueError(f"score: expected one of {', '.join(SCORES)}, got {show(score)}")
        if not isinstance(self.curves, Mapping) or not self.curves:
            raise ValueError(
                f"curves: expected a mapping of curves by method, got {show(self.curves)}"
            )
        points = [_points(curve, score) for curve in self.curves.values()]
        if self.n_samples is not None:
            check_whole(self.n_samples, "n_samples", at_least=1, at_most=MOST)
        check_whole(named, "named", at_least=0)
        axes = axes_or_new(ax, 6.4, 4.4)
        self.lines_ = {}
        for place, (name, (times, values)) in enumerate(zip(self.curves, points, strict=True)):
            colour, marker = class_style(place)
            style: dict[str, Any] = {"color": colour, "marker": marker, "ms": 5, "lw": 1.6}
            style |= {"label": short(name, 40), "zorder": 3 - place / 100, **kwargs}
            (self.lines_[name],) = axes.plot(times, values, **style)
        axes.set(xlabel="average time of decision (samples)", ylabel=SCORES[score])
        axes.set_xlim(0, self.n_samples)
        axes.margins(y=0.08)
        plain(axes, grid="both")
        legend_above(axes)
        self.ax_, self.figure_ = axes, root_figure(axes)
        with_tau = [name for name, curve in self.curves.items() if isinstance(curve, EarlyCurve)]
        for name in with_tau[:named]:
            self._write_taus(name)
        return self

    def _write_taus(self, name: str) -> None:
        """Write tau below the points of a curve that are not too near to each other."""
        curve, line = self.curves[name], self.lines_[name]
        assert isinstance(curve, EarlyCurve)
        points = np.asarray(line.get_xydata(), dtype=float)
        spots = self.ax_.transData.transform(points) * 72 / self.figure_.dpi
        written = np.full(2, -np.inf)
        for spot, point, tau in zip(spots, points, curve.tau, strict=True):
            if np.hypot(*(spot - written)) > APART:
                self.ax_.annotate(
                    short_tau(float(tau)), (point[0], point[1]), (4, -11), fontsize=8,
                    textcoords="offset points", color=line.get_color(), zorder=5,
                )  # fmt: skip
                written = spot


def _points(curve: Any, score: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if isinstance(curve, EarlyCurve):
        return curve.mean_time, getattr(curve, score)
    if not is_sequence(curve) or len(curve) != 2:
        raise ValueError(f"curves: expected an EarlyCurve or times and values, got {show(curve)}")
    n = np.size(curve[0])
    times, values = (check_vector(one, n, "curves", positive=False) for one in curve)
    return times, values

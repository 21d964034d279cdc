"""Plots of early decisions: curves over tau, the decision about a series, and a calibration.

As in `plotting.gem`, functions return their figure or axes, and show or write nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from eigenfeat.incomplete import Calibration, EarlyCurve, ReliableClassifier

__all__ = ["plot_calibration", "plot_decision", "plot_early_curves"]


def plot_early_curves(
    curves: Mapping[str, EarlyCurve | tuple[ArrayLike, ArrayLike]],
    figure: str = "reliability",
    *,
    n_samples: int | None = None,
    named: int = 2,
    ax: Axes | None = None,
) -> Axes:
    """Plot a score against the average time of decision; Figures 5.6 to 5.11 of the thesis.

    Parameters
    ----------
    curves : mapping of str to EarlyCurve or (times, values)
        Curves by method, in the order of the legend.
    figure : {"reliability", "accuracy", "harmonic_mean"}, default="reliability"
        Score of an `EarlyCurve` on the vertical axis.
    n_samples : int, optional
        Number of samples of a complete series: the end of the horizontal axis.
    named : int, default=2
        Number of curves, the first that have a tau, whose points are labelled with it where there
        is room.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If the score is unknown or there are no curves.

    References
    ----------
    Parrish (2012), Figures 5.6 to 5.11.
    """
    from eigenfeat.plotting.early_curves import EarlyCurvesDisplay, check_score

    check_score(figure, "figure")
    return EarlyCurvesDisplay(curves, n_samples).plot(ax, score=figure, named=named).ax_


def plot_decision(
    model: ReliableClassifier,
    row: ArrayLike,
    reliability: float | None = None,
    *,
    times: Sequence[int] | None = None,
) -> Figure:
    """Plot the decision about a series over time; Figure 5.1 of the thesis.

    The upper part shows the known samples at some times, and the completion by its mean and a band
    of two standard deviations. The lower part shows the largest tau at which the series would be
    decided at each time.

    Parameters
    ----------
    model : ReliableClassifier
        Fitted model.
    row : (d,) or (channels, samples) array-like
        A complete series; each channel has its own row of plots.
    reliability : float, optional
        tau; the model's by default.
    times : sequence of int in 1..d, optional
        Times to show; by default a third and two thirds of the way to the decision, and the
        decision.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    Parrish (2012), Figure 5.1.
    """
    from eigenfeat.plotting.early_decision import EarlyDecisionDisplay
    from eigenfeat.plotting.taus import fitted_reliable

    found = fitted_reliable(model, "model")
    display = EarlyDecisionDisplay.from_estimator(found, row, reliability=reliability, times=times)
    return display.figure_


def plot_calibration(calibration: Calibration, ax: Axes | None = None) -> Axes:
    """Plot realised agreement and its lower bound against tau, and mark the chosen tau.

    Parameters
    ----------
    calibration : Calibration
        Result of `calibrate`.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    from eigenfeat.plotting.calibration import EarlyCalibrationDisplay

    return EarlyCalibrationDisplay(calibration).plot(ax).ax_

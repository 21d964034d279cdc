"""Plots of early decisions: curves over tau, the decision about a series, and a calibration.

As in `plotting.gem`, functions return their figure or axes, and show or write nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import MOST, check_vector, check_whole, real_array, show
from eigenfeat.incomplete import Calibration, EarlyCurve, ReliableClassifier
from eigenfeat.plotting.arguments import axes_or_new, check_mapping, new_figure
from eigenfeat.plotting.gem import ACCENT, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

__all__ = ["plot_calibration", "plot_decision", "plot_early_curves"]

KNOWN, BAND = "#1b7837", "#2166ac"
COLOURS = (ACCENT, BAND, KNOWN, "#e08214", "#542788", "#35978f", "#8c510a", "#c51b7d")
MARKERS = "os^Dv<>P"
FIGURES = {
    "reliability": "test reliability: share of labels that are final",
    "accuracy": "test accuracy",
    "harmonic_mean": "harmonic mean of accuracy and 1 - earliness",
}


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
    if not isinstance(figure, str) or figure not in FIGURES:
        raise ValueError(f"figure: expected one of {', '.join(FIGURES)}, got {show(figure)}")
    check_mapping(curves, "curves", "curves by method")
    for curve in curves.values():
        _points(curve, figure)
    if n_samples is not None:
        check_whole(n_samples, "n_samples", at_least=1, at_most=MOST)
    check_whole(named, "named", at_least=0)
    axes = axes_or_new(ax, 6.8, 4.4)
    for place, (name, curve) in enumerate(curves.items()):
        times, values = _points(curve, figure)
        axes.plot(
            times,
            values,
            color=COLOURS[place % 8],
            marker=MARKERS[place % 8],
            ms=5,
            lw=1.6,
            label=name,
            zorder=3 - place / 100,
        )
    axes.set(xlabel="average time of decision (samples)", ylabel=FIGURES[figure])
    axes.set_xlim(0, n_samples)
    axes.margins(y=0.08)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=9, framealpha=0.9)
    _name_taus(axes, curves, figure, named)
    return axes


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
    if not isinstance(model, ReliableClassifier):
        raise ValueError(f"model: expected a fitted ReliableClassifier, got {show(model)}")
    check_is_fitted(model)
    series = _checked_row(row, model.n_channels_, model.n_timepoints_)
    if times is not None:
        times = _times(times, series.shape[-1])
    tau = model.streams(1, reliability)._tau[0]
    traced = model.predict_early(series[None], tau, trace=True)
    series = np.atleast_2d(series)
    time, (channels, d) = int(traced.time[0]), series.shape
    shown = sorted({max(1, round(time / 3)), max(1, round(2 * time / 3)), time})
    shown = shown if times is None else list(times)
    figure = new_figure(3.1 * max(len(shown), 2) + 0.6, 5.4 + 2.2 * (channels - 1))
    grid = figure.add_gridspec(channels + 1, len(shown), height_ratios=[1.25] * channels + [1])
    for channel in range(channels):
        above = [figure.add_subplot(grid[channel, k]) for k in range(len(shown))]
        for ax, t in zip(above, shown, strict=True):
            _draw_known(ax, model, series, channel, t, decided=t >= time)
            ax.sharey(above[0])
            if channel == 0:
                ax.set_title(_told(traced, t, tau), fontsize=9.5)
        above[0].set_ylabel("value" if channels == 1 else f"channel {channel}")
        for ax in above[1:]:
            ax.tick_params(labelleft=False)
    handles, names = above[0].get_legend_handles_labels()
    figure.legend(
        handles[::-1], names[::-1], loc="outside lower center", ncols=4, fontsize=9, frameon=False
    )
    below = figure.add_subplot(grid[channels, :])
    _draw_trace(below, traced, tau, time, shown)
    below.set_xlim(0, d + 0.5)
    return figure


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
    one = calibration
    if not isinstance(one, Calibration):
        raise ValueError(f"calibration: expected a Calibration, got {show(one)}")
    axes = axes_or_new(ax, 6.8, 4.2)
    logit = np.log(one.tau) - np.log1p(-one.tau)
    axes.plot(logit, one.realised, color=BAND, lw=2, label=f"realised on {one.n} held-out rows")
    bound = f"lower bound, confidence {one.confidence:g}"
    axes.plot(logit, one.lower, color=KNOWN, lw=1.6, ls="--", label=bound)
    axes.plot(logit, one.tau, color=MUTED, lw=1, label="as promised: agreement = tau")
    axes.axhline(one.agreement, color="black", lw=0.9)
    axes.annotate(
        f"wanted: {one.agreement:g}", (logit[0], one.agreement), (2, 3), textcoords="offset points"
    )
    if one.chosen >= 0:
        place = logit[one.chosen], one.lower[one.chosen]
        chosen = f"chosen: tau = {_short(one.reliability)}"
        axes.plot(*place, "o", color=ACCENT, ms=8, zorder=4, label=chosen)
    ticks = [1e-8, 1e-6, 1e-4, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999]
    kept = [t for t in ticks if one.tau[0] <= t * (1 + 1e-6) and t <= one.tau[-1] * (1 + 1e-6)]
    axes.set_xticks([np.log(t) - np.log1p(-t) for t in kept], [_short(t) for t in kept])
    axes.tick_params(axis="x", labelrotation=45)
    low = min(one.lower.min(), one.agreement)
    axes.set_ylim(low - 0.06 * (1 - low), 1 + 0.04 * (1 - low))
    axes.set(xlabel="tau (logit scale)", ylabel="share of early labels that are final")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=9, loc="lower right")
    return axes


def _checked_row(row: Any, channels: int, length: int) -> NDArray[np.float64]:
    """A complete row, (length,) of one channel and (channels, length) of several."""
    if channels == 1:
        return check_vector(row, length, "row", positive=False)
    series = real_array(row, "row").astype(np.float64)
    if series.shape != (channels, length):
        raise ValueError(f"row: expected shape ({channels}, {length}), got {series.shape}")
    return check_vector(series.ravel(), series.size, "row", positive=False).reshape(series.shape)


def _times(times: Any, d: int) -> list[int]:
    if not isinstance(times, (Sequence, np.ndarray)) or isinstance(times, str) or not len(times):
        raise ValueError(f"times: expected integers in 1..{d}, got {show(times)}")
    return [check_whole(t, "times", at_least=1, at_most=d) for t in times]


def _points(curve: Any, figure: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if isinstance(curve, EarlyCurve):
        return curve.mean_time, getattr(curve, figure)
    if not isinstance(curve, (Sequence, np.ndarray)) or len(curve) != 2:
        raise ValueError(f"curves: expected an EarlyCurve or times and values, got {show(curve)}")
    n = np.size(curve[0])
    times, values = (check_vector(one, n, "curves", positive=False) for one in curve)
    return times, values


def _name_taus(ax: Axes, curves: Mapping[str, Any], figure: str, named: int) -> None:
    """Write tau beside points of the first curves, where nothing is written or marked yet."""
    figure_drawn = ax.get_figure(root=True)
    assert figure_drawn is not None
    figure_drawn.draw_without_rendering()
    unit = figure_drawn.dpi / 72  # pixels a point
    marks = [
        ax.transData.transform(np.column_stack(_points(one, figure))) / unit
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
        points = np.column_stack(_points(curve, figure))
        for k in reversed(range(len(points))):
            text = _short(curve.tau[k])
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


def _short(tau: float) -> str:
    """As many digits as it takes to tell it from 0 and 1."""
    if tau > 0.5:
        digits = max(2, int(np.ceil(-np.log10(1 - tau) - 1e-6)) + 1)
        return f"{tau:.{digits}f}".rstrip("0")
    return f"{tau:.2g}"


def _told(traced: Any, t: int, tau: float) -> str:
    k = max(int(np.searchsorted(traced.steps, t, side="right")) - 1, 0)  # the last look
    label, sure = traced.trace_label[0, k], traced.trace_reliability[0, k]
    told = f"{sure:.2f}" if sure < 0.995 else "1" if sure == 1 else f"1 - {1 - sure:.0e}"
    if t >= traced.time[0]:
        return f"after {t} samples: decided\nas {_named(traced.label[0])}"
    return f"after {t} samples: wait\n({_named(label)} would do for tau up to {told})"


def _named(label: Any) -> str:
    return f"\u201c{label}\u201d" if isinstance(label, str) else f"class {label}"


def _draw_known(
    ax: Axes,
    model: ReliableClassifier,
    series: NDArray[np.float64],
    channel: int,
    t: int,
    *,
    decided: bool,
) -> None:
    """A channel of a series (channels, d) after t samples."""
    channels, d = series.shape
    row = series.T.reshape(1, -1)
    known = model.completion_.condition_prefixes(row, [t * channels]).at(0, n_columns=row.size)
    mine = slice(channel, None, channels)
    mean, spread = known.mean[0, mine], 2 * np.sqrt(known.variance[0, mine])
    at = np.arange(1, d + 1)
    # From the last known sample on, where the band has no width.
    ahead = slice(t - 1, d)
    ax.fill_between(
        at[ahead],
        (mean - spread)[ahead],
        (mean + spread)[ahead],
        color=BAND,
        alpha=0.18,
        lw=0,
        label="completion: two standard deviations",
    )
    ax.plot(at[ahead], mean[ahead], color=BAND, lw=1.4, label="completion: mean")
    ax.plot(at[ahead], series[channel, ahead], color=MUTED, lw=1.2, label="what will come")
    ax.plot(at[:t], series[channel, :t], color=KNOWN, lw=2.2, label="known")
    ax.axvline(t, color=ACCENT if decided else MUTED, lw=1, ls="--")
    ax.set_xlim(0, d + 0.5)
    ax.spines[["top", "right"]].set_visible(False)


def _draw_trace(ax: Axes, traced: Any, tau: float, time: int, shown: Sequence[int]) -> None:
    labels, sure = traced.trace_label[0], traced.trace_reliability[0]
    names = list(dict.fromkeys(labels.tolist()))
    ax.plot(traced.steps, sure, color=MUTED, lw=1, zorder=1)
    for place, name in enumerate(names):
        mine = labels == name
        colour = COLOURS[(place + 3) % 8]
        ax.plot(traced.steps[mine], sure[mine], "o", ms=4, color=colour, label=f"as {_named(name)}")
    ax.axhline(tau, color="black", lw=0.9, label=f"tau = {_short(tau)}")
    for t in shown:
        ax.axvline(t, color=ACCENT if t >= time else MUTED, lw=1, ls="--", zorder=0)
    ax.set(xlabel="samples", ylabel="largest tau at which\nit would be decided", ylim=(-0.04, 1.12))
    ax.legend(fontsize=9, loc="lower right", framealpha=0.9)
    ax.spines[["top", "right"]].set_visible(False)

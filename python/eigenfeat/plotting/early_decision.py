"""How a series is decided while it comes in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenfeat._base.validation import check_vector, check_whole, real_array, show
from eigenfeat.plotting.arguments import panel_figure, plain, root_figure, wrapped
from eigenfeat.plotting.colours import ACCENT, BAND, COLOURS, KNOWN, MUTED
from eigenfeat.plotting.taus import fitted_reliable, short_tau

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from sklearn.base import BaseEstimator

    from eigenfeat.incomplete import EarlyDecisions

__all__ = ["EarlyDecisionDisplay"]


class EarlyDecisionDisplay:
    """Decision about one series over time.

    The upper part shows the known samples at some times, and the completion by its mean and a band
    of two standard deviations; each channel has its own row of plots. The lower part shows the
    largest tau at which the series would be decided at each time.

    Parameters
    ----------
    series : (channels, d) array
        The complete series.
    decision : EarlyDecisions
        Result of `predict_early` for this series alone, with ``trace=True``.
    reliability : float
        tau.
    times : sequence of int in 1..d
        Times to show.
    mean, variance : (times, channels, d) arrays
        Completion of the series at these times.

    Attributes
    ----------
    axes_ : (channels, times) array of Axes
        Axes of the upper part.
    trace_ax_ : Axes
        Axes of the lower part.
    ax_ : Axes
        The first axes of the upper part.
    figure_ : Figure
        The whole figure.
    known_lines_, mean_lines_ : (channels, times) arrays of Line2D
        Known samples, and means of the completion from the last known sample on.
    trace_line_ : Line2D
        The largest tau by time.

    References
    ----------
    Parrish (2012), Figure 5.1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from eigenfeat.incomplete import ReliableClassifier
    >>> from eigenfeat.plotting import EarlyDecisionDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.standard_normal((200, 8)) + y[:, None]
    >>> model = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X[:100], y[:100])
    >>> display = EarlyDecisionDisplay.from_estimator(model, X[100], times=[2, 4])
    >>> display.mean.shape
    (2, 1, 8)
    """

    axes_: NDArray[Any]
    trace_ax_: Axes
    ax_: Axes
    figure_: Figure
    known_lines_: NDArray[Any]
    mean_lines_: NDArray[Any]
    trace_line_: Line2D

    def __init__(
        self,
        series: NDArray[np.float64],
        decision: EarlyDecisions,
        reliability: float,
        times: Sequence[int],
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
    ) -> None:
        self.series, self.decision, self.reliability = series, decision, reliability
        self.times, self.mean, self.variance = times, mean, variance

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        row: ArrayLike,
        *,
        reliability: float | None = None,
        times: Sequence[int] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> EarlyDecisionDisplay:
        """Decide a series with a fitted model, and draw how.

        Parameters
        ----------
        estimator : ReliableClassifier or ReliableClassifierCV
            Fitted model; of a search the best estimator.
        row : (d,) or (channels, samples) array-like
            A complete series.
        reliability : float, optional
            tau; the model's by default.
        times : sequence of int in 1..d, optional
            Times to show; by default a third and two thirds of the way to the decision, and the
            decision.
        ax, **kwargs
            As of `plot`.

        Returns
        -------
        EarlyDecisionDisplay

        Raises
        ------
        ValueError
            If the estimator is not a ReliableClassifier, or the series has another shape than
            those of the fit.
        """
        model = fitted_reliable(estimator, "estimator")
        given = _checked_row(row, model.n_channels_, model.n_timepoints_)
        if times is not None:
            times = _times(times, given.shape[-1])
        tau = model.streams(1, reliability)._tau[0]
        decision = model.predict_early(given[None], tau, trace=True)
        series, time = np.atleast_2d(given), int(decision.time[0])
        shown = sorted({max(1, round(time / 3)), max(1, round(2 * time / 3)), time})
        shown = shown if times is None else list(times)
        flat, channels = series.T.reshape(1, -1), len(series)
        found = [
            model.completion_.condition_prefixes(flat, [t * channels]).at(0, n_columns=flat.size)
            for t in shown
        ]
        mean, variance = (
            np.stack([part[0].reshape(-1, channels).T for part in parts])
            for parts in ([one.mean for one in found], [one.variance for one in found])
        )
        return cls(series, decision, tau, shown, mean, variance).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> EarlyDecisionDisplay:
        """Draw the series at the chosen times, and the largest tau by time.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes of a grid of subplots. They are switched off, and the panels take their place;
            ``layout="constrained"`` of their figure makes room for titles. By default a new figure
            is made.
        **kwargs
            Further arguments of `Axes.plot` for the known samples.

        Returns
        -------
        EarlyDecisionDisplay
        """
        time, (channels, d) = int(self.decision.time[0]), self.series.shape
        width = len(self.times)
        figure = panel_figure(ax, 3.1 * max(width, 2) + 0.6, 5.4 + 2.2 * (channels - 1))
        grid = figure.add_gridspec(channels + 1, width, height_ratios=[1.25] * channels + [1])
        shape = channels, width
        self.axes_, self.known_lines_ = np.empty(shape, object), np.empty(shape, object)
        self.mean_lines_ = np.empty(shape, object)
        for channel, k in np.ndindex(shape):
            first = self.axes_[channel, 0]
            place = figure.add_subplot(grid[channel, k], sharey=first)
            self.axes_[channel, k] = place
            self._draw_known(channel, k, kwargs)
            if channel == 0:
                told = _told(self.decision, self.times[k], self.reliability)
                place.set_title(wrapped(told, figure, 9.5, 1.2 * width), fontsize=9.5)
            if k == 0:
                place.set_ylabel("value" if channels == 1 else f"channel {channel}")
            else:
                place.tick_params(labelleft=False)
        self.ax_ = self.axes_[0, 0]
        self.figure_ = root_figure(self.ax_)
        handles, names = self.ax_.get_legend_handles_labels()
        narrow = figure.bbox.width < 8 * self.figure_.dpi
        figure.legend(
            handles[::-1], names[::-1], loc="outside lower center", ncols=2 if narrow else 4,
            fontsize=9, frameon=False,
        )  # fmt: skip
        self.trace_ax_ = figure.add_subplot(grid[channels, :])
        self.trace_line_ = _draw_trace(
            self.trace_ax_, self.decision, self.reliability, time, self.times
        )
        self.trace_ax_.set_xlim(0, d + 0.5)
        return self

    def _draw_known(self, channel: int, k: int, options: dict[str, Any]) -> None:
        """Draw a channel at the time of that number."""
        ax, t, d = self.axes_[channel, k], self.times[k], self.series.shape[1]
        series, mean = self.series[channel], self.mean[k, channel]
        spread = 2 * np.sqrt(self.variance[k, channel])
        at = np.arange(1, d + 1)
        # From the last known sample on, where the band has no width.
        ahead = slice(t - 1, d)
        ax.fill_between(
            at[ahead], (mean - spread)[ahead], (mean + spread)[ahead], color=BAND, alpha=0.18, lw=0,
            label="completion: two standard deviations",
        )  # fmt: skip
        (self.mean_lines_[channel, k],) = ax.plot(
            at[ahead], mean[ahead], color=BAND, lw=1.4, label="completion: mean"
        )
        ax.plot(at[ahead], series[ahead], color=MUTED, lw=1.2, label="what will come")
        style = {"color": KNOWN, "lw": 2.2, "label": "known", **options}
        (self.known_lines_[channel, k],) = ax.plot(at[:t], series[:t], **style)
        decided = t >= self.decision.time[0]
        ax.axvline(t, color=ACCENT if decided else MUTED, lw=1, ls="--")
        ax.set_xlim(0, d + 0.5)
        plain(ax)


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


def _told(traced: Any, t: int, tau: float) -> str:
    k = max(int(np.searchsorted(traced.steps, t, side="right")) - 1, 0)  # the last look
    label, sure = traced.trace_label[0, k], traced.trace_reliability[0, k]
    told = f"{sure:.2f}" if sure < 0.995 else "1" if sure == 1 else f"1 - {1 - sure:.0e}"
    if t >= traced.time[0]:
        return f"after {t} samples: decided\nas {_named(traced.label[0])}"
    return f"after {t} samples: wait\n({_named(label)} would do for tau up to {told})"


def _named(label: Any) -> str:
    return f"\u201c{label}\u201d" if isinstance(label, str) else f"class {label}"


def _draw_trace(ax: Axes, traced: Any, tau: float, time: int, shown: Sequence[int]) -> Line2D:
    labels, sure = traced.trace_label[0], traced.trace_reliability[0]
    names = list(dict.fromkeys(labels.tolist()))
    (line,) = ax.plot(traced.steps, sure, color=MUTED, lw=1, zorder=1)
    for place, name in enumerate(names):
        mine = labels == name
        colour = COLOURS[(place + 3) % 8]
        ax.plot(traced.steps[mine], sure[mine], "o", ms=4, color=colour, label=f"as {_named(name)}")
    ax.axhline(tau, color="black", lw=0.9, label=f"tau = {short_tau(tau)}")
    for t in shown:
        ax.axvline(t, color=ACCENT if t >= time else MUTED, lw=1, ls="--", zorder=0)
    ax.set(xlabel="samples", ylabel="largest tau at which\nit would be decided", ylim=(-0.04, 1.12))
    ax.legend(fontsize=9, loc="lower right", framealpha=0.9)
    plain(ax)
    return line

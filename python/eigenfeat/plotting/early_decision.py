"""The decision about one series while it arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import check_whole, counted, real_array, show
from eigenfeat.plotting import figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

    from eigenfeat.early import EarlyDecisions

__all__ = ["EarlyDecisionDisplay"]


class EarlyDecisionDisplay:
    """Decision about one series over time.

    The upper panels show, for each of several times, the samples received by then, the mean of the
    completion, and a band of two standard deviations; each channel has a row of panels. The lower
    panel shows the reliability of the most reliable label at each time: the largest tau at which
    the classifier decides the series.

    Parameters
    ----------
    series : (channels, d) array
        The complete series.
    decision : EarlyDecisions
        Result of `predict_early` for this series alone, with ``trace=True``.
    reliability : float
        Required reliability tau, which is drawn as a line.
    times : sequence of int in 1..d
        Times to show.
    mean : (times, channels, d) array
        Means of the completion of the series at these times.
    variance : (times, channels, d) array
        Variances of the completion at these times.

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
    known_lines_ : (channels, times) array of Line2D
        Received samples.
    mean_lines_ : (channels, times) array of Line2D
        Means of the completion, from the last received sample.
    trace_line_ : Line2D
        Reliability by time.

    References
    ----------
    Parrish (2012), Figure 5.1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from eigenfeat.early import ReliableClassifier
    >>> from eigenfeat.plotting import EarlyDecisionDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.standard_normal((200, 8)) + y[:, None]
    >>> model = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X[:100], y[:100])
    >>> display = EarlyDecisionDisplay.from_estimator(model, X[100], times=[2, 4])
    >>> display.mean.shape
    (2, 1, 8)
    """

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
        """Decide a series with a fitted model, and draw the decision.

        Parameters
        ----------
        estimator : ReliableClassifier
            Fitted model, or a fitted search, whose best estimator is used.
        row : (d,) or (channels, samples) array-like
            A complete series.
        reliability : float, optional
            tau in (0, 1); by default as in `ReliableClassifier.predict_early`.
        times : sequence of int in 1..d, optional
            Times to show; by default a third and two thirds of the way to the decision, and the
            decision.
        ax : matplotlib.axes.Axes, optional
            Axes that the panels replace; by default a new figure.
        **kwargs
            Further arguments of `Axes.plot` for the received samples.

        Returns
        -------
        EarlyDecisionDisplay
        """
        from eigenfeat.early import ReliableClassifier

        model = getattr(estimator, "best_estimator_", estimator)
        if not isinstance(model, ReliableClassifier):
            raise ValueError(
                f"estimator: expected a fitted ReliableClassifier, got {show(estimator)}"
            )
        check_is_fitted(model)
        channels, d = model.n_channels_, model.n_timepoints_
        shape = (d,) if channels == 1 else (channels, d)
        series = real_array(row, "row").astype(np.float64)
        if series.shape != shape:
            raise ValueError(f"row: expected shape {shape}, got {series.shape}")
        if not np.isfinite(series).all():
            raise ValueError("row: expected finite numbers, got missing or infinite numbers")
        series = series.reshape(channels, d)
        if times is not None:
            if not figures.is_sequence(times) or not len(times):
                raise ValueError(f"times: expected integers in 1..{d}, got {show(times)}")
            times = [check_whole(t, "times", at_least=1, at_most=d) for t in times]
        decision = model.predict_early(series[None], reliability, trace=True)
        tau = getattr(model, "reliability_", model.reliability)
        tau = float(tau if reliability is None else reliability)
        time = int(decision.time[0])
        if times is None:
            times = sorted({max(1, round(time / 3)), max(1, round(2 * time / 3)), time})
        flat = series.T.reshape(1, -1)
        known = [np.where(np.arange(flat.size) < t * channels, flat, np.nan) for t in times]
        completed = [model.completion_.condition(samples) for samples in known]
        mean = np.stack([part.mean[0].reshape(-1, channels).T for part in completed])
        variance = np.stack([part.variance[0].reshape(-1, channels).T for part in completed])
        return cls(series, decision, tau, times, mean, variance).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> EarlyDecisionDisplay:
        """Draw the series at the chosen times, and its reliability by time.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes that the panels replace; by default a new figure. The figure of these axes should
            have ``layout="constrained"``.
        **kwargs
            Further arguments of `Axes.plot` for the received samples.

        Returns
        -------
        EarlyDecisionDisplay
        """
        channels, d = self.series.shape
        shape = channels, len(self.times)
        figure = figures.panel_figure(ax, 2.45 * max(shape[1], 2) + 0.4, 5.0 + 2.2 * (channels - 1))
        grid = figure.add_gridspec(channels + 1, shape[1], height_ratios=[1.25] * channels + [1])
        self.axes_, self.known_lines_, self.mean_lines_ = np.empty((3, *shape), object)
        for channel, k in np.ndindex(shape):
            place = figure.add_subplot(grid[channel, k], sharey=self.axes_[channel, 0])
            self.axes_[channel, k] = place
            self._draw_channel(channel, k, kwargs)
            if channel == 0:
                title = self._state(self.times[k])
                place.set_title(figures.wrapped(title, figure, 9.5, 1.2 * shape[1]), fontsize=9.5)
            if k == 0:
                place.set_ylabel("value" if channels == 1 else f"channel {channel}")
            else:
                place.tick_params(labelleft=False)
        self.ax_ = self.axes_[0, 0]
        self.figure_ = figures.root_figure(self.ax_)
        handles, names = self.ax_.get_legend_handles_labels()
        figure.legend(
            handles[::-1], names[::-1], loc="outside lower center", fontsize=9, frameon=False,
            ncols=2 if figure.bbox.width < 8.6 * self.figure_.dpi else 4,
        )  # fmt: skip
        self.trace_ax_ = figure.add_subplot(grid[channels, :])
        self._draw_trace(self.trace_ax_)
        self.trace_ax_.set_xlim(0, d + 0.5)
        return self

    def _draw_channel(self, channel: int, k: int, options: dict[str, Any]) -> None:
        """Draw a channel at the time with this index."""
        ax, t, d = self.axes_[channel, k], self.times[k], self.series.shape[1]
        series, mean = self.series[channel], self.mean[k, channel]
        spread = 2 * np.sqrt(self.variance[k, channel])
        at = np.arange(1, d + 1)
        ahead = slice(t - 1, d)  # from the last received sample, where the band has width 0
        ax.fill_between(
            at[ahead], (mean - spread)[ahead], (mean + spread)[ahead], color=figures.BLUE,
            alpha=0.18, lw=0, label="completion: two standard deviations",
        )  # fmt: skip
        (self.mean_lines_[channel, k],) = ax.plot(
            at[ahead], mean[ahead], color=figures.BLUE, lw=1.4, label="completion: mean"
        )
        ax.plot(at[ahead], series[ahead], color=figures.MUTED, lw=1.2, label="rest of the series")
        style = {"color": figures.GREEN, "lw": 2.2, "label": "received samples"} | options
        (self.known_lines_[channel, k],) = ax.plot(at[:t], series[:t], **style)
        ax.axvline(t, color=self._colour(t), lw=1, ls="--")
        ax.set_xlim(0, d + 0.5)
        figures.plain(ax)

    def _colour(self, t: int) -> str:
        return figures.ACCENT if t >= self.decision.time[0] else figures.MUTED

    def _state(self, t: int) -> str:
        """Return label and reliability after t samples."""
        traced: Any = self.decision
        if t >= traced.time[0]:
            return f"{counted(t, 'sample')}: decision\n{figures.short(traced.label[0])}"
        k = max(int(np.searchsorted(traced.steps, t, side="right")) - 1, 0)  # at or before t
        tau = float(traced.trace_reliability[0, k])
        shown = "1" if tau == 1 else f"{tau:.2f}" if tau < 0.995 else f"1 - {1 - tau:.0e}"
        label = figures.short(traced.trace_label[0, k])
        return f"{counted(t, 'sample')}: no decision\n{label}, reliability {shown}"

    def _draw_trace(self, ax: Axes) -> None:
        traced: Any = self.decision
        labels, tau = traced.trace_label[0], traced.trace_reliability[0]
        (self.trace_line_,) = ax.plot(traced.steps, tau, color=figures.MUTED, lw=1, zorder=1)
        for number, name in enumerate(np.unique(labels).tolist()):
            is_label = labels == name
            colour, marker = figures.class_style(number)
            line = ax.plot(traced.steps[is_label], tau[is_label], marker, ms=4, color=colour)
            line[0].set_label(figures.short(name))
        required = f"required: {figures.short_tau(self.reliability)}"
        ax.axhline(self.reliability, color="black", lw=0.9, label=required)
        for t in self.times:
            ax.axvline(t, color=self._colour(t), lw=1, ls="--", zorder=0)
        ax.set(xlabel="samples", ylabel="reliability\nof the label", ylim=(-0.04, 1.06))
        figures.legend_above(ax)
        figures.plain(ax)

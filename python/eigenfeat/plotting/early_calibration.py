"""What a calibration of early decisions measured on held-out series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eigenfeat._base.validation import show
from eigenfeat.incomplete import Calibration
from eigenfeat.plotting.early_decision import fitted_reliable
from eigenfeat.plotting.figures import (
    ACCENT,
    BLUE,
    GREEN,
    MUTED,
    axes_or_new,
    legend_above,
    plain,
    root_figure,
    short_tau,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from sklearn.base import BaseEstimator

__all__ = ["EarlyCalibrationDisplay"]

TICKS = [1e-8, 1e-6, 1e-4, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999]


class EarlyCalibrationDisplay:
    """Agreement of early labels with final ones, and its lower bound, by tau.

    Parameters
    ----------
    calibration : Calibration
        Result of :func:`eigenfeat.incomplete.calibrate`.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Axes and figure that were drawn on.
    agreement_line_, lower_line_ : Line2D
        Agreement on the held-out series, and its lower bound, by the logit of tau.
    chosen_point_ : Line2D or None
        The chosen tau; None if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from eigenfeat.incomplete import ReliableClassifier
    >>> from eigenfeat.plotting import EarlyCalibrationDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.standard_normal((200, 8)) + y[:, None]
    >>> model = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X[:100], y[:100])
    >>> calibrated = model.calibrate(X[100:], agreement=0.8)
    >>> display = EarlyCalibrationDisplay.from_estimator(calibrated)
    >>> display.calibration.n
    100
    """

    ax_: Axes
    figure_: Figure
    agreement_line_: Line2D
    lower_line_: Line2D
    chosen_point_: Line2D | None

    def __init__(self, calibration: Calibration) -> None:
        self.calibration = calibration

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> EarlyCalibrationDisplay:
        """Draw the calibration of a fitted model.

        Parameters
        ----------
        estimator : ReliableClassifier
            Model whose method `calibrate` was called; of a search the best estimator.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        EarlyCalibrationDisplay

        Raises
        ------
        ValueError
            If the estimator is not a ReliableClassifier, or is not calibrated.
        """
        model = fitted_reliable(estimator)
        if not hasattr(model, "calibration_"):
            raise ValueError(
                "estimator: expected a model whose method calibrate was called, got "
                f"{show(estimator)}"
            )
        return cls(model.calibration_).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> EarlyCalibrationDisplay:
        """Draw the calibration.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default new ones.
        **kwargs
            Further arguments of `Axes.plot` for the agreement on held-out samples.

        Returns
        -------
        EarlyCalibrationDisplay
        """
        one = self.calibration
        if not isinstance(one, Calibration):
            raise ValueError(f"calibration: expected a Calibration, got {show(one)}")
        axes = axes_or_new(ax, 6.4, 4.4)
        logit = np.log(one.tau) - np.log1p(-one.tau)
        style = {"color": BLUE, "lw": 2, "label": f"on {one.n} held-out series", **kwargs}
        (self.agreement_line_,) = axes.plot(logit, one.held_out_agreement, **style)
        bound = f"lower bound, confidence {one.confidence:g}"
        (self.lower_line_,) = axes.plot(logit, one.lower, color=GREEN, lw=1.6, ls="--", label=bound)
        axes.plot(logit, one.tau, color=MUTED, lw=1, label="agreement = tau")
        axes.axhline(one.agreement, color="black", lw=0.9, label=f"required: {one.agreement:g}")
        self.chosen_point_ = None
        if one.chosen >= 0:
            place = logit[one.chosen], one.lower[one.chosen]
            chosen = f"chosen: tau = {short_tau(one.reliability)}"
            (self.chosen_point_,) = axes.plot(
                *place, "o", color=ACCENT, ms=8, zorder=4, label=chosen
            )
        ticks = [t for t in TICKS if one.tau[0] <= t * (1 + 1e-6) and t <= one.tau[-1] * (1 + 1e-6)]
        axes.set_xticks([np.log(t) - np.log1p(-t) for t in ticks], [short_tau(t) for t in ticks])
        axes.tick_params(axis="x", labelrotation=45)
        low = min(one.lower.min(), one.agreement)
        axes.set_ylim(low - 0.06 * (1 - low), 1 + 0.04 * (1 - low))
        axes.set(xlabel="tau (logit scale)", ylabel="share of final labels")
        plain(axes, grid="both")
        legend_above(axes)
        self.ax_, self.figure_ = axes, root_figure(axes)
        return self

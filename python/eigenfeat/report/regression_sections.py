"""Sections of a report about a regression: predictions beside the truth, residuals, errors."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import PredictionErrorDisplay

from eigenfeat.plotting.figures import BLUE, MUTED, new_figure, plain
from eigenfeat.report.column_sections import table_of_samples
from eigenfeat.report.evidence import Evidence
from eigenfeat.report.html import Html, number, paragraph, picture

__all__ = ["regression_sections"]

_MAX_POINTS = 2000  # samples in a scatter plot
_N_LARGEST = 8  # samples in the table of the largest errors


def regression_sections(evidence: Evidence) -> dict[str, Html | None]:
    """Sections by title."""
    return {
        "Predictions": _predictions(evidence),
        "Residuals": _residuals(evidence),
        "Largest errors": _largest(evidence),
    }


def _predictions(evidence: Evidence) -> Html:
    from matplotlib.ticker import MaxNLocator

    drawn = evidence.drawn(_MAX_POINTS)
    figure = new_figure(5.6, 5.0)
    ax = figure.subplots()
    PredictionErrorDisplay(y_true=drawn.true, y_pred=drawn.predicted).plot(
        ax=ax,
        kind="actual_vs_predicted",
        scatter_kwargs={"s": 14, "alpha": 0.5, "color": BLUE, "lw": 0},
        line_kwargs={"color": MUTED},
    )
    ax.set(xlabel="prediction", ylabel="true value")
    for axis in (ax.xaxis, ax.yaxis):  # round tick labels
        axis.set_major_locator(MaxNLocator(6))
    plain(ax, grid="both")
    caption = f"{len(drawn.true):,} samples; on the line, predictions are exact."
    return picture(figure, caption)


def _residuals(evidence: Evidence) -> Html:
    residuals = np.asarray(evidence.true - evidence.predicted)
    drawn = evidence.drawn(_MAX_POINTS)
    figure = new_figure(7.8, 3.6)
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    left.axhline(0, color=MUTED, lw=1)
    left.scatter(drawn.predicted, drawn.true - drawn.predicted, 12, BLUE, alpha=0.5, lw=0)
    left.set(xlabel="prediction", ylabel="true value minus prediction")
    right.hist(residuals, bins=30, color=MUTED)
    right.set(xlabel="true value minus prediction", ylabel="samples")
    left.locator_params(axis="x", nbins=6)
    plain(left, right, grid="y")
    low, high = np.quantile(residuals, (0.05, 0.95))
    text = f"The mean of the residuals is {number(residuals.mean())}. "
    if low <= 0 <= high:
        text += (
            f"Nine of ten predictions are between {number(abs(low))} too high and {number(high)} "
            "too low. A bend or a funnel in the left picture shows where predictions are biased or "
            "less certain."
        )
    else:
        text += f"Nearly all predictions are too {'low' if low > 0 else 'high'}."
    return Html(
        paragraph(text) + picture(figure, "Left: residuals by prediction. Right: their histogram.")
    )


def _largest(evidence: Evidence) -> Html:
    error = evidence.predicted - evidence.true
    worst = np.argsort(-np.abs(error), kind="stable")[:_N_LARGEST]
    lines = [
        (
            f"{at:,}",
            f"{evidence.true[at]:.6g}",
            f"{evidence.predicted[at]:.6g}",
            number(error[at], "+"),
        )
        for at in worst
    ]
    head = ("sample", "true value", "prediction", "prediction too high by")
    return table_of_samples(evidence, worst, head, lines)

"""Sections about classifiers that decide before all samples are there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import NotFittedError

from eigenfeat.plotting import EarlyCalibrationDisplay, EarlyDecisionDisplay
from eigenfeat.plotting.arguments import new_figure, plain
from eigenfeat.plotting.colours import ACCENT, BAND, KNOWN
from eigenfeat.report.evidence import Evidence, quietly, standard_error
from eigenfeat.report.html import Section, figure, paragraph, table

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from eigenfeat.incomplete import EarlyLabels

__all__ = ["Early", "decided", "early_sections"]

MOST_SERIES = 2000


class Early:
    """Early decisions beside those about complete series."""

    def __init__(self, evidence: Evidence, found: EarlyLabels, length: int) -> None:
        number = {label: code for code, label in enumerate(evidence.classes.tolist())}
        codes = [number[label] for label in np.asarray(found.label).tolist()]
        self.whole, self.length, self.time = evidence, length, np.asarray(found.time)
        self.evidence = replace(
            evidence, predicted=np.array(codes, dtype=np.intp), chances=None, by="early decisions"
        )
        self.final = self.evidence.predicted == evidence.predicted

    @property
    def figures(self) -> list[tuple[str, str, str]]:
        """Name, value and note of what sums decisions up."""
        n, accuracy = len(self.whole), self.evidence.accuracy
        final, earliness = float(self.final.mean()), float((self.time / self.length).mean())
        return [
            (
                "Early accuracy",
                f"{accuracy:.1%}",
                f"\u00b1 {standard_error(accuracy, n):.1%}; complete series: "
                f"{self.whole.accuracy:.1%}",
            ),
            (
                "Samples needed",
                f"{self.time.mean():.1f}",
                f"of {self.length} on average ({earliness:.0%})",
            ),
            (
                "Final at once",
                f"{final:.1%}",
                f"\u00b1 {standard_error(final, n):.1%} keep the early label to the end",
            ),
        ]


def decided(model: BaseEstimator, evidence: Evidence) -> Early | None:
    """Early decisions of a model that makes them; None of others."""
    if not callable(getattr(model, "predict_early", None)):
        return None
    evidence = _fewer(evidence)
    with quietly():
        found = model.predict_early(evidence.X)
    length = getattr(model, "n_timepoints_", None) or evidence.X.shape[1]
    return Early(evidence, found, int(length))


def _fewer(evidence: Evidence) -> Evidence:
    if len(evidence) <= MOST_SERIES:
        return evidence
    some = slice(MOST_SERIES)
    kept = {name: getattr(evidence, name)[some] for name in ("X", "y", "predicted", "true")}
    chances = None if evidence.chances is None else evidence.chances[some]
    return replace(evidence, **kept, chances=chances)


def early_sections(model: BaseEstimator, early: Early) -> list[Section]:
    """When series are decided, whether promises are kept, and an example."""
    found = [_times(early), _promise(model, early)]
    example = _example(model, early)
    return [section for section in (*found, example) if section is not None]


def _times(early: Early) -> Section:
    picture = new_figure(7.0, 4.8)
    above, below = picture.subplots(2, 1, sharex=True, height_ratios=[1.5, 1])
    order = np.sort(early.time)
    share = np.arange(1, len(order) + 1) / len(order)
    above.step(np.r_[0, order, early.length], np.r_[0, share, 1], where="post", color=BAND, lw=2)
    above.axvline(early.time.mean(), color=ACCENT, lw=1, ls="--", label="mean")
    above.set(ylabel="share of series decided", ylim=(-0.03, 1.05))
    above.legend(frameon=False, fontsize=9, loc="upper left")
    edges = np.linspace(0, early.length, min(early.length, 24) + 1)
    right = early.evidence.right
    below.hist([early.time[right], early.time[~right]], bins=edges.tolist(), stacked=True,
               color=[KNOWN, ACCENT], alpha=0.8, label=["right", "wrong"])  # fmt: skip
    below.set(xlabel="samples at the decision", ylabel="series", xlim=(0, early.length + 0.5))
    below.legend(frameon=False, fontsize=9)
    plain(above, below, grid="y")
    section = Section("When it decides")
    told = (
        "Above: share of series that are decided after so many samples. Below: when, and if right."
    )
    section.parts.append(figure(picture, told, "times of decisions"))
    return section


def _promise(model: Any, early: Early) -> Section | None:
    inner = getattr(model, "best_estimator_", model)
    tau = getattr(model, "reliability_", None)
    tau = getattr(inner, "reliability", None) if tau is None else tau
    if tau is None:
        return None
    final, n = float(early.final.mean()), len(early.whole)
    rows = [
        ("reliability that is asked for (tau)", f"{float(tau):.6g}"),
        ("share of early labels that are final, in these rows", f"{final:.4f}"),
        ("its standard error", f"{standard_error(final, n):.4f}"),
    ]
    corrected = getattr(inner, "correction_", None) is not None
    if corrected and np.isfinite(getattr(inner, "realised_", np.nan)):
        rows.append(("share among held-out training rows", f"{inner.realised_:.4f}"))
        rows.append(("its lower bound, confidence 0.9", f"{inner.realised_bound_:.4f}"))
    section = Section("What is promised")
    section.parts.append(table(("", ""), rows))
    if not corrected and not hasattr(inner, "calibration_"):
        section.parts.append(
            paragraph(
                "The rule is neither corrected nor calibrated: tau holds where its model of the "
                "rows is right, and is otherwise a threshold.",
                kind="soft",
            )
        )
    if hasattr(inner, "calibration_"):
        picture = EarlyCalibrationDisplay.from_estimator(inner).figure_
        told = "The calibration that the model carries: realised agreement for every tau."
        section.parts.append(figure(picture, told, "calibration of tau"))
    return section


def _example(model: Any, early: Early) -> Section | None:
    from eigenfeat.incomplete import ReliableClassifier

    inner = getattr(model, "best_estimator_", model)
    if not isinstance(inner, ReliableClassifier) or early.length < 3:
        return None
    at = int(np.argsort(early.time, kind="stable")[len(early.time) // 2])
    row = np.asarray(early.whole.X[at], dtype=np.float64)
    if inner.n_channels_ > 1:
        row = row.reshape(inner.n_timepoints_, inner.n_channels_).T if row.ndim == 1 else row
    try:
        picture = EarlyDecisionDisplay.from_estimator(inner, row).figure_
    except (ValueError, NotFittedError):  # a completion that a picture cannot show
        return None
    section = Section("One series, as it comes in")
    true = early.evidence.classes.tolist()[early.evidence.true[at]]
    told = (
        f"Row {at:,}, which is of class {true} and is decided as late as half of all. Above: what "
        "is known, and how the model completes it. Below: how sure it is after each sample."
    )
    section.parts.append(figure(picture, told, "a series while it is decided"))
    return section

"""Sections of a report. Each function returns HTML, or None if the section does not apply."""

from __future__ import annotations

import inspect
import platform
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import ConfusionMatrixDisplay

from eigenfeat._base.validation import show
from eigenfeat._base.versions import show_versions
from eigenfeat.early import ReliableClassifier
from eigenfeat.expansion.features import take_rows
from eigenfeat.plotting import (
    EarlyDecisionDisplay,
    EarlyTimesDisplay,
    FiltersDisplay,
    SpectrumDisplay,
)
from eigenfeat.plotting.directions import ShownDirections, directions_of
from eigenfeat.plotting.figures import (
    BLUE,
    MUTED,
    class_style,
    legend_above,
    new_figure,
    plain,
    short,
    short_tau,
)
from eigenfeat.report.card import model_card
from eigenfeat.report.column_sections import column_sections, table_of_samples
from eigenfeat.report.evidence import Evidence, codes_of, quietly
from eigenfeat.report.html import Html, bar, cards, escaped, number, paragraph, picture, table
from eigenfeat.report.measures import ClassificationMeasures
from eigenfeat.report.regression_sections import regression_sections

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["contents"]

N_BINS, MIN_BINS = 10, 4  # bins of probabilities
_MAX_CLASSES_WITH_NUMBERS = 20  # confusion matrices of more classes have no numbers
_MAX_POINTS = 2000  # samples in a scatter plot
_MAX_SERIES = 2000  # series that are decided early
_MAX_ERRORS = 12  # images among the most confident errors
_MAX_LINES = 8  # lines of samples among the most confident errors


def contents(evidence: Evidence) -> tuple[Html, dict[str, Html]]:
    """Verdict and cards of the main measures, and sections by title."""
    verdict = paragraph(evidence.measures.verdict(), kind="verdict")
    measured = _measure_cards(evidence)
    sections: dict[str, Html | None]
    if callable(getattr(evidence.model, "predict_early", None)):
        measured, sections = _early(evidence)
        verdict = Html("")
    elif evidence.regression:
        sections = regression_sections(evidence)
    elif evidence.features is not None:
        sections = {"Embedding": _embedding(evidence), "Confusion": _confusion(evidence)}
    else:
        sections = {"Confusion": _confusion(evidence), "Classes": _classes(evidence)}
        sections["Calibration"] = _calibration(evidence)
        sections["Most confident errors"] = _errors(evidence)
    sections |= {"Views": _views(evidence), "Spectrum": _spectrum(evidence)}
    sections["Filters"] = _filters(evidence)
    sections |= column_sections(evidence)
    sections["Model card"] = model_card(evidence.model)
    sections["Parameters and versions"] = _parameters_and_versions(evidence)
    filled = {title: section for title, section in sections.items() if section}
    return Html(verdict + cards(measured)), filled


# ---- measures ------------------------------------------------------------------------------------


def _measure_cards(evidence: Evidence) -> list[tuple[str, str, str]]:
    """Measures beside the measures of a constant prediction; the accuracy comes last."""
    measures, n = evidence.measures, len(evidence.true)
    measured = []
    for name, value, constant, what in measures.compared():
        text_of = number if "error" in name else "{:.3f}".format
        text_of = "{:.1%}".format if "accuracy" in name else text_of
        note = f"{what}: {text_of(constant)}"
        if name == "accuracy":
            by = "" if evidence.by == "the model" else f", of {evidence.by}"
            note = f"\u00b1 {measures.standard_error:.1%}{by}; {note}"
        measured.append((name[:1].upper() + name[1:], text_of(value), note))
    if isinstance(measures, ClassificationMeasures):
        measured.append(("Errors", f"{measures.errors:,}", f"in {n:,} samples"))
    if evidence.proba is not None:
        error = _calibration_error(_by_probability(evidence)[0])
        measured.append(("Calibration error", f"{error:.3f}", "mean gap to the observed share"))
    left = f"; {evidence.unknown:,} with unknown labels left out" if evidence.unknown else ""
    kinds = "" if evidence.regression else f"of {len(evidence.classes)} classes{left}"
    return [*measured, ("Samples", f"{n:,}", kinds)]


# ---- predictions ---------------------------------------------------------------------------------


def _confusion(evidence: Evidence) -> Html:
    measures, k = evidence.measures, len(evidence.classes)
    counts = measures.confusion
    names = [short(label, 14) for label in evidence.labels]
    size = float(np.clip(1.6 + 0.42 * k, 3.6, 8.0))
    figure = new_figure(size + 0.4, size)
    numbers = k <= _MAX_CLASSES_WITH_NUMBERS
    shown = counts if numbers else counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    ConfusionMatrixDisplay(shown, display_labels=names if numbers else None).plot(
        ax=figure.subplots(), include_values=numbers, cmap="Blues", colorbar=not numbers,
        xticks_rotation=90 if numbers and max(map(len, names)) > (3 if k > 5 else 8) else 0,
    )  # fmt: skip
    caption = "Number of samples"
    if not numbers:
        figure.axes[0].set(xticks=[], yticks=[], xlabel="predicted class", ylabel="true class")
        caption = "Share of the true class, classes in ascending order"
    lines = [
        (evidence.labels[i], evidence.labels[j], f"{n:,}", f"{n / counts[i].sum():.1%}")
        for i, j, n in measures.confused(8)
    ]
    head = ("true class", "predicted as", "samples", "of the true class")
    pairs = table(head, lines, words=(0, 1)) if lines else paragraph("No sample is confused.")
    return Html(picture(figure, f"{caption} by true and predicted class.") + pairs)


def _classes(evidence: Evidence) -> Html:
    titles = {"precision": "precision", "recall": "recall", "f1": "F1", "auc": "AUC"}
    titles |= {"average_precision": "average precision"}
    frame = evidence.measures.by_class
    shown = frame[[name for name in titles if name in frame]]
    shown = shown.apply(lambda column: column.map("{:.3f}".format)).replace("nan", "\u2013")
    largest = frame["samples"].max()
    lines = [
        (label, bar(n / largest, f"{n:,}"), *values)
        for (label, *values), n in zip(shown.itertuples(), frame["samples"], strict=True)
    ]
    head = [titles[name] for name in shown]
    note = (
        "Recall is the share of the class that is found, precision the share of the predictions of "
        "the class that are right."
    )
    return Html(
        table(("class", "samples", *head), lines, words=(0, 1)) + paragraph(note, kind="soft")
    )


def _by_probability(evidence: Evidence) -> tuple[DataFrame, NDArray[np.float64]]:
    """Sums over the samples in bins of the probability of an event, and the probabilities (n,).

    The event is the class that is drawn, or without such a class a correct prediction. The frame
    has the sums of the samples' weights ("weight", 1 in total), of weights times probabilities
    ("chance"), and of the weights of samples with the event ("share").
    """
    import pandas as pd

    assert evidence.proba is not None
    code = evidence.drawn_class
    if code is not None:
        chances, happens = evidence.proba[:, code], evidence.true == code
    else:
        chances = evidence.proba.max(axis=1)
        happens = evidence.proba.argmax(axis=1) == evidence.true
    chances = np.clip(chances, 0.0, 1.0)
    edges = np.linspace(0, 1, N_BINS + 1)[1:-1]
    if len(np.unique(np.searchsorted(edges, chances))) < MIN_BINS:  # for example for a rare class
        edges = np.unique(np.quantile(chances, edges))
    weight = np.ones(len(chances)) if evidence.weight is None else evidence.weight
    weight = weight / weight.sum()
    products = {"weight": weight, "chance": weight * chances, "share": weight * happens}
    sums = pd.DataFrame(products).groupby(np.searchsorted(edges, chances)).sum()
    return sums[sums["weight"] > 0], chances


def _calibration_error(bins: DataFrame) -> float:
    """Expected calibration error."""
    return float((bins["share"] - bins["chance"]).abs().sum())


def _calibration(evidence: Evidence) -> Html | None:
    if evidence.proba is None:
        return None
    bins, chances = _by_probability(evidence)
    share, mean = bins["share"] / bins["weight"], bins["chance"] / bins["weight"]
    code = evidence.drawn_class
    what = "the predicted class" if code is None else f"class {short(evidence.labels[code])}"
    figure = new_figure(6.4, 5.0)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    CalibrationDisplay(share, mean, chances).plot(ax=above, name="model", color=BLUE)
    above.set(xlabel="", ylabel="accuracy" if code is None else f"share of {what}")
    legend_above(above)
    wide = np.ptp(chances) > 2 / N_BINS  # not for a rare class
    low, high = (0.0, 1.0) if wide else (chances.min(), chances.max() + 1e-6)
    margin = 0.02 * (high - low)
    below.hist(chances, bins=N_BINS, range=(low, high), rwidth=0.94, color=MUTED, log=True)
    below.set(xlabel=f"probability of {what}", ylabel="samples", xlim=(low - margin, high + margin))
    above.set_ylim(min(low, share.min()) - margin, max(high, share.max()) + 2 * margin)
    below.set_ylim(bottom=0.5)
    below.yaxis.set_major_formatter("{x:g}")  # no math text, because labels may contain dollars
    below.yaxis.set_minor_formatter("")
    plain(above, below, grid="y")
    observed, predicted = bins["share"].sum(), bins["chance"].sum()
    observed_name = "the accuracy" if code is None else f"the share of {what}"
    return Html(
        paragraph(
            f"The mean probability of {what} is {predicted:.3f}, and {observed_name} is "
            f"{observed:.3f}: probabilities are too "
            f"{'large' if predicted > observed else 'small'} by "
            f"{abs(predicted - observed):.3f} on average. The expected calibration error is "
            f"{_calibration_error(bins):.3f}. Where the line lies on the diagonal, probabilities "
            "are calibrated: of the samples with probability 0.8, 80% are of the class."
        )
        + picture(figure, "Reliability diagram, and the number of samples by probability.")
    )


def _errors(evidence: Evidence) -> Html | None:
    wrong = np.flatnonzero(~evidence.right)
    if evidence.proba is None or not len(wrong):
        return None
    confidence = evidence.proba.max(axis=1)
    worst = wrong[np.argsort(-confidence[wrong], kind="stable")][:_MAX_ERRORS]
    if evidence.shape is None:
        lines = [
            (f"{at:,}", evidence.labels[evidence.true[at]], evidence.labels[evidence.predicted[at]],
             f"{confidence[at]:.3f}", _chance(evidence.proba[at, evidence.true[at]]))
            for at in worst[:_MAX_LINES]
        ]  # fmt: skip
        head = ("sample", "true class", "predicted as", "probability", "of the true class")
        return table_of_samples(evidence, worst[:_MAX_LINES], head, lines, words=(1, 2))
    images = take_rows(evidence.X, worst)
    images = images.toarray() if hasattr(images, "toarray") else np.asarray(images)
    rows = -(-len(worst) // 6)
    figure = new_figure(7.8, 1.7 * rows)
    axes = figure.subplots(rows, 6, squeeze=False)
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, at, pixels in zip(axes.flat, worst, images, strict=False):
        ax.imshow(pixels.reshape(evidence.shape), cmap="gray_r")
        names = (
            short(evidence.labels[code[at]], 9) for code in (evidence.true, evidence.predicted)
        )
        ax.set_title(f"{' as '.join(names)}\n{confidence[at]:.3f}", fontsize=9)
    caption = "Title: true class, predicted class, and the probability of the predicted class."
    return picture(figure, caption)


def _chance(share: float) -> str:
    """A probability with three decimals, or with its power of 10."""
    return f"{share:.3f}" if share >= 0.001 else f"{share:.1e}"


# ---- directions and reductions -------------------------------------------------------------------


def _directions(evidence: Evidence) -> ShownDirections | None:
    try:
        return directions_of(evidence.model)
    except ValueError:
        return None


def _views(evidence: Evidence) -> Html | None:
    views = getattr(evidence.model, "views_", None)
    if not views:
        return None
    largest = max(view.weight for view in views)
    score, sign = ("R^2", 1) if evidence.regression else ("log loss", -1)
    lines = [
        (
            view.name,
            bar(view.weight / largest, f"{view.weight:.2f}"),
            f"{sign * view.score:.3f}".replace("nan", "\u2013"),
            view.note,
        )
        for view in views
    ]
    better = "higher" if evidence.regression else "lower"
    text = (
        "The model averages the predictions of several models, its views, each fitted to its own "
        "representation of the columns, for example smooth curves of single columns or pairs of "
        f"columns. Each view has a weight in this average. Its out-of-fold {score} measures the "
        f"view alone on samples that it was not fitted to; {better} is better. The last column "
        "gives the reason why a view is not used."
    )
    head = ("view", "weight", f"out-of-fold {score} alone", "not used because")
    return Html(paragraph(text) + table(head, lines, words=(0, 1, 3)))


def _spectrum(evidence: Evidence) -> Html | None:
    directions = _directions(evidence)
    if directions is None or not len(directions.pairs):
        return None
    text = (
        "For each pair of classes, GEM looks for weighted sums of the columns whose mean square is "
        "large in the first class and small in the second. The eigenvalue of such a direction is "
        "the ratio of the two mean squares: a ratio of 1 does not separate the classes, a ratio of "
        "10 separates them well."
    )
    caption = (
        "Left: eigenvalues of each pair of classes by rank. Right: the largest eigenvalue of each "
        "pair. A pair with a large eigenvalue is separated by its first direction alone."
    )
    display = SpectrumDisplay.from_estimator(evidence.model)
    return Html(paragraph(text) + picture(display.figure_, caption))


def _filters(evidence: Evidence) -> Html | None:
    directions = _directions(evidence)
    if (
        directions is None
        or evidence.shape is None
        or len(directions.weights) != len(evidence.names)
    ):
        return None
    figure = FiltersDisplay.from_estimator(evidence.model, image_shape=evidence.shape).figure_
    return picture(figure, "Leading directions as images.")


def _embedding(evidence: Evidence) -> Html | None:
    """Samples in the first two features of a reduction."""
    assert evidence.features is not None
    m = evidence.features.shape[-1]
    if evidence.features.ndim != 2 or m < 2 or hasattr(evidence.model, "expansion"):
        return None
    evidence = evidence.drawn(_MAX_POINTS)
    points, codes = evidence.features, evidence.true
    assert points is not None
    figure = new_figure(5.6, 4.8)
    ax = figure.subplots()
    for code, label in enumerate(evidence.labels):
        colour, marker = class_style(code)
        x, y = points[codes == code, :2].T
        ax.scatter(x, y, 17, colour, marker=marker, alpha=0.75, lw=0, label=short(label))
    ax.set(xlabel="first feature", ylabel="second feature")
    plain(ax)
    legend_above(ax)
    return picture(figure, f"{len(points):,} samples by the first of {m} features.")


# ---- early decisions -----------------------------------------------------------------------------


def _early(evidence: Evidence) -> tuple[list[tuple[str, str, str]], dict[str, Html | None]]:
    evidence = evidence.drawn(_MAX_SERIES)
    with quietly():
        decisions = evidence.model.predict_early(evidence.X)
    time, n = np.asarray(decisions.time), len(evidence.true)
    length = evidence.model.n_timepoints_
    codes = codes_of(evidence.classes, np.asarray(decisions.label))
    early = replace(evidence, predicted=codes, proba=None)
    final = float((codes == evidence.predicted).mean())
    measures = early.measures
    error = f"\u00b1 {measures.standard_error:.1%}"
    complete = f"complete series: {evidence.right.mean():.1%}"
    measured = [
        ("Early accuracy", f"{measures.accuracy:.1%}", f"{error}; {complete}"),
        ("Samples needed", f"{time.mean():.1f}", f"of {length} on average"),
        ("Final labels", f"{final:.1%}", f"\u00b1 {_standard_error(final, n):.1%}"),
        ("Series", f"{n:,}", f"of {len(evidence.classes)} classes"),
    ]
    names = np.array([short(label) for label in evidence.labels])
    strip = EarlyTimesDisplay(
        time, names[codes], length, names[evidence.predicted], names[evidence.true]
    ).plot()
    caption = "Series by class and time of decision, and labels that are not final."
    return measured, {
        "Decisions": picture(strip.figure_, caption),
        "Reliability": _promise(evidence, codes),
        "One series": _one_series(evidence, time),
        "Confusion": _confusion(early),
        "Classes": _classes(early),
    }


def _promise(evidence: Evidence, early: NDArray[np.intp]) -> Html | None:
    """The required reliability, and the share of early labels that are final, also by class."""
    inner = getattr(evidence.model, "best_estimator_", evidence.model)
    tau = getattr(evidence.model, "reliability_", getattr(inner, "reliability", None))
    if tau is None:
        return None
    agrees = early == evidence.predicted
    lines = [("all", *_share(agrees))]
    for code, label in enumerate(evidence.labels):
        if (evidence.true == code).any():
            lines.append((label, *_share(agrees[evidence.true == code])))
    content = Html(
        paragraph(f"Required reliability (tau): {short_tau(float(tau))}. Labels that are final:")
        + table(("true class", "series", "share", "standard error"), lines)
    )
    if getattr(inner, "correction_", None) is None:
        note = (
            "The rule is not corrected on held-out series: the reliability holds if the model of "
            "the completion is right."
        )
        content = Html(content + paragraph(note, kind="soft"))
    return content


def _share(agrees: NDArray[np.bool_]) -> tuple[str, str, str]:
    share = float(agrees.mean())
    return f"{len(agrees):,}", f"{share:.4f}", f"{_standard_error(share, len(agrees)):.4f}"


def _one_series(evidence: Evidence, time: Any) -> Html | None:
    """The series with the median time of decision."""
    inner = getattr(evidence.model, "best_estimator_", evidence.model)
    if not isinstance(inner, ReliableClassifier) or inner.n_timepoints_ < 3:
        return None
    at = int(np.argsort(time, kind="stable")[len(time) // 2])
    row = np.asarray(
        evidence.X.iloc[at] if hasattr(evidence.X, "iloc") else evidence.X[at], dtype=np.float64
    )
    if inner.n_channels_ > 1 and row.ndim == 1:
        row = row.reshape(inner.n_timepoints_, inner.n_channels_).T
    try:
        figure = EarlyDecisionDisplay.from_estimator(inner, row).figure_
    except ValueError:  # missing samples, or a completion without variances
        return None
    caption = f"Series {at:,}, of class {evidence.labels[evidence.true[at]]}, with the median time"
    return picture(figure, f"{caption} of decision.")


def _standard_error(share: float, n: int) -> float:
    """Standard error of a share of n independent samples."""
    return float(np.sqrt(share * (1 - share) / n))


# ---- the model -----------------------------------------------------------------------------------


def _listed(value: Any) -> Any:
    """Convert tuples and arrays in a parameter to lists, as loading a model does."""
    value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    return [*map(_listed, value)] if isinstance(value, (tuple, list)) else value


def _parameters_and_versions(evidence: Evidence) -> Html:
    signature = inspect.signature(type(evidence.model).__init__).parameters
    lines = []
    for name, value in evidence.model.get_params(deep=False).items():
        default = signature[name].default if name in signature else inspect.Parameter.empty
        equal = show(_listed(default), 500) == show(_listed(value), 500)
        changed = "" if equal or default is inspect.Parameter.empty else "changed"
        cells = (Html(f"<code>{escaped(text)}</code>") for text in (name, show(value, 200)))
        lines.append((*cells, changed))
    installed: Any = show_versions(as_dict=True)
    packages = ("numpy", "scipy", "scikit-learn")
    versions = [
        (
            "eigenfeat",
            f"{installed['core']['eigenfeat']}, instructions {installed['core']['tier']}",
        ),
        *((name, installed["dependencies"][name]) for name in packages),
        ("Python", platform.python_version()),
        ("system", f"{platform.system()} {platform.machine()}"),
    ]
    parameters = table(("parameter", "value", ""), lines, words=(0, 1, 2)) if lines else ""
    return Html(parameters + table(("made with", ""), versions, words=(0, 1)))

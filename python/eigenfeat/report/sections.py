"""Sections of a report. Each function returns HTML, or None if the section does not apply."""

from __future__ import annotations

import inspect
import platform
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibrationDisplay, calibration_curve
from sklearn.inspection import permutation_importance
from sklearn.metrics import (
    ConfusionMatrixDisplay,
    log_loss,
    make_scorer,
    precision_recall_fscore_support,
)
from sklearn.utils import resample

from eigenfeat._base.validation import show
from eigenfeat._base.versions import show_versions
from eigenfeat.early import ReliableClassifier
from eigenfeat.plotting import (
    EarlyDecisionDisplay,
    EarlyTimesDisplay,
    FiltersDisplay,
    SpectrumDisplay,
)
from eigenfeat.plotting.directions import Directions, directions_of
from eigenfeat.plotting.figures import (
    class_style,
    legend_above,
    new_figure,
    plain,
    short,
    short_tau,
)
from eigenfeat.report.evidence import Evidence, quietly, standard_error
from eigenfeat.report.html import Html, bar, cards, escaped, paragraph, picture, table

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["contents"]

N_BINS = 10
MOST_VALUES = 20  # up to this many classes, the confusion matrix shows numbers
MOST_POINTS, MOST_SERIES = 2000, 2000
MOST_PERMUTED, MOST_COLUMNS = 400, 2000  # limits of permutation importance: samples, columns
SHOWN = 12


def contents(evidence: Evidence) -> tuple[Html, dict[str, Html]]:
    """Large figures, and sections by title."""
    if callable(getattr(evidence.model, "predict_early", None)):
        top, parts = _early(evidence)
    elif evidence.features is not None:
        top = _figures(evidence)
        parts = {"Embedding": _embedding(evidence), "Confusion": _confusion(evidence)}
    else:
        top = _figures(evidence)
        parts = {"Confusion": _confusion(evidence), "Classes": _classes(evidence)}
        parts |= {"Calibration": _calibration(evidence), "Most confident errors": _errors(evidence)}
    parts |= {"Views": _views(evidence), "Spectrum": _spectrum(evidence)}
    parts["Filters"] = _filters(evidence)
    if evidence.by == "the model":
        parts["Importance of columns"] = _importance(evidence)
    parts["Parameters and versions"] = _about(evidence)
    return cards(top), {title: part for title, part in parts.items() if part}


# ---- figures -------------------------------------------------------------------------------------


def _figures(evidence: Evidence) -> list[tuple[str, str, str]]:
    n, accuracy = len(evidence.true), float(evidence.right.mean())
    by = "" if evidence.by == "the model" else f", of {evidence.by}"
    figures = [
        ("Accuracy", f"{accuracy:.1%}", f"\u00b1 {standard_error(accuracy, n):.1%}{by}"),
        ("Errors", f"{(~evidence.right).sum():,}", f"in {n:,} samples"),
    ]
    if evidence.proba is not None:
        chances = evidence.proba[np.arange(n), evidence.true]
        loss = -np.log(np.maximum(chances, np.finfo(np.float32).tiny)).mean()
        figures.append(("Log loss", f"{loss:.3f}", "mean over the samples"))
        error = _reliability(evidence)[0]
        figures.append(("Calibration error", f"{error:.3f}", f"expected, over {N_BINS} bins"))
    return [*figures, _samples(evidence)]


def _samples(evidence: Evidence) -> tuple[str, str, str]:
    left = f"; {evidence.unknown:,} with unknown labels left out" if evidence.unknown else ""
    return "Samples", f"{len(evidence.true):,}", f"of {len(evidence.classes)} classes{left}"


# ---- predictions ---------------------------------------------------------------------------------


def _confusion(evidence: Evidence) -> Html:
    counts, k = evidence.confusion, len(evidence.classes)
    names = [short(label, 14) for label in evidence.labels]
    size = float(np.clip(1.6 + 0.42 * k, 3.6, 8.0))
    figure = new_figure(size + 0.4, size)
    few = k <= MOST_VALUES
    shown = counts if few else counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    ConfusionMatrixDisplay(shown, display_labels=names if few else None).plot(
        ax=figure.subplots(), include_values=few, cmap="Blues", colorbar=not few,
        xticks_rotation=90 if few and max(map(len, names)) > 3 else 0,
    )  # fmt: skip
    if not few:
        figure.axes[0].set(xticks=[], yticks=[], xlabel="predicted class", ylabel="true class")
    caption = "Number of samples" if few else "Share of the true class, classes in ascending order"
    wrong = counts - np.diag(np.diag(counts))
    order = np.argsort(-wrong, axis=None, kind="stable")[:8]
    pairs = [divmod(int(at), k) for at in order if wrong.flat[at]]
    lines = [
        (
            evidence.labels[i],
            evidence.labels[j],
            f"{wrong[i, j]:,}",
            f"{wrong[i, j] / counts[i].sum():.1%}",
        )
        for i, j in pairs
    ]
    head = ("true class", "predicted as", "samples", "of the true class")
    rest = table(head, lines, words=(0, 1)) if lines else paragraph("No sample is confused.")
    return Html(picture(figure, f"{caption} by true and predicted class.") + rest)


def _classes(evidence: Evidence) -> Html:
    k = len(evidence.classes)
    scores = precision_recall_fscore_support(
        evidence.true, evidence.predicted, labels=np.arange(k), zero_division=np.nan
    )
    n = max(int(scores[3].max()), 1)
    lines = [
        (label, bar(count / n, f"{count:,}"), *(f"{s:.3f}".replace("nan", "\u2013") for s in of))
        for label, *of, count in zip(evidence.labels, *scores, strict=True)
    ]
    return table(("class", "samples", "precision", "recall", "F1"), lines, words=(0, 1))


def _reliability(evidence: Evidence) -> tuple[float, Any, Any, Any]:
    """Expected calibration error; accuracy and confidence by bin; confidence by sample."""
    assert evidence.proba is not None
    confidence = np.clip(evidence.proba.max(axis=1), 0.0, 1.0)
    right = evidence.proba.argmax(axis=1) == evidence.true
    accuracy, mean = calibration_curve(right.astype(int), confidence, n_bins=N_BINS, pos_label=1)
    edges = np.linspace(0, 1, N_BINS + 1)[1:-1]
    counts = np.bincount(np.searchsorted(edges, confidence), minlength=N_BINS)
    error = np.average(np.abs(accuracy - mean), weights=counts[counts > 0])
    return float(error), accuracy, mean, confidence


def _calibration(evidence: Evidence) -> Html | None:
    if evidence.proba is None:
        return None
    error, accuracy, mean, confidence = _reliability(evidence)
    figure = new_figure(6.4, 5.0)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    CalibrationDisplay(accuracy, mean, confidence).plot(ax=above, name="model", color="#2166ac")
    above.set(xlabel="", ylabel="accuracy", ylim=(-0.03, 1.05))
    legend_above(above)
    below.hist(confidence, bins=N_BINS, range=(0, 1), rwidth=0.94, color="#9aa5b1", log=True)
    below.set(xlabel="probability of the predicted class", ylabel="samples", xlim=(0, 1.02))
    below.set_ylim(bottom=0.5)
    below.yaxis.set_major_formatter("{x:g}")  # no math text, because labels may contain dollars
    below.yaxis.set_minor_formatter("")
    plain(above, below, grid="y")
    share, sure = float(evidence.right.mean()), float(confidence.mean())
    return Html(
        paragraph(
            f"The mean probability of the predicted class is {sure:.3f}, and the accuracy is "
            f"{share:.3f}: probabilities are too {'large' if sure > share else 'small'} by "
            f"{abs(sure - share):.3f} on average. The expected calibration error is {error:.3f}."
        )
        + picture(figure, "Reliability diagram, and the number of samples by probability.")
    )


def _errors(evidence: Evidence) -> Html | None:
    wrong = np.flatnonzero(~evidence.right)
    if evidence.proba is None or not len(wrong):
        return None
    sure = evidence.proba.max(axis=1)
    worst = wrong[np.argsort(-sure[wrong], kind="stable")][:SHOWN]
    if evidence.shape is None:
        lines = [
            (f"{at:,}", evidence.labels[evidence.true[at]], evidence.labels[evidence.predicted[at]],
             f"{sure[at]:.3f}", f"{evidence.proba[at, evidence.true[at]]:.3g}")
            for at in worst[:8]
        ]  # fmt: skip
        head = ("sample", "true class", "predicted as", "probability", "of the true class")
        note = "Samples are numbered from 0, in the order of this report."
        return Html(table(head, lines, words=(1, 2)) + paragraph(note, kind="soft"))
    images = evidence.X[worst]
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
        ax.set_title(f"{' as '.join(names)}\n{sure[at]:.3f}", fontsize=9)
    caption = "Title: true class, predicted class, and the probability of the predicted class."
    return picture(figure, caption)


def _importance(evidence: Evidence) -> Html | None:
    """Permutation importance of columns, unless they are pixels."""
    d = len(evidence.names)
    if (
        len(evidence.X.shape) != 2
        or d > MOST_COLUMNS
        or evidence.shape is not None
        or callable(getattr(evidence.model, "predict_early", None))
    ):
        return None
    n = min(len(evidence.y), MOST_PERMUTED)
    X, y = resample(evidence.X, evidence.y, replace=False, n_samples=n, random_state=0)
    X = X.toarray() if hasattr(X, "toarray") else X
    score, unit = "accuracy", "accuracy lost"
    if evidence.proba is not None:
        loss = partial(log_loss, labels=evidence.classes)
        score = make_scorer(loss, greater_is_better=False, response_method="predict_proba")
        unit = "rise in log loss"
    with quietly():
        importance = permutation_importance(
            evidence.model, X, y, scoring=score, random_state=0,
            n_repeats=int(np.clip(200 // d, 1, 5)),
        )["importances_mean"]  # fmt: skip
    text = (
        "Each column in turn gets its values from other samples. The table shows what this costs. "
        "Columns that contain the same information each look unimportant, because one replaces "
        f"the other. Measured on {'all' if n == len(evidence.y) else f'{n:,} random'} samples."
    )
    order = np.argsort(-importance, kind="stable")[:SHOWN]
    most = max(float(importance.max()), 1e-300)
    lines = [(evidence.names[j], bar(importance[j] / most, f"{importance[j]:+.4f}")) for j in order]
    return Html(paragraph(text) + table(("column", unit), lines, words=(0, 1)))


# ---- directions and reductions -------------------------------------------------------------------


def _directions(evidence: Evidence) -> Directions | None:
    try:
        return directions_of(evidence.model)
    except ValueError:
        return None


def _views(evidence: Evidence) -> Html | None:
    views = getattr(evidence.model, "views_", None)
    if not views:
        return None
    most = max(view.weight for view in views)
    lines = [
        (
            view.name,
            bar(view.weight / most, f"{view.weight:.2f}"),
            f"{view.log_loss:.3f}".replace("nan", "\u2013"),
        )
        for view in views
    ]
    return table(("view", "weight", "out-of-fold log loss alone"), lines, words=(0, 1))


def _spectrum(evidence: Evidence) -> Html | None:
    directions = _directions(evidence)
    if directions is None or directions.pairs is None:
        return None
    caption = (
        "Left: eigenvalues of each pair of classes by rank. Right: the largest of each pair. "
        "A pair with a large eigenvalue is separated by its first direction alone."
    )
    return picture(SpectrumDisplay.from_estimator(evidence.model).figure_, caption)


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
    evidence = evidence.drawn(MOST_POINTS)
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
    evidence = evidence.drawn(MOST_SERIES)
    with quietly():
        decisions = evidence.model.predict_early(evidence.X)
    time, n = np.asarray(decisions.time), len(evidence.true)
    length = int(getattr(evidence.model, "n_timepoints_", None) or evidence.X.shape[1])
    number = {label: code for code, label in enumerate(evidence.classes.tolist())}
    codes = np.array(
        [number[label] for label in np.asarray(decisions.label).tolist()], dtype=np.intp
    )
    early = replace(evidence, predicted=codes, proba=None)
    final, accuracy = float((codes == evidence.predicted).mean()), float(early.right.mean())
    whole = f"complete series: {evidence.right.mean():.1%}"
    top = [
        ("Early accuracy", f"{accuracy:.1%}", f"\u00b1 {standard_error(accuracy, n):.1%}; {whole}"),
        ("Samples needed", f"{time.mean():.1f}", f"of {length} on average"),
        ("Final labels", f"{final:.1%}", f"\u00b1 {standard_error(final, n):.1%}"),
        ("Series", f"{n:,}", f"of {len(evidence.classes)} classes"),
    ]
    names = np.array([short(label) for label in evidence.labels])
    strip = EarlyTimesDisplay(
        time, names[codes], length, names[evidence.predicted], names[evidence.true]
    ).plot()
    caption = "Series by class and time of decision, and labels that are not final."
    return top, {
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
    if getattr(inner, "correction_", None) is None and not hasattr(inner, "calibration_"):
        note = "The rule is neither corrected nor calibrated: tau holds if its model is right."
        content = Html(content + paragraph(note, kind="soft"))
    return content


def _share(agrees: NDArray[np.bool_]) -> tuple[str, str, str]:
    share = float(agrees.mean())
    return f"{len(agrees):,}", f"{share:.4f}", f"{standard_error(share, len(agrees)):.4f}"


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


# ---- the model -----------------------------------------------------------------------------------


def _about(evidence: Evidence) -> Html:
    signature = inspect.signature(type(evidence.model).__init__).parameters
    lines = []
    for name, value in evidence.model.get_params(deep=False).items():
        default = signature[name].default if name in signature else inspect.Parameter.empty
        code: Callable[[object], Html] = lambda text: Html(f"<code>{escaped(text)}</code>")  # noqa: E731
        same = type(default) is type(value) and show(default, 500) == show(value, 500)
        lines.append((code(name), code(show(value, 200)), "" if same else "changed"))
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

"""Sections of a report. Each function returns HTML, or None where a section says nothing."""

from __future__ import annotations

import inspect
import platform
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.calibration import CalibrationDisplay, calibration_curve
from sklearn.inspection import permutation_importance
from sklearn.metrics import (
    ConfusionMatrixDisplay,
    PredictionErrorDisplay,
    log_loss,
    make_scorer,
    precision_recall_fscore_support,
)
from sklearn.preprocessing import StandardScaler
from sklearn.utils import resample

from eigenfeat._base.validation import show
from eigenfeat._base.versions import show_versions
from eigenfeat.incomplete import ReliableClassifier
from eigenfeat.plotting import (
    EarlyCalibrationDisplay,
    EarlyDecisionDisplay,
    EarlyTimesDisplay,
    EmbeddingDisplay,
    FiltersDisplay,
    SpectrumDisplay,
    ViewsDisplay,
)
from eigenfeat.plotting.directions import Directions, directions_of, parts_of
from eigenfeat.plotting.figures import legend_above, new_figure, plain, short, short_tau
from eigenfeat.report.evidence import Case, neighbour_labels, quietly, standard_error
from eigenfeat.report.html import Html, bar, cards, escaped, paragraph, picture, table

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["contents"]

N_BINS = 10
MOST_VALUES = 20  # classes of a confusion matrix with numbers
MOST_POINTS, MOST_SERIES = 2000, 2000
MOST_PERMUTED, MOST_COLUMNS = 400, 2000  # samples and columns of permutation importance
SHOWN = 12


def contents(case: Case) -> tuple[Html, dict[str, Html]]:
    """Large figures, and sections by title."""
    if not len(case.classes):
        top, found = _regression(case)
    elif callable(getattr(case.model, "predict_early", None)):
        top, found = _early(case)
    elif case.features is not None:
        top = _figures(case)
        found = {"Embedding": _embedding(case), "Confusion": _confusion(case)}
    else:
        top = _figures(case)
        found = {"Confusion": _confusion(case), "Classes": _classes(case)}
        found |= {"Calibration": _calibration(case), "Most confident errors": _errors(case)}
    found |= {"Selection": _selection(case), "Views": _views(case), "Spectrum": _spectrum(case)}
    found |= {"Filters": _filters(case), "Weights of columns": _weights(case)}
    if case.by == "the model" and len(case.classes):
        found["Importance of columns"] = _importance(case)
    found["Parameters and versions"] = _about(case)
    return cards(top), {title: part for title, part in found.items() if part}


# ---- figures -------------------------------------------------------------------------------------


def _figures(case: Case) -> list[tuple[str, str, str]]:
    n, accuracy = len(case.true), float(case.right.mean())
    by = "" if case.by == "the model" else f", of {case.by}"
    found = [
        ("Accuracy", f"{accuracy:.1%}", f"\u00b1 {standard_error(accuracy, n):.1%}{by}"),
        ("Errors", f"{(~case.right).sum():,}", f"in {n:,} samples"),
    ]
    if case.proba is not None:
        chances = case.proba[np.arange(n), case.true]
        loss = -np.log(np.maximum(chances, np.finfo(np.float32).tiny)).mean()
        found.append(("Log loss", f"{loss:.3f}", "mean over the samples"))
        error = _reliability(case)[0]
        found.append(("Calibration error", f"{error:.3f}", f"expected, over {N_BINS} bins"))
    return [*found, _samples(case)]


def _samples(case: Case) -> tuple[str, str, str]:
    left = f"; {case.unknown:,} with unknown labels left out" if case.unknown else ""
    return "Samples", f"{len(case.true):,}", f"of {len(case.classes)} classes{left}"


def _regression(case: Case) -> tuple[list[tuple[str, str, str]], dict[str, Html | None]]:
    error = float(((case.true - case.predicted) ** 2).mean())
    total = max(float(case.true.var()), np.finfo(float).tiny)
    figure = new_figure(5.2, 4.6)
    PredictionErrorDisplay.from_predictions(
        case.true, case.predicted, kind="actual_vs_predicted", subsample=MOST_POINTS,
        random_state=case.random_state, ax=figure.subplots(), scatter_kwargs={"s": 14},
    )  # fmt: skip
    top = [
        ("R\u00b2", f"{1 - error / total:.3f}", "share of the variance that is explained"),
        ("Error", f"{np.sqrt(error):.4g}", "root mean square"),
        ("Samples", f"{len(case.true):,}", ""),
    ]
    return top, {"Predicted values": picture(figure, "True and predicted values.")}


# ---- predictions ---------------------------------------------------------------------------------


def _confusion(case: Case) -> Html:
    counts, k = case.confusion, len(case.classes)
    names = [short(label, 14) for label in case.labels]
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
    told = "Number of samples" if few else "Share of the true class, classes in ascending order"
    wrong = counts - np.diag(np.diag(counts))
    order = np.argsort(-wrong, axis=None, kind="stable")[:8]
    pairs = [divmod(int(at), k) for at in order if wrong.flat[at]]
    lines = [
        (case.labels[i], case.labels[j], f"{wrong[i, j]:,}", f"{wrong[i, j] / counts[i].sum():.1%}")
        for i, j in pairs
    ]
    head = ("true class", "predicted as", "samples", "of the true class")
    rest = table(head, lines, words=(0, 1)) if lines else paragraph("No sample is confused.")
    return Html(picture(figure, f"{told} by true and predicted class.") + rest)


def _classes(case: Case) -> Html:
    k = len(case.classes)
    scores = precision_recall_fscore_support(
        case.true, case.predicted, labels=np.arange(k), zero_division=np.nan
    )
    n = max(int(scores[3].max()), 1)
    lines = [
        (label, bar(count / n, f"{count:,}"), *(f"{s:.3f}".replace("nan", "\u2013") for s in of))
        for label, *of, count in zip(case.labels, *scores, strict=True)
    ]
    return table(("class", "samples", "precision", "recall", "F1"), lines, words=(0, 1))


def _reliability(case: Case) -> tuple[float, Any, Any, Any]:
    """Expected calibration error; accuracy and confidence by bin; confidence by sample."""
    assert case.proba is not None
    confidence = np.clip(case.proba.max(axis=1), 0.0, 1.0)
    right = case.proba.argmax(axis=1) == case.true
    accuracy, mean = calibration_curve(right.astype(int), confidence, n_bins=N_BINS, pos_label=1)
    edges = np.linspace(0, 1, N_BINS + 1)[1:-1]
    counts = np.bincount(np.searchsorted(edges, confidence), minlength=N_BINS)
    error = np.average(np.abs(accuracy - mean), weights=counts[counts > 0])
    return float(error), accuracy, mean, confidence


def _calibration(case: Case) -> Html | None:
    if case.proba is None:
        return None
    error, accuracy, mean, confidence = _reliability(case)
    figure = new_figure(6.4, 5.0)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    CalibrationDisplay(accuracy, mean, confidence).plot(ax=above, name="model", color="#2166ac")
    above.set(xlabel="", ylabel="accuracy", ylim=(-0.03, 1.05))
    legend_above(above)
    below.hist(confidence, bins=N_BINS, range=(0, 1), rwidth=0.94, color="#9aa5b1", log=True)
    below.set(xlabel="probability of the predicted class", ylabel="samples", xlim=(0, 1.02))
    below.set_ylim(bottom=0.5)
    below.yaxis.set_major_formatter("{x:g}")  # no formulas, which labels with dollars rule out
    below.yaxis.set_minor_formatter("")
    plain(above, below, grid="y")
    share, sure = float(case.right.mean()), float(confidence.mean())
    return Html(
        paragraph(
            f"The mean probability of the predicted class is {sure:.3f}, and the accuracy is "
            f"{share:.3f}: probabilities are too {'large' if sure > share else 'small'} by "
            f"{abs(sure - share):.3f} on average. The expected calibration error is {error:.3f}."
        )
        + picture(figure, "Reliability diagram, and the number of samples by probability.")
    )


def _errors(case: Case) -> Html | None:
    wrong = np.flatnonzero(~case.right)
    if case.proba is None or not len(wrong):
        return None
    sure = case.proba.max(axis=1)
    worst = wrong[np.argsort(-sure[wrong], kind="stable")][:SHOWN]
    if case.shape is None:
        lines = [
            (f"{at:,}", case.labels[case.true[at]], case.labels[case.predicted[at]],
             f"{sure[at]:.3f}", f"{case.proba[at, case.true[at]]:.3g}")
            for at in worst[:8]
        ]  # fmt: skip
        head = ("sample", "true class", "predicted as", "probability", "of the true class")
        note = "Samples are counted from 0 among those of this report."
        return Html(table(head, lines, words=(1, 2)) + paragraph(note, kind="soft"))
    images = case.X[worst]
    images = images.toarray() if hasattr(images, "toarray") else np.asarray(images)
    rows = -(-len(worst) // 6)
    figure = new_figure(7.8, 1.7 * rows)
    axes = figure.subplots(rows, 6, squeeze=False)
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, at, pixels in zip(axes.flat, worst, images, strict=False):
        ax.imshow(pixels.reshape(case.shape), cmap="gray_r")
        names = (short(case.labels[code[at]], 9) for code in (case.true, case.predicted))
        ax.set_title(f"{' as '.join(names)}\n{sure[at]:.3f}", fontsize=9)
    told = "Title: true class, predicted class, and the probability of the predicted class."
    return picture(figure, told)


def _importance(case: Case) -> Html | None:
    """Permutation importance, as a table or as an image."""
    d = len(case.names)
    if (
        len(case.X.shape) != 2
        or d > MOST_COLUMNS
        or callable(getattr(case.model, "predict_early", None))
    ):
        return None
    n = min(len(case.y), MOST_PERMUTED)
    X, y = resample(case.X, case.y, replace=False, n_samples=n, random_state=case.random_state)
    X = X.toarray() if hasattr(X, "toarray") else X
    score, unit = "accuracy", "accuracy lost"
    if case.proba is not None:
        loss = partial(log_loss, labels=case.classes)
        score = make_scorer(loss, greater_is_better=False, response_method="predict_proba")
        unit = "rise in log loss"
    with quietly():
        found = permutation_importance(
            case.model, X, y, scoring=score, random_state=case.random_state,
            n_repeats=int(np.clip(200 // d, 1, 5)),
        )["importances_mean"]  # fmt: skip
    text = (
        "Each column in turn gets its values from other samples. The table shows what this costs. "
        "Columns that contain the same information each look unimportant, because one replaces "
        f"the other. Measured on {'all' if n == len(case.y) else f'{n:,} random'} samples."
    )
    if case.shape is not None:
        figure = new_figure(4.6, 3.8)
        ax, most = figure.subplots(), max(float(found.max()), 1e-300)
        image = ax.imshow(found.reshape(case.shape), cmap="Blues", vmin=0, vmax=most)
        ax.set(xticks=[], yticks=[])
        figure.colorbar(image, ax=ax, label=unit)
        return Html(paragraph(text.replace("table", "image")) + picture(figure, f"{unit} by pixel"))
    order = np.argsort(-found, kind="stable")[:SHOWN]
    most = max(float(found.max()), 1e-300)
    lines = [(case.names[j], bar(found[j] / most, f"{found[j]:+.4f}")) for j in order]
    return Html(paragraph(text) + table(("column", unit), lines, words=(0, 1)))


# ---- directions and reductions -------------------------------------------------------------------


def _directions(case: Case) -> Directions | None:
    try:
        return directions_of(case.model)
    except ValueError:
        return None


def _views(case: Case) -> Html | None:
    if not getattr(case.model, "views_", None):
        return None
    figure = ViewsDisplay.from_estimator(case.model).figure_
    return picture(figure, "Weights of the views, and the out-of-fold log loss of each alone.")


def _spectrum(case: Case) -> Html | None:
    found = _directions(case)
    if found is None or found.values is None or len(found.values) < 2:
        return None
    told = "Eigenvalues by component."
    if found.pairs is not None:
        told = (
            "Left: eigenvalues of each pair of classes by rank. Right: the largest of each pair. "
            "A pair with a large eigenvalue is separated by its first direction alone."
        )
    return picture(SpectrumDisplay.from_estimator(case.model).figure_, told)


def _filters(case: Case) -> Html | None:
    found = _directions(case)
    if found is None or case.shape is None or len(found.weights) != len(case.names):
        return None
    figure = FiltersDisplay.from_estimator(case.model, image_shape=case.shape).figure_
    return picture(figure, "Leading directions as images.")


def _weights(case: Case) -> Html | None:
    """Columns with the largest weights in the components of a reduction."""
    found = _directions(case)
    if found is None or found.pairs is not None or case.shape is not None:
        return None
    if len(found.weights) != len(case.names) or len(case.X.shape) != 2:
        return None
    # LDG's components are in standardised columns already.
    weights = found.weights
    if not any(hasattr(part, "scale_") for part in parts_of(case.model)):
        scaler = StandardScaler(with_mean=False).fit(case.X)
        weights = weights * np.sqrt(scaler.var_)[:, None]
    share = (weights**2).sum(axis=1) / max(float((weights**2).sum()), np.finfo(float).tiny)
    order = np.argsort(-share, kind="stable")[:SHOWN]
    few = min(3, weights.shape[1])
    lines = [
        (case.names[j], bar(share[j] / max(share[order[0]], 1e-300), f"{share[j]:.1%}"),
         *(f"{weights[j, c]:+.3g}" for c in range(few)))
        for j in order
    ]  # fmt: skip
    head = ("column", "share of squared weights", *(f"component {c + 1}" for c in range(few)))
    note = "Weights are those of columns divided by their standard deviations."
    return Html(table(head, lines, words=(0, 1)) + paragraph(note, kind="soft"))


def _embedding(case: Case) -> Html | None:
    """Samples in the first two features, and the accuracy of neighbours beside all columns."""
    assert case.features is not None
    if case.features.ndim != 2 or hasattr(case.model, "expansion"):
        return None
    m, k = case.features.shape[1], len(case.classes)
    labels = np.array(case.labels)[case.true]
    display = EmbeddingDisplay(case.features[:MOST_POINTS, :2], labels[:MOST_POINTS]).plot()
    told = f"{min(len(labels), MOST_POINTS):,} samples by the first of {m} features."
    lines = [(f"the {m} features", f"{case.right.mean():.1%}")]
    if len(case.X.shape) == 2:
        columns = StandardScaler(with_mean=False).fit_transform(case.X)
        share = (neighbour_labels(columns, case.true, k) == case.true).mean()
        lines.append((f"all {len(case.names)} columns, standardised", f"{share:.1%}"))
    head = ("3 nearest neighbours among the other samples, by", "accuracy")
    return Html(picture(display.figure_, told) + table(head, lines))


def _selection(case: Case) -> Html | None:
    """What cross-validation tried when the model was fitted."""
    parts = [part for part in parts_of(case.model) if getattr(part, "cv_results_", None)]
    if not parts:
        return None
    part: Any = parts[0]
    tried, found = part.cv_results_, []
    if hasattr(part, "relative_shift_"):
        moved = f"Samples are moved by {part.relative_shift_:.1%} of their distance from the mean."
        found.append(paragraph(moved))
    if "params" in tried and "mean_test_score" in tried:
        scores = np.asarray(tried["mean_test_score"], dtype=float)
        order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")[:SHOWN]
        lines = [
            (", ".join(f"{k}={show(v)}" for k, v in tried["params"][at].items()),
             f"{scores[at]:.4g}", "chosen" if at == getattr(part, "best_index_", -1) else "")
            for at in order
        ]  # fmt: skip
        found.append(table(("candidate", "mean score", ""), lines, words=(0, 2)))
    else:
        lines = [
            (name, f"{getattr(part, f'{name}_', float('nan')):g}", "; ".join(
                f"{value:g}: {score:.1%}"
                for value, score in zip(tried[name], tried[f"{name}_accuracy"], strict=True)
            ))
            for name in tried
            if np.ndim(tried.get(f"{name}_accuracy", 0)) == 1
        ]  # fmt: skip
        found.append(table(("parameter", "chosen", "accuracy of candidates"), lines, words=(0, 2)))
    return Html("".join(found))


# ---- early decisions -----------------------------------------------------------------------------


def _early(case: Case) -> tuple[list[tuple[str, str, str]], dict[str, Html | None]]:
    case = case.first(MOST_SERIES)
    with quietly():
        found = case.model.predict_early(case.X)
    time, n = np.asarray(found.time), len(case.true)
    length = int(getattr(case.model, "n_timepoints_", None) or case.X.shape[1])
    number = {label: code for code, label in enumerate(case.classes.tolist())}
    codes = np.array([number[label] for label in np.asarray(found.label).tolist()], dtype=np.intp)
    early = replace(case, predicted=codes, proba=None)
    final, accuracy = float((codes == case.predicted).mean()), float(early.right.mean())
    whole = f"complete series: {case.right.mean():.1%}"
    top = [
        ("Early accuracy", f"{accuracy:.1%}", f"\u00b1 {standard_error(accuracy, n):.1%}; {whole}"),
        ("Samples needed", f"{time.mean():.1f}", f"of {length} on average"),
        ("Final labels", f"{final:.1%}", f"\u00b1 {standard_error(final, n):.1%}"),
        ("Series", f"{n:,}", f"of {len(case.classes)} classes"),
    ]
    names = np.array([short(label) for label in case.labels])
    strip = EarlyTimesDisplay(
        time, names[codes], length, names[case.predicted], names[case.true]
    ).plot()
    told = "Series by class and time of decision, and labels that are not final."
    return top, {
        "Decisions": picture(strip.figure_, told),
        "Reliability": _promise(case, final, n),
        "One series": _one_series(case, time),
        "Confusion": _confusion(early),
        "Classes": _classes(early),
    }


def _promise(case: Case, final: float, n: int) -> Html | None:
    inner = getattr(case.model, "best_estimator_", case.model)
    tau = getattr(case.model, "reliability_", getattr(inner, "reliability", None))
    if tau is None:
        return None
    lines = [
        ("required reliability (tau)", short_tau(float(tau))),
        ("share of early labels that are final, these series", f"{final:.4f}"),
        ("its standard error", f"{standard_error(final, n):.4f}"),
    ]
    if getattr(inner, "correction_", None) is not None and np.isfinite(inner.held_out_agreement_):
        lines.append(("share among held-out training series", f"{inner.held_out_agreement_:.4f}"))
        lines.append(("its lower bound, confidence 0.9", f"{inner.held_out_agreement_bound_:.4f}"))
    found = table(("", ""), lines)
    if hasattr(inner, "calibration_"):
        figure = EarlyCalibrationDisplay.from_estimator(inner).figure_
        return Html(found + picture(figure, "Agreement on the series of the calibration, by tau."))
    if getattr(inner, "correction_", None) is None:
        note = "The rule is neither corrected nor calibrated: tau holds if its model is right."
        found = Html(found + paragraph(note, kind="soft"))
    return found


def _one_series(case: Case, time: Any) -> Html | None:
    """The series with the median time of decision."""
    inner = getattr(case.model, "best_estimator_", case.model)
    if not isinstance(inner, ReliableClassifier) or inner.n_timepoints_ < 3:
        return None
    at = int(np.argsort(time, kind="stable")[len(time) // 2])
    row = np.asarray(case.X.iloc[at] if hasattr(case.X, "iloc") else case.X[at], dtype=np.float64)
    if inner.n_channels_ > 1 and row.ndim == 1:
        row = row.reshape(inner.n_timepoints_, inner.n_channels_).T
    try:
        figure = EarlyDecisionDisplay.from_estimator(inner, row).figure_
    except ValueError:  # missing samples, or a completion without variances
        return None
    told = f"Series {at:,}, of class {case.labels[case.true[at]]}, with the median time"
    return picture(figure, f"{told} of decision.")


# ---- the model -----------------------------------------------------------------------------------


def _about(case: Case) -> Html:
    signature = inspect.signature(type(case.model).__init__).parameters
    lines = []
    for name, value in case.model.get_params(deep=False).items():
        default = signature[name].default if name in signature else inspect.Parameter.empty
        code: Callable[[object], Html] = lambda text: Html(f"<code>{escaped(text)}</code>")  # noqa: E731
        same = type(default) is type(value) and show(default, 500) == show(value, 500)
        lines.append((code(name), code(show(value, 200)), "" if same else "changed"))
    found: Any = show_versions(as_dict=True)
    packages = ("numpy", "scipy", "scikit-learn")
    versions = [
        ("eigenfeat", f"{found['core']['eigenfeat']}, instructions {found['core']['tier']}"),
        *((name, found["dependencies"][name]) for name in packages),
        ("Python", platform.python_version()),
        ("system", f"{platform.system()} {platform.machine()}"),
    ]
    parameters = table(("parameter", "value", ""), lines, words=(0, 1, 2)) if lines else ""
    return Html(parameters + table(("made with", ""), versions, words=(0, 1)))

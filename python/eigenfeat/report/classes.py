"""Sections about predictions: classes, what is confused, and whether probabilities are right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eigenfeat.plotting.arguments import new_figure, plain
from eigenfeat.plotting.colours import ACCENT
from eigenfeat.plotting.displays import ReliabilityDisplay, binned
from eigenfeat.report.evidence import Evidence
from eigenfeat.report.html import Html, Section, bar, escaped, figure, paragraph, table

__all__ = ["calibration", "class_table", "confusion", "expected_calibration_error", "mistakes"]

MOST_CLASSES = 20  # of a confusion matrix that is a table
NAMED_PAIRS = 8
N_BINS = 10


def class_table(evidence: Evidence) -> Section:
    """Rows, recall and precision of every class."""
    counts = evidence.confusion
    total = counts.sum()
    lines = []
    for code, label in enumerate(evidence.classes.tolist()):
        rows, predicted, right = counts[code].sum(), counts[:, code].sum(), counts[code, code]
        lines.append(
            (
                label,
                bar(rows / max(counts.sum(axis=1).max(), 1), f"{rows:,} ({rows / total:.1%})"),
                f"{right / rows:.3f}" if rows else "\u2013",
                f"{right / predicted:.3f}" if predicted else "\u2013",
            )
        )
    section = Section("Classes")
    section.parts.append(table(("class", "rows", "recall", "precision"), lines, words=(0, 1)))
    section.parts.append(
        paragraph(
            "Recall: share of the class\u2019s rows that are predicted as it. Precision: share of "
            "the rows predicted as the class that are of it.",
            kind="soft",
        )
    )
    return section


def confusion(evidence: Evidence, title: str = "What is confused") -> Section:
    """The confusion matrix and the pairs of classes that are confused most."""
    counts = evidence.confusion
    names = [str(label) for label in evidence.classes.tolist()]
    section = Section(title)
    if len(names) <= MOST_CLASSES:
        section.parts.append(_matrix_table(counts, names))
    else:
        section.parts.append(_matrix_picture(counts))
    section.parts.append(_pairs(counts, names))
    return section


def _pairs(counts: NDArray[np.int64], names: list[str]) -> Html:
    wrong = counts - np.diag(np.diag(counts))
    order = np.argsort(-wrong, axis=None, kind="stable")[:NAMED_PAIRS]
    chosen = [divmod(int(at), len(names)) for at in order]
    rows = [
        (names[i], names[j], f"{wrong[i, j]:,}", f"{wrong[i, j] / counts[i].sum():.1%}")
        for i, j in chosen
        if wrong[i, j]
    ]
    if not rows:
        return paragraph("No row is predicted as another class.")
    head = ("most confused: true class", "predicted as", "rows", "of the class\u2019s rows")
    return table(head, rows, words=(0, 1))


def _matrix_table(counts: NDArray[np.int64], names: list[str]) -> Html:
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    cells = []
    for i in range(len(names)):
        line = [f"<th>{escaped(names[i], 24)}</th>"]
        for j in range(len(names)):
            count, share = int(counts[i, j]), float(shares[i, j])
            if not count:
                line.append('<td style="color:#c3cbd3">\u00b7</td>')
                continue
            colour = (33, 102, 172) if i == j else (178, 24, 43)
            # Few errors are to be seen beside many rows that are right.
            depth = 0.12 + 0.75 * (share if i == j else min(1.0, np.sqrt(share)))
            mixed = tuple(round(255 - depth * (255 - part)) for part in colour)
            ink = "#fff" if depth > 0.55 else "var(--ink)"
            style = f"background:rgb{mixed};color:{ink}".replace(" ", "")
            line.append(f'<td style="{style}" title="{share:.1%}">{count:,}</td>')
        cells.append(f"<tr>{''.join(line)}</tr>")
    head = "".join(f"<th>{escaped(name, 24)}</th>" for name in names)
    return Html(
        f'<p class="soft">A row for each true class, a column for each predicted one.</p>'
        f'<div class="wide"><table class="confusion"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{''.join(cells)}</tbody></table></div>"
    )


def _matrix_picture(counts: NDArray[np.int64]) -> Html:
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    picture = new_figure(6.4, 5.4)
    ax = picture.subplots()
    image = ax.imshow(np.sqrt(shares), cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    ticks = [0.0, 0.01, 0.1, 0.25, 0.5, 1.0]
    marks = picture.colorbar(image, ax=ax, ticks=np.sqrt(ticks), shrink=0.8)
    marks.ax.set_yticklabels([f"{tick:.0%}" for tick in ticks])
    marks.set_label("share of the true class\u2019s rows (square-root scale)")
    ax.set(xlabel="predicted class, by number", ylabel="true class, by number")
    return figure(
        picture,
        f"Confusion of {len(counts)} classes, in the order of the table of classes.",
        "confusion matrix as colours",
    )


# ---- probabilities -------------------------------------------------------------------------------


def expected_calibration_error(
    confidence: NDArray[np.float64], right: NDArray[np.bool_], n_bins: int = N_BINS
) -> float:
    """Mean distance of accuracy from confidence over equal bins of confidence, by their rows."""
    sure, accuracy, rows = binned(confidence, right, n_bins)
    return float((rows * np.abs(sure - accuracy)).sum() / rows.sum())


def calibration(evidence: Evidence) -> Section | None:
    """A reliability diagram of the predicted class's probability."""
    if evidence.chances is None:
        return None
    confidence, right = evidence.chances.max(axis=1), evidence.right
    error = expected_calibration_error(confidence, right)
    picture = new_figure(7.0, 5.0)
    above, below = picture.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    told = "share that is right, with its standard error"
    ReliabilityDisplay(*binned(confidence, right, N_BINS)).plot(above, label=told)
    above.set(xlabel="", ylim=(-0.03, 1.05))
    below.hist(confidence, bins=N_BINS, range=(0, 1), rwidth=0.94, color=ACCENT, alpha=0.75)
    below.set(xlabel="probability of the predicted class", ylabel="rows", xlim=(0, 1.02))
    plain(above, below, grid="y")
    mean, share = float(confidence.mean()), evidence.accuracy
    direction = "large" if mean > share else "small"
    section = Section("Calibration")
    section.parts.append(
        paragraph(
            f"The mean probability of the predicted class is {mean:.3f}, and {share:.3f} of the "
            f"rows are right: probabilities are too {direction} by {abs(mean - share):.3f} on "
            f"average. The expected calibration error over {N_BINS} bins is {error:.3f}."
        )
    )
    caption = "Reliability diagram: rows by the probability of their predicted class."
    section.parts.append(figure(picture, caption, "reliability diagram"))
    return section


def mistakes(evidence: Evidence, shape: tuple[int, int] | None) -> Section | None:
    """Rows that are wrong with the largest probability; as images, where columns are pixels."""
    wrong = np.flatnonzero(~evidence.right)
    if evidence.chances is None or not len(wrong):
        return None
    sure = evidence.chances[wrong].max(axis=1)
    worst = wrong[np.argsort(-sure, kind="stable")][:12]
    section = Section("Most certain mistakes")
    names = evidence.classes.tolist()
    if shape is None:
        lines = [
            (f"{at:,}", names[evidence.true[at]], names[evidence.predicted[at]],
             f"{evidence.chances[at].max():.3f}", f"{evidence.chances[at, evidence.true[at]]:.3g}")
            for at in worst[:8]
        ]  # fmt: skip
        head = ("row", "true class", "predicted as", "probability", "of the true class")
        section.parts.append(table(head, lines, words=(1, 2)))
        note = "Rows are counted from 0 among those of this report."
        section.parts.append(paragraph(note, kind="soft"))
        return section
    columns = 6
    lines_ = -(-len(worst) // columns)
    picture = new_figure(8.4, 1.75 * lines_)
    axes = picture.subplots(lines_, columns, squeeze=False)
    for ax in axes.flat:
        ax.set_axis_off()
    dense = evidence.X[worst]
    dense = dense.toarray() if hasattr(dense, "toarray") else np.asarray(dense)
    for ax, at, pixels in zip(axes.flat, worst, dense, strict=False):
        ax.imshow(pixels.reshape(shape), cmap="gray_r")
        told = f"{names[evidence.true[at]]} as {names[evidence.predicted[at]]}"
        ax.set_title(f"{told[:40]}\n{evidence.chances[at].max():.3f}", fontsize=9)
    caption = "Title: true class, predicted class, and the predicted class\u2019s probability."
    section.parts.append(figure(picture, caption, "images of rows that are predicted wrongly"))
    return section

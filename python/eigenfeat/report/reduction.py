"""Sections about reductions and regressors: the embedding, what was chosen, predicted values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat.plotting import EmbeddingDisplay
from eigenfeat.plotting.arguments import new_figure, plain
from eigenfeat.plotting.colours import ACCENT, BAND, MUTED
from eigenfeat.report.directions import parts_of
from eigenfeat.report.evidence import Evidence, features_of, neighbour_labels, standard_error
from eigenfeat.report.html import Section, figure, paragraph, table

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["choices", "embedding", "regression"]

MOST_POINTS, MOST_CLASSES = 2000, 12
CHOSEN = {"n_neighbors": "neighbours", "gamma": "gamma", "n_components": "components"}


def embedding(model: BaseEstimator, evidence: Evidence) -> Section | None:
    """Rows in the first two features, and what all features are worth beside the columns."""
    features = features_of(model, evidence.X)
    if features.ndim != 2 or hasattr(model, "expansion"):
        return None
    some = slice(MOST_POINTS)
    labels = np.array([str(label)[:40] for label in evidence.classes.tolist()])[evidence.true]
    section = Section("Embedding")
    if len(evidence.classes) <= MOST_CLASSES:
        longest = max(len(label) for label in labels)
        picture = EmbeddingDisplay(features[some, :2], labels[some]).plot(legend=False).figure_
        picture.legend(
            loc="outside lower center", ncols=max(1, min(5, 66 // (longest + 10))), frameon=False
        )
        first = "first two features" if features.shape[1] > 1 else "only feature"
        told = f"Rows by the {first} of {features.shape[1]}" + (
            f"; the first {MOST_POINTS:,} of {len(evidence):,} rows." if len(labels) > MOST_POINTS
            else "."
        )  # fmt: skip
        section.parts.append(figure(picture, told, "rows in two dimensions", width=620))
    rows = [("the features", features.shape[1], _neighbours(features, evidence))]
    dense = evidence.X.toarray() if hasattr(evidence.X, "toarray") else np.asarray(evidence.X)
    spread = dense.std(axis=0)
    standard = (dense - dense.mean(axis=0)) / np.where(spread > 0, spread, 1)
    rows.append(("all columns, standardised", dense.shape[1], _neighbours(standard, evidence)))
    head = ("3 nearest neighbours, each row left out in turn, on", "columns", "accuracy")
    section.parts.append(table(head, rows))
    return section


def _neighbours(features: NDArray[Any], evidence: Evidence) -> str:
    of = neighbour_labels(features, evidence.true, len(evidence.classes))
    share = float((of == evidence.true).mean())
    return f"{share:.1%} \u00b1 {standard_error(share, len(evidence)):.1%}"


def choices(model: BaseEstimator) -> Section | None:
    """Scores of what cross-validation has tried when the model was fitted."""
    section = Section("What was chosen")
    shift = next((part for part in parts_of(model) if hasattr(part, "sigma2_")), None)
    if shift is not None:
        return _shift(section, shift)
    tried = getattr(model, "cv_results_", None) or {}
    names = [name for name in CHOSEN if np.ndim(tried.get(f"{name}_accuracy", 0)) == 1]
    for name, told in CHOSEN.items():
        if hasattr(model, f"{name}_"):
            how = "by cross-validation" if name in names else "as given"
            value = f"{getattr(model, f'{name}_'):g}"
            section.parts.append(paragraph(f"{told}: ", value, f", {how}"))
    names = [name for name in names if len(tried[name]) > 1]
    if names:
        picture = new_figure(3.2 * len(names) + 0.4, 2.9)
        for ax, name in zip(picture.subplots(1, len(names), squeeze=False)[0], names, strict=True):
            values = np.asarray(tried[name], dtype=float)
            ax.plot(np.arange(len(values)), 100 * tried[f"{name}_accuracy"], "o-", color=BAND, ms=4)
            chosen = np.flatnonzero(values == getattr(model, f"{name}_"))
            for at in chosen:
                ax.axvline(at, color=ACCENT, lw=1, ls="--")
            ax.set_xticks(np.arange(len(values)), [f"{value:g}" for value in values], fontsize=8)
            ax.set(xlabel=CHOSEN[name], ylabel="accuracy in %")
            plain(ax, grid="y")
        told = "Accuracies of the candidates on training rows; the dashed line is the one chosen."
        section.parts.append(figure(picture, told, "accuracies of candidates"))
    return section if section.parts else None


def _shift(section: Section, model: Any) -> Section:
    if model.sigma2_ == 0:
        section.parts.append(
            paragraph(
                "No row was moved: cross-validation showed no gain beyond twice its standard "
                "error. The features are those of the extractor alone."
                if model.sigma2 == "cv"
                else "No row was moved, as was asked for."
            )
        )
    else:
        told = f"Rows were moved by \u03c3\u00b2 = {model.sigma2_:.4g}: in the root mean square "
        told += f"{model.relative_shift_:.1%} of their distance from their mean."
        section.parts.append(paragraph(told))
    scores = getattr(model, "cv_scores_", None)
    if scores is None or len(scores) < 2:
        return section
    scales = np.unique(np.asarray(model.scales, dtype=float))
    picture = new_figure(6.0, 3.2)
    ax = picture.subplots()
    ax.plot(scales, 100 * np.asarray(scores), "o-", color=BAND, ms=4)
    ax.axvline(model.relative_shift_, color=ACCENT, lw=1, ls="--", label="chosen")
    ax.set(xlabel="size of the moves, relative to the rows", ylabel="held-out accuracy in %")
    ax.legend(frameon=False, fontsize=9)
    plain(ax, grid="y")
    told = "Cross-validated accuracy by how far rows are moved, when the model was fitted."
    section.parts.append(figure(picture, told, "accuracy by scale of the moves"))
    return section


def regression(y: NDArray[np.float64], predicted: NDArray[np.float64]) -> Section:
    """Predicted values beside true ones."""
    picture = new_figure(5.6, 4.8)
    ax = picture.subplots()
    some = slice(MOST_POINTS)
    ax.plot(y[some], predicted[some], ".", color=BAND, ms=5, alpha=0.6)
    ends = [float(min(y.min(), predicted.min())), float(max(y.max(), predicted.max()))]
    ax.plot(ends, ends, color=MUTED, lw=1)
    ax.set(xlabel="true value", ylabel="predicted value")
    plain(ax)
    section = Section("Predicted values")
    section.parts.append(figure(picture, "A row a point.", "predicted against true values"))
    return section

"""Sections of a report about columns: their importances, and the effects of the largest ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eigenfeat.plotting.figures import class_style, legend_above, new_figure, plain, short
from eigenfeat.report.columns import column_effect, column_importances
from eigenfeat.report.evidence import Evidence, quietly
from eigenfeat.report.html import Html, bar, number, paragraph, picture, table

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["column_sections"]

_MAX_COLUMNS = 2000  # importances are measured for at most this many columns
_N_LARGEST = 12  # columns in the table of importances
_N_EFFECTS = 4  # columns whose effects are drawn
_MAX_CURVES = 5  # classes in a picture of effects


def column_sections(evidence: Evidence) -> dict[str, Html | None]:
    """Importances and effects of columns, unless they are pixels or samples of a signal."""
    d = len(evidence.names)
    if (
        len(evidence.X.shape) != 2
        or d > _MAX_COLUMNS
        or evidence.shape is not None
        or callable(getattr(evidence.model, "predict_early", None))
    ):
        return {}
    model, X, y = evidence.probe
    with quietly():
        importances, unit = column_importances(model, X, y, evidence.names)
    return {
        "Importance of columns": _importance(evidence, importances, unit),
        "Effects of columns": _effects(evidence, importances),
    }


def _importance(evidence: Evidence, importances: DataFrame, unit: str) -> Html:
    part = " of one new fit" if evidence.part is not None else ""
    text = (
        "The values of one column at a time are permuted among the samples. The table shows how "
        f"much worse the predictions{part} are then, with the standard deviation over "
        "permutations. Columns that "
        "contain the same information each look unimportant, because one replaces the other. At "
        "most 400 samples, drawn at random, are measured."
    )
    largest = max(importances["importance"].max(), 1e-300)
    lines = [
        (name, bar(value / largest, f"{number(value, '+')} \u00b1 {number(deviation)}"))
        for name, value, deviation in importances[:_N_LARGEST].itertuples()
    ]
    return Html(paragraph(text) + table(("column", unit), lines, words=(0, 1)))


def _effects(evidence: Evidence, importances: DataFrame) -> Html | None:
    """Mean predictions as functions of the most important columns."""
    if evidence.proba is None and not evidence.regression:
        return None
    model, X, _ = evidence.probe
    effects = []
    for name in importances.index[importances["importance"] > 0][:_N_EFFECTS]:
        with quietly():
            effect = column_effect(model, X, evidence.names.index(name), name)
        if effect is not None:
            effects.append(effect)
    if not effects:
        return None
    rows = -(-len(effects) // 2)
    figure = new_figure(8.0 if len(effects) > 1 else 4.4, 3.0 * rows + 0.3)
    axes = figure.subplots(rows, min(len(effects), 2), squeeze=False).ravel()
    for ax in axes[len(effects) :]:
        ax.set_axis_off()
    for ax, effect in zip(axes, effects, strict=False):
        _draw(ax, evidence, effect)
    what = "prediction" if evidence.regression else "probabilities"
    text = (
        f"The mean {what} if every sample had the same value of a column and kept its other "
        "values. A flat line means that the column alone changes the predictions little."
    )
    return Html(paragraph(text) + picture(figure, f"Mean {what} by the value of a column."))


def _draw(ax: Any, evidence: Evidence, effect: DataFrame) -> None:
    """One effect: lines over numbers and dates, points over categories."""
    from matplotlib import dates

    change, names = np.ptp(effect.to_numpy(), axis=0), evidence.labels
    shown = sorted(np.argsort(-change, kind="stable")[:_MAX_CURVES].tolist())
    if evidence.drawn_class is not None:
        shown = [evidence.drawn_class]
    numeric = effect.index.dtype.kind in "fM"
    at = effect.index if numeric else range(len(effect))
    for code in shown:
        colour, marker = class_style(code)
        label = None if evidence.regression else short(names[code], 12)
        style = "-" if numeric else "none"
        ax.plot(at, effect[code], ls=style, marker=marker, ms=4, color=colour, label=label)
    if not numeric:
        texts = [short(value, 12) for value in effect.index]
        ax.set_xticks(range(len(texts)), texts, rotation=90 if len(texts) > 4 else 0)
    if effect.index.dtype.kind == "M":
        locator: Any = ax.xaxis.get_major_locator()
        concise: Any = dates.ConciseDateFormatter
        ax.xaxis.set_major_formatter(concise(locator))
    what = "prediction" if evidence.regression else "probability"
    if len(shown) == 1 and not evidence.regression:
        what = f"probability of {short(names[shown[0]], 12)}"
    ax.set(xlabel=short(effect.index.name, 30), ylabel=what)
    plain(ax, grid="y")
    if len(shown) > 1:
        legend_above(ax)

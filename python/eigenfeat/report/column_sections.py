"""Columns in a report: importances, effects on predictions, and values in samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat.expansion.features import take_rows
from eigenfeat.plotting.figures import class_style, legend_above, new_figure, plain, short
from eigenfeat.report.columns import column_effect
from eigenfeat.report.evidence import Evidence, quietly
from eigenfeat.report.html import Html, bar, number, paragraph, picture, table

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["column_sections", "table_of_samples"]

_N_LARGEST = 12  # columns in the table of importances
_N_EFFECTS = 4  # columns whose effects are drawn
_MAX_CURVES = 5  # classes in a picture of effects
_N_VALUES = 6  # columns whose values are shown for single samples


def column_sections(evidence: Evidence) -> dict[str, Html | None]:
    """Importances and effects of columns, unless they are pixels or samples of a signal."""
    if evidence.importances is None:
        return {}
    importances, unit = evidence.importances
    return {
        "Importance of columns": _importance(evidence, importances, unit),
        "Effects of columns": _effects(evidence, importances),
    }


def table_of_samples(
    evidence: Evidence,
    rows: NDArray[np.intp],
    head: Sequence[str],
    lines: Sequence[Sequence[object]],
    words: Sequence[int] = (0,),
) -> Html:
    """A table with a line for each of the samples `rows`, followed by a note about the table.

    The values of the most important columns follow the cells of `lines`. `words` are the numbers of
    the columns of text.
    """
    note = "Samples are numbered from 0, in the order of this report."
    important = [] if evidence.importances is None else _important(evidence.importances[0])
    X = take_rows(evidence.X, rows)
    X = X.toarray() if hasattr(X, "toarray") else X
    for name in important[:_N_VALUES]:
        j = evidence.names.index(name)
        values = (X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]).tolist()
        if not all(isinstance(value, (int, float)) for value in values):
            words = [*words, len(head)]
        head = [*head, name]
        lines = [[*line, _value(value)] for line, value in zip(lines, values, strict=True)]
    if important:
        note += " The last columns show the values of the most important columns."
    return Html(table(head, lines, words) + paragraph(note, kind="soft"))


def _value(value: Any) -> str:
    """A value of a column; whole numbers with all digits, other numbers with six."""
    import pandas as pd

    if pd.api.types.is_scalar(value) and pd.isna(value):
        return "missing"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    return short(str(value).removesuffix(" 00:00:00"), 40)


def _important(importances: DataFrame) -> list[str]:
    """Names of the columns that make predictions better, the most important first."""
    names: list[str] = importances.index[importances["importance"] > 0].tolist()
    return names


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
    for name in _important(importances)[:_N_EFFECTS]:
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

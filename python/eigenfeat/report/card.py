"""A card about a model: what it was fitted to, what it leaves out, and where it does not hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils import get_tags

from eigenfeat._base.validation import show_items
from eigenfeat.report.html import Html, table

__all__ = ["columns_by_kind", "kinds_in_words", "model_card", "reasons"]


def columns_by_kind(model: Any) -> tuple[dict[str, int], list[str]]:
    """Number of columns of a fitted model by kind, and names of those that it leaves out."""
    encoder, d = getattr(model, "columns_", None), int(getattr(model, "n_features_in_", 0))
    kinds = ["number"] * d if encoder is None else list(encoder.kinds_)
    names = getattr(model, "feature_names_in_", range(d)) if encoder is None else encoder.names_
    empty = np.flatnonzero(getattr(getattr(model, "completion_", None), "empty", []))
    for j in (empty if encoder is None else encoder.groups_[empty]).tolist():
        kinds[j] = "left out"
    left_out = [str(name) for name, kind in zip(names, kinds, strict=True) if kind == "left out"]
    return dict(Counter(kind for kind in kinds if kind != "left out")), left_out


def kinds_in_words(kinds: dict[str, int]) -> str:
    """Numbers of columns by kind, in words."""
    plural = {"category": "categories"}
    return ", ".join(
        f"{count:,} {kind if count == 1 else plural.get(kind, f'{kind}s')}"
        for kind, count in kinds.items()
    )


def reasons(notes: dict[str, str]) -> str:
    """Names that share a reason, and the reason: "a, b: reason; c: another"."""
    names_of: dict[str, list[str]] = {}
    for name, note in notes.items():
        names_of.setdefault(note, []).append(name)
    return "; ".join(f"{', '.join(names)}: {note}" for note, names in names_of.items())


def model_card(model: Any) -> Html | None:
    """Table of rows, columns by kind and classes of a fit, and of the limits of the model."""
    if not hasattr(model, "n_features_in_"):
        return None
    lines = []
    layout = getattr(model, "file_layout_", None) or {}
    if "rows" in layout:
        files = f" of {len(layout['files'])} files" if len(layout["files"]) > 1 else ""
        lines.append(("fitted to", f"{layout['rows']:,} rows{files}"))
    kinds, left_out = columns_by_kind(model)
    lines.append(("columns", kinds_in_words(kinds)))
    if left_out:
        lines.append(("columns left out", ", ".join(left_out)))
    if hasattr(model, "classes_"):
        classes = model.classes_.tolist()
        lines.append((f"{len(classes)} classes", show_items(classes)))
    lines.append(("limits", " ".join(_limits(model))))
    return table(("", ""), lines, words=(0, 1))


def _limits(model: Any) -> list[str]:
    """Sentences about the limits of the model."""
    texts = ["Measures hold only for samples like those that this page measures."]
    if hasattr(model, "target_range_") and is_regressor(model):
        reach = model.statistics_.reach
        deviations = "a standard deviation" if reach == 1 else f"{reach:g} standard deviations"
        texts.append(
            f"Numbers and predictions stay within {deviations} of their ranges in the fit: "
            "the model does not extrapolate further."
        )
    elif hasattr(model, "statistics_"):
        texts.append(
            "Numbers outside of their range in the fit count as the ends of the range: the model "
            "does not extrapolate."
        )
    if hasattr(model, "columns_"):
        texts.append("Categories that the fit has not seen count as rare categories.")
    if hasattr(model, "completion_"):
        texts.append("Missing numbers are completed from the other columns.")
    elif hasattr(model, "views_") and get_tags(model).input_tags.allow_nan:
        texts.append("The fit had no missing numbers; samples with missing numbers are refused.")
    return texts

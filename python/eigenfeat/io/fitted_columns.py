"""Options that choose the columns of files to which an estimator was fitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from eigenfeat._base.validation import show_items
from eigenfeat.io.source import Options, Source
from eigenfeat.samples.columns import TableColumns

__all__ = ["column_options", "encoder_options", "fitted_options", "wrong_width"]


def fitted_options(source: Source, options: Options, estimator: Any) -> dict[str, Any]:
    """Options that choose the columns of a fit, and read their cells as in the fit.

    Columns are found by their names or, in files without names, by their places.
    """
    changed: dict[str, Any] = {}
    classes = getattr(estimator, "classes_", None)
    if options.labels == "auto" and getattr(classes, "dtype", np.dtype(float)).kind in "OU":
        changed["labels"] = "str"  # "1" as the integer 1 would be unknown to a model of text labels
    encoder = getattr(estimator, "columns_", None)
    layout = getattr(estimator, "file_layout_", None) or {}
    if encoder is not None and (source.sparse or source.format == "npy"):
        encoder.refuse("sparse samples" if source.sparse else "an array", str(source.path))
    if source.sparse:
        if options.zero_based is None:
            changed["zero_based"] = layout.get("zero_based")
        changed["n_features"] = options.n_features or int(estimator.n_features_in_)
        return changed
    if "na_values" in layout and not options.na_values:
        changed["na_values"] = tuple(layout["na_values"])
        changed["keep_default_na"] = layout["keep_default_na"]
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    has_places = layout.get("n_columns") == len(source.names) and not options.drop
    if options.columns is not None and {*source.feature_names} != {*names}:
        changed["columns"] = options.columns
    elif names:
        used = names if encoder is None else [names[j] for j in encoder.used]
        changed |= _choice_by_names(source, options, used)
    elif has_places and source.choice.target not in layout["columns"]:
        changed["columns"] = tuple(layout["columns"])
    if encoder is not None:
        columns = changed.get("columns", tuple(source.choice.features))
        if len(columns) not in (len(encoder.names_), len(encoder.used)):
            raise ValueError(wrong_width(source, len(encoder.names_), encoder.names_))
        changed |= encoder_options(columns, encoder)
    return changed


def _choice_by_names(source: Source, options: Options, names: list[str]) -> dict[str, Any]:
    """Options that choose columns by their names; ValueError for missing columns."""
    columns = _identified(source, names)
    if {*names} <= {*getattr(source, "first_fields", ())} and options.header is None:
        return {"columns": columns, "header": True}
    missing = [name for name in names if name not in {*source.names}]
    if not missing:
        return {"columns": columns}
    if not source.named:
        return {}
    others = [name for name in source.feature_names if name not in {*names}]
    more = f"; the file also has {show_items(others, 100)}" if others else ""
    raise ValueError(
        f"{source.path}: expected the columns that the model was fitted to, got none named "
        f"{show_items(missing)}{more}; columns (--columns) chooses other columns"
    )


def _identified(source: Source, names: Sequence[str]) -> tuple[str | int, ...]:
    """Names of columns; the place of a feature whose name other columns share."""
    count = Counter(source.names)
    places: dict[str, list[int]] = {}
    for j in source.choice.features:
        places.setdefault(source.names[j], []).append(j)
    return tuple(
        places[name][0] if count[name] > 1 and len(places.get(name, [])) == 1 else name
        for name in names
    )


def column_options(columns: Sequence[str | int], kinds: Sequence[str]) -> dict[str, Any]:
    """Options that choose `columns`, which have the given kinds."""
    coded = tuple(name for name, kind in zip(columns, kinds, strict=True) if kind != "number")
    return {"columns": tuple(columns), "drop": (), "categorical": coded}


def encoder_options(columns: Sequence[str | int], encoder: TableColumns) -> dict[str, Any]:
    """Options that choose the columns of an encoder.

    `columns` are all columns of the fit, or the columns that the encoder uses.
    """
    if len(columns) == len(encoder.names_):  # all columns of the fit
        columns = [columns[j] for j in encoder.used]
    return column_options(columns, [encoder.kinds_[j] for j in encoder.used])


def wrong_width(source: Source, width: int, names: Sequence[str] = ()) -> str:
    """Return the message for files with another number of columns than the fit.

    `names` are the names of the fit's columns, if they are known.
    """
    shown = f" ({show_items(names)})" if len(names) else ""
    return (
        f"{source.path}: expected the {width} columns that the model was fitted to{shown}, got "
        f"{source.n_features}; choose them with columns (--columns) or drop (--drop)"
    )

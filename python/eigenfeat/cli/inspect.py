"""``eigenfeat inspect``: describe a model, moments, a checkpoint or rows."""

from __future__ import annotations

import errno
import json
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.validation import counted, show
from eigenfeat.cli.files import (
    listed,
    naming_files,
    naming_model,
    opened_with_model,
    sample_rows,
    seen_in_fit,
)
from eigenfeat.cli.moments import checkpoint_of
from eigenfeat.cli.output import WIDTH, Output, UsageError, wrapped
from eigenfeat.io.opening import described, format_of, open_rows
from eigenfeat.io.saving import SCHEMA, load
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.report.card import columns_by_kind, kinds_in_words, reasons
from eigenfeat.report.columns import column_importances
from eigenfeat.report.evidence import evidence_of, quietly
from eigenfeat.samples.blocks import joined
from eigenfeat.samples.columns import TableColumns, warn_identifiers
from eigenfeat.samples.targets import task_of

__all__ = ["inspect", "plain", "saved_versions"]

_MAX_ENTRIES = 10  # entries of a list that are printed
_MAX_COLUMNS = 40  # columns of a file of rows that are printed
_MAX_CELLS = 5_000_000  # cells from which the columns of a file are described
_MAX_ROWS = 20_000  # rows by which importances are measured
_FORMAT_OPTIONS = (
    "format",
    "delimiter",
    "header",
    "encoding",
    "decimal",
    "comment",
    "keep_default_na",
)


def inspect(options: SimpleNamespace, output: Output) -> None:
    """Describe a file; for a model and rows also measure importances of columns."""
    path = options.file
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "expected one file, got a folder", str(path))
    summary: dict[str, Any] = {"file": str(path), "bytes": path.stat().st_size}
    if not _is_saved(path) and (options.format is not None or format_of(path) is not None):
        values = {name: getattr(options, name) for name in _FORMAT_OPTIONS}
        given = {name: value for name, value in values.items() if value is not None}
        given["na_values"] = listed(options.na_values)
        summary |= described(path, **given)
        _describe_columns(options, given, summary)
    else:
        with naming_model(path):
            summary |= _saved(load(path), path) | {"versions": saved_versions(path)}
    if options.data and summary["kind"] != "model":
        raise UsageError(f"DATA: expected none with {path}, which is not a model")
    if options.data:
        summary |= _importances(options, output)
    output.result(summary, "\n".join(_lines(summary.copy())))


def _describe_columns(
    options: SimpleNamespace, given: dict[str, Any], summary: dict[str, Any]
) -> None:
    """Add how a fit reads the columns of a file, and their values in the first rows."""
    chosen = {"columns": listed(options.columns) or None, "drop": listed(options.drop)}
    given = given | chosen | {"labels": options.labels, "missing": True, "skip_bad": True}
    rows = open_rows(options.file, options.target, **given)
    if rows.sources[0].sparse:
        return
    source = rows.frames() or rows
    parts, skipped = [], 0
    for block, position in source.blocks():
        parts.append(block)
        skipped = position.skipped
        if position.rows * rows.n_features >= _MAX_CELLS:
            summary["rows_read"] = position.rows + skipped
            break
    else:
        source.check_not_empty(len(parts))
        skipped = source.n_skipped or 0
        summary["rows"] = source.n_rows + skipped
    summary |= {"bad_rows": skipped} if skipped else {}
    block = joined(parts)
    kinds = _column_kinds(block.X, rows.feature_names) if "columns" in summary else {}
    if options.target is not None:
        name = rows.sources[0].target_name
        summary["target"] = {"name": name} | _target(block.y)
        kinds[name] = {"kind": "target"}
    for column in summary.get("columns", []):
        column |= kinds.get(column["name"], {"kind": "not used"} if kinds else {})


def _column_kinds(X: Any, names: list[str]) -> dict[str, dict[str, Any]]:
    """Kind, missing and distinct values, and range of each column, by its name."""
    import pandas as pd

    frame = X if hasattr(X, "iloc") else pd.DataFrame(X, columns=names)
    encoder = TableColumns().fit(frame)
    warn_identifiers(frame)
    found: dict[str, dict[str, Any]] = {}
    for name, kind in zip(encoder.names_, encoder.kinds_, strict=True):
        values = frame[name].dropna()
        about: dict[str, Any] = {"kind": kind if len(values) else "left out"}
        about |= {"missing": len(frame) - len(values), "distinct": int(values.nunique())}
        if len(values) and kind == "number":
            about |= {"min": float(values.min()), "max": float(values.max())}
        elif len(values) and kind == "date":
            about |= {"min": str(values.min()), "max": str(values.max())}
        found[name] = about
    return found


def _target(labels: NDArray[Any]) -> dict[str, Any]:
    """Classes and their numbers of rows, or the range of a target of numbers."""
    task, n_distinct = task_of(labels)
    if task != "classification" and labels.dtype.kind in "iuf":
        return {"distinct": n_distinct, "min": labels.min().item(), "max": labels.max().item()}
    classes, counts = np.unique(labels, return_counts=True)
    pairs = zip(classes.tolist(), counts.tolist(), strict=True)
    return {"classes": [{"label": label, "rows": count} for label, count in pairs]}


def _importances(options: SimpleNamespace, output: Output) -> dict[str, Any]:
    """Permutation importances of the columns of labelled rows."""
    options.model, options.threads = options.file, None
    model, rows = opened_with_model(options, "predict", labelled=True)
    seen_in_fit(model, rows, "importances are too large")
    drawn = sample_rows(options, rows, _MAX_ROWS, output)
    with quietly(), naming_files(rows, str(options.model)):
        evidence = evidence_of(model, drawn.X, drawn.y)
        frame, unit = column_importances(model, evidence.X, evidence.y, evidence.names)
    return {
        "importances_from": f"{counted(len(evidence.y), 'row')}, {unit}",
        "importances": frame.reset_index(names="name").to_dict("records"),
    }


def _is_saved(path: Path) -> bool:
    """Whether `eigenfeat.save` wrote a file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return SCHEMA in archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return False


def _saved(content: Any, path: Path) -> dict[str, Any]:
    """Describe a loaded model, moments or a checkpoint."""
    if isinstance(content, ClassMoments):
        return {"kind": "class moments", **_moments(content)}
    if isinstance(content, dict):
        moments, identity, position = checkpoint_of(content, path)
        state = {"rows": position.rows, "skipped": position.skipped, "of_files": identity["files"]}
        return {"kind": "moments checkpoint", **state, **_moments(moments)}
    return {"kind": "model", **_estimator(content)}


def _moments(moments: ClassMoments) -> dict[str, Any]:
    weights = {label: moments.weight(label) for label in moments.classes_.tolist()}
    names = getattr(moments, "feature_names_in_", None)
    dtype = moments.dtype
    return {
        "features": getattr(moments, "n_features_in_", None),
        **({} if names is None else {"feature_names": names.tolist()}),
        "dtype": "float32 of float32 rows, else float64" if dtype is None else dtype.name,
        "weight": sum(weights.values()),
        "classes": [{"label": label, "weight": weight} for label, weight in weights.items()],
    }


def saved_versions(path: Path) -> dict[str, str]:
    """The versions of the packages that wrote the file of a loaded model."""
    with zipfile.ZipFile(path) as archive:
        schema = archive.read(SCHEMA) if SCHEMA in archive.namelist() else b"{}"
    versions = json.loads(schema).get("_versions")
    return versions if isinstance(versions, dict) else {}


def _estimator(model: Any) -> dict[str, Any]:
    """Class, parameters and public fitted attributes of a model; arrays by their shapes."""
    about: dict[str, Any] = {"estimator": type(model).__name__}
    if hasattr(model, "get_params"):
        about["parameters"] = {
            name: plain(value)
            for name, value in model.get_params().items()
            if not hasattr(value, "get_params")
        }
    if hasattr(model, "columns_"):
        categories = model.columns_.categories_
        about["categories"] = {str(name): [*column.texts] for name, column in categories.items()}
    layout = getattr(model, "file_layout_", None) or {}
    about |= {"rows_of_fit": layout["rows"]} if "rows" in layout else {}
    about |= {"target": layout["target"]} if "target" in layout else {}
    kinds, left_out = columns_by_kind(model)
    about |= {"columns_by_kind": kinds} if hasattr(model, "columns_") else {}
    about |= {"left_out": left_out} if left_out else {}
    if hasattr(model, "views_"):
        views = model.views_
        about["views"] = {view.name: float(view.weight) for view in views if view.weight > 0}
        about["unused_views"] = {view.name: view.note for view in views if not view.weight}
    names = {"n_features_in_": "features", "feature_names_in_": "feature_names"}
    names |= {"classes_": "classes"}
    for name in (*names, *vars(model)):
        value = getattr(model, name, None)
        if name.startswith("_") or not name.endswith("_") or value is None or name == "views_":
            continue
        if name in names:
            about[names[name]] = plain(np.asarray(value).tolist())
        elif isinstance(value, np.ndarray):
            about[name[:-1]] = f"array of shape {value.shape}"
        elif isinstance(value, (bool, int, float, str, np.generic)):
            about[name[:-1]] = plain(value)
        elif isinstance(value, list) and value:
            about[name[:-1]] = len(value)
        elif hasattr(value, "get_params"):
            about[name[:-1]] = type(value).__name__
    return about


def plain(value: Any) -> Any:
    """A parameter as a value of JSON; other objects as text."""
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return value.item() if isinstance(value, np.generic) else show(value)


# ---- as text -------------------------------------------------------------------------------------


def _lines(described: dict[str, Any]) -> list[str]:
    """Lines of text that fit on a screen: long lists are shortened."""
    lines = [f"{described.pop('file')}: {described.pop('bytes'):,} bytes"]
    for name, value in described.items():
        title = name.removeprefix("n_").replace("_", " ")
        entries: list[str] = []
        most = _MAX_ENTRIES
        if name == "columns":
            entries, most = [*map(_column_in_words, value)], _MAX_COLUMNS
        elif name == "categories":
            title = "columns of categories"
            entries = [f"{key}: {len(all_)} ({_listed(all_, 50)})" for key, all_ in value.items()]
        elif name == "importances":
            entries = [
                f"{c['importance']:+.4g} \u00b1 {c['deviation']:.2g}  {c['name']}" for c in value
            ]
        elif name == "columns_by_kind":
            lines.append(f"  {title}: {kinds_in_words(value)}")
        elif name == "views":
            entries = [", ".join(f"{key} {weight:.2f}" for key, weight in value.items())]
        elif name == "unused_views":
            entries = wrapped(reasons(value))
        elif isinstance(value, str) and value.startswith("array of shape"):
            continue  # only in JSON
        elif name == "rows_read":
            lines.append(f"  {title}: {value:,}, the first rows of the file")
        elif name == "bad_rows":
            lines.append(f"  {title}: {value:,}, at which a fit stops without --skip-bad")
        elif name == "target" and isinstance(value, dict):
            lines.append(f"  {title}: {_target_in_words(value)}")
        elif name == "classes" and value and isinstance(value[0], dict):
            title = f"{len(value)} classes"
            entries = [f"{c['label']!r}: weight {c['weight']:,.12g}" for c in value]
        elif isinstance(value, dict):
            entries = wrapped(", ".join(f"{key}={entry}" for key, entry in value.items()))
        elif isinstance(value, list):
            title = f"{len(value)} classes" if name == "classes" else title
            lines.append(f"  {title}: {_listed(value, 3 * WIDTH)}")
        elif value is not None:
            lines.append(f"  {title}: {value:,}" if type(value) is int else f"  {title}: {value}")
        if entries:
            shown = [_shortened(entry) for entry in entries[:most]]
            if len(entries) > most:
                shown.append(f"... and {len(entries) - most} more")
            lines += [f"  {title}:", *(f"    {entry}" for entry in shown)]
    return lines


def _column_in_words(column: dict[str, Any]) -> str:
    """A column of a file as "age: number, 0.5 to 80, 88 distinct values, 177 missing"."""
    kind, name = column.get("kind", column["type"]), column["name"] or "(no name)"
    distinct = counted(column.get("distinct", 0), "distinct value")
    parts = {
        "number": ["number", _range(column), distinct],
        "numeric text": ["text read as numbers", distinct],
        "date": ["date", _range(column), distinct],
        "category": [f"category, {counted(column.get('distinct', 0), 'level')}"],
        "left out": ["left out", f"text of {distinct}" if column.get("distinct") else "no value"],
    }.get(kind, [kind])
    parts += [f"{column['missing']:,} missing"] if column.get("missing") else []
    return f"{name}: {', '.join(parts)}"


def _range(values: dict[str, Any]) -> str:
    """Bounds of numbers or dates; whole numbers with all their digits."""
    bounds = [values.get("min", ""), values.get("max", "")]
    return " to ".join(
        f"{bound:.6g}"
        if isinstance(bound, float) and not (bound.is_integer() and abs(bound) < 1e15)
        else str(bound).removesuffix(".0")
        for bound in bounds
    )


def _target_in_words(target: dict[str, Any]) -> str:
    """The target of a file as "survived, 2 classes: 0 (549), 1 (342)"."""
    if "classes" not in target:
        distinct = counted(target["distinct"], "distinct number")
        return f"{target['name']}, {_range(target)}, {distinct}"
    classes, text = target["classes"], ""
    for each in sorted(classes, key=lambda each: -each["rows"]):
        more = f"{', ' if text else ''}{each['label']!r} ({each['rows']:,})"
        if len(text) + len(more) > 3 * WIDTH:
            text += ", ..."
            break
        text += more
    return f"{target['name']}, {counted(len(classes), 'class')}: {text}"


def _shortened(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."


def _listed(values: list[Any], width: int) -> str:
    """As many of the values as fit into `width` characters, separated by commas."""
    text = ""
    for value in values:
        more = f"{', ' if text else ''}{'missing' if value is None else repr(value)}"
        if len(text) + len(more) > width:
            return f"{text}, ..." if text else f"{more[: width - 3]}..."
        text += more
    return text

"""``eigenfeat inspect``: describe a model, moments, a checkpoint or rows."""

from __future__ import annotations

import json
import textwrap
import zipfile
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from eigenfeat._base.saved_files import META, FileFormatError, read_arrays
from eigenfeat._base.validation import show
from eigenfeat.cli.files import listed
from eigenfeat.cli.moments import KIND, read_checkpoint
from eigenfeat.cli.output import Output
from eigenfeat.io.opening import described, format_of
from eigenfeat.io.saving import SCHEMA, load
from eigenfeat.moments.class_moments import ClassMoments

__all__ = ["inspect", "plain"]

_MOST = 12  # columns, classes or lines of parameters that are listed
_WIDTH = 92  # characters of a line of parameters


def inspect(options: SimpleNamespace) -> int:
    """Print what is in a file."""
    given = vars(options).copy()
    path, as_json = given.pop("file"), given.pop("json")
    if path.is_dir():
        raise IsADirectoryError(21, "expected one file, got a folder of them", str(path))
    summary: dict[str, Any] = {"file": str(path), "bytes": path.stat().st_size}
    members = _members(path)
    if options.format is not None or not (members & {META, SCHEMA} or format_of(path) is None):
        given["na_values"] = tuple(listed(given["na_values"]))
        summary |= described(path, **given)
    elif META in members:
        summary |= _moments(path)
    else:
        summary |= {"kind": "model", **_estimator(load(path)), **_versions(path)}
    Output("inspect", as_json, None).result(summary, "\n".join(_lines(summary.copy())))
    return 0


def _members(path: Path) -> set[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return {*archive.namelist()}
    except (zipfile.BadZipFile, OSError):
        return set()


def _moments(path: Path) -> dict[str, Any]:
    """What is in a file of moments or a checkpoint, all of which is read."""
    with read_arrays(path, None) as file:
        kind, about = file.kind, file.meta
        file.skip()
    state: dict[str, Any] = {}
    if kind == KIND:
        moments, progress = read_checkpoint(path)
        about = about["moments"]
        try:
            position = progress["position"]
            files = [entry["path"] for entry in progress["identity"]["files"]]
            state = {"rows": position["rows"], "skipped": position["skipped"], "of_files": files}
        except (LookupError, TypeError):
            raise FileFormatError(f"{path}: cannot be loaded: it has no position") from None
    else:
        moments = ClassMoments.load(path)
    weights = {label: moments.weight(label) for label in moments.classes_.tolist()}
    return {
        "kind": kind,
        **state,
        "features": about["n_features"],
        **({"feature_names": about["feature_names"]} if "feature_names" in about else {}),
        "dtype": about["dtype"] or "float32 of float32 rows, else float64",
        "weight": sum(weights.values()),
        "classes": [{"label": label, "weight": weight} for label, weight in weights.items()],
    }


def _versions(path: Path) -> dict[str, Any]:
    """The versions that wrote a model, which has been loaded."""
    with zipfile.ZipFile(path) as archive:
        schema = archive.read(SCHEMA) if SCHEMA in archive.namelist() else b"{}"
    versions = json.loads(schema).get("_versions")
    return {"versions": versions} if isinstance(versions, dict) else {}


def _estimator(model: Any) -> dict[str, Any]:
    """Class and parameters of a model, and its public fitted attributes; of arrays the shape."""
    about: dict[str, Any] = {"estimator": type(model).__name__}
    if hasattr(model, "get_params"):
        parts = {k: v for k, v in model.get_params().items() if not hasattr(v, "get_params")}
        about["parameters"] = {name: plain(value) for name, value in parts.items()}
    if hasattr(model, "columns_"):
        about["categories"] = {
            str(name): [str(one) for one in categories.texts]
            for name, categories in model.columns_.categories_.items()
        }
    names = {"n_features_in_": "features", "feature_names_in_": "feature_names"}
    names |= {"classes_": "classes"}
    for name in (*names, *vars(model)):
        value = getattr(model, name, None)
        if name.startswith("_") or not name.endswith("_") or value is None:
            continue
        if name in names:
            about[names[name]] = plain(np.asarray(value).tolist())
        elif isinstance(value, np.ndarray):
            about[name[:-1]] = f"array of shape {value.shape}"
        elif isinstance(value, (bool, int, float, str, np.generic)):
            about[name[:-1]] = plain(value)
        elif isinstance(value, list):
            about[name[:-1]] = len(value)
        elif hasattr(value, "get_params"):
            about[name[:-1]] = type(value).__name__
    return about


def plain(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return value.item() if isinstance(value, np.generic) else show(value)


# ---- as text -------------------------------------------------------------------------------------


def _lines(described: dict[str, Any]) -> list[str]:
    """Text that fits on a screen: long lists are cut short."""
    lines = [f"{described.pop('file')}: {described.pop('bytes'):,} bytes"]
    for name, value in described.items():
        title = name.removeprefix("n_").replace("_", " ")
        entries: list[str] = []
        if name == "columns":
            entries = [f"{c['name']}: {c['type']}" for c in value]
        elif name == "categories":
            title = "columns of categories"
            entries = [f"{key}: {len(all_)} ({_listed(all_, 50)})" for key, all_ in value.items()]
        elif name == "classes" and value and isinstance(value[0], dict):
            title = f"{len(value)} classes"
            entries = [f"{c['label']!r}: weight {c['weight']:,.12g}" for c in value]
        elif isinstance(value, dict):
            text = ", ".join(f"{key}={entry}" for key, entry in value.items())
            entries = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
        elif isinstance(value, list):
            title = f"{len(value)} classes" if name == "classes" else title
            lines.append(f"  {title}: {_listed(value, 3 * _WIDTH)}")
        elif value is not None:
            lines.append(f"  {title}: {value:,}" if type(value) is int else f"  {title}: {value}")
        if entries:
            more = [f"... and {len(entries) - _MOST} more"] if len(entries) > _MOST else []
            shown = (one if len(one) <= _WIDTH else f"{one[: _WIDTH - 3]}..." for one in entries)
            lines += [f"  {title}:", *(f"    {one}" for one in [*islice(shown, _MOST), *more])]
    return lines


def _listed(values: list[Any], width: int) -> str:
    """Values separated by commas, the last ones left out beyond `width` characters."""
    text = ", ".join(map(repr, values[:width]))
    return text if len(text) <= width else f"{text[: width - 3]}..."

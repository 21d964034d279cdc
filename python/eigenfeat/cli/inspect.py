"""``eigenfeat inspect``: what is in a file, be it a model, moments, a checkpoint or rows."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from eigenfeat._base.saved_files import META, FileFormatError, read_arrays
from eigenfeat._base.validation import show
from eigenfeat.cli.moments import KIND, read_checkpoint
from eigenfeat.cli.output import Output
from eigenfeat.models.saving import SCHEMA, load
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.tables import described

__all__ = ["inspect", "plain"]

# What fits have chosen or measured, under the name with an underscore.
CHOSEN = (
    *("n_components", "gamma", "n_neighbors", "rule", "n_channels", "n_timepoints"),
    *(
        "sigma2",
        "relative_shift",
        "reliability",
        "held_out_agreement",
        "held_out_agreement_bound",
        "best_candidate",
    ),
)
_OWN = ("file", "json")  # options; the others are about formats
_MOST = 20  # columns, classes or parameters that are listed


def inspect(options: SimpleNamespace) -> int:
    """Print what is in a file."""
    path = Path(options.file)
    if path.is_dir():
        raise IsADirectoryError(21, "expected one file, got a folder of them", str(path))
    summary: dict[str, Any] = {"file": str(path), "bytes": path.stat().st_size}
    if path.is_file() and _is_ours(path, options.format):
        summary |= _saved(path)
    else:
        given = {name: value for name, value in vars(options).items() if name not in _OWN}
        summary |= described(path, **given)
    output = Output("inspect", options.json, None)
    output.result(summary, "\n".join(_lines(summary)))
    return 0


def _is_ours(path: Path, format: str | None) -> bool:
    from eigenfeat.tables.opening import format_of

    if format is not None:
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return bool({META, SCHEMA} & set(archive.namelist()))
    except (zipfile.BadZipFile, OSError):
        return format_of(path) is None


def _saved(path: Path) -> dict[str, Any]:
    """What is in a file of a model, of moments or of a checkpoint, all of which is read."""
    try:
        with zipfile.ZipFile(path) as archive:
            is_model = META not in archive.namelist()
    except zipfile.BadZipFile:
        is_model = True
    if is_model:
        model = load(path)
        return {"kind": "model"} | _estimator(model) | _versions(path)
    with read_arrays(path, None) as file:
        kind, about = file.kind, file.meta
        file.skip()
    if kind == KIND:
        moments, progress = read_checkpoint(path)
        try:
            position = progress["position"]
            files = [entry["path"] for entry in progress["identity"]["files"]]
            state = {"rows": position["rows"], "skipped": position["skipped"], "of_files": files}
        except (LookupError, TypeError):
            raise FileFormatError(f"{path}: cannot be loaded: it has no position") from None
        return {"kind": kind} | state | _moments(moments, about["moments"])
    return {"kind": kind} | _moments(ClassMoments.load(path), about)


def _versions(path: Path) -> dict[str, Any]:
    """The versions that wrote a model, which has been loaded."""
    with zipfile.ZipFile(path) as archive:
        schema = archive.read(SCHEMA) if SCHEMA in archive.namelist() else b"{}"
    versions = json.loads(schema).get("_versions")
    return {"versions": versions} if isinstance(versions, dict) else {}


def _moments(moments: ClassMoments, meta: dict[str, Any]) -> dict[str, Any]:
    weights = [(label, moments.weight(label)) for label in moments.classes_.tolist()]
    return {
        "features": meta["n_features"],
        **({"feature_names": meta["feature_names"]} if "feature_names" in meta else {}),
        "dtype": meta["dtype"] or "float32 of float32 rows, else float64",
        "weight": sum(weight for _, weight in weights),
        "classes": [{"label": label, "weight": weight} for label, weight in weights],
    }


def _estimator(model: Any) -> dict[str, Any]:
    described: dict[str, Any] = {"estimator": type(model).__name__}
    if hasattr(model, "get_params"):
        parts = {k: v for k, v in model.get_params().items() if not hasattr(v, "get_params")}
        described["parameters"] = {name: plain(value) for name, value in parts.items()}
    if hasattr(model, "n_features_in_"):
        described["features"] = int(model.n_features_in_)
    if hasattr(model, "feature_names_in_"):
        described["feature_names"] = [str(name) for name in model.feature_names_in_]
    if hasattr(model, "columns_"):
        encoders = model.columns_.encoders_
        described["categories"] = {
            str(name): [str(one) for one in encoder.categories_[0]]
            for name, encoder in encoders.items()
        }
    if hasattr(model, "classes_"):
        described["classes"] = np.asarray(model.classes_).tolist()
    if hasattr(model, "layers_"):
        described["layers"] = [
            {"directions": list(layer.directions.shape), "expansion": layer.expansion}
            for layer in model.layers_
        ]
    elif hasattr(model, "directions_"):
        described["directions"] = list(np.shape(model.directions_))
    chosen = {name: getattr(model, f"{name}_", None) for name in CHOSEN}
    described |= {name: plain(value) for name, value in chosen.items() if value is not None}
    if hasattr(model, "extractor_"):
        described["extractor"] = type(model.extractor_).__name__
    return described


def plain(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return value.item() if isinstance(value, np.generic) else show(value)


# ---- as text -------------------------------------------------------------------------------------


def _lines(described: dict[str, Any]) -> list[str]:
    lines = [f"{described['file']}: {described['bytes']:,} bytes"]
    for name, value in described.items():
        if name in ("file", "bytes") or value is None:
            continue
        title = name.removeprefix("n_").replace("_", " ")
        if name == "columns":
            lines += _listed(title, [f"{c['name']}: {c['type']}" for c in value])
        elif name == "classes" and value and isinstance(value[0], dict):
            entries = [f"{c['label']!r}: weight {c['weight']:,.12g}" for c in value]
            lines += _listed(f"{len(value)} classes", entries)
        elif name == "classes":
            lines.append(f"  {len(value)} classes: {show(value, 300)[1:-1]}")
        elif isinstance(value, dict):
            lines += _listed(title, [f"{key}: {entry}" for key, entry in value.items()], 100)
        elif isinstance(value, list):
            lines.append(f"  {title}: {show(value, 300)[1:-1]}")
        else:
            number = type(value) in (int, float)
            lines.append(f"  {title}: {f'{value:,.12g}' if number else value}")
    return lines


def _listed(title: str, entries: list[str], most: int = _MOST) -> list[str]:
    shown = entries[:most]
    more = [f"    ... and {len(entries) - most} more"] if len(entries) > most else []
    return [f"  {title}:", *(f"    {entry}" for entry in shown), *more]

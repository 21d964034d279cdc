"""Inputs and outputs of commands: files of rows, standard input, models, and written files."""

from __future__ import annotations

import codecs
import errno
import os
import shutil
import sys
import traceback
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import base

from eigenfeat._base.file_errors import naming
from eigenfeat._base.validation import show
from eigenfeat.cli.output import Output, UsageError, show_warning
from eigenfeat.expansion.features import take_rows
from eigenfeat.io.errors import OptionError, damage_named, open_bytes
from eigenfeat.io.opening import format_of, listed_files, open_rows
from eigenfeat.io.rows import CSV_DEFAULTS, FileRows
from eigenfeat.io.saving import load
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.samples.blocks import stacked
from eigenfeat.samples.labelled import row_weights

__all__ = [
    "STANDARD",
    "check_output",
    "listed",
    "loaded_moments",
    "naming_files",
    "naming_model",
    "opened_with_model",
    "predicts_numbers",
    "remember_files",
    "rows_of",
    "sample_rows",
    "seen_in_fit",
    "weights_of",
]

STANDARD = "-"


@contextmanager
def standard_input(options: SimpleNamespace, *, reads: bool) -> Iterator[None]:
    """Copy standard input to a temporary file if it is the data, since data are read twice."""
    data = getattr(options, "data", ())
    if STANDARD not in data:
        yield
        return
    if not reads:
        raise UsageError("DATA: expected names of files, got -")
    if len(data) > 1:
        raise UsageError(f"DATA: expected - alone, got {len(data)} names")
    if options.format is None:
        raise UsageError("--format: expected the format of standard input, got none")
    with TemporaryDirectory() as folder:
        ending = {"svmlight": "svm"}.get(options.format, options.format)
        path = Path(folder) / f"standard-input.{ending}"
        with naming(str(path)), open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, 2**20)
        options.data, options.named = [str(path)], ["standard input"]
        yield


def listed(texts: Iterable[str]) -> list[str]:
    """The entries of A,B,... in all occurrences of an option."""
    entries = [entry.strip() for text in texts for entry in text.split(",")]
    return [entry for entry in entries if entry]


def rows_of(
    options: SimpleNamespace, *, labelled: bool = True, target: str | int | None = None
) -> FileRows:
    """Open the rows that the options name; `labelled` rows must have labels.

    `target` is the column of labels if the options name none.
    """
    names = signature(open_rows).parameters
    given = {n: value for n, value in vars(options).items() if n in names and value is not None}
    for name in ("columns", "drop", "categorical", "na_values"):
        if name in given:
            given[name] = listed(given[name])
    given["columns"] = given["columns"] if options.columns else None
    if not labelled:
        given |= {"skip_bad": False, "mark_bad": options.skip_bad, "labels": "none"}
        return open_rows(options.data, **given)
    no_target = UsageError("--target: expected the column of labels, got none")
    if options.target is None:
        path = listed_files(options.data, options.format)[0][0]
        if (options.format or format_of(path)) not in ("svmlight", None) and path.exists():
            if target is None:
                raise no_target  # otherwise the column of labels would become a feature
            given["target"] = options.target = target
    rows = open_rows(options.data, **given)
    if rows.sources[0].label_kind is None:
        raise no_target
    return rows


def loaded_moments(path: str | Path) -> ClassMoments:
    """The moments in a file; ValueError for other files."""
    moments = load(path)
    if not isinstance(moments, ClassMoments):
        raise ValueError(f"{path}: expected class moments, got {type(moments).__name__}")
    return moments


def opened_with_model(
    options: SimpleNamespace, method: str | None = None, *, labelled: bool = False
) -> tuple[Any, FileRows]:
    """Load the model, which must have `method`, and open the rows with the columns of its fit."""
    model = load(options.model)
    if method is None and not hasattr(model, "get_params"):
        raise ValueError(f"{options.model}: expected a model, got {type(model).__name__}")
    for part in (model, getattr(model, "logit_", None)):
        if options.threads is not None and part is not None and hasattr(part, "n_threads"):
            part.n_threads = options.threads
    if method is not None and not callable(getattr(model, method, None)):
        hint = {
            "predict_proba": "a model with probabilities",
            "transform": "a model of features (fit --features)",
            "predict_early": "an early classifier (fit --model reliable)",
            "predict_interval": "a regression of tables (fit --task regression)",
        }.get(method, "a classifier or a regressor")
        raise ValueError(f"{options.model}: expected {hint}, got {type(model).__name__}")
    if labelled and predicts_numbers(model):
        options.labels = "float"
    named, layout = getattr(options, "target", None), getattr(model, "file_layout_", None) or {}
    recalled = {n: layout[n] for n in CSV_DEFAULTS if n in layout and getattr(options, n) is None}
    if "encoding" in recalled and _is_utf8(listed_files(options.data, options.format)[0][0]):
        del recalled["encoding"]  # another encoding, such as latin-1, might not raise an error
    vars(options).update(recalled)
    try:
        rows = rows_of(options, labelled=labelled, target=layout.get("target"))
        return model, rows.prepared_for(model, fitted=True)
    except UsageError:
        raise
    except OptionError as error:
        text = f"--{error.option.replace('_', '-')}: {error.text}"
        if named is None and error.option == "target":
            text += f", the target of {options.model}"
        raise UsageError(text + _recalled(recalled, options.model)) from None
    except ValueError as error:
        raise ValueError(f"{error}{_recalled(recalled, options.model)}") from None


def _is_utf8(path: Path) -> bool:
    """Whether the beginning of a file has characters beyond ASCII, all of them in UTF-8."""
    with damage_named(path), open_bytes(path) as file:
        start = file.read(2**20)
    try:
        return not codecs.getincrementaldecoder("utf-8")().decode(start).isascii()
    except UnicodeDecodeError:
        return False


def _recalled(options: Mapping[str, Any], model: str) -> str:
    """End of an error: the options that a model remembers from its fit."""
    texts = [
        f"--{'' if value else 'no-'}{name}" if name == "header" else f"--{name} {show(value)}"
        for name, value in options.items()
    ]
    return f"; read with {' '.join(texts)}, as in the fit of {model}" if texts else ""


def weights_of(options: SimpleNamespace) -> npt.NDArray[np.float64] | None:
    """Weights of all rows, from the column that --weight names; None without it."""
    if getattr(options, "weight", None) is None:
        return None
    if options.skip_bad:
        raise UsageError("--weight: expected none with --skip-bad")
    if options.weight == options.target:
        raise UsageError(f"--weight: expected another column than the target, got {options.weight}")
    only = {"columns": (options.weight,), "drop": (), "categorical": (), "target": None}
    try:
        rows = rows_of(SimpleNamespace(**vars(options) | only), labelled=False)
        weight = np.concatenate([np.zeros(0), *(np.asarray(block.X)[:, 0] for block in rows)])
    except OptionError as error:
        raise UsageError(f"--weight: {error.text}") from None
    except ValueError as error:  # the advice to leave the column or its rows out does not apply
        raise ValueError(str(error).partition("; leave it out")[0]) from None
    try:
        return row_weights(weight, len(weight))
    except ValueError as error:
        text = str(error).removeprefix("sample_weight: ")
        raise ValueError(f"{rows.sources[0].path}: column {options.weight!r}: {text}") from None


@dataclass(frozen=True, eq=False)
class RowSample:
    """All rows, or rows drawn at random, in memory: a data frame if their columns have names."""

    X: Any
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64] | None
    n: int  # number of all rows


def sample_rows(
    options: SimpleNamespace, rows: FileRows, max_rows: int | None, output: Output
) -> RowSample:
    """Read all rows, or `max_rows` drawn at random in one pass, in their order."""
    weight, rng, n = weights_of(options), np.random.default_rng(0), 0
    source = rows.frames(missing=rows.options.missing) or rows
    parts: list[Any] = []
    with output.rows("reading") as advance:
        for block, position in source.blocks():
            index = np.arange(n, n + len(block))
            parts.append((block.X.copy(), block.y.copy(), index, rng.random(len(block))))
            n += len(block)
            if max_rows is not None and sum(len(part[2]) for part in parts) > 2 * max_rows:
                parts = [_drawn(parts, max_rows)]
            advance(len(block), position.fraction)
    rows.n_skipped = source.n_skipped
    source.check_not_empty(n)
    X, y, index, _ = _drawn(parts, n if max_rows is None else max_rows)
    return RowSample(X, y, None if weight is None else weight[index], n)


def _drawn(parts: list[Any], count: int) -> tuple[Any, Any, Any, Any]:
    """Rows of the `count` smallest random keys, in their order: samples, labels, numbers, keys."""
    matrices, labels, numbers, keys_ = zip(*parts, strict=True)
    X = stacked(matrices)
    y, index, keys = map(np.concatenate, (labels, numbers, keys_))
    if len(keys) <= count:
        return X, y, index, keys
    drawn = np.sort(np.argpartition(keys, count)[:count])
    return take_rows(X, drawn), y[drawn], index[drawn], keys[drawn]


@contextmanager
def naming_files(rows: FileRows, model: str = "") -> Iterator[None]:
    """Name the file in a ValueError about argument X, y or model; `model` is the model's file."""
    source = rows.sources[0]
    places = {"X": source.path, "y": f"{source.path}: column {source.target_name!r}"}
    try:
        yield
    except ValueError as error:
        name, _, text = str(error).partition(": ")
        place = model if name == "model" else places.get(name)
        if not place:
            raise
        raise ValueError(f"{place}: {text}") from None


@contextmanager
def naming_model(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Raise ValueError that names a model's file for errors that its attributes cause.

    The attributes of a loaded model may have other types than those of a fit. If `path` is None,
    errors are raised unchanged.
    """
    try:
        yield
    except (AttributeError, LookupError, TypeError) as error:
        if path is None or isinstance(error, ValueError):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {show(str(error), 200)[1:-1]}"
        raise ValueError(
            f"{path}: expected a model whose attributes fit each other, got {what} "
            f"({Path(place.filename).name}, line {place.lineno})"
        ) from error


def remember_files(model: Any, rows: FileRows) -> None:
    """Keep the number of rows, and the sizes and checksums of the files, in a fitted model."""
    layout = getattr(model, "file_layout_", None) or {}
    files = [[size, _checksum(path)] for path, size in _sizes(rows)]
    model.file_layout_ = layout | {"files": files, "rows": rows.n_rows}


def seen_in_fit(model: Any, rows: FileRows, effect: str = "") -> bool | None:
    """Whether a file was in the fit of a model; None if the model was not fitted to files.

    With `effect`, the effect on the measures, a warning names the file.
    """
    known = (getattr(model, "file_layout_", None) or {}).get("files")
    if known is None:
        return None
    sizes = {size for size, _ in known}
    for path, size in _sizes(rows):
        if size in sizes and [size, _checksum(path)] in known:
            if effect:
                show_warning(f"{path}: the fit has read this file: {effect}")
            return True
    return False


def _sizes(rows: FileRows) -> list[tuple[Path, int]]:
    files = [file for source in rows.sources for file in source.files()]
    return [(file, file.stat().st_size) for file in files]


def _checksum(path: Path) -> int:
    checksum = 0
    with open(path, "rb") as file:
        while part := file.read(2**22):
            checksum = zlib.crc32(part, checksum)
    return checksum


def predicts_numbers(model: Any) -> bool:
    """Whether a loaded object is a regressor; False for objects that are not estimators."""
    return hasattr(model, "__sklearn_tags__") and base.is_regressor(model)


def check_output(path: Path, *inputs: FileRows | str | os.PathLike[str]) -> None:
    """Raise an error for an output that is an input or a folder, or whose folder is missing."""
    if str(path) == STANDARD:
        raise UsageError("--output: expected the name of a file, got -")
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a directory", str(path))
    others: list[str | os.PathLike[str]] = []
    for item in inputs:
        if isinstance(item, FileRows):
            others += [file for source in item.sources for file in source.files()]
        else:
            others.append(item)
    for other in others if path.is_file() else ():
        if os.path.exists(other) and os.path.samefile(path, other):
            raise UsageError(f"--output: expected another file than the input {other}")

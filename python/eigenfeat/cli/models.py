"""``eigenfeat fit``, ``predict`` and ``transform``: estimators on files of rows."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.validation import show
from eigenfeat.cli.kinds import unfitted
from eigenfeat.cli.options import (
    STANDARD,
    check_output,
    check_some,
    files_of,
    open_data,
    open_labelled,
)
from eigenfeat.cli.output import Output, UsageError
from eigenfeat.models.saving import load, save
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.rows.blocks import Block
from eigenfeat.rows.estimator import keep_columns
from eigenfeat.rows.out_of_core import without_names
from eigenfeat.tables import FileRows, open_rows
from eigenfeat.tables.rows import finite_rows
from eigenfeat.tables.writers import SUFFIXES, open_writer

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["fit", "fit_whole", "gathered", "opened", "predict", "transform"]


# ---- fit -----------------------------------------------------------------------------------------


def fit(options: SimpleNamespace) -> int:
    """Fit a classifier, or directions, and save it."""
    output = Output("fit", options.json, options.progress)
    if options.model_kind != "gem":
        for flag in ("features", "moments", "spool"):
            if getattr(options, flag):
                raise UsageError(f"--{flag}: expected none with --model {options.model_kind}")
    model = unfitted(options, features=bool(options.features or options.moments))
    started = time.perf_counter()
    if options.moments is not None:
        return _fit_moments(options, model, output)
    if not options.data:
        raise UsageError("expected files of rows, or --moments, got neither")
    rows = open_labelled(options)
    check_output(options.output, files_of(rows))
    rows = rows.prepared_for(model, fitted=False)
    with ExitStack() as stack:
        whole = gathered(rows, options.memory * 1e9, output)
        if whole is not None:
            storage = "in memory"
            fit_whole(model, rows, whole)
            keep_columns(model, rows, model.n_features_in_)
        elif options.model_kind != "gem":
            raise ValueError(
                f"--memory: expected rows that fit into it with --model {options.model_kind}, got "
                f"more than {options.memory:g} GB"
            )
        else:
            if (n_clusters := getattr(model, "n_clusters", 1)) != 1:
                raise UsageError(
                    f"--n-clusters: expected 1 with more rows than --memory, got {n_clusters}"
                )
            storage = "block by block"
            output.say("more rows than --memory: fitting block by block")
            copied = _spooled(rows, options, stack, output)
            copied.memory = 0.0
            model.fit(copied)
            keep_columns(model, rows, rows.n_features)
    save(model, options.output)
    _report_fit(
        options,
        model,
        output,
        {"rows": rows.n_rows, "in_memory": whole is not None, "skipped": rows.n_skipped},
        storage,
        started,
        None if whole is None else whole.y,
    )
    return 0


def _fit_moments(options: SimpleNamespace, model: Any, output: Output) -> int:
    if options.data:
        raise UsageError(f"--moments: expected no files of rows beside it, got {options.data[0]}")
    check_output(options.output, [options.moments])
    started = time.perf_counter()
    moments = ClassMoments.load(options.moments)
    model.fit_moments(moments)
    save(model, options.output)
    weight = sum(moments.weight(c) for c in moments.classes_)
    _report_fit(options, model, output, {"weight": weight}, "from moments", started)
    return 0


def fit_whole(model: Any, rows: FileRows, whole: Block) -> None:
    """Fit a model to rows that have been read."""
    if rows.encoder is not None:
        model.fit(rows)  # which have been gathered
    else:
        model.fit(whole.X, whole.y)


def gathered(rows: FileRows, limit: float, output: Output) -> Block | None:
    """All rows as one block; None if they take more than `limit` bytes."""
    with output.rows("reading") as advance:
        gathered = rows.gathered(limit, advance)
        if gathered is None:
            advance.cancel()
            return None
    check_some(len(gathered), rows)
    return gathered


def _spooled(
    rows: FileRows, options: SimpleNamespace, stack: ExitStack, output: Output
) -> FileRows:
    """The same rows in a temporary .npy file, if that was asked for."""
    if options.spool is None:
        return rows
    if rows.sources[0].sparse:
        raise UsageError("--spool: expected none with svmlight files")
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.spool)))
    names = [folder / "X.npy", folder / "y.npy"]
    labels: list[npt.NDArray[Any]] = []
    with open_writer(names[0], rows.feature_names) as write, output.rows("copying") as advance:
        for block, position in rows.blocks():
            write(block.X)
            labels.append(block.y)
            advance(len(block), position.fraction)
    np.save(names[1], np.concatenate(labels))
    return open_rows(names[0], names[1], block_rows=rows.block_rows)


def _report_fit(
    options: SimpleNamespace,
    model: Any,
    output: Output,
    result: dict[str, Any],
    storage: str,
    started: float,
    y: npt.NDArray[Any] | None = None,
) -> None:
    seconds = time.perf_counter() - started
    known = getattr(model, "classes_", None)  # which a shift does not have
    classes = (np.unique(np.asarray(y)) if known is None else known).tolist()
    result = {
        "output": str(options.output),
        "estimator": type(model).__name__,
        **result,
        "features": int(model.n_features_in_),
        "classes": classes,
        "seconds": seconds,
    }
    amount = f"{result['rows']:,} rows" if "rows" in result else f"weight {result['weight']:,.12g}"
    amount += f" ({result['skipped']:,} bad rows left out)" if result.get("skipped") else ""
    text = (
        f"{options.output}: {type(model).__name__}, {amount} {storage}, "
        f"{result['features']} features, {len(classes)} classes ({show(classes, 200)[1:-1]}); "
        f"{seconds:.1f} s"
    )
    output.result(result, text)


# ---- predict and transform -----------------------------------------------------------------------


def predict(options: SimpleNamespace) -> int:
    """Write the predictions of every row."""
    output = Output("predict", options.json, options.progress)
    _check_output(options.output)
    if options.early:
        return _predict_early(options, output)
    model, rows = opened(options, "predict_proba" if options.proba else "predict")
    model = without_names(model)
    classes = np.asarray(getattr(model, "classes_", []))
    only_one = options.output.suffix.lower() == ".npy"
    if options.skip_bad and only_one and not options.proba and classes.dtype.kind in "biu":
        raise UsageError(
            "--skip-bad: expected --proba or an output in .csv or .parquet, got .npy, in which "
            f"labels that are {classes.dtype} cannot be missing"
        )
    names = ["prediction"] * (not options.proba or not only_one)
    names += [f"p_{label}" for label in classes.tolist()] if options.proba else []

    def columns_of(X: Any) -> list[npt.NDArray[Any]]:
        if not options.proba:
            return [_plain(model.predict(X), classes)]
        chances = np.asarray(model.predict_proba(X))
        return (
            [chances] if only_one else [_plain(classes[chances.argmax(axis=1)], classes), chances]
        )

    return _write(options, rows, names, columns_of, output, {"classes": classes.tolist()})


def _predict_early(options: SimpleNamespace, output: Output) -> int:
    """Write the labels of early decisions, the samples that they took, and how sure they are."""
    if options.proba:
        raise UsageError("--proba: expected none with --early")
    if options.output.suffix.lower() == ".npy":
        raise UsageError("--output: expected .csv or .parquet with --early, got .npy")
    model, rows = opened(options, "predict_early")
    model = without_names(model)
    classes = np.asarray(model.classes_)

    def columns_of(X: Any) -> list[npt.NDArray[Any]]:
        decisions = model.predict_early(X)
        columns = [_plain(decisions.label, classes), np.asarray(decisions.time, dtype=float)]
        if sure:
            columns.append(np.asarray(decisions.reliability, dtype=float))
        return columns

    sure = hasattr(getattr(model, "best_estimator_", model), "reliabilities")
    names = ["prediction", "time", *(["reliability"] if sure else [])]
    return _write(options, rows, names, columns_of, output, {"classes": classes.tolist()})


def transform(options: SimpleNamespace) -> int:
    """Write the features of every row."""
    output = Output("transform", options.json, options.progress)
    _check_output(options.output)
    model, rows = opened(options, "transform")
    try:
        names = [str(name) for name in model.get_feature_names_out()]
    except (AttributeError, ValueError):
        names = []
    model = without_names(model)
    if not names:
        probe = model.transform(np.zeros((1, model.n_features_in_)))
        names = [f"feature{j}" for j in range(probe.shape[1])]

    def columns_of(X: Any) -> list[npt.NDArray[Any]]:
        features = model.transform(X)
        return [features.toarray() if hasattr(features, "toarray") else np.asarray(features)]

    return _write(options, rows, names, columns_of, output, {"columns": len(names)})


def opened(
    options: SimpleNamespace, method: str | None, *, labelled: bool = False
) -> tuple[BaseEstimator, FileRows]:
    """The model, and the rows with its columns, and their labels if these are wanted."""
    model = load(options.model)
    for part in (model, getattr(model, "logit_", None)):
        if options.threads is not None and part is not None and hasattr(part, "n_threads"):
            part.n_threads = options.threads
    if method is not None and not callable(getattr(model, method, None)):
        hint = {
            "predict_proba": "one that gives probabilities",
            "transform": "one that makes features (fit --features)",
            "predict_early": "an early classifier (fit --model reliable)",
        }.get(method, "a classifier")
        raise ValueError(f"{options.model}: expected {hint}, got {type(model).__name__}")
    if labelled:
        rows = open_labelled(options)
    else:
        rows = open_data(options, skip_bad=False, mark_bad=options.skip_bad, labels="none")
    rows = rows.prepared_for(model, fitted=True)
    width = without_names(model).n_features_in_
    if rows.n_features != width:
        raise ValueError(
            f"{rows.sources[0].path}: expected the {width} columns of "
            f"{options.model}, got {rows.n_features}; --columns or --drop chooses them"
        )
    return model, rows


def _plain(labels: Any, classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels as an array that a file can hold, of one type for all blocks."""
    labels = np.asarray(labels)
    if labels.dtype.kind in "OU":
        width = max((len(str(label)) for label in classes.tolist()), default=1)
        return labels.astype(f"U{max(width, 1)}")
    return labels


def _write(
    options: SimpleNamespace,
    rows: FileRows,
    names: list[str],
    columns_of: Callable[[Any], list[npt.NDArray[Any]]],
    output: Output,
    more: dict[str, Any],
) -> int:
    written = skipped = 0
    if str(options.output) != STANDARD:
        check_output(options.output, [options.model, *files_of(rows)])
    with open_writer(options.output, names) as write, output.rows(output.command) as advance:
        for block, position in rows.blocks():
            allowed = rows.options.missing
            X, missing = _filled(block.X, allowed) if options.skip_bad else (block.X, None)
            write(*columns_of(X), missing=missing)
            written += len(block)
            skipped += 0 if missing is None else int(missing.sum())
            advance(len(block), position.fraction)
    result = {"output": str(options.output), "rows": written, "skipped": skipped, **more}
    result |= {"seconds": advance.seconds, "rows_per_second": advance.rate}
    empty = f" ({skipped:,} bad ones left empty)" if skipped else ""
    if str(options.output) == STANDARD:  # where the rows are
        output.result(result, f"eigenfeat: {written:,} rows{empty}", sys.stderr)
        return 0
    bytes_ = os.path.getsize(options.output)
    output.result(result, f"{options.output}: {written:,} rows{empty}, {bytes_:,} bytes")
    return 0


def _check_output(path: Path) -> None:
    """Refuse, before any work, a file that could not be written in the end."""
    if str(path) == STANDARD:
        return
    special = path.exists() and not path.is_file() and not path.is_dir()
    if path.suffix.lower() not in SUFFIXES and not special:
        raise UsageError(
            f"--output: expected a name that ends in one of {' '.join(SUFFIXES)}, got {path}"
        )
    check_output(path)


def _filled(X: Any, allowed: bool) -> tuple[Any, npt.NDArray[np.bool_] | None]:
    """Rows with others in place of those that are not finite, and which (None: all are)."""
    if hasattr(X, "tocsr"):
        wrong = ~np.isfinite(X.data)
        if not wrong.any():
            return X, None
        missing = np.zeros(X.shape[0], dtype=bool)
        missing[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[wrong]] = True
        X.data[wrong] = 0
        return X, missing
    good = finite_rows(X, missing=allowed)
    if good is None:
        return X, None
    X[~good] = X[good.argmax()] if good.any() else 0
    return X, ~good

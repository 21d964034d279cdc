"""``eigenfeat evaluate`` and ``report``: predictions beside the labels of files."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import (
    classification_report,
    confusion_matrix,
    mean_absolute_error,
    r2_score,
    root_mean_squared_error,
)

from eigenfeat._base.validation import show
from eigenfeat.cli.files import check_output, check_some, opened_with_model, predicts_numbers
from eigenfeat.cli.output import Output, UsageError
from eigenfeat.io.rows import FileRows
from eigenfeat.report.evidence import N_NEIGHBORS, features_of, neighbour_labels
from eigenfeat.samples.out_of_core import without_names

__all__ = ["evaluate", "report"]

MOST_ROWS = 20_000  # whose neighbours are looked for
NAMED_PAIRS = 5  # of classes that are confused most often


def evaluate(options: SimpleNamespace) -> int:
    """Print accuracy, log loss and what is confused, or errors of a regression."""
    output = Output("evaluate", options.json, options.progress)
    model, rows = opened_with_model(options, labelled=True)
    if predicts_numbers(model):
        return _evaluate_regression(options, model, rows, output)
    predicts = callable(getattr(model, "predict", None))
    measured: dict[str, Any]
    if not predicts and callable(getattr(model, "transform", None)):
        X, y, n = some_rows(rows, MOST_ROWS, output)
        classes, true = np.unique(y, return_inverse=True)
        if len(y) < 2 or len(classes) < 2:
            raise ValueError(
                f"{rows.sources[0].path}: expected rows of two classes, got {len(y)} of "
                f"{len(classes)}"
            )
        predicted = neighbour_labels(
            features_of(without_names(model), X), true.astype(np.intp), len(classes)
        )
        unknown: dict[Any, int] = {}
        by = f"{N_NEIGHBORS} nearest neighbours among the features of the other rows"
        measured = {"by": by, "of_rows": n}
    elif predicts and hasattr(model, "classes_"):
        classes = np.asarray(model.classes_)
        true, predicted, unknown, measured = _predictions(options, model, rows, output)
    else:
        raise ValueError(f"{options.model}: expected a classifier, got {type(model).__name__}")
    confusion = confusion_matrix(true, predicted, labels=np.arange(len(classes)))
    accuracy, n = float(np.mean(true == predicted)), len(true)
    result = {
        "rows": n + sum(unknown.values()),
        "skipped": rows.n_skipped,
        "unknown_labels": {str(label): count for label, count in unknown.items()},
        "accuracy": accuracy,
        "standard_error": float(np.sqrt(accuracy * (1 - accuracy) / n)),
        "errors": int(np.sum(true != predicted)),
        "classes": classes.tolist(),
        "confusion": confusion.tolist(),
        **measured,
    }
    labels = [str(label) for label in classes.tolist()]
    of_classes = classification_report(
        true, predicted, labels=np.arange(len(labels)), target_names=labels, digits=4,
        zero_division=np.nan,
    )  # fmt: skip
    output.result(result, _text(str(options.model), result, labels, of_classes))
    return 0


def _evaluate_regression(
    options: SimpleNamespace, model: Any, rows: FileRows, output: Output
) -> int:
    """Print R^2 and the errors of a regression."""
    model, parts = without_names(model), []
    with output.rows("evaluating") as advance:
        for block, position in rows.blocks():
            parts.append((np.asarray(block.y, dtype=float), np.asarray(model.predict(block.X))))
            advance(len(block), position.fraction)
    true, predicted = map(np.concatenate, zip(*parts, strict=True)) if parts else ((), ())
    check_some(len(true), rows)
    result = {"rows": len(true), "skipped": rows.n_skipped, "seconds": advance.seconds}
    result |= {"r2": float(r2_score(true, predicted)) if len(true) > 1 else None}
    result |= {"root_mean_squared_error": float(root_mean_squared_error(true, predicted))}
    result |= {"mean_absolute_error": float(mean_absolute_error(true, predicted))}
    score = "" if result["r2"] is None else f"R^2 {result['r2']:.4f}, "
    text = (
        f"{options.model}: {score}root mean squared error "
        f"{result['root_mean_squared_error']:.6g}, mean absolute error "
        f"{result['mean_absolute_error']:.6g} in {len(true):,} rows"
    )
    if rows.n_skipped:
        text += f"\n{rows.n_skipped:,} bad rows were left out"
    output.result(result, text)
    return 0


def _predictions(
    options: SimpleNamespace, model: Any, rows: FileRows, output: Output
) -> tuple[NDArray[np.intp], NDArray[np.intp], dict[Any, int], dict[str, Any]]:
    """True and predicted classes, numbers of labels that are not known, and further figures."""
    classes = np.asarray(model.classes_)
    model = without_names(model)
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    probable, decides = (hasattr(model, one) for one in ("predict_proba", "predict_early"))
    parts: list[tuple[Any, ...]] = []  # true, predicted, probabilities, and early decisions
    unknown: dict[Any, int] = {}
    with output.rows("evaluating") as advance:
        for block, position in rows.blocks():
            true = np.array([code_of.get(label, -1) for label in block.y.tolist()], dtype=np.intp)
            for label in block.y[true < 0].tolist():
                unknown[label] = unknown.get(label, 0) + 1
            known = true >= 0
            if known.any():
                X, true = block.X[known], true[known]
                of_true, early = np.ones(len(true)), np.zeros((len(true), 2))
                if probable:
                    proba = np.asarray(model.predict_proba(X), dtype=float)
                    predicted, of_true = proba.argmax(axis=1), proba[np.arange(len(true)), true]
                else:
                    predicted = np.array([code_of[one] for one in model.predict(X).tolist()])
                if decides:
                    decisions = model.predict_early(X)
                    codes = [code_of[label] for label in np.asarray(decisions.label).tolist()]
                    early = np.column_stack([codes, decisions.time])
                parts.append((true, predicted, of_true, early))
            advance(len(block), position.fraction)
    if not parts:
        raise ValueError(
            f"{rows.sources[0].path}: expected labels among those of {options.model}, "
            f"{show(classes.tolist(), 200)}, got "
            + (f"{show(sorted(unknown, key=str), 200)}" if unknown else "no rows")
        )
    true, predicted, of_true, early = map(np.concatenate, zip(*parts, strict=True))
    measured: dict[str, Any] = {"seconds": advance.seconds}
    if probable:  # a probability of 0 that was wrong is a large loss
        of_true = np.maximum(of_true, np.finfo(np.float32).tiny)
        measured["log_loss"] = float(-np.log(of_true).mean())
    if decides:
        measured["early"] = {
            "accuracy": float(np.mean(early[:, 0] == true)),
            "mean_time": float(np.mean(early[:, 1])),
            "agreement": float(np.mean(early[:, 0] == predicted)),
        }
    return true, predicted, unknown, measured


def _text(name: str, result: dict[str, Any], labels: list[str], of_classes: str) -> str:
    confusion = np.array(result["confusion"])
    n = int(confusion.sum())
    lines = [
        f"{name}: accuracy {result['accuracy']:.4f} (standard error "
        f"{result['standard_error']:.4f}), {result['errors']:,} errors in {n:,} rows"
        + (f", log loss {result['log_loss']:.4f}" if "log_loss" in result else "")
    ]
    if unknown := result["unknown_labels"]:
        lines.append(
            f"{sum(unknown.values()):,} rows have labels that the model does not know, and were "
            f"left out: {show(list(unknown), 200)[1:-1]}"
        )
    if early := result.get("early"):
        lines.append(
            f"decided early: accuracy {early['accuracy']:.4f}, {early['mean_time']:.2f} columns on "
            f"average, {early['agreement']:.4f} of the labels are those of complete rows"
        )
    if result["skipped"]:
        lines.append(f"{result['skipped']:,} bad rows were left out")
    lines.append(of_classes.rstrip())
    wrong = confusion - np.diag(np.diag(confusion))
    order = np.argsort(-wrong, axis=None, kind="stable")[:NAMED_PAIRS]
    pairs = [divmod(int(at), len(labels)) for at in order]
    confused = [f"{labels[i]} as {labels[j]} ({wrong[i, j]:,})" for i, j in pairs if wrong[i, j]]
    if confused:
        lines.append(f"most often confused: {', '.join(confused)}")
    if "by" in result:
        drawn = "" if result["of_rows"] == n else f", of {n:,} of {result['of_rows']:,} rows"
        lines.append(f"predicted by the {result['by']}{drawn}")
    return "\n".join(lines)


def report(options: SimpleNamespace) -> int:
    """Write the page."""
    output, started = Output("report", options.json, options.progress), time.perf_counter()
    check_output(options.output)
    model, rows = opened_with_model(options, labelled=True)
    check_output(options.output, options.model, rows)
    X, y, n = some_rows(rows, options.max_rows, output)
    drawn = "" if len(y) == n else f" ({len(y):,} drawn at random from {n:,})"
    sources = {
        "Model": f"{options.model} ({os.path.getsize(options.model):,} bytes)",
        "Rows": ", ".join(map(str, getattr(options, "named", options.data))) + drawn,
    }
    from eigenfeat.report import write_report

    encoder = getattr(model, "columns_", None)
    if encoder is not None:  # the page is about the encoded columns
        model = without_names(model)
        model.feature_names_in_ = encoder.feature_names_
    try:
        write_report(
            model,
            X,
            y,
            options.output,
            title=options.title,
            image_shape=options.image_shape,
            sources=sources,
        )
    except ValueError as error:
        file, message = rows.sources[0].path, str(error)
        if message.startswith("image_shape: "):
            raise UsageError(f"--image-shape: {message.removeprefix('image_shape: ')}") from None
        if message.startswith("model: "):
            file, message = options.model, message.removeprefix("model: ")
        raise ValueError(f"{file}: {message}") from error
    size = os.path.getsize(options.output)
    result = {"output": str(options.output), "rows": len(y), "of_rows": n}
    result |= {"skipped": rows.n_skipped, "seconds": time.perf_counter() - started}
    output.result(result, f"{options.output}: {len(y):,} rows{drawn}, {size:,} bytes")
    return 0


def some_rows(rows: FileRows, most: int, output: Output) -> tuple[Any, NDArray[Any], int]:
    """All rows, or `most` of them drawn at random in one pass, in their order; and their number."""
    rng, n = np.random.default_rng(0), 0
    X: Any = None
    y = keys = np.empty(0)
    with output.rows("reading") as advance:
        for block, position in rows.blocks():
            stack = sp.vstack if sp.issparse(block.X) else np.concatenate
            X = block.X.copy() if X is None else stack([X, block.X])
            y = np.concatenate([y, block.y]) if n else block.y.copy()
            keys = np.concatenate([keys, rng.random(len(block))])
            n += len(block)
            if len(keys) > most:
                drawn = np.sort(np.argpartition(keys, most)[:most])
                X, y, keys = (X.tocsr() if sp.issparse(X) else X)[drawn], y[drawn], keys[drawn]
            advance(len(block), position.fraction)
    check_some(n, rows)
    return (X.tocsr() if sp.issparse(X) else X), y, n

"""``eigenfeat evaluate`` and ``report``: predictions beside the labels of files."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from eigenfeat._base.extras import require
from eigenfeat._base.validation import show
from eigenfeat.cli.models import opened
from eigenfeat.cli.options import check_output, check_some, files_of
from eigenfeat.cli.output import Output, UsageError
from eigenfeat.report.evidence import N_NEIGHBORS, features_of, neighbour_labels
from eigenfeat.rows.out_of_core import without_names
from eigenfeat.tables import FileRows

__all__ = ["evaluate", "report"]

_Counts = NDArray[np.int64]

MOST_ROWS = 20_000  # whose neighbours are looked for
NAMED_PAIRS = 5  # of classes that are confused most often


def evaluate(options: SimpleNamespace) -> int:
    """Print accuracy, log loss and what is confused."""
    output = Output("evaluate", options.json, options.progress)
    model, rows = opened(options, None, labelled=True)
    if not callable(getattr(model, "predict", None)) and callable(
        getattr(model, "transform", None)
    ):
        return _of_features(options, model, rows, output)
    if not hasattr(model, "classes_"):
        raise ValueError(f"{options.model}: expected a classifier, got {type(model).__name__}")
    classes = np.asarray(model.classes_)
    model = without_names(model)
    confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
    unknown: dict[Any, int] = {}
    loss, probable = 0.0, callable(getattr(model, "predict_proba", None))
    early = np.zeros(3) if callable(getattr(model, "predict_early", None)) else None
    with output.rows("evaluating") as advance:
        for block, position in rows.blocks():
            where = _codes(block.y, classes)
            for label in block.y[where < 0].tolist():
                unknown[label] = unknown.get(label, 0) + 1
            known, X = where >= 0, block.X
            if known.any():
                code, part = _predicted(model, X[known], where[known], classes, probable)
                np.add.at(confusion, (where[known], code), 1)
                loss += part
                if early is not None:
                    early += _early(model, X[known], block.y[known], classes[code])
            advance(len(block), position.fraction)
    n = int(confusion.sum())
    if n == 0:
        raise ValueError(
            f"{rows.sources[0].path}: expected labels among those of {options.model}, "
            f"{show(classes.tolist(), 200)}, got "
            + (f"{show(sorted(unknown, key=str), 200)}" if unknown else "no rows")
        )
    figures = _figures(confusion, classes, loss / n if probable else None, unknown)
    figures |= {"skipped": rows.n_skipped, "seconds": advance.seconds}
    if early is not None:
        names = ("accuracy", "mean_time", "agreement")
        figures["early"] = dict(zip(names, (early / n).tolist(), strict=True))
    output.result(figures, _text(str(options.model), confusion, classes, figures))
    return 0


def _early(model: Any, X: Any, y: NDArray[Any], complete: NDArray[Any]) -> NDArray[np.float64]:
    """Sums over rows: early labels that are right, times, and early labels that are final."""
    decisions = model.predict_early(X)
    label = np.asarray(decisions.label)
    return np.array([(label == y).sum(), decisions.time.sum(), (label == complete).sum()], float)


def _of_features(options: SimpleNamespace, model: Any, rows: FileRows, output: Output) -> int:
    """What the features of a transformer are worth to the nearest neighbours."""
    model = without_names(model)
    X, y, n = some_rows(rows, MOST_ROWS, output)
    classes, codes = np.unique(y, return_inverse=True)
    k = len(classes)
    if len(y) < 2 or k < 2:
        raise ValueError(
            f"{rows.sources[0].path}: expected rows of two classes, got {len(y)} of {k}"
        )
    of = neighbour_labels(features_of(model, X), codes, k)
    confusion = np.zeros((k, k), dtype=np.int64)
    np.add.at(confusion, (codes, of), 1)
    figures = _figures(confusion, classes, None, {})
    figures |= {"by": f"{N_NEIGHBORS} nearest neighbours among the features of the other rows"}
    figures |= {"of_rows": n, "skipped": rows.n_skipped}
    text = _text(str(options.model), confusion, classes, figures)
    drawn = "" if n == len(y) else f", of {len(y):,} rows drawn at random from {n:,}"
    output.result(figures, f"{text}\npredicted by the {figures['by']}{drawn}")
    return 0


def _codes(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """The class of each label, -1 where the model does not know it."""
    by_label = {label: code for code, label in enumerate(classes.tolist())}
    return np.array([by_label.get(label, -1) for label in labels.tolist()], dtype=np.intp)


def _predicted(
    model: Any, X: Any, truth: NDArray[np.intp], classes: NDArray[Any], probable: bool
) -> tuple[NDArray[np.intp], float]:
    """Predicted classes, and the sum of negative logarithms of the true ones' probabilities."""
    if not probable:
        return _codes(np.asarray(model.predict(X)), classes), 0.0
    chances = np.asarray(model.predict_proba(X), dtype=float)
    true = chances[np.arange(len(truth)), truth]
    least = np.finfo(np.float32).tiny  # a probability of 0 that was wrong is a large loss
    return chances.argmax(axis=1), float(-np.log(np.maximum(true, least)).sum())


def _figures(
    confusion: _Counts, classes: NDArray[Any], log_loss: float | None, unknown: dict[Any, int]
) -> dict[str, Any]:
    n, right = int(confusion.sum()), int(np.trace(confusion))
    accuracy = right / n
    figures: dict[str, Any] = {
        "rows": n + sum(unknown.values()),
        "unknown_labels": {str(label): count for label, count in unknown.items()},
        "accuracy": accuracy,
        "standard_error": float(np.sqrt(accuracy * (1 - accuracy) / n)),
        "errors": n - right,
        "classes": classes.tolist(),
        "confusion": confusion.tolist(),
    }
    return figures | ({} if log_loss is None else {"log_loss": log_loss})


def _text(name: str, confusion: _Counts, classes: NDArray[Any], figures: dict[str, Any]) -> str:
    labels = [str(label) for label in classes.tolist()]
    width = max(5, *(len(label) for label in labels))
    lines = [
        f"{name}: accuracy {figures['accuracy']:.4f} "
        f"(standard error {figures['standard_error']:.4f}), "
        f"{figures['errors']:,} errors in {int(confusion.sum()):,} rows"
        + (f", log loss {figures['log_loss']:.4f}" if "log_loss" in figures else "")
    ]
    if figures["unknown_labels"]:
        lines.append(
            f"{sum(figures['unknown_labels'].values()):,} rows have labels that the model does not "
            f"know, and were left out: {show(list(figures['unknown_labels']), 200)[1:-1]}"
        )
    if "early" in figures:
        early = figures["early"]
        lines.append(
            f"decided early: accuracy {early['accuracy']:.4f}, {early['mean_time']:.2f} columns on "
            f"average, {early['agreement']:.4f} of the labels are those of complete rows"
        )
    if figures["skipped"]:
        lines.append(f"{figures['skipped']:,} bad rows were left out")
    lines.append(f"{'class':{width}}  {'rows':>9}  {'recall':>7}  {'precision':>9}")
    for code, label in enumerate(labels):
        rows, predicted = int(confusion[code].sum()), int(confusion[:, code].sum())
        right = int(confusion[code, code])
        recall = f"{right / rows:.4f}" if rows else "-"
        precision = f"{right / predicted:.4f}" if predicted else "-"
        lines.append(f"{label:{width}}  {rows:>9,}  {recall:>7}  {precision:>9}")
    wrong = confusion - np.diag(np.diag(confusion))
    order = np.argsort(-wrong, axis=None, kind="stable")[:NAMED_PAIRS]
    pairs = [divmod(int(at), len(labels)) for at in order]
    confused = [f"{labels[i]} as {labels[j]} ({wrong[i, j]:,})" for i, j in pairs if wrong[i, j]]
    if confused:
        lines.append(f"most often confused: {', '.join(confused)}")
    return "\n".join(lines)


# ---- the report ---------------------------------------------------------------------------------


def report(options: SimpleNamespace) -> int:
    """Write the page."""
    output = Output("report", options.json, options.progress)
    started = time.perf_counter()
    check_output(options.output)
    require("matplotlib", "reports")
    model, rows = opened(options, None, labelled=True)
    check_output(options.output, [options.model, *files_of(rows)])
    X, y, n = some_rows(rows, options.max_rows, output)
    sources = {
        "Model": f"{options.model} ({os.path.getsize(options.model):,} bytes)",
        "Rows": ", ".join(map(str, getattr(options, "named", options.data))) + _drawn(len(y), n),
    }
    from eigenfeat.report import write_report

    shape = options.image_shape
    if isinstance(shape, tuple) and shape[0] * shape[1] != X.shape[1]:
        raise UsageError(
            f"--image-shape: expected {X.shape[1]} pixels, got {shape[0]} x {shape[1]}"
        )
    encoder = getattr(model, "columns_", None)
    if encoder is not None:  # the page is about the encoded columns
        model = without_names(model)
        model.feature_names_in_ = encoder.feature_names_
    try:
        write_report(
            model, X, y, options.output, title=options.title, image_shape=shape, sources=sources
        )
    except ValueError as error:
        file, message = rows.sources[0].path, str(error)
        if message.startswith("model: "):
            file, message = options.model, message.removeprefix("model: ")
        raise ValueError(f"{file}: {message}") from error
    size = os.path.getsize(options.output)
    result = {"output": str(options.output), "rows": len(y), "of_rows": n}
    result |= {"skipped": rows.n_skipped, "seconds": time.perf_counter() - started}
    output.result(result, f"{options.output}: {len(y):,} rows{_drawn(len(y), n)}, {size:,} bytes")
    return 0


def _drawn(drawn: int, n: int) -> str:
    return "" if drawn == n else f" ({drawn:,} drawn at random from {n:,})"


# ---- rows ---------------------------------------------------------------------------------------


def some_rows(rows: FileRows, most: int, output: Output) -> tuple[Any, NDArray[Any], int]:
    """All rows, or `most` of them drawn at random in one pass, in their order; and their number."""
    rng = np.random.default_rng(0)
    X: Any = None
    y: NDArray[Any] = np.empty(0)
    keys: NDArray[Any] = np.empty(0)
    n = 0
    with output.rows("reading") as advance:
        for block, position in rows.blocks():
            fresh = rng.random(len(block))
            stack = sp.vstack if sp.issparse(block.X) else np.concatenate
            X = block.X.copy() if X is None else stack([X, block.X])
            y = np.concatenate([y, block.y]) if len(keys) else block.y.copy()
            keys = np.concatenate([keys, fresh])
            n += len(block)
            if len(keys) > most:
                drawn = np.sort(np.argpartition(keys, most)[:most])
                X, y, keys = (X.tocsr() if sp.issparse(X) else X)[drawn], y[drawn], keys[drawn]
            advance(len(block), position.fraction)
    check_some(n, rows)
    return (X.tocsr() if sp.issparse(X) else X), y, n

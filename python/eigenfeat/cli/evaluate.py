"""``eigenfeat evaluate``: predictions beside the labels of files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.validation import show
from eigenfeat.cli.files import (
    check_held_out,
    opened_with_model,
    predicts_numbers,
    seen_in_fit,
    some_rows,
    weights_of,
)
from eigenfeat.cli.output import WIDTH, Output, aligned, naming_options, wrapped
from eigenfeat.io.rows import FileRows
from eigenfeat.report.evidence import class_predictions, codes_of, evidence_of
from eigenfeat.report.held_out import origin
from eigenfeat.report.measures import (
    ClassificationMeasures,
    RegressionMeasures,
    classification_measures,
    regression_measures,
)
from eigenfeat.samples.estimator import without_names

__all__ = ["Measures", "evaluate", "held_out_measures", "measures_text"]

MOST_ROWS = 20_000  # among which neighbours are searched
_ADVICE = "--cv 5 or --holdout 0.25 measures new fits on rows that they have not seen"
_NAMED_PAIRS = 5  # of classes that are confused most often
_MOST_CLASSES = 20  # that have a line each

Measures = ClassificationMeasures | RegressionMeasures


@dataclass
class _Found:
    """Measures, and further entries of the result."""

    measures: Measures
    unknown: dict[Any, int] = field(default_factory=dict)  # number of rows by unknown label
    more: dict[str, Any] = field(default_factory=dict)


def evaluate(options: SimpleNamespace) -> int:
    """Print measures of predictions beside those of a constant prediction."""
    output = Output("evaluate", options.json, options.progress)
    check_held_out(options)
    model, rows = opened_with_model(options, labelled=True)
    seen: bool | None = None
    if options.holdout is not None or options.cv is not None:
        some = some_rows(rows, None, output)
        weight = weights_of(options)
        found = _Found(held_out_measures(options, model, some.X, some.y, weight))
    else:
        seen = seen_in_fit(model, rows)
        found = _of_saved_model(options, model, rows, output)
        if seen:
            output.say(f"warning: a file of the fit is evaluated: figures are too good; {_ADVICE}")
    name, sentence = origin(seen, options.holdout, options.cv, "rows")
    result = found.measures.as_dict()
    result["rows"] = result.pop("n_samples") + sum(found.unknown.values())
    result |= {"skipped": rows.n_skipped, "figures_from": name}
    result |= {"verdict": found.measures.verdict("rows"), **found.more}
    if isinstance(found.measures, ClassificationMeasures):
        result["unknown_labels"] = {str(label): n for label, n in found.unknown.items()}
    lines = [*wrapped(f"{options.model}: {result['verdict']}"), *wrapped(sentence)]
    output.result(result, "\n".join([*lines, *_notes(result), *measures_text(found.measures)]))
    return 0


def held_out_measures(
    options: SimpleNamespace,
    model: Any,
    X: Any,
    y: NDArray[Any],
    weight: NDArray[np.float64] | None = None,
) -> Measures:
    """Measures of new fits of a model on rows that they have not seen, by --holdout or --cv."""
    given = {"holdout": options.holdout, "cv": options.cv, "random_state": options.seed}
    with naming_options("holdout", "cv"):
        return evidence_of(model, X, np.asarray(y), None, given, weight).measures


# ---- the saved model -----------------------------------------------------------------------------


def _of_saved_model(options: SimpleNamespace, model: Any, rows: FileRows, output: Output) -> _Found:
    predicts = callable(getattr(model, "predict", None))
    weight = weights_of(options)
    if predicts_numbers(model):
        return _regression(model, rows, weight, output)
    if predicts and hasattr(model, "classes_"):
        return _classification(options, model, rows, weight, output)
    if not predicts and callable(getattr(model, "transform", None)):
        return _neighbours(model, rows, weight, output)
    raise ValueError(f"{options.model}: expected a classifier, got {type(model).__name__}")


_Weight = NDArray[np.float64] | None


def _regression(model: Any, rows: FileRows, weight: _Weight, output: Output) -> _Found:
    model, parts = without_names(model), []
    with output.rows("evaluating") as advance:
        for block, position in rows.blocks():
            parts.append((np.asarray(block.y, dtype=float), np.asarray(model.predict(block.X))))
            advance(len(block), position.fraction)
    rows.check_some(sum(len(true) for true, _ in parts))
    true, predicted = map(np.concatenate, zip(*parts, strict=True))
    measures = regression_measures(true, predicted, weight)
    return _Found(measures, more={"seconds": advance.seconds})


def _neighbours(model: Any, rows: FileRows, weight: _Weight, output: Output) -> _Found:
    """Of a transformer: classes of the nearest neighbours by its features."""
    some = some_rows(rows, MOST_ROWS, output)
    if len(classes := np.unique(some.y)) < 2:
        path, n = rows.sources[0].path, len(some.y)
        raise ValueError(f"{path}: expected rows of two classes, got {n} of {len(classes)}")
    weight = None if weight is None else weight[some.index]
    evidence = evidence_of(model, some.X, some.y, None, None, weight)
    return _Found(evidence.measures, more={"by": evidence.by, "of_rows": some.n})


def _classification(
    options: SimpleNamespace, model: Any, rows: FileRows, weight: _Weight, output: Output
) -> _Found:
    classes, model = np.asarray(model.classes_).tolist(), without_names(model)
    decides = hasattr(model, "predict_early")
    parts: list[dict[str, Any]] = []
    n = 0
    unknown: Counter[Any] = Counter()
    with output.rows("evaluating") as advance:
        for block, position in rows.blocks():
            true = codes_of(model, block.y)
            known = true >= 0
            unknown.update(block.y[~known].tolist())
            if known.any():
                X = block.X[known]
                predicted, proba = class_predictions(model, X)
                part = {"true": true[known], "predicted": predicted, "proba": proba}
                if decides:
                    decisions = model.predict_early(X)
                    part["early"] = codes_of(model, np.asarray(decisions.label))
                    part["time"] = decisions.time
                parts.append(part | {"index": n + np.flatnonzero(known)})
            n += len(block)
            advance(len(block), position.fraction)
    if not parts:
        raise ValueError(
            f"{rows.sources[0].path}: expected labels among those of {options.model}, "
            f"{show(classes, 200)}, got "
            + (f"{show(sorted(unknown, key=str), 200)}" if unknown else "no rows")
        )
    found: dict[str, Any] = {
        name: None if first is None else np.concatenate([part[name] for part in parts])
        for name, first in parts[0].items()
    }
    true, predicted = found["true"], found["predicted"]
    more: dict[str, Any] = {"seconds": advance.seconds}
    if decides:
        more["early"] = {
            "accuracy": float(np.mean(found["early"] == true)),
            "mean_time": float(np.mean(found["time"])),
            "agreement": float(np.mean(found["early"] == predicted)),
        }
    weight = None if weight is None else weight[found["index"]]
    measures = classification_measures(classes, true, predicted, found["proba"], weight)
    return _Found(measures, dict(unknown), more)


# ---- text ----------------------------------------------------------------------------------------


def _notes(result: dict[str, Any]) -> list[str]:
    """Lines about rows that were left out, early decisions and neighbours."""
    lines = []
    if unknown := result.get("unknown_labels"):
        lines.append(
            f"{sum(unknown.values()):,} rows have labels that the model does not know, and were "
            f"left out: {show(list(unknown), 200)[1:-1]}"
        )
    if result["skipped"]:
        lines.append(f"{result['skipped']:,} bad rows were left out")
    if early := result.get("early"):
        lines.append(
            f"decided early: accuracy {early['accuracy']:.4f}, {early['mean_time']:.2f} columns on "
            f"average, {early['agreement']:.4f} of the labels are those of complete rows"
        )
    if "by" in result:
        n, of = int(np.sum(result["confusion"])), result["of_rows"]
        drawn = "" if of == n else f", of {n:,} of {of:,} rows"
        lines.append(f"predicted by the {result['by']}{drawn}")
    return lines


def measures_text(measures: Measures) -> list[str]:
    """Table of measures beside those of a constant, and of classes that are confused, as lines."""
    numbers = isinstance(measures, RegressionMeasures)
    kind = "mean" if numbers else "constant"
    lines = [["", "model", kind, ""]]
    for name, value, constant, what in measures.compared():
        form = "{:.6g}" if "error" in name else "{:.4f}"
        lines.append([name, form.format(value), form.format(constant), what])
    if isinstance(measures, RegressionMeasures):
        return aligned([line[:3] for line in lines])
    lines[-1][-1] += f"; standard error {measures.standard_error:.4f}"
    return [
        *aligned(lines, last_is_text=True),
        "",
        *_class_lines(measures),
        *_matrix_lines(measures),
        *_confused(measures),
    ]


def _class_lines(measures: ClassificationMeasures) -> list[str]:
    """A line for each class, those with the lowest recall if there are many."""
    shown = measures.by_class
    if len(shown) > _MOST_CLASSES:
        known = [one for one in shown if one.samples]
        shown = sorted(known, key=lambda one: one.recall)[:_MOST_CLASSES]
    names = ["recall", "precision", "f1", "auc", "average_precision"]
    heads = ["recall", "precision", "F1", "AUC", "average precision"]
    if measures.by_class[0].auc is None:
        names, heads = names[:3], heads[:3]
    lines = [["class", "rows", *heads]]
    for one in shown:
        values = [getattr(one, name) for name in names]
        lines.append([str(one.label), f"{one.samples:,}", *(f"{v:.4f}" for v in values)])
    left = len(measures.by_class) - len(shown)
    more = [f"... and {left:,} classes of no row or a higher recall; --json has all"] * (left > 0)
    return aligned(lines) + more


def _matrix_lines(measures: ClassificationMeasures) -> list[str]:
    """The confusion matrix, if it is narrow."""
    labels = [str(label) for label in measures.classes]
    counts = [[f"{n:,}" for n in row] for row in measures.confusion.tolist()]
    lines = [["true \\ predicted", *labels]]
    lines += [[label, *row] for label, row in zip(labels, counts, strict=True)]
    text = aligned(lines)
    return ["", *text] if max(map(len, text)) <= WIDTH else []


def _confused(measures: ClassificationMeasures) -> list[str]:
    """The pairs of classes that are confused most often; two classes are one pair."""
    if len(measures.classes) < 3:
        return []
    labels = measures.classes
    confused = [
        f"{labels[i]} as {labels[j]} ({n:,})" for i, j, n in measures.confused(_NAMED_PAIRS)
    ]
    return wrapped(f"most often confused: {', '.join(confused)}") if confused else []

"""``eigenfeat evaluate``: predictions beside the labels of files."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.validation import counted, show, show_items
from eigenfeat.cli.files import (
    naming_files,
    opened_with_model,
    predicts_numbers,
    sample_rows,
    seen_in_fit,
    weights_of,
)
from eigenfeat.cli.output import WIDTH, Output, naming_options, wrapped
from eigenfeat.io.rows import FileRows
from eigenfeat.report.evidence import codes_of, evidence_of, predictions
from eigenfeat.report.held_out import origin
from eigenfeat.report.measures import (
    ClassificationMeasures,
    RegressionMeasures,
    measures_of,
    positive_class,
)
from eigenfeat.samples.estimator import without_names

__all__ = ["Measures", "evaluate", "held_out_measures", "measures_text"]

_MAX_NEIGHBOUR_ROWS = 20_000  # rows among which the neighbours of a transformer are searched
_ADVICE = "--cv 5 or --holdout 0.25 measures new fits on rows that they have not seen"
_MAX_PAIRS = 5  # pairs of classes in the list of the most frequent confusions
_MAX_CLASSES = 20  # rows of the table of classes

Measures = ClassificationMeasures | RegressionMeasures


_Outcome = tuple[Measures, dict[str, Any]]  # measures, and further entries of the result


def evaluate(options: SimpleNamespace, output: Output) -> None:
    """Print measures of predictions beside those of a constant prediction."""
    model, rows = opened_with_model(options, labelled=True)
    seen: bool | None = None
    more: dict[str, Any] = {}
    if options.holdout is not None or options.cv is not None:
        read = sample_rows(options, rows, None, output)
        with naming_files(rows, options.model):
            measures = held_out_measures(options, model, read.X, read.y, read.weight)
    else:
        measures, more = _of_saved_model(options, model, rows, output)
        seen = seen_in_fit(model, rows, f"measures are too good; {_ADVICE}")
    name, sentence = origin(seen, options.holdout, options.cv, "rows")
    result = measures.as_dict() | more
    result["rows"] = result.pop("n_samples") + sum(more.get("unknown_labels", {}).values())
    result |= {"skipped": rows.n_skipped, "figures_from": name}
    result["verdict"] = measures.verdict("row")
    lines = [*wrapped(f"{options.model}: {result['verdict']}"), *wrapped(sentence)]
    output.result(result, "\n".join([*lines, *_notes(result), *measures_text(measures)]))


def held_out_measures(
    options: SimpleNamespace,
    model: Any,
    X: Any,
    y: NDArray[Any],
    weight: NDArray[np.float64] | None = None,
) -> Measures:
    """Measures of new fits of a model on rows that they have not seen, by --holdout or --cv."""
    given = {"holdout": options.holdout, "cv": options.cv, "random_state": options.seed}
    label = getattr(options, "pos_label", None)  # fit has no such option
    with naming_options("holdout", "cv", "pos_label"):
        return evidence_of(model, X, np.asarray(y), None, given, weight, label).measures


# ---- the saved model -----------------------------------------------------------------------------


def _of_saved_model(
    options: SimpleNamespace, model: Any, rows: FileRows, output: Output
) -> _Outcome:
    if callable(getattr(model, "predict", None)):
        if predicts_numbers(model) or hasattr(model, "classes_"):
            return _predicted(options, model, rows, output)
    elif callable(getattr(model, "transform", None)):
        return _neighbours(options, model, rows, output)
    raise ValueError(
        f"{options.model}: expected a classifier, a regressor or a transformer, got "
        f"{type(model).__name__}"
    )


def _neighbours(options: SimpleNamespace, model: Any, rows: FileRows, output: Output) -> _Outcome:
    """Measures of a transformer: classes are predicted by the nearest neighbours."""
    drawn = sample_rows(options, rows, _MAX_NEIGHBOUR_ROWS, output)
    with naming_files(rows):
        check_two_labels(np.unique(drawn.y), "rows")
    with naming_options("pos_label"):
        evidence = evidence_of(
            model, drawn.X, drawn.y, weight=drawn.weight, pos_label=options.pos_label
        )
    return evidence.measures, {"by": evidence.by, "of_rows": drawn.n}


def _predicted(options: SimpleNamespace, model: Any, rows: FileRows, output: Output) -> _Outcome:
    """Measures of predictions, which are made block by block."""
    numbers, decides = predicts_numbers(model), hasattr(model, "predict_early")
    classes = [] if numbers else np.asarray(model.classes_).tolist()
    with naming_options("pos_label"):
        positive = positive_class(classes, options.pos_label)
    weight, model = weights_of(options), without_names(model)
    parts: list[dict[str, Any]] = []
    n, unknown = 0, Counter[Any]()
    with output.rows("evaluating") as advance:
        for block, position in rows.blocks():
            true = np.asarray(block.y, dtype=float) if numbers else codes_of(classes, block.y)
            known = np.arange(len(block)) if numbers else np.flatnonzero(true >= 0)
            unknown.update(np.delete(block.y, known).tolist())
            if len(known):
                X = block.X[known]
                predicted, proba = predictions(model, X)
                part = {"true": true[known], "predicted": predicted, "proba": proba}
                if decides:
                    decisions = model.predict_early(X)
                    part["early"] = codes_of(classes, np.asarray(decisions.label))
                    part["time"] = decisions.time
                parts.append(part | {"index": n + known})
            n += len(block)
            advance(len(block), position.fraction)
    rows.check_not_empty(n)
    if not parts:
        source = rows.sources[0]
        raise ValueError(
            f"{source.path}: column {source.target_name!r}: expected labels among those of "
            f"{options.model}, {show(classes, 200)}, got {show(sorted(unknown, key=str), 200)}"
        )
    found: dict[str, Any] = {
        name: None if first is None else np.concatenate([part[name] for part in parts])
        for name, first in parts[0].items()
    }
    more: dict[str, Any] = {"seconds": output.seconds}
    more["unknown_labels"] = {str(label): count for label, count in unknown.items()}
    if decides:
        more["early"] = {
            "accuracy": float(np.mean(found["early"] == found["true"])),
            "mean_time": float(np.mean(found["time"])),
            "agreement": float(np.mean(found["early"] == found["predicted"])),
        }
    weight = None if weight is None else weight[found["index"]]
    true, predicted, proba = found["true"], found["predicted"], found["proba"]
    return measures_of(classes, true, predicted, proba, weight, positive), more


# ---- text ----------------------------------------------------------------------------------------


def _notes(result: dict[str, Any]) -> list[str]:
    """Lines about rows that were left out, early decisions and neighbours."""
    lines = []
    if unknown := result.get("unknown_labels"):
        n_unknown = counted(sum(unknown.values()), "row")
        lines.append(
            f"left out {n_unknown} with labels that the model does not know: {show_items(unknown)}"
        )
    if result["skipped"]:
        lines.append(f"left out {counted(result['skipped'], 'bad row')}")
    if early := result.get("early"):
        lines.append(
            f"decided early: accuracy {early['accuracy']:.4f}, {early['mean_time']:.2f} columns on "
            f"average, {early['agreement']:.4f} of the labels are those of complete rows"
        )
    if "by" in result:
        n, n_rows = int(np.sum(result["confusion"])), result["of_rows"]
        drawn = "" if n_rows == n else f", of {n:,} of {n_rows:,} rows"
        lines.append(f"predicted by the {result['by']}{drawn}")
    return lines


def measures_text(measures: Measures) -> list[str]:
    """Lines of a table of measures beside a constant prediction, and of the confused classes."""
    compared = measures.compared()
    width = max(len(name) for name, *_ in compared)
    constant = "mean" if isinstance(measures, RegressionMeasures) else "constant"
    lines = [f"{'':{width}}  {'model':>9}  {constant:>9}"]
    for name, *values, what in compared:
        texts = _six_digits(values) if "error" in name else map("{:.4f}".format, values)
        cells = (f"{text:>9}" for text in texts)
        lines.append("  ".join([name.ljust(width), *cells, what]))
    if isinstance(measures, RegressionMeasures):
        return lines
    lines[-1] += f"; standard error {measures.standard_error:.4f}"
    return [*lines, "", *_class_lines(measures), *_confusion_lines(measures)]


def _six_digits(values: list[float]) -> list[str]:
    """Numbers as text with equal numbers of decimals; the largest has six digits."""
    largest = max(map(abs, values))
    if not 1e-3 <= largest < 1e6:
        return [f"{value:.6g}" for value in values]
    decimals = max(5 - int(np.floor(np.log10(largest))), 0)
    return [f"{value:.{decimals}f}" for value in values]


def _class_lines(measures: ClassificationMeasures) -> list[str]:
    """A line for each class; of many classes, those with the lowest recall."""
    shown = frame = measures.by_class.drop(columns="share")
    if len(frame) > _MAX_CLASSES:
        shown = frame[frame["samples"] > 0].nsmallest(_MAX_CLASSES, "recall")
    titles = {"samples": "rows", "f1": "F1", "auc": "AUC", "average_precision": "average precision"}
    text = (
        shown.rename(index=str, columns=titles)
        .rename_axis(index=None, columns="class")
        .to_string(float_format="{:.4f}".format, formatters={"rows": "{:,}".format})
    )
    lines, n_omitted = text.splitlines(), len(frame) - len(shown)
    if n_omitted:
        lines.append(
            f"... and {n_omitted:,} classes without rows or with higher recall; see --json"
        )
    return lines


def _confusion_lines(measures: ClassificationMeasures) -> list[str]:
    """The confusion matrix, if it is narrow, and with three classes or more the confused pairs."""
    import pandas as pd

    labels = [str(label) for label in measures.classes]
    frame = pd.DataFrame(measures.confusion, index=labels, columns=labels)
    matrix = frame.rename_axis(columns="true \\ predicted").to_string().splitlines()
    lines = ["", *matrix] if max(map(len, matrix)) <= WIDTH else []
    confused = [f"{labels[i]} as {labels[j]} ({n:,})" for i, j, n in measures.confused(_MAX_PAIRS)]
    if len(labels) > 2 and confused:
        lines += wrapped(f"most often confused: {', '.join(confused)}")
    return lines

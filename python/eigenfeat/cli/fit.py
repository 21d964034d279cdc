"""``eigenfeat fit``: fit a model to files, and describe the fit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from eigenfeat._base.validation import counted, is_table
from eigenfeat.cli.evaluate import Measures, held_out_measures, measures_text
from eigenfeat.cli.files import check_output, loaded_moments, naming_files
from eigenfeat.cli.kinds import unfitted
from eigenfeat.cli.output import Output, UsageError, wrapped
from eigenfeat.cli.training import (
    Training,
    check_regression,
    exceeds_memory,
    fit_rows,
    of_task,
    read_training,
    target_of,
)
from eigenfeat.io.saving import save
from eigenfeat.report.card import columns_by_kind, kinds_in_words, reasons
from eigenfeat.report.held_out import origin
from eigenfeat.report.measures import measures_of

__all__ = ["fit"]

_MAX_NAMED = 8  # columns or classes in a line
_OUT_OF_FOLD = "Measures are out-of-fold: each row is predicted by models fitted without it."


def fit(options: SimpleNamespace, output: Output) -> None:
    """Fit a classifier, a regression or directions, and save it."""
    given = (name for name in ("holdout", "cv") if getattr(options, name) is not None)
    held_out = next(given, None)
    if options.model_kind not in ("table", "gem"):
        for flag in ("features", "moments"):
            if getattr(options, flag):
                raise UsageError(f"--{flag}: expected none with --model {options.model_kind}")
    features, regression = bool(options.features or options.moments), options.task == "regression"
    if held_out is not None and features:
        raise UsageError(f"--{held_out}: expected none with --features or --moments")
    if regression:
        check_regression(options)
    model = unfitted(options, features=features, regression=regression)
    if options.moments is not None:
        result, lines = _fit_moments(options, model)
    else:
        if not options.data:
            raise UsageError("DATA: expected files of rows, or --moments, got neither")
        training = read_training(options, model, model, options.output, output)
        model = of_task(options, model, training, output)
        measures = None
        if held_out is not None:
            if training.in_memory is None:
                raise exceeds_memory(options, f"--{held_out}")
            block, weight = training.in_memory, training.weight
            with naming_files(training.rows):
                measures = held_out_measures(options, model, block.X, training.labels, weight)
        fit_rows(options, model, training, output)
        training.keep(model)
        result, lines = _described(options, model, training, measures)
    save(model, options.output)
    result = {"output": str(options.output), "estimator": type(model).__name__, **result}
    result |= {"seconds": output.seconds}
    head = f"{options.output}: {result['estimator']}, {lines[0]}; {result['seconds']:.1f}\u00a0s"
    output.result(result, "\n".join([*wrapped(head), *lines[1:]]))


def _fit_moments(options: SimpleNamespace, model: Any) -> tuple[dict[str, Any], list[str]]:
    if options.data:
        raise UsageError(f"--moments: expected no files of rows beside it, got {options.data[0]}")
    check_output(options.output, options.moments)
    moments = loaded_moments(options.moments)
    model.fit_moments(moments)
    weight = sum(moments.weight(c) for c in moments.classes_)
    classes = moments.classes_.tolist()
    result = {"weight": weight, "features": int(model.n_features_in_), "classes": classes}
    what = f"{len(classes)} classes ({_first_texts(list(map(repr, classes)))})"
    features = counted(model.n_features_in_, "feature")
    return result, [f"weight {weight:,.12g} from moments, {features}, {what}"]


def _described(
    options: SimpleNamespace, model: Any, training: Training, measures: Measures | None
) -> tuple[dict[str, Any], list[str]]:
    """Describe a fit to rows, for JSON and as lines of text."""
    rows, block = training.rows, training.in_memory
    kinds, _ = columns_by_kind(model)
    left_out = _left_out(model, training)
    result: dict[str, Any] = {"rows": rows.n_rows, "in_memory": block is not None}
    result |= {"skipped": rows.n_skipped, "features": int(model.n_features_in_)}
    regression = is_regressor(model)
    if regression:
        result["target"] = target_of(rows)
        what = f"target {result['target']!r}"
    else:
        labels = np.unique(training.labels) if block is not None else np.empty(0)
        result["classes"] = getattr(model, "classes_", labels).tolist()
        names = _first_texts(list(map(repr, result["classes"])))
        what = f"{len(result['classes'])} classes ({names})"
    result |= {"columns": kinds, "left_out": left_out}
    skipped = f" ({counted(rows.n_skipped, 'bad row')} left out)" if rows.n_skipped else ""
    storage = "in memory" if block is not None else "block by block"
    features = counted(model.n_features_in_, "feature")
    lines = [
        f"{counted(rows.n_rows, 'row')}{skipped} {storage}, {features}, {what}",
        *wrapped(kinds_in_words(kinds), "columns"),
    ]
    if left_out:
        texts = [f"{name} ({why})" for name, why in left_out.items()]
        lines += wrapped(_first_texts(texts), "left out")
    if views := getattr(model, "views_", None):
        result["views"] = [
            {"name": view.name, "weight": float(view.weight), "note": view.note}
            | {"score": float(view.score) if np.isfinite(view.score) else None}
            for view in views
        ]
        used = sorted((v for v in views if v.weight > 0), key=lambda view: -view.weight)
        lines += wrapped(", ".join(f"{view.name} {view.weight:.2f}" for view in used), "views")
        unused = {view.name: view.note for view in views if not view.weight}
        lines += wrapped(reasons(unused), "not used")
    return result, lines + _scores(options, model, training, measures, result)


def _scores(
    options: SimpleNamespace,
    model: Any,
    training: Training,
    measures: Measures | None,
    result: dict[str, Any],
) -> list[str]:
    """Lines of measures on held-out rows, or of the fit's out-of-fold predictions."""
    if measures is not None:
        name, sentence = origin(None, options.holdout, options.cv, "rows")
        sentence += " The saved model is fitted to all rows."
    else:
        measures = _out_of_fold(model, training)
        name, sentence = "out of fold", _OUT_OF_FOLD
    if measures is None:
        if hasattr(model, "predict"):
            return ["not measured; --holdout 0.25 or --cv 5 measures predictions of unseen rows"]
        return []
    result |= {"figures_from": name, "measures": measures.as_dict()}
    table = measures_text(measures)
    end = table.index("") if "" in table else len(table)
    return ["", *wrapped(measures.verdict("row")), *wrapped(sentence), *table[:end]]


def _out_of_fold(model: Any, training: Training) -> Measures | None:
    """Measures of a pool's out-of-fold predictions; None without such predictions."""
    name = f"out_of_fold_{'prediction' if is_regressor(model) else 'proba'}_"
    predicted = getattr(model, name, None)
    if training.in_memory is None or predicted is None or len(predicted) != len(training.labels):
        return None
    known = ~np.isnan(predicted.reshape(len(predicted), -1)).any(axis=1)
    y, predicted = training.labels[known], predicted[known]
    weight = None if training.weight is None else training.weight[known]
    if is_regressor(model):
        return measures_of([], y.astype(float), predicted, None, weight) if known.any() else None
    true, classes = np.searchsorted(model.classes_, y), model.classes_.tolist()
    return measures_of(classes, true, predicted.argmax(axis=1), predicted, weight)


def _left_out(model: Any, training: Training) -> dict[str, str]:
    """Columns that the model leaves out, with the reason."""
    names = columns_by_kind(model)[1]
    if training.in_memory is None or not is_table(training.in_memory.X):
        return dict.fromkeys(names, "no value, or values that nearly all differ")
    X = training.in_memory.X
    return {
        name: "no value" if X[name].isna().all() else "values nearly all differ" for name in names
    }


def _first_texts(texts: list[str]) -> str:
    """The first texts of a list, and the number of the others."""
    more = f", and {len(texts) - _MAX_NAMED:,} more" if len(texts) > _MAX_NAMED else ""
    return ", ".join(texts[:_MAX_NAMED]) + more

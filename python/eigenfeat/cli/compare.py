"""``eigenfeat compare``: models on a table by cross-validation, as a table and a picture."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from eigenfeat._base.saved_files import taking_the_place_of
from eigenfeat.cli.files import check_output, rows_of, weights_of
from eigenfeat.cli.output import Output, UsageError, aligned, naming_options
from eigenfeat.report.comparison import ComparedModel, comparison_figure
from eigenfeat.report.comparison import compare as compare_models
from eigenfeat.report.measures import ClassificationMeasures

__all__ = ["compare", "models_table"]


def compare(options: SimpleNamespace) -> int:
    """Print a table of models, the best first."""
    output, started = Output("compare", options.json, options.progress), time.perf_counter()
    if options.task == "regression":
        options.labels = "float"
    weight = weights_of(options)
    if weight is not None:
        options.drop = (*options.drop, options.weight)
    rows = rows_of(options)
    if options.picture is not None:
        _check_picture(options.picture)
        check_output(options.picture, rows)
    rows.memory = options.memory * 1e9
    with output.rows("reading") as advance:
        whole = rows.table(advance)
        if whole is None:
            whole = rows.gathered(rows.memory, advance)
    if whole is None or hasattr(whole.X, "tocsr"):
        raise ValueError(
            f"{rows.sources[0].path}: expected dense rows that fit into --memory "
            f"({options.memory:g} GB)"
        )

    def say(model: ComparedModel) -> None:
        if output.shows_progress:
            output.say(f"{model.name}: {model.note or f'{model.fit_seconds:.1f} s for a fit'}")

    with naming_options("task", "cv"):
        found = compare_models(
            whole.X,
            whole.y,
            sample_weight=weight,
            task=options.task,
            cv=options.cv,
            time_limit=options.time_limit,
            random_state=options.seed,
            n_threads=options.threads,
            progress=say,
        )
    if options.picture is not None:
        with taking_the_place_of(options.picture) as scratch:
            figure = comparison_figure(found)
            figure.savefig(scratch, format=options.picture.suffix[1:])
    result: dict[str, Any] = {"rows": len(whole), "columns": int(whole.X.shape[1])}
    result |= {"skipped": rows.n_skipped, "cv": options.cv, "models": [_dict(one) for one in found]}
    result |= {"seconds": time.perf_counter() - started}
    names = ", ".join(map(str, getattr(options, "named", options.data)))
    head = (
        f"{names}: {len(whole):,} rows, {whole.X.shape[1]:,} columns, target "
        f"{rows.sources[0].target_name!r}; {options.cv} folds; {result['seconds']:.0f} s"
    )
    output.result(result, "\n".join([head, *models_table(found)]))
    return 0


def _check_picture(path: Path) -> None:
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise UsageError(f"--picture: expected a name that ends in .png, .svg or .pdf, got {path}")


def _dict(model: ComparedModel) -> dict[str, Any]:
    measures = None if model.measures is None else model.measures.as_dict()
    seconds = {
        f"{name}_seconds": value if np.isfinite(value) else None
        for name, value in (("fit", model.fit_seconds), ("predict", model.predict_seconds))
    }
    folds = {"n_folds": model.n_folds, "note": model.note, "measures": measures}
    return {"name": model.name, **seconds, **folds}


def models_table(models: list[ComparedModel]) -> list[str]:
    """Aligned lines: the measured models, the best first, and the reasons of the others."""
    measured = [one for one in models if one.measures is not None]
    if not measured:
        return [f"{one.name}: {one.note}" for one in models]
    if isinstance(measured[0].measures, ClassificationMeasures):
        names = {"log loss": "log_loss", "AUC": "auc"}
        names |= {"balanced accuracy": "balanced_accuracy", "accuracy": "accuracy"}
        form = "{:.4f}"
    else:
        names = {"RMSE": "root_mean_squared_error", "MAE": "mean_absolute_error", "R^2": "r2"}
        form = "{:.5g}"
    lines = [["", *names, "fit s", "predict s", ""]]
    for one in measured:
        values = [getattr(one.measures, name) for name in names.values()]
        cells = ["-" if value is None else form.format(value) for value in values]
        times = [f"{one.fit_seconds:.2f}", f"{one.predict_seconds:.2f}"]
        lines.append([one.name, *cells, *times, one.note])
    others = [f"{one.name}: {one.note}" for one in models if one.measures is None]
    return [*aligned(lines, last_is_text=True), *others]

"""``eigenfeat compare``: models on a table by cross-validation, as a table and a picture."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from eigenfeat._base.saved_files import taking_the_place_of
from eigenfeat._base.validation import counted
from eigenfeat.cli.files import naming_files
from eigenfeat.cli.output import Output, UsageError, naming_options, wrapped
from eigenfeat.cli.training import exceeds_memory, read_training
from eigenfeat.report.card import reasons
from eigenfeat.report.comparison import compare as compare_models
from eigenfeat.report.comparison import comparison_figure
from eigenfeat.tables import TableClassifier, TableRegressor

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["compare", "models_table"]

_PICTURES = (".png", ".svg", ".pdf")
_TITLES = {
    "auc": "AUC",
    "root_mean_squared_error": "RMSE",
    "mean_absolute_error": "MAE",
    "r2": "R^2",
    "fit_seconds": "fit s",
    "predict_seconds": "predict s",
}


def compare(options: SimpleNamespace, output: Output) -> None:
    """Print a table of models, the best first."""
    if options.picture is not None and options.picture.suffix.lower() not in _PICTURES:
        names = ", ".join(_PICTURES)
        raise UsageError(
            f"--picture: expected a name that ends in one of {names}, got {options.picture}"
        )
    model = TableRegressor() if options.task == "regression" else TableClassifier()
    training = read_training(options, model, model, options.picture, output)
    rows, block = training.rows, training.in_memory
    if block is None:
        raise exceeds_memory(options, "compare")
    if hasattr(block.X, "tocsr"):
        raise ValueError(f"{rows.sources[0].path}: expected dense rows, got sparse rows")

    measured: dict[str, dict[str, Any]] = {}

    def note(line: dict[str, Any]) -> None:
        measured[line["model"]] = measures = line.get("measures", {})
        if measures:
            measures["rows"] = measures.pop("n_samples")
        if output.shows_progress:
            duration = f"{line['fit_seconds']:.1f} s for a fit"
            output.say(f"{line['model']}: {line['note'] or duration}")

    with naming_options("task", "cv", "pos_label"), naming_files(rows):
        comparison = compare_models(
            block.X,
            block.y,
            sample_weight=training.weight,
            pos_label=options.pos_label,
            task=options.task,
            cv=options.cv,
            time_limit=options.time_limit,
            random_state=options.seed,
            n_threads=options.threads,
            progress=note,
        )
    if options.picture is not None:
        with taking_the_place_of(options.picture) as scratch:
            figure = comparison_figure(comparison)
            figure.savefig(scratch, format=options.picture.suffix[1:])
    result: dict[str, Any] = {"rows": len(block), "columns": int(block.X.shape[1])}
    values = comparison.replace([np.inf, -np.inf], np.nan).astype(object)
    lines = values.where(values.notna(), None).reset_index(names="name").to_dict("records")
    models = [line | measured[line["name"]] for line in lines]
    result |= {"skipped": rows.n_skipped, "cv": options.cv, "models": models}
    result |= {"seconds": output.seconds}
    names = ", ".join(map(str, getattr(options, "named", options.data)))
    head = (
        f"{names}: {len(block):,} rows, {counted(block.X.shape[1], 'column')}, target "
        f"{rows.sources[0].target_name!r}; {options.cv} folds; {result['seconds']:.0f} s"
    )
    output.result(result, f"{head}\n{models_table(comparison)}")


def models_table(comparison: DataFrame) -> str:
    """Aligned lines of a comparison, and the reasons why models or folds were not measured."""
    measured = comparison[comparison["n_folds"] > 0].drop(columns=["n_folds", "note"])
    lines = wrapped(reasons({name: note for name, note in comparison["note"].items() if note}))
    if len(measured):
        table = measured.rename(columns=lambda name: _TITLES.get(name, name.replace("_", " ")))
        table = table.rename_axis(None)
        digits = "{:.4f}".format if "auc" in comparison else "{:.5g}".format
        seconds = dict.fromkeys(("fit s", "predict s"), "{:10.2f}".format)
        lines.insert(0, table.to_string(float_format=digits, formatters=seconds, na_rep="-"))
    return "\n".join(lines)

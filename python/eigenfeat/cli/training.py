"""Rows of files for a fit, and the task: classification or regression."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_regressor
from sklearn.utils.validation import has_fit_parameter

from eigenfeat._base.validation import show
from eigenfeat.cli.files import check_output, naming_files, remember_files, rows_of, weights_of
from eigenfeat.cli.kinds import set_error, unfitted
from eigenfeat.cli.output import Output, UsageError
from eigenfeat.io.rows import FileRows
from eigenfeat.samples.columns import warn_identifiers
from eigenfeat.samples.estimator import keep_source, read_blocks
from eigenfeat.samples.labelled import Block
from eigenfeat.samples.targets import task_of

__all__ = [
    "Training",
    "check_regression",
    "exceeds_memory",
    "fit_rows",
    "of_task",
    "read_training",
    "target_of",
]


@dataclass(frozen=True)
class Training:
    """Rows of files for a fit."""

    rows: FileRows
    # All rows as one block, None if they exceed memory; its `X` is a data frame for estimators that
    # encode categories.
    in_memory: Block | None
    weight: npt.NDArray[np.float64] | None = None  # weights (n,) of the rows

    @property
    def labels(self) -> npt.NDArray[Any]:
        """Labels of all rows, or of the first block."""
        block = self.in_memory if self.in_memory is not None else next(iter(self.rows))
        return np.asarray(block.y)

    def keep(self, model: Any) -> None:
        """Keep the columns, and the sizes and checksums of the files, in a fitted model."""
        if self.in_memory is not None:
            keep_source(model, self.rows, self.in_memory)
        remember_files(model, self.rows)


def read_training(
    options: SimpleNamespace, model: Any, reader: Any, written: Path | None, output: Output
) -> Training:
    """Open the files and read the rows for the estimator `reader`, if they fit into memory.

    UsageError if one of the files is `written`, the output.
    """
    if is_regressor(model):
        options.labels = "float"
    weight = None
    if getattr(options, "weight", None) is not None:
        if not has_fit_parameter(model, "sample_weight"):
            raise UsageError(
                f"--weight: expected none with {type(model).__name__}, which takes no weights"
            )
        weight = weights_of(options)
        options.drop = (*options.drop, options.weight)
    rows = rows_of(options)
    if written is not None:
        check_output(written, rows)
    rows.memory = options.memory * 1e9
    with output.rows("reading") as advance:
        rows.advance = advance
        blocks, block = read_blocks(reader, rows, None, None)
        assert isinstance(blocks, FileRows)
        if blocks.sources[0].sparse:
            block = blocks.gathered()
        if block is None:
            advance.hide()
    if weight is not None and block is None:
        raise exceeds_memory(options, "--weight")
    return Training(blocks, block, weight)


def exceeds_memory(options: SimpleNamespace, what: str) -> UsageError:
    """The error of more rows than --memory for `what`, an option or command that needs all rows."""
    return UsageError(
        f"--memory: expected at most {options.memory:g} GB of rows with {what}, got more"
    )


def of_task(options: SimpleNamespace, model: Any, training: Training, output: Output) -> Any:
    """The model, or a regressor in its place if the target has many distinct numbers."""
    if is_regressor(model):
        return model
    labels, what = training.labels, f"in the target {target_of(training.rows)!r}"
    task, n_values = task_of(labels)
    fractions = labels[labels % 1 != 0] if labels.dtype.kind == "f" else labels[:0]
    if len(fractions) and "classification" in (task, options.task):
        raise UsageError(
            f"--task: expected regression for numbers such as {fractions[0]} {what}, got "
            f"{options.task}; --labels str makes a class of each text"
        )
    if options.task != "auto" or options.labels != "auto":
        return model
    if task == "unclear" and labels.dtype.kind not in "iuf":
        raise UsageError(
            f"--task: expected classes or numbers {what}, got {n_values:,} distinct texts in "
            f"{len(labels):,} rows, such as {show(labels[0])}; write numbers without units or "
            "separators of thousands; --task classification makes a class of each text"
        )
    numbers = f"{n_values:,} distinct numbers {what}"
    if task == "unclear":
        raise UsageError(f"--task: expected classification or regression, got auto for {numbers}")
    if task == "classification":
        return model
    check_regression(options, numbers)
    what = "fitting a regression (--task classification makes a class of each number)"
    output.say(f"{numbers}: {what}")
    return unfitted(options, regression=True)


def target_of(rows: FileRows) -> str:
    """Name of the target column."""
    return rows.sources[0].target_name


def fit_rows(options: SimpleNamespace, model: Any, training: Training, output: Output) -> None:
    """Fit a model to the rows, block by block if they do not fit into memory."""
    rows, block = training.rows, training.in_memory
    if block is not None:
        if isinstance(block.X, np.ndarray) and rows.sources[0].named:
            import pandas as pd

            # Estimators look for identifiers in data frames alone.
            warn_identifiers(pd.DataFrame(block.X, columns=rows.feature_names))
        y = np.asarray(block.y, dtype=float) if is_regressor(model) else block.y
        weights = {} if training.weight is None else {"sample_weight": training.weight}
        try:
            with naming_files(rows):
                model.fit(block.X, y, **weights)
        except ValueError as error:
            raise set_error(options, error) or error from None
        return
    takes_blocks = options.model_kind in ("table", "gem") and not is_regressor(model)
    if not takes_blocks or hasattr(options, "grid"):
        task = "--task regression" if is_regressor(model) else f"--model {options.model_kind}"
        what = "search" if hasattr(options, "grid") else task
        raise exceeds_memory(options, what)
    output.say("more rows than --memory: fitting block by block")
    rows.memory = 0.0
    with naming_files(rows):
        model.fit(rows)


def check_regression(options: SimpleNamespace, reason: str = "--task regression") -> None:
    """UsageError for a command or options that need classes."""
    others = {
        "search": hasattr(options, "grid"),
        f"--model {options.model_kind}": options.model_kind not in ("table", "gem"),
        "--features": getattr(options, "features", False),
        "--moments": getattr(options, "moments", None) is not None,
    }
    if wrong := next((name for name, given in others.items() if given), None):
        raise UsageError(
            f"--task: expected classification, as {wrong} needs classes, got {reason}; --task "
            "classification makes a class of each number"
        )

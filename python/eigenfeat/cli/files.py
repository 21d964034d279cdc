"""Commands on files of rows and on what was made of them: their options, and how they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eigenfeat.cli.model_commands import add_model_commands
from eigenfeat.cli.options import (
    add_data_options,
    add_formats,
    add_inputs,
    add_memory,
    add_model_kind,
    add_output,
    add_run_options,
    add_talk,
    file_name,
    importing,
    positive,
)
from eigenfeat.cli.parameters import add_parameters
from eigenfeat.cli.texts import DATA, STATUS

if TYPE_CHECKING:
    from eigenfeat.cli.options import Commands

__all__ = ["MERGE", "add_commands"]

MOMENTS = f"""\
Computes weight, mean and second moment of every class in one pass over files that need not fit into
memory. Every estimator that fits on moments can use the result, and moments of parts can be merged.
Names of columns are kept.

{DATA}

While it runs, the state is written to a checkpoint at intervals, and on Ctrl-C. The same command
with --resume continues from the checkpoint and writes the same bytes as an uninterrupted run."""

MOMENTS_EXAMPLES = f"""\
examples:
  eigenfeat moments rows.parquet --target kind -o rows.efm
  eigenfeat moments X.npy --target y.npy -o rows.efm --resume
  eigenfeat moments 'part-*.csv' --target kind --drop id,date -o rows.efm --skip-bad
  eigenfeat moments merge monday.efm tuesday.efm -o week.efm
  eigenfeat inspect rows.efm

with --json: status, command, output, rows, skipped, features, classes, dtype, resumed_from,
seconds, rows_per_second; of merge: output, merged, classes, weights; of an error: status, kind
(file, data, memory, missing package, usage, interrupted), error, exit.

{STATUS}"""


MERGE = "moments merge"

MERGE_TEXT = """\
Merges the moments in files, in the order given, as if all rows had been in one file. Files with
names of columns must have the same names."""

MERGE_EXAMPLES = f"""\
examples:
  eigenfeat moments merge monday.efm tuesday.efm -o week.efm
  eigenfeat fit --moments week.efm -o features.efm

with --json: status, command, output, merged, classes, weights.

{STATUS}"""

INSPECT = """\
Describes a file: for a model its class, parameters, columns and labels; for moments and checkpoints
labels, weights and position; for a file of rows its columns, types and, if the format stores it,
the number of rows. All checksums of models and moments are compared."""

FIT = f"""\
Fits GEM with multinomial logistic regression on its features (GEMClassifier), or GEM alone
(--features, or --moments), and saves the model. Rows that fit into --memory are read once;
otherwise every layer and every step of the regression reads the files again.

--model fits others, to rows that fit into --memory: ldg (directions of LDG, for transform),
reliable (ReliableClassifier, which decides rows before all their columns are known: predict
--early), and shift (MaxMarginShift around an extractor, for transform). --set sets their
parameters by name.

{DATA}"""

FIT_EXAMPLES = f"""\
examples:
  eigenfeat fit rows.parquet --target kind -o model.efm
  eigenfeat fit rows.csv --target kind -o model.efm --ridge 0.1 --depth 2 --seed 1
  eigenfeat fit --moments rows.efm -o features.efm
  eigenfeat fit rows.csv --target kind -o ldg.efm --model ldg --set n_components=5
  eigenfeat fit rows.csv --target kind -o early.efm --model reliable --set reliability=0.99
  eigenfeat fit rows.csv --target kind -o shift.efm --model shift --extractor pca

with --json: status, command, output, estimator, rows, in_memory, skipped (of moments: weight in
place of these), features, classes, seconds.

{STATUS}"""

PREDICT = f"""\
Writes one line of predictions for every row. If the model has names of columns, these are selected
from the file by name, in any order; other columns, including labels, are ignored. With --skip-bad
the line of a bad row is empty (null in Parquet, NaN or empty text in .npy), so that line n always
belongs to row n.

{DATA}"""

PREDICT_EXAMPLES = f"""\
examples:
  eigenfeat predict model.efm new.csv -o predictions.csv
  eigenfeat predict model.efm new.parquet --proba -o chances.parquet
  eigenfeat transform features.efm new.parquet -o features.npy

The output is .csv, .parquet or .npy. With --proba it has a column p_LABEL for every class beside
the prediction; .npy has only these, in the order of the labels. With --json: status, command,
output, rows, skipped (the number of empty lines), classes (transform: columns), seconds,
rows_per_second.

{STATUS}"""

EVALUATE = f"""\
Compares the predictions of a classifier with the labels of files: accuracy with its standard error,
log loss if the model gives probabilities, recall and precision of each class, and the pairs of
classes that are confused most often. Of early classifiers also: accuracy, mean time and agreement
with the labels of complete rows when decided early. Of transformers: accuracy of the 3 nearest
neighbours, with their features, among the other rows of the files (at most 20,000, drawn at
random). Rows whose labels the model does not know are counted and left out. Columns are found as
predict finds them.

{DATA}"""

EVALUATE_EXAMPLES = f"""\
examples:
  eigenfeat evaluate model.efm test.csv --target kind
  eigenfeat evaluate model.efm test.parquet --target kind --json

with --json: status, command, rows, skipped, unknown_labels, accuracy, standard_error, errors,
log_loss, classes, confusion (a row a true class, a column a predicted one), early (of early
classifiers: accuracy, mean_time, agreement), by (of transformers), seconds.

{STATUS}"""

TRANSFORM = f"""\
Writes the features of every row, with a model of eigenfeat fit --features or --moments, or any
transformer that eigenfeat.save wrote. With --skip-bad the line of a bad row is empty (null in
Parquet, NaN in .npy), so that line n always belongs to row n.

{DATA}"""


def add_commands(commands: Commands) -> None:
    """Add the commands to those of the program."""
    _add_moments(commands)
    _add_inspect(commands)
    _add_fit(commands)
    _add_predict(commands)
    _add_evaluate(commands)
    _add_transform(commands)
    add_model_commands(commands)


def _add_moments(commands: Any) -> None:
    moments = commands.add_parser(
        "moments",
        help="compute the class moments of files",
        usage="%(prog)s DATA... --target COLUMN -o FILE [options]\n"
        "       %(prog)s merge FILE FILE... -o FILE [--threads N] [--json]",
        description=MOMENTS,
        epilog=MOMENTS_EXAMPLES,
    )
    moments.add_argument("data", nargs="+", metavar="DATA", help="files, folders or patterns")
    add_output(moments, "of the moments")
    add_data_options(moments)
    group = moments.add_argument_group("checkpoints")
    group.add_argument(
        "--checkpoint",
        type=file_name,
        metavar="FILE",
        help="file for checkpoints (default: OUTPUT.checkpoint)",
    )
    group.add_argument(
        "--every",
        type=positive,
        metavar="ROWS",
        help="rows between two checkpoints (default: one minute)",
    )
    group.add_argument(
        "--resume", action="store_true", help="continue from the checkpoint, if there is one"
    )
    add_run_options(moments)
    moments.set_defaults(command=importing("moments", "moments_of_files"))
    merge = commands.add_parser(  # "moments merge" in `cli.main`'s hands; not listed
        MERGE,
        prog=f"{moments.prog.rsplit(' ', 1)[0]} {MERGE}",
        usage="%(prog)s FILE FILE... -o FILE [--threads N] [--json]",
        description=MERGE_TEXT,
        epilog=MERGE_EXAMPLES,
    )
    merge.add_argument("data", nargs="+", metavar="FILE", help="files of eigenfeat moments")
    add_output(merge, "of the moments of all rows")
    add_run_options(merge, progress=False)
    merge.set_defaults(command=importing("moments", "merge_files"))


def _add_inspect(commands: Any) -> None:
    inspect = commands.add_parser(
        "inspect",
        help="describe a model, moments, a checkpoint or rows",
        description=INSPECT,
        epilog=STATUS,
    )
    inspect.add_argument("file", metavar="FILE")
    add_formats(inspect.add_argument_group("reading"))
    add_talk(inspect)
    inspect.set_defaults(command=importing("inspect", "inspect"))


def _add_fit(commands: Any) -> None:
    fit = commands.add_parser(
        "fit",
        help="fit a classifier or features on files",
        usage="%(prog)s DATA... --target COLUMN -o FILE [options]\n"
        "       %(prog)s --moments FILE -o FILE [options]",
        description=FIT,
        epilog=FIT_EXAMPLES,
    )
    fit.add_argument("data", nargs="*", metavar="DATA", help="files, folders or patterns")
    add_output(fit, "of the model")
    fit.add_argument("--features", action="store_true", help="fit only GEM, for transform")
    fit.add_argument("--moments", metavar="FILE", help="fit only GEM, on moments instead of rows")
    add_model_kind(fit)
    add_parameters(fit.add_argument_group("parameters (see GEMClassifier and GEM)"))
    add_data_options(fit)
    group = add_memory(fit)
    group.add_argument(
        "--spool",
        metavar="FOLDER",
        help="folder for a temporary copy of more rows than that, so that text is parsed only once",
    )
    add_run_options(fit)
    fit.set_defaults(command=importing("models", "fit", models=True), reads_standard_input=True)


def _add_predict(commands: Any) -> None:
    predict = commands.add_parser(
        "predict",
        help="predict the labels of rows in files",
        description=PREDICT,
        epilog=PREDICT_EXAMPLES,
    )
    _add_model(predict, "predictions")
    predict.add_argument(
        "--proba", action="store_true", help="also write probabilities of the classes"
    )
    predict.add_argument(
        "--early",
        action="store_true",
        help="of an early classifier: decide rows, column by column, as early as possible, and "
        "write the number of columns used (time) and the reliability",
    )
    predict.set_defaults(command=importing("models", "predict", models=True))


def _add_evaluate(commands: Any) -> None:
    evaluate = commands.add_parser(
        "evaluate",
        help="compare predictions with the labels of files",
        usage="%(prog)s MODEL DATA... --target COLUMN [options]",
        description=EVALUATE,
        epilog=EVALUATE_EXAMPLES,
    )
    add_inputs(evaluate)
    add_data_options(evaluate, model=True)
    add_run_options(evaluate)
    evaluate.set_defaults(command=importing("evaluate", "evaluate", models=True))


def _add_transform(commands: Any) -> None:
    transform = commands.add_parser(
        "transform",
        help="write the features of rows in files",
        description=TRANSFORM,
        epilog=PREDICT_EXAMPLES,
    )
    _add_model(transform, "features")
    transform.set_defaults(command=importing("models", "transform", models=True))


def _add_model(parser: Any, what: str) -> None:
    add_inputs(parser)
    add_output(parser, f"of the {what}: .csv, .parquet or .npy")
    add_data_options(parser, target=False, model=True)
    add_run_options(parser)

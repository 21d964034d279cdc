"""The command line: commands with their options and help, and exit statuses."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
from click import Argument, Option
from click.shell_completion import shell_complete

from eigenfeat._base.file_errors import naming
from eigenfeat._base.version import __version__
from eigenfeat.cli import options as opt
from eigenfeat.cli.kinds import assignment
from eigenfeat.cli.output import (
    STANDARD_OUTPUT,
    Output,
    UsageError,
    discard_output,
    first_warnings,
    report_error,
)

__all__ = ["main", "program"]

DATA = """\
DATA is one file or several with equal columns, a folder of files, or a pattern in quotes: CSV
(.csv .tsv, also .gz), Parquet (.parquet .pq), Arrow IPC and Feather (.arrow .feather .ipc), NumPy
(.npy), svmlight (.svm .svmlight .libsvm, also .gz). CSV, Parquet and Arrow need pyarrow (pip
install pyarrow). If DATA is - and --format is given, all commands but moments and inspect read
standard input; with -o - predict and transform write CSV to standard output.
"""

STATUS = """\
Exit status: 0 done; 1 a file cannot be read or written, or rows are bad; 2 wrong options, such as a
value out of range or a missing column; 130 (Ctrl-C) or 143 (SIGTERM) interrupted."""

_COMPLETE = "_EIGENFEAT_COMPLETE"  # variable with which shells ask for completions


def _ending(examples: str, data: bool = False) -> str:
    """End of a help text: formats of DATA, examples, and exit statuses."""
    lines = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    return (f"{DATA}\n" if data else "") + f"\b\nExamples:\n{lines}\n\n{STATUS}"


class _Program(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in the order in which they are used."""
        return list(self.commands)


@click.group(
    cls=_Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_ending(
        """\
eigenfeat demo                    models of a table, of digits and of signals
eigenfeat fit rows.csv --target kind -o model.efm
eigenfeat predict model.efm new.csv -o predictions.csv
eigenfeat evaluate model.efm test.csv
eigenfeat report model.efm test.csv -o report.html
eigenfeat compare rows.csv --target kind
eigenfeat moments 'part-*.parquet' --target kind -o rows.efm --resume"""
    ),
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def program() -> None:
    """Models of tables, early decisions and features, from files of samples."""


def _command(
    module: str, *params: click.Parameter, examples: str
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Add a command that calls the function of this name in `module`; the docstring is its help."""
    data = any(param.name == "data" for param in params)

    def add(declared: Callable[[], None]) -> Callable[[], None]:
        name = declared.__name__

        def run(**given: Any) -> None:
            if given.get("holdout") is not None and given.get("cv") is not None:
                raise UsageError(f"--cv: expected none with --holdout, got {given['cv']}")
            options = SimpleNamespace(**given)
            command = getattr(import_module(f"eigenfeat.cli.{module}"), name)
            from eigenfeat.cli.files import naming_model, standard_input

            as_json, progress = given.get("json", False), given.get("progress")
            reads = standard_input(options, reads=module not in ("moments", "inspect"))
            with naming_model(given.get("model")), reads:
                command(options, Output(name, as_json, progress))

        epilog = _ending(examples, data)
        program.add_command(click.Command(name, None, run, [*params], declared.__doc__, epilog))
        return declared

    return add


@_command(
    "demo",
    Argument(["what"], type=click.Choice(["all", "table", "digits", "early"]), default="all"),
    Option(
        ["--splits"], type=opt.COUNT, metavar="N", default=2, help="Splits of digits (default 2)."
    ),
    opt.SEED,
    Option(
        ["--output"],
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("eigenfeat-demo"),
        help="Folder for files (default ./eigenfeat-demo).",
    ),
    examples="eigenfeat demo\neigenfeat demo early",
)
def demo() -> None:
    """Show tables, digits and early decisions.

    "table" compares TableClassifier with models of scikit-learn on simulated parcels, a table with
    words and missing values. It writes the rows (table.csv, and new.csv with further rows), a
    report of the fitted model (report.html) and a picture.

    "digits" compares logistic regression on the pixels of scikit-learn's bundled digits with
    logistic regression on random Fourier features, on expanded random directions and on GEM
    features. The last three have the same number of columns.

    "early" simulates signals of three classes, follows one signal sample by sample until
    ReliableClassifier decides its label, and compares ReliableClassifier with
    MinimumCostClassifier on test signals.

    Nothing is downloaded.
    """


@_command(
    "fit",
    opt.OPTIONAL_DATA,
    *opt.TARGET,
    opt.output(),
    *opt.HELD_OUT,
    opt.WEIGHT,
    Option(["--features"], is_flag=True, help="Fit only GEM, for transform."),
    Option(["--moments"], type=opt.FILE, help="Fit only GEM, on moments instead of rows."),
    opt.TASK,
    *opt.model("table"),
    opt.EXTRACTOR,
    opt.CATEGORICAL,
    opt.MEMORY,
    *opt.ROWS,
    examples="""\
eigenfeat fit rows.csv --target kind -o model.efm --set views=columns,splines --seed 1
eigenfeat fit rows.csv --target kind -o model.efm --cv 5
eigenfeat fit houses.csv --target price -o prices.efm --task regression
eigenfeat fit --moments rows.efm -o features.efm
eigenfeat fit rows.csv --target kind -o ldg.efm --model ldg --set n_components=5
eigenfeat fit rows.csv --target kind -o early.efm --model reliable --set reliability=0.99
eigenfeat fit rows.csv --target kind -o shift.efm --model shift --extractor pca""",
)
def fit() -> None:
    """Fit a classifier, a regression or features on files.

    Fits a classifier of tables (TableClassifier) and saves it. A target of many distinct numbers is
    fitted by TableRegressor, unless --task is given. Rows that fit into --memory are read once;
    otherwise every step reads the files again. Empty cells are missing values if the model accepts
    missing values.

    --holdout and --cv fit the model to a part of the rows first, and measure it on the other rows;
    the saved model is fitted to all rows. Without these options, the measures of TableClassifier
    and TableRegressor come from the out-of-fold predictions of the fit.

    --model fits other models. gem: GEM with multinomial logistic regression on its features
    (GEMClassifier), or GEM alone (--features, or --moments). ldg: directions of LDG, for transform.
    reliable: ReliableClassifier, which decides rows before all their columns are known (predict
    --early). shift: MaxMarginShift around an extractor, for transform. The last three need rows
    that fit into --memory.
    """


@_command(
    "models",
    *opt.INPUTS,
    opt.output(": .csv, .parquet or .npy"),
    Option(["--proba"], is_flag=True, help="Also write probabilities of the classes."),
    Option(
        ["--early"], is_flag=True, help="Decide as early as possible; also write time, reliability."
    ),
    Option(
        ["--coverage"],
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        metavar="SHARE",
        help="For regressions, also write intervals that contain about this SHARE of the targets; "
        "they are at least 0 if no target of the fit is negative.",
    ),
    Option(
        ["--keep"],
        multiple=True,
        metavar="A,B,...",
        help="Columns of DATA, such as an id, that are copied before the predictions.",
    ),
    *opt.ROWS,
    examples="""\
eigenfeat predict model.efm new.csv -o predictions.csv
eigenfeat predict model.efm new.csv --keep id -o predictions.csv
eigenfeat predict prices.efm new.csv --coverage 0.9 -o prices.csv
eigenfeat predict model.efm new.parquet --proba -o probabilities.parquet
eigenfeat predict early.efm new.csv --early -o decisions.csv""",
)
def predict() -> None:
    """Predict labels or numbers for the rows of files.

    Writes one line of predictions for every row. If the model has names of columns, these columns
    are selected from the file, in any order; other columns, including labels, are ignored. With
    --skip-bad the line of a bad row is empty (null in Parquet, NaN or empty text in .npy), so that
    line n always belongs to row n. With --proba there is a column p_LABEL for every class beside
    the prediction; .npy files have only these columns, in the order of the labels. With --coverage
    there are columns lower and upper beside the prediction.

    CSV files are read with the --delimiter, --decimal, --encoding, --comment and --header of the
    fit, unless these options are given. Text in UTF-8 is recognised.
    """


@_command(
    "evaluate",
    *opt.INPUTS,
    *opt.TARGET,
    *opt.HELD_OUT,
    opt.SEED,
    opt.WEIGHT,
    opt.POSITIVE,
    *opt.ROWS,
    examples="""\
eigenfeat evaluate model.efm test.csv
eigenfeat evaluate model.efm rows.csv --target kind --cv 5
eigenfeat evaluate churn.efm test.csv --positive yes""",
)
def evaluate() -> None:
    """Compare predictions with the labels of files.

    Classifiers: balanced accuracy, AUC, average precision of the rarest class or of --positive, log
    loss and accuracy, compared with a constant prediction; recall and precision of each class, and
    the classes that are confused. Regressions: R^2, root mean squared and mean absolute error,
    compared with the mean. Early classifiers also: accuracy and mean time of early labels, and
    their agreement with the labels of complete rows. Transformers: accuracy of the 3 nearest
    neighbours in the features among the other rows (at most 20,000, drawn at random).

    The output states whether the files had a part in the fit, if this is known. --holdout and --cv
    measure new fits with the model's parameters, on rows that these fits have not seen; the model's
    file is unchanged. Rows whose labels the model does not know are counted and left out. Columns
    are found by name, as by predict.
    """


@_command(
    "report",
    *opt.INPUTS,
    *opt.TARGET,
    opt.output(),
    Option(
        ["--image-shape"],
        type=opt.image_shape,
        metavar="RxC",
        help="Shape of the images, such as 8x8, if the columns are pixels.",
    ),
    Option(
        ["--max-rows"],
        type=opt.COUNT,
        metavar="N",
        default=20_000,
        help="Use at most N rows, drawn at random (default 20000).",
    ),
    *opt.HELD_OUT,
    opt.SEED,
    opt.WEIGHT,
    opt.POSITIVE,
    *opt.ROWS,
    examples="""\
eigenfeat report model.efm test.csv -o report.html
eigenfeat report digits.efm test.parquet --target digit --image-shape 8x8 -o report.html""",
)
def report() -> None:
    """Write an HTML page about a model and its predictions.

    The page has measures compared with a constant prediction, confusion, calibration, spectra,
    directions as images if columns are pixels, importances of columns, times of early decisions,
    parameters and versions; for regressions, predictions and true values, and residuals. The page
    needs no network. It states which rows its measures come from: use rows that had no part in the
    fit, or --holdout or --cv, which measure new fits. Rows whose labels the model does not know are
    counted and left out. Average precision, calibration and the effects of columns are those of
    --positive. Without --positive, average precision is that of the rarest class; calibration and
    effects are those of the second of two classes, or of all classes.
    """


@_command(
    "compare",
    opt.DATA,
    *opt.TARGET,
    Option(["--cv"], type=opt.FOLDS, metavar="N", default=5, help="Folds (default 5)."),
    Option(
        ["--time-limit"],
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="Seconds after which a model is measured on the folds so far.",
    ),
    Option(["--picture"], type=opt.FILE, help="Picture of losses and times (.png, .svg, .pdf)."),
    opt.TASK,
    opt.SEED,
    opt.WEIGHT,
    opt.POSITIVE,
    opt.CATEGORICAL,
    opt.MEMORY,
    *opt.ROWS,
    examples="""\
eigenfeat compare rows.csv --target kind
eigenfeat compare houses.csv --target price --cv 3 --time-limit 60 --picture models.png""",
)
def compare() -> None:
    """Compare models on a table by cross-validation.

    Compares TableClassifier or TableRegressor with models of scikit-learn (constant, logistic
    regression or ridge, random forest, HistGradientBoosting; SVM up to 5,000 rows) and with
    LightGBM, CatBoost and XGBoost, if they are installed, with default parameters, on the same
    folds. Categories are one-hot for scikit-learn's linear models, SVM and random forest, and
    native for boosting; medians replace missing numbers for models that do not take NaN. The lowest
    log loss, or root mean squared error, comes first; a model that fails has a line with the
    reason. --positive adds the average precision of a class.
    """


@_command(
    "inspect",
    Argument(["file"], type=click.Path(path_type=Path)),
    opt.OPTIONAL_DATA,
    *opt.TARGET,
    opt.JSON,
    *opt.READING,
    examples="""\
eigenfeat inspect rows.csv --target kind
eigenfeat inspect model.efm --json
eigenfeat inspect model.efm test.csv""",
)
def inspect() -> None:
    """Describe a model, moments, a checkpoint or rows.

    For a model: its class, parameters, columns, labels and fitted attributes; with labelled rows of
    DATA that the fit has not seen, also permutation importances: how much worse predictions get if
    the values of a column are permuted among the rows. For moments and checkpoints: labels, weights
    and position.

    For a file of rows: the number of rows, and how a fit reads each column (number, date, category
    or left out), with its range, distinct and missing values; with --target also the classes and
    their numbers of rows, or the range of the target. Of a file of more than 5 million cells only
    the first rows are described; the output states their number.
    """


@_command(
    "models",
    opt.DATA,
    *opt.TARGET,
    opt.output(),
    Option(
        ["--grid"],
        type=assignment,
        multiple=True,
        metavar="NAME=A,B,C",
        help="Values of a parameter to try; several times for several parameters.",
    ),
    Option(["--cv"], type=opt.FOLDS, metavar="N", help="Number of folds."),
    opt.TASK,
    *opt.model("gem", ("gem", "reliable")),
    opt.CATEGORICAL,
    opt.MEMORY,
    *opt.ROWS,
    examples="""\
eigenfeat search rows.csv --target kind -o best.efm --grid penalty=0.03,0.3 --grid depth=1,2
eigenfeat search rows.csv --target kind -o early.efm --model reliable --grid rule=pairwise,box""",
)
def search() -> None:
    """Choose parameters on held-out rows.

    Fits candidates, measures them on held-out rows, fits the best candidate to all rows, and saves
    it. --grid lists values of parameters by their names in Python. gem: GEMClassifierCV, on one
    held-out part or --cv folds; without --grid its default grid. reliable: ReliableClassifierCV, by
    the harmonic mean of accuracy and saved time; reliability=A,B,C are candidates for tau.
    Rows must fit into --memory. LDG searches in its fit, as in fit --model ldg --set
    n_components=2,5,9.
    """


@_command(
    "models",
    *opt.INPUTS,
    opt.output(": .csv, .parquet or .npy"),
    *opt.ROWS,
    examples="eigenfeat transform features.efm new.parquet -o features.npy",
)
def transform() -> None:
    """Write the features of rows in files.

    The model is from eigenfeat fit --features or --moments, or any transformer that eigenfeat.save
    wrote. With --skip-bad the line of a bad row is empty (null in Parquet, NaN in .npy), so that
    line n always belongs to row n.
    """


@_command(
    "moments",
    opt.DATA,
    *opt.TARGET,
    opt.output(),
    Option(
        ["--checkpoint"], type=opt.FILE, help="File of the checkpoint (default: OUTPUT.checkpoint)."
    ),
    Option(
        ["--every"],
        type=opt.COUNT,
        metavar="N",
        help="Rows between checkpoints (default: a checkpoint per minute).",
    ),
    Option(["--resume"], is_flag=True, help="Continue from the checkpoint, if there is one."),
    *opt.ROWS,
    examples="""\
eigenfeat moments rows.parquet --target kind -o rows.efm
eigenfeat moments X.npy --target y.npy -o rows.efm --resume
eigenfeat moments 'part-*.csv' --target kind --drop id,date -o rows.efm --skip-bad
eigenfeat moments merge monday.efm tuesday.efm -o week.efm""",
)
def moments() -> None:
    """Compute class moments of files, or merge them.

    Computes weight, mean and second moment of every class in one pass over files that need not fit
    into memory. Every estimator that fits on moments can use the result. "moments merge FILE
    FILE..." merges files of moments, as if all rows had been in one file.

    The state of a run is written to a checkpoint at intervals, and on Ctrl-C. The same command with
    --resume continues from the checkpoint and writes the same bytes as an uninterrupted run.
    """


# ---- errors and exit status ----------------------------------------------------------------------

_EXPECTED = (OSError, ValueError, ArithmeticError, ImportError, MemoryError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    as_json = "--json" in words
    try:
        if instruction := os.environ.get(_COMPLETE):
            return shell_complete(program, {}, "eigenfeat", _COMPLETE, instruction)
        with warnings.catch_warnings(), naming(STANDARD_OUTPUT):
            warnings.showwarning = first_warnings()
            # Like `program.main`, but Ctrl-C and closed pipes are handled below.
            with program.make_context("eigenfeat", words) as context:
                program.invoke(context)
                return 0
    except click.exceptions.Exit as end:
        return int(end.exit_code)
    except BrokenPipeError:  # the reader of the output, such as head, has ended
        discard_output()
        return 0
    except click.ClickException as error:
        return report_error(UsageError(" ".join(error.format_message().split())), as_json)
    except KeyboardInterrupt as error:
        return report_error(error, as_json)
    except _EXPECTED as error:
        from eigenfeat.io.errors import BadRowError, OptionError

        advice = ""
        if isinstance(error, BadRowError) and "--skip-bad" not in words:
            advice = "; --skip-bad leaves such rows out"
        if isinstance(error, OptionError):
            error = UsageError(f"--{error.option.replace('_', '-')}: {error.text}")
        return report_error(error, as_json, advice)

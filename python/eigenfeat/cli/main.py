"""The command line: commands, their options and help, and how they end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
from click.shell_completion import get_completion_class, shell_complete

from eigenfeat._base.extras import MissingExtraError
from eigenfeat.cli import options as opt
from eigenfeat.cli.kinds import assignment
from eigenfeat.cli.output import UsageError, quiet_interrupts, report_error

__all__ = ["main", "program"]

DATA = """\
DATA is one file or several with the same columns, a folder of them, or a pattern in quotes: CSV
(.csv .tsv, also .gz), Parquet (.parquet .pq), Arrow IPC and Feather (.arrow .feather .ipc), NumPy
(.npy .npz), svmlight (.svm .svmlight .libsvm, also .gz). CSV, Parquet and Arrow need pyarrow: pip
install 'eigenfeat[arrow]'. If DATA is - and --format is given, fit, predict, evaluate, transform,
report and search read standard input; with -o - predict and transform write CSV to standard
output."""

STATUS = """\
Exit status: 0 done; 1 a file cannot be read or written, or rows are bad; 2 wrong options, such as a
value out of range or a missing column; 130 (Ctrl-C) or 143 (SIGTERM) interrupted."""


def _texts(examples: str, json: str = "") -> str:
    """What help ends with: examples as they stand, keys of the result, and the exit status."""
    lines = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    keys = f"\n\nWith --json: status, command, {json}." if json else ""
    return f"\b\nExamples:\n{lines}{keys}\n\n{STATUS}"


class Program(click.Group):
    """Commands in the order in which they are used; errors say what was expected."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, as they were added."""
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find a command; `moments merge` is one of two words."""
        if args[:2] == ["moments", "merge"]:
            return "moments merge", self.commands["moments merge"], args[2:]
        if args and args[0] not in self.commands:
            known = ", ".join(n for n, c in self.commands.items() if not c.hidden)
            raise UsageError(f"COMMAND: expected one of {known}, got {args[0]!r}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=False,
    epilog=_texts(
        """\
eigenfeat demo                    compare representations of digits, draw pictures
eigenfeat demo early              classify signals before they end
eigenfeat fit rows.csv --target kind -o model.efm
eigenfeat evaluate model.efm test.csv --target kind
eigenfeat predict model.efm new.csv -o predictions.csv
eigenfeat report model.efm test.csv --target kind -o report.html
eigenfeat moments 'part-*.parquet' --target kind -o rows.efm --resume"""
    ),
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _, given: _print_version(ctx) if given else None,
    help="Show the version and exit.",
)
def program() -> None:
    """Discriminative features from generalized eigenvectors of class moments."""


def _print_version(ctx: click.Context) -> None:
    from eigenfeat._base.version import __version__

    click.echo(f"eigenfeat {__version__}")
    ctx.exit()


def _command(
    name: str,
    module: str,
    function: str,
    *decorators: opt.Decorator,
    text: str,
    epilog: str = "",
    reads_standard_input: bool = False,
    models: bool = False,
    hidden: bool = False,
) -> None:
    """Add a command that a function of a module of this folder runs.

    With `models` what writes and reads models is imported before any work begins.
    """

    def run(**given: Any) -> int:
        options = SimpleNamespace(**given)
        with quiet_interrupts(given.get("json", False)):
            if models:
                import_module("skops.io")
            command: Callable[[SimpleNamespace], int]
            command = getattr(import_module(f"eigenfeat.cli.{module}"), function)
        with opt.standard_input(options, reads=reads_standard_input):
            return int(command(options))

    run.__doc__ = "\n".join(line.strip() for line in text.splitlines())
    summary = text.split(".\n", 1)[0]
    made = click.command(name, epilog=epilog, hidden=hidden, short_help=summary)
    program.add_command(made(opt.grouped(*decorators)(run)))


DATA_ARGUMENT = click.argument("data", nargs=-1, required=True, type=opt.DATA)

_command(
    "demo",
    "demo",
    "demo",
    click.argument("what", type=click.Choice(["digits", "early"]), default="digits"),
    click.option(
        "--splits",
        type=opt.COUNT,
        help="Random splits of the digits (default 6, with --quick 2).",
    ),
    click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, help="Seed (default 0)."),
    click.option(
        "--output",
        type=opt.FOLDER,
        default=Path("eigenfeat-demo"),
        help="Folder for pictures and errors.csv (default ./eigenfeat-demo).",
    ),
    click.option("--quick", is_flag=True, help="Fewer splits and directions."),
    text="""Compare representations of real digits, or decide signals early.

    Compares logistic regression on the pixels of scikit-learn's bundled digits with logistic
    regression on random Fourier features, on expanded random directions and on GEM features. The
    last three have the same number of columns. Prints test errors and draws pictures. Nothing is
    downloaded.

    "eigenfeat demo early" simulates signals of three classes instead, follows one of them sample by
    sample until it is decided, calibrates tau on held-out signals, and compares with ECTS and with
    a fixed time of decision.
    """,
)

_command(
    "moments",
    "moments",
    "moments_of_files",
    DATA_ARGUMENT,
    opt.output_option("of the moments"),
    opt.data_options(),
    click.option(
        "--checkpoint", type=opt.FILE, help="File for checkpoints (default: OUTPUT.checkpoint)."
    ),
    click.option(
        "--every", type=opt.LARGE_COUNT, help="Rows between two checkpoints (default: one minute)."
    ),
    click.option("--resume", is_flag=True, help="Continue from the checkpoint, if there is one."),
    opt.run_options(),
    text=f"""Compute the class moments of files, or merge them (moments merge).

    Computes weight, mean and second moment of every class in one pass over files that need not fit
    into memory. Every estimator that fits on moments can use the result, and moments of parts can
    be merged. They have the names of the columns.

    {DATA}

    While it runs, the state is written to a checkpoint at intervals, and on Ctrl-C. The same
    command with --resume continues from the checkpoint and writes the same bytes as an
    uninterrupted run.
    """,
    epilog=_texts(
        """\
eigenfeat moments rows.parquet --target kind -o rows.efm
eigenfeat moments X.npy --target y.npy -o rows.efm --resume
eigenfeat moments 'part-*.csv' --target kind --drop id,date -o rows.efm --skip-bad
eigenfeat moments merge monday.efm tuesday.efm -o week.efm
eigenfeat inspect rows.efm""",
        "output, rows, skipped, features, classes, dtype, resumed_from, seconds, rows_per_second; "
        "of merge: output, merged, classes, weights; of an error: status, kind (file, data, "
        "memory, missing package, usage, interrupted), error, exit",
    ),
)

_command(
    "moments merge",
    "moments",
    "merge_files",
    click.argument("data", nargs=-1, required=True, type=opt.DATA, metavar="FILE FILE..."),
    opt.output_option("of the moments of all rows"),
    opt.run_options(progress=False),
    hidden=True,
    text="""Merge files of moments.

    Merges the moments in files, in the order given, as if all rows had been in one file. Files with
    names of columns must have the same names.
    """,
    epilog=_texts(
        """\
eigenfeat moments merge monday.efm tuesday.efm -o week.efm
eigenfeat fit --moments week.efm -o features.efm""",
        "output, merged, classes, weights",
    ),
)

_command(
    "inspect",
    "inspect",
    "inspect",
    click.argument("file", type=click.Path()),
    opt.format_options(),
    opt.json_option(),
    models=True,
    text="""Describe a model, moments, a checkpoint or rows.

    For a model: its class, parameters, columns and labels; for moments and checkpoints: labels,
    weights and position; for a file of rows: its columns, types and, if the format stores it, the
    number of rows.
    """,
    epilog=STATUS,
)

_command(
    "fit",
    "models",
    "fit",
    click.argument("data", nargs=-1, type=opt.DATA),
    opt.output_option("of the model"),
    click.option("--features", is_flag=True, help="Fit only GEM, for transform."),
    click.option(
        "--moments",
        type=opt.FileName(),
        help="Fit only GEM, on moments instead of rows.",
    ),
    opt.model_options(),
    opt.parameter_options(),
    opt.data_options(),
    opt.memory_option(),
    click.option(
        "--spool",
        type=click.Path(file_okay=False),
        help="Folder for a temporary copy of more rows than that, so that text is parsed once.",
    ),
    opt.run_options(),
    models=True,
    reads_standard_input=True,
    text=f"""Fit a classifier or features on files.

    Fits GEM with multinomial logistic regression on its features (GEMClassifier), or GEM alone
    (--features, or --moments), and saves the model. Rows that fit into --memory are read once;
    otherwise every layer and every step of the regression reads the files again. Empty cells are
    missing values where the model takes these.

    --model fits others, to rows that fit into --memory: ldg (directions of LDG, for transform),
    reliable (ReliableClassifier, which decides rows before all their columns are known: predict
    --early), and shift (MaxMarginShift around an extractor, for transform). --set sets their
    parameters by name.

    {DATA}
    """,
    epilog=_texts(
        """\
eigenfeat fit rows.parquet --target kind -o model.efm
eigenfeat fit rows.csv --target kind -o model.efm --ridge 0.1 --depth 2 --seed 1
eigenfeat fit --moments rows.efm -o features.efm
eigenfeat fit rows.csv --target kind -o ldg.efm --model ldg --set n_components=5
eigenfeat fit rows.csv --target kind -o early.efm --model reliable --set reliability=0.99
eigenfeat fit rows.csv --target kind -o shift.efm --model shift --extractor pca""",
        "output, estimator, rows, in_memory, skipped (of moments: weight in place of these), "
        "features, classes, seconds",
    ),
)

_PREDICTIONS = _texts(
    """\
eigenfeat predict model.efm new.csv -o predictions.csv
eigenfeat predict model.efm new.parquet --proba -o chances.parquet
eigenfeat transform features.efm new.parquet -o features.npy""",
    "output, rows, skipped (the number of empty lines), classes (transform: columns), seconds, "
    "rows_per_second",
)

_command(
    "predict",
    "models",
    "predict",
    opt.inputs(),
    opt.output_option("of the predictions: .csv, .parquet or .npy"),
    click.option("--proba", is_flag=True, help="Also write probabilities of the classes."),
    click.option(
        "--early",
        is_flag=True,
        help="Of an early classifier: decide rows, column by column, as early as possible, and "
        "write the number of columns used (time) and the reliability.",
    ),
    opt.data_options(target=False, model=True),
    opt.run_options(),
    models=True,
    reads_standard_input=True,
    text=f"""Predict the labels of rows in files.

    Writes one line of predictions for every row. If the model has names of columns, these are
    selected from the file by name, in any order; other columns, including labels, are ignored. With
    --skip-bad the line of a bad row is empty (null in Parquet, NaN or empty text in .npy), so that
    line n always belongs to row n. With --proba there is a column p_LABEL for every class beside
    the prediction; .npy has only these, in the order of the labels.

    {DATA}
    """,
    epilog=_PREDICTIONS,
)

_command(
    "evaluate",
    "evaluate",
    "evaluate",
    opt.inputs(),
    opt.data_options(model=True),
    opt.run_options(),
    models=True,
    reads_standard_input=True,
    text=f"""Compare predictions with the labels of files.

    Accuracy with its standard error, log loss if the model gives probabilities, recall and
    precision of each class, and the pairs of classes that are confused most often. Of early
    classifiers also: accuracy, mean time and agreement with the labels of complete rows when
    decided early. Of transformers: accuracy of the 3 nearest neighbours, with their features, among
    the other rows of the files (at most 20,000, drawn at random). Rows whose labels the model does
    not know are counted and left out. Columns are matched as predict matches them.

    {DATA}
    """,
    epilog=_texts(
        """\
eigenfeat evaluate model.efm test.csv --target kind
eigenfeat evaluate model.efm test.parquet --target kind --json""",
        "rows, skipped, unknown_labels, accuracy, standard_error, errors, log_loss, classes, "
        "confusion (a row a true class, a column a predicted one), early (of early classifiers: "
        "accuracy, mean_time, agreement), by (of transformers), seconds",
    ),
)

_command(
    "transform",
    "models",
    "transform",
    opt.inputs(),
    opt.output_option("of the features: .csv, .parquet or .npy"),
    opt.data_options(target=False, model=True),
    opt.run_options(),
    models=True,
    reads_standard_input=True,
    text=f"""Write the features of rows in files.

    With a model of eigenfeat fit --features or --moments, or any transformer that eigenfeat.save
    wrote. With --skip-bad the line of a bad row is empty (null in Parquet, NaN in .npy), so that
    line n always belongs to row n.

    {DATA}
    """,
    epilog=_PREDICTIONS,
)

_command(
    "search",
    "search",
    "search",
    DATA_ARGUMENT,
    opt.output_option("of the best model"),
    click.option(
        "--grid",
        type=opt.Parsed(assignment, "NAME=A,B,C"),
        multiple=True,
        help="Values of a parameter to try; several times for several parameters.",
    ),
    click.option("--cv", type=click.IntRange(2, 2**31 - 1), help="Number of folds."),
    click.option(
        "--scoring",
        type=click.Choice(["accuracy", "log_loss"]),
        help="Criterion of --model gem (default accuracy).",
    ),
    opt.model_options(),
    opt.parameter_options(),
    opt.data_options(),
    opt.memory_option(),
    opt.run_options(),
    models=True,
    reads_standard_input=True,
    text=f"""Choose parameters on held-out rows.

    Tries parameters on held-out rows, fits the best to all rows, and saves it. --grid names them,
    by their names in Python. gem: GEMClassifierCV, on one held-out part or --cv folds; without
    --grid its default grid. ldg: n_components, gamma and n_neighbors, by LDG's own
    cross-validation. reliable: ReliableClassifierCV, by the harmonic mean of accuracy and earliness
    saved; reliability=A,B,C are the taus. shift: folds of MaxMarginShift and a linear SVM; the
    shift is saved, for transform. Rows must fit into --memory.

    {DATA}
    """,
    epilog=_texts(
        """\
eigenfeat search rows.csv --target kind -o best.efm
eigenfeat search rows.csv --target kind -o best.efm --grid penalty=0.03,0.3 --grid depth=1,2
eigenfeat search rows.csv --target kind -o ldg.efm --model ldg --grid n_components=2,5,9
eigenfeat search rows.csv --target kind -o early.efm --model reliable --grid rule=pairwise,box""",
        "output, estimator, rows, skipped, best_params, best_score (larger is better), results "
        "(params, score and deviation of all candidates, best first), seconds",
    ),
)

_command(
    "report",
    "evaluate",
    "report",
    opt.inputs(),
    opt.output_option("of the page"),
    click.option("--title", metavar="TEXT", help="Title of the page."),
    click.option(
        "--image-shape",
        type=opt.IMAGE_SHAPE,
        default="auto",
        help="Shape of the images whose pixels the columns are, as 8x8, or none (default: auto).",
    ),
    click.option(
        "--max-rows",
        type=opt.LARGE_COUNT,
        default=20_000,
        help="Rows of the page, drawn at random where there are more (default 20000).",
    ),
    opt.data_options(model=True),
    opt.run_options(),
    models=True,
    reads_standard_input=True,
    text=f"""Write an HTML page about a model and its predictions.

    Accuracy with its standard error, confusion, calibration, spectra, directions as images where
    columns are pixels, what predictions rest on, times of early decisions, parameters and versions.
    The page needs no network. Needs matplotlib: pip install 'eigenfeat[plot]'. Rows whose labels
    the model does not know are counted and left out. Use rows that had no part in the fit.

    {DATA}
    """,
    epilog=_texts(
        """\
eigenfeat report model.efm test.csv --target kind -o report.html
eigenfeat report digits.efm test.parquet --target digit --image-shape 8x8 -o report.html""",
        "output, rows, of_rows, skipped, seconds",
    ),
)


@program.command(
    epilog=_texts(
        """\
eigenfeat completion bash > ~/.local/share/bash-completion/completions/eigenfeat
eigenfeat completion zsh > ~/.zfunc/_eigenfeat      (a folder of $fpath)
eigenfeat completion fish > ~/.config/fish/completions/eigenfeat.fish"""
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print a script for completion in a shell.

    With it, a shell completes commands, options and names of files.
    """
    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(program, {}, "eigenfeat", _COMPLETE).source())
    return 0


# ---- how commands end ----------------------------------------------------------------------------

_COMPLETE = "_EIGENFEAT_COMPLETE"  # the variable by which shells ask
_EXPECTED = (OSError, MissingExtraError, ValueError, ArithmeticError, ImportError, MemoryError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    as_json = "--json" in given
    try:
        if asked := os.environ.get(_COMPLETE):
            return shell_complete(program, {}, "eigenfeat", _COMPLETE, asked)
        # As `program.main` does, but that Ctrl-C and closed pipes are left to what follows.
        with program.make_context("eigenfeat", given) as context:
            code = program.invoke(context)
        return 0 if code is None else int(code)
    except click.exceptions.Exit as end:
        return int(end.exit_code)
    except BrokenPipeError:  # who reads the output has seen enough, such as head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except click.ClickException as error:
        return report_error(UsageError(_words(error)), as_json)
    except KeyboardInterrupt as error:
        return report_error(error, as_json)
    except _EXPECTED as error:
        from eigenfeat.tables.errors import BadRowError, OptionError

        advice = ""
        if isinstance(error, BadRowError) and "--skip-bad" not in given:
            advice = "; --skip-bad leaves such rows out"
        if isinstance(error, OptionError):
            error = UsageError(f"--{error.option.replace('_', '-')}: {error.text}")
        return report_error(error, as_json, advice)


def _words(error: click.ClickException) -> str:
    """An error of click's in the form of all others: what it is about, and what was expected."""
    if isinstance(error, click.NoSuchOption):
        near = f" (did you mean {', '.join(error.possibilities)}?)" if error.possibilities else ""
        return f"{error.option_name}: expected an option of the command{near}; --help lists them"
    if isinstance(error, click.BadOptionUsage):
        return f"{error.option_name}: expected a value, got none"
    if isinstance(error, click.BadParameter) and error.param is not None:
        param = error.param
        name = (
            max(param.opts, key=len)
            if isinstance(param, click.Option)
            else param.human_readable_name
        )
        if isinstance(error, click.MissingParameter):
            return f"{name}: expected a value, got none"
        return f"{name}: {error.message.removesuffix('.')}"
    if isinstance(error, click.UsageError) and "Missing command" in error.message:
        return "COMMAND: expected one, got none; eigenfeat --help lists them"
    return error.format_message()

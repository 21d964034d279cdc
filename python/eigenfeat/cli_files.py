"""Commands on files of rows and on what was made of them: their options, and how they run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from eigenfeat.cli_output import Output, UsageError

__all__ = ["add_commands"]

DATA = """\
DATA is one file or several with the same columns, a folder of them, or a pattern in quotes:
CSV (.csv .tsv, also .gz), Parquet (.parquet .pq), Arrow IPC and Feather (.arrow .feather .ipc),
NumPy (.npy .npz), svmlight (.svm .svmlight .libsvm, also .gz). CSV, Parquet and Arrow need
pyarrow: pip install 'eigenfeat[arrow]'."""

STATUS = """\
exit status: 0 done; 1 a file cannot be read or written, or rows are bad; 2 wrong options;
130 (Ctrl-C) or 143 (SIGTERM) interrupted."""

MOMENTS = f"""\
Adds up weight, mean and second moment of every class in one pass over files that need not fit into
memory. Every estimator that fits on moments can start from the result, and moments of parts can be
merged.

{DATA}

While it runs, the state is written to a checkpoint now and then, and on Ctrl-C. The same command
with --resume goes on from there and ends in the same bytes as a run that was never interrupted."""

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


def add_commands(commands: Any) -> None:
    """Add the commands to those of the program."""
    _add_moments(commands)


def _add_moments(commands: Any) -> None:
    moments = commands.add_parser(
        "moments",
        help="add up the class moments of files",
        usage="%(prog)s DATA... --target COLUMN -o FILE [options]\n"
        "       %(prog)s merge FILE FILE... -o FILE [--threads N] [--json]",
        description=MOMENTS,
        epilog=MOMENTS_EXAMPLES,
    )
    moments.add_argument("data", nargs="+", metavar="DATA", help="files, folders or patterns")
    add_output(moments, "moments")
    add_data_options(moments)
    group = moments.add_argument_group("checkpoints")
    group.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="where to (default: OUTPUT.checkpoint)"
    )
    group.add_argument(
        "--every", type=positive, metavar="ROWS", help="rows between two (default: a minute)"
    )
    group.add_argument("--resume", action="store_true", help="go on from the checkpoint, if any")
    add_run_options(moments)
    moments.set_defaults(run=_moments)


def _moments(options: argparse.Namespace) -> int:
    from eigenfeat import cli_moments

    output = Output("moments", options.json, options.progress)
    if options.data[0] == "merge":
        return cli_moments.merge(options, options.data[1:], output)
    rows = open_data(options)
    if rows.sources[0].label_kind is None:
        raise UsageError("--target: expected the column of labels, got none")
    return cli_moments.moments_of(options, rows, output)


# ---- options that several commands have ----------------------------------------------------------


def add_output(parser: Any, what: str) -> None:
    """Add -o."""
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help=f"the file of {what}"
    )


def add_run_options(parser: Any) -> None:
    """Add what has to do with the run, not with its result."""
    group = parser.add_argument_group("running")
    group.add_argument("--threads", type=positive, metavar="N", help="threads (default: all)")
    add_talk(group)
    group.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show how far it has come, on stderr (default: if that is a terminal)",
    )


def add_talk(group: Any) -> None:
    """Add --json."""
    group.add_argument("--json", action="store_true", help="print the result as one JSON object")


def add_data_options(parser: Any, *, target: bool = True) -> None:
    """Add how files of rows are read."""
    group = parser.add_argument_group("reading")
    if target:
        group.add_argument(
            "--target",
            metavar="COLUMN",
            help="the labels: name or number of a column, or, of NumPy files, an .npy file; "
            "svmlight files, and .npz files with an array y, need none",
        )
    group.add_argument(
        "--columns",
        action="append",
        metavar="A,B,...",
        help="the features: names or numbers of columns (default: all but the target)",
    )
    group.add_argument(
        "--drop", action="append", default=[], metavar="A,B,...", help="columns that are none"
    )
    group.add_argument(
        "--dtype",
        choices=("float32", "float64"),
        help="type of the features (default: float32 if they are that in the file, else float64)",
    )
    group.add_argument(
        "--block-rows", type=positive, metavar="N", help="rows at a time (default: some 32 MB)"
    )
    group.add_argument(
        "--skip-bad",
        action="store_true",
        help="leave out rows with missing values, NaN, text or a wrong number of fields, and count "
        "them (default: stop at the first)",
    )
    if target:
        group.add_argument(
            "--labels",
            choices=("auto", "int", "float", "bool", "str"),
            default="auto",
            help="their kind (default: by the first ones)",
        )
    group.add_argument(
        "--format",
        choices=("csv", "parquet", "arrow", "npy", "npz", "svmlight"),
        help="of the files (default: what their names say)",
    )
    group.add_argument("--delimiter", type=_character, metavar="C", help="of CSV fields, or 'tab'")
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="whether CSV files begin with names (default: if their first line has no numbers)",
    )
    group.add_argument("--x-name", default="X", metavar="NAME", help="rows in .npz (default X)")
    if target:
        group.add_argument("--y-name", default="y", metavar="NAME", help="labels there (default y)")
    group.add_argument(
        "--n-features",
        type=positive,
        metavar="N",
        help="columns of svmlight files (default: found by a first pass)",
    )
    group.add_argument(
        "--zero-based",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="whether columns of svmlight files are counted from 0 (default: if one is 0)",
    )


def open_data(options: argparse.Namespace, **changed: Any) -> Any:
    """Open the rows that the options name."""
    from eigenfeat.tables import open_rows

    given = {
        "target": getattr(options, "target", None),
        "columns": None if options.columns is None else listed(options.columns),
        "drop": listed(options.drop),
        "labels": getattr(options, "labels", "auto"),
        "y_name": getattr(options, "y_name", "y"),
    }
    names = ["dtype", "block_rows", "skip_bad", "format", "delimiter", "header"]
    names += ["x_name", "n_features", "zero_based"]
    given |= {name: getattr(options, name) for name in names}
    return open_rows(options.data, **{**given, **changed})


def listed(texts: list[str]) -> list[str]:
    """The names in texts that are separated by commas."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def positive(text: str) -> int:
    """An integer from 1."""
    try:
        value = int(text.replace("_", ""))
    except ValueError:
        value = 0
    if not 1 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"expected an integer from 1, got {text!r}")
    return value


def _character(text: str) -> str:
    character = {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)
    if len(character) != 1:
        raise argparse.ArgumentTypeError(f"expected one character or 'tab', got {text!r}")
    return character

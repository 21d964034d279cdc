"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from click import Argument, Choice, Option

from eigenfeat.cli.kinds import CLASSIFIERS, EXTRACTORS, MODELS, TASKS, assignment

__all__ = ["image_shape"]

COUNT, FOLDS = click.IntRange(1, 2**31 - 1), click.IntRange(2, 2**31 - 1)
FILE = click.Path(path_type=Path)


# ---- values --------------------------------------------------------------------------------------


def image_shape(text: str) -> tuple[int, int]:
    """Rows and columns, as 8x8."""
    rows, _, columns = text.lower().partition("x")
    if not (rows.isdigit() and columns.isdigit()):
        raise click.BadParameter(f"expected rows and columns, as 8x8, got {text}")
    return int(rows), int(columns)


def _character(text: str) -> str:
    character = {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)
    if len(character) != 1:
        raise click.BadParameter(f"expected one character or 'tab', got {text!r}")
    return character


# ---- arguments and options -----------------------------------------------------------------------


DATA = Argument(["data"], nargs=-1, required=True, type=click.Path())
INPUTS = [Argument(["model"], type=click.Path()), DATA]
OPTIONAL_DATA = Argument(["data"], nargs=-1, required=False, type=click.Path())
JSON = Option(["--json"], is_flag=True, help="Print the result as one JSON object.")
RUN = [  # options that do not change the result
    Option(["--threads"], type=COUNT, metavar="N", help="Threads (default: all)."),
    JSON,
    Option(
        ["--progress/--no-progress"],
        default=None,
        help="Show progress on stderr (default: if stderr is a terminal).",
    ),
]
HELD_OUT = [
    Option(
        ["--holdout"],
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        metavar="SHARE",
        help="Measure a fit to the other rows on this SHARE of the rows.",
    ),
    Option(
        ["--cv"],
        type=FOLDS,
        metavar="N",
        help="Cross-validate with N folds: measure each fold with a fit to the other folds.",
    ),
]
SEED = Option(
    ["--seed"],
    type=click.IntRange(0, 2**31 - 1),
    metavar="N",
    default=0,
    help="Seed of all random draws (default 0).",
)
WEIGHT = Option(
    ["--weight"], metavar="COLUMN", help="Column of weights of the rows; it is not a feature."
)
POSITIVE = Option(
    ["--positive", "pos_label"],
    metavar="LABEL",
    help="The class of interest, against all others (default: the rarest class).",
)
MEMORY = Option(
    ["--memory"],
    type=click.FloatRange(min=0),
    metavar="GB",
    default=2.0,
    help="Memory for rows; rows that take more are read in blocks (default 2).",
)
TARGET = [
    Option(
        ["--target"],
        metavar="COLUMN",
        help="The labels: name or number of a column or, for NumPy files, an .npy file; not needed "
        "for svmlight files, nor with a model that was fitted to files with this column.",
    ),
    Option(
        ["--labels"],
        type=Choice(["auto", "int", "float", "bool", "str"]),
        default="auto",
        help="Type of the labels (default auto: by their values).",
    ),
]
READING = [
    Option(
        ["--columns"],
        multiple=True,
        metavar="A,B,...",
        help="Names or numbers of the features (default: as the model, or all other columns).",
    ),
    Option(["--drop"], multiple=True, metavar="A,B,...", help="Columns to leave out."),
    Option(
        ["--skip-bad"],
        is_flag=True,
        help="Leave out and count rows with text in place of numbers, infinity, a wrong number "
        "of fields, or missing values that the model does not accept; their lines in outputs are "
        "empty.",
    ),
    Option(["--dtype"], type=Choice(["float32", "float64"]), help="Type of the features."),
    Option(
        ["--block-rows"], type=COUNT, metavar="N", help="Rows of a block (default: about 32 MB)."
    ),
    Option(
        ["--format"],
        type=Choice(["csv", "parquet", "arrow", "npy", "svmlight"]),
        help="Format of DATA (default: by the ending of the names).",
    ),
    Option(
        ["--delimiter"], type=_character, metavar="C", help="Separator of CSV fields, or 'tab'."
    ),
    Option(
        ["--header/--no-header"],
        default=None,
        help="Whether CSV files begin with names (default: if their first line looks like names).",
    ),
    Option(["--encoding"], metavar="NAME", help="Encoding of CSV files (default utf-8)."),
    Option(["--decimal"], type=Choice([".", ","]), help="Decimal point (default .)."),
    Option(
        ["--comment"], metavar="TEXT", help="Leave out lines of CSV files that begin with TEXT."
    ),
    Option(
        ["--na-values"],
        multiple=True,
        metavar="A,B,...",
        help="Missing values of CSV files, such as '?,-', besides empty cells, NA, NaN...",
    ),
    Option(
        ["--default-na/--no-default-na", "keep_default_na"],
        default=True,
        help="Whether NA, NaN, null... are missing values of CSV files (default), or text.",
    ),
    Option(["--n-features"], type=COUNT, metavar="N", help="Columns of svmlight files."),
    Option(
        ["--zero-based/--no-zero-based"],
        default=None,
        help="Whether columns of svmlight files are counted from 0 (default: if column 0 occurs).",
    ),
]
ROWS = [*RUN, *READING]  # of commands that read rows
TASK = Option(
    ["--task"],
    type=Choice(["auto", *TASKS]),
    default="auto",
    help="Predict classes or numbers (default auto: by the values of the target).",
)
CATEGORICAL = Option(
    ["--categorical"],
    multiple=True,
    metavar="A,B,...",
    help="Columns of categories, such as codes that are numbers.",
)
EXTRACTOR = Option(
    ["--extractor"], type=Choice([*EXTRACTORS]), help="Extractor of --model shift (default pca)."
)


def output(what: str = "") -> Option:
    """The option -o; `what` describes the file."""
    return Option(["-o", "--output"], type=FILE, required=True, help=f"Output file{what}.")


def model(default: str, kinds: Sequence[str] = (*MODELS,)) -> list[Option]:
    """The model that is fitted, and its parameters."""
    return [
        Option(
            ["--model", "model_kind"],
            type=Choice(kinds),
            default=default,
            help=f"Model to fit (default {default}).",
        ),
        Option(
            ["--classifier"], type=Choice([*CLASSIFIERS]), help="Classifier of --model reliable."
        ),
        Option(
            ["--set", "assignments"],
            type=assignment,
            multiple=True,
            metavar="NAME=VALUE",
            help="A parameter of the model by its name in Python, as views=columns,splines; "
            "PART__NAME=VALUE sets a parameter of an inner estimator.",
        ),
        SEED,
    ]

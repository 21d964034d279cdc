"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click import Choice, option

from eigenfeat.cli.kinds import CLASSIFIERS, EXTRACTORS, MODELS, TASKS, assignment

__all__ = ["assignment", "image_shape"]

Decorator = Callable[[Any], Any]
COUNT, FOLDS = click.IntRange(1, 2**31 - 1), click.IntRange(2, 2**31 - 1)
FILE = click.Path(path_type=Path)
FORMATS = ("csv", "parquet", "arrow", "npy", "svmlight")


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


# ---- groups of options ---------------------------------------------------------------------------


def _grouped(*decorators: Decorator) -> Decorator:
    """Several options as one decorator, in their order."""

    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def data_argument(*, required: bool = True) -> Decorator:
    """Files of rows."""
    return click.argument("data", nargs=-1, required=required, type=click.Path())


def inputs() -> tuple[Decorator, Decorator]:
    """The model and the data."""
    return click.argument("model", type=click.Path()), data_argument()


def output_option(what: str = "") -> Decorator:
    """-o."""
    return option("-o", "--output", type=FILE, required=True, help=f"Output file{what}.")


def json_option() -> Decorator:
    """--json."""
    return option("--json", is_flag=True, help="Print the result as one JSON object.")


def run_options() -> Decorator:
    """Options of a run that do not change its result."""
    shown = "Show progress on stderr (default: if that is a terminal)."
    return _grouped(
        option("--threads", type=COUNT, metavar="N", help="Threads (default: all)."),
        json_option(),
        option("--progress/--no-progress", default=None, help=shown),
    )


def held_out_options() -> Decorator:
    """--holdout and --cv."""
    share = click.FloatRange(0, 1, min_open=True, max_open=True)
    held = "Measure a fit to the other rows on this share of the rows."
    folds = "Measure fits to the other rows on each of N folds."
    return _grouped(
        option("--holdout", type=share, metavar="SHARE", help=held),
        option("--cv", type=FOLDS, metavar="N", help=folds),
    )


def seed_option() -> Decorator:
    """--seed."""
    kind, text = click.IntRange(0, 2**31 - 1), "Seed of what is drawn at random (default 0)."
    return option("--seed", type=kind, metavar="N", default=0, help=text)


def weight_option() -> Decorator:
    """--weight."""
    text = "Column of weights of the rows, which is no feature."
    return option("--weight", metavar="COLUMN", help=text)


def memory_option() -> Decorator:
    """Limit of the rows in memory."""
    limit, text = click.FloatRange(min=0), "Rows that take more are read in blocks (default 2)."
    return option("--memory", type=limit, metavar="GB", default=2.0, help=text)


def target_options() -> Decorator:
    """The column of labels."""
    kinds = Choice(["auto", "int", "float", "bool", "str"])
    target = "The labels: name or number of a column or, for NumPy files, an .npy file; not needed "
    target += "for svmlight files."
    return _grouped(
        option("--target", metavar="COLUMN", help=target),
        option("--labels", type=kinds, default="auto", help="Type of the labels."),
    )


def data_options() -> Decorator:
    """How files of rows are read."""
    chosen = "The features: names or numbers (default: those of the model, or all others)."
    bad = "Leave out and count rows with text in place of numbers, infinity, a wrong number of "
    bad += "fields, or missing values that the model does not accept; outputs have an empty line."
    header = "Whether CSV files begin with names (default: if their first line looks like it)."
    based = "Whether columns of svmlight files are counted from 0 (default: if one is 0)."
    rows = "Rows of a block (default: about 32 MB)."
    return _grouped(
        option("--columns", multiple=True, metavar="A,B,...", help=chosen),
        option("--drop", multiple=True, metavar="A,B,...", help="Columns to leave out."),
        option("--skip-bad", is_flag=True, help=bad),
        option("--dtype", type=Choice(["float32", "float64"]), help="Type of the features."),
        option("--block-rows", type=COUNT, metavar="N", help=rows),
        option("--format", type=Choice(FORMATS), help="Format (default: by names of files)."),
        option("--delimiter", type=_character, metavar="C", help="Of CSV fields; or 'tab'."),
        option("--header/--no-header", default=None, help=header),
        option("--encoding", metavar="NAME", help="Encoding of CSV files (default utf-8)."),
        option("--decimal", type=Choice([".", ","]), default=".", help="Decimal point."),
        option("--comment", metavar="TEXT", help="What begins lines that are left out."),
        option(
            "--na-values",
            multiple=True,
            metavar="A,B,...",
            help="Missing values of CSV files, such as '?,-', besides empty cells, NA, NaN...",
        ),
        option(
            "--default-na/--no-default-na",
            "keep_default_na",
            default=True,
            help="Whether NA, NaN, null... are missing values of CSV files (default), or text.",
        ),
        option("--n-features", type=COUNT, metavar="N", help="Columns of svmlight files."),
        option("--zero-based/--no-zero-based", default=None, help=based),
    )


def task_option() -> Decorator:
    """--task."""
    text = "Fit classes or a regression to the target (default auto: by the numbers in it)."
    return option("--task", type=Choice(["auto", *TASKS]), default="auto", help=text)


def categorical_option() -> Decorator:
    """--categorical."""
    text = "Columns of categories, such as codes that are numbers."
    return option("--categorical", multiple=True, metavar="A,B,...", help=text)


def extractor_option() -> Decorator:
    """--extractor."""
    text = "Of --model shift (default pca)."
    return option("--extractor", type=Choice([*EXTRACTORS]), help=text)


def model_options(default: str, kinds: Sequence[str] = (*MODELS,)) -> Decorator:
    """The model that is fitted, and its parameters."""
    named = "A parameter of the model by its name in Python, as views=columns,splines; "
    named += "PART__NAME=VALUE sets that of an inner estimator."
    return _grouped(
        option(
            "--model", "model_kind", type=Choice(kinds), default=default, help=f"Default {default}."
        ),
        option("--classifier", type=Choice([*CLASSIFIERS]), help="Of --model reliable."),
        option(
            "--set", "assignments", type=assignment, multiple=True, metavar="NAME=VALUE", help=named
        ),
        seed_option(),
    )

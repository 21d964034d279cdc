"""Options that several commands have."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from eigenfeat.cli.kinds import CLASSIFIERS, EXTRACTORS, KINDS, assignment
from eigenfeat.cli.output import UsageError

if TYPE_CHECKING:
    from eigenfeat.tables.rows import FileRows

    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]
    Group: TypeAlias = argparse._ArgumentGroup

__all__ = [
    "add_data_options",
    "add_formats",
    "add_inputs",
    "add_memory",
    "add_model_kind",
    "add_output",
    "add_run_options",
    "add_talk",
    "amount",
    "column_names",
    "count",
    "file_name",
    "folds",
    "image_shape",
    "importing",
    "natural",
    "open_data",
    "open_labelled",
    "positive",
]


# What runs a command.
Command: TypeAlias = Callable[[argparse.Namespace], int]


def importing(module: str, name: str, *, models: bool = False) -> Callable[[], Command]:
    """What imports a command, once the options are known to be right.

    With `models` what writes and reads models is imported, too, before any work begins.
    """

    def command() -> Command:
        if models:
            import_module("skops.io")
        found: Command = getattr(import_module(f"eigenfeat.cli.{module}"), name)
        return found

    return command


def add_output(parser: argparse.ArgumentParser, what: str) -> None:
    """Add -o."""
    parser.add_argument(
        "-o",
        "--output",
        type=file_name,
        required=True,
        metavar="FILE",
        help=f"output file {what}",
    )


def add_run_options(parser: argparse.ArgumentParser, *, progress: bool = True) -> None:
    """Add what has to do with the run, not with its result."""
    group = parser.add_argument_group("running")
    group.add_argument("--threads", type=positive, metavar="N", help="threads (default: all)")
    add_talk(group)
    if not progress:
        return
    group.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show progress on stderr (default: if that is a terminal)",
    )


def add_talk(group: Group) -> None:
    """Add --json."""
    group.add_argument("--json", action="store_true", help="print the result as one JSON object")


def add_data_options(
    parser: argparse.ArgumentParser, *, target: bool = True, model: bool = False
) -> None:
    """Add how files of rows are read."""
    group = parser.add_argument_group("reading")
    if target:
        group.add_argument(
            "--target",
            metavar="COLUMN",
            help="the labels: name or number of a column or, for NumPy files, an .npy file; "
            "not needed for svmlight files and .npz files with an array y",
        )
    group.add_argument(
        "--columns",
        action="append",
        metavar="A,B,...",
        help="the features: names or numbers of columns "
        f"(default: {'those of the fitted model' if model else 'all but the target'})",
    )
    group.add_argument(
        "--drop", action="append", default=[], metavar="A,B,...", help="columns to leave out"
    )
    group.add_argument(
        "--dtype",
        choices=("float32", "float64"),
        help="type of the features (default: float32 if the file has float32, else float64)",
    )
    group.add_argument(
        "--block-rows", type=positive, metavar="N", help="rows of a block (default: about 32 MB)"
    )
    does = "leave out" if target else "leave the output empty for"
    group.add_argument(
        "--skip-bad",
        action="store_true",
        help=f"{does} rows with missing values, NaN, text or a wrong number of fields, and "
        "count them (default: stop at the first)",
    )
    if target:
        group.add_argument(
            "--labels",
            choices=("auto", "int", "float", "bool", "str"),
            default="auto",
            help="type of the labels (default: that of the first labels)",
        )
    add_formats(group)
    group.add_argument(
        "--x-name", default="X", metavar="NAME", help="name of the rows in .npz files (default X)"
    )
    if target:
        group.add_argument(
            "--y-name", default="y", metavar="NAME", help="name of the labels (default y)"
        )
    group.add_argument(
        "--n-features",
        type=positive,
        metavar="N",
        help="number of columns of svmlight files (default: from a first pass)",
    )
    group.add_argument(
        "--zero-based",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="whether columns of svmlight files are counted from 0 (default: if one is 0)",
    )


def add_formats(group: Group) -> None:
    """Add what tells formats apart."""
    group.add_argument(
        "--format",
        choices=("csv", "parquet", "arrow", "npy", "npz", "svmlight"),
        help="format of the files (default: from their names)",
    )
    group.add_argument(
        "--delimiter",
        type=_character,
        metavar="C",
        help="separator of CSV fields: a character, or 'tab'",
    )
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="whether CSV files begin with names (default: if their first line has no numbers)",
    )


def open_data(options: argparse.Namespace, **changed: Any) -> FileRows:
    """Open the rows that the options name."""
    from eigenfeat.tables import OptionError, open_rows

    given = {
        "target": getattr(options, "target", None),
        "columns": None if options.columns is None else listed(options.columns),
        "drop": listed(options.drop),
        "skip_bad": options.skip_bad,
        "labels": getattr(options, "labels", "auto"),
        "y_name": getattr(options, "y_name", "y"),
    }
    names = ["dtype", "block_rows", "format", "delimiter", "header"]
    names += ["x_name", "n_features", "zero_based"]
    given |= {name: getattr(options, name) for name in names}
    try:
        return open_rows(options.data, **{**given, **changed})
    except OptionError as error:
        raise UsageError(f"--{error.option.replace('_', '-')}: {error.text}") from None


def open_labelled(options: argparse.Namespace, **changed: Any) -> FileRows:
    """Open the rows that the options name, which have to have labels."""
    from eigenfeat.tables import listed_files
    from eigenfeat.tables.opening import WITH_LABELS, format_of

    none = UsageError("--target: expected the column of labels, got none")
    paths = listed_files(options.data, options.format)
    bare = {options.format or format_of(path) for path, _ in paths}.isdisjoint([*WITH_LABELS, None])
    if options.target is None and bare and paths[0][0].exists():
        raise none  # before the column of labels is taken for a feature
    rows = open_data(options, **changed)
    if rows.sources[0].label_kind is None:
        if options.target is None and options.y_name != "y":
            raise UsageError(
                f"--y-name: expected an array of labels in {paths[0][0]}, got {options.y_name!r}"
            )
        raise none
    return rows


def column_names(rows: FileRows) -> list[str] | None:
    """Names of the feature columns; None where the files have numbers only."""
    return None if rows.column_names is None else [*rows.column_names]


def listed(texts: list[str]) -> list[str]:
    """The names in texts that are separated by commas."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def file_name(text: str) -> Path:
    """A path that is not empty and can be one."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError(f"expected the name of a file, got {text!r}")
    return Path(text)


def positive(text: str) -> int:
    """An integer from 1."""
    return _integer(text, 1, 2**63 - 1)


def count(text: str) -> int:
    """An integer from 1 that fits into 31 bits."""
    return _integer(text, 1, 2**31 - 1)


def folds(text: str) -> int:
    """An integer from 2 that fits into 31 bits."""
    return _integer(text, 2, 2**31 - 1)


def natural(text: str) -> int:
    """An integer from 0 that fits into 31 bits."""
    return _integer(text, 0, 2**31 - 1)


def _integer(text: str, least: int, most: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        limit = f"integer from {least}" + (f" to {most}" if value > most else "")
        raise argparse.ArgumentTypeError(f"expected an {limit}, got {text!r}")
    return value


def _character(text: str) -> str:
    character = {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)
    if len(character) != 1:
        raise argparse.ArgumentTypeError(f"expected one character or 'tab', got {text!r}")
    if not character.isascii() or character in '\0\n\r"':
        raise argparse.ArgumentTypeError(
            f"expected a character of ASCII that can separate, got {text!r}"
        )
    return character


def amount(text: str) -> float:
    """Gigabytes."""
    value = float(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"expected a number of gigabytes, got {text!r}")
    return value


def image_shape(text: str) -> tuple[int, int] | str | None:
    """Rows and columns of images, as 8x8; "auto", or none."""
    if text in ("auto", "none"):
        return None if text == "none" else text
    rows, _, columns = text.lower().partition("x")
    try:
        return count(rows), count(columns)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"expected rows and columns, as 8x8, or auto or none, got {text!r}"
        ) from None


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the model and the data."""
    parser.add_argument("model", metavar="MODEL", help="a file from fit or eigenfeat.save")
    parser.add_argument("data", nargs="+", metavar="DATA", help="files, folders or patterns")
    parser.set_defaults(reads_standard_input=True)


def add_memory(parser: argparse.ArgumentParser) -> Group:
    """Add --memory; the group that it is in."""
    group = parser.add_argument_group("memory")
    group.add_argument(
        "--memory", type=amount, default=2.0, metavar="GB", help="maximum size of rows (default 2)"
    )
    return group


def add_model_kind(parser: argparse.ArgumentParser) -> None:
    """Add what model is fitted, and its parameters by name."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        dest="model_kind",
        choices=KINDS,
        default="gem",
        help="what is fitted (default gem)",
    )
    group.add_argument(
        "--classifier",
        choices=CLASSIFIERS,
        help="classifier of --model reliable (default lda, with shrinkage)",
    )
    group.add_argument(
        "--extractor", choices=EXTRACTORS, help="extractor of --model shift (default pca)"
    )
    group.add_argument(
        "--set",
        dest="assignments",
        type=assignment,
        action="append",
        metavar="NAME=VALUE",
        help="a parameter of the model, by its name in Python; PART__NAME of one inside it",
    )

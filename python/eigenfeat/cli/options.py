"""Options that several commands have: their values, and the rows and models that they name."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from eigenfeat.cli.kinds import CLASSIFIERS, EXTRACTORS, KINDS, PAIRS, assignment, literal
from eigenfeat.cli.output import UsageError

if TYPE_CHECKING:
    from eigenfeat.tables.rows import FileRows

__all__ = [
    "STANDARD",
    "Parsed",
    "check_output",
    "column_names",
    "grouped",
    "open_data",
    "open_labelled",
    "standard_input",
]

STANDARD = "-"
FORMATS = ("csv", "parquet", "arrow", "npy", "npz", "svmlight")
Decorator = Callable[[Any], Any]


# ---- values --------------------------------------------------------------------------------------


class Parsed(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A value that a function reads; its ValueErrors say what was expected."""

    def __init__(self, read: Callable[[str], Any], name: str, completes: str = "plain") -> None:
        self.name, self._read, self._completes = name, read, completes

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read the text; `click.BadParameter` if that fails."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        """Names of files and folders are completed by the shell."""
        return [CompletionItem(incomplete, type=self._completes)]


class OneOf(click.Choice):  # type: ignore[type-arg, unused-ignore]
    """One of several words."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the word; `click.BadParameter` if it is none of them."""
        if value not in self.choices:
            self.fail(f"expected one of {', '.join(self.choices)}, got {value!r}", param, ctx)
        return value


def _file_name(text: str) -> Path:
    if not text or "\0" in text:
        raise ValueError(f"expected the name of a file, got {text!r}")
    return Path(text)


def whole(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    """What reads an integer within bounds."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            limit = f"integer from {least}" + (f" to {most}" if value > most else "")
            raise ValueError(f"expected an {limit}, got {text!r}")
        return value

    return read


def _parameter(text: str) -> Any:
    """A parameter, which the estimator's constraints judge; `None` is told apart from not given."""
    value = literal(text)
    return "none" if value is None else text if isinstance(value, bool) else value


def _powers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"expected whole numbers with commas, got {text!r}") from None


def _character(text: str) -> str:
    character = {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)
    if len(character) != 1:
        raise ValueError(f"expected one character or 'tab', got {text!r}")
    if not character.isascii() or character in '\0\n\r"':
        raise ValueError(f"expected a character of ASCII that can separate, got {text!r}")
    return character


def _amount(text: str) -> float:
    value = literal(text)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise ValueError(f"expected a number of gigabytes, got {text!r}")
    return float(value)


def _image_shape(text: str) -> tuple[int, int] | str | None:
    if text in ("auto", "none"):
        return None if text == "none" else text
    rows, _, columns = text.lower().partition("x")
    try:
        return whole(1)(rows), whole(1)(columns)
    except ValueError:
        raise ValueError(
            f"expected rows and columns, as 8x8, or auto or none, got {text!r}"
        ) from None


FILE = Parsed(_file_name, "FILE", "file")
FOLDER = Parsed(_file_name, "FOLDER", "dir")
DATA = Parsed(str, "DATA", "file")
POSITIVE = Parsed(whole(1, 2**63 - 1), "N")
IMAGE_SHAPE = Parsed(_image_shape, "RxC")
ASSIGNMENT = Parsed(assignment, "NAME=VALUE")


# ---- groups of options ---------------------------------------------------------------------------


def grouped(*decorators: Decorator) -> Decorator:
    """Several options as one decorator, in their order."""

    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def output_option(what: str) -> Decorator:
    """Give a command -o."""
    return click.option("-o", "--output", type=FILE, required=True, help=f"Output file {what}.")


def json_option() -> Decorator:
    """Give a command --json."""
    return click.option("--json", is_flag=True, help="Print the result as one JSON object.")


def run_options(*, progress: bool = True) -> Decorator:
    """What has to do with the run, not with its result."""
    shown = click.option(
        "--progress/--no-progress",
        default=None,
        help="Show progress on stderr (default: if that is a terminal).",
    )
    threads = click.option("--threads", type=POSITIVE, help="Threads (default: all).")
    return grouped(threads, json_option(), *[shown] * progress)


def format_options() -> Decorator:
    """What tells formats apart."""
    return grouped(
        click.option(
            "--format", type=OneOf(FORMATS), help="Format of the files (default: by their names)."
        ),
        click.option(
            "--delimiter",
            type=Parsed(_character, "C"),
            help="Separator of CSV fields: a character, or 'tab'.",
        ),
        click.option(
            "--header/--no-header",
            default=None,
            help="Whether CSV files begin with names (default: if their first line looks like it).",
        ),
        click.option(
            "--encoding", type=Parsed(str, "NAME"), help="Encoding of CSV files (default utf-8)."
        ),
        click.option("--decimal", type=OneOf([".", ","]), default=".", help="Decimal point."),
        click.option(
            "--comment", type=Parsed(str, "TEXT"), help="What begins lines that are left out."
        ),
    )


def data_options(*, target: bool = True, model: bool = False) -> Decorator:
    """How files of rows are read."""
    columns = "those of the fitted model" if model else "all but the target"
    does = "Leave out" if target else "Leave the output empty for"
    text = Parsed(str, "A,B,...")
    labelled = [
        click.option(
            "--target",
            type=Parsed(str, "COLUMN"),
            help="The labels: name or number of a column or, for NumPy files, an .npy file; not "
            "needed for svmlight files and .npz files with an array y.",
        )
    ]
    kinds = [
        click.option(
            "--labels",
            type=OneOf(["auto", "int", "float", "bool", "str"]),
            default="auto",
            help="Type of the labels (default: that of the first labels).",
        ),
        click.option("--y-name", default="y", type=Parsed(str, "NAME"), help="Array of labels."),
    ]
    return grouped(
        *labelled * target,
        click.option(
            "--columns",
            multiple=True,
            type=text,
            help=f"The features: names or numbers of columns (default: {columns}).",
        ),
        click.option("--drop", multiple=True, type=text, help="Columns to leave out."),
        click.option(
            "--dtype",
            type=OneOf(["float32", "float64"]),
            help="Type of the features (default: float32 if the file has float32, else float64).",
        ),
        click.option("--block-rows", type=POSITIVE, help="Rows of a block (default: about 32 MB)."),
        click.option(
            "--skip-bad",
            is_flag=True,
            help=f"{does} rows with text, infinity, a wrong number of fields or, where the model "
            "does not take them, missing values, and count them (default: stop at the first).",
        ),
        *kinds * target,
        format_options(),
        click.option(
            "--x-name", default="X", type=Parsed(str, "NAME"), help="Array of rows in .npz files."
        ),
        click.option(
            "--n-features",
            type=POSITIVE,
            help="Columns of svmlight files (default: from a first pass).",
        ),
        click.option(
            "--zero-based/--no-zero-based",
            default=None,
            help="Whether columns of svmlight files are counted from 0 (default: if one is 0).",
        ),
    )


def inputs() -> Decorator:
    """The model and the data."""
    return grouped(
        click.argument("model", type=Parsed(str, "MODEL", "file")),
        click.argument("data", nargs=-1, required=True, type=DATA),
    )


def memory_option() -> Decorator:
    """Limit of the rows in memory."""
    return click.option(
        "--memory",
        type=Parsed(_amount, "GB"),
        default=2.0,
        help="Maximum size of rows in memory (default 2).",
    )


def model_options() -> Decorator:
    """What model is fitted, and its parameters by name."""
    return grouped(
        click.option(
            "--model", "model_kind", type=OneOf(KINDS), default="gem", help="Default gem."
        ),
        click.option(
            "--classifier",
            type=OneOf(CLASSIFIERS),
            help="Classifier of --model reliable (default lda, with shrinkage).",
        ),
        click.option(
            "--extractor", type=OneOf(EXTRACTORS), help="Extractor of --model shift (default pca)."
        ),
        click.option(
            "--set",
            "assignments",
            type=ASSIGNMENT,
            multiple=True,
            help="A parameter of the model, by its name in Python; PART__NAME of one inside it.",
        ),
    )


def parameter_options() -> Decorator:
    """Parameters of GEMClassifier and GEM."""
    number, integer = Parsed(_parameter, "X"), Parsed(_parameter, "N")
    options: list[tuple[str, Any, str]] = [
        ("--ridge", number, "Relative ridge of denominators (default 0.2), or auto."),
        ("--n-directions", integer, "Maximum directions of a pair, or auto."),
        ("--threshold", number, "Minimum eigenvalue (1.5), none, or auto."),
        ("--pairs", OneOf(PAIRS), "Pairs of classes (default auto)."),
        ("--denominator", OneOf(["second_moment", "covariance"]), "Denominator of pairs."),
        ("--scale", OneOf(["auto", "none", "columns"]), "Standardise columns (default auto)."),
        ("--expansion", Parsed(str, "NAME"), "auto, half_wave, shifted, or polynomial."),
        ("--powers", Parsed(_powers, "1,2,3"), "Exponents of the expansion."),
        ("--penalty", number, "Penalty of the regression (default 0.03), or auto."),
        ("--tol", number, "Tolerance of the regression (default 0.001)."),
        ("--depth", integer, "Number of layers (default 1)."),
        ("--hidden-directions", integer, "Directions of a pair before the last layer."),
        ("--hidden-ridge", number, "Ridge before the last layer (default: --ridge)."),
        ("--n-clusters", integer, "Clusters of each class, of rows in memory (default 1)."),
    ]
    return grouped(
        *(click.option(name, type=kind, help=text) for name, kind, text in options),
        click.option("--constant/--no-constant", default=None, help="Add a column of 1s."),
        click.option(
            "--include-input",
            flag_value=True,
            is_flag=True,
            default=None,
            help="Also use the input of the last layer as features.",
        ),
        click.option("--seed", "random_state", type=integer, help="Random seed (default 0)."),
    )


# ---- rows ----------------------------------------------------------------------------------------


def open_data(options: SimpleNamespace, **changed: Any) -> FileRows:
    """Open the rows that the options name."""
    from eigenfeat.tables import OptionError, open_rows

    given = {
        "target": getattr(options, "target", None),
        "columns": listed(options.columns) if options.columns else None,
        "drop": listed(options.drop),
        "skip_bad": options.skip_bad,
        "labels": getattr(options, "labels", "auto"),
        "y_name": getattr(options, "y_name", "y"),
    }
    names = ["dtype", "block_rows", "format", "delimiter", "header", "encoding", "decimal"]
    names += ["comment", "x_name", "n_features", "zero_based"]
    given |= {name: getattr(options, name) for name in names}
    try:
        return open_rows(options.data, **{**given, **changed})
    except OptionError as error:
        raise UsageError(f"--{error.option.replace('_', '-')}: {error.text}") from None


def open_labelled(options: SimpleNamespace, **changed: Any) -> FileRows:
    """Open the rows that the options name, which have to have labels."""
    from eigenfeat.tables import listed_files
    from eigenfeat.tables.opening import WITH_LABELS, format_of

    none = UsageError("--target: expected the column of labels, got none")
    paths = [path for path, _ in listed_files(options.data, options.format)]
    bare = {options.format or format_of(path) for path in paths}.isdisjoint([*WITH_LABELS, None])
    if options.target is None and bare and paths[0].exists():
        raise none  # before the column of labels is taken for a feature
    rows = open_data(options, **changed)
    if rows.sources[0].label_kind is None:
        if options.target is None and options.y_name != "y":
            raise UsageError(
                f"--y-name: expected an array of labels in {paths[0]}, got {options.y_name!r}"
            )
        raise none
    return rows


def column_names(rows: FileRows) -> list[str] | None:
    """Names of the feature columns; None where the files have numbers only."""
    return None if rows.column_names is None else [*rows.column_names]


def listed(texts: Sequence[str]) -> list[str]:
    """The names in texts that are separated by commas."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def check_output(path: Path, inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Refuse, before any work, a file that is an input or a folder, or is in one not there."""
    if str(path) == STANDARD:
        raise UsageError("--output: expected the name of a file, got -")
    if not path.parent.is_dir():
        raise FileNotFoundError(2, "No such file or directory", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(path))
    if not path.is_file():
        return
    for other in inputs:
        if os.path.exists(other) and os.path.samefile(path, other):
            raise UsageError(f"--output: expected another file than the input {other}")


def files_of(rows: FileRows) -> list[Path]:
    """All files that rows come from."""
    return [path for source in rows.sources for path in source.files()]


@contextmanager
def standard_input(options: SimpleNamespace, *, reads: bool) -> Iterator[None]:
    """Copy standard input to a temporary file, if that is what the data are: it is read twice."""
    data = getattr(options, "data", None) or []
    if STANDARD not in data:
        yield
        return
    if not reads:
        raise UsageError("DATA: expected names of files, got -")
    if len(data) > 1:
        raise UsageError(f"DATA: expected - alone, got {len(data)} names")
    if options.format is None:
        raise UsageError("--format: expected the format of standard input, got none")
    with TemporaryDirectory() as folder:
        ending = {"svmlight": "svm"}.get(options.format, options.format)
        path = Path(folder) / f"standard-input.{ending}"
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, 2**20)
        options.data, options.named = [str(path)], ["standard input"]
        yield

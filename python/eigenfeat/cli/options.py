"""Options that several commands have: their values, and the rows and models that they name."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from eigenfeat.cli.kinds import CLASSIFIERS, EXTRACTORS, KINDS, PAIRS, assignment, literal
from eigenfeat.cli.output import UsageError

if TYPE_CHECKING:
    from eigenfeat.tables.rows import FileRows

__all__ = [
    "STANDARD",
    "Parsed",
    "check_output",
    "check_some",
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

    def __init__(self, read: Callable[[str], Any], name: str) -> None:
        self.name, self._read = name, read

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read the text; `click.BadParameter` if that fails."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class FileName(click.Path):
    """The name of a file to write."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return a path; `click.BadParameter` for no name."""
        if not value or "\0" in str(value):
            self.fail(f"expected the name of a file, got {value!r}", param, ctx)
        return super().convert(value, param, ctx)


def _parameter(text: str) -> Any:
    """A parameter, which the estimator's constraints judge."""
    value = literal(text)
    return text if isinstance(value, bool) else value


def _powers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"expected whole numbers with commas, got {text!r}") from None


def _character(text: str) -> str:
    character = {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)
    if len(character) != 1:
        raise ValueError(f"expected one character or 'tab', got {text!r}")
    return character


def _image_shape(text: str) -> tuple[int, int] | str | None:
    if text in ("auto", "none"):
        return None if text == "none" else text
    rows, _, columns = text.lower().partition("x")
    if not (rows.isdigit() and columns.isdigit()) or not int(rows) * int(columns):
        raise ValueError(f"expected rows and columns, as 8x8, or auto or none, got {text!r}")
    return int(rows), int(columns)


FILE = FileName(path_type=Path)
FOLDER = FileName(path_type=Path, file_okay=False)
DATA = click.Path()
COUNT = click.IntRange(1, 2**31 - 1)
LARGE_COUNT = click.IntRange(1, 2**63 - 1)
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
    threads = click.option("--threads", type=COUNT, help="Threads (default: all).")
    return grouped(threads, json_option(), *[shown] * progress)


def format_options() -> Decorator:
    """What tells formats apart."""
    return grouped(
        click.option(
            "--format",
            type=click.Choice(FORMATS),
            help="Format of the files (default: by their names).",
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
        click.option("--encoding", metavar="NAME", help="Encoding of CSV files (default utf-8)."),
        click.option(
            "--decimal", type=click.Choice([".", ","]), default=".", help="Decimal point."
        ),
        click.option("--comment", metavar="TEXT", help="What begins lines that are left out."),
    )


def data_options(*, target: bool = True, model: bool = False) -> Decorator:
    """How files of rows are read."""
    columns = "those of the fitted model" if model else "all but the target"
    does = "Leave out" if target else "Leave the output empty for"
    labelled = [
        click.option(
            "--target",
            metavar="COLUMN",
            help="The labels: name or number of a column or, for NumPy files, an .npy file; not "
            "needed for svmlight files and .npz files with an array y.",
        )
    ]
    kinds = [
        click.option(
            "--labels",
            type=click.Choice(["auto", "int", "float", "bool", "str"]),
            default="auto",
            help="Type of the labels (default: that of the first labels).",
        ),
        click.option("--y-name", default="y", metavar="NAME", help="Array of labels."),
    ]
    return grouped(
        *labelled * target,
        click.option(
            "--columns",
            multiple=True,
            metavar="A,B,...",
            help=f"The features: names or numbers of columns (default: {columns}).",
        ),
        click.option("--drop", multiple=True, metavar="A,B,...", help="Columns to leave out."),
        click.option(
            "--dtype",
            type=click.Choice(["float32", "float64"]),
            help="Type of the features (default: float32 if the file has float32, else float64).",
        ),
        click.option(
            "--block-rows", type=LARGE_COUNT, help="Rows of a block (default: about 32 MB)."
        ),
        click.option(
            "--skip-bad",
            is_flag=True,
            help=f"{does} rows with text, infinity, a wrong number of fields or, where the model "
            "does not take them, missing values, and count them (default: stop at the first).",
        ),
        *kinds * target,
        format_options(),
        click.option("--x-name", default="X", metavar="NAME", help="Array of rows in .npz files."),
        click.option(
            "--n-features",
            type=LARGE_COUNT,
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
        click.argument("model", type=click.Path()),
        click.argument("data", nargs=-1, required=True, type=DATA),
    )


class _Size(click.FloatRange):
    """A size in GB, NaN excluded, which lies in click's range."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        size = float(super().convert(value, param, ctx))
        return size if size == size else self.fail(f"expected a size in GB, got {value}")


def memory_option() -> Decorator:
    """Limit of the rows in memory."""
    return click.option(
        "--memory",
        type=_Size(min=0),
        metavar="GB",
        default=2.0,
        help="Maximum size of rows in memory (default 2).",
    )


def model_options() -> Decorator:
    """What model is fitted, and its parameters by name."""
    return grouped(
        click.option(
            "--model", "model_kind", type=click.Choice(KINDS), default="gem", help="Default gem."
        ),
        click.option(
            "--classifier",
            type=click.Choice(CLASSIFIERS),
            help="Classifier of --model reliable (default lda, with shrinkage).",
        ),
        click.option(
            "--extractor",
            type=click.Choice(EXTRACTORS),
            help="Extractor of --model shift (default pca).",
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
        ("--pairs", click.Choice(PAIRS), "Pairs of classes (default auto)."),
        (
            "--denominator",
            click.Choice(["second_moment", "covariance"]),
            "Denominator of pairs.",
        ),
        ("--scale", click.Choice(["auto", "none", "columns"]), "Standardise columns."),
        ("--expansion", Parsed(str, "NAME"), "auto, half_wave, shifted, or polynomial."),
        ("--powers", Parsed(_powers, "1,2,3"), "Exponents of the expansion."),
        ("--penalty", number, "Penalty of the regression (default 0.03), or auto."),
        ("--tol", number, "Tolerance of the regression (default 0.001)."),
        ("--depth", integer, "Number of layers (default 1)."),
        ("--hidden-directions", integer, "Directions of a pair before the last layer."),
        ("--hidden-ridge", number, "Ridge before the last layer (default: --ridge)."),
        ("--n-clusters", integer, "Clusters of each class, of rows in memory (default 1)."),
    ]
    given: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        *(((name,), {"type": kind, "help": text}) for name, kind, text in options),
        (("--constant/--no-constant",), {"help": "Add a column of 1s."}),
        (
            ("--include-input",),
            {"is_flag": True, "help": "Also use the input of the last layer as features."},
        ),
        (("--seed", "random_state"), {"type": integer, "help": "Random seed (default 0)."}),
    ]
    return grouped(
        *(
            click.option(*names, default=None, expose_value=False, callback=_collected, **kind)
            for names, kind in given
        )
    )


def _collected(context: click.Context, option: click.Parameter, value: Any) -> None:
    """Add a parameter to those that were given."""
    parameters = context.params.setdefault("parameters", {})
    if context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE:
        parameters[option.name] = value


# ---- rows ----------------------------------------------------------------------------------------


def open_data(options: SimpleNamespace, **changed: Any) -> FileRows:
    """Open the rows that the options name."""
    from eigenfeat.tables import open_rows

    names = signature(open_rows).parameters
    given = {name: value for name, value in vars(options).items() if name in names}
    given["columns"] = listed(options.columns) if options.columns else None
    given["drop"] = listed(options.drop)
    return open_rows(options.data, **{**given, **changed})


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


def check_some(n: int, rows: FileRows) -> None:
    """ValueError if no row of the files is good."""
    if not n:
        skipped = f"; {rows.n_skipped:,} bad rows were left out" if rows.n_skipped else ""
        raise ValueError(f"{rows.sources[0].path}: expected at least one row, got none{skipped}")


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

"""The command line: demonstrations, and commands on files of rows."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eigenfeat._base.extras import MissingExtraError, require
from eigenfeat.cli import files, model_commands
from eigenfeat.cli.options import count, natural
from eigenfeat.cli.output import Parser, quiet_interrupts, report_error
from eigenfeat.cli.standard import standard_input

if TYPE_CHECKING:
    from rich.console import Console

    from eigenfeat.demo.datasets import Images
    from eigenfeat.demo.digits import Outcome

DESCRIPTION = """\
Discriminative features from generalized eigenvectors of class moments."""

EXAMPLES = """\
examples:
  eigenfeat demo                    compare representations of digits, draw pictures
  eigenfeat demo --quick            the same in a few seconds
  eigenfeat demo --splits 20 --seed 1 --output pictures
  eigenfeat demo early              classify signals before they end
  eigenfeat fit rows.csv --target kind -o model.efm
  eigenfeat evaluate model.efm test.csv --target kind
  eigenfeat predict model.efm new.csv -o predictions.csv
  eigenfeat report model.efm test.csv --target kind -o report.html
  eigenfeat moments 'part-*.parquet' --target kind -o rows.efm --resume
"""

DEMO = """\
Compares logistic regression on the pixels of scikit-learn's bundled digits with logistic regression
on random Fourier features, on expanded random directions and on GEM features. The last three have
the same number of columns. Prints test errors and draws pictures. Nothing is downloaded.

"eigenfeat demo early" simulates signals of three classes instead, follows one of them sample by
sample until it is decided, calibrates tau on held-out signals, and compares with ECTS and with a
fixed time of decision."""

EARLY = "early"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:2] == files.MERGE.split():
        given[:2] = [files.MERGE]
    with quiet_interrupts("--json" in given):
        options = _parser("--json" in given).parse_args(given)
    as_json = getattr(options, "json", False)
    expected: tuple[type[BaseException], ...] = (KeyboardInterrupt, OSError, MissingExtraError)
    if options.command is not _load_demo:
        expected += (ValueError, ArithmeticError, ImportError, MemoryError)
    try:
        with quiet_interrupts(as_json):
            run = options.command()
        with standard_input(options):
            return int(run(options))
    except BrokenPipeError:  # who reads the output has seen enough, such as head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except expected as error:
        advice = _advice(error) if getattr(options, "skip_bad", None) is False else ""
        return report_error(error, as_json, advice)


def _advice(error: BaseException) -> str:
    """How to go on after an error in one row, if that is what it is."""
    from eigenfeat.tables.errors import BadRowError

    return "; --skip-bad leaves such rows out" if isinstance(error, BadRowError) else ""


def _parser(as_json: bool = False) -> argparse.ArgumentParser:
    parser = Parser(prog="eigenfeat", description=DESCRIPTION, epilog=EXAMPLES, json=as_json)
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="show program's version number and exit"
    )
    kind: Any = partial(Parser, json=as_json)
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=kind
    )
    _add_demo(commands)
    files.add_commands(commands)
    model_commands.add_completion(commands, parser)
    return parser


class _Version(argparse.Action):
    """Looks the version up when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from eigenfeat._base.version import __version__

        print(f"eigenfeat {__version__}")
        parser.exit()


def _add_demo(commands: Any) -> None:
    digits = commands.add_parser(
        "demo",
        help="compare representations of real digits",
        description=DEMO,
    )
    digits.add_argument(
        "what",
        nargs="?",
        choices=("digits", EARLY),
        default="digits",
        metavar="WHAT",
        help="digits (default) | early",
    )
    digits.add_argument(
        "--splits",
        type=count,
        metavar="N",
        help="random splits of the digits (default 6, with --quick 2)",
    )
    digits.add_argument("--seed", type=natural, default=0, metavar="N", help="seed (default 0)")
    digits.add_argument(
        "--output",
        type=Path,
        default=Path("eigenfeat-demo"),
        metavar="DIR",
        help="folder for pictures and errors.csv (default ./eigenfeat-demo)",
    )
    digits.add_argument("--quick", action="store_true", help="fewer splits and directions")
    digits.set_defaults(command=_load_demo)


def _load_demo() -> Callable[[argparse.Namespace], int]:
    """Import what a demonstration needs; what runs it."""
    require("rich", "demonstrations")
    require("matplotlib", "pictures")
    from eigenfeat.demo import datasets, digits, early, report  # noqa: F401

    return _demo


def _demo(options: argparse.Namespace) -> int:
    from rich.console import Console

    from eigenfeat.demo import datasets, digits, report

    if options.what == EARLY:
        return _demo_early(options)
    started = time.perf_counter()
    console = Console()
    options.output.mkdir(parents=True, exist_ok=True)
    images = datasets.digits()
    splits = options.splits or (2 if options.quick else 6)
    outcomes = _compare(console, images, splits, options.seed, 2 if options.quick else 5)
    rows = round((1 - digits.TEST_SHARE) * len(images.y))
    title = f"Digits, {splits} random splits, {rows} rows for training"
    console.print()
    console.print(report.comparison_table(outcomes, title))
    report.write_csv(outcomes, options.output / "errors.csv")
    with console.status("drawing"):
        written = digits.draw(images, outcomes, options.output)
    console.print(f"Pictures and errors.csv in {options.output.resolve()}", soft_wrap=True)
    _finish(console, written, started)
    return 0


def _finish(console: Console, written: Sequence[tuple[Path, str]], started: float) -> None:
    width = max(16, *(len(path.name) for path, _ in written))
    for path, caption in written:
        console.print(f"  {path.name:<{width}} {caption}", highlight=False)
    console.print(f"{time.perf_counter() - started:.0f} seconds in all", highlight=False)


def _demo_early(options: argparse.Namespace) -> int:
    from rich.console import Console

    from eigenfeat.demo import early

    started = time.perf_counter()
    console = Console()
    with console.status("deciding"):
        shown = early.demonstrate(options.seed)
    early.show(shown, console)
    with console.status("drawing"):
        written = early.draw(shown, options.output)
    console.print(f"Pictures in {options.output.resolve()}", soft_wrap=True)
    _finish(console, written, started)
    return 0


def _compare(
    console: Console, images: Images, splits: int, seed: int, n_directions: int
) -> dict[str, Outcome]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from eigenfeat.demo import digits

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
        task = progress.add_task("starting", total=4 * splits)

        def advance(step: str) -> None:
            progress.update(task, advance=1, description=step)

        return digits.compare(images, splits, seed, n_directions, advance)

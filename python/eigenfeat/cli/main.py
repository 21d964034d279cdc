"""The command line: demonstration, experiments of papers, and commands on files of rows."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eigenfeat._base.extras import MissingExtraError, require
from eigenfeat.cli import files
from eigenfeat.cli.options import count, natural
from eigenfeat.cli.output import Parser, quiet_interrupts, report_error

if TYPE_CHECKING:
    from rich.console import Console

    from eigenfeat.demo.datasets import Images
    from eigenfeat.demo.digits import Outcome
    from eigenfeat.reproduce import Context

DESCRIPTION = """\
Discriminative features from generalized eigenvectors of class moments."""

EXAMPLES = """\
examples:
  eigenfeat demo                    compare representations of digits, draw pictures
  eigenfeat demo --quick            the same in a few seconds
  eigenfeat demo --splits 20 --seed 1 --output pictures
  eigenfeat demo early              decide signals before they have ended
  eigenfeat reproduce mnist --data DIR --quick
                                    the paper's experiment on a tenth of the rows, a minute or two
  eigenfeat fit rows.csv --target kind -o model.efm
  eigenfeat predict model.efm new.csv -o predictions.csv
  eigenfeat moments 'part-*.parquet' --target kind -o rows.efm --resume
"""

DEMO = """\
Compares logistic regression on the pixels of scikit-learn's bundled digits with logistic regression
on random Fourier features, on expanded random directions and on GEM features. The three have the
same number of columns. Prints test errors and draws pictures. Nothing is downloaded.

"eigenfeat demo early" simulates signals of three kinds instead, follows one of them sample by
sample until it is decided, calibrates tau on held-out signals, and compares with ECTS and with
deciding at a fixed time."""

REPRODUCE = """\
Runs an experiment of a paper and prints errors, seconds and memory beside the paper's figures.
Hyperparameters are chosen without the test rows, which are read once at the end. Every method runs
in a process of its own; its memory is the most that process has held, with the interpreter and the
data. A quick run checks that all works: its errors are of fewer rows. Of the GEM paper (ICML 2014):

  mnist      handwritten digits, Table 2                            mnist.npz
  covertype  forest cover types, Table 3                            covtype_subset.npz
  speech     frames of spoken digits in place of TIMIT's, Table 4   fsdd.npz
  defaults   four further data sets, nothing chosen                 uci_isolet.npz,
                                        uci_satimage.npz, opencv_digits.npz, ocr_letters.npz

of Parrish's thesis (University of Washington, 2012), the first three over ten random splits:

  ldg           LDG and others on 12 sets, Table 3.1 and Figures 3.4-3.8   uci_*.npz, mnist.npz
  ldg-small     15 sets of few time series, Tables 3.3-3.5                 ucr/*.npz
  ldg-transfer  images of one domain with help from another, Figure 4.5    office_surf.npz
  early         when incomplete series are decided, chapter 5              ucr/*.npz

and of the paper on max-margin data shifting (AAAI 2016), Tables 1, 3 and 4 and Figures 2 and 3:

  mmds       mnist.npz, opencv_digits.npz, ocr_letters.npz, faces_yale.npz, faces_yaleb.npz,
             faces_orl.npz, microarray_standins.npz

The last five also draw pictures.

A file that is missing or of another kind is named, with the arrays that it should hold. Ctrl-C ends
a run; what is finished is printed and kept."""

TASKS = (
    *("mnist", "covertype", "speech", "defaults"),
    *("ldg", "ldg-small", "ldg-transfer"),
    "mmds",
)
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
    if options.command.__module__ == files.__name__:
        expected += (ValueError, ArithmeticError, ImportError, MemoryError)
    try:
        with quiet_interrupts(as_json):
            run = options.command()
        return int(run(options))
    except expected as error:
        return report_error(error, as_json)


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
    _add_reproduce(commands)
    files.add_commands(commands)
    return parser


class _Version(argparse.Action):
    """Looks the version up when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from eigenfeat._base.version import version

        print(f"eigenfeat {version()}")
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


def _add_reproduce(commands: Any) -> None:
    reproduce = commands.add_parser(
        "reproduce",
        help="run the papers' experiments",
        description=REPRODUCE,
    )
    reproduce.add_argument(
        "task", choices=(*TASKS, EARLY), metavar="TASK", help=" | ".join((*TASKS, EARLY))
    )
    reproduce.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder of the data files"
    )
    reproduce.add_argument(
        "--quick", action="store_true", help="fewer rows and hyperparameters, a minute or two"
    )
    reproduce.add_argument(
        "--peers", action="store_true", help="also run other packages' classifiers, which is slow"
    )
    reproduce.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="run only methods, peers too, whose name contains TEXT, or, with a colon in it, whose "
        "DATA: METHOD does; may be repeated",
    )
    reproduce.add_argument(
        "--output",
        type=Path,
        default=Path("eigenfeat-reproduce"),
        metavar="DIR",
        help="folder for TASK.csv or TASK-quick.csv, and pictures (default ./eigenfeat-reproduce)",
    )
    reproduce.add_argument(
        "--threads", type=count, metavar="N", help="threads of every method (default: all)"
    )
    reproduce.set_defaults(command=_load_reproduce)


def _load_demo() -> Callable[[argparse.Namespace], int]:
    """Import what a demonstration needs; what runs it."""
    require("rich", "demonstrations")
    require("matplotlib", "pictures")
    from eigenfeat.demo import datasets, digits, early, report  # noqa: F401

    return _demo


def _load_reproduce() -> Callable[[argparse.Namespace], int]:
    """Import what experiments need; what runs one."""
    require("rich", "tables")
    require("matplotlib", "pictures")
    from eigenfeat import reproduce  # noqa: F401

    return _reproduce


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

    from eigenfeat.demo import early, report_early

    started = time.perf_counter()
    console = Console()
    with console.status("deciding"):
        shown = early.demonstrate(options.seed)
    report_early.show(shown, console)
    with console.status("drawing"):
        written = early.draw(shown, options.output)
    console.print(f"Pictures in {options.output.resolve()}", soft_wrap=True)
    _finish(console, written, started)
    return 0


def _reproduce(options: argparse.Namespace) -> int:
    from eigenfeat import reproduce
    from eigenfeat.reproduce import settings

    context = reproduce.Context(quick=options.quick, threads=options.threads, seed=settings.SEED)
    try:
        if options.task == "mmds":
            from eigenfeat.reproduce import mmds

            mmds.run(options.data, options.output, context, only=options.only)
            return 0
        if options.task == EARLY:
            return _reproduce_early(options, context)
        outcomes = reproduce.reproduce(
            reproduce.PROTOCOLS[options.task],
            options.data,
            options.output,
            context,
            peers=options.peers,
            only=options.only,
        )
    except reproduce.NothingToRunError as error:
        print(f"eigenfeat: {error}", file=sys.stderr)
        return 2
    return int(any(outcome.failure for outcome in outcomes))


def _reproduce_early(options: argparse.Namespace, context: Context) -> int:
    from eigenfeat.reproduce.early import reproduce_early

    trials = reproduce_early(options.data, options.output, context, only=options.only)
    return int(any(trial.failure for trial in trials))


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

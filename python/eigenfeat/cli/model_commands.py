"""Commands on models: their options, and how they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from eigenfeat.cli.kinds import assignment
from eigenfeat.cli.options import (
    add_data_options,
    add_inputs,
    add_memory,
    add_model_kind,
    add_output,
    add_run_options,
    folds,
    image_shape,
    importing,
    positive,
)
from eigenfeat.cli.parameters import add_parameters
from eigenfeat.cli.texts import DATA, STATUS

if TYPE_CHECKING:
    from eigenfeat.cli.options import Commands

__all__ = ["SHELLS", "add_completion", "add_model_commands"]

SHELLS = ("bash", "zsh", "tcsh")

REPORT = f"""\
Writes one HTML page about a model and its predictions for rows with labels: accuracy with its
standard error, confusion, calibration, spectra, directions as images where columns are pixels, what
predictions rest on, times of early decisions, parameters and versions. The page needs no network.
Needs matplotlib: pip install 'eigenfeat[plot]'. Rows whose labels the model does not know are
counted and left out. Use rows that had no part in the fit.

{DATA}"""

REPORT_EXAMPLES = f"""\
examples:
  eigenfeat report model.efm test.csv --target kind -o report.html
  eigenfeat report digits.efm test.parquet --target digit --image-shape 8x8 -o report.html

with --json: status, command, output, rows, of_rows, skipped, seconds.

{STATUS}"""

SEARCH = f"""\
Tries parameters on held-out rows, fits the best to all rows, and saves it. --grid names them, by
their names in Python. gem: GEMClassifierCV, on one held-out part or --cv folds; without --grid its
default grid. ldg: n_components, gamma and n_neighbors, by LDG's own cross-validation. reliable:
ReliableClassifierCV, by the harmonic mean of accuracy and earliness saved; reliability=A,B,C are
the taus. shift: folds of MaxMarginShift and a linear SVM; the shift is saved, for transform. Rows
must fit into --memory.

{DATA}"""

SEARCH_EXAMPLES = f"""\
examples:
  eigenfeat search rows.csv --target kind -o best.efm
  eigenfeat search rows.csv --target kind -o best.efm --grid penalty=0.03,0.3 --grid depth=1,2
  eigenfeat search rows.csv --target kind -o ldg.efm --model ldg --grid n_components=2,5,9
  eigenfeat search rows.csv --target kind -o early.efm --model reliable --grid rule=pairwise,box

with --json: status, command, output, estimator, rows, skipped, best_params, best_score (larger is
better), results (params, score and deviation of all candidates, best first), seconds.

{STATUS}"""

COMPLETION = """\
Prints a script with which a shell completes commands, options and names of files. Needs shtab: pip
install 'eigenfeat[cli]'."""

COMPLETION_EXAMPLES = """\
examples:
  eigenfeat completion bash > ~/.local/share/bash-completion/completions/eigenfeat
  eigenfeat completion zsh > ~/.zfunc/_eigenfeat      (a folder of $fpath)
  eigenfeat completion tcsh > ~/.eigenfeat.csh        (then: source ~/.eigenfeat.csh)"""


def add_model_commands(commands: Commands) -> None:
    """Add the commands to those of the program."""
    _add_search(commands)
    _add_report(commands)


def add_completion(commands: Commands, parser: argparse.ArgumentParser) -> None:
    """Add the command that completes all others, those of `parser`."""
    completion = commands.add_parser(
        "completion",
        help="print a script for completion in a shell",
        description=COMPLETION,
        epilog=COMPLETION_EXAMPLES,
    )
    completion.add_argument("shell", choices=SHELLS, help="bash, zsh or tcsh")
    completion.set_defaults(command=importing("completion", "completion"), parser=parser)


def _add_report(commands: Any) -> None:
    report = commands.add_parser(
        "report",
        help="write an HTML page about a model and its predictions",
        usage="%(prog)s MODEL DATA... --target COLUMN -o FILE [options]",
        description=REPORT,
        epilog=REPORT_EXAMPLES,
    )
    add_inputs(report)
    add_output(report, "of the page")
    group = report.add_argument_group("page")
    group.add_argument("--title", metavar="TEXT", help="title of the page")
    group.add_argument(
        "--image-shape",
        type=image_shape,
        default="auto",
        metavar="RxC",
        help="shape of the images whose pixels the columns are, as 8x8, or none (default: auto)",
    )
    group.add_argument(
        "--max-rows",
        type=positive,
        default=20_000,
        metavar="N",
        help="rows of the page, drawn at random where there are more (default 20000)",
    )
    add_data_options(report, model=True)
    add_run_options(report)
    report.set_defaults(command=importing("report", "report", models=True))


def _add_search(commands: Any) -> None:
    search = commands.add_parser(
        "search",
        help="choose parameters on held-out rows",
        usage="%(prog)s DATA... --target COLUMN -o FILE [--grid NAME=A,B,C]... [options]",
        description=SEARCH,
        epilog=SEARCH_EXAMPLES,
    )
    search.add_argument("data", nargs="+", metavar="DATA", help="files, folders or patterns")
    add_output(search, "of the best model")
    group = search.add_argument_group("search")
    group.add_argument(
        "--grid",
        type=assignment,
        action="append",
        metavar="NAME=A,B,C",
        help="values of a parameter to try; several times for several parameters",
    )
    group.add_argument("--cv", type=folds, metavar="N", help="number of folds")
    group.add_argument(
        "--scoring",
        choices=("accuracy", "log_loss"),
        help="criterion of --model gem (default accuracy)",
    )
    add_model_kind(search)
    add_parameters(search.add_argument_group("parameters that are not searched (of gem)"))
    add_data_options(search)
    add_memory(search)
    add_run_options(search)
    search.set_defaults(
        command=importing("search", "search", models=True), reads_standard_input=True
    )

"""The papers' experiments from the command line: ``python -m bench.papers TASK --data DIR``."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from eigenfeat.cli.output import UsageError, report_error

DESCRIPTION = """\
Runs an experiment of a paper and prints errors, seconds and memory beside the paper's figures.
Hyperparameters are chosen without the test rows, which are read once at the end. A quick run only
shows that a task works: its errors are measured on fewer rows. Of the GEM paper (ICML 2014):

  mnist        handwritten digits, Table 2
  gem-figures  eigenvectors of five pairs of digits, Figures 1 and 2
  covertype    forest cover types, Table 3
  speech       frames of spoken digits in place of TIMIT's, Table 4
  defaults     six further data sets, nothing chosen

of Parrish's thesis (University of Washington, 2012), all but the last over ten random splits:

  ldg                 LDG and others on 13 sets, Table 3.1 and Figures 3.4-3.8
  ldg-small           15 sets of few time series, Tables 3.3-3.5
  ldg-training-files  four sets without a test part, split at random
  ldg-transfer        images of one domain with help from another domain, Figure 4.5
  ldg-digits          digits of one domain, Figures 4.5 and 4.6
  early               when incomplete series are decided, chapter 5

and of the paper on max-margin data shifting (AAAI 2016), over ten random splits:

  mmds        Tables 1, 3 and 4 and Figures 2 and 3
  mmds-joint  joint moves, corrupted copies and max-margin PCA, without a table in the paper

A file that is missing or of another kind is named, with the arrays that it should hold. Ctrl-C ends
a run; what is finished is printed and kept."""

# The module of each task's protocol. A module is imported when its task runs, so that the processes
# of one paper's methods do not load what other papers need.
TASKS = {
    **dict.fromkeys(("mnist", "covertype", "speech", "defaults"), "gem"),
    "gem-figures": "gem_figures",
    **dict.fromkeys(("ldg", "ldg-small", "ldg-training-files"), "ldg"),
    **dict.fromkeys(("ldg-transfer", "ldg-digits"), "ldg"),
    "mmds": "mmds",
    "mmds-joint": "mmds_joint",
    "early": "early",
}


def count(text: str) -> int:
    """Read an integer from 1."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected an integer from 1, got {text!r}")
    return int(text)


def main(arguments=None):
    """Run one experiment and return the exit status."""
    try:
        options = _parser().parse_args(arguments)
        from bench.papers import protocol, runner

        task = import_module(f"bench.papers.{TASKS[options.task]}").PROTOCOLS[options.task]
        context = protocol.Context(
            options.quick, options.threads, rows=options.rows, splits=options.splits
        )
        where = options.data, options.output
        outcomes = runner.reproduce(task, *where, context, peers=options.peers, only=options.only)
        return int(any(outcome.failure for outcome in outcomes))
    except (KeyboardInterrupt, OSError, ImportError, UsageError) as error:
        return report_error(error, False)


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m bench.papers",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("task", choices=list(TASKS), metavar="TASK", help=" | ".join(TASKS))
    add("--data", type=Path, required=True, metavar="DIR", help="folder of the data files")
    add("--quick", action="store_true", help="fewer rows and hyperparameters, a minute or two")
    add("--peers", action="store_true", help="also run other packages' classifiers, which is slow")
    only = "run only methods, peers too, whose 'DATA: METHOD' contains TEXT; may be repeated"
    add("--only", action="append", default=[], metavar="TEXT", help=only)
    folder = Path("eigenfeat-papers")
    output = f"folder for TASK.csv or TASK-quick.csv, and pictures (default ./{folder})"
    add("--output", type=Path, default=folder, metavar="DIR", help=output)
    add("--threads", type=count, metavar="N", help="threads of every method (default: all)")
    add("--splits", type=count, metavar="N", help="random splits, where a task has several")
    add("--rows", type=count, metavar="N", help="most test rows of each set of `early`")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""The papers' experiments from the command line: ``python -m bench.papers TASK --data DIR``."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from eigenfeat.cli.output import UsageError, report_error

DESCRIPTION = """\
Runs an experiment of a paper and prints errors, seconds and memory beside the paper's figures.
Hyperparameters are chosen without the test rows, which are read once at the end. Every method runs
in a process of its own; its memory is the most that process has held, with the interpreter and the
data. A quick run checks that all works: its errors are of fewer rows. Of the GEM paper (ICML 2014):

  mnist      handwritten digits, Table 2                            mnist.npz
  gem-figures  eigenvectors of five pairs of digits, Figures 1 and 2  mnist.npz
  covertype  forest cover types, Table 3                            covtype_subset.npz
  speech     frames of spoken digits in place of TIMIT's, Table 4   fsdd.npz
  defaults   six further data sets, nothing chosen    uci_isolet.npz, uci_satimage.npz,
                               opencv_digits.npz, ocr_letters.npz, uci_ringnorm_standardized.npz,
                               covtype_subset.npz

of Parrish's thesis (University of Washington, 2012), all but the last over ten random splits:

  ldg           LDG and others on 13 sets, Table 3.1 and Figures 3.4-3.8   uci_*.npz, mnist.npz,
                                                                           usps.npz
  ldg-small     15 sets of few time series, Tables 3.3-3.5                 ucr/*.npz
  ldg-training-files  four sets whose test part is missing, by splits      ucr/train_only/*.npz
  ldg-offsets   Beef and Coffee with an offset and unit of each series     ucr/*.npz
  ldg-transfer  images of one domain with help from another, Figure 4.5    office_surf.npz
  ldg-digits    digits of one domain, Figures 4.5 and 4.6                  mnist.npz, usps.npz
  early         when incomplete series are decided, chapter 5              ucr/*.npz

and of the paper on max-margin data shifting (AAAI 2016), Tables 1, 3 and 4 and Figures 2 and 3:

  mmds       mnist.npz, opencv_digits.npz, ocr_letters.npz, faces_yale.npz, faces_yaleb.npz,
             faces_orl.npz, microarray_standins.npz
  mmds-joint its joint moves, corrupted copies and max-margin PCA, ten splits (the paper has no
             table of them)                 mnist.npz, opencv_digits.npz, ocr_letters.npz

All of the thesis and `mmds` also draw pictures.

A file that is missing or of another kind is named, with the arrays that it should hold. Ctrl-C ends
a run; what is finished is printed and kept."""

# In which file each task's protocol is. It is read when the task is run, so that the processes of
# one paper's methods do not hold what another's need.
TASKS = {
    **dict.fromkeys(("mnist", "covertype", "speech", "defaults"), "gem"),
    "gem-figures": "gem_figures",
    **dict.fromkeys(("ldg", "ldg-small", "ldg-training-files", "ldg-offsets"), "ldg"),
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
    add("--rows", type=count, metavar="N", help="test rows of each set of `early`, at most")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""Rows from standard input, where a name of a file is ``-``."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from eigenfeat.cli.output import UsageError

__all__ = ["STANDARD", "standard_input"]

STANDARD = "-"
ENDINGS = {"svmlight": "svm"}  # of other formats their names


@contextmanager
def standard_input(options: argparse.Namespace) -> Iterator[None]:
    """Copy standard input to a temporary file, if that is what the data are: it is read twice."""
    data = getattr(options, "data", None) or []
    if STANDARD not in data:
        yield
        return
    if not getattr(options, "reads_standard_input", False):
        raise UsageError("DATA: expected names of files, got -")
    if len(data) > 1:
        raise UsageError(f"DATA: expected - alone, got {len(data)} names")
    if options.format is None:
        raise UsageError("--format: expected the format of standard input, got none")
    with TemporaryDirectory() as folder:
        ending = ENDINGS.get(options.format, options.format)
        path = Path(folder) / f"standard-input.{ending}"
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, 2**20)
        options.data, options.named = [str(path)], ["standard input"]
        yield

"""Estimators that say what they do, with `verbose` on stderr and always to a logger; warnings."""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from eigenfeat._base.extras import installed

__all__ = ["LOGGER", "Verbose", "progress_bar", "warn_caller"]

LOGGER = logging.getLogger("eigenfeat")
LOGGER.addHandler(logging.NullHandler())  # silent until a program asks for messages

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn of a line of the caller's: the nearest outside of this package and of decorators."""
    level, frame = 1, sys._getframe()
    while frame is not None and _is_inside(frame.f_code.co_filename):
        level += 1
        frame = frame.f_back  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level)


def _is_inside(path: str) -> bool:
    decorators = os.path.join("sklearn", "callback"), "contextlib.py"
    return path.startswith(_HERE) or any(name in path for name in decorators)


class Verbose:
    """An estimator that says how far it is: on stderr with `verbose`, and to the logger."""

    verbose: Any

    def _log(self, text: str, started: float | None = None) -> None:
        """Tell a line, with the seconds since `started`, of `time.perf_counter`, if given."""
        took = "" if started is None else f" ({time.perf_counter() - started:.1f} s)"
        LOGGER.info("%s: %s%s", type(self).__name__, text, took)
        if self.verbose:
            print(f"[{type(self).__name__}] {text}{took}", file=sys.stderr, flush=True)


@contextmanager
def progress_bar(total: int, name: str, verbose: Any) -> Iterator[Callable[[str, int], None]]:
    """A function of a text and a number of steps that are done, which moves a bar on stderr.

    Without `verbose` the text goes to the logger, and without rich to stderr.
    """
    if not verbose:
        yield lambda text, steps: LOGGER.info("%s: %s", name, text)
        return
    if not installed("rich"):
        yield lambda text, steps: print(f"[{name}] {text}", file=sys.stderr, flush=True)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(file=sys.stderr)
    with Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
        task = progress.add_task(name, total=total)
        yield lambda text, steps: progress.update(task, advance=steps, description=text)

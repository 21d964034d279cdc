"""Output of commands: results and errors as text or JSON, warnings, and progress."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = [
    "STANDARD_OUTPUT",
    "WIDTH",
    "Advance",
    "InterruptedRunError",
    "Output",
    "UsageError",
    "discard_output",
    "first_warnings",
    "interrupts",
    "naming_options",
    "printable",
    "report_error",
    "show_warning",
    "wrapped",
]

FAILURE, USAGE = 1, 2  # exit statuses
STANDARD_OUTPUT = "standard output"


class UsageError(ValueError):
    """Invalid options, or options that exclude each other."""


class InterruptedRunError(KeyboardInterrupt):
    """A run that a signal ended; the message says what was written."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.status = 128 + signal_number


# ---- errors --------------------------------------------------------------------------------------


@contextmanager
def naming_options(*names: str) -> Iterator[None]:
    """Raise UsageError for a ValueError about one of the parameters `names`, which are options.

    The option of `pos_label` is --positive.
    """
    try:
        yield
    except ValueError as error:
        name, _, text = str(error).partition(": ")
        if name not in names:
            raise
        option = "positive" if name == "pos_label" else name.replace("_", "-")
        raise UsageError(f"--{option}: {text}") from None


def report_error(error: BaseException, as_json: bool, advice: str = "") -> int:
    """Print the error that ended a command, as a line or JSON; return the exit status."""
    kinds = {OSError: "file", ImportError: "missing package", MemoryError: "memory"}
    kind = next((kind for cls, kind in kinds.items() if isinstance(error, cls)), "data")
    status, message = FAILURE, (str(error) or type(error).__name__) + advice
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        message = f"{error.filename}: {error.strerror}"
    elif isinstance(error, UsageError):
        kind, status = "usage", USAGE
    elif isinstance(error, KeyboardInterrupt):
        kind, status = "interrupted", getattr(error, "status", 128 + signal.SIGINT)
        message = f"interrupted{f': {error}' if str(error) else ''}"
    if as_json:
        try:
            _print_json({"status": "error", "kind": kind, "error": message, "exit": status})
            return int(status)
        except OSError:  # for example, the disk is full: print to standard error
            discard_output()
    elif isinstance(error, OSError) and error.filename == STANDARD_OUTPUT:
        discard_output()
    with suppress(OSError):
        print(f"eigenfeat: {printable(message, lines=False)}", file=sys.stderr, flush=True)
    return int(status)


def discard_output() -> None:
    """Discard the buffer of standard output, which Python would try to write when it ends."""
    with suppress(OSError), open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as one line, without the place in the code that `warnings` would show."""
    text = str(message).removeprefix("X: ")  # commands have no argument X
    with suppress(OSError):
        print(f"warning: {printable(text, lines=False)}", file=sys.stderr, flush=True)


def first_warnings() -> Callable[..., None]:
    """Return a function that shows each distinct warning once."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            show_warning(message)

    return show


def printable(text: str, *, lines: bool = True) -> str:
    """Escape characters that control a terminal, which labels and file names may contain.

    With `lines`, line breaks are kept.
    """
    allowed = "\n\t" if lines else "\t"
    return "".join(c if c.isprintable() or c in allowed else ascii(c)[1:-1] for c in text)


def _print_json(result: dict[str, Any], file: TextIO | None = None) -> None:
    print(json.dumps(result, allow_nan=False, default=str), file=file, flush=True)


# ---- results and progress ------------------------------------------------------------------------


class Output:
    """Output of a command: results on stdout, progress and messages on stderr.

    Progress is shown if stderr is a terminal, unless `progress` is given.
    """

    def __init__(self, command: str, as_json: bool, progress: bool | None) -> None:
        self.command, self._json = command, as_json
        self.shows_progress = sys.stderr.isatty() if progress is None else progress
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time since the start of the command."""
        return time.perf_counter() - self._started

    def say(self, text: str) -> None:
        """Print a line that is not part of the result."""
        print(f"eigenfeat: {printable(text)}", file=sys.stderr, flush=True)

    def result(self, values: Mapping[str, object], text: str, file: TextIO | None = None) -> None:
        """Print the result: `values` as JSON, or `text`; to stdout unless a file is given."""
        if self._json:
            _print_json({"status": "ok", "command": self.command, **values}, file)
        else:
            print(printable(text), file=file, flush=True)

    @contextmanager
    def rows(self, what: str) -> Iterator[Advance]:
        """Yield a function to call after every block, which shows progress."""
        from rich.console import Console
        from rich.progress import Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        text = TextColumn("{task.description}: {task.fields[rows]}")
        columns, console = (text, TaskProgressColumn(), TimeRemainingColumn()), Console(stderr=True)
        with Progress(*columns, console=console, disable=not self.shows_progress) as progress:
            advance = Advance(progress, what)
            yield advance
            advance(0, 1.0)


class Advance:
    """Counts rows, and shows their number."""

    def __init__(self, progress: Progress, what: str) -> None:
        self._progress, self._task = progress, progress.add_task(what, total=1.0, rows="")
        self.rows, self._started = 0, time.perf_counter()

    def __call__(self, rows: int, fraction: float | None) -> None:
        """Add rows; `fraction` is the fraction of all rows done so far (None: unknown)."""
        self.rows += rows
        text = f"{self.rows:,} rows, {self.rate:,.0f} rows/s"
        self._progress.update(self._task, completed=fraction or 0.0, rows=text)

    def hide(self) -> None:
        """Hide the progress."""
        self._progress.update(self._task, visible=False)

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / max(time.perf_counter() - self._started, 1e-9)


# Characters of a line: the width of the terminal, or 92 without a terminal; at most 100.
WIDTH = min(shutil.get_terminal_size((92, 24)).columns, 100)


def wrapped(text: str, title: str = "") -> list[str]:
    """Break a text into lines of at most `WIDTH` characters, indented after a title.

    No-break spaces become spaces.
    """
    first = f"  {title:<9} " if title else ""
    lines = textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace("\u00a0", " ") for line in lines]


# ---- signals -------------------------------------------------------------------------------------


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """Yield a list that Ctrl-C and SIGTERM append to; a second signal ends the program."""
    received: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        if received:
            raise InterruptedRunError("twice, nothing was written", number)
        received.append(number)

    old_handlers = {}
    with suppress(ValueError):  # only the main thread can set handlers
        for number in (signal.SIGINT, signal.SIGTERM):
            old_handlers[number] = signal.signal(number, receive)
    try:
        yield received
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)

"""Output of commands: results and errors as text or JSON, warnings, and progress."""

from __future__ import annotations

import json
import os
import signal
import sys
import textwrap
import time
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TextIO

__all__ = [
    *("STANDARD_OUTPUT", "Advance", "InterruptedRunError", "Interrupts", "Output", "UsageError"),
    *("WIDTH", "aligned", "discard_output", "printable", "report_error", "show_warning"),
    "wrapped",
]

FAILURE, USAGE = 1, 2
STANDARD_OUTPUT = "standard output"
_SECONDS = 5.0  # between two lines of progress


class UsageError(ValueError):
    """Options that do not go together."""


class InterruptedRunError(KeyboardInterrupt):
    """A run that a signal ended; the message says what has been kept."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.status = 128 + signal_number


# ---- errors --------------------------------------------------------------------------------------


def report_error(error: BaseException, as_json: bool, advice: str = "") -> int:
    """Print one line, or JSON, about what ended a command; its exit status."""
    kinds = {OSError: "file", ImportError: "missing package", MemoryError: "memory"}
    kind = next((kind for one, kind in kinds.items() if isinstance(error, one)), "data")
    status, message = FAILURE, (str(error) or type(error).__name__) + advice
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        message = f"{error.filename}: {error.strerror}"
    elif isinstance(error, UsageError):
        kind, status = "usage", USAGE
    elif isinstance(error, KeyboardInterrupt):
        kind, status = "interrupted", getattr(error, "status", 130)
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
    """Discard what standard output still holds, which Python would try to write at its end."""
    with suppress(OSError), open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as one line, without the place in the code that `warnings` would show."""
    text = str(message).removeprefix("X: ")  # the name that samples have in Python
    with suppress(OSError):
        print(f"warning: {printable(text, lines=False)}", file=sys.stderr, flush=True)


def printable(text: str, *, lines: bool = True) -> str:
    """Escape characters that control a terminal, which labels and file names may contain.

    Line breaks stay with `lines`.
    """
    if text.isprintable() and text.isascii():
        return text
    allowed = "\n\t" if lines else "\t"
    control = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join(
        ascii(c)[1:-1] if c not in allowed and unicodedata.category(c) in control else c
        for c in text
    )


def _print_json(result: dict[str, Any], file: TextIO | None = None) -> None:
    print(json.dumps(result, allow_nan=False, default=str), file=file, flush=True)


# ---- results and progress ------------------------------------------------------------------------


class Output:
    """Output of a command: results go to stdout, everything else to stderr.

    Progress is shown if stderr is a terminal, unless `progress` is given.
    """

    def __init__(self, command: str, as_json: bool, progress: bool | None) -> None:
        self.command, self._json = command, as_json
        self.shows_progress = sys.stderr.isatty() if progress is None else progress

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
        advance = Advance(what, self.shows_progress)
        yield advance
        advance.line(", 100%", end="\n")


class Advance:
    """Counts rows and prints their number on stderr at intervals.

    On a terminal each line replaces the previous one.
    """

    def __init__(self, what: str, shown: bool) -> None:
        self.what, self.shown, self.started, self.rows = what, shown, time.perf_counter(), 0
        self._end, self._every = ("\r", 0.2) if sys.stderr.isatty() else ("\n", _SECONDS)
        self._printed = -_SECONDS

    def __call__(self, rows: int, fraction: float | None) -> None:
        """Add rows; `fraction` is the part of all rows done so far (None: unknown)."""
        self.rows += rows
        if self.seconds - self._printed >= self._every:
            self._printed, more = self.seconds, ""
            if fraction is not None and fraction >= 0.005:  # a single piece is at 0 to its end
                left = self.seconds * (1 - fraction) / fraction
                more = f", {100 * fraction:.0f}%" + (f", {left:.0f} s left" if left >= 1 else "")
            self.line(more)

    def line(self, more: str, end: str | None = None) -> None:
        """Print how many rows there were."""
        if self.shown:
            text = f"{self.what}: {self.rows:,} rows, {self.rate:,.0f} rows/s{more}"
            end = self._end if end is None else end
            print(text.ljust(79 if self._end == "\r" else 0), end=end, file=sys.stderr, flush=True)

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.perf_counter() - self.started

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / max(self.seconds, 1e-9)


WIDTH = 92  # characters of a line


def wrapped(text: str, title: str = "") -> list[str]:
    """Lines of a text, none wider than a screen; after a title they are indented."""
    first = f"  {title:<9} " if title else ""
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def aligned(lines: list[list[str]], *, last_is_text: bool = False) -> list[str]:
    """Lines of cells: the first cell starts at the left, numbers end below each other."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = []
    for first, *others in lines:
        cells = [first.ljust(widths[0])]
        for at, cell in enumerate(others, 1):
            text = last_is_text and at == len(others)
            cells.append(cell if text else cell.rjust(widths[at]))
        texts.append("  ".join(cells).rstrip())
    return texts


# ---- signals -------------------------------------------------------------------------------------


class Interrupts:
    """Context that records Ctrl-C and SIGTERM; a second signal ends the program."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        with suppress(ValueError):  # only the main thread can set handlers
            self._before = {number: signal.signal(number, self._note) for number in self.SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            raise InterruptedRunError("twice, nothing was written", number)
        self.received = number

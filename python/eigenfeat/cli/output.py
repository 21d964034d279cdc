"""What commands say: results and errors, as text or JSON, and how far they have come."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "InterruptedRunError",
    "Interrupts",
    "Output",
    "UsageError",
    "printable",
    "quiet_interrupts",
    "remove_leftovers",
    "report_error",
]

FAILURE, USAGE = 1, 2
_LINE_SECONDS = 5.0
_STEPS = 1000  # of a bar


class UsageError(ValueError):
    """Options that do not go together."""


class InterruptedRunError(KeyboardInterrupt):
    """A run that a signal ended; the message says what is left of it."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.status = 128 + signal_number


def report_error(error: BaseException, as_json: bool, advice: str = "") -> int:
    """Print one line, or JSON, about what ended a command; its exit status."""
    if isinstance(error, KeyboardInterrupt):
        kind, status = "interrupted", getattr(error, "status", 130)
        message = f"interrupted{f': {error}' if str(error) else ''}"
    else:
        usage = isinstance(error, UsageError)
        kind, status = ("usage", USAGE) if usage else (_kind(error), FAILURE)
        message = _words(error) + advice
    if as_json:
        _print_json({"status": "error", "kind": kind, "error": message, "exit": status})
    else:
        print(f"eigenfeat: {printable(message, lines=False)}", file=sys.stderr)
    return int(status)


def printable(text: str, *, lines: bool = True) -> str:
    """Text without characters that control a terminal, such as those of labels and file names.

    With `lines` it may have several.
    """
    if text.isprintable() and text.isascii():
        return text
    allowed = "\n\t" if lines else "\t"
    control = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join(
        ascii(c)[1:-1] if c not in allowed and unicodedata.category(c) in control else c
        for c in text
    )


def _words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def _kind(error: BaseException) -> str:
    if isinstance(error, OSError):
        return "file"
    if isinstance(error, ImportError):
        return "missing package"
    return "memory" if isinstance(error, MemoryError) else "data"


def _print_json(result: dict[str, Any], file: TextIO | None = None) -> None:
    print(json.dumps(result, allow_nan=False, default=str), file=file, flush=True)


@contextmanager
def quiet_interrupts(as_json: bool) -> Iterator[None]:
    """While modules are imported, Ctrl-C ends the program at once, without a word but for JSON.

    A KeyboardInterrupt in the midst of an extension module may come out as any other error.
    """

    def end(number: int, frame: FrameType | None) -> None:
        if as_json:
            report_error(KeyboardInterrupt(), as_json)
        os._exit(128 + signal.SIGINT)

    theirs = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    if theirs or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Output:
    """Where a command's words go: results to stdout, all else to stderr.

    Parameters
    ----------
    command : str
        Its name, for JSON.
    as_json : bool
        Whether the result is one JSON object.
    progress : bool or None
        Whether to show how far a command has come; None: if stderr is a terminal.
    """

    def __init__(self, command: str, as_json: bool, progress: bool | None) -> None:
        self.command, self._json = command, as_json
        self._terminal = sys.stderr.isatty()
        self._progress = self._terminal if progress is None else progress

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
        """Follow rows as they go through; call what it yields after every block."""
        if self._progress and self._terminal:
            bar = click.progressbar(length=_STEPS, label=what, item_show_func=str, file=sys.stderr)
            with bar:
                yield Advance(what, bar)
            return
        advance = Advance(what, lines=self._progress)
        yield advance
        advance.finish()


class Advance:
    """Counts rows, and shows how many on stderr: by a bar, or by a line now and then."""

    def __init__(self, what: str, bar: Any = None, *, lines: bool = False) -> None:
        self.what, self.started, self.rows = what, time.perf_counter(), 0
        self._bar, self._lines, self._printed = bar, lines, -_LINE_SECONDS

    def __call__(self, rows: int, fraction: float | None) -> None:
        """Add some rows, after which `fraction` of all has gone through (None: not known)."""
        if not self.rows:
            self._first = fraction or 0.0
        self.rows += rows
        if self._bar is not None:
            place = int(_STEPS * (fraction or 0.0))
            label = f"{self.rows:,} rows, {self.rate:,.0f} rows/s"
            self._bar.update(max(place - self._bar.pos, 0), label)
        elif self.seconds - self._printed >= _LINE_SECONDS:
            self._printed = self.seconds
            line = ""
            if fraction is not None and fraction >= 0.005:  # a single piece is at 0 to its end
                line += f", {100 * fraction:.0f}%"
                if fraction > self._first:
                    left = self.seconds * (1 - fraction) / (fraction - self._first)
                    line += f", {left:.0f} s left"
            self._print(line)

    def cancel(self) -> None:
        """Say that the rest will not go through."""
        self._lines = False

    def finish(self) -> None:
        """Print the last line."""
        self._print(", 100%")

    def _print(self, more: str) -> None:
        if self._lines:
            line = f"{self.what}: {self.rows:,} rows, {self.rate:,.0f} rows/s{more}"
            print(line, file=sys.stderr, flush=True)

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.perf_counter() - self.started

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / max(self.seconds, 1e-9)


class Interrupts:
    """Within a with-statement, Ctrl-C and SIGTERM are remembered; a second one ends the program."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        with suppress(ValueError):  # in another thread than the main one signals are not ours
            self._before = {number: signal.signal(number, self._note) for number in self.SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            raise InterruptedRunError("twice, nothing was written", number)
        self.received = number


def remove_leftovers(path: Path) -> None:
    """Remove what killed runs have left of files that they were writing in place of `path`."""
    for part in path.parent.glob(f".{path.name}.*.part"):
        part.unlink(missing_ok=True)

"""Estimators that say what they do: with `verbose` on stderr, and always to a logger."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

__all__ = ["LOGGER", "Speaks"]

LOGGER = logging.getLogger("eigenfeat")
LOGGER.addHandler(logging.NullHandler())  # silent until a program asks for messages


class Speaks:
    """An estimator that says how far it is: on stderr with `verbose`, and to the logger."""

    verbose: Any

    def _say(self, text: str, started: float | None = None) -> None:
        """Tell a line, with the seconds since `started`, of `time.perf_counter`, if given."""
        took = "" if started is None else f" ({time.perf_counter() - started:.1f} s)"
        LOGGER.info("%s: %s%s", type(self).__name__, text, took)
        if self.verbose:
            print(f"[{type(self).__name__}] {text}{took}", file=sys.stderr, flush=True)

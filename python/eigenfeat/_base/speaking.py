"""Estimators that say what they do."""

from __future__ import annotations

import sys
import time
from typing import Any

__all__ = ["Speaks"]


class Speaks:
    """An estimator that with `verbose` says on stderr how far it is."""

    verbose: Any

    def _say(self, text: str, started: float | None = None) -> None:
        """Print a line, with the seconds since `started`, of `time.perf_counter`, if given."""
        if self.verbose:
            took = "" if started is None else f" ({time.perf_counter() - started:.1f} s)"
            print(f"[{type(self).__name__}] {text}{took}", file=sys.stderr, flush=True)

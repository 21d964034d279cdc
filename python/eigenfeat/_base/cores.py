"""How many cores scikit-learn's threads may have, asked without a word."""

from __future__ import annotations

import io
import warnings
from contextlib import redirect_stderr
from functools import cache

import joblib

__all__ = ["count_cores"]


@cache
def count_cores() -> int:
    """Let joblib count the physical cores; it does so once in a process, by starting a program.

    Scikit-learn asks it when k-means or neighbours first run. Where that program cannot be started,
    as on a machine that is out of processes or has no such program, joblib takes the logical cores,
    with a warning and a traceback on stderr, and an error where warnings are errors (a KeyError
    comes before it in the traceback: that of scikit-learn's cache, which is empty then). The number
    decides how fast things are, and nothing else. Asked here, the answer is there when scikit-learn
    asks.
    """
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        return int(joblib.cpu_count(only_physical_cores=True))

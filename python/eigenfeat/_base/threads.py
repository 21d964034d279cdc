"""Numbers of threads: those of a call, of scikit-learn's own loops, and BLAS's."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from functools import cache
from numbers import Integral
from typing import Any

import joblib

__all__ = ["count_cores", "default", "one_blas_thread", "resolve"]

_here = threading.local()


@contextmanager
def default(n_threads: int) -> Iterator[None]:
    """Let None mean so many threads, in this Python thread and until the block ends.

    For a worker that runs several tasks side by side, each in a thread of its own.
    """
    before = getattr(_here, "default", 0)
    _here.default = resolve(n_threads)
    try:
        yield
    finally:
        _here.default = before


def resolve(n_threads: int | None) -> int:
    """Thread count as the core takes it.

    Parameters
    ----------
    n_threads : int or None
        Threads to use, at least 1. None means all that OpenMP gives, which ``OMP_NUM_THREADS``
        sets; but within `default` what that says. Results are the same bits for every count;
        small work stays on one thread.

    Returns
    -------
    int
        The count, or 0 for all.

    Raises
    ------
    ValueError
        If `n_threads` is neither None nor a positive integer.
    """
    if n_threads is None:
        return int(getattr(_here, "default", 0))
    if isinstance(n_threads, bool) or not isinstance(n_threads, Integral) or n_threads < 1:
        raise ValueError(f"n_threads: expected None or an integer >= 1, got {n_threads!r}")
    return min(int(n_threads), 2**20)


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


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep every BLAS of this process at one thread while the body runs.

    Threads that wait for each other a thousand times a second are slower than one, by far where
    other work wants the cores, and how many there are would decide a result's last bits.
    """
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> Any:
    """Return what knows this process's BLAS libraries; to look for them takes some 5 ms.

    NumPy's and SciPy's are loaded when this package's estimators are; others are not used here.
    """
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()

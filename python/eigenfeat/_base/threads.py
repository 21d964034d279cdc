"""Numbers of threads of the core, and of the BLAS libraries of this process."""

from __future__ import annotations

import io
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from functools import cache
from numbers import Integral
from typing import Any

import joblib

__all__ = [
    "count_cores",
    "default",
    "one_blas_thread",
    "resolve",
]

_defaults = threading.local()  # `n_threads` of each thread


@contextmanager
def default(n_threads: int | None) -> Iterator[None]:
    """Set the number of threads that None means in this Python thread, until the block ends.

    For workers that run several tasks at a time, each in its own thread.
    """
    before = getattr(_defaults, "n_threads", 0)
    _defaults.n_threads = resolve(n_threads)
    try:
        yield
    finally:
        _defaults.n_threads = before


def resolve(n_threads: int | None) -> int:
    """Return the number of threads for the core: 0 for OpenMP's default, or the value of `default`.

    Results are bit-for-bit identical for any number; small problems use one thread.
    """
    if n_threads is None:
        return int(getattr(_defaults, "n_threads", 0))
    if isinstance(n_threads, bool) or not isinstance(n_threads, Integral) or n_threads < 1:
        raise ValueError(f"n_threads: expected None or an integer >= 1, got {n_threads!r}")
    return min(int(n_threads), 2**20)


@cache
def count_cores() -> int:
    """Let joblib count the physical cores, once per process, before scikit-learn does.

    joblib starts a program to count them. If the program fails, joblib uses the logical cores, with
    a warning and a traceback on stderr, both of which are suppressed here.
    """
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        return int(joblib.cpu_count(only_physical_cores=True))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep every BLAS library of this process at one thread while the block runs.

    The last bits of BLAS results depend on the number of threads. This number is common to the
    process: the first block to begin saves the number, and the last block to end restores it, in
    any thread.
    """
    _blas.enter()
    try:
        yield
    finally:
        _blas.leave()


class _BlasLimit:
    """Number of open blocks of `one_blas_thread`, and their common limit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limit: Any = None
        self._n_blocks = 0
        self._own = threading.local()  # `n_blocks` of each thread

    def enter(self) -> None:
        with self._lock:
            if self._n_blocks == 0:
                self._limit = _controller().limit(limits=1)
            self._n_blocks += 1
            self._own.n_blocks = getattr(self._own, "n_blocks", 0) + 1

    def leave(self) -> None:
        with self._lock:
            self._n_blocks -= 1
            self._own.n_blocks -= 1
            if self._n_blocks == 0:
                self._restore()

    def after_fork(self) -> None:
        """In a forked process, count the blocks of its only thread."""
        self._lock = threading.Lock()
        self._n_blocks = getattr(self._own, "n_blocks", 0)
        if self._n_blocks == 0:
            self._restore()

    def _restore(self) -> None:
        limit, self._limit = self._limit, None
        if limit is not None:
            limit.restore_original_limits()


_blas = _BlasLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas.after_fork)


@cache
def _controller() -> Any:
    """Return the controller of the BLAS libraries of NumPy and SciPy; the search takes 5 ms."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")

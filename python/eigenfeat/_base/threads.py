"""What a thread count means, defined once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral

__all__ = ["default", "resolve"]

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

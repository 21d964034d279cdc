"""One thread for NumPy's and SciPy's BLAS, for loops of many small matrix operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["one_blas_thread"]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep every BLAS of this process at one thread while the body runs.

    Threads that wait for each other a thousand times a second are slower than one, by far where
    other work wants the cores, and how many there are would decide a result's last bits.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield

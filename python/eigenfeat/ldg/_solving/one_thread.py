"""One thread for NumPy's and SciPy's BLAS, for loops of many small matrix operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["one_blas_thread"]


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

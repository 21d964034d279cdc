"""Numbers of threads, and values computed once, also among threads and forked processes."""

from __future__ import annotations

import io
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from functools import cache
from numbers import Integral
from typing import Any, Generic, TypeVar, overload

import joblib

__all__ = [
    "Lazy",
    "LazySolution",
    "ProcessLock",
    "cached_property",
    "count_cores",
    "default",
    "one_blas_thread",
    "resolve",
]

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
    """Thread count as the core takes it: 0 for all that OpenMP gives, or what `default` says.

    Results are the same bits for every count; small work stays on one thread.
    """
    if n_threads is None:
        return int(getattr(_here, "default", 0))
    if type(n_threads) is int and 0 < n_threads <= 2**20:  # checks take longer than a small call
        return n_threads
    if isinstance(n_threads, bool) or not isinstance(n_threads, Integral) or n_threads < 1:
        raise ValueError(f"n_threads: expected None or an integer >= 1, got {n_threads!r}")
    return min(int(n_threads), 2**20)


@cache
def count_cores() -> int:
    """Let joblib count the physical cores, once in a process, before scikit-learn asks it.

    It starts a program; where it cannot, joblib takes the logical cores, with a warning (an error
    where warnings are errors) and a traceback on stderr, which nobody needs to see.
    """
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        return int(joblib.cpu_count(only_physical_cores=True))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep every BLAS library of this process at one thread while the block runs.

    The last bits of a BLAS result depend on the number of threads, and threads that often wait for
    each other are slow. The number of threads belongs to the process: the first block that begins
    saves it, and the last block that ends restores it, in whatever threads they run.
    """
    _blas.enter()
    try:
        yield
    finally:
        _blas.leave()


class _BlasLimit:
    """Number of blocks that keep BLAS at one thread, and the limit that they share."""

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
    """What knows the BLAS libraries of NumPy and SciPy; to look for them takes some 5 ms."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


# ---- values that are computed once ---------------------------------------------------------------


T = TypeVar("T")


class ProcessLock:
    """``with lock():`` waits for other threads of this process.

    A plain lock that some thread holds while another one forks stays locked in the child for ever.
    What it guards must therefore be good at any moment, or be computed anew.
    """

    def __init__(self) -> None:
        self._locks = {os.getpid(): threading.Lock()}

    def __call__(self) -> threading.Lock:
        process = os.getpid()
        # setdefault: two threads that come first get the same lock.
        return self._locks.get(process) or self._locks.setdefault(process, threading.Lock())


class Lazy(Generic[T]):
    """Hold ``compute()``, called at most once; an error is raised again at each call.

    Pickles and copies carry the value if it is there, and otherwise `compute`.
    """

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute: Callable[[], T] | None = compute
        self._value: T | None = None
        self._lock = ProcessLock()

    @classmethod
    def of(cls, value: T) -> Lazy[T]:
        """Hold a value that is there."""
        made = cls(lambda: value)
        made()
        return made

    def __call__(self) -> T:
        """Return the value, computing it if need be."""
        with self._lock():
            if self._compute is not None:
                self._value = self._compute()
                self._compute = None
            return self._value  # type: ignore[return-value]

    @property
    def is_ready(self) -> bool:
        """Whether the value has been computed."""
        return self._compute is None

    def __getstate__(self) -> dict[str, Any]:
        with self._lock():
            return {"compute": self._compute, "value": self._value}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._compute, self._value = state["compute"], state["value"]
        self._lock = ProcessLock()


class LazySolution:
    """Base class of estimators with ``_solution``, a `Lazy` that ``_hold(moments_)`` makes.

    Copies, pickles and files have the solution itself, or None if it has not been computed.
    """

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        if "_solution" in state:
            lazy: Lazy[Any] = state["_solution"]
            state["_solution"] = lazy() if lazy.is_ready else None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        if "_solution" not in state:
            return
        if state["_solution"] is None:
            self._hold(self.moments_)  # type: ignore[attr-defined]
        else:
            self._solution: Lazy[Any] = Lazy.of(state["_solution"])


class cached_property(Generic[T]):  # noqa: N801, its name is that of functools's
    """As `functools.cached_property` is since Python 3.12; before, it holds a lock.

    All objects of a class share that lock. A process that is forked while any thread computes the
    property has it locked for ever, and hangs when it computes the property itself. Without the
    lock, threads that come at the same time may compute the same value each.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...

    @overload
    def __get__(self, instance: Any, owner: type) -> T: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        value = self._compute(instance)
        # The first value stays: whoever asks gets the same object. From now on Python finds it in
        # the object's own attributes, and does not come here.
        return vars(instance).setdefault(self._name, value)

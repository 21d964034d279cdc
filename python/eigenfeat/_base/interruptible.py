"""Ctrl-C during one long call of LAPACK, which knows nothing of signals."""

from __future__ import annotations

import contextvars
import signal
import threading
from collections.abc import Callable
from typing import TypeVar

from eigenfeat._base.core import require_room

__all__ = ["interruptible"]

_Result = TypeVar("_Result")

_LONG = 5e8  # floating-point operations: some tenths of a second on one slow core
_ROOM = 256 << 20  # bytes of addresses: the thread's stack, its heap, and one more buffer of BLAS


def interruptible(call: Callable[[], _Result], operations: float) -> _Result:
    """Return ``call()``; Ctrl-C does not wait until it is done.

    A call that may take long is made in a thread of its own, for which the main thread waits. After
    KeyboardInterrupt that thread goes on until the call returns, keeps what it works on, and drops
    the result. The process does not end before, because libraries are unloaded at its end. Under a
    limit of addresses that leaves little room there is no such thread: OpenBLAS would end the
    process for want of what it takes.

    Parameters
    ----------
    call : callable
        A single call of NumPy's or SciPy's that changes nothing but arrays that nobody else has.
    operations : float
        About how many floating-point operations it takes.
    """
    if (
        operations < _LONG
        or threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        return call()
    try:
        require_room(_ROOM)
    except MemoryError:
        return call()
    done = threading.Event()
    results: list[_Result] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()  # with NumPy's errstate

    def work() -> None:
        try:
            results.append(context.run(call))
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=work, name="eigenfeat-lapack")
    try:
        thread.start()
    except (RuntimeError, MemoryError):  # no thread to be had
        return call()
    while not done.wait(0.5):  # a wait without end does not hear of Ctrl-C on every system
        pass
    thread.join()
    if errors:
        raise errors.pop()
    return results.pop()

"""A lock that a forked child finds open."""

from __future__ import annotations

import os
import threading

__all__ = ["ProcessLock"]


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

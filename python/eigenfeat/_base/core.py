"""Loads the compiled core and the BLAS that it needs, wherever pip has put it.

Whoever first asks for ``eigenfeat._core`` is led here by the package's ``__getattr__``.

The core looks for ``scipy_openblas32`` in the folder that holds this package. pip may install the
two apart (``--user``, ``--target``, virtual environments that see the system's packages); then the
library is loaded by its path first, and the loader finds it by name.

OpenBLAS maps work buffers when it is loaded and when it is first called, and ends the process where
it gets none. NumPy's copy is called once here, while there is room, and ours by the core; where
addresses are limited (``ulimit -v``) it is looked first whether there is.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from eigenfeat import _core as core

__all__ = ["core", "load_core", "memory_is_limited", "require_room"]

_LIBRARIES = 64 << 20  # bytes: the core, its BLAS, and what they allocate when they are loaded
_BUFFER = 32 << 20  # bytes that the builds of OpenBLAS for Python's wheels map at once
_UNMAPPED = ("failed to map segment", "Cannot allocate memory", "cannot allocate memory")


def load_core() -> ModuleType:
    """Import ``eigenfeat._core``; raises its ImportError where no such BLAS is installed.

    Raises MemoryError where the process may not have the addresses that loading takes.
    """
    with _loading():
        core = _imported()
    _warm_numpy()
    return core


def memory_is_limited() -> bool:
    """Whether ``ulimit -v`` or ``-d`` is set."""
    try:
        import resource
    except ImportError:  # not on this system
        return False
    limits = resource.RLIMIT_AS, resource.RLIMIT_DATA
    return any(resource.getrlimit(limit)[0] != resource.RLIM_INFINITY for limit in limits)


def require_room(size: int) -> None:
    """Raise MemoryError if so many bytes cannot be mapped, where addresses are limited."""
    if not memory_is_limited():
        return
    try:
        mmap.mmap(-1, size).close()
    except (OSError, ValueError):
        raise MemoryError(
            f"BLAS: expected {size >> 20} MiB of addresses for its buffers, got less (ulimit -v)"
        ) from None


def _warm_numpy() -> None:
    """Let NumPy's BLAS map the buffer of one call."""
    require_room(_BUFFER + (4 << 20))
    ones = np.ones((256, 256))
    ones @ ones[::-1]


@contextmanager
def _loading() -> Iterator[None]:
    """Look for room, and spare our copy threads that it would not use but map buffers for."""
    if not memory_is_limited():
        yield
        return
    require_room(_LIBRARIES + 2 * _BUFFER)
    name = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = "1"  # NumPy's has read it
    try:
        yield
    except ImportError as error:
        if any(text in str(error) for text in _UNMAPPED):
            raise MemoryError(f"eigenfeat: no memory to load its core: {error}") from error
        raise
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _show_windows_the_blas() -> None:
    """Let Windows, which knows no relative paths of libraries, look where pip has put ours.

    Wheels that carry the library find it by themselves.
    """
    try:
        blas = import_module("scipy_openblas32")
    except ImportError:
        return
    os.add_dll_directory(os.path.abspath(blas.get_lib_dir()))  # type: ignore[attr-defined,unused-ignore]


def _imported() -> ModuleType:
    if sys.platform == "win32":
        _show_windows_the_blas()
    try:
        return import_module("eigenfeat._core")
    except ImportError as error:
        if "scipy_openblas" not in str(error):
            raise
        try:
            blas = import_module("scipy_openblas32")
        except ImportError:
            raise error from None
        ctypes.CDLL(os.path.join(blas.get_lib_dir(), blas.get_library(fullname=True)))
        return import_module("eigenfeat._core")


if not TYPE_CHECKING:
    core = load_core()

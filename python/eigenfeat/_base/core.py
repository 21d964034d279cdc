"""Loads the compiled core, and the BLAS that it needs.

The import of this module loads the core. The package's ``__getattr__`` imports this module at the
first use of ``eigenfeat._core``.

The core expects ``scipy_openblas32`` in the folder that contains this package. If pip has installed
that library elsewhere (``--user``, ``--target``, virtual environments with system packages), the
library is loaded by its path first.

By default, idle OpenMP threads spin and occupy cores. A runtime reads its settings when it is
loaded: unless the user has set them, idle threads of the core's runtime sleep soon. Runtimes that
are loaded earlier or later are not affected.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eigenfeat import _core as core

__all__ = ["core"]

# libgomp spins GOMP_SPINCOUNT times (about 50 microseconds), LLVM's runtime for KMP_BLOCKTIME ms.
_SLEEP = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "2000", "KMP_BLOCKTIME": "0"}


def load_core() -> ModuleType:
    """Import ``eigenfeat._core``; ImportError if its BLAS is not installed."""
    if sys.platform == "win32":
        _show_windows_the_blas()
    with _sleeping_threads():
        return _imported()


@contextmanager
def _sleeping_threads() -> Iterator[None]:
    """Set the environment variables of idle threads while a runtime is loaded."""
    if any(name in os.environ for name in _SLEEP):
        yield
        return
    os.environ.update(_SLEEP)
    try:
        yield
    finally:
        for name in _SLEEP:
            os.environ.pop(name, None)


def _imported() -> ModuleType:
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


def _show_windows_the_blas() -> None:
    """Add the folder of the BLAS to the search path of Windows; repaired wheels contain it."""
    try:
        blas = import_module("scipy_openblas32")
    except ImportError:
        return
    os.add_dll_directory(os.path.abspath(blas.get_lib_dir()))  # type: ignore[attr-defined,unused-ignore]


if not TYPE_CHECKING:
    core = load_core()

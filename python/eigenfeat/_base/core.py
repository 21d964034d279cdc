"""Loads the compiled core and the BLAS that it needs, wherever pip has put it.

Whoever first asks for ``eigenfeat._core`` is led here by the package's ``__getattr__``.

The core looks for ``scipy_openblas32`` in the folder that holds this package. pip may install the
two apart (``--user``, ``--target``, virtual environments that see the system's packages); then the
library is loaded by its path first, and the loader finds it by name.

Threads of an OpenMP runtime wait for work by spinning, by default, which takes the cores of other
programs. A runtime reads its settings when it is loaded: where the user has set none, the one that
the core brings is told that threads sleep soon. Runtimes that are there already are not concerned,
nor those that come later.
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

__all__ = ["core", "load_core"]

# libgomp spins GOMP_SPINCOUNT times, some 50 microseconds, and LLVM's runtime KMP_BLOCKTIME ms.
_SLEEP = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "2000", "KMP_BLOCKTIME": "0"}


def load_core() -> ModuleType:
    """Import ``eigenfeat._core``; raises its ImportError where no such BLAS is installed."""
    if sys.platform == "win32":
        _show_windows_the_blas()
    with _sleeping_threads():
        return _imported()


@contextmanager
def _sleeping_threads() -> Iterator[None]:
    """Set how threads wait in the environment, for runtimes that are loaded in the block."""
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
    """Let Windows, which knows no relative paths of libraries, look where pip has put ours.

    Wheels that carry the library find it by themselves.
    """
    try:
        blas = import_module("scipy_openblas32")
    except ImportError:
        return
    os.add_dll_directory(os.path.abspath(blas.get_lib_dir()))  # type: ignore[attr-defined,unused-ignore]


if not TYPE_CHECKING:
    core = load_core()

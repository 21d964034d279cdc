"""Loads the compiled core and the BLAS that it needs, wherever pip has put it.

Whoever first asks for ``eigenfeat._core`` is led here by the package's ``__getattr__``.

The core looks for ``scipy_openblas32`` in the folder that holds this package. pip may install the
two apart (``--user``, ``--target``, virtual environments that see the system's packages); then the
library is loaded by its path first, and the loader finds it by name.
"""

from __future__ import annotations

import ctypes
import os
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eigenfeat import _core as core

__all__ = ["core", "load_core"]


def load_core() -> ModuleType:
    """Import ``eigenfeat._core``; raises its ImportError where no such BLAS is installed."""
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

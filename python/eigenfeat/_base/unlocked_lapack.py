"""Routines of SciPy's LAPACK, called without Python's lock.

``scipy.linalg`` keeps the lock during its calls, so that no other thread runs meanwhile and Ctrl-C
waits. SciPy offers the same routines to Cython as C functions, which ctypes calls without the lock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

__all__ = ["by_reference", "routine"]


@cache
def routine(name: str, n_characters: int, n_pointers: int) -> Callable[..., None]:
    """A routine of LAPACK, such as "dsyevr", whose characters come before its other arguments."""
    from scipy.linalg import cython_lapack

    capsule = ctypes.py_object(cython_lapack.__pyx_capi__[name])
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    types = [ctypes.c_char_p] * n_characters + [ctypes.c_void_p] * n_pointers
    return ctypes.CFUNCTYPE(None, *types)(pointer(capsule, name_of(capsule)))


def by_reference(value: int) -> object:
    """An integer as Fortran takes it."""
    return ctypes.byref(ctypes.c_int(value))

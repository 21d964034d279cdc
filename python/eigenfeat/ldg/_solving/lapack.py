"""Some eigenpairs of a symmetric matrix by a call that gives up Python's lock.

`scipy.linalg.eigh` keeps the lock, so that no other thread runs meanwhile and Ctrl-C waits. SciPy
offers the same routine to Cython as a C function, which ctypes calls without the lock.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cython_lapack, eigh

from eigenfeat._base.interruptible import interruptible

__all__ = ["eigenpairs_between"]

_Array = NDArray[np.float64]

_LONG = 500  # rows; below it SciPy's own call takes less than some hundredths of a second


def eigenpairs_between(matrix: _Array, first: int, last: int) -> tuple[_Array, _Array]:
    """Return eigenvalues `first` to `last`, of those ascending, and vectors in columns.

    As ``scipy.linalg.eigh(matrix, subset_by_index=(first, last), driver="evr")``: of the lower
    triangle, by LAPACK's ``dsyevr``.

    Parameters
    ----------
    matrix : (n, n) array
        Finite and symmetric; it is not changed.
    first, last : int
        From 0 to n - 1, both inclusive.
    """
    n = len(matrix)
    if n < _LONG:
        values, vectors = eigh(
            matrix, subset_by_index=(first, last), driver="evr", check_finite=False
        )
        return values, vectors
    work = np.array(matrix, dtype=np.float64, order="F")
    return interruptible(lambda: _dsyevr(work, first, last), 4 / 3 * n**3)


def _dsyevr(a: _Array, first: int, last: int) -> tuple[_Array, _Array]:
    n, count = len(a), last - first + 1
    values, vectors = np.empty(n), np.empty((n, count), order="F")
    support = np.empty(2 * n, dtype=np.intc)
    found, info = ctypes.c_int(), ctypes.c_int()
    lwork, liwork = -1, -1
    work, iwork = np.empty(1), np.empty(1, dtype=np.intc)
    for _ in range(2):  # the first call says how large its work arrays are to be
        _routine()(
            b"V",
            b"I",
            b"L",
            _integer(n),
            a.ctypes.data,
            _integer(n),
            ctypes.byref(ctypes.c_double()),
            ctypes.byref(ctypes.c_double()),
            _integer(first + 1),
            _integer(last + 1),
            ctypes.byref(ctypes.c_double()),
            ctypes.byref(found),
            values.ctypes.data,
            vectors.ctypes.data,
            _integer(n),
            support.ctypes.data,
            work.ctypes.data,
            _integer(lwork),
            iwork.ctypes.data,
            _integer(liwork),
            ctypes.byref(info),
        )
        if info.value == 0 and lwork < 0:
            lwork, liwork = max(int(work[0]), 26 * n), max(int(iwork[0]), 10 * n)
            work, iwork = np.empty(lwork), np.empty(liwork, dtype=np.intc)
    if info.value != 0 or found.value != count:
        raise LinAlgError(f"Eigenvalues did not converge: dsyevr's info is {info.value}")
    return values[:count].copy(), np.ascontiguousarray(vectors)


def _integer(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


@cache
def _routine() -> Any:
    capsule = ctypes.py_object(cython_lapack.__pyx_capi__["dsyevr"])
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    types = [ctypes.c_char_p] * 3 + [ctypes.c_void_p] * 18
    return ctypes.CFUNCTYPE(None, *types)(pointer(capsule, name(capsule)))

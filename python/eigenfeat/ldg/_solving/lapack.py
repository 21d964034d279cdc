"""Some eigenpairs of a symmetric matrix by a call that gives up Python's lock."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, eigh

from eigenfeat._base.interruptible import interruptible
from eigenfeat._base.unlocked_lapack import by_reference, routine

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
        routine("dsyevr", 3, 18)(
            b"V",
            b"I",
            b"L",
            by_reference(n),
            a.ctypes.data,
            by_reference(n),
            ctypes.byref(ctypes.c_double()),
            ctypes.byref(ctypes.c_double()),
            by_reference(first + 1),
            by_reference(last + 1),
            ctypes.byref(ctypes.c_double()),
            ctypes.byref(found),
            values.ctypes.data,
            vectors.ctypes.data,
            by_reference(n),
            support.ctypes.data,
            work.ctypes.data,
            by_reference(lwork),
            iwork.ctypes.data,
            by_reference(liwork),
            ctypes.byref(info),
        )
        if info.value == 0 and lwork < 0:
            lwork, liwork = max(int(work[0]), 26 * n), max(int(iwork[0]), 10 * n)
            work, iwork = np.empty(lwork), np.empty(liwork, dtype=np.intc)
    if info.value != 0 or found.value != count:
        raise LinAlgError(f"Eigenvalues did not converge: dsyevr's info is {info.value}")
    return values[:count].copy(), np.ascontiguousarray(vectors)

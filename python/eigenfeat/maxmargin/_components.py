"""Principal components that Ctrl-C does not wait for."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from eigenfeat._base.interruptible import interruptible
from eigenfeat._base.signs import signed
from eigenfeat._base.types import Floats
from eigenfeat._base.unlocked_lapack import by_reference, routine

__all__ = ["fitted_components"]

_SMALL = 500  # rows and columns up to which scikit-learn's own fit takes a tenth of a second
_LARGEST = 2**31 - 1  # entries of an array that LAPACK counts in 32 bits
_NARROW = 1000  # columns up to which scikit-learn decomposes the covariance of many rows


def fitted_components(X: Floats) -> PCA:
    """Return ``PCA().fit(X)`` to rounding, computed in calls that Ctrl-C does not wait for.

    scikit-learn calls ``scipy.linalg.svd``, which keeps Python's lock until it is done; here its
    routine of LAPACK is called without the lock. Covariances are used where scikit-learn uses them:
    for at least ten times as many rows as columns, of which there are at most 1,000.

    Parameters
    ----------
    X : (n, d) array
        Finite rows, float32 or float64, n at least 2.
    """
    n, d = X.shape
    too_large = max(_least_work(min(n, d)) + 64 * (n + d), n * d) > _LARGEST
    by_covariance = d <= _NARROW and n >= 10 * d
    if max(n, d) <= _SMALL or (too_large and not by_covariance):
        return PCA().fit(X)  # which raises an error if it is too large
    mean = X.mean(axis=0)
    if by_covariance:
        variances, components = _of_covariance(X, mean)
        lengths = np.sqrt(variances * (n - 1))
    else:
        lengths, components = _of_rows(X, mean)
        variances = lengths**2 / (n - 1)
    found = PCA()
    found.n_features_in_ = d
    found.n_samples_ = n
    found._fit_svd_solver = "covariance_eigh" if by_covariance else "full"
    found.n_components_ = min(n, d)
    found.mean_ = mean
    found.components_ = np.ascontiguousarray(signed(components.T).T, dtype=X.dtype)
    found.singular_values_ = lengths
    found.explained_variance_ = variances
    found.explained_variance_ratio_ = variances / variances.sum()
    found.noise_variance_ = 0.0  # no component is left out
    return found


def _of_covariance(X: NDArray[Any], mean: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Variances (d,), largest first, and components (d, d)."""
    n, d = X.shape
    covariance = interruptible(lambda: X.T @ X, float(n) * d**2)
    covariance -= n * mean[:, None] * mean
    covariance /= n - 1
    values, vectors = interruptible(lambda: np.linalg.eigh(covariance), 9.0 * d**3)
    return np.maximum(values[::-1], 0), vectors[:, ::-1].T


def _of_rows(X: NDArray[Any], mean: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Singular values (m,) of the centred rows and components (m, d), m the smaller of n and d."""
    centred = np.array(X, order="F")
    centred -= mean
    most, least = max(X.shape), min(X.shape)
    return interruptible(lambda: _gesdd(centred), 6.0 * most * least**2)


def _gesdd(a: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Singular values (m,) and right vectors (m, d) of an (n, d) array in columns, overwritten."""
    (n, d), dtype = a.shape, a.dtype
    m = min(n, d)
    values, left = np.empty(m, dtype), np.empty((n, m), dtype, order="F")
    right = np.empty((m, d), dtype, order="F")
    integers, info = np.empty(8 * m, dtype=np.intc), ctypes.c_int()
    length, work = -1, np.empty(1, dtype)
    call = routine("sgesdd" if dtype == np.float32 else "dgesdd", 1, 13)
    for _ in range(2):  # the first call says how large its work array is to be
        call(
            b"S",
            by_reference(n),
            by_reference(d),
            a.ctypes.data,
            by_reference(n),
            values.ctypes.data,
            left.ctypes.data,
            by_reference(n),
            right.ctypes.data,
            by_reference(m),
            work.ctypes.data,
            by_reference(length),
            integers.ctypes.data,
            ctypes.byref(info),
        )
        if info.value == 0 and length < 0:
            # A float may have rounded the number down.
            length = max(int(np.nextafter(work[0], dtype.type(np.inf))), _least_work(m))
            work = np.empty(length, dtype)
    if info.value != 0:
        raise np.linalg.LinAlgError(f"SVD did not converge: gesdd's info is {info.value}")
    return values, right


def _least_work(m: int) -> int:
    """Entries of gesdd's work array, in LAPACK of any version."""
    return 5 * m * m + 7 * m

"""Symmetric positive definite matrices: logarithms at a reference, means, and whitening."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.exceptions import ConvergenceWarning

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat.signals.epochs import too_large

_Array = NDArray[np.float64]

_MAX_ITER = 100  # of the Riemannian mean
_TOLERANCE = 2.5e-10  # norm of the mean logarithm, divided by the root of its order
_MAX_CONDITION = 1e3  # of a factor of the arithmetic mean; with more, matrices are whitened
_MEMORY = 8  # pairs of L-BFGS
_EPS = float(np.finfo(np.float64).eps)


def epoch_covariances(X: NDArray[Any], n_threads: int | None) -> _Array:
    """Covariances (n, channels, channels) of epochs, divided by their length."""
    C: _Array = core.epoch_covariances(np.ascontiguousarray(X), threads.resolve(n_threads))
    if not np.isfinite(C).all():
        raise too_large(X)
    return C


def tangent_vectors(C: _Array, whitening: _Array, n_threads: int | None) -> _Array:
    """``log(W^T C_i W)`` as vectors (n, r (r + 1) / 2).

    Raises
    ------
    ValueError
        If a matrix is singular in the span of W.
    """
    vectors = core.tangent_vectors(
        np.ascontiguousarray(C), np.ascontiguousarray(whitening), threads.resolve(n_threads)
    )
    _check(np.isnan(vectors[:, 0]))
    return vectors


def _check(failed: NDArray[Any]) -> None:
    if failed.any():
        raise _singular(int(np.flatnonzero(failed)[0]))


def _singular(epoch: int) -> ValueError:
    return ValueError(
        "X: expected covariances that are positive definite in the span of the channels, got a "
        f"singular covariance of epoch {epoch}; set shrinkage, or take longer epochs"
    )


def _matrix(vector: _Array) -> _Array:
    """The symmetric matrix of a tangent vector."""
    r = int(np.sqrt(2 * len(vector)))
    rows, columns = np.triu_indices(r)
    out = np.empty((r, r))
    out[rows, columns] = out[columns, rows] = vector / np.where(rows == columns, 1, np.sqrt(2))
    return out


def _spectral_function(A: _Array, function: Any) -> _Array:
    """``V f(values) V^T`` of symmetric matrices (..., r, r)."""
    values, vectors = np.linalg.eigh(A)
    return np.asarray((vectors * function(values)[..., None, :]) @ vectors.swapaxes(-1, -2))


def inverse_root(A: _Array) -> _Array:
    """``A^(-1/2)`` of positive definite matrices (..., r, r)."""
    return _spectral_function(A, lambda values: 1.0 / np.sqrt(values))


def between(A: _Array, B: _Array, share: float) -> _Array:
    """Points at the fraction `share` of the geodesics from A to B (..., r, r)."""
    inverse, root = inverse_root(A), _spectral_function(A, np.sqrt)
    inner = inverse @ B @ inverse
    inner = (inner + inner.swapaxes(-1, -2)) / 2
    return root @ _spectral_function(inner, lambda values: values**share) @ root


@threads.one_blas_thread()
def mean_covariance(C: _Array, weight: _Array, n_threads: int | None) -> _Array:
    """Weighted Riemannian mean G of positive definite matrices (n, r, r).

    G solves ``sum_i w_i log(G^(-1/2) C_i G^(-1/2)) = 0``. The iteration starts at the arithmetic
    mean, and multiplies the factor E of ``G = E E^T`` by ``exp(step / 2)``. In these coordinates,
    transport along geodesics does not change gradients, so that L-BFGS computes the steps from the
    mean J of the logarithms at G. If J grows, the step is ``2 / (1 + h) J``: with k_i the condition
    of ``G^(-1/2) C_i G^(-1/2)``, the eigenvalues of the Hessian are between 1 and the mean h of
    ``log(k_i) / 2 coth(log(k_i) / 2)`` (Bini and Iannazzo 2013). Matrices with an ill-conditioned
    arithmetic mean are first whitened by it, so that rounding errors do not change with E.

    Warns
    -----
    ConvergenceWarning
        If J is not small after 100 iterations.
    """
    C, share = np.ascontiguousarray(C), weight / weight.sum()
    r = C.shape[1]
    root, n_threads = np.eye(r), threads.resolve(n_threads)
    try:
        E = np.linalg.cholesky((share @ C.reshape(len(C), r * r)).reshape(r, r))
    except np.linalg.LinAlgError:
        raise _singular(0) from None
    if np.linalg.cond(E) > _MAX_CONDITION:
        root, E = E, root
        whitening = solve_triangular(root, E, lower=True)
        C = whitening @ (C.reshape(-1, r) @ whitening.T).reshape(C.shape)
        C = (C + C.swapaxes(1, 2)) / 2
    size = r * (r + 1) // 2
    zero, step, last, pairs = np.zeros(size), np.zeros(size), np.zeros(0), core.Lbfgs(size, _MEMORY)
    for _ in range(_MAX_ITER):
        W = np.ascontiguousarray(np.linalg.inv(E).T)
        logarithms = core.mean_tangent_vector(C, share, W, n_threads)
        _check(logarithms.status)
        J, (least, largest) = logarithms.mean, logarithms.extremes.T
        conditions, norm = largest / least, float(np.linalg.norm(J))
        if norm <= np.sqrt(r) * max(_TOLERANCE, 8 * _EPS * float(share @ conditions)):
            break
        if len(last) and norm > 2 * np.linalg.norm(last):
            pairs.forget()
            half = np.maximum(np.log(conditions) / 2, 1e-8)
            step = 2.0 / (1.0 + share @ (half / np.tanh(half))) * J
        else:
            if len(last) and step @ (last - J) >= 0.5 * (step @ step):  # the Hessian is at least 1
                pairs.remember(zero, step, -last, -J, -last, -J)
            step = pairs.direction(-J, -J).vector
        E = E @ _spectral_function(_matrix(step) / 2, np.exp)
        last = J
    else:
        warnings.warn(
            f"the Riemannian mean did not converge in {_MAX_ITER} iterations: the mean logarithm "
            f"has norm {norm:.1e}",
            ConvergenceWarning,
            stacklevel=2,
        )
    root = root @ E
    return root @ root.T

"""Symmetric positive definite matrices: logarithms at a reference, means, and whitening."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.exceptions import ConvergenceWarning

from eigenfeat._base import threads
from eigenfeat._base.core import core

_Array = NDArray[np.float64]

_MAX_ITER = 100
_TOLERANCE = 2.5e-10
_MEMORY = 8  # pairs of L-BFGS
_EPS = float(np.finfo(np.float64).eps)


def epoch_covariances(X: NDArray[Any], n_threads: int | None) -> _Array:
    """Covariances (n, channels, channels) of epochs, divided by their length."""
    return core.epoch_covariances(np.ascontiguousarray(X), threads.resolve(n_threads))


def tangent_vectors(C: _Array, whitening: _Array, n_threads: int | None) -> _Array:
    """``log(W^T C_i W)`` as vectors (n, r (r + 1) / 2).

    Raises
    ------
    ValueError
        If a matrix is singular in the span of W.
    """
    vectors, _, status = core.tangent_vectors(
        np.ascontiguousarray(C), np.ascontiguousarray(whitening), threads.resolve(n_threads)
    )
    _check(status)
    return vectors


def _check(status: NDArray[np.int32]) -> None:
    if status.any():
        epoch = int(np.flatnonzero(status)[0])
        raise ValueError(
            "X: expected covariances that are positive definite in the span of the channels, got a "
            f"singular one of epoch {epoch}; set shrinkage, or take longer epochs"
        )


@lru_cache(8)
def _triangle(r: int) -> tuple[NDArray[np.intp], NDArray[np.intp], _Array]:
    """Return rows and columns of the upper triangle, and the factors of its entries."""
    rows, columns = np.triu_indices(r)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


def _matrix(vector: _Array) -> _Array:
    """The symmetric matrix of a tangent vector."""
    r = int(np.sqrt(2 * len(vector)))
    rows, columns, factors = _triangle(r)
    out = np.empty((r, r))
    out[rows, columns] = out[columns, rows] = vector / factors
    return out


def _vector(S: _Array) -> _Array:
    """The tangent vector of a symmetric matrix."""
    rows, columns, factors = _triangle(len(S))
    return np.asarray(factors * S[rows, columns])


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


def mean_covariance(C: _Array, weight: _Array, n_threads: int | None) -> _Array:
    """Weighted Riemannian mean G of positive definite matrices (n, r, r).

    It solves ``sum_i w_i log(G^(-1/2) C_i G^(-1/2)) = 0``. The iteration keeps a
    factor, ``G = E E^T``, and multiplies it by ``exp(step / 2)``, with J the mean of the logarithms
    at G: in these coordinates gradients are transported along geodesics without a change. Steps are
    those of L-BFGS. Where they fail the step is ``2 / (1 + h) J``: with k_i the condition of
    ``G^(-1/2) C_i G^(-1/2)``, the Hessian's eigenvalues lie between 1 and the mean h of
    ``log(k_i) / 2 coth(log(k_i) / 2)`` (Bini and Iannazzo 2013).

    Warns
    -----
    ConvergenceWarning
        If J is not small after 100 iterations.
    """
    share = weight / weight.sum()
    r = C.shape[1]
    E = _factor((share @ C.reshape(len(C), r * r)).reshape(r, r))  # of the arithmetic mean
    size = r * (r + 1) // 2
    zero, step, last, pairs = np.zeros(size), np.zeros(size), np.zeros(0), core.Lbfgs(size, _MEMORY)
    for _ in range(_MAX_ITER):
        Q, R = np.linalg.qr(E.T)
        # Logarithms at the triangular factor need half of the products; Q rotates them to E.
        logs = _mean_log(C, share, solve_triangular(R, np.eye(r)), n_threads)
        J = _vector(Q @ _matrix(logs.mean) @ Q.T)
        norm = float(np.linalg.norm(J))
        if norm <= np.sqrt(r) * max(_TOLERANCE, 8 * _EPS * logs.condition):
            return E @ E.T
        if len(last) and norm > 2 * np.linalg.norm(last):
            pairs.forget()
            step = 2.0 / (1.0 + logs.bound) * J
        else:
            if len(last) and step @ (last - J) >= 0.5 * (step @ step):  # the Hessian is at least 1
                pairs.remember(zero, step, -last, -J, -last, -J)
            step = pairs.direction(-J, -J)[0]
        E = E @ _spectral_function(_matrix(step) / 2, np.exp)
        last = J
    warnings.warn(
        f"the Riemannian mean did not converge in {_MAX_ITER} iterations: the mean logarithm has "
        f"norm {norm:.1e}",
        ConvergenceWarning,
        stacklevel=2,
    )
    return E @ E.T


def _factor(A: _Array) -> _Array:
    """E with ``E E^T = A``, lower triangular where A is positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(A), dtype=np.float64)
    except np.linalg.LinAlgError:
        return _spectral_function(A, np.sqrt)


class _MeanLog(NamedTuple):
    """Mean of tangent vectors, bound of the Hessian, and mean condition of the matrices."""

    mean: _Array
    bound: float
    condition: float


def _mean_log(C: _Array, share: _Array, W: _Array, n_threads: int | None) -> _MeanLog:
    """Weighted mean of the tangent vectors at ``W^(-T) W^(-1)``."""
    C, W = np.ascontiguousarray(C), np.ascontiguousarray(W)
    mean, extremes, status = core.mean_tangent_vector(C, share, W, threads.resolve(n_threads))
    _check(status)
    ratios = extremes[:, 1] / extremes[:, 0]
    half = np.maximum(np.log(ratios) / 2, 1e-8)
    bound = float(share @ (half / np.tanh(half)))
    return _MeanLog(mean, max(bound, 1.0), float(share @ ratios))

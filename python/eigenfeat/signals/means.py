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

__all__ = [
    "MEANS",
    "Mean",
    "between",
    "epoch_covariances",
    "inverse_root",
    "mean_covariance",
    "spectral_function",
    "symmetric",
    "tangent_vectors",
]

_Array = NDArray[np.float64]

MEANS = ("riemannian", "euclidean")
_BLOCK = 4096  # matrices whose logarithms are taken at a time
_MAX_ITER = 100
_TOLERANCE = 2.5e-10
_MEMORY = 8  # pairs of L-BFGS
_NEAR = 10.0  # a step expected to end below this multiple of the tolerance is the last one
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


def _check(status: NDArray[np.int32], first: int = 0) -> None:
    if status.any():
        epoch = int(np.flatnonzero(status)[0]) + first
        raise ValueError(
            "X: expected covariances that are positive definite in the span of the channels, got a "
            f"singular one of epoch {epoch}; set shrinkage, or take longer epochs"
        )


@lru_cache(8)
def _triangle(r: int) -> tuple[NDArray[np.intp], NDArray[np.intp], _Array]:
    """Return rows and columns of the upper triangle, and the factors of its entries."""
    rows, columns = np.triu_indices(r)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


def symmetric(vectors: _Array) -> _Array:
    """Matrices (..., r, r) of tangent vectors (..., r (r + 1) / 2)."""
    r = int(np.sqrt(2 * vectors.shape[-1]))
    rows, columns, factors = _triangle(r)
    entries = vectors / factors
    out = np.empty((*vectors.shape[:-1], r, r))
    out[..., rows, columns] = entries
    out[..., columns, rows] = entries
    return out


def _vector(S: _Array) -> _Array:
    """The tangent vector of a symmetric matrix."""
    rows, columns, factors = _triangle(len(S))
    return np.asarray(factors * S[rows, columns])


def spectral_function(A: _Array, function: Any) -> _Array:
    """``V f(values) V^T`` of a symmetric matrix."""
    values, vectors = np.linalg.eigh(A)
    return np.asarray((vectors * function(values)) @ vectors.T)


def inverse_root(A: _Array) -> _Array:
    """``A^(-1/2)`` of a positive definite matrix."""
    return spectral_function(A, lambda values: 1.0 / np.sqrt(values))


def between(A: _Array, B: _Array, share: float, mean: str) -> _Array:
    """Weighted means of pairs of matrices (bands, r, r); the weight of B is `share`."""
    if mean == "euclidean":
        return (1.0 - share) * A + share * B
    return np.stack([_geodesic(one, other, share) for one, other in zip(A, B, strict=True)])


def _geodesic(A: _Array, B: _Array, share: float) -> _Array:
    inverse, root = inverse_root(A), spectral_function(A, np.sqrt)
    inner = inverse @ B @ inverse
    power = spectral_function((inner + inner.T) / 2, lambda values: values**share)
    return root @ power @ root


class Mean(NamedTuple):
    """G, ``G^(-1/2)``, and the tangent vectors of the matrices at G if they are known."""

    matrix: _Array
    whitening: _Array
    vectors: _Array | None = None


def mean_covariance(C: _Array, weight: _Array, mean: str, n_threads: int | None) -> Mean:
    """Weighted mean of positive definite matrices (n, r, r).

    The Riemannian mean G solves ``sum_i w_i log(G^(-1/2) C_i G^(-1/2)) = 0``. The iteration keeps a
    factor, ``G = E E^T``, and multiplies it by ``exp(step / 2)``, with J the mean of the
    logarithms at G: in these coordinates gradients are transported along geodesics as they are.
    Steps are those of L-BFGS. Where they fail the step is ``2 / (1 + h) J``: with k_i the condition
    of ``G^(-1/2) C_i G^(-1/2)``, the Hessian's eigenvalues lie between 1 and the mean h of
    ``log(k_i) / 2 coth(log(k_i) / 2)`` (Bini and Iannazzo 2013). After the step that should be the
    last one the logarithms are those at ``G^(-1/2)``, the tangent vectors.

    Warns
    -----
    ConvergenceWarning
        If J is not small after 100 iterations.
    """
    share = weight / weight.sum()
    r = C.shape[1]
    arithmetic = (share @ C.reshape(len(C), r * r)).reshape(r, r)
    if mean == "euclidean":
        return Mean(arithmetic, inverse_root(arithmetic))
    E = _factor(arithmetic)
    pairs: list[tuple[_Array, _Array]] = []  # steps, and the decreases of J
    step = last = np.zeros(0)
    is_last = False
    for _ in range(_MAX_ITER):
        rotation, W = _symmetric(E) if is_last else _triangular(E)
        logs = _mean_log(C, share, W, n_threads, is_last)
        J = _vector(rotation @ symmetric(logs.mean) @ rotation.T)
        norm, before = float(np.linalg.norm(J)), float(np.linalg.norm(last))
        tol = np.sqrt(r) * max(_TOLERANCE, 8 * _EPS * logs.condition)
        if norm <= tol:
            G = E @ E.T
            return Mean(G, W, logs.vectors) if is_last else Mean(G, inverse_root(G))
        if len(last) and norm > 2 * before:
            pairs.clear()
            step = 2.0 / (1.0 + logs.bound) * J
        else:
            if len(last):
                pairs = [*pairs[1 - _MEMORY :], (step, last - J)]
            step = _quasi_newton(J, pairs)
        E = E @ _exponential(symmetric(step) / 2)
        expected = norm**2 / before if len(last) else (logs.bound - 1.0) * _off_identity(J)
        is_last = expected <= _NEAR * tol
        last = J
    warnings.warn(
        f"the Riemannian mean did not converge in {_MAX_ITER} iterations: the mean logarithm has "
        f"norm {norm:.1e}",
        ConvergenceWarning,
        stacklevel=2,
    )
    G = E @ E.T
    return Mean(G, inverse_root(G))


def _off_identity(J: _Array) -> float:
    """Norm of J without its multiple of the identity, which the first step removes."""
    S = symmetric(J)
    return float(np.linalg.norm(S - np.trace(S) / len(S) * np.eye(len(S))))


def _factor(A: _Array) -> _Array:
    """E with ``E E^T = A``, lower triangular where A is positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(A), dtype=np.float64)
    except np.linalg.LinAlgError:
        return spectral_function(A, np.sqrt)


def _exponential(S: _Array) -> _Array:
    """``exp(S)`` of a symmetric matrix, by Taylor's series where it is short."""
    size = float(np.linalg.norm(S))
    if not size < 0.5:
        return spectral_function(S, np.exp)
    out = term = np.eye(len(S))
    left, k = 1.0, 0
    while left > _EPS:
        k += 1
        left *= size / k
        term = term @ S / k
        out = out + term
    return out


# Inverse factors W of G = E E^T, and the orthogonal Q with W Q^T = E^(-T), by which logarithms at W
# are those at E^(-T) in other coordinates.


def _triangular(E: _Array) -> tuple[_Array, _Array]:
    """Q and W, an upper triangle, which takes half of the products."""
    Q, R = np.linalg.qr(E.T)
    return Q, solve_triangular(R, np.eye(len(R)))


def _symmetric(E: _Array) -> tuple[_Array, _Array]:
    """Q and ``W = G^(-1/2)``, where logarithms are the tangent vectors."""
    W = inverse_root(E @ E.T)
    return E.T @ W, W


def _quasi_newton(J: _Array, pairs: list[tuple[_Array, _Array]]) -> _Array:
    """The step of L-BFGS (Nocedal 1980) from the last pairs; J itself without any."""
    pairs = [(s, y) for s, y in pairs if s @ y >= 0.5 * (s @ s)]  # the Hessian is at least 1
    step, factors = J, []
    for s, y in reversed(pairs):
        factor = (s @ step) / (s @ y)
        step = step - factor * y
        factors.append(factor)
    if pairs:
        s, y = pairs[-1]
        step = (s @ y) / (y @ y) * step
    for (s, y), factor in zip(pairs, reversed(factors), strict=True):
        step = step + (factor - (y @ step) / (s @ y)) * s
    return step


class _MeanLog(NamedTuple):
    """Mean of tangent vectors, the Hessian's bound, the mean condition, vectors if asked for."""

    mean: _Array
    bound: float
    condition: float
    vectors: _Array | None


def _mean_log(
    C: _Array, share: _Array, W: _Array, n_threads: int | None, with_vectors: bool = False
) -> _MeanLog:
    """Compute the weighted mean of the tangent vectors."""
    C, W, count = np.ascontiguousarray(C), np.ascontiguousarray(W), threads.resolve(n_threads)
    total = np.zeros(W.shape[1] * (W.shape[1] + 1) // 2)
    bound = condition = 0.0
    vectors: Any = None
    for first in range(0, len(C), _BLOCK):
        block, part = C[first : first + _BLOCK], share[first : first + _BLOCK]
        if with_vectors and len(C) <= _BLOCK:
            vectors, extremes, status = core.tangent_vectors(block, W, count)
            mean = part @ vectors
        else:
            mean, extremes, status = core.mean_tangent_vector(block, part, W, count)
        _check(status, first)
        total += mean
        ratios = extremes[:, 1] / extremes[:, 0]
        half = np.maximum(np.log(ratios) / 2, 1e-8)
        bound += float(part @ (half / np.tanh(half)))
        condition += float(part @ ratios)
    return _MeanLog(total, max(bound, 1.0), condition, vectors)

"""Scatter between neighbouring rows of a class, by local scaling of distances.

With ``A_ij = exp(-|x_i - x_j|^2 / (sigma_i sigma_j))``, sigma the distance to the k-th nearest
other row (Zelnik-Manor and Perona, 2004), and ``D`` the diagonal of row sums: ``X^T (D - A) X``.
Only the upper half of A is made, a block of rows at a time, and none of it is kept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eigenfeat.ldg._scatters import EPS, Array

__all__ = ["local_scatter"]

_BLOCK = 256  # rows of A that there are at a time
_WHOLE = 2048  # classes of so many rows have their distances computed once, others twice

Panel = Callable[[int, int, int], Array]


def local_scatter(X: Array, n_neighbors: int) -> Array:
    """Return ``X^T (D - A) X`` (d, d) of rows X (n, d) of a class, which should be centred.

    Rows that have `n_neighbors` equals or more have no affinity to others, as sigma is 0.
    """
    n, d = X.shape
    k = min(n_neighbors, n - 1)
    if k == 0:
        return np.zeros((d, d))
    norms = np.einsum("ij,ij->i", X, X)
    panel = _panels(X, norms)
    squares = np.concatenate(
        [
            np.partition(panel(i, min(i + _BLOCK, n), 0), k, axis=1)[:, k]
            for i in range(0, n, _BLOCK)
        ]
    )
    scaled = squares > 4 * d * EPS * norms  # below that lies the distances' rounding
    if not scaled.all():
        X, norms, squares = X[scaled], norms[scaled], squares[scaled]
        panel = _panels(X, norms)
    return _laplacian_form(X, panel, squares**-0.5)


def _panels(X: Array, norms: Array) -> Panel:
    """Return a function of (i, j, start): new squared distances of rows i:j to those from start."""

    def computed(i: int, j: int, start: int) -> Array:
        products: Array = X[i:j] @ X[start:].T
        return _distances(products, norms[i:j], norms[start:])

    if len(X) > _WHOLE:
        return computed
    whole = _distances(X @ X.T, norms, norms)
    return lambda i, j, start: whole[i:j, start:].copy()


def _distances(products: Array, norms: Array, others: Array) -> Array:
    """Turn inner products into squared distances, in place."""
    products *= -2
    products += norms[:, None]
    products += others
    return np.maximum(products, 0, out=products)


def _laplacian_form(X: Array, panel: Panel, inverse: Array) -> Array:
    """Return ``X^T (D - A) X``; `inverse` (n,) are the reciprocals of sigma."""
    n, d = X.shape
    with_ones = np.column_stack([X, np.ones(n)])
    degrees = np.zeros(n)
    half = np.zeros((d, d))
    for i in range(0, n, _BLOCK):
        j = min(i + _BLOCK, n)
        affinity = panel(i, j, i)
        affinity *= -inverse[i:j, None]
        affinity *= inverse[i:]
        np.exp(affinity, out=affinity)
        affinity[:, : j - i] *= 0.5  # the diagonal block, which is met on both sides
        sums = affinity @ with_ones[i:]
        degrees[i:j] += sums[:, d]
        degrees[i:] += affinity.sum(axis=0)
        half += X[i:j].T @ sums[:, :d]
    scatter: Array = (X * degrees[:, None]).T @ X - (half + half.T)
    return (scatter + scatter.T) / 2

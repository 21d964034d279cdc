"""Scatter between neighbouring rows of a class, by local scaling of distances.

With ``A_ij = exp(-|x_i - x_j|^2 / (sigma_i sigma_j))``, sigma the distance to the k-th nearest
other row (Zelnik-Manor and Perona, 2004), and ``D`` the diagonal of row sums: ``X^T (D - A) X``.
Only the upper half of A is made, a block of rows at a time, and none of it is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eigenfeat.ldg._scatters import EPS, Array

__all__ = ["local_scatter"]

_ENTRIES = 2**17  # of A that there are at a time: 1 MiB, which stays in the cache
_MOST_ROWS = 64  # of a block, so that little more than half of A is made
_WHOLE = 2048  # classes of so many rows have their inner products computed once, others twice


def local_scatter(X: Array, n_neighbors: int) -> Array:
    """Return ``X^T (D - A) X`` (d, d) of rows X (n, d) of a class, which should be centred.

    Rows that have `n_neighbors` equals or more have no affinity to others, as sigma is 0.
    """
    n, d = X.shape
    k = min(n_neighbors, n - 1)
    if k == 0:
        return np.zeros((d, d))
    products = _InnerProducts(X)
    squares = _squared_distances_to_kth(products, k)
    scaled = squares > 4 * d * EPS * products.norms  # below that lies the distances' rounding
    if not scaled.all():
        X, squares = np.ascontiguousarray(X[scaled]), squares[scaled]
        if len(X) == 0:
            return np.zeros((d, d))
        products = _InnerProducts(X)
    return _laplacian_form(X, products, squares**-0.5)


class _InnerProducts:
    """Inner products of rows X (n, d), a block of rows at a time, in one place of memory."""

    def __init__(self, X: Array) -> None:
        n = len(X)
        self.norms: Array = np.einsum("ij,ij->i", X, X)
        self._X = X
        self._gram = X @ X.T if n <= _WHOLE and X.shape[1] > 16 else None
        self._rows = min(n, _MOST_ROWS, max(16, _ENTRIES // n))
        self._memory = np.empty(self._rows * n)

    def blocks(self, *, upper: bool) -> Iterator[tuple[slice, slice, Array]]:
        """Yield rows, columns and their inner products, which may be overwritten.

        Columns are all, or with `upper` those that begin with the first of the rows.
        """
        n = len(self._X)
        for i in range(0, n, self._rows):
            rows, columns = slice(i, min(i + self._rows, n)), slice(i if upper else 0, n)
            shape = rows.stop - i, n - columns.start
            block = self._memory[: shape[0] * shape[1]].reshape(shape)
            if self._gram is None:
                np.matmul(self._X[rows], self._X[columns].T, out=block)
            else:
                np.copyto(block, self._gram[rows, columns])
            yield rows, columns, block


def _squared_distances_to_kth(products: _InnerProducts, k: int) -> Array:
    """Return each row's squared distance (n,) to the k-th nearest other row."""
    squares = np.empty(len(products.norms))
    for rows, _, block in products.blocks(upper=False):
        block *= -2
        block += products.norms
        block.partition(k, axis=1)  # the row itself is among the k + 1 smallest
        squares[rows] = block[:, k]
    squares += products.norms
    return squares


def _laplacian_form(X: Array, products: _InnerProducts, inverse: Array) -> Array:
    """Return ``X^T (D - A) X``; `inverse` (n,) are the reciprocals of sigma."""
    n, d = X.shape
    with_ones = np.column_stack([X, np.ones(n)])
    degrees = np.zeros(n)
    sums = np.empty((n, d + 1))
    for rows, columns, block in products.blocks(upper=True):
        block *= 2
        block -= products.norms[columns]
        block -= products.norms[rows, None]
        block *= inverse[rows, None]
        block *= inverse[columns]
        affinity = np.exp(block, out=block)
        affinity[:, : rows.stop - rows.start] *= 0.5  # of the diagonal, which has two sides
        np.matmul(affinity, with_ones[columns], out=sums[rows])
        degrees[columns] += affinity.sum(axis=0)
    degrees += sums[:, d]
    half = X.T @ (X * (degrees / 2)[:, None] - sums[:, :d])
    return half + half.T

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
_WIDE = 32  # columns from which inner products are kept, instead of being computed twice,
_SMALL = 2048  # in classes of no more rows


def local_scatter(X: Array, n_neighbors: int) -> Array:
    """Return ``X^T (D - A) X`` (d, d) of rows X (n, d) of a class, which should be centred.

    Rows that have `n_neighbors` equals or more have no affinity to others, as sigma is 0.
    """
    n, d = X.shape
    k = min(n_neighbors, n - 1)
    if k == 0:
        return np.zeros((d, d))
    distances = _Distances(X)
    squares = distances.to_kth(k)
    scaled = squares > 4 * d * EPS * distances.norms  # below that lies the distances' rounding
    if not scaled.all():
        X, squares = X[scaled], squares[scaled]
        distances = _Distances(X)
    return _laplacian_form(X, distances, squares**-0.5)


class _Distances:
    """Squared distances between rows X (n, d), a block of rows at a time in the same memory.

    They are made from inner products. Where these are not kept, distances are inner products
    themselves, of rows with a column or two more, which saves the passes that complete them.
    """

    def __init__(self, X: Array) -> None:
        n, d = X.shape
        self.norms: Array = np.einsum("ij,ij->i", X, X)
        self._X = X
        self._gram = X @ X.T if d >= _WIDE and n <= _SMALL else None
        self._rows = max(1, min(n, _MOST_ROWS, max(16, _ENTRIES // max(n, 1))))
        self._memory = np.empty(self._rows * n)

    def to_kth(self, k: int) -> Array:
        """Return each row's squared distance (n,) to the k-th nearest other row."""
        norms, squares = self.norms, np.empty(len(self._X))
        left = np.column_stack([-2 * self._X, np.ones(len(norms))])
        right = np.column_stack([self._X, norms])
        for rows, columns in self._blocks(upper=False):
            block = self._block(rows, columns)
            if self._gram is None:
                np.matmul(left[rows], right.T, out=block)
            else:
                np.multiply(self._gram[rows], -2, out=block)
                block += norms
            block.partition(k, axis=1)  # the row itself is among the k + 1 smallest
            squares[rows] = block[:, k]
        return squares + norms

    def affinities(self, inverse: Array) -> Iterator[tuple[slice, slice, Array]]:
        """Yield rows, the columns from the first of them on, and their affinities.

        `inverse` (n,) are the reciprocals of sigma.
        """
        scaled, sizes = self._X * inverse[:, None], self.norms * inverse
        left = np.column_stack([2 * scaled, -sizes, -inverse])
        right = np.column_stack([scaled, inverse, sizes])
        for rows, columns in self._blocks(upper=True):
            block = self._block(rows, columns)
            if self._gram is None:
                np.matmul(left[rows], right[columns].T, out=block)
            else:
                np.multiply(self._gram[rows, columns], 2, out=block)
                block -= self.norms[columns]
                block -= self.norms[rows, None]
                block *= inverse[columns]
                block *= inverse[rows, None]
            yield rows, columns, np.exp(block, out=block)

    def _blocks(self, *, upper: bool) -> Iterator[tuple[slice, slice]]:
        n = len(self._X)
        for i in range(0, n, self._rows):
            yield slice(i, min(i + self._rows, n)), slice(i if upper else 0, n)

    def _block(self, rows: slice, columns: slice) -> Array:
        shape = rows.stop - rows.start, columns.stop - columns.start
        return self._memory[: shape[0] * shape[1]].reshape(shape)


def _laplacian_form(X: Array, distances: _Distances, inverse: Array) -> Array:
    """Return ``X^T (D - A) X``; `inverse` (n,) are the reciprocals of sigma."""
    degrees = np.zeros(len(X))
    sums = np.zeros_like(X)
    for rows, columns, affinity in distances.affinities(inverse):
        affinity[:, : rows.stop - rows.start] *= 0.5  # of the diagonal, which has two sides
        np.matmul(affinity, X[columns], out=sums[rows])
        degrees[rows] += affinity.sum(axis=1)
        degrees[columns] += affinity.sum(axis=0)
    half: Array = X.T @ (X * (degrees / 2)[:, None] - sums)
    return half + half.T

r"""Solves with a regularised class matrix in the space of the class's samples.

With samples ``Z`` (n, d), weighted and optionally centred, and ``B = Z^T Z + r I``, the identity of
Woodbury

.. math:: B^{-1} g = (g - Z^T (Z Z^T + r I)^{-1} Z g) / r

leaves an (n, n) system. With at most `MAX_EXACT` samples the system is solved by a Cholesky factor
of the kernel ``Z Z^T + r I``, with more samples by conjugate gradients. Conjugate gradients
multiply by the kernel of the samples before centring, X, with only the columns X_s that have
entries in at least two samples,

.. math:: X X^T = X_s X_s^T + D,

because the kernel D of the other columns is diagonal. Most terms of a text occur in one document.
If there are at most `MAX_EXACT` columns, a Cholesky factor of ``X^T X + r I`` gives the
preconditioner

.. math:: (X X^T + r I)^{-1} = (I - X (X^T X + r I)^{-1} X^T) / r.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from eigenfeat.gem._randomized.samples import SparseRows

__all__ = ["MAX_EXACT", "Denominator"]

Array = NDArray[np.float64]

MAX_EXACT = 2048  # samples or columns up to which a matrix is factorised: 32 MB
MAX_STEPS = 1000  # of conjugate gradients


class Denominator:
    """``B = Z^T Z + shift I`` for rows ``Z = X - root (root^T X)`` if centred, else X.

    X (n, d), `rows`, are samples times the roots (n,) of their weights, whose squares sum to 1.
    `tolerance` is the relative residual of a solve by conjugate gradients; 0 threads mean all.
    """

    def __init__(
        self,
        rows: SparseRows,
        root: Array,
        shift: float,
        *,
        centred: bool,
        tolerance: float,
        n_threads: int,
    ) -> None:
        self.rows, self.root, self.shift = rows, root, shift
        self._centred, self._tolerance, self._n_threads = centred, tolerance, n_threads
        self._factor: Any = None
        self._preconditioner: Any = None
        if len(root) <= MAX_EXACT:
            kernel = rows.kernel(n_threads)
            kernel = self.centre(np.ascontiguousarray(self.centre((kernel + kernel.T) / 2).T))
            self._factor = _shifted_factor(kernel, shift)
            return
        counts = np.bincount(rows.indices, minlength=rows.n_columns)
        self._shared = rows.in_columns(np.flatnonzero(counts > 1))
        single = rows.in_columns(np.flatnonzero(counts == 1))
        self._diagonal = single.squared_norms()[:, None]
        if rows.n_columns <= MAX_EXACT:
            self._preconditioner = _shifted_factor(rows.transposed().kernel(n_threads), shift)

    def centre(self, U: Array) -> Array:
        """Project U (n, w) as centring projects the samples; in place."""
        if self._centred:
            U -= self.root[:, None] * (self.root @ U)
        return U

    def solve(self, G: Array, size: Array | float = np.inf) -> Array:
        """``(Z Z^T + shift I)^-1 G`` for columns ``G = Z g`` (n, w), after `centre`.

        Given the norms `size` (w,) of g, the relative residuals of ``B^-1 g`` are at most ten times
        the tolerance, however small the shift is.
        """
        if self._factor is not None:
            return linalg.cho_solve(self._factor, G, check_finite=False)
        solution, residual = np.zeros_like(G), G.copy()
        direction = self._precondition(residual)
        rho = _inner(residual, direction)
        # A residual e of the solve is the residual Z^T e / shift of B.
        largest = np.sqrt(float(self.rows.squared_norms().sum())) / self.shift
        least = self._tolerance**2 * np.minimum(
            _inner(G, G), (10 * np.asarray(size) / largest) ** 2
        )
        for _ in range(MAX_STEPS):
            if (_inner(residual, residual) <= least).all():
                break
            image = self._times(direction)
            curvature = _inner(direction, image)
            step = np.divide(rho, curvature, out=np.zeros_like(rho), where=curvature > 0)
            solution += step * direction
            residual = self.centre(residual - step * image)  # rounding errors would grow
            preconditioned = self._precondition(residual)
            before, rho = rho, _inner(residual, preconditioned)
            factor = np.divide(rho, before, out=np.zeros_like(rho), where=before > 0)
            direction = preconditioned + factor * direction
        return solution

    def _times(self, U: Array) -> Array:
        """``(Z Z^T + shift I) U`` for U in the range of Z."""
        inner = self._shared.transposed_times(U, n_threads=self._n_threads)
        product = self._shared.times(inner, n_threads=self._n_threads) + self._diagonal * U
        return self.centre(product) + self.shift * U

    def _precondition(self, R: Array) -> Array:
        """``(X X^T + shift I)^-1 R``, centred, if X has few columns, else R."""
        if self._preconditioner is None:
            return R
        inner = self.rows.transposed_times(R, n_threads=self._n_threads)
        inner = linalg.cho_solve(self._preconditioner, inner, check_finite=False)
        product = self.rows.times(np.ascontiguousarray(inner), n_threads=self._n_threads)
        return self.centre((R - product) / self.shift)


def _shifted_factor(matrix: Array, shift: float) -> Any:
    """Cholesky factor of ``matrix + shift I``; the shift is at least the level of rounding."""
    n = len(matrix)
    least = n * np.finfo(np.float64).eps * float(np.trace(matrix))
    matrix[np.diag_indices(n)] += max(shift, least)
    return linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)


def _inner(A: Array, B: Array) -> Array:
    """Inner products of columns."""
    return np.einsum("ij,ij->j", A, B)

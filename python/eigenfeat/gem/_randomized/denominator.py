r"""Solves with a regularised class matrix in the space of the class's samples.

With samples ``Z`` (n, d), weighted and optionally centred, and ``B = Z^T Z + r I``, the identity of
Woodbury

.. math:: B^{-1} g = (g - Z^T (Z Z^T + r I)^{-1} Z g) / r

leaves an (n, n) system with the kernel ``K = Z Z^T``. Up to `MAX_EXACT` samples it is solved by a
Cholesky factor, more samples by conjugate gradients with the preconditioner ``D + F F^T``: F has
the most frequent columns, D is the diagonal of the kernel of the other columns. In text, a few
thousand frequent terms account for nearly all of the inner products of documents; most other terms
occur once or twice. Columns of a single sample enter D exactly, and are left out of the products.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from eigenfeat.gem._randomized.samples import SparseRows
from eigenfeat.pencils.problems import DEFAULT_RIDGE

__all__ = ["MAX_EXACT", "Denominator", "settled_ridge"]

Array = NDArray[np.float64]

MAX_EXACT = 2048  # samples up to which the kernel is factorised: 32 MB
MAX_FREQUENT = 2048  # columns of F: 32 MB
MAX_STEPS = 1000  # of conjugate gradients
MAX_TOLERANCE, MIN_TOLERANCE = 1e-4, 1e-12  # relative, of a solve


def settled_ridge(ridge: float | str, n_samples: int, n_features: int) -> float:
    """Ridge as a multiple of trace / d; "auto": 0.2 of the mean over min(n, d) eigenvalues.

    A class of n samples in d > n columns has at most n positive eigenvalues, and 0.2 of the mean
    over all d eigenvalues would be negligible.
    """
    if not isinstance(ridge, str):
        return float(ridge)
    return DEFAULT_RIDGE * n_features / min(n_features, n_samples)


class Denominator:
    """``B = Z^T Z + shift I`` for rows ``Z = X - root (root^T X)`` if centred, else X.

    Parameters
    ----------
    rows : SparseRows (n, d)
        X: samples times the roots of their weights.
    root : (n,) array
        The roots; their squares sum to 1.
    shift : float > 0
        r.
    centred : bool
        Whether B is a covariance, not a second moment.
    n_threads : int
        Number of threads; 0 for all.
    """

    def __init__(
        self, rows: SparseRows, root: Array, shift: float, *, centred: bool, n_threads: int
    ) -> None:
        self.rows, self.root, self.shift = rows, root, shift
        self.n_threads = n_threads
        self._centred = centred
        self.steps = 0  # of conjugate gradients so far
        n = rows.shape[0]
        if n <= MAX_EXACT:
            self._factor = _shifted_factor(self._dense_kernel(), shift)
            return
        self._factor = None
        self._shared, self._alone = _shared_columns(rows)
        self._precondition = _FrequentColumns(self._shared, self._alone + shift, n_threads)

    def centre(self, U: Array) -> Array:
        """Project U (n, w) as centring projects the samples; in place."""
        if self._centred:
            U -= self.root[:, None] * (self.root @ U)
        return U

    def solve(self, G: Array, tolerance: Array) -> Array:
        """``(Z Z^T + shift I)^-1 G`` for columns G (n, w) in the range of Z, after `centre`.

        `tolerance` (w,) bounds the norm of the residual in the metric of the preconditioner, which
        is close to that of the system. It is clipped to `MIN_TOLERANCE` and `MAX_TOLERANCE` times
        the norm of G.
        """
        if self._factor is not None:
            return linalg.cho_solve(self._factor, G, check_finite=False)
        return self._conjugate_gradients(G, tolerance)

    def _dense_kernel(self) -> Array:
        kernel = self.rows.kernel(self.n_threads)
        kernel = (kernel + kernel.T) / 2
        if self._centred:
            self.centre(kernel)
            kernel = np.ascontiguousarray(kernel.T)
            self.centre(kernel)
        return kernel

    def _kernel_times(self, U: Array) -> Array:
        """``Z Z^T U`` for U in the range of Z."""
        inner = self._shared.transposed_times(U, n_threads=self.n_threads)
        product = self._shared.times(inner, n_threads=self.n_threads)
        product += self._alone[:, None] * U
        return self.centre(product)

    def _conjugate_gradients(self, G: Array, tolerance: Array) -> Array:
        solution = np.zeros_like(G)
        columns = np.arange(G.shape[1])  # not converged yet
        x, residual = np.zeros_like(G), G.copy()
        z = self.centre(self._precondition(residual))
        rho = _inner(residual, z)
        start = np.sqrt(np.maximum(rho, 0.0))
        tolerance = np.clip(tolerance, MIN_TOLERANCE * start, MAX_TOLERANCE * start)
        direction = z
        for _ in range(MAX_STEPS):
            going = np.sqrt(np.maximum(rho, 0.0)) > tolerance[columns]
            if not going.any():
                break
            if going.sum() <= 0.75 * len(columns):
                solution[:, columns[~going]] = x[:, ~going]
                x, residual, direction = x[:, going], residual[:, going], direction[:, going]
                rho, columns = rho[going], columns[going]
                direction = np.ascontiguousarray(direction)
            image = self._kernel_times(direction)
            image += self.shift * direction
            self.steps += len(columns)
            curvature = _inner(direction, image)
            step = np.divide(rho, curvature, out=np.zeros_like(rho), where=curvature > 0)
            x = x + step * direction
            residual = residual - step * image
            z = self.centre(self._precondition(residual))
            fresh = _inner(residual, z)
            factor = np.divide(fresh, rho, out=np.zeros_like(rho), where=rho > 0)
            direction = z + factor * direction
            rho = fresh
        solution[:, columns] = x
        return solution


class _FrequentColumns:
    """The inverse of ``D + F F^T``: a diagonal and a Cholesky factor of the order of F's columns.

    ``D^-1 - D^-1 F (I + F^T D^-1 F)^-1 F^T D^-1``.
    """

    def __init__(self, rows: SparseRows, diagonal: Array, n_threads: int) -> None:
        n, d = rows.shape
        count = min(MAX_FREQUENT, d)
        frequent = rows.indices < count
        owner = np.repeat(np.arange(n), np.diff(rows.indptr))
        squares = rows.data[~frequent].astype(np.float64) ** 2
        self._inverse = 1.0 / (diagonal + np.bincount(owner[~frequent], squares, minlength=n))
        starts = np.concatenate([[0], np.cumsum(np.bincount(owner[frequent], minlength=n))])
        self._rows = SparseRows(rows.data[frequent], rows.indices[frequent], starts, count)
        self._n_threads = n_threads
        parts = (self._rows.data.astype(np.float64), self._rows.indices, starts)
        F = sparse.csr_array(parts, shape=(n, count))
        F = sparse.diags_array(np.sqrt(self._inverse)) @ F
        inner = (F.T @ F).toarray()
        inner[np.diag_indices(count)] += 1.0
        self._factor = linalg.cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)

    def __call__(self, R: Array) -> Array:
        scaled = self._inverse[:, None] * R
        inner = self._rows.transposed_times(scaled, n_threads=self._n_threads)
        inner = np.ascontiguousarray(linalg.cho_solve(self._factor, inner, check_finite=False))
        scaled -= self._inverse[:, None] * self._rows.times(inner, n_threads=self._n_threads)
        return scaled


def _shifted_factor(kernel: Array, shift: float) -> Any:
    """Cholesky factor of ``K + shift I``; the shift is raised to the level of rounding errors."""
    n = len(kernel)
    least = n * np.finfo(np.float64).eps * float(np.trace(kernel))
    kernel[np.diag_indices(n)] += max(shift, least)
    return linalg.cho_factor(kernel, lower=True, overwrite_a=True, check_finite=False)


def _shared_columns(rows: SparseRows) -> tuple[SparseRows, Array]:
    """Split off the columns that occur in one row only.

    Returns
    -------
    SparseRows (n, d')
        The columns of at least two rows, ordered by falling frequency.
    (n,) array
        The diagonal that the other columns add to the kernel.
    """
    n, d = rows.shape
    counts = np.bincount(rows.indices, minlength=d)
    order = np.argsort(-counts, kind="stable")
    n_shared = int(np.count_nonzero(counts > 1))
    number = np.empty(d, dtype=np.int32)
    number[order] = np.arange(d, dtype=np.int32)
    indices = number[rows.indices]
    selected = indices < n_shared
    owner = np.repeat(np.arange(n), np.diff(rows.indptr))
    squares = rows.data[~selected].astype(np.float64) ** 2
    alone: Array = np.bincount(owner[~selected], squares, minlength=n).astype(np.float64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner[selected], minlength=n))])
    return SparseRows(rows.data[selected], indices[selected], starts, max(n_shared, 1)), alone


def _inner(A: Array, B: Array) -> Array:
    """Inner products of columns."""
    return np.einsum("ij,ij->j", A, B)

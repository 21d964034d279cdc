r"""Solves with a regularised class matrix of a huge dimension, in the space of the class's rows.

With rows ``Z`` (n, d), weighted and perhaps centred, and ``B = Z^T Z + r I``,

.. math:: B^{-1} g = (g - Z^T (Z Z^T + r I)^{-1} Z g) / r

(Woodbury), so that all that is solved is an (n, n) system with the kernel ``K = Z Z^T``. Few rows:
by a Cholesky factor of it. Many: by conjugate gradients, every step of which is a pass over the
rows, preconditioned by

- sparse rows: ``D + F F^T`` with F the columns that occur most often, D the diagonal of the kernel
  of the others. In text a few thousand terms make nearly all that rows have in common, and most of
  the others occur once or twice, so that little but the diagonal is left of them. Columns that
  occur in one row only are in D anyhow, exactly, and are left out of the passes.
- dense rows: a randomised Nystrom approximation of the kernel (Frangella, Tropp and Udell, SIAM J.
  Matrix Anal. Appl. 44, 2023, Algorithm 2.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from eigenfeat.pencils.fitted_directions import DEFAULT_RIDGE
from eigenfeat.wide.rows import Rows, SparseRows

__all__ = ["MOST_EXACT", "Denominator", "settled_ridge"]

Array = NDArray[np.float64]

MOST_EXACT = 2048  # rows up to which the kernel is factorised: 32 MB, a quarter of a second
MOST_FREQUENT = 2048  # columns in F: 32 MB, a quarter of a second
NYSTROM_RANK = 256
MOST_STEPS = 1000
ROUGH, FINEST = 1e-4, 1e-12


def settled_ridge(ridge: float | str, n_rows: int, n_features: int) -> float:
    """Ridge as a multiple of trace / d; "auto" is .2 of the mean over as many eigenvalues as rows.

    A class of n rows in d > n columns has no more than n positive eigenvalues, so that .2 of the
    mean over all d of them is next to nothing.
    """
    if not isinstance(ridge, str):
        return float(ridge)
    return DEFAULT_RIDGE * n_features / min(n_features, n_rows)


class Denominator:
    """``B = Z^T Z + shift I`` for rows ``Z = X - root (root^T X)`` if centred, else X.

    Parameters
    ----------
    rows : SparseRows or DenseRows (n, d)
        X: rows times the roots of their weights.
    root : (n,) array
        These roots; their squares sum to 1.
    shift : float > 0
        r.
    centred : bool
        Whether B is a covariance, not a second moment.
    seed : int
        For the Nystrom approximation.
    n_threads : int
        As the core takes it.
    """

    def __init__(
        self, rows: Rows, root: Array, shift: float, *, centred: bool, seed: int, n_threads: int
    ) -> None:
        self.rows, self.root, self.shift = rows, root, shift
        self.n_threads = n_threads
        self._centred = centred
        self.steps = 0  # of conjugate gradients so far
        n = rows.shape[0]
        if n <= MOST_EXACT:
            self._factor = _shifted_factor(self._dense_kernel(), shift)
            return
        self._factor = None
        self._precondition: Any
        self._shared: Rows
        if isinstance(rows, SparseRows):
            shared, self._alone = _shared_columns(rows)
            self._shared = shared
            self._precondition = _FrequentColumns(shared, self._alone + shift, n_threads)
        else:
            self._shared, self._alone = rows, np.zeros(n)
            self._precondition = _Nystrom(self._kernel_times, self.centre, n, shift, seed)

    def centre(self, U: Array) -> Array:
        """Take away what centring the rows takes away, (n, w); in place."""
        if self._centred:
            U -= self.root[:, None] * (self.root @ U)
        return U

    def solve(self, G: Array, tolerance: Array) -> Array:
        """``(Z Z^T + shift I)^-1 G`` for columns G (n, w) in the range of Z, as `centre` leaves it.

        `tolerance` (w,) is what the residual's norm may be, in the metric of the preconditioner's
        inverse, which is nearly that of the system's own; from `FINEST` times the right-hand
        side's, which rounding would not reach, to `ROUGH` times it.
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
        columns = np.arange(G.shape[1])  # those still iterated
        x, residual = np.zeros_like(G), G.copy()
        z = self.centre(self._precondition(residual))
        rho = _inner(residual, z)
        start = np.sqrt(np.maximum(rho, 0.0))
        tolerance = np.clip(tolerance * self._precondition.slack, FINEST * start, ROUGH * start)
        direction = z
        for _ in range(MOST_STEPS):
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
    """The inverse of ``D + F F^T``: a diagonal, and a Cholesky factor of as many as F has columns.

    ``D^-1 - D^-1 F (I + F^T D^-1 F)^-1 F^T D^-1``.
    """

    slack = 1.0  # D + F F^T is nearly the kernel

    def __init__(self, rows: SparseRows, diagonal: Array, n_threads: int) -> None:
        n, d = rows.shape
        count = min(MOST_FREQUENT, d)
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


class _Nystrom:
    """The inverse of a Nystrom approximation of the kernel, its last eigenvalue beyond its range.

    `slack`: by how much it may fall short of the kernel's own inverse, in norms.
    """

    def __init__(self, times: Any, centre: Any, n: int, shift: float, seed: int) -> None:
        rank = min(NYSTROM_RANK, n)
        random = np.random.RandomState(seed)
        sketch = np.linalg.qr(centre(random.standard_normal((n, rank))))[0]
        image = times(np.ascontiguousarray(sketch))
        nudge = np.sqrt(n) * np.finfo(np.float64).eps * np.linalg.norm(image)
        image += nudge * sketch
        core = sketch.T @ image
        values, vectors = linalg.eigh((core + core.T) / 2, check_finite=False)
        half = image @ (vectors / np.sqrt(np.maximum(values, nudge)))
        self._vectors, roots, _ = linalg.svd(half, full_matrices=False, check_finite=False)
        values = np.maximum(roots**2 - nudge, 0.0) + shift
        self._last = values[-1]
        self._gain = 1.0 / values - 1.0 / self._last
        self.slack = float(np.sqrt(shift / self._last))

    def __call__(self, R: Array) -> Array:
        inner = self._vectors.T @ R
        return R / self._last + self._vectors @ (self._gain[:, None] * inner)


def _shifted_factor(kernel: Array, shift: float) -> Any:
    """Cholesky factor; a kernel whose rounding outweighs the shift gets a little more of it."""
    n = len(kernel)
    least = n * np.finfo(np.float64).eps * float(np.trace(kernel))
    kernel[np.diag_indices(n)] += max(shift, least)
    return linalg.cho_factor(kernel, lower=True, overwrite_a=True, check_finite=False)


def _shared_columns(rows: SparseRows) -> tuple[SparseRows, Array]:
    """Rows without the columns that occur once, the frequent ones first; and what these leave.

    Returns
    -------
    SparseRows (n, d')
        The columns of at least two rows, numbered by falling frequency.
    (n,) array
        Sum of the squares of the others: the diagonal that they add to the kernel.
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

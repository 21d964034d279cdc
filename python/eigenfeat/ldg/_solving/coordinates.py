r"""Standardised samples, and their coordinates in their span.

LDG's matrices are sums of outer products of differences of samples, so all directions lie in the
span of the centred samples. With more columns than samples, an orthonormal basis of the span (thin
QR) gives n - 1 coordinates, in which LDG is solved: O(n^2 d). Linearly dependent columns have such
a basis, too: outside the span all samples are equal, and LDG's eigenvalues are 0.

Sparse samples are never made dense. With the kernel ``K = Z Z^T = U Lambda U^T`` of the centred
samples Z (n, d), ``U Lambda^(1/2)`` are coordinates with the same distances (Parrish 2012, section
3.3). A direction c in these coordinates is ``Z^T U Lambda^(-1/2) c`` in the columns. Cost: O(n^3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from eigenfeat._base.types import Floats
from eigenfeat._base.validation import check_memory
from eigenfeat.moments.columns import deviations, in_any_order, signed

_MAX_FULL_ORDER = 200  # below this order, all eigenpairs take less time than only the smallest
_N_MATRICES = 6  # (n, n) arrays in memory while a kernel is decomposed
_MIN_HEIGHT = 1e-5  # distance of a unit column from the span of others; its square exceeds rounding
_MAX_ASYMMETRY = 1e-6  # of entries and negative eigenvalues of a kernel, relative to the largest


@dataclass(frozen=True, eq=False)
class Columns:
    """How columns are standardised: ``(x - mean) / scale``."""

    mean: NDArray[np.float64]  # (d,)
    scale: NDArray[np.float64]  # (d,) 1 for constant columns
    varying: NDArray[np.int64]  # indices of the columns that vary, in the order of the coordinates


def standardise(X: Any, scaled: bool) -> tuple[Columns, Floats]:
    """Find the columns' means and scales, and the varying columns of the standardised rows of X.

    X (n, d) is an array or a CSR matrix. Columns are centred and, if `scaled`, divided by their
    standard deviations; the scale of a constant column (deviations within rounding) is 1. The rows
    (n, varying columns) are dense, in X's dtype, and the order of their columns does not depend on
    the order in X.
    """
    if sparse.issparse(X):
        stored = np.asarray(abs(X).max(axis=0).todense()).ravel() > 0
        rows = X[:, np.flatnonzero(stored)].toarray()
    else:
        stored, rows = np.ones(X.shape[1], dtype=bool), X
    mean, deviation = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    mean[stored] = rows.mean(axis=0, dtype=np.float64)
    deviation[stored] = deviations(rows)
    selected = deviation > 0
    scale = np.where(selected, deviation, 1.0) if scaled else np.ones(X.shape[1])
    order = in_any_order(rows)
    order = order[selected[stored][order]]
    chosen = np.flatnonzero(stored)[order]
    standard = np.empty((len(rows), len(order)), dtype=rows.dtype)
    for begin in range(0, len(rows), 1024):
        part = rows[begin : begin + 1024, order].astype(np.float64)
        standard[begin : begin + 1024] = (part - mean[chosen]) / scale[chosen]
    return Columns(mean, scale, chosen), standard


@dataclass(frozen=True, eq=False)
class Basis:
    """Orthonormal basis Q of the span, as LAPACK's Householder reflectors; the identity if None."""

    reflectors: NDArray[np.float64] | None
    tau: NDArray[np.float64] | None
    n_columns: int

    def expand(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """``Q @ directions``: from coordinates (r, m) to columns (d, m)."""
        if self.reflectors is None or self.tau is None:
            return directions
        r, m = directions.shape
        padded = np.zeros((self.n_columns, m), order="F")
        padded[:r] = directions
        apply = linalg.get_lapack_funcs("ormqr", (self.reflectors,))
        work = apply("L", "N", self.reflectors, self.tau, padded, -1)[1]
        product, _, info = apply(
            "L", "N", self.reflectors, self.tau, padded, int(work[0]), overwrite_c=1
        )
        if info != 0:  # an illegal argument, which is a bug
            raise AssertionError(f"ormqr returned {info}")
        result: NDArray[np.float64] = product
        return result


def span_of(rows: Floats) -> tuple[Basis, Floats]:
    """Return an orthonormal basis of the span of centred samples (n, d), and coordinates in it.

    The coordinates (n, r) have equal distances; r is at most n - 1. The coordinates are the samples
    if there are more samples than columns and the columns are linearly independent.
    """
    n, d = rows.shape
    if d < n or n < 2:
        spanning = spanning_rows(rows)
        if spanning is None:
            return Basis(None, None, d), rows
        (reflectors, tau), _ = linalg.qr(spanning.T, mode="raw", check_finite=False)
        basis = Basis(np.asfortranarray(reflectors), tau, d)
        return basis, (rows @ basis.expand(np.eye(len(spanning)))).astype(rows.dtype)
    columns = np.asfortranarray(rows.T, dtype=np.float64)
    # Centred samples have at most rank n - 1. Usually this is the rank, and all samples but one are
    # a basis.
    (reflectors, tau), upper = linalg.qr(columns[:, :-1], mode="raw", check_finite=False)
    heights = np.abs(np.diagonal(upper))
    order = np.arange(n - 1)
    if heights.min() <= _rounding(rows) * heights.max():
        (reflectors, tau), upper, order = linalg.qr(
            columns[:, :-1], mode="raw", pivoting=True, check_finite=False
        )
        heights = np.abs(np.diagonal(upper))
    rank = max(int((heights > _rounding(rows) * heights.max()).sum()), 1)
    coordinates = np.zeros((n, rank))
    coordinates[order] = upper[:rank].T
    coordinates[-1] = -coordinates[:-1].sum(axis=0)
    basis = Basis(np.asfortranarray(reflectors[:, :rank]), tau[:rank], d)
    return basis, np.ascontiguousarray(coordinates, dtype=rows.dtype)


def spanning_rows(rows: Floats) -> NDArray[np.float64] | None:
    """Return rows (r, d) with the span of samples (n, d); None if r is d, or there is one sample.

    The rank r < d does not depend on the units of the columns.
    """
    if len(rows) < 2 or _clearly_independent(rows):
        return None
    triangle = triangle_of(rows.astype(np.float64, copy=False))
    norms = np.linalg.norm(triangle, axis=0)
    sizes = np.where(norms > 0, norms, 1.0)
    upper, order = linalg.qr(triangle / sizes, mode="r", pivoting=True, check_finite=False)
    heights = np.abs(np.diagonal(upper))
    rank = max(int((heights > _rounding(rows) * heights[0]).sum()), 1)
    if rank == len(sizes):
        return None
    spanning = np.empty((rank, len(sizes)))
    spanning[:, order] = upper[:rank]
    return np.asarray(spanning * sizes)


def triangle_of(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return R (d, d) of the QR decomposition of rows, block by block."""
    n, d = rows.shape
    size = max(4096, 4 * d)
    triangle = np.empty((0, d))
    for i in range(0, n, size):
        stacked = np.vstack([triangle, rows[i : i + size]])
        triangle = linalg.qr(stacked, mode="r", overwrite_a=True, check_finite=False)[0][:d]
    return triangle


def _clearly_independent(rows: Floats) -> bool:
    """Whether the columns of a part of the samples are independent by a large margin.

    This is far cheaper than a decomposition of all samples.
    """
    n, d = rows.shape
    part = rows[:: max(1, n // (2 * d))].astype(np.float64)
    norms = np.linalg.norm(part, axis=0)
    if not norms.min() > 0:
        return False
    part /= norms
    try:
        heights = np.diagonal(np.linalg.cholesky(part.T @ part))
    except np.linalg.LinAlgError:
        return False
    return bool(heights.min() > _MIN_HEIGHT)


def _rounding(rows: Floats) -> float:
    """Relative length up to which a row or column outside the span of the others is rounding."""
    return float(
        max(100 * max(rows.shape) * np.finfo(np.float64).eps, 10 * np.finfo(rows.dtype).eps)
    )


def smallest_eigenpairs(
    matrix: NDArray[np.float64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find the `count` smallest eigenvalues, ascending, and orthonormal eigenvectors in columns.

    The entry of largest magnitude in each vector is positive, so that a sign never depends on the
    solver.
    """
    if len(matrix) == 1:  # SciPy before 1.11 allocates too little memory for LAPACK
        values, vectors = matrix[0].copy(), np.ones((1, 1))
    elif len(matrix) < _MAX_FULL_ORDER:
        values, vectors = linalg.eigh(matrix, driver="evd", check_finite=False)
        values, vectors = values[:count], vectors[:, :count]
    else:
        values, vectors = linalg.eigh(
            matrix, subset_by_index=(0, count - 1), driver="evr", check_finite=False
        )
    return values, signed(vectors)


def preferring(
    matrix: NDArray[np.float64], first: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return a matrix whose smallest eigenvectors are `first` (r, m), orthonormal, in order.

    The next eigenvectors are those of `matrix` in the orthogonal complement of `first`.
    """
    if first is None:
        return matrix
    rest = matrix - first @ (first.T @ matrix)
    rest = rest - (rest @ first) @ first.T
    size = np.abs(matrix).sum(axis=1).max()  # no eigenvalue is larger
    return rest - first * (size * np.arange(first.shape[1] + 1, 1, -1)) @ first.T


# ---- kernels, and sparse samples with more columns than samples ----------------------------------


@dataclass(frozen=True, eq=False)
class KernelRoot:
    """The centred kernel matrix as ``Y Y^T``."""

    rows: NDArray[np.float64]  # Y (n, r)
    inverse: NDArray[np.float64]  # (n, r) maps the centred kernel of a sample to its Y
    eigenvalues: NDArray[np.float64]  # (r,) descending
    means: NDArray[np.float64]  # (n,) means of the columns of the kernel

    @classmethod
    def of(cls, kernel: NDArray[np.float64]) -> KernelRoot:
        """Decompose a kernel matrix (n, n), without eigenvalues of rounding errors.

        ValueError if it is not symmetric and positive semidefinite, or constant.
        """
        n = len(kernel)
        unit = float(np.abs(kernel).max())
        gap = float(np.abs(kernel - kernel.T).max())
        if gap > _MAX_ASYMMETRY * unit:
            raise ValueError(f"kernel: expected a symmetric matrix, got entries {gap:g} apart")
        means = kernel.mean(axis=0)
        centred = kernel - means - means[:, None] + means.mean()
        values, vectors = np.linalg.eigh((centred + centred.T) / 2)
        # Entries are rounded when they are computed and when means are subtracted.
        rounding = 10 * n * float(np.finfo(np.float64).eps)
        if -values[0] > max(_MAX_ASYMMETRY * values[-1], rounding * unit):
            raise ValueError(
                "kernel: expected a positive semidefinite kernel, got one with the eigenvalue "
                f"{values[0]:g} beside {values[-1]:g}"
            )
        selected = values > rounding * max(float(values[-1]), unit)
        if not selected.any():
            raise ValueError(
                "X: expected samples that differ in the kernel's feature space, got equal samples"
            )
        values, vectors = values[selected][::-1], vectors[:, selected][:, ::-1]
        roots = np.sqrt(values)
        inverse = vectors / roots
        inverse -= inverse.mean(axis=0)  # exactly orthogonal to constants
        return cls(np.ascontiguousarray(vectors * roots), inverse, values, means)

    def expand(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """From directions (r, m) for Y to coefficients (n, m) of the centred kernel."""
        return self.inverse @ directions


def check_kernel_memory(what: str, n: int) -> None:
    """Raise MemoryError if a kernel (n, n) and its decomposition exceed the machine's memory."""
    check_memory(what, _N_MATRICES, n)


@dataclass(frozen=True, eq=False)
class SpanBasis:
    """Directions as combinations of samples, which need not be centred."""

    samples: Any  # (n, d') CSR matrix: varying columns, divided by their scales
    root: KernelRoot

    def expand(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """From coordinates (r, m) to columns (d', m)."""
        result: NDArray[np.float64] = self.samples.T @ self.root.expand(directions)
        return result


AnyBasis = Basis | SpanBasis | KernelRoot


def sparse_columns(X: Any, scaled: bool) -> tuple[Columns, Any]:
    """Like `standardise`, for a CSR matrix, which stays sparse and is not centred."""
    n, d = X.shape
    deviation, X = deviations(X), X.astype(np.float64)
    mean = np.bincount(X.indices, X.data / n, minlength=d).astype(np.float64)
    varying = np.flatnonzero(deviation)
    scale = np.where(deviation > 0, deviation, 1.0) if scaled else np.ones(d)
    samples = sparse.csr_array(X[:, varying])
    samples.data /= scale[varying][samples.indices]
    return Columns(mean, scale, varying), samples


def kernel_coordinates(samples: Any) -> tuple[SpanBasis, NDArray[np.float64]]:
    """Return an orthonormal basis of the centred span of samples (n, d), and coordinates (n, r)."""
    check_kernel_memory("LDG", samples.shape[0])
    root = KernelRoot.of((samples @ samples.T).toarray())
    return SpanBasis(samples, root), root.rows

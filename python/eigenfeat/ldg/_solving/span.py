r"""Coordinates of sparse samples with more columns than samples, which are never made dense.

Directions lie in the span of the centred samples Z (n, d). The kernel ``K = Z Z^T`` has the
eigendecomposition ``U Lambda U^T``, and ``U Lambda^(1/2)`` are coordinates with the same distances
(Parrish 2012, section 3.3). A direction c in these coordinates is ``Z^T U Lambda^(-1/2) c`` in the
columns. Cost: O(n^3), and three (n, n) matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from eigenfeat._base.validation import check_memory
from eigenfeat.ldg._solving.coordinates import Columns
from eigenfeat.moments.columns import deviations

_Array = NDArray[np.float64]

ROUNDING = 1e-12  # squared distances are rounded to this multiple of the largest squared norm


@dataclass(frozen=True, eq=False)
class SpanBasis:
    """Directions as combinations of samples: ``expand`` is ``Z^T factors``."""

    samples: Any  # (n, d') CSR matrix: varying columns, divided by their scales
    factors: _Array  # (n, r)

    def expand(self, directions: _Array) -> _Array:
        """``Z^T factors @ directions``: from coordinates (r, m) to columns (d', m)."""
        weights = self.factors @ directions
        result: _Array = self.samples.T @ (weights - weights.mean(axis=0))
        return result


def sparse_columns(X: Any, scaled: bool) -> tuple[Columns, Any]:
    """As `coordinates.standardise`, for a CSR matrix, which stays sparse and is not centred."""
    n, d = X.shape
    deviation, X = deviations(X), X.astype(np.float64)
    mean = np.bincount(X.indices, X.data / n, minlength=d).astype(np.float64)
    varying = np.flatnonzero(deviation)
    scale = np.where(deviation > 0, deviation, 1.0) if scaled else np.ones(d)
    samples = sparse.csr_array(X[:, varying])
    samples.data /= scale[varying][samples.indices]
    return Columns(mean, scale, varying), samples


def kernel_coordinates(samples: Any) -> tuple[SpanBasis, _Array, _Array]:
    """Find an orthonormal basis of the centred span of samples (n, d), and coordinates (n, r).

    Also returns the kernel (n, n) of the samples, not centred. MemoryError if the kernel and its
    eigenvectors exceed the machine's memory.
    """
    n = samples.shape[0]
    check_memory("LDG", 3, n)
    kernel = (samples @ samples.T).toarray()
    centred = kernel - kernel.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    values, vectors = np.linalg.eigh((centred + centred.T) / 2)
    kept = values > 100 * n * np.finfo(np.float64).eps * max(values[-1], 0.0)
    if not kept.any():
        raise ValueError("X: expected samples that differ, got constant columns only")
    roots, vectors = np.sqrt(values[kept][::-1]), vectors[:, kept][:, ::-1]
    basis = SpanBasis(samples, vectors / roots)
    return basis, np.ascontiguousarray(vectors * roots), kernel


def nearest_by_kernel(
    kernel: _Array, codes: NDArray[np.int64], n_classes: int, count: int
) -> NDArray[np.int64]:
    """The `count` nearest other samples of every class for each sample, (n, k, count).

    They are -1 if a class has fewer. Distances that differ by rounding errors only are equal; the
    sample with the lower index then comes first.
    """
    n = len(kernel)
    square = np.diag(kernel)
    distances = square[:, None] + square - 2 * kernel
    distances = np.rint(distances / (ROUNDING * max(square.max(), np.finfo(np.float64).tiny)))
    np.fill_diagonal(distances, np.inf)
    result = np.full((n, n_classes, count), -1, dtype=np.int64)
    for c in range(n_classes):
        members = np.flatnonzero(codes == c)
        part = distances[:, members]
        order = np.argsort(part, axis=1, kind="stable")[:, :count]
        missing = np.isinf(np.take_along_axis(part, order, axis=1))
        result[:, c, : order.shape[1]] = np.where(missing, -1, members[order])
    return result

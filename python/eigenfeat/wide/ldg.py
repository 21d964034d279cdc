r"""LDG on sparse or memory-mapped rows of a huge dimension: everything through products of rows.

Directions lie in the span of the centred rows Z (n, d). Few rows: their kernel ``K = Z Z^T`` has an
eigendecomposition, and ``U Lambda^(1/2)`` are coordinates in which distances are as before, so that
LDG goes on in them, exactly. Many rows: neighbours come from blocks of the kernel, and

.. math:: V - \gamma A = Z^T L Z, \qquad
    L = (I - W_g)^T (I - W_g) - \gamma \sum_j p_j (I - W_j)^T (I - W_j)

(Parrish 2012, 3.24-3.25) with sparse W: row i of W_j averages its neighbours in class j, W_g those
in its own. Its smallest eigenpairs come from a block Krylov space of ``a -> L K a``, which is
self-adjoint in the metric of K: vectors as long as there are rows, and two passes over them a step.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from eigenfeat.moments.columns import signed
from eigenfeat.neighbours.local_means import knn_accuracy
from eigenfeat.wide.rows import Columns, Rows, wide_classes

__all__ = ["WideBasis", "WideGraph", "WideProblem", "WideRows", "coordinates_of", "wide_rows"]

Array = NDArray[np.float64]

BLOCK_BYTES = 64e6  # of rows made dense while neighbours are looked for
ROUNDING = 1e-12  # of squared distances, relative to the largest norm
TOLERANCE = 1e-6
MOST_STEPS = 400


@dataclass(eq=False)
class WideRows:
    """Standardised and centred rows (n, d) as an operator."""

    rows: Rows  # of columns in an order of their own, over the root of n
    order: NDArray[np.intp]  # (d',) columns of `rows` that come one after the other in the input
    n_threads: int

    def centred(self, A: Array) -> Array:
        """Take away the columns' means of A (n, m)."""
        return A - A.mean(axis=0)

    def combined(self, A: Array) -> Array:
        """``Z^T A`` (d', m), in the order of `rows`."""
        n = self.rows.shape[0]
        weights = np.ascontiguousarray(np.sqrt(n) * self.centred(A))
        return self.rows.transposed_times(weights, n_threads=self.n_threads)

    def project(self, B: Array) -> Array:
        """``Z B`` (n, m)."""
        n = self.rows.shape[0]
        product = self.rows.times(np.ascontiguousarray(B), n_threads=self.n_threads)
        return self.centred(np.sqrt(n) * product)

    def neighbours(
        self, codes: NDArray[np.intp], n_classes: int, count: int
    ) -> list[NDArray[np.int64]]:
        """The nearest rows (n, count) of every class for each row but itself; -1 for none.

        Distances that rounding alone tells apart are equal; of these the lower number comes first.
        """
        members = [np.flatnonzero(codes == c) for c in range(n_classes)]
        n, d = self.rows.shape
        result = [np.full((n, count), -1, dtype=np.int64) for _ in members]
        square = n * self.rows.squared_norms()
        size = int(np.clip(BLOCK_BYTES / (8 * (n + d)), 8, 256))
        for first in range(0, n, size):
            some = np.arange(first, min(first + size, n))
            unit = np.zeros((n, len(some)))
            unit[some, np.arange(len(some))] = n
            inner = self.rows.transposed_times(unit, n_threads=self.n_threads)
            products = self.rows.times(inner, n_threads=self.n_threads)
            distances = square[:, None] + square[some] - 2 * products
            distances = np.rint(distances / (ROUNDING * max(square.max(), 1e-300)))
            distances[some, np.arange(len(some))] = np.inf
            for near, own in zip(result, members, strict=True):
                part = distances[own]
                order = np.argsort(part, axis=0, kind="stable")[:count]
                none = np.isinf(np.take_along_axis(part, order, axis=0)).T
                near[some, : len(order)] = np.where(none, -1, own[order].T)
        return result

    def kernel_times(self, A: Array) -> Array:
        """``Z Z^T A`` (n, m)."""
        return self.project(self.combined(A))


@dataclass(frozen=True, eq=False)
class WideBasis:
    """Directions as combinations of rows: ``expand`` is ``Z^T factors``."""

    rows: WideRows
    factors: Array | None  # (n, r); None: directions are combinations themselves

    def expand(self, directions: Array) -> Array:
        """From coordinates (r, m) to the varying columns (d', m), in the input's order."""
        weights = directions if self.factors is None else self.factors @ directions
        return self.rows.combined(weights)[self.rows.order]


def wide_rows(X: Rows, scaled: bool, n_threads: int | None) -> tuple[Columns, WideRows]:
    """Standardise rows without making sparse ones dense."""
    n = X.shape[0]
    same = np.zeros(n, dtype=np.intp)
    classes, report = wide_classes(X, same, None, "columns" if scaled else "none", True)
    selected = np.ones(X.shape[1], dtype=bool)
    mean = classes.origin + classes.mean / classes.factor
    order = np.arange(len(mean))
    if classes.columns is not None:
        selected = np.zeros(X.shape[1], dtype=bool)
        selected[classes.columns] = True
        order = np.argsort(classes.columns)
        whole = np.zeros(X.shape[1])
        whole[classes.columns] = mean
        mean = whole
    columns = Columns(mean, report.column_scale, selected)
    return columns, WideRows(classes.rows[0], order, n_threads or 0)


def coordinates_of(rows: WideRows) -> tuple[WideBasis, Array]:
    """Coordinates (n, r) of few rows in an orthonormal basis of their span."""
    n = rows.rows.shape[0]
    kernel = n * rows.rows.kernel(rows.n_threads)
    kernel -= kernel.mean(axis=0)
    kernel -= kernel.mean(axis=1)[:, None]
    symmetric = (kernel + kernel.T) / 2
    values, vectors = np.linalg.eigh(symmetric)
    eps = max(np.finfo(np.float64).eps, np.finfo(rows.rows.dtype).eps ** 2)
    selected = values > 100 * n * eps * max(values[-1], 0.0)
    if not selected.any():
        raise ValueError("X: expected samples that differ, got constant columns only")
    roots = np.sqrt(values[selected][::-1])
    vectors = vectors[:, selected][:, ::-1]
    return WideBasis(rows, vectors / roots), np.ascontiguousarray(vectors * roots)


class WideGraph:
    """Neighbours of many rows, and the operators ``V`` and ``A`` that they make.

    Parameters
    ----------
    rows : WideRows
    codes : (n,) array
        Classes from 0.
    n_classes : int
    n_neighbors : int
    """

    def __init__(
        self, rows: WideRows, codes: NDArray[np.intp], n_classes: int, n_neighbors: int
    ) -> None:
        self._rows = rows
        n = len(codes)
        result = rows.neighbours(codes, n_classes, n_neighbors)
        self.short_classes = np.array(
            [c for c, near in enumerate(result) if (near[:, -1] < 0).any()], dtype=np.int64
        )
        unit = sparse.identity(n, format="csr")
        priors = np.bincount(codes, minlength=n_classes) / n
        own = sparse.csr_array((n, n))
        self._weighted = sparse.csr_array((n, n))
        for c, near in enumerate(result):
            means, some = _averages(near)
            gaps = sparse.csr_array(sparse.diags_array(some.astype(float)) @ unit - means)
            self._weighted = self._weighted + priors[c] * (gaps.T @ gaps)
            mine = sparse.diags_array((codes == c).astype(float))
            own = own + mine @ gaps
        self._within = sparse.csr_array(own.T @ own)
        self._weighted = sparse.csr_array(self._weighted)

    def smallest(self, gamma: float, count: int, seed: int) -> tuple[Array, Array, Array]:
        """The smallest eigenpairs of ``V - gamma A`` in the span of the rows.

        Returns
        -------
        values (m,), ascending; combinations (n, m), such that ``Z^T A`` are orthonormal
        directions; and residuals (m,), relative to the largest magnitude of an eigenvalue.
        """
        graph = sparse.csr_array(self._within - gamma * self._weighted)
        n = graph.shape[0]
        most = min(n - 1, max(8 * count, 160))
        basis, kernel_basis = np.empty((n, 0)), np.empty((n, 0))
        block = np.random.RandomState(seed).standard_normal((n, min(count + 4, n - 1)))
        for _ in range(MOST_STEPS):
            block, of_kernel = self._orthonormal(block, basis, kernel_basis)
            basis = np.hstack([basis, block])
            kernel_basis = np.hstack([kernel_basis, of_kernel])
            image = graph @ kernel_basis
            quotient = kernel_basis.T @ image
            values, vectors = linalg.eigh((quotient + quotient.T) / 2, check_finite=False)
            m = min(count, len(values))
            ritz = basis @ vectors[:, :m]
            gap = image @ vectors[:, :m] - ritz * values[:m]
            kernel_gap = self._rows.kernel_times(gap)
            scale = np.abs(values[[0, -1]]).max() if len(values) else 1.0
            errors = np.sqrt(np.maximum(np.einsum("ij,ij->j", gap, kernel_gap), 0.0)) / scale
            if errors.max() <= TOLERANCE or block.shape[1] == 0:
                break
            if basis.shape[1] + m > most:
                selected = vectors[:, : min(2 * count, most // 2)]
                basis, kernel_basis = basis @ selected, kernel_basis @ selected
            block = gap
        return values[:m], ritz, errors

    def _orthonormal(self, block: Array, basis: Array, kernel_basis: Array) -> tuple[Array, Array]:
        """The part of a block beyond a basis, orthonormal in the metric of the kernel."""
        for _ in range(2):
            block = self._rows.centred(block)
            block = block / np.maximum(np.linalg.norm(block, axis=0), 1e-300)
            block = block - basis @ (kernel_basis.T @ block)
            image = self._rows.kernel_times(block)
            gram = block.T @ image
            values, vectors = linalg.eigh((gram + gram.T) / 2, check_finite=False)
            good = values > 1e-12 * max(values[-1], 0.0)
            turned = vectors[:, good] / np.sqrt(values[good])
            block, image = block @ turned, image @ turned
        return block, image


def _averages(near: NDArray[np.int64]) -> tuple[Any, NDArray[np.bool_]]:
    """W (n, n): row i averages its neighbours; and which rows have any."""
    n = len(near)
    there = near >= 0
    counts = there.sum(axis=1)
    weights = np.repeat(1.0 / np.maximum(counts, 1), counts)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array((weights, near[there], starts), shape=(n, n)), counts > 0


@dataclass(eq=False)
class WideProblem:
    """Many rows as LDG's steps want them; vectors are combinations of rows (n, m)."""

    wide: WideRows
    columns: Columns
    codes: NDArray[np.intp]
    n_classes: int
    n_threads: int | None
    seed: int
    results: dict[str, Any] = field(default_factory=dict)
    spread_out = False  # each candidate would be a Krylov space of its own in every fold

    @property
    def rows(self) -> range:
        """As many as there are rows."""
        return range(self.wide.rows.shape[0])

    @property
    def basis(self) -> WideBasis:
        """From combinations of rows to columns."""
        return WideBasis(self.wide, None)

    @property
    def rank(self) -> int:
        """Most directions."""
        return min(self.wide.rows.shape[0] - 1, self.wide.rows.shape[1])

    def scatters(self, n_neighbors: int) -> WideGraph:
        """V and A."""
        return WideGraph(self.wide, self.codes, self.n_classes, n_neighbors)

    def solve(self, scatters: WideGraph, gamma: float, count: int) -> tuple[Array, Array]:
        """The smallest eigenvalues and combinations that give their directions.

        Warns
        -----
        RuntimeWarning
            If a residual is above the tolerance after all steps.
        """
        values, combinations, errors = scatters.smallest(gamma, count, self.seed)
        if errors.max(initial=0.0) > TOLERANCE:
            warnings.warn(
                f"LDG: expected residuals up to {TOLERANCE:g}, got {errors.max():.1e}",
                RuntimeWarning,
                stacklevel=2,
            )
        self.results["residuals"] = errors
        directions = self.wide.combined(combinations)
        sign = np.sign(np.einsum("ij,ij->j", signed(directions), directions))
        return values, combinations * sign

    def accuracy(self, vectors: Array) -> float:
        """Leave-one-out 3-NN accuracy of the rows' projections."""
        reduced = np.ascontiguousarray(self.wide.kernel_times(vectors))
        return knn_accuracy(reduced, self.codes, self.n_threads)

    def neighbour_accuracies(self) -> None:
        """Refuse to choose the number of neighbours: local QDA needs coordinates."""
        raise ValueError(
            "n_neighbors: expected a number for so many samples of a huge dimension, got several"
        )

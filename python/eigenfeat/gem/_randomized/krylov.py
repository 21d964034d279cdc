r"""Leading generalized eigenpairs of class pairs in a huge dimension, by block Krylov spaces.

For a denominator ``B_j = Z_j^T Z_j + r_j I`` and a numerator ``Y_i^T Y_i``, eigenpairs of the
pencil are those of a symmetric operator on the numerator's rows,

.. math::

    S u = Y_i B_j^{-1} Y_i^T u = \lambda u, \qquad v = B_j^{-1} Y_i^T u / \sqrt\lambda,
    \qquad v^T B_j v = 1,

and Krylov spaces of S are those of :math:`B_j^{-1} C_i`, orthonormal in the metric of B_j (Saibaba,
Lee and Kitanidis, Numer. Linear Algebra Appl. 23, 2016); their vectors have as many entries as the
numerator has samples. All numerators of a denominator advance together, so that one block of
right-hand sides serves all of them, and each stops when it has converged. Products with the inverse
of B_j (`Denominator`) and Rayleigh quotients are accurate to the required tolerance; the reported
residual is that of the pencil.

The constant, in samples ``(x - a, 1)``, and the centre `a` are rank-one terms. The centre is the
mean of the denominator's samples, so that the constant is B-orthogonal to the other columns. With a
covariance as denominator there is a centre, but no constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

if TYPE_CHECKING:
    from eigenfeat.gem._randomized.denominator import Denominator
    from eigenfeat.gem._randomized.samples import SparseRows

__all__ = ["Leading", "Numerator", "PencilsOverClass"]

Array = NDArray[np.float64]

BLOCK = 4  # columns that a step adds to the basis of each numerator
MAX_BASIS = 160  # columns before a restart
MAX_STEPS = 200
INNER = 0.1  # tolerance of the inner solves, relative to that of the residuals
_MAX_PASSES = 10  # of orthogonalisation


@dataclass(eq=False)
class Numerator:
    """Samples of a class times the roots of their weights, and a seed for the start vectors."""

    rows: SparseRows  # (n, d)
    root: Array  # (n,) roots of the weights
    seed: list[int]


@dataclass(eq=False)
class Leading:
    """The m leading eigenpairs of one pair of classes."""

    values: Array  # (m,) descending
    left: Array  # (n, m) orthonormal eigenvectors `u` on the numerator's rows
    steps: int  # number of vectors to which S was applied
    error: Array  # (m,) ``|S u - lambda u| / lambda``


@dataclass(eq=False)
class Images:
    """Parts of ``r B^-1 Y_i^T U = rows_i^T U + rows_j^T beta - centre sums^T``.

    The constant is left out.
    """

    inner: Array  # (d, w) ``rows_i^T U + rows_j^T beta``
    beta: Array  # (n_j, w)
    sums: Array  # (w,) root_i^T U


class PencilsOverClass:
    """All numerators over one denominator.

    Parameters
    ----------
    below : Denominator
    numerators : list of Numerator
    centre : (d,) array or None
        `a`; None means 0.
    constant : bool
        Whether samples have a last entry 1.
    n_threads : int
        Number of threads; 0 for all.
    """

    def __init__(
        self,
        below: Denominator,
        numerators: list[Numerator],
        centre: Array | None,
        constant: bool,
        n_threads: int,
    ) -> None:
        self.below, self.numerators, self.centre = below, numerators, centre
        self.constant, self.n_threads = constant, n_threads
        self._heights = [self._height(numerator.rows) for numerator in numerators]
        self._height_below = self._height(below.rows)
        self._square = 0.0 if centre is None else float(centre @ centre)
        self._largest = _trace(below.rows)
        self._norms = [np.sqrt(max(_trace(n.rows), 1e-300)) for n in numerators]

    def _height(self, rows: SparseRows) -> Array:
        """``rows @ centre``."""
        if self.centre is None:
            return np.zeros(rows.shape[0])
        return rows.times(self.centre[:, None], n_threads=self.n_threads)[:, 0]

    def images(
        self,
        active: list[int],
        blocks: list[Array],
        accuracy: list[float | None],
        relative: float | None = None,
    ) -> Images:
        """Solve with B for ``Y_i^T U_i``.

        Parameters
        ----------
        active : list of int
            Indices of the numerators.
        blocks : list of (n_i, w_i) arrays
            U_i of each active numerator.
        accuracy : list of float or None
            Absolute tolerance of each S U_i; None means any.
        relative : float, optional
            Relative tolerance of ``B (B^-1 Y_i^T U_i)``, used instead of `accuracy`.
        """
        widths = [block.shape[1] for block in blocks]
        starts = np.concatenate([[0], np.cumsum(widths)])
        rows = self.below.rows
        inner = np.empty((rows.shape[1], starts[-1]))
        sums = np.empty(starts[-1])
        for i, block, at in zip(active, blocks, starts, strict=False):
            numerator = self.numerators[i]
            numerator.rows.transposed_times(block, inner, out_at=int(at), n_threads=self.n_threads)
            sums[at : at + block.shape[1]] = numerator.root @ block
        size = np.linalg.norm(inner, axis=0) if relative is not None else sums
        right = rows.times(inner, n_threads=self.n_threads)
        right -= self._height_below[:, None] * sums
        self.below.centre(right)
        # An error e of the solve changes S u by |Y_i Z^T e| / r <= |Y_i| |e|_(K + r) / r.
        wanted: Any = [
            np.inf if a is None else a * self.below.shift / self._norms[i]
            for i, a in zip(active, accuracy, strict=True)
        ]
        tolerance = np.repeat(wanted, widths)
        if relative is not None:
            # The error changes B v by |Z^T (K + r) e| / r <= |K + r| |e|_(K + r) / r.
            tolerance = relative * size * self.below.shift / (self.below.shift + self._largest)
        beta = -self.below.solve(np.ascontiguousarray(right), tolerance)
        beta = np.ascontiguousarray(self.below.centre(beta))
        rows.transposed_times(beta, inner, add=True, n_threads=self.n_threads)
        return Images(inner, beta, sums)

    def apply(
        self, active: list[int], blocks: list[Array], accuracy: list[float | None]
    ) -> list[Array]:
        """Products S U of the active numerators."""
        images = self.images(active, blocks, accuracy)
        results, at = [], 0
        for i, block in zip(active, blocks, strict=True):
            width = block.shape[1]
            part = slice(at, at + width)
            numerator, sums = self.numerators[i], images.sums[part]
            out = numerator.rows.times(images.inner, at=at, width=width, n_threads=self.n_threads)
            out -= self._heights[i][:, None] * sums
            along = self._heights[i] @ block + self._height_below @ images.beta[:, part]
            out -= numerator.root[:, None] * (along - self._square * sums)
            out /= self.below.shift
            if self.constant:
                out += numerator.root[:, None] * sums
            results.append(out)
            at += width
        return results

    def solve(self, count: int, threshold: float, tolerance: float) -> list[Leading]:
        """The leading `count` eigenpairs of each numerator.

        Eigenvalues below `threshold` may be inaccurate. Results depend on the seeds only.
        """
        searches = [_Search(n, count, threshold, tolerance) for n in self.numerators]
        for _ in range(MAX_STEPS):
            active = [i for i, search in enumerate(searches) if not search.done]
            if not active:
                break
            blocks = [searches[i].block for i in active]
            images = self.apply(active, blocks, [searches[i].accuracy for i in active])
            for i, image in zip(active, images, strict=True):
                searches[i].extend(image)
        return [search.result() for search in searches]


class _Search:
    """The Krylov space of one numerator; `block` is the next argument of S."""

    def __init__(
        self, numerator: Numerator, count: int, threshold: float, tolerance: float
    ) -> None:
        self._n = numerator.rows.shape[0]
        self._count = min(count, self._n)
        self._threshold, self._tolerance = threshold, tolerance
        self._random = np.random.RandomState(numerator.seed)
        self._basis = np.empty((self._n, 0))
        self._image = np.empty((self._n, 0))
        self._quotient = np.empty((0, 0))
        self.steps = 0
        self.done = False
        start = self._random.standard_normal((self._n, min(BLOCK, self._n)))
        self.block = np.ascontiguousarray(np.linalg.qr(start)[0])
        self.accuracy: float | None = None  # tolerance of the next image; None: any

    def extend(self, image: Array) -> None:
        """Add the block with its image to the space, and test eigenpairs for convergence."""
        if self.accuracy is None:  # a power step, for a better start and the size of eigenvalues
            self.steps += image.shape[1]
            size = float(np.linalg.norm(image)) / np.sqrt(image.shape[1])
            self.accuracy = INNER * self._tolerance * size
            self.block = np.ascontiguousarray(np.linalg.qr(image)[0]) if size > 0 else self.block
            return
        basis, block = self._basis, self.block
        beside, corner = basis.T @ image, block.T @ image
        self._quotient = np.block([[self._quotient, beside], [beside.T, (corner + corner.T) / 2]])
        self._basis = np.hstack([basis, block])
        self._image = np.hstack([self._image, image])
        self.steps += block.shape[1]
        self._values, self._vectors = linalg.eigh(self._quotient, check_finite=False)
        self._values, self._vectors = self._values[::-1], self._vectors[:, ::-1]
        self._test_convergence()
        if self.done:
            return
        if self._basis.shape[1] + BLOCK > max(MAX_BASIS, 4 * self._count):
            self._restart()
        self._set_block(image)

    def _test_convergence(self) -> None:
        """Set whether the search is done, and the accuracy of the next image."""
        full = self._basis.shape[1] >= self._n
        m = min(self._count, len(self._values))
        self._errors = self._residuals(m)
        values = self._values[:m]
        scale = max(float(values[0]), 0.0)
        wanted = values > max(self._threshold, 1e-12 * scale)
        good = self._errors <= self._tolerance * values
        # The first value below the threshold must be below it by more than its error.
        below = values + self._errors < self._threshold
        enough = m == self._count or full
        settled = np.where(wanted, good, below | (values <= 1e-12 * scale))
        self.done = full or scale == 0.0 or (enough and bool(settled[: wanted.sum() + 1].all()))
        last = values[wanted][-1] if wanted.any() else scale
        self.accuracy = INNER * self._tolerance * float(last)

    def _residuals(self, m: int) -> Array:
        vectors = self._vectors[:, :m]
        gap = self._image @ vectors - self._basis @ (vectors * self._values[:m])
        return np.linalg.norm(gap, axis=0)

    def _restart(self) -> None:
        """Keep the leading Ritz vectors only; the next block extends the same Krylov space."""
        selected = self._count + 2 * BLOCK
        vectors = self._vectors[:, :selected]
        self._basis = self._basis @ vectors
        self._image = self._image @ vectors
        self._quotient = np.diag(self._values[:selected])

    def _set_block(self, image: Array) -> None:
        """Set the next block: the last image, orthogonalised against the space."""
        room = self._n - self._basis.shape[1]
        block = image[:, :room]
        size = np.linalg.norm(block, axis=0)
        for i in range(_MAX_PASSES):
            block = block - self._basis @ (self._basis.T @ block)
            norm = np.linalg.norm(block, axis=0)
            lost = norm <= 1e-10 * np.where(size > 0, size, 1.0)
            if lost.any():  # replace columns that are in the space by random ones
                block[:, lost] = self._random.standard_normal((self._n, int(lost.sum())))
            # If columns are dependent, columns of the QR factor may lie in the space: repeat until
            # the projection changes the orthonormal columns little.
            block, factor = np.linalg.qr(block)
            if i > 0 and not lost.any() and np.abs(np.diag(factor)).min() > 0.5:
                break
            size = np.ones(block.shape[1])
        self.block = np.ascontiguousarray(block)

    def result(self) -> Leading:
        m = int(np.count_nonzero(self._values[: self._count] > 1e-12 * max(self._values[0], 0.0)))
        values = self._values[:m].copy()
        left = np.ascontiguousarray(self._basis @ self._vectors[:, :m])
        return Leading(values, left, self.steps, self._errors[:m] / values)


def _trace(rows: SparseRows) -> float:
    return float(rows.squared_norms().sum())

r"""Leading generalized eigenpairs of a pair of classes in a huge dimension, by block Krylov spaces.

For a denominator ``B = Z^T Z + r I`` and a numerator ``Y^T Y``, eigenpairs of the pencil are those
of a symmetric operator on the numerator's rows,

.. math::

    S u = Y B^{-1} Y^T u = \lambda u, \qquad v = B^{-1} Y^T u / \sqrt\lambda,
    \qquad v^T B v = 1,

and Krylov spaces of S are those of :math:`B^{-1} Y^T Y`, orthonormal in the metric of B (Saibaba,
Lee and Kitanidis, Numer. Linear Algebra Appl. 23, 2016); their vectors have as many entries as the
numerator has samples.

The constant, in samples ``(x - a, 1)``, and the centre `a` are rank-one terms. The centre is the
mean of the denominator's samples, so that the constant is B-orthogonal to the other columns. With a
covariance as denominator there is a centre, but no constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

if TYPE_CHECKING:
    from eigenfeat.gem._randomized.denominator import Denominator
    from eigenfeat.gem._randomized.samples import SparseRows

__all__ = ["Leading", "PairOperator", "leading_eigenpairs"]

Array = NDArray[np.float64]

BLOCK = 8  # columns that a step adds to the basis
MAX_BASIS = 160  # columns before a restart
MAX_STEPS = 100  # steps of a search
_ZERO = 1e-12  # eigenvalues below this fraction of the largest value are rounding errors


@dataclass(eq=False)
class PairOperator:
    """The operator S of a numerator over a denominator."""

    rows: SparseRows  # (n, d) samples of the numerator times the roots of their weights
    root: Array  # (n,) roots of the weights
    below: Denominator
    centre: Array  # (d,) `a`
    constant: bool  # whether samples have a last entry 1
    n_threads: int

    def __post_init__(self) -> None:
        column = np.ascontiguousarray(self.centre[:, None])
        self._heights, self._heights_below = (
            rows.times(column, n_threads=self.n_threads)[:, 0]
            for rows in (self.rows, self.below.rows)
        )
        self._square = float(self.centre @ self.centre)

    def solved(self, U: Array, *, exactly: bool = False) -> tuple[Array, Array, Array]:
        """Parts of ``r B^-1 Y^T U = inner - centre sums^T``, without the constant.

        If `exactly`, the residuals of B are small, too; see `Denominator.solve`.

        Returns
        -------
        inner : (d, w) array
            ``rows^T U + below.rows^T beta``.
        beta : (n_below, w) array
        sums : (w,) array
            ``root^T U``.
        """
        below, threads = self.below, self.n_threads
        inner, sums = self.rows.transposed_times(U, n_threads=threads), self.root @ U
        right = below.rows.times(inner, n_threads=threads) - self._heights_below[:, None] * sums
        size = np.linalg.norm(inner - self.centre[:, None] * sums, axis=0) if exactly else np.inf
        beta = np.ascontiguousarray(below.centre(-below.solve(below.centre(right), size)))
        below.rows.transposed_times(beta, inner, add=True, n_threads=threads)
        return inner, beta, sums

    def __call__(self, U: Array) -> Array:
        """S U for U (n, w)."""
        inner, beta, sums = self.solved(U)
        out: Array = self.rows.times(inner, n_threads=self.n_threads)
        along = self._heights @ U + self._heights_below @ beta - self._square * sums
        out -= self._heights[:, None] * sums + self.root[:, None] * along
        out /= self.below.shift
        if self.constant:
            out += self.root[:, None] * sums
        return out


@dataclass(eq=False)
class Leading:
    """The m leading eigenpairs of an operator on n entries."""

    values: Array  # (m,) descending
    vectors: Array  # (n, m) orthonormal
    errors: Array  # (m,) ``|S u - lambda u| / lambda``
    steps: int  # number of vectors to which the operator was applied


def leading_eigenpairs(
    operator: Callable[[Array], Array],
    n: int,
    count: int,
    threshold: float,
    tolerance: float,
    seed: list[int],
) -> Leading:
    """At most `count` leading eigenpairs with values of at least `threshold`.

    The operator on (n, w) arrays is symmetric and has no negative eigenvalues. Errors are at most
    `tolerance`, unless the search ends after `MAX_STEPS` steps. The seed determines the start.
    """
    count, steps = min(count, n), 0
    start = np.random.RandomState(seed).standard_normal((n, min(BLOCK, n)))
    block = np.ascontiguousarray(np.linalg.qr(start)[0])
    basis = image = np.empty((n, 0))
    vectors = np.empty((0, 0))
    for number in range(1, MAX_STEPS + 1):
        if basis.shape[1] + BLOCK > max(MAX_BASIS, 4 * count):
            kept = vectors[:, : count + 2 * BLOCK]
            basis, image = basis @ kept, image @ kept
        last = operator(block)
        basis, image = np.hstack([basis, block]), np.hstack([image, last])
        steps += block.shape[1]
        quotient = basis.T @ image
        values, vectors = linalg.eigh((quotient + quotient.T) / 2, check_finite=False)
        values, vectors = values[::-1], vectors[:, ::-1]
        m = min(count, len(values))
        gaps = image @ vectors[:, :m] - basis @ (vectors[:, :m] * values[:m])
        errors = np.linalg.norm(gaps, axis=0)
        accurate = errors <= tolerance * values[:m]
        low = threshold - _missed_share(n, number) * abs(threshold)
        settled = m == count and _settled(values[:m], accurate, threshold, low)
        if settled or basis.shape[1] == n:
            break
        # The last columns of Q are orthogonal to the basis, also if columns are dependent.
        Q = np.linalg.qr(np.hstack([basis, last[:, : n - basis.shape[1]]]))[0]
        block = np.ascontiguousarray(Q[:, basis.shape[1] :])
    zero = _ZERO * max(float(values[0]), 0.0)
    m = int(np.count_nonzero((values[:m] >= threshold) & (values[:m] > zero)))
    left = np.ascontiguousarray(basis @ vectors[:, :m])
    return Leading(values[:m].copy(), left, errors[:m] / values[:m], steps)


def _settled(values: Array, accurate: NDArray[np.bool_], threshold: float, low: float) -> bool:
    """Whether values above the threshold are accurate, and the next is accurate or below `low`.

    Values up to rounding errors of the largest value count as zeros.
    """
    zero = _ZERO * max(float(values[0]), 0.0)
    wanted = int(np.count_nonzero(values > max(threshold, zero)))
    rest = values[wanted : wanted + 1]
    return bool(
        accurate[:wanted].all()
        and (accurate[wanted : wanted + 1] | (rest < low) | (rest <= zero)).all()
    )


def _missed_share(n: int, n_steps: int) -> float:
    """Share of the largest eigenvalue by which the search may still underestimate it.

    From one random start, the largest Ritz value after q steps is below ``1 - eps`` times the
    largest eigenvalue with probability at most ``1.648 sqrt(n) exp(-sqrt(eps) (2 q - 1))``
    (Kuczynski and Wozniakowski, SIAM J. Matrix Anal. Appl. 13, 1992). The result is the eps for
    which this bound is .1; a block underestimates by more only if all its `BLOCK` starts do.
    Restarts slow the search, so that the bound is an approximation after a restart.
    """
    return (math.log(16.48 * math.sqrt(n)) / (2 * n_steps - 1)) ** 2

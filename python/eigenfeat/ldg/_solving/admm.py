"""One sparse direction: the semidefinite relaxation of a sparse smallest eigenvector, by ADMM.

Parrish (2012), equation 3.32, after d'Aspremont et al. (2007), for a symmetric C and sparsity s:

    minimise tr(C M)  subject to  M >= 0, tr M = 1, sum |M_ij| <= s.

The iteration (Boyd et al. 2011, section 3) alternates between the two sets, each of which has a
cheap projection: the spectrahedron, whose projection puts the eigenvalues onto the simplex, and the
l1 ball of the entries. Any symmetric L gives the lower bound

    min tr(C M) >= lambda_min(C + L) - s max |L_ij|,

and the multiplier of the iteration is such an L. A mixture of M with a diagonal entry is feasible
and gives an upper bound. The difference of the bounds certifies the result, converged or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.linalg import norm
from numpy.typing import NDArray
from scipy.linalg import eigh

from eigenfeat.linear.calibrated import on_simplex
from eigenfeat.moments.columns import signed

_Array = NDArray[np.float64]

_OVER_RELAXATION = 1.6  # Boyd et al. 2011, section 3.4.3: between 1.5 and 1.8
_BALANCE_EVERY = 10  # steps between changes of the penalty
_BALANCE_STEP = 5.0  # largest factor of one change of the penalty
_LEAST_BALANCE = 1.5  # smaller changes of the penalty are not worth a disturbance
_EXTRA_PAIRS = 3  # eigenpairs in addition to the rank of the last projection


@dataclass(frozen=True, eq=False)
class SparseDirection:
    """The solution of one relaxation."""

    vector: _Array  # (d,) unit leading eigenvector of the sparse iterate; largest entry positive
    matrix: _Array  # (d, d) M: positive semidefinite of trace 1, sum of absolute entries at most s
    value: float  # tr(C M)
    bound: float  # lower bound on the minimum
    leading: float  # largest eigenvalue of M: 1 if the relaxation is exact and the vector optimal
    residuals: _Array  # (2,) primal and dual, relative to the sizes of their terms
    n_iter: int  # 0 if an eigenvector is sparse enough


def sparse_direction(C: _Array, sparsity: float, *, tol: float, max_iter: int) -> SparseDirection:
    """Solve the relaxation (3.32) for a symmetric matrix C (d, d).

    `sparsity` is s, at least 1; values of d or more have no effect. The iteration stops after
    `max_iter` steps, or when both relative residuals are at most `tol`.
    """
    values, vectors = eigh(C, check_finite=False)
    smallest, largest = float(values[0]), float(values[-1])
    first = signed(vectors[:, :1])[:, 0]
    spread = largest - smallest
    rounding = len(C) * float(np.finfo(np.float64).eps)
    if float(np.abs(first).sum()) ** 2 <= sparsity * (1.0 + rounding):
        return _exact(C, first)
    if sparsity == 1 or spread <= rounding * max(abs(smallest), abs(largest)):
        # M is diagonal, or all directions are equally good: return an axis.
        axis = np.zeros(len(C))
        axis[int(np.argmin(np.diag(C)))] = 1.0
        return _exact(C, axis)
    # A multiple of the identity shifts all values equally; it moves eigenvalues into [-1, 0].
    scaled = (C - largest * np.eye(len(C))) / spread
    last = _iterate(scaled, sparsity, first, tol, max_iter)
    matrix = _feasible(last.inner, np.diag(scaled), sparsity)
    bound = _smallest_eigenvalue(scaled + last.multiplier)
    bound -= sparsity * float(np.abs(last.multiplier).max())
    return SparseDirection(
        _leading_vector(last.outer, tol),
        matrix,
        float(np.einsum("ij,ij->", scaled, matrix)) * spread + largest,
        bound * spread + largest,
        -_smallest_eigenvalue(-matrix),
        last.residuals,
        last.n_iter,
    )


# ---- projections ---------------------------------------------------------------------------------


def project_sum_ball(matrix: _Array, radius: float) -> _Array:
    """Nearest matrix whose absolute entries sum to at most `radius`, by soft thresholding.

    Newton's method finds the threshold, exactly after finitely many steps.
    """
    sizes = np.abs(matrix)
    total = float(sizes.sum())
    if total <= radius:
        return matrix.copy()
    threshold = (total - radius) / sizes.size
    while True:
        active = sizes[sizes > threshold]
        higher = (float(active.sum()) - radius) / len(active)
        if higher <= threshold * (1.0 + 1e-15):
            return np.copysign(np.maximum(sizes - threshold, 0.0), matrix)
        threshold = higher


def _project_spectrahedron(matrix: _Array, guess: int) -> tuple[_Array, int]:
    """Nearest positive semidefinite matrix of trace 1, and its rank.

    Only eigenvalues that stay positive on the simplex count: `guess` pairs are computed first.
    """
    d = len(matrix)
    while True:
        count = min(guess, d)
        subset = None if count == d else [d - count, d - 1]
        values, vectors = eigh(matrix, subset_by_index=subset, driver="evr", check_finite=False)
        weights = on_simplex(values[None])[0]
        if count == d or weights[0] == 0:
            rank = int(np.count_nonzero(weights))
            selected = vectors[:, count - rank :]
            return (selected * weights[count - rank :]) @ selected.T, rank
        guess = 2 * count


# ---- the iteration -------------------------------------------------------------------------------


class _Iterate(NamedTuple):
    """Matrices in the spectrahedron and in the ball, the multiplier, residuals, number of steps."""

    inner: _Array
    outer: _Array
    multiplier: _Array
    residuals: _Array
    n_iter: int


def _iterate(C: _Array, sparsity: float, first: _Array, tol: float, max_iter: int) -> _Iterate:
    inner = np.outer(first, first)
    outer = project_sum_ball(inner, sparsity)
    dual, penalty, rank = np.zeros_like(C), 1.0, 1  # the dual is scaled
    residuals, n_iter = np.full(2, np.inf), 0
    while n_iter < max_iter and not (residuals <= tol).all():
        target = outer - dual - C / penalty
        inner, rank = _project_spectrahedron(target, rank + _EXTRA_PAIRS)
        relaxed = _OVER_RELAXATION * inner + (1.0 - _OVER_RELAXATION) * outer
        before, outer = outer, project_sum_ball(relaxed + dual, sparsity)
        dual += relaxed - outer
        size = float(np.maximum(norm(inner), norm(outer)))
        force = float(np.maximum(norm(dual), 1e-3 / penalty))  # C's norm is about 1
        residuals = np.array([norm(inner - outer) / size, norm(outer - before) / force])
        n_iter += 1
        # Stop changing the penalty, or the iteration might never converge.
        if n_iter % _BALANCE_EVERY == 0 and 2 * n_iter < max_iter:
            factor = _balance(*np.maximum(residuals, 1e-300))
            penalty *= factor
            dual /= factor
    return _Iterate(inner, outer, penalty * dual, residuals, n_iter)


def _balance(primal: float, dual: float) -> float:
    """Factor of the penalty with which neither residual lags far behind the other."""
    factor = float(np.clip(np.sqrt(primal / dual), 1.0 / _BALANCE_STEP, _BALANCE_STEP))
    return 1.0 if 1.0 / _LEAST_BALANCE <= factor <= _LEAST_BALANCE else factor


# ---- bounds and vectors --------------------------------------------------------------------------


def _smallest_eigenvalue(matrix: _Array) -> float:
    result = eigh(matrix, eigvals_only=True, subset_by_index=[0, 0], check_finite=False)
    return float(result[0])


def _exact(C: _Array, vector: _Array) -> SparseDirection:
    """Return a minimum of rank one that is known without iterating."""
    value = float(vector @ C @ vector)
    return SparseDirection(vector, np.outer(vector, vector), value, value, 1.0, np.zeros(2), 0)


def _feasible(matrix: _Array, diagonal: _Array, sparsity: float) -> _Array:
    """Mix M with the axis of the least diagonal entry, so that its entries sum to at most s."""
    total = float(np.abs(matrix).sum())
    if total <= sparsity:
        return matrix
    share = (sparsity - 1.0) / (total - 1.0)
    axis = int(np.argmin(diagonal))
    mixed = share * matrix
    mixed[axis, axis] += 1.0 - share
    return mixed


def _leading_vector(outer: _Array, tol: float) -> _Array:
    """Leading eigenvector of the sparse iterate, from the rows that are not all zero."""
    support = np.flatnonzero(np.abs(outer).max(axis=1) > 0)
    block = outer[np.ix_(support, support)]
    last = len(support) - 1
    _, vectors = eigh((block + block.T) / 2, subset_by_index=[last, last], check_finite=False)
    part = vectors[:, 0]
    # Entries below the iterate's residual are rounding.
    part[np.abs(part) <= 10.0 * tol * np.abs(part).max()] = 0.0
    vector = np.zeros(len(outer))
    vector[support] = part / np.linalg.norm(part)
    return signed(vector[:, None])[:, 0] + 0.0  # + 0.0 turns -0.0 into 0.0

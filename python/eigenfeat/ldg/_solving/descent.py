"""The discriminative Gaussian objective, and the minimum of a function of an orthonormal matrix.

Parrish (2012), section 3.1.1. With ``D_ij = x_i - mu_ij``, local means mu_ij of the neighbours of
row i in class j, priors p_j, and B (d, m) with ``B^T B = I``, equation 3.4 is

    f(B) = sum_i log sum_j p_j exp(-|B^T D_ij|^2 / 2) + |B^T D_{i,g_i}|^2 / 2.

The ``D_ij`` are never formed: projections of local means are local means of projections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import logsumexp

from eigenfeat._base.types import Codes

_Array = NDArray[np.float64]
Evaluate = Callable[[_Array], "tuple[float, _Array]"]


class LocalGaussians:
    """Equation 3.4 and its gradient, equation 3.5.

    `X` (n, d) has samples of the classes `codes` (n,), 0 to k - 1, with probabilities `priors`
    (k,), and `neighbours` (n, k, kn) the nearest samples of each sample in each class, -1 if there
    are fewer. Samples without neighbours in their own class are left out; a sample's sum leaves out
    classes without neighbours.
    """

    def __init__(
        self, X: _Array, codes: Codes, neighbours: NDArray[np.int64], priors: _Array
    ) -> None:
        n, k, _ = neighbours.shape
        known = neighbours >= 0
        counts = known.sum(axis=2)
        rows = np.flatnonzero(counts[np.arange(n), codes] > 0)
        self.X, self.rows, self.codes = X, rows, codes[rows]
        known, counts = known[rows], counts[rows].ravel()
        starts = np.concatenate([[0], np.cumsum(counts)])
        weights = np.repeat(1.0 / np.maximum(counts, 1), counts)
        shape = (len(rows) * k, n)
        self._means = csr_array((weights, neighbours[rows][known], starts), shape=shape)
        with np.errstate(divide="ignore"):
            self._log_priors = np.where(counts.reshape(-1, k) > 0, np.log(priors), -np.inf)

    def __call__(self, B: _Array) -> tuple[float, _Array]:
        """Objective at B (d, m), and its gradient (d, m)."""
        n, k = self._log_priors.shape
        projected = self.X @ B
        means = (self._means @ projected).reshape(n, k, -1)
        gaps = projected[self.rows][:, None, :] - means
        halves = 0.5 * np.einsum("ijc,ijc->ij", gaps, gaps)
        logits = self._log_priors - halves
        totals = logsumexp(logits, axis=1)
        own = np.arange(n), self.codes
        signs = -np.exp(logits - totals[:, None])
        signs[own] += 1.0
        gaps *= signs[:, :, None]
        pull = -(self._means.T @ gaps.reshape(n * k, -1))
        pull[self.rows] += gaps.sum(axis=1)
        return float(np.sum(totals + halves[own])), self.X.T @ pull


@dataclass(frozen=True, eq=False)
class Descent:
    """The result of a search.

    ``reason``: "converged" (gradient within the tolerance), "precision" (no step decreases the
    objective in this arithmetic), "iterations" or "stopped" (by a callback). ``gradient_norm`` is
    relative to the gradient at the start. ``history`` has the objectives at the start and after
    each step.
    """

    point: _Array  # (d, m)
    objective: float
    gradient_norm: float
    reason: str
    history: list[float]


class _SearchEndedError(Exception):
    """Ends SciPy's search; its argument is the reason."""


def minimise(
    evaluate: Evaluate,
    start: _Array,
    *,
    tol: float,
    max_iter: int,
    log: Callable[[str], None],
    stops: Callable[[], bool] = lambda: False,
) -> Descent:
    """Minimise a function of matrices B with ``B^T B = I`` that depends on ``B B^T`` alone.

    L-BFGS changes a matrix A without constraint. B is the orthonormal factor of ``A = B R``, and if
    the function has the gradient G at B, the gradient at A is ``T R^-T`` with the part
    ``T = G - B B^T G`` of G along the constraint.

    `evaluate` returns the objective and G (d, m) at B, and `start` (d, m) has orthonormal columns.
    The search ends when T is at most `tol` times as large as G at the start, after `max_iter`
    steps, or when `stops` returns True. `log`, which receives a line of text, and `stops` are
    called after every step.
    """
    unit = float(np.linalg.norm(evaluate(start)[1])) or 1.0
    point, objective, size = start, 0.0, 0.0

    def objective_of(A: _Array) -> tuple[float, _Array]:
        nonlocal point, objective, size
        point, R = np.linalg.qr(A.reshape(start.shape))
        objective, gradient = evaluate(point)
        tangent = gradient - point @ (point.T @ gradient)
        size = float(np.linalg.norm(tangent)) / unit
        return objective, solve_triangular(R, tangent.T, check_finite=False).T.ravel()

    def end_step(A: _Array) -> None:
        history.append(objective)
        log(f"step {len(history) - 1}: objective {objective:.9g}")
        if size <= tol:
            raise _SearchEndedError("converged")
        if stops():
            raise _SearchEndedError("stopped")

    history = [objective_of(start.ravel())[0]]
    if not size > tol:  # NaN if squares of the gradient overflow
        reason = "converged" if size <= tol else "precision"
        return Descent(point, objective, size, reason, history)
    options = {"maxiter": max_iter, "maxfun": 100 * max_iter, "ftol": 0.0, "gtol": 0.0}
    try:
        result = minimize(
            objective_of, start.ravel(), jac=True, method="L-BFGS-B", callback=end_step,
            options=options,
        )  # fmt: skip
        objective_of(result.x)  # the last trial may have been another point
        reason = "iterations" if result.nit >= max_iter else "precision"
    except _SearchEndedError as end:
        reason = str(end)
    return Descent(point, objective, size, reason, history)

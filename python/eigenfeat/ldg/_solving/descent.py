"""The discriminative Gaussian objective, and the minimum of a function of an orthonormal matrix.

Parrish (2012), section 3.1.1. With ``D_ij = x_i - mu_ij``, local means mu_ij of the neighbours of
row i in class j, priors p_j, and B (d, m) with ``B^T B = I``, equation 3.4 is

    f(B) = sum_i log sum_j p_j exp(-|B^T D_ij|^2 / 2) + |B^T D_{i,g_i}|^2 / 2.

The ``D_ij`` are never formed: projections of local means are local means of projections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import logsumexp

_Array = NDArray[np.float64]
Evaluate = Callable[[_Array], "tuple[float, _Array]"]

_EPS = float(np.finfo(np.float64).eps)
_MIN_DECREASE = 1e-4  # of an accepted step, relative to the predicted decrease
_MEMORY = 0.85  # weight of earlier objectives in the reference value of the line search


class LocalGaussians:
    """Equation 3.4 and its gradient, equation 3.5.

    `X` (n, d) has samples of the classes `codes` (n,), 0 to k - 1, with probabilities `priors`
    (k,), and `neighbours` (n, k, kn) the nearest samples of each sample in each class, -1 if there
    are fewer. Samples without neighbours in their own class are left out, and of a sample's sum the
    classes without neighbours.
    """

    def __init__(
        self, X: _Array, codes: NDArray[np.int64], neighbours: NDArray[np.int64], priors: _Array
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
        apart = projected[self.rows][:, None, :] - means
        halves = 0.5 * np.einsum("ijc,ijc->ij", apart, apart)
        logits = self._log_priors - halves
        totals = logsumexp(logits, axis=1)
        own = np.arange(n), self.codes
        signs = -np.exp(logits - totals[:, None])
        signs[own] += 1.0
        apart *= signs[:, :, None]
        pull = -(self._means.T @ apart.reshape(n * k, -1))
        pull[self.rows] += apart.sum(axis=1)
        return float(np.sum(totals + halves[own])), self.X.T @ pull


@dataclass
class Descent:
    """A point of a search, and after the search its best point.

    ``reason``: "converged" (gradient within the tolerance), "precision" (no step decreases the
    objective in this arithmetic), "iterations" or "stopped" (by a callback). ``gradient_norm`` is
    relative to the start's. ``history`` has the objectives at the start and after accepted steps.
    """

    point: _Array
    objective: float
    gradient_norm: float
    n_iter: int = 0
    reason: str = "iterations"
    history: list[float] = field(default_factory=list)


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

    Steps follow the gradient, projected on the tangent space of the constraint. Their lengths come
    from the last change of the gradient (Barzilai and Borwein, the long and the short rule in
    turn), with a nonmonotone line search (Wen and Yin 2013).

    `evaluate` returns the objective and its gradient (d, m) at B, and `start` (d, m) has
    orthonormal columns. The search ends when the projected gradient is at most `tol` times the
    gradient at the start, after `max_iter` steps, which include rejected ones, or when `stops`
    returns True. `log` and `stops` are called after every accepted step, `log` with a text.
    """
    B, (objective, gradient) = start, evaluate(start)
    unit = float(np.linalg.norm(gradient)) or 1.0
    tangent = _tangent(B, gradient)
    slope, size = float(np.linalg.norm(tangent)), abs(objective)
    length = 1.0 / max(slope, np.finfo(np.float64).tiny)
    reference, memory = objective, 1.0  # a step's objective must be below the reference
    best, reason, n_iter, history = (
        Descent(B, objective, slope / unit),
        "iterations",
        0,
        [objective],
    )
    while n_iter < max_iter:
        if slope <= tol * unit:
            reason = "converged"
            break
        if length * slope**2 <= _EPS * max(abs(objective), size):
            reason = "precision"  # the decrease would be below the rounding of the objective
            break
        n_iter += 1
        new = _orthonormal(B - length * tangent)
        new_objective, gradient = evaluate(new)
        if not new_objective <= reference - _MIN_DECREASE * length * slope**2:
            length /= 2.0
            continue
        moved, before = new - B, tangent
        B, objective, tangent = new, new_objective, _tangent(new, gradient)
        slope = float(np.linalg.norm(tangent))
        length = _step_length(moved, tangent - before, long=n_iter % 2 == 1) or length
        reference = (_MEMORY * memory * reference + objective) / (_MEMORY * memory + 1.0)
        memory = _MEMORY * memory + 1.0
        history.append(objective)
        log(f"step {n_iter}: objective {objective:.9g}")
        if objective <= best.objective:
            best = Descent(B, objective, slope / unit)
        if stops():
            reason = "stopped"
            break
    return replace(best, n_iter=n_iter, reason=reason, history=history)


def _tangent(B: _Array, gradient: _Array) -> _Array:
    """The gradient, projected on the tangent space of the constraint."""
    return gradient - B @ (B.T @ gradient)


def _step_length(moved: _Array, changed: _Array, *, long: bool) -> float:
    """The long or the short Barzilai-Borwein length; 0 if it is not a positive number."""
    along = abs(_inner(moved, changed))
    above, below = (_inner(moved, moved), along) if long else (along, _inner(changed, changed))
    return above / below if below > 0 and 0 < above / below < np.inf else 0.0


def _inner(a: _Array, b: _Array) -> float:
    return float(np.einsum("ij,ij->", a, b))


def _orthonormal(matrix: _Array) -> _Array:
    """Orthonormalise columns by QR. A positive diagonal of R keeps small steps small."""
    Q, R = np.linalg.qr(matrix)
    return np.asarray(Q * np.copysign(1.0, np.diag(R)))

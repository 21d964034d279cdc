"""The discriminative Gaussian objective, and the minimum of a function of an orthonormal matrix.

Parrish (2012), section 3.1.1. With ``D_ij = x_i - mu_ij``, local means mu_ij of the neighbours of
row i in class j, priors p_j, and B (d, m) with ``B^T B = I``, equation 3.4 is

    f(B) = sum_i log sum_j p_j exp(-|B^T D_ij|^2 / 2) + |B^T D_{i,g_i}|^2 / 2.

The ``D_ij`` are never formed: projections of local means are local means of projections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import logsumexp

__all__ = ["Descent", "LocalGaussians", "minimise"]

_Array = NDArray[np.float64]
Evaluate = Callable[[_Array], "tuple[float, _Array]"]

_EPS = float(np.finfo(np.float64).eps)
_MIN_DECREASE = 1e-4  # of an accepted step, relative to the predicted decrease
_MEMORY = 0.85  # weight of earlier objectives in the reference value of the line search


class LocalGaussians:
    """Equation 3.4 and its gradient, equation 3.5.

    Samples without neighbours in their own class are left out. Classes without neighbours of a
    sample are left out of its sum.

    Parameters
    ----------
    X : (n, d) array of float64
        Samples.
    codes : (n,) array of int
        Classes of the samples, 0 to k - 1.
    neighbours : (n, k, kn) array of int
        Nearest samples of each sample in each class; -1 if there are fewer.
    priors : (k,) array
        Probabilities of the classes.
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
    """Result of a search.

    ``reason``: "converged" (gradient within the tolerance), "precision" (no step decreases the
    objective in this arithmetic), "iterations" or "interrupted" (Ctrl-C; the best point so far).
    ``gradient_norm`` is relative to the start's.
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

    Step lengths come from the last change of the gradient, with a nonmonotone line search (Wen and
    Yin 2013).

    Parameters
    ----------
    evaluate : callable
        Objective and its gradient (d, m) at B.
    start : (d, m) array
        Orthonormal columns.
    tol : float
        Stop when the norm of the projected gradient is at most `tol` times the norm of the gradient
        at the start.
    max_iter : int
        Maximum number of steps, including rejected ones.
    log : callable
        Called with a text after every accepted step.
    stops : callable
        Called after every step; the search ends if it returns True.
    """
    objective, gradient = evaluate(start)
    search = _Search(evaluate, start, objective, gradient, float(np.linalg.norm(gradient)))
    best = search.descent()
    best.history = [objective]
    length = 1.0 / max(search.slope, np.finfo(np.float64).tiny)
    search.length, search.reference, search.size = length, objective, abs(objective)
    try:
        while not search.finished(tol) and search.n_iter < max_iter:
            if not search.take_step():
                continue
            best.history.append(search.objective)
            log(f"step {search.n_iter}: objective {search.objective:.9g}")
            if search.objective <= best.objective:
                best = search.descent(best.history)
            if stops():
                search.reason = "stopped"
                break
    except KeyboardInterrupt:
        search.reason = "interrupted"
    best.n_iter, best.reason = search.n_iter, search.reason
    return best


@dataclass(eq=False)
class _Search:
    evaluate: Evaluate
    point: _Array
    objective: float
    gradient: _Array
    scale: float  # norm of the gradient at the start
    size: float = 0.0  # of the objective at the start
    length: float = 0.0
    reference: float = 0.0  # value that a Barzilai-Borwein step must stay below
    weight: float = 1.0
    n_iter: int = 0
    reason: str = "iterations"

    @property
    def tangent(self) -> _Array:
        """The gradient, projected on the tangent space of the constraint."""
        return self.gradient - self.point @ (self.point.T @ self.gradient)

    @property
    def slope(self) -> float:
        return float(np.linalg.norm(self.tangent))

    def descent(self, history: list[float] | None = None) -> Descent:
        relative = self.slope / self.scale if self.scale > 0 else 0.0
        return Descent(self.point, self.objective, relative, history=history or [])

    def finished(self, tol: float) -> bool:
        if self.slope <= tol * self.scale:
            self.reason = "converged"
        elif self.length * self.slope**2 <= _EPS * max(abs(self.objective), self.size):
            self.reason = "precision"  # the decrease would be below the rounding of the objective
        return self.reason != "iterations"

    def take_step(self) -> bool:
        """Take a Barzilai-Borwein step, or halve the length of the next one."""
        tangent = self.tangent
        point = _orthonormal(self.point - self.length * tangent)
        objective, gradient = self.evaluate(point)
        self.n_iter += 1
        decrease = _MIN_DECREASE * self.length * _inner(tangent, tangent)
        if not objective <= self.reference - decrease:
            self.length /= 2.0
            return False
        moved = point - self.point
        self.point, self.objective, self.gradient = point, objective, gradient
        self._measure(moved, self.tangent - tangent)
        weight = _MEMORY * self.weight + 1.0
        self.reference = (_MEMORY * self.weight * self.reference + objective) / weight
        self.weight = weight
        return True

    def _measure(self, moved: _Array, changed: _Array) -> None:
        """Set the next step's length by the long and the short Barzilai-Borwein rule in turn."""
        along = abs(_inner(moved, changed))
        if self.n_iter % 2:
            above, below = _inner(moved, moved), along
        else:
            above, below = along, _inner(changed, changed)
        if below > 0 and 0 < above / below < np.inf:
            self.length = above / below


def _inner(a: _Array, b: _Array) -> float:
    return float(np.einsum("ij,ij->", a, b))


def _orthonormal(matrix: _Array) -> _Array:
    """Orthonormalise columns by QR. A positive diagonal of R keeps small steps small."""
    Q, R = np.linalg.qr(matrix)
    return np.asarray(Q * np.copysign(1.0, np.diag(R)))

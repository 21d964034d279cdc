"""Copies of rows, corrupted by noise that keeps them on their side: equations 4 and 5.

A copy of row n has the density

    p_n(x)  proportional to  N(x; x_n, sigma2 I) exp(-h_n(x)),
    h_n(x) = C_n max_y (loss_scale [y != y_n] + (w_y - w_{y_n})^T x + b_y - b_{y_n}).

Let m_n be its mode, which is ``x_n - sigma2 g`` for a subgradient g of h_n at m_n. As h_n is
convex,

    p_n(x)  <=  const N(x; m_n, sigma2 I),

and a draw from this Gaussian is kept with probability ``exp(h_n(m_n) + g^T (x - m_n) - h_n(x))``:
the copies are independent draws from p_n itself. The probability depends on the scores of x alone,
so that draws are tried in the span of the weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.core import core
from eigenfeat._base.validation import show
from eigenfeat.maxmargin._joint import hinge_costs

__all__ = ["corrupted_copies"]

_Array = NDArray[np.float64]
_ROUNDS = 2_000  # draws that a copy may need
_STEPS = 1_000


def corrupted_copies(
    X: NDArray[Any],
    y: NDArray[Any],
    svm: Any,
    sigma2: float,
    n_copies: int,
    random: np.random.RandomState,
    n_threads: int,
    weight: _Array | None = None,
) -> _Array:
    """Draw copies (n, n_copies, d) of rows from p_n.

    Raises
    ------
    ValueError
        If a copy is not accepted in 2,000 draws: `sigma2` is too large for the weights.
    """
    rows = X.astype(np.float64)
    n, d = rows.shape
    coef, codes = svm.class_coef_, np.searchsorted(svm.classes_, y).astype(np.int32)
    costs = hinge_costs(svm, codes, weight)
    scores = np.ascontiguousarray(rows @ coef.T)
    if svm.fit_intercept:
        scores += svm.dual_coef_.sum(axis=0)
    gram = np.ascontiguousarray(coef @ coef.T)
    still = np.zeros_like(scores)
    duals, _, _ = core.hinge_envelope(
        scores, gram, codes, costs, float(svm.loss_scale), sigma2, still, 1e-9, _STEPS, n_threads
    )
    rows += sigma2 * (duals @ coef)
    scores += sigma2 * (duals @ gram)
    # With coef = along @ basis, basis of orthonormal rows, scores of noise are along @ its part.
    lengths, turned = np.linalg.eigh(gram)
    nonzero = lengths > len(lengths) * np.finfo(float).eps * max(lengths[-1], 0.0)
    along = turned[:, nonzero] * np.sqrt(lengths[nonzero])
    basis = (turned[:, nonzero] / np.sqrt(lengths[nonzero])).T @ coef
    parts = _accepted(scores, codes, costs, duals, along, svm, np.sqrt(sigma2), n_copies, random)
    noise = random.standard_normal((n, n_copies, d))
    noise += (parts - noise @ basis.T) @ basis
    out: _Array = rows[:, None, :] + np.sqrt(sigma2) * noise
    return out


def _accepted(
    scores: _Array,
    codes: NDArray[np.int32],
    costs: _Array,
    duals: _Array,
    along: _Array,
    svm: Any,
    sigma: float,
    n_copies: int,
    random: np.random.RandomState,
) -> _Array:
    """Standard normal draws (n, n_copies, r) in the span of the weights, those that are kept."""
    n, rank = len(scores), along.shape[1]
    parts = np.zeros((n * n_copies, rank))
    row = np.repeat(np.arange(n), n_copies)
    waiting = np.arange(n * n_copies)
    margins = np.full_like(scores, float(svm.loss_scale))
    margins[np.arange(n), codes] = 0.0

    def loss(s: _Array, at: NDArray[np.intp]) -> _Array:
        lead = (margins[at] + s).max(axis=1) - s[np.arange(len(at)), codes[at]]
        return np.asarray(costs[at] * lead)

    least = loss(scores, np.arange(n))
    for _ in range(_ROUNDS):
        at = row[waiting]
        drawn = random.standard_normal((len(waiting), rank))
        moved = sigma * (drawn @ along.T)
        # duals @ coef is the negative of the subgradient.
        tangent = least[at] - np.einsum("ij,ij->i", duals[at], moved)
        accepted = np.log(random.uniform(size=len(waiting))) <= tangent - loss(
            scores[at] + moved, at
        )
        parts[waiting[accepted]] = drawn[accepted]
        waiting = waiting[~accepted]
        if not len(waiting):
            return parts.reshape(n, n_copies, rank)
    raise ValueError(
        f"sigma2: expected noise of which corrupted copies are accepted, got {show(sigma**2)} with "
        f"{len(waiting)} of {n * n_copies} copies refused {_ROUNDS} times"
    )

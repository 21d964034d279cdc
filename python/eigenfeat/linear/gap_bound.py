r"""How far a penalised multinomial logit can lie above its minimum: a bound, not an estimate.

The objective f of `eigenfeat.linear.logit_problem` is a convex loss plus quadratic penalties, whose
matrix is ``Q = diag(q) + mu/2 Phi^T diag(w) Phi``, the constant's q being 0. A convex function lies
above its tangents (Boyd and Vandenberghe 2004, 3.1.3), so that with G the gradient at W

.. math:: f(W + D) \ge f(W) + \langle G, D \rangle + \tfrac12 \langle D, Q D \rangle .

The right side's least value bounds the gap: it is the gap to the Fenchel dual at the multipliers
of W's own probabilities. For any D_0 with the residual ``R = G + Q D_0`` that least value is at
least

.. math::
    \langle G, D_0 \rangle + \tfrac12 \langle D_0, Q D_0 \rangle
    - \tfrac12 \sum_j |R_j - m_j R_b|^2 / q_j - |R_b|^2 / (\mu n),

b the constant, m the features' means and n the sum of the weights, by Jensen's inequality for the
logits' energy. Conjugate gradients find a D_0 that makes R small. Without energy (mu = 0) nothing
holds the constant: its weights are moved to their optimum, and the probabilities are mixed with so
much of a vector e that their sums are exactly those of the labels, so that they are feasible in
Fenchel's dual. By the convexity of the entropy that costs ``t sum_i w_i KL(e || p_i)``.

Everything is in float64, whatever the features are; the bound has the rounding of it in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.threads import resolve
from eigenfeat._base.types import Floats
from eigenfeat.expansion.features import ExpandedRows, is_wide_columns, take_rows
from eigenfeat.linear.logit_problem import LogitProblem
from eigenfeat.rows.blocks import Block
from eigenfeat.rows.memory import MemoryRows
from eigenfeat.rows.reductions import far_means

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from eigenfeat.linear.logit_problem import Penalty

__all__ = ["gap_bound"]

_Array = npt.NDArray[np.float64]

_BLOCK_BYTES = 64e6
_EPS = float(np.finfo(np.float64).eps)
_ENOUGH = 0.05  # of the bound is due to the residual: more steps gain little
_NEWTON_STEPS = 50


def gap_bound(
    X: Floats | csr_array | ExpandedRows,
    codes: npt.NDArray[np.intp],
    weights: _Array | None,
    W: _Array,
    penalty: Penalty,
    *,
    constant: bool,
    steps: int,
    n_threads: int | None,
) -> float:
    """Bound the objective at W (p, k) less its minimum; infinite where no penalty bounds it.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or ExpandedRows
    codes : (n,) array in [0, k)
    weights : (n,) array or None
    W : (d + 1, k) array
        The constant's weights last; they are not read if there is no constant.
    penalty : Penalty
    constant : bool
    steps : int
        Most steps of conjugate gradients, each two products with all rows.
    n_threads : int or None
    """
    rows = MemoryRows.of(X, codes, weights, n_threads)
    flat = LogitProblem(rows, constant=constant).flat
    if constant:
        centre = far_means(rows)
        if centre is not None:
            W = np.vstack([W[:-1], W[-1] + centre @ W[:-1]])
    else:
        W, centre = W[:-1], None
    given = X, centre, codes.astype(np.int32), weights, W.shape[1], constant, flat, n_threads
    passes = _Passes(*given)
    q = passes.quadratic(penalty)
    inside = passes.mean_squares > 0  # a column of zeros has weights that only its penalty sees
    inside[passes.varying :] = False
    if not (q[inside] > 0).all():
        return np.inf
    if penalty.energy == 0 and constant:
        return _without_energy(passes, W, q)
    return _with_energy(passes, W, q, penalty.energy, steps)


class _Passes:
    """Products with all rows in float64, a block of them after the other."""

    def __init__(
        self,
        X: Any,
        centre: _Array | None,
        codes: npt.NDArray[np.int32],
        weights: _Array | None,
        n_classes: int,
        constant: bool,
        flat: npt.NDArray[np.bool_],
        n_threads: int | None,
    ) -> None:
        self.flat = flat
        self._X, self._centre, self._n_threads = X, centre, n_threads
        self.codes, self.constant, self.n_classes = codes, constant, n_classes
        self.weights = np.ones(len(codes)) if weights is None else weights
        self.total = float(self.weights.sum())
        size = max(1, int(_BLOCK_BYTES / 8 / max(X.shape[1], 1)))
        self._parts = [slice(i, i + size) for i in range(0, len(codes), size)]
        threads = resolve(n_threads)
        sums = [
            self._rows(part).core(constant).sums(np.ascontiguousarray(self.weights[part]), threads)
            for part in self._parts
        ]
        self.means = np.sum([one[0] for one in sums], axis=0) / self.total
        self.mean_squares = np.sum([one[1] for one in sums], axis=0) / self.total
        self.varying = len(self.means) - constant

    def _rows(self, part: slice) -> Block:
        rows = _double(take_rows(self._X, part))
        if self._centre is not None:  # in float64: about float32 means rows would be others
            rows -= self._centre
        return Block(rows)

    def quadratic(self, penalty: Penalty) -> _Array:
        """Coefficients (p,) of ``|W_j|^2 / 2``, as `LogitProblem.quadratic` has them."""
        squares = self.mean_squares
        if penalty.common and self.varying:
            spread = np.where(self.flat, 0.0, squares)[: self.varying]
            squares = np.full_like(squares, spread.mean())
        out = penalty.energy * penalty.ridge * np.sqrt(self.total) * squares + penalty.l2
        out[self.varying :] = 0.0
        return out

    def scores(self, W: _Array) -> _Array:
        """``Phi W`` (n, k)."""
        how = self.constant, self._n_threads
        return np.vstack([self._rows(part).scores(W, *how) for part in self._parts])

    def products(self, rows: _Array) -> _Array:
        """``Phi^T diag(w) rows`` (p, k)."""
        weighted = self.weights[:, None] * rows
        how = self.constant, self._n_threads
        parts = [self._rows(part).products(weighted[part], *how) for part in self._parts]
        summed: _Array = np.sum(parts, axis=0)
        return summed

    def labels(self) -> _Array:
        """One column a class, 1 in that of each row."""
        found = np.zeros((len(self.codes), self.n_classes))
        found[np.arange(len(self.codes)), self.codes] = 1.0
        return found

    def rounding(self, W: _Array) -> _Array:
        """Bound (p, 1) on what rounding adds to an entry of a gradient at W.

        A logit is off by (p + 2) eps times its terms' magnitudes, a probability by twice that and
        some eps, a sum over n rows by n eps times its terms'; sums of magnitudes by Cauchy-Schwarz
        and Minkowski from the features' mean squares.
        """
        n, (p, k) = len(self.codes), W.shape
        sizes = np.sqrt(self.total * self.mean_squares)
        logits = float((np.abs(W).max(axis=1) * sizes).sum())
        root = np.sqrt(self.total)
        share = 4 * (p + k + 8) * logits + (n + k + 8) * (root + logits)
        return (2 * _EPS * share * sizes)[:, None]


def _double(X: Any) -> Any:
    if not isinstance(X, ExpandedRows):
        return X.astype(np.float64)
    parts: dict[str, Any] = {
        name: None if value is None else value.astype(np.float64)
        for name in ("X", "projections", "offset")
        for value in (getattr(X, name),)
    }
    directions: Any = X.directions
    if not is_wide_columns(directions):
        directions = np.asarray(directions, dtype=np.float64)
    return replace(X, directions=directions, **parts)


def _log_probabilities(scores: _Array) -> _Array:
    shifted = scores - scores.max(axis=1, keepdims=True)
    found: _Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return found


def _squares(R: _Array, q: _Array) -> float:
    """``1/2 sum_j |R_j|^2 / q_j`` over the features whose q is positive."""
    inside = q > 0
    return 0.5 * float((np.einsum("jk,jk->j", R[inside], R[inside]) / q[inside]).sum())


def _with_energy(passes: _Passes, W: _Array, q: _Array, energy: float, steps: int) -> float:
    scores = passes.scores(W)
    residuals = np.exp(_log_probabilities(scores)) - passes.labels() + 0.5 * energy * scores
    G = passes.products(residuals) + q[:, None] * W
    rounding = passes.rounding(W) * (1.0 + energy) + 8 * _EPS * q[:, None] * np.abs(W)
    if not energy:
        return _squares(np.abs(G) + rounding, q)

    def left(R: _Array, rounding: _Array) -> float:
        """What a residual that is known but for rounding may still hide."""
        if not passes.constant:
            return _squares(np.abs(R) + rounding, q)
        means = passes.means[:-1, None]
        moved = np.abs(R[:-1] - means * R[-1]) + rounding[:-1] + np.abs(means) * rounding[-1]
        held = float(((np.abs(R[-1]) + rounding[-1]) ** 2).sum()) / (energy * passes.total)
        return _squares(moved, q[:-1]) + held

    def times_Q(D: _Array) -> _Array:
        image: _Array = q[:, None] * D + 0.5 * energy * passes.products(passes.scores(D))
        return image

    best = left(G, rounding)
    diagonal = (q + 0.5 * energy * passes.total * passes.mean_squares)[:, None]
    diagonal = np.where(diagonal > 0, diagonal, 1.0)
    D, R = np.zeros_like(G), G.copy()
    solved = R / diagonal
    direction, size = -solved, np.einsum("jk,jk->k", R, solved)
    for _ in range(steps):
        image = times_Q(direction)
        D += _ratio(size, np.einsum("jk,jk->k", direction, image)) * direction
        of_D = times_Q(D)  # of D itself, and not what a recursion would say of it
        R = G + of_D
        linear = float(np.einsum("jk,jk->", G, D))
        bent = float(np.einsum("jk,jk->", D, of_D))
        noise = rounding + 0.5 * energy * passes.rounding(D) + 8 * _EPS * np.abs(of_D)
        # G is known but for `rounding`, too.
        won = -(linear + 0.5 * bent) + float((noise * np.abs(D)).sum())
        rest = left(R, noise)
        best = min(best, won + rest)
        if rest <= _ENOUGH * best:
            break
        solved = R / diagonal
        grown = np.einsum("jk,jk->k", R, solved)
        direction, size = _ratio(grown, size) * direction - solved, grown
    return best


def _ratio(a: _Array, b: _Array) -> _Array:
    """``a / b``, 0 where b is not positive."""
    return np.where(b > 0, a / np.where(b > 0, b, 1.0), 0.0)


def _without_energy(passes: _Passes, W: _Array, q: _Array) -> float:
    """No energy, and a constant: feasible multipliers by a mixture of probabilities."""
    scores, labels, w = passes.scores(W), passes.labels(), passes.weights
    shares = w @ labels / passes.total
    moved, fallen = _best_constant(scores, labels, w)
    logs = _log_probabilities(moved)
    P = np.exp(logs)
    pull = w @ (P - labels)  # of the constant: 0 but for rounding
    slack = 4 * (len(w) + 8) * _EPS * passes.total  # the rounding of `pull` itself
    t = float(((np.abs(pull) + slack) / shares).max()) / passes.total
    if t >= 1.0:
        return np.inf
    e = np.maximum(shares - (1 - t) / t * pull / passes.total, 0.0)
    e /= e.sum()
    # The entropy of e is left out, which only widens the bound: it has no slope at 0.
    farthest = float(np.abs(logs).max())
    mixture = t * float(w @ -(logs @ e)) + slack * farthest
    G = passes.products((1 - t) * P + t * e - labels) + q[:, None] * W
    top = np.abs(W)
    top[-1] += np.abs(moved - scores).max()
    rounding = passes.rounding(top) + 8 * _EPS * q[:, None] * np.abs(W)
    # The e whose sums are exactly those of the labels is off by `slack` in all.
    rounding = rounding + slack * np.sqrt(passes.mean_squares)[:, None]
    loss = float(w @ -_log_probabilities(scores)[labels > 0])
    noise = 4 * (len(w) + 8) * _EPS * (loss + float(w @ np.abs(scores).max(axis=1)))
    return fallen + mixture + _squares(np.abs(G) + rounding, q) + noise


def _best_constant(scores: _Array, labels: _Array, w: _Array) -> tuple[_Array, float]:
    """Scores with the constant's best weights (Newton's method), and by how much the loss falls."""

    def loss(z: _Array) -> float:
        return float(w @ -_log_probabilities(z)[labels > 0])

    start = now = loss(scores)
    k = scores.shape[1]
    for _ in range(_NEWTON_STEPS):
        P = np.exp(_log_probabilities(scores))
        pull = w @ (P - labels)
        wP = w[:, None] * P
        bend = np.diag(wP.sum(axis=0)) - P.T @ wP + np.full((k, k), w.sum() / k)
        step = np.linalg.lstsq(bend, pull, rcond=None)[0]
        for _ in range(30):
            tried = scores - step
            value = loss(tried)
            if value < now:
                break
            step = step / 2
        else:
            break
        scores, now = tried, value
    return scores, max(start - now, 0.0)

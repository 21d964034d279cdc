"""Three ways in which an SVM moves samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat._base.validation import show
from eigenfeat.maxmargin._joint import JointMoves, spread
from eigenfeat.maxmargin.svm import hinge_costs

_Array = NDArray[np.float64]
COARSE_TOL = 1e-4  # tolerance of the joint minimisations that compare scales
_MAX_DRAWS = 2_000  # draws of a copy until one is accepted
_MODE_TOL, _MAX_STEPS = 1e-9, 1_000  # of the search for a mode


class MovedSamples:
    """Samples X (n, d) with labels y that the SVM moves once (equation 9).

    `weight` (n,) multiplies the losses. Samples of weight 0 have no class and do not move; the SVM
    was fitted to the other samples. `fit_extractor` fits an extractor to moved samples.
    """

    def __init__(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        weight: NDArray[np.float64],
        svm: Any,
        fit_extractor: Callable[[NDArray[Any]], Any],
    ) -> None:
        self.X, self.y, self.svm, self._fit_extractor = X, y, svm, fit_extractor
        self.known = weight > 0
        self.weight = weight[self.known]
        self.moves = np.zeros(X.shape)
        self.unit = 0.0
        if self.known.any():
            self.moves[self.known] = svm.dual_coef_ @ svm.class_coef_
            self.around = max(spread(X[self.known] - X[self.known].mean(axis=0)), 1e-300)
            self.unit = spread(self.moves[self.known]) / self.around

    def sigma2_of(self, scale: float) -> float:
        """Return the sigma2 for moves of this size, relative to the spread of the samples."""
        return scale / self.unit if self.unit > 0 else 0.0

    def rows(self, sigma2: float) -> NDArray[Any]:
        """Return the moved samples, in the dtype of the samples."""
        return self._moved_by(sigma2)

    def _moved_by(self, factor: float) -> NDArray[Any]:
        with np.errstate(over="ignore", invalid="ignore"):
            return (self.X + factor * self.moves).astype(self.X.dtype, copy=False)

    def features(self, sigma2: float) -> Any:
        """Return an extractor fitted to the moved samples."""
        return self._fit_extractor(self.rows(sigma2))

    def relative_size(self, moved: NDArray[Any]) -> float:
        """Return the size of the moves in a result of `rows`, relative to the samples' spread."""
        if self.unit == 0.0:
            return 0.0
        n, d = self.X.shape
        moves = moved.reshape(n, -1, d)[self.known] - self.X[self.known][:, None]
        return spread(moves.reshape(-1, d)) / self.around

    def joint_moves(self, X: NDArray[Any], *, max_iter: int, tol: float) -> JointMoves:
        """Return joint moves of the samples that have a class, or of their features X."""
        known = self.known
        return JointMoves(X[known], self.y[known], self.weight, self.svm, max_iter, tol)


class JointlyMoved(MovedSamples):
    """Samples that move together with the SVM (Wangni and Chen, equation 7)."""

    def __init__(self, *arguments: Any, max_iter: int, tol: float) -> None:
        super().__init__(*arguments)
        self.joint: JointMoves | None = None
        if self.unit > 0:
            self.joint = self.joint_moves(self.X, max_iter=max_iter, tol=tol)
        self._latest: tuple[float, float] | None = None  # scale and its sigma2

    def sigma2_of(self, scale: float) -> float:
        """Return a sigma2 for moves of about this size; the search starts at the latest sigma2."""
        if self.joint is None or scale == 0.0:
            return 0.0
        latest, sigma2 = self._latest or (0.08, 1.0 / self.unit)  # the first search has a guess
        # Moves of separable samples grow with the fourth root of sigma2.
        start = float(sigma2 * np.clip((scale / latest) ** 4, 1e-12, 1e12))
        moved = self.joint.reach(scale * self.around, start)
        self._latest = scale, self.joint.sigma2 if moved else 0.0
        return self._latest[1]

    def rows(self, sigma2: float) -> NDArray[Any]:
        """Return moved samples; the minimisation starts at the SVM's weights in every call."""
        self.moves[self.known] = 0.0
        if self.joint is not None and sigma2 > 0:
            self.joint.start(self.svm.class_coef_, self.svm.dual_coef_)
            self.joint.minimise(sigma2)
            self.moves[self.known] = self.joint.moves
        return self._moved_by(1.0)

    def features(self, sigma2: float) -> Any:
        """Return an extractor fitted to the samples at the end of the search for `sigma2`.

        `sigma2` is the latest result of `sigma2_of`, or 0.
        """
        if self.joint is None or sigma2 == 0.0:
            return super().features(sigma2)
        self.moves[self.known] = self.joint.moves
        return self._fit_extractor(self._moved_by(1.0))


class CorruptedSamples(MovedSamples):
    """Several copies of every sample, corrupted if it has a class (equations 4 and 5)."""

    def __init__(self, *arguments: Any, n_copies: int, random_state: Any) -> None:
        super().__init__(*arguments)
        self._n_copies = n_copies
        self._seed = int(check_random_state(random_state).randint(2**31))

    def sigma2_of(self, scale: float) -> float:
        """Return the variance for noise of this size."""
        if self.unit == 0.0:
            return 0.0
        return float((scale * self.around) ** 2 / self.X.shape[1])

    def rows(self, sigma2: float) -> NDArray[Any]:
        """Return samples (n * n_copies, d), the copies of a sample in succession."""
        copies = np.repeat(self.X[:, None, :], self._n_copies, axis=1)
        if self.unit > 0 and sigma2 > 0:
            X, y = self.X[self.known], self.y[self.known]
            random = np.random.RandomState(self._seed)
            copies[self.known] = corrupted_copies(
                X, y, self.weight, self.svm, sigma2, self._n_copies, random
            )
        return copies.reshape(-1, self.X.shape[1])


# ---- corrupted copies ----------------------------------------------------------------------------
#
# Copies of samples, corrupted by noise that favours their side of the margin: equations 4 and 5.
#
# A copy of sample n has the density
#
#     p_n(x)  proportional to  N(x; x_n, sigma2 I) exp(-h_n(x)),
#     h_n(x) = C_n max_y ([y != y_n] + (w_y - w_{y_n})^T x + b_y - b_{y_n}).
#
# Let m_n be its mode, which is ``x_n - sigma2 g`` for a subgradient g of h_n at m_n. As h_n is
# convex,
#
#     p_n(x)  <=  const N(x; m_n, sigma2 I),
#
# and accepting draws x from this Gaussian with probability
# ``exp(h_n(m_n) + g^T (x - m_n) - h_n(x))`` makes copies that are independent draws from p_n. The
# probability depends only on the scores of x, so draws are accepted or rejected in the span of the
# weights.


def corrupted_copies(
    X: NDArray[Any],
    y: NDArray[Any],
    weight: _Array,
    svm: Any,
    sigma2: float,
    n_copies: int,
    random: np.random.RandomState,
) -> _Array:
    """Draw copies (n, n_copies, d) of samples from p_n.

    ValueError if a copy is not accepted in 2,000 draws, because `sigma2` is too large.
    """
    rows = X.astype(np.float64)
    n, d = rows.shape
    coef, codes = svm.class_coef_, np.searchsorted(svm.classes_, y).astype(np.int32)
    costs = hinge_costs(svm, codes, weight)
    scores = np.ascontiguousarray(rows @ coef.T)
    if svm.fit_intercept:
        scores += svm.dual_coef_.sum(axis=0)
    gram = np.ascontiguousarray(coef @ coef.T)
    start, n_threads = np.zeros_like(scores), threads.resolve(svm.n_threads)
    duals = core.hinge_envelope(
        scores,
        gram,
        codes,
        costs,
        margin=1.0,
        variance=sigma2,
        start=start,
        tolerance=_MODE_TOL,
        max_steps=_MAX_STEPS,
        n_threads=n_threads,
    ).duals
    rows += sigma2 * (duals @ coef)
    scores += sigma2 * (duals @ gram)
    # coef = along @ basis, where the rows of basis are orthonormal; so the scores of noise are
    # along @ (basis @ noise).
    lengths, turned = np.linalg.eigh(gram)
    nonzero = lengths > len(lengths) * np.finfo(float).eps * max(lengths[-1], 0.0)
    along = turned[:, nonzero] * np.sqrt(lengths[nonzero])
    basis = (turned[:, nonzero] / np.sqrt(lengths[nonzero])).T @ coef
    draws = _accepted(scores, codes, costs, duals, along, np.sqrt(sigma2), n_copies, random)
    noise = random.standard_normal((n, n_copies, d))
    noise += (draws - noise @ basis.T) @ basis
    out: _Array = rows[:, None, :] + np.sqrt(sigma2) * noise
    return out


def _accepted(
    scores: _Array,
    codes: NDArray[np.int32],
    costs: _Array,
    duals: _Array,
    along: _Array,
    sigma: float,
    n_copies: int,
    random: np.random.RandomState,
) -> _Array:
    """Return accepted standard normal draws (n, n_copies, r) in the span of the weights."""
    n, rank = len(scores), along.shape[1]
    draws = np.zeros((n * n_copies, rank))
    row = np.repeat(np.arange(n), n_copies)
    waiting = np.arange(n * n_copies)
    margins = np.ones_like(scores)
    margins[np.arange(n), codes] = 0.0

    def loss(s: _Array, at: NDArray[np.intp]) -> _Array:
        lead = (margins[at] + s).max(axis=1) - s[np.arange(len(at)), codes[at]]
        return np.asarray(costs[at] * lead)

    least = loss(scores, np.arange(n))
    for _ in range(_MAX_DRAWS):
        at = row[waiting]
        drawn = random.standard_normal((len(waiting), rank))
        moved = sigma * (drawn @ along.T)
        # duals @ coef is the negative of the subgradient.
        tangent = least[at] - np.einsum("ij,ij->i", duals[at], moved)
        accepted = np.log(random.uniform(size=len(waiting))) <= tangent - loss(
            scores[at] + moved, at
        )
        draws[waiting[accepted]] = drawn[accepted]
        waiting = waiting[~accepted]
        if not len(waiting):
            return draws.reshape(n, n_copies, rank)
    raise ValueError(
        f"sigma2: expected noise whose corrupted copies are accepted, got {show(sigma**2)} with "
        f"{len(waiting)} of {n * n_copies} copies refused {_MAX_DRAWS} times"
    )

"""The rule of pairs: no other class is likely to score higher, all of them together."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from eigenfeat._base.saved import fits
from eigenfeat.incomplete._classifiers.discriminants import Linear
from eigenfeat.incomplete._completion.tails import quadratic_tail
from eigenfeat.incomplete._rules.rule import (
    Case,
    Judgement,
    Rule,
    pair_variances,
    rivals_of,
    slope_variances,
    square_roots,
)

__all__ = ["PairwiseRule"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]


class PairwiseRule(Rule):
    """P(g(X) = c | z) >= 1 - sum_h P(f_c(X) < f_h(X) | z): exact tails of normals for linear ones.

    Under a mixture each tail is the mixture's. Quadratic differences have generalised chi-square
    tails, by `tail`.
    """

    _saved: ClassVar[dict[str, str]] = {"tail": "text"}

    def __init__(self, tail: str = "chernoff") -> None:
        self.tail = tail

    def judge(self, case: Case, tau: _Array, target: int | None) -> Judgement:
        guess = _guesses(case.scores, case.discriminants.labels, target)
        rivals = rivals_of(case.discriminants.labels, guess)
        bound = self._bounds(case, guess, rivals)
        return Judgement.by_bound(guess, bound, tau, rivals.sum(axis=1))

    def decides(self, case: Case, tau: _Array) -> Judgement:
        return super().judge(case, tau, None)

    def largest(self, case: Case, target: int | None) -> tuple[_Array, _Codes]:
        guess = _guesses(case.scores, case.discriminants.labels, target)
        return self._bounds(case, guess, rivals_of(case.discriminants.labels, guess)), guess

    def surely(self, case: Case, found: Judgement, items: _Codes) -> _Array:
        """The bounds that decided them are the largest there are."""
        return found.reliability[items]

    def _bounds(self, case: Case, guess: _Codes, rivals: NDArray[np.bool_]) -> _Array:
        total = np.zeros(len(guess))
        if case.shared is not None and case.shared.pair_variances is not None:
            variances = case.shared.pair_variances[:, guess].swapaxes(0, 1)
            tails = _normal_tails(case.known.means, variances, guess, rivals[:, None]).sum(axis=2)
            for g in range(tails.shape[1]):
                total += case.known.weights[:, g] * tails[:, g]
            return np.maximum(1.0 - total, 0.0)
        for g in range(case.known.weights.shape[1]):
            total += case.known.weights[:, g] * self._tails(case, g, guess, rivals).sum(axis=1)
        return np.maximum(1.0 - total, 0.0)

    def _tails(self, case: Case, g: int, guess: _Codes, rivals: Any) -> _Array:
        """(n, k): P(f_guess < f_h) under part g of the mixture, 0 where not compared."""
        if isinstance(case.discriminants, Linear):
            return _linear_tails(case, g, guess, rivals)
        return self._quadratic_tails(case, g, guess, rivals)

    def _quadratic_tails(self, case: Case, g: int, guess: _Codes, rivals: Any) -> _Array:
        points = case.known.means[:, g]
        scores = case.functions.scores(points)
        assert case.known.covariances is not None
        roots = square_roots(case.known.covariances[:, g])[case.known.pattern]
        out = np.zeros(scores.shape)
        for h in range(scores.shape[1]):
            rows = np.flatnonzero(rivals[:, h])
            if not len(rows):
                continue
            c, root = guess[rows], roots[rows]
            V, gradient = case.functions.difference(points, rows, c, np.full(len(rows), h))
            A = np.einsum("nia,nij,njb->nab", root, V, root, optimize=True)
            curvatures, Q = np.linalg.eigh(0.5 * (A + A.transpose(0, 2, 1)))
            slopes = np.einsum("nab,nia,ni->nb", Q, root, gradient, optimize=True)
            constant = scores[rows, c] - scores[rows, h]
            out[rows, h] = quadratic_tail(constant, curvatures, slopes, self.tail)
        return out

    def _check_loaded(self) -> None:
        fits(self.tail in ("chernoff", "davies", "saddlepoint"), "PairwiseRule.tail")


def _linear_tails(case: Case, g: int, guess: _Codes, rivals: Any) -> _Array:
    covariances, means = case.known.covariances, case.known.means[:, g]
    assert covariances is not None
    if case.by_scores:
        variance = pair_variances(covariances[:, g][case.known.pattern], guess)
        return _normal_tails(means, variance, guess, rivals)
    variance = slope_variances(case, covariances[:, g], case.known.pattern, guess)
    return _normal_tails(case.functions.scores(means), variance, guess, rivals)


def _normal_tails(scores: _Array, variance: _Array, guess: _Codes, rivals: Any) -> _Array:
    """Of (n, k) scores, or of (n, parts, k)."""
    behind = scores - scores[np.arange(len(guess)), ..., guess][..., None]
    random = variance > 0
    deviation = np.sqrt(np.where(random, variance, 1.0))
    # Nothing is random: the class with the larger score, and on a tie the guess.
    tails = np.where(random, ndtr(behind / deviation), behind > 0)
    return np.asarray(tails * rivals)


def _guesses(scores: _Array, labels: _Codes, target: int | None) -> _Codes:
    """Argmax of the scores, of those of the target if there is one."""
    if target is None:
        return np.asarray(scores.argmax(axis=1))
    return np.asarray(np.where(labels == target, scores, -np.inf).argmax(axis=1))

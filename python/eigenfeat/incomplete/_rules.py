"""Rules that decide rows: by a set about the conditional mean, or by probabilities of pairs.

A rule sees the discriminants and the conditional distribution of what they are functions of; it
answers for every row whether it would be decided at a reliability tau, and up to which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from eigenfeat._dominance import SeparableClasses, box_minimum
from eigenfeat.incomplete._discriminants import Discriminants, Linear
from eigenfeat.incomplete._rounding import of_quadratics, of_variances, share
from eigenfeat.incomplete._tails import quadratic_tail
from eigenfeat.incomplete.conditional import Conditional
from eigenfeat.incomplete.sets import ConfidenceSet
from eigenfeat.trust_region import certified_sign

__all__ = ["Case", "Judgement", "PairwiseRule", "Rule", "SetRule", "square_roots"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Case:
    """Discriminants and what is known of their arguments.

    ``by_scores``: the conditional is that of the scores themselves, of linear discriminants of
    ``n_features`` features.
    """

    discriminants: Discriminants
    known: Conditional
    n_features: int
    by_scores: bool
    n_threads: int

    def degrees(self, full_covariance: bool) -> NDArray[np.intp]:
        """(n,) rank of the covariance at most, or how many components have a variance."""
        missing = self.known.missing[self.known.pattern]
        most = np.minimum(missing, self.n_features)
        if self.by_scores:
            return most
        spread = np.asarray((self.known.variance > 0).sum(axis=1))
        return np.minimum(most, spread) if full_covariance else spread

    @cached_property
    def mean(self) -> _Array:
        """The conditional mean."""
        return self.known.mean

    @cached_property
    def functions(self) -> Discriminants:
        """The discriminants; local ones are those about the mean."""
        return self.discriminants if self.by_scores else self.discriminants.about(self.mean)

    @cached_property
    def scores(self) -> _Array:
        """(n, k), at the conditional mean."""
        return self.mean if self.by_scores else self.functions.scores(self.mean)

    @cached_property
    def magnitudes(self) -> _Array:
        """(n, k): sums of the magnitudes that the scores are added up from."""
        return np.abs(self.mean) if self.by_scores else self.functions.magnitudes(self.mean)

    @cached_property
    def separable(self) -> SeparableClasses | None:
        """What the dominance kernels take, if they do."""
        return None if self.by_scores else self.functions.separable()

    @cached_property
    def roots(self) -> _Array:
        """(q, d, d): square roots of one Gaussian's covariances, by pattern."""
        assert self.known.covariances is not None
        return square_roots(self.known.covariances[:, 0])

    def some(self, items: _Codes) -> Case:
        """Some of the rows."""
        known = self.known
        chosen = Conditional(
            known.weights[items],
            known.means[items],
            known.variances,
            known.covariances,
            known.pattern[items],
            known.missing,
        )
        return replace(self, known=chosen)


@dataclass(frozen=True, eq=False)
class Judgement:
    """For each row: the score it would be decided as, whether, how surely, and at what cost."""

    guess: _Codes
    decided: NDArray[np.bool_]
    reliability: _Array
    checks: NDArray[np.intp]
    open: NDArray[np.intp]


class Rule:
    """What decides."""

    def judge(self, case: Case, tau: _Array, target: int | None) -> Judgement:
        """Decide at tau (n,); `target` is the one class that may be decided, None any."""
        raise NotImplementedError

    def largest(self, case: Case, target: int | None) -> tuple[_Array, _Codes]:
        """The largest tau at which each row would be decided (0: never), and as which score."""
        raise NotImplementedError


def _guesses(scores: _Array, labels: _Codes, target: int | None) -> _Codes:
    """Argmax of the scores, of those of the target if there is one."""
    if target is None:
        return np.asarray(scores.argmax(axis=1))
    return np.asarray(np.where(labels == target, scores, -np.inf).argmax(axis=1))


def _rivals(labels: _Codes, guess: _Codes) -> NDArray[np.bool_]:
    """(n, k): the scores that the guess is compared with."""
    return np.asarray(labels != labels[guess][:, None])


class SetRule(Rule):
    """(5.2): one set of probability tau, on which one class dominates."""

    def __init__(self, kind: ConfidenceSet) -> None:
        self.kind = kind

    def judge(self, case: Case, tau: _Array, target: int | None) -> Judgement:
        scores = case.scores
        best = np.asarray(scores.argmax(axis=1))
        allowed = np.ones(len(best), dtype=bool)
        if target is not None:  # the set holds the mean: no other class can dominate
            allowed = case.discriminants.labels[best] == target
        radius = self.kind.radius(tau, case.degrees(self.kind.full_covariance))
        decided, checks, open_ = _over_set(case, self.kind, radius, best, allowed)
        return Judgement(best, decided, np.where(decided, tau, 0.0), checks, open_)

    def largest(self, case: Case, target: int | None) -> tuple[_Array, _Codes]:
        scores, degrees = case.scores, case.degrees(self.kind.full_covariance)
        best = np.asarray(scores.argmax(axis=1))
        allowed = np.ones(len(best), dtype=bool)
        if target is not None:
            allowed = case.discriminants.labels[best] == target
        limit = self.kind.radius(np.full(len(best), 1 - 1e-15), degrees)
        if case.separable is not None and not self.kind.full_covariance:
            radius, _ = case.separable.radii(
                case.mean,
                np.sqrt(case.known.variance),
                limit,
                self.kind.shape,
                np.full(len(best), -1, dtype=np.int32),
                case.n_threads,
            )
        else:
            radius = self._bisected(case, limit, best)
        tau = self.kind.reliability(np.maximum(radius, 1e-150), degrees)
        tau = np.where(radius >= limit, 1.0, tau)
        return np.where(allowed & ((radius > 0) | (degrees == 0)), tau, 0.0), best

    def _bisected(self, case: Case, limit: _Array, best: _Codes) -> _Array:
        """Largest radii at which the guess dominates, from below."""

        def holds(radius: _Array) -> NDArray[np.bool_]:
            everyone = np.ones(len(best), dtype=bool)
            return _over_set(case, self.kind, radius, best, everyone)[0]

        below, above = np.zeros_like(limit), limit.copy()
        trial = np.minimum(limit, 1.0)
        for step in range(80):
            good = holds(trial)
            below, above = np.where(good, trial, below), np.where(good, above, trial)
            if step < 20:  # in octaves until there is something on both sides
                outward = np.where(good, np.minimum(4 * trial, above), trial / 4)
                trial = np.where((below > 0) & (above < limit), 0.5 * (below + above), outward)
            else:
                trial = 0.5 * (below + above)
            if np.all((above - below <= 1e-6 * below) | (above < 1e-12)):
                break
        return np.where(holds(limit), limit, below)


def _over_set(
    case: Case, kind: ConfidenceSet, radius: _Array, best: _Codes, allowed: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]:
    """Whether the guesses dominate over sets of the radii; checks, and those left open."""
    if isinstance(case.functions, Linear) and kind.full_covariance:
        return _linear_over_ellipsoid(case, radius, best, allowed)
    if case.separable is None or kind.full_covariance:
        return _pair_by_pair(case, kind, radius, best, allowed)
    widths = np.sqrt(case.known.variance)
    found = case.separable.dominating(
        case.mean, widths, radius, kind.shape, "guess", case.n_threads
    )
    winning = (found.winners >= 0) & allowed
    return winning, found.checks.astype(np.intp), found.open.astype(np.intp)


def _linear_over_ellipsoid(
    case: Case, radius: _Array, best: _Codes, allowed: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]:
    """Proposition 2: (f_c - f_h)(m) against radius |R^(1/2) (beta_c - beta_h)|."""
    scores = case.scores
    if case.by_scores:
        variance = _pair_variances(case.known.covariance, best)
    else:
        variance = _slope_variances(case, case.known.covariance, np.arange(len(best)), best)
    spread = np.sqrt(variance)
    margin = scores[np.arange(len(best)), best][:, None] - scores
    size = case.magnitudes + case.magnitudes[np.arange(len(best)), best][:, None]
    fall = radius[:, None] * spread
    least, reach = margin - fall, share(case.n_features) * (size + fall)
    rivals = _rivals(case.discriminants.labels, best)
    holds, near = ~rivals | (least >= reach), rivals & (np.abs(least) < reach)
    checks = _checks_until_failure(holds, rivals, scores)
    return holds.all(axis=1) & allowed, checks, near.sum(axis=1)


def _checks_until_failure(holds: Any, rivals: Any, scores: _Array) -> NDArray[np.intp]:
    """How many checks a sequence takes that begins with the nearest rival and ends on a failure."""
    order = np.argsort(np.where(rivals, -scores, np.inf), axis=1, kind="stable")
    failing = ~np.take_along_axis(holds, order, axis=1)
    first = np.where(failing.any(axis=1), failing.argmax(axis=1) + 1, rivals.sum(axis=1))
    return np.asarray(first, dtype=np.intp)


def _pair_variances(covariance: _Array, best: _Codes) -> _Array:
    """(n, k): variances of s_best - s_h, with what rounding may have taken."""
    rows = np.arange(len(best))
    diagonal = np.einsum("nkk->nk", covariance)
    own = diagonal[rows, best][:, None]
    variance = own + diagonal - 2.0 * covariance[rows, best]
    rounding = 4 * covariance.shape[1] * EPS * (own + diagonal)
    same = np.arange(covariance.shape[1]) == best[:, None]
    return np.where(same, 0.0, np.maximum(variance, 0) + rounding)


def _slope_variances(case: Case, covariances: _Array, pattern: _Codes, guess: _Codes) -> _Array:
    """(n, k): the same from the slopes, where there are too many scores for their covariances."""
    linear = case.functions
    assert isinstance(linear, Linear)
    variance = np.empty((len(guess), linear.count))
    for i, at in enumerate(pattern):
        apart = linear.slopes - linear.slopes[guess[i]]
        variance[i] = np.einsum("ki,ki->k", np.einsum("ki,ij->kj", apart, covariances[at]), apart)
        variance[i] = np.maximum(variance[i], 0.0) + of_variances(apart, covariances[at])
    return variance


def _pair_by_pair(
    case: Case, kind: ConfidenceSet, radius: _Array, best: _Codes, allowed: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]:
    """Differences that are not separable: in rounds of checks, for the rows that hold so far."""
    n, k = case.scores.shape
    rivals = _rivals(case.discriminants.labels, best)
    order = np.argsort(np.where(rivals, -case.scores, np.inf), axis=1, kind="stable")
    alive, checks = allowed.copy(), np.zeros(n, dtype=np.intp)
    open_ = np.zeros(n, dtype=np.intp)
    for step in range(k):
        rows = np.flatnonzero(alive & (rivals.sum(axis=1) > step))
        if not len(rows):
            break
        sign = _signs(case, kind, radius[rows], rows, best[rows], order[rows, step])
        checks[rows] += 1
        open_[rows] += sign == 0
        alive[rows] = sign > 0
    return alive, checks, open_


def _signs(
    case: Case, kind: ConfidenceSet, radius: _Array, rows: _Codes, c: _Codes, h: _Codes
) -> NDArray[np.int32]:
    """Signs of the minima of f_c - f_h over the sets of some rows."""
    constant = case.scores[rows, c] - case.scores[rows, h]
    # What evaluating two scores and a difference may have lost.
    constant -= share(case.n_features) * (case.magnitudes[rows, c] + case.magnitudes[rows, h])
    V, g = case.functions.difference(case.mean, rows, c, h)
    sizes = case.functions.difference_sizes(case.mean, rows, c, h)
    if kind.shape == "box":
        return _box_signs(case, V, g, sizes, constant, radius, rows)
    root = _roots(case, kind, rows)
    A = np.einsum("nia,nij,njb->nab", root, V, root, optimize=True)
    A = 0.5 * (A + A.transpose(0, 2, 1))
    slopes = np.einsum("nia,ni->na", root, g)
    reach = np.linalg.norm(root, axis=(1, 2)) * radius
    constant -= of_quadratics(*sizes, reach, case.n_features)
    threads = case.n_threads or None
    return np.asarray(certified_sign(A, slopes, constant, radius, n_threads=threads).sign)


def _roots(case: Case, kind: ConfidenceSet, rows: _Codes) -> _Array:
    """(n, d, d): x = m + root u."""
    if not kind.full_covariance:
        return np.sqrt(case.known.variance[rows])[:, :, None] * np.eye(case.n_features)
    if case.known.means.shape[1] == 1 and case.known.covariances is not None:
        return case.roots[case.known.pattern[rows]]
    return square_roots(case.known.covariance[rows])


def square_roots(covariances: _Array) -> _Array:
    """S with S S^T = R, of a stack."""
    values, vectors = np.linalg.eigh(covariances)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])


def _box_signs(
    case: Case,
    V: _Array,
    g: _Array,
    sizes: tuple[_Array, _Array],
    constant: _Array,
    radius: _Array,
    rows: _Codes,
) -> NDArray[np.int32]:
    """In the eigenvectors of V, with a box there (Parrish 2012, (5.15), (5.16))."""
    values, Q = np.linalg.eigh(V)
    covariance = case.known.covariance[rows]
    variance = np.einsum("nia,nij,nja->na", Q, covariance, Q, optimize=True)
    widths = radius[:, None] * np.sqrt(np.maximum(variance, 0.0))
    slopes = np.einsum("nia,ni->na", Q, g)
    least = constant + box_minimum(values, slopes, widths, case.n_threads)
    # Eigenvalues and slopes along eigenvectors are off by shares of |V| and |g|.
    slack = of_quadratics(*sizes, np.linalg.norm(widths, axis=1), case.n_features)
    return np.where(least >= slack, 1, np.where(least < -slack, -1, 0)).astype(np.int32)


class PairwiseRule(Rule):
    """P(g(X) = c | z) >= 1 - sum_h P(f_c(X) < f_h(X) | z): exact tails of normals for linear ones.

    Under a mixture each tail is the mixture's. Quadratic differences have generalised chi-square
    tails, by `tail`.
    """

    def __init__(self, tail: str = "chernoff") -> None:
        self.tail = tail

    def judge(self, case: Case, tau: _Array, target: int | None) -> Judgement:
        bound, guess = self.largest(case, target)
        rivals = _rivals(case.discriminants.labels, guess).sum(axis=1)
        none = np.zeros(len(guess), dtype=np.intp)
        return Judgement(guess, bound >= tau, bound, rivals, none)

    def largest(self, case: Case, target: int | None) -> tuple[_Array, _Codes]:
        guess = _guesses(case.scores, case.discriminants.labels, target)
        rivals = _rivals(case.discriminants.labels, guess)
        total = np.zeros(len(guess))
        for g in range(case.known.weights.shape[1]):
            total += case.known.weights[:, g] * self._tails(case, g, guess, rivals).sum(axis=1)
        return np.maximum(1.0 - total, 0.0), guess

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


def _linear_tails(case: Case, g: int, guess: _Codes, rivals: Any) -> _Array:
    covariances, means = case.known.covariances, case.known.means[:, g]
    assert covariances is not None
    if case.by_scores:
        variance = _pair_variances(covariances[:, g][case.known.pattern], guess)
        return _normal_tails(means, variance, guess, rivals)
    variance = _slope_variances(case, covariances[:, g], case.known.pattern, guess)
    return _normal_tails(case.functions.scores(means), variance, guess, rivals)


def _normal_tails(scores: _Array, variance: _Array, guess: _Codes, rivals: Any) -> _Array:
    margin = scores[np.arange(len(guess)), guess][:, None] - scores
    with np.errstate(divide="ignore", invalid="ignore"):
        tails = ndtr(-margin / np.sqrt(variance))
    # Nothing is random: the class with the larger score, and on a tie the guess.
    tails = np.where(variance > 0, tails, (margin < 0).astype(float))
    return np.where(rivals, tails, 0.0)

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
from eigenfeat.incomplete._discriminants import Discriminants, Linear, Quadratic
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

    def degrees(self, kind: ConfidenceSet) -> NDArray[np.intp]:
        """(n,) what the kind's radius goes by.

        A bound of the covariance's rank, or how many components have a variance; for boxes in axes
        of each pair's own, as many for each pair.
        """
        most = np.minimum(self.known.missing[self.known.pattern], self.n_features)
        if self.by_scores:  # which are relative to each other
            return np.minimum(most, self.discriminants.count - 1)
        spread = np.asarray((self.known.variance > 0).sum(axis=1))
        if kind.shape == "box" and isinstance(self.discriminants, Quadratic):
            return spread * (self.discriminants.count - 1)
        return np.minimum(most, spread) if kind.full_covariance else spread

    def radius(self, kind: ConfidenceSet, tau: _Array) -> _Array:
        """(n,) of sets about the mean of a single Gaussian, or of any distribution."""
        known = self.known
        return kind.radius(tau, self.degrees(kind), known.spectra, known.pattern)

    def reliability(self, kind: ConfidenceSet, radius: _Array) -> _Array:
        """(n,) its inverse."""
        known = self.known
        return kind.reliability(radius, self.degrees(kind), known.spectra, known.pattern)

    def part(self, g: int, rows: _Codes) -> Case:
        """Some of the rows as if they were of part g of the mixture; the same functions."""
        if self.by_scores:
            return replace(self, known=self.known.part(g, rows))
        functions = self.functions.some(rows)
        return replace(self, known=self.known.part(g, rows), discriminants=functions)

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
            known.spectra,
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
    """(5.2): one set of probability tau, on which one class dominates.

    Under a mixture the set is the union of one set for each part, of probabilities t_g; by the law
    of total probability that of the union is at least sum_g p(g|z) t_g. Sets for any distribution
    need no such thing.
    """

    def __init__(self, kind: ConfidenceSet) -> None:
        self.kind = kind

    def judge(self, case: Case, tau: _Array, target: int | None) -> Judgement:
        if self._in_parts(case):
            return self._judge_parts(case, tau, target)
        best, allowed = self._best(case, target)
        radius = case.radius(self.kind, tau)
        decided, checks, open_ = _over_set(case, self.kind, radius, best, allowed)
        return Judgement(best, decided, np.where(decided, tau, 0.0), checks, open_)

    def largest(self, case: Case, target: int | None) -> tuple[_Array, _Codes]:
        if not self._in_parts(case):
            best, allowed = self._best(case, target)
            return np.where(allowed, self._largest(case, best), 0.0), best
        votes = _PartVotes(case)
        total = self._of_parts(case, votes, np.arange(len(votes.best)))
        return np.where(votes.allowed(target), total, 0.0), votes.best

    def _in_parts(self, case: Case) -> bool:
        return case.known.weights.shape[1] > 1 and not self.kind.any_distribution

    def _best(self, case: Case, target: int | None) -> tuple[_Codes, NDArray[np.bool_]]:
        """Guesses, and which of them may be decided."""
        best = np.asarray(case.scores.argmax(axis=1))
        if target is None:
            return best, np.ones(len(best), dtype=bool)
        # The set holds the mean: no other class can dominate.
        return best, case.discriminants.labels[best] == target

    def _largest(self, case: Case, best: _Codes) -> _Array:
        degrees = case.degrees(self.kind)
        limit = case.radius(self.kind, np.full(len(best), 1 - 1e-15))
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
        tau = case.reliability(self.kind, np.maximum(radius, 1e-150))
        tau = np.where(radius >= limit, 1.0, tau)
        return np.where((radius > 0) | (degrees == 0), tau, 0.0)

    def _judge_parts(self, case: Case, tau: _Array, target: int | None) -> Judgement:
        """Yes where all parts that count hold at one level, no where one fails that must hold.

        What is left open by these takes the largest probability of each part.
        """
        votes = _PartVotes(case)
        n, parts = votes.weights.shape
        possible = votes.allowed(target) & (votes.weights.sum(axis=1) >= tau)
        # Parts of next to no weight, together 1 per cent of what may fail, are not looked at.
        order = np.argsort(votes.weights, axis=1)
        small = np.cumsum(np.take_along_axis(votes.weights, order, axis=1), axis=1)
        dropped = np.zeros((n, parts), dtype=bool)
        np.put_along_axis(dropped, order, small <= 0.01 * (1 - tau)[:, None], axis=1)
        weights = np.where(dropped, 0.0, votes.weights)
        total = weights.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            common = tau / total
            least = (tau[:, None] - (votes.weights.sum(axis=1)[:, None] - weights)) / weights
        common = np.where(possible & (common < 1), common, 0.5)
        good = possible & (tau < total)
        bad = ~possible
        checks, open_ = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)
        for g in range(parts):
            for level, yes in ((common, True), (least[:, g], False)):
                rows = np.flatnonzero((weights[:, g] > 0) & (level > 0) & (level < 1) & ~bad)
                rows = rows[good[rows]] if yes else rows[~good[rows]]
                if not len(rows):
                    continue
                part = case.part(g, rows)
                radius = part.radius(self.kind, _rounded(level[rows], up=yes))
                everyone = np.ones(len(rows), dtype=bool)
                best = votes.of_part[rows, g]
                holds, some, unsure = _over_set(part, self.kind, radius, best, everyone)
                checks[rows] += some
                open_[rows] += unsure
                (good if yes else bad)[rows] = holds if yes else ~holds
        left = np.flatnonzero(~good & ~bad)
        good[left] = self._of_parts(case, votes, left) >= tau[left]
        return Judgement(votes.best, good, np.where(good, tau, 0.0), checks, open_)

    def _of_parts(self, case: Case, votes: _PartVotes, rows: _Codes) -> _Array:
        """sum_g p(g|z) t_g with the largest t_g at which the guess dominates."""
        total = np.zeros(len(rows))
        for g in range(votes.weights.shape[1]):
            some = np.flatnonzero(votes.weights[rows, g] > 0)
            if len(some):
                part = case.part(g, rows[some])
                found = self._largest(part, votes.of_part[rows[some], g])
                total[some] += votes.weights[rows[some], g] * found
        return np.minimum(total, 1.0)

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


def _rounded(level: _Array, up: bool) -> _Array:
    """Levels of which there are few different ones: steps of 5 per cent of what is missing to 1."""
    steps = np.log1p(-level) / np.log(1.05)
    return np.asarray(1 - 1.05 ** (np.floor(steps) if up else np.minimum(np.ceil(steps), -1)))


class _PartVotes:
    """What each part of a mixture would be decided as by its mean, and the class most of them are.

    Attributes
    ----------
    of_part : (n, parts) array
        Scores that are largest at the parts' means.
    best : (n,) array
        A score of the class with most weight.
    weights : (n, parts) array
        p(g|z) of the parts of that class, 0 of others.
    """

    def __init__(self, case: Case) -> None:
        known, labels = case.known, case.discriminants.labels
        self.labels = labels
        columns = [
            known.means[:, g] if case.by_scores else case.functions.scores(known.means[:, g])
            for g in range(known.weights.shape[1])
        ]
        self.of_part = np.stack([scores.argmax(axis=1) for scores in columns], axis=1)
        classes = labels[self.of_part]
        rows = np.arange(len(classes))
        votes = np.zeros((len(classes), int(labels.max()) + 1))
        for g in range(classes.shape[1]):
            votes[rows, classes[:, g]] += known.weights[:, g]
        same = classes == votes.argmax(axis=1)[:, None]
        self.best = self.of_part[rows, np.where(same, known.weights, -1.0).argmax(axis=1)]
        self.weights = np.where(same, known.weights, 0.0)

    def allowed(self, target: int | None) -> NDArray[np.bool_]:
        """Which rows may be decided as a target."""
        if target is None:
            return np.ones(len(self.best), dtype=bool)
        return np.asarray(self.labels[self.best] == target)


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
    size = np.abs(scores).max(axis=1, keepdims=True) + radius[:, None] * spread
    least = margin - radius[:, None] * spread
    rivals = _rivals(case.discriminants.labels, best)
    holds = ~rivals | (least >= 64 * EPS * size)
    open_ = (rivals & (np.abs(least) < 64 * EPS * size)).sum(axis=1)
    return holds.all(axis=1) & allowed, _checks_until_failure(holds, rivals, scores), open_


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
    return np.maximum(variance, 0.0)


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
    constant -= 64 * EPS * (np.abs(case.scores[rows, c]) + np.abs(case.scores[rows, h]))
    V, g = case.functions.difference(case.mean, rows, c, h)
    if kind.shape == "box":
        return _box_signs(case, V, g, constant, radius, rows)
    root = _roots(case, kind, rows)
    A = np.einsum("nia,nij,njb->nab", root, V, root, optimize=True)
    A = 0.5 * (A + A.transpose(0, 2, 1))
    slopes = np.einsum("nia,ni->na", root, g)
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
    case: Case, V: _Array, g: _Array, constant: _Array, radius: _Array, rows: _Codes
) -> NDArray[np.int32]:
    """In the eigenvectors of V, with a box there (Parrish 2012, (5.15), (5.16))."""
    # Axes of what varies alone: what is known must not be mixed with it.
    varies = case.known.variance[rows] > 0
    every = np.arange(V.shape[1])
    V = np.where(varies[:, :, None] & varies[:, None], V, 0.0)
    size = np.abs(V).sum(axis=2).max(axis=1) + 1.0
    V[:, every, every] += np.where(varies, 0.0, 4 * size[:, None])
    values, Q = np.linalg.eigh(V)
    covariance = case.known.covariance[rows]
    variance = np.einsum("nia,nij,nja->na", Q, covariance, Q, optimize=True)
    widths = radius[:, None] * np.sqrt(np.maximum(variance, 0.0))
    slopes = np.einsum("nia,ni->na", Q, g)
    least = constant + box_minimum(values, slopes, widths, case.n_threads)
    size = (np.abs(values) * widths**2 + 2 * np.abs(slopes) * widths).sum(axis=1)
    slack = 64 * case.n_features * EPS * size
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

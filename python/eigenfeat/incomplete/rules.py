"""Rules that decide a row by its conditional distribution: the pairwise rule and rules by sets.

A rule receives a `RuleInput`, the discriminants and the conditional distribution of their
arguments, and returns for every row a class, whether it is decided at a reliability tau, and the
largest such tau. `sampling` has the rule that draws completions, `correction` the one that also
waits for what held-out samples support.

Rounding must not decide a row. With u = eps / 2 a sum of m products, in any order, is off by at
most about (m + 2) u times the sum of the products' magnitudes (Higham, Accuracy and Stability of
Numerical Algorithms, 2nd ed., section 3.1). Scores, slopes and congruences S^T V S are sums in one
or two stages of d products each; `rounding_share` is four times what two stages need.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtr

from eigenfeat._base.core import core
from eigenfeat._base.lazy import cached_property
from eigenfeat._base.saved import Saved
from eigenfeat.incomplete.discriminants import Discriminants, Linear, Quadratic
from eigenfeat.incomplete.mixture import Conditional
from eigenfeat.incomplete.quadratic_tails import quadratic_tail
from eigenfeat.incomplete.sets import ConfidenceSet
from eigenfeat.regions.dominance import SeparableClasses, box_minimum
from eigenfeat.regions.trust_region import certified_sign

__all__ = [
    "PairwiseRule",
    "Rule",
    "RuleInput",
    "RuleOutput",
    "SetRule",
    "Shared",
    "binomial_share",
    "first_scores",
    "lower_bound",
    "lower_bounds",
    "pair_variances",
    "square_roots",
]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

EPS = float(np.finfo(float).eps)
LARGEST = 1e300  # an error past it is as good as infinite
MAX_RADII = 256  # cached by reliability

_ITEMS_A_GROUP = 3  # from here on one eigendecomposition is less work than a reduction for each
_LEVELS = 128  # of radii that are tried at a time


@dataclass(frozen=True, eq=False)
class Shared:
    """What the inputs of all rows with the same known entries have in common, computed once.

    Attributes
    ----------
    pair_variances : (parts, k, k) array or None
        Variances of differences of scores.
    radii : dict
        Of a single Gaussian's sets, by kind and tau.
    """

    pair_variances: _Array | None = None
    radii: dict[tuple[ConfidenceSet, float], _Array] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class RuleInput:
    """Discriminants and the conditional distribution of their arguments.

    Attributes
    ----------
    discriminants : Discriminants
        Of `n_features` features.
    conditional : Conditional
        Of the features; with `by_scores` of the scores of linear discriminants themselves.
    n_features : int
    by_scores : bool
    n_threads : int
    shared : Shared or None
    """

    discriminants: Discriminants
    conditional: Conditional
    n_features: int
    by_scores: bool
    n_threads: int
    shared: Shared | None = None

    def degrees(self, kind: ConfidenceSet) -> NDArray[np.intp]:
        """(n,): the degrees of freedom of a set's radius, at most d.

        They are the least that the theorems need, which makes sets smaller than those of the thesis
        (d degrees) and valid all the same.

        - Sets of the whole covariance: its rank, at most the number of missing entries, of
          features, and of components with a variance. For linear discriminants the set is one of
          differences of scores: only these decide, and k scores have k - 1 of them. Chebyshev's and
          the chi-square inequality hold for any affine image of the row, here of dimension
          min(missing, classes - 1).
        - Sets of each variance: the number of components with a variance.
        - Boxes of quadratic discriminants have axes of each pair's own, the eigenvectors of its
          difference. All (classes - 1) q intervals, of the best class against each other one, must
          hold at once: Royen's inequality takes them together, as Sidak's does q in one box.
        """
        most = np.minimum(self.conditional.missing[self.conditional.pattern], self.n_features)
        if self.by_scores:
            return np.minimum(most, self.discriminants.count - 1)
        spread = np.asarray((self.conditional.variance > 0).sum(axis=1))
        if kind.shape == "box" and self.discriminants.pair_axes:
            return spread * (self.discriminants.count - 1)
        return np.minimum(most, spread) if kind.full_covariance else spread

    def radius(self, kind: ConfidenceSet, tau: _Array) -> _Array:
        """(n,): radii of sets about the mean of a single Gaussian, or of any distribution."""
        if self.shared is None or len(tau) > 1 or self.conditional.means.shape[1] > 1:
            return self._radius(kind, tau)
        cache, key = self.shared.radii, (kind, float(tau[0]))
        radius = cache.get(key)
        if radius is None:
            radius = self._radius(kind, tau)
            if len(cache) >= MAX_RADII:
                cache.clear()
            cache[key] = radius
        return radius

    def _radius(self, kind: ConfidenceSet, tau: _Array) -> _Array:
        spectra, pattern = self.conditional.spectra, self.conditional.pattern
        return kind.radius(tau, self.degrees(kind), spectra, pattern)

    def reliability(self, kind: ConfidenceSet, radius: _Array) -> _Array:
        """(n,): the probabilities of sets with these radii."""
        spectra, pattern = self.conditional.spectra, self.conditional.pattern
        return kind.reliability(radius, self.degrees(kind), spectra, pattern)

    def part(self, g: int, rows: _Codes) -> RuleInput:
        """Some of the rows as if they were of part g of the mixture; the same functions."""
        if self.by_scores:
            return replace(self, conditional=self.conditional.part(g, rows), shared=None)
        return replace(
            self,
            conditional=self.conditional.part(g, rows),
            discriminants=self.functions.take(rows),
            shared=None,
        )

    @cached_property
    def mean(self) -> _Array:
        """The conditional mean."""
        return self.conditional.mean

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
    def pulls(self) -> _Array:
        """(n, k, d), of quadratic discriminants: minus their gradients at the conditional mean."""
        return cast("Quadratic", self.functions).pulls(self.mean)

    @cached_property
    def separable(self) -> SeparableClasses | None:
        """What the dominance kernels take, if they do."""
        return None if self.by_scores else self.functions.separable()

    @cached_property
    def roots(self) -> _Array:
        """(q, d, d): square roots of one Gaussian's covariances, by pattern."""
        assert self.conditional.covariances is not None
        return square_roots(self.conditional.covariances[:, 0])

    def take(self, items: _Codes) -> RuleInput:
        """Some of the rows."""
        return replace(self, conditional=self.conditional.take(items))


@dataclass(frozen=True, eq=False)
class RuleOutput:
    """What a rule answers for n rows.

    Attributes
    ----------
    best : (n,) array of int
        Number of the score that the row is, or would be, decided as.
    decided : (n,) array of bool
    reliability : (n,) array
        Lower bound of the probability of that class; 0 where a rule gives none.
    checks, undecided_checks : (n,) arrays of int
        As in `Decisions`.
    """

    best: _Codes
    decided: NDArray[np.bool_]
    reliability: _Array
    checks: NDArray[np.intp]
    undecided_checks: NDArray[np.intp]

    @classmethod
    def by_bound(
        cls, best: _Codes, bound: _Array, tau: _Array, checks: _Codes | None = None
    ) -> RuleOutput:
        """Rows are decided where a bound reaches tau; no sign is uncertain."""
        none = np.zeros(len(best), dtype=np.intp)
        return cls(best, bound >= tau, bound, none if checks is None else checks, none)


class Rule(Saved):
    """Base class of rules.

    Attributes
    ----------
    cost : int
        How many complete rows are classified for each that is evaluated.
    """

    _saved: ClassVar[dict[str, str]] = {}

    cost = 1

    def evaluate(self, rule_input: RuleInput, tau: _Array, target: int | None) -> RuleOutput:
        """Decide at tau (n,); `target` is the one class that may be decided, None any."""
        bound, best = self.largest_tau(rule_input, target)
        return RuleOutput.by_bound(best, bound, tau)

    def largest_tau(self, rule_input: RuleInput, target: int | None) -> tuple[_Array, _Codes]:
        """The largest tau at which each row would be decided (0: never), and as which score."""
        raise NotImplementedError

    def best_scores(self, rule_input: RuleInput) -> _Codes:
        """(n,): the scores that rows are, or would be, decided as, at every tau."""
        raise NotImplementedError

    def decide(self, rule_input: RuleInput, tau: _Array) -> RuleOutput:
        """`evaluate` without classes of rows that wait and without counts, where that is faster."""
        return self.evaluate(rule_input, tau, None)

    def certified_tau(self, rule_input: RuleInput, output: RuleOutput, items: _Codes) -> _Array:
        """The largest tau at which some of the rows that `decide` decided are certified."""
        largest = self.largest_tau(rule_input.take(items), None)[0]
        return np.maximum(largest, output.reliability[items])

    def evaluate_grid(
        self, rule_input: RuleInput, grid: _Array
    ) -> Iterator[tuple[NDArray[np.bool_], _Codes]]:
        """Which rows are decided at each tau of an ascending grid, and as which scores."""
        largest, best = self.largest_tau(rule_input, None)
        for tau in grid:
            yield largest >= tau, best

    def least_known(self, tau: float) -> int:
        """No row is decided at tau with fewer known entries."""
        return 0


def rivals_of(labels: _Codes, best: _Codes) -> NDArray[np.bool_]:
    """(n, k): the scores of other classes than the best one's."""
    return np.asarray(labels != labels[best][:, None])


def first_scores(rule_input: RuleInput, classes: _Codes) -> _Codes:
    """The first score of each class."""
    first = np.zeros(int(classes.max(initial=0)) + 1, dtype=np.intp)
    for g in np.unique(classes):
        first[g] = np.argmax(rule_input.discriminants.labels == g)
    return first[classes]


def pair_variances(covariance: _Array, best: _Codes) -> _Array:
    """(n, k): variances of s_best - s_h, with what rounding may have taken."""
    rows = np.arange(len(best))
    diagonal = np.einsum("nkk->nk", covariance)
    own = diagonal[rows, best][:, None]
    variance = own + diagonal - 2.0 * covariance[rows, best]
    rounding = 4 * covariance.shape[1] * EPS * (own + diagonal)
    same = np.arange(covariance.shape[1]) == best[:, None]
    return np.where(same, 0.0, np.maximum(variance, 0) + rounding)


def slope_variances(
    rule_input: RuleInput, covariances: _Array, pattern: _Codes, best: _Codes
) -> _Array:
    """(n, k): the same from the slopes, where there are too many scores for their covariances."""
    linear = cast("Linear", rule_input.functions)
    variance = np.empty((len(best), linear.count))
    for i, at in enumerate(pattern):
        apart = linear.slopes - linear.slopes[best[i]]
        variance[i] = np.einsum("ki,ki->k", np.einsum("ki,ij->kj", apart, covariances[at]), apart)
        variance[i] = np.maximum(variance[i], 0.0) + rounding_of_variances(apart, covariances[at])
    return variance


def square_roots(covariances: _Array) -> _Array:
    """S with S S^T = R, of a stack."""
    values, vectors = np.linalg.eigh(covariances)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])


# ---- the pairwise rule


class PairwiseRule(Rule):
    """P(g(X) = c | z) >= 1 - sum_h P(f_c(X) < f_h(X) | z), Boole's inequality.

    Differences of linear discriminants have exact normal tails, and those of quadratic ones tails
    of generalised chi-squares by Davies's inversion. Under a mixture each tail is the mixture's.

    The right choice for linear discriminants: on 21 sets the earliest rule at an agreement of .9.
    Where the completion's model is right it decides most rows with quadratic ones, too.
    """

    def evaluate(self, rule_input: RuleInput, tau: _Array, target: int | None) -> RuleOutput:
        """As `Rule.evaluate`."""
        best = _best_scores(rule_input.scores, rule_input.discriminants.labels, target)
        rivals = rivals_of(rule_input.discriminants.labels, best)
        bound = self._bounds(rule_input, best, rivals)
        return RuleOutput.by_bound(best, bound, tau, rivals.sum(axis=1))

    def decide(self, rule_input: RuleInput, tau: _Array) -> RuleOutput:
        """As `Rule.decide`."""
        return super().evaluate(rule_input, tau, None)

    def largest_tau(self, rule_input: RuleInput, target: int | None) -> tuple[_Array, _Codes]:
        """As `Rule.largest_tau`."""
        labels = rule_input.discriminants.labels
        best = _best_scores(rule_input.scores, labels, target)
        return self._bounds(rule_input, best, rivals_of(labels, best)), best

    def best_scores(self, rule_input: RuleInput) -> _Codes:
        """As `Rule.best_scores`."""
        return _best_scores(rule_input.scores, rule_input.discriminants.labels, None)

    def certified_tau(self, rule_input: RuleInput, output: RuleOutput, items: _Codes) -> _Array:
        """The bounds that decided them are the largest there are."""
        return output.reliability[items]

    def _bounds(self, rule_input: RuleInput, best: _Codes, rivals: NDArray[np.bool_]) -> _Array:
        total, weights = np.zeros(len(best)), rule_input.conditional.weights
        shared = rule_input.shared
        if shared is not None and shared.pair_variances is not None:
            variances = shared.pair_variances[:, best].swapaxes(0, 1)
            means = rule_input.conditional.means
            tails = _normal_tails(means, variances, best, rivals[:, None]).sum(axis=2)
            for g in range(tails.shape[1]):
                total += weights[:, g] * tails[:, g]
            return np.maximum(1.0 - total, 0.0)
        for g in range(weights.shape[1]):
            total += weights[:, g] * self._tails(rule_input, g, best, rivals).sum(axis=1)
        return np.maximum(1.0 - total, 0.0)

    def _tails(self, rule_input: RuleInput, g: int, best: _Codes, rivals: Any) -> _Array:
        """(n, k): P(f_guess < f_h) under part g of the mixture, 0 where not compared."""
        if isinstance(rule_input.discriminants, Linear):
            return _linear_tails(rule_input, g, best, rivals)
        return self._quadratic_tails(rule_input, g, best, rivals)

    def _quadratic_tails(self, rule_input: RuleInput, g: int, best: _Codes, rivals: Any) -> _Array:
        points = rule_input.conditional.means[:, g]
        scores = rule_input.functions.scores(points)
        assert rule_input.conditional.covariances is not None
        roots = square_roots(rule_input.conditional.covariances[:, g])[
            rule_input.conditional.pattern
        ]
        out = np.zeros(scores.shape)
        for h in range(scores.shape[1]):
            rows = np.flatnonzero(rivals[:, h])
            if not len(rows):
                continue
            c, root = best[rows], roots[rows]
            V, gradient = rule_input.functions.difference(points, rows, c, np.full(len(rows), h))
            A = np.einsum("nia,nij,njb->nab", root, V, root, optimize=True)
            curvatures, Q = np.linalg.eigh(0.5 * (A + A.transpose(0, 2, 1)))
            slopes = np.einsum("nab,nia,ni->nb", Q, root, gradient, optimize=True)
            constant = scores[rows, c] - scores[rows, h]
            out[rows, h] = quadratic_tail(constant, curvatures, slopes)
        return out


def _linear_tails(rule_input: RuleInput, g: int, best: _Codes, rivals: Any) -> _Array:
    covariances, means = rule_input.conditional.covariances, rule_input.conditional.means[:, g]
    assert covariances is not None
    if rule_input.by_scores:
        variance = pair_variances(covariances[:, g][rule_input.conditional.pattern], best)
        return _normal_tails(means, variance, best, rivals)
    variance = slope_variances(rule_input, covariances[:, g], rule_input.conditional.pattern, best)
    return _normal_tails(rule_input.functions.scores(means), variance, best, rivals)


def _normal_tails(scores: _Array, variance: _Array, best: _Codes, rivals: Any) -> _Array:
    """Of (n, k) scores, or of (n, parts, k)."""
    behind = scores - scores[np.arange(len(best)), ..., best][..., None]
    random = variance > 0
    deviation = np.sqrt(np.where(random, variance, 1.0))
    # Nothing is random: the class with the larger score, and on a tie the best one.
    tails = np.where(random, ndtr(behind / deviation), behind > 0)
    return np.asarray(tails * rivals)


def _best_scores(scores: _Array, labels: _Codes, target: int | None) -> _Codes:
    """Argmax of the scores, of those of the target if there is one."""
    if target is None:
        return np.asarray(scores.argmax(axis=1))
    return np.asarray(np.where(labels == target, scores, -np.inf).argmax(axis=1))


# ---- rules by sets


class SetRule(Rule):
    """(5.2): one set of probability tau, on which one class dominates.

    Under a mixture the set is the union of one set for each part, of probabilities t_g; by the law
    of total probability that of the union is at least sum_g p(g|z) t_g. Sets for any distribution
    need no such thing.
    """

    _saved: ClassVar[dict[str, str]] = {
        "kind": "of ChebyshevSet MahalanobisSet QuadraticSet BoxSet"
    }

    def __init__(self, kind: ConfidenceSet) -> None:
        self.kind = kind

    def evaluate(self, rule_input: RuleInput, tau: _Array, target: int | None) -> RuleOutput:
        """As `Rule.evaluate`."""
        return self._evaluate(rule_input, tau, target, counted=True)

    def decide(self, rule_input: RuleInput, tau: _Array) -> RuleOutput:
        """As `Rule.decide`."""
        return self._evaluate(rule_input, tau, None, counted=False)

    def _evaluate(
        self, rule_input: RuleInput, tau: _Array, target: int | None, counted: bool
    ) -> RuleOutput:
        if self._in_parts(rule_input):
            return self._evaluate_parts(rule_input, tau, target)
        best, allowed = self._best(rule_input, target)
        radius = rule_input.radius(self.kind, tau)
        decided, checks, undecided = dominates_on_set(
            rule_input, self.kind, radius, best, allowed, counted
        )
        return RuleOutput(best, decided, np.where(decided, tau, 0.0), checks, undecided)

    def largest_tau(self, rule_input: RuleInput, target: int | None) -> tuple[_Array, _Codes]:
        """As `Rule.largest_tau`."""
        if not self._in_parts(rule_input):
            best, allowed = self._best(rule_input, target)
            return np.where(allowed, self._largest_tau(rule_input, best), 0.0), best
        votes = _PartVotes(rule_input)
        total = self._of_parts(rule_input, votes, np.arange(len(votes.best)))
        return np.where(votes.allowed(target), total, 0.0), votes.best

    def best_scores(self, rule_input: RuleInput) -> _Codes:
        """As `Rule.best_scores`."""
        if self._in_parts(rule_input):
            return _PartVotes(rule_input).best
        return self._best(rule_input, None)[0]

    def evaluate_grid(
        self, rule_input: RuleInput, grid: _Array
    ) -> Iterator[tuple[NDArray[np.bool_], _Codes]]:
        """As `Rule.evaluate_grid`: what fails at one tau fails at all larger ones."""
        best = self.best_scores(rule_input)
        left, items = rule_input, np.arange(len(best))
        for tau in grid:
            if len(items):
                holds = self.decide(left, np.full(len(items), tau)).decided
                left, items = left.take(np.flatnonzero(holds)), items[holds]
            decided = np.zeros(len(best), dtype=bool)
            decided[items] = True
            yield decided, best

    def _in_parts(self, rule_input: RuleInput) -> bool:
        return rule_input.conditional.weights.shape[1] > 1 and not self.kind.any_distribution

    def _best(self, rule_input: RuleInput, target: int | None) -> tuple[_Codes, NDArray[np.bool_]]:
        """Numbers of the largest scores, and which of them may be decided."""
        best = np.asarray(rule_input.scores.argmax(axis=1))
        if target is None:
            return best, np.ones(len(best), dtype=bool)
        # The set contains the mean: no other class can dominate.
        return best, rule_input.discriminants.labels[best] == target

    def _largest_tau(self, rule_input: RuleInput, best: _Codes) -> _Array:
        degrees = rule_input.degrees(self.kind)
        limit = rule_input.radius(self.kind, np.full(len(best), 1 - 1e-15))
        if rule_input.separable is not None and not self.kind.full_covariance:
            radius, _ = rule_input.separable.radii(
                rule_input.mean,
                np.sqrt(rule_input.conditional.variance),
                limit,
                self.kind.shape,
                np.full(len(best), -1, dtype=np.int32),
                rule_input.n_threads,
            )
        else:
            radius = self._bisected(rule_input, limit, best)
        tau = rule_input.reliability(self.kind, np.maximum(radius, 1e-150))
        tau = np.where(radius >= limit, 1.0, tau)
        return np.where((radius > 0) | (degrees == 0), tau, 0.0)

    def _evaluate_parts(self, rule_input: RuleInput, tau: _Array, target: int | None) -> RuleOutput:
        """Yes where all relevant parts hold at one level, no where one fails that must hold.

        Rows that these do not decide take the largest probability of each part.
        """
        votes = _PartVotes(rule_input)
        n, parts = votes.weights.shape
        possible = votes.allowed(target) & (votes.weights.sum(axis=1) >= tau)
        # Parts of next to no weight, together 1 per cent of 1 - tau, are left out.
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
        checks, undecided = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)
        for g in range(parts):
            for level, yes in ((common, True), (least[:, g], False)):
                rows = np.flatnonzero((weights[:, g] > 0) & (level > 0) & (level < 1) & ~bad)
                rows = rows[good[rows]] if yes else rows[~good[rows]]
                if not len(rows):
                    continue
                part = rule_input.part(g, rows)
                radius = part.radius(self.kind, _rounded(level[rows], up=yes))
                everyone = np.ones(len(rows), dtype=bool)
                best = votes.of_part[rows, g]
                holds, some, uncertain = dominates_on_set(part, self.kind, radius, best, everyone)
                checks[rows] += some
                undecided[rows] += uncertain
                (good if yes else bad)[rows] = holds if yes else ~holds
        left = np.flatnonzero(~good & ~bad)
        good[left] = self._of_parts(rule_input, votes, left) >= tau[left]
        return RuleOutput(votes.best, good, np.where(good, tau, 0.0), checks, undecided)

    def _of_parts(self, rule_input: RuleInput, votes: _PartVotes, rows: _Codes) -> _Array:
        """sum_g p(g|z) t_g with the largest t_g at which the best dominates."""
        total = np.zeros(len(rows))
        for g in range(votes.weights.shape[1]):
            some = np.flatnonzero(votes.weights[rows, g] > 0)
            if len(some):
                part = rule_input.part(g, rows[some])
                largest = self._largest_tau(part, votes.of_part[rows[some], g])
                total[some] += votes.weights[rows[some], g] * largest
        return np.minimum(total, 1.0)

    def _bisected(self, rule_input: RuleInput, limit: _Array, best: _Codes) -> _Array:
        """Largest radii at which the best dominates, from below."""

        def holds(radius: _Array) -> NDArray[np.bool_]:
            everyone = np.ones(len(best), dtype=bool)
            return dominates_on_set(rule_input, self.kind, radius, best, everyone, counted=False)[0]

        if shares_quadratics(rule_input, self.kind):
            return self._by_levels(rule_input, limit, best)
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

    def _by_levels(self, rule_input: RuleInput, limit: _Array, best: _Codes) -> _Array:
        """The same by many levels at a time: powers of four first, then between two of them."""
        rows = np.arange(len(best))
        everyone = np.ones(len(best), dtype=bool)
        powers = np.minimum(limit, 1.0)[:, None] * 4.0 ** np.arange(-20, 21)
        radii = np.column_stack([np.minimum(powers, limit[:, None]), limit])
        radii = np.column_stack([np.zeros_like(limit), radii])
        steps = np.arange(_LEVELS + 1) / _LEVELS
        for _ in range(4):
            count, _, _ = levels_over_sets(rule_input, self.kind, radii[:, 1:], best, everyone)
            below = radii[rows, count]
            above = radii[rows, np.minimum(count + 1, radii.shape[1] - 1)]
            with np.errstate(divide="ignore", invalid="ignore"):
                between = below[:, None] * (above / below)[:, None] ** steps
            radii = np.where(below[:, None] > 0, between, 0.0)
        return below


def _rounded(level: _Array, up: bool) -> _Array:
    """Levels of which there are few different ones: steps of 5 per cent of 1 - level."""
    steps = np.log1p(-level) / np.log(1.05)
    return np.asarray(1 - 1.05 ** (np.floor(steps) if up else np.minimum(np.ceil(steps), -1)))


class _PartVotes:
    """Classes of the parts' means, and the class with most weight among them.

    Attributes
    ----------
    of_part : (n, parts) array
        Scores that are largest at the parts' means.
    best : (n,) array
        A score of the class with most weight.
    weights : (n, parts) array
        p(g|z) of the parts of that class, 0 of others.
    """

    def __init__(self, rule_input: RuleInput) -> None:
        weights, labels = rule_input.conditional.weights, rule_input.discriminants.labels
        self.labels = labels
        columns = [rule_input.conditional.means[:, g] for g in range(weights.shape[1])]
        if not rule_input.by_scores:
            columns = [rule_input.functions.scores(points) for points in columns]
        self.of_part = np.stack([scores.argmax(axis=1) for scores in columns], axis=1)
        classes = labels[self.of_part]
        rows = np.arange(len(classes))
        votes = np.zeros((len(classes), int(labels.max()) + 1))
        for g in range(classes.shape[1]):
            votes[rows, classes[:, g]] += weights[:, g]
        same = classes == votes.argmax(axis=1)[:, None]
        self.best = self.of_part[rows, np.where(same, weights, -1.0).argmax(axis=1)]
        self.weights = np.where(same, weights, 0.0)

    def allowed(self, target: int | None) -> NDArray[np.bool_]:
        """Which rows may be decided as a target."""
        if target is None:
            return np.ones(len(self.best), dtype=bool)
        return np.asarray(self.labels[self.best] == target)


# ---- whether a class dominates over a set


def dominates_on_set(
    rule_input: RuleInput,
    kind: ConfidenceSet,
    radius: _Array,
    best: _Codes,
    allowed: NDArray[np.bool_],
    counted: bool = True,
) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]:
    """Whether the best classes dominate over sets of the radii; checks, and uncertain ones.

    Unless `counted`, the latter two may be 0.
    """
    if isinstance(rule_input.functions, Linear) and kind.full_covariance:
        return _linear_on_ellipsoid(rule_input, radius, best, allowed, counted)
    if rule_input.separable is None or kind.full_covariance:
        return _pair_by_pair(rule_input, kind, radius, best, allowed)
    widths = np.sqrt(rule_input.conditional.variance)
    result = rule_input.separable.dominating(
        rule_input.mean, widths, radius, kind.shape, "guess", rule_input.n_threads
    )
    winning = (result.winners >= 0) & allowed
    return winning, result.checks.astype(np.intp), result.open.astype(np.intp)


def _linear_on_ellipsoid(
    rule_input: RuleInput, radius: _Array, best: _Codes, allowed: NDArray[np.bool_], counted: bool
) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]:
    """Proposition 2: (f_c - f_h)(m) against radius |R^(1/2) (beta_c - beta_h)|."""
    scores = rule_input.scores
    shared = rule_input.shared
    if shared is not None and shared.pair_variances is not None and len(shared.pair_variances) == 1:
        variance = shared.pair_variances[0, best]
    elif rule_input.by_scores:
        variance = pair_variances(rule_input.conditional.covariance, best)
    else:
        variance = slope_variances(
            rule_input, rule_input.conditional.covariance, np.arange(len(best)), best
        )
    spread = np.sqrt(variance)
    rows = np.arange(len(best))
    margin = scores[rows, best][:, None] - scores
    size = rule_input.magnitudes + rule_input.magnitudes[rows, best][:, None]
    fall = radius[:, None] * spread
    least, reach = margin - fall, rounding_share(rule_input.n_features) * (size + fall)
    rivals = rivals_of(rule_input.discriminants.labels, best)
    holds = ~rivals | (least >= reach)
    if not counted:
        none = np.zeros(len(best), dtype=np.intp)
        return holds.all(axis=1) & allowed, none, none
    near = rivals & (np.abs(least) < reach)
    checks = _checks_until_failure(holds, rivals, scores)
    return holds.all(axis=1) & allowed, checks, near.sum(axis=1)


def _checks_until_failure(holds: Any, rivals: Any, scores: _Array) -> NDArray[np.intp]:
    """How many checks a sequence takes that begins with the nearest rival and ends on a failure."""
    order = np.argsort(np.where(rivals, -scores, np.inf), axis=1, kind="stable")
    failing = ~np.take_along_axis(holds, order, axis=1)
    first = np.where(failing.any(axis=1), failing.argmax(axis=1) + 1, rivals.sum(axis=1))
    return np.asarray(first, dtype=np.intp)


def _pair_by_pair(
    rule_input: RuleInput,
    kind: ConfidenceSet,
    radius: _Array,
    best: _Codes,
    allowed: NDArray[np.bool_],
) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]:
    """Differences that are not separable: in rounds of checks, for the rows that hold so far."""
    shared = shares_quadratics(rule_input, kind)
    if shared and len(best) >= _ITEMS_A_GROUP * _n_groups(rule_input, best):
        levels, checks, undecided = levels_over_sets(
            rule_input, kind, radius[:, None], best, allowed
        )
        return levels > 0, checks, undecided
    n, k = rule_input.scores.shape
    rivals = rivals_of(rule_input.discriminants.labels, best)
    order = np.argsort(np.where(rivals, -rule_input.scores, np.inf), axis=1, kind="stable")
    alive, checks = allowed.copy(), np.zeros(n, dtype=np.intp)
    undecided = np.zeros(n, dtype=np.intp)
    for step in range(k):
        rows = np.flatnonzero(alive & (rivals.sum(axis=1) > step))
        if not len(rows):
            break
        sign = _signs(rule_input, kind, radius[rows], rows, best[rows], order[rows, step])
        checks[rows] += 1
        undecided[rows] += sign == 0
        alive[rows] = sign > 0
    return alive, checks, undecided


def shares_quadratics(rule_input: RuleInput, kind: ConfidenceSet) -> bool:
    """Whether samples with the same entries known have the same quadratic for a pair of classes."""
    return (
        isinstance(rule_input.functions, Quadratic)
        and kind.shape == "ball"
        and rule_input.conditional.means.shape[1] == 1
        and bool(np.isfinite(rule_input.scores).all())
    )


def _n_groups(rule_input: RuleInput, best: _Codes) -> int:
    return len(np.unique(rule_input.conditional.pattern * rule_input.discriminants.count + best))


def levels_over_sets(
    rule_input: RuleInput,
    kind: ConfidenceSet,
    radii: _Array,
    best: _Codes,
    allowed: NDArray[np.bool_],
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """At how many of the first levels the guesses dominate; checks, and uncertain ones.

    Radii (n, t) ascend along the levels. Differences of two quadratic discriminants over the ball
    of a pattern are ``x^T S^T V S x + 2 (S^T g)^T x + c`` with S S^T the covariance of the pattern,
    where only g and c depend on the sample: one eigendecomposition for each pattern and pair of
    classes serves all samples and all levels.
    """
    n, k = rule_input.scores.shape
    rivals = rivals_of(rule_input.discriminants.labels, best)
    order = np.argsort(np.where(rivals, -rule_input.scores, np.inf), axis=1, kind="stable")
    levels = np.where(allowed, radii.shape[1], 0)
    checks, undecided = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)
    n_rivals = rivals.sum(axis=1)
    for step in range(k):
        rows = np.flatnonzero((levels > 0) & (n_rivals > step))
        if not len(rows):
            break
        checks[rows] += 1
        limits = levels[rows]
        levels[rows], some = _proved(
            rule_input, kind, radii[rows], rows, best, order[:, step], limits
        )
        undecided[rows] += some
    return levels, checks, undecided


def _proved(
    rule_input: RuleInput,
    kind: ConfidenceSet,
    radii: _Array,
    rows: _Codes,
    best: _Codes,
    rival: _Codes,
    limits: NDArray[np.intp],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Levels, up to `limits`, at which f_c - f_h is proved to be positive; if one is uncertain."""
    functions, pattern = rule_input.functions, rule_input.conditional.pattern[rows]
    assert isinstance(functions, Quadratic)
    keys = (pattern * functions.count + best[rows]) * functions.count + rival[rows]
    sorting = np.argsort(keys, kind="stable")
    rows, pattern, radii = rows[sorting], pattern[sorting], radii[sorting]
    c, h = best[rows], rival[rows]
    first = np.flatnonzero(np.diff(keys[sorting], prepend=-1))
    pairs, form_of = np.unique(np.stack([c[first], h[first]], axis=1), axis=0, return_inverse=True)
    forms = functions.forms(pairs[:, 0], pairs[:, 1])
    groups = np.stack([form_of.reshape(-1), pattern[first]], axis=1)
    slopes = 0.5 * (rule_input.pulls[rows, h] - rule_input.pulls[rows, c])
    if kind.full_covariance:
        forms, slopes, groups, widths = _by_roots(rule_input, forms, slopes, groups, pattern)
        size = np.linalg.norm(rule_input.roots, axis=(1, 2))
    else:
        widths = np.sqrt(rule_input.conditional.variances[:, 0])
        size = np.linalg.norm(widths, axis=1)
    constant = rule_input.scores[rows, c] - rule_input.scores[rows, h]
    # What evaluating two scores and a difference may have lost.
    constant -= rounding_share(rule_input.n_features) * (
        rule_input.magnitudes[rows, c] + rule_input.magnitudes[rows, h]
    )
    curved, sloped = functions.difference_sizes(rule_input.mean, rows, c, h)
    reach = size[pattern][:, None] * radii
    slack = rounding_of_quadratics(curved[:, None], sloped[:, None], reach, rule_input.n_features)
    proved, undecided = core.proved_levels(
        forms,
        widths,
        np.ascontiguousarray(groups, dtype=np.int64),
        np.append(first, len(rows)).astype(np.int64),
        np.ascontiguousarray(slopes),
        constant[:, None] - slack,
        np.ascontiguousarray(radii),
        np.ascontiguousarray(limits[sorting], dtype=np.int64),
        rule_input.n_threads,
    )
    levels, more = np.empty_like(proved), np.empty_like(undecided)
    levels[sorting], more[sorting] = proved, undecided
    return levels, more


def _by_roots(
    rule_input: RuleInput, forms: _Array, slopes: _Array, groups: NDArray[np.intp], pattern: _Codes
) -> tuple[_Array, _Array, NDArray[np.intp], _Array]:
    """Forms and slopes in the coordinates u of ``x = m + S u``, a form for each group."""
    roots = rule_input.roots[groups[:, 1]]
    inner = np.einsum("nia,nij,njb->nab", roots, forms[groups[:, 0]], roots, optimize=True)
    turned = np.einsum("nia,ni->na", rule_input.roots[pattern], slopes)
    every = np.arange(len(groups))
    d = forms.shape[1]
    return inner, turned, np.stack([every, np.zeros_like(every)], axis=1), np.ones((1, d))


def _signs(
    rule_input: RuleInput, kind: ConfidenceSet, radius: _Array, rows: _Codes, c: _Codes, h: _Codes
) -> NDArray[np.int32]:
    """Signs of the minima of f_c - f_h over the sets of some rows."""
    constant = rule_input.scores[rows, c] - rule_input.scores[rows, h]
    # What evaluating two scores and a difference may have lost.
    constant -= rounding_share(rule_input.n_features) * (
        rule_input.magnitudes[rows, c] + rule_input.magnitudes[rows, h]
    )
    V, g = rule_input.functions.difference(rule_input.mean, rows, c, h)
    sizes = rule_input.functions.difference_sizes(rule_input.mean, rows, c, h)
    if kind.shape == "box":
        return _box_signs(rule_input, V, g, sizes, constant, radius, rows)
    root = _roots(rule_input, kind, rows)
    A = np.einsum("nia,nij,njb->nab", root, V, root, optimize=True)
    A = 0.5 * (A + A.transpose(0, 2, 1))
    slopes = np.einsum("nia,ni->na", root, g)
    reach = np.linalg.norm(root, axis=(1, 2)) * radius
    constant -= rounding_of_quadratics(*sizes, reach, rule_input.n_features)
    threads = rule_input.n_threads or None
    return np.asarray(certified_sign(A, slopes, constant, radius, n_threads=threads).sign)


def _roots(rule_input: RuleInput, kind: ConfidenceSet, rows: _Codes) -> _Array:
    """(n, d, d): x = m + root u."""
    conditional = rule_input.conditional
    if not kind.full_covariance:
        deviations = np.sqrt(conditional.variance[rows])
        return deviations[:, :, None] * np.eye(rule_input.n_features)
    if conditional.means.shape[1] == 1 and conditional.covariances is not None:
        return rule_input.roots[conditional.pattern[rows]]
    return square_roots(conditional.covariance[rows])


def _box_signs(
    rule_input: RuleInput,
    V: _Array,
    g: _Array,
    sizes: tuple[_Array, _Array],
    constant: _Array,
    radius: _Array,
    rows: _Codes,
) -> NDArray[np.int32]:
    """In the eigenvectors of V, with a box there (Parrish 2012, (5.15), (5.16))."""
    # Axes of the missing components alone: known ones must not be mixed with them.
    varies = rule_input.conditional.variance[rows] > 0
    every = np.arange(V.shape[1])
    V = np.where(varies[:, :, None] & varies[:, None], V, 0.0)
    size = np.abs(V).sum(axis=2).max(axis=1)
    V[:, every, every] += np.where(varies, 0.0, 4 * np.where(size > 0, size, 1.0)[:, None])
    values, Q = np.linalg.eigh(V)
    covariance = rule_input.conditional.covariance[rows]
    variance = np.einsum("nia,nij,nja->na", Q, covariance, Q, optimize=True)
    widths = radius[:, None] * np.sqrt(np.maximum(variance, 0.0))
    slopes = np.einsum("nia,ni->na", Q, g)
    least = constant + box_minimum(values, slopes, widths, rule_input.n_threads)
    # Eigenvalues and slopes along eigenvectors are off by shares of |V|, what was added to its
    # diagonal included, and |g|.
    curved, sloped = sizes
    slack = rounding_of_quadratics(
        5 * curved, sloped, np.linalg.norm(widths, axis=1), rule_input.n_features
    )
    return np.where(least >= slack, 1, np.where(least < -slack, -1, 0)).astype(np.int32)


# ---- binomial bounds


def lower_bound(successes: ArrayLike, n: int, confidence: float) -> _Array:
    """Clopper and Pearson's one-sided lower bounds of a binomial probability.

    Parameters
    ----------
    successes : array-like of int
        0 to n.
    n : int
        Trials.
    confidence : float in (0, 1)

    Returns
    -------
    array
        0 without a success.
    """
    count = np.asarray(successes, dtype=np.float64)
    bound = betaincinv(np.maximum(count, 1.0), n - np.maximum(count, 1.0) + 1.0, 1.0 - confidence)
    return np.asarray(np.where(count > 0, bound, 0.0))


@lru_cache(maxsize=64)
def lower_bounds(n: int, risk: float) -> _Array:
    """(n + 1,): Clopper and Pearson's lower bounds for 0, ..., n successes; wrong with `risk`."""
    won = np.arange(1, n + 1)
    return np.append(0.0, betaincinv(won, n - won + 1, risk))


def binomial_share(count: NDArray[np.intp], n: int, confidence: float) -> _Array:
    """The share that `count` of n held-out rows support: a lower bound, or the mean.

    The mean is over a new row's rank among them, with a confidence of 0.
    """
    if confidence > 0 and n:
        return lower_bounds(n, 1.0 - confidence)[count]
    return np.asarray(count / (n + 1))


# ---- rounding


def rounding_share(d: int) -> float:
    """Relative to magnitudes, of what is summed over d features."""
    return 4.0 * (d + 16) * EPS


def rounding_of_quadratics(curved: _Array, sloped: _Array, reach: _Array, d: int) -> _Array:
    """Of ``y^T V y + 2 g^T y``, |y| <= reach; `curved`, `sloped`: sizes of V's and g's terms."""
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.where(curved > 0, curved * reach * reach, 0.0)
        terms = terms + np.where(sloped > 0, 2.0 * sloped * reach, 0.0)
    return np.asarray(np.minimum(rounding_share(d) * terms, LARGEST))


def rounding_of_variances(slopes: _Array, covariance: _Array) -> _Array:
    """(k,), of ``b^T R b`` for the rows b of `slopes` (k, d): |R_ij| <= sqrt(R_ii R_jj)."""
    deviations = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    return np.asarray(rounding_share(len(deviations)) * (np.abs(slopes) @ deviations) ** 2)

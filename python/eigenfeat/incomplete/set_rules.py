r"""Rules by sets that have the complete sample with a given probability (Parrish 2012, 5.2).

Each set is a ball or a box in units of standard deviations about the conditional mean; its radius
belongs to a reliability tau and to what is known of the distribution. What each rests on:

- "chebyshev": Chebyshev's inequality in several dimensions, for whatever distribution;
- "quadratic": the distribution of a weighted sum of chi-squares, for Gaussians of any correlation;
- "mahalanobis": the chi-square distribution, for Gaussians of any correlation;
- "box": Sidak's inequality, for Gaussians of any correlation. Where each pair of classes has a box
  of its own, in axes of its own, Royen's Gaussian correlation inequality takes them together.

`SetRule` decides a class that dominates all others on the set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtr, chdtri, ndtr, ndtri

from eigenfeat._base.core import core
from eigenfeat._base.saved import Saved
from eigenfeat.incomplete.chi_squares import Spectra, bounded_quantile, bounded_tail, quantile, tail
from eigenfeat.incomplete.discriminants import Linear, Quadratic
from eigenfeat.incomplete.rules import (
    Rule,
    RuleInput,
    RuleOutput,
    pair_variances,
    rivals_of,
    rounding_of_quadratics,
    rounding_share,
    slope_variances,
    square_roots,
)
from eigenfeat.regions.dominance import box_minimum
from eigenfeat.regions.trust_region import certified_sign

__all__ = [
    "SETS",
    "BoxSet",
    "ChebyshevSet",
    "ConfidenceSet",
    "MahalanobisSet",
    "QuadraticSet",
    "SetRule",
]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

MAX_RADII = 256  # cached by reliability

_ITEMS_A_GROUP = 3  # from here on one eigendecomposition is less work than a reduction for each
_LEVELS = 128  # of radii that are tried at a time

LIMIT = 1e150  # a radius that is as good as infinite


class ConfidenceSet(Saved, ABC):
    """A kind of sets about the conditional mean.

    Attributes
    ----------
    shape : {"ball", "box"}
    full_covariance : bool
        Whether the units are those of the whole covariance, or of each variance.
    by_spectra : bool
        Whether radii depend on the eigenvalues of the correlation.
    any_distribution : bool
        Whether nothing is supposed of the distribution but its mean and covariance.
    """

    _saved: ClassVar[dict[str, str]] = {}

    shape = "ball"
    full_covariance = False
    by_spectra = False
    any_distribution = False

    def radius(
        self,
        tau: ArrayLike,
        degrees: ArrayLike,
        spectra: Spectra | None = None,
        pattern: NDArray[np.intp] | None = None,
    ) -> _Array:
        """The radius at which the set has probability tau; 0 without degrees of freedom.

        Parameters
        ----------
        tau : (n,) array
        degrees : (n,) array of int
            Components with a variance, or a bound of the covariance's rank.
        spectra : Spectra, optional
            Of single Gaussians; without it components count as uncorrelated.
        pattern : (n,) array of int
            Which of the spectra is meant.
        """
        asked, count = np.asarray(tau, dtype=float), np.asarray(degrees, dtype=float)
        if self.by_spectra and spectra is not None and pattern is not None:
            radius = _weighted_radius(asked, spectra, pattern)
        else:
            with np.errstate(divide="ignore"):
                radius = self._radius(asked, count)
        return np.where(count == 0, 0.0, np.minimum(radius, LIMIT))

    def reliability(
        self,
        radius: ArrayLike,
        degrees: ArrayLike,
        spectra: Spectra | None = None,
        pattern: NDArray[np.intp] | None = None,
    ) -> _Array:
        """The probability that belongs to a radius; 1 without degrees of freedom."""
        given, count = np.asarray(radius, dtype=float), np.asarray(degrees, dtype=float)
        if self.by_spectra and spectra is not None and pattern is not None:
            tau = _weighted_reliability(given, spectra, pattern)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                tau = self._reliability(given, count)
        return np.where(count == 0, 1.0, tau)

    @abstractmethod
    def _radius(self, tau: _Array, degrees: _Array) -> _Array:
        """The radius with degrees of freedom, of components that are uncorrelated or whitened."""

    @abstractmethod
    def _reliability(self, radius: _Array, degrees: _Array) -> _Array:
        """Its inverse."""


class ChebyshevSet(ConfidenceSet):
    """``(x - m)^T R^-1 (x - m) <= ell / (1 - tau)``, whatever the distribution (5.3).

    ell is the rank of R or a bound of it (`RuleInput.degrees`): for linear discriminants
    min(missing entries, classes - 1), the dimension of the differences of scores, and not d.

    The right choice for completions far from Gaussian: without a correction none of 21 sets is
    below a tau of .99 or less, at the price of deciding later than "mahalanobis".
    """

    full_covariance = True
    any_distribution = True

    def _radius(self, tau: _Array, degrees: _Array) -> _Array:
        return np.sqrt(degrees / (1.0 - tau))

    def _reliability(self, radius: _Array, degrees: _Array) -> _Array:
        # 0 where the inequality says nothing.
        return np.maximum(1.0 - degrees / np.square(radius), 0.0)


class MahalanobisSet(ConfidenceSet):
    """``(x - m)^T R^-1 (x - m)`` up to the chi-square quantile of tau, exact for Gaussians.

    The right choice for linear discriminants without a correction and with few samples: at a tau
    of .95 one of 21 sets is below it, with the pairwise rule seven.
    """

    full_covariance = True

    def _radius(self, tau: _Array, degrees: _Array) -> _Array:
        return np.sqrt(chdtri(np.maximum(degrees, 1.0), 1.0 - tau))

    def _reliability(self, radius: _Array, degrees: _Array) -> _Array:
        return np.asarray(chdtr(np.maximum(degrees, 1.0), np.square(radius)))


class QuadraticSet(MahalanobisSet):
    """``sum_i (x_i - m_i)^2 / R_ii`` up to its quantile of tau (5.4).

    The sum is one of chi-squares weighted by the eigenvalues of the conditional correlation, whose
    quantile is computed, or bounded where there are no eigenvalues. Without spectra it is the
    thesis's chi-square, which holds for uncorrelated components alone.

    The right choice for quadratic discriminants: on 21 sets naive Bayes and local QDA decide
    earlier than with boxes at every tau, and its checks are separable.
    """

    full_covariance = False
    by_spectra = True


class BoxSet(ConfidenceSet):
    """``|x_i - m_i| <= z sqrt(R_ii)``, tau^(1/ell) for each entry (5.5).

    Sidak's inequality makes the probability at least tau for Gaussians of any correlation. ell
    counts the components with a variance, q; quadratic discriminants, whose pairs have boxes in
    axes of their own, need (classes - 1) q intervals at once (Royen).

    The right choice for a tau of .999 without a correction: with LDA none of 21 sets is below it,
    and decisions come earlier than with Chebyshev's sets.
    """

    shape = "box"

    def _radius(self, tau: _Array, degrees: _Array) -> _Array:
        each = tau ** (1.0 / np.maximum(degrees, 1.0))
        return np.asarray(-ndtri(0.5 * (1.0 - each)))

    def _reliability(self, radius: _Array, degrees: _Array) -> _Array:
        return np.asarray((1.0 - 2.0 * ndtr(-radius)) ** degrees)


def _weighted_radius(tau: _Array, spectra: Spectra, pattern: NDArray[np.intp]) -> _Array:
    """Roots of quantiles of weighted chi-squares, each once for equal spectra and levels."""
    levels, at_level = np.unique(np.broadcast_to(1.0 - tau, np.shape(pattern)), return_inverse=True)
    keys, back = np.unique(pattern * len(levels) + at_level, return_inverse=True)
    at, level = keys // len(levels), levels[keys % len(levels)]
    if spectra.values is None:
        square = bounded_quantile(spectra.moments[at, 0], level)
    else:
        square = quantile(spectra.values[at, 0], level)
    return np.asarray(np.sqrt(square)[back])


def _weighted_reliability(radius: _Array, spectra: Spectra, pattern: NDArray[np.intp]) -> _Array:
    if spectra.values is None:
        above = bounded_tail(spectra.moments[pattern, 0], np.square(radius))
    else:
        above = tail(spectra.values[pattern, 0], np.square(radius))
    return 1.0 - above


SETS: dict[str, ConfidenceSet] = {
    "chebyshev": ChebyshevSet(),
    "mahalanobis": MahalanobisSet(),
    "quadratic": QuadraticSet(),
    "box": BoxSet(),
}


def degrees_of(rule_input: RuleInput, kind: ConfidenceSet) -> NDArray[np.intp]:
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
    most = np.minimum(
        rule_input.conditional.missing[rule_input.conditional.pattern], rule_input.n_features
    )
    if rule_input.by_scores:
        return np.minimum(most, rule_input.discriminants.count - 1)
    spread = np.asarray((rule_input.conditional.variance > 0).sum(axis=1))
    if kind.shape == "box" and rule_input.discriminants.pair_axes:
        return spread * (rule_input.discriminants.count - 1)
    return np.minimum(most, spread) if kind.full_covariance else spread


def radius_of(rule_input: RuleInput, kind: ConfidenceSet, tau: _Array) -> _Array:
    """(n,): radii of sets about the mean of a single Gaussian, or of any distribution."""
    if rule_input.shared is None or len(tau) > 1 or rule_input.conditional.means.shape[1] > 1:
        return _fresh_radius(rule_input, kind, tau)
    cache, key = rule_input.shared.radii, (kind, float(tau[0]))
    radius = cache.get(key)
    if radius is None:
        radius = _fresh_radius(rule_input, kind, tau)
        if len(cache) >= MAX_RADII:
            cache.clear()
        cache[key] = radius
    return radius


def _fresh_radius(rule_input: RuleInput, kind: ConfidenceSet, tau: _Array) -> _Array:
    spectra, pattern = rule_input.conditional.spectra, rule_input.conditional.pattern
    return kind.radius(tau, degrees_of(rule_input, kind), spectra, pattern)


def reliability_of(rule_input: RuleInput, kind: ConfidenceSet, radius: _Array) -> _Array:
    """(n,): the probabilities of sets with these radii."""
    spectra, pattern = rule_input.conditional.spectra, rule_input.conditional.pattern
    return kind.reliability(radius, degrees_of(rule_input, kind), spectra, pattern)


# ---- the rule


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

    def decide(
        self, rule_input: RuleInput, tau: _Array, target: int | None = None, whole: bool = False
    ) -> RuleOutput:
        """As `Rule.decide`."""
        if self._in_parts(rule_input):
            return self._decide_parts(rule_input, tau, target)
        best, allowed = self._best(rule_input, target)
        decided = allowed & dominates_on_set(
            rule_input, self.kind, radius_of(rule_input, self.kind, tau), best
        )
        return RuleOutput(best, decided, np.where(decided, tau, 0.0))

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
        self, rule_input: RuleInput, grid: _Array, best: _Codes
    ) -> Iterator[NDArray[np.bool_]]:
        """As `Rule.evaluate_grid`: what fails at one tau fails at all larger ones."""
        left, items = rule_input, np.arange(len(best))
        for tau in grid:
            if len(items):
                holds = self.decide(left, np.full(len(items), tau)).decided
                left, items = left.take(np.flatnonzero(holds)), items[holds]
            decided = np.zeros(len(best), dtype=bool)
            decided[items] = True
            yield decided

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
        degrees = degrees_of(rule_input, self.kind)
        limit = radius_of(rule_input, self.kind, np.full(len(best), 1 - 1e-15))
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
        tau = reliability_of(rule_input, self.kind, np.maximum(radius, 1e-150))
        tau = np.where(radius >= limit, 1.0, tau)
        return np.where((radius > 0) | (degrees == 0), tau, 0.0)

    def _decide_parts(self, rule_input: RuleInput, tau: _Array, target: int | None) -> RuleOutput:
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
        for g in range(parts):
            for level, yes in ((common, True), (least[:, g], False)):
                rows = np.flatnonzero((weights[:, g] > 0) & (level > 0) & (level < 1) & ~bad)
                rows = rows[good[rows]] if yes else rows[~good[rows]]
                if not len(rows):
                    continue
                part = rule_input.part(g, rows)
                radius = radius_of(part, self.kind, _rounded(level[rows], up=yes))
                holds = dominates_on_set(part, self.kind, radius, votes.of_part[rows, g])
                (good if yes else bad)[rows] = holds if yes else ~holds
        left = np.flatnonzero(~good & ~bad)
        good[left] = self._of_parts(rule_input, votes, left) >= tau[left]
        return RuleOutput(votes.best, good, np.where(good, tau, 0.0))

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
            return dominates_on_set(rule_input, self.kind, radius, best)

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
        powers = np.minimum(limit, 1.0)[:, None] * 4.0 ** np.arange(-20, 21)
        radii = np.column_stack([np.minimum(powers, limit[:, None]), limit])
        radii = np.column_stack([np.zeros_like(limit), radii])
        steps = np.arange(_LEVELS + 1) / _LEVELS
        for _ in range(4):
            count = levels_over_sets(rule_input, self.kind, radii[:, 1:], best)
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
    rule_input: RuleInput, kind: ConfidenceSet, radius: _Array, best: _Codes
) -> NDArray[np.bool_]:
    """Whether the best classes dominate over sets of the radii."""
    if isinstance(rule_input.functions, Linear) and kind.full_covariance:
        return _linear_on_ellipsoid(rule_input, radius, best)
    if rule_input.separable is None or kind.full_covariance:
        return _pair_by_pair(rule_input, kind, radius, best)
    widths = np.sqrt(rule_input.conditional.variance)
    result = rule_input.separable.dominating(
        rule_input.mean, widths, radius, kind.shape, "guess", rule_input.n_threads
    )
    return np.asarray(result.winners >= 0)


def _linear_on_ellipsoid(rule_input: RuleInput, radius: _Array, best: _Codes) -> NDArray[np.bool_]:
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
    return np.asarray((~rivals | (least >= reach)).all(axis=1))


def _pair_by_pair(
    rule_input: RuleInput, kind: ConfidenceSet, radius: _Array, best: _Codes
) -> NDArray[np.bool_]:
    """Differences that are not separable: in rounds of checks, for the samples that hold so far."""
    shared = shares_quadratics(rule_input, kind)
    if shared and len(best) >= _ITEMS_A_GROUP * _n_groups(rule_input, best):
        return np.asarray(levels_over_sets(rule_input, kind, radius[:, None], best) > 0)
    rivals, order = _nearest_rivals(rule_input, best)
    alive = np.ones(len(best), dtype=bool)
    for step in range(order.shape[1]):
        rows = np.flatnonzero(alive & (rivals > step))
        if not len(rows):
            break
        alive[rows] = (
            _signs(rule_input, kind, radius[rows], rows, best[rows], order[rows, step]) > 0
        )
    return alive


def _nearest_rivals(
    rule_input: RuleInput, best: _Codes
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(n,): numbers of rivals; (n, k): first these, the one with the largest score first."""
    rivals = rivals_of(rule_input.discriminants.labels, best)
    order = np.argsort(np.where(rivals, -rule_input.scores, np.inf), axis=1, kind="stable")
    return rivals.sum(axis=1), order


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
    rule_input: RuleInput, kind: ConfidenceSet, radii: _Array, best: _Codes
) -> NDArray[np.intp]:
    """At how many of the first levels the best scores dominate.

    Radii (n, t) ascend along the levels. Differences of two quadratic discriminants over the ball
    of a pattern are ``x^T S^T V S x + 2 (S^T g)^T x + c`` with S S^T the covariance of the pattern,
    where only g and c depend on the sample: one eigendecomposition for each pattern and pair of
    classes serves all samples and all levels.
    """
    rivals, order = _nearest_rivals(rule_input, best)
    levels = np.full(len(best), radii.shape[1])
    for step in range(order.shape[1]):
        rows = np.flatnonzero((levels > 0) & (rivals > step))
        if not len(rows):
            break
        limits = levels[rows]
        levels[rows] = _proved(rule_input, kind, radii[rows], rows, best, order[:, step], limits)
    return levels


def _proved(
    rule_input: RuleInput,
    kind: ConfidenceSet,
    radii: _Array,
    rows: _Codes,
    best: _Codes,
    rival: _Codes,
    limits: NDArray[np.intp],
) -> NDArray[np.int32]:
    """Levels, up to `limits`, at which f_c - f_h is proved to be positive."""
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
    proved, _ = core.proved_levels(
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
    levels = np.empty_like(proved)
    levels[sorting] = proved
    return levels


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

r"""Rules by sets that contain the complete sample with a given probability (Parrish 2012, 5.2).

Each set is a ball or a box about the conditional mean, in units of standard deviations. Its radius
for a reliability tau comes from

- "chebyshev": Chebyshev's inequality in several dimensions, for any distribution;
- "quadratic": the distribution of a weighted sum of chi-squares, for Gaussians of any correlation;
- "mahalanobis": the chi-square distribution, for Gaussians of any correlation;
- "box": Sidak's inequality, for Gaussians of any correlation.

`SetRule` decides a class that dominates all others on the set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtr, chdtri, ndtr, ndtri

from eigenfeat._base.core import core
from eigenfeat.early.chi_squares import Spectra, bounded_quantile, bounded_tail, quantile, tail
from eigenfeat.early.discriminants import Linear, Quadratic
from eigenfeat.early.rules import (
    Rule,
    RuleInput,
    pair_variances,
    rounding_of_quadratics,
    rounding_share,
    square_roots,
)
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

MAX_CACHED_RADII = 256
LARGEST_TAU = 1 - 1e-15  # larger taus count as 1
MAX_RADIUS = 1e150  # larger radii count as infinite

_LEVELS = 128  # radii that are tried at a time


class ConfidenceSet(ABC):
    """A kind of sets about the conditional mean."""

    shape = "ball"  # "ball" or "box"
    full_covariance = False  # whether the covariance scales the set, instead of each variance
    by_spectra = False  # whether radii depend on the eigenvalues of the correlation
    any_distribution = False  # whether the bound holds for every distribution
    of_scores = True  # whether the sets of linear discriminants are of score differences

    def radius(
        self,
        tau: ArrayLike,
        degrees: ArrayLike,
        spectra: Spectra | None = None,
        pattern: NDArray[np.intp] | None = None,
    ) -> _Array:
        """The radius at which the set has probability tau; 0 without degrees of freedom.

        Degrees are the number of components with a variance, or a bound of the covariance's rank.
        `pattern` are indices into the spectra; without spectra components count as uncorrelated.
        """
        level, count = np.asarray(tau, dtype=float), np.asarray(degrees, dtype=float)
        if self.by_spectra and spectra is not None and pattern is not None:
            radius = _weighted_radius(level, spectra, pattern)
        else:
            with np.errstate(divide="ignore"):
                radius = self._radius(level, count)
        return np.where(count == 0, 0.0, np.minimum(radius, MAX_RADIUS))

    def reliability(
        self,
        radius: ArrayLike,
        degrees: ArrayLike,
        spectra: Spectra | None = None,
        pattern: NDArray[np.intp] | None = None,
    ) -> _Array:
        """The probability of the set of a radius; 1 without degrees of freedom."""
        given, count = np.asarray(radius, dtype=float), np.asarray(degrees, dtype=float)
        if self.by_spectra and spectra is not None and pattern is not None:
            tau = _weighted_reliability(given, spectra, pattern)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                tau = self._reliability(given, count)
        return np.where(count == 0, 1.0, tau)

    @abstractmethod
    def _radius(self, tau: _Array, degrees: _Array) -> _Array:
        """The radius for uncorrelated or whitened components."""

    @abstractmethod
    def _reliability(self, radius: _Array, degrees: _Array) -> _Array:
        """The probability for uncorrelated or whitened components."""


class ChebyshevSet(ConfidenceSet):
    """``(x - m)^T R^-1 (x - m) <= ell / (1 - tau)``, for any distribution (5.3).

    ell is the rank of R or a bound of it (`degrees_of`): for linear discriminants
    min(missing entries, classes - 1), the dimension of the differences of scores.

    Suits completions that are far from Gaussian: without a correction none of 21 sets is below a
    tau of .99 or less. Decisions are later than with "mahalanobis".
    """

    full_covariance = True
    any_distribution = True

    def _radius(self, tau: _Array, degrees: _Array) -> _Array:
        return np.sqrt(degrees / (1.0 - tau))

    def _reliability(self, radius: _Array, degrees: _Array) -> _Array:
        # The inequality gives a bound below 0 for small radii.
        return np.maximum(1.0 - degrees / np.square(radius), 0.0)


class MahalanobisSet(ConfidenceSet):
    """``(x - m)^T R^-1 (x - m)`` up to the chi-square quantile of tau, exact for Gaussians.

    Suits linear discriminants with few samples: without a correction one of 21 sets is below a tau
    of .95, with the pairwise rule seven.
    """

    full_covariance = True

    def _radius(self, tau: _Array, degrees: _Array) -> _Array:
        return np.sqrt(chdtri(np.maximum(degrees, 1.0), 1.0 - tau))

    def _reliability(self, radius: _Array, degrees: _Array) -> _Array:
        return np.asarray(chdtr(np.maximum(degrees, 1.0), np.square(radius)))


class QuadraticSet(MahalanobisSet):
    """``sum_i (x_i - m_i)^2 / R_ii`` up to its quantile of tau (5.4).

    The sum is one of chi-squares, weighted by the eigenvalues of the conditional correlation. Its
    quantile is computed, or bounded without eigenvalues. Without spectra it is the chi-square of
    the thesis, which holds for uncorrelated components only.

    Suits quadratic discriminants: on 21 sets naive Bayes and local QDA decide earlier than with
    boxes at every tau, and its checks are separable.
    """

    full_covariance = False
    by_spectra = True


class BoxSet(ConfidenceSet):
    """``|x_i - m_i| <= z sqrt(R_ii)``, with probability tau^(1/ell) for each of ell entries (5.5).

    By Sidak's inequality the probability is at least tau for Gaussians of any correlation.

    Suits a tau of .999 without a correction: with LDA none of 21 sets is below it, and decisions
    are earlier than with Chebyshev's sets.
    """

    shape = "box"

    def _radius(self, tau: _Array, degrees: _Array) -> _Array:
        each = tau ** (1.0 / np.maximum(degrees, 1.0))
        return np.asarray(-ndtri(0.5 * (1.0 - each)))

    def _reliability(self, radius: _Array, degrees: _Array) -> _Array:
        return np.asarray((1.0 - 2.0 * ndtr(-radius)) ** degrees)


def _weighted_radius(tau: _Array, spectra: Spectra, pattern: NDArray[np.intp]) -> _Array:
    """Roots of quantiles of weighted chi-squares, computed once for equal spectra and levels."""
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
    """Degrees of freedom (n,) of the radii, the smallest for which the theorems hold.

    - Sets scaled by the covariance: a bound of its rank by the numbers of missing entries, of
      features, and of components with a variance. For linear discriminants the set is of
      differences of scores, of which k classes have k - 1: Chebyshev's and the chi-square
      inequality hold for any affine image of a sample, here of dimension
      min(missing, classes - 1).
    - Sets scaled by each variance: the number of components with a variance.
    """
    conditional = rule_input.conditional
    most = np.minimum(conditional.missing[conditional.pattern], rule_input.n_features)
    if rule_input.by_scores:
        return np.minimum(most, rule_input.discriminants.count - 1) if kind.of_scores else most
    spread = np.asarray((conditional.variance > 0).sum(axis=1))
    return np.minimum(most, spread) if kind.full_covariance else spread


def radius_of(rule_input: RuleInput, kind: ConfidenceSet, tau: _Array) -> _Array:
    """Radii (n,) of sets about the mean of a single Gaussian, or of any distribution."""
    if rule_input.shared is None or len(tau) > 1 or rule_input.conditional.means.shape[1] > 1:
        return _computed_radius(rule_input, kind, tau)
    cache, key = rule_input.shared.radii, (kind, float(tau[0]))
    radius = cache.get(key)
    if radius is None:
        radius = _computed_radius(rule_input, kind, tau)
        if len(cache) >= MAX_CACHED_RADII:
            cache.clear()
        cache[key] = radius
    return radius


def _computed_radius(rule_input: RuleInput, kind: ConfidenceSet, tau: _Array) -> _Array:
    spectra, pattern = rule_input.conditional.spectra, rule_input.conditional.pattern
    return kind.radius(tau, degrees_of(rule_input, kind), spectra, pattern)


# ---- the rule


class SetRule(Rule):
    """(5.2): decide a class that dominates on a set of probability tau.

    Under a mixture the set is the union of a set for each part, of probabilities t_g; by the law of
    total probability the union has at least probability sum_g p(g|z) t_g. Sets for any distribution
    need no union.
    """

    def __init__(self, kind: ConfidenceSet) -> None:
        self.kind = kind

    def best_classes(self, rule_input: RuleInput) -> _Codes:
        """As `Rule.best_classes`."""
        if self._in_parts(rule_input):
            return _PartVotes(rule_input).best
        return np.asarray(rule_input.scores.argmax(axis=1))

    def bound(self, rule_input: RuleInput, best: _Codes) -> _Array:
        """As `Rule.bound`."""
        if self._in_parts(rule_input):
            return self._bound_of_parts(rule_input)
        return self._bound(rule_input, best)

    def decides(self, rule_input: RuleInput, best: _Codes, tau: _Array) -> NDArray[np.bool_]:
        """As `Rule.decides`, without a search for the largest tau."""
        if self._in_parts(rule_input):
            return super().decides(rule_input, best, tau)
        radius = radius_of(rule_input, self.kind, np.minimum(tau, LARGEST_TAU))
        return dominates_on_set(rule_input, self.kind, radius, best) & (tau <= 1)

    def _in_parts(self, rule_input: RuleInput) -> bool:
        return rule_input.conditional.weights.shape[1] > 1 and not self.kind.any_distribution

    def _bound(self, rule_input: RuleInput, best: _Codes) -> _Array:
        conditional, degrees = rule_input.conditional, degrees_of(rule_input, self.kind)
        limit = radius_of(rule_input, self.kind, np.full(len(best), LARGEST_TAU))
        if rule_input.separable is not None and not self.kind.full_covariance:
            widths = np.sqrt(conditional.variance)
            radius = rule_input.separable.radii(
                rule_input.mean, widths, limit, self.kind.shape, rule_input.n_threads
            )
        else:
            radius = self._bisected(rule_input, limit, best)
        tau = self.kind.reliability(
            np.maximum(radius, 1e-150), degrees, conditional.spectra, conditional.pattern
        )
        tau = np.where(radius >= limit, 1.0, tau)
        return np.where((radius > 0) | (degrees == 0), tau, 0.0)

    def _bound_of_parts(self, rule_input: RuleInput) -> _Array:
        """sum_g p(g|z) t_g, with the largest t_g at which the class dominates on part g's set."""
        votes = _PartVotes(rule_input)
        total = np.zeros(len(votes.best))
        for g in range(votes.weights.shape[1]):
            rows = np.flatnonzero(votes.weights[:, g] > 0)
            if len(rows):
                largest = self._bound(rule_input.part(g, rows), votes.best[rows])
                total[rows] += votes.weights[rows, g] * largest
        return np.minimum(total, 1.0)

    def _bisected(self, rule_input: RuleInput, limit: _Array, best: _Codes) -> _Array:
        """Largest radii at which the best class dominates, from below."""

        def holds(radius: _Array) -> NDArray[np.bool_]:
            return dominates_on_set(rule_input, self.kind, radius, best)

        if shares_quadratics(rule_input, self.kind):
            return self._by_levels(rule_input, limit, best)
        below, above = np.zeros_like(limit), limit.copy()
        trial = np.minimum(limit, 1.0)
        for step in range(80):
            good = holds(trial)
            below, above = np.where(good, trial, below), np.where(good, above, trial)
            if step < 20:  # double or halve the radius until it is bracketed
                outward = np.where(good, np.minimum(4 * trial, above), trial / 4)
                trial = np.where((below > 0) & (above < limit), 0.5 * (below + above), outward)
            else:
                trial = 0.5 * (below + above)
            if np.all((above - below <= 1e-6 * below) | (above < 1e-12)):
                break
        return np.where(holds(limit), limit, below)

    def _by_levels(self, rule_input: RuleInput, limit: _Array, best: _Codes) -> _Array:
        """As `_bisected`, by many radii at a time: powers of four, then radii between them."""
        rows = np.arange(len(best))
        powers = np.minimum(limit, 1.0)[:, None] * 4.0 ** np.arange(-20, 21)
        radii = np.column_stack([np.minimum(powers, limit[:, None]), limit])
        radii = np.column_stack([np.zeros_like(limit), radii])
        steps = np.arange(_LEVELS + 1) / _LEVELS
        for _ in range(4):
            count = levels_over_sets(rule_input, radii[:, 1:], best)
            below = radii[rows, count]
            above = radii[rows, np.minimum(count + 1, radii.shape[1] - 1)]
            with np.errstate(divide="ignore", invalid="ignore"):
                between = below[:, None] * (above / below)[:, None] ** steps
            radii = np.where(below[:, None] > 0, between, 0.0)
        return below


class _PartVotes:
    """The class `best` with the most weight p(g|z) of parts whose mean has this class.

    `weights` (n, parts) are p(g|z) of the parts of class `best`, and 0 for other parts.
    """

    def __init__(self, rule_input: RuleInput) -> None:
        weights, means = rule_input.conditional.weights, rule_input.conditional.means
        columns = [means[:, g] for g in range(weights.shape[1])]
        if not rule_input.by_scores:
            columns = [rule_input.functions.scores(points) for points in columns]
        of_part = np.stack([scores.argmax(axis=1) for scores in columns], axis=1)
        votes = np.zeros((len(weights), rule_input.discriminants.count))
        for g in range(weights.shape[1]):
            votes[np.arange(len(votes)), of_part[:, g]] += weights[:, g]
        self.best = votes.argmax(axis=1)
        self.weights = np.where(of_part == self.best[:, None], weights, 0.0)


# ---- whether a class dominates over a set


def dominates_on_set(
    rule_input: RuleInput, kind: ConfidenceSet, radius: _Array, best: _Codes
) -> NDArray[np.bool_]:
    """Mask of the samples whose best class dominates on the set of their radius."""
    if isinstance(rule_input.functions, Linear) and kind.full_covariance:
        return _linear_on_ellipsoid(rule_input, radius, best)
    if rule_input.separable is None or kind.full_covariance:
        return _pair_by_pair(rule_input, kind, radius, best)
    widths = np.sqrt(rule_input.conditional.variance)
    winners = rule_input.separable.dominating(
        rule_input.mean, widths, radius, kind.shape, rule_input.n_threads
    )
    return np.asarray(winners >= 0)


def _linear_on_ellipsoid(rule_input: RuleInput, radius: _Array, best: _Codes) -> NDArray[np.bool_]:
    """Proposition 2: (f_c - f_h)(m) against radius |R^(1/2) (beta_c - beta_h)|."""
    scores, rows, shared = rule_input.scores, np.arange(len(best)), rule_input.shared
    if shared is not None and shared.pair_variances is not None and len(shared.pair_variances) == 1:
        variance = shared.pair_variances[0, best]
    else:
        variance = pair_variances(rule_input.conditional.covariance, best)
    size = np.abs(scores)
    size = size + size[rows, best][:, None]
    fall = radius[:, None] * np.sqrt(variance)
    least = scores[rows, best][:, None] - scores - fall
    reach = rounding_share(rule_input.n_features) * (size + fall)
    rivals = np.arange(scores.shape[1]) != best[:, None]
    return np.asarray((~rivals | (least >= reach)).all(axis=1))


def _pair_by_pair(
    rule_input: RuleInput, kind: ConfidenceSet, radius: _Array, best: _Codes
) -> NDArray[np.bool_]:
    """Check differences that are not separable, rival by rival, until a sample fails."""
    if shares_quadratics(rule_input, kind):
        return np.asarray(levels_over_sets(rule_input, radius[:, None], best) > 0)
    order = _nearest_rivals(rule_input, best)
    alive = np.ones(len(best), dtype=bool)
    for rivals in order.T:
        rows = np.flatnonzero(alive)
        if not len(rows):
            break
        alive[rows] = _signs(rule_input, kind, radius[rows], rows, best[rows], rivals[rows]) > 0
    return alive


def _nearest_rivals(rule_input: RuleInput, best: _Codes) -> NDArray[np.intp]:
    """The other classes (n, k - 1), by descending score."""
    others = -rule_input.scores
    others[np.arange(len(best)), best] = np.inf
    return np.argsort(others, axis=1, kind="stable")[:, :-1]


def shares_quadratics(rule_input: RuleInput, kind: ConfidenceSet) -> bool:
    """Whether samples of a pattern have equal quadratic forms for a pair of classes."""
    return (
        isinstance(rule_input.functions, Quadratic)
        and not kind.full_covariance
        and rule_input.conditional.means.shape[1] == 1
        and bool(np.isfinite(rule_input.scores).all())
    )


def levels_over_sets(rule_input: RuleInput, radii: _Array, best: _Codes) -> NDArray[np.intp]:
    """Number of leading levels at which the best class dominates.

    Radii (n, t) ascend along the levels. Differences of two quadratic discriminants over the ball
    of a pattern are ``x^T S^T V S x + 2 (S^T g)^T x + c``, where S S^T is the covariance of the
    pattern, and only g and c depend on the sample: one eigendecomposition for each pattern and pair
    of classes serves all samples and all levels.
    """
    levels = np.full(len(best), radii.shape[1])
    for rivals in _nearest_rivals(rule_input, best).T:
        rows = np.flatnonzero(levels > 0)
        if not len(rows):
            break
        levels[rows] = _proved(rule_input, radii[rows], rows, best, rivals, levels[rows])
    return levels


def _proved(
    rule_input: RuleInput,
    radii: _Array,
    rows: _Codes,
    best: _Codes,
    rival: _Codes,
    limits: NDArray[np.intp],
) -> NDArray[np.int32]:
    """Number of leading levels, up to `limits`, at which f_c - f_h is proved to be positive."""
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
    widths = np.sqrt(rule_input.conditional.variances[:, 0])
    size = np.linalg.norm(widths, axis=1)
    constant = rule_input.scores[rows, c] - rule_input.scores[rows, h]
    # Rounding errors of two scores and their difference.
    constant -= rounding_share(rule_input.n_features) * (
        rule_input.magnitudes[rows, c] + rule_input.magnitudes[rows, h]
    )
    curved, sloped = functions.difference_sizes(rule_input.mean, rows, c, h)
    reach = size[pattern][:, None] * radii
    slack = rounding_of_quadratics(curved[:, None], sloped[:, None], reach, rule_input.n_features)
    proved = core.proved_levels(
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


def _signs(
    rule_input: RuleInput, kind: ConfidenceSet, radius: _Array, rows: _Codes, c: _Codes, h: _Codes
) -> NDArray[np.int32]:
    """Signs of the minima of f_c - f_h over the sets of the samples `rows`."""
    constant = rule_input.scores[rows, c] - rule_input.scores[rows, h]
    # Rounding errors of two scores and their difference.
    constant -= rounding_share(rule_input.n_features) * (
        rule_input.magnitudes[rows, c] + rule_input.magnitudes[rows, h]
    )
    V, g = rule_input.functions.difference(rule_input.mean, rows, c, h)
    sizes = rule_input.functions.difference_sizes(rule_input.mean, rows, c, h)
    if kind.full_covariance:
        root = _roots(rule_input, rows)
        A = np.einsum("nia,nij,njb->nab", root, V, root, optimize=True)
        slopes = np.einsum("nia,ni->na", root, g)
        size = np.linalg.norm(root, axis=(1, 2))
    else:  # x = m + diag(deviations) u
        deviations = np.sqrt(rule_input.conditional.variance[rows])
        A = deviations[:, :, None] * V * deviations[:, None, :]
        slopes = deviations * g
        size = np.linalg.norm(deviations, axis=1)
    A = 0.5 * (A + A.transpose(0, 2, 1))
    reach = size * radius
    constant -= rounding_of_quadratics(*sizes, reach, rule_input.n_features)
    threads = rule_input.n_threads or None
    return np.asarray(certified_sign(A, slopes, constant, radius, n_threads=threads).sign)


def _roots(rule_input: RuleInput, rows: _Codes) -> _Array:
    """Roots (n, d, d) of the covariances: x = m + root u."""
    conditional = rule_input.conditional
    if conditional.means.shape[1] == 1 and conditional.covariances is not None:
        return rule_input.roots[conditional.pattern[rows]]
    return square_roots(conditional.covariance[rows])

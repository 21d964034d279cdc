r"""Rules by sets that contain the complete sample with a given probability (Parrish 2012, 5.2).

Each set is a ball or a box about the conditional mean, in units of standard deviations. A class
that dominates all others on a set of probability tau may be decided at tau. `SetRule` finds the
largest set on which the class dominates; its probability is

- "chebyshev": bounded below by Chebyshev's inequality in several dimensions, for any distribution;
- "quadratic": given by a weighted sum of chi-squares, for Gaussians of any correlation;
- "mahalanobis": given by the chi-square distribution, for Gaussians of any correlation;
- "box": bounded below by Sidak's inequality, for Gaussians of any correlation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, ndtr

from eigenfeat._base.core import core
from eigenfeat.early.chi_squares import bounded_tail, tail
from eigenfeat.early.rules import (
    Quadratic,
    Rule,
    RuleInput,
    all_pair_variances,
    rounding_of_quadratics,
    rounding_share,
)
from eigenfeat.regions.prefix_gaussian import MAX_EIGENVALUES

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

_N_LEVELS = 128  # radii that are tested together


class ConfidenceSet(ABC):
    """A family of sets about the conditional mean, one for each radius."""

    shape = "ball"  # "ball" or "box"
    full_covariance = False  # True if the covariance scales the set, False if the variances do
    any_distribution = False  # whether the probability holds for every distribution
    # Largest radius of the search, in roots of the number of features; its probability is 1.
    largest_radius = 10.0

    def probability(self, rule_input: RuleInput, radius: _Array, required: _Array) -> _Array:
        """Probability (n,) of each sample's set of a radius; 1 without degrees of freedom.

        Probabilities below `required` (n,) may be underestimated.
        """
        degrees = self.degrees(rule_input)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(degrees == 0, 1.0, self.reliability(radius, degrees))

    @abstractmethod
    def reliability(self, radius: _Array, degrees: _Codes) -> _Array:
        """Probability (n,) of sets of uncorrelated or whitened components."""

    def degrees(self, rule_input: RuleInput) -> _Codes:
        """Degrees of freedom (n,), the smallest for which the theorems hold.

        - Sets scaled by the variances: the number of entries with positive variance.
        - Sets scaled by the covariance: a bound on its rank, the smaller of this number and the
          number of missing entries. For linear discriminants the set consists of differences of
          scores: Chebyshev's and the chi-square inequality hold for any affine image of a sample,
          here of dimension min(missing, classes - 1).
        """
        conditional = rule_input.conditional
        if rule_input.by_scores:
            return np.minimum(rule_input.n_missing, conditional.means.shape[2] - 1)
        spread = np.asarray((conditional.variance > 0).sum(axis=1))
        return np.minimum(rule_input.n_missing, spread) if self.full_covariance else spread


class ChebyshevSet(ConfidenceSet):
    """``(x - m)^T R^-1 (x - m) <= ell / (1 - tau)``, for any distribution (5.3).

    ell is the rank of R or a bound on it: for linear discriminants min(missing entries,
    classes - 1), the dimension of the differences of scores.
    """

    full_covariance = True
    any_distribution = True
    largest_radius = 1e9  # the bound approaches 1 slowly

    def reliability(self, radius: _Array, degrees: _Codes) -> _Array:
        """See `ConfidenceSet.reliability`; the inequality gives a bound below 0 for small radii."""
        return np.maximum(1.0 - degrees / np.square(radius), 0.0)


class MahalanobisSet(ConfidenceSet):
    """``(x - m)^T R^-1 (x - m)`` up to the chi-square quantile of tau, exact for Gaussians."""

    full_covariance = True

    def reliability(self, radius: _Array, degrees: _Codes) -> _Array:
        """See `ConfidenceSet.reliability`."""
        return np.asarray(chdtr(degrees, np.square(radius)))


class QuadraticSet(MahalanobisSet):
    """``sum_i (x_i - m_i)^2 / R_ii`` up to its quantile of tau (5.4).

    The sum has the distribution of chi-squares weighted by the eigenvalues of the conditional
    correlation. The chi-square of the thesis, `reliability`, is exact for uncorrelated components
    only.
    """

    full_covariance = False

    def probability(self, rule_input: RuleInput, radius: _Array, required: _Array) -> _Array:
        """As `ConfidenceSet.probability`, from the eigenvalues or a bound by their moments."""
        conditional, square = rule_input.conditional, np.square(radius)
        spectra = conditional.patterns.spectra[conditional.pattern]
        if conditional.means.shape[2] > MAX_EIGENVALUES:
            return 1.0 - bounded_tail(spectra, square)
        return 1.0 - tail(spectra, square, 1.0 - required)


class BoxSet(ConfidenceSet):
    """``|x_i - m_i| <= z sqrt(R_ii)``, with probability tau^(1/ell) for each of ell entries (5.5).

    By Sidak's inequality the probability is at least tau for Gaussians of any correlation.
    """

    shape = "box"

    def reliability(self, radius: _Array, degrees: _Codes) -> _Array:
        """See `ConfidenceSet.reliability`."""
        return np.asarray((1.0 - 2.0 * ndtr(-radius)) ** degrees)


SETS: dict[str, ConfidenceSet] = {
    "chebyshev": ChebyshevSet(),
    "mahalanobis": MahalanobisSet(),
    "quadratic": QuadraticSet(),
    "box": BoxSet(),
}


# ---- the rule


class SetRule(Rule):
    """Decide a class that dominates on a set of probability tau (5.2).

    Under a mixture the set is the union of a set for each component g, of probability t_g; by the
    law of total probability the union has at least probability sum_g p(g|z) t_g. Sets for any
    distribution need no union.
    """

    def __init__(self, kind: ConfidenceSet) -> None:
        self.kind = kind

    def best_classes(self, rule_input: RuleInput) -> _Codes:
        """See `Rule.best_classes`: for a mixture, the class of the means with the most weight."""
        if not self._is_union(rule_input):
            return np.asarray(rule_input.scores.argmax(axis=1))
        weights, part_classes = rule_input.conditional.weights, _part_classes(rule_input)
        votes = np.zeros((len(weights), int(part_classes.max(initial=0)) + 1))
        for g, codes in enumerate(part_classes.T):
            votes[np.arange(len(votes)), codes] += weights[:, g]
        return np.asarray(votes.argmax(axis=1))

    def bound(self, rule_input: RuleInput, best: _Codes) -> _Array:
        """See `Rule.bound`: for a mixture, sum_g p(g|z) t_g over components with mean in `best`."""
        if not self._is_union(rule_input):
            return self._probability(rule_input, best, np.zeros(len(best)))
        weights, total = rule_input.conditional.weights, np.zeros(len(best))
        for g, codes in enumerate(_part_classes(rule_input).T):
            rows = np.flatnonzero((codes == best) & (weights[:, g] > 0))
            if len(rows):
                tau = self._probability(rule_input.part(g, rows), best[rows], np.zeros(len(rows)))
                total[rows] += weights[rows, g] * tau
        return np.minimum(total, 1.0)

    def _is_union(self, rule_input: RuleInput) -> bool:
        """Whether the set is a union of sets for the components of a mixture."""
        return rule_input.conditional.weights.shape[1] > 1 and not self.kind.any_distribution

    def decides(self, rule_input: RuleInput, best: _Codes, tau: _Array) -> NDArray[np.bool_]:
        """See `Rule.decides`; probabilities below tau need not be accurate."""
        if self._is_union(rule_input):
            return super().decides(rule_input, best, tau)
        return np.asarray(self._probability(rule_input, best, tau) >= tau)

    def _probability(self, rule_input: RuleInput, best: _Codes, required: _Array) -> _Array:
        radii = largest_radii(rule_input, self.kind, best, required)
        return self.kind.probability(rule_input, radii, required)


def _part_classes(rule_input: RuleInput) -> _Codes:
    """Classes (n, p) of the means of the p components of a mixture."""
    columns = list(rule_input.conditional.means.swapaxes(0, 1))
    if not rule_input.by_scores:
        columns = [rule_input.functions.scores(points) for points in columns]
    return np.stack([scores.argmax(axis=1) for scores in columns], axis=1)


# ---- the largest set on which a class dominates


def largest_radii(
    rule_input: RuleInput, kind: ConfidenceSet, best: _Codes, required: _Array
) -> _Array:
    """Lower bounds (n,) on the largest radii of sets on which the class `best` dominates.

    0 if the class does not dominate at the mean. Radii of sets with a probability below `required`
    (n,) may be underestimated.
    """
    if rule_input.by_scores:
        return _radii_of_ellipsoids(rule_input, best)
    limit = np.full(len(best), kind.largest_radius * np.sqrt(rule_input.n_features))
    separable = rule_input.functions.separable
    if separable is None or kind.full_covariance:
        return _radii_by_levels(rule_input, kind, limit, best, required)
    points = np.ascontiguousarray(rule_input.mean)
    widths = np.ascontiguousarray(np.sqrt(rule_input.conditional.variance))
    return core.dominance_radii(points, widths, limit, *separable, kind.shape, rule_input.n_threads)


def _radii_of_ellipsoids(rule_input: RuleInput, best: _Codes) -> _Array:
    """Proposition 2: (f_c - f_h)(m) against radius |R^(1/2) (beta_c - beta_h)|, up to rounding."""
    scores, rows = rule_input.scores, np.arange(len(best))
    share = rounding_share(rule_input.n_features)
    best_score = scores[rows, best][:, None]
    lead = best_score - scores - share * (np.abs(best_score) + np.abs(scores))
    variances = all_pair_variances(rule_input.conditional.covariance)[rows, best]
    deviation = np.sqrt(variances) * (1.0 + share)
    with np.errstate(divide="ignore", invalid="ignore"):
        radii = np.where(deviation > 0, lead / deviation, np.where(lead >= 0, np.inf, 0.0))
    radii[rows, best] = np.inf
    return np.asarray(np.clip(radii.min(axis=1), 0.0, 1e150))


def _radii_by_levels(
    rule_input: RuleInput, kind: ConfidenceSet, limit: _Array, best: _Codes, required: _Array
) -> _Array:
    """Test powers of two, then twice `_N_LEVELS` radii between two neighbouring radii."""
    rows = np.arange(len(best))
    powers = np.minimum(2.0 ** np.arange(-40, 41), limit[:, None])
    radii = np.column_stack([np.zeros_like(limit), powers, limit])
    steps = np.arange(_N_LEVELS + 1) / _N_LEVELS
    possible = np.ones(len(best), dtype=bool)
    for _ in range(3):
        count = _dominated_levels(rule_input, kind, radii[:, 1:], best, possible)
        below = radii[rows, count]
        above = radii[rows, np.minimum(count + 1, radii.shape[1] - 1)]
        possible &= kind.probability(rule_input, above, required) >= required
        with np.errstate(divide="ignore", invalid="ignore"):
            between = below[:, None] * (above / below)[:, None] ** steps
        radii = np.where(below[:, None] > 0, between, 0.0)
    return below


def _dominated_levels(
    rule_input: RuleInput,
    kind: ConfidenceSet,
    radii: _Array,
    best: _Codes,
    possible: NDArray[np.bool_],
) -> _Codes:
    """Number (n,) of leading radii, of ascending radii (n, t), at which the class `best` dominates.

    0 for samples that are not `possible`.
    """
    others = -rule_input.scores
    others[np.arange(len(best)), best] = np.inf
    nearest_rivals = np.argsort(others, axis=1, kind="stable")[:, :-1]
    levels = np.where(possible, radii.shape[1], 0)
    for rivals in nearest_rivals.T:
        rows = np.flatnonzero(levels > 0)
        if not len(rows):
            break
        pair = best[rows], rivals[rows]
        levels[rows] = _proved_levels(rule_input, kind, radii[rows], rows, *pair, levels[rows])
    return levels


def _proved_levels(
    rule_input: RuleInput,
    kind: ConfidenceSet,
    radii: _Array,
    rows: _Codes,
    c: _Codes,
    h: _Codes,
    limits: _Codes,
) -> _Codes:
    """Number of leading `radii`, at most `limits`, at which f_c - f_h is proved to be positive.

    With x = m + S u the difference is ``u^T S^T V S u + 2 (S^T g)^T u + constant``. For a single
    Gaussian only g and the constant depend on the sample: one eigendecomposition for each pattern
    of known entries and pair of classes serves all samples and all levels.
    """
    functions, conditional = rule_input.functions, rule_input.conditional
    assert isinstance(functions, Quadratic)
    slopes = 0.5 * (rule_input.pulls[rows, h] - rule_input.pulls[rows, c])
    pattern, k = conditional.pattern[rows], functions.means.shape[1]
    keys = (pattern * k + c) * k + h
    if len(functions.means) > 1 or conditional.means.shape[1] > 1:
        keys = np.arange(len(rows))  # each sample has its own form
    order = np.argsort(keys, kind="stable")
    first = np.flatnonzero(np.diff(keys[order], prepend=-1))
    owners = order[first]  # one sample of each form
    if kind.full_covariance:
        root = rule_input.roots[rows]
        forms = functions.forms(rows[owners], c[owners], h[owners])
        forms = root[owners].transpose(0, 2, 1) @ forms @ root[owners]
        slopes = np.einsum("nia,ni->na", root, slopes)
        widths, size = np.ones((1, forms.shape[1])), np.linalg.norm(root, axis=(1, 2))
        groups = np.stack([np.arange(len(owners)), np.zeros_like(owners)], axis=1)
    else:
        pairs, form = np.unique(np.stack([c, h], axis=1)[owners], axis=0, return_inverse=True)
        forms = functions.forms(np.zeros(len(pairs), dtype=np.intp), *pairs.T)
        widths = np.sqrt(conditional.patterns.variances[:, 0])
        size = np.linalg.norm(widths, axis=1)[pattern]
        groups = np.stack([form.reshape(-1), pattern[owners]], axis=1)
    curved, sloped, terms = (part[rows, c] + part[rows, h] for part in rule_input.quadratic_sizes)
    constant = rule_input.scores[rows, c] - rule_input.scores[rows, h]
    constant -= rounding_share(rule_input.n_features) * terms
    reach = size[:, None] * radii
    slack = rounding_of_quadratics(curved[:, None], sloped[:, None], reach, rule_input.n_features)
    levels = np.empty(len(rows), dtype=np.intp)
    levels[order] = core.proved_levels(
        forms,
        np.ascontiguousarray(widths),
        groups.astype(np.int64),
        np.append(first, len(rows)).astype(np.int64),
        np.ascontiguousarray(slopes[order]),
        np.ascontiguousarray((constant[:, None] - slack)[order]),
        np.ascontiguousarray(radii[order]),
        limits[order].astype(np.int64),
        rule_input.n_threads,
    )
    return levels

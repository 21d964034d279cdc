"""Rules: whether incomplete samples may be decided, and their input.

A `RuleInput` has the discriminants and the conditional distribution of their arguments. A rule
returns a class for every sample, whether it is decided at a reliability tau, and the largest such
tau. The pairwise rule is in this file, rules by sets in `set_rules`, the rule that draws
completions in `sampling`.

Decisions must not depend on rounding errors. With u = eps / 2, the error of a sum of m products in
any order is at most about (m + 2) u times the sum of their magnitudes (Higham, Accuracy and
Stability of Numerical Algorithms, 2nd ed., section 3.1). Scores, slopes and congruences S^T V S are
sums of d products in one or two stages; `rounding_share` is four times the bound of two stages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr

from eigenfeat.early.discriminants import Discriminants, Quadratic
from eigenfeat.early.mixture import Conditional

__all__ = [
    "SLACK",
    "PairwiseRule",
    "Rule",
    "RuleInput",
    "all_pair_variances",
    "clopper_pearson",
    "lower_bounds",
    "rounding_of_quadratics",
    "rounding_share",
    "square_roots",
]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

EPS = float(np.finfo(float).eps)
MAX_ROUNDING = 1e300  # bound of rounding errors, so that they stay finite
SLACK = 1e-12  # rounding error of shares that are compared with tau


@dataclass(frozen=True, eq=False)
class RuleInput:
    """Discriminants and the conditional distribution of their arguments."""

    discriminants: Discriminants | None  # None if only the labels of the classifier are known
    conditional: Conditional  # of features, or of linear discriminants' scores with `by_scores`
    n_features: int
    by_scores: bool
    n_threads: int
    prefixes: _Array | None = None  # (n, k) probabilities by classifiers of the known values

    def part(self, g: int, rows: _Codes) -> RuleInput:
        """Inputs of the samples `rows`, conditioned on part g of the mixture."""
        functions = self.discriminants if self.by_scores else self.functions.take(rows)
        conditional = self.conditional.part(g, rows)
        return replace(self, conditional=conditional, discriminants=functions)

    @cached_property
    def mean(self) -> _Array:
        """The conditional mean."""
        return self.conditional.mean

    @property
    def n_missing(self) -> _Codes:
        """Numbers (n,) of missing entries, or of features if these are fewer."""
        conditional = self.conditional
        return np.minimum(conditional.missing[conditional.pattern], self.n_features)

    @cached_property
    def functions(self) -> Discriminants:
        """The discriminants; local discriminants are computed from the neighbours of the mean."""
        assert self.discriminants is not None
        return self.discriminants if self.by_scores else self.discriminants.about(self.mean)

    @cached_property
    def scores(self) -> _Array:
        """Scores (n, k) at the conditional mean."""
        return self.mean if self.by_scores else self.functions.scores(self.mean)

    @cached_property
    def pulls(self) -> _Array:
        """Negative gradients (n, k, d) of quadratic discriminants at the conditional mean."""
        functions = cast("Quadratic", self.functions)
        classes = range(functions.means.shape[1])
        return np.stack([functions.pull(self.mean, c)[1] for c in classes], axis=1)

    @cached_property
    def quadratic_sizes(self) -> tuple[_Array, _Array, _Array]:
        """Sizes of the terms of quadratic discriminants about the conditional mean."""
        return cast("Quadratic", self.functions).sizes(self.mean)

    @cached_property
    def roots(self) -> _Array:
        """Square roots (n, d, d) of the conditional covariances."""
        conditional = self.conditional
        if conditional.means.shape[1] > 1 or conditional.covariances is None:
            return square_roots(conditional.covariance)
        return square_roots(conditional.covariances[:, 0])[conditional.pattern]

    def take(self, items: _Codes) -> RuleInput:
        """Inputs of the samples `items`."""
        prefixes = None if self.prefixes is None else self.prefixes[items]
        return replace(self, conditional=self.conditional.take(items), prefixes=prefixes)


class Rule(ABC):
    """Base class of rules."""

    cost: int = 1  # number of complete samples that are classified per evaluation

    @abstractmethod
    def best_classes(self, rule_input: RuleInput) -> _Codes:
        """Class (n,) of the decision about each sample, at every tau."""

    @abstractmethod
    def bound(self, rule_input: RuleInput, best: _Codes) -> _Array:
        """Largest tau (n,) at which each sample is decided as its class `best`; 0 for none."""

    def decides(self, rule_input: RuleInput, best: _Codes, tau: _Array) -> NDArray[np.bool_]:
        """Mask of the samples that are decided as their class `best` at tau (n,)."""
        return np.asarray(self.bound(rule_input, best) >= tau)


def all_pair_variances(covariance: _Array) -> _Array:
    """Variances (..., k, k) of s_c - s_h for scores s, plus a bound of their rounding errors."""
    k = covariance.shape[-1]
    diagonal = np.einsum("...kk->...k", covariance)
    total = diagonal[..., None] + diagonal[..., None, :]
    variance = np.maximum(total - 2.0 * covariance, 0) + 4 * k * EPS * total
    return np.where(np.eye(k, dtype=bool), 0.0, variance)


def square_roots(covariances: _Array) -> _Array:
    """Matrices S with S S^T = R for each covariance R of a stack."""
    values, vectors = np.linalg.eigh(covariances)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])


# ---- the pairwise rule


class PairwiseRule(Rule):
    """P(g(X) = c | z) >= 1 - sum_h P(f_c(X) < f_h(X) | z), Boole's inequality.

    Differences of linear discriminants have exact normal tails; under a mixture, tails of the
    mixture.
    """

    def best_classes(self, rule_input: RuleInput) -> _Codes:
        """As `Rule.best_classes`."""
        return np.asarray(rule_input.scores.argmax(axis=1))

    def bound(self, rule_input: RuleInput, best: _Codes) -> _Array:
        """As `Rule.bound`."""
        conditional = rule_input.conditional
        assert conditional.covariances is not None
        variances = all_pair_variances(conditional.covariances)[conditional.pattern, :, best]
        rows = np.arange(len(best))
        behind = conditional.means - conditional.means[rows, :, best][:, :, None]
        random = variances > 0
        deviations = np.sqrt(np.where(random, variances, 1.0))
        # Without variance, as for `best` itself, the larger score wins; `best` wins a tie.
        tails = np.where(random, ndtr(behind / deviations), behind > 0).sum(axis=2)
        total = np.zeros(len(best))
        for g in range(tails.shape[1]):
            total += conditional.weights[:, g] * tails[:, g]
        return np.maximum(1.0 - total, 0.0)


# ---- bounds of shares


def clopper_pearson(
    count: NDArray[np.int64], n: NDArray[np.int64], risk: float
) -> NDArray[np.float64]:
    """Lower bounds of a probability from `count` successes in n trials, at error level `risk`."""
    return np.where(count > 0, betaincinv(np.maximum(count, 1), n - count + 1, risk), 0.0)


@lru_cache(maxsize=64)
def lower_bounds(n: int, risk: float) -> _Array:
    """Clopper and Pearson's lower bounds (n + 1,) for 0, ..., n successes."""
    return clopper_pearson(np.arange(n + 1), np.full(n + 1, n), risk)


# ---- rounding


def rounding_share(d: int) -> float:
    """Rounding error of sums over d features, relative to the sum of the magnitudes."""
    return 4.0 * (d + 16) * EPS


def rounding_of_quadratics(curved: _Array, sloped: _Array, reach: _Array, d: int) -> _Array:
    """Rounding error of ``y^T V y + 2 g^T y``, |y| <= reach, by sizes of the terms of V and g."""
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.where(curved > 0, curved * reach * reach, 0.0)
        terms = terms + np.where(sloped > 0, 2.0 * sloped * reach, 0.0)
    return np.asarray(np.minimum(rounding_share(d) * terms, MAX_ROUNDING))

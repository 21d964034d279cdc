"""Decisions of a fitted model: the rules and their input.

`FittedModel` conditions samples on their known entries and gives the rule a `RuleInput`: the
discriminants and the conditional distribution of their arguments. A rule returns a class for every
sample, whether it is decided at a reliability tau, and the largest such tau. The pairwise rule is
in this file, rules by sets in `set_rules`, the rule that draws completions in `sampling`.

Decisions must not depend on rounding errors. With u = eps / 2, the error of a sum of m products in
any order is at most about (m + 2) u times the sum of their magnitudes (Higham, Accuracy and
Stability of Numerical Algorithms, 2nd ed., section 3.1). Scores, slopes and congruences S^T V S are
sums of d products in one or two stages; `rounding_share` is four times the bound of two stages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr

from eigenfeat._base import threads as _threads
from eigenfeat._base.state import OmitsCaches
from eigenfeat.early.completion import Completion, Conditional, filled
from eigenfeat.early.discriminants import Affine, ClassCodes, Discriminants, Quadratic
from eigenfeat.early.series import Layout, blocks

if TYPE_CHECKING:
    from eigenfeat.early.stages import KnownStages, Stages

__all__ = [
    "SLACK",
    "FittedModel",
    "PairwiseRule",
    "PrefixRule",
    "RestrictedRule",
    "Rule",
    "RuleInput",
    "TargetRule",
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

    def largest_tau(self, rule_input: RuleInput) -> tuple[_Array, _Codes]:
        """Largest tau (n,) at which each sample would be decided, and its class."""
        best = self.best_classes(rule_input)
        return self.bound(rule_input, best), best


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


# ---- restricted rules


class RestrictedRule(Rule):
    """Base class of rules that make some decisions of another rule."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.cost = rule.cost

    def best_classes(self, rule_input: RuleInput) -> _Codes:
        """As `Rule.best_classes`."""
        return self.rule.best_classes(rule_input)


class TargetRule(RestrictedRule):
    """A rule whose decisions for classes other than the targets wait for the complete sample."""

    def __init__(self, rule: Rule, is_target: NDArray[np.bool_]) -> None:
        super().__init__(rule)
        self.is_target = is_target

    def bound(self, rule_input: RuleInput, best: _Codes) -> _Array:
        """As `Rule.bound`."""
        return np.where(self.is_target[best], self.rule.bound(rule_input, best), 0.0)

    def decides(self, rule_input: RuleInput, best: _Codes, tau: _Array) -> NDArray[np.bool_]:
        """As `Rule.decides`."""
        return self.is_target[best] & self.rule.decides(rule_input, best, tau)


class PrefixRule(RestrictedRule):
    """A rule's probability times that of the class by classifiers of the known values."""

    def bound(self, rule_input: RuleInput, best: _Codes) -> _Array:
        """As `Rule.bound`; the product is at most the rule's probability."""
        assert rule_input.prefixes is not None
        return self.rule.bound(rule_input, best) * rule_input.prefixes[np.arange(len(best)), best]


# ---- the fitted model


@dataclass(frozen=True, eq=False)
class FittedModel(OmitsCaches):
    """Everything that `ReliableClassifier.fit` learns. Immutable: streams share it."""

    _caches = frozenset({"cache"})

    layout: Layout
    classes: NDArray[Any]
    classifier: Any
    completion: Completion
    features: Any
    rule_name: str
    affine: Affine | None  # features as an affine map of the samples
    # Linear discriminants as an affine map of the samples; then scores are completed.
    scores: Affine | None
    discriminants: Discriminants | None
    rule: Rule
    n_threads: int | None
    stages: Stages | KnownStages | None = None  # classifiers of the known values
    cache: dict[str, Any] = field(default_factory=dict, repr=False)  # what streams share

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, cache={})

    @property
    def conditioned_map(self) -> Affine | None:
        """The map whose conditional distributions the rule receives: scores, or features."""
        return self.affine if self.scores is None else self.scores

    @property
    def needs_covariance(self) -> bool:
        """Whether the rule needs conditional covariances."""
        return self.rule_name in ("pairwise", "mahalanobis", "chebyshev")

    @property
    def needs_spectra(self) -> bool:
        """Whether the rule needs spectra of conditional correlations."""
        return self.rule_name == "quadratic"

    @property
    def width(self) -> int:
        """Number of features."""
        return self.layout.width if self.affine is None else self.affine.B.shape[1]

    # ---- complete rows

    def transform(self, rows: _Array) -> _Array:
        """Map complete samples to the inputs of the classifier."""
        return rows if self.features is None else self.features.transform(rows)

    @property
    def plain_rule(self) -> Rule:
        """The rule without a correction and without targets."""
        rule = self.rule
        while isinstance(rule, RestrictedRule):
            rule = rule.rule
        return rule

    def predict_codes(self, rows: _Array) -> NDArray[np.intp]:
        """Class indices of complete samples."""
        return ClassCodes(self.classes, self.classifier)(self.transform(rows))

    # ---- incomplete rows

    def rule_input(self, rows: _Array, entries: int | None = None) -> RuleInput:
        """Condition samples (NaN is missing) on their known entries.

        Classifiers of the known values take the first `entries`, by default up to the last known
        entry.
        """
        prefixes = None
        if self.stages is not None:
            known = np.where(np.isnan(rows), 0, np.arange(1, rows.shape[1] + 1)).max(axis=1)
            seen = known if entries is None else np.full(len(rows), entries)
            prefixes = np.empty((len(rows), len(self.classes)))
            for t in np.unique(seen):
                prefixes[seen == t] = self.prefixes(rows[seen == t], t[None])
        conditional = self.completion.mixture_.condition(rows, **self._wanted)
        return self.input_of(conditional, prefixes)

    def prefix_input(self, rows: _Array, times: NDArray[np.int64]) -> RuleInput:
        """Condition every sample on its first entries, for several numbers of entries."""
        mixture = self.completion.mixture_
        if np.isnan(rows).any():  # each sample has its own pattern
            later = np.arange(rows.shape[1]) >= times[:, None]
            seen = np.where(later, np.nan, rows[:, None]).reshape(-1, rows.shape[1])
            conditional = mixture.condition(seen, **self._wanted)
        else:
            conditional = mixture.after(rows, times, **self._wanted)
        return self.input_of(conditional, self.prefixes(rows, times))

    def prefixes(self, rows: _Array, times: NDArray[np.int64]) -> _Array | None:
        """Probabilities (n p, k) by classifiers of the first entries, for p numbers of entries."""
        if self.stages is None:
            return None
        series = rows.reshape(-1, self.layout.length, self.layout.channels)
        known = self.stages.after(series, -(-times // self.layout.channels))
        out = np.zeros((known.shape[0] * known.shape[1], len(self.classes)))
        shared = np.isin(self.stages.classes, self.classes)  # a frozen classifier has its own
        columns = self.classes.searchsorted(self.stages.classes[shared])
        out[:, columns] = known.reshape(len(out), -1)[:, shared]
        return out

    @property
    def _wanted(self) -> dict[str, Any]:
        """Options of conditional distributions."""
        return {
            "affine": self.conditioned_map,
            "covariance": self.needs_covariance,
            "spectra": self.needs_spectra,
            "n_threads": self.completion.n_threads,
        }

    def input_of(self, conditional: Conditional, prefixes: _Array | None) -> RuleInput:
        """Combine discriminants and conditional distributions."""
        return RuleInput(
            self.discriminants,
            conditional,
            self.width,
            self.scores is not None,
            _threads.resolve(self.n_threads),
            prefixes,
        )

    def incomplete_parts(self, missing: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """Yield the indices of the incomplete rows, in blocks of bounded memory."""
        rows = np.flatnonzero(missing > 0)
        for part in blocks(len(rows), self.numbers_per_row()):
            yield rows[part]

    def numbers_per_row(self) -> int:
        """Approximate memory of the evaluation of one sample, in numbers."""
        k, parts = len(self.classes), len(self.completion.mixture_.weights)
        if self.scores is not None:
            return k * (parts * k + 4)
        return self.width * (parts * (self.width if self.needs_covariance else 1) + 4 * k)

    def final_decisions(self, rows: _Array) -> tuple[NDArray[np.intp], _Array]:
        """Classes of series at their end, and the largest tau of each: 1 if nothing is missing."""
        if not len(rows):
            return np.empty(0, dtype=np.intp), np.empty(0)
        codes = self.predict_codes(filled(self.completion, rows))
        tau = np.ones(len(rows))
        for part in self.incomplete_parts(np.isnan(rows).sum(axis=1)):
            largest, best = self.rule.largest_tau(self.rule_input(rows[part]))
            tau[part] = np.where(best == codes[part], largest, 0.0)
        return codes, tau

    def decide(self, rows: _Array, tau: _Array) -> tuple[_Codes, _Array, NDArray[np.bool_], _Codes]:
        """Classes, largest tau, decisions at tau (n,), and numbers of missing entries of rows."""
        missing = np.isnan(rows).sum(axis=1)
        decided = missing == 0
        codes, largest = np.zeros(len(rows), dtype=np.intp), decided.astype(float)
        if decided.any():
            codes[decided] = self.predict_codes(rows[decided])
        for part in self.incomplete_parts(missing):
            largest[part], codes[part] = self.rule.largest_tau(self.rule_input(rows[part]))
            decided[part] = largest[part] >= tau[part] - SLACK
        return codes, largest, decided, missing


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

"""Discriminants of classifiers, and the rules by which incomplete samples may be decided.

The prediction of a classifier is the argmax of linear or quadratic functions of a sample. `Linear`,
`Quadratic` and `Local` evaluate such functions at points. If differences of the functions are sums
over columns, `separable` has their coefficients in the form of the core's kernels; `Quadratic` has
the forms and gradients of any quadratic differences.

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
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr

from eigenfeat._base.validation import show
from eigenfeat.early.completion import Conditional
from eigenfeat.expansion.features import expand

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from eigenfeat.early.local_qda import LocalQDA

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]
Separable = tuple[_Array, _Array | None, _Array | None, _Array | None]

EPS = float(np.finfo(float).eps)
MAX_ROUNDING = 1e300  # bound on rounding errors, so that they stay finite
SLACK = 1e-12  # allowance for rounding errors of shares that are compared with tau


# ---- discriminants


@dataclass(frozen=True, eq=False)
class ClassCodes:
    """Class indices of samples, by a classifier's `predict`."""

    classes: NDArray[Any]
    classifier: Any

    def __call__(self, inputs: _Array) -> NDArray[np.intp]:
        """Class indices (n,) of samples (n, d) in the classifier's features."""
        labels = np.asarray(self.classifier.predict(inputs))
        if labels.shape != (len(inputs),):
            raise ValueError(
                f"classifier: expected predict to return {len(inputs)} labels, got shape "
                f"{labels.shape}"
            )
        codes = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        unknown = self.classes[codes] != labels
        if np.any(unknown):
            known, got = show(self.classes.tolist()), show(labels[np.argmax(unknown)])
            raise ValueError(f"classifier: expected predict to return labels in {known}, got {got}")
        return codes


@dataclass(frozen=True, eq=False)
class Discriminants:
    """f_1, ..., f_k, one for each class of the classifier."""

    def about(self, points: _Array) -> Discriminants:
        """The functions at each point if they are local, otherwise these functions."""
        return self

    def take(self, rows: _Codes) -> Discriminants:
        """The functions of the points `rows`, if each point has its own functions."""
        return self

    def scores(self, points: _Array) -> _Array:
        """Values (n, k) of the functions."""
        raise NotImplementedError

    @property
    def separable(self) -> Separable | None:
        """Discriminants in the form of the dominance kernels, if all differences are separable.

        Offsets (n or 1, k), slopes (k, d), precisions and centres (n or 1, k, d) of
        ``offset_c + slope_c . x - sum_i precision_ci (x_i - centre_ci)^2``.
        """
        return None


@dataclass(frozen=True, eq=False)
class Linear(Discriminants):
    """``f = slopes @ x + offsets``."""

    slopes: _Array
    offsets: _Array

    def scores(self, points: _Array) -> _Array:
        """See `Discriminants.scores`."""
        return np.asarray(np.einsum("ni,ki->nk", points, self.slopes) + self.offsets)

    @property
    def separable(self) -> Separable:
        """See `Discriminants.separable`."""
        return self.offsets[None], np.ascontiguousarray(self.slopes), None, None


@dataclass(frozen=True, eq=False)
class Quadratic(Discriminants):
    """``f_c = offset_c - 1/2 (x - mean_c)^T P_c (x - mean_c)``, for each point or for all."""

    offsets: _Array  # (n or 1, k)
    means: _Array  # (n or 1, k, d)
    precisions: _Array  # (n or 1, k, d) diagonals, or (1, k, d, d)

    @property
    def diagonal(self) -> bool:
        """Whether all precisions are diagonal."""
        return self.precisions.ndim == 3

    def take(self, rows: _Codes) -> Quadratic:
        """See `Discriminants.take`."""
        if len(self.means) == 1:
            return self
        return Quadratic(self.offsets[rows], self.means[rows], self.precisions[rows])

    def pull(self, points: _Array, c: int) -> tuple[_Array, _Array]:
        """Points minus the mean of class c, and the negative gradients of f_c, both (n, d)."""
        difference = points - self.means[:, c]
        if self.diagonal:
            return difference, self.precisions[:, c] * difference
        return difference, _products(difference, self.precisions[0, c])

    def scores(self, points: _Array) -> _Array:
        """See `Discriminants.scores`."""
        pulls = (self.pull(points, c) for c in range(self.means.shape[1]))
        squares = [np.einsum("ni,ni->n", difference, pull) for difference, pull in pulls]
        return np.asarray(self.offsets - 0.5 * np.stack(squares, axis=1))

    @property
    def separable(self) -> Separable | None:
        """See `Discriminants.separable`."""
        if not self.diagonal:
            return None
        arrays = self.offsets, 0.5 * self.precisions, self.means
        offsets, precisions, centres = map(np.ascontiguousarray, arrays)
        return offsets, None, precisions, centres

    def forms(self, rows: _Codes, c: _Codes, h: _Codes) -> _Array:
        """Forms V (m, d, d) of ``f_c - f_h`` at the points `rows`."""
        rows = rows if len(self.precisions) > 1 else np.zeros_like(rows)
        V = 0.5 * (self.precisions[rows, h] - self.precisions[rows, c])
        return np.asarray(V[:, :, None] * np.eye(V.shape[1]) if self.diagonal else V)

    def sizes(self, points: _Array) -> tuple[_Array, _Array, _Array]:
        """Bounds (n, k) on the magnitudes of the terms of V, of the half gradient and of f_c."""
        axes = tuple(range(2, self.precisions.ndim))
        curved = np.sqrt((0.25 * self.precisions**2).sum(axis=axes))
        distance = np.stack(
            [np.linalg.norm(points - self.means[:, c], axis=1) for c in range(curved.shape[1])],
            axis=1,
        )
        curved = np.broadcast_to(curved, distance.shape)
        return curved, curved * distance, np.abs(self.offsets) + curved * distance**2


@dataclass(frozen=True, eq=False)
class Local(Discriminants):
    """Discriminants of the neighbours of each point."""

    model: LocalQDA

    def about(self, points: _Array) -> Quadratic:
        """See `Discriminants.about`."""
        means, variances = self.model.local_gaussians(points)
        return Quadratic(self.model.offsets(variances), means, 1.0 / variances)

    def scores(self, points: _Array) -> _Array:
        """See `Discriminants.scores`."""
        return self.about(points).scores(points)


def _products(X: _Array, precision: _Array) -> _Array:
    """Products P x (n, d); the rounding errors of a point do not depend on the other points."""
    return np.asarray(expand(X, np.ascontiguousarray(precision.T), None, expansion="none"))


def discriminants_of(classifier: BaseEstimator, X: _Array) -> Discriminants:
    """Discriminants of a fitted classifier."""
    functions = _known_discriminants(classifier)
    if functions is None:
        raise ValueError(
            "classifier: expected linear or quadratic discriminants (coef_ and intercept_ for each "
            f"class, QDA, GaussianNB or LocalQDA), got {show(classifier)}"
        )
    scores = functions.scores(X)
    expected = np.searchsorted(classifier.classes_, classifier.predict(X))
    got = scores.argmax(axis=1)
    expected_scores = scores[np.arange(len(scores)), expected]
    close = scores.max(axis=1) - expected_scores <= 1e-6 * (1 + np.abs(scores).max(axis=1))
    if not np.all((got == expected) | close):
        row = int(np.argmin((got == expected) | close))
        raise ValueError(
            "classifier: expected predict to be the argmax of its discriminants, got "
            f"{show(classifier.classes_[expected[row]])} in place of "
            f"{show(classifier.classes_[got[row]])} in row {row} from {show(classifier)}"
        )
    return functions


def _known_discriminants(classifier: Any) -> Discriminants | None:
    if hasattr(classifier, "local_gaussians"):  # LocalQDA
        return Local(classifier)
    if hasattr(classifier, "rotations_") and hasattr(classifier, "scalings_"):
        return _from_qda(classifier)
    if hasattr(classifier, "theta_") and hasattr(classifier, "var_"):
        return _from_naive_bayes(classifier)
    if hasattr(classifier, "coef_") and hasattr(classifier, "intercept_"):
        return _from_coefficients(classifier)
    return None


def _from_coefficients(classifier: Any) -> Discriminants | None:
    coef = classifier.coef_
    coef = np.asarray(coef.toarray() if hasattr(coef, "toarray") else coef, dtype=np.float64)
    coef = np.atleast_2d(coef)  # RidgeClassifier has shape (d,) for two classes
    offsets = np.ravel(np.asarray(classifier.intercept_, dtype=np.float64))
    if coef.ndim != 2 or len(offsets) not in (1, len(coef)):
        return None
    offsets = np.broadcast_to(offsets, len(coef))
    k = len(classifier.classes_)
    if hasattr(classifier, "dual_coef_") and k > 2:  # one function for each pair of classes
        return None
    if len(coef) == 1 and k == 2:
        slopes = np.vstack([-coef, coef]) / 2
        return Linear(slopes, np.concatenate([-offsets, offsets]) / 2)
    if len(coef) != k:
        return None
    return Linear(np.ascontiguousarray(coef), offsets.copy())


def _from_qda(classifier: Any) -> Discriminants:
    offsets, precisions = [], []
    for prior, rotation, scaling in zip(
        classifier.priors_, classifier.rotations_, classifier.scalings_, strict=True
    ):
        scales = np.asarray(scaling, dtype=np.float64)
        offsets.append(_log_prior(prior) - 0.5 * np.log(scales).sum())
        root = rotation / np.sqrt(scales)
        precisions.append(np.einsum("ir,jr->ij", root, root))
    means = np.asarray(classifier.means_, dtype=np.float64)
    return Quadratic(np.array(offsets)[None], means[None], np.stack(precisions)[None])


def _from_naive_bayes(classifier: Any) -> Discriminants:
    means = np.asarray(classifier.theta_, dtype=np.float64)
    variances = np.asarray(classifier.var_, dtype=np.float64)
    offsets = _log_prior(classifier.class_prior_) - 0.5 * np.log(variances).sum(axis=1)
    return Quadratic(offsets[None], means[None], 1.0 / variances[None])


def _log_prior(prior: Any) -> Any:
    """Logarithm of a prior; finite if it is 0, so that no score is infinite."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(np.asarray(prior, dtype=np.float64)), -1e100)


# ---- rules


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
        """Inputs of the samples `rows`, conditioned on component g of the mixture."""
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
        return np.minimum(self.conditional.missing, self.n_features)

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
        if conditional.means.shape[1] > 1:
            return square_roots(conditional.covariance)
        return square_roots(conditional.patterns.covariances[:, 0])[conditional.pattern]

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
        """Largest tau (n,) at which each sample is decided as its class `best`; 0 if at no tau."""

    def decides(self, rule_input: RuleInput, best: _Codes, tau: _Array) -> NDArray[np.bool_]:
        """Mask of the samples that are decided as their class `best` at tau (n,)."""
        return np.asarray(self.bound(rule_input, best) >= tau)


def all_pair_variances(covariance: _Array) -> _Array:
    """Variances (..., k, k) of s_c - s_h for scores s, plus a bound on their rounding errors."""
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
        """See `Rule.best_classes`."""
        return np.asarray(rule_input.scores.argmax(axis=1))

    def bound(self, rule_input: RuleInput, best: _Codes) -> _Array:
        """See `Rule.bound`."""
        conditional = rule_input.conditional
        weights = conditional.weights
        # Components with smaller weights change the sum less than its rounding errors.
        rows, components = np.nonzero(weights > EPS)
        variances = all_pair_variances(conditional.patterns.covariances)
        variances = variances[conditional.pattern[rows], components, best[rows]]
        means = conditional.means[rows, components]
        lead = means - means[np.arange(len(rows)), best[rows]][:, None]  # of h over `best`
        random = variances > 0
        deviations = np.sqrt(np.where(random, variances, 1.0))
        # Without variance, as for `best` itself, the larger score wins; `best` wins a tie.
        tails = np.where(random, ndtr(lead / deviations), lead > 0).sum(axis=1)
        total = np.bincount(rows, weights[rows, components] * tails, minlength=len(best))
        return np.maximum(1.0 - total, 0.0)


# ---- bounds on shares


def clopper_pearson(
    count: NDArray[np.int64], n: NDArray[np.int64], risk: float
) -> NDArray[np.float64]:
    """Lower bounds on a probability from `count` successes in n trials, at error level `risk`."""
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

"""What rules see and answer.

A rule sees the discriminants and the conditional distribution of what they are functions of; it
answers for every row whether it would be decided at a reliability tau, and up to which. There are
rules by a set about the conditional mean (`_set_rule`), by probabilities of pairs of classes
(`_pairwise`), by sampling (`_ideal`), and held to what folds show (`_correction`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.lazy import cached_property
from eigenfeat._base.saved import Saved
from eigenfeat.incomplete._completion.conditional import Conditional
from eigenfeat.incomplete._series.rounding import of_variances

if TYPE_CHECKING:
    from eigenfeat.incomplete._classifiers.discriminants import Discriminants, Linear, Quadratic
    from eigenfeat.incomplete._completion.sets import ConfidenceSet
    from eigenfeat.regions.dominance import SeparableClasses

__all__ = [
    "Case",
    "Judgement",
    "Rule",
    "Shared",
    "first_scores",
    "pair_variances",
    "rivals_of",
    "slope_variances",
    "square_roots",
]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

EPS = float(np.finfo(float).eps)
KEPT_RADII = 256  # by reliability


@dataclass(frozen=True, eq=False)
class Shared:
    """What the cases of all rows that know the same entries have in common, computed once.

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
    shared: Shared | None = None

    def degrees(self, kind: ConfidenceSet) -> NDArray[np.intp]:
        """(n,) what the kind's radius goes by.

        A bound of the covariance's rank, or how many components have a variance; for boxes in axes
        of each pair's own, as many for each pair.
        """
        most = np.minimum(self.known.missing[self.known.pattern], self.n_features)
        if self.by_scores:  # which are relative to each other
            return np.minimum(most, self.discriminants.count - 1)
        spread = np.asarray((self.known.variance > 0).sum(axis=1))
        if kind.shape == "box" and self.discriminants.pair_axes:
            return spread * (self.discriminants.count - 1)
        return np.minimum(most, spread) if kind.full_covariance else spread

    def radius(self, kind: ConfidenceSet, tau: _Array) -> _Array:
        """(n,) of sets about the mean of a single Gaussian, or of any distribution."""
        if self.shared is None or len(tau) > 1 or self.known.means.shape[1] > 1:
            return self._radius(kind, tau)
        kept, key = self.shared.radii, (kind, float(tau[0]))
        found = kept.get(key)
        if found is None:
            found = self._radius(kind, tau)
            if len(kept) >= KEPT_RADII:
                kept.clear()
            kept[key] = found
        return found

    def _radius(self, kind: ConfidenceSet, tau: _Array) -> _Array:
        known = self.known
        return kind.radius(tau, self.degrees(kind), known.spectra, known.pattern)

    def reliability(self, kind: ConfidenceSet, radius: _Array) -> _Array:
        """(n,) its inverse."""
        known = self.known
        return kind.reliability(radius, self.degrees(kind), known.spectra, known.pattern)

    def part(self, g: int, rows: _Codes) -> Case:
        """Some of the rows as if they were of part g of the mixture; the same functions."""
        if self.by_scores:
            return replace(self, known=self.known.part(g, rows), shared=None)
        functions = self.functions.some(rows)
        return replace(self, known=self.known.part(g, rows), discriminants=functions, shared=None)

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
            known.gaussians,
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

    @classmethod
    def by_bound(
        cls, guess: _Codes, bound: _Array, tau: _Array, checks: _Codes | None = None
    ) -> Judgement:
        """Rows are decided where a bound reaches tau; no sign is left open."""
        none = np.zeros(len(guess), dtype=np.intp)
        return cls(guess, bound >= tau, bound, none if checks is None else checks, none)


class Rule(Saved):
    """What decides.

    Attributes
    ----------
    cost : int
        How many complete rows are classified for each that is judged.
    """

    _saved: ClassVar[dict[str, str]] = {}

    cost = 1

    def judge(self, case: Case, tau: _Array, target: int | None) -> Judgement:
        """Decide at tau (n,); `target` is the one class that may be decided, None any."""
        bound, guess = self.largest(case, target)
        return Judgement.by_bound(guess, bound, tau)

    def largest(self, case: Case, target: int | None) -> tuple[_Array, _Codes]:
        """The largest tau at which each row would be decided (0: never), and as which score."""
        raise NotImplementedError

    def decides(self, case: Case, tau: _Array) -> Judgement:
        """`judge`, where guesses for rows that wait, and counts of checks, are of no interest."""
        return self.judge(case, tau, None)

    def surely(self, case: Case, found: Judgement, items: _Codes) -> _Array:
        """The largest tau that is known to hold for some of the rows that `decides` decided."""
        largest = self.largest(case.some(items), None)[0]
        return np.maximum(largest, found.reliability[items])

    def over(self, case: Case, grid: _Array) -> Iterator[tuple[NDArray[np.bool_], _Codes]]:
        """Which rows are decided at each tau of a grid, and as which scores."""
        largest, guess = self.largest(case, None)
        for tau in grid:
            yield largest >= tau, guess

    def least_known(self, tau: float) -> int:
        """No row is decided at tau with fewer known entries."""
        return 0


def rivals_of(labels: _Codes, guess: _Codes) -> NDArray[np.bool_]:
    """(n, k): the scores that the guess is compared with."""
    return np.asarray(labels != labels[guess][:, None])


def first_scores(case: Case, classes: _Codes) -> _Codes:
    """The first score of each class."""
    first = np.zeros(int(classes.max(initial=0)) + 1, dtype=np.intp)
    for g in np.unique(classes):
        first[g] = np.argmax(case.discriminants.labels == g)
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


def slope_variances(case: Case, covariances: _Array, pattern: _Codes, guess: _Codes) -> _Array:
    """(n, k): the same from the slopes, where there are too many scores for their covariances."""
    linear = cast("Linear", case.functions)
    variance = np.empty((len(guess), linear.count))
    for i, at in enumerate(pattern):
        apart = linear.slopes - linear.slopes[guess[i]]
        variance[i] = np.einsum("ki,ki->k", np.einsum("ki,ij->kj", apart, covariances[at]), apart)
        variance[i] = np.maximum(variance[i], 0.0) + of_variances(apart, covariances[at])
    return variance


def square_roots(covariances: _Array) -> _Array:
    """S with S S^T = R, of a stack."""
    values, vectors = np.linalg.eigh(covariances)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])

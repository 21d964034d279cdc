"""From class moments to the directions that an estimator keeps: parameters, scale, solution."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.core import core
from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.threads import one_blas_thread, resolve
from eigenfeat._base.types import Labels
from eigenfeat.expansion.features import Directions, expand
from eigenfeat.moments.class_moments import ClassMoments, column_deviations
from eigenfeat.pencils.pencils import (
    directions_of_each,
    pair_conditions,
    pair_directions,
)

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from eigenfeat._base.types import Pairs
    from eigenfeat.pencils.contrasts import Contrasts
    from eigenfeat.pencils.crawford import PairConditions
    from eigenfeat.samples.labelled import LabelledSamples

__all__ = [
    "DEFAULT_RIDGE",
    "FittedDirections",
    "Settings",
    "Solution",
    "SolvedWhenRead",
    "solve",
    "tried_scales",
]


# ---- parameters ----------------------------------------------------------------------------------


DEFAULT_RIDGE = 0.2


@dataclass(frozen=True)
class Settings:
    """The estimator's parameters as they were when rows came in; see `GEM`."""

    ridge: float | str
    n_directions: int | str
    threshold: float | str | None
    pairs: Pairs | Contrasts
    denominator: str
    constant: bool
    scale: str
    solver: str
    seed: int
    n_threads: int | None

    @classmethod
    def of(cls, estimator: BaseEstimator, seed: int) -> Settings:
        """Of an estimator that has parameters of these names; the ridge of None is the default."""
        names = set(cls.__dataclass_fields__) - {"seed"}
        given = {name: getattr(estimator, name) for name in names}
        if given["ridge"] is None:
            given["ridge"] = DEFAULT_RIDGE
        return cls(seed=seed, **given)


# ---- whether columns are divided by their standard deviations ------------------------------------
#
# With a ridge, directions depend on the units of single columns. Columns that share a unit (pixels,
# samples of a signal) are best left as they are, columns of mixed units are best standardised. Two
# ways to tell: a trial on held-out samples, and, where there are none or the trial leaves it open,
# a rule on the standard deviations.


Array = NDArray[np.float64]

# The rule's bound on max / median of the standard deviations. Pixels and spectra stay well below,
# columns of mixed units go well above. A few columns that vary much less than the others, as the
# border of an image does, do not matter to it.
SPREAD = 5.0


@dataclass(frozen=True)
class ScaleReport:
    """Report on the choice of `scale`.

    Attributes
    ----------
    choice : {"none", "columns"}
    basis : {"given", "trial", "rule"}
        Given by the caller, chosen by errors on held-out samples, or, without them or where they
        differ by less than a standard error, by the spread of the standard deviations.
    column_scale : (d,) array
        Divisors of the columns: ones, or the standard deviations.
    errors : dict of float
        With a trial, the held-out error rate under each choice.
    n_samples : int
        Number of samples used in a trial.
    spread : float
        Largest standard deviation divided by the median of the positive ones.
    """

    choice: str
    basis: str
    column_scale: Array
    errors: dict[str, float] = field(default_factory=dict)
    n_samples: int = 0
    spread: float = 1.0

    def __str__(self) -> str:
        if self.basis == "given":
            return f"{self.choice} (as given)"
        reasons = []
        if self.errors:
            reasons.append(
                f"held-out error {100 * self.errors['none']:.2f}% as they are, "
                f"{100 * self.errors['columns']:.2f}% by columns; {self.n_samples} samples"
            )
        if self.basis == "rule":
            reasons.append(f"largest column deviation is {self.spread:.3g} times the median")
        return f"{self.choice} ({'; '.join(reasons)})"


def settle(moments: ClassMoments, scale: str, trial: ScaleReport | None) -> ScaleReport:
    """Report the choice for these moments: the caller's, the trial's, or the rule's.

    The deviations are those of all rows in `moments`, also if the trial saw only some of them.
    """
    deviations = column_deviations(moments)
    if scale != "auto":
        return scale_report(scale, "given", deviations)
    if trial is None:
        return scale_report(by_rule(deviations), "rule", deviations)
    return scale_report(trial.choice, trial.basis, deviations, trial.errors, trial.n_samples)


def by_rule(deviations: Array) -> str:
    """The choice by the columns' deviations (d,): "columns" where some are much larger."""
    return "columns" if _spread(deviations) > SPREAD else "none"


def scale_report(
    choice: str,
    basis: str,
    deviations: Array,
    errors: dict[str, float] | None = None,
    n_samples: int = 0,
) -> ScaleReport:
    """The report on a choice, with the columns' divisors from their deviations (d,)."""
    scale = np.where(deviations > 0, deviations, 1.0)
    if choice == "none":
        scale = np.ones_like(deviations)
    return ScaleReport(choice, basis, scale, errors or {}, n_samples, _spread(deviations))


def _spread(deviations: Array) -> float:
    positive = deviations[deviations > 0]
    return float(positive.max() / np.median(positive)) if positive.size else 1.0


# ---- the trial -----------------------------------------------------------------------------------


FEWEST_ROWS = 300  # a trial on fewer rows is mostly noise
MOST_ROWS = 3000
MOST_FEATURES = 5000  # beyond, a trial costs more than it tells
MANY = 400  # from here on one half is held out only, and pairs go one way round
VERY_MANY = 1500  # from here on four classes must do
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


def tried_scales(
    settings: Settings, rows: LabelledSamples, moments: ClassMoments
) -> ScaleReport | None:
    """The trial's report, or None where none is wanted or worth its time.

    Of `rows` only those drawn are looked at; `moments` are those of all.
    """
    d = moments.n_features_in_
    if settings.scale != "auto" or len(moments.active_classes) < 2:
        return None
    if rows.n_samples < FEWEST_ROWS or d > MOST_FEATURES:
        return None
    most_classes = 4 if d >= VERY_MANY else 16
    chosen = _subsample(rows.codes, most_classes, np.random.RandomState(settings.seed))
    if not len(chosen):  # all classes but one have a single row
        return None
    drawn = rows.take(chosen)
    return _by_trial(drawn.X, rows.classes[drawn.y], drawn.weight, moments, settings)


def _by_trial(
    X: Any,
    labels: NDArray[Any],
    sample_weight: Array | None,
    moments: ClassMoments,
    settings: Settings,
) -> ScaleReport:
    """Choose by the held-out error of a small expansion and a least-squares classifier.

    The samples, as `_subsample` draws them, are halved; each half serves once for fitting and once
    for counting errors, or, where columns are many, once only. Where the errors differ by less
    than a standard error, the rule on the standard deviations decides. The moments are those of
    all samples.
    """
    deviations = column_deviations(moments)
    d = X.shape[1]
    weights = np.ones(len(labels)) if sample_weight is None else sample_weight
    halves = (np.arange(0, len(labels), 2), np.arange(1, len(labels), 2))
    folds = [halves] if d >= MANY else [halves, halves[::-1]]
    held_out = np.concatenate([weights[some] for _, some in folds])
    wrong, errors = {}, {}
    for choice in ("none", "columns"):
        scale = scale_report(choice, "trial", deviations).column_scale
        parts = [_errors(X, labels, weights, fold, scale, settings) for fold in folds]
        by_ridge = np.hstack(parts)
        best = int(np.argmin(by_ridge @ held_out))
        wrong[choice] = by_ridge[best]
        errors[choice] = float(by_ridge[best] @ held_out / held_out.sum())
    gains = held_out * (wrong["none"].astype(np.float64) - wrong["columns"])
    if abs(gains.sum()) <= np.sqrt(gains @ gains):
        choice = by_rule(deviations)
        return scale_report(choice, "rule", deviations, errors=errors, n_samples=len(labels))
    choice = "columns" if gains.sum() > 0 else "none"
    return scale_report(choice, "trial", deviations, errors=errors, n_samples=len(labels))


def _subsample(
    codes: NDArray[Any], most_classes: int, random_state: np.random.RandomState
) -> NDArray[np.intp]:
    """Draw up to `MOST_ROWS` rows of the most frequent classes, in proportion, two or more each."""
    counts = np.bincount(codes)
    selected = [c for c in np.argsort(-counts, kind="stable")[:most_classes] if counts[c] > 1]
    share = min(1.0, MOST_ROWS / max(1, counts[selected].sum()))
    drawn = []
    for c in selected:
        members = random_state.permutation(np.flatnonzero(codes == c))
        drawn.append(members[: max(2, round(share * len(members)))])
    return np.concatenate(drawn) if len(drawn) > 1 else np.empty(0, dtype=np.intp)


def _errors(
    X: Any,
    labels: NDArray[Any],
    weights: Array,
    fold: tuple[NDArray[np.intp], NDArray[np.intp]],
    scale: Array,
    settings: Settings,
) -> NDArray[np.bool_]:
    """Whether held-out samples are misclassified, a row for each strength of the ridge."""
    fit, held_out = fold
    moments = ClassMoments()
    moments.update(X[fit], labels[fit], weights[fit], n_threads=settings.n_threads)
    result = pair_directions(
        moments,
        pairs=_few_pairs(list(moments.active_classes), both_ways=X.shape[1] < MANY),
        ridge=settings.ridge if isinstance(settings.ridge, str) else max(settings.ridge, 1e-3),
        n_directions=min(directions_of_each(settings.n_directions, 1), 5),
        threshold=1.0,
        denominator=settings.denominator,
        n_threads=settings.n_threads,
        constant=settings.constant,
        scale=scale,
    )
    features = expand(
        X, result.vectors, result.offset, powers=(1, 2), n_threads=settings.n_threads
    ).astype(np.float64, copy=False)
    parts = features[fit], labels[fit], weights[fit], features[held_out]
    return np.asarray(_least_squares(*parts, settings.n_threads) != labels[held_out])


def _few_pairs(labels: list[Any], both_ways: bool) -> list[tuple[Any, Any]]:
    """Return all ordered pairs of up to four classes, else those of neighbours on a ring."""
    if len(labels) <= 4:
        return [(a, b) for a in labels for b in labels if a != b]
    ring = list(zip(labels, labels[1:] + labels[:1], strict=True))
    return ring + [(b, a) for a, b in ring] if both_ways else ring


def _least_squares(
    rows: Array, labels: NDArray[Any], weights: Array, queries: Array, n_threads: int | None
) -> NDArray[Any]:
    """Predict by ridge regression on class indicators; one line of labels for each of `RIDGES`.

    Features have root mean square 1. Of fewer rows than features their kernel is factorised.
    """
    threads = resolve(n_threads)
    classes, codes = np.unique(labels, return_inverse=True)
    share = weights / weights.sum()
    target, ridges = np.eye(len(classes))[codes], np.asarray(RIDGES)
    size = np.sqrt(np.append(share @ rows**2, 1.0))
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    n, p = len(rows), len(scale)
    fitted = core.FeatureRows64(X=rows, constant=True)
    if n < p:
        kernel = fitted.kernel(scale, False, threads)
        solved = core.kernel_ridge(kernel, share, target, ridges, threads)
        A = np.ascontiguousarray(solved.transpose(1, 0, 2).reshape(n, -1))
        W = fitted.products(A, threads) * (scale**2)[:, None]
    else:
        gram = np.zeros((p, p))
        below = np.tril_indices(p)
        gram[below] = fitted.gram(share, scale, False, threads)
        gram.T[below] = gram[below]
        products = fitted.products(target * share[:, None], threads) * scale[:, None]
        solved = core.kernel_ridge(gram, None, products, ridges, threads)
        W = solved.transpose(1, 0, 2).reshape(p, -1) * scale[:, None]
    asked = core.FeatureRows64(X=queries, constant=True)
    scores = asked.scores(np.ascontiguousarray(W), threads).reshape(len(queries), len(ridges), -1)
    return classes[np.nan_to_num(scores, nan=-np.inf).argmax(axis=2)].T


# ---- solutions -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Solution(Directions):
    """Directions, and the scale of the columns that they were solved for."""

    scale: ScaleReport


def solve(
    moments: ClassMoments,
    settings: Settings,
    trial: ScaleReport | None,
) -> Solution:
    """Solve the pencils of the chosen pairs, Algorithm 1, lines 2-5; see `pair_directions`."""
    check_two_labels(moments.active_classes)
    scale = settle(moments, settings.scale, trial)
    result = pair_directions(
        moments,
        pairs=settings.pairs,
        ridge=settings.ridge,
        n_directions=settings.n_directions,
        threshold=settings.threshold,
        denominator=settings.denominator,
        solver=settings.solver,
        n_threads=settings.n_threads,
        constant=settings.constant,
        scale=scale.column_scale if scale.choice == "columns" else None,
        random_state=settings.seed,
    )
    directions = np.ascontiguousarray(result.vectors, dtype=np.float64)
    offset = np.zeros(directions.shape[1]) if result.offset is None else result.offset
    return Solution(directions, offset, result.eigenvalues, result.pairs, result.ranks, scale)


class SolvedWhenRead:
    """Base class of estimators whose solution is computed from `moments_` when it is first read.

    `partial_fit` only accumulates moments; `fit` reads the solution. There is no lock, which a
    forked process might inherit locked: threads that read at the same time may each solve, with
    the same result.
    """

    moments_: ClassMoments
    _solve_with: Any

    def _keep_moments(self, moments: ClassMoments) -> None:
        """Keep moments and the parameters to solve with; forget the solution of earlier moments."""
        self.moments_, self._solve_with = moments, self._settings()
        self.__dict__.pop("_known_solution", None)

    @property
    def _solution(self) -> Any:
        check_is_fitted(self)
        known = self.__dict__
        if "_known_solution" not in known:
            with one_blas_thread():
                known["_known_solution"] = self._solve(self.moments_, self._solve_with)
        return known["_known_solution"]

    def _settings(self) -> Any:
        """The parameters that `_solve` needs."""
        raise NotImplementedError

    def _solve(self, moments: ClassMoments, settings: Any) -> Any:
        """Compute the solution from moments."""
        raise NotImplementedError


class FittedDirections(SolvedWhenRead):
    """The fitted attributes that are read from a `Solution`."""

    _solve_with: Settings

    @property
    def directions_(self) -> NDArray[np.float64]:
        """(d, F) directions, one per column."""
        return self._solution.directions

    @property
    def offset_(self) -> NDArray[np.float64]:
        """(F,) offsets of the projections."""
        return self._solution.offset

    @property
    def eigenvalues_(self) -> NDArray[np.float64]:
        """(F,) eigenvalues."""
        return self._solution.eigenvalues

    @property
    def pairs_(self) -> Labels:
        """(F, 2) labels of the numerator and denominator classes, or names of contrasts."""
        return self._solution.pairs

    @property
    def ranks_(self) -> NDArray[np.intp]:
        """(F,) ranks within the pairs."""
        return self._solution.ranks

    @property
    def pair_conditions_(self) -> PairConditions:
        """Crawford numbers and sampling errors of the pencils; computed at each access."""
        result = self._solution
        settings, scale = self._solve_with, result.scale
        return pair_conditions(
            self.moments_,
            pairs=settings.pairs,
            ridge=settings.ridge,
            denominator=settings.denominator,
            constant=settings.constant,
            scale=scale.column_scale if scale.choice == "columns" else None,
            random_state=settings.seed,
        )

    @property
    def eigenvalue_bounds_(self) -> NDArray[np.float64]:
        """(F, 2) ends of the eigenvalues for infinitely many samples, if the estimate holds."""
        pairs = self.pairs_
        if len(pairs) and (pairs[:, 0] == pairs[:, 1]).all():
            raise AttributeError("eigenvalue_bounds_ needs pairs of two classes, got single ones")
        return self.pair_conditions_.bounds(pairs, self.eigenvalues_)

    @property
    def scale_report_(self) -> ScaleReport:
        """Report on the choice of `scale`."""
        return self._solution.scale

    @property
    def scale_(self) -> str:
        """The choice made for `scale`, "none" or "columns"."""
        return self._solution.scale.choice

    @property
    def column_scale_(self) -> NDArray[np.float64]:
        """(d,) divisors of the columns."""
        return self._solution.scale.column_scale

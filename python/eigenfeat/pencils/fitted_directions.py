"""From class moments to the directions of an estimator: scale, constant and solution."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.core import core
from eigenfeat._base.threads import one_blas_thread, resolve
from eigenfeat._base.types import Labels
from eigenfeat.expansion.features import Directions, expand
from eigenfeat.moments.class_moments import ClassMoments, column_deviations
from eigenfeat.pencils.pencils import measure_pairs, solve_pairs
from eigenfeat.pencils.problems import (
    DEFAULT_RIDGE,
    DEFAULT_RIDGE_WITHOUT_CONSTANT,
    PencilOptions,
    directions_per_pair,
)

if TYPE_CHECKING:
    from eigenfeat.pencils.crawford import PairConditions
    from eigenfeat.samples.block_samples import LabelledSamples

__all__ = [
    "FittedDirections",
    "ScaleReport",
    "Solution",
    "SolvedWhenRead",
    "settle_scale",
    "solve",
    "try_options",
]


# ---- scale of the columns, and the constant ------------------------------------------------------
#
# With a ridge, directions depend on the units of columns. Columns that share a unit (pixels,
# samples of a signal) are best without scaling, columns of mixed units are best standardised. A
# trial on held-out samples decides. Without held-out samples, or if the errors hardly differ, a
# rule on the standard deviations decides.
#
# Where 0 is a natural origin (ink on empty paper), directions without an offset may make fewer
# errors. Directions have an offset unless it costs more than two standard errors in the trial.


Array = NDArray[np.float64]

# The rule's bound on the largest standard deviation over the median. Pixels and spectra are well
# below, columns of mixed units well above. Columns of small variance, such as the border of an
# image, do not affect the ratio.
MAX_SPREAD = 5.0

# The trial.
_MIN_TRIAL_SAMPLES = 300  # with fewer, errors are mostly noise
_MAX_TRIAL_SAMPLES = 3000
_MAX_TRIAL_FEATURES = 5000
_ONE_FOLD_FEATURES = 400  # from here on, a trial has a single fold, and pairs have one order
_FOUR_CLASSES_FEATURES = 1500  # from here on, a trial uses four classes instead of 16
_TRIAL_DIRECTIONS = 5  # most directions of a pair
_LEAST_TRIAL_RIDGE = 1e-3  # of the pencils
_TRIAL_RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # ridges of the least-squares classifier


@dataclass(frozen=True)
class ScaleReport:
    """Report on the choices of `scale` and `constant`.

    The basis of the choice of the scale is "given" by the caller, a "trial" on held-out samples, or
    a "rule" on the spread of the standard deviations, if there is no trial or its errors differ by
    less than a standard error.
    """

    choice: str  # "none" or "columns"
    basis: str
    column_scale: Array  # (d,) divisors of the columns: ones, or the standard deviations
    constant: bool = True  # whether directions have an offset
    # Held-out error rates under each scale, and without a constant under the chosen scale.
    errors: dict[str, float] = field(default_factory=dict)
    n_samples: int = 0  # samples of the trial
    spread: float = 1.0  # largest standard deviation divided by the median of the positive ones

    def __str__(self) -> str:
        reasons = ["as given"] if self.basis == "given" else []
        if "columns" in self.errors and "none" in self.errors:
            reasons.append(
                f"held-out error {100 * self.errors['none']:.2f}% unscaled, "
                f"{100 * self.errors['columns']:.2f}% by columns; {self.n_samples} samples"
            )
        if self.basis == "rule":
            reasons.append(f"largest column deviation is {self.spread:.3g} times the median")
        text = f"{self.choice} ({'; '.join(reasons)})"
        if "no constant" in self.errors:
            text += (
                f"; {'with' if self.constant else 'without'} a constant (held-out error "
                f"{100 * self.errors[self.choice]:.2f}% with it, "
                f"{100 * self.errors['no constant']:.2f}% without)"
            )
        return text


def settle_scale(moments: ClassMoments, scale: str, trial: ScaleReport | None) -> ScaleReport:
    """Return the choice of the trial or, without one, of the caller or the rule."""
    deviations = column_deviations(moments)
    if trial is not None:
        report = scale_report(trial.choice, trial.basis, deviations)
        return replace(trial, column_scale=report.column_scale, spread=report.spread)
    if scale == "auto":
        return scale_report(by_rule(deviations), "rule", deviations)
    return scale_report(scale, "given", deviations)


def by_rule(deviations: Array) -> str:
    """Return "columns" if the largest deviation (d,) of a column is far above the median."""
    return "columns" if _spread(deviations) > MAX_SPREAD else "none"


def scale_report(choice: str, basis: str, deviations: Array) -> ScaleReport:
    """The report on a choice, with the columns' divisors from their deviations (d,)."""
    unscaled = choice == "none" or deviations == 0
    divisors = np.where(unscaled, 1.0, deviations)
    return ScaleReport(choice, basis, divisors, spread=_spread(deviations))


def _spread(deviations: Array) -> float:
    positive = deviations[deviations > 0]
    return float(positive.max() / np.median(positive)) if positive.size else 1.0


# ---- the trial -----------------------------------------------------------------------------------


def try_options(
    options: PencilOptions, samples: LabelledSamples, moments: ClassMoments
) -> ScaleReport | None:
    """Choose by the held-out errors of least squares on a few directions' features.

    Each half of a subsample serves once for fitting and once for counting errors; with many columns
    only the first half is for fitting. If the errors of two scales differ by less than a standard
    error, the rule on the standard deviations decides. Directions have a constant unless it costs
    more than two standard errors. None if a trial would be too noisy or too costly. `moments` are
    those of all samples.
    """
    d = moments.n_features_in_
    if len(moments.active_classes) < 2:
        return None
    if samples.n_samples < _MIN_TRIAL_SAMPLES or d > _MAX_TRIAL_FEATURES:
        return None
    max_classes = 4 if d >= _FOUR_CLASSES_FEATURES else 16
    chosen = _subsample(samples.codes, max_classes, check_random_state(options.random_state))
    if not len(chosen):  # all classes but one have a single sample
        return None
    drawn = samples.take(chosen)
    n, labels, deviations = len(chosen), samples.classes[drawn.y], column_deviations(moments)
    weights = np.ones(n) if drawn.weight is None else drawn.weight
    halves = (np.arange(0, n, 2), np.arange(1, n, 2))
    folds = [halves] if d >= _ONE_FOLD_FEATURES else [halves, halves[::-1]]
    held_out = np.concatenate([weights[queries] for _, queries in folds])

    def errors(scale: str, constant: bool) -> Array:
        report = replace(scale_report(scale, "trial", deviations), constant=constant)
        trial = settled_options(options, report)
        parts = [_errors(drawn.X, labels, weights, fold, trial) for fold in folds]
        by_ridge = np.hstack(parts)
        return held_out * by_ridge[np.argmin(by_ridge @ held_out)]

    scale, basis, constant = str(options.scale), "given", bool(options.constant)
    counted: dict[str, Array] = {}
    if scale == "auto":
        counted = {choice: errors(choice, constant) for choice in ("none", "columns")}
        gain = _standard_errors(counted["none"] - counted["columns"])
        if abs(gain) > 1:
            scale, basis = ("columns" if gain > 0 else "none"), "trial"
        else:
            scale, basis = by_rule(deviations), "rule"
    if options.constant == "auto" and not options.about_mean:
        if scale not in counted:
            counted[scale] = errors(scale, True)
        counted["no constant"] = errors(scale, False)
        constant = _standard_errors(counted[scale] - counted["no constant"]) <= 2
    rates = {choice: float(wrong.sum() / held_out.sum()) for choice, wrong in counted.items()}
    report = scale_report(scale, basis, deviations)
    return replace(report, constant=constant, errors=rates, n_samples=n)


def _standard_errors(differences: Array) -> float:
    """The sum of differences (n,) of two choices' errors, in standard errors."""
    size = np.sqrt(differences @ differences)
    return float(differences.sum() / size) if size > 0 else 0.0


def _subsample(
    codes: NDArray[Any], max_classes: int, random_state: np.random.RandomState
) -> NDArray[np.intp]:
    """Draw samples of the most frequent classes, in proportion, at least two of each class."""
    counts = np.bincount(codes)
    selected = [c for c in np.argsort(-counts, kind="stable")[:max_classes] if counts[c] > 1]
    share = min(1.0, _MAX_TRIAL_SAMPLES / max(1, counts[selected].sum()))
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
    options: PencilOptions,
) -> NDArray[np.bool_]:
    """Whether held-out samples are misclassified, one row for each of `_TRIAL_RIDGES`."""
    fit, held_out = fold
    moments = ClassMoments()
    moments.update(X[fit], labels[fit], weights[fit], n_threads=options.n_threads)
    both_ways = X.shape[1] < _ONE_FOLD_FEATURES
    ridge, n_directions = options.ridge, directions_per_pair(options.n_directions, 1)
    trial = replace(
        options,
        pairs=_few_pairs(list(moments.active_classes), both_ways),
        ridge=ridge if isinstance(ridge, str) else max(ridge or 0.0, _LEAST_TRIAL_RIDGE),
        n_directions=min(n_directions, _TRIAL_DIRECTIONS),
        threshold=1.0,
    )
    result = solve_pairs(moments, trial)
    features = expand(
        X, result.vectors, result.offset, powers=(1, 2), n_threads=options.n_threads
    ).astype(np.float64, copy=False)
    parts = features[fit], labels[fit], weights[fit], features[held_out]
    return np.asarray(_least_squares(*parts, options.n_threads) != labels[held_out])


def _few_pairs(labels: list[Any], both_ways: bool) -> list[tuple[Any, Any]]:
    """All ordered pairs of up to four classes, or pairs of neighbours on a ring of more classes."""
    if len(labels) <= 4:
        return [(a, b) for a in labels for b in labels if a != b]
    ring = list(zip(labels, labels[1:] + labels[:1], strict=True))
    return ring + [(b, a) for a, b in ring] if both_ways else ring


def _least_squares(
    rows: Array, labels: NDArray[Any], weights: Array, queries: Array, n_threads: int | None
) -> NDArray[Any]:
    """Predict by ridge regression on class indicators; one row of labels per `_TRIAL_RIDGES`.

    Features have root mean square 1. With fewer samples than features the kernel is factorised.
    """
    threads = resolve(n_threads)
    classes, codes = np.unique(labels, return_inverse=True)
    share = weights / weights.sum()
    target, ridges = np.eye(len(classes))[codes], np.asarray(_TRIAL_RIDGES)
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
    """Directions, and the report on the scale and the constant that they were solved with."""

    scale: ScaleReport


def solve(moments: ClassMoments, options: PencilOptions, trial: ScaleReport | None) -> Solution:
    """Solve the pencils of the chosen pairs, Algorithm 1, lines 2-5; see `pair_directions`."""
    report = settle_scale(moments, str(options.scale), trial)
    settled = settled_options(options, report)
    report = replace(report, constant=bool(settled.constant))
    result = solve_pairs(moments, settled)
    directions = np.ascontiguousarray(result.vectors, dtype=np.float64)
    offset = np.zeros(directions.shape[1]) if result.offset is None else result.offset
    return Solution(directions, offset, result.eigenvalues, result.pairs, result.ranks, report)


def settled_options(options: PencilOptions, report: ScaleReport) -> PencilOptions:
    """The options to solve with, after the choices of a report."""
    constant = report.constant if options.constant == "auto" else bool(options.constant)
    ridge = options.ridge
    if ridge is None:
        ridge = DEFAULT_RIDGE if constant else DEFAULT_RIDGE_WITHOUT_CONSTANT
    scale = report.column_scale if report.choice == "columns" else None
    return replace(options, scale=scale, constant=constant, ridge=ridge)


class SolvedWhenRead:
    """Base class of estimators whose solution is computed from `moments_` when it is first read.

    `partial_fit` only accumulates moments; `fit` reads the solution. There is no lock, because a
    forked process could inherit it locked: threads that read simultaneously may each compute the
    solution, with equal results.
    """

    moments_: ClassMoments
    _solve_options: Any

    def _keep_moments(self, moments: ClassMoments) -> None:
        """Keep moments and the parameters to solve with; forget the solution of earlier moments."""
        self.moments_, self._solve_options = moments, self._options()
        self.__dict__.pop("_known_solution", None)

    @property
    def _solution(self) -> Any:
        known = self.__dict__
        if "_known_solution" not in known:
            check_is_fitted(self)
            with one_blas_thread():
                known["_known_solution"] = self._solve(self.moments_, self._solve_options)
        return known["_known_solution"]

    def _options(self) -> Any:
        """The parameters for `_solve`."""
        raise NotImplementedError

    def _solve(self, moments: ClassMoments, options: Any) -> Any:
        """Compute the solution from moments."""
        raise NotImplementedError


class FittedDirections(SolvedWhenRead):
    """The fitted attributes that are read from a `Solution`."""

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
        report = self._solution.scale
        if not isinstance(self._solve_options, PencilOptions):
            raise AttributeError("pair_conditions_ needs pairs of classes, got single classes")
        return measure_pairs(self.moments_, settled_options(self._solve_options, report))

    @property
    def eigenvalue_bounds_(self) -> NDArray[np.float64]:
        """(F, 2) ends of the eigenvalues for infinitely many samples, if the estimate holds."""
        return self.pair_conditions_.bounds(self.pairs_, self.eigenvalues_)

    @property
    def scale_report_(self) -> ScaleReport:
        """Report on the choices of `scale` and `constant`."""
        return self._solution.scale

    @property
    def scale_(self) -> str:
        """The choice made for `scale`, "none" or "columns"."""
        return self._solution.scale.choice

    @property
    def column_scale_(self) -> NDArray[np.float64]:
        """(d,) divisors of the columns."""
        return self._solution.scale.column_scale

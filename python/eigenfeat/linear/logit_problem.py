r"""The penalised multinomial logit: objective, metric, search for the minimum, and temperature.

With ``z_i = W^T phi_i`` for the features phi_i of sample i, weights w_i of sum n, and
root mean squares r_j of the features (with `common`, one number for all features), the objective is

    f(W) = sum_i w_i loss_i(W)
           + penalty / 2 (1/2 sum_i w_i |z_i|^2 + ridge sqrt(n) sum_j r_j^2 |W_j|^2)
           + l2 / 2 sum_j |W_j|^2.

The sums over j leave out the constant feature. An evaluation is one pass over the samples.

**Search.** L-BFGS (Nocedal and Wright 2006, algorithm 7.4) builds the inverse Hessian on
``gamma H^-1``, where H bounds the Hessian. The core stores the pairs and computes the directions.

**Metric.** The steps are taken in ``H = 1/2 Phi^T diag(w) Phi + diagonal``: the first term
bounds the curvature of the loss (Boehning 1992), the second is the curvature of the sums over j. H
has two forms: a Cholesky factor of the Gram matrix of the features, or of the kernel of samples
where these are fewer. The minimum does not depend on H. If H of all samples would take most of the
time, a subsample replaces them: the Gram matrix of two samples per feature, or a smaller kernel
plus the mean curvature outside the subsample's span.

**Temperature.** Probabilities are the softmax of ``z / T`` (Guo, Pleiss, Sun and Weinberger, "On
calibration of modern neural networks", ICML 2017, section 4.2). T minimises the log loss of
held-out samples, which is convex in ``beta = 1 / T``:

    g(beta) = sum_i w_i (log sum_c exp(beta z_ic) - beta sum_c t_ic z_ic).

The targets t are smoothed as in J. Platt, "Probabilistic outputs for support vector machines",
1999: the label has ``(N + 1) / (N + 2)`` for N samples, so that T stays positive where all samples
are classified correctly.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import log_softmax

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat._base.subsamples import draw_subsample
from eigenfeat._base.validation import is_rounding
from eigenfeat.samples.block_samples import LabelledSamples
from eigenfeat.samples.blocks import add
from eigenfeat.samples.labelled import Block, MemorySamples

if TYPE_CHECKING:
    from eigenfeat._base.types import Codes, Floats
    from eigenfeat.expansion.features import CoreRows

__all__ = [
    "LOG_FLOOR",
    "FeaturePasses",
    "LogitProblem",
    "Logits",
    "Minimum",
    "Penalty",
    "SampleProblem",
    "log_loss",
    "loss_at_best",
    "merge_ranges",
    "minima",
    "minimise",
    "positive_metric",
    "sample_problem",
    "scaled_gram",
    "temperature",
    "with_features",
]

_Array = npt.NDArray[np.float64]

# `bench/run.py logit logit_gem` shows the effect of the first three numbers; see bench/SPEED.md.
_MAX_GRAM_PASSES = 60  # largest cost of a Gram matrix, in evaluations of the objective
_SAMPLES_PER_FEATURE = 2  # of a subsample with a Gram matrix
_SUBSAMPLE_PASSES = 4  # cost of the kernel of a subsample, in evaluations of the objective
_MAX_KERNEL_SAMPLES = 4_000  # of a problem with a feature for each sample
_FLOAT32_TOLERANCE = 1e-3  # smallest tolerance of a search with a kernel in float32
_MIN_COPIED = 500_000  # entries of the smallest matrix that is copied in float32
_MIN_SQUARE = 1e-20  # smallest mean square of a feature in float32
_REDUCED_TOLERANCE = 1e-4  # with a feature for each sample; held-out logits converge slowly
_MAX_READ_BYTES = 64e6  # size of the largest fold of blocks that is read into memory
_PILOT_SAMPLES = 512  # to estimate the curvature outside the span of a subsample
_MISSING_SHARE = 0.5  # share of a feature's squares outside a subsample that counts as missing
_MAX_DIAGONAL = 1e12  # of the metric, relative to the Gram matrix; float32 holds it
# Rounding, tested by tests/python/linear/test_constant_columns.py.
_LEAST_SIZE = 2e-154  # of the largest feature: squares of smaller ones are denormal
_NEARLY_CONSTANT = 1e-6  # variance over mean square: below it, sums are too coarse
# A small column is rounding errors if its entries are multiples of a 64th of the power of two above
# the largest one, but not of 2^-10, as counts and indicators are.
_ROUNDING_BITS, _COUNT_STEP = 6, 2.0**-10
# Search.
_MEMORY = 10  # pairs of steps and changes of the gradient
_SUFFICIENT_DECREASE = 1e-4  # fraction of the predicted decrease, as usual
_MAX_HALVINGS = 30
# The decrease in the last eighth of the steps, two at least, estimates the decrease to come. In 700
# fits of the logit the excess over the minimum was at most 7 times the estimate; on separable
# samples with hardly a penalty it was up to 200 times.
_RECENT_SHARE, _MIN_RECENT = 8, 2
_ROUGH_GAP, _ROUGH_NOISE = 1e-6, float(np.finfo(np.float32).eps)  # of the objective in float32
_FIRST_GAP = 8.0  # factor of the first estimates, because the metric may be too large
# Temperature.
_MAX_TEMPERATURE = 50.0  # its inverse is the smallest temperature
_TEMPERATURE_ERROR = 1e-6  # relative
LOG_FLOOR = -30.0  # least log probability, so that no single sample decides
_PIECE = 1 << 22  # entries converted to a dense array at a time


@dataclass(frozen=True)
class Penalty:
    """Weights of the penalties in the objective."""

    energy: float  # weight of the energy of the logits, `penalty` in the objective
    ridge: float
    l2: float


class FeaturePasses:
    """Passes over the features of samples, with or without a last feature of ones.

    Attributes
    ----------
    rows : LabelledSamples
        Features, labels and weights.
    constant : bool
        Whether there is a last feature of ones.
    n_samples : int
        Number of samples.
    n_threads : int
        Number of threads of the core.
    dtype : float32 or float64
        Type of the features.
    dense : bool
        Whether the features are an array.
    sparse : bool
        Whether the features are a sparse matrix.
    block : Block or None
        Samples in memory, if any.
    features : CoreRows or None
        The core's view of the features of samples in memory.
    """

    def __init__(self, rows: LabelledSamples, constant: bool) -> None:
        self.rows, self.constant = rows, constant
        self.n_threads = threads.resolve(rows.n_threads)
        self.n_samples, self.dtype = rows.n_samples, rows.dtype
        self.dense, self.sparse = rows.dense, rows.sparse
        self.block: Any = rows.block if rows.in_memory else None
        self.features: Any = None if self.block is None else self.block.core(constant)

    def sum(
        self, function: Callable[..., Any], *arguments: object, merge: Callable[..., Any] = add
    ) -> Any:
        """Merge ``function(features, block, n_threads, *arguments)`` over the samples."""
        if self.block is not None:
            return function(self.features, self.block, self.n_threads, *arguments)
        n_threads = self.rows.n_threads  # each worker resolves None itself
        return self.rows.reduce(_on_features, merge, function, self.constant, n_threads, *arguments)

    def logits(self, W: _Array) -> Logits:
        """Logits of the samples for weights W (p, k), with labels and weights."""
        result: Logits = self.sum(_logits, W, merge=operator.add)
        return result


class LogitProblem(FeaturePasses):
    """Objective and metric of a multinomial logit of p features and k classes.

    Parameters
    ----------
    rows : LabelledSamples
        Features, labels and weights.
    constant : bool
        Whether to add a last feature of ones, the intercept.
    common : bool
        Whether the ridge takes one mean square for all features.
    centre : bool
        Whether to centre features far from zero, see `_far_means`.
    n_original : int, optional
        Number of original features, if `rows` has a feature for each sample.

    Attributes
    ----------
    shape : (p, k)
        Number of features with the constant, and number of classes.
    varying : int
        Number of features without the constant.
    total : float
        Sum of the weights.
    centre : (p - 1,) array or None
        Means that were subtracted from features far from zero.
    flat : (p,) array of bool
        Features whose weights are 0: with an intercept, features that are constant up to rounding;
        features that are rounding errors compared with the largest feature.
    mean_squares : (p,) array
        Mean squares of the features, 0 where flat.
    scale : (p,) array
        Inverse roots of the mean squares, 0 where flat.
    ridge_squares : (p,) array
        Squares by which the ridge is multiplied, 0 for the constant.
    """

    def __init__(
        self,
        rows: LabelledSamples,
        *,
        constant: bool,
        common: bool = False,
        centre: bool = False,
        n_original: int | None = None,
    ) -> None:
        super().__init__(rows, constant)
        self.common, self.n_original = common, n_original
        sums, squares, self.total = self.sum(feature_sums)
        self.centre = self._far_means(sums, squares) if centre else None
        if self.centre is not None:
            super().__init__(rows.centred(self.centre), constant)
            sums, squares, self.total = self.sum(feature_sums)
        self.shape = (len(squares), len(rows.classes))
        self.varying = len(squares) - constant
        self.flat = self._without_spread(sums, squares) if n_original is None else squares == 0
        self.mean_squares = np.where(self.flat, 0.0, squares / self.total)
        self.scale = 1.0 / np.sqrt(np.where(self.flat, np.inf, self.mean_squares))
        self.ridge_squares = self.mean_squares.copy()
        self.ridge_squares[self.varying :] = 0.0
        if common and self.varying:
            count = n_original or self.varying
            self.ridge_squares[: self.varying] = self.ridge_squares.sum() / count

    def _on(self, rows: LabelledSamples) -> LogitProblem:
        """The problem with sums over other samples, and the statistics of all samples."""
        out = copy(self)
        FeaturePasses.__init__(out, rows, self.constant)
        return out

    def feature_weights(self, W: _Array) -> _Array:
        """Weights of the original features, from weights W of this problem."""
        return W

    def fold(self, train: Codes, held: Codes) -> tuple[LogitProblem, LabelledSamples]:
        """The problem of training samples, read into memory if small, and held-out samples.

        The mean squares of the features are those of all samples.
        """
        rows = self.rows.subset(train)
        if not rows.in_memory and rows.n_samples * rows.n_features * 8 <= _MAX_READ_BYTES:
            rows = with_features(rows, rows.together())
        problem = self._on(rows)
        problem.total = rows.reduce(_total, operator.add)
        return problem, self.rows.subset(held)

    def _far_means(self, sums: _Array, squares: _Array) -> _Array | None:
        """Means (d,) of the columns whose means exceed ten deviations, 0 elsewhere, or None.

        With an intercept, centring these columns leaves the minimum of the loss unchanged and makes
        the float32 metric accurate. Their mean squares in the ridge become variances. Constant
        columns are not centred. `sums` and `squares` include the constant feature.
        """
        if not self.dense:
            return None
        mean: _Array = sums[:-1] / self.total
        with np.errstate(over="ignore", invalid="ignore"):  # such columns are refused later
            far = squares[:-1] / self.total - mean**2 < 0.01 * mean**2
        asked = np.flatnonzero(far)
        if len(asked):
            far[asked] = ~self._ranges_of(asked)[1]
        return np.where(far, mean, 0.0) if far.any() else None

    def _ranges_of(self, columns: Codes) -> tuple[_Array, npt.NDArray[np.bool_]]:
        """Largest magnitudes of columns, and whether they are constant up to rounding."""
        low, high = self.rows.reduce(column_ranges, merge_ranges, columns)
        peak = np.maximum(np.abs(low), np.abs(high)).astype(np.float64)
        return peak, is_rounding(high / 2 - low / 2, peak, self.n_samples, self.dtype)

    def _without_spread(self, sums: _Array, squares: _Array) -> npt.NDArray[np.bool_]:
        """Mask (p,) of the features that vary by no more than rounding; see `flat`.

        ValueError if squares of features overflow, or if they vanish, for all features or, in an
        array, for one feature.
        """
        _check_no_loss(np.flatnonzero(~np.isfinite(squares)), "overflow")
        rows, varying = self.rows, slice(self.varying)
        flat = squares == 0
        size = np.sqrt(squares[varying] / self.total)
        mean = np.abs(sums[varying]) / self.total
        largest = float(size.max(initial=0.0))
        if 0.0 < largest < _LEAST_SIZE:
            _check_no_loss(np.flatnonzero(size == largest), "vanish")
        small = is_rounding(size, largest, self.n_samples, self.dtype)
        variance = np.maximum((size - mean) * (size + mean), 0.0)
        in_question = small
        if self.constant:
            in_question = small | (variance <= _NEARLY_CONSTANT * size**2)
        if not (self.dense and rows.in_memory):
            in_question = in_question & ~flat[varying]
        asked = np.flatnonzero(in_question)
        if not len(asked):
            return flat
        peak, constant = self._ranges_of(asked)
        _check_no_loss(asked[flat[asked] & (peak > 0)], "vanish")
        flat[asked] = constant & (small[asked] | self.constant)
        # Rounding errors, such as a centred constant, are small multiples of a last digit, unlike
        # columns in a small unit. Columns of counts are small multiples of 1 and are not flat.
        left = small[asked] & ~flat[asked]
        if left.any():
            step = np.ldexp(1.0, np.frexp(peak[left])[1] - _ROUNDING_BITS)
            coarse = rows.reduce(are_few_steps, np.logical_and, asked[left], step)
            rounded = asked[left][coarse]
            if len(rounded):
                counts = np.full(len(rounded), _COUNT_STEP)
                flat[rounded] = ~rows.reduce(are_few_steps, np.logical_and, rounded, counts)
        return flat

    def uncentred(self, W: _Array) -> _Array:
        """Weights of the features before centring, from weights W; the constant is last."""
        if self.centre is None:
            return W
        return np.vstack([W[:-1], W[-1] - self.centre @ W[:-1]])

    def quadratic(self, penalty: Penalty) -> _Array:
        """Coefficients (p,) of the squares |W_j|^2 / 2 in the objective."""
        squares = self.ridge_squares
        out = penalty.energy * penalty.ridge * np.sqrt(self.total) * squares + penalty.l2
        out[self.varying :] = 0.0
        return out

    def objective_of(self, penalty: Penalty) -> Callable[[_Array], tuple[float, _Array]]:
        """The function that returns objective and gradient at weights W (p, k)."""
        squares = self.quadratic(penalty)[:, None]

        def objective(W: _Array) -> tuple[float, _Array]:
            weight, W = 0.5 * penalty.energy, np.ascontiguousarray(W)
            loss, energy, gradient = self.sum(logit_terms, weight, W)
            pull = squares * W
            gradient += pull
            value = loss + 0.25 * penalty.energy * energy
            return value + 0.5 * float(np.einsum("ij,ij->", W, pull)), gradient

        return objective

    def in_float32(self) -> LogitProblem | None:
        """The problem with features in float32; None if its passes do not repay the copy."""
        rows = self.rows
        if not (rows.in_memory and self.dense and self.dtype == np.float64):
            return None
        if self.n_samples * self.varying < _MIN_COPIED:
            return None
        squares = self.mean_squares[~self.flat]
        if len(squares) and not _MIN_SQUARE <= squares.min() <= squares.max() <= 1 / _MIN_SQUARE:
            return None
        return self._on(rows.in_float32())

    # ---- the metric ------------------------------------------------------------------------------

    def metric(
        self,
        penalty: Penalty,
        sample: npt.NDArray[np.intp] | None = None,
        *,
        coarse: bool = False,
    ) -> core.Metric:
        """Cholesky factor of H for a penalty, its diagonal raised if rounding makes H indefinite.

        With `sample`, indices of a subsample represent all samples. With `coarse`, features are
        multiplied in 8 bits where that is faster, the factor of a subsample's kernel is in float32,
        and its diagonal includes the mean curvature outside the subsample's span.
        """
        part = self if sample is None else self._on(self.rows.subset(sample))
        plain = self.quadratic(penalty)
        if not np.isfinite(plain).all():
            raise ValueError(
                f"penalty: expected a finite weight of the squares, got {plain.max():g}"
            )
        # Features that the penalty dominates are scaled by the penalty, so that the diagonal fits
        # float32.
        with np.errstate(divide="ignore", over="ignore"):
            scale = np.minimum(self.scale, np.sqrt(_MAX_DIAGONAL * self.total / plain))
        p = self.shape[0]
        dual = part.n_samples < self.varying and self.n_original is None
        coarse &= sample is not None or not dual
        if dual:
            if part.block is None:
                part = self._on(with_features(part.rows, part.rows.together()))
            _, squares, weight = part.sum(feature_sums)
            factorise: Callable[..., core.Metric] = partial(
                part.features.metric, part.block.weight, scale, dual=True, coarse=coarse
            )
        else:
            gram, squares, weight = part.sum(scaled_gram, scale, coarse)
            factorise = partial(core.Metric.from_gram, gram, scale)
        # Rounding of a float32 Gram matrix with the diagonal total / 2; in a kernel, of its trace.
        least = max(4, p * dual) * float(np.finfo(np.float32).eps) * self.total
        share = self.total / weight
        # Features that are rare, or large in few samples, may be missing from a subsample or fold.
        all_squares = self.total * self.mean_squares
        missing = all_squares - share * squares
        floor = 0.5 * np.where(missing > _MISSING_SHARE * all_squares, missing, 0.0) * scale**2
        if sample is not None and coarse and dual:
            pilot = part.block.take(draw_subsample(part.n_samples, _PILOT_SAMPLES))
            outside = pilot.core(self.constant).residual(pilot.weight, scale, least, self.n_threads)
            least = max(least, 0.5 * self.total * min(outside / p, 1.0))
        factorise = partial(factorise, factor=0.5 * share, n_threads=self.n_threads)
        return positive_metric(factorise, np.maximum(plain * scale**2, least) + floor)

    def search_metric(self, penalty: Penalty) -> core.Metric:
        """The most accurate metric that does not take most of the time of a search."""
        count = self._n_metric_samples()
        sample = None if count == self.n_samples else draw_subsample(self.n_samples, count)
        return self.metric(penalty, sample, coarse=True)

    def _n_metric_samples(self) -> int:
        """Number of samples of `search_metric`: all, or those of a Gram matrix or a kernel."""
        n, (p, k) = self.n_samples, self.shape
        evaluation = 4 * n * k  # operations per feature
        most = _MAX_GRAM_PASSES * evaluation
        if n * min(n, p) <= most or self.sparse:  # a subsample misses rare features
            return n
        count = _SAMPLES_PER_FEATURE * p
        if count < n and count * p <= most:
            return count
        return int(min(np.sqrt(_SUBSAMPLE_PASSES * evaluation), p // 2, n))


def _check_no_loss(columns: Codes, how: str) -> None:
    """Raise ValueError if there are columns whose squares overflow or vanish."""
    if len(columns):
        raise ValueError(
            "X: expected finite features whose squares fit float64, got squares that "
            f"{how} in feature {columns[0]}; scale the columns"
        )


def positive_metric(factorise: Callable[[_Array], core.Metric], diagonal: _Array) -> core.Metric:
    """Factor of a matrix, its diagonal (p,) raised until rounding leaves the matrix positive."""
    for _ in range(20):
        metric = factorise(diagonal)
        if metric.positive:
            return metric
        diagonal = 10.0 * diagonal
    raise FloatingPointError("the Gram matrix of the features cannot be factorised")


# ---- few samples of many features ----------------------------------------------------------------
#
# With the penalty ``q / 2 |D^-1 W|^2``, D diagonal, the minimum over the weights W of the features
# Phi is ``W = D^2 Phi^T A`` (the representer theorem). With ``Phi D^2 Phi^T = L L^T`` and
# ``V = L^T A`` the logits are ``L V`` and the penalty is ``q / 2 |V|^2``: a problem with a feature
# for each sample.


class SampleProblem(LogitProblem):
    """Problem of few samples with a feature for each sample, a row of L; see above.

    Attributes
    ----------
    original : LogitProblem
        The problem with the features of the samples, which are in memory.
    squares : (p,) array
        Diagonal of D^2.
    kernel : (n, n) array
        ``Phi D^2 Phi^T``.
    """

    def __init__(
        self, original: LogitProblem, squares: _Array, kernel: Floats, n_original: int
    ) -> None:
        samples = original.block
        rows = with_features(original.rows, Block(_cholesky(kernel), samples.y, samples.weight))
        constant = original.constant
        super().__init__(rows, constant=constant, common=True, n_original=n_original)
        self.original, self.squares, self.kernel = original, squares, kernel

    def fold(self, train: Codes, held: Codes) -> tuple[LogitProblem, LabelledSamples]:
        """The problem of training samples, with a feature for each, and held-out samples."""
        factor = _cholesky(self.kernel[np.ix_(train, train)])
        crossed = self.kernel[np.ix_(train, held)]
        mapped = solve_triangular(factor, crossed, lower=True, check_finite=False).T
        trained, tested = (self.original.block.take(part) for part in (train, held))
        rows = with_features(self.rows, Block(factor, trained.y, trained.weight))
        problem = LogitProblem(
            rows, constant=self.constant, common=True, n_original=self.n_original
        )
        features = Block(np.ascontiguousarray(mapped), tested.y, tested.weight)
        return problem, with_features(self.rows, features)

    def feature_weights(self, W: _Array) -> _Array:
        """Weights (p, k) of the original features, from weights W of the samples' features."""
        factor = np.asarray(self.block.X, dtype=np.float64)
        A = solve_triangular(factor, W[: self.varying], trans="T", lower=True, check_finite=False)
        A = np.ascontiguousarray(A, dtype=self.original.dtype)
        out = self.original.features.products(A, self.n_threads)
        out *= self.squares[:, None]
        if self.constant:
            out[-1] = W[-1]
        return out


def sample_problem(problem: LogitProblem, penalty: Penalty, tolerance: float) -> LogitProblem:
    """The problem with a feature for each sample, or `problem` if its own features are faster.

    `penalty` is any of the penalties, which differ in `energy` alone. If the `tolerance` of the
    searches is large, products are in float32.
    """
    n, varying = problem.n_samples, slice(problem.varying)
    if 2 * n > problem.varying or n > _MAX_KERNEL_SAMPLES:
        return problem
    if penalty.l2 > 0 and not problem.common:  # D would depend on the penalty
        return problem
    scale, unit = problem.scale.copy(), 1.0
    count = int(np.count_nonzero(scale[varying]))
    if problem.common:
        count, unit = problem.varying, float(problem.mean_squares[varying].mean())
        scale = np.where(problem.flat, 0.0, 1.0 / np.sqrt(unit or 1.0))
    scale[problem.varying :] = 0.0
    if not (scale.any() and np.isfinite(scale).all()):
        return problem
    if problem.block is None:
        rows = with_features(problem.rows, problem.rows.together())
        problem = LogitProblem(rows, constant=problem.constant, common=problem.common)
    single = tolerance >= _FLOAT32_TOLERANCE
    if problem.sparse:
        scaled = problem.block.X.multiply(scale[varying]).tocsr().astype(np.float64)
        kernel = (scaled @ scaled.T).toarray()
    else:
        kernel = problem.features.kernel(scale, single, problem.n_threads)
    kernel *= unit
    kernel = kernel.astype(np.float32 if single else np.float64, copy=False)
    return SampleProblem(problem, unit * scale**2, kernel, count)


def _cholesky(kernel: Floats) -> Floats:
    """Lower Cholesky factor of a kernel, with its diagonal raised until it is positive definite."""
    n = len(kernel)
    extra = np.sqrt(n) * float(np.finfo(kernel.dtype).eps) * kernel.diagonal().max()
    matrix = kernel.copy()
    while True:
        matrix[np.diag_indices(n)] += extra
        try:
            factor = cholesky(matrix, lower=True, check_finite=False)
        except LinAlgError:  # repeated samples make the kernel singular
            extra *= 10.0
        else:
            return np.ascontiguousarray(factor)


# ---- the search ----------------------------------------------------------------------------------


Evaluate = Callable[[_Array], "tuple[float, _Array]"]
Solve = Callable[[_Array], _Array]


@dataclass
class Minimum:
    """Result of a search, or its state after an iteration.

    Attributes
    ----------
    point : array
        Arguments of the objective.
    objective : float
        Value at `point`.
    gap : float
        Estimate of the objective's excess over the minimum.
    gradient_norm : float
        Norm of the gradient g in the dual of the metric, ``sqrt(g^T H^-1 g)``.
    iterations : int
        Number of iterations.
    history : list of float
        Objective at the start and after each iteration.
    reason : {"", "converged", "precision", "stopped", "iterations"}
        The estimated gap is within the tolerance, rounding hides any decrease, the callback ended
        the search, or the maximum number of iterations is reached; empty during the search.
    """

    point: _Array
    objective: float
    gap: float
    gradient_norm: float
    iterations: int
    history: list[float]
    reason: str = ""


@dataclass
class _State:
    point: _Array
    objective: float
    gradient: _Array
    solved: _Array  # H^-1 gradient


def minima(
    problem: LogitProblem,
    penalties: Sequence[Penalty],
    *,
    tolerance: float,
    max_iterations: int,
    start: _Array | None = None,
    callback: Callable[[Minimum], bool] | None = None,
) -> Iterator[Minimum]:
    """Minima for several penalties, in the metric of the largest penalty.

    Each search starts from the previous minimum; the first one from `start` or from zero weights.
    A problem with a feature for each sample starts from zero weights.
    """
    if problem.n_original is not None:
        tolerance, start = min(tolerance, _REDUCED_TOLERANCE), None
    metric = problem.search_metric(max(penalties, key=lambda one: one.energy))
    rough = problem.in_float32()
    W = np.zeros(problem.shape) if start is None else start
    for penalty in penalties:
        result = minimise(
            problem.objective_of(penalty),
            lambda gradient: metric.solve(gradient, problem.n_threads),
            W,
            tolerance=tolerance,
            max_iterations=max_iterations,
            noise=float(np.finfo(problem.dtype).eps),
            callback=callback,
            rough=None if rough is None else rough.objective_of(penalty),
        )
        W = result.point
        yield result


def minimise(
    evaluate: Evaluate,
    solve: Solve,
    start: _Array,
    *,
    tolerance: float,
    max_iterations: int,
    noise: float = 1e-15,
    callback: Callable[[Minimum], bool] | None = None,
    rough: Evaluate | None = None,
) -> Minimum:
    """Minimise a smooth convex function by L-BFGS in a metric H.

    `evaluate` returns objective and gradient, `solve` ``H^-1`` times a gradient; `noise` is the
    relative rounding error of the objective, `rough` is `evaluate` in float32, for the first steps.
    The search ends when the estimated gap is at most `tolerance` times the objective, or when
    `callback`, called with the state at the start and after each iteration, returns True. An
    iteration takes one solve: ``H^-1`` of a difference of gradients is the difference of the solved
    gradients.
    """
    state = _evaluated(rough or evaluate, solve, start)
    if rough is not None and not np.isfinite(state.objective):
        rough, state = None, _evaluated(evaluate, solve, start)
    if not np.isfinite(state.objective):
        raise FloatingPointError(f"the objective at the start is {state.objective}")
    pairs = core.Lbfgs(start.size, _MEMORY)
    history = [state.objective]
    while True:
        direction = pairs.direction(state.gradient, state.solved)
        norm, gap = float(np.sqrt(max(direction.squared_norm, 0.0))), _gap(direction.slope, history)
        found = Minimum(state.point, state.objective, gap, norm, len(history) - 1, history)
        new = None
        if rough is not None:
            near = gap <= max(tolerance, _ROUGH_GAP) * abs(state.objective)
            if not near and found.iterations < max_iterations:
                new = _line_search(rough, state, direction.vector, direction.slope, _ROUGH_NOISE)
            if new is None:  # continue with the exact objective
                rough, state = None, _evaluated(evaluate, solve, state.point)
                history[-1] = state.objective
                continue
        if callback is not None and callback(found):
            found.reason = "stopped"
        elif gap <= tolerance * abs(state.objective):
            found.reason = "converged"
        elif found.iterations == max_iterations:
            found.reason = "iterations"
        if found.reason:
            return found
        new = new or _line_search(evaluate, state, direction.vector, direction.slope, noise)
        if new is None and pairs.pairs:
            pairs.forget()  # restart with the metric alone
            new = _line_search(evaluate, state, -state.solved, -direction.squared_norm, noise)
        if new is None:
            found.gap = max(-0.5 * direction.slope, noise * abs(state.objective))
            found.reason = "precision"
            return found
        new.solved = solve(new.gradient)
        pairs.remember(
            state.point, new.point, state.gradient, new.gradient, state.solved, new.solved
        )
        state = new
        history.append(state.objective)


def _evaluated(evaluate: Evaluate, solve: Solve, point: _Array) -> _State:
    objective, gradient = evaluate(point)
    return _State(point, objective, gradient, solve(gradient))


def _gap(slope: float, history: list[float]) -> float:
    """Larger of the excess in the quadratic model and the decrease in the last steps."""
    model = -0.5 * slope
    steps = len(history) - 1
    if steps < _MIN_RECENT:
        return _FIRST_GAP * model
    recent = max(_MIN_RECENT, steps // _RECENT_SHARE)
    return max(model, history[max(steps - recent, 0)] - history[-1])


def _line_search(
    evaluate: Evaluate, state: _State, direction: _Array, slope: float, noise: float
) -> _State | None:
    """Shorten the step until the objective decreases enough; None if it does not."""
    if not slope < 0:
        return None
    step = 1.0
    for _ in range(_MAX_HALVINGS):
        point = state.point + step * direction
        objective, gradient = evaluate(point)
        if objective <= state.objective + _SUFFICIENT_DECREASE * step * slope:
            return _State(point, objective, gradient, gradient)
        if -step * slope <= noise * abs(state.objective):
            return None
        step *= 0.5
    return None


def with_features(rows: LabelledSamples, block: Block) -> MemorySamples:
    """Features in memory, with labels and weights, of samples with the classes of `rows`."""
    return MemorySamples(block, rows.classes, rows.n_threads)


# ---- temperature and log loss --------------------------------------------------------------------


Logits: TypeAlias = list[tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any] | None]]


def temperature(logits: Logits) -> float:
    """Temperature T with the smallest log loss of ``logits / T`` on smoothed targets.

    It lies between 1/50 and 50, and is 1 without logits.
    """
    if not logits:
        return 1.0
    z, codes, weight = _joined(logits)
    n, k = z.shape
    z -= z.max(axis=1, keepdims=True)
    wrong = 1.0 / ((n + 2.0) * (k - 1.0))  # the target of each other label
    aimed = (1.0 - k * wrong) * z[np.arange(n), codes] + wrong * z.sum(axis=1)
    low, high = 1.0 / _MAX_TEMPERATURE, _MAX_TEMPERATURE
    beta = 1.0
    for _ in range(100):  # Newton's method, bisecting where a step leaves the interval
        P = np.exp(beta * z)
        P /= P.sum(axis=1, keepdims=True)
        mean = np.einsum("ij,ij->i", P, z)
        slope = float(weight @ (mean - aimed))
        bend = float(weight @ (np.einsum("ij,ij,ij->i", P, z, z) - mean**2))
        low, high = (low, beta) if slope > 0 else (beta, high)
        if slope == 0 or high - low <= _TEMPERATURE_ERROR * high:
            break
        step = beta - slope / bend if bend > 0 else np.inf
        if not low < step < high:
            step = float(np.sqrt(low * high))
        done = abs(step - beta) <= _TEMPERATURE_ERROR * beta
        beta = step
        if done:
            break
    return 1.0 / float(beta)


def log_loss(logits: Logits, temperature: float) -> float:
    """Mean log loss of ``logits / T``, log probabilities being at least -30; inf if empty."""
    if not logits:
        return np.inf
    z, codes, weight = _joined(logits)
    logs = log_softmax(z / temperature, axis=1)[np.arange(len(z)), codes]
    return -float(weight @ np.maximum(logs, LOG_FLOOR))


def loss_at_best(logits: _Array, codes: Codes, weight: _Array | None) -> tuple[float, float]:
    """Log loss of logits (m, k) at their own temperature, and that temperature."""
    block = [(logits, codes, weight)]
    T = temperature(block)
    return log_loss(block, T), T


def _joined(logits: Logits) -> tuple[_Array, Codes, _Array]:
    """Concatenate logits (float64), indices of labels, and weights, scaled to the sum 1."""
    z = np.concatenate([part[0] for part in logits]).astype(np.float64)
    codes = np.concatenate([part[1] for part in logits]).astype(np.intp)
    weight = np.concatenate([np.ones(len(p[0])) if p[2] is None else p[2] for p in logits])
    return z, codes, weight / weight.sum()


# ---- sums over the samples of a block ------------------------------------------------------------


def _on_features(
    block: Block,
    function: Callable[..., Any],
    constant: bool,
    n_threads: int | None,
    *arguments: object,
) -> Any:
    """``function(features, block, n_threads, *arguments)`` for the core's view of the features."""
    return function(block.core(constant), block, threads.resolve(n_threads), *arguments)


def feature_sums(features: CoreRows, block: Block, n_threads: int) -> tuple[_Array, _Array, float]:
    """Sums and sums of squares (p,) of the features, and the weight; merged by `add`."""
    found = features.sums(block.weight, n_threads)
    return found.sums, found.squares, _total(block)


def _logits(features: CoreRows, block: Block, n_threads: int, W: _Array) -> Logits:
    """Logits, labels and weights of a block, in a list; merged by `+`."""
    W = np.ascontiguousarray(W, dtype=np.float32 if block.X.dtype == np.float32 else np.float64)
    return [(features.scores(W, n_threads), np.asarray(block.y), block.weight)]


def column_ranges(block: Block, columns: Codes) -> tuple[Floats, Floats]:
    """Least and largest entries of columns; merged by `merge_ranges`."""
    parts = [(part.min(axis=0), part.max(axis=0)) for part in _columns(block, columns)]
    return reduce(merge_ranges, parts)


def are_few_steps(block: Block, columns: Codes, step: _Array) -> npt.NDArray[np.bool_]:
    """Whether all entries of columns are multiples of their `step`; merged by `and`."""
    parts = [(part / step == np.rint(part / step)).all(axis=0) for part in _columns(block, columns)]
    return reduce(np.logical_and, parts)


def _columns(block: Block, columns: Codes) -> Iterator[Floats]:
    """Columns of features of any kind as arrays, piece by piece."""
    size = max(1, _PIECE // max(block.X.shape[1], 1))
    for first in range(0, len(block), size):
        part = block.take(slice(first, first + size)).X
        yield (part if isinstance(part, np.ndarray) else part.toarray())[:, columns]


def merge_ranges(a: tuple[Floats, Floats], b: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Ranges of the samples of both blocks."""
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def logit_terms(
    features: CoreRows, block: Block, n_threads: int, energy_weight: float, W: _Array
) -> tuple[float, float, _Array]:
    """``sum_i w_i loss_i``, ``e = sum_i w_i |z_i|^2``, and a gradient (p, k); merged by `add`.

    The gradient is of the first sum plus ``energy_weight / 2 e``.
    """
    terms = features.gradient(block.y, block.weight, energy_weight, W, n_threads)
    return terms.loss, terms.energy, terms.gradient


def scaled_gram(
    features: CoreRows, block: Block, n_threads: int, scale: _Array, coarse: bool
) -> tuple[_Array, _Array, float]:
    """Packed lower triangle of ``D Phi^T diag(w) Phi D``, D = diag(scale); merged by `add`.

    Also returns the sums of squares (p,) of the features, and the weight. Products are in float32,
    or with `coarse` of 8 bits of each feature where that is faster; sums are in float64.
    """
    gram = features.gram(block.weight, scale, coarse, n_threads)
    return gram, features.sums(block.weight, n_threads).squares, _total(block)


def _total(block: Block) -> float:
    """Sum of the weights; merged by `+`."""
    return float(len(block.y) if block.weight is None else block.weight.sum())

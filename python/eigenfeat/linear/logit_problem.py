r"""The penalised multinomial logit: objective, gradient and metric.

With ``z_i = W^T phi_i`` for the features phi_i of sample i, weights w_i of sum n, and
root mean squares r_j of the features (with `common`, one number for all features), the objective is

    f(W) = sum_i w_i loss_i(W)
           + penalty / 2 (1/2 sum_i w_i |z_i|^2 + ridge sqrt(n) sum_j r_j^2 |W_j|^2)
           + l2 / 2 sum_j |W_j|^2.

The sums over j leave out the constant feature. An evaluation is one pass over the samples, in
memory or in blocks.

**Metric.** The search takes steps in ``H = 1/2 Phi^T diag(w) Phi + diagonal``: the first term
bounds the curvature of the loss (Boehning 1992), the second is that of the sums over j. H has two
forms: a Cholesky factor of the Gram matrix of the features, or of the kernel of samples where these
are fewer. The minimum does not depend on H, so H may come from the kernel of a subsample, where the
Gram matrix of all samples costs more than it saves.

**Few samples of many features.** With the penalty ``q / 2 |D^-1 W|^2``, D diagonal, the minimum is
``W = D^2 Phi^T A`` (the representer theorem). With ``Phi D^2 Phi^T = L L^T`` and ``V = L^T A`` the
logits are ``L V`` and the penalty is ``q / 2 |V|^2``: a problem with a feature for each sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat._base.subsamples import draw_subsample
from eigenfeat.linear.lbfgs import Minimum, Progress, minimise
from eigenfeat.moments.columns import is_rounding
from eigenfeat.samples.blocks import Block, RowTransform
from eigenfeat.samples.labelled import CachedBlock, LabelledSamples, MemorySamples
from eigenfeat.samples.reductions import add

if TYPE_CHECKING:
    from eigenfeat._base.types import Codes, Floats

__all__ = [
    "LogitProblem",
    "Penalty",
    "SampleFeatures",
    "are_few_steps",
    "column_ranges",
    "far_means",
    "feature_sums",
    "logit_terms",
    "merge_ranges",
    "minima",
    "scaled_gram",
    "uncentred",
]

_Array = npt.NDArray[np.float64]

# `bench/run.py logit logit_gem` shows the effect of the first three numbers.
_MAX_GRAM_PASSES = 60  # evaluations that the metric of all samples may cost
_SUBSAMPLE_PASSES = 8  # evaluations that the kernel of the subsample costs
_MAX_KERNEL_SAMPLES = 4_000  # of a problem that is reduced to a feature for each sample
_MIN_COPIED = 500_000  # entries of the smallest matrix that is copied in float32
_MIN_SQUARE = 1e-20  # smallest mean square of a feature in float32
_REDUCED_TOLERANCE = 1e-4  # largest; logits of other samples converge later than the loss
_FLOAT32_TOLERANCE = 1e-3  # smallest for a kernel in float32
_MAX_READ_BYTES = 64e6  # of the largest fold of blocks that is read into memory
_PILOT_SAMPLES = 512  # to estimate the curvature outside the span of a subsample
_MISSING_SHARE = 0.5  # of a feature's squares; a subsample lacks less by chance
_MAX_DIAGONAL = 1e12  # of the metric, relative to the Gram matrix; float32 holds it
# Rounding, tested by tests/python/linear/test_constant_columns.py.
_NEARLY_CONSTANT = 1e-6  # variance over mean square: below it, sums are too coarse
_ROUNDING_BITS = 6  # columns of multiples of a 64th of their largest digit are rounding ...
_COUNT_STEP = 2.0**-10  # ... unless they are multiples of this: counts and indicators
_PIECE = 1 << 22  # entries converted to a dense array at a time


@dataclass(frozen=True)
class Penalty:
    """Weights of the penalties.

    Attributes
    ----------
    energy : float
        Weight of the energy of the logits: `penalty` in the objective.
    ridge : float
    l2 : float
    """

    energy: float
    ridge: float
    l2: float


class LogitProblem:
    """Objective and metric of a multinomial logit.

    Parameters
    ----------
    rows : LabelledSamples
        Features, labels and weights.
    constant : bool
        Whether to add a last feature of ones, the intercept.
    common : bool
        Whether the ridge takes one mean square for all features.
    n_original : int, optional
        Number of original features, if `rows` has those of a Cholesky factor; see the head of the
        file.

    Attributes
    ----------
    shape : (p, k)
        Number of features, with the constant, and of classes.
    n_samples : int
    total : float
        Sum of the weights.
    flat : (p,) array of bool
        Features whose weights are 0: with an intercept, features that are constant up to rounding;
        features that are rounding errors compared with the largest feature.
    mean_squares : (p,) array
        Mean squares of the features; 0 where flat.
    scale : (p,) array
        Inverse root mean squares; 0 where flat.
    ridge_squares : (p,) array
        Squares by which the ridge is multiplied; 0 for the constant.
    dtype : numpy.dtype
        Type of the features.
    n_threads : int
        Number of threads, as the core takes it.
    """

    def __init__(
        self,
        rows: LabelledSamples,
        *,
        constant: bool,
        common: bool = False,
        n_original: int | None = None,
    ) -> None:
        self.rows, self.constant, self.common = rows, constant, common
        self.n_original = n_original
        self.n_threads = threads.resolve(rows.n_threads)
        self.n_samples, self.dtype = rows.n_samples, rows.dtype
        self._arguments = constant, rows.n_threads  # each worker resolves None itself
        self._block = rows.together() if rows.in_memory else None
        self._features = None if self._block is None else self._block.core(constant)
        sums, squares, self.total = rows.reduce(feature_sums, add, *self._arguments)
        self.shape = (len(squares), len(rows.classes))
        if n_original is None:
            self._check_squares(squares)
            self.flat = self._without_spread(sums, squares)
        else:
            self.flat = squares == 0
        self.mean_squares = np.where(self.flat, 0.0, squares / self.total)
        self.scale = 1.0 / np.sqrt(np.where(self.flat, np.inf, self.mean_squares))
        self.ridge_squares = self.mean_squares.copy()
        self.ridge_squares[self.varying :] = 0.0
        if common and self.varying:
            count = n_original or self.varying
            self.ridge_squares[: self.varying] = self.ridge_squares.sum() / count

    def fold(self, train: Codes, held: Codes) -> tuple[LogitProblem, LabelledSamples]:
        """The problem of training samples, read into memory if small, and held-out samples."""
        rows = self.rows.subset(train)
        if not rows.in_memory and rows.n_samples * rows.n_features * 8 <= _MAX_READ_BYTES:
            rows = _in_memory(rows, rows.together())
        problem = LogitProblem(rows, constant=self.constant, common=self.common)
        return problem, self.rows.subset(held)

    def _check_squares(self, squares: _Array) -> None:
        """Raise ValueError for features whose squares overflow or vanish."""
        rows, finite = self.rows, np.isfinite(squares)
        lost = ~finite
        if finite.all() and rows.dense and rows.in_memory and not squares.all():
            low, high = rows.reduce(column_ranges, merge_ranges)
            lost[: len(squares) - self.constant] = (low != 0) | (high != 0)
            lost &= squares == 0
        if lost.any():
            column = int(np.argmax(lost))
            raise ValueError(
                "X: expected finite features whose squares fit float64, got squares that "
                f"{'vanish' if finite.all() else 'overflow'} in feature {column}; scale the columns"
            )

    def _without_spread(self, sums: _Array, squares: _Array) -> npt.NDArray[np.bool_]:
        """Mask (p,) of the features that vary by no more than rounding; see `flat`."""
        rows, varying = self.rows, slice(self.varying)
        flat = np.zeros(len(squares), dtype=bool)
        flat[varying] = squares[varying] == 0
        size = np.sqrt(squares[varying] / self.total)
        mean = np.abs(sums[varying]) / self.total
        largest = float(size.max(initial=0.0))
        small = is_rounding(size, largest, rows.n_samples, rows.dtype)
        near = np.maximum((size - mean) * (size + mean), 0.0) <= _NEARLY_CONSTANT * size**2
        asked = np.flatnonzero(~flat[varying] & (small | near if self.constant else small))
        if not len(asked):
            return flat
        low, high = rows.reduce(column_ranges, merge_ranges, asked)
        peak = np.maximum(np.abs(low), np.abs(high)).astype(np.float64)
        constant = is_rounding(high / 2 - low / 2, peak, rows.n_samples, rows.dtype)
        flat[asked] = constant & (small[asked] | self.constant)
        # Rounding errors, as of a centred constant, are small multiples of a last digit. Columns of
        # a small unit are not; counts beside columns of a large unit are recognised.
        left = small[asked] & ~flat[asked]
        if left.any():
            step = np.ldexp(1.0, np.frexp(peak[left])[1] - _ROUNDING_BITS)
            few = rows.reduce(are_few_steps, np.logical_and, asked[left], step)
            rounded = asked[left][few]
            if len(rounded):
                counts = np.full(len(rounded), _COUNT_STEP)
                flat[rounded] = ~rows.reduce(are_few_steps, np.logical_and, rounded, counts)
        return flat

    @property
    def varying(self) -> int:
        """Number of features without the constant."""
        return self.shape[0] - self.constant

    def quadratic(self, penalty: Penalty) -> _Array:
        """Coefficients (p,) of the squares |W_j|^2 / 2 in the objective."""
        squares = self.ridge_squares
        out = penalty.energy * penalty.ridge * np.sqrt(self.total) * squares + penalty.l2
        out[self.varying :] = 0.0
        return out

    def terms(self, W: _Array, energy_weight: float) -> tuple[float, float, _Array]:
        """Loss, energy of the logits, and the gradient of their weighted sum, at W (p, k)."""
        if self._block is not None and self._features is not None:
            how = energy_weight, W, self.n_threads
            return self._features.gradient(self._block.y, self._block.weight, *how)
        result: tuple[float, float, _Array] = self.rows.reduce(
            logit_terms, add, *self._arguments, energy_weight, W
        )
        return result

    def objective_of(self, penalty: Penalty) -> Callable[[_Array], tuple[float, _Array]]:
        """Objective and gradient as a function of W (p, k)."""
        squares = self.quadratic(penalty)[:, None]

        def objective(W: _Array) -> tuple[float, _Array]:
            loss, energy, gradient = self.terms(np.ascontiguousarray(W), 0.5 * penalty.energy)
            pull = squares * W
            gradient += pull
            value = loss + 0.25 * penalty.energy * energy
            return value + 0.5 * float(np.einsum("ij,ij->", W, pull)), gradient

        return objective

    def in_float32(self) -> LogitProblem | None:
        """The problem with features in float32; None if its passes do not repay the copy."""
        rows = self.rows
        if not (rows.in_memory and rows.dense and rows.dtype == np.float64):
            return None
        if rows.n_samples * rows.n_features < _MIN_COPIED:
            return None
        squares = self.mean_squares[~self.flat]
        if len(squares) and not _MIN_SQUARE <= squares.min() <= squares.max() <= 1 / _MIN_SQUARE:
            return None
        out = copy(self)
        out.rows = rows.in_float32()
        out._block = out.rows.together()
        out._features = out._block.core(self.constant)
        return out

    # ---- the metric ------------------------------------------------------------------------------

    def metric(
        self,
        penalty: Penalty,
        sample: npt.NDArray[np.intp] | None = None,
        *,
        coarse: bool = False,
        damped: bool = False,
    ) -> core.Metric:
        """Cholesky factor of H for a penalty.

        If rounding makes H indefinite, the diagonal is raised.

        Parameters
        ----------
        penalty : Penalty
        sample : (m,) array of indices, optional
            Subsample that represents all samples.
        coarse : bool
            Whether to multiply features in 8 bits where that is faster, and to store the factor of
            a subsample's kernel in float32: enough for a preconditioner.
        damped : bool
            Whether the diagonal includes the mean curvature outside the span of the subsample.
        """
        rows = self.rows if sample is None else self.rows.subset(sample)
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
        dual = rows.n_samples < self.varying and self.n_original is None
        weight, squares, factorise, features = self._gram(
            rows, scale, dual, coarse and (sample is not None or not dual)
        )
        share = self.total / weight
        # Rounding of a float32 Gram matrix with the diagonal total / 2; in a kernel, of its trace.
        least = max(4, p * dual) * float(np.finfo(np.float32).eps) * self.total
        floor: _Array | float = 0.0
        if sample is not None:
            # Features that are rare, or large in few samples, may be missing from the subsample.
            every = self.total * self.mean_squares
            missing = every - share * squares
            floor = 0.5 * np.where(missing > _MISSING_SHARE * every, missing, 0.0) * scale**2
            if damped and features is not None:
                least = max(least, 0.5 * self.total * self._outside(features, scale, least))
        diagonal = np.maximum(plain * scale**2, least)
        for _ in range(20):
            metric = factorise(diagonal + floor, 0.5 * share)
            if metric.positive:
                return metric
            diagonal *= 10.0
        raise FloatingPointError("the Gram matrix of the features cannot be factorised")

    def _gram(
        self, rows: LabelledSamples, scale: _Array, dual: bool, coarse: bool
    ) -> tuple[float, _Array, Callable[[Any, float], core.Metric], Block | None]:
        """Weight, squares, a function that factorises, and the samples if they are in memory.

        Samples in blocks are read into memory if they take less memory than the Gram matrix, or if
        the kernel needs them; otherwise the matrix is summed block by block.
        """
        p = self.shape[0]
        if rows.in_memory or dual or rows.n_samples * rows.n_features <= p * (p + 1):
            block = rows.together()
            features, weights = block.core(self.constant), block.weight

            def factorise(diagonal: Any, factor: float) -> core.Metric:
                how = dual, coarse, self.n_threads
                return features.metric(weights, scale, diagonal, factor, *how)

            return _total(block), features.sums(weights, self.n_threads)[1], factorise, block
        gram, squares, weight = rows.reduce(scaled_gram, add, *self._arguments, scale, coarse)

        def factorise_sum(diagonal: Any, factor: float) -> core.Metric:
            return core.Metric.from_gram(gram, scale, diagonal, factor, self.n_threads)

        return weight, squares, factorise_sum, None

    def _outside(self, block: Block, scale: _Array, ridge: float) -> float:
        """Share of the features' squares that lies outside the span of a subsample."""
        pilot = block.take(draw_subsample(len(block), _PILOT_SAMPLES))
        features = pilot.core(self.constant)
        residual = features.residual(pilot.weight, scale, ridge, self.n_threads)
        return float(min(residual / self.shape[0], 1.0))

    def search_metric(self, penalty: Penalty) -> core.Metric:
        """The metric of a search: of all samples, or of a subsample where that is faster."""
        n, (p, k) = self.n_samples, self.shape
        operations, evaluation = n * p * min(n, p), 4 * n * p * k
        few = operations <= _MAX_GRAM_PASSES * evaluation
        if few or self.rows.sparse:  # a subsample misses too many directions of rare features
            return self.metric(penalty, coarse=True)
        count = int(min(np.sqrt(_SUBSAMPLE_PASSES * evaluation / p), p // 2, n))
        sample = draw_subsample(n, count)
        return self.metric(penalty, sample, coarse=True, damped=True)


# ---- a path of penalties -------------------------------------------------------------------------


def minima(
    problem: LogitProblem,
    penalties: Sequence[Penalty],
    *,
    tolerance: float,
    max_iterations: int,
    start: _Array | None = None,
    callback: Callable[[Progress], bool] | None = None,
) -> Iterator[Minimum]:
    """Minima for several penalties, in the metric of the largest one.

    Each search starts from the minimum before; the first one from `start` or from zero weights.
    Points of the minima are weights (p, k).
    """
    largest = max(penalties, key=lambda one: one.energy)
    if problem.n_original is not None:
        tolerance = min(tolerance, _REDUCED_TOLERANCE)
    metric = problem.search_metric(largest)
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


@dataclass(frozen=True, eq=False)
class SampleFeatures:
    """Problem of few samples, reduced to a feature for each sample; see the head of the file.

    Attributes
    ----------
    problem : LogitProblem
        Its features are the rows of L.
    squares : (p,) array
        Diagonal of D^2.
    block : Block
        The samples.
    kernel : (n, n) array
        Phi D^2 Phi^T, in float32 if that is enough for the tolerance.
    """

    problem: LogitProblem
    squares: _Array
    block: Block
    kernel: Floats

    @classmethod
    def of(cls, problem: LogitProblem, penalty: Penalty, tolerance: float) -> SampleFeatures | None:
        """Reduce a problem; None if passes over its features are faster or necessary.

        Parameters
        ----------
        problem : LogitProblem
        penalty : Penalty
            Any of the penalties; they differ in `energy` alone.
        tolerance : float
            Tolerance of the searches; if it is large, products are in float32.
        """
        rows, n, varying = problem.rows, problem.n_samples, slice(problem.varying)
        if 2 * n > problem.varying or n > _MAX_KERNEL_SAMPLES:
            return None
        if penalty.l2 > 0 and not problem.common:  # D would depend on the penalty
            return None
        scale, unit = problem.scale.copy(), 1.0
        count = int(np.count_nonzero(scale[varying]))
        if problem.common:
            count, unit = problem.varying, float(problem.mean_squares[varying].mean())
            scale = np.where(problem.flat, 0.0, 1.0 / np.sqrt(unit or 1.0))
        scale[problem.varying :] = 0.0
        if not (scale.any() and np.isfinite(scale).all()):
            return None
        block, single = rows.together(), tolerance >= _FLOAT32_TOLERANCE
        if rows.sparse:
            scaled = block.X.multiply(scale[varying]).tocsr().astype(np.float64)
            kernel = (scaled @ scaled.T).toarray()
        else:
            kernel = block.core(problem.constant).kernel(scale, single, problem.n_threads)
        kernel *= unit
        kernel = kernel.astype(np.float32 if single else np.float64, copy=False)
        features = Block(_cholesky(kernel), block.y, block.weight)
        reduced = LogitProblem(
            _in_memory(rows, features),
            constant=problem.constant,
            common=True,
            n_original=count,
        )
        return cls(reduced, unit * scale**2, block, kernel)

    def fold(self, train: Codes, held: Codes) -> tuple[LogitProblem, LabelledSamples]:
        """The problem of training samples, with a feature for each, and held-out samples."""
        reduced, factor = self.problem, _cholesky(self.kernel[np.ix_(train, train)])
        crossed = self.kernel[np.ix_(train, held)]
        with threads.one_blas_thread():
            mapped = solve_triangular(factor, crossed, lower=True, check_finite=False).T
        trained, tested = (self.block.take(part) for part in (train, held))
        rows = _in_memory(reduced.rows, Block(factor, trained.y, trained.weight))
        problem = LogitProblem(
            rows, constant=reduced.constant, common=True, n_original=reduced.n_original
        )
        features = Block(np.ascontiguousarray(mapped), tested.y, tested.weight)
        return problem, _in_memory(reduced.rows, features)

    def weights(self, V: _Array) -> _Array:
        """Weights (p, k) of the features from those of the reduced problem."""
        n, constant = self.problem.varying, self.problem.constant
        factor = np.asarray(self.problem.rows.together().X, dtype=np.float64)
        with threads.one_blas_thread():
            A = solve_triangular(factor, V[:n], trans="T", lower=True, check_finite=False)
        W = self.block.products(np.ascontiguousarray(A), constant, self.problem.rows.n_threads)
        W *= self.squares[:, None]
        if constant:
            W[-1] = V[-1]
        return W


def _in_memory(rows: LabelledSamples, block: Block) -> MemorySamples:
    """Features in memory with the classes of `rows`."""
    kept = CachedBlock(block.X, block.y, block.weight)
    return MemorySamples(kept, rows.classes, RowTransform(n_threads=rows.n_threads))


@threads.one_blas_thread()
def _cholesky(kernel: Floats) -> Floats:
    """Lower Cholesky factor of a kernel, with its diagonal raised until it is positive definite."""
    n = len(kernel)
    extra = np.sqrt(n) * float(np.finfo(kernel.dtype).eps) * kernel.diagonal().max()
    raised = kernel.copy()
    while True:
        raised[np.diag_indices(n)] += extra
        try:
            factor = cholesky(raised, lower=True, check_finite=False)
        except LinAlgError:  # repeated samples make the kernel singular
            extra *= 10.0
        else:
            return np.ascontiguousarray(factor)


# ---- columns far from zero -----------------------------------------------------------------------


def far_means(rows: LabelledSamples) -> _Array | None:
    """Means (d,) of the columns whose means exceed ten deviations, 0 elsewhere; None if none do.

    With an intercept, centring these columns leaves the minimum of the loss unchanged and makes the
    float32 metric accurate. Their mean squares in the ridge become variances. Constant columns are
    not centred.
    """
    if not rows.dense:
        return None
    sums, squares, total = rows.reduce(feature_sums, add, False, rows.n_threads)
    mean: _Array = sums / total
    with np.errstate(over="ignore", invalid="ignore"):  # such columns are refused later
        far = squares / total - mean**2 < 0.01 * mean**2
    if far.any():
        low, high = rows.reduce(column_ranges, merge_ranges)
        size = np.maximum(np.abs(low), np.abs(high))
        far &= ~is_rounding(high / 2 - low / 2, size, rows.n_samples, rows.dtype)
    if not far.any():
        return None
    mean[~far] = 0.0
    return mean


def uncentred(W: _Array, centre: _Array | None) -> _Array:
    """Weights for the features as given, from weights for centred ones; the constant is last."""
    if centre is None:
        return W
    out = W.copy()
    out[-1] -= centre @ W[:-1]
    return out


# ---- sums over the samples of a block ------------------------------------------------------------


def feature_sums(
    block: Block, constant: bool, n_threads: int | None = None
) -> tuple[_Array, _Array, float]:
    """Sums and sums of squares (p,) of the features, and the weight; merged by `add`."""
    features = block.core(constant)
    return *features.sums(block.weight, threads.resolve(n_threads)), _total(block)


def column_ranges(block: Block, columns: Codes | None = None) -> tuple[Floats, Floats]:
    """Least and largest entries of all columns or of `columns`; merged by `merge_ranges`."""
    if columns is None:
        return block.X.min(axis=0), block.X.max(axis=0)
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
    block: Block, constant: bool, n_threads: int | None, energy_weight: float, W: _Array
) -> tuple[float, float, _Array]:
    """Loss, energy of the logits, and gradient (p, k) at W (p, k); merged by `add`.

    ``sum_i w_i loss_i``, ``sum_i w_i |z_i|^2`` with ``z_i = W^T phi_i``, and the gradient of the
    first plus ``energy_weight / 2`` times the second.
    """
    features = block.core(constant)
    return features.gradient(block.y, block.weight, energy_weight, W, threads.resolve(n_threads))


def scaled_gram(
    block: Block, constant: bool, n_threads: int | None, scale: _Array, coarse: bool
) -> tuple[_Array, _Array, float]:
    """``D Phi^T diag(w) Phi D``, D = diag(scale), as its packed lower triangle.

    Also returns the sums of squares (p,) of the features, and the weight. Entry (i, j) is at
    ``i (i + 1) / 2 + j``. Products are computed in float32, or with `coarse` from 8 bits of each
    feature where that is faster; sums are float64. Merged by `add`.
    """
    features, count = block.core(constant), threads.resolve(n_threads)
    gram = features.gram(block.weight, scale, coarse, count)
    return gram, features.sums(block.weight, count)[1], _total(block)


def _total(block: Block) -> float:
    return float(len(block) if block.weight is None else block.weight.sum())

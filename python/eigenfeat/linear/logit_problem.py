"""The penalised multinomial logit on feature rows: objective, gradient and metric.

    f(W) = sum_i w_i loss_i(W)
           + penalty / 2 (1/2 sum_i w_i |z_i|^2 + ridge sqrt(n) sum_j r_j^2 |W_j|^2)
           + l2 / 2 sum_j |W_j|^2,        z_i = W^T phi_i

The second line is the energy of the logits, ``penalty / 2 tr(W^T H W)`` in the metric
``H = 1/2 Phi^T diag(w) Phi + ridge sqrt(n) D^2``, D = diag(r) the root mean squares of the
features (or, `common` to all, the root of their mean square), n the sum of the weights. It needs no
Gram matrix: the logits are at hand in every pass. The Gram matrix only preconditions, so that a
sample of the rows will do. The constant feature is in neither of the sums over j.

An evaluation is a pass over the rows, in memory or in blocks (`eigenfeat.samples.labelled`). The
minimum is searched by L-BFGS in the metric; see `minimise`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, reduce
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat._base.subsamples import draw_subsample
from eigenfeat.moments.class_moments import is_rounding
from eigenfeat.samples.blocks import Block
from eigenfeat.samples.labelled import LabelledSamples
from eigenfeat.samples.reductions import add

if TYPE_CHECKING:
    from eigenfeat._base.types import Codes, Floats, Labels

__all__ = [
    "NEARBY",
    "RECENT",
    "Gram",
    "LogitProblem",
    "Minimum",
    "Penalty",
    "Progress",
    "ScaledMetric",
    "Solve",
    "are_few_steps",
    "column_ranges",
    "far_means",
    "feature_sums",
    "gram_rows",
    "logit_terms",
    "merge_ranges",
    "minimise",
    "scaled_gram",
    "solve_when_needed",
    "uncentred",
]

_Array = npt.NDArray[np.float64]

_MOST_GRAM_ROWS = 20000
_PASSES = 8  # over all rows, that a kernel of few of them may cost
_SAVED = 20  # passes that a Gram matrix must cost to be left for a tolerance of 1e-3
_SAVED_BY_KERNEL = 50  # likewise of a kernel, whose steps cost up to two passes each
_LEAST_GRAM = 1.5e11  # operations, three quarters of a second
_LEAST_ENERGY = 0.002  # with less, steps are too many
_LEAST_COPIED, _MOST_COPIED = 500_000, 250_000_000  # numbers: 2 MB to 1 GB in float32
_LARGEST_DIAGONAL = 1e12  # of the metric: so many times the diagonal of the Gram matrix
_NEARLY = 1e-6  # of mean squares: a smaller variance is computed from sums too coarsely
_STEP_BITS = 6
_WHOLE = 2.0**-10  # columns of multiples of this were counted, and are no rounding
_TINY = 1e-20  # mean squares that float32 holds with those of their rows
# Rows of a sample that say how much of the spectrum all of it leaves open.
_PILOT_ROWS = 1024
_LACKING = 0.5  # of a feature's squares: more than a sample lacks by chance


@dataclass(frozen=True)
class Penalty:
    """Weights of the penalties: logit energy (`penalty`, with `ridge` inside) and plain `l2`.

    With `common` the ridge weighs all features alike, whatever their mean squares.
    """

    energy: float
    ridge: float
    l2: float
    common: bool = False


class LogitProblem:
    """The objective and its metric.

    Parameters
    ----------
    rows : LabelledSamples
        Whose labels are those of the classes.
    constant : bool
        Whether there is a last feature of ones (the intercept).
    flat : (p,) array of bool, optional
        The attribute, if it is known.

    Attributes
    ----------
    shape : (p, k)
        Features, with the constant, and classes.
    n_samples : int
    total : float
        Sum of the weights.
    flat : (p,) array of bool
        Features without spread: those that are constant but for rounding, if there is an
        intercept, and those that are rounding beside all others. Their weights are 0.
    mean_squares : (p,) array
        Of the features; 0 of flat ones.
    scale : (p,) array
        One over their roots, 0 where they are 0.
    dtype : numpy.dtype
        Type of the features, in which tiles are computed.
    n_threads : int
        As the core takes it.
    """

    def __init__(
        self,
        rows: LabelledSamples,
        *,
        constant: bool,
        flat: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self.rows, self.constant = rows, constant
        self.n_threads = threads.resolve(rows.n_threads)
        self.n_samples, self.dtype = rows.n_samples, rows.dtype
        self._how = constant, rows.n_threads  # None has a meaning of its own on a worker
        self._block = rows.together() if rows.in_memory else None
        self._features = None if self._block is None else self._block.core(constant)
        sums, squares, self.total = rows.reduce(feature_sums, add, *self._how)
        self._check_squares(squares)
        self.shape = (len(squares), len(rows.classes))
        self.flat = self._without_spread(sums, squares) if flat is None else flat
        self.mean_squares = np.where(self.flat, 0.0, squares / self.total)
        self.scale = 1.0 / np.sqrt(np.where(self.flat, np.inf, self.mean_squares))

    def _check_squares(self, squares: _Array) -> None:
        """ValueError for features whose squares overflow, or vanish."""
        rows, finite = self.rows, np.isfinite(squares)
        lost = ~finite
        if finite.all() and rows.dense and rows.in_memory and not squares.all():
            low, high = rows.reduce(column_ranges, merge_ranges)
            lost[: len(squares) - self.constant] = (low != 0) | (high != 0)
            lost &= squares == 0
        if lost.any():
            column = int(np.argmax(lost))
            raise ValueError(
                "X: expected finite features whose squares fit float64, got some that "
                f"{'vanish' if finite.all() else 'overflow'} in feature {column}; scale the columns"
            )

    def _without_spread(self, sums: _Array, squares: _Array) -> npt.NDArray[np.bool_]:
        """Which features (p,) have no more spread than rounding explains; see `flat`."""
        rows, varying = self.rows, slice(self.varying)
        flat = np.zeros(len(squares), dtype=bool)
        flat[varying] = squares[varying] == 0
        size = np.sqrt(squares[varying] / self.total)
        mean = np.abs(sums[varying]) / self.total
        largest = float(size.max(initial=0.0))
        small = is_rounding(size, largest, rows.n_samples, rows.dtype)
        near = np.maximum((size - mean) * (size + mean), 0.0) <= _NEARLY * size**2
        asked = np.flatnonzero(~flat[varying] & (small | near if self.constant else small))
        if not len(asked):
            return flat
        low, high = rows.reduce(column_ranges, merge_ranges, asked)
        peak = np.maximum(np.abs(low), np.abs(high)).astype(np.float64)
        constant = is_rounding(high / 2 - low / 2, peak, rows.n_samples, rows.dtype)
        flat[asked] = constant & (small[asked] | self.constant)
        # Differences of rounded numbers, as of a centred constant, are few steps of their last
        # digit; those of a small unit are not.
        left = small[asked] & ~flat[asked]
        if left.any():
            step = np.ldexp(1.0, np.frexp(peak[left])[1] - _STEP_BITS)
            few = rows.reduce(are_few_steps, np.logical_and, asked[left], step)
            rounded = asked[left][few]
            if len(rounded):  # neither are indicators and counts beside a column of a small unit
                whole = np.full(len(rounded), _WHOLE)
                plain = rows.reduce(are_few_steps, np.logical_and, rounded, whole)
                flat[rounded] = ~plain
        return flat

    def start(self, before: tuple[Labels, _Array] | None, centre: _Array | None) -> _Array:
        """Weights (p, k) that a search starts from: 0, or those (p, k) of an earlier fit.

        `before` are the earlier classes and weights, the constant's last even if there is none now.
        """
        W = np.zeros(self.shape)
        if before is None:
            return W
        classes, old = before
        if not self.constant:
            old = old[:-1]
        if old.shape != W.shape or not np.array_equal(classes, self.rows.classes):
            raise ValueError(
                f"X, y: expected the {len(classes)} classes and {len(before[1]) - 1} features of "
                f"the earlier fit with warm_start, got {self.shape[1]} and {self.varying}"
            )
        W[:] = np.where(self.flat[:, None], 0.0, old)
        if centre is not None:
            W[-1] += centre @ W[:-1]
        return W

    def terms(self, W: _Array, energy_weight: float) -> tuple[float, float, _Array]:
        """Loss, energy of the logits, and the gradient of their weighted sum, at W (p, k)."""
        if self._block is not None and self._features is not None:  # one call, in every step
            how = energy_weight, W, self.n_threads
            return self._features.gradient(self._block.y, self._block.weight, *how)
        result: tuple[float, float, _Array] = self.rows.reduce(
            logit_terms, add, *self._how, energy_weight, W
        )
        return result

    def gram(
        self, sample: npt.NDArray[np.intp] | None, coarse: bool, scale: _Array | None = None
    ) -> Gram:
        """Gram matrix for the metric, of all rows or of those with these numbers.

        Features are multiplied by `scale`, by default that of the problem.

        Rows that are not in memory are brought here where they take fewer bytes than the matrix, or
        where the dual needs them; otherwise the matrix is summed where the rows are.
        """
        rows = self.rows if sample is None else self.rows.subset(sample)
        scale = self.scale if scale is None else scale
        p = self.shape[0]
        few = rows.n_samples < p or rows.n_samples * rows.n_features <= p * (
            p + 1
        )  # float32, float64
        if rows.in_memory or few:
            block = rows.together()
            # A sample's kernel is damped, which its factor in float32 needs; that of all rows not.
            coarse = coarse and (sample is not None or rows.n_samples >= p)
            return Gram.of_rows(block, self.constant, scale, coarse, self.n_threads)
        gram, squares, weight = rows.reduce(scaled_gram, add, *self._how, scale, coarse)
        return Gram.summed(gram, squares, weight, scale, self.n_threads)

    def float32_problem(self) -> LogitProblem | None:
        """The same in float32, for the search's first steps, where its passes repay a copy."""
        rows = self.rows
        if not (rows.in_memory and rows.dense and rows.dtype == np.float64):
            return None
        if not _LEAST_COPIED <= rows.n_samples * rows.n_features <= _MOST_COPIED:
            return None
        squares = self.mean_squares[~self.flat]
        if len(squares) and not _TINY <= squares.min() <= squares.max() <= 1 / _TINY:
            return None
        return LogitProblem(rows.in_float32(), constant=self.constant, flat=self.flat)

    @property
    def varying(self) -> int:
        """Features but the constant."""
        return self.shape[0] - self.constant

    def quadratic(self, penalty: Penalty) -> _Array:
        """Coefficients (p,) of the plain squares |W_j|^2 / 2 in the objective."""
        squares = self.mean_squares
        if penalty.common and self.varying:
            squares = np.full_like(squares, squares[: self.varying].mean())
        out = penalty.energy * penalty.ridge * np.sqrt(self.total) * squares + penalty.l2
        out[self.varying :] = 0.0
        return out

    def objective_of(self, penalty: Penalty) -> Callable[[_Array], tuple[float, _Array]]:
        """Objective and gradient, as a function of W (p, k)."""
        squares = self.quadratic(penalty)[:, None]

        def objective(W: _Array) -> tuple[float, _Array]:
            loss, energy, gradient = self.terms(np.ascontiguousarray(W), 0.5 * penalty.energy)
            pull = squares * W
            gradient += pull
            value = loss + 0.25 * penalty.energy * energy
            return value + 0.5 * float(np.einsum("ij,ij->", W, pull)), gradient

        return objective

    def loss(self, W: _Array) -> float:
        """Unpenalised mean loss."""
        return float(self.terms(np.ascontiguousarray(W), 0.0)[0]) / self.total

    def metric(
        self,
        penalty: Penalty,
        damping: float,
        sample: npt.NDArray[np.intp] | None,
        *,
        coarse: bool = False,
        tail: float = 0.0,
    ) -> core.Metric:
        """Cholesky factor of ``1/2 Phi^T diag(w) Phi`` plus the penalty's plain squares.

        The Gram matrix is that of all rows or of a sample.

        Where rounding makes H indefinite the damping grows until it is not: the optimum does not
        depend on it.

        Parameters
        ----------
        penalty : Penalty
            Its plain squares, in the metric; not its energy's part of the Gram matrix.
        damping : float
            Least addition to the diagonal, where features have root mean square 1.
        sample : (m,) array of row numbers, or None
        coarse : bool
            Whether 8 bits of a feature are enough: a preconditioner's, where that is faster. With
            fewer rows than features it is the factor of a sample's kernel that is in float32.
        tail : float
            The least damping of a sample of fewer rows than features, as a multiple of the mean
            curvature that it leaves open: where only the number of steps depends on the metric.
        """
        plain = self.quadratic(penalty)
        scale = self._metric_scale(plain)
        gram = self.gram(sample, coarse, scale)
        share = 1.0 if sample is None else self.total / gram.weight
        # Rounding of a float32 Gram matrix whose diagonal is total / 2; of its trace in the dual.
        smallest = max(4, self.shape[0] * gram.dual) * float(np.finfo(np.float32).eps) * self.total
        floor: _Array | float = 0.0
        if sample is not None:
            # Features that are rare, or large in few samples, may have none of these in it. What
            # is lacking by chance adds nothing: it would hide the small eigenvalues of correlated
            # features.
            whole = self.total * self.mean_squares
            lacking = whole - share * gram.squares()
            floor = 0.5 * np.where(lacking > _LACKING * whole, lacking, 0.0) * scale**2
            if tail > 0 and gram.dual:
                ridge = 2 * max(damping, smallest) / share
                damping = max(damping, tail * 0.5 * share * gram.left_open(ridge))
        diagonal = np.maximum(plain * scale**2, max(damping, smallest))
        for _ in range(20):
            metric = gram.metric(diagonal + floor, 0.5 * share)
            if metric.positive:
                return metric
            diagonal *= 10.0
        raise FloatingPointError("the Gram matrix of the features cannot be factorised")

    def _metric_scale(self, plain: _Array) -> _Array:
        """Scale (p,) of the metric's features, whose diagonal is to fit float32.

        The squares ``plain`` (p,) of the penalty leave hardly a weight to features whose mean
        squares are so much smaller: they are scaled by the penalty instead.
        """
        if not np.isfinite(plain).all():
            raise ValueError(
                f"penalty: expected a finite weight of the squares, got {plain.max():g}"
            )
        with np.errstate(divide="ignore"):
            most = np.sqrt(_LARGEST_DIAGONAL * self.total / plain)
        return np.minimum(self.scale, most)


@dataclass(frozen=True, eq=False)
class Gram:
    """A Gram matrix of some rows' features, scaled, as the metric is made of it.

    Attributes
    ----------
    metric : callable
        ``metric(diagonal, factor)``, the factor of ``factor * gram + diagonal``.
    squares : callable
        Sums of squares (p,) of the features.
    weight : float
        Sum of the rows' weights.
    dual : bool
        Whether a kernel of the rows stands for the matrix: there are fewer rows than features.
    left_open : callable
        ``left_open(ridge)``, what such rows leave open of the trace of all like them, a feature's
        share.
    """

    metric: Callable[[_Array, float], core.Metric]
    squares: Callable[[], _Array]
    weight: float
    dual: bool
    left_open: Callable[[float], float] = lambda _ridge: 0.0

    @classmethod
    def of_rows(
        cls, block: Block, constant: bool, scale: _Array, coarse: bool, n_threads: int
    ) -> Gram:
        """Of feature rows that are here."""
        rows, weights = block.core(constant), block.weight
        dual = rows.n_rows < rows.n_columns

        def metric(diagonal: _Array, factor: float) -> core.Metric:
            return rows.metric(weights, scale, diagonal, factor, dual, coarse, n_threads)

        def squares() -> _Array:
            return rows.sums(weights, n_threads)[1]

        def left_open(ridge: float) -> float:
            def residual(count: int) -> float:
                some = block.take(draw_subsample(rows.n_rows, count))
                parts = some.weight, scale, ridge, n_threads
                return some.core(constant).residual(*parts)

            return rows.n_rows * _extrapolated(residual, rows.n_rows) / rows.n_columns

        weight = float(rows.n_rows if weights is None else weights.sum())
        return cls(metric, squares, weight, dual, left_open)

    @classmethod
    def summed(
        cls, gram: _Array, squares: _Array, weight: float, scale: _Array, n_threads: int
    ) -> Gram:
        """From a packed matrix, see `eigenfeat.samples.scaled_gram`."""

        def metric(diagonal: _Array, factor: float) -> core.Metric:
            return core.Metric.from_gram(gram, scale, diagonal, factor, n_threads)

        return cls(metric, lambda: squares, weight, False)


def _extrapolated(residual: Callable[[int], float], n_samples: int) -> float:
    """How far a row is from the span of so many others, from fewer: by a power of their number."""
    count = min(_PILOT_ROWS, n_samples)
    result = residual(count)
    if count == n_samples or not 0 < result < np.inf:
        return result
    power = max(float(np.log2(residual(count // 2) / result)), 0.0)
    return float(result * (count / n_samples) ** power)


def gram_rows(problem: LogitProblem, energy: float, tolerance: float) -> int:
    """Rows for the metric: few where a Gram matrix of many costs more than the steps it saves.

    With half as many rows as features, or as many as make a kernel as dear as some passes, the
    steps are some 1.5 times as many for a tolerance of 1e-3 and 2.4 times for 1e-4; the Gram matrix
    of m rows must cost more than that many passes of 4 n p k operations, also where its products
    are of bytes. It costs m p^2 operations, or m^2 p as a kernel of fewer rows than p.
    """
    n, (p, k) = problem.n_samples, problem.shape
    most = min(n, _MOST_GRAM_ROWS)
    operations = most * p * float(min(most, p))
    passes = operations / (4.0 * n * p * k)
    saved = (_SAVED if most >= p else _SAVED_BY_KERNEL) * np.sqrt(1e-3 / tolerance)
    enough = passes < saved or operations < _LEAST_GRAM
    if problem.rows.sparse or energy < _LEAST_ENERGY or enough:
        return _MOST_GRAM_ROWS
    return int(min(np.sqrt(4 * _PASSES * n * k), p / 2, most))


def uncentred(W: _Array, centre: _Array | None) -> _Array:
    """Weights for rows as they are, from those for rows about `centre`; the constant is last."""
    if centre is None:
        return W
    out = W.copy()
    out[-1] -= centre @ W[:-1]
    return out


# ---- the search ----------------------------------------------------------------------------------
#
# Limited-memory BFGS in a given metric. SciPy's has no metric: its first steps follow the plain
# gradient. Here the inverse Hessian is built on ``gamma H^-1`` (Nocedal and Wright 2006, algorithm
# 7.4), H being a bound on the Hessian whose solves are cheap beside an evaluation. One solve an
# iteration: ``H^-1`` of gradient differences comes from differences of solved gradients. The core
# has the pairs and the recursion.


Evaluate = Callable[[_Array], "tuple[float, _Array]"]
Solve = Callable[[_Array], _Array]

_SUFFICIENT = 1e-4  # share of the predicted decrease that a step must bring
_MOST_HALVINGS = 30
# What an eighth of the steps, and two at least, have brought stands for what is to come. It is no
# bound: of 384 logits of the usual kind the excess was at most 4 times the estimate and seldom more
# than it; on plateaus of separable rows with hardly a penalty it was up to 200 times as large.
RECENT = 2
NEARBY = 3  # with a start near the minimum, where steps bring little from the first one on
_RECENT_SHARE = 8
_COARSE_GAP = 1e-6  # of the objective: gaps that float32 still tells from rounding
_FLOAT32 = float(np.finfo(np.float32).eps)
_CAUTION = 8.0  # before there is a step to learn from, the metric may be so much too large


@dataclass(frozen=True)
class Progress:
    """State after an iteration; `gap` estimates the objective's excess over the minimum."""

    iteration: int
    point: _Array
    objective: float
    gap: float
    gradient_norm: float  # in the metric's dual norm, sqrt(g^T H^-1 g)


@dataclass
class Minimum:
    """Result of the search, and reason for stopping.

    ``reason``: "converged" (estimated gap within the tolerance), "precision" (no step decreases the
    objective in this arithmetic), "stopped" (by the callback) or "iterations".
    """

    point: _Array
    objective: float
    gap: float
    gradient_norm: float
    iterations: int
    evaluations: int
    reason: str
    history: list[float] = field(default_factory=list)


@dataclass
class _State:
    point: _Array
    objective: float
    gradient: _Array
    solved: _Array  # H^-1 gradient


def minimise(
    evaluate: Evaluate,
    solve: Solve,
    start: _Array,
    *,
    tolerance: float,
    max_iterations: int,
    memory: int = 10,
    noise: float = 1e-15,
    callback: Callable[[Progress], bool] | None = None,
    float32: Evaluate | None = None,
    recent: int = RECENT,
) -> Minimum:
    """Minimise a smooth convex function.

    Parameters
    ----------
    evaluate : callable
        Objective and gradient at a point; a point where it is not finite is stepped back from.
    solve : callable
        ``H^-1`` times a gradient, H positive definite.
    start : array
        Finite objective there.
    tolerance : float
        Stops when the estimated gap is at most so much times the objective.
    max_iterations : int
        Most steps.
    memory : int
        Pairs to keep.
    noise : float
        Relative rounding of the objective: what no step can get below.
    callback : callable, optional
        Called after every iteration; True stops.
    float32 : callable, optional
        A cheaper `evaluate` in float32, for the steps down to a gap that float32 can tell. What is
        returned is of `evaluate`.
    recent : int
        Least number of steps whose decrease stands for what is to come.
    """
    current, in_float32 = (evaluate, False) if float32 is None else (float32, True)
    state = _evaluated(current, solve, start)
    pairs = core.Lbfgs(state.point.size, memory)
    evaluations, reason, iteration = 1, "iterations", 0
    history = [state.objective]

    def exactly() -> None:
        nonlocal current, in_float32, state, evaluations
        current, in_float32 = evaluate, False
        state = _evaluated(evaluate, solve, state.point)
        history[-1], evaluations = state.objective, evaluations + 1

    if in_float32 and not np.isfinite(state.objective):
        exactly()
    if not np.isfinite(state.objective):
        raise FloatingPointError(f"the objective at the start is {state.objective}")
    while True:
        direction, slope, square = pairs.direction(state.gradient, state.solved)
        norm = float(np.sqrt(max(square, 0.0)))
        gap = _gap(slope, history, recent)
        near = gap <= max(tolerance, _COARSE_GAP) * abs(state.objective)
        if in_float32 and (near or iteration == max_iterations):
            exactly()
            continue
        progress = Progress(iteration, state.point, state.objective, gap, norm)
        if callback is not None and callback(progress):
            reason = "stopped"
            break
        if gap <= tolerance * abs(state.objective):
            reason = "converged"
            break
        if iteration == max_iterations:
            break
        result, tried = _line_search(
            current, state, direction, slope, _FLOAT32 if in_float32 else noise
        )
        evaluations += tried
        if result is None and in_float32:
            exactly()
            continue
        if result is None and pairs.pairs:
            pairs.forget()  # the pairs may mislead; the metric alone does not
            result, tried = _line_search(current, state, -state.solved, -square, noise)
            evaluations += tried
        if result is None:  # what the steps before have brought says nothing any more
            reason = "precision"
            gap = max(-0.5 * slope, noise * abs(state.objective))
            break
        result.solved = solve(result.gradient)
        pairs.remember(
            state.point, result.point, state.gradient, result.gradient, state.solved, result.solved
        )
        state = result
        history.append(state.objective)
        iteration += 1
    return Minimum(state.point, state.objective, gap, norm, iteration, evaluations, reason, history)


def _evaluated(evaluate: Evaluate, solve: Solve, point: _Array) -> _State:
    objective, gradient = evaluate(point)
    return _State(point, objective, gradient, solve(gradient))


def _gap(slope: float, history: list[float], recent: int) -> float:
    """Excess over the minimum: that of the quadratic model, or what the last steps have brought."""
    model = -0.5 * slope
    steps = len(history) - 1
    if steps == 0:
        return _CAUTION * model
    recent = max(recent, steps // _RECENT_SHARE)
    return max(model, history[max(steps - recent, 0)] - history[-1])


def _line_search(
    evaluate: Evaluate, state: _State, direction: _Array, slope: float, noise: float
) -> tuple[_State | None, int]:
    """Halve, or interpolate, until the objective decreases enough."""
    if not slope < 0:
        return None, 0
    step = 1.0
    for tried in range(1, _MOST_HALVINGS + 1):
        point = state.point + step * direction
        objective, gradient = evaluate(point)
        if objective <= state.objective + _SUFFICIENT * step * slope:
            return _State(point, objective, gradient, gradient), tried
        if -step * slope <= noise * abs(state.objective):
            break
        shrink = 0.5
        if np.isfinite(objective):
            bend = objective - state.objective - step * slope
            shrink = float(np.clip(-step * slope / (2 * bend), 0.1, 0.5)) if bend > 0 else 0.5
        step *= shrink
    return None, tried


# ---- metrics of several searches -----------------------------------------------------------------


def solve_when_needed(build: Callable[[], core.Metric | ScaledMetric], n_threads: int) -> Solve:
    """Solve in a metric that is built at the first gradient; a search in the span needs none."""
    metric = cache(build)

    def solve(gradient: _Array) -> _Array:
        solved: _Array = metric().solve(gradient, n_threads)
        return solved

    return solve


@dataclass(frozen=True, eq=False)
class ScaledMetric:
    """The metric of more samples than those that it is from."""

    metric: core.Metric
    share: float  # of the weight of all samples

    def solve(self, gradient: _Array, n_threads: int) -> _Array:
        """H^-1 times a gradient."""
        solved: _Array = self.metric.solve(gradient, n_threads)
        return self.share * solved


# ---- sums over the rows of a block ---------------------------------------------------------------


_PIECE = 1 << 22  # numbers of rows that are there as an array


def feature_sums(
    block: Block, constant: bool, n_threads: int | None = None
) -> tuple[_Array, _Array, float]:
    """Sums and sums of squares (p,) of the features, and the weight; merged by `add`."""
    rows = block.core(constant)
    return *rows.sums(block.weight, threads.resolve(n_threads)), _total(block)


def column_ranges(block: Block, columns: Codes | None = None) -> tuple[Floats, Floats]:
    """Least and largest entries of the columns, or of those with these numbers."""
    if columns is None:
        return block.X.min(axis=0), block.X.max(axis=0)
    parts = [(part.min(axis=0), part.max(axis=0)) for part in _columns(block, columns)]
    return reduce(merge_ranges, parts)


def are_few_steps(block: Block, columns: Codes, step: _Array) -> npt.NDArray[np.bool_]:
    """Whether all entries of columns are whole multiples of their `step`; merge by `and`."""
    parts = [(part / step == np.rint(part / step)).all(axis=0) for part in _columns(block, columns)]
    return reduce(np.logical_and, parts)


def _columns(block: Block, columns: Codes) -> Iterator[Floats]:
    """Some columns of rows of any kind as arrays, piece by piece."""
    size = max(1, _PIECE // max(block.X.shape[1], 1))
    for first in range(0, len(block), size):
        part = block.take(slice(first, first + size)).X
        yield (part if isinstance(part, np.ndarray) else part.toarray())[:, columns]


def merge_ranges(a: tuple[Floats, Floats], b: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Those of the rows of both."""
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def far_means(rows: LabelledSamples) -> _Array | None:
    """Means (d,) of those columns whose means exceed ten deviations, 0 elsewhere; None if none.

    Constant columns stay as they are.

    About these means, with an intercept, the loss's optimum is the same; its float32 metric is not.
    Such a column's mean square, in the energy's ridge, becomes its variance.
    """
    if not rows.dense:
        return None
    sums, squares, total = rows.reduce(feature_sums, add, False, rows.n_threads)
    mean: _Array = sums / total
    with np.errstate(over="ignore", invalid="ignore"):  # of columns that are refused later
        far = squares / total - mean**2 < 0.01 * mean**2
    if far.any():
        low, high = rows.reduce(column_ranges, merge_ranges)
        size = np.maximum(np.abs(low), np.abs(high))
        far &= ~is_rounding(high / 2 - low / 2, size, rows.n_samples, rows.dtype)
    if not far.any():
        return None
    mean[~far] = 0.0
    return mean


def logit_terms(
    block: Block, constant: bool, n_threads: int | None, energy_weight: float, W: _Array
) -> tuple[float, float, _Array]:
    """Loss, energy of the logits, and gradient (p, k) at W (p, k); merged by `add`.

    ``sum_i w_i loss_i``, ``sum_i w_i |z_i|^2`` with ``z_i = W^T phi_i``, and the gradient of the
    first plus ``energy_weight / 2`` times the second.
    """
    rows = block.core(constant)
    return rows.gradient(block.y, block.weight, energy_weight, W, threads.resolve(n_threads))


def scaled_gram(
    block: Block, constant: bool, n_threads: int | None, scale: _Array, coarse: bool
) -> tuple[_Array, _Array, float]:
    """``D Phi^T diag(w) Phi D``, D = diag(scale), as its packed lower triangle.

    With it, the sums of squares (p,) of the features, and the weight. Entry (i, j) is at
    ``i (i + 1) / 2 + j``. Products are made in float32, or with `coarse` from 8 bits of each
    feature where that is faster; sums are float64. Merged by `add`.
    """
    rows, count = block.core(constant), threads.resolve(n_threads)
    gram = rows.gram(block.weight, scale, coarse, count)
    return gram, rows.sums(block.weight, count)[1], _total(block)


def _total(block: Block) -> float:
    return float(len(block) if block.weight is None else block.weight.sum())

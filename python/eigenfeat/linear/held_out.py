r"""Temperature, penalty and pools of multinomial logits, from samples that had no part in them.

Probabilities are the softmax of ``z / T`` (Guo, Pleiss, Sun and Weinberger, "On calibration of
modern neural networks", ICML 2017, section 4.2). T minimises the log loss of held-out samples,
which is convex in ``1 / T``:

.. math:: f(\beta) = \sum_i w_i \bigl(\log \sum_c e^{\beta z_{ic}} - \beta \sum_c t_{ic} z_{ic}
          \bigr), \qquad \beta = 1 / T.

The targets t are smoothed as in J. Platt, "Probabilistic outputs for support vector machines",
1999: the label has ``(N + 1) / (N + 2)`` for N samples, so that T stays positive where all samples
are classified correctly.

Held-out logits are those of a few folds. Each fold's weights minimise the objective of the samples
outside it, to a coarse tolerance; they start from 0, not from the weights of all samples, which
depend on the labels. No fold's metric depends on its held-out samples: with that of all samples the
search is slow where there are more features than samples, and ends with logits that are far too
small. Approximate leave-one-out (one Newton step from the weights of all samples) is no alternative
here: the default penalty leaves most samples nearly without curvature, where a step in the
quadratic model of the objective is many times too long.

The penalty is the one whose held-out logits have the least log loss, each divided by its own
temperature. Up to 1,000 samples each fold follows the whole path of penalties. Beyond, the first
fold goes downhill from a middle penalty, each search starting from the weights of its neighbour,
and stops where the log loss rises; other folds are fitted with the chosen penalty alone. The fit to
all samples starts from the mean of the folds' weights. Where there is one fold, of more than 5,000
samples, the fit starts from its weights with a given penalty, too, and both searches have one
metric if one of the fold's samples does for all.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import nnls
from scipy.special import softmax

from eigenfeat._base.threads import one_blas_thread
from eigenfeat._base.types import Codes
from eigenfeat.linear.logit_problem import (
    LogitProblem,
    Penalty,
    Solve,
    minimise,
)
from eigenfeat.linear.span import Span, SpanMetric

if TYPE_CHECKING:
    from eigenfeat._base.core import core
    from eigenfeat.samples.blocks import Block
    from eigenfeat.samples.labelled import LabelledSamples

__all__ = [
    "FEW",
    "SOME",
    "Choice",
    "HeldOutFolds",
    "Logits",
    "folds",
    "held_out_logits",
    "log_loss",
    "loss_at_best",
    "pool_folds",
    "pool_probabilities",
    "pool_weights",
    "temperature",
]

Logits = list[tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any] | None]]
FEW, _FEW_FOLDS = 1_000, 3  # rows, of which a half would be too few to train on
SOME = 5_000  # rows, up to which each is held out in one of two folds
_MOST_TRAINED, _MOST_HELD = 20_000, 10_000  # rows of the one fold beyond
_MOST_LOGITS = 4_000_000  # numbers that are held
_LARGEST = 50.0  # T, and 1 / T
_EPS = 1e-6  # relative, of T
_Array = NDArray[np.float64]
_COARSE = 1e-2  # of a fold's minimum: with 1e-3, T is the same to 2%
_OF_NEIGHBOURS = 1e-3  # likewise, from a neighbour's weights: coarser, it may end where it begins
_WORTH = 0.02  # of the log loss, that a smaller penalty must gain: its fits take more steps
_MOST_STEPS = 30
_FLOOR = -30.0  # of a log-probability, below which it counts no more


def folds(codes: Codes, n_classes: int, random: np.random.RandomState) -> list[tuple[Codes, Codes]]:
    """Numbers of rows to train on and of rows to hold out, drawn class by class.

    Three folds up to 1,000 rows, two up to 5,000; one half of at most 20,000 rows to train on and
    another of at most 10,000 beyond. The only row of a class is never held out.
    """
    n = len(codes)
    count = _FEW_FOLDS if n <= FEW else 2
    if n <= SOME:
        return pool_folds(codes, n_classes, count, random)
    order, fold = _drawn_folds(codes, n_classes, count, random)
    most = int(np.clip(_MOST_LOGITS // n_classes, 1_000, _MOST_HELD))
    return [
        (_thinned(order[fold[order] != 1], _MOST_TRAINED), _thinned(order[fold[order] == 1], most))
    ]


def pool_folds(
    codes: Codes, n_classes: int, count: int, random: np.random.RandomState
) -> list[tuple[Codes, Codes]]:
    """Numbers of samples to train on and to hold out, in so many folds, drawn class by class.

    The only sample of a class is never held out.
    """
    fold = _drawn_folds(codes, n_classes, count, random)[1]
    parts = [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(count)]
    return [(train, held) for train, held in parts if len(train) and len(held)]


def _drawn_folds(
    codes: Codes, n_classes: int, count: int, random: np.random.RandomState
) -> tuple[Codes, Codes]:
    """Samples in an order by class, and the fold of each; -1 for the only sample of a class."""
    n = len(codes)
    drawn = random.permutation(n)
    order = drawn[np.argsort(codes[drawn], kind="stable")]
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % count
    fold[(np.bincount(codes, minlength=n_classes) == 1)[codes]] = -1
    return order, fold


def _thinned(rows: Codes, most: int) -> Codes:
    """At most so many of rows that are sorted by class, evenly; their numbers, ascending."""
    if len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]
    return np.sort(rows)


def held_out_logits(
    block: Block, W: _Array, constant: bool, n_threads: int | None = None
) -> Logits:
    """Logits, labels' indices and weights of one block of feature rows; lists add up."""
    return [(block.scores(W, constant, n_threads), np.asarray(block.y), block.weight)]


def temperature(logits: Logits, start: float = 1.0) -> float:
    """The T whose ``logits / T`` have the least log loss on smoothed targets.

    It lies between 1/50 and 50, and is 1 where there are no logits. The search begins at `start`.
    """
    if not logits:
        return 1.0
    z, codes, weight = _together(logits)
    n, k = z.shape
    z -= z.max(axis=1, keepdims=True)
    wrong = 1.0 / ((n + 2.0) * (k - 1.0))  # the target of each label that is not the row's
    aimed = (1.0 - k * wrong) * z[np.arange(n), codes] + wrong * z.sum(axis=1)
    low, high = 1.0 / _LARGEST, _LARGEST
    beta = 1.0 / start
    for _ in range(100):  # Newton's method, kept inside an interval that halves where it leaves it
        P = np.exp(beta * z)
        P /= P.sum(axis=1, keepdims=True)
        mean = np.einsum("ij,ij->i", P, z)
        slope = float(weight @ (mean - aimed))
        bend = float(weight @ (np.einsum("ij,ij,ij->i", P, z, z) - mean**2))
        low, high = (low, beta) if slope > 0 else (beta, high)
        if slope == 0 or high - low <= _EPS * high:
            break
        step = beta - slope / bend if bend > 0 else np.inf
        if not low < step < high:
            step = float(np.sqrt(low * high))
        if abs(step - beta) <= _EPS * beta:
            beta = step
            break
        beta = step
    return 1.0 / float(beta)


def log_loss(logits: Logits, temperature: float) -> float:
    """The mean log loss of ``logits / T``; infinite where there are no logits.

    Log-probabilities end at -30, so that no single sample decides.
    """
    if not logits:
        return np.inf
    z, codes, weight = _together(logits)
    z /= temperature
    z -= z.max(axis=1, keepdims=True)
    logs = z[np.arange(len(z)), codes] - np.log(np.exp(z).sum(axis=1))
    return -float(weight @ np.maximum(logs, _FLOOR))


def _together(logits: Logits) -> tuple[_Array, Codes, _Array]:
    """Logits in float64, labels' indices, and weights of sum 1."""
    z = np.concatenate([part[0] for part in logits]).astype(np.float64)
    codes = np.concatenate([part[1] for part in logits]).astype(np.intp)
    weight = np.concatenate([np.ones(len(p[0])) if p[2] is None else p[2] for p in logits])
    return z, codes, weight / weight.sum()


@dataclass(frozen=True, eq=False)
class Choice:
    """The penalty of the least log loss.

    Attributes
    ----------
    number : int
        Its place in the path.
    temperature : float
    losses : dict of int to float
        Log losses of the places that were tried.
    start : (p, k) array or None
        Weights near those of all rows.
    """

    number: int
    temperature: float
    losses: dict[int, float]
    start: _Array | None


class _Fold:
    """Fits to the rows outside one fold, and their logits of the rows in it."""

    def __init__(
        self,
        rows: LabelledSamples,
        problem_of: Callable[[LabelledSamples], LogitProblem],
        solve_of: Callable[[LogitProblem], Solve],
        part: tuple[Codes, Codes],
        constant: bool,
    ) -> None:
        train, held_out = part
        self._problem = problem_of(rows.subset(train))
        self._float32, self._solve = self._problem.float32_problem(), solve_of(self._problem)
        self._held, self._how = rows.subset(held_out), (constant, rows.n_threads)

    def fitted(
        self, penalty: Penalty, start: _Array | None, tolerance: float = _COARSE
    ) -> tuple[_Array, Logits]:
        """Weights, and logits of the rows that are held out."""
        problem, float32 = self._problem, self._float32
        W = minimise(
            problem.objective_of(penalty),
            self._solve,
            np.zeros(problem.shape) if start is None else start,
            tolerance=tolerance,
            max_iterations=_MOST_STEPS,
            noise=float(np.finfo(problem.dtype).eps),
            float32=None if float32 is None else float32.objective_of(penalty),
        ).point
        how = np.ascontiguousarray(W), *self._how
        return W, self._held.reduce(held_out_logits, operator.add, *how)


@dataclass
class HeldOutFolds:
    """Folds of the samples, for penalty and temperature.

    Attributes
    ----------
    problem : LogitProblem
        Of all rows.
    problem_of : callable
        The problem of the rows of a fold.
    metric : callable
        ``metric(problem, energy, tolerance)``, the factor of a fold's metric.
    constant : bool
        Whether there is an intercept.
    random : RandomState
    span : Span or None
        Of all rows, if folds are fitted in the span of theirs.
    """

    problem: LogitProblem
    problem_of: Callable[[LabelledSamples], LogitProblem]
    metric: Callable[[LogitProblem, float, float], core.Metric]
    constant: bool
    random: np.random.RandomState
    span: Span | None = None

    @cached_property
    def parts(self) -> list[tuple[Codes, Codes]]:
        """Numbers of rows to train on and of rows to hold out, for each fold."""
        return folds(self.problem.rows.codes, self.problem.shape[1], self.random)

    def logits(self, penalty: Penalty) -> Logits:
        """Logits of the samples that the folds hold out."""
        return [logits for part in self.parts for logits in self._path(part, [penalty])[0]]

    @property
    def is_one_fold(self) -> bool:
        """Whether the rows held out are those of one fold of many rows."""
        return len(self.parts) == 1 and self.problem.n_samples > SOME

    def of_one_fold(self, penalty: Penalty, solve: Solve | None) -> tuple[_Array, Logits]:
        """Weights of the one fold, and logits of its rows; `solve` is as in `choose`."""
        return self._first_fold(penalty.energy, _COARSE, solve).fitted(penalty, None)

    def choose(
        self,
        penalties: Sequence[Penalty],
        first: int,
        fixed: float | None,
        solve: Solve | None = None,
    ) -> Choice:
        """The penalty, from large to small, of the least log loss, at a temperature if it is fixed.

        Beyond 1,000 rows the search goes downhill from the place `first`. `solve` is that of a
        metric for all rows, made without those that the first fold holds out; without it the fold
        has a metric of its own.
        """
        if self.problem.n_samples <= FEW or not self.parts:
            return self._of_path(penalties, fixed)
        fold = self._first_fold(penalties[first].energy, _OF_NEIGHBOURS, solve)
        weights, logits = fold.fitted(penalties[first], None, _OF_NEIGHBOURS)
        losses, best = {first: log_loss(logits, fixed or temperature(logits))}, first
        for step in (1, -1):
            while 0 <= best + step < len(penalties):
                result = fold.fitted(penalties[best + step], weights, _OF_NEIGHBOURS)
                losses[best + step] = log_loss(result[1], fixed or temperature(result[1]))
                if not losses[best + step] < (1 - _WORTH * (step > 0)) * losses[best]:
                    break
                best, (weights, logits) = best + step, result
            if best != first:
                break
        start = weights / len(self.parts)
        for part in self.parts[1:]:
            fold = self._fold(part, penalties[best].energy, _OF_NEIGHBOURS)
            W, others = fold.fitted(penalties[best], None, _OF_NEIGHBOURS)
            start += W / len(self.parts)
            logits = logits + others
        return Choice(best, fixed or temperature(logits), losses, start)

    def _of_path(self, penalties: Sequence[Penalty], fixed: float | None) -> Choice:
        """Of all penalties, in all folds."""
        result: list[Logits] = [[] for _ in penalties]
        for part in self.parts:
            for logits, of_part in zip(result, self._path(part, penalties), strict=True):
                logits += of_part
        T = [fixed or temperature(logits) for logits in result]
        losses = [log_loss(*one) for one in zip(result, T, strict=True)]
        best = int(np.argmin(losses))
        return Choice(best, T[best], dict(enumerate(losses)), None)

    def _path(self, part: tuple[Codes, Codes], penalties: Sequence[Penalty]) -> list[Logits]:
        """Logits of the rows that a fold holds out, for each of some penalties."""
        largest = max(penalties, key=lambda one: one.energy)
        result = self._path_in_span(part, penalties, largest)
        if result is None:
            result, fold, W = [], self._fold(part, largest.energy), None
            for penalty in penalties:
                W, logits = fold.fitted(penalty, W)
                result.append(logits)
        return result

    def _path_in_span(
        self, part: tuple[Codes, Codes], penalties: Sequence[Penalty], largest: Penalty
    ) -> list[Logits] | None:
        if self.span is None:
            return None
        train, held_out = part
        rows, problem = self.problem.rows, None
        if self.span.common:
            span: Span | None = self.span.take(train)
        else:  # features of a fold have mean squares of its own
            problem = self.problem_of(rows.subset(train))
            span = Span.of(problem, largest, _COARSE)
        metric = None if span is None else SpanMetric.of(span, largest)
        if span is None or metric is None:
            return None
        path = span.path(penalties, metric, tolerance=_COARSE, max_iterations=_MOST_STEPS)
        points = list(path)
        if problem is not None:
            held, how = rows.subset(held_out), (self.constant, rows.n_threads)
            weights = span.weights(problem, points)
            return [held.reduce(held_out_logits, operator.add, W, *how) for W in weights]
        kernel = self.span.kernel[np.ix_(held_out, train)]
        weight = None if self.span.weight is None else self.span.weight[held_out]
        codes = self.span.codes[held_out]
        return [[(span.logits(kernel, point), codes, weight)] for point in points]

    def _first_fold(self, energy: float, tolerance: float, solve: Solve | None) -> _Fold:
        if solve is None:
            return self._fold(self.parts[0], energy, tolerance)

        def scaled(problem: LogitProblem) -> Solve:  # the metric is a sum over rows
            share = self.problem.total / problem.total
            return lambda gradient: share * solve(gradient)

        return _Fold(self.problem.rows, self.problem_of, scaled, self.parts[0], self.constant)

    def _fold(self, part: tuple[Codes, Codes], energy: float, tolerance: float = _COARSE) -> _Fold:
        def solve_of(problem: LogitProblem) -> Solve:
            factor = self.metric(problem, energy, tolerance)
            return partial(factor.solve, n_threads=problem.n_threads)

        return _Fold(self.problem.rows, self.problem_of, solve_of, part, self.constant)


# ---- weights of pools ----------------------------------------------------------------------------
#
# With out-of-fold log-probabilities of V classifiers, the pool (Genest and Zidek, "Combining
# probability distributions", Statistical Science 1, 1986) is
#
#     p(y | x) ~ exp(sum_v w_v log p_v(y | x)),  w_v >= 0.
#
# The weights minimise the out-of-fold log loss, which is convex in w, plus |w - 1 / V|^2 / 2 with
# the weight of five samples, on smoothed targets as those of the temperature. Their sum is an
# inverse temperature. As each log p_v is a row of logits less its normaliser, the pool of
# multinomial logits is a multinomial logit on their features, side by side.


_SAMPLES = 10.0  # weight of |w - prior|^2 / 2, in samples
_SMALL = 0.08  # of the sum of weights: smaller ones are left out
_LEFT = 1e-9  # of the log loss, that a step of Newton's method must bring
_LEAST = 0.02  # the least sum of weights: one over the largest temperature


def loss_at_best(logits: _Array, codes: Codes, weight: _Array | None) -> tuple[float, float]:
    """Log loss of logits (m, k) at their own temperature, and that temperature."""
    one = [(logits, codes, weight)]
    T = temperature(one)
    return log_loss(one, T), T


def pool_weights(
    logits: Sequence[_Array], codes: Codes, weight: _Array | None, prior: _Array | None = None
) -> _Array:
    """Weights (V,) of classifiers with these logits (m, k) of the same samples.

    The weights are pulled to `prior` (V,), of sum 1; equal shares by default. Classifiers with less
    than 8% of the sum of weights, and those that have equal probabilities for all samples, get 0.
    Where no classifier is better than equal probabilities, the best one has weight 0.02.
    """
    L = np.stack([_log_probabilities(one) for one in logits])
    prior = np.full(len(L), 1.0 / len(L)) if prior is None else prior
    keep = np.ptp(L, axis=2).max(axis=1) > 1e-6
    w = np.zeros(len(L))
    while keep.any():
        w[:] = 0.0
        w[keep] = _weights(L[keep], codes, weight, prior[keep] / prior[keep].sum())
        small = keep & (w < _SMALL * w.sum())
        if not small.any():
            break
        keep &= ~small
    if not w.any():
        best = int(np.argmin([loss_at_best(one, codes, weight)[0] for one in logits]))
        w[best] = _LEAST
    return w


def pool_probabilities(logits: Sequence[_Array], weights: _Array) -> _Array:
    """Probabilities (m, k) of the pool of classifiers with these logits (m, k) and weights (V,)."""
    z = _combined(weights, np.stack([_log_probabilities(one) for one in logits]))
    return np.asarray(softmax(z, axis=1))


def _combined(w: _Array, L: _Array) -> _Array:
    """Sum of the weighted logits, in the order of the classifiers: the same with any BLAS."""
    out: _Array = w[0] * L[0]
    for one, logits in zip(w[1:], L[1:], strict=True):
        out += one * logits
    return out


def _log_probabilities(z: _Array) -> _Array:
    z = z - z.max(axis=1, keepdims=True)
    z -= np.log(np.exp(z).sum(axis=1, keepdims=True))
    np.maximum(z, _FLOOR, out=z)
    return z


@one_blas_thread()
def _weights(L: _Array, codes: Codes, weight: _Array | None, prior: _Array) -> _Array:
    count, n, k = L.shape
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    samples = float(n) if weight is None else 1.0 / float((share * share).sum())
    wrong = 1.0 / ((samples + 2.0) * (k - 1.0))  # the target of each label that is not the sample's
    T = np.full((n, k), wrong)
    T[np.arange(n), codes] = 1.0 - (k - 1.0) * wrong
    T *= share[:, None]
    aimed = np.einsum("vnk,nk->v", L, T)

    pull = _SAMPLES / samples

    def terms(w: _Array) -> tuple[float, _Array, _Array]:
        z = _combined(w, L)
        largest = z.max(axis=1, keepdims=True)
        P = np.exp(z - largest)
        total = P.sum(axis=1, keepdims=True)
        value = (share * (np.log(total) + largest)[:, 0]).sum()
        value += 0.5 * pull * ((w - prior) @ (w - prior)) - w @ aimed
        P /= total
        means = np.einsum("vnk,nk->vn", L, P)
        squares = (L * np.sqrt(share[:, None] * P)).reshape(count, -1)
        hessian = squares @ squares.T - (means * share) @ means.T + pull * np.eye(count)
        return float(value), means @ share - aimed + pull * (w - prior), hessian

    # Newton's method, whose model with weights >= 0 is a problem of least squares.
    w, (value, gradient, hessian) = prior, terms(prior)
    for _ in range(_MOST_STEPS):
        R = np.linalg.cholesky(hessian).T
        step = nnls(R, solve_triangular(R, hessian @ w - gradient, trans=1))[0] - w
        slope, length = float(gradient @ step), 1.0
        if slope > -_LEFT:
            break
        new, result = w + step, terms(w + step)
        while result[0] > value + 1e-4 * length * slope and length > 1e-6:
            length /= 2
            new, result = w + length * step, terms(w + length * step)
        w, (value, gradient, hessian) = new, result
    return np.maximum(w, 0.0)

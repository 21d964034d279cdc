r"""Log-linear pools of multinomial logits, from their logits of samples that had no part in them.

With out-of-fold log-probabilities of V classifiers, the pool (Genest and Zidek, "Combining
probability distributions", Statistical Science 1, 1986) is

.. math:: p(y | x) \propto \exp \Bigl(\sum_v w_v \log p_v(y | x)\Bigr), \qquad w_v \ge 0.

The weights minimise the out-of-fold log loss, which is convex in w, plus ``|w - 1 / V|^2 / 2`` with
the weight of five samples, on smoothed targets as those of `eigenfeat.linear.held_out`. Their
sum is an inverse temperature. As each ``log p_v`` is a row of logits less its normaliser, the pool
of multinomial logits is a multinomial logit on their features, side by side.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import nnls
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from eigenfeat._base.threads import one_blas_thread
from eigenfeat._base.types import Codes
from eigenfeat.linear.held_out import log_loss, temperature
from eigenfeat.linear.lbfgs import minimise
from eigenfeat.linear.logistic import PENALTIES, MultinomialLogit
from eigenfeat.linear.logit_problem import LogitProblem, Penalty
from eigenfeat.linear.span import Span, SpanMetric

if TYPE_CHECKING:
    from eigenfeat._base.core import core
    from eigenfeat.rows.labelled import LabelledRows

__all__ = [
    "POOL_PENALTIES",
    "damping",
    "fit_near",
    "held_out_logits_of",
    "loss_at_best",
    "pool_folds",
    "pool_loss",
    "pool_probabilities",
    "pool_weights",
]

_Array = NDArray[np.float64]

POOL_PENALTIES = PENALTIES
_COARSE = 1e-3  # of a fold's minimum: with 1e-2, searches may end at the weights they start from
_MOST_STEPS = 30
_SAMPLES = 5.0  # weight of |w - 1 / V|^2 / 2, in samples
_FLOOR = -30.0  # of a log-probability, below which it counts no more
_SMALL = 0.08  # of the sum of weights: smaller ones are left out
_LEFT = 1e-9  # of the log loss, that a step of Newton's method must bring
_LEAST = 0.02  # the least sum of weights: one over the largest temperature


def pool_folds(
    codes: Codes, n_classes: int, count: int, random: np.random.RandomState
) -> list[tuple[Codes, Codes]]:
    """Numbers of samples to train on and to hold out, in so many folds, drawn class by class.

    The only sample of a class is never held out.
    """
    n = len(codes)
    drawn = random.permutation(n)
    order = drawn[np.argsort(codes[drawn], kind="stable")]
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % count
    fold[(np.bincount(codes, minlength=n_classes) == 1)[codes]] = -1
    parts = [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(count)]
    return [(train, held) for train, held in parts if len(train) and len(held)]


def held_out_logits_of(
    logit: MultinomialLogit,
    train: LabelledRows,
    held: LabelledRows,
    penalties: Sequence[float],
    enough: Callable[[_Array], bool] = lambda logits: False,
) -> tuple[list[_Array], list[Start | None]]:
    """Logits (m, k) of `held`, and what a fit may start from, for each penalty.

    Penalties are divided by `damping`. They go from large to small, and end after the first one
    whose logits are `enough`.
    """
    penalties = [one / damping(logit) for one in penalties]
    problem = LogitProblem(train, constant=True)
    ways = [logit._weights(problem.shape[1], energy) for energy in penalties]
    metric_of = logit._weights(problem.shape[1], min(max(penalties), 0.1))
    span = Span.of(problem, metric_of, _COARSE)
    metric = None if span is None else SpanMetric.of(span, metric_of)
    minima: Iterator[tuple[_Array, Start | None]]
    if span is None or metric is None:
        minima = _minima_over_features(logit, problem, ways, metric_of)
    else:
        minima = _minima_in_span(span, metric, problem, ways)
    out: list[_Array] = []
    starts: list[Start | None] = []
    block = held.together()
    for W, start in minima:
        out.append(np.asarray(block.scores(W, True, held.n_threads), dtype=np.float64))
        starts.append(start)
        if enough(out[-1]):
            break
    return out, starts


def _minima_in_span(
    span: Span, metric: SpanMetric, problem: LogitProblem, penalties: Sequence[Penalty]
) -> Iterator[tuple[_Array, None]]:
    """Weights (p, k) for each penalty, of fewer samples than features."""
    for point in span.path(penalties, metric, tolerance=_COARSE, max_iterations=_MOST_STEPS):
        yield span.weights(problem, [point])[0], None


def _minima_over_features(
    logit: MultinomialLogit,
    problem: LogitProblem,
    penalties: Sequence[Penalty],
    metric_of: Penalty,
) -> Iterator[tuple[_Array, Start]]:
    """Weights (p, k) for each penalty, and what a fit may start from."""
    random = np.random.RandomState(0)
    factor = logit._fold_metric(problem, metric_of.energy, _COARSE, random=random)
    float32 = problem.float32_problem()
    W = np.zeros(problem.shape)
    for penalty in penalties:
        W = minimise(
            problem.objective_of(penalty),
            partial(factor.solve, n_threads=problem.n_threads),
            W,
            tolerance=_COARSE,
            max_iterations=_MOST_STEPS,
            noise=float(np.finfo(problem.dtype).eps),
            float32=None if float32 is None else float32.objective_of(penalty),
        ).point
        W = np.ascontiguousarray(W)
        yield W, Start(W, factor, problem.total)


def damping(logit: MultinomialLogit) -> float:
    """What penalties are divided by where the ridge is more than the energy of the logits."""
    return max(2.0 * logit.ridge, 1.0)


@dataclass(frozen=True, eq=False)
class Start:
    """Weights (p, k) that minimise the objective of some samples, and its metric.

    `total` is the weight of these samples.
    """

    weights: _Array
    metric: core.Metric
    total: float


def fit_near(
    logit: MultinomialLogit, rows: LabelledRows, penalty: float, start: Start | None
) -> MultinomialLogit:
    """Fit a logit, from weights of some of its samples, in their metric, if they are given."""
    with warnings.catch_warnings():
        # Out of fold, the searches end after some tens of steps as well.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if start is None:
            logit.fit_path(rows, None, [penalty])
        else:
            logit.fit_from(rows, penalty, start.weights, start.metric, start.total)
    return logit


def loss_at_best(logits: _Array, codes: Codes, weight: _Array | None) -> tuple[float, float]:
    """Log loss of logits (m, k) at their own temperature, and that temperature."""
    one = [(logits, codes, weight)]
    T = temperature(one)
    return log_loss(one, T), T


def pool_weights(logits: Sequence[_Array], codes: Codes, weight: _Array | None) -> _Array:
    """Weights (V,) of classifiers with these logits (m, k) of the same samples.

    Classifiers with less than 8% of the sum of weights, and those that have equal
    probabilities for all samples, get 0. Where none is better than
    equal probabilities, the best one has weight 0.02.
    """
    L = np.stack([_log_probabilities(one) for one in logits])
    keep = np.ptp(L, axis=2).max(axis=1) > 1e-6
    w = np.zeros(len(L))
    while keep.any():
        w[:] = 0.0
        w[keep] = _weights(L[keep], codes, weight)
        small = keep & (w < _SMALL * w.sum())
        if not small.any():
            break
        keep &= ~small
    if not w.any():
        best = int(np.argmin([loss_at_best(one, codes, weight)[0] for one in logits]))
        w[best] = _LEAST
    return w


def pool_loss(logits: Sequence[_Array], codes: Codes, weight: _Array | None) -> float:
    """Log loss of the pool of classifiers with these logits, at its weights."""
    L = np.stack([_log_probabilities(one) for one in logits])
    z = _combined(_weights(L, codes, weight), L)
    return log_loss([(z, codes, weight)], 1.0)


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
def _weights(L: _Array, codes: Codes, weight: _Array | None) -> _Array:
    count, n, k = L.shape
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    samples = float(n) if weight is None else 1.0 / float((share * share).sum())
    wrong = 1.0 / ((samples + 2.0) * (k - 1.0))  # the target of each label that is not the sample's
    T = np.full((n, k), wrong)
    T[np.arange(n), codes] = 1.0 - (k - 1.0) * wrong
    T *= share[:, None]
    aimed = np.einsum("vnk,nk->v", L, T)

    pull = _SAMPLES / samples
    start = np.full(count, 1.0 / count)

    def terms(w: _Array) -> tuple[float, _Array, _Array]:
        z = _combined(w, L)
        largest = z.max(axis=1, keepdims=True)
        P = np.exp(z - largest)
        total = P.sum(axis=1, keepdims=True)
        value = (share * (np.log(total) + largest)[:, 0]).sum()
        value += 0.5 * pull * ((w - start) @ (w - start)) - w @ aimed
        P /= total
        means = np.einsum("vnk,nk->vn", L, P)
        squares = (L * np.sqrt(share[:, None] * P)).reshape(count, -1)
        hessian = squares @ squares.T - (means * share) @ means.T + pull * np.eye(count)
        return float(value), means @ share - aimed + pull * (w - start), hessian

    # Newton's method, whose model with weights >= 0 is a problem of least squares.
    w, (value, gradient, hessian) = start, terms(start)
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

r"""Penalty and temperature of multinomial logits from held-out samples.

Probabilities are the softmax of ``z / T`` (Guo, Pleiss, Sun and Weinberger, "On calibration of
modern neural networks", ICML 2017, section 4.2). T minimises the log loss of held-out samples,
which is convex in ``1 / T``:

.. math:: f(\beta) = \sum_i w_i \bigl(\log \sum_c e^{\beta z_{ic}} - \beta \sum_c t_{ic} z_{ic}
          \bigr), \qquad \beta = 1 / T.

The targets t are smoothed as in J. Platt, "Probabilistic outputs for support vector machines",
1999: the label has ``(N + 1) / (N + 2)`` for N samples, so that T stays positive where all samples
are classified correctly.

Held-out logits come from folds. The weights of a fold are searched from zero, because weights of
all samples would leak the labels. The penalty is the one whose held-out logits, divided by their
temperature, have the least log loss. The first fold follows the path from the largest penalty
until the log loss rises; later folds try only the best penalty and its neighbours.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from eigenfeat._base.labels import by_class, fold_indices
from eigenfeat._base.types import Codes
from eigenfeat.linear.logit_problem import LogitProblem, Penalty, minima

if TYPE_CHECKING:
    from eigenfeat.samples.block_samples import LabelledSamples
    from eigenfeat.samples.labelled import Block

__all__ = [
    "LOG_FLOOR",
    "Choice",
    "Logits",
    "choose_penalty",
    "draw_folds",
    "log_loss",
    "loss_at_best",
    "temperature",
    "thinned",
    "together",
]

_Array = NDArray[np.float64]
Logits: TypeAlias = list[tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any] | None]]

# `python bench/tables.py` shows the effect of these numbers.
_FOLDS = ((1_000, 3), (5_000, 2))  # maximum number of samples, folds; one fold beyond
_MAX_TRAINED, _MAX_HELD = 20_000, 10_000  # samples of a single fold
_MAX_LOGITS = 4_000_000  # held-out logits of a single fold
_MIN_CHOOSING = 60  # held-out samples; with fewer, each fold tries all penalties
_RISE = 0.02  # relative rise of the log loss after which no smaller penalty is tried
_TIE = 0.002  # relative difference of log losses that is noise; the larger penalty is taken
_TOLERANCE, _MAX_ITERATIONS = 1e-3, 30  # of the fit to a fold
_MAX_TEMPERATURE = 50.0  # also of 1 / T
_TEMPERATURE_ERROR = 1e-6  # relative
LOG_FLOOR = -30.0  # least log probability, so that no single sample decides


def draw_folds(
    codes: Codes, n_classes: int, random: np.random.RandomState
) -> list[tuple[Codes, Codes]]:
    """Indices of the samples to train on and to hold out, drawn class by class.

    Three folds up to 1,000 samples, two up to 5,000; beyond, one fold of at most 20,000 samples to
    train on and 10,000 to hold out. The only sample of a class is never held out.
    """
    for most, count in _FOLDS:
        if len(codes) <= most:
            return fold_indices(codes, n_classes, count, random)
    train, held = (by_class(part, codes) for part in fold_indices(codes, n_classes, 2, random)[0])
    most = int(np.clip(_MAX_LOGITS // n_classes, 1_000, _MAX_HELD))
    return [(thinned(train, _MAX_TRAINED), thinned(held, most))]


def thinned(indices: Codes, most: int) -> Codes:
    """At most `most` of the indices at equal distances, sorted."""
    if len(indices) > most:
        indices = indices[np.linspace(0, len(indices) - 1, most).astype(np.intp)]
    return np.sort(indices)


# ---- temperature and log loss --------------------------------------------------------------------


def temperature(logits: Logits, start: float = 1.0) -> float:
    """Temperature T of the least log loss of ``logits / T`` on smoothed targets.

    It lies between 1/50 and 50, and is 1 without logits. The search begins at `start`.
    """
    if not logits:
        return 1.0
    z, codes, weight = together(logits)
    n, k = z.shape
    z -= z.max(axis=1, keepdims=True)
    wrong = 1.0 / ((n + 2.0) * (k - 1.0))  # the target of each other label
    aimed = (1.0 - k * wrong) * z[np.arange(n), codes] + wrong * z.sum(axis=1)
    low, high = 1.0 / _MAX_TEMPERATURE, _MAX_TEMPERATURE
    beta = 1.0 / start
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
    z, codes, weight = together(logits)
    z /= temperature
    z -= z.max(axis=1, keepdims=True)
    logs = z[np.arange(len(z)), codes] - np.log(np.exp(z).sum(axis=1))
    return -float(weight @ np.maximum(logs, LOG_FLOOR))


def loss_at_best(logits: _Array, codes: Codes, weight: _Array | None) -> tuple[float, float]:
    """Log loss of logits (m, k) at their own temperature, and that temperature."""
    block = [(logits, codes, weight)]
    T = temperature(block)
    return log_loss(block, T), T


def together(logits: Logits) -> tuple[_Array, Codes, _Array]:
    """Concatenate logits (float64), indices of labels, and weights, scaled to the sum 1."""
    z = np.concatenate([part[0] for part in logits]).astype(np.float64)
    codes = np.concatenate([part[1] for part in logits]).astype(np.intp)
    weight = np.concatenate([np.ones(len(p[0])) if p[2] is None else p[2] for p in logits])
    return z, codes, weight / weight.sum()


# ---- choice of a penalty -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Choice:
    """The penalty of the least held-out log loss."""

    number: int  # index in the path of penalties
    temperature: float
    losses: dict[int, float]  # of the penalties that all folds tried, by index
    logits: Logits  # held-out logits of the penalty, fold after fold
    weights: _Array | None  # (p, k) of the penalty in the last fold; None without folds


def choose_penalty(
    folds: Iterable[tuple[LogitProblem, LabelledSamples]],
    penalties: Sequence[Penalty],
    fixed: float | None = None,
    select: Callable[[Sequence[Logits]], int] | None = None,
) -> Choice:
    """Choose the penalty of the least held-out log loss.

    Parameters
    ----------
    folds : iterable of (LogitProblem, LabelledSamples)
        Problem of the training samples, and the held-out samples, of each fold.
    penalties : sequence of Penalty
        From large to small.
    fixed : float, optional
        Temperature; by default the temperature of the least log loss.
    select : callable, optional
        Index of the best penalty, given the held-out logits of several penalties; by default the
        penalty of the least log loss.
    """

    def loss_of(logits: Logits) -> float:
        return log_loss(logits, fixed or temperature(logits))

    tried = list(range(len(penalties)))
    logits: dict[int, Logits] = {i: [] for i in tried}
    weights: dict[int, _Array] = {}
    losses: dict[int, float] = {}
    for problem, held in folds:
        first = not weights
        problem.use_sample_features(penalties[0], _TOLERANCE)
        asked = [penalties[i] for i in tried]
        path = minima(problem, asked, tolerance=_TOLERANCE, max_iterations=_MAX_ITERATIONS)
        losses, few = {}, held.n_samples < _MIN_CHOOSING
        how = problem.constant, held.n_threads
        for i, minimum in zip(tried, path, strict=True):
            weights[i] = W = np.ascontiguousarray(minimum.point)
            logits[i] = logits[i] + held.reduce(held_out_logits, operator.add, W, *how)
            losses[i] = loss_of(logits[i])
            if first and not few and losses[i] > (1.0 + _RISE) * min(losses.values()):
                break
        ended = list(losses)
        if select is None:
            least = min(losses.values())
            best = next(i for i in ended if losses[i] <= (1.0 + _TIE) * least)
        else:
            best = ended[select([logits[i] for i in ended])]
        counted = sum(len(part[0]) for part in logits[best])
        near = 1 if counted >= _MIN_CHOOSING else len(penalties)
        tried = [i for i in ended if abs(i - best) <= near]
    if not losses:
        return Choice(len(penalties) // 2, fixed or 1.0, {}, [], None)
    return Choice(best, fixed or temperature(logits[best]), losses, logits[best], weights[best])


def held_out_logits(
    block: Block, W: _Array, constant: bool, n_threads: int | None = None
) -> Logits:
    """Logits, indices of labels and weights of a block of features, as a list of one tuple."""
    return [(block.scores(W, constant, n_threads), np.asarray(block.y), block.weight)]

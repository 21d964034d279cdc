r"""Temperature and penalty of a multinomial logit, from rows that had no part in its weights.

Probabilities are the softmax of ``z / T`` (Guo, Pleiss, Sun and Weinberger, "On calibration of
modern neural networks", ICML 2017, section 4.2). T minimises the log loss of held-out rows, which
is convex in ``1 / T``:

.. math:: f(\beta) = \sum_i w_i \bigl(\log \sum_c e^{\beta z_{ic}} - \beta \sum_c t_{ic} z_{ic}
          \bigr), \qquad \beta = 1 / T.

The targets t are smoothed as in J. Platt, "Probabilistic outputs for support vector machines",
1999: the label has ``(N + 1) / (N + 2)`` for N rows, so that T stays positive where all rows are
classified correctly.

Held-out logits are those of a few folds. Each fold's weights minimise the objective of the rows
outside it, to a coarse tolerance; they start from 0, not from the weights of all rows, which know
the labels. No fold has a metric that knows its held-out rows: with that of all rows the search is
slow where there are more features than rows, and ends with logits that are far too small.
Approximate leave-one-out (one Newton step from the weights of all rows) is no alternative here: the
default penalty leaves most rows nearly without curvature, where a step in the quadratic model of
the objective is many times too long.

A penalty is chosen by the same folds, see `eigenfeat.linear.unseen`: the one whose held-out logits
have the least log loss, each divided by its own temperature, is that of the fit to all rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from eigenfeat._base.types import Codes

if TYPE_CHECKING:
    from eigenfeat.rows.blocks import Block

__all__ = ["FEW", "SOME", "Logits", "folds", "held_out_logits", "log_loss", "temperature"]

_Array = npt.NDArray[np.float64]
Logits = list[tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any] | None]]

FEW, _FEW_FOLDS = 1_000, 3  # rows, of which a half would be too few to train on
SOME = 5_000  # rows, up to which each is held out in one of two folds
_MOST_TRAINED, _MOST_HELD = 20_000, 10_000  # rows of the one fold beyond
_MOST_LOGITS = 4_000_000  # numbers that are held
_LARGEST = 50.0  # T, and 1 / T
_EPS = 1e-6  # relative, of T


def folds(codes: Codes, n_classes: int, random: np.random.RandomState) -> list[tuple[Codes, Codes]]:
    """Numbers of rows to train on and of rows to hold out, drawn class by class.

    Three folds up to 1,000 rows, two up to 5,000; one half of at most 20,000 rows to train on and
    another of at most 10,000 beyond. The only row of a class is never held out.
    """
    n = len(codes)
    count = _FEW_FOLDS if n <= FEW else 2
    drawn = random.permutation(n)
    order = drawn[np.argsort(codes[drawn], kind="stable")]
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % count
    alone = (np.bincount(codes, minlength=n_classes) == 1)[codes]
    fold[alone] = -1
    if n <= SOME:
        every = np.arange(n)
        parts = [(every[fold != i], every[fold == i]) for i in range(count)]
        return [(train, held) for train, held in parts if len(train) and len(held)]
    most = int(np.clip(_MOST_LOGITS // n_classes, 1_000, _MOST_HELD))
    return [
        (_thinned(order[fold[order] != 1], _MOST_TRAINED), _thinned(order[fold[order] == 1], most))
    ]


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
    """The mean log loss of ``logits / T``; infinite where there are no logits."""
    if not logits:
        return np.inf
    z, codes, weight = _together(logits)
    z /= temperature
    return float(weight @ (logsumexp(z, axis=1) - z[np.arange(len(z)), codes]))


def _together(logits: Logits) -> tuple[_Array, Codes, _Array]:
    """Logits in float64, labels' indices, and weights of sum 1."""
    z = np.concatenate([part[0] for part in logits]).astype(np.float64)
    codes = np.concatenate([part[1] for part in logits]).astype(np.intp)
    weight = np.concatenate([np.ones(len(p[0])) if p[2] is None else p[2] for p in logits])
    return z, codes, weight / weight.sum()

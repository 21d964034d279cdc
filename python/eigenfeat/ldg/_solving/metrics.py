"""ITML's metric from pairs of samples, and the ranking of features (Parrish 2012, section 2.2.5).

The multipliers w of the pairs' constraints give ``M^-1 = I + sum_i s_i w_i z_i z_i^T`` for gaps z,
s = 1 for pairs of one class and -1 for others. A projection onto one constraint changes ``s_i w_i``
by delta, and ``M`` by ``-delta / (1 + delta z^T M z) M z z^T M``. A block of
successive projections needs only the products of its gaps with the first M, so M is read and
written once per block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm

from eigenfeat._base.types import Codes
from eigenfeat._base.validation import physical_memory, show
from eigenfeat.ldg._solving.scatters import Array

__all__ = [
    "check_quantiles",
    "features_of",
    "learnt_metric",
    "pair_count",
    "pairs_of",
    "ranked_by_information",
]

_BLOCK_PAIRS = 16  # constraints per product with the metric
_MIN_SQUARE = 1e-12  # smallest squared distance of different samples, relative to the largest


def pair_count(given: int | None, n_classes: int, n_columns: int) -> int:
    """Return the number of pairs: as given, or 20 k (k - 1), at least 200.

    Raises
    ------
    MemoryError
        If the pairs' differences do not fit into memory.
    """
    count = max(20 * n_classes * (n_classes - 1), 200) if given is None else int(given)
    if 24 * count * n_columns > physical_memory():
        raise MemoryError(f"n_pairs: expected pairs that fit into memory, got {count}")
    return count


def pairs_of(
    X: Array,
    codes: NDArray[np.intp],
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    quantiles: tuple[float, float],
) -> tuple[Array, NDArray[np.bool_], tuple[float, float]]:
    """Return differences (p, d) of pairs of samples, the mask of pairs of one class, and bounds.

    Pairs of equal samples are left out. Bounds are quantiles of the squared distances.

    Raises
    ------
    ValueError
        If the samples of every pair are equal.
    """
    gaps = X[first] - X[second]
    squares = np.einsum("ij,ij->i", gaps, gaps)
    apart = squares > _MIN_SQUARE * squares.max(initial=0.0)
    if not apart.any():
        raise ValueError("n_pairs: expected pairs of samples that differ, got equal samples only")
    low, high = np.quantile(squares[apart], quantiles).tolist()
    same = codes[first] == codes[second]
    return gaps[apart], same[apart], (low, high)


def learnt_metric(
    gaps: Array,
    same: NDArray[np.bool_],
    bounds: tuple[float, float],
    *,
    slack: float,
    tol: float,
    max_iter: int,
    stops: Callable[[], bool] = lambda: False,
) -> tuple[Array, int, Array]:
    """Return M of (2.11), by cyclic Bregman projections onto the constraints of the pairs.

    After each sweep `stops` is called; if it returns True, that sweep is the last.

    Returns
    -------
    metric : (d, d) array
    sweeps : int
        Number of sweeps; `max_iter` + 1 if they did not converge.
    weights : (p,) array
        Nonnegative multipliers: ``M^-1`` is the identity plus the sum of ``gap gap^T`` times the
        multiplier, with a minus sign for pairs of two classes.
    """
    metric = np.eye(gaps.shape[1], order="F")
    sign = np.where(same, 1.0, -1.0)
    relaxed = np.where(same, *bounds)
    weights = np.zeros(len(gaps))
    for sweep in range(1, max_iter + 1):
        before = weights.copy()
        for start in range(0, len(gaps), _BLOCK_PAIRS):
            part = slice(start, start + _BLOCK_PAIRS)
            metric = _projected(metric, gaps[part], sign[part], relaxed[part], weights[part], slack)
        size = weights.sum() + before.sum()
        stopped = stops()
        if stopped or np.abs(weights - before).sum() <= tol * size:
            return (metric + metric.T) / 2, sweep, weights
    return (metric + metric.T) / 2, max_iter + 1, weights


def _projected(
    metric: Array, gaps: Array, sign: Array, relaxed: Array, weights: Array, slack: float
) -> Array:
    """Return the metric after a projection for each gap; updates `relaxed` and `weights`."""
    images = metric @ gaps.T
    b = len(gaps)
    # Products of the gaps, and the coefficients of `images` in M z after each step.
    table = np.vstack([gaps @ images, np.eye(b)])
    used, turns = [], []
    share = slack / (slack + 1)  # part of a violation that the metric removes
    for i, (s, bound, weight) in enumerate(
        zip(sign.tolist(), relaxed.tolist(), weights.tolist(), strict=True)
    ):
        distance = float(table[i, i])
        step = min(weight, share * s * (1 / distance - 1 / bound))
        if step == 0:
            continue
        weights[i] = weight - step
        relaxed[i] = 1 / (1 / bound + s * step / slack)
        turn = s * step / (1 - s * step * distance)
        column = table[:, i].copy()
        table += (turn * column)[:, None] * table[i]
        used.append(column[b:])
        turns.append(turn)
    if not used:
        return metric
    result = images @ np.array(used).T
    changed: Array = dgemm(1.0, result * turns, result, 1.0, metric, trans_b=1, overwrite_c=1)
    return changed


def features_of(metric: Array) -> Array:
    """Return ``L Lambda^(1/2)`` (d, d), largest eigenvalue first: features with M's distances."""
    values, vectors = np.linalg.eigh(metric)
    directions: Array = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0))
    return directions


def ranked_by_information(features: Array, codes: Codes, count: int) -> NDArray[np.intp]:
    """Return indices of the best features by maximal relevance and minimal redundancy.

    The criterion of Peng et al. (2005): mutual information with the codes, less the mean mutual
    information with the features chosen before. Features are split at their means.

    Parameters
    ----------
    features : (n, d) array
    codes : (n,) array of classes from 0
    count : int

    Returns
    -------
    (count,) array
        Best first; ties go to the lower index.
    """
    bits = (features > features.mean(axis=0)).astype(np.intp)
    relevance = _information(bits, codes)
    chosen: list[int] = []
    redundancy = np.zeros(len(relevance))
    left = np.ones(len(relevance), dtype=bool)
    for _ in range(count):
        value = relevance - redundancy / max(len(chosen), 1)
        best = int(np.argmax(np.where(left, value, -np.inf)))
        chosen.append(best)
        left[best] = False
        redundancy += _information(bits, bits[:, best])
    return np.array(chosen)


def _information(bits: NDArray[np.intp], codes: NDArray[np.integer[Any]]) -> Array:
    """Return the mutual information (d,) of each column of bits with codes, in nats."""
    n = len(codes)
    classes = np.eye(int(codes.max()) + 1)[codes]
    ones = bits.T @ classes / n
    shares = classes.mean(axis=0)
    total = np.zeros(bits.shape[1])
    for joint in (ones, shares - ones):
        alone = joint.sum(axis=1, keepdims=True) * shares
        positive = joint > 1e-15
        ratio = np.where(positive, joint / np.where(positive, alone, 1.0), 1.0)
        total += (joint * np.log(ratio)).sum(axis=1)
    return total


def check_quantiles(quantiles: Any) -> tuple[float, float]:
    try:
        values = np.asarray(quantiles, dtype=float)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (2,) or not (0 <= values[0] < values[1] <= 1):
        raise ValueError(
            f"quantiles: expected two numbers 0 <= low < high <= 1, got {show(quantiles)}"
        )
    return float(values[0]), float(values[1])

"""Passes of calibrated least squares over rows in memory or in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from eigenfeat._base.saved import Saved
from eigenfeat._base.types import Floats
from eigenfeat.linear.logit_problem import LogitProblem
from eigenfeat.rows import reductions
from eigenfeat.rows.blocks import Block

__all__ = ["Passes", "ScoreMap", "on_simplex", "row_slices"]

_Array = NDArray[np.float64]
_BLOCK = 1 << 22  # numbers in a block of calibration features


@dataclass(frozen=True, eq=False)
class ScoreMap(Saved):
    """Map from scores (n, k) to probabilities (n, k) before the projection on the simplex.

    Attributes
    ----------
    low, high : (k,) arrays
        Ranges of the scores; scores are clipped to them and mapped to [-1, 1].
    weights : (m k + 1, k) array
        Weights of the powers 1 to m of the k mapped scores, power by power, and of the constant.
    """

    _saved: ClassVar[dict[str, str]] = {
        "low": "numbers k",
        "high": "numbers k",
        "weights": "numbers * k",
        "middle": "numbers k",
        "slope": "numbers k",
    }

    low: _Array
    high: _Array
    weights: _Array
    middle: _Array = field(init=False, repr=False)
    slope: _Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        width = self.high - self.low
        slope = 2.0 / np.where(width > 0, width, np.inf)
        object.__setattr__(self, "middle", 0.5 * (self.low + self.high))
        object.__setattr__(self, "slope", slope)

    @classmethod
    def unfitted(cls, low: Floats, high: Floats, n_powers: int) -> ScoreMap:
        """The map of scores to [-1, 1], without weights."""
        weights = np.zeros((n_powers * len(low) + 1, len(low)))
        return cls(low.astype(np.float64), high.astype(np.float64), weights)

    def sums(self, scores: Floats, block: Block) -> tuple[_Array, _Array]:
        """Gram matrix of the powers of the scores, and their products with the indicators."""
        gram, target = np.zeros((len(self.weights), len(self.weights))), np.zeros_like(self.weights)
        for rows in row_slices(len(scores), len(gram)):
            F = self._powers(scores[rows])
            weighted = F if block.weight is None else F * block.weight[rows, None]
            gram += weighted.T @ F
            target += weighted.T @ _indicators(block.y[rows], scores.shape[1])
        return gram, target

    def fitted(self, gram: _Array, target: _Array, ridge: float) -> ScoreMap:
        """Ridge regression of the labels' indicators on powers of the scores; changes `gram`."""
        size = np.sqrt(np.diag(gram))
        size = np.where(size > 0, size, 1.0)
        gram /= size[:, None] * size
        gram[np.diag_indices(len(gram) - 1)] += ridge
        solved = solve(gram, target / size[:, None], assume_a="pos")
        return ScoreMap(self.low, self.high, solved / size[:, None])

    def apply(self, scores: Floats) -> Floats:
        """Calibrated scores, (n, k), in the type of the scores."""
        out = np.empty_like(scores)
        for rows in row_slices(len(scores), len(self.weights)):
            out[rows] = self._powers(scores[rows]) @ self.weights
        return out

    def _powers(self, scores: Floats) -> _Array:
        mapped = (np.clip(scores, self.low, self.high) - self.middle) * self.slope
        n, k = mapped.shape
        out = np.ones((n, len(self.weights)))
        for first in range(0, len(self.weights) - 1, k):
            before = out[:, first - k : first] if first else 1.0
            np.multiply(before, mapped, out=out[:, first : first + k])
        return out


class Passes:
    """Passes over the rows, three per step, with memory independent of the number of rows.

    Rows in memory keep the scores of a step between its passes.
    """

    def __init__(self, problem: LogitProblem) -> None:
        self._problem = problem
        self._how = problem.shape[1], problem.constant, problem.rows.n_threads

    def of_labels(self) -> _Array:
        """``Phi^T Y`` (p, k), rows weighted."""
        found: _Array = self._sum(label_products)[0]
        return found

    def calibrate(self, W: _Array, n_powers: int, ridge: float) -> ScoreMap:
        """Calibrate the scores at W."""
        low, high = self._problem.rows.reduce(score_ranges, reductions.merge_ranges, *self._how, W)
        mapped = ScoreMap.unfitted(low, high, n_powers)
        gram, target = self._sum(calibration_sums, W, mapped)
        return mapped.fitted(gram, target, ridge)

    def residuals(self, W: _Array, calibration: ScoreMap, wanted: bool) -> tuple[float, _Array]:
        """Mean squared error of a model and, if wanted, ``Phi^T (Y - P)`` (p, k)."""
        total, products = self._sum(residual_products, W, calibration, wanted)
        return float(total) / self._problem.total, products

    def _sum(self, function: Any, *arguments: Any) -> Any:
        return self._problem.rows.reduce(function, reductions.add, *self._how, *arguments)


# ---- what one block gives ------------------------------------------------------------------------


def label_products(block: Block, k: int, constant: bool, n_threads: int | None) -> tuple[_Array]:
    """``Phi^T Y`` of the rows of a block; merged by `reductions.add`, as the others."""
    found = _indicators(block.y, k, np.float32 if block.X.dtype == np.float32 else np.float64)
    if block.weight is not None:
        found *= block.weight[:, None]
    return (block.products(found, constant, n_threads),)


def score_ranges(
    block: Block, k: int, constant: bool, n_threads: int | None, W: _Array
) -> tuple[Floats, Floats]:
    """Least and largest scores (k,) of the classes; for `reductions.merge_ranges`."""
    scores = block.scores(W, constant, n_threads)
    return scores.min(axis=0), scores.max(axis=0)


def calibration_sums(
    block: Block, k: int, constant: bool, n_threads: int | None, W: _Array, mapped: ScoreMap
) -> tuple[_Array, _Array]:
    """Sums for `ScoreMap.fitted`."""
    return mapped.sums(block.scores(W, constant, n_threads), block)


def residual_products(
    block: Block,
    k: int,
    constant: bool,
    n_threads: int | None,
    W: _Array,
    calibration: ScoreMap,
    wanted: bool,
) -> tuple[float, _Array]:
    """Sum of squared errors, and ``Phi^T (Y - P)`` if it is wanted."""
    scores = block.scores(W, constant, n_threads)
    out, total = np.empty_like(scores), 0.0
    calibrated = calibration.apply(scores)
    for rows in row_slices(*scores.shape):
        R = -on_simplex(calibrated[rows].astype(np.float64))
        R[np.arange(len(R)), block.y[rows]] += 1.0
        squares = (R**2).sum(axis=1)
        if block.weight is None:
            total += float(squares.sum())
        else:
            total += float(block.weight[rows] @ squares)
            R *= block.weight[rows, None]
        out[rows] = R
    return total, block.products(out, constant, n_threads) if wanted else np.zeros(0)


# ---- rows of scores ------------------------------------------------------------------------------


def on_simplex(scores: _Array) -> _Array:
    """Project rows (n, k) on the probability simplex, in the Euclidean distance."""
    k = scores.shape[1]
    falling = -np.sort(-scores, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, k + 1)
    support = np.count_nonzero(falling > excess, axis=1)
    return np.maximum(scores - np.take_along_axis(excess, support[:, None] - 1, axis=1), 0.0)


def row_slices(n: int, width: int) -> Iterator[slice]:
    """Slices of n rows that have some 4 million numbers each."""
    size = max(1, _BLOCK // width)
    return (slice(begin, begin + size) for begin in range(0, n, size))


def _indicators(labels: NDArray[np.int32], k: int, dtype: Any = np.float64) -> NDArray[Any]:
    Y = np.zeros((len(labels), k), dtype=dtype)
    Y[np.arange(len(Y)), labels] = 1.0
    return Y

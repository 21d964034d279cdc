"""Passes of calibrated least squares: over rows in memory, and over blocks of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from eigenfeat.linear.block_logit import BlockLogit
from eigenfeat.linear.logit_problem import LogitProblem
from eigenfeat.rows import reductions
from eigenfeat.rows.blocks import Block

__all__ = ["Calibration", "Passes", "on_simplex", "passes_of", "row_slices"]

_Array = NDArray[np.float64]
_BLOCK = 1 << 22  # numbers in a block of calibration features


@dataclass(frozen=True, eq=False)
class Calibration:
    """A map from scores (n, k) to probabilities (n, k) that need a projection yet.

    Attributes
    ----------
    low, high : (k,) arrays
        Ranges of the scores; scores are clipped to them and mapped to [-1, 1].
    weights : (m k + 1, k) array
        For powers 1 to m of the k mapped scores, power by power, and the constant.
    """

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
    def unfitted(cls, low: NDArray[Any], high: NDArray[Any], n_powers: int) -> Calibration:
        """The map of scores to [-1, 1], without weights yet."""
        weights = np.zeros((n_powers * len(low) + 1, len(low)))
        return cls(low.astype(np.float64), high.astype(np.float64), weights)

    def sums(self, scores: NDArray[Any], problem: LogitProblem) -> tuple[_Array, _Array]:
        """Gram matrix of the powers of the scores, and their products with the indicators."""
        assert problem.labels is not None
        gram, target = np.zeros((len(self.weights), len(self.weights))), np.zeros_like(self.weights)
        for rows in row_slices(len(scores), len(gram)):
            F = self._powers(scores[rows])
            weighted = F if problem.weights is None else F * problem.weights[rows, None]
            gram += weighted.T @ F
            target += weighted.T @ _indicators(problem.labels[rows], scores.shape[1])
        return gram, target

    def fitted(self, gram: _Array, target: _Array, ridge: float) -> Calibration:
        """Ridge regression of the labels' indicators on powers of the scores; changes `gram`."""
        size = np.sqrt(np.diag(gram))
        size = np.where(size > 0, size, 1.0)
        gram /= size[:, None] * size
        gram[np.diag_indices(len(gram) - 1)] += ridge
        solved = solve(gram, target / size[:, None], assume_a="pos")
        return Calibration(self.low, self.high, solved / size[:, None])

    def apply(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Calibrated scores, (n, k), of the scores' type."""
        out = np.empty_like(scores)
        for rows in row_slices(len(scores), len(self.weights)):
            out[rows] = self._powers(scores[rows]) @ self.weights
        return out

    def _powers(self, scores: NDArray[Any]) -> _Array:
        mapped = (np.clip(scores, self.low, self.high) - self.middle) * self.slope
        n, k = mapped.shape
        out = np.ones((n, len(self.weights)))
        for first in range(0, len(self.weights) - 1, k):
            before = out[:, first - k : first] if first else 1.0
            np.multiply(before, mapped, out=out[:, first : first + k])
        return out


class Passes(ABC):
    """What the steps ask of the rows."""

    @abstractmethod
    def products(self) -> _Array:
        """``Phi^T (Y - P)`` (p, k) after the latest step, rows weighted; Y alone before it."""

    @abstractmethod
    def calibrate(self, W: _Array, n_powers: int, ridge: float) -> tuple[Calibration, float]:
        """Calibrate the scores at W, and find P; the mean squared error, too."""

    @abstractmethod
    def error(self, W: _Array, calibration: Calibration) -> float:
        """Mean squared error of a model."""


class MemoryPasses(Passes):
    """Passes over rows in memory, whose scores and residuals are kept."""

    def __init__(self, problem: LogitProblem, *, first: bool = True) -> None:
        assert problem.labels is not None
        self._problem = problem
        if first:
            self._residuals = label_residuals(problem)

    def products(self) -> _Array:
        """See `Passes`."""
        return self._problem.products(self._residuals)

    def calibrate(self, W: _Array, n_powers: int, ridge: float) -> tuple[Calibration, float]:
        """See `Passes`."""
        scores = self._problem.scores(W)
        mapped = Calibration.unfitted(scores.min(axis=0), scores.max(axis=0), n_powers)
        gram, target = mapped.sums(scores, self._problem)
        calibration = mapped.fitted(gram, target, ridge)
        total = residuals(calibration, scores, self._problem, self._residuals)
        return calibration, total / self._problem.total

    def error(self, W: _Array, calibration: Calibration) -> float:
        """See `Passes`."""
        scores = self._problem.scores(W)
        total = residuals(calibration, scores, self._problem, np.empty_like(scores))
        return total / self._problem.total


class BlockPasses(Passes):
    """Passes over blocks of rows: three a step, which hold nothing of the rows' number."""

    def __init__(self, problem: BlockLogit, *, first: bool = True) -> None:
        self._problem = problem
        self._how = problem.shape[1], problem.constant, problem.n_threads
        if first:
            (self._products,) = self._sum(block_labels)

    def products(self) -> _Array:
        """See `Passes`."""
        return self._products

    def calibrate(self, W: _Array, n_powers: int, ridge: float) -> tuple[Calibration, float]:
        """See `Passes`."""
        low, high = self._problem.rows.reduce(block_ranges, merge_ranges, *self._how, W)
        mapped = Calibration.unfitted(low, high, n_powers)
        gram, target = self._sum(block_sums, W, mapped)
        calibration = mapped.fitted(gram, target, ridge)
        total, self._products = self._sum(block_residuals, W, calibration, True)
        return calibration, total / self._problem.total

    def error(self, W: _Array, calibration: Calibration) -> float:
        """See `Passes`."""
        return float(self._sum(block_residuals, W, calibration, False)[0]) / self._problem.total

    def _sum(self, function: Any, *arguments: Any) -> Any:
        return self._problem.rows.reduce(function, reductions.add, *self._how, *arguments)


def passes_of(problem: Any, *, first: bool = True) -> Passes:
    """Passes over the rows of a problem; those held out need no products at `first`."""
    kind = BlockPasses if isinstance(problem, BlockLogit) else MemoryPasses
    return kind(problem, first=first)


# ---- what one block gives ------------------------------------------------------------------------


def block_labels(block: Block, k: int, constant: bool, n_threads: int) -> tuple[_Array]:
    """``Phi^T Y`` of the rows of a block; merged by `reductions.add`, as the others."""
    problem = LogitProblem.part(block, k, constant, n_threads)
    return (problem.products(label_residuals(problem)),)


def block_ranges(
    block: Block, k: int, constant: bool, n_threads: int, W: _Array
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Least and largest scores (k,) of the classes; for `merge_ranges`."""
    scores = LogitProblem.part(block, k, constant, n_threads).scores(W)
    return scores.min(axis=0), scores.max(axis=0)


def merge_ranges(a: Any, b: Any) -> Any:
    """Those of the rows of both."""
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def block_sums(
    block: Block, k: int, constant: bool, n_threads: int, W: _Array, mapped: Calibration
) -> tuple[_Array, _Array]:
    """What `Calibration.fitted` asks for."""
    problem = LogitProblem.part(block, k, constant, n_threads)
    return mapped.sums(problem.scores(W), problem)


def block_residuals(
    block: Block,
    k: int,
    constant: bool,
    n_threads: int,
    W: _Array,
    calibration: Calibration,
    wanted: bool,
) -> tuple[float, _Array]:
    """Sum of squared errors, and ``Phi^T (Y - P)`` if it is wanted."""
    problem = LogitProblem.part(block, k, constant, n_threads)
    scores = problem.scores(W)
    out = np.empty_like(scores)
    total = residuals(calibration, scores, problem, out)
    return total, problem.products(out) if wanted else np.zeros(0)


# ---- rows of scores ------------------------------------------------------------------------------


def on_simplex(scores: _Array) -> _Array:
    """Project rows (n, k) on the simplex: nonnegative, of sum 1, nearest in Euclid's distance."""
    k = scores.shape[1]
    falling = -np.sort(-scores, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, k + 1)
    support = np.count_nonzero(falling > excess, axis=1)
    return np.maximum(scores - np.take_along_axis(excess, support[:, None] - 1, axis=1), 0.0)


def label_residuals(problem: LogitProblem) -> NDArray[Any]:
    """Weighted indicators of the labels: residuals where every probability is 0."""
    assert problem.labels is not None
    found = _indicators(problem.labels, problem.shape[1], problem.dtype)
    if problem.weights is not None:
        found *= problem.weights[:, None]
    return found


def residuals(
    calibration: Calibration, scores: NDArray[Any], problem: LogitProblem, out: NDArray[Any]
) -> float:
    """Write weighted ``Y - P`` to `out` and return the weighted sum of its rows' squares."""
    assert problem.labels is not None
    total = 0.0
    calibrated = calibration.apply(scores)
    for rows in row_slices(*scores.shape):
        R = -on_simplex(calibrated[rows].astype(np.float64))
        R[np.arange(len(R)), problem.labels[rows]] += 1.0
        squares = (R**2).sum(axis=1)
        if problem.weights is None:
            total += float(squares.sum())
        else:
            total += float(problem.weights[rows] @ squares)
            R *= problem.weights[rows, None]
        out[rows] = R
    return total


def row_slices(n: int, width: int) -> Iterator[slice]:
    """Slices of n rows that have some 4 million numbers each."""
    size = max(1, _BLOCK // width)
    return (slice(begin, begin + size) for begin in range(0, n, size))


def _indicators(labels: NDArray[np.int32], k: int, dtype: Any = np.float64) -> NDArray[Any]:
    Y = np.zeros((len(labels), k), dtype=dtype)
    Y[np.arange(len(Y)), labels] = 1.0
    return Y

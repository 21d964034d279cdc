"""Calibrated least squares: a classifier fitted in a few least-squares steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.subsamples import draw_subsample
from eigenfeat._base.threads import resolve
from eigenfeat._base.types import Floats, Targets, Weights
from eigenfeat._base.validation import MOST
from eigenfeat.linear.logistic import Features, LinearModel
from eigenfeat.linear.logit_problem import LogitProblem, Penalty, merge_ranges
from eigenfeat.samples.blocks import add
from eigenfeat.samples.estimator import Iterative, Verbose, unchanged_on_error, with_steps
from eigenfeat.samples.labelled import Block
from eigenfeat.samples.out_of_core import FromLogits, over_blocks

__all__ = ["CalibratedLeastSquares", "ScoreMap", "on_simplex"]

_Array = NDArray[np.float64]
_POWERS = 4  # highest power of the scores in the calibration
_RIDGE = 1e-2  # of the calibration: a share of the mean squares of the powers
_MAX_GRAM_SAMPLES = 20_000  # samples that give the metric
_BLOCK = 1 << 22  # numbers in a block of scores or of calibration features
_SCORE_ROUNDING = 8 * float(np.finfo(np.float32).eps)  # relative: the metric is in float32


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """Map from scores (n, k) to probabilities (n, k) before the projection on the simplex.

    Attributes
    ----------
    low : (k,) array
        Smallest scores of the classes; smaller scores are clipped. Scores are mapped to [-1, 1].
    high : (k,) array
        Largest scores of the classes; larger scores are clipped.
    weights : (4 k + 1, k) array
        Weights of the powers 1 to 4 of the k mapped scores, power by power, and of the constant.
    """

    low: _Array
    high: _Array
    weights: _Array

    @property
    def slope(self) -> _Array:
        """(k,) factors of the scores, 0 for a class of equal scores."""
        width = self.high - self.low
        return np.asarray(2.0 / np.where(width > 0, width, np.inf))

    @classmethod
    def unfitted(cls, low: Floats, high: Floats) -> ScoreMap:
        """Map with zero weights; it scales scores to [-1, 1], and equal scores of a class to 0."""
        peak = float(np.abs(np.stack([low, high])).max())
        low = np.where(high - low <= _SCORE_ROUNDING * peak, high, low)
        weights = np.zeros((_POWERS * len(low) + 1, len(low)))
        return cls(low.astype(np.float64), high.astype(np.float64), weights)

    def fitted(self, gram: _Array, target: _Array, ridge: float) -> ScoreMap:
        """Ridge regression of the labels' indicators on powers of the scores; overwrites `gram`."""
        size = np.sqrt(np.diag(gram))
        size = np.where(size > 0, size, 1.0)
        gram /= size[:, None] * size
        gram[np.diag_indices(len(gram) - 1)] += ridge
        solved = solve(gram, target / size[:, None], assume_a="pos")
        return ScoreMap(self.low, self.high, solved / size[:, None])

    def apply(self, scores: Floats) -> Floats:
        """Calibrated scores, (n, k), in the type of the scores."""
        out = np.tile(self.weights[-1], (len(scores), 1))
        parts = np.split(self.weights[:-1], _POWERS)
        for power, W in zip(self.powers(scores), parts, strict=True):
            out += power @ W
        return out.astype(scores.dtype, copy=False)

    def powers(self, scores: Floats) -> Iterator[_Array]:
        """Powers 1 to 4 of the mapped scores, each (n, k)."""
        middle = 0.5 * (self.low + self.high)
        mapped = (np.clip(scores, self.low, self.high) - middle) * self.slope
        return accumulate([mapped] * _POWERS, np.multiply)


# ---- sums over the samples -----------------------------------------------------------------------


def _reduced(problem: LogitProblem, function: Any, merge: Any, *arguments: Any) -> Any:
    return problem.rows.reduce(function, merge, problem.rows.n_threads, *arguments)


def score_ranges(block: Block, n_threads: int | None, W: _Array) -> tuple[Floats, Floats]:
    """Least and largest scores (k,) of the classes; for `merge_ranges`."""
    scores = block.scores(W, True, n_threads)
    return scores.min(axis=0), scores.max(axis=0)


def calibration_sums(
    block: Block, n_threads: int | None, W: _Array, mapped: ScoreMap
) -> tuple[_Array, _Array]:
    """Gram matrix of the powers of the scores, and their products with the labels' indicators.

    The results of blocks are merged by `add`.
    """
    scores = block.scores(W, True, n_threads)
    gram, target = np.zeros((len(mapped.weights),) * 2), np.zeros_like(mapped.weights)
    for rows in gen_batches(len(scores), max(1, _BLOCK // len(gram))):
        F = np.hstack([*mapped.powers(scores[rows]), np.ones((len(scores[rows]), 1))])
        weighted = F if block.weight is None else F * block.weight[rows, None]
        gram += weighted.T @ F
        target += weighted.T @ _indicators(block.y[rows], scores.shape[1])
    return gram, target


def residual_sums(
    block: Block,
    n_threads: int | None,
    W: _Array,
    calibration: ScoreMap | None,
    with_products: bool,
) -> tuple[float, _Array | float]:
    """Sum of squared errors, and ``Phi^T (Y - P)`` (p, k) or 0; merged by `add`.

    Without a calibration all probabilities P are 0.
    """
    R = _indicators(block.y, W.shape[1])
    if calibration is not None:
        scores = block.scores(W, True, n_threads)
        for rows in gen_batches(len(R), max(1, _BLOCK // W.shape[1])):
            R[rows] -= on_simplex(calibration.apply(scores[rows]))
    weighted = R if block.weight is None else R * block.weight[:, None]
    products = block.products(weighted, True, n_threads) if with_products else 0.0
    return float(np.vdot(weighted, R)), products


def on_simplex(scores: Floats) -> _Array:
    """Project rows (n, k) on the probability simplex, in the Euclidean distance."""
    scores = scores.astype(np.float64, copy=False)
    falling = -np.sort(-scores, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, scores.shape[1] + 1)
    support = np.count_nonzero(falling > excess, axis=1)
    return np.maximum(scores - np.take_along_axis(excess, support[:, None] - 1, axis=1), 0.0)


def _indicators(labels: NDArray[np.int32], k: int) -> _Array:
    Y = np.zeros((len(labels), k))
    Y[np.arange(len(Y)), labels] = 1.0
    return Y


class CalibratedLeastSquares(Iterative, Verbose, LinearModel, FromLogits):
    """Classifier that alternates least-squares steps with the fit of a calibration.

    Use it to reproduce the classifier of the GEM paper; `MultinomialLogit` is usually as accurate.
    Tune `ridge`. User guide: :doc:`/guide/classifier`; the steps: :doc:`/guide/objectives`.

    Parameters
    ----------
    ridge : float >= 0, default=0.5
        Damping of every step. As there are few steps, it also regularises.
    n_iterations : int >= 0, default=6
        Number of steps after the ridge regression.
    n_threads : int or None, default=None
        Number of threads; None means all OpenMP threads. Results do not depend on it.
    verbose : int, default=0
        1 prints a line for each step on stderr.

    Attributes
    ----------
    coef_ : (k, p) array
        Weights in the units of the features, also with two classes.
    intercept_ : (k,) array
        Intercepts.
    calibration_ : ScoreMap
        Map from scores to the values that `decision_function` returns.
    classes_ : (k,) array
        Labels, sorted.
    n_iter_ : int
        Number of steps.
    error_history_ : list of float
        Mean squared error after the ridge regression and after every step.
    n_rows_ : float
        Number of training samples, or their total weight.
    n_features_in_ : int
        Number of features, p.

    Raises
    ------
    ValueError
        If there are fewer than two classes, or samples, labels, weights or parameters are invalid.

    See Also
    --------
    MultinomialLogit : Minimises the log loss.

    References
    ----------
    A. Agarwal, S. Kakade, N. Karampatziakis, L. Song and G. Valiant, "Least squares revisited:
    scalable approaches for multi-class prediction", ICML 2014. J. Duchi et al., ICML 2008
    (projection on the simplex).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat import CalibratedLeastSquares
    >>> X, y = load_digits(return_X_y=True)
    >>> model = CalibratedLeastSquares().fit(X[:1000], y[:1000])
    >>> round(model.score(X[1000:], y[1000:]), 2)
    0.92
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_iterations": [Interval(Integral, 0, MOST, closed="both")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_iterations: int = 6,
        ridge: float = 0.5,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_iterations = n_iterations
        self.ridge = ridge
        self.n_threads = n_threads
        self.verbose = verbose

    @with_steps
    def fit(
        self, X: Features, y: Targets = None, sample_weight: Weights = None
    ) -> CalibratedLeastSquares:
        """Fit the weights and the calibration.

        Parameters
        ----------
        X : (n, p) array-like, sparse matrix, ExpandedFeatures or RowBlocks
            Finite features. Blocks are read three times per step.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

        Returns
        -------
        CalibratedLeastSquares
            The estimator itself.
        """
        self._validate_params()
        with unchanged_on_error(self):
            problem = LogitProblem(self._prepared(X, y, sample_weight), constant=True, centre=True)
            started, n = time.perf_counter(), problem.n_samples
            subsample = draw_subsample(n, _MAX_GRAM_SAMPLES) if n > _MAX_GRAM_SAMPLES else None
            metric = problem.metric(Penalty(1.0, self.ridge, 0.0), subsample)
            self._log(f"metric: {problem.shape[0]} features", started)
            W = self._steps(problem, metric)
            self.n_features_in_, self.n_rows_ = problem.varying, problem.total
            self.coef_ = np.ascontiguousarray(W[: problem.varying].T)
            self.intercept_ = W[-1].copy()
        return self

    def _steps(self, problem: LogitProblem, metric: Any) -> _Array:
        """Take all steps; return the weights (p, k) of the last step."""
        threads = resolve(self.n_threads)
        self.error_history_: list[float] = []
        W: _Array = np.zeros(problem.shape)
        _, products = _reduced(problem, residual_sums, add, W, None, True)
        for number in range(self.n_iterations + 1):
            # The first step is the ridge regression (2 H)^-1 Phi^T Y.
            W = W + (1.0 if number else 0.5) * metric.solve(products, threads)
            ranges = _reduced(problem, score_ranges, merge_ranges, W)
            unfitted = ScoreMap.unfitted(*ranges)
            gram, target = _reduced(problem, calibration_sums, add, W, unfitted)
            self.calibration_ = unfitted.fitted(gram, target, _RIDGE)
            continues = number < self.n_iterations
            squares, products = _reduced(
                problem, residual_sums, add, W, self.calibration_, continues
            )
            self.n_iter_ = number
            self.error_history_.append(float(squares) / problem.total)
            self._log(f"step {number}: squared error {self.error_history_[-1]:.5g}")
            if self._step_done():
                break
        return problem.uncentred(W)

    @over_blocks
    def decision_function(self, X: Features) -> Floats:
        """Calibrated scores: probabilities before the projection on the simplex.

        Parameters
        ----------
        X : (n, p) array-like, sparse matrix, ExpandedFeatures or RowBlocks
            Finite features. For blocks, an iterator over the results of the blocks is returned.

        Returns
        -------
        (n, k) array, or (n,) with two classes
            With two classes, the score of the second class minus that of the first.
        """
        scores = self._calibrated(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    @over_blocks
    def predict_proba(self, X: Features) -> Floats:
        """Compute the classes' probabilities, which are all positive.

        Parameters
        ----------
        X : (n, p) array-like, sparse matrix, ExpandedFeatures or RowBlocks
            Features, as in `decision_function`.

        Returns
        -------
        (n, k) array
            For blocks, an iterator over such arrays.
        """
        scores = self._calibrated(X)
        # As if half a further sample of each class had been seen: no probability is 0.
        P = (self.n_rows_ * on_simplex(scores) + 0.5) / (self.n_rows_ + 0.5 * scores.shape[1])
        return P.astype(scores.dtype, copy=False)

    @over_blocks
    def predict_log_proba(self, X: Features) -> Floats:
        """Compute the logarithms of the classes' probabilities.

        Parameters
        ----------
        X : (n, p) array-like, sparse matrix, ExpandedFeatures or RowBlocks
            Features, as in `decision_function`.

        Returns
        -------
        (n, k) array
            For blocks, an iterator over such arrays.
        """
        return np.asarray(np.log(self.predict_proba(X)))

    def _calibrated(self, X: Any) -> Floats:
        check_is_fitted(self, "coef_")
        X = self._checked(X)
        W = np.vstack([self.coef_.T, self.intercept_])
        scores = Block(X).scores(W, True, self.n_threads)
        return self.calibration_.apply(scores)

    def _most_steps(self) -> int:
        return int(self.n_iterations) + 1

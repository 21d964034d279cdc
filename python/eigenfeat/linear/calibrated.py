"""Calibrated least squares: a classifier fitted in a few least-squares steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base import threads as _threads
from eigenfeat._base.subsamples import draw_subsample
from eigenfeat._base.types import Codes, Floats, RandomState, Targets, Weights
from eigenfeat._base.validation import MOST
from eigenfeat.linear.logistic import Features, LinearClassifier
from eigenfeat.linear.logit_problem import LogitProblem, Penalty, merge_ranges, uncentred
from eigenfeat.samples import reductions
from eigenfeat.samples.blocks import Block
from eigenfeat.samples.estimator import Iterative, unchanged_on_error, with_steps
from eigenfeat.samples.out_of_core import over_blocks
from eigenfeat.samples.splits import check_held_out

__all__ = ["CalibratedLeastSquares", "Passes", "ScoreMap", "on_simplex", "row_slices"]

_Array = NDArray[np.float64]
_BLOCK = 1 << 22  # numbers in a block of calibration features
_SCORE_ROUNDING = 8 * float(np.finfo(np.float32).eps)  # relative: the metric is in float32


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """Map from scores (n, k) to probabilities (n, k) before the projection on the simplex.

    Attributes
    ----------
    low, high : (k,) arrays
        Ranges of the scores; scores are clipped to them and mapped to [-1, 1].
    weights : (m k + 1, k) array
        Weights of the powers 1 to m of the k mapped scores, power by power, and of the constant.
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
    def unfitted(cls, low: Floats, high: Floats, n_powers: int) -> ScoreMap:
        """Map with zero weights; it scales scores to [-1, 1], and equal scores of a class to 0."""
        peak = float(np.abs(np.stack([low, high])).max())
        low = np.where(high - low <= _SCORE_ROUNDING * peak, high, low)
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
        """Ridge regression of the labels' indicators on powers of the scores; overwrites `gram`."""
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
    """Passes over the samples, three per step, with memory independent of the number of samples.

    Samples in memory keep the scores of a step between its passes.
    """

    def __init__(self, problem: LogitProblem) -> None:
        self._problem = problem
        self._arguments = problem.shape[1], problem.constant, problem.rows.n_threads

    def of_labels(self) -> _Array:
        """``Phi^T Y`` (p, k), rows weighted."""
        result: _Array = self._sum(label_products)[0]
        return result

    def calibrate(self, W: _Array, n_powers: int, ridge: float) -> ScoreMap:
        """Calibrate the scores at W."""
        low, high = self._problem.rows.reduce(score_ranges, merge_ranges, *self._arguments, W)
        mapped = ScoreMap.unfitted(low, high, n_powers)
        gram, target = self._sum(calibration_sums, W, mapped)
        return mapped.fitted(gram, target, ridge)

    def residuals(self, W: _Array, calibration: ScoreMap, products: bool) -> tuple[float, _Array]:
        """Mean squared error of a model and, with `products`, ``Phi^T (Y - P)`` (p, k)."""
        total, sums = self._sum(residual_products, W, calibration, products)
        return float(total) / self._problem.total, sums

    def _sum(self, function: Any, *arguments: Any) -> Any:
        return self._problem.rows.reduce(function, reductions.add, *self._arguments, *arguments)


# ---- sums over a block ---------------------------------------------------------------------------
def label_products(block: Block, k: int, constant: bool, n_threads: int | None) -> tuple[_Array]:
    """``Phi^T Y`` of a block; merged by `reductions.add`."""
    result = _indicators(block.y, k, np.float32 if block.X.dtype == np.float32 else np.float64)
    if block.weight is not None:
        result *= block.weight[:, None]
    return (block.products(result, constant, n_threads),)


def score_ranges(
    block: Block, k: int, constant: bool, n_threads: int | None, W: _Array
) -> tuple[Floats, Floats]:
    """Least and largest scores (k,) of the classes; for `merge_ranges`."""
    scores = block.scores(W, constant, n_threads)
    return scores.min(axis=0), scores.max(axis=0)


def calibration_sums(
    block: Block, k: int, constant: bool, n_threads: int | None, W: _Array, mapped: ScoreMap
) -> tuple[_Array, _Array]:
    """Sums for `ScoreMap.fitted`; merged by `reductions.add`."""
    return mapped.sums(block.scores(W, constant, n_threads), block)


def residual_products(
    block: Block,
    k: int,
    constant: bool,
    n_threads: int | None,
    W: _Array,
    calibration: ScoreMap,
    products: bool,
) -> tuple[float, _Array]:
    """Sum of squared errors and, with `products`, ``Phi^T (Y - P)``; for `reductions.add`."""
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
    return total, block.products(out, constant, n_threads) if products else np.zeros(0)


# ---- rows of scores ------------------------------------------------------------------------------
def on_simplex(scores: _Array) -> _Array:
    """Project rows (n, k) on the probability simplex, in the Euclidean distance."""
    k = scores.shape[1]
    falling = -np.sort(-scores, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, k + 1)
    support = np.count_nonzero(falling > excess, axis=1)
    return np.maximum(scores - np.take_along_axis(excess, support[:, None] - 1, axis=1), 0.0)


def row_slices(n: int, width: int) -> Iterator[slice]:
    """Slices of n rows of about 4 million numbers each."""
    size = max(1, _BLOCK // width)
    return (slice(begin, begin + size) for begin in range(0, n, size))


def _indicators(labels: NDArray[np.int32], k: int, dtype: Any = np.float64) -> NDArray[Any]:
    Y = np.zeros((len(labels), k), dtype=dtype)
    Y[np.arange(len(Y)), labels] = 1.0
    return Y


class CalibratedLeastSquares(Iterative, LinearClassifier):
    """Classifier that alternates least-squares steps with the fit of a calibration.

    Use it to reproduce the classifier of the GEM paper; `MultinomialLogit` is usually as accurate.
    Tune `ridge`. User guide: :doc:`/guide/classifier`; the steps: :doc:`/guide/objectives`.

    Parameters
    ----------
    ridge : float >= 0, default=0.5
        Damping of every step. As there are few steps, it also regularises.
    n_iterations : int >= 0, default=6
        Number of steps after the ridge regression.
    calibration_powers : int >= 1, default=4
        Highest power of the scores in the calibration.
    calibration_ridge : float > 0, default=1e-2
        Penalty on the calibration's weights, as a fraction of the mean squares of the powers.
    fit_intercept : bool, default=True
        Whether to add a constant feature, which the ridge does not penalise.
    gram_rows : int or None, default=20000
        Number of samples for the Gram matrix; None means all.
    early_stopping, validation_fraction : bool, float, default=False, 0.1
        Whether to hold out this fraction of the samples, stop once their squared error has not
        decreased for three steps, and use the step with the smallest held-out error.
    random_state : int, RandomState or None, default=0
        Seed for drawing the samples of the Gram matrix and the held-out samples.
    n_threads : int or None, default=None
        Number of threads; None means all OpenMP threads. Results do not depend on it.
    verbose : int, default=0
        1 prints a line for each step on stderr.

    Attributes
    ----------
    coef_, intercept_ : (k, p) and (k,) arrays
        Weights in the units of the features, also with two classes.
    calibration_ : ScoreMap
        Map from scores to the values that `decision_function` returns.
    classes_ : (k,) array
        Labels, sorted.
    n_iter_ : int
        Number of steps in `coef_`.
    error_history_, validation_history_ : list of float
        Mean squared error after the ridge regression and after every step, of the samples and, with
        `early_stopping`, of the held-out samples.
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

    PATIENCE = 3

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_iterations": [Interval(Integral, 0, MOST, closed="both")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "calibration_powers": [Interval(Integral, 1, MOST, closed="both")],
        "calibration_ridge": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "gram_rows": [Interval(Integral, 1, None, closed="left"), None],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_iterations: int = 6,
        ridge: float = 0.5,
        calibration_powers: int = 4,
        calibration_ridge: float = 1e-2,
        fit_intercept: bool = True,
        gram_rows: int | None = 20000,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        random_state: RandomState = 0,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_iterations = n_iterations
        self.ridge = ridge
        self.calibration_powers = calibration_powers
        self.calibration_ridge = calibration_ridge
        self.fit_intercept = fit_intercept
        self.gram_rows = gram_rows
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.random_state = random_state
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
            random = check_random_state(self.random_state)
            rows, held_out = self._prepared(X, y, sample_weight), None
            if self.early_stopping:
                parts = self._split(rows.codes, random)
                rows, held = (rows.subset(part) for part in parts)
                held_out = LogitProblem(held, constant=self.fit_intercept)
            problem, centre = self._problem(rows)
            self._fit(problem, held_out, centre, random)
        return self

    def _split(self, codes: Codes, random: np.random.RandomState) -> list[NDArray[np.intp]]:
        """Indices of the training and the held-out samples, drawn class by class."""
        check_held_out(codes, self.classes_, self.validation_fraction, "early_stopping")
        options = {"stratify": codes, "random_state": random}
        parts = train_test_split(
            np.arange(len(codes)), test_size=self.validation_fraction, **options
        )
        return [np.sort(part) for part in parts]

    def _fit(self, problem: Any, held_out: Any, centre: Any, random: Any) -> None:
        started = time.perf_counter()
        sample, n = None, problem.n_samples
        if self.gram_rows is not None and self.gram_rows < n:
            sample = draw_subsample(n, self.gram_rows, seed=random.randint(2**31 - 1))
        metric = problem.metric(Penalty(1.0, self.ridge, 0.0), sample)
        self._log(f"metric: {problem.shape[0]} features ({time.perf_counter() - started:.1f} s)")
        self.n_rows_ = problem.total
        validation = None if held_out is None else Passes(held_out)
        kept = self._iterate(Passes(problem), metric, validation, centre)
        self.coef_ = np.ascontiguousarray(kept.W[: problem.varying].T)
        self.intercept_ = kept.W[-1].copy() if self.fit_intercept else np.zeros(problem.shape[1])
        self.calibration_, self.n_iter_ = kept.calibration, kept.number

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
        """Class probabilities (n, k), all positive."""
        scores = self._calibrated(X)
        for rows in row_slices(*scores.shape):
            P = on_simplex(scores[rows].astype(np.float64))
            scores[rows] = (self.n_rows_ * P + 0.5) / (self.n_rows_ + 0.5 * P.shape[1])
        return scores

    @over_blocks
    def predict_log_proba(self, X: Features) -> Floats:
        """Logarithms of the class probabilities, (n, k)."""
        return np.asarray(np.log(self.predict_proba(X)))

    def _calibrated(self, X: Any) -> Floats:
        check_is_fitted(self, "coef_")
        X = self._checked(X)
        W = np.vstack([self.coef_.T, self.intercept_])
        scores = Block(X).scores(W, True, self.n_threads)
        return self.calibration_.apply(scores)

    def _iterate(self, passes: Passes, metric: Any, held_out: Passes | None, centre: Any) -> _Step:
        """Take all steps and return the best step."""
        threads = _threads.resolve(self.n_threads)
        products = passes.of_labels()
        W = 0.5 * metric.solve(products, threads)
        self.error_history_: list[float] = []
        self.validation_history_: list[float] = []
        best = 0
        for number in range(self.n_iterations + 1):
            if number:
                W = W + metric.solve(products, threads)
            calibration = passes.calibrate(W, self.calibration_powers, self.calibration_ridge)
            error, products = passes.residuals(W, calibration, number < self.n_iterations)
            self.error_history_.append(error)
            step = _Step(number, uncentred(W, centre), calibration)
            text = f"step {number}: squared error {error:.5g}"
            if held_out is not None:
                self.validation_history_.append(held_out.residuals(step.W, calibration, False)[0])
                text += f", held-out {self.validation_history_[-1]:.5g}"
                best = int(np.argmin(self.validation_history_))
            self._log(text)
            stop = self._step_done()
            if held_out is None or best == number:
                kept = step
            elif number - best >= self.PATIENCE:
                break
            if stop:
                break
        return kept

    def _most_steps(self) -> int:
        return int(self.n_iterations) + 1


@dataclass(frozen=True, eq=False)
class _Step:
    number: int
    W: _Array
    calibration: ScoreMap

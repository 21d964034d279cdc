"""Regression of tables: a weighted mean of several views' predictions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import Codes, Labels, RandomState, Weights
from eigenfeat._base.validation import FLOATS, show
from eigenfeat.samples.completion import completed
from eigenfeat.samples.estimator import (
    BaseEstimator,
    Verbose,
    complete,
    encoded_names,
    keep_completion,
    unchanged_on_error,
    validate_columns,
)
from eigenfeat.samples.targets import output_deviations
from eigenfeat.samples.weights import weighted_rows
from eigenfeat.tables.regression_views import VIEWS, Samples, View, candidate_views
from eigenfeat.tables.views import Table, TableStatistics

__all__ = ["RegressionView", "TableRegressor"]

_Array = NDArray[np.float64]

_OPTIONS: dict[str, Any] = {"dtype": FLOATS, "order": "C", "ensure_all_finite": "allow-nan"}
_FOLDS = ((5_000, 5), (20_000, 3))  # samples, and number of folds up to this many
_MAX_HELD = 5_000  # samples of the one fold beyond
# bench/regression.py shows the effect of the pull and of the least weight.
_PULL = 0.1  # of the weights to equal ones, relative to the best view's error
_MIN_WEIGHT = 0.01
_SAMPLES_AT_ONCE = 1 << 16  # of a prediction, whose features are in memory together
_NO_COLUMNS = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class RegressionView:
    """One view of a fitted `TableRegressor`.

    Attributes
    ----------
    name : str
    weight : float
        Share in the predictions; 0 for a view that is not used.
    score : float
        R^2 of the out-of-fold predictions, the mean of several outputs; NaN where a view was not
        fitted.
    seconds : float
        Time that the fits took.
    note : str
        Why the view is not used; empty for others.
    model : View or None
        The fitted regression; None for a view that is not used.
    """

    name: str
    weight: float
    score: float = np.nan
    seconds: float = 0.0
    note: str = ""
    model: View | None = field(default=None, repr=False)


class TableRegressor(Verbose, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Regression of tables of any kind: a pool of linear views, kernels and trees.

    Use it first for any table with a continuous target: numbers, text, categories and gaps need no
    preparation, and most tables need no tuning. User guide: :doc:`/guide/regression`.

    Each view is a regression on its own representation of the columns. Predictions are weighted
    means of the views' predictions; the nonnegative weights of sum 1 minimise the squared error of
    out-of-fold predictions. Columns are clipped to their ranges in the training samples, and
    predictions to the range of the target, so that nothing extrapolates.

    Parameters
    ----------
    views : "auto", the name of a view, or a list of names, default="auto"
        "columns" and "splines" (ridge regressions on the columns and on B-splines of them), "gem"
        and "gem_ranks" (with GEM features between bins of the target), "kernel" and "kernel_ranks"
        (Gaussian kernels of columns and of ranks), "kernel_learned" (of a learned map of ranks),
        "forest" and "boosting" (trees). "auto": all that the columns allow.
    categorical_features : "from_dtype" or None, default="from_dtype"
        Columns of text and categories in data frames become one-hot. None refuses them.
    random_state : int, RandomState or None, default=0
        Seed for folds, landmarks of kernels, and trees.
    n_threads, verbose : int or None, int, default=None, 0
        Number of threads, all by default; results do not depend on it. With `verbose` = 1, print a
        line for each view on stderr.

    Attributes
    ----------
    views_ : list of RegressionView
        Name, weight, score and time of each view, and why one is not used.
    out_of_fold_prediction_ : (n,) or (n, q) array
        Predictions of the training samples by views and weights without their fold; NaN for samples
        of weight 0 and, with more than 20,000 samples, for those outside the one fold.
    target_mean_, target_scale_, target_range_ : (q,), (q,) and (2, q) arrays
        Means and standard deviations of the outputs, and their range in these units.
    columns_, completion_ : TableColumns, GaussianImputer
        Encoder of categories, and the Gaussian of missing numbers; only if `fit` had some.
    n_features_in_, feature_names_in_ : int, (d,) array of str
        Number of input features, and their names if they had names.

    See Also
    --------
    GEMClassifier : Classes instead of numbers.
    eigenfeat.rayleigh.SlicedInverseRegression : Directions for a target, by means alone.
    eigenfeat.samples.discretize_target : Bins of a target, for the features of `GEM` alone.

    References
    ----------
    L. Breiman, "Stacked regressions", Machine Learning 24, 1996. N. Karampatziakis and P. Mineiro
    (ICML 2014), section 5. A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, Science 383,
    2024 (learned kernels).

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from eigenfeat import TableRegressor
    >>> X, y = make_friedman1(600, noise=0.5, random_state=0)
    >>> TableRegressor().fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "views": [StrOptions({"auto", *VIEWS}), list, tuple],
        "categorical_features": [StrOptions({"from_dtype"}), None],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        views: str | Sequence[str] = "auto",
        *,
        categorical_features: str | None = "from_dtype",
        random_state: RandomState = 0,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: Weights = None) -> TableRegressor:
        """Fit the views and their weights.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            Samples; NaN is a missing entry.
        y : (n,) or (n, q) array-like
            Finite targets.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples. A constant factor changes nothing.

        Returns
        -------
        TableRegressor
            The estimator itself. An error leaves it unchanged.
        """
        self._validate_params()
        names = self._view_names()
        with unchanged_on_error(self):
            samples, kept, shape = self._prepare(X, y, sample_weight)
            candidates, reasons = candidate_views(names, samples)
            if not candidates:
                left_out = "; ".join(f"{name}: {why}" for name, why in reasons.items())
                raise ValueError(f"views: expected one that these samples allow, got {left_out}")
            folds = _draw_folds(len(samples), samples.seed)
            held_out, seconds = [], []
            for name, view in candidates.items():
                started = time.perf_counter()
                held_out.append(self._clipped(view.cross_fit(samples, folds)))
                seconds.append(time.perf_counter() - started)
                self._log(f"view {name}", started)
            predictions = np.stack(held_out)
            weights = _weights(samples, predictions, [held for _, held in folds])
            scores = _scores(samples, predictions, folds)
            found = {name: RegressionView(name, 0.0, note=why) for name, why in reasons.items()}
            for i, (name, view) in enumerate(candidates.items()):
                used = {"model": view} if weights[i] > 0 else {"note": "weight 0"}
                found[name] = RegressionView(name, float(weights[i]), scores[i], seconds[i], **used)
            self.views_ = [found[name] for name in names]
            pooled = _pooled_out_of_fold(samples, predictions, folds)
            outputs = np.full(shape, np.nan)
            outputs[kept] = (self.target_mean_ + self.target_scale_ * pooled).reshape(
                -1, *shape[1:]
            )
            self.out_of_fold_prediction_ = outputs
        return self

    def predict(self, X: ArrayLike) -> Labels:
        """Predict targets.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            Samples, with missing entries only if `fit` had some.

        Returns
        -------
        (n,) or (n, q) array of float64
        """
        check_is_fitted(self, "views_")
        rows = validate_columns(self, X, reset=False, **_OPTIONS)
        outputs = np.zeros((len(rows), len(self.target_mean_)))
        for start in range(0, len(rows), _SAMPLES_AT_ONCE):
            part = slice(start, start + _SAMPLES_AT_ONCE)
            table = self._table(rows[part])
            for view in self.views_:
                if view.model is not None:
                    outputs[part] += view.weight * self._clipped(view.model.predict(table))
        outputs = self.target_mean_ + self.target_scale_ * outputs
        return outputs.reshape(len(rows), *self.out_of_fold_prediction_.shape[1:])

    def _view_names(self) -> list[str]:
        """The views to fit, in the order of `VIEWS`."""
        given = VIEWS if self.views == "auto" else self.views
        names = [given] if isinstance(given, str) else list(given)
        if not names or len({*names}) < len(names) or not {*names} <= {*VIEWS}:
            raise ValueError(
                f"views: expected 'auto' or different ones of {', '.join(VIEWS)}, "
                f"got {self.views!r}"
            )
        return [name for name in VIEWS if name in names]

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Samples, Codes, tuple[int, ...]]:
        """Check samples; return those with weight, their indices, and the shape of the targets."""
        options = _OPTIONS | {"multi_output": True, "y_numeric": True}
        X, y = validate_columns(self, X, _numbers(y), sample_weight, reset=True, **options)
        shape = y.shape
        X, kept, weight = weighted_rows(X, np.arange(len(X)), sample_weight)
        if len(X) < 2:
            raise ValueError("X: expected at least two samples with weight, got 1 sample")
        weight = np.ones(len(X)) if weight is None else weight / weight.mean()
        outputs = np.asarray(y, dtype=np.float64)[kept].reshape(len(kept), -1)

        given, one_class = X, np.zeros(len(X), dtype=np.int32)
        names = encoded_names(self)
        X, missing, gaussian = completed(X, one_class, weight, self.n_threads, names)
        keep_completion(self, gaussian)
        self.gaps_ = np.flatnonzero(missing.any(axis=0)) if missing is not None else _NO_COLUMNS
        equal = bool((weight == 1.0).all())
        columns = _with_gaps(X, given, self.gaps_)
        self.statistics_ = TableStatistics.fit(columns, None if equal else weight)

        scale = output_deviations(outputs, weight)
        self.target_mean_ = np.average(outputs, axis=0, weights=weight)
        self.target_scale_ = np.where(scale > 0, scale, 1.0)
        targets = np.where(scale > 0, (outputs - self.target_mean_) / self.target_scale_, 0.0)
        self.target_range_ = np.stack([targets.min(axis=0), targets.max(axis=0)])
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        table = self.statistics_.table(columns, self.n_threads)
        return Samples(table, targets, weight, seed), kept, shape

    def _table(self, X: Any) -> Table:
        """Columns of new samples, completed and clipped to their ranges in `fit`."""
        filled = complete(self, X)
        columns = _with_gaps(filled, X, self.gaps_)
        low, high = self.statistics_.quantiles[[0, -1]]
        return self.statistics_.table(np.clip(columns, low, high), self.n_threads)

    def _clipped(self, prediction: _Array) -> _Array:
        """Standardised outputs within the range of the training targets."""
        return np.clip(prediction, *self.target_range_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def mixture_weights(predictions: _Array, targets: _Array, share: _Array) -> _Array:
    """Nonnegative weights (v,) of sum 1, with the least squared error of the weighted mean.

    A small ridge pulls the weights to equal ones; weights below 1% become 0.

    Parameters
    ----------
    predictions : (v, n, q) array
        Out-of-fold predictions of each view.
    targets : (n, q) array
    share : (n,) array
        Weights of the samples, of sum 1.
    """
    count = len(predictions)
    root = np.sqrt(share / targets.shape[1])[:, None]
    columns = (root * predictions).reshape(count, -1).T
    aim = (root * targets).ravel()
    error = float(((columns - aim[:, None]) ** 2).sum(axis=0).min())
    pull = np.sqrt(_PULL * max(error, 1e-6 * float(aim @ aim), 1e-12))
    total = 1e3 * max(float(np.linalg.norm(aim)), 1e-3)  # heavy enough for a sum of 1
    matrix = np.vstack([columns, pull * np.eye(count), np.full((1, count), total)])
    weights = nnls(matrix, np.concatenate([aim, np.full(count, pull / count), [total]]))[0]
    weights[weights < _MIN_WEIGHT * weights.sum()] = 0.0
    result: _Array = weights / weights.sum()
    return result


def _weights(samples: Samples, predictions: _Array, held: Sequence[Codes]) -> _Array:
    """Weights of the views by the held-out samples of some folds."""
    rows = np.concatenate(held)
    share = samples.weight[rows] / samples.weight[rows].sum()
    return mixture_weights(predictions[:, rows], samples.targets[rows], share)


def _pooled_out_of_fold(
    samples: Samples, predictions: _Array, folds: Sequence[tuple[Codes, Codes]]
) -> _Array:
    """Standardised predictions (n, q) with the weights of the other folds, or of the only one."""
    pooled = np.full(samples.targets.shape, np.nan)
    for _, held in folds:
        others = [other for _, other in folds if other is not held] or [held]
        weights = _weights(samples, predictions, others)
        pooled[held] = np.einsum("v,vnq->nq", weights, predictions[:, held])
    return pooled


def _scores(
    samples: Samples, predictions: _Array, folds: Sequence[tuple[Codes, Codes]]
) -> list[float]:
    """R^2 of each view's out-of-fold predictions."""
    rows = np.concatenate([held for _, held in folds])
    targets, weight = samples.targets[rows], samples.weight[rows]
    if len(rows) < 2:
        return [np.nan] * len(predictions)
    return [float(r2_score(targets, one[rows], sample_weight=weight)) for one in predictions]


def _draw_folds(n: int, seed: int) -> list[tuple[Codes, Codes]]:
    """Samples to train on and to hold out; one fold of at most 5,000 samples where n is large."""
    order = np.random.RandomState(seed).permutation(n)
    count = next((folds for most, folds in _FOLDS if n <= most), 1)
    if count == 1:
        return [(np.sort(order[_MAX_HELD:]), np.sort(order[:_MAX_HELD]))]
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % count
    parts = [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(count)]
    return [(train, held) for train, held in parts if len(train) and len(held)]


def _with_gaps(filled: Any, X: Any, gaps: NDArray[np.intp]) -> _Array:
    """Completed columns, and indicators of the missing entries of the columns `gaps`."""
    return np.hstack([filled, np.isnan(X[:, gaps])]).astype(np.float64, copy=False)


def _numbers(y: Any) -> Any:
    """Return targets as given; raise ValueError for text that is not numbers."""
    given = np.asarray(y) if isinstance(y, np.ndarray | list | tuple) else None
    if given is not None and given.dtype.kind in "US":
        try:
            given.astype(np.float64)
        except ValueError:
            raise ValueError(f"y: expected numbers, got {show(y)}") from None
    return y

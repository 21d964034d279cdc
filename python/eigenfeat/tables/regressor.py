"""Regression of tables: a weighted mean of several views' predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls
from sklearn.base import MultiOutputMixin, RegressorMixin, is_classifier
from sklearn.metrics import r2_score
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import Codes, Labels, Rows, Weights
from eigenfeat._base.validation import FLOATS, check_number, show
from eigenfeat.moments.columns import deviations
from eigenfeat.samples.blocks import RowBlocks, is_collection
from eigenfeat.samples.estimator import (
    encoded_names,
    given_blocks,
    keep_completion,
    keep_source,
    read_blocks,
    unchanged_on_error,
    validate_columns,
    with_steps,
)
from eigenfeat.samples.labelled import MemorySamples, weighted_rows, weights_of_mean_1
from eigenfeat.samples.out_of_core import over_blocks
from eigenfeat.tables.estimator import TableEstimator, prior_weights, table_of
from eigenfeat.tables.intervals import ResidualSpread
from eigenfeat.tables.regression_views import VIEWS, RegressorView, reason_against
from eigenfeat.tables.representations import Table
from eigenfeat.tables.views import Samples

__all__ = ["TableRegressor"]

_Array = NDArray[np.float64]

_OPTIONS: dict[str, Any] = {
    **{"dtype": FLOATS, "order": "C", "ensure_all_finite": "allow-nan"},
    **{"multi_output": True, "y_numeric": True},
}
_MAX_HELD = 5_000  # samples that are held out
# bench/regression.py shows the effect of the pull and of the least weight.
_PULL = 30.0  # strength of the pull of views' weights to their prior, a number of samples
_FEW_SAMPLES = 100  # below, the pull is stronger, and columns and predictions may reach further
_REACH, _REACH_OF_FEW = 1.0, 2.0  # standard deviations beyond the range of the samples
_MIN_WEIGHT = 0.01
_MAX_TARGET = 1e300  # largest magnitude of targets; their sums over samples stay finite


class TableRegressor(MultiOutputMixin, RegressorMixin, TableEstimator):
    """Regression of tables of any kind: a pool of linear views, kernels and trees.

    Use it first for any table with a continuous target: numbers, text, categories and missing
    entries need no preparation, and most tables need no tuning. User guide:
    :doc:`/guide/regression`.

    Each view is a regression on its own representation of the columns. Predictions are weighted
    means of the views' predictions; the nonnegative weights of sum 1 minimise the squared error of
    out-of-fold predictions. Columns and predictions are clipped to one standard deviation beyond
    their ranges in the training samples, two with fewer than 100 samples, so that nothing
    extrapolates further; a target without negative values has no negative predictions.

    Parameters
    ----------
    views : "auto", name or list of names and regressors, default="auto"
        "columns" and "splines" (ridge regressions on the columns and on B-splines of them),
        "gem_ranks" (with GEM features of ranks between bins of the target), "kernel" (a Gaussian
        kernel of the columns), "kernel_learned" (of a learned map of their ranks), "forest" and
        "boosting" (trees), "splines_log" and "boosting_log" (of the logarithms of positive
        targets). "auto": all views that suit the columns and the target. Regressors, such as
        ``LGBMRegressor()``, are views of their own, fitted to standardised targets.
    categorical_features : "from_dtype" or None, default="from_dtype"
        Columns of text and categories in data frames become one-hot. With None, such columns are
        an error.
    time_limit : float or None, default=None
        Seconds of the fit; no further view is tried after 60% of the limit. The first view is
        always tried.
    random_state : int, RandomState or None, default=0
        Seed for folds, landmarks of kernels, and trees.
    n_threads : int or None, default=None
        Number of threads; None means all. Results do not depend on it.
    verbose : int, default=0
        1 prints a line for each view on stderr.

    Attributes
    ----------
    views_ : list of PooledView
        Name, weight, score and time of each view, and why a view is not used.
    out_of_fold_prediction_ : (n,) or (n, q) array
        Predictions of the training samples by views and weights without their fold; NaN for samples
        of weight 0 and, with more than 20,000 samples, for those outside the one fold.
    spread_ : ResidualSpread
        Residuals from which `predict_interval` computes intervals.
    target_mean_ : (q,) array
        Means of the outputs.
    target_scale_ : (q,) array
        Standard deviations of the outputs.
    target_range_ : (2, q) array
        Least and largest predictions, in standard deviations from the mean.
    columns_ : TableColumns
        Encoder of categories; only if the training samples have categories.
    completion_ : GaussianImputer
        Gaussian that completes missing numbers; only if the training samples have some.
    n_features_in_ : int
        Number of input features.
    feature_names_in_ : (d,) array of str
        Names of the input features, if they have names.

    See Also
    --------
    TableClassifier : Classes instead of numbers.
    eigenfeat.tables.contributions : Explain a prediction by views and columns.
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
        **TableEstimator._parameter_constraints,
        "views": [StrOptions({"auto", *VIEWS}), list, tuple],
    }
    _views, _own_view, _kind = VIEWS, RegressorView, "regressors with predict"
    _measure = "R²"
    _folds = ((5_000, 5), (20_000, 3))

    @with_steps
    def fit(
        self, X: Rows | RowBlocks, y: ArrayLike | None = None, sample_weight: Weights = None
    ) -> TableRegressor:
        """Fit the views and their weights.

        Parameters
        ----------
        X : (n, d) array-like, data frame or RowBlocks
            Samples; NaN is a missing entry. Rows of files are read into memory.
        y : (n,) or (n, q) array-like
            Finite targets; None with blocks, which contain targets and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples. A constant factor changes nothing.

        Returns
        -------
        TableRegressor
            The estimator itself. An error leaves it unchanged.
        """
        self._validate_params()
        self._asked()  # raises errors of the parameter `views`
        with unchanged_on_error(self):
            samples, kept, shape = self._prepare(X, y, sample_weight)
            held_out, folds = self._fit_pool(samples)
            pooled = self._out_of_fold(held_out, samples, folds)
            self.spread_ = ResidualSpread.fit(samples, pooled)
            outputs = np.full(shape, np.nan)
            outputs[kept] = self._in_units(pooled).reshape(-1, *shape[1:])
            self.out_of_fold_prediction_ = outputs
        return self

    @over_blocks
    def predict(self, X: Rows | RowBlocks) -> Labels:
        """Predict targets.

        Parameters
        ----------
        X : (n, d) array-like, data frame or RowBlocks
            Samples, with missing entries only if the training samples had missing entries. For
            blocks, an iterator over the results of the blocks is returned.

        Returns
        -------
        (n,) or (n, q) array of float64
        """
        table, outputs = self._predicted(X)
        return self._in_units(outputs).reshape(len(table), *self.out_of_fold_prediction_.shape[1:])

    @over_blocks
    def predict_interval(self, X: Rows | RowBlocks, coverage: float = 0.9) -> Labels:
        """Predict intervals that contain the targets of new samples with a given probability.

        The ends are the prediction plus and minus a local spread of the out-of-fold residuals,
        times a quantile of these residuals relative to their spread. Intervals may reach beyond the
        range of the targets in `fit`, but ends of a target without negative values are at least 0.

        Parameters
        ----------
        X : (n, d) array-like, data frame or RowBlocks
            As in `predict`.
        coverage : float, default=0.9
            Share of new samples whose target lies in its interval, between 0 and 1. With fewer than
            ``coverage / (1 - coverage)`` training samples, intervals are unbounded.

        Returns
        -------
        (n, 2) or (n, q, 2) array of float64
            Lower and upper ends. Each of q outputs has the coverage by itself.

        Notes
        -----
        The coverage is an average over all samples, and may differ for some X. The intervals come
        from out-of-fold residuals and the model of all samples. They have the coverage if that
        model errs no more than the models without a fold. No bound holds for every distribution,
        unlike for split conformal prediction [1]_ and, with ``1 - 2 (1 - coverage)``, for the
        models without each fold [2]_. User guide: :doc:`/guide/regression` has measured coverages.
        Sample weights count in the quantile, for new samples distributed like the weighted samples.

        References
        ----------
        .. [1] J. Lei, M. G'Sell, A. Rinaldo, R. Tibshirani and L. Wasserman, "Distribution-free
           predictive inference for regression", JASA 113, 2018.
        .. [2] R. Barber, E. Candès, A. Ramdas and R. Tibshirani, "Predictive inference with the
           jackknife+", Annals of Statistics 49, 2021.
        """
        if not 0.0 < check_number(coverage, "coverage") < 1.0:
            raise ValueError(f"coverage: expected a number between 0 and 1, got {show(coverage)}")
        table, outputs = self._predicted(X)
        half = self.spread_.half_widths(table, outputs, float(coverage))
        ends = [self._in_units(outputs - half), self._in_units(outputs + half)]
        shape = self.out_of_fold_prediction_.shape[1:]
        return np.stack(ends, axis=-1).reshape(len(table), *shape, 2)

    def score(
        self,
        X: Rows | RowBlocks,
        y: ArrayLike | None = None,
        sample_weight: Weights = None,
    ) -> float:
        """R² of the predictions, the mean of several outputs.

        Parameters
        ----------
        X : (n, d) array-like, data frame or RowBlocks
            As in `predict`.
        y : (n,) or (n, q) array-like
            Targets; None with blocks, which contain targets and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

        Returns
        -------
        float
        """
        check_is_fitted(self, "views_")
        blocks = given_blocks(X, y, sample_weight, estimator=None)
        if blocks is None:
            if y is None:
                raise ValueError("y: expected the targets of the samples, got None")
            return float(r2_score(y, self.predict(X), sample_weight=sample_weight))
        parts = [(block.y, block.weight) for block in blocks.prepared_for(self, fitted=True)]
        if any(part is None for part, _ in parts):
            raise ValueError("y: expected targets in all blocks, got a block without them")
        weights = [np.ones(len(part)) if weight is None else weight for part, weight in parts]
        targets = np.concatenate([part for part, _ in parts]).astype(np.float64)
        predicted = np.concatenate(list(self.predict(blocks)))
        return float(r2_score(targets, predicted, sample_weight=np.concatenate(weights)))

    def _predicted(self, X: Any) -> tuple[Table, _Array]:
        """Samples as views read them, and their standardised outputs (n, q)."""
        table = table_of(self, X)
        return table, self._pooled(table)

    def _in_units(self, outputs: _Array) -> _Array:
        """Outputs (n, q) in the units of the targets, at least 0 if no target was negative."""
        scaled: _Array = self.target_mean_ + self.target_scale_ * outputs
        # Targets of the fit without negative values have a least prediction of at least 0.
        return np.maximum(scaled, np.where(self.target_range_[0] >= self._zero, 0.0, -np.inf))

    @property
    def _zero(self) -> _Array:
        """Standardised values (q,) of outputs of 0."""
        zero: _Array = -self.target_mean_ / self.target_scale_
        return zero

    def _takes(self, estimator: Any) -> bool:
        return hasattr(estimator, "predict") and not is_classifier(estimator)

    def _reason_against(self, name: str, names: Sequence[str], samples: Samples) -> str:
        return reason_against(name, names, samples)

    def _reach(self, n: int) -> float:
        return _REACH if n >= _FEW_SAMPLES else _REACH_OF_FEW

    def _one_fold(self, codes: Codes, random: np.random.RandomState) -> tuple[Codes, Codes]:
        order = random.permutation(len(codes))
        return np.sort(order[_MAX_HELD:]), np.sort(order[:_MAX_HELD])

    def _summand(self, outputs: _Array) -> _Array:
        """Standardised outputs within the limits of predictions."""
        return np.clip(outputs, *self.target_range_)

    def _score(self, outputs: _Array, samples: Samples, held: Codes) -> float:
        if len(held) < 2:
            return np.nan
        weight = samples.weight_of(held)
        return float(r2_score(samples.targets[held], self._summand(outputs), sample_weight=weight))

    def _weights(self, held_out: dict[str, _Array], samples: Samples, held: Codes) -> _Array:
        share = samples.share[held] / samples.share[held].sum()
        outputs = np.stack([self._summand(one) for one in held_out.values()])
        return mixture_weights(outputs, samples.targets[held], share, prior_weights(held_out))

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Samples, Codes, tuple[int, ...]]:
        """Check samples; return those with weight, their indices, and the shape of the targets."""
        blocks, whole = read_blocks(self, X, y, sample_weight, in_memory=True)
        if whole is not None:
            X, y, sample_weight = whole.X, whole.y, whole.weight
        X, y = validate_columns(self, X, _numbers(y), sample_weight, reset=True, **_OPTIONS)
        if blocks is not None and whole is not None:
            keep_source(self, blocks, whole)
        X, kept, weight = weighted_rows(X, np.arange(len(X)), sample_weight)
        if len(X) < 2:
            raise ValueError("X: expected at least two samples with weight, got 1 sample")
        weight = np.ones(len(X)) if weight is None else weights_of_mean_1(weight)
        codes = np.zeros(len(X), dtype=np.int32)  # one class for all samples
        rows = MemorySamples.of(X, codes, weight, self.n_threads, encoded_names(self))
        keep_completion(self, rows.completion)
        outputs = np.asarray(y, dtype=np.float64)[kept].reshape(len(kept), -1)
        samples = self._samples(rows, self._standardised(outputs, weight))
        logarithms = np.log(outputs / self.target_scale_) if outputs.min() > 0 else None
        return replace(samples, logarithms=logarithms, zero=self._zero), kept, y.shape

    def _standardised(self, outputs: _Array, weight: _Array) -> _Array:
        """Outputs of mean 0 and variance 1; sets the attributes ``target_*_``."""
        if (most := float(np.abs(outputs).max())) > _MAX_TARGET:
            raise ValueError(f"y: expected magnitudes up to {_MAX_TARGET:g}, got {most:g}")
        scale = deviations(outputs, weight)
        self.target_mean_ = np.average(outputs, axis=0, weights=weight)
        self.target_scale_ = np.where(scale > 0, scale, 1.0)
        targets = np.where(scale > 0, (outputs - self.target_mean_) / self.target_scale_, 0.0)
        beyond = np.where(scale > 0, self._reach(len(outputs)), 0.0)
        lowest, highest = targets.min(axis=0) - beyond, targets.max(axis=0) + beyond
        lowest = np.where(outputs.min(axis=0) < 0, lowest, np.maximum(lowest, self._zero))
        self.target_range_ = np.stack([lowest, highest])
        return targets


def mixture_weights(predictions: _Array, targets: _Array, share: _Array, prior: _Array) -> _Array:
    """Nonnegative weights (v,) of sum 1, with the smallest squared error of the weighted mean.

    A ridge with the weight of thirty samples pulls the weights to shares in proportion to `prior`
    over the square of each view's mean squared error. With n < 100 samples, whose errors say little
    about weights, the ridge is ``(100 / n)**2`` times as strong. Weights below 1% become 0.

    Parameters
    ----------
    predictions : (v, n, q) array
        Out-of-fold predictions of each view.
    targets : (n, q) array
        Standardised outputs.
    share : (n,) array
        Weights of the samples, of sum 1.
    prior : (v,) array
        Prior weights of the views, of sum 1.
    """
    count = len(predictions)
    root = np.sqrt(share / targets.shape[1])[:, None]
    columns = (root * predictions).reshape(count, -1).T
    aim = (root * targets).ravel()
    errors = ((columns - aim[:, None]) ** 2).sum(axis=0)
    least = max(float(errors.min()), 1e-6 * float(aim @ aim), 1e-12)
    # Otherwise the pull of few samples would keep poor views beside a good one.
    prior = prior * (least / np.maximum(errors, least)) ** 2
    prior /= prior.sum()
    inverse = float(share @ share)  # 1 / n for n samples of equal weight
    pull = np.sqrt(_PULL * max(_FEW_SAMPLES * inverse, 1.0) ** 2 * inverse * least)
    total = 1e3 * max(float(np.linalg.norm(aim)), 1e-3)  # heavy enough for a sum of 1
    matrix = np.vstack([columns, pull * np.eye(count), np.full((1, count), total)])
    weights = nnls(matrix, np.concatenate([aim, pull * prior, [total]]))[0]
    weights[weights < _MIN_WEIGHT * weights.sum()] = 0.0
    result: _Array = weights / weights.sum()
    return result


def _numbers(y: Any) -> Any:
    """Return targets as given; raise ValueError for dates, and for text that is not numbers."""
    if is_collection(y) or (not isinstance(y, Sequence) and not hasattr(y, "__array__")):
        return y
    given = np.asarray(y)
    if given.dtype.kind in "mM":
        raise ValueError(
            "y: expected numbers, got dates or durations; convert them first, for example to days"
        )
    for one in given.ravel().tolist() if given.dtype.kind in "USO" else ():
        if isinstance(one, str):
            try:
                float(one)
            except ValueError:
                raise ValueError(
                    f"y: expected numbers, got {show(one)}; use TableClassifier for classes"
                ) from None
    return y

"""GEM for continuous targets: directions between bins of the target, and ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import Labels, RandomState
from eigenfeat._base.validation import FLOATS, show
from eigenfeat.expansion.features import check_powers, expand
from eigenfeat.gem.gem import GEM
from eigenfeat.moments.class_moments import is_rounding
from eigenfeat.samples.completion import complete, completed
from eigenfeat.samples.estimator import (
    BaseEstimator,
    encoded_names,
    keep_completion,
    unchanged_on_error,
    validate_columns,
    weighted_rows,
)
from eigenfeat.samples.targets import supervised_contractions, target_groups
from eigenfeat.tables.views import Table, TableStatistics

__all__ = ["GEMRegressor"]

_ROWS: dict[str, Any] = {"dtype": FLOATS, "order": "C", "ensure_all_finite": "allow-nan"}
_MOST_SPLINES = 1_500
_PENALTIES = np.logspace(-6, 2, 33)
_Array = NDArray[np.float64]


class GEMRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Ridge regression on GEM features of bins of the target, and on columns or their splines.

    Use it for any table with a continuous target; with few samples and a linear target, ridge
    regression is better. Tune `n_bins`, then `n_directions`. User guide: :doc:`/guide/regression`.

    The target, or each of several contractions ``y @ u`` of many outputs, is divided into bins. GEM
    solves for directions along which the mean squares of two bins differ. A ridge regression is
    fitted to powers of both half waves of the projections, together with the columns of X or with
    splines of them.

    Parameters
    ----------
    n_bins : int >= 2, default=5
        Maximum number of bins of a contraction.
    n_directions : int >= 1, default=5
        Maximum number of directions of a pair of bins.
    ridge, threshold, scale, expansion, powers
        As in :class:`GEM`; the default ridge is "auto".
    penalty : float >= 0 or "auto", default="auto"
        Ridge of the regression on standardised features, relative to the weight of all samples.
        "auto": the best of 33 values by the leave-one-out error.
    include_input : bool, default=True
        Whether the regression also uses the columns of X, or their splines.
    n_contractions : int >= 1, default=5
        Maximum number of contractions of a target with several outputs.
    views : {"auto", "gem", "splines"}, default="auto"
        "gem": GEM features of the columns, and the columns. "splines": GEM features of the columns'
        ranks, and B-splines of the columns; outliers and units do not matter. "auto": the one with
        the smaller leave-one-out error.
    categorical_features : "from_dtype" or None, default="from_dtype"
        As in :class:`GEMClassifier`.
    random_state : int, RandomState or None, default=0
        Seed for `scale`.
    n_threads : int or None, default=None
        Number of threads; None means all OpenMP threads. Results do not depend on it.

    Attributes
    ----------
    directions_, offset_ : (d, F) and (F,) arrays
        Projections are ``Z @ directions_ + offset_``, Z the encoded columns or their ranks.
    coef_, intercept_ : (p,) or (q, p) array, float or (q,) array
        Coefficients of the features, in their own units.
    penalty_, view_ : float, {"gem", "splines"}
        The values that were chosen or given.
    loo_error_ : float
        Mean square of the leave-one-out residuals over the variance of the outputs; somewhat too
        small, since the directions are fitted to all samples.
    columns_, completion_ : TableColumns, GaussianRows
        Encoder of text columns, and the Gaussian that missing numbers are completed by; only if
        `fit` had some.
    n_features_in_, feature_names_in_ : int, (d,) array of str
        Number of input features, and their names if they had names.

    Raises
    ------
    SingularDenominatorError
        If a bin's matrix is singular and `ridge` too small.

    See Also
    --------
    GEMClassifier : Classes instead of numbers.
    eigenfeat.rayleigh.SlicedInverseRegression : Directions for a target, by means alone.

    References
    ----------
    N. Karampatziakis and P. Mineiro (ICML 2014), section 5.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from eigenfeat import GEMRegressor
    >>> X, y = make_friedman1(600, noise=0.5, random_state=0)
    >>> GEMRegressor().fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.75
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_bins": [Interval(Integral, 2, None, closed="left")],
        "n_contractions": [Interval(Integral, 1, 10_000, closed="both")],
        "views": [StrOptions({"auto", "gem", "splines"})],
        **{
            name: GEM._parameter_constraints[name]
            for name in ("ridge", "n_directions", "threshold", "scale")
        },
        "expansion": [StrOptions({"half_wave", "shifted", "polynomial", "none"})],
        "powers": ["array-like"],
        "include_input": ["boolean"],
        "penalty": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "categorical_features": [StrOptions({"from_dtype"}), None],
        "random_state": ["random_state"],
        "n_threads": GEM._parameter_constraints["n_threads"],
    }

    def __init__(
        self,
        n_bins: int = 5,
        *,
        n_contractions: int = 5,
        views: str = "auto",
        ridge: float | str = "auto",
        n_directions: int = 5,
        threshold: float | str | None = 1.5,
        scale: str = "columns",
        expansion: str = "shifted",
        powers: Sequence[int] = (1, 2, 3),
        include_input: bool = True,
        penalty: float | str = "auto",
        categorical_features: str | None = "from_dtype",
        random_state: RandomState = 0,
        n_threads: int | None = None,
    ) -> None:
        self.n_bins = n_bins
        self.n_contractions = n_contractions
        self.views = views
        self.ridge = ridge
        self.n_directions = n_directions
        self.threshold = threshold
        self.scale = scale
        self.expansion = expansion
        self.powers = powers
        self.include_input = include_input
        self.penalty = penalty
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> GEMRegressor:
        """Fit directions between bins of the target, then the regression on their expansion.

        Parameters
        ----------
        X : (n, d) array-like
            Samples; NaN is a missing entry.
        y : (n,) or (n, q) array-like
            Finite targets.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples. A constant factor changes nothing.

        Returns
        -------
        GEMRegressor
            The estimator itself. An error leaves it unchanged.
        """
        self._validate_params()
        check_powers(self.powers)
        with unchanged_on_error(self):
            options = _ROWS | {"multi_output": True, "y_numeric": True}
            rows, labels = validate_columns(
                self, X, _numbers(y), sample_weight, reset=True, **options
            )
            rows, labels, weight = weighted_rows(
                rows, np.asarray(labels, dtype=np.float64), sample_weight
            )
            if weight is not None:
                weight = weight / weight.mean()
            one_class = np.zeros(len(rows), dtype=np.int32)
            rows, _, gaussian = completed(
                rows, one_class, weight, self.n_threads, encoded_names(self)
            )
            keep_completion(self, gaussian)
            self._one_output = labels.ndim == 1
            outputs = labels.reshape(len(labels), -1)
            self._fit_views(rows, outputs, weight)
        return self

    def _fit_views(self, rows: Any, outputs: _Array, weight: Any) -> None:
        """Fit the views, and keep the one of the least leave-one-out error."""
        self.__dict__.pop("statistics_", None)
        names, statistics = ["gem"], None
        if self.views != "gem":
            statistics = TableStatistics.fit(np.asarray(rows, dtype=np.float64), weight)
            many = self.views == "auto" and statistics.has_more_splines_than(_MOST_SPLINES)
            if not many and (statistics.scale > 0).any():
                names = ["gem", "splines"] if self.views == "auto" else ["splines"]
        best: dict[str, Any] = {}
        for name in names:
            self.view_ = name
            if statistics is not None and name == "splines":
                self.statistics_ = statistics
            inputs, beside = self._read(rows)
            self.directions_, self.offset_ = self._directions(inputs, outputs, weight)
            self._regress(self._expanded(inputs, beside), outputs, weight)
            if not best or self.loo_error_ < best["loo_error_"]:
                best = dict(vars(self))
        if best["view_"] == "gem":
            self.__dict__.pop("statistics_", None)
        self.__dict__.update(best)

    def _read(self, X: Any) -> tuple[Any, Any]:
        """What the directions are of, and what stands beside their features.

        The columns for both, or ranks and splines of the columns.
        """
        if self.view_ == "gem":
            return X, X
        x = np.asarray(X, dtype=np.float64)
        table: Table = self.statistics_.table(x, self.n_threads)
        return table.ranks.astype(np.float64), table.splines

    def predict(self, X: ArrayLike) -> Labels:
        """Predict targets.

        Parameters
        ----------
        X : (n, d) array-like
            Samples, with missing entries only if `fit` had some.

        Returns
        -------
        (n,) or (n, q) array of float64
        """
        check_is_fitted(self, "coef_")
        rows = validate_columns(self, X, reset=False, **_ROWS)
        rows = complete(getattr(self, "completion_", None), rows, self.n_threads)
        result: NDArray[Any] = self._features(rows) @ self.coef_.T + self.intercept_
        return result

    def _directions(self, X: Any, outputs: _Array, weight: Any) -> tuple[_Array, _Array]:
        """Of all contractions that vary, side by side."""
        d, q = X.shape[1], outputs.shape[1]
        random = check_random_state(self.random_state)
        seed = int(random.randint(2**31 - 1))
        varies = (outputs != outputs[:1]).any(axis=0)
        if not varies.any():
            return np.empty((d, 0)), np.empty(0)
        vectors = None
        if q > 1:
            vectors = supervised_contractions(X, outputs, self.n_contractions, sample_weight=weight)
        groupings = target_groups(
            outputs, self.n_bins, self.n_contractions, seed,
            sample_weight=weight, contractions=vectors,
        )  # fmt: skip
        result = [self._gem(seed).fit(X, groups, weight) for groups in groupings]
        directions = np.ascontiguousarray(np.hstack([one.directions_ for one in result]))
        return directions, np.concatenate([one.offset_ for one in result])

    def _gem(self, seed: int) -> GEM:
        return GEM(
            ridge=self.ridge,
            n_directions=self.n_directions,
            threshold=self.threshold,
            pairs="all",
            scale=self.scale if self.view_ == "gem" else "none",
            expansion="none",
            random_state=seed,
            n_threads=self.n_threads,
        )

    def _features(self, X: Any) -> _Array:
        return self._expanded(*self._read(X))

    def _expanded(self, inputs: Any, beside: Any) -> _Array:
        parts = [beside] if self.include_input else []
        if len(self.offset_):
            parts.append(
                expand(
                    inputs,
                    self.directions_,
                    self.offset_,
                    expansion=self.expansion,
                    powers=check_powers(self.powers),
                    n_threads=self.n_threads,
                )
            )
        return np.hstack([np.empty((len(inputs), 0)), *parts]).astype(np.float64, copy=False)

    def _regress(self, features: _Array, outputs: _Array, weight: Any) -> None:
        """Fit a weighted ridge regression; leave-one-out omits the whole weight of a sample."""
        weight = np.ones(len(features)) if weight is None else weight
        share = weight / weight.sum()
        centre, middle = share @ features, share @ outputs
        size = np.sqrt(share @ (features - centre) ** 2)
        largest = np.abs(features).max(axis=0, initial=0.0)
        size = np.where(is_rounding(size, largest, len(features)), np.inf, size)
        rows, targets = (features - centre) / size, outputs - middle
        basis, values, scores = _decomposed(rows, share)
        sums = (scores.T * share) @ targets
        variance = share @ targets**2
        worth = np.divide(1.0, variance, out=np.zeros_like(variance), where=variance > 0)

        def error(penalty: float) -> float:
            fitted = scores @ (sums / (values + penalty)[:, None])
            leverage = share * (1.0 + scores**2 @ (1.0 / (values + penalty)))
            left = (targets - fitted) / np.maximum(1.0 - leverage, 1e-10)[:, None]
            return float(share @ left**2 @ worth) / max(1, int(np.count_nonzero(worth)))

        if isinstance(self.penalty, str):
            errors = [error(p) for p in _PENALTIES.tolist()]
            self.penalty_ = float(_PENALTIES[int(np.argmin(errors))])
        else:
            self.penalty_ = float(self.penalty)
        self.loo_error_ = error(self.penalty_)
        coef = (basis @ (sums / (values + self.penalty_)[:, None])).T / size
        intercept = middle - coef @ centre
        self.coef_ = coef[0] if self._one_output else coef
        self.intercept_ = float(intercept[0]) if self._one_output else intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _decomposed(rows: _Array, share: _Array) -> tuple[_Array, _Array, _Array]:
    """Eigenvectors (p, r) and values (r,) of the weighted Gram matrix, and the rows' scores (n, r).

    From the smaller one of the two Gram matrices; without the null space.
    """
    n, p = rows.shape
    if p == 0:
        return np.empty((0, 0)), np.empty(0), np.empty((n, 0))
    weighted = rows * np.sqrt(share)[:, None]
    gram = weighted.T @ weighted if p <= n else weighted @ weighted.T
    values, vectors = np.linalg.eigh(gram)
    nonzero = values > max(n, p) * np.finfo(np.float64).eps * max(float(values[-1]), 1e-300)
    values, vectors = values[nonzero], vectors[:, nonzero]
    basis = vectors if p <= n else weighted.T @ vectors / np.sqrt(values)
    return basis, values, rows @ basis


def _numbers(y: Any) -> Any:
    """Targets as they came, unless they are text that is no numbers; all else is checked later."""
    given = np.asarray(y) if isinstance(y, np.ndarray | list | tuple) else None
    if given is not None and given.dtype.kind in "US":
        try:
            given.astype(np.float64)
        except ValueError:
            raise ValueError(f"y: expected numbers, got {show(y)}") from None
    return y

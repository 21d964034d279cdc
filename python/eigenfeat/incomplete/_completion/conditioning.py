"""Base class of completions: estimates of Gaussians, and what users ask of them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.saved import fits
from eigenfeat.incomplete._completion.affine import affine_of
from eigenfeat.incomplete._completion.covariance import class_gaussians
from eigenfeat.incomplete._completion.expectation import fit_incomplete
from eigenfeat.incomplete._completion.mixture import GaussianMixture
from eigenfeat.incomplete._series.steps import ascending_steps
from eigenfeat.rows.estimator import BaseEstimator, validate_data

if TYPE_CHECKING:
    from eigenfeat.incomplete._completion.conditional import Conditional, PrefixConditional

__all__ = ["Completion"]

_Array = NDArray[np.float64]


class Completion(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """What completions share: a fitted one is the Gaussian mixture `mixture_`."""

    _saved: ClassVar[dict[str, str]] = {"mixture_": "of GaussianMixture"}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "shrinkage": [Interval(Real, 0, 1, closed="both"), StrOptions({"ledoit-wolf"})],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    _TRAINING: ClassVar[dict[str, Any]] = {
        "dtype": np.float64,
        "order": "C",
        "ensure_all_finite": "allow-nan",
        "ensure_min_samples": 2,
    }

    shrinkage: Any
    ridge: float
    n_threads: int | None
    max_iter: int
    tol: float
    n_features_in_: int
    mixture_: GaussianMixture
    n_iter_: int
    log_likelihoods_: _Array

    def __init__(
        self,
        shrinkage: float | str = "ledoit-wolf",
        ridge: float = 1e-6,
        n_threads: int | None = None,
        *,
        max_iter: int = 200,
        tol: float = 1e-4,
    ) -> None:
        self.shrinkage = shrinkage
        self.ridge = ridge
        self.n_threads = n_threads
        self.max_iter = max_iter
        self.tol = tol

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Fill missing entries with their conditional means.

        Parameters
        ----------
        X : (n, d) array-like
            Rows; NaN is missing.

        Returns
        -------
        (n, d) array
            Completed rows; known entries are unchanged.
        """
        rows = self._rows(X)
        affine = affine_of(None, self.n_features_in_)
        filled = self.mixture_.condition(rows, affine, False, n_threads=self.n_threads).mean
        return np.asarray(np.where(np.isnan(rows), filled, rows))

    def condition(
        self, X: ArrayLike, *, features: BaseEstimator | None = None, covariance: bool = False
    ) -> Conditional:
        """Return conditional distributions of complete rows, or of linear features of them.

        One Cholesky factor serves all rows of which only the last entries are missing; every other
        pattern needs its own factor, which is kept for later calls.

        Parameters
        ----------
        X : (n, d) array-like
            Rows; NaN is missing. Any entries may be missing.
        features : fitted transformer or None, default=None
            An affine map of the rows, such as one with ``components_`` and ``mean_``. None: the
            rows themselves.
        covariance : bool, default=False
            Whether to return full covariances in addition to the variances.

        Returns
        -------
        Conditional
            Means, variances and, if requested, covariances.

        Raises
        ------
        ValueError
            If rows have another number of columns or infinite entries, or features are not affine.
        """
        rows = self._rows(X)
        affine = affine_of(features, self.n_features_in_)
        return self.mixture_.condition(rows, affine, covariance, n_threads=self.n_threads)

    def condition_prefixes(
        self,
        X: ArrayLike,
        steps: ArrayLike | None = None,
        *,
        features: BaseEstimator | None = None,
        covariance: bool = False,
    ) -> PrefixConditional:
        """Return conditional distributions of every row after each of several numbers of samples.

        Prefixes are nested: one Cholesky factor serves all of them, and each further sample costs
        O(d + ell) for each row.

        Parameters
        ----------
        X : (n, d) array-like
            Rows, known at least as far as the largest of `steps`; later entries may be NaN.
        steps : ascending integers in 0..d, or None
            Numbers of known leading entries. None: 1, 2, ..., d.
        features, covariance
            As in `condition`.

        Returns
        -------
        PrefixConditional
            Means of every row and step; variances and covariances of every step.

        Raises
        ------
        ValueError
            If steps are out of range, or a required entry is missing.
        """
        rows = self._rows(X)
        at = ascending_steps(steps, self.n_features_in_)
        known = rows[:, : at[-1]]
        if np.isnan(known).any():
            i, j = np.argwhere(np.isnan(known))[0]
            raise ValueError(f"X: expected {at[-1]} leading entries, got NaN in row {i}, entry {j}")
        affine = affine_of(features, self.n_features_in_)
        return self.mixture_.after(rows, at, affine, covariance, n_threads=self.n_threads)

    def _keep(self, X: _Array, codes: NDArray[np.int32], weight: _Array | None) -> _Array:
        """Estimate and factorise; return the shrinkages."""
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)  # NaN where all are
        if np.all(low == high):
            raise ValueError("X: expected rows that are not all the same, got one point")
        if np.isnan(X).any():
            how = self.shrinkage, self.ridge, self.max_iter, self.tol, self.n_threads
            found = fit_incomplete(X, codes, *how, weight)
            gaussians, self.log_likelihoods_ = found[:3], found.log_likelihoods
        else:
            estimate = self.shrinkage, self.ridge, self.n_threads
            gaussians = class_gaussians(X, codes, *estimate, weight=weight)
            self.log_likelihoods_ = np.empty(0)
        counts = np.bincount(codes, weight)
        shares = counts / (len(codes) if weight is None else counts.sum())
        self.n_iter_ = max(1, len(self.log_likelihoods_))
        self.mixture_ = GaussianMixture(shares, *gaussians[:2])
        try:
            self.mixture_.prefix_models(n_threads=self.n_threads)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"ridge: expected one that makes the covariance positive definite, got {self.ridge}"
                f" with shrinkage={self.shrinkage!r}"
            ) from None
        return gaussians[2]

    def _rows(self, X: Any) -> _Array:
        check_is_fitted(self)
        options = {"dtype": np.float64, "order": "C", "ensure_all_finite": "allow-nan"}
        return np.asarray(validate_data(self, X, reset=False, **options))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check_loaded(self) -> None:
        fits(self.mixture_.means.shape[1] == self.n_features_in_, "completion.mixture_")

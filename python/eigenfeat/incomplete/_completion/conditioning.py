"""Base class of completions: conditioning of fitted Gaussians on any pattern and on prefixes."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base import threads as _threads
from eigenfeat.incomplete._completion.affine import Affine, affine_of
from eigenfeat.incomplete._completion.chi_squares import moments_of
from eigenfeat.incomplete._completion.conditional import Conditional, PrefixConditional, Spectra
from eigenfeat.incomplete._completion.covariance import class_gaussians
from eigenfeat.incomplete._completion.expectation import fit_incomplete
from eigenfeat.incomplete._completion.patterns import Pattern, PatternCache, patterns_of
from eigenfeat.incomplete._series.steps import ascending_steps
from eigenfeat.regions.prefix_gaussian import PrefixGaussian
from eigenfeat.rows.checked import validate_data
from eigenfeat.rows.estimator import BaseEstimator

__all__ = ["Completion", "spectra_of"]

_Array = NDArray[np.float64]

MANY_FEATURES = 512  # of more, correlations' eigenvalues are bounded and not computed


class Completion(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """What completions share; a fitted one has `_means`, `_covariances` and `_weights`, by part."""

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
    n_iter_: int
    log_likelihoods_: _Array

    def __init__(
        self,
        shrinkage: Any = "ledoit-wolf",
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

    def transform(self, X: Any) -> NDArray[Any]:
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
        filled = self.condition(rows).mean
        return np.asarray(np.where(np.isnan(rows), filled, rows))

    def condition(self, X: Any, *, features: Any = None, covariance: bool = False) -> Conditional:
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
        return self._conditioned(rows, affine_of(features, self.n_features_in_), covariance)

    def condition_prefixes(
        self, X: Any, steps: Any = None, *, features: Any = None, covariance: bool = False
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
        return self._prefixes(rows, at, affine_of(features, self.n_features_in_), covariance)

    def _prefixes(
        self,
        rows: _Array,
        at: NDArray[np.int64],
        affine: Affine | None,
        covariance: bool,
        spectra: bool = False,
    ) -> PrefixConditional:
        models = self._models(Pattern(np.ones(self.n_features_in_, dtype=bool)), affine)
        means, densities = [], []
        for model in models:
            e = model.innovations(rows, int(at[-1]))
            means.append(model.means(e, at))
            if len(models) > 1:
                densities.append(model.log_densities(e, at))
        return PrefixConditional(
            steps=at,
            weights=self._posterior(densities, (len(rows), len(at))),
            means=np.stack(means, axis=2) if len(means) > 1 else means[0][:, :, None],
            variances=np.stack([model.variance_table[at] for model in models], axis=1),
            covariances=_stacked([m.covariances(at) for m in models]) if covariance else None,
            spectra=spectra_of([(models, int(t)) for t in at]) if spectra else None,
            gaussians=[(models, int(t)) for t in at],
        )

    def _conditioned(
        self, rows: _Array, affine: Affine | None, covariance: bool, spectra: bool = False
    ) -> Conditional:
        ell = rows.shape[1] if affine is None else affine.B.shape[1]
        parts = len(self._weights)
        means = np.empty((len(rows), parts, ell))
        weights = np.ones((len(rows), parts))
        pattern = np.empty(len(rows), dtype=np.intp)
        variances: list[_Array] = []
        covariances: list[_Array] = []
        missing: list[int] = []
        kept: list[tuple[list[PrefixGaussian], int]] = []
        for found, members in patterns_of(~np.isnan(rows)):
            t = found.known
            chosen = rows[np.ix_(members, found.order[:t])]
            models = self._models(found, affine)
            innovations = [model.innovations(chosen, t) for model in models]
            pairs = list(zip(models, innovations, strict=True))
            for g, (model, e) in enumerate(pairs):
                means[members, g] = model.means(e, t)[:, 0]
            densities = [model.log_densities(e, t) for model, e in pairs] if parts > 1 else []
            weights[members] = self._posterior(densities, (len(members), 1))[:, 0]
            pattern[members] = len(missing)
            missing.append(found.missing)
            kept.append((models, t))
            variances.append(np.stack([model.variance_table[t] for model in models]))
            if covariance:
                covariances.append(np.stack([model.covariances(t)[0] for model in models]))
        q = len(missing)
        return Conditional(
            weights,
            means,
            np.stack(variances) if q else np.empty((0, parts, ell)),
            np.stack(covariances) if q and covariance else None,
            pattern,
            np.array(missing, dtype=np.intp),
            spectra_of(kept) if q and spectra else None,
            kept,
        )

    def _posterior(self, densities: list[_Array], shape: tuple[int, int]) -> _Array:
        """p(g | z), (n, p, G)."""
        if not densities:
            return np.ones((*shape, 1))
        return self._shares(np.stack(densities, axis=-1))

    def _shares(self, densities: _Array) -> _Array:
        """p(g | z) of log densities, the parts along the last axis."""
        logs = np.log(self._weights) + densities
        shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))

    def _models(self, pattern: Pattern, affine: Affine | None) -> list[PrefixGaussian]:
        key = b"" if affine is None else affine.key
        return self._cache.get(pattern, key, lambda: self._made(pattern, affine))

    def _made(self, pattern: Pattern, affine: Affine | None) -> list[PrefixGaussian]:
        if affine is not None and pattern.is_prefix:
            plain = self._models(pattern, None)
            means = [affine(mean[None])[0] for mean in self._means]
            return [m.with_features(affine.B, y) for m, y in zip(plain, means, strict=True)]
        features = None if affine is None else affine.pair
        threads = _threads.resolve(self.n_threads)
        models = [
            PrefixGaussian.of(mean, R, features, pattern.permutation, threads)
            for mean, R in zip(self._means, self._covariances, strict=True)
        ]
        if any(model is None for model in models):
            raise ValueError(
                f"ridge: expected one that makes the covariance positive definite, got {self.ridge}"
                f" with shrinkage={self.shrinkage!r}"
            )
        return [model for model in models if model is not None]

    def _keep(self, X: _Array, codes: NDArray[np.int32]) -> _Array:
        """Estimate and factorise; return the shrinkages."""
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)  # NaN where all are
        if np.all(low == high):
            raise ValueError("X: expected rows that are not all the same, got one point")
        if np.isnan(X).any():
            limits = self.max_iter, self.tol
            found = fit_incomplete(X, codes, self.shrinkage, self.ridge, *limits, self.n_threads)
            gaussians, self.log_likelihoods_ = found[:3], found.log_likelihoods
        else:
            gaussians = class_gaussians(X, codes, self.shrinkage, self.ridge, self.n_threads)
            self.log_likelihoods_ = np.empty(0)
        self._means, self._covariances = gaussians[:2]
        self.n_iter_ = max(1, len(self.log_likelihoods_))
        self._weights = np.bincount(codes) / len(codes)
        self._cache = PatternCache()
        self._models(Pattern(np.ones(X.shape[1], dtype=bool)), None)
        return gaussians[2]

    def _rows(self, X: Any) -> _Array:
        check_is_fitted(self)
        options = {"dtype": np.float64, "order": "C", "ensure_all_finite": "allow-nan"}
        return np.asarray(validate_data(self, X, reset=False, **options))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def spectra_of(kept: list[tuple[list[PrefixGaussian], int]]) -> Spectra:
    """Of the parts' Gaussians, each after a number of entries."""
    if kept[0][0][0].gains.shape[1] > MANY_FEATURES:
        return Spectra(None, np.stack([[m.correlation_moments(t) for m in ms] for ms, t in kept]))
    values = np.stack([[m.correlation_eigenvalues(t) for m in ms] for ms, t in kept])
    return Spectra(values, moments_of(values))


def _stacked(covariances: list[_Array]) -> _Array:
    """(p, G, ell, ell), without a copy where there is one part."""
    return np.stack(covariances, axis=1) if len(covariances) > 1 else covariances[0][:, None]

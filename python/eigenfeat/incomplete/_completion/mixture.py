"""A mixture of Gaussians, conditioned on any pattern of known entries and on prefixes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base import threads as _threads
from eigenfeat._base.saved import Saved, fits
from eigenfeat.incomplete._completion.chi_squares import moments_of
from eigenfeat.incomplete._completion.conditional import Conditional, PrefixConditional, Spectra
from eigenfeat.incomplete._completion.patterns import Pattern, PatternCache, patterns_of
from eigenfeat.regions.prefix_gaussian import PrefixGaussian

if TYPE_CHECKING:
    from eigenfeat.incomplete._completion.affine import Affine

__all__ = ["GaussianMixture", "spectra_of"]

_Array = NDArray[np.float64]

MANY_FEATURES = 512  # of more, correlations' eigenvalues are bounded and not computed


@dataclass(frozen=True, eq=False)
class GaussianMixture(Saved):
    """A mixture of G Gaussians of d entries; G = 1 is one Gaussian.

    Attributes
    ----------
    weights : (G,) array
    means : (G, d) array
    covariances : (G, d, d) array
    cache : PatternCache
        Factorised Gaussians of patterns that were conditioned on.
    """

    _saved: ClassVar[dict[str, str]] = {
        "weights": "numbers g",
        "means": "numbers g d",
        "covariances": "numbers g d d",
    }

    weights: _Array
    means: _Array
    covariances: _Array
    cache: PatternCache = field(default_factory=PatternCache, repr=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        vars(self)["cache"] = PatternCache()

    def condition(
        self,
        rows: _Array,
        affine: Affine | None,
        covariance: bool,
        spectra: bool = False,
        *,
        n_threads: int | None,
    ) -> Conditional:
        """Distributions of rows (n, d) with NaN for what is missing, or of features of them."""
        ell = rows.shape[1] if affine is None else affine.B.shape[1]
        parts = len(self.weights)
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
            models = self.models(found, affine, n_threads=n_threads)
            innovations = [model.innovations(chosen, t) for model in models]
            pairs = list(zip(models, innovations, strict=True))
            for g, (model, e) in enumerate(pairs):
                means[members, g] = model.means(e, t)[:, 0]
            if parts > 1:
                densities = [model.log_densities(e, t)[:, 0] for model, e in pairs]
                weights[members] = self.posterior(np.stack(densities, axis=-1))
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

    def after(
        self,
        rows: _Array,
        at: NDArray[np.int64],
        affine: Affine | None,
        covariance: bool,
        spectra: bool = False,
        *,
        n_threads: int | None,
    ) -> PrefixConditional:
        """Distributions of rows (n, d), or of features, after each of the numbers of entries."""
        models = self.prefix_models(affine, n_threads=n_threads)
        innovations = [model.innovations(rows, int(at[-1])) for model in models]
        pairs = list(zip(models, innovations, strict=True))
        means = [model.means(e, at) for model, e in pairs]
        weights = np.ones((len(rows), len(at), 1))
        if len(models) > 1:
            densities = [model.log_densities(e, at) for model, e in pairs]
            weights = self.posterior(np.stack(densities, axis=-1))
        return PrefixConditional(
            steps=at,
            weights=weights,
            means=np.stack(means, axis=2) if len(means) > 1 else means[0][:, :, None],
            variances=np.stack([model.variance_table[at] for model in models], axis=1),
            covariances=_stacked([m.covariances(at) for m in models]) if covariance else None,
            spectra=spectra_of([(models, int(t)) for t in at]) if spectra else None,
            gaussians=[(models, int(t)) for t in at],
        )

    def posterior(self, densities: _Array) -> _Array:
        """p(g | z) of log densities of z, the parts along the last axis."""
        logs = np.log(self.weights) + densities
        shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))

    def prefix_models(
        self, affine: Affine | None = None, *, n_threads: int | None
    ) -> list[PrefixGaussian]:
        """The parts, with the columns in their order."""
        every = Pattern(np.ones(self.means.shape[1], dtype=bool))
        return self.models(every, affine, n_threads=n_threads)

    def models(
        self, pattern: Pattern, affine: Affine | None, *, n_threads: int | None
    ) -> list[PrefixGaussian]:
        """The parts, with the columns in a pattern's order, of rows or of features of them.

        Raises
        ------
        numpy.linalg.LinAlgError
            If a covariance is not positive definite.
        """
        key = b"" if affine is None else affine.key
        return self.cache.get(pattern, key, lambda: self._factorised(pattern, affine, n_threads))

    def _factorised(
        self, pattern: Pattern, affine: Affine | None, n_threads: int | None
    ) -> list[PrefixGaussian]:
        if affine is not None and pattern.is_prefix:
            plain = self.models(pattern, None, n_threads=n_threads)
            means = [affine(mean[None])[0] for mean in self.means]
            return [m.with_features(affine.B, y) for m, y in zip(plain, means, strict=True)]
        features = None if affine is None else affine.pair
        threads = _threads.resolve(n_threads)
        models = [
            PrefixGaussian.of(mean, R, features, pattern.permutation, threads)
            for mean, R in zip(self.means, self.covariances, strict=True)
        ]
        if any(model is None for model in models):
            raise np.linalg.LinAlgError(
                "ridge: expected one that makes covariances positive definite, got a smaller one"
            )
        return [model for model in models if model is not None]

    def _check_loaded(self) -> None:
        fits(len(self.weights) and self.weights.min() >= 0, "GaussianMixture.weights")


def spectra_of(kept: list[tuple[list[PrefixGaussian], int]]) -> Spectra:
    """Of the parts' Gaussians, each after a number of entries."""
    if kept[0][0][0].gains.shape[1] > MANY_FEATURES:
        return Spectra(None, np.stack([[m.correlation_moments(t) for m in ms] for ms, t in kept]))
    values = np.stack([[m.correlation_eigenvalues(t) for m in ms] for ms, t in kept])
    return Spectra(values, moments_of(values))


def _stacked(covariances: list[_Array]) -> _Array:
    """(p, G, ell, ell), without a copy where there is one part."""
    return np.stack(covariances, axis=1) if len(covariances) > 1 else covariances[0][:, None]

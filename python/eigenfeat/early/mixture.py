"""Mixtures of Gaussians, conditioned on known entries of samples.

`GaussianMixture.condition` returns the conditional distributions of samples, or of their affine
features, as a `Conditional`; `after` conditions each sample on its first entries, for several
numbers of entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base import threads as _threads
from eigenfeat._base.state import OmitsCaches
from eigenfeat._base.types import Codes
from eigenfeat.early.chi_squares import Spectra, spectra_of
from eigenfeat.early.discriminants import Affine
from eigenfeat.regions.prefix_gaussian import PrefixGaussian

__all__ = ["Conditional", "GaussianMixture"]

_Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
MAX_CACHED_BYTES = 128 * 2**20  # of factorised Gaussians


class Pattern:
    """Pattern of known entries; the known columns come first, in their order."""

    def __init__(self, known: NDArray[np.bool_]) -> None:
        self.known = int(known.sum())
        self.missing = len(known) - self.known
        self.is_prefix = bool(known[: self.known].all())
        self.order = np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)])
        self.key = b"" if self.is_prefix else np.packbits(known).tobytes()

    @property
    def permutation(self) -> NDArray[np.intp] | None:
        """Order of the columns; None if it is unchanged."""
        return None if self.is_prefix else self.order


def patterns_of(known: NDArray[np.bool_]) -> Iterator[tuple[Pattern, NDArray[np.intp]]]:
    """Distinct patterns and the indices of their samples, in the order of first appearance."""
    groups: dict[bytes, list[int]] = {}
    for row, key in enumerate(np.packbits(known, axis=1)):
        groups.setdefault(key.tobytes(), []).append(row)
    for rows in groups.values():
        yield Pattern(known[rows[0]]), np.array(rows, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Conditional:
    """Conditional distributions of n samples: each a Gaussian, or a mixture of G Gaussians.

    Samples with equal patterns of missing entries share covariances: sample i has the covariances
    at ``pattern[i]``.

    Attributes
    ----------
    weights : (n, G) array
        p(g | z); ones for a single Gaussian, G = 1.
    means : (n, G, ell) array
        Conditional means.
    variances : (q, G, ell) array
        Diagonals of the covariances.
    covariances : (q, G, ell, ell) array or None
        Conditional covariances, if requested.
    pattern : (n,) array of int
        Index of the pattern of missing entries of each sample.
    missing : (q,) array of int
        Number of missing entries in each pattern.
    spectra : Spectra or None
        Spectra of the correlations, if the rule needs them.
    gaussians : list or None
        For each pattern, the factorised Gaussians of the parts and the number of known entries,
        which come first; for drawing completions.
    """

    weights: _Array
    means: _Array
    variances: _Array
    covariances: _Array | None
    pattern: NDArray[np.intp]
    missing: NDArray[np.intp]
    spectra: Spectra | None = None
    gaussians: list[tuple[list[PrefixGaussian], int]] | None = None

    def take(self, rows: Codes) -> Conditional:
        """Select samples by index."""
        return replace(
            self,
            weights=self.weights[rows],
            means=self.means[rows],
            pattern=self.pattern[rows],
        )

    def part(self, g: int, rows: Codes) -> Conditional:
        """Part g of the mixture, for the samples `rows`."""
        return Conditional(
            np.ones((len(rows), 1)),
            self.means[rows, g : g + 1],
            self.variances[:, g : g + 1],
            None if self.covariances is None else self.covariances[:, g : g + 1],
            self.pattern[rows],
            self.missing,
            None if self.spectra is None else self.spectra.part(g),
        )

    @property
    def mean(self) -> _Array:
        """Conditional means (n, ell), E[Y | z]."""
        if self.means.shape[1] == 1:
            return self.means[:, 0]
        return np.asarray(np.einsum("ng,ngi->ni", self.weights, self.means))

    @property
    def variance(self) -> _Array:
        """Conditional variances (n, ell), including variances between the parts of a mixture."""
        within = self.variances[self.pattern]
        if self.means.shape[1] == 1:
            return within[:, 0]
        mean = self.mean[:, None]
        apart = self.means - mean
        # Known entries have no variance; means of the parts differ by rounding errors only.
        apart[np.abs(apart) <= 8 * apart.shape[1] * _EPS * np.abs(mean)] = 0.0
        return np.asarray(np.einsum("ng,ngi->ni", self.weights, within + apart**2))

    @property
    def covariance(self) -> _Array:
        """Conditional covariances (n, ell, ell) (Parrish 2012, Appendix C)."""
        if self.covariances is None:
            raise ValueError("covariance: expected requested covariances, got none")
        within = self.covariances[self.pattern]
        if self.means.shape[1] == 1:
            return within[:, 0]
        apart = self.means - self.mean[:, None]
        between = np.einsum("ng,ngi,ngj->nij", self.weights, apart, apart)
        return np.asarray(np.einsum("ng,ngij->nij", self.weights, within) + between)


@dataclass(frozen=True, eq=False)
class GaussianMixture(OmitsCaches):
    """A mixture of G Gaussians of d entries; G = 1 is one Gaussian.

    `cache` has factorised Gaussians by pattern and features. Threads that compute an entry at the
    same time have equal results.
    """

    _caches = frozenset({"cache"})

    weights: _Array  # (G,)
    means: _Array  # (G, d)
    covariances: _Array  # (G, d, d)
    cache: dict[tuple[bytes, bytes], list[PrefixGaussian]] = field(default_factory=dict, repr=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        vars(self)["cache"] = {}

    def condition(
        self,
        rows: _Array,
        affine: Affine | None,
        covariance: bool,
        spectra: bool = False,
        *,
        n_threads: int | None,
    ) -> Conditional:
        """Conditional distributions of samples (n, d), with NaN for missing, or of features."""
        ell = rows.shape[1] if affine is None else affine.B.shape[1]
        n, parts = len(rows), len(self.weights)
        weights, means = np.empty((n, parts)), np.empty((n, parts, ell))
        pattern = np.empty(n, dtype=np.intp)
        missing: list[int] = []
        gaussians: list[tuple[list[PrefixGaussian], int]] = []
        for entries, members in patterns_of(~np.isnan(rows)):
            t = entries.known
            models = self.models(entries, affine, n_threads=n_threads)
            known = rows[np.ix_(members, entries.order[:t])]
            weight, mean = self._given(models, known, np.array([t]))
            weights[members], means[members] = weight[:, 0], mean[:, 0]
            pattern[members] = len(missing)
            missing.append(entries.missing)
            gaussians.append((models, t))
        variances = [[model.variance_table[t] for model in models] for models, t in gaussians]
        covariances = None
        if covariance and n:
            covariances = np.array([[m.covariances(t)[0] for m in ms] for ms, t in gaussians])
        return Conditional(
            weights,
            means,
            np.array(variances).reshape(-1, parts, ell),
            covariances,
            pattern,
            np.array(missing, dtype=np.intp),
            spectra_of(gaussians) if n and spectra else None,
            gaussians,
        )

    def after(
        self,
        rows: _Array,
        at: NDArray[np.int64],
        models: list[PrefixGaussian],
        covariance: bool,
        spectra: bool = False,
    ) -> Conditional:
        """Condition samples (n, d) on their first entries, for each of p numbers of entries."""
        weights, means = self._given(models, rows, at)
        n, p, parts, ell = means.shape
        return Conditional(
            weights=weights.reshape(n * p, parts),
            means=means.reshape(n * p, parts, ell),
            pattern=np.tile(np.arange(p), n),
            **self.shared_after(at, models, covariance, spectra),
        )

    def shared_after(
        self,
        at: NDArray[np.int64],
        models: list[PrefixGaussian],
        covariance: bool,
        spectra: bool = False,
    ) -> dict[str, Any]:
        """What all samples share after each of p numbers of entries: fields of `Conditional`."""
        gaussians = [(models, int(t)) for t in at]
        return {
            "variances": np.stack([model.variance_table[at] for model in models], axis=1),
            "covariances": np.stack([m.covariances(at) for m in models], axis=1)
            if covariance
            else None,
            "missing": np.asarray(self.means.shape[1] - at, dtype=np.intp),
            "spectra": spectra_of(gaussians) if spectra else None,
            "gaussians": gaussians,
        }

    def _given(
        self, models: list[PrefixGaussian], rows: _Array, at: NDArray[Any]
    ) -> tuple[_Array, _Array]:
        """Weights (n, p, G) and means (n, p, G, ell) of the parts after each of `at` entries."""
        innovations = [model.innovations(rows, int(at[-1])) for model in models]
        pairs = list(zip(models, innovations, strict=True))
        means = np.stack([model.means(e, at) for model, e in pairs], axis=2)
        if len(models) == 1:
            return np.ones(means.shape[:3]), means
        densities = [model.log_densities(e, at) for model, e in pairs]
        return self.posterior(np.stack(densities, axis=-1)), means

    def posterior(self, densities: _Array) -> _Array:
        """p(g | z) from log densities of z; parts are along the last axis."""
        logs = np.log(self.weights) + densities
        shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))

    def prefix_models(
        self, affine: Affine | None = None, *, n_threads: int | None
    ) -> list[PrefixGaussian]:
        """Factorised parts, with the columns in their order."""
        every = Pattern(np.ones(self.means.shape[1], dtype=bool))
        return self.models(every, affine, n_threads=n_threads)

    def models(
        self, pattern: Pattern, affine: Affine | None, *, n_threads: int | None
    ) -> list[PrefixGaussian]:
        """Factorised parts, with the columns in a pattern's order, of samples or their features."""
        key = pattern.key, b"" if affine is None else affine.key
        models = self.cache.get(key)
        if models is None:
            models = self._factorised(pattern, affine, n_threads)
            cached = [model.nbytes for cached in [*self.cache.values()] for model in cached]
            if sum(cached) > MAX_CACHED_BYTES:
                self.cache.clear()
            self.cache[key] = models
        return models

    def _factorised(
        self, pattern: Pattern, affine: Affine | None, n_threads: int | None
    ) -> list[PrefixGaussian]:
        if affine is not None and pattern.is_prefix:
            plain = self.models(pattern, None, n_threads=n_threads)
            means = [affine(mean[None])[0] for mean in self.means]
            return [m.with_features(affine.B, y) for m, y in zip(plain, means, strict=True)]
        features = None if affine is None else (affine.B, affine.b)
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

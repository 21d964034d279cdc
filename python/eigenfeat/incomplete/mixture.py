"""A mixture of Gaussians, conditioned on any pattern of known entries and on prefixes.

`GaussianMixture.condition` returns the conditional distributions of samples, or of affine features
of them, as a `Conditional`; `after` those of every sample after several numbers of entries.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base import threads as _threads
from eigenfeat._base.lazy import ProcessLock, cached_property
from eigenfeat._base.saved import Saved, fits
from eigenfeat._base.types import Codes
from eigenfeat._base.validation import show
from eigenfeat.regions.prefix_gaussian import PrefixGaussian

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = [
    "Affine",
    "Conditional",
    "GaussianMixture",
    "Pattern",
    "PrefixConditional",
    "Spectra",
    "affine_of",
    "moments_of",
    "patterns_of",
    "spectra_of",
]

_Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Affine(Saved):
    """``y = B^T x + b``, B (d, ell), b (ell,)."""

    _saved: ClassVar[dict[str, str]] = {"B": "numbers d w", "b": "numbers w"}

    B: _Array
    b: _Array

    @cached_property
    def key(self) -> bytes:
        """The same for the same map."""
        return blake2b(self.B.tobytes() + self.b.tobytes(), digest_size=16).digest()

    @property
    def pair(self) -> tuple[_Array, _Array]:
        """Both arrays."""
        return self.B, self.b

    def __call__(self, X: _Array) -> _Array:
        """Images of samples (n, d)."""
        return np.asarray(np.einsum("ni,ij->nj", X, self.B, optimize=False) + self.b)

    def then(self, slopes: _Array, offsets: _Array) -> Affine:
        """``slopes @ y + offsets`` as a map of x; slopes (k, ell), offsets (k,)."""
        B = np.einsum("ij,kj->ik", self.B, slopes)
        return Affine(np.ascontiguousarray(B), np.einsum("kj,j->k", slopes, self.b) + offsets)


def affine_of(features: BaseEstimator | None, n_columns: int) -> Affine | None:
    """The map of a fitted transformer; None stays None.

    Linear reductions are read from ``components_``, ``mean_`` and ``scale_``, or from
    ``directions_`` and ``offset_``; anything else is asked for the images of 0 and of the unit
    vectors, and is refused if it is not affine.
    """
    if features is None:
        return None
    if not hasattr(features, "transform"):
        raise ValueError(f"features: expected a fitted transformer or None, got {show(features)}")
    if hasattr(features, "components_") and not getattr(features, "whiten", False):
        components = np.asarray(features.components_, dtype=np.float64)
        mean = getattr(features, "mean_", None)
        mean = np.zeros(n_columns) if mean is None else np.asarray(mean, dtype=np.float64)
        scale = getattr(features, "scale_", None)
        components = components if scale is None else components / scale
        affine = _of(components.T, -np.einsum("ji,i->j", components, mean))
    elif hasattr(features, "directions_") and hasattr(features, "offset_"):
        affine = _of(features.directions_, features.offset_)
    else:
        affine = _probed(features, n_columns)
    if affine.B.shape[0] != n_columns:
        raise ValueError(
            f"features: expected a map of {n_columns} columns, got {affine.B.shape[0]}"
        )
    return _checked(features, affine)


def _of(B: Any, b: Any) -> Affine:
    return Affine(np.ascontiguousarray(B, dtype=np.float64), np.asarray(b, dtype=np.float64))


def _probed(features: Any, n_columns: int) -> Affine:
    origin = np.asarray(features.transform(np.zeros((1, n_columns))), dtype=np.float64)
    images = np.asarray(features.transform(np.eye(n_columns)), dtype=np.float64)
    return _of(images - origin, origin[0])


def _checked(features: Any, affine: Affine) -> Affine:
    """Compare the map with the transformer at points that are nothing special."""
    d = len(affine.B)
    points = np.sin(np.arange(3 * d, dtype=float).reshape(3, d) * 1.3 + 0.7)
    scale = np.abs(points) @ np.abs(affine.B) + np.abs(affine.b)
    error = np.abs(np.asarray(features.transform(points), dtype=np.float64) - affine(points))
    if not np.all(error <= 1e-5 * scale + 1e-300):
        raise ValueError(f"features: expected an affine map of the rows, got {show(features)}")
    return affine


class Pattern:
    """Which entries are known: the known first, each part in the order of the columns."""

    def __init__(self, known: NDArray[np.bool_]) -> None:
        self.known = int(known.sum())
        self.missing = len(known) - self.known
        self.is_prefix = bool(known[: self.known].all())
        self.order = np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)])
        self.key = b"" if self.is_prefix else np.packbits(known).tobytes()

    @property
    def permutation(self) -> NDArray[np.intp] | None:
        """The order of the columns, or None where it is theirs."""
        return None if self.is_prefix else self.order


def patterns_of(known: NDArray[np.bool_]) -> Iterator[tuple[Pattern, NDArray[np.intp]]]:
    """Distinct patterns and their sample numbers, in the order of first appearance."""
    groups: dict[bytes, list[int]] = {}
    for row, key in enumerate(np.packbits(known, axis=1)):
        groups.setdefault(key.tobytes(), []).append(row)
    for rows in groups.values():
        yield Pattern(known[rows[0]]), np.array(rows, dtype=np.intp)


class PatternCache:
    """Factorised Gaussians by pattern and features, least recently used out first.

    Copies and pickles start empty.
    """

    LIMIT = 128 * 2**20  # bytes

    def __init__(self) -> None:
        self._models: OrderedDict[tuple[bytes, bytes], list[PrefixGaussian]] = OrderedDict()
        self._bytes = 0
        self._lock = ProcessLock()

    def __len__(self) -> int:
        return len(self._models)

    def __reduce__(self) -> tuple[type[PatternCache], tuple[()]]:
        return PatternCache, ()

    def get(
        self, pattern: Pattern, features: bytes, make: Callable[[], list[PrefixGaussian]]
    ) -> list[PrefixGaussian]:
        """What `make` returns, or returned before for the same pattern and key of features."""
        key = (pattern.key, features)
        with self._lock():
            if key in self._models:
                self._models.move_to_end(key)
                return self._models[key]
        models = make()
        with self._lock():
            if key not in self._models:
                self._models[key] = models
                self._bytes += _size(models)
            while self._bytes > self.LIMIT and len(self._models) > 1:
                _, dropped = self._models.popitem(last=False)
                self._bytes -= _size(dropped)
        return models


def _size(models: list[PrefixGaussian]) -> int:
    return sum(model.nbytes for model in models)


@dataclass(frozen=True, eq=False)
class Spectra:
    """Eigenvalues of the correlations given what is known, by pattern and part of a mixture.

    Attributes
    ----------
    values : (q, G, ell) array or None
        Ascending; zeros stand for components without variance. None where there are too many.
    moments : (q, G, 3) array
        Their sum, Euclidean length and largest (or a bound of it).
    """

    values: _Array | None
    moments: _Array

    def part(self, g: int) -> Spectra:
        """Of one part alone."""
        values = None if self.values is None else self.values[:, g : g + 1]
        return Spectra(values, self.moments[:, g : g + 1])


@dataclass(frozen=True, eq=False)
class Conditional:
    """Conditional distributions of n samples: each a Gaussian, or a mixture of G Gaussians.

    Samples with the same entries missing share covariances: those of sample i are at
    ``pattern[i]``.

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
        Spectra of the correlations, where they are needed.
    gaussians : list or None
        For each pattern, the factorised Gaussians of the parts and the number of their leading
        entries that are conditioned on, for drawing completions.
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
        """Return some of the samples."""
        return replace(
            self,
            weights=self.weights[rows],
            means=self.means[rows],
            pattern=self.pattern[rows],
        )

    def part(self, g: int, rows: Codes) -> Conditional:
        """Return one Gaussian of the mixture, for some of the samples."""
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
        """(n, ell): E[Y | z]."""
        if self.means.shape[1] == 1:
            return self.means[:, 0]
        return np.asarray(np.einsum("ng,ngi->ni", self.weights, self.means))

    @property
    def variance(self) -> _Array:
        """(n, ell): the variances of Y given z, including those between a mixture's parts."""
        within = self.variances[self.pattern]
        if self.means.shape[1] == 1:
            return within[:, 0]
        mean = self.mean[:, None]
        apart = self.means - mean
        # Known entries are the same in all parts, and their mean is off by rounding alone.
        apart[np.abs(apart) <= 8 * apart.shape[1] * _EPS * np.abs(mean)] = 0.0
        return np.asarray(np.einsum("ng,ngi->ni", self.weights, within + apart**2))

    @property
    def covariance(self) -> _Array:
        """(n, ell, ell): the covariance of Y given z (Parrish 2012, Appendix C).

        Raises
        ------
        ValueError
            If covariances were not requested.
        """
        if self.covariances is None:
            raise ValueError("covariance: expected covariances that were asked for, got none")
        within = self.covariances[self.pattern]
        return mixed(self.weights, self.means, within)


def mixed(weights: _Array, means: _Array, covariances: _Array) -> _Array:
    """Covariances (n, ell, ell) of mixtures: sum_g p_g (R_g + (m_g - m)(m_g - m)^T)."""
    if means.shape[1] == 1:
        return covariances[:, 0]
    mean = np.einsum("ng,ngi->ni", weights, means)
    apart = means - mean[:, None]
    between = np.einsum("ng,ngi,ngj->nij", weights, apart, apart)
    return np.asarray(np.einsum("ng,ngij->nij", weights, covariances) + between)


@dataclass(frozen=True, eq=False)
class PrefixConditional:
    """Conditional distributions of n samples after each of p numbers of samples.

    Attributes
    ----------
    steps : (p,) array of int
        Numbers of known leading entries.
    weights : (n, p, G) array
        p(g | z_1..t).
    means : (n, p, G, ell) array
    variances : (p, G, ell) array
    covariances : (p, G, ell, ell) array or None
        Conditional covariances, which are the same for all samples.
    spectra : Spectra or None
        Spectra of the correlations, where they are needed.
    gaussians : list or None
        As in `Conditional`, for each step.
    """

    steps: NDArray[np.int64]
    weights: _Array
    means: _Array
    variances: _Array
    covariances: _Array | None
    spectra: Spectra | None = None
    gaussians: list[tuple[list[PrefixGaussian], int]] | None = None

    def at(
        self, k: int, rows: Codes | NDArray[np.bool_] | slice = slice(None), n_columns: int = 0
    ) -> Conditional:
        """Return the distributions after ``steps[k]`` values, for some of the samples."""
        means = np.ascontiguousarray(self.means[rows, k])
        return Conditional(
            weights=self.weights[rows, k],
            means=means,
            variances=self.variances[k : k + 1],
            covariances=None if self.covariances is None else self.covariances[k : k + 1],
            pattern=np.zeros(len(means), dtype=np.intp),
            missing=np.array([n_columns - self.steps[k]], dtype=np.intp),
        )


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
        """Distributions of samples (n, d) with NaN for what is missing, or of features of them."""
        ell = rows.shape[1] if affine is None else affine.B.shape[1]
        parts = len(self.weights)
        means = np.empty((len(rows), parts, ell))
        weights = np.ones((len(rows), parts))
        pattern = np.empty(len(rows), dtype=np.intp)
        variances: list[_Array] = []
        covariances: list[_Array] = []
        missing: list[int] = []
        gaussians: list[tuple[list[PrefixGaussian], int]] = []
        for entries, members in patterns_of(~np.isnan(rows)):
            t = entries.known
            chosen = rows[np.ix_(members, entries.order[:t])]
            models = self.models(entries, affine, n_threads=n_threads)
            innovations = [model.innovations(chosen, t) for model in models]
            pairs = list(zip(models, innovations, strict=True))
            for g, (model, e) in enumerate(pairs):
                means[members, g] = model.means(e, t)[:, 0]
            if parts > 1:
                densities = [model.log_densities(e, t)[:, 0] for model, e in pairs]
                weights[members] = self.posterior(np.stack(densities, axis=-1))
            pattern[members] = len(missing)
            missing.append(entries.missing)
            gaussians.append((models, t))
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
            spectra_of(gaussians) if q and spectra else None,
            gaussians,
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
        """Distributions of samples (n, d), or of features, after each of the numbers of entries."""
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
        """The parts, with the columns in a pattern's order, of samples or of features of them.

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


def moments_of(weights: _Array) -> _Array:
    """(..., 3): the weights' sum, Euclidean length and largest."""
    return np.stack(
        [weights.sum(axis=-1), np.sqrt((weights**2).sum(axis=-1)), weights.max(axis=-1, initial=0)],
        axis=-1,
    )


def spectra_of(gaussians: list[tuple[list[PrefixGaussian], int]]) -> Spectra:
    """Of the parts' Gaussians, each after a number of entries."""
    if gaussians[0][0][0].gains.shape[1] > MANY_FEATURES:
        return Spectra(
            None, np.stack([[m.correlation_moments(t) for m in ms] for ms, t in gaussians])
        )
    values = np.stack([[m.correlation_eigenvalues(t) for m in ms] for ms, t in gaussians])
    return Spectra(values, moments_of(values))


def _stacked(covariances: list[_Array]) -> _Array:
    """(p, G, ell, ell), without a copy where there is one part."""
    return np.stack(covariances, axis=1) if len(covariances) > 1 else covariances[0][:, None]

"""Completion of incomplete samples by the conditional distribution of their missing entries.

`GaussianCompletion` and `MixtureCompletion` estimate a `GaussianMixture` of complete samples.
`GaussianMixture.condition` returns the conditional distributions of samples, or of their affine
features, as a `Conditional`; `after` conditions each sample on its first entries, for several
numbers of entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator as SklearnEstimator
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base import threads as _threads
from eigenfeat._base.state import OmitsCaches
from eigenfeat._base.types import Codes
from eigenfeat._base.validation import show
from eigenfeat.moments.class_moments import ClassMoments, ledoit_wolf
from eigenfeat.regions.prefix_gaussian import PrefixGaussian
from eigenfeat.samples.completion import GaussianImputer, known_entries
from eigenfeat.samples.estimator import BaseEstimator, unchanged_on_error, validate_data

_Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
MAX_CACHED_BYTES = 128 * 2**20  # size of factorised Gaussians above which the cache is cleared


# ---- mixtures of Gaussians


@dataclass(frozen=True, eq=False)
class Affine(OmitsCaches):
    """``y = B^T x + b``, B (d, ell), b (ell,)."""

    B: _Array
    b: _Array

    @cached_property
    def key(self) -> bytes:
        """Hash of the map."""
        return blake2b(self.B.tobytes() + self.b.tobytes(), digest_size=16).digest()

    def __call__(self, X: _Array) -> _Array:
        """Images of samples (n, d)."""
        return np.asarray(np.einsum("ni,ij->nj", X, self.B, optimize=False) + self.b)

    def then(self, slopes: _Array, offsets: _Array) -> Affine:
        """The composition ``slopes @ y + offsets``; slopes (k, ell), offsets (k,)."""
        B = np.einsum("ij,kj->ik", self.B, slopes)
        return Affine(np.ascontiguousarray(B), np.einsum("kj,j->k", slopes, self.b) + offsets)


def affine_of(features: BaseEstimator | None, n_columns: int) -> Affine | None:
    """The affine map of a fitted transformer, from its images of 0 and of the unit vectors.

    None without a transformer. ValueError if the transformer is not affine.
    """
    if features is None:
        return None
    if not hasattr(features, "transform"):
        raise ValueError(f"features: expected a fitted transformer or None, got {show(features)}")
    d = n_columns
    if (width := getattr(features, "n_features_in_", d)) != d:
        raise ValueError(f"features: expected a map of {d} columns, got {width}")
    origin = np.asarray(features.transform(np.zeros((1, d))), dtype=np.float64)
    images = np.asarray(features.transform(np.eye(d)), dtype=np.float64)
    affine = Affine(np.ascontiguousarray(images - origin), origin[0])
    points = np.sin(np.arange(3 * d, dtype=float).reshape(3, d) * 1.3 + 0.7)
    scale = np.abs(points) @ np.abs(affine.B) + np.abs(affine.b)
    error = np.abs(np.asarray(features.transform(points), dtype=np.float64) - affine(points))
    if not np.all(error <= 1e-5 * scale + 1e-300):
        raise ValueError(f"features: expected an affine map of samples, got {show(features)}")
    return affine


class Pattern:
    """Pattern of known entries, with an order of the columns in which known columns come first."""

    def __init__(self, known: NDArray[np.bool_]) -> None:
        self.n_known = int(known.sum())
        self.is_prefix = bool(known[: self.n_known].all())
        self.order = np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)])
        self.key = b"" if self.is_prefix else np.packbits(known).tobytes()


def patterns_of(known: NDArray[np.bool_]) -> Iterator[tuple[Pattern, NDArray[np.intp]]]:
    """Distinct patterns and the indices of their samples, in the order of first appearance."""
    groups: dict[bytes, list[int]] = {}
    for row, key in enumerate(np.packbits(known, axis=1)):
        groups.setdefault(key.tobytes(), []).append(row)
    for rows in groups.values():
        yield Pattern(known[rows[0]]), np.array(rows, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class PatternGaussians:
    """Conditional Gaussians of the parts of a mixture, for each of q patterns of known entries.

    An item of `groups` describes p patterns that share an order of the entries, in which known
    entries come first: the parts, factorised in this order, and the numbers (p,) of known entries.
    """

    groups: list[tuple[list[PrefixGaussian], NDArray[np.int64]]]

    @cached_property
    def items(self) -> list[tuple[list[PrefixGaussian], int]]:
        """For each pattern, the factorised parts and the number of known entries."""
        return [(models, int(t)) for models, n_known in self.groups for t in n_known]

    @cached_property
    def missing(self) -> NDArray[np.intp]:
        """Numbers (q,) of missing entries."""
        return np.array([len(models[0].mean) - t for models, t in self.items], dtype=np.intp)

    @cached_property
    def variances(self) -> _Array:
        """Conditional variances (q, G, ell)."""
        tables = [[m.variance_table[n_known] for m in models] for models, n_known in self.groups]
        return np.concatenate([np.stack(table, axis=1) for table in tables])

    @cached_property
    def covariances(self) -> _Array:
        """Conditional covariances (q, G, ell, ell)."""
        tables = [[m.covariances(n_known) for m in models] for models, n_known in self.groups]
        return np.concatenate([np.stack(table, axis=1) for table in tables])

    @cached_property
    def spectra(self) -> _Array:
        """Spectrum of the conditional correlation of the first part, for each pattern."""
        return np.array([models[0].correlation_spectrum(t) for models, t in self.items])

    @cached_property
    def parts(self) -> list[PatternGaussians]:
        """Conditional Gaussians of each part alone."""
        n_parts = len(self.groups[0][0])
        return [
            PatternGaussians([(models[g : g + 1], n_known) for models, n_known in self.groups])
            for g in range(n_parts)
        ]


@dataclass(frozen=True, eq=False)
class Conditional:
    """Conditional distributions of n samples: each a Gaussian, or a mixture of G Gaussians.

    Attributes
    ----------
    weights : (n, G) array
        p(g | z); ones for a single Gaussian, G = 1.
    means : (n, G, ell) array
        Conditional means.
    pattern : (n,) array of int
        Index of the pattern of missing entries of each sample.
    patterns : PatternGaussians
        Gaussians of each pattern, whose covariances all samples of the pattern share.
    """

    weights: _Array
    means: _Array
    pattern: NDArray[np.intp]
    patterns: PatternGaussians

    def take(self, rows: Codes) -> Conditional:
        """Select samples.

        Parameters
        ----------
        rows : (m,) array of int
            Indices of the samples.

        Returns
        -------
        Conditional
            The distributions of these samples.
        """
        return Conditional(self.weights[rows], self.means[rows], self.pattern[rows], self.patterns)

    def part(self, g: int, rows: Codes) -> Conditional:
        """Select one part of the mixture for some samples.

        Parameters
        ----------
        g : int
            Index of the part.
        rows : (m,) array of int
            Indices of the samples.

        Returns
        -------
        Conditional
            One Gaussian for each of these samples.
        """
        means = self.means[rows, g : g + 1]
        return Conditional(
            np.ones((len(rows), 1)), means, self.pattern[rows], self.patterns.parts[g]
        )

    @property
    def missing(self) -> NDArray[np.intp]:
        """Numbers (n,) of missing entries."""
        return self.patterns.missing[self.pattern]

    @property
    def mean(self) -> _Array:
        """Conditional means (n, ell), E[Y | z]."""
        if self.means.shape[1] == 1:
            return self.means[:, 0]
        return np.asarray(np.einsum("ng,ngi->ni", self.weights, self.means))

    @property
    def variance(self) -> _Array:
        """Conditional variances (n, ell), including variances between the parts of a mixture."""
        within = self.patterns.variances[self.pattern]
        if self.means.shape[1] == 1:
            return within[:, 0]
        mean = self.mean[:, None]
        difference = self.means - mean
        # Known entries have no variance: their means differ between parts only by rounding errors.
        difference[np.abs(difference) <= 8 * difference.shape[1] * _EPS * np.abs(mean)] = 0.0
        return np.asarray(np.einsum("ng,ngi->ni", self.weights, within + difference**2))

    @property
    def covariance(self) -> _Array:
        """Conditional covariances (n, ell, ell) (Parrish 2012, Appendix C)."""
        within = self.patterns.covariances[self.pattern]
        if self.means.shape[1] == 1:
            return within[:, 0]
        difference = self.means - self.mean[:, None]
        between = np.einsum("ng,ngi,ngj->nij", self.weights, difference, difference)
        return np.asarray(np.einsum("ng,ngij->nij", self.weights, within) + between)


@dataclass(frozen=True, eq=False)
class GaussianMixture(OmitsCaches):
    """A mixture of G Gaussians of d entries; G = 1 is one Gaussian.

    The weights of the first `n_fixed` parts do not depend on the known entries. `cache` has
    factorised Gaussians by pattern and features. It needs no lock: threads that compute an entry
    at the same time have equal results.
    """

    _caches = frozenset({"cache"})

    weights: _Array  # (G,)
    means: _Array  # (G, d)
    covariances: _Array  # (G, d, d)
    n_fixed: int = 0
    cache: dict[tuple[bytes, bytes], list[PrefixGaussian]] = field(default_factory=dict, repr=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        vars(self)["cache"] = {}

    def condition(
        self, rows: _Array, affine: Affine | None, *, n_threads: int | None
    ) -> Conditional:
        """Conditional distributions of samples (n, d), or of their features; NaN is missing."""
        ell = rows.shape[1] if affine is None else affine.B.shape[1]
        n, parts = len(rows), len(self.weights)
        weights, means = np.empty((n, parts)), np.empty((n, parts, ell))
        pattern = np.empty(n, dtype=np.intp)
        groups: list[tuple[list[PrefixGaussian], NDArray[np.int64]]] = []
        for entries, members in patterns_of(~np.isnan(rows)):
            models = self.models(entries, affine, n_threads)
            n_known = np.array([entries.n_known])
            weight, mean = self._given(models, rows[np.ix_(members, entries.order)], n_known)
            weights[members], means[members] = weight[:, 0], mean[:, 0]
            pattern[members] = len(groups)
            groups.append((models, n_known))
        return Conditional(weights, means, pattern, PatternGaussians(groups))

    def after(
        self, rows: _Array, n_known: NDArray[np.int64], models: list[PrefixGaussian]
    ) -> Conditional:
        """Condition samples (n, d) on their first entries, for each of p numbers of entries."""
        weights, means = self._given(models, rows, n_known)
        n, p, parts, ell = means.shape
        return Conditional(
            weights.reshape(n * p, parts),
            means.reshape(n * p, parts, ell),
            np.tile(np.arange(p), n),
            PatternGaussians([(models, n_known)]),
        )

    def running(self, statistics: RunningStatistics, rows: Codes) -> Conditional:
        """Condition the series `rows`, whose numbers of entries in `statistics` are equal."""
        densities, known = statistics.log_densities[:, rows].T, statistics.n_known[rows[:1]]
        return Conditional(
            np.ones_like(densities) if len(self.weights) == 1 else self._posterior(densities),
            np.ascontiguousarray(statistics.means[:, rows].swapaxes(0, 1)),
            np.zeros(len(rows), dtype=np.intp),
            PatternGaussians([(statistics.models, known)]),
        )

    def _given(
        self, models: list[PrefixGaussian], rows: _Array, n_known: NDArray[Any]
    ) -> tuple[_Array, _Array]:
        """Weights (n, p, G) and means (n, p, G, ell) of the parts given each number of entries."""
        innovations = [model.innovations(rows, int(n_known[-1])) for model in models]
        pairs = list(zip(models, innovations, strict=True))
        means = np.stack([model.means(e, n_known) for model, e in pairs], axis=2)
        if len(models) == 1:
            return np.ones(means.shape[:3]), means
        densities = np.stack([model.log_densities(e, n_known) for model, e in pairs], axis=-1)
        return self._posterior(densities), means

    def _posterior(self, densities: _Array) -> _Array:
        """Weights (..., G) of the parts, by their log densities of the known entries."""
        n_fixed, weights = self.n_fixed, np.empty_like(densities)
        weights[..., :n_fixed] = self.weights[:n_fixed]
        posterior = softmax(np.log(self.weights[n_fixed:]) + densities[..., n_fixed:], axis=-1)
        weights[..., n_fixed:] = self.weights[n_fixed:].sum() * posterior
        return weights

    def averaged(self, other: GaussianMixture, weight: float) -> GaussianMixture:
        """The average with `other`, a single Gaussian; known entries do not change its `weight`."""
        return GaussianMixture(
            np.append(weight, (1.0 - weight) * self.weights),
            np.concatenate([other.means, self.means]),
            np.concatenate([other.covariances, self.covariances]),
            n_fixed=1,
            # Keep the factors: they take a seventh of the time of a fit with 300 columns.
            cache={key: [*other.cache[key], *models] for key, models in self.cache.items()},
        )

    def prefix_models(
        self, affine: Affine | None = None, *, n_threads: int | None
    ) -> list[PrefixGaussian]:
        """Factorised parts, with the columns in their original order."""
        all_known = Pattern(np.ones(self.means.shape[1], dtype=bool))
        return self.models(all_known, affine, n_threads)

    def models(
        self, pattern: Pattern, affine: Affine | None, n_threads: int | None
    ) -> list[PrefixGaussian]:
        """Factorised parts, with the columns in a pattern's order, of samples or their features."""
        key = pattern.key, b"" if affine is None else affine.key
        models = self.cache.get(key)
        if models is None:
            models = self._factorised(pattern, affine, n_threads)
            if sum(m.nbytes for parts in [*self.cache.values()] for m in parts) > MAX_CACHED_BYTES:
                self.cache.clear()
            self.cache[key] = models
        return models

    def _factorised(
        self, pattern: Pattern, affine: Affine | None, n_threads: int | None
    ) -> list[PrefixGaussian]:
        if affine is None:
            threads = _threads.resolve(n_threads)
            pairs = zip(self.means, self.covariances, strict=True)
            return [PrefixGaussian.of(mean, R, pattern.order, threads) for mean, R in pairs]
        # Factors of prefixes without features are cached; factors of other patterns seldom recur.
        factorised = self.models if pattern.is_prefix else self._factorised
        plain = factorised(pattern, None, n_threads)
        means = affine(self.means)
        return [
            m.with_features(affine.B, y, pattern.order) for m, y in zip(plain, means, strict=True)
        ]


class RunningStatistics:
    """Statistics of n series, updated as their entries arrive, for each part of a mixture.

    Statistics of a series with a missing entry are NaN.

    Attributes
    ----------
    models : list of PrefixGaussian
        The factorised parts.
    n_known : (n,) array of int
        Numbers of first entries that are included.
    means : (G, n, ell) array
        Conditional means of features.
    log_densities : (G, n) array
        Log densities of the known entries, up to a constant that all parts share.
    """

    def __init__(self, models: list[PrefixGaussian], n: int) -> None:
        self.models = models
        self.n_known = np.zeros(n, dtype=np.int64)
        self.means = np.stack([np.tile(model.feature_mean, (n, 1)) for model in models])
        self.log_densities = np.zeros((len(models), n))
        self._innovations = np.zeros((len(models), n, len(models[0].mean)))

    def restart(self, rows: Codes) -> None:
        """Forget the entries of some series."""
        self.n_known[rows] = 0
        self.log_densities[:, rows] = 0.0
        for means, model in zip(self.means, self.models, strict=True):
            means[rows] = model.feature_mean

    def include(self, rows: Codes, X: _Array, t: int) -> None:
        """Include the first t entries of the series X[rows]; forget these series on an error."""
        try:
            for s in {*self.n_known[rows].tolist()} - {t}:
                self._include(rows[self.n_known[rows] == s], X, s, t)
        except BaseException:
            self.restart(rows)
            raise
        self.n_known[rows] = t

    def _include(self, rows: Codes, X: _Array, s: int, t: int) -> None:
        """Include entries s, ..., t - 1 of series whose first s entries are included."""
        for g, model in enumerate(self.models):
            e = model.further_innovations(self._innovations[g, rows, :s], X[rows, s:t])
            self._innovations[g, rows, s:t] = e
            self.means[g, rows] += np.einsum("nt,tl->nl", e, model.gains[s:t])
            logs = np.log(np.diagonal(model.factor)[s:t]).sum()
            self.log_densities[g, rows] -= 0.5 * np.einsum("nt,nt->n", e, e) + logs


# ---- completions


class Completion(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base class of completions, which are fitted as a Gaussian mixture `mixture_`."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "shrinkage": [Interval(Real, 0, 1, closed="both"), StrOptions({"ledoit-wolf"})],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    _TRAINING: ClassVar[dict[str, Any]] = {
        "dtype": np.float64,
        "order": "C",
        "ensure_all_finite": "allow-nan",
        "ensure_min_samples": 2,
    }

    n_features_in_: int

    def __init__(
        self,
        shrinkage: float | str = "ledoit-wolf",
        ridge: float = 1e-6,
        n_threads: int | None = None,
    ) -> None:
        self.shrinkage = shrinkage
        self.ridge = ridge
        self.n_threads = n_threads

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Fill missing entries with their conditional means.

        Parameters
        ----------
        X : (n, d) array-like
            Samples; NaN is missing.

        Returns
        -------
        (n, d) array
            Completed samples; known entries are unchanged.
        """
        return filled(self, self._rows(X).copy())

    def condition(self, X: ArrayLike, *, features: SklearnEstimator | None = None) -> Conditional:
        """Return conditional distributions of complete samples, or of their linear features.

        One Cholesky factor serves all samples with only their last entries missing; each other
        pattern needs its own factor, which is cached for later calls.

        Parameters
        ----------
        X : (n, d) array-like
            Samples; NaN is missing. Any entries may be missing.
        features : fitted transformer or None, default=None
            An affine map of the samples, such as one with ``components_`` and ``mean_``. None: the
            samples themselves.

        Returns
        -------
        Conditional
            Its `mean`, `variance` and `covariance` are computed when they are read.

        Raises
        ------
        ValueError
            If samples have another number of columns or infinite entries, or features are not
            affine.
        """
        rows = self._rows(X)
        affine = affine_of(features, self.n_features_in_)
        return self.mixture_.condition(rows, affine, n_threads=self.n_threads)

    def _estimate(
        self, X: _Array, codes: NDArray[np.int32], classes: NDArray[Any] | None = None
    ) -> _Array:
        """Estimate and factorise the mixture; return the shrinkages. Errors name the `classes`."""
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)  # NaN without known values
        if np.all(low == high):
            raise ValueError("X: expected samples that differ, got equal samples")
        spread = None
        if np.isnan(X).any():
            X, codes, spread = completed_classes(X, codes, classes, self.n_threads)
        means, covariances, shrinkages = class_gaussians(self, X, codes, spread)
        shares = np.bincount(codes) / len(codes)
        self.mixture_ = GaussianMixture(shares, means, covariances)
        try:
            self.mixture_.prefix_models(n_threads=self.n_threads)
        except np.linalg.LinAlgError:
            raise ValueError(self._singular(covariances, classes)) from None
        return shrinkages

    def _singular(self, covariances: _Array, classes: NDArray[Any] | None) -> str:
        """Error message for covariances that are not positive definite."""
        traces = np.trace(covariances, axis1=1, axis2=2)
        if classes is not None and not traces.any():
            return "X: expected a class of samples that differ, got equal samples in each class"
        smallest = np.linalg.eigvalsh(covariances)[:, 0] / np.where(traces > 0, traces, 1.0)
        of_class = "" if classes is None else f" of class {show(classes[int(smallest.argmin())])}"
        return (
            f"ridge: expected a number that makes the covariance{of_class} positive definite, got "
            f"{self.ridge} with shrinkage={self.shrinkage!r}"
        )

    def _rows(self, X: Any) -> _Array:
        check_is_fitted(self)
        options = {"dtype": np.float64, "order": "C", "ensure_all_finite": "allow-nan"}
        return np.asarray(validate_data(self, X, reset=False, **options))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def filled(completion: Completion, rows: _Array) -> _Array:
    """Return samples whose missing entries are filled by conditional means."""
    missing = np.isnan(rows)
    if not missing.any():
        return rows
    means = completion.mixture_.condition(rows, None, n_threads=completion.n_threads).mean
    return np.where(missing, means, rows)


class GaussianCompletion(Completion):
    r"""Complete samples whose missing and known entries are jointly Gaussian.

    Use it to complete missing entries, and as the model of `ReliableClassifier`. Tune `shrinkage`.
    User guide: :doc:`/guide/early`.

    Given the known part z of a sample, the missing part is Gaussian with

    .. math::

        m = \bar x + \Sigma_{xz} \Sigma_{zz}^{-1} (z - \bar z), \qquad
        R = \Sigma_{xx} - \Sigma_{xz} \Sigma_{zz}^{-1} \Sigma_{zx} .

    Training samples may also be incomplete, if entries are missing at random. They are then
    completed by the conditional means of a Gaussian that expectation-maximisation estimates, and
    the conditional covariances are added to the covariance.

    Parameters
    ----------
    shrinkage : float in [0, 1] or "ledoit-wolf", default="ledoit-wolf"
        Weight of the mean variance times the identity in the covariance.
    ridge : float >= 0, default=1e-6
        Multiple of the mean variance that is added to the diagonal.
    n_threads : int or None, default=None
        Number of threads; None uses all OpenMP threads. Results do not depend on it.

    Attributes
    ----------
    mean_ : (d,) array
        Mean of the training samples.
    covariance_ : (d, d) array
        Covariance, with shrinkage and ridge.
    shrinkage_ : float
        Shrinkage in [0, 1]: `shrinkage`, or its estimate.
    mixture_ : object
        The fitted distribution: ``weights`` (1,), ``means`` (1, d) and ``covariances`` (1, d, d).
    n_features_in_ : int
        Number of columns, d.

    See Also
    --------
    MixtureCompletion : One Gaussian for each class.
    ReliableClassifier : Decides incomplete samples by their completions.
    sklearn.impute.SimpleImputer : Fills missing entries by means or medians.

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, section 5.4.1. R. Little and D. Rubin,
    "Statistical analysis with missing data", 2002, section 11.2.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.early import GaussianCompletion
    >>> X = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    >>> model = GaussianCompletion(shrinkage=0).fit(X)
    >>> model.transform([[1.5, np.nan]]).round(3)
    array([[1.5, 3. ]])
    """

    def fit(self, X: ArrayLike, y: object = None) -> GaussianCompletion:
        """Estimate mean and covariance.

        Parameters
        ----------
        X : (n, d) array-like
            Samples; NaN is missing.
        y : object, default=None
            Not used.

        Returns
        -------
        GaussianCompletion
            The estimator itself.
        """
        self._validate_params()
        with unchanged_on_error(self):
            rows = validate_data(self, X, **self._TRAINING)
            shrinkages = self._estimate(rows, np.zeros(len(rows), dtype=np.int32))
        self.mean_, self.covariance_ = self.mixture_.means[0], self.mixture_.covariances[0]
        self.shrinkage_ = float(shrinkages[0])
        return self


class MixtureCompletion(Completion):
    r"""Complete samples by a mixture with one Gaussian for each class.

    Use it if covariances of classes differ much and each class has enough samples to estimate its
    covariance. Decisions with the mixture alone are often later than with one Gaussian; decisions
    with the average of both (``overall=0.5``), the default of `ReliableClassifier` for linear
    discriminants, are earlier on most data sets. Tune `shrinkage`. User guide: :doc:`/guide/early`.

    Given the known part z, the sample is a mixture of the classes' conditional Gaussians with
    weights :math:`p(g|z) \propto w_g\, p(z|g)`. Its mean is :math:`m = \sum_g p(g|z) m_g`, its
    covariance :math:`\sum_g p(g|z) (R_g + (m_g - m)(m_g - m)^T)`. Training samples may be
    incomplete, as in `GaussianCompletion`; labels must be known.

    Parameters
    ----------
    shrinkage : float in [0, 1] or "ledoit-wolf", default="ledoit-wolf"
        Weight of the class's mean variance times the identity in its covariance.
    ridge : float >= 0, default=1e-6
        Multiple of the mean variance within classes that is added to every diagonal.
    overall : float in [0, 1), default=0
        Weight of a Gaussian of all samples, which is averaged with the mixture. The weight does not
        depend on the known entries.
    n_threads : int or None, default=None
        Number of threads; None uses all OpenMP threads. Results do not depend on it.

    Attributes
    ----------
    classes_ : (G,) array
        Labels, sorted.
    class_weights_ : (G,) array
        Frequencies of the labels.
    means_ : (G, d) array
        Means of the classes.
    covariances_ : (G, d, d) array
        Covariances of the classes, with shrinkage and ridge.
    shrinkages_ : (G,) array
        Shrinkage of each class in [0, 1]: `shrinkage`, or its estimates.
    mixture_ : object
        The fitted distribution: ``weights`` (G,), ``means`` (G, d) and ``covariances`` (G, d, d).
    n_features_in_ : int
        Number of columns, d.

    See Also
    --------
    GaussianCompletion : One Gaussian of all samples; needs fewer samples.

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, section 5.4.2 and Appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.early import MixtureCompletion
    >>> X = np.array([[0.0, 0.0], [0.1, 0.1], [5.0, -5.0], [5.1, -5.1]])
    >>> model = MixtureCompletion().fit(X, [0, 0, 1, 1])
    >>> model.transform([[5.0, np.nan]]).round(1)
    array([[ 5., -5.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Completion._parameter_constraints,
        "overall": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        shrinkage: float | str = "ledoit-wolf",
        ridge: float = 1e-6,
        overall: float = 0.0,
        n_threads: int | None = None,
    ) -> None:
        super().__init__(shrinkage, ridge, n_threads)
        self.overall = overall

    def fit(self, X: ArrayLike, y: ArrayLike) -> MixtureCompletion:
        """Estimate weights, means and covariances of the classes.

        Parameters
        ----------
        X : (n, d) array-like
            Samples; NaN is missing.
        y : (n,) array-like
            Labels.

        Returns
        -------
        MixtureCompletion
            The estimator itself.
        """
        self._validate_params()
        with unchanged_on_error(self):
            rows, labels = validate_data(self, X, y, **self._TRAINING)
            check_classification_targets(labels)
            classes, codes = np.unique(labels, return_inverse=True)
            shrinkages = self._estimate(rows, codes.astype(np.int32), classes)
        self.classes_, self.class_weights_ = classes, self.mixture_.weights
        self.means_, self.covariances_ = self.mixture_.means, self.mixture_.covariances
        self.shrinkages_ = shrinkages
        if self.overall > 0:
            single = GaussianCompletion(self.shrinkage, self.ridge, self.n_threads).fit(rows)
            self.mixture_ = self.mixture_.averaged(single.mixture_, self.overall)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


# ---- Gaussians of the classes, of complete or incomplete rows


def class_gaussians(
    completion: Completion, X: _Array, codes: NDArray[np.int32], spread: _Array | None = None
) -> tuple[_Array, _Array, _Array]:
    """Means (G, d), covariances (G, d, d) and shrinkages (G,) of classes 0, ..., G - 1.

    The ridge is a multiple of the mean variance within classes. `spread` (G, d, d), the conditional
    covariances of completed entries, is added to the covariances before they are shrunk.
    """
    d = X.shape[1]
    moments = ClassMoments().update(X, codes, n_threads=completion.n_threads)
    classes = range(int(codes.max()) + 1)
    counts = np.bincount(codes)
    means = np.stack([moments.mean(g) for g in classes])
    covariances = np.stack([moments.covariance(g) for g in classes])
    if spread is not None:
        covariances += spread
    traces = np.array([np.trace(R) for R in covariances])
    floor = completion.ridge * float((counts * traces).sum() / counts.sum()) / d
    shrinkages = np.zeros(len(counts))
    for g in classes:
        shrinkage = completion.shrinkage
        if isinstance(shrinkage, str):
            shrinkage = ledoit_wolf(X[codes == g] - means[g], covariances[g])
        shrinkages[g] = shrinkage
        covariances[g] *= 1.0 - shrinkage
        covariances[g][np.diag_indices(d)] += shrinkage * traces[g] / d + floor
    return means, covariances, shrinkages


def completed_classes(
    X: _Array, codes: NDArray[np.int32], classes: NDArray[Any] | None, n_threads: int | None
) -> tuple[_Array, NDArray[np.int32], _Array]:
    """Completed samples (m, d), their codes (m,), and mean conditional covariances (G, d, d).

    Samples without any known entry are left out. A Gaussian of each class completes its samples;
    columns without a known entry in the class get the mean of all samples.
    """
    known = known_entries(X).any(axis=1)
    X, codes, n_classes = X[known], codes[known], int(codes.max()) + 1
    counts = np.bincount(codes, minlength=n_classes)
    if not counts.all():
        empty = int(counts.argmin())
        raise ValueError(
            "X: expected a row with a known entry in every class, got NaN only in class "
            f"{empty if classes is None else show(classes[empty])}"
        )
    out, spread = X.copy(), np.empty((n_classes, X.shape[1], X.shape[1]))
    for g in range(n_classes):
        members = X[codes == g]
        unknown = np.isnan(members).all(axis=0)
        members[:, unknown] = np.nanmean(X[:, unknown], axis=0)
        imputer = GaussianImputer.fit(members, n_threads=n_threads)
        out[codes == g] = imputer.filled(members, n_threads)
        one_class = np.zeros(len(members), dtype=np.int32)
        total = imputer.spread(np.isnan(members), one_class, 1, n_threads=n_threads)[0]
        spread[g] = total / len(members)
    return out, codes, spread

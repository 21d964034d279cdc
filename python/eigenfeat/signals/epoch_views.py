"""Views of epochs: features of filters, covariances and averages, and linear scores of them.

Each view has a linear classifier: a logistic regression for tangent vectors, and a discriminant
with shrunk covariance (O. Ledoit and M. Wolf, J. Multivariate Analysis 88, 2004) for other
features. Scores are logits, which the pool weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import has_fit_parameter

from eigenfeat._base.types import Codes
from eigenfeat.signals.alignment import mean_covariances
from eigenfeat.signals.epochs import epoch_blocks
from eigenfeat.signals.spatial_filters import SpatialFilters
from eigenfeat.signals.tangent_space import TangentSpace

_Array = NDArray[np.float64]
Banks = Sequence[NDArray[Any]]  # epochs (n, channels, times): without a filter, and in each band
Folds = Sequence[tuple[Codes, Codes]]

# bench/eeg.py shows the effect of the following numbers.
LOWEST = 4.0  # lowest edge of a band, in Hz
_OCTAVES = (LOWEST, 8.0, 12.0)  # first edges in Hz; each later edge is twice the last but one
_HIGHEST, _LEAST_RATIO = 0.45, 1.25  # highest edge / sampling rate; least ratio of the last edges
_MIN_PERIODS = 2  # an epoch contains at least this many periods of a band's lower edge
_MIN_POWER = 0.1  # smallest power per octave, relative to the largest
_HALF_WIDTH = 1.0  # Hz, half of a band around a frequency
_N_HARMONICS = 2  # a frequency and its double
_N_WINDOWS = 20  # largest number of windows of an epoch
_N_COMPONENTS, _MAX_ROWS = 4, 12  # filters of xDAWN; rows of its covariances
_MAX_CHANNELS = 64  # principal components replace a larger number
_LEAST_SHRINKAGE = 1e-3  # of the discriminants' covariance
_XDAWN_RIDGE = 1e-3  # multiple of the mean eigenvalue
_MIN_SHARE = 1e-12  # smallest eigenvalue of xDAWN, relative to the largest; below it is rounding


class WeightedLabels(NamedTuple):
    """Indices of the classes and weights (n,) of epochs; the mean weight of all epochs is 1."""

    codes: Codes
    weight: _Array
    n_classes: int

    def subset(self, rows: Codes) -> WeightedLabels:
        """Codes and weights of a part of the epochs."""
        return WeightedLabels(self.codes[rows], self.weight[rows], self.n_classes)

    def counts(self) -> _Array:
        """Sums of the weights of the classes (k,)."""
        counts: _Array = np.bincount(self.codes, self.weight, self.n_classes).astype(np.float64)
        return counts

    def means(self, F: NDArray[Any]) -> _Array:
        """Weighted means (k, ...) of the classes' features or epochs (n, ...)."""
        of_classes = [np.flatnonzero(self.codes == c) for c in range(self.n_classes)]
        return np.stack([np.average(F[rows], 0, self.weight[rows]) for rows in of_classes])


def bands_with_power(X: NDArray[Any], sfreq: float) -> list[tuple[float, float]]:
    """Bands from 4 Hz on, of about a third of an octave to an octave, in which epochs have power.

    A band is left out if its power per octave is below a tenth of the largest, as after a filter,
    or if it is so low that an epoch has less than two periods.
    """
    edges, highest = list(_OCTAVES), _HIGHEST * sfreq
    while edges[-2] * 2 < highest:
        edges.append(edges[-2] * 2)
    if highest > _LEAST_RATIO * edges[-1]:
        edges.append(highest)
    duration = X.shape[2] / sfreq
    bands = [
        (low, high)
        for low, high in pairwise(edges)
        if high <= highest and low * duration >= _MIN_PERIODS
    ]
    size = 4 * X.shape[2]  # padded with zeros, so that each band contains frequencies
    window, total = np.hanning(X.shape[2]), np.zeros((X.shape[1], size // 2 + 1))
    for rows in epoch_blocks(X):
        centred = X[rows] - X[rows].mean(axis=2, keepdims=True)
        total += np.square(np.abs(np.fft.rfft(centred * window, size, axis=2))).sum(axis=0)
    power = (total / np.maximum(total.sum(axis=1, keepdims=True), 1e-300)).mean(axis=0)
    at = np.fft.rfftfreq(size, 1.0 / sfreq)
    per_octave = [(at * power)[(at >= low) & (at < high)].mean() for low, high in bands]
    least = _MIN_POWER * max(per_octave, default=0.0)
    return [band for band, size in zip(bands, per_octave, strict=True) if size >= least > 0]


def bands_around(frequencies: Sequence[float], sfreq: float) -> list[tuple[float, float]]:
    """Bands of 2 Hz around frequencies; overlapping bands are joined."""
    bands: list[tuple[float, float]] = []
    for centre in sorted(frequencies):
        # Band-pass filters need an upper edge below half of the sampling rate.
        low, high = max(centre - _HALF_WIDTH, centre / 2), min(centre + _HALF_WIDTH, 0.49 * sfreq)
        if bands and low < bands[-1][1]:
            bands[-1] = bands[-1][0], high
        else:
            bands.append((low, high))
    return bands


def principal_components(X: NDArray[Any]) -> _Array | None:
    """Leading 64 components (64, channels) of the correlations; None for up to 64 channels."""
    if X.shape[1] <= _MAX_CHANNELS:
        return None
    covariance = mean_covariances([X], np.ones(len(X)), None, slice(None), "X")[0]
    scale = np.sqrt(np.diag(covariance))
    scale[~(scale > 0)] = np.inf
    vectors = np.linalg.eigh(covariance / np.outer(scale, scale))[1]
    return np.asarray(vectors[:, -_MAX_CHANNELS:].T / scale)


# ---- linear classifiers --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Logits (n, k) of features: ``F @ coef + intercept``."""

    coef: _Array
    intercept: _Array

    def of(self, features: _Array) -> _Array:
        """Logits of features (n, d)."""
        return np.asarray(features @ self.coef + self.intercept)


def fit_discriminant(F: _Array, targets: WeightedLabels) -> LinearScores:
    """Linear discriminants with the covariance within classes, shrunk to a multiple of I.

    Features are scaled to unit variance within classes. The weight of the identity is (14) of
    Ledoit and Wolf. With more features than samples, the Gram matrix replaces the covariance.
    """
    d, weight, counts = F.shape[1], targets.weight, targets.counts()
    n, means = weight.sum(), targets.means(F)
    Z = F - means[targets.codes]
    scale = np.sqrt(weight @ np.square(Z) / n)
    scale[~(scale > 1e-10 * np.abs(means).max(axis=0))] = np.inf  # constant within classes
    Z /= scale
    error = weight @ np.square(np.square(Z).sum(axis=1)) / n**2
    Z *= np.sqrt(weight)[:, None]
    centre = weight @ F / n
    M = (means - centre) / scale
    product = Z.T @ Z if d <= len(Z) else Z @ Z.T
    squares, mu = np.square(product).sum() / n**2, np.square(Z).sum() / (n * d)
    if not mu > 0:
        return LinearScores(np.zeros((d, len(counts))), np.log(counts / n))
    error -= squares / n
    spread = squares - d * mu**2
    share = min(1.0, max(error / spread, _LEAST_SHRINKAGE)) if spread > 0 else 1.0
    if d <= len(Z):
        S = (1.0 - share) / n * product + share * mu * np.eye(d)
        coef = cho_solve(cho_factor(S), M.T)
    else:
        K = (1.0 - share) * product + n * share * mu * np.eye(len(Z))
        inner = cho_solve(cho_factor(K), Z @ M.T)
        coef = (M.T - (1.0 - share) * Z.T @ inner) / (share * mu)
    intercept = np.log(counts / n) - 0.5 * np.einsum("kd,dk->k", M, coef)
    coef = coef / scale[:, None]
    return LinearScores(coef, intercept - centre @ coef)


def fit_logit(F: _Array, targets: WeightedLabels) -> LinearScores:
    """Logistic regression with scikit-learn's penalty.

    With more features than samples, the fit is in the span of the samples.
    """
    model, features, basis = LogisticRegression(max_iter=2000), F, None
    if F.shape[1] > len(F):
        values, vectors = np.linalg.eigh(F @ F.T)
        inside = values > 1e-12 * values[-1]
        sizes = np.sqrt(values[inside])
        features, basis = vectors[:, inside] * sizes, F.T @ (vectors[:, inside] / sizes)
    model.fit(features, targets.codes, targets.weight)
    coef = model.coef_.T if basis is None else basis @ model.coef_.T
    if targets.n_classes == 2:
        return LinearScores(
            np.hstack([np.zeros_like(coef), coef]), np.append(0.0, model.intercept_)
        )
    return LinearScores(coef, model.intercept_)


# ---- views ---------------------------------------------------------------------------------------


class View:
    """Features of epochs and linear scores.

    The other methods take the epochs that `parts` returns.

    Attributes
    ----------
    uses_labels : bool
        Whether the features depend on the labels, so that each fold needs its own.
    uses_bands : bool
        Whether the features are those of the bands instead of the unfiltered epochs.
    uses_logit : bool
        Whether the scores are those of a logistic regression instead of a discriminant.
    """

    uses_labels: bool = False
    uses_bands: bool = False
    uses_logit: bool = False
    scores: LinearScores

    def parts(self, banks: Banks) -> Banks:
        """The epochs that the view uses: unfiltered, or in each band."""
        return banks[1:] if self.uses_bands else banks[:1]

    def fit_features(self, parts: Banks, targets: WeightedLabels) -> _Array:
        """Fit the features and return those of the epochs."""
        return self.features(parts)

    def fit_scores(self, F: _Array, targets: WeightedLabels) -> LinearScores:
        """Fit a linear classifier to features (n, d)."""
        return (fit_logit if self.uses_logit else fit_discriminant)(F, targets)

    def features(self, parts: Banks) -> _Array:
        """Compute the features (n, d)."""
        raise NotImplementedError

    def logits(self, parts: Banks) -> _Array:
        """Compute the logits (n, k)."""
        return self.scores.of(self.features(parts))


def cross_fit(view: View, parts: Banks, targets: WeightedLabels, folds: Folds) -> _Array:
    """Fit a view to all epochs; return logits (m, k) of the folds' held-out epochs.

    Features that use no labels are fitted once, to all epochs.
    """
    held_out = []
    if view.uses_labels:
        for train, test in folds:
            of_train = targets.subset(train)
            features = view.fit_features([X[train] for X in parts], of_train)
            view.scores = view.fit_scores(features, of_train)
            held_out.append(view.logits([X[test] for X in parts]))
    features = view.fit_features(parts, targets)
    if not view.uses_labels:
        for train, test in folds:
            scores = view.fit_scores(features[train], targets.subset(train))
            held_out.append(scores.of(features[test]))
    view.scores = view.fit_scores(features, targets)
    return np.concatenate(held_out)


class Transformed(View):
    """Features of a transformer of epochs, without a filter or in each band.

    Attributes
    ----------
    transformers : list of SpatialFilters or TangentSpace
        Fitted transformer of each band.
    """

    def __init__(self, transformer: SpatialFilters | TangentSpace, uses_bands: bool) -> None:
        self.transformer = transformer
        self.uses_bands = uses_bands
        self.uses_labels = isinstance(transformer, SpatialFilters)
        self.uses_logit = not self.uses_labels

    def fit_features(self, parts: Banks, targets: WeightedLabels) -> _Array:
        """Fit the features and return those of the epochs."""
        self.transformers = [clone(self.transformer) for _ in parts]
        pairs = zip(self.transformers, parts, strict=True)
        found = [one.fit_transform(X, targets.codes, targets.weight) for one, X in pairs]
        return np.hstack(found).astype(np.float64)

    def features(self, parts: Banks) -> _Array:
        """Compute the features (n, d)."""
        pairs = zip(self.transformers, parts, strict=True)
        return np.hstack([one.transform(X) for one, X in pairs]).astype(np.float64)


class Means(View):
    """Means of each channel in up to 20 windows, for responses that are locked to the event."""

    def features(self, parts: Banks) -> _Array:
        """Compute the features (n, d)."""
        X = parts[0]
        edges = np.linspace(0, X.shape[2], min(_N_WINDOWS, X.shape[2]) + 1).astype(np.intp)
        sums = np.add.reduceat(X, edges[:-1], axis=2, dtype=np.float64)
        return (sums / np.diff(edges)).reshape(len(X), -1)


class Xdawn(View):
    """Covariances of epochs and mean responses, after xDAWN's filters.

    Filters maximise the power of the classes' mean responses over the power of all epochs (B. Rivet
    et al., IEEE Trans. Biomed. Eng. 56, 2009). Each epoch is stacked upon the mean responses, and
    the covariance of both goes to the tangent space (A. Barachant and M. Congedo, arXiv 1409.0107).

    Attributes
    ----------
    filters : (F, channels) array
        One spatial filter per row.
    responses : (k F, times) array
        Filtered mean responses of the classes.
    """

    uses_labels = uses_logit = True

    def fit_features(self, parts: Banks, targets: WeightedLabels) -> _Array:
        """Fit the features and return those of the epochs."""
        X = parts[0] - parts[0].mean(axis=2, keepdims=True)
        _, c, times = X.shape
        means = targets.means(X)
        signal = np.einsum("kct,kdt->cd", means, means) / times
        power = mean_covariances([X], targets.weight, None, slice(None), "X")[0]
        power += _XDAWN_RIDGE * np.trace(power) / c * np.eye(c)
        shares, filters = eigh(signal, power)
        above_rounding = int(np.count_nonzero(shares > _MIN_SHARE * shares[-1]))
        count = max(2, min(_N_COMPONENTS, _MAX_ROWS // (len(means) + 1)))
        count = min(count, max(1, above_rounding))
        self.filters = filters[:, ::-1][:, :count].T
        self.responses = (self.filters @ means).reshape(-1, times)
        self.space = TangentSpace()
        stacked = self._stacked(parts)
        return self.space.fit_transform(stacked, None, targets.weight).astype(np.float64)

    def features(self, parts: Banks) -> _Array:
        """Compute the features (n, d)."""
        return self.space.transform(self._stacked(parts)).astype(np.float64)

    def _stacked(self, parts: Banks) -> _Array:
        X = self.filters @ parts[0]
        above = np.broadcast_to(self.responses, (len(X), *self.responses.shape))
        return np.concatenate([above, X], axis=1)


class Frequencies(View):
    """Canonical correlations of epochs with sines of given frequencies, for SSVEP.

    References have the frequency and its double (Z. Lin et al., IEEE Trans. Biomed. Eng. 53, 2006).
    The features are Fisher's z of the two largest correlations with each frequency.
    """

    def __init__(self, frequencies: Sequence[float], sfreq: float) -> None:
        self.frequencies = frequencies
        self.sfreq = sfreq

    def features(self, parts: Banks) -> _Array:
        """Compute the features (n, d)."""
        X = parts[0].astype(np.float64)
        X -= X.mean(axis=2, keepdims=True)
        clock = 2.0 * np.pi * np.arange(X.shape[2]) / self.sfreq
        span, R = np.linalg.qr(X.swapaxes(1, 2))
        size = np.linalg.norm(R, axis=1)[:, : R.shape[1]]
        apart = np.abs(np.diagonal(R, axis1=1, axis2=2)) > 1e-10 * size
        span *= apart[:, None]  # a column of `span` is rounding if its channel depends on others
        out = []
        for frequency in self.frequencies:
            pitches = [h * frequency for h in range(1, _N_HARMONICS + 1)]
            pitches = [one for one in pitches if one < self.sfreq / 2]
            waves = np.stack([wave(p * clock) for p in pitches for wave in (np.sin, np.cos)], 1)
            reference = np.linalg.qr(waves - waves.mean(axis=0))[0]
            found = np.linalg.svd(span.swapaxes(1, 2) @ reference, compute_uv=False)
            out.append(found[:, :2])
        return np.arctanh(np.clip(np.hstack(out), 0.0, 1.0 - 1e-9))


class EstimatorView(View):
    """The user's classifier of epochs; its features are the logarithms of its probabilities.

    Attributes
    ----------
    fitted : object
        The fitted classifier of codes 0, ..., k - 1.
    """

    uses_labels = True

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit_features(self, parts: Banks, targets: WeightedLabels) -> _Array:
        """Fit a copy of the classifier."""
        given = {}
        if has_fit_parameter(self.estimator, "sample_weight"):
            given = {"sample_weight": targets.weight}
        try:
            self.fitted = clone(self.estimator).fit(parts[0], targets.codes, **given)
        except ValueError as error:
            name = type(self.estimator).__name__
            raise ValueError(
                f"views: {name} cannot be fitted to epochs (n, channels, times): {error}"
            ) from error
        return self.features(parts)

    def features(self, parts: Banks) -> _Array:
        """Compute the logarithms of the probabilities (n, k)."""
        found = np.asarray(self.fitted.predict_proba(parts[0]), np.float64)
        if not (np.isfinite(found) & (found >= 0)).all():
            raise ValueError(f"{type(self.estimator).__name__}: expected probabilities of 0 to 1")
        return np.log(found + 1e-6)  # finite for a probability of 0, too

    def fit_scores(self, F: _Array, targets: WeightedLabels) -> LinearScores:
        """Use the features as logits."""
        return LinearScores(np.eye(targets.n_classes), np.zeros(targets.n_classes))

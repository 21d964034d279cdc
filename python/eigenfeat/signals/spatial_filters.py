"""Common spatial patterns: GEM for epochs of many channels, such as EEG."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.types import Floats, Labels
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils.pencils import generalized_eigh
from eigenfeat.samples.estimator import unchanged_on_error
from eigenfeat.samples.labelled import row_weights
from eigenfeat.signals.alignment import mean_covariances, rank_tolerance, whitened
from eigenfeat.signals.epoch_transformer import EpochTransformer
from eigenfeat.signals.epochs import (
    constant_channels,
    epoch_blocks,
    read_labels,
    warn_single_classes,
)
from eigenfeat.signals.means import epoch_covariances

__all__ = ["SpatialFilters"]

_Array = NDArray[np.float64]


class SpatialFilters(EpochTransformer):
    """Common spatial patterns (CSP) of epochs, for two or more classes.

    Use it for band-passed EEG, MEG or EMG with few clear sources, and for SSVEP. Tune `n_filters`
    first, then `bands` and `ridge`. User guide: :doc:`/guide/eeg`.

    Filters w solve ``C_i w = lambda (C_i + C_j) w`` with the mean covariances of two classes'
    epochs, whose channels are centred. Where lambda is near 1 only class i has power. The features
    are the logarithms of the filtered epochs' power.

    Parameters
    ----------
    n_filters : int >= 1, default=4
        Number of filters of each problem, alternately from both ends of the spectrum.
    bands : sequence of (low, high) or None, default=None
        Pass bands, in the unit of `sfreq`. Each band has filters of its own.
    sfreq : float or None, default=None
        Samples per second. Not needed for `mne.Epochs`, which include it.
    ridge : float >= 0, default=0.01
        Multiple of a covariance's mean eigenvalue that is added to its eigenvalues.
    pairs : {"all", "one_vs_rest"}, default="all"
        One problem for each pair of classes, or for each class against the mean of the others.
    align : {"session"} or None, default=None
        "session" whitens epochs by the mean covariance of their session, in `groups`.
    normalize : bool, default=False
        Whether each epoch is divided by its root mean square, so that large artefacts count less.
    n_threads : int or None, default=None
        Number of threads for the covariances; None means all OpenMP threads.

    Attributes
    ----------
    filters_ : (F, channels) array
        One filter per row, as in MNE; with `align`, of whitened epochs.
    patterns_ : (F, channels) array
        For each filter, the signal in the channels from the source that it extracts.
    evals_ : (F,) array
        Eigenvalue lambda of each filter.
    pairs_ : (F, 2) array
        For each filter, the class whose share of the power is lambda, and the other class or
        "rest".
    filter_bands_ : (F,) array of int
        Index of each filter's band.
    rank_ : int
        Dimension of the span of the signals, the largest of all bands.
    n_channels_ : int
        Number of channels.
    moments_ : ClassMoments, or list of ClassMoments with `bands`
        Moments of the samples; each sample is a row of channels.
    alignment_ : SessionMeans or None
        With `align`, the `names` of the sessions and the `means` of their covariances.
    classes_ : (k,) array
        Labels, sorted.

    See Also
    --------
    TangentSpace : All of an epoch's covariance, for linear classifiers.

    References
    ----------
    H. Ramoser, J. Muller-Gerking and G. Pfurtscheller, IEEE Trans. Rehab. Eng. 8, 2000. S. Haufe et
    al., NeuroImage 87, 2014 (patterns).

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat import SpatialFilters
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> X = rng.standard_normal((40, 8, 100))
    >>> X[y == 1, 3] *= 2.0  # class 1 has more power in channel 3
    >>> model = SpatialFilters(n_filters=2).fit(X, y)
    >>> model.transform(X).shape, int(np.abs(model.patterns_[1]).argmax())
    ((40, 2), 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **EpochTransformer._parameter_constraints,
        "n_filters": [Interval(Integral, 1, None, closed="left")],
        "pairs": [StrOptions({"all", "one_vs_rest"})],
        "ridge": [Interval(Real, 0, None, closed="left")],
    }

    moments_: ClassMoments | list[ClassMoments]
    _tol: float

    def __init__(
        self,
        n_filters: int = 4,
        *,
        pairs: str = "all",
        ridge: float = 0.01,
        align: str | None = None,
        bands: Sequence[tuple[float, float]] | None = None,
        sfreq: float | None = None,
        normalize: bool = False,
        n_threads: int | None = None,
    ) -> None:
        self.n_filters = n_filters
        self.pairs = pairs
        self.ridge = ridge
        self.align = align
        self.bands = bands
        self.sfreq = sfreq
        self.normalize = normalize
        self.n_threads = n_threads

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> SpatialFilters:
        """Accumulate the classes' covariances and solve for filters.

        Parameters
        ----------
        X : (n, channels, times) array-like or mne.Epochs
            Finite epochs.
        y : (n,) array-like
            Labels.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the epochs.
        groups : (n,) array-like, optional
            Sessions of the epochs, for ``align="session"``; None is one session.

        Returns
        -------
        SpatialFilters
            The estimator itself. An error leaves it unchanged.

        Warns
        -----
        UserWarning
            If there are `groups` without `align`, or a session that is aligned has epochs of one
            class alone.
        """
        with unchanged_on_error(self):
            labels, sessions = self._accumulate(X, y, sample_weight, groups, None, first=True)
            if self.align is not None and sessions is not None:
                warn_single_classes(labels, sessions)
            check_two_labels(self._moments[0].active_classes)
            self._solve()
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> SpatialFilters:
        """Add a batch of epochs; filters are available once there are two classes.

        Parameters
        ----------
        X : (n, channels, times) array-like or mne.Epochs
            Finite epochs.
        y : (n,) array-like
            Labels.
        classes : array-like, optional
            All labels, given with the first batch; any other label is then an error.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the epochs.
        groups : (n,) array-like, optional
            Sessions of the epochs, for ``align="session"``; None is one session. A known session
            keeps its mean.

        Returns
        -------
        SpatialFilters
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            first = not hasattr(self, "moments_")
            self._accumulate(X, y, sample_weight, groups, classes, first=first)
            if len(self._moments[0].active_classes) > 1:
                self._solve()
        return self

    def fit_transform(
        self,
        X: ArrayLike,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Floats:
        """Fit to epochs and transform them.

        Parameters
        ----------
        X : (n, channels, times) array-like or mne.Epochs
            As in `fit`.
        y : (n,) array-like
            As in `fit`.
        sample_weight : (n,) array-like, optional
            As in `fit`.
        groups : (n,) array-like, optional
            As in `fit`.

        Returns
        -------
        (n, F) array
            As in `transform`.
        """
        return self.fit(X, y, sample_weight, groups).transform(X, groups)

    def transform(self, X: ArrayLike, groups: ArrayLike | None = None) -> Floats:
        """Compute the logarithms of the power of filtered epochs.

        Parameters
        ----------
        X : (n, channels, times) array-like or mne.Epochs
            Finite epochs, of any length.
        groups : (n,) array-like, optional
            Sessions of the epochs, for ``align="session"``. New sessions are whitened by the mean
            of their epochs here; None is one new session.

        Returns
        -------
        (n, F) array, float32 if `X` is float32, else float64
            Natural logarithms of the mean squares over an epoch. For an epoch without power, this
            is the logarithm of the smallest normal number.

        Warns
        -----
        UserWarning
            If a new session has fewer than 10 epochs, or `fit` had several sessions and `groups` is
            None.
        """
        check_is_fitted(self, "filters_")
        banks = self._read(X, self.n_channels_)
        banks = self._aligned(banks, self._sessions(groups, len(banks[0])))
        out = np.empty((len(banks[0]), len(self.filters_)), dtype=banks[0].dtype)
        for band, epochs in enumerate(banks):
            columns = np.flatnonzero(self.filter_bands_ == band)
            power = self._power if len(columns) <= 2 * self.n_channels_ else self._power_of_many
            for rows in epoch_blocks(epochs):
                out[rows, columns] = power(epochs[rows], self.filters_[columns])
        return np.log(np.maximum(out, np.finfo(out.dtype).tiny))

    def _power(self, epochs: NDArray[Any], filters: _Array) -> NDArray[Any]:
        """Mean squares (n, F) of filtered epochs."""
        signals = _centred(filters.astype(epochs.dtype) @ epochs)
        return np.asarray(np.einsum("nft,nft->nf", signals, signals) / epochs.shape[2])

    def _power_of_many(self, epochs: NDArray[Any], filters: _Array) -> NDArray[Any]:
        """Mean squares (n, F) from covariances, for more filters than channels."""
        covariances = epoch_covariances(epochs, self.n_threads)
        return np.maximum(np.einsum("nfc,fc->nf", filters @ covariances, filters), 0.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.filters_)

    @property
    def _moments(self) -> list[ClassMoments]:
        """Moments of each band."""
        return self.moments_ if isinstance(self.moments_, list) else [self.moments_]

    def _accumulate(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        classes: Any,
        *,
        first: bool,
    ) -> tuple[Labels, NDArray[Any] | None]:
        """Add epochs to the moments of their classes, and new sessions to `alignment_`.

        Returns the labels and the sessions.
        """
        self._validate_params()
        banks = self._read(X, None if first else self.n_channels_)
        n, self.n_channels_, _ = banks[0].shape
        labels = read_labels(y, n)
        weight = row_weights(sample_weight, n)
        sessions = self._sessions(groups, n)
        if first:
            self.alignment_ = None
        if self.align is not None:
            mean_of = partial(mean_covariances, banks, weight, self.n_threads)
            banks = self._aligned(banks, self._align(sessions, weight, mean_of))
        merged = []
        for band, epochs in enumerate(banks):
            moments = ClassMoments(classes) if first else self._moments[band].copy()
            for label in np.unique(labels[weight > 0]):
                of_class = np.flatnonzero((labels == label) & (weight > 0))
                self._add(moments, epochs[of_class], label, weight[of_class])
            merged.append(moments)
        self._tol = max(rank_tolerance(banks[0].dtype), 0.0 if first else self._tol)
        self._check_channels(merged)
        self.moments_ = merged[0] if self.bands is None else merged
        self.classes_ = np.asarray(merged[0].classes_)
        return labels, sessions

    def _add(self, moments: ClassMoments, X: NDArray[Any], label: Any, weight: _Array) -> None:
        """Add the samples of a class's epochs, in blocks."""
        times = X.shape[2]
        for rows in epoch_blocks(X):
            samples = _centred(X[rows]).transpose(0, 2, 1).reshape(-1, X.shape[1])
            labels, shares = np.full(len(samples), label), np.repeat(weight[rows], times)
            moments.update(np.ascontiguousarray(samples), labels, shares, n_threads=self.n_threads)

    def _check_channels(self, moments: list[ClassMoments]) -> None:
        """Refuse recordings without power, and warn of channels without power."""
        power = np.sum(
            [np.diag(m.second_moment(c)) for m in moments for c in m.active_classes], axis=0
        )
        constant_channels(power)

    def _aligned(
        self, banks: list[NDArray[Any]], sessions: NDArray[Any] | None
    ) -> list[NDArray[Any]]:
        """Whiten epochs by the mean covariance of their session, in the span of its channels."""
        if self.alignment_ is None:
            return banks
        weight = np.ones(len(banks[0]))
        mean_of = partial(mean_covariances, banks, weight, self.n_threads)
        parts = self.alignment_.parts(sessions, len(weight), mean_of)
        return whitened(banks, ((rows, means) for rows, means, _ in parts))

    def _solve(self) -> None:
        """Solve all problems of all bands."""
        parts = [self._solved(moments) for moments in self._moments]
        self.rank_ = max(part.rank for part in parts)
        self.filters_ = np.ascontiguousarray(np.vstack([part.filters for part in parts]))
        self.patterns_ = np.ascontiguousarray(np.vstack([part.patterns for part in parts]))
        self.evals_ = np.concatenate([part.evals for part in parts])
        self.pairs_ = np.concatenate([part.pairs for part in parts])
        counts = [len(part.evals) for part in parts]
        self.filter_bands_ = np.repeat(np.arange(len(parts)), counts)

    def _solved(self, moments: ClassMoments) -> _Filters:
        """Filters of one band, in the span of the mean covariance."""
        labels = moments.active_classes
        matrices = np.array([moments.second_moment(c) for c in labels])
        size = float(np.trace(matrices.mean(axis=0))) / self.n_channels_
        values, vectors = np.linalg.eigh(matrices.mean(axis=0) / size)
        tol = self._tol
        span = vectors[:, values > tol * values[-1]]
        rank = span.shape[1]
        inner = np.einsum("ca,kcd,db->kab", span, matrices / size, span, optimize=True)
        sizes = np.einsum("kaa->k", inner)[:, None, None] / rank
        inner += self.ridge * sizes * np.eye(rank)
        above, below, names = _problems(inner, list(labels), self.pairs)
        both = above + below
        spread = np.linalg.eigvalsh(both)
        if (spread[:, 0] > tol * spread[:, -1]).all():
            solution = generalized_eigh(above, both, n_threads=self.n_threads)
            solved = list(zip(solution.eigenvalues, solution.vectors, strict=True))
        else:  # classes of few epochs: each problem in the span of its own classes
            least = tol * float(np.einsum("kaa->k", inner).max()) / rank
            problems = zip(above, both, strict=True)
            solved = [_in_own_span(A, B, tol, least) for A, B in problems]
        filters, patterns, evals, pairs = [], [], [], []
        for total, name, (values, w) in zip(both, names, solved, strict=True):
            chosen = _both_ends(len(values), self.n_filters)
            filters.append((span @ w[:, chosen]).T)
            patterns.append((span @ (total @ w[:, chosen])).T)
            evals.append(values[chosen])
            pairs.append(np.repeat(name[None], len(chosen), axis=0))
        return _Filters(
            np.vstack(filters) / np.sqrt(size),
            np.vstack(patterns) * np.sqrt(size),
            np.concatenate(evals),
            np.concatenate(pairs),
            rank,
        )


def _centred(X: NDArray[Any]) -> NDArray[Any]:
    """Signals (n, channels, times) without the mean of each channel over an epoch."""
    return np.asarray(X - X.mean(axis=2, keepdims=True))


class _Filters(NamedTuple):
    """Filters and patterns (F, channels), lambdas (F,), pairs (F, 2), and the rank of the span."""

    filters: _Array
    patterns: _Array
    evals: _Array
    pairs: NDArray[Any]
    rank: int


def _in_own_span(above: _Array, both: _Array, tol: float, least: float) -> tuple[_Array, _Array]:
    """Eigenvalues (m,), descending, and vectors (r, m) in the span of `both` (r, r).

    m = 0 if neither class has power, so that no eigenvalue of `both` exceeds `least`.
    """
    values, vectors = np.linalg.eigh(both)
    span = vectors[:, values > max(tol * values[-1], least)]
    if not span.shape[1]:
        return np.empty(0), np.empty((len(both), 0))
    solution = generalized_eigh(span.T @ above @ span, span.T @ both @ span, n_threads=1)
    return solution.eigenvalues, span @ solution.vectors


def _problems(
    matrices: _Array, labels: list[Any], pairs: str
) -> tuple[_Array, _Array, NDArray[Any]]:
    """Covariances on both sides of each problem (P, r, r), and their names (P, 2)."""
    k = len(labels)
    labels = np.array(labels).tolist()  # Python objects, beside "rest"
    if k == 2 or pairs == "all":
        items = np.array(list(combinations(range(k), 2)))
        return matrices[items[:, 0]], matrices[items[:, 1]], np.array(labels)[items]
    rest = np.array([matrices[np.arange(k) != c].mean(axis=0) for c in range(k)])
    names = np.array([(label, "rest") for label in labels], dtype=object)
    return matrices, rest, names


def _both_ends(count: int, n: int) -> NDArray[np.intp]:
    """Indices 0, count - 1, 1, count - 2, ..., at most n of them."""
    order = np.empty(count, dtype=np.intp)
    order[::2] = np.arange((count + 1) // 2)
    order[1::2] = count - 1 - np.arange(count // 2)
    return order[:n]

"""Covariances of epochs in the tangent space of the symmetric positive definite matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import Floats
from eigenfeat.samples.estimator import unchanged_on_error
from eigenfeat.samples.labelled import row_weights
from eigenfeat.signals.alignment import rank_tolerance
from eigenfeat.signals.epoch_transformer import EpochTransformer
from eigenfeat.signals.epochs import constant_channels
from eigenfeat.signals.means import (
    epoch_covariances,
    inverse_root,
    mean_covariance,
    tangent_vectors,
)

__all__ = ["TangentSpace"]

_Array = NDArray[np.float64]
_UNITS = 1e3  # channels with a larger ratio of amplitudes have different units


class TangentSpace(EpochTransformer):
    """Logarithms of epochs' covariances at their mean, as vectors for linear classifiers.

    Use it for epochs of EEG, MEG or EMG before a linear classifier; try it first. Tune `bands`,
    then `shrinkage`. User guide: :doc:`/guide/eeg`.

    Epoch i with covariance C_i becomes the upper triangle of ``log(G^(-1/2) C_i G^(-1/2))``, G the
    Riemannian mean of the covariances, with off-diagonal entries times sqrt(2). The norm of the
    vector is the affine-invariant distance of C_i and G.

    Parameters
    ----------
    bands : sequence of (low, high) or None, default=None
        Pass bands, in the unit of `sfreq`. Features of all bands are concatenated.
    sfreq : float or None, default=None
        Samples per second; not needed with MNE's `Epochs`.
    shrinkage : "oas", float in [0, 1] or None, default="oas"
        Weight of a multiple of the identity, towards which each covariance is shrunk in the span of
        the channels. "oas" estimates the weight for each epoch.
    align : {"session"} or None, default=None
        "session" takes the mean of each session, in `groups`, in place of G.
    normalize : bool, default=False
        Whether each epoch is divided by its root mean square, so that large artefacts count less.
    n_threads : int or None, default=None
        Number of threads for the logarithms; None means all OpenMP threads.

    Attributes
    ----------
    reference_ : (channels, channels) array, or (bands, channels, channels) with `bands`
        G, zero outside the span. With `align`, the mean of the sessions' means.
    basis_ : (channels, rank) array
        Basis of the span; covariances are those of ``basis_.T @ x``. Directions with less than 1e-8
        (float32: 1e-5) of the largest power are left out, as after an average reference. Channels
        are divided by their amplitudes if these differ by more than a factor of 1000.
    rank_ : int
        Dimension of the span of the signals.
    n_channels_ : int
        Number of channels.
    alignment_ : SessionMeans or None
        With `align`, the `names` of the sessions and their `means` in the coordinates of `basis_`.

    See Also
    --------
    SpatialFilters : Few directions with a large ratio of powers.

    References
    ----------
    A. Barachant et al., IEEE Trans. Biomed. Eng. 59, 2012. P. Zanini et al., IEEE Trans. Biomed.
    Eng. 65, 2018 (alignment).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from eigenfeat import TangentSpace
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).standard_normal((60, 8, 100))
    >>> X[y == 1, 3] *= 2.0
    >>> model = make_pipeline(TangentSpace(), LogisticRegression())
    >>> model.fit(X[:40], y[:40]).score(X[40:], y[40:])
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **EpochTransformer._parameter_constraints,
        "shrinkage": [StrOptions({"oas"}), Interval(Real, 0, 1, closed="both"), None],
    }

    def __init__(
        self,
        *,
        shrinkage: str | float | None = "oas",
        align: str | None = None,
        bands: Sequence[tuple[float, float]] | None = None,
        sfreq: float | None = None,
        normalize: bool = False,
        n_threads: int | None = None,
    ) -> None:
        self.shrinkage = shrinkage
        self.align = align
        self.bands = bands
        self.sfreq = sfreq
        self.normalize = normalize
        self.n_threads = n_threads

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> TangentSpace:
        """Compute the mean covariance, or that of each session.

        Parameters
        ----------
        X : (n, channels, times) array-like or mne.Epochs
            Finite epochs.
        y : object, default=None
            Not used.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the epochs in the mean.
        groups : (n,) array-like, optional
            Sessions of the epochs, for ``align="session"``; None is one session.

        Returns
        -------
        TangentSpace
            The estimator itself. An error leaves it unchanged.

        Warns
        -----
        UserWarning
            If there are `groups` without `align`.
        """
        with unchanged_on_error(self):
            self._fit_means(X, sample_weight, groups)
        return self

    def fit_transform(
        self,
        X: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Floats:
        """Fit to epochs and transform them.

        Parameters
        ----------
        X : (n, channels, times) array-like or mne.Epochs
            As in `fit`.
        y : object, default=None
            Not used.
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
        with unchanged_on_error(self):
            dtype, reduced = self._fit_means(X, sample_weight, groups)
        return self._vectors(dtype, reduced, groups)

    def transform(self, X: ArrayLike, groups: ArrayLike | None = None) -> Floats:
        """Compute the vectors of epochs.

        Parameters
        ----------
        X : (n, channels, times) array-like or mne.Epochs
            Finite epochs of any length.
        groups : (n,) array-like, optional
            Sessions of the epochs, for ``align="session"``. New sessions are centred by the mean of
            their epochs here; None is one new session.

        Returns
        -------
        (n, bands * rank (rank + 1) / 2) array, float32 if `X` is float32, else float64

        Warns
        -----
        UserWarning
            If a new session has fewer than 10 epochs, or `fit` had several sessions and `groups` is
            None.
        """
        check_is_fitted(self, "basis_")
        dtype, n_times, covariances = self._covariances(X, self.n_channels_)
        return self._vectors(dtype, self._reduced(covariances, n_times), groups)

    def _vectors(self, dtype: Any, reduced: list[_Array], groups: ArrayLike | None) -> Floats:
        """Compute tangent vectors of reduced covariances (n, rank, rank) in each band."""
        n = len(reduced[0])
        for C in reduced:
            _check_positive(C, np.arange(n))
        out = np.empty((n, len(reduced), self.rank_ * (self.rank_ + 1) // 2), dtype=dtype)
        for rows, whitening in self._whitenings(reduced, self._sessions(groups, n)):
            for band, C in enumerate(reduced):
                out[rows, band] = tangent_vectors(C[rows], whitening[band], self.n_threads)
        return out.reshape(n, -1)

    @property
    def _n_features_out(self) -> int:
        n_bands = 1 if self.bands is None else len(self.bands)
        return n_bands * self.rank_ * (self.rank_ + 1) // 2

    def _covariances(self, X: Any, n_channels: int | None) -> tuple[Any, int, list[_Array]]:
        """Type of the features, length of the epochs, and their covariances in each band."""
        banks = self._read(X, n_channels)
        covariances = [epoch_covariances(filtered, self.n_threads) for filtered in banks]
        return banks[0].dtype, banks[0].shape[2], covariances

    def _fit_means(
        self, X: Any, sample_weight: ArrayLike | None, groups: ArrayLike | None
    ) -> tuple[Any, list[_Array]]:
        """Find the span and the means; return the type of the features, and covariances."""
        self._validate_params()
        dtype, n_times, covariances = self._covariances(X, None)
        n, self.n_channels_, _ = covariances[0].shape
        weight = row_weights(sample_weight, n)
        sessions = self._sessions(groups, n)
        self.alignment_ = None
        self.basis_, lift = _span(covariances, weight, rank_tolerance(dtype))
        self.rank_ = self.basis_.shape[1]
        reduced = self._reduced(covariances, n_times)
        if self.align is not None:
            self._align(sessions, weight, partial(self._means, reduced, weight))
            assert self.alignment_ is not None
            of_sessions = list(self.alignment_.means.swapaxes(0, 1))
            means = self._means(of_sessions, self.alignment_.sizes)
        else:
            means = self._means(reduced, weight)
        self._whitening = inverse_root(means)
        full = lift @ means @ lift.T
        self.reference_ = full[0] if self.bands is None else full
        return dtype, reduced

    def _means(
        self, reduced: list[_Array], weight: _Array, rows: Any = slice(None), name: str = ""
    ) -> _Array:
        """Mean (bands, rank, rank) of the covariances of a session's epochs `rows`."""
        positive = np.arange(len(weight))[rows]
        positive = positive[weight[positive] > 0]
        means = []
        for C in reduced:
            chosen = C if len(positive) == len(C) else C[positive]
            _check_positive(chosen, positive)
            means.append(mean_covariance(chosen, weight[positive], self.n_threads))
        return np.stack(means)

    def _whitenings(
        self, reduced: list[_Array], sessions: NDArray[Any] | None
    ) -> list[tuple[Any, _Array]]:
        """Indices of epochs that share a reference, and its inverse roots (bands, rank, rank)."""
        if self.alignment_ is None:
            return [(slice(None), self._whitening)]
        weight = np.ones(len(reduced[0]))
        mean_of = partial(self._means, reduced, weight)
        parts = self.alignment_.parts(sessions, len(weight), mean_of)
        return [(rows, inverse_root(means)) for rows, means, _ in parts]

    def _reduced(self, covariances: list[_Array], n_times: int) -> list[_Array]:
        """Shrunk covariances (n, rank, rank) in the coordinates of the basis.

        The result may overwrite the given `covariances`.
        """
        basis, reduced = self.basis_, []
        for C in covariances:
            if not np.array_equal(basis, np.eye(len(basis))):
                half = C.reshape(-1, len(basis)) @ basis
                C = basis.T @ half.reshape(len(C), len(basis), -1)
            if self.shrinkage is not None:
                _shrink(C, self.shrinkage, n_times)
            reduced.append(C)
        return reduced


def _span(covariances: list[_Array], weight: _Array, tol: float) -> tuple[_Array, _Array]:
    """Basis of the span of the channels over all bands, and its map back to channels."""
    share = weight / weight.max()
    means = np.stack([np.tensordot(share, C, axes=1) for C in covariances])
    size = np.einsum("bcc->b", means)
    if not (size > np.finfo(np.float64).tiny).all():
        raise ValueError("X: expected channels that vary, got only constant channels")
    total = np.tensordot(1.0 / size, means, axes=1)
    power = np.diag(total)
    varying = np.setdiff1d(np.arange(len(power)), constant_channels(power))
    scale = np.sqrt(power[varying])
    correlations = total[np.ix_(varying, varying)] / np.outer(scale, scale)
    values = np.linalg.eigvalsh(correlations)
    rank = int(np.count_nonzero(values > tol * values[-1]))
    several_units = scale.max() > _UNITS * scale.min()
    unit = scale if several_units else np.ones(len(varying))
    basis = np.zeros((len(power), rank))
    if rank == len(varying):
        basis[varying, np.arange(rank)] = 1.0 / unit
    else:
        inside = total[np.ix_(varying, varying)] / np.outer(unit, unit)
        vectors = np.linalg.eigh(inside)[1][:, len(varying) - rank :]
        basis[varying] = vectors / unit[:, None]
    square = np.ones(len(power))
    square[varying] = unit**2
    return basis, square[:, None] * basis


def _shrink(C: _Array, shrinkage: str | float, n_times: int) -> None:
    """Move each covariance (n, r, r) towards its mean variance times the identity, in place.

    Chen, Wiesel, Eldar and Hero 2010 (23), for "oas".
    """
    r = C.shape[1]
    mu = np.einsum("naa->n", C) / r
    C /= np.where(mu > 0, mu, 1.0)[:, None, None]
    share = np.ones(len(C))
    if isinstance(shrinkage, str):
        squares = np.einsum("nab,nab->n", C, C)
        top, bottom = squares + r**2, (n_times + 1.0) * (squares - r)
        np.divide(top, bottom, out=share, where=top < bottom)
    else:
        share *= shrinkage
    C *= ((1.0 - share) * mu)[:, None, None]
    C[:, np.arange(r), np.arange(r)] += (share * mu)[:, None]


def _check_positive(C: _Array, numbers: NDArray[np.intp]) -> None:
    bad = np.flatnonzero(~(np.einsum("naa->na", C) > 0).all(axis=1))
    if len(bad):
        raise ValueError(
            "X: expected epochs that vary in the span of the channels, got a constant channel in "
            f"epoch {numbers[bad[0]]}"
        )

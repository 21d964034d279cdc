"""Sessions of epochs: their mean covariances, and epochs whitened by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.validation import show
from eigenfeat.signals.epochs import epoch_blocks, session_parts
from eigenfeat.signals.means import epoch_covariances, geodesic, mean_covariance

__all__ = ["SessionAlignment", "check_session", "mean_covariances", "whitened"]

_Array = NDArray[np.float64]
_FLOOR, _FLOAT32_FLOOR = 1e-8, 1e-5  # of the mean eigenvalue, added to a mean covariance
_FLOAT32_TOLERANCE = 1e-5  # least rank_tol of float32 epochs


def check_session(count: int, name: str) -> None:
    """Raise ValueError if a session has fewer than two epochs."""
    if count < 2:
        raise ValueError(
            f"groups: expected at least 2 epochs of each session, got {count} of {name}"
        )


def mean_covariances(
    banks: Sequence[NDArray[Any]], weight: _Array, name: str, *, center: bool = True
) -> _Array:
    """Weighted mean covariance of the epochs of a session in each band.

    Parameters
    ----------
    banks : sequence of (n, channels, times) arrays
        Epochs in each band.
    weight : (n,) array
    name : str
        What messages call the session.
    center : bool
        Whether each channel's mean over an epoch is subtracted from it.

    Returns
    -------
    (bands, channels, channels) array

    Raises
    ------
    ValueError
        If epochs are constant in a band.
    """
    channels = banks[0].shape[1]
    out = np.zeros((len(banks), channels, channels))
    for band, X in enumerate(banks):
        for rows in epoch_blocks(X):
            epochs = X[rows].astype(np.float64)
            if center:
                epochs -= epochs.mean(axis=2, keepdims=True)
            out[band] += np.einsum("n,nct,ndt->cd", weight[rows], epochs, epochs, optimize=True)
        out[band] /= X.shape[2] * weight.sum()
        if not np.trace(out[band]) > 0:
            raise ValueError(f"X: expected epochs that vary, got constant ones in {name}")
    return out


def whitened(X: NDArray[Any], covariance: _Array, rank_tol: float) -> NDArray[Any]:
    """Epochs times ``covariance^(-1/2)``, in the span of the channels.

    Parameters
    ----------
    X : (n, channels, times) array
    covariance : (channels, channels) array
    rank_tol : float
        Directions with less than this fraction of the largest power (1e-5 for float32) become 0.
    """
    tol = max(rank_tol, _FLOAT32_TOLERANCE) if X.dtype == np.float32 else rank_tol
    values, vectors = np.linalg.eigh(covariance)
    inside = values > tol * values[-1]
    span = vectors[:, inside]
    whitening = (span / np.sqrt(values[inside])) @ span.T
    return np.asarray(whitening.astype(X.dtype) @ X)


@dataclass(frozen=True, eq=False)
class SessionAlignment:
    """Riemannian mean covariances of sessions, by which their epochs are whitened.

    A new session with n epochs has the point on the geodesic from the mean of its epochs to
    `typical` that weights the latter as one epoch, so that a session may begin with its first
    epoch. The result does not depend on the units of the channels.

    Attributes
    ----------
    names : (s,) array
        Sessions.
    means : (s, bands, channels, channels) array
        Mean covariances of their epochs.
    sizes : (s,) array
        Numbers of their epochs.
    typical : (bands, channels, channels) array
        Mean of the training sessions' covariances, each with trace 1.
    """

    names: NDArray[Any]
    means: _Array
    sizes: _Array
    typical: _Array

    @classmethod
    def fit(cls, banks: Sequence[NDArray[Any]], sessions: NDArray[Any]) -> SessionAlignment:
        """Mean covariances of sessions (n,) of epochs in each band."""
        parts = session_parts(sessions, len(sessions))
        for name, rows in parts:
            check_session(len(rows), f"session {show(name)}")
        means = np.stack([_riemannian_means(banks, rows) for _, rows in parts])
        scaled = means / np.einsum("sbcc->sb", means)[:, :, None, None]
        typical = [_mean(scaled[:, band]) for band in range(len(banks))]
        sizes = np.array([float(len(rows)) for _, rows in parts])
        return cls(np.array([name for name, _ in parts]), means, sizes, np.stack(typical))

    def updated(self, banks: Sequence[NDArray[Any]], sessions: NDArray[Any]) -> SessionAlignment:
        """Alignment with further epochs of sessions, known ones or new ones."""
        known = self._by_name()
        for name, rows in session_parts(sessions, len(sessions)):
            mean, size = _riemannian_means(banks, rows), float(len(rows))
            if name in known:
                before, old_size = known[name]
                size += old_size
                mean = _between(before, mean, len(rows) / size)
            known[name] = mean, size
        means, sizes = zip(*known.values(), strict=True)
        return replace(
            self, names=np.array(list(known)), means=np.stack(means), sizes=np.array(sizes)
        )

    def aligned(
        self, banks: Sequence[NDArray[Any]], sessions: NDArray[Any] | None
    ) -> list[NDArray[Any]]:
        """Epochs whitened by the covariances of their sessions; None is one new session."""
        known = self._by_name()
        out = [np.empty_like(X) for X in banks]
        for name, rows in session_parts(sessions, len(banks[0])):
            if name in known:
                means, size = known[name]
            else:
                means, size = _riemannian_means(banks, rows), float(len(rows))
            means = means[: len(banks)]
            typical = np.einsum("bcc->b", means)[:, None, None] * self.typical[: len(banks)]
            centres = _between(means, typical, 1.0 / (size + 1.0))
            for X, target, centre in zip(banks, out, centres, strict=True):
                target[rows] = whitened(X[rows], centre, 0.0)
        return out

    def _by_name(self) -> dict[Any, tuple[_Array, float]]:
        """Means (bands, channels, channels) and sizes of the sessions."""
        pairs = zip(self.means, self.sizes.tolist(), strict=True)
        return dict(zip(self.names.tolist(), pairs, strict=True))


def _riemannian_means(banks: Sequence[NDArray[Any]], rows: NDArray[np.intp]) -> _Array:
    """Riemannian mean covariance of the epochs `rows` in each band.

    Each covariance is first shrunk towards their arithmetic mean, the more the fewer samples an
    epoch has for its channels.
    """
    means = []
    for X in banks:
        C = epoch_covariances(X[rows], None)
        c, times = X.shape[1:]
        arithmetic = C.mean(axis=0)
        if not np.trace(arithmetic) > 0:
            raise ValueError("X: expected epochs that vary in each session, got constant ones")
        floor = _FLOAT32_FLOOR if X.dtype == np.float32 else _FLOOR
        arithmetic += floor * np.trace(arithmetic) / c * np.eye(c)
        share = c / (c + times)
        means.append(_mean((1.0 - share) * C + share * arithmetic))
    return np.stack(means)


def _mean(C: _Array) -> _Array:
    return mean_covariance(C, np.ones(len(C)), "riemannian", None).matrix


def _between(A: _Array, B: _Array, share: float) -> _Array:
    """Points on geodesics between matrices (bands, c, c)."""
    pairs = zip(A, B, strict=True)
    return np.stack([geodesic(one, other, share, "riemannian") for one, other in pairs])

"""Mean covariances of sessions of epochs, and whitening by these means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.validation import show, warn_caller
from eigenfeat.signals.epochs import epoch_blocks, session_parts
from eigenfeat.signals.means import between, epoch_covariances, mean_covariance

if TYPE_CHECKING:
    from typing_extensions import Self

_Array = NDArray[np.float64]
MeanOf = Callable[[NDArray[np.intp], str], _Array]
# Multiples of the mean eigenvalue that are added to eigenvalues, for float64 and float32.
_FLOOR, _FLOAT32_FLOOR = 1e-8, 1e-5
_MIN_NEW = 10  # epochs of a new session; with fewer, simulated sessions are aligned clearly worse


def rank_tolerance(dtype: Any) -> float:
    """Fraction of the largest power below which a direction is left out of the span."""
    return 1e-5 if dtype == np.float32 else 1e-8


def mean_covariances(
    banks: Sequence[NDArray[Any]], weight: _Array, n_threads: int | None, rows: Any, name: str
) -> _Array:
    """Weighted mean covariance (bands, channels, channels) of a session's epochs, centred.

    `banks` has all epochs (n, channels, times) in each band, `weight` (n,) their weights, and
    `rows` the indices of the session's epochs. Messages call the session `name`.
    """
    channels, share = banks[0].shape[1], weight[rows]
    out = np.zeros((len(banks), channels, channels))
    for band, all_epochs in enumerate(banks):
        X = all_epochs[rows]
        for block in epoch_blocks(X):
            out[band] += np.tensordot(share[block], epoch_covariances(X[block], n_threads), axes=1)
        out[band] /= share.sum()
        if not np.trace(out[band]) > 0:
            raise ValueError(f"X: expected epochs that vary, got constant epochs in {name}")
    return out


def whitened(
    banks: Sequence[NDArray[Any]],
    parts: Iterable[tuple[NDArray[np.intp], _Array]],
    tol: float | None = None,
) -> list[NDArray[Any]]:
    """Epochs times ``covariance^(-1/2)``, in the span of the channels.

    `banks` has epochs (n, channels, times) in each band. `parts` has the indices of each session's
    epochs and the covariances (bands, channels, channels) to whiten them by. Directions with less
    than the fraction `tol` (by default `rank_tolerance`) of the largest power become 0.
    """
    out = [np.empty_like(X) for X in banks]
    for rows, covariances in parts:
        for X, target, covariance in zip(banks, out, covariances, strict=True):
            least = rank_tolerance(X.dtype) if tol is None else tol
            values, vectors = np.linalg.eigh(covariance)
            inside = values > least * values[-1]
            span = vectors[:, inside]
            whitening = (span / np.sqrt(values[inside])) @ span.T
            target[rows] = whitening.astype(X.dtype) @ X[rows]
    return out


def _session(name: Any) -> str:
    return "a new session" if name is None else f"session {show(name)}"


def _check_type(name: Any, known: Iterable[Any]) -> None:
    """ValueError for the name of a known session in another type, such as "1" for 1."""
    same = [one for one in known if str(one) == str(name)]
    if same and name not in same:
        raise ValueError(f"groups: expected the session {same[0]!r} of fit, got {name!r}")


@dataclass(frozen=True, eq=False)
class SessionMeans:
    """Mean covariances of sessions of epochs.

    Attributes
    ----------
    names : (s,) array
        Sessions.
    means : (s, bands, channels, channels) array
        Mean covariances of the sessions' epochs.
    sizes : (s,) array
        Sums of the weights of the sessions' epochs.
    """

    min_epochs: ClassVar[int] = 2
    advice: ClassVar[str] = "transform more of its epochs at once"
    names: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    means: _Array = field(default_factory=lambda: np.empty(0))
    sizes: _Array = field(default_factory=lambda: np.empty(0))

    def updated(
        self, sessions: NDArray[Any], weight: _Array, mean_of: MeanOf, *, moves: bool = False
    ) -> Self:
        """Add epochs with these sessions (n,) and weights (n,).

        `mean_of` computes the mean covariances (bands, channels, channels) of a session from the
        indices of its epochs and its name. If `moves`, the mean of a known session moves along the
        geodesic to the mean of its new epochs.
        """
        known = self._by_name()
        for name, rows in session_parts(sessions, len(sessions)):
            _check_type(name, known)
            if name in known and not moves:
                continue
            mean, size = self._mean(name, rows, weight, mean_of), float(weight[rows].sum())
            if name in known:
                before, old_size = known[name]
                mean = between(before, mean, size / (old_size + size))
                size += old_size
            known[name] = mean, size
        means, sizes = zip(*known.values(), strict=True)
        names = np.array(list(known))
        if names.tolist() != list(known):  # numbers and text, all of which became text
            names = np.array(list(known), dtype=object)
        return replace(self, names=names, means=np.stack(means), sizes=np.array(sizes))

    def parts(
        self, sessions: NDArray[Any] | None, n: int, mean_of: MeanOf
    ) -> Iterator[tuple[NDArray[np.intp], _Array, float]]:
        """Yield indices, means and size of each session of n epochs; None means a new session.

        Warns if `sessions` is None, but several sessions are known, or if a new session has few
        epochs.
        """
        known, weight = self._by_name(), np.ones(n)
        parts = session_parts(sessions, n)
        sizes = {name: len(rows) for name, rows in parts if name not in known}
        if sessions is None and len(known) > 1:
            warn_caller(
                "groups: expected the sessions of the epochs, as in fit, got None; the epochs are "
                "aligned as epochs of one new session",
                UserWarning,
            )
        elif sizes and self.min_epochs <= min(sizes.values()) < _MIN_NEW:
            name = min(sizes, key=sizes.__getitem__)
            warn_caller(
                f"groups: expected at least {_MIN_NEW} epochs of a new session for a good "
                f"alignment, got {sizes[name]} of {_session(name)}; {self.advice}",
                UserWarning,
            )
        for name, rows in parts:
            _check_type(name, known)
            if name in known:
                yield rows, *known[name]
            else:
                yield rows, self._mean(name, rows, weight, mean_of), float(len(rows))

    def _mean(self, name: Any, rows: NDArray[np.intp], weight: _Array, mean_of: MeanOf) -> _Array:
        text = _session(name)
        count = int(np.count_nonzero(weight[rows] > 0))
        if count < self.min_epochs:
            raise ValueError(
                f"groups: expected at least {self.min_epochs} epochs of each session, "
                f"got {count} of {text}"
            )
        return mean_of(rows, text)

    def _by_name(self) -> dict[Any, tuple[_Array, float]]:
        """Means (bands, channels, channels) and sizes of the sessions."""
        pairs = zip(self.means, self.sizes.tolist(), strict=True)
        return dict(zip(self.names.tolist(), pairs, strict=True))


@dataclass(frozen=True, eq=False)
class SessionAlignment(SessionMeans):
    """Riemannian mean covariances of sessions, which whiten their epochs.

    A session with n epochs is whitened by the point at the fraction 1 / (n + 1) of the geodesic
    from the mean of its epochs to `typical`, scaled to the trace of the mean. A session can
    therefore begin with a single epoch. The result does not depend on the units of the channels.

    Attributes
    ----------
    names : (s,) array
        Sessions.
    means : (s, bands, channels, channels) array
        Riemannian mean covariances of the sessions' epochs.
    sizes : (s,) array
        Numbers of epochs of the sessions.
    typical : (bands, channels, channels) array
        Mean of the training sessions' mean covariances, each divided by its trace.
    """

    min_epochs: ClassVar[int] = 1
    advice: ClassVar[str] = "predict more of its epochs at once, or first add each epoch by adapt"
    typical: _Array = field(default_factory=lambda: np.empty(0))

    @classmethod
    def fit(cls, banks: Sequence[NDArray[Any]], sessions: NDArray[Any]) -> SessionAlignment:
        """Compute the means of training sessions (n,), with epochs in each band."""
        found = SessionMeans().updated(
            sessions, np.ones(len(sessions)), partial(_riemannian_means, banks)
        )
        scaled = found.means / np.einsum("sbcc->sb", found.means)[:, :, None, None]
        typical = np.stack([_mean(scaled[:, band]) for band in range(len(banks))])
        return cls(found.names, found.means, found.sizes, typical)

    def extended(self, banks: Sequence[NDArray[Any]], sessions: NDArray[Any]) -> SessionAlignment:
        """Add epochs of known or new sessions."""
        mean_of = partial(_riemannian_means, banks)
        return self.updated(sessions, np.ones(len(sessions)), mean_of, moves=True)

    def aligned(
        self, banks: Sequence[NDArray[Any]], sessions: NDArray[Any] | None
    ) -> list[NDArray[Any]]:
        """Whiten epochs by the covariances of their sessions; None is a new session."""
        n_bands, centres = len(banks), []
        mean_of = partial(_riemannian_means, banks)
        for rows, all_means, size in self.parts(sessions, len(banks[0]), mean_of):
            means = all_means[:n_bands]
            typical = np.einsum("bcc->b", means)[:, None, None] * self.typical[:n_bands]
            centres.append((rows, between(means, typical, 1.0 / (size + 1.0))))
        return whitened(banks, centres, 0.0)


def _riemannian_means(banks: Sequence[NDArray[Any]], rows: NDArray[np.intp], name: str) -> _Array:
    """Riemannian mean covariance of a session's epochs `rows` in each band.

    Each covariance is first shrunk towards the arithmetic mean, whose weight is
    ``channels / (channels + times)``.
    """
    means = []
    for X in banks:
        C = epoch_covariances(X[rows], None)
        c, times = X.shape[1:]
        arithmetic = C.mean(axis=0)
        if not np.trace(arithmetic) > 0:
            raise ValueError(f"X: expected epochs that vary, got constant epochs in {name}")
        floor = _FLOAT32_FLOOR if X.dtype == np.float32 else _FLOOR
        arithmetic += floor * np.trace(arithmetic) / c * np.eye(c)
        share = c / (c + times)
        means.append(_mean((1.0 - share) * C + share * arithmetic))
    return np.stack(means)


def _mean(C: _Array) -> _Array:
    return mean_covariance(C, np.ones(len(C)), None)

"""Epochs of many channels: checks that name what is wrong, blocks, filter banks and sessions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import butter, sosfiltfilt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from eigenfeat._base.labels import plain_labels
from eigenfeat._base.types import Labels
from eigenfeat._base.validation import listed_items, plain_rows, real_array, show, warn_caller

_BLOCK = 1 << 18  # entries of a block of epochs that fits into the cache
_FLAT = 1e-20  # a channel with a smaller share of the largest power is constant
_SWAPPED = 4  # channels per time point, from which on axes are probably swapped
_ORDER = 4  # order of the Butterworth filters
MIN_FILTERED = 3 * (2 * _ORDER + 1) + 1  # samples; `sosfiltfilt` extends both ends by less


class Recording(NamedTuple):
    """Epochs (n, channels, times), samples per second, and names of channels, if they are known."""

    data: NDArray[Any]
    sfreq: float | None
    channel_names: list[str] | None


def mne_epochs(X: Any) -> list[Any]:
    """MNE's Epochs in a list, as scikit-learn's splits return them; empty for other input."""
    parts = X if isinstance(X, (list, tuple)) else [X]
    are_epochs = all(hasattr(part, "get_data") and hasattr(part, "info") for part in parts)
    return list(parts) if are_epochs else []


def read_recording(X: Any, n_channels: int | None = None, sfreq: float | None = None) -> Recording:
    """Check epochs of an array, or MNE's Epochs with their sampling rate and channels.

    The user's sampling rate `sfreq` must equal the sampling rate of MNE's Epochs.
    """
    parts = mne_epochs(X)
    if not parts:
        return Recording(_checked(X, n_channels), None if sfreq is None else float(sfreq), None)
    kinds = {(float(part.info["sfreq"]), tuple(map(str, part.ch_names))) for part in parts}
    if len(kinds) > 1:
        raise ValueError("X: expected epochs of one sampling rate and channels, got several")
    known, names = kinds.pop()
    if sfreq not in (None, known):
        raise ValueError(
            f"sfreq: expected None or the sampling rate of the epochs, {known:g}, got {sfreq:g}"
        )
    data = _checked(np.concatenate([part.get_data() for part in parts]), n_channels)
    return Recording(data, known, list(names))


def _checked(X: Any, n_channels: int | None) -> NDArray[Any]:
    """Check that epochs are real and finite, and that all have one shape.

    X has `n_channels` channels, or any number of channels if `n_channels` is None.
    """
    X = listed_items(X)
    shapes = item_shapes(X, "epochs")
    if len(set(shapes)) > 1:
        odd = next(i for i, shape in enumerate(shapes) if shape != shapes[0])
        raise ValueError(
            "X: expected epochs of one number of channels and one length, got shapes "
            f"{shapes[0]} and, of epoch {odd}, {shapes[odd]}"
        )
    array = real_array(plain_rows(X), "X")
    if array.ndim != 3 or not array.size:
        advice = "; one epoch is X[None], one channel X[:, None]" if array.ndim == 2 else ""
        raise ValueError(
            f"X: expected epochs of shape (n, channels, times), got shape {array.shape}{advice}"
        )
    if n_channels is not None and array.shape[1] != n_channels:
        raise ValueError(f"X: expected {n_channels} channels, got {array.shape[1]}")
    check_finite(array, "epoch")
    return array


def warn_swapped(X: Any, shape: tuple[int, ...], what: str) -> None:
    """Warn of a `shape` (n, channels, times) of a fit that is probably (n, times, channels).

    MNE's Epochs `X` have known axes. Messages call the items `what`.
    """
    if shape[1] >= _SWAPPED * shape[2] and not mne_epochs(X):
        warn_caller(
            f"X: expected {what} of shape (n, channels, times), got many more channels than times, "
            f"shape {tuple(shape)}; if its last axis is the channels, pass np.swapaxes(X, 1, 2)",
            UserWarning,
        )


@contextmanager
def axes_checked() -> Iterator[None]:
    """Leave out warnings of swapped axes in the block, before which `warn_swapped` was called.

    The block may fit to arrays in place of MNE's Epochs, or to short beginnings of series.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X: .* more channels than times", UserWarning)
        yield


def transposed_advice(shapes: Sequence[tuple[int, ...]]) -> str:
    """Advice for a list of series whose `shapes` look like (times, channels); else an empty text.

    The last axis then has one length, which is shorter than the first axes.
    """
    last = {shape[-1] for shape in shapes}
    swapped = all(len(shape) == 2 for shape in shapes) and len(last) == 1
    swapped = swapped and last.pop() < min(shape[0] for shape in shapes)
    return "; pass series of shape (times, channels) as [x.T for x in X]" if swapped else ""


def check_finite(X: NDArray[Any], what: str) -> None:
    """ValueError at the first number that is not finite in X (n, channels, times).

    Messages call the items of X `what`.
    """
    for rows in epoch_blocks(X):
        with np.errstate(invalid="ignore", over="ignore"):
            total = X[rows].sum()
        if not np.isfinite(total) and not np.isfinite(X[rows]).all():
            item, channel, time = np.argwhere(~np.isfinite(X[rows]))[0]
            raise ValueError(
                f"X: expected finite numbers, got {X[rows][item, channel, time]} in {what} "
                f"{item + rows.start}, channel {channel}, sample {time}"
            )


def constant_channels(power: NDArray[np.float64]) -> NDArray[np.intp]:
    """Warn of channels without power, and return their indices; `power` is (channels,)."""
    constant = np.flatnonzero(power <= _FLAT * power.max())
    if len(constant) == len(power):
        raise ValueError("X: expected channels that vary, got only constant channels")
    if len(constant):
        warn_caller(f"X: constant channels are left out: {show(constant.tolist())}", UserWarning)
    return constant


def item_shapes(X: Any, what: str) -> list[tuple[int, ...]]:
    """Shapes of the items of a list; empty for an array. Messages call the items `what`."""
    if not isinstance(X, (list, tuple)):
        return []
    try:
        return [np.shape(item) for item in X]
    except ValueError:
        text = f"X: expected {what} of shape (channels, times), got ragged {what}"
        raise ValueError(text) from None


def too_large(X: NDArray[Any]) -> ValueError:
    """Error for numbers whose squares overflow."""
    return ValueError(
        f"X: expected magnitudes below 1e150, whose squares stay finite, got {np.abs(X).max():g}"
    )


def epoch_blocks(X: NDArray[Any]) -> Iterator[slice]:
    """Yield slices of epochs with a bounded number of entries."""
    step = max(1, _BLOCK // (X.shape[1] * X.shape[2]))
    return (slice(first, first + step) for first in range(0, len(X), step))


def unit_power(X: NDArray[Any]) -> NDArray[Any]:
    """Centre each channel, and divide epochs by the root mean square of all channels."""
    out = X - X.mean(axis=2, keepdims=True)
    size = np.sqrt(np.einsum("nct,nct->n", out, out) / (X.shape[1] * X.shape[2]))
    constant = np.flatnonzero(~(size > 0))
    if len(constant):
        raise ValueError(f"X: expected epochs that vary, got constant epoch {constant[0]}")
    out /= size[:, None, None]
    return np.asarray(out)


def filter_bank(
    X: NDArray[Any], bands: Sequence[tuple[float, float]] | None, sfreq: float | None
) -> list[NDArray[Any]]:
    """Epochs filtered to each band, forward and backward; the epochs themselves without bands.

    Bands are pairs ``0 < low < high < sfreq / 2``, and epochs have at least 28 samples.
    """
    if bands is None:
        return [X]
    if sfreq is None:
        raise ValueError("sfreq: expected samples per second with bands, got None")
    edges = real_array(bands, "bands")
    pairs = edges.shape[1:] == (2,) and len(edges) > 0
    if not pairs or not all(0 < low < high < sfreq / 2 for low, high in edges):
        raise ValueError(
            f"bands: expected pairs 0 < low < high < sfreq / 2 = {sfreq / 2:g}, got {show(bands)}"
        )
    if X.shape[2] < MIN_FILTERED:
        raise ValueError(
            f"X: expected epochs of at least {MIN_FILTERED} samples with bands, got {X.shape[2]}"
        )
    filtered = []
    for band in edges:
        sections = butter(_ORDER, band, "bandpass", fs=float(sfreq), output="sos")
        out = np.empty_like(X)
        for rows in epoch_blocks(X):
            out[rows] = sosfiltfilt(sections, X[rows].astype(np.float64), axis=2)
        filtered.append(out)
    return filtered


def read_groups(groups: ArrayLike | None, n: int) -> NDArray[Any] | None:
    """Sessions (n,) of epochs; None for one session without a name."""
    if groups is None:
        return None
    names = np.asarray(plain_labels(groups, "groups", what="session"))
    if names.shape != (n,):
        raise ValueError(f"groups: expected {n} sessions, one per epoch, got shape {names.shape}")
    return names


def read_labels(y: ArrayLike, n: int, what: str = "epoch") -> Labels:
    """Labels (n,) of epochs or series, which messages call `what`."""
    labels = np.asarray(plain_labels(y))
    if labels.shape == (n, 1):
        labels = column_or_1d(labels, warn=True)
    if labels.shape != (n,):
        raise ValueError(f"y: expected {n} labels, one per {what}, got shape {labels.shape}")
    check_classification_targets(labels)
    return labels


def session_parts(sessions: NDArray[Any] | None, n: int) -> list[tuple[Any, NDArray[np.intp]]]:
    """Names of sessions and indices of their epochs; None names a new session of all n epochs."""
    if sessions is None:
        return [(None, np.arange(n))]
    return [(name, np.flatnonzero(sessions == name)) for name in np.unique(sessions).tolist()]


def warn_single_classes(labels: NDArray[Any], sessions: NDArray[Any]) -> None:
    """Warn of sessions that have one class, whose alignment hides the class."""
    for name, rows in session_parts(sessions, len(labels)):
        if len(np.unique(labels[rows])) == 1:
            warn_caller(
                f"groups: session {show(name)} has one class alone; its alignment removes what "
                "tells this class from others",
                UserWarning,
            )
            return

"""Series of equal or several lengths: checks that name what is wrong, and missing values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Floats
from eigenfeat._base.validation import (
    is_table,
    listed_items,
    naming_text,
    plain_rows,
    real_array,
    show,
)
from eigenfeat.samples.columns import warn_identifiers
from eigenfeat.signals.epochs import (
    check_finite,
    item_shapes,
    mne_epochs,
    transposed_advice,
)

_LEAVE_OUT = "leave out columns that are not values of the series"


def read_series(X: Any, n_channels: int | None = None) -> tuple[Floats, NDArray[np.int64]]:
    """Check series; return an array (n, channels, times) and the lengths (n,).

    X is an array (n, times) or (n, channels, times), MNE's Epochs, or a list or array of objects
    with n arrays (channels, times_i) or (times_i,). In a fit `n_channels` is None: any number of
    channels is allowed, and row numbers in a table lead to a warning. Shorter series are padded
    with zeros. NaN becomes its channel's last known value before it, or else the first known value;
    a series ends where all later values are NaN in all channels.
    """
    parts = mne_epochs(X)
    X = np.concatenate([part.get_data() for part in parts]) if parts else listed_items(X)
    if len(set(item_shapes(X, "series"))) > 1:
        series, lengths = _padded(X)
        given = series.shape
    else:
        in_fit = n_channels is None
        with reading_table(X, _LEAVE_OUT, in_fit=in_fit) if is_table(X) else nullcontext():
            series = real_array(plain_rows(X, missing=True), "X")
        given = series.shape
        if series.ndim == 2:
            series = series[:, None, :]
        if series.ndim != 3 or not series.size:
            advice = "; one series is X[None]" if series.ndim == 1 else ""
            raise ValueError(
                "X: expected series of shape (n, times) or (n, channels, times), got shape "
                f"{given}{advice}"
            )
        series = np.ascontiguousarray(series)
        lengths = np.full(len(series), series.shape[2], dtype=np.int64)
    if n_channels is not None and series.shape[1] != n_channels:
        raise ValueError(
            f"X: expected {n_channels} channels, got {series.shape[1]} in shape {given}"
        )
    if np.isnan(series).any():
        series, lengths = _completed(series, lengths)
    check_finite(series, "series")
    return series, lengths


@contextmanager
def reading_table(X: Any, advice: str, *, in_fit: bool) -> Iterator[None]:
    """While the table of series X is read, errors name columns of text and give the advice.

    In a fit, row numbers among the columns lead to a warning.
    """
    if in_fit:
        warn_identifiers(X)
    with naming_text(X, advice=advice):
        yield


def _completed(series: Floats, lengths: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    """Replace NaN by its channel's last known value before it, or else by the first known value.

    A series ends where all of its later values are NaN in all channels.
    """
    times = series.shape[2]
    clock = np.arange(times)
    known = ~np.isnan(series) & (clock < lengths[:, None, None])
    empty = np.argwhere(~known.any(axis=2))
    if len(empty):
        row, channel = empty[0]
        raise ValueError(
            f"X: expected values in each channel, got only NaN in series {row}, channel {channel}"
        )
    lengths = times - np.asarray(known.any(axis=1))[:, ::-1].argmax(axis=1)
    last = np.maximum.accumulate(np.where(known, clock, -1), axis=2)
    place = np.where(last < 0, known.argmax(axis=2)[:, :, None], last)
    filled = np.take_along_axis(series, place, axis=2)
    filled[np.broadcast_to(clock >= lengths[:, None, None], filled.shape)] = 0.0
    return filled, lengths


def _padded(X: Any) -> tuple[Floats, NDArray[np.int64]]:
    """Pad series of several lengths with zeros."""
    parts: list[NDArray[Any]] = []
    for i, given in enumerate(X):
        part = np.atleast_2d(real_array(plain_rows(given, missing=True), "X"))
        if part.ndim != 2 or not part.size:
            raise ValueError(
                f"X: expected series of shape (channels, times), got shape {np.shape(given)} of "
                f"series {i}"
            )
        if len(part) != len(parts[0] if parts else part):
            raise ValueError(
                f"X: expected series of shape (channels, times) with {len(parts[0])} channels, got "
                f"shape {part.shape} of series {i}{transposed_advice(item_shapes(X, 'series'))}"
            )
        parts.append(part)
    lengths = np.array([part.shape[1] for part in parts], dtype=np.int64)
    single = all(part.dtype == np.float32 for part in parts)
    dtype = np.float32 if single else np.float64
    series = np.zeros((len(parts), len(parts[0]), int(lengths.max())), dtype=dtype)
    for i, part in enumerate(parts):
        series[i, :, : part.shape[1]] = part
    return series, lengths


def shortened(series: Floats, lengths: NDArray[np.int64]) -> Floats | list[Floats]:
    """The series without padding: a list, or the array itself if all lengths are equal."""
    if (lengths == series.shape[2]).all():
        return series
    return [one[:, :end] for one, end in zip(series, lengths.tolist(), strict=True)]


def read_times(times: Any, name: str, least: int, most: int | None = None) -> NDArray[np.int64]:
    """Check numbers of samples: ascending integers from `least` to `most`."""
    at = np.atleast_1d(np.asarray(times))
    if at.ndim == 1 and at.size and at.dtype.kind in "iu":
        at = at.astype(np.int64)
        if at[0] >= least and (most is None or at[-1] <= most) and (np.diff(at) > 0).all():
            return at
    allowed = f">= {least}" if most is None else f"in {least}..{most}"
    raise ValueError(f"{name}: expected ascending integers {allowed}, got {show(times)}")

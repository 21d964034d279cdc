"""Series of several channels and unequal lengths as rows, and back, at the boundary.

Everything inside works on rows of ``channels * length`` entries in the order of time: all channels
of the first sample, then all of the second. So the first t samples are the first ``t * channels``
entries, and one Cholesky factor serves all times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from eigenfeat._base.labels import plain_labels
from eigenfeat._base.plain_rows import plain_rows
from eigenfeat._base.saved import Saved, fits
from eigenfeat._base.types import Codes, Labels
from eigenfeat._base.validation import check_whole, real_array, show
from eigenfeat.incomplete._series.complete_rows import complete_rows, labelled_complete_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

__all__ = ["Layout", "Rows", "known_rows", "series_of", "training_rows", "whole_rows"]

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Layout(Saved):
    """How series lie in rows.

    Attributes
    ----------
    channels, length : int
        Numbers in a sample, and samples in a row.
    held : bool
        Whether a series is complete at its own end: its last samples stand for what it lacks.
        Otherwise what it lacks is missing.
    """

    _saved: ClassVar[dict[str, str]] = {"channels": "count", "length": "count", "held": "flag"}

    channels: int
    length: int
    held: bool

    @property
    def width(self) -> int:
        """Entries of a row."""
        return self.channels * self.length

    def times(self, entries: Codes) -> Codes:
        """How many samples so many leading entries are."""
        return entries // self.channels

    def row_of(self, name: str, one: _Array, *, ended: bool) -> _Array:
        """(width,) of a series (channels, samples); NaN is missing."""
        channels, samples = one.shape
        if channels != self.channels:
            raise ValueError(f"{name}: expected {_told(self.channels)}, got {channels}")
        if samples > self.length:
            raise ValueError(f"{name}: expected at most {self.length} samples, got {samples}")
        row = np.full((self.length, channels), np.nan)
        row[:samples] = one.T
        if ended and self.held:
            self.hold(row, samples)
        return row.reshape(-1)

    def hold(self, row: _Array, samples: int) -> None:
        """Fill a row (length, channels) after so many samples with each channel's last one."""
        for values in row.T:
            known = np.flatnonzero(~np.isnan(values[:samples]))
            values[samples:] = values[known[-1]] if len(known) else np.nan

    def _check_loaded(self) -> None:
        fits(self.channels >= 1 and self.length >= 1, "Layout")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of series, NaN where something is missing, and where each series ends.

    Attributes
    ----------
    rows : (n, width) array
    ends : (n,) array of int
        Numbers of entries.
    weight : (n,) array or None
        Of the rows, in fits.
    """

    rows: _Array
    ends: NDArray[np.int64]
    weight: _Array | None = None

    def some(self, which: Codes | NDArray[np.bool_] | slice) -> Rows:
        """Some of them."""
        weight = None if self.weight is None else self.weight[which]
        return Rows(self.rows[which], self.ends[which], weight)

    @property
    def have_holes(self) -> NDArray[np.bool_]:
        """(n,): which series lack entries before their end."""
        before = np.arange(self.rows.shape[1]) < self.ends[:, None]
        return np.asarray((np.isnan(self.rows) & before).any(axis=1))


def training_rows(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike | None, horizon: int | None
) -> tuple[Rows, Labels, Layout]:
    """Rows, labels and layout to fit on; sets `n_features_in_`."""
    if horizon is not None:
        horizon = check_whole(horizon, "horizon", at_least=1)
    series = series_of(X)
    if series is None:
        rows, labels = labelled_complete_rows(estimator, X, y)
        if horizon not in (None, rows.shape[1]):
            raise ValueError(
                f"horizon: expected None or {rows.shape[1]}, the number of columns, got {horizon}"
            )
        return _complete(rows), labels, Layout(1, rows.shape[1], horizon is None)
    if y is None:
        raise ValueError("y: expected labels, got None")
    labels = column_or_1d(plain_labels(y))
    if len(labels) != len(series) or len(series) < 2:
        raise ValueError(
            "X: expected at least two series and as many labels, got "
            f"{len(series)} and {len(labels)}"
        )
    longest = max(one.shape[1] for one in series)
    if horizon is not None and horizon > longest:
        raise ValueError(f"horizon: expected at most {longest}, the longest series, got {horizon}")
    layout = Layout(len(series[0]), longest if horizon is None else horizon, horizon is None)
    found = _laid_out(series, layout, ended=True)
    empty = np.isnan(found.rows).all(axis=1)
    if empty.any():
        raise ValueError(f"X: expected known samples, got none in series {int(empty.argmax())}")
    estimator.n_features_in_ = layout.width
    estimator.__dict__.pop("feature_names_in_", None)
    return found, labels, layout


def whole_rows(estimator: BaseEstimator, X: ArrayLike, layout: Layout) -> Rows:
    """Rows of series that have ended."""
    series = series_of(X)
    if series is None:
        return _complete(complete_rows(estimator, X))
    return _laid_out(series, layout, ended=True)


def known_rows(X: ArrayLike, layout: Layout) -> _Array | None:
    """Rows of what is known of series so far; None if X are rows already."""
    series = series_of(X)
    return None if series is None else _laid_out(series, layout, ended=False).rows


def _complete(rows: _Array) -> Rows:
    return Rows(rows, np.full(len(rows), rows.shape[1], dtype=np.int64))


def _laid_out(series: list[_Array], layout: Layout, *, ended: bool) -> Rows:
    rows = [layout.row_of(f"X[{i}]", one, ended=ended) for i, one in enumerate(series)]
    ends = np.array([one.shape[1] for one in series], dtype=np.int64) * layout.channels
    return Rows(np.array(rows).reshape(len(series), layout.width), ends)


def series_of(X: Any) -> list[_Array] | None:
    """Series (channels, samples), if X is an array of them or a list of unequal lengths."""
    if not _are_series(X):
        return None
    out = []
    for i, given in enumerate(X):
        one = real_array(
            plain_rows(given, f"X[{i}]", missing=True), f"X[{i}]", np.dtype(np.float64)
        )
        one = one[None] if one.ndim == 1 else one
        if one.ndim != 2 or not one.size:
            raise ValueError(f"X[{i}]: expected shape (channels, samples), got {np.shape(given)}")
        if np.isinf(one).any():
            raise ValueError(f"X[{i}]: expected finite samples, or NaN, got {show(np.inf)}")
        out.append(one)
    if not out:
        raise ValueError("X: expected at least one series, got none")
    return out


def _are_series(X: Any) -> bool:
    """An array of three dimensions; a list of arrays of two, or of one and of unequal lengths."""
    if isinstance(X, np.ndarray) and X.dtype != object:
        return X.ndim == 3
    if not isinstance(X, (list, tuple, np.ndarray)) or not len(X) or np.ndim(X[0]) == 0:
        return getattr(X, "ndim", 0) == 3
    shapes = {_shape(one) for one in X}
    dimensions = {len(shape) for shape in shapes}
    return dimensions == {2} or (dimensions <= {1, 2} and len(shapes) > 1)


def _shape(one: Any) -> tuple[int, ...]:
    try:
        return np.shape(one)
    except ValueError:  # channels of unequal lengths
        return (0, 0)


def _told(channels: int) -> str:
    return "one channel" if channels == 1 else f"{channels} channels"

"""Series of several channels and unequal lengths as rows; times of decision; folds of series.

A row has ``channels * length`` entries in the order of time: all channels of the first value, then
all channels of the second value. The first t values are the first ``t * channels`` entries, so that
one Cholesky factor serves all times.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

from eigenfeat._base.labels import fold_indices, plain_labels
from eigenfeat._base.types import Codes, Labels, RandomState
from eigenfeat._base.validation import is_table, listed_items, plain_rows, real_array, show
from eigenfeat.samples.estimator import validate_data
from eigenfeat.signals.epochs import transposed_advice, warn_swapped
from eigenfeat.signals.series import read_times, reading_table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

_Array = NDArray[np.float64]
BLOCK_NUMBERS = 2**22  # float64 numbers of a block: 32 MB


@dataclass(frozen=True)
class Layout:
    """Layout of series in rows; shorter series are padded with their last values."""

    channels: int
    length: int  # values of the longest series

    @property
    def width(self) -> int:
        """Entries of a row."""
        return self.channels * self.length

    def series(self, rows: _Array) -> _Array:
        """Series (n, length, channels) of rows (n, width)."""
        return rows.reshape(-1, self.length, self.channels)


@dataclass(frozen=True, eq=False)
class Series:
    """Series as rows, and their ends; NaN is missing."""

    rows: _Array  # (n, width)
    ends: NDArray[np.int64]  # (n,) numbers of entries

    def take(self, which: Codes | NDArray[np.bool_] | slice) -> Series:
        """Select series."""
        return Series(self.rows[which], self.ends[which])

    @property
    def have_gaps(self) -> NDArray[np.bool_]:
        """Mask (n,) of series with missing entries before their ends."""
        before = np.arange(self.rows.shape[1]) < self.ends[:, None]
        return np.asarray((np.isnan(self.rows) & before).any(axis=1))


def training_rows(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike | None
) -> tuple[Series, Labels, Layout]:
    """Rows, labels and layout to fit on; sets `n_features_in_`."""
    X = listed_items(X)
    series = series_of(X)
    if series is None:
        options = {**_VALIDATION_OPTIONS, "ensure_min_samples": 2}
        with reading_table(X, _COLUMNS_ADVICE, in_fit=True) if is_table(X) else nullcontext():
            rows, labels = validate_data(estimator, X, y, **options)
        return _complete(estimator, rows, fit=True), labels, Layout(1, rows.shape[1])
    if y is None:
        raise ValueError("y: expected labels, got None")
    labels = column_or_1d(plain_labels(y))
    if len(labels) != len(series) or len(series) < 2:
        raise ValueError(
            "X: expected at least two series and a label for each, got "
            f"{len(series)} series and {len(labels)} labels"
        )
    layout = Layout(len(series[0]), max(values.shape[1] for values in series))
    laid_out = _laid_out(series, layout, ended=True)
    empty = np.isnan(laid_out.rows).all(axis=1)
    if empty.any():
        i = int(empty.argmax())
        raise ValueError(f"X: expected series with known values, got only NaN in series {i}")
    warn_swapped(X, (len(series), layout.channels, layout.length), "series")
    estimator.n_features_in_ = layout.width
    estimator.__dict__.pop("feature_names_in_", None)
    return laid_out, labels, layout


def ended_rows(estimator: BaseEstimator, X: ArrayLike, layout: Layout) -> Series:
    """Rows of series that have ended."""
    X = listed_items(X)
    series = series_of(X, layout.length)
    if series is None:
        _check_rows(estimator, X, layout)
        return _complete(estimator, validate_data(estimator, X, reset=False, **_VALIDATION_OPTIONS))
    return _laid_out(series, layout, ended=True)


def pushed_value(value: ArrayLike, channels: int, *, decided: bool) -> _Array:
    """A sample (channels,) that is pushed to a stream; NaN is a missing value.

    Raises
    ------
    ValueError
        If the value has another shape, or is infinite while the stream is not decided.
    """
    sample = real_array(value, "value", np.dtype(np.float64))
    shape = () if channels == 1 else (channels,)
    if sample.shape != shape:
        expected = "a number" if channels == 1 else f"shape {shape}"
        raise ValueError(f"value: expected {expected}, got shape {sample.shape}")
    if not decided and np.isinf(sample).any():
        raise ValueError(f"value: expected finite numbers or NaN, got {sample}")
    return sample.reshape(channels)


def known_rows(estimator: BaseEstimator, X: ArrayLike, layout: Layout) -> _Array:
    """Rows of the known values of running series, or of incomplete samples; NaN is missing."""
    X = listed_items(X)
    series = series_of(X, layout.length)
    if series is None:
        _check_rows(estimator, X, layout)
        options = {**_VALIDATION_OPTIONS, "ensure_all_finite": "allow-nan"}
        return np.asarray(validate_data(estimator, X, reset=False, **options))
    return _laid_out(series, layout, ended=False).rows


_VALIDATION_OPTIONS: dict[str, Any] = {
    "dtype": np.float64,
    "order": "C",
    "ensure_all_finite": False,
}
_COLUMNS_ADVICE = "leave such columns out, or encode them as numbers"
ENDED_ADVICE = "; pass series that have ended as a list of arrays, without NaN at their ends"
_SERIES_ADVICE = "; pass series with missing values as X[:, None] or as a list" + ENDED_ADVICE
_DECIDE_ADVICE = "; decide takes incomplete samples"
_FIT_ADVICE = "; complete samples first, with GaussianCompletion().fit(X).transform(X)"


def _complete(estimator: Any, rows: _Array, *, fit: bool = False) -> Series:
    """Rows of complete samples; ValueError with advice for NaN or infinity."""
    if not np.isfinite(rows).all():
        i, j = np.argwhere(~np.isfinite(rows))[0].tolist()
        names = getattr(estimator, "feature_names_in_", None)
        place = f"row {i}, column {j}" if names is None else f"row {i}, column {j} ({names[j]!r})"
        if not np.isnan(rows[i, j]):
            raise ValueError(f"X: expected finite rows, got {rows[i, j]} in {place}")
        advice = _SERIES_ADVICE
        if hasattr(estimator, "decide"):
            advice = (_FIT_ADVICE if fit else "") + _DECIDE_ADVICE + _SERIES_ADVICE
        raise ValueError(f"X: expected complete samples, got NaN in {place}{advice}")
    return Series(rows, np.full(len(rows), rows.shape[1], dtype=np.int64))


def _check_rows(estimator: Any, X: Any, layout: Layout) -> None:
    """ValueError if the order of the entries is not known, or for an array of too few columns."""
    if layout.channels > 1:
        raise ValueError(
            f"X: expected series of shape (n, {layout.channels}, times) as in fit, got shape "
            f"{np.shape(X)}"
        )
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] < layout.length:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{layout.length} features as input; pass shorter series as X[:, None]"
        )


def _laid_out(series: list[_Array], layout: Layout, *, ended: bool) -> Series:
    rows = np.full((len(series), layout.length, layout.channels), np.nan)
    for i, values in enumerate(series):
        channels, samples = values.shape
        if channels != layout.channels:
            expected = "one channel" if layout.channels == 1 else f"{layout.channels} channels"
            raise ValueError(
                f"X[{i}]: expected {expected}, got {channels} in shape {values.shape}"
                f"{transposed_advice([one.shape for one in series])}"
            )
        if samples > layout.length:
            raise ValueError(f"X[{i}]: expected at most {layout.length} samples, got {samples}")
        rows[i, :samples] = values.T
    lengths = np.array([values.shape[1] for values in series], dtype=np.int64)
    if ended:
        rows = padded(rows, lengths)
    return Series(rows.reshape(len(series), layout.width), lengths * layout.channels)


def padded(series: _Array, lengths: NDArray[np.int64]) -> _Array:
    """Series (n, t, channels) with each channel's last known value after their end."""
    after = np.arange(series.shape[1])[:, None] >= lengths[:, None, None]
    return np.where(after, carried(series), series)


def carried(series: _Array) -> _Array:
    """Series (n, t, channels) with missing values replaced by the last known value."""
    place = np.where(np.isnan(series), 0, np.arange(series.shape[1])[:, None])
    return np.take_along_axis(series, np.maximum.accumulate(place, axis=1), axis=1)


def series_of(X: Any, length: int = 0) -> list[_Array] | None:
    """Arrays (channels, times) if X is a list of series or a 3-D array; None for other samples.

    X is a result of `listed_items`. A list of vectors of one length is a matrix of samples, unless
    its vectors are shorter than `length`.
    """
    X = _array_of_epochs(X)
    if not _are_series(X, length):
        return None
    series = []
    for i, item in enumerate(X):
        name = f"X[{i}]"
        values = real_array(plain_rows(item, name, missing=True), name, np.dtype(np.float64))
        values = values[None] if values.ndim == 1 else values
        if values.ndim != 2 or not values.size:
            raise ValueError(f"{name}: expected shape (channels, samples), got {np.shape(item)}")
        if np.isinf(values).any():
            raise ValueError(f"{name}: expected finite samples, or NaN, got {show(np.inf)}")
        series.append(values)
    if not series:
        raise ValueError("X: expected at least one series, got none")
    return series


def _array_of_epochs(X: Any) -> Any:
    """The array of an object of epochs, such as MNE's; other objects are returned unchanged."""
    known = isinstance(X, (np.ndarray, list, tuple, str)) or hasattr(X, "ndim")
    sequence = hasattr(X, "__len__") and (hasattr(X, "__iter__") or hasattr(X, "__getitem__"))
    if known or hasattr(X, "columns") or not (sequence or hasattr(X, "__array__")):
        return X
    array = np.asarray(X)
    return array if array.ndim == 3 else X


def _are_series(X: Any, length: int) -> bool:
    """Whether X is an array of three dimensions or a list of series: see `series_of`."""
    if isinstance(X, np.ndarray) and X.dtype != object:
        return X.ndim == 3
    if not isinstance(X, (list, tuple, np.ndarray)) or not len(X) or np.ndim(X[0]) == 0:
        return getattr(X, "ndim", 0) == 3
    shapes = {_shape(item) for item in X}
    dimensions = {len(shape) for shape in shapes}
    if len(shapes) == 1 and dimensions == {1}:
        return 0 < shapes.pop()[0] < length
    return dimensions == {2} or (dimensions <= {1, 2} and len(shapes) > 1)


def _shape(item: Any) -> tuple[int, ...]:
    try:
        return np.shape(item)
    except ValueError:  # channels of unequal lengths
        return (0, 0)


# ---- times and reliabilities


def spread_steps(length: int, max_count: int) -> NDArray[np.int64]:
    """At most `max_count` evenly spaced numbers in 1..length - 1; empty for length 1."""
    if length < 2:
        return np.empty(0, dtype=np.int64)
    steps = np.linspace(1, length - 1, min(length - 1, max_count))
    return np.unique(steps.round().astype(np.int64))


def decision_times(model: BaseEstimator, steps: ArrayLike | None, length: int) -> NDArray[np.int64]:
    """Numbers of samples, ascending in 0..length, at which to decide.

    The default is the times of a fitted model's correction, or 1, 2, ..., length.
    """
    steps = getattr(model, "decision_times_", None) if steps is None else steps
    if steps is None:
        return np.arange(1, length + 1)
    return read_times(steps, "steps", 0, length)


def taus_of(model: BaseEstimator, reliability: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """Tau (n,) of each sample; None means the tau of the model."""
    if reliability is None:
        reliability = getattr(model, "reliability_", model.reliability)
    tau = real_array(reliability, "reliability", np.dtype(np.float64))
    if tau.ndim > 1 or (tau.ndim == 1 and len(tau) != n):
        raise ValueError(f"reliability: expected a number or shape ({n},), got {tau.shape}")
    if not np.all((tau > 0) & (tau < 1)):
        raise ValueError(f"reliability: expected numbers in (0, 1), got {show(reliability)}")
    return np.ascontiguousarray(np.broadcast_to(tau, (n,)))


# ---- folds and blocks


def fold_masks(
    y: Labels, n_folds: int, random_state: RandomState = 0
) -> Iterator[NDArray[np.bool_]]:
    """Yield the mask of the samples that each random, stratified fold holds out.

    The only sample of a class is never held out, so that the training part has all classes.
    """
    classes, codes = np.unique(y, return_inverse=True)
    random = check_random_state(random_state)
    for _, held_out in fold_indices(codes, len(classes), n_folds, random):
        yield np.isin(np.arange(len(codes)), held_out)


@contextmanager
def ignore_single_sample_warning() -> Iterator[None]:
    """Silence scikit-learn's warning about the shrinkage of a class with one sample."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Only one sample available", UserWarning)
        yield


def stratified_draw(
    y: Labels, count: int, random_state: RandomState, *, spare_last: bool = False
) -> NDArray[np.bool_]:
    """Mask of `count` random samples, from each class in proportion to its size.

    All samples are equally likely to be drawn. With `spare_last`, one sample of each class is never
    drawn.
    """
    random = check_random_state(random_state)
    _, codes, sizes = np.unique(y, return_inverse=True, return_counts=True)
    order = random.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    place = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # The samples of a class are spread evenly over (0, 1) from a random start.
    position = (place + np.repeat(random.uniform(size=len(sizes)), sizes)) / np.repeat(sizes, sizes)
    if spare_last:
        position[place == np.repeat(sizes, sizes) - 1] = np.inf
    count = min(count, int(np.isfinite(position).sum()))
    mask = np.zeros(len(codes), dtype=bool)
    mask[order[np.argsort(position, kind="stable")[:count]]] = True
    return mask


def blocks(n: int, numbers_per_row: int) -> Iterator[slice]:
    """Yield slices of n rows of at most about BLOCK_NUMBERS numbers."""
    width = max(1, BLOCK_NUMBERS // max(1, numbers_per_row))
    for start in range(0, n, width):
        yield slice(start, min(start + width, n))

"""Convolution features of series and of their beginnings."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat._base.types import Floats, Seed
from eigenfeat._base.validation import random_generator, real_array
from eigenfeat.samples.estimator import BaseEstimator, unchanged_on_error
from eigenfeat.signals.epochs import warn_swapped
from eigenfeat.signals.series import read_series, read_times

__all__ = ["N_KERNELS", "ConvolutionFeatures"]

_Places = NDArray[np.int64]
N_KERNELS = 84  # choices of the three larger weights out of nine
_RIVALS, _ROUNDS = 7, 3  # kernels of a group, and contests of a dilation
_TAPS = 9  # weights of a kernel
_MAX_DILATIONS = 32  # dilations of a kernel
_GOLDEN = (np.sqrt(5.0) + 1.0) / 2.0
_MAX_OUTPUTS = 1 << 22  # outputs in memory while thresholds are chosen
_MIN_PAIRS = 16  # pairs of dilation and kernel computed at once, even beyond `_MAX_OUTPUTS`


class ConvolutionFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Shares of the outputs of random convolutions above thresholds, and contests of convolutions.

    Use it for series whose classes differ in shape, before a ridge classifier. Tune `n_features`.
    User guide: :doc:`/guide/series`.

    The 84 kernels have nine taps, three of weight 2 and six of weight -1, and are spread by several
    dilations. A feature is the share of a convolution's outputs above a threshold, which is a
    quantile of the outputs of a training series (MiniRocket). With `contests`, groups of seven
    convolutions compete at each time: the features are how large each is where it is the largest,
    and how often it is the smallest (Hydra).

    Parameters
    ----------
    n_features : int >= 84, default=10000
        Number of thresholds, rounded down to a multiple of 84. Convolutions have up to 32
        dilations, from 1 to an eighth of the series' length.
    differences : bool, default=False
        Whether to also convolve the differences x[t + 1] - x[t], with half of the thresholds.
    contests : bool, default=False
        Whether to add three contests for each dilation 1, 2, 4, ... up to an eighth of the length.
        Each has 168 features: square roots of the mean over time of a convolution's output where it
        is the largest of its group, and of the share of times at which it is the smallest.
    random_state : int, RandomState, Generator or None, default=None
        Draws the training series of each threshold, the channels of each kernel and the groups.
    n_threads : int or None, default=None
        Number of threads; None means all OpenMP threads. The features do not depend on it.

    Attributes
    ----------
    dilations_ : (D,) array of int
        Dilations with thresholds, then of the contests.
    orders_ : (D,) array of int
        0 for dilations of the series, 1 for those of its differences.
    thresholds_ : (F,) array
        Thresholds, ordered by dilation, kernel and quantile.
    thresholds_per_kernel_ : (D,) array of int
        Number of thresholds of each kernel with a dilation; 0 for contests.
    channels_ : (m,) array of int
        Channels of all pairs of dilation and kernel, one after the other.
    channel_begin_ : (84 D + 1,) array of int
        Index in `channels_` of the first channel of each pair.
    rivals_ : (contests, 84) array of int
        Kernels of each contest; every seven form a group.
    n_channels_ : int
        Number of channels.
    n_features_out_ : int
        Number of features.

    See Also
    --------
    ConvolutionClassifier : These features with a ridge classifier.

    Notes
    -----
    Unlike in MiniRocket, the window of an output at time t ends at t, so that one pass computes the
    features of all beginnings of a series (`transform_prefixes`). With dilation d, outputs begin at
    t = 4 d for every other pair of kernel and dilation, and at t = 8 d for the rest; samples before
    the first are 0. Groups are drawn from the 84 kernels, not from random kernels as in Hydra.

    References
    ----------
    A. Dempster, D. F. Schmidt and G. I. Webb, "MiniRocket", KDD 2021; "Hydra", Data Min. Knowl.
    Disc. 37, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.signals import ConvolutionFeatures
    >>> X = np.random.default_rng(0).standard_normal((20, 100))
    >>> ConvolutionFeatures(840, random_state=0).fit_transform(X).shape
    (20, 840)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features": [Interval(Integral, N_KERNELS, 2**31 - 1, closed="both")],
        "differences": ["boolean"],
        "contests": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_features: int = 10000,
        *,
        differences: bool = False,
        contests: bool = False,
        random_state: Seed = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_features = n_features
        self.differences = differences
        self.contests = contests
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X: ArrayLike | Sequence[ArrayLike], y: object = None) -> ConvolutionFeatures:
        """Choose dilations, channels and thresholds.

        Parameters
        ----------
        X : (n, times) or (n, channels, times) array-like, or list of n (channels, times_i) arrays
            Series, or MNE's `Epochs`. Series in a list may differ in length. A series also ends
            where all later values are NaN in all channels; `ReliableClassifier` and
            `MinimumCostClassifier` treat such values as missing. Other NaN is replaced by the
            channel's last known value.
        y : object, default=None
            Not used.

        Returns
        -------
        ConvolutionFeatures
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._validate_params()
            series, lengths = read_series(X)
            warn_swapped(X, series.shape, "series")
            rng = random_generator(self.random_state)
            n, self.n_channels_, length = series.shape
            per_kernel = int(self.n_features) // N_KERNELS
            of_differences = per_kernel // 2 if self.differences else 0
            counts = per_kernel - of_differences, of_differences
            parts = [_dilations(length, count) for count in counts if count]
            self.dilations_, self.thresholds_per_kernel_ = (
                np.concatenate(column) for column in zip(*parts, strict=True)
            )
            sizes = [len(dilations) for dilations, _ in parts]
            self.orders_ = np.repeat(np.arange(len(parts)), sizes)
            pairs = N_KERNELS * len(self.dilations_)
            self.rivals_ = np.empty((0, N_KERNELS), dtype=np.int64)
            channels = self._draw_channels(rng, pairs)
            self.channels_, self.channel_begin_ = _joined(channels)
            picked = np.empty(pairs, dtype=np.int64)
            for k, dilation in enumerate(self.dilations_):
                long = np.flatnonzero(lengths > (_TAPS - 1) * dilation + self.orders_[k])
                among = long if len(long) else np.arange(n)
                picked[N_KERNELS * k : N_KERNELS * (k + 1)] = rng.choice(among, N_KERNELS)
            self.thresholds_ = self._thresholds(series, lengths, picked)
            if self.contests:
                self._add_contests(rng, length, channels)
            self.n_features_out_ = len(self.thresholds_) + 2 * self.rivals_.size
        return self

    def transform(self, X: ArrayLike | Sequence[ArrayLike]) -> Floats:
        """Compute the features of whole series.

        Parameters
        ----------
        X : array-like or list of arrays
            As in `fit`, of any length.

        Returns
        -------
        (n, F) array, float32 if the series of `fit` were float32, else float64
        """
        check_is_fitted(self, "thresholds_")
        series, lengths = self._series(X)
        return self._features(series, lengths[:, None])[:, 0]

    def transform_prefixes(self, X: ArrayLike | Sequence[ArrayLike], times: ArrayLike) -> Floats:
        """Compute the features of the beginnings of series, in one pass.

        Parameters
        ----------
        X : array-like or list of arrays
            As in `fit`, of any length.
        times : (m,) array-like of ascending integers >= 1
            Numbers of samples. A series that is shorter counts as a whole.

        Returns
        -------
        (n, m, F) array, float32 if the series of `fit` were float32, else float64
            ``out[:, j]`` equals ``transform(X[..., : times[j]])``.
        """
        check_is_fitted(self, "thresholds_")
        cuts = read_times(times, "times", 1)
        series, lengths = self._series(X)
        return self._features(series, np.minimum(cuts[None, :], lengths[:, None]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = tags.input_tags.allow_nan = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_features_out_

    def _draw_channels(self, rng: Any, count: int) -> list[_Places]:
        """Draw sets of 1 to 9 channels, small sets more often."""
        if self.n_channels_ == 1:
            return [np.zeros(1, dtype=np.int64)] * count
        most = min(self.n_channels_, _TAPS)
        sizes = (2.0 ** rng.uniform(0.0, np.log2(most + 1.0), count)).astype(np.int64)
        return [rng.choice(self.n_channels_, size, replace=False) for size in sizes]

    def _add_contests(self, rng: Any, length: int, channels: list[_Places]) -> None:
        """Add dilations of contests, and channels that the kernels of a group share."""
        octaves = int(np.log2(max((length - 1) / (_TAPS - 1), 1.0))) + 1
        orders = np.repeat(np.arange(1 + self.differences), octaves * _ROUNDS)
        dilations = np.tile(np.repeat(2 ** np.arange(octaves), _ROUNDS), 1 + self.differences)
        self.rivals_ = np.stack([rng.permutation(N_KERNELS) for _ in dilations])
        for order in self.rivals_:
            sets = self._draw_channels(rng, N_KERNELS // _RIVALS)
            channels += [sets[place // _RIVALS] for place in np.argsort(order)]
        self.channels_, self.channel_begin_ = _joined(channels)
        self.dilations_ = np.concatenate([self.dilations_, dilations])
        self.orders_ = np.concatenate([self.orders_, orders])
        self.thresholds_per_kernel_ = np.append(self.thresholds_per_kernel_, 0 * dilations)

    def _plan(self) -> tuple[_Places, _Places, _Places, _Places, _Places, _Places]:
        return (
            self.dilations_,
            self.orders_,
            self.thresholds_per_kernel_,
            self.channel_begin_,
            self.channels_,
            self.rivals_,
        )

    def _thresholds(
        self, series: Floats, lengths: NDArray[np.int64], picked: NDArray[np.int64]
    ) -> Floats:
        """Quantiles of the outputs of each pair of dilation and kernel; 0 without outputs.

        `picked` has the series of each pair. The levels of the quantiles fill (0, 1) evenly.
        """
        n_threads = threads.resolve(self.n_threads)
        counts = np.repeat(self.thresholds_per_kernel_, N_KERNELS)
        begin = np.concatenate([[0], np.cumsum(counts)])
        levels = (np.arange(1, begin[-1] + 1) * _GOLDEN) % 1.0
        place, kernel = np.divmod(np.arange(len(picked)), N_KERNELS)
        half = np.where((place + kernel) % 2 == 0, _TAPS // 2, _TAPS - 1)
        ends = lengths[picked] - self.orders_[place]
        first = np.minimum(half * self.dilations_[place], ends)
        thresholds = np.zeros(begin[-1], dtype=series.dtype)
        step = max(_MIN_PAIRS, _MAX_OUTPUTS // series.shape[2])
        for pair in range(0, len(picked), step):
            rows = picked[pair : pair + step]
            outputs = core.convolution_outputs(series, *self._plan(), pair, rows, n_threads)
            for k, values in enumerate(outputs, pair):
                inside = np.sort(values[first[k] : ends[k]])
                of_pair = slice(begin[k], begin[k + 1])
                if len(inside):
                    at = levels[of_pair] * (len(inside) - 1)
                    thresholds[of_pair] = np.interp(at, np.arange(len(inside)), inside)
        return thresholds

    def _series(self, X: Any) -> tuple[Floats, NDArray[np.int64]]:
        series, lengths = read_series(X, self.n_channels_)
        dtype = self.thresholds_.dtype
        series = real_array(series, "X", dtype)
        least = int(self.dilations_.max())  # the core takes no dilation longer than the series
        if series.shape[2] < least:
            longer = np.zeros((*series.shape[:2], least), dtype=dtype)
            longer[:, :, : series.shape[2]] = series
            series = longer
        return series, lengths

    def _features(self, series: Floats, ends: NDArray[np.int64]) -> Floats:
        ends = np.ascontiguousarray(ends)
        features: Floats = core.convolution_features(
            series, *self._plan(), self.thresholds_, ends, threads.resolve(self.n_threads)
        )
        return features


def _joined(sets: list[_Places]) -> tuple[_Places, _Places]:
    """Concatenate sets of channels; also return the index of the first channel of each set."""
    begin = np.cumsum([0, *map(len, sets)])
    return np.concatenate(sets).astype(np.int64), begin.astype(np.int64)


def _dilations(length: int, per_kernel: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return dilations and their numbers of thresholds per kernel, equal for each octave."""
    count = min(per_kernel, _MAX_DILATIONS)
    top = np.log2(max((length - 1) / (_TAPS - 1), 1.0))
    spread = np.logspace(0, top, count, base=2).astype(np.int64)
    dilations, counts = np.unique(np.maximum(spread, 1), return_counts=True)
    numbers = (counts * (per_kernel / count)).astype(np.int64)
    left = per_kernel - int(numbers.sum())
    numbers[np.arange(left) % len(numbers)] += 1
    return dilations, numbers

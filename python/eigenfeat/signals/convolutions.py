"""Convolution features of series and of their beginnings, and a ridge classifier of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import (
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat._base.labels import check_two_labels, plain_labels
from eigenfeat._base.types import Floats, Labels, Seed
from eigenfeat._base.validation import plain_rows, random_generator, real_array, show
from eigenfeat.moments.columns import is_rounding
from eigenfeat.samples.estimator import BaseEstimator, unchanged_on_error
from eigenfeat.signals.intervals import count_summaries, interval_summaries

__all__ = [
    "ConvolutionClassifier",
    "ConvolutionFeatures",
    "fit_prefixes",
    "logit_factor",
    "prefix_probabilities",
    "read_series",
]

_Array = NDArray[np.float64]
_Places = NDArray[np.int64]
_KERNELS = 84
_TAPS = 9
_GOLDEN = (np.sqrt(5.0) + 1.0) / 2.0
_WEIGHTS = (0.0, 0.03, 0.1, 0.3, 1.0)  # candidate weights of interval summaries
_BLOCK = 1 << 25  # features computed at once
_MAX_OUTPUTS = 1 << 22  # numbers of outputs that thresholds are taken from at once
_MIN_PAIRS = 16  # pairs of dilation and kernel whose outputs are computed at once


class ConvolutionFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """How often convolutions of a series exceed thresholds, in the manner of MiniRocket.

    Use it for series whose classes differ in shape, before a ridge classifier. Tune `n_features`.
    User guide: :doc:`/guide/series`.

    The 84 kernels have nine taps, three of weight 2 and six of weight -1, and are spread by several
    dilations. A feature is the share of a convolution's outputs above a threshold, which is a
    quantile of the outputs of a training series. The features suit linear classifiers.

    Parameters
    ----------
    n_features : int >= 84, default=10000
        Number of features, rounded down to a multiple of 84.
    max_dilations : int >= 1, default=32
        Maximum number of dilations of a kernel. They grow exponentially from 1 to a ninth of the
        series' length.
    random_state : int, RandomState, Generator or None, default=None
        Chooses the training series of each threshold, and the channels of each kernel.
    n_threads : int or None, default=None
        Number of threads; None means all OpenMP threads. The features do not depend on it.

    Attributes
    ----------
    dilations_ : (D,) array of int
    thresholds_ : (F,) array
        By dilation, kernel and quantile.
    thresholds_per_kernel_ : (D,) array of int
        Number of thresholds of each kernel with a dilation.
    channels_ : (m,) array of int
        Channels of all pairs of dilation and kernel, one after the other.
    channel_begin_ : (84 D + 1,) array of int
        Where those of each pair begin.
    n_channels_ : int

    Raises
    ------
    ValueError
        If series are infinite, differ in their channels, or parameters are invalid.

    See Also
    --------
    ConvolutionClassifier : These features with a ridge classifier.

    Notes
    -----
    MiniRocket centres its windows. Here the window of an output at time t ends at t, so that the
    features of a series' beginning are those of the series cut there, exactly, and all beginnings
    take one pass (`transform_prefixes`). With dilation d, outputs begin at t = 4 d for every other
    kernel (samples before the first are 0) and at t = 8 d, the first whole window, for the rest;
    the next dilation has it the other way round. A feature without outputs is 0.

    References
    ----------
    A. Dempster, D. F. Schmidt and G. I. Webb, "MiniRocket: a very fast (almost) deterministic
    transform for time series classification", KDD 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.signals import ConvolutionFeatures
    >>> X = np.random.default_rng(0).standard_normal((20, 100))
    >>> ConvolutionFeatures(840, random_state=0).fit_transform(X).shape
    (20, 840)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features": [Interval(Integral, _KERNELS, None, closed="left")],
        "max_dilations": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    dilations_: NDArray[np.int64]
    thresholds_: Floats
    thresholds_per_kernel_: NDArray[np.int64]
    channels_: NDArray[np.int64]
    channel_begin_: NDArray[np.int64]
    n_channels_: int

    def __init__(
        self,
        n_features: int = 10000,
        *,
        max_dilations: int = 32,
        random_state: Seed = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_features = n_features
        self.max_dilations = max_dilations
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X: ArrayLike | Sequence[ArrayLike], y: object = None) -> ConvolutionFeatures:
        """Choose dilations, channels and thresholds.

        Parameters
        ----------
        X : (n, times) or (n, channels, times) array-like, or list of n (channels, times_i) arrays
            Series. Those of a list may differ in length. NaN is replaced by the channel's last
            known value; at the end of a series it is no sample.
        y : ignored

        Returns
        -------
        ConvolutionFeatures
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._validate_params()
            series, lengths = read_series(X)
            rng = random_generator(self.random_state)
            n, self.n_channels_, length = series.shape
            per_kernel = int(self.n_features) // _KERNELS
            self.dilations_, self.thresholds_per_kernel_ = _dilations(
                length, per_kernel, int(self.max_dilations)
            )
            pairs = _KERNELS * len(self.dilations_)
            self._choose_channels(rng, pairs)
            picked = np.empty(pairs, dtype=np.int64)
            for k, dilation in enumerate(self.dilations_):
                whole = np.flatnonzero(lengths > (_TAPS - 1) * dilation)
                among = whole if len(whole) else np.arange(n)
                picked[_KERNELS * k : _KERNELS * (k + 1)] = among[
                    _integers(rng, len(among), _KERNELS)
                ]
            self.thresholds_ = self._thresholds(series, lengths, picked)
        return self

    def transform(self, X: ArrayLike | Sequence[ArrayLike]) -> Floats:
        """Compute the features of whole series.

        Parameters
        ----------
        X : array-like or list of arrays
            As in `fit`, of any length.

        Returns
        -------
        (n, F) array of float32 or float64, as `X`
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
        (n, m, F) array of float32 or float64, as `X`
            What `transform` gives of ``X[..., :t]`` for each t in `times`.
        """
        check_is_fitted(self, "thresholds_")
        cuts = np.asarray(times)
        if cuts.ndim != 1 or not len(cuts) or cuts.dtype.kind not in "iu":
            raise ValueError(f"times: expected ascending integers, got {show(times)}")
        if cuts[0] < 1 or (np.diff(cuts) <= 0).any():
            raise ValueError(f"times: expected ascending integers >= 1, got {show(times)}")
        series, lengths = self._series(X)
        return self._features(series, np.minimum(cuts[None, :], lengths[:, None]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = tags.input_tags.allow_nan = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.thresholds_)

    def _choose_channels(self, rng: Any, pairs: int) -> None:
        """Draw 1 to 9 channels for each pair of dilation and kernel, small numbers more often."""
        if self.n_channels_ == 1:
            self.channels_ = np.zeros(pairs, dtype=np.int64)
            self.channel_begin_ = np.arange(pairs + 1)
            return
        most = min(self.n_channels_, _TAPS)
        counts = (2.0 ** rng.uniform(0.0, np.log2(most + 1.0), pairs)).astype(np.int64)
        parts = [rng.choice(self.n_channels_, count, replace=False) for count in counts]
        self.channels_ = np.concatenate(parts).astype(np.int64)
        self.channel_begin_ = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def _plan(self) -> tuple[_Places, _Places, _Places, _Places]:
        return (
            self.dilations_,
            self.thresholds_per_kernel_,
            self.channel_begin_,
            self.channels_,
        )

    def _thresholds(
        self, series: Floats, lengths: NDArray[np.int64], picked: NDArray[np.int64]
    ) -> Floats:
        """Quantiles of each pair's outputs, at levels that fill (0, 1) evenly."""
        n_threads = threads.resolve(self.n_threads)
        counts = np.repeat(self.thresholds_per_kernel_, _KERNELS)
        begin = np.concatenate([[0], np.cumsum(counts)])
        levels = (np.arange(1, begin[-1] + 1) * _GOLDEN) % 1.0
        place, kernel = np.divmod(np.arange(len(picked)), _KERNELS)
        half = np.where((place + kernel) % 2 == 0, _TAPS // 2, _TAPS - 1)
        first = np.minimum(half * self.dilations_[place], lengths[picked])
        thresholds = np.empty(begin[-1], dtype=series.dtype)
        step = max(_MIN_PAIRS, _MAX_OUTPUTS // series.shape[2])
        for pair in range(0, len(picked), step):
            rows = picked[pair : pair + step]
            outputs = core.convolution_outputs(series, *self._plan(), pair, rows, n_threads)
            for k, values in enumerate(outputs, pair):
                inside = np.sort(values[first[k] : lengths[picked[k]]])
                of_pair = slice(begin[k], begin[k + 1])
                thresholds[of_pair] = _quantiles(inside, levels[of_pair])
        return thresholds

    def _series(self, X: Any) -> tuple[Floats, NDArray[np.int64]]:
        series, lengths = read_series(X, self.n_channels_)
        dtype = self.thresholds_.dtype
        if series.dtype != dtype:
            series = series.astype(dtype)
        least = int(self.dilations_[-1])  # the core takes no dilation longer than the series
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


class ConvolutionClassifier(ClassifierMixin, BaseEstimator):
    """Ridge regression of convolution features, with probabilities of leave-one-out scores.

    Use it first for complete series, and as a candidate of `MinimumCostClassifier`. It needs no
    tuning. User guide: :doc:`/guide/series`.

    Each class has a target of 1 for its series and -1 for the others. The penalty minimises the
    squared error of the leave-one-out predictions, which have a closed form. Probabilities are the
    softmax of the scores times a factor that minimises the log loss of the leave-one-out scores: as
    features outnumber series, the scores of training series themselves say nothing.

    Parameters
    ----------
    n_features : int >= 84, default=10000
        Of `ConvolutionFeatures`.
    alphas : sequence of float > 0 or None, default=None
        Penalties to choose from, on standardised features. None: ten from 1e-3 to 1e3 times the
        number of features over 1000.
    intervals : bool or "auto", default="auto"
        Whether to add the `interval_summaries` of the series, which know levels and trends. Their
        weight, from nothing to as much as all convolution features have, is chosen with the
        penalty. Series then have one length. "auto" adds them to series of one length if there are
        no more of them than convolution features.
    random_state : int, RandomState, Generator or None, default=None
        Of `ConvolutionFeatures`.
    n_threads : int or None, default=None
        Number of threads for the features.

    Attributes
    ----------
    classes_ : (k,) array
        Labels, sorted.
    features_ : ConvolutionFeatures
        Fitted.
    coef_ : (k, F) array
        Of the convolution features, then of the summaries.
    intercept_ : (k,) array
    alpha_ : float
        The chosen penalty.
    interval_weight_ : float
        The chosen weight of the summaries, of 0, 0.03, 0.1, 0.3 and 1; 0 without them.
    n_times_ : int or None
        With summaries, the length of the series.
    loo_scores_ : (n, k) array
        Leave-one-out scores of the training series.
    factor_ : float
        Scores times this are logits.

    Raises
    ------
    ValueError
        If series, labels or parameters are invalid.

    See Also
    --------
    eigenfeat.early.MinimumCostClassifier : Early decisions, with this as a candidate.

    References
    ----------
    A. Dempster, D. F. Schmidt and G. I. Webb, "MiniRocket", KDD 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.signals import ConvolutionClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> clock = np.arange(60)
    >>> X = np.sin(clock * (0.5 + 0.1 * y[:, None]) + rng.uniform(0, 6, (40, 1)))
    >>> ConvolutionClassifier(840, random_state=0).fit(X[:20], y[:20]).score(X[20:], y[20:])
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features": [Interval(Integral, _KERNELS, None, closed="left")],
        "alphas": ["array-like", None],
        "intervals": ["boolean", StrOptions({"auto"})],
        "random_state": ["random_state", np.random.Generator],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    classes_: Labels
    features_: ConvolutionFeatures
    coef_: Floats
    intercept_: _Array
    loo_scores_: _Array
    alpha_: float
    interval_weight_: float
    n_times_: int | None
    factor_: float

    def __init__(
        self,
        n_features: int = 10000,
        *,
        alphas: Sequence[float] | None = None,
        intervals: bool | str = "auto",
        random_state: Seed = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_features = n_features
        self.alphas = alphas
        self.intervals = intervals
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X: ArrayLike | Sequence[ArrayLike], y: ArrayLike) -> ConvolutionClassifier:
        """Fit features, ridge and probabilities.

        Parameters
        ----------
        X : (n, times) or (n, channels, times) array-like, or list of n (channels, times_i) arrays
            Series. Those of a list may differ in length. NaN is replaced by the channel's last
            known value; at the end of a series it is no sample.
        y : (n,) array-like
            Labels.

        Returns
        -------
        ConvolutionClassifier
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._validate_params()
            features = self._new_features()
            values = features.fit_transform(X)
            self._learn(features, values, X, y)
        return self

    def decision_function(self, X: ArrayLike | Sequence[ArrayLike]) -> _Array:
        """Compute the scores.

        Parameters
        ----------
        X : array-like or list of arrays
            As in `fit`.

        Returns
        -------
        (n, k) array, or (n,) of the second class with two classes
        """
        scores = self._scores(X)
        return scores[:, 1] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: ArrayLike | Sequence[ArrayLike]) -> _Array:
        """Compute the classes' probabilities (n, k).

        Parameters
        ----------
        X : array-like or list of arrays
            As in `fit`.
        """
        return np.asarray(softmax(self.factor_ * self._scores(X), axis=1))

    def predict(self, X: ArrayLike | Sequence[ArrayLike]) -> Labels:
        """Predict the labels (n,).

        Parameters
        ----------
        X : array-like or list of arrays
            As in `fit`.
        """
        scores = self._scores(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = tags.input_tags.allow_nan = True
        return tags

    def _new_features(self) -> ConvolutionFeatures:
        return ConvolutionFeatures(
            self.n_features, random_state=self.random_state, n_threads=self.n_threads
        )

    def _learn(self, features: ConvolutionFeatures, values: Floats, X: Any, y: ArrayLike) -> None:
        """Fit the ridge to features (n, F) of series X."""
        labels = np.asarray(plain_labels(y))
        check_classification_targets(labels)
        if labels.shape != (len(values),):
            raise ValueError(
                f"y: expected {len(values)} labels, one for each series, got shape {labels.shape}"
            )
        self.classes_, codes = np.unique(labels, return_inverse=True)
        check_two_labels(self.classes_)
        if self.alphas is None:
            alphas = np.logspace(-3, 3, 10) * values.shape[1] / 1000
        else:
            alphas = np.asarray(self.alphas, dtype=np.float64)
            if alphas.ndim != 1 or not len(alphas) or not (alphas > 0).all():
                raise ValueError(f"alphas: expected positive numbers, got {show(self.alphas)}")
        self.features_ = features
        targets = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        summaries = self._summaries_to_fit(X, values.shape[1])
        self._solve([values, *summaries], targets, alphas)
        self.n_times_ = read_series(X)[0].shape[2] if self.interval_weight_ > 0 else None
        if self.n_times_ is None:
            self.coef_ = np.ascontiguousarray(self.coef_[:, : values.shape[1]])
        self.factor_ = logit_factor(self.loo_scores_, codes)

    def _summaries_to_fit(self, X: Any, n_features: int) -> list[Floats]:
        """Summaries of intervals of training series, if `intervals` asks for them."""
        if self.intervals is False:
            return []
        series, lengths = read_series(X)
        one_length = bool((lengths == series.shape[2]).all())
        if self.intervals is True:
            if not one_length:
                raise ValueError(
                    "X: expected series of one length with intervals=True, got several"
                )
        elif not one_length or count_summaries(*series.shape[1:]) > n_features:
            return []
        return [interval_summaries(series)]

    def _summaries(self, X: Any) -> list[Floats]:
        """Summaries of intervals of series to predict, if they have a weight."""
        if self.n_times_ is None:
            return []
        series, lengths = read_series(X)
        wrong = np.flatnonzero(lengths != self.n_times_)
        if len(wrong):
            raise ValueError(
                f"X: expected series of {self.n_times_} samples as in fit, got "
                f"{lengths[wrong[0]]} of series {wrong[0]}"
            )
        return [interval_summaries(series)]

    def _scores(self, X: Any) -> _Array:
        check_is_fitted(self, "coef_")
        return self._scored([self.features_.transform(X), *self._summaries(X)])

    @threads.one_blas_thread()
    def _scored(self, blocks: list[Floats]) -> _Array:
        scores = np.zeros((len(blocks[0]), len(self.classes_)))
        first = 0
        for block in blocks:
            coef = self.coef_[:, first : first + block.shape[1]]
            scores += block @ coef.T
            first += block.shape[1]
        return scores + self.intercept_

    @threads.one_blas_thread()
    def _solve(self, blocks: list[Floats], targets: _Array, alphas: _Array) -> None:
        """Ridge with centred, standardised features Z: alpha by ``e_i / (1 - 1/n - h_i)``.

        Each block of features weighs as much as the first would if none of its were constant, and
        a second one that much times a weight that is chosen with alpha. The spectrum is that of
        ``Z Z^T`` or ``Z^T Z``, whichever is smaller.
        """
        n, first_width = blocks[0].shape
        dtype = blocks[0].dtype
        parts, means, scales = [], [], []
        for block in blocks:
            mean = block.mean(axis=0, dtype=np.float64)
            scale = block.std(axis=0, dtype=np.float64)
            constant = is_rounding(scale, np.abs(block).max(axis=0), n, dtype)
            scale *= np.sqrt(max(np.count_nonzero(~constant), 1) / first_width)
            scale[constant] = np.inf  # no weight
            parts.append(((block - mean) / scale).astype(dtype))
            means.append(mean)
            scales.append(scale)
        level = targets.mean(axis=0)
        Y = targets - level
        best = np.inf
        for weight, spectrum, U in _spectra(parts):
            projected = U.T @ Y
            for alpha in alphas:
                shares = spectrum / (spectrum + alpha)
                fitted = U @ (shares[:, None] * projected)
                leverage = 1.0 / n + np.square(U) @ shares
                left = (Y - fitted) / np.maximum(1.0 - leverage, 1e-10)[:, None]
                loss = float(np.square(left).mean())
                if loss < best:
                    best, self.alpha_, self.interval_weight_ = loss, float(alpha), weight
                    self.loo_scores_ = targets - left
                    dual = U @ (projected / (spectrum + alpha)[:, None])
        gains = [1.0] if len(parts) == 1 else [1.0, self.interval_weight_]
        weights = np.concatenate(
            [
                gain * (part.T @ dual.astype(dtype)).astype(np.float64) / scale[:, None]
                for gain, part, scale in zip(gains, parts, scales, strict=True)
            ]
        )
        self.coef_ = np.ascontiguousarray(weights.T.astype(dtype))
        self.intercept_ = level - np.concatenate(means) @ weights


def _spectra(parts: list[Floats]) -> Iterator[tuple[float, _Array, _Array]]:
    """Yield each weight of the second block, and nonzero eigenpairs of Z Z^T."""
    widths = [part.shape[1] for part in parts]
    weights = (0.0,) if len(parts) == 1 else _WEIGHTS
    if len(parts[0]) <= sum(widths):
        grams = [(part @ part.T).astype(np.float64) for part in parts]
        for weight in weights:
            gram = grams[0] if len(parts) == 1 else grams[0] + weight * grams[1]
            spectrum, U = np.linalg.eigh(gram)
            yield weight, np.maximum(spectrum, 0.0), U
        return
    Z = parts[0] if len(parts) == 1 else np.hstack(parts)
    gram = (Z.T @ Z).astype(np.float64)
    for weight in weights:
        gain = np.ones(len(gram))
        gain[widths[0] :] = np.sqrt(weight)
        spectrum, V = np.linalg.eigh(gain[:, None] * gram * gain)
        inside = spectrum > 1e-12 * max(spectrum[-1], 1e-300)
        spectrum = spectrum[inside]
        yield weight, spectrum, (Z @ (gain[:, None] * V[:, inside])) / np.sqrt(spectrum)


def fit_prefixes(
    classifier: ConvolutionClassifier, X: ArrayLike, y: ArrayLike, times: ArrayLike
) -> list[ConvolutionClassifier]:
    """Fit a classifier to the beginnings of series, for all of them with the same features.

    Parameters
    ----------
    classifier : ConvolutionClassifier
        Its parameters are used.
    X : (n, channels, d) array-like
    y : (n,) array-like
    times : (p,) array of ascending int in 1..d

    Returns
    -------
    list of p ConvolutionClassifier
        For the first t samples each. Thresholds and dilations are those of the whole series.
    """
    features = classifier._new_features()
    series, _ = read_series(X)
    features.fit(series)
    models = []
    for some, values in _prefix_blocks(features, series, np.asarray(times)):
        for t, at_time in zip(some, values, strict=True):
            model = clone(classifier)
            model._learn(features, at_time, series[:, :, :t], y)
            models.append(model)
    return models


def prefix_probabilities(
    models: Sequence[ConvolutionClassifier], X: ArrayLike, times: ArrayLike
) -> _Array:
    """Compute probabilities of beginnings by the classifiers of `fit_prefixes`, in one pass.

    Parameters
    ----------
    models : sequence of p ConvolutionClassifier
    X : (n, channels, d) array-like
    times : (p,) array of ascending int in 1..d

    Returns
    -------
    (p, n, k) array
        ``models[j].predict_proba(X[..., :times[j]])`` for each j.
    """
    features = models[0].features_
    series, _ = read_series(X, features.n_channels_)
    cuts = np.asarray(times)
    out = np.empty((len(cuts), len(series), len(models[0].classes_)))
    rows = max(1, _BLOCK // (len(cuts) * len(features.thresholds_)))
    for begin in range(0, len(series), rows):
        part = series[begin : begin + rows]
        done = 0
        for some, values in _prefix_blocks(features, part, cuts):
            for t, at_time in zip(some, values, strict=True):
                model = models[done]
                scores = model._scored([at_time, *model._summaries(part[:, :, :t])])
                out[done, begin : begin + rows] = softmax(model.factor_ * scores, axis=1)
                done += 1
    return out


def _prefix_blocks(
    features: ConvolutionFeatures, series: Floats, times: _Places
) -> Iterator[tuple[_Places, Floats]]:
    """Yield times and their features (times, n, F), in blocks of bounded memory."""
    together = max(1, _BLOCK // (len(series) * len(features.thresholds_)))
    for begin in range(0, len(times), together):
        some = times[begin : begin + together]
        values = features.transform_prefixes(series[:, :, : some[-1]], some)
        yield some, np.ascontiguousarray(values.swapaxes(0, 1))


def logit_factor(scores: _Array, codes: NDArray[np.intp]) -> float:
    """Return the factor of scores with the least log loss, in [0.1, 30].

    Parameters
    ----------
    scores : (n, k) array
        Of series that were not fitted to.
    codes : (n,) array of int
        Indices of the true classes.
    """
    rows = np.arange(len(codes))

    def loss(exponent: float) -> float:
        return -float(log_softmax(np.exp(exponent) * scores, axis=1)[rows, codes].mean())

    minimum = minimize_scalar(loss, bounds=(np.log(0.1), np.log(30.0)), method="bounded")
    return float(np.exp(minimum.x))


def _quantiles(values: Floats, levels: _Array) -> _Array:
    """Quantiles of ascending values, interpolated linearly; 0 of no values."""
    if not len(values):
        return np.zeros(len(levels))
    position = levels * (len(values) - 1)
    low = position.astype(np.int64)
    below = values[low].astype(np.float64)
    above = values[np.minimum(low + 1, len(values) - 1)].astype(np.float64)
    return np.asarray(below + (position - low) * (above - below))


def _dilations(
    length: int, per_kernel: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return dilations and their numbers of features per kernel: equally many per octave."""
    count = min(per_kernel, most)
    top = np.log2(max((length - 1) / (_TAPS - 1), 1.0))
    spread = np.logspace(0, top, count, base=2).astype(np.int64)
    dilations, counts = np.unique(np.maximum(spread, 1), return_counts=True)
    numbers = (counts * (per_kernel / count)).astype(np.int64)
    left = per_kernel - int(numbers.sum())
    numbers[np.arange(left) % len(numbers)] += 1
    return dilations, numbers


def _integers(rng: Any, high: int, size: int) -> NDArray[np.int64]:
    draw = rng.integers if isinstance(rng, np.random.Generator) else rng.randint
    return np.asarray(draw(0, high, size), dtype=np.int64)


def read_series(X: Any, n_channels: int | None = None) -> tuple[Floats, NDArray[np.int64]]:
    """Check series.

    Parameters
    ----------
    X : (n, times) or (n, channels, times) array-like, or list of (channels, times_i) arrays
    n_channels : int or None
        None for any.

    Returns
    -------
    series : (n, channels, times) array of float32 or float64
        Shorter ones are followed by zeros.
    lengths : (n,) array of int

    Raises
    ------
    ValueError
        If X is complex, of another shape or infinite, or a channel of a series is NaN alone.
    """
    shapes = {np.shape(one) for one in X} if isinstance(X, (list, tuple)) else set()
    if len(shapes) > 1:
        series, lengths = _padded(X)
    else:
        array = series = real_array(plain_rows(X), "X")
        if series.ndim == 2:
            series = series[:, None, :]
        if series.ndim != 3 or not series.size:
            raise ValueError(
                "X: expected series of shape (n, times) or (n, channels, times), got shape "
                f"{array.shape}"
            )
        series = np.ascontiguousarray(series)
        lengths = np.full(len(series), series.shape[2], dtype=np.int64)
    if n_channels is not None and series.shape[1] != n_channels:
        raise ValueError(f"X: expected {n_channels} channels, got {series.shape[1]}")
    if np.isnan(series).any():
        series, lengths = _completed(series, lengths)
    if not np.isfinite(series).all():
        row, channel, time = np.argwhere(~np.isfinite(series))[0]
        raise ValueError(
            f"X: expected finite numbers, got {series[row, channel, time]} in series {row}, "
            f"channel {channel}, sample {time}"
        )
    return series, lengths


def _completed(series: Floats, lengths: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    """Replace NaN by the channel's last known value; NaN of all channels at the end is no sample.

    Values before a channel's first known one become that one.
    """
    times = series.shape[2]
    clock = np.arange(times)
    known = ~np.isnan(series) & (clock < lengths[:, None, None])
    empty = np.argwhere(~known.any(axis=2))
    if len(empty):
        row, channel = empty[0]
        raise ValueError(
            f"X: expected values in each channel, got NaN alone in series {row}, channel {channel}"
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
    for i, one in enumerate(X):
        part = np.atleast_2d(real_array(plain_rows(one), "X"))
        if part.ndim != 2 or not part.size:
            raise ValueError(
                f"X: expected series of shape (channels, times), got shape {np.shape(one)} of "
                f"series {i}"
            )
        if len(part) != len(parts[0] if parts else part):
            raise ValueError(f"X: expected {len(parts[0])} channels, got {len(part)} of series {i}")
        parts.append(part)
    lengths = np.array([part.shape[1] for part in parts], dtype=np.int64)
    single = all(part.dtype == np.float32 for part in parts)
    dtype = np.float32 if single else np.float64
    series = np.zeros((len(parts), len(parts[0]), int(lengths.max())), dtype=dtype)
    for i, part in enumerate(parts):
        series[i, :, : part.shape[1]] = part
    return series, lengths

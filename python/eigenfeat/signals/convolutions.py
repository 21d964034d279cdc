"""Ridge classifier of convolution features, for complete series and for their beginnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base import threads
from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.types import Floats, Labels, Seed
from eigenfeat._base.validation import is_rounding
from eigenfeat.samples.estimator import BaseEstimator, unchanged_on_error
from eigenfeat.signals.convolution_features import N_KERNELS, ConvolutionFeatures
from eigenfeat.signals.epochs import axes_checked, read_labels, warn_swapped
from eigenfeat.signals.intervals import interval_summaries
from eigenfeat.signals.series import read_series, shortened

_Array = NDArray[np.float64]
_WEIGHTS = (0.0, 0.03, 0.1, 0.3, 1.0)  # candidate weights of interval summaries
_CONTESTS = 0.5  # weight of the contests
_ALPHAS = np.logspace(-3, 3, 10)  # candidate penalties, times thresholds / 1000
_MAX_SOLVED = 1_000  # series whose eigenproblems are solved
_N_TRIED = 400  # series that give a first choice, if there are more than `_MAX_SOLVED`
_FACTORS = (0.1, 30.0)  # range of the factor of the scores
_BLOCK = 1 << 25  # features computed at once


class ConvolutionClassifier(ClassifierMixin, BaseEstimator):
    """Ridge regression of convolution features, with probabilities of leave-one-out scores.

    Use it first for complete series, and as a candidate of `MinimumCostClassifier`. It needs no
    tuning. User guide: :doc:`/guide/series`.

    Each class has a target of 1 for its series and -1 for the others. The penalty minimises the
    squared error of the leave-one-out predictions, which have a closed form. Probabilities are the
    softmax of the scores times a factor that minimises the log loss of the leave-one-out scores.

    Parameters
    ----------
    n_features : int >= 84, default=10000
        Number of thresholds, rounded down to a multiple of 84.
    differences : bool, default=True
        Whether to also convolve the differences x[t + 1] - x[t], with half of the thresholds.
    contests : bool, default=True
        Whether to add the contests of `ConvolutionFeatures`, with half the weight of thresholds.
    intervals : bool or "auto", default="auto"
        Whether to add the `interval_summaries` of series of one length, which contain levels and
        trends. Their weight is chosen with the penalty. "auto": if lengths are equal and there are
        no more summaries than thresholds.
    random_state : int, RandomState, Generator or None, default=None
        Draws the training series of each threshold, the channels of each kernel and the groups.
    n_threads : int or None, default=None
        Number of threads for the features.

    Attributes
    ----------
    classes_ : (k,) array
        Labels, sorted.
    features_ : ConvolutionFeatures
        The fitted features.
    coef_ : (k, F) array
        Weights of the convolution features, then of the summaries unless `interval_weight_` is 0.
    intercept_ : (k,) array
        Intercepts of the classes.
    alpha_ : float
        The chosen penalty on standardised features.
    interval_weight_ : float
        The chosen weight of the summaries, of 0, 0.03, 0.1, 0.3 and 1.
    n_times_ : int or None
        With summaries, the length of the series; else None.
    loo_scores_ : (n, k) array
        Leave-one-out scores of the training series.
    factor_ : float
        Factor of the scores that gives logits.

    See Also
    --------
    eigenfeat.early.MinimumCostClassifier : Early decisions, by default with this classifier.

    References
    ----------
    A. Dempster, D. F. Schmidt and G. I. Webb, "MiniRocket", KDD 2021; "Hydra", Data Min. Knowl.
    Disc. 37, 2023.

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
        "n_features": [Interval(Integral, N_KERNELS, 2**31 - 1, closed="both")],
        "differences": ["boolean"],
        "contests": ["boolean"],
        "intervals": ["boolean", StrOptions({"auto"})],
        "random_state": ["random_state", np.random.Generator],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    coef_: Floats

    def __init__(
        self,
        n_features: int = 10000,
        *,
        differences: bool = True,
        contests: bool = True,
        intervals: bool | str = "auto",
        random_state: Seed = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_features = n_features
        self.differences = differences
        self.contests = contests
        self.intervals = intervals
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X: ArrayLike | Sequence[ArrayLike], y: ArrayLike) -> ConvolutionClassifier:
        """Fit features, ridge and probabilities.

        Parameters
        ----------
        X : (n, times) or (n, channels, times) array-like, or list of n (channels, times_i) arrays
            Series, or MNE's `Epochs`. Series in a list may differ in length. A series also ends
            where all later values are NaN in all channels; `ReliableClassifier` and
            `MinimumCostClassifier` treat such values as missing. Other NaN is replaced by the
            channel's last known value.
        y : (n,) array-like
            Labels.

        Returns
        -------
        ConvolutionClassifier
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._validate_params()
            series, lengths = read_series(X)
            labels = read_labels(y, len(series), "series")
            warn_swapped(X, series.shape, "series")
            given, features = shortened(series, lengths), self._new_features()
            with axes_checked():
                features.fit(given)
            values = features.transform(given)
            self._fit_ridge(features, values, series, lengths, labels)
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
        """Compute the classes' probabilities.

        Parameters
        ----------
        X : array-like or list of arrays
            As in `fit`.

        Returns
        -------
        (n, k) array
        """
        scores = self._scores(X)
        return np.asarray(softmax(self.factor_ * scores, axis=1))

    def predict(self, X: ArrayLike | Sequence[ArrayLike]) -> Labels:
        """Predict the labels.

        Parameters
        ----------
        X : array-like or list of arrays
            As in `fit`.

        Returns
        -------
        (n,) array
        """
        scores = self._scores(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = tags.input_tags.allow_nan = True
        return tags

    def _new_features(self) -> ConvolutionFeatures:
        names = ConvolutionFeatures().get_params()
        return ConvolutionFeatures(**{name: getattr(self, name) for name in names})

    def _fit_ridge(
        self,
        features: ConvolutionFeatures,
        values: Floats,
        series: Floats,
        lengths: NDArray[np.int64],
        labels: Labels,
    ) -> None:
        """Fit the ridge to features (n, F) of series, which are overwritten, and summaries."""
        self.classes_, codes = np.unique(labels, return_inverse=True)
        check_two_labels(self.classes_)
        n_thresholds = len(features.thresholds_)
        summaries = np.empty((len(values), 0), dtype=values.dtype)
        if self._takes_summaries(series, lengths, n_thresholds):
            summaries = interval_summaries(series).astype(values.dtype)
        self.features_ = features
        targets = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        self._solve(values, summaries, targets)
        self.n_times_ = series.shape[2] if self.interval_weight_ > 0 else None
        if self.n_times_ is None:
            self.coef_ = np.ascontiguousarray(self.coef_[:, : values.shape[1]])
        self.factor_ = _logit_factor(self.loo_scores_, codes)

    def _takes_summaries(self, series: Floats, lengths: NDArray[np.int64], n_features: int) -> bool:
        """Whether to try the summaries of intervals of training series."""
        one_length = bool((lengths == series.shape[2]).all())
        if self.intervals is True and not one_length:
            raise ValueError("X: expected series of one length with intervals=True, got several")
        if isinstance(self.intervals, str):
            return one_length and interval_summaries(series[:1]).shape[1] <= n_features
        return bool(self.intervals)

    def _scores(self, X: Any) -> _Array:
        check_is_fitted(self, "coef_")
        series, lengths = read_series(X, self.features_.n_channels_)
        wrong = np.flatnonzero(lengths != self.n_times_)
        if self.n_times_ is not None and len(wrong):
            raise ValueError(
                f"X: expected series of {self.n_times_} samples as in fit, got "
                f"{lengths[wrong[0]]} of series {wrong[0]}; intervals=False allows any length"
            )
        scores = np.empty((len(series), len(self.classes_)))
        step = max(1, _BLOCK // self.coef_.shape[1])
        for first in range(0, len(series), step):
            rows = slice(first, first + step)
            part = shortened(series[rows], lengths[rows])
            scores[rows] = self._scored(self.features_.transform(part), series[rows])
        return scores

    @threads.one_blas_thread()
    def _scored(self, values: Floats, series: Floats) -> _Array:
        """Scores (n, k) of features (n, F), and of the summaries of the series if they count."""
        scores: _Array = values @ self.coef_[:, : values.shape[1]].T + self.intercept_
        if self.n_times_ is not None:
            scores += interval_summaries(series) @ self.coef_[:, values.shape[1] :].T
        return scores

    @threads.one_blas_thread()
    def _solve(self, values: Floats, summaries: Floats, targets: _Array) -> None:
        """Ridge with centred, standardised features Z, which overwrite values and summaries.

        Thresholds and summaries each have a total variance of the number of thresholds, contests
        half of it. The summaries' further weight and alpha minimise the mean square of the
        leave-one-out errors ``e_i / (1 - 1/n - h_i)``. With many series, eigenproblems of some of
        them give a first choice, and Cholesky factors of all of them improve it.
        """
        n, dtype, n_thresholds = len(values), values.dtype, len(self.features_.thresholds_)
        blocks = (*np.split(values, [n_thresholds], axis=1), summaries)
        variances = n_thresholds, _CONTESTS * n_thresholds, n_thresholds
        means, scales = zip(*map(_standardise, blocks, variances), strict=True)
        level = targets.mean(axis=0)
        Y = targets - level
        alphas, weights = _ALPHAS * n_thresholds / 1000, _WEIGHTS if summaries.size else (0.0,)
        if n <= _MAX_SOLVED or n > values.shape[1] + summaries.shape[1]:
            best = _best_ridge(_spectra(values, summaries, weights), Y, alphas)
        else:
            some = np.sort(np.random.default_rng(0).permutation(n)[:_N_TRIED])
            spectra = _spectra(_centred(values[some]), _centred(summaries[some]), weights)
            first = _best_ridge(spectra, _centred(Y[some]), alphas)
            # Rounding in single precision moves the products off their means of 0, on which the
            # leave-one-out errors depend.
            grams = [_centred(_centred(gram).T) for gram in _grams(values, summaries)]
            best = _nearby_ridge(grams, Y, first, weights, alphas)
        self.alpha_, self.interval_weight_ = float(best.alpha), best.weight
        self.loo_scores_ = targets - best.errors
        dual = best.dual.astype(dtype)
        coef = np.concatenate([values.T @ dual, self.interval_weight_ * (summaries.T @ dual)])
        coef = coef.astype(np.float64) / np.concatenate(scales)[:, None]
        self.coef_ = np.ascontiguousarray(coef.T.astype(dtype))
        self.intercept_ = level - np.concatenate(means) @ coef


def _standardise(features: Floats, variance: float) -> tuple[_Array, _Array]:
    """Centre features (n, d) and scale them to a total variance, in place.

    Returns the means and divisors of the features.
    """
    n = len(features)
    mean = features.mean(axis=0, dtype=np.float64)
    scale = features.std(axis=0, dtype=np.float64)
    constant = is_rounding(scale, np.abs(features).max(axis=0), n, features.dtype)
    scale *= np.sqrt(max(int(np.count_nonzero(~constant)), 1) / variance)
    scale[constant] = np.inf  # no weight
    features -= mean
    features /= scale
    return mean, scale


def _centred(rows: NDArray[Any]) -> NDArray[Any]:
    return rows - rows.mean(axis=0)


@dataclass(frozen=True, eq=False)
class _Ridge:
    """A ridge regression of centred targets, by the weight of the summaries and the penalty."""

    weight: float
    alpha: float
    errors: _Array  # (n, k), leave-one-out
    dual: _Array  # (n, k), so that Z^T dual are the coefficients

    @property
    def loss(self) -> float:
        return float(np.square(self.errors).mean())


def _best_ridge(
    spectra: Iterable[tuple[float, _Array, _Array]], Y: _Array, alphas: _Array
) -> _Ridge:
    """The ridge with the smallest leave-one-out loss among all weights and penalties."""
    found = []
    for weight, spectrum, U in spectra:
        projected, squares = U.T @ Y, np.square(U)
        for alpha in alphas:
            shares = spectrum / (spectrum + alpha)
            fitted = U @ (shares[:, None] * projected)
            leverage = 1.0 / len(Y) + squares @ shares
            errors = (Y - fitted) / np.maximum(1.0 - leverage, 1e-10)[:, None]
            dual = U @ (projected / (spectrum + alpha)[:, None])
            found.append(_Ridge(weight, alpha, errors, dual))
        found = [min(found, key=lambda ridge: ridge.loss)]
    return found[0]


def _nearby_ridge(
    grams: list[_Array], Y: _Array, first: _Ridge, weights: Sequence[float], alphas: _Array
) -> _Ridge:
    """The ridge with the smallest leave-one-out loss near one that was fitted to some series.

    Each step moves to the best of the adjacent weights and penalties, until none is better. With
    ``C = (Z Z^T + alpha I)^-1``, the errors are ``alpha C Y / (alpha diag(C) - 1 / n)``.
    """

    @cache
    def ridge(i: int, j: int) -> _Ridge:
        weight, alpha = weights[i], alphas[j]
        gram = grams[0] + weight * grams[1]
        gram[np.diag_indices(len(gram))] += alpha
        factor, failed = dpotrf(gram.T, lower=True, overwrite_a=True)
        if failed:  # the rounding errors of single precision exceed alpha
            return _Ridge(weight, alpha, np.full_like(Y, np.inf), Y)
        dual = cho_solve((factor, True), Y)
        free = alpha * np.diagonal(dpotri(factor, lower=True)[0]) - 1.0 / len(Y)
        errors = alpha * dual / np.maximum(free, 1e-10)[:, None]
        return _Ridge(weight, alpha, errors, dual)

    def rank(place: tuple[int, int]) -> tuple[float, int]:
        return ridge(*place).loss, -place[1]  # of equal losses, that of the larger penalty

    place = weights.index(first.weight), int(np.flatnonzero(alphas == first.alpha)[0])
    while True:
        i, j = place
        near = [(i, j), (i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)]
        on_grid = [(i, j) for i, j in near if 0 <= i < len(weights) and 0 <= j < len(alphas)]
        best = min(on_grid, key=rank)
        if best == place:
            return ridge(*place)
        place = best


def _grams(values: Floats, summaries: Floats) -> list[_Array]:
    return [(part @ part.T).astype(np.float64) for part in (values, summaries)]


def _spectra(
    values: Floats, summaries: Floats, weights: Sequence[float]
) -> Iterator[tuple[float, _Array, _Array]]:
    """Yield each candidate weight of the summaries, and the nonzero eigenpairs of Z Z^T.

    Eigenvalues are computed from the smaller of ``Z Z^T`` and ``Z^T Z``.
    """
    if len(values) <= values.shape[1] + summaries.shape[1]:
        grams = _grams(values, summaries)
        for weight in weights:
            spectrum, U = np.linalg.eigh(grams[0] + weight * grams[1])
            yield weight, np.maximum(spectrum, 0.0), U
        return
    Z = np.hstack([values, summaries])
    gram = (Z.T @ Z).astype(np.float64)
    for weight in weights:
        gain = np.ones(len(gram))
        gain[values.shape[1] :] = np.sqrt(weight)
        spectrum, V = np.linalg.eigh(gain[:, None] * gram * gain)
        inside = spectrum > 1e-12 * max(spectrum[-1], 1e-300)
        spectrum = spectrum[inside]
        yield weight, spectrum, (Z @ (gain[:, None] * V[:, inside])) / np.sqrt(spectrum)


def fit_prefixes(
    classifier: ConvolutionClassifier, series: _Array, labels: Labels, times: NDArray[np.int64]
) -> list[ConvolutionClassifier]:
    """Fit classifiers to the beginnings of checked series (n, channels, d), with common features.

    Returns a classifier with the parameters of `classifier` for the first t samples, for each t of
    the ascending `times`. Thresholds and dilations are those of the whole series.
    """
    features = classifier._new_features().fit(series)
    together = max(1, _BLOCK // (len(series) * features.n_features_out_))
    models = []
    for begin in range(0, len(times), together):
        group = times[begin : begin + together]
        values = features.transform_prefixes(series[:, :, : group[-1]], group)
        for t, at_time in zip(group, values.swapaxes(0, 1), strict=True):
            model, lengths = clone(classifier), np.full(len(series), t)
            model._fit_ridge(features, at_time, series[:, :, :t], lengths, labels)
            models.append(model)
    return models


def prefix_probabilities(
    models: Sequence[ConvolutionClassifier], series: _Array, times: NDArray[np.int64]
) -> _Array:
    """Probabilities (p, n, k) of checked series by the classifiers of `fit_prefixes`, in one pass.

    ``out[j]`` equals ``models[j].predict_proba(series[..., : times[j]])``.
    """
    features = models[0].features_
    out = np.empty((len(times), len(series), len(models[0].classes_)))
    step = max(1, _BLOCK // (len(times) * features.n_features_out_))
    for begin in range(0, len(series), step):
        rows = slice(begin, begin + step)
        part = series[rows, :, : times[-1]]
        values = features.transform_prefixes(part, times).swapaxes(0, 1)
        for model, t, at_time, probabilities in zip(models, times, values, out, strict=True):
            scores = model._scored(at_time, part[:, :, :t])
            probabilities[rows] = softmax(model.factor_ * scores, axis=1)
    return out


def _logit_factor(scores: _Array, codes: NDArray[np.intp]) -> float:
    """Factor in `_FACTORS` of leave-one-out scores (n, k) with the smallest log loss."""
    rows = np.arange(len(codes))

    def loss(exponent: float) -> float:
        return -float(log_softmax(np.exp(exponent) * scores, axis=1)[rows, codes].mean())

    bounds = [np.log(factor) for factor in _FACTORS]
    minimum = minimize_scalar(loss, bounds=bounds, method="bounded")
    return float(np.exp(minimum.x))

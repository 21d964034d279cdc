"""Classifiers at several times: fits, and out-of-fold probabilities of the training series.

Series are arrays (n, channels, d). The classifier of time t is fitted to ``X[:, :, :t]``. Its
probabilities of training series come from further fits to folds, from the folds of its own fit
(`out_of_fold_proba_`), or from the leave-one-out scores of `ConvolutionClassifier`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from eigenfeat._base.types import Labels
from eigenfeat._base.validation import is_rounding, show
from eigenfeat.early.series import carried, fold_masks
from eigenfeat.signals.convolutions import (
    ConvolutionClassifier,
    fit_prefixes,
    prefix_probabilities,
)
from eigenfeat.signals.epochs import axes_checked

_Array = NDArray[np.float64]
_Times = NDArray[np.int64]

# Errors of classifiers that cannot be fitted to short beginnings.
_FAILURES = (ValueError, ArithmeticError, LookupError)
_MIN_SERIES = 150  # with fewer series, folds are repeated
_MAX_REPEATS = 3


@dataclass(frozen=True, eq=False)
class HeldOutStages:
    """Classifiers of all training series at each time, and out-of-fold probabilities."""

    times: _Times  # times at which the classifier could be fitted
    models: list[Any]
    probabilities: _Array  # (R, p, n, G) by repeat of the folds; NaN for series never held out
    skipped: str = ""  # error at a time that was left out

    def stacked(self) -> tuple[list[_Array], NDArray[np.intp]]:
        """Probabilities (m, G) by time, over all repeats, and the index of each series."""
        repeats, p, n, _ = self.probabilities.shape
        rows = np.tile(np.arange(n), repeats)
        flat = self.probabilities.swapaxes(0, 1).reshape(p, repeats * n, -1)
        known = ~np.isnan(flat).any(axis=(0, 2))
        return list(flat[:, known]), rows[known]


@dataclass(frozen=True, eq=False)
class Stages:
    """Classifiers of the values of series up to each of several times."""

    models: list[Any]
    times: _Times  # (p,)
    classes: Labels  # (G,), sorted
    onset: int  # number of leading values that are equal in all training series; left out
    start: _Array  # (T, channels): replaces missing values before a channel's first known value

    def filled(self, rows: _Array) -> _Array:
        """Series (n, channels, T) from rows (n, T, channels), without missing values.

        NaN becomes the last known value, or before the first known value the training mean.
        """
        return _filled(rows, self.start)

    def probabilities(self, which: Sequence[int], series: _Array) -> _Array:
        """Probabilities (p, n, G) of filled series at some of the times.

        Convolution features are computed once for all times.
        """
        models, times = [self.models[k] for k in which], self.times[list(which)] - self.onset
        series = series[:, :, self.onset :]
        if isinstance(models[0], ConvolutionClassifier):  # by `fit_prefixes`
            return prefix_probabilities(models, series, times)
        pairs = zip(models, times, strict=True)
        return np.stack([_probability(model, series[:, :, :t], self.classes) for model, t in pairs])

    def after(self, rows: _Array, seen: _Times) -> _Array:
        """Probabilities (n, q, G) of rows (n, T, channels) at the last times up to `seen` (q,).

        They are 0 before the first time.
        """
        out = np.zeros((len(rows), len(seen), len(self.classes)))
        stage = self.times.searchsorted(seen, side="right") - 1
        distinct, which = np.unique(stage[stage >= 0], return_inverse=True)
        if len(distinct):
            probabilities = self.probabilities(distinct.tolist(), self.filled(rows))
            out[:, stage >= 0] = probabilities.swapaxes(0, 1)[:, which]
        return out


@dataclass(frozen=True, eq=False)
class KnownStages:
    """Out-of-fold probabilities of training series, in place of the classifiers of `Stages`."""

    times: _Times  # (p,)
    classes: Labels
    probabilities: _Array  # (n, p, G)

    def take(self, which: NDArray[np.intp]) -> KnownStages:
        """Select series."""
        return KnownStages(self.times, self.classes, self.probabilities[which])

    def after(self, rows: _Array, seen: _Times) -> _Array:
        """Like `Stages.after`, for the training series; `seen` (q,) are among the times."""
        return self.probabilities[:, self.times.searchsorted(seen)]


def convolutions(n_threads: int | None = None) -> ConvolutionClassifier:
    """The default classifier of the beginnings of series."""
    return ConvolutionClassifier(
        differences=False, contests=False, intervals=True, random_state=0, n_threads=n_threads
    )


def fit_stages(
    candidate: Any,
    rows: _Array,
    y: Labels,
    times_after: Callable[[int], _Times],
    n_folds: int = 5,
) -> tuple[Stages, HeldOutStages]:
    """Fit a classifier at several times after the onset, with its out-of-fold probabilities.

    Rows are (n, T, channels), NaN is missing. Times at which a classifier cannot be fitted are left
    out.
    """
    start = _start(rows)
    series = _filled(rows, start)
    onset = _onset_of(series)
    if onset == series.shape[2]:
        raise ValueError("X: expected series that differ, got equal series")
    series, classes = np.ascontiguousarray(series[:, :, onset:]), np.unique(y)
    times = times_after(onset) - onset
    with axes_checked():
        held_out = held_out_stages(candidate, series, y, classes, times, n_folds)
    return Stages(held_out.models, held_out.times + onset, classes, onset, start), held_out


def _start(rows: _Array) -> _Array:
    """Means (t, channels) of known values of series (n, t, channels), or the last known mean."""
    known = ~np.isnan(rows)
    counts, total = known.sum(axis=0), np.where(known, rows, 0.0).sum(axis=0)
    means = np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
    return np.nan_to_num(carried(means[None])[0])


def _filled(rows: _Array, start: _Array) -> _Array:
    """Series (n, channels, t) from rows (n, t, channels) without missing values."""
    if np.isnan(rows).any():
        rows = carried(rows)
        rows = np.where(np.isnan(rows), start[: rows.shape[1]], rows)
    return np.ascontiguousarray(rows.swapaxes(1, 2))


def _onset_of(X: _Array) -> int:
    """Number of leading samples in which all series (n, channels, d) are equal, up to rounding."""
    half_range = X.max(axis=0) / 2 - X.min(axis=0) / 2
    varies = ~is_rounding(half_range, np.abs(X).max(initial=0.0), len(X)).all(axis=0)
    return int(varies.argmax()) if varies.any() else X.shape[2]


def held_out_stages(
    candidate: Any, X: _Array, y: Labels, classes: Labels, times: _Times, n_folds: int
) -> HeldOutStages:
    """Fit classifiers to series (n, channels, d), and predict each series by models of others.

    Times are ascending, the last of them d. ValueError if no fold can be fitted.
    """
    models: list[Any] = []
    try:
        if isinstance(candidate, ConvolutionClassifier):
            models = list(fit_prefixes(candidate, X, y, times))
            by_time = [softmax(m.factor_ * m.loo_scores_, axis=1) for m in models]
        elif hasattr(candidate, "out_of_fold_proba_"):  # a pool of views
            last = _fitted(candidate, X, y)
            if getattr(last, "out_of_fold_proba_", None) is not None:
                models = [*(_fitted(candidate, X[:, :, :t], y) for t in times[:-1]), last]
                by_time = [np.array(m.out_of_fold_proba_, dtype=float) for m in models]
    except _FAILURES as error:
        raise _cannot_fit(candidate, str(error)) from error
    if not models:
        return _out_of_folds(candidate, X, y, classes, times, n_folds)
    codes, probabilities = np.searchsorted(classes, y), np.stack(by_time)
    # A class with one series has no out-of-fold probability: models of other series lack it.
    probabilities[:, np.bincount(codes)[codes] == 1] = np.nan
    return HeldOutStages(times, models, probabilities[None])


def _out_of_folds(
    candidate: Any, X: _Array, y: Labels, classes: Labels, times: _Times, n_folds: int
) -> HeldOutStages:
    """Probabilities by folds, which are repeated if there are few series.

    A fold is left out if the fit to whole series fails. A time is left out if a fit at this time
    fails in a fold that is not left out.
    """
    repeats = 1 if len(y) >= _MIN_SERIES else min(_MAX_REPEATS, 1 + _MIN_SERIES // len(y))
    out = np.full((repeats, len(times), len(y), len(classes)), np.nan)
    usable = np.ones(len(times), dtype=bool)
    failure, skipped, folds = "", "", 0
    masks = ((r, mask) for r in range(repeats) for mask in fold_masks(y, n_folds, r))
    for repeat, held_out in masks:
        for k in range(len(times) - 1, -1, -1):  # whole series first, to detect failing folds
            if not usable[k]:
                continue
            t = int(times[k])
            try:
                model = _fitted(candidate, X[~held_out][:, :, :t], y[~held_out])
                values = _probability(model, X[held_out][:, :, :t], classes)
            except _FAILURES as error:
                failure = f"{error} (with the first {t} samples)"
                if k == len(times) - 1:
                    break
                usable[k], skipped = False, skipped or failure
                continue
            out[repeat, k, held_out] = values
            folds += k == len(times) - 1
    if not folds:
        raise _cannot_fit(candidate, failure)
    models = [_fitted(candidate, X[:, :, :t], y) for t in times[usable]]
    return HeldOutStages(times[usable], models, out[:, usable], skipped)


def _fitted(candidate: Any, X: _Array, y: Labels) -> Any:
    """Fit a clone, or class frequencies if the series do not differ."""
    if _onset_of(X) == X.shape[2]:
        return DummyClassifier(strategy="prior").fit(_flat(X), y)
    return clone(candidate).fit(_input(candidate, X), y)


def _probability(model: Any, X: _Array, classes: Labels) -> _Array:
    """Probabilities (n, G); 0 for classes that the model lacks."""
    out = np.zeros((len(X), len(classes)))
    probabilities = np.nan_to_num(np.asarray(model.predict_proba(_input(model, X)), dtype=float))
    out[:, np.searchsorted(classes, model.classes_)] = probabilities
    total = out.sum(axis=1, keepdims=True)
    return np.where(total > 0, out / np.where(total > 0, total, 1.0), 1 / out.shape[1])


def _input(model: Any, X: _Array) -> _Array:
    """Series with channels if the model accepts them, otherwise rows."""
    if X.shape[1] > 1 and _takes_series(model):
        return X
    return _flat(X)


def _flat(X: _Array) -> _Array:
    """Rows in the order of time: all channels of the first value, then of the second."""
    if X.shape[1] == 1:
        return X[:, 0]
    return np.ascontiguousarray(X.swapaxes(1, 2)).reshape(len(X), -1)


def _takes_series(model: Any) -> bool:
    """Whether the model, or the first step of a pipeline, accepts arrays of three dimensions."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else model
    if hasattr(first, "get_tag"):  # an estimator of aeon
        return bool(first.get_tag("capability:multivariate", False, raise_error=False))
    try:
        tags = get_tags(first)
    except (AttributeError, TypeError):  # an estimator without tags
        return False
    return bool(tags.input_tags.three_d_array or (tags.no_validation and first is not model))


def _cannot_fit(candidate: Any, failure: str) -> ValueError:
    return ValueError(
        "classifier: expected a classifier that can be fitted to the series outside a fold, got "
        f"{show(candidate)}: {failure}"
    )

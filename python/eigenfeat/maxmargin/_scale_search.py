"""Choice of the size of the moves by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.validation import FLOATS, real_array, show
from eigenfeat.maxmargin.svm import MulticlassSVM
from eigenfeat.moments.columns import deviations
from eigenfeat.pencils.fitted_directions import MAX_SPREAD
from eigenfeat.samples.estimator import BaseEstimator, prepare, validate_data
from eigenfeat.samples.splits import checked_splits, cv_results

_MAX_MEAN = 10.0  # in standard deviations; a column with a larger mean is centred
_MAX_DEVIATION = 8.0  # standard deviations from 1/8 to 8 suit a C of about 1
_COARSE_GAP = 1e-2  # tolerance of the SVMs that compare scales
SCALES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)  # default of `scales`


class ScaleSearch(TransformerMixin, BaseEstimator):
    """Base class of estimators that move samples by an SVM and choose the size of the moves.

    Subclasses define ``_mover(X, y, weight, svm, coarse)``, which returns a `MovedSamples` of dense
    samples and an SVM that is fitted to the samples of positive weight.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "sigma2": [Interval(Real, 0, np.inf, closed="left"), StrOptions({"cv"})],
        "svm": [MulticlassSVM, None],
        "scales": ["array-like"],
        "cv": ["cv_object"],
        "scale": [StrOptions({"auto", "none", "columns"})],
    }

    sigma2: float | str
    svm: MulticlassSVM | None
    scales: Sequence[float]
    cv: Any
    scale: str
    column_mean_: NDArray[np.float64]
    column_scale_: NDArray[np.float64]

    _extracts_from_units: ClassVar[bool] = False  # whether extractors take scaled samples

    def _mover(self, X: Any, y: Any, weight: Any, svm: MulticlassSVM, coarse: bool) -> Any:
        raise NotImplementedError

    def _rows(self, X: Any) -> Any:
        options = {"accept_sparse": "csr", "dtype": FLOATS, "order": "C", "reset": False}
        return validate_data(self, X, **options)

    def _fit_scale(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Fit the SVM, choose the size of the moves, and return the mover of all samples."""
        self._validate_params()
        scales = _check_scales(self.scales)
        samples = prepare(self, X, y, sample_weight, in_memory=True, keeps_unweighted=True)
        X, y = samples.together().X, samples.classes[samples.codes]
        weight = samples.together().weight
        weight = np.ones(len(y)) if weight is None else weight
        known = weight > 0
        check_two_labels(np.unique(y[known]))
        raw = X.toarray() if sp.issparse(X) else X
        # A given C or sigma2 refers to unscaled columns.
        is_given = self.svm is not None or not isinstance(self.sigma2, str)
        scale = "none" if is_given and self.scale == "auto" else self.scale
        self.column_mean_, self.column_scale_ = units(raw[known], scale)
        X = self._in_units(raw)
        self.svm_ = clone(MulticlassSVM() if self.svm is None else self.svm)
        self.svm_.fit(X[known], y[known], weight[known])
        mover = self._mover(X, y, weight, self.svm_, False)
        if isinstance(self.sigma2, str):
            seen = X if self._extracts_from_units else raw
            self.sigma2_ = self._chosen(X, seen, y, weight, mover, scales)
        else:
            self.sigma2_ = float(self.sigma2)
        return mover

    @property
    def _has_units(self) -> bool:
        """Whether samples are centred and scaled."""
        return bool((self.column_scale_ != 1).any() or self.column_mean_.any())

    def _in_units(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return samples centred and scaled, in their dtype; the array itself without scaling."""
        if not self._has_units:
            return X
        return ((X - self.column_mean_) / self.column_scale_).astype(X.dtype, copy=False)

    def _in_input_units(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return samples in the original units of the columns."""
        if not self._has_units:
            return X
        return (X * self.column_scale_ + self.column_mean_).astype(X.dtype, copy=False)

    def _feature_units(self, features: NDArray[Any]) -> tuple[Any, Any]:
        """Return the mean and the divisor of features for the SVM that scores them."""
        scale = self.column_scale_
        if self._extracts_from_units:
            return 0.0, 1.0
        return (0.0, scale[0]) if (scale == scale[0]).all() else units(features, "auto")

    def _chosen(
        self, X: Any, seen: Any, y: Any, weight: Any, mover: Any, scales: NDArray[np.float64]
    ) -> float:
        """Return the sigma2 of the best scale on held-out samples.

        Extractors transform the samples `seen`.
        """
        scores, chosen = np.zeros((len(scales), 1)), 0
        if mover.unit > 0:
            scores = self._held_out_scores(X, seen, y, weight, scales)
            chosen = _best_scale(scales, scores)
        self.cv_results_ = cv_results([{"scale": scale} for scale in scales.tolist()], scores)
        self.best_index_ = chosen
        self.best_score_ = float(self.cv_results_["mean_test_score"][chosen])
        return float(mover.sigma2_of(float(scales[chosen])))

    def _held_out_scores(
        self, X: Any, seen: Any, y: Any, weight: Any, scales: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the accuracy of each scale on each fold; NaN where the extractor fails."""
        splits = self._splits(X, y, np.flatnonzero(weight))
        scores = np.full((len(scales), len(splits)), np.nan)
        errors: list[Exception] = []
        for fold, (train, test) in enumerate(splits):
            held_in = np.ones(len(y), dtype=bool)
            held_in[test] = False
            mover = self._fold_mover(X[held_in], y[held_in], weight[held_in])
            for s, scale in enumerate(scales):
                try:
                    extractor = mover.features(mover.sigma2_of(float(scale)))
                    scores[s, fold] = self._score(extractor, seen, y, weight, train, test)
                except (ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
                    errors.append(error)
        if np.isnan(scores.mean(axis=1)).all():
            raise errors[0]
        return scores

    def _fold_mover(self, X: Any, y: Any, weight: Any) -> Any:
        """Return the mover of a fold's training samples, with an SVM of loose tolerance."""
        known = weight > 0
        if len(np.unique(y[known])) < 2:
            return self._mover(X, y, np.zeros(len(y)), self.svm_, True)
        svm = self._coarse_svm(X[known], y[known], weight[known])
        return self._mover(X, y, weight, svm, True)

    def _score(self, extractor: Any, X: Any, y: Any, weight: Any, train: Any, test: Any) -> float:
        """Return the weighted accuracy on the samples `test` of an SVM of extracted features."""
        fitted, held_out = extractor.transform(X[train]), extractor.transform(X[test])
        if self._has_units:
            mean, scale = self._feature_units(fitted)
            fitted, held_out = (fitted - mean) / scale, (held_out - mean) / scale
        svm = self._coarse_svm(fitted, y[train], weight[train])
        return float(svm.score(held_out, y[test], weight[test]))

    def _coarse_svm(self, X: Any, y: Any, weight: Any) -> MulticlassSVM:
        """Fit an SVM to compare scales, for which an approximate fit suffices."""
        svm: MulticlassSVM = clone(self.svm_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return svm.set_params(tol=max(svm.tol, _COARSE_GAP)).fit(X, y, weight)

    def _splits(self, X: Any, y: Any, known: Any) -> list[tuple[Any, Any]]:
        """Return training and held-out indices; the only sample of a class is never held out."""
        folds = 5 if self.cv is None else self.cv
        divided = known
        if isinstance(folds, Integral):
            _, codes, counts = np.unique(y[known], return_inverse=True, return_counts=True)
            divided = known[counts[codes] > 1]
            if not len(divided):
                raise ValueError(
                    "y: expected a class of two samples or more for sigma2='cv', got one sample of "
                    "each"
                )
            if int(folds) > 1:
                folds = min(int(folds), int(counts[counts > 1].min()))
        alone = np.setdiff1d(known, divided)
        return [
            (np.concatenate([divided[train], alone]), divided[test])
            for train, test in checked_splits(folds, X[divided], y[divided])
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags


def units(X: NDArray[Any], scale: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and divisor of each column: means and deviations, or zeros and ones.

    "auto" does not scale columns of a common unit that suits the SVM's `C`: the largest deviation
    is at most 5 times the median, no mean exceeds 10 deviations, and the root of the mean variance
    is between 1/8 and 8. If only the last condition fails, all columns are divided by that root.
    Constant columns are ignored; they become 0 unless they are of the size of other columns.
    """
    d = X.shape[1]
    spread = deviations(X)
    positive = spread[spread > 0]
    if scale == "none" or not len(positive):
        return np.zeros(d), np.ones(d)
    mean = np.where(spread > 0, X.mean(axis=0, dtype=np.float64), X[0])
    median, most = float(np.median(positive)), float(positive.max())
    far = np.abs(mean) > _MAX_MEAN * np.where(spread > 0, spread, median)
    if scale == "columns" or most > MAX_SPREAD * median or (far & (spread > 0)).any():
        return mean, np.where(spread > 0, spread, 1.0)
    size = most * float(np.sqrt(np.mean((positive / most) ** 2)))
    if 1 / _MAX_DEVIATION <= size <= _MAX_DEVIATION:
        return np.where(far, mean, 0.0), np.ones(d)
    return mean, np.full(d, size)


def _best_scale(scales: NDArray[np.float64], scores: NDArray[np.float64]) -> int:
    """Return the index of the best mean score, or of 0 if the gain over 0 is not significant.

    A gain is significant above twice its standard error over the folds. Ties go to the smallest
    scale.
    """
    best = int(np.nanargmax(scores.mean(axis=1)))
    gains = scores[best] - scores[0]
    if scales[0] > 0 or not np.isfinite(gains).all():
        return best
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return best if gains.mean() > 2 * error else 0


def _check_scales(scales: Any) -> NDArray[np.float64]:
    """Return the scales in ascending order."""
    checked = np.asarray(real_array(scales, "scales"), dtype=np.float64)
    if checked.ndim != 1 or checked.size == 0 or not (np.isfinite(checked) & (checked >= 0)).all():
        raise ValueError(f"scales: expected finite numbers >= 0, got {show(scales)}")
    return np.unique(checked)

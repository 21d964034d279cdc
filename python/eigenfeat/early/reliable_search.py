"""Choose a reliable classifier and its tau by cross-validation on training samples."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.types import Labels, Rows
from eigenfeat._base.validation import MOST, show
from eigenfeat.early.completion import MixtureCompletion
from eigenfeat.early.reliable import ReliableClassifier
from eigenfeat.early.scores import checked_taus, reliability_curve
from eigenfeat.early.series import (
    complete_rows,
    fold_masks,
    labelled_complete_rows,
    series_of,
    training_rows,
)
from eigenfeat.samples.estimator import BaseEstimator, unchanged_on_error, validate_data
from eigenfeat.samples.splits import cv_results

if TYPE_CHECKING:
    from eigenfeat.early.decisions import Decisions, EarlyDecisions

__all__ = ["ReliableClassifierCV"]

# Sets decide late even at small reliabilities.
SMALL = (1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.05)
TAUS = (*SMALL, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)


class ReliableClassifierCV(ClassifierMixin, BaseEstimator):
    """Early classification with the largest harmonic mean of accuracy and earliness saved.

    Use it where the average of accuracy and earliness matters and no promise is needed. Set
    `candidates` first. User guide: :doc:`/guide/early_costs`.

    Each candidate is fitted to all folds but one and decides the series of that fold at every tau.
    The candidate and the tau with the largest harmonic mean :math:`2 a (1 - e) / (a + 1 - e)` of
    accuracy a and earliness e are fitted to all series.

    Parameters
    ----------
    candidates : dict of str to ReliableClassifier or None, default=None
        Candidates. None: shrinkage LDA with one Gaussian as completion ("LDA") and with one for
        each class ("LDA, mixture"). All are used with ``correct=False``.
    tau : ascending numbers in (0, 1) or None, default=None
        Candidate reliabilities. None: 23 numbers from 1e-12 to 0.99.
    n_folds : int >= 2, default=5
        Folds of the cross-validation, stratified by class.
    n_threads : int or None, default=None
        Number of threads of the default candidates; None uses all OpenMP threads. Results do not
        depend on it.

    Attributes
    ----------
    best_candidate_ : str
        Name of the chosen candidate.
    reliability_ : float
        Chosen tau.
    best_estimator_ : ReliableClassifier
        The candidate fitted to all series with `reliability` set, for example for streams and
        calibration.
    harmonic_means_ : dict of str to (p,) array
        Held-out harmonic means of each candidate at each tau; NaN if the fit failed.
    taus_ : (p,) array
        The reliabilities that were tried.
    cv_results_ : dict
        Results by column, as in ``GridSearchCV``, with an entry for each candidate and tau.
    best_index_ : int
        Index of the chosen entry in `cv_results_`.
    best_score_ : float
        Harmonic mean of the chosen entry.
    best_params_ : dict
        Candidate and tau of the chosen entry.
    classes_ : (G,) array
        Labels.
    n_features_in_, n_channels_, n_timepoints_ : int
        As in `ReliableClassifier`.

    Raises
    ------
    ValueError
        If series, labels or parameters are invalid, or no candidate can be fitted.

    See Also
    --------
    ReliableClassifier : Promises a share of final labels.
    MinimumCostClassifier : Often better with many samples.

    References
    ----------
    P. Schaefer, U. Leser, "TEASER: early and accurate time series classification", DMKD 34, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.early import ReliableClassifierCV
    >>> random = np.random.default_rng(0)
    >>> y = np.repeat(["up", "down"], 20)
    >>> slope = np.where(y == "up", 1.0, -1.0)
    >>> X = np.outer(slope, np.arange(10)) + 2 * random.standard_normal((40, 10))
    >>> model = ReliableClassifierCV(n_threads=1).fit(X, y)
    >>> round(model.best_score_, 1)
    0.8
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "candidates": [dict, None],
        "tau": ["array-like", None],
        "n_folds": [Interval(Integral, 2, MOST, closed="both")],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        candidates: Mapping[str, ReliableClassifier] | None = None,
        *,
        tau: ArrayLike | None = None,
        n_folds: int = 5,
        n_threads: int | None = None,
    ) -> None:
        self.candidates = candidates
        self.tau = tau
        self.n_folds = n_folds
        self.n_threads = n_threads

    def fit(self, X: ArrayLike, y: ArrayLike) -> ReliableClassifierCV:
        """Choose the candidate and its tau, and fit it.

        Parameters
        ----------
        X : (n, d) or (n, channels, times) array-like, or list of series
            Complete series, as in `ReliableClassifier.fit`.
        y : (n,) array-like
            Labels.

        Returns
        -------
        ReliableClassifierCV
            The estimator itself.
        """
        self._validate_params()
        with unchanged_on_error(self):
            series = series_of(X)
            if series is None:
                X, y = labelled_complete_rows(self, X, y)
            else:
                X, y = series, training_rows(self, series, y)[1]
            check_classification_targets(y)
            check_two_labels(np.unique(y))
            self._fit(X, y)
        return self

    def predict(self, X: ArrayLike) -> Labels:
        """Predict the labels of complete series.

        Parameters
        ----------
        X : (n, d) or (n, channels, times) array-like, or list of series
            Finite samples, or series that have ended.

        Returns
        -------
        (n,) array
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(self._checked(X))

    def predict_early(self, X: ArrayLike, *, steps: ArrayLike | None = None) -> EarlyDecisions:
        """Decide series as early as the chosen tau allows.

        Parameters
        ----------
        X, steps
            As in `ReliableClassifier.predict_early`.

        Returns
        -------
        EarlyDecisions
            Labels, times and reliabilities.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict_early(self._checked(X), steps=steps)

    def decide(self, X: Rows) -> Decisions:
        """Decide incomplete samples where the rule allows it.

        Parameters
        ----------
        X
            As in `ReliableClassifier.decide`.

        Returns
        -------
        Decisions
        """
        check_is_fitted(self)
        if series_of(X) is None:
            options = {"dtype": np.float64, "order": "C", "ensure_all_finite": "allow-nan"}
            X = validate_data(self, X, reset=False, **options)
        return self.best_estimator_.decide(X)

    def _fit(self, X: Any, y: NDArray[Any]) -> None:
        candidates = self._candidates()
        self.taus_ = np.array(TAUS) if self.tau is None else checked_taus(self.tau)
        self.harmonic_means_, failure, of_folds = {}, None, {}
        for name, model in candidates.items():
            try:
                means, of_folds[name] = self._harmonic_means(model, X, y)
                self.harmonic_means_[name] = means
            except ValueError as error:  # for example, a class is too small for its own Gaussian
                failure = failure or error
                self.harmonic_means_[name] = np.full(len(self.taus_), np.nan)
        best = {name: means.max() for name, means in self.harmonic_means_.items()}
        self.best_candidate_ = max(best, key=lambda name: np.nan_to_num(best[name], nan=-1.0))
        if np.isnan(best[self.best_candidate_]):
            assert failure is not None
            raise failure
        at = int(self.harmonic_means_[self.best_candidate_].argmax())
        self.reliability_ = float(self.taus_[at])
        self._tabulate(of_folds, at)
        chosen = clone(candidates[self.best_candidate_])
        chosen.set_params(reliability=self.reliability_, correct=False)
        self.best_estimator_ = chosen.fit(X, y)
        self.classes_ = self.best_estimator_.classes_
        self.n_features_in_ = self.best_estimator_.n_features_in_
        self.n_channels_ = self.best_estimator_.n_channels_
        self.n_timepoints_ = self.best_estimator_.n_timepoints_

    def _tabulate(self, of_folds: dict[str, NDArray[np.float64]], at: int) -> None:
        """Set `cv_results_` and the attributes of its best entry, at the tau with index `at`."""
        folds = max(scores.shape[1] for scores in of_folds.values())
        failed = np.full((len(self.taus_), folds), np.nan)
        names = list(self.harmonic_means_)
        params = [
            {"candidate": name, "reliability": tau} for name in names for tau in self.taus_.tolist()
        ]
        scores = np.concatenate([of_folds.get(name, failed) for name in names])
        table = cv_results(params, scores)
        means = np.concatenate([self.harmonic_means_[name] for name in names])
        self.cv_results_ = table | {"mean_test_score": means}
        self.best_index_ = names.index(self.best_candidate_) * len(self.taus_) + at
        self.best_score_ = float(means[self.best_index_])
        self.best_params_ = params[self.best_index_]

    def _harmonic_means(
        self, model: ReliableClassifier, X: Any, y: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return means (p,) over the folds, weighted by their sizes, and the values (p, folds)."""
        total, rows = np.zeros(len(self.taus_)), 0
        of_folds = []
        for fold in fold_masks(y, self.n_folds):
            fitted = clone(model).set_params(correct=False)._fit_subset(X, y, ~fold)
            rows_of_fold = X[fold] if isinstance(X, np.ndarray) else list(compress(X, fold))
            curve = reliability_curve(fitted, rows_of_fold, y[fold], self.taus_)
            of_folds.append(curve.harmonic_mean)
            total += curve.harmonic_mean * fold.sum()
            rows += int(fold.sum())
        if not rows:
            raise ValueError(
                f"y: expected a class of two samples or more for {self.n_folds} folds, got one "
                f"sample of each of {len(np.unique(y))} classes"
            )
        return np.asarray(total / rows), np.transpose(of_folds)

    def _candidates(self) -> dict[str, ReliableClassifier]:
        if self.candidates is None:
            lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
            mixture = MixtureCompletion(n_threads=self.n_threads)
            # tau is chosen by the harmonic mean, without a promise.
            options: dict[str, Any] = {"correct": False, "n_threads": self.n_threads}
            return {
                "LDA": ReliableClassifier(lda, **options),
                "LDA, mixture": ReliableClassifier(lda, mixture, **options),
            }
        if not self.candidates or not all(
            isinstance(name, str) and isinstance(model, ReliableClassifier)
            for name, model in self.candidates.items()
        ):
            raise ValueError(
                "candidates: expected a dict of names to ReliableClassifiers, got "
                f"{show(self.candidates)}"
            )
        return dict(self.candidates)

    def _checked(self, X: Any) -> Any:
        return complete_rows(self, X) if series_of(X) is None else X

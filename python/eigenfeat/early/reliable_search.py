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
from eigenfeat.early.completion import GaussianCompletion, MixtureCompletion
from eigenfeat.early.fitted import fits_gaussian_per_class
from eigenfeat.early.reliable import ReliableClassifier
from eigenfeat.early.scores import checked_taus, reliability_curve
from eigenfeat.early.series import fold_masks, training_rows
from eigenfeat.samples.estimator import BaseEstimator, unchanged_on_error
from eigenfeat.samples.splits import cv_results

if TYPE_CHECKING:
    from eigenfeat.early.decisions import Decisions, EarlyDecisions

__all__ = ["ReliableClassifierCV"]

# Default candidates for tau. Rules such as "chebyshev" decide late even with a small tau.
_SMALL_TAUS = (1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.05)
TAUS = (*_SMALL_TAUS, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)


class ReliableClassifierCV(ClassifierMixin, BaseEstimator):
    """Early classification with the largest harmonic mean of accuracy and 1 - earliness.

    Use it where the average of accuracy and earliness matters and no promise is needed. Set
    `candidates` first. User guide: :doc:`/guide/early_costs`.

    The candidate and the tau with the largest mean over the folds of the harmonic mean
    :math:`2 a (1 - e) / (a + 1 - e)` of accuracy a and earliness e are fitted to all series.

    Parameters
    ----------
    candidates : dict of str to ReliableClassifier or None, default=None
        Candidates, which are used with ``correct=False``. None: shrinkage LDA with one Gaussian as
        completion ("LDA"), and with a Gaussian for each class ("LDA, mixture") if there are at most
        32 classes whose covariances have at most 8 million entries.
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
        The candidate fitted to all series, for example for streams and calibration.
    cv_results_ : dict
        Columns as in ``GridSearchCV``, with an entry for each candidate and tau; scores are
        harmonic means.
    best_index_ : int
        The chosen entry of `cv_results_`.
    best_score_ : float
        Harmonic mean of the chosen entry.
    best_params_ : dict
        Candidate and tau of the chosen entry.
    classes_ : (G,) array
        Labels.
    n_features_in_ : int
        Number of entries of a sample, ``n_channels_ * n_timepoints_``.
    n_channels_ : int
        Number of channels.
    n_timepoints_ : int
        Number of values of the longest series.

    See Also
    --------
    ReliableClassifier : Promises how often an early label is the final label.
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
            rows, labels, layout = training_rows(self, X, y)
            check_classification_targets(labels)
            check_two_labels(np.unique(labels))
            series = layout.series(rows.rows).swapaxes(1, 2)
            candidates = self._candidates(len(np.unique(labels)), layout.width)
            self._choose(candidates, series, rows.ends // layout.channels, labels)
            best = clone(candidates[self.best_candidate_])
            best.set_params(reliability=self.reliability_, correct=False)
            self.best_estimator_ = best.fit(X, y)
            self.classes_ = best.classes_
            self.n_channels_, self.n_timepoints_ = layout.channels, layout.length
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
        return self.best_estimator_.predict(X)

    def predict_early(self, X: ArrayLike, *, steps: ArrayLike | None = None) -> EarlyDecisions:
        """Decide series as early as the chosen tau allows.

        Parameters
        ----------
        X : (n, d) or (n, channels, times) array-like, or list of series
            As in `ReliableClassifier.predict_early`.
        steps : ascending integers in ``1..n_timepoints_``, optional
            As in `ReliableClassifier.predict_early`.

        Returns
        -------
        EarlyDecisions
            Labels, times and reliabilities.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict_early(X, steps=steps)

    def decide(self, X: Rows) -> Decisions:
        """Decide incomplete samples where the rule allows it.

        Parameters
        ----------
        X : (n, d) or (n, channels, times) array-like, or list of series
            As in `ReliableClassifier.decide`.

        Returns
        -------
        Decisions
        """
        check_is_fitted(self)
        return self.best_estimator_.decide(X)

    def _choose(
        self,
        candidates: Mapping[str, ReliableClassifier],
        series: NDArray[np.float64],
        ends: NDArray[np.int64],
        y: Labels,
    ) -> None:
        """Score all candidates and taus by series (n, channels, times) that end at `ends`."""
        taus = np.array(TAUS) if self.tau is None else checked_taus(self.tau)
        folds = list(fold_masks(y, self.n_folds))
        if not folds:
            raise ValueError(
                f"y: expected a class of two samples or more for {self.n_folds} folds, got one "
                f"sample of each of {len(np.unique(y))} classes"
            )
        ended = [values[:, :end] for values, end in zip(series, ends, strict=True)]
        scores: list[NDArray[np.float64]] = []
        failure = None
        for model in candidates.values():
            try:
                curves: list[list[Any]] = []
                for fold in folds:
                    fitted = clone(model).set_params(correct=False).fit(series[~fold], y[~fold])
                    curve = reliability_curve(fitted, list(compress(ended, fold)), y[fold], taus)
                    curves.append([scored.harmonic_mean for scored in curve])
            except ValueError as error:  # for example, a class is too small for its own Gaussian
                failure = failure or error
                curves = [[np.nan] * len(taus)] * len(folds)
            scores.append(np.transpose(curves))
        params = [
            {"candidate": name, "reliability": tau} for name in candidates for tau in taus.tolist()
        ]
        self.cv_results_ = cv_results(params, np.concatenate(scores))
        means = self.cv_results_["mean_test_score"]
        if failure is not None and np.isnan(means).all():
            raise failure
        self.best_index_ = int(np.nanargmax(means))
        self.best_score_ = float(means[self.best_index_])
        self.best_params_ = params[self.best_index_]
        self.best_candidate_, self.reliability_ = self.best_params_.values()

    def _candidates(self, n_classes: int, width: int) -> dict[str, ReliableClassifier]:
        if self.candidates is None:
            lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
            gaussian = GaussianCompletion(n_threads=self.n_threads)
            mixture = MixtureCompletion(n_threads=self.n_threads)
            # The harmonic mean chooses tau; there is no promise to correct.
            options: dict[str, Any] = {"correct": False, "n_threads": self.n_threads}
            candidates = {"LDA": ReliableClassifier(lda, gaussian, **options)}
            if fits_gaussian_per_class(n_classes, width):
                candidates["LDA, mixture"] = ReliableClassifier(lda, mixture, **options)
            return candidates
        if not self.candidates or not all(
            isinstance(name, str) and isinstance(model, ReliableClassifier)
            for name, model in self.candidates.items()
        ):
            raise ValueError(
                "candidates: expected a dict of names to ReliableClassifiers, got "
                f"{show(self.candidates)}"
            )
        return dict(self.candidates)

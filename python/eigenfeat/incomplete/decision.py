"""Classify incomplete rows where the complete ones would be classified the same."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from eigenfeat._base.saved import fits
from eigenfeat._base.types import Estimator, Labels, RandomState
from eigenfeat._base.validation import MOST
from eigenfeat.incomplete._completion.sets import SETS
from eigenfeat.incomplete._in_use import InUse
from eigenfeat.incomplete._rules.choice import METHODS
from eigenfeat.incomplete._rules.early import EarlyRun, batches
from eigenfeat.incomplete._rules.fitting import Fitting
from eigenfeat.incomplete._rules.rule import Judgement
from eigenfeat.incomplete._rules.sample_sizes import MOST_SAMPLES
from eigenfeat.incomplete._series.layout import whole_rows
from eigenfeat.incomplete._series.results import Decisions, EarlyDecisions
from eigenfeat.incomplete._series.steps import looks_of, taus_of
from eigenfeat.rows.estimator import BaseEstimator

__all__ = ["ReliableClassifier"]

_Array = NDArray[np.float64]


class ReliableClassifier(InUse, Fitting, ClassifierMixin, BaseEstimator):
    r"""Classify incomplete rows where the complete ones would be classified the same.

    Use it where each early decision needs a promise. Choose `classifier` and `reliability` first;
    the other defaults follow. User guide: :doc:`/guide/early`.

    A sample is decided as class c if, given its known entries, the complete sample would be
    classified as c with probability at least `reliability`; otherwise there is no label (Parrish
    2012, chapter 5). `rule` is a theorem if the completion's model is right. `correct` tests the
    rule on held-out training samples, and requires so many known entries that sufficiently many of
    them were not decided wrongly from there on.

    Parameters
    ----------
    classifier : estimator
        Any with `fit` and `predict`, including pipelines: "sampled" and "ideal" need only labels.
        The other rules need linear or quadratic discriminants whose argmax is `predict`: ``coef_``
        and ``intercept_`` for each class (LDA, LinearSVC, LogisticRegression, MultinomialLogit),
        QDA, GaussianNB, `LocalQDA`, or the nearest neighbour. It is cloned and fitted, unless it is
        a fitted one in scikit-learn's ``FrozenEstimator``. Rules without sampling use a local
        classifier at the mean of the completed row, although the complete row has neighbours of its
        own: no theorem covers its label then.
    completion : completion, list of completions, "auto" or None, default=None
        The distribution of complete rows, such as `GaussianCompletion`, which is None's, or
        `MixtureCompletion`. "auto" is the list of these two. Of a list of m, `fit` takes the one
        whose decisions come earliest where held-out rows agree in a share `reliability`, by
        `n_folds` folds of the rows that are fitted (see `completion_results_`). Rows of `held_out`
        do not choose: the promise is the same as without a choice. Folds correct with confidence
        1 - (1 - `correct`) / m, so that the bounds of all m hold at once with confidence `correct`
        (union bound); with folds "average" is refused. `fit` takes some m + 1 times as long.
    rule : str, default="auto"
        The rule that decides a sample; the user guide has the theorem behind each.

        - "pairwise": one minus the sum of the probabilities that another class scores higher is at
          least tau; exact for two classes with linear discriminants. Quadratic ones use `tail`.
        - "chebyshev", "mahalanobis", "quadratic", "box": the class has the highest score
          on all of a set of probability at least tau.
        - "ideal", "sampled": the probability itself by sampling, for any classifier; "sampled"
          stops as soon as its test is clear.
        - "learned": an estimate of the probability, learned out of folds; a bound after `correct`.
        - "auto": "pairwise" for linear discriminants, "ideal" for local ones, "quadratic" for other
          quadratic ones, "sampled" for classifiers without discriminants.
    reliability : float in (0, 1), default=0.95
        tau.
    horizon : int or None, default=None
        Defines a complete series. None: a series that has ended. Rows are as long as the longest
        training series, and shorter series are padded with each channel's last sample. A number: a
        series of this many samples. Missing samples of shorter series are filled by the completion
        where a classifier needs complete rows.
    features : transformer or None, default=None
        A linear map of rows to the features that are classified, such as LDG or PCA; cloned and
        fitted with labels, like the classifier.
    tail : {"chernoff", "davies", "saddlepoint"}, default="chernoff"
        For "pairwise" with quadratic discriminants: Chernoff's bound; the tail itself by Davies's
        inversion, with a bound of its error added; or Lugannani and Rice's approximation.
    correct : bool, float in (0, 1) or "average", default=True
        Whether held-out samples correct the rule, so that at least a share tau of new series keep
        their early label: with this confidence over training sets (True: 0.9), or on average. With
        `held_out` this is a theorem, with folds an approximation. At least log(1 - confidence) /
        log(tau) samples are needed (45 for 0.95, 230 for 0.99); with fewer, series are decided at
        their end. False uses the rule alone.
    held_out : float in (0, 1) or None, default=None
        Share of the rows, drawn at random, that are excluded from the fit and used only to correct
        the rule. The promise is then the theorem's for rows drawn as these were, whatever their
        distribution and the classifier, which learns from fewer rows. None: folds, and all rows are
        fitted.
    n_folds : int, default=5
        Folds for `correct`; the time of `fit` grows at least in proportion.
    n_samples : int or "auto", default="auto"
        Power of two, at most 2^20: samples for each row with "ideal", and at most as many with
        "sampled". It limits the tau that can be decided: with n samples, all of one class, the
        bound is 0.01^(1/n) with "ideal", (0.01 / k)^(1/n) in the k-th and last stage of "sampled".
        "auto": 1,024, or as many as reach half-way from `reliability` to 1 (0.99: 2,048; 0.999:
        16,384). With a number that cannot reach `reliability`, `fit` warns.
    random_state : int, RandomState or None, default=0
        For "ideal", "sampled" and "learned", which draw the same numbers for every row.
    n_threads : int or None, default=None
        Number of threads; None uses all OpenMP threads. Results do not depend on it.

    Attributes
    ----------
    classes_ : (G,) array
        Labels.
    classifier_, completion_, features_ : estimators
        Fitted; `features_` may be None.
    completion_results_ : list of dict
        Of each completion that there was to choose from: "completion", "agreement" (share of
        held-out rows that are decided as when they are complete) and "time" (mean share of entries
        known at the decision), NaN if a fold's rows cannot be fitted. Only if there was a choice.
    rule_ : str
        The rule that is used.
    n_samples_ : int
        Maximum number of samples of the rule; 0 if it does not sample.
    largest_reliability_ : float
        The largest tau at which incomplete rows can be decided with this number of samples.
    reliability_ : float
        The tau that is promised and used by default, if the rule is corrected or calibrated.
    held_out_agreement_, held_out_agreement_bound_ : float
        Share of held-out rows whose decision at that tau was that of the complete row, and Clopper
        and Pearson's lower bound of it with confidence 0.9; they are the rows that correct the
        rule. NaN and 0 if no fold could be fitted.
    correction_ : Correction or Thresholds
        ``correction_.least_known(tau)`` is the number of entries that must be known at tau. With
        "learned", ``correction_.threshold(tau)`` is the score that is needed.
    decision_times_ : (p,) array of int
        The numbers of samples after which the rows that correct the rule were looked at. They are
        the default for series; `n_timepoints_` is the last.
    calibration_ : Calibration
        After `calibrate`, which replaces the correction: the evidence for `reliability_`.
    fitted_ : object
        The immutable fitted state used for decisions; streams and files share it.
    n_features_in_ : int
        Number of columns, d; for series ``n_channels_ * n_timepoints_``: all channels of the first
        sample, then all of the second, as the classifier receives them.
    n_channels_, n_timepoints_ : int
        Shape of the series; 1 and d where `fit` was given rows.

    Raises
    ------
    ValueError
        If rows, labels or parameters are invalid, the rule needs discriminants that the classifier
        does not have, or the features are not affine (put these into a pipeline with the
        classifier).

    See Also
    --------
    ReliableClassifierCV : Chooses by accuracy and earliness, without a promise.
    MinimumCostClassifier : A cost of delay instead of a promise.
    GaussianCompletion : The default model of complete samples.

    References
    ----------
    N. Parrish, "Supervised Dimensionality Reduction for Different Learning Architectures", PhD
    thesis, University of Washington, 2012, chapter 5.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from eigenfeat.incomplete import ReliableClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X, y)
    >>> model.decide([[5.0, 3.4, 1.4, np.nan], [6.0, 2.9, np.nan, np.nan]]).labels
    array([0, None], dtype=object)
    """

    _saved: ClassVar[dict[str, str]] = {
        "classes_": "labels k",
        "classifier_": "estimator",
        "completion_": "of GaussianCompletion MixtureCompletion",
        "features_": "estimator?",
        "rule_": "text",
        "fitted_": "of Fitted",
        "n_channels_": "count",
        "n_timepoints_": "count",
        "correction_": "of Correction Thresholds?",
        "decision_times_": "whole p?",
        "held_out_agreement_": "number?",
        "n_samples_": "count?",
        "largest_reliability_": "number?",
        "held_out_agreement_bound_": "number?",
        "reliability_": "number?",
        "calibration_": "of Calibration?",
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classifier": [HasMethods(["fit", "predict"])],
        "completion": [HasMethods([*METHODS]), list, tuple, StrOptions({"auto"}), None],
        "rule": [StrOptions({"auto", "pairwise", *SETS, "ideal", "sampled", "learned"})],
        "reliability": [Interval(Real, 0, 1, closed="neither")],
        "horizon": [Interval(Integral, 1, MOST, closed="both"), None],
        "features": [HasMethods(["fit", "transform"]), None],
        "tail": [StrOptions({"chernoff", "davies", "saddlepoint"})],
        "correct": ["boolean", Interval(Real, 0, 1, closed="neither"), StrOptions({"average"})],
        "held_out": [Interval(Real, 0, 1, closed="neither"), None],
        "n_folds": [Interval(Integral, 2, MOST, closed="both")],
        "n_samples": [Interval(Integral, 2, MOST_SAMPLES, closed="both"), StrOptions({"auto"})],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        classifier: Estimator,
        completion: Estimator | Sequence[Estimator] | str | None = None,
        rule: str = "auto",
        reliability: float = 0.95,
        *,
        horizon: int | None = None,
        features: Estimator | None = None,
        tail: str = "chernoff",
        correct: bool | float | str = True,
        held_out: float | None = None,
        n_folds: int = 5,
        n_samples: int | str = "auto",
        random_state: RandomState = 0,
        n_threads: int | None = None,
    ) -> None:
        self.classifier = classifier
        self.completion = completion
        self.rule = rule
        self.reliability = reliability
        self.horizon = horizon
        self.features = features
        self.tail = tail
        self.correct = correct
        self.held_out = held_out
        self.n_folds = n_folds
        self.n_samples = n_samples
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> ReliableClassifier:
        """Fit features, classifier and completion.

        Parameters
        ----------
        X : (n, d) or (n, channels, samples) array-like, or list of series
            Complete rows, or series: one of shape (samples,) or (channels, samples) each, of any
            lengths (see `horizon`). Missing samples of series (NaN) are filled by the completion.
            Rows must be filled by the caller: ``GaussianCompletion().fit(X).transform(X)``.
        y : (n,) array-like
            Labels.
        sample_weight : (n,) array-like, optional
            Nonnegative weights for the fits of completion, features and classifier, which must take
            weights or be frozen. The correction counts every held-out row once: its promise is
            about rows drawn as these were, without weights.

        Returns
        -------
        ReliableClassifier
            The estimator itself.
        """
        return self._fit_given(X, y, slice(None), sample_weight)

    def predict(self, X: ArrayLike) -> Labels:
        """Predict the labels of complete rows.

        Parameters
        ----------
        X : (n, d) or (n, channels, samples) array-like, or list of series
            Complete rows, unlike `decide`, or series that have ended. Missing samples of series are
            filled by their conditional means.

        Returns
        -------
        (n,) array
        """
        core = self._core()
        rows = core.features_of(core.filled(whole_rows(self, X, core.layout).rows))
        return np.asarray(core.classifier.predict(rows))

    def decide(
        self, X: ArrayLike, reliability: ArrayLike | None = None, *, target: object = None
    ) -> Decisions:
        """Decide rows, or let them wait.

        Parameters
        ----------
        X : (n, d) or (n, channels, samples) array-like, or list of series
            Rows, or the known samples of series so far; NaN is missing.
        reliability : float or (n,) array-like, optional
            tau in (0, 1); that of the estimator by default.
        target : label, optional
            Test only this class: rows are decided as this class or wait.

        Returns
        -------
        Decisions
            Labels and reliabilities.
        """
        core, rows = self._core(), self._rows(X)
        tau = taus_of(self, reliability, len(rows))
        wanted = self._target(target)
        missing = np.isnan(rows).sum(axis=1)
        labels, sure = core.complete(rows, missing, wanted)
        out = Judgement(labels, sure.copy(), sure.astype(float), *np.zeros((2, len(rows)), np.intp))
        for part in core.open_parts(missing):
            found = core.rule.judge(core.case(rows[part]), tau[part], wanted)
            out.guess[part] = core.discriminants.labels[found.guess]
            out.decided[part] = found.decided
            out.reliability[part] = found.reliability
            out.checks[part], out.open[part] = found.checks, found.open
        named = self.classes_[out.guess]
        return Decisions(out.decided, named, out.reliability, out.checks, out.open, missing)

    def reliabilities(self, X: ArrayLike, *, target: object = None) -> _Array:
        """Return the largest tau at which each row would be decided now.

        Parameters
        ----------
        X : (n, d) or (n, channels, samples) array-like, or list of series
            As in `decide`.
        target : label, optional
            Test only this class.

        Returns
        -------
        (n,) array
            0 where a row would not be decided at any tau; 1 for complete rows.
        """
        core, rows, wanted = self._core(), self._rows(X), self._target(target)
        missing = np.isnan(rows).sum(axis=1)
        out = core.complete(rows, missing, wanted)[1].astype(float)
        for part in core.open_parts(missing):
            out[part] = core.rule.largest(core.case(rows[part]), wanted)[0]
        return out

    def predict_early(
        self,
        X: ArrayLike,
        reliability: ArrayLike | None = None,
        *,
        steps: ArrayLike | None = None,
        trace: bool = False,
    ) -> EarlyDecisions:
        """Decide time series as early as possible; with all samples every row is decided.

        Parameters
        ----------
        X : (n, d) or (n, channels, samples) array-like, or list of series
            Series. At each time only the samples up to it are used; at its own end each series is
            decided. Only arrays with channels and lists may have missing samples.
        reliability : float or (n,) array-like, optional
            tau; that of the estimator by default.
        steps : ascending integers in ``1..n_timepoints_``, optional
            Times of decision; the end is always included. By default `decision_times_`, for which a
            correction holds, and every sample where the rule is not corrected.
        trace : bool, default=False
            Whether to return classes and largest taus at all times.

        Returns
        -------
        EarlyDecisions
            Labels, times and reliabilities.
        """
        core = self._core()
        found = whole_rows(self, X, layout := core.layout)
        tau = taus_of(self, reliability, len(found.rows))
        looks = looks_of(self, steps, layout.length)
        times = np.union1d(looks[looks > 0], [layout.length]).astype(np.int64) * layout.channels
        if not trace:
            least = core.rule.least_known(float(tau.min(initial=1.0)))
            times = times[np.searchsorted(times[:-1], least) :]
        holes = found.have_holes
        # Of series without holes what comes after their end is not looked at.
        full = np.where(holes[:, None], found.rows, core.filled(found.rows))
        run = EarlyRun(full, tau, times, found.ends, *core.at_the_end(found.rows))
        if trace:
            run.start_trace()
        together = 16 if core.rule.cost == 1 else 1  # times that may be looked at in vain
        for group in (np.flatnonzero(~holes), np.flatnonzero(holes)):
            for rows, at in batches(len(group), len(times) - 1, core.numbers(), together):
                run.advance(core.rule, core.early_case, group[rows], at, trace)
        return run.result(self.classes_, layout.channels)

    def _check_loaded(self) -> None:
        layout = self.fitted_.layout
        fits(self.n_features_in_ == layout.width, "Layout")
        fits((self.n_channels_, self.n_timepoints_) == (layout.channels, layout.length), "Layout")
        fits(np.array_equal(self.classes_, self.fitted_.classes), "ReliableClassifier.classes_")

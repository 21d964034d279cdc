"""Incomplete rows are decided where the complete ones would be classified the same."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from eigenfeat._base.unchanged import unchanged_on_error
from eigenfeat._base.validation import MOST, show
from eigenfeat.incomplete._completion.sets import SETS
from eigenfeat.incomplete._in_use import InUse
from eigenfeat.incomplete._rules.early import EarlyRun, batches
from eigenfeat.incomplete._rules.fitted import Fitted
from eigenfeat.incomplete._rules.fitting import Fitting
from eigenfeat.incomplete._rules.rule import Judgement
from eigenfeat.incomplete._rules.sample_sizes import MOST_SAMPLES, check_samples
from eigenfeat.incomplete._series.layout import known_rows, training_rows, whole_rows
from eigenfeat.incomplete._series.results import Decisions, EarlyDecisions
from eigenfeat.incomplete._series.steps import looks_of, taus_of

__all__ = ["ReliableClassifier"]

_Array = NDArray[np.float64]

# A row: its points are held at once.


class ReliableClassifier(InUse, Fitting, ClassifierMixin, BaseEstimator):
    r"""Classify incomplete rows where the complete ones would be classified the same.

    A row is decided as class c if, given what is known of it, the complete row would be classified
    as c with probability at least `reliability`; otherwise it waits (Parrish 2012, chapter 5).
    Any entries may be missing.

    Two things make the promise. By the rule, `set`, it holds where the completion's model is right,
    by the theorem or bound that is named with each. Models of few rows are seldom right: `correct`
    has held-out training rows confirm the rule, as series that are known up to some entry, and lets
    rows wait until so many entries are known that enough held-out rows were never decided wrongly
    any more.

    Parameters
    ----------
    classifier : estimator
        Any with `fit` and `predict`, pipelines too: "sampled" and "ideal" ask for no more than
        labels. The other rules take linear or quadratic discriminants whose argmax `predict` is:
        ``coef_`` and ``intercept_`` for each class (LDA, LinearSVC, LogisticRegression,
        MultinomialLogit), QDA, GaussianNB, `LocalQDA`, or the nearest neighbour. It is cloned and
        fitted, unless it is a fitted one in scikit-learn's ``FrozenEstimator``. Rules that are not
        sampled take a local one about the mean of the completed row, although the complete row has
        neighbours of its own: no theorem covers its label then.
    completion : GaussianCompletion, MixtureCompletion or None, default=None
        The distribution of complete rows; None: ``GaussianCompletion()``.
    set : str, default="auto"
        What must hold.

        - "pairwise": :math:`1 - \sum_h P(f_c(X) < f_h(X) | z) \ge \tau`. Exact for two classes with
          linear discriminants, a bound for more; under a mixture, with the mixture's tails.
          Quadratic ones by `tail`.
        - "chebyshev" (5.3), "mahalanobis", "quadratic" (5.4), "box" (5.5): c dominates on a set of
          probability at least tau: by Chebyshev's inequality for whatever distribution; by the
          exact chi-square radius of the whole covariance; by the quantile of a weighted sum of
          chi-squares; by Sidak's inequality (and, with QDA, Royen's). The last three suppose what
          is missing to be Gaussian, of any correlation; under a mixture each part has a set of its
          own, and by the law of total probability their union has at least tau.
        - "ideal": the probability (5.1) itself by sampling, with Clopper and Pearson's one-sided
          confidence bound of 99 per cent: of the label that the complete row gets, whatever the
          classifier. In `predict_early` and streams rows are left as soon as too many samples
          disagree.
        - "sampled": the same probability, by a sequential test that also ends as soon as tau is
          reached: 32 independent completions choose the class, and after 32, 64, 128, ... others
          Clopper and Pearson's bounds, at a level that is divided among these stages (Bonferroni),
          tell whether P(the complete row is of this class | what is known) is at least tau. With
          probability 0.99 over the samples none of a row's bounds is too large, however early the
          test ends: an error of a look at a row, not of all looks together.
        - "learned": a logistic regression's estimate, learned out of folds, of the probability that
          the label now is the final one, from 32 completions' labels, the classifier's margin at
          the completed mean and the share of entries that are missing. It is no bound and rests on
          no distribution; what `correct` makes of it is one, by exchangeability.
        - "auto": "pairwise" for linear discriminants, "ideal" for local ones, "quadratic" for other
          quadratic ones, "sampled" for classifiers without any.
    reliability : float in (0, 1), default=0.95
        tau.
    horizon : int or None, default=None
        What a complete series is. None: one that has ended; in rows, which are as long as the
        longest training series, each channel's last sample stands for what a shorter one lacks. A
        number: one of so many samples; what shorter ones lack is missing, and filled by the
        completion where a classifier wants complete rows.
    features : transformer or None, default=None
        A linear map of rows to what is classified, such as LDG or PCA; cloned and fitted like the
        classifier, with labels.
    tail : {"chernoff", "davies", "saddlepoint"}, default="chernoff"
        For "pairwise" with quadratic discriminants: Chernoff's bound; the tail itself by Davies's
        inversion, with a bound of its error added; or Lugannani and Rice's approximation.
    correct : bool, float in (0, 1) or "average", default=True
        Whether held-out rows correct the rule. A confidence: over training sets, with which at
        least a share tau of new series that become known entry by entry are decided as they would
        be when complete, by Clopper and Pearson's bound; True is 0.9. "average": the share is tau
        on average over training sets, by exchangeability (cross-conformal prediction). Both are
        theorems about rows that the model has not seen, looked at after `looks_` samples: see
        `held_out`. Across folds they hold as nearly as folds' models are like the one that is used.
        Rows with other patterns of missing entries wait for as many known entries.
        log(1 - confidence) / log(tau) rows are the fewest that can show anything (45 for 0.95, 230
        for 0.99, 2,302 for 0.999); with fewer, rows are decided when they are complete. False is
        the rule of the thesis alone.
        "learned" is corrected otherwise: rows do not wait for a number of entries but for a score
        that so many held-out rows never had with a wrong label (split conformal prediction; with a
        confidence, Wilks's tolerance limits).
    held_out : float in (0, 1) or None, default=None
        Share of the rows that are kept from the fit, drawn at random, and alone correct the rule:
        then the promise is the theorem's for rows drawn as these were, whatever their distribution
        and the classifier, which learns from fewer. None: folds, and all rows are fitted.
    n_folds : int, default=5
        Folds for `correct`; `fit` takes as many times as long, and longer.
    n_samples : int or "auto", default="auto"
        Power of two, at most 2^20; samples a row with "ideal", at most as many with "sampled". It
        limits the tau that can be decided: with n samples, all of one class, the bound is
        0.01^(1/n) with "ideal", (0.01 / k)^(1/n) in the k-th and last stage of "sampled". "auto":
        1,024, or as many as reach half-way from `reliability` to 1 (0.99: 2,048; 0.999: 16,384).
        With a number that cannot reach `reliability`, `fit` warns.
    random_state : int, RandomState or None, default=0
        For "ideal", "sampled" and "learned", which draw the same numbers for every row.
    n_threads : int or None, default=None
        Threads; None means all that OpenMP gives. Results do not depend on it.

    Attributes
    ----------
    classes_ : (G,) array
        Labels.
    classifier_, completion_, features_ : estimators
        Fitted; `features_` may be None.
    set_ : str
        The rule that is used.
    n_samples_ : int
        How many samples it takes at most; 0 if it does not sample.
    largest_reliability_ : float
        The largest tau at which incomplete rows can be decided, by the number of samples.
    reliability_ : float
        The tau that is promised and used by default, if the rule is corrected or calibrated.
    realised_, realised_bound_ : float
        Share of held-out rows whose decision at that tau was that of the complete row, and Clopper
        and Pearson's lower bound of it with confidence 0.9; they are the rows that correct the
        rule. NaN and 0 if no fold could be fitted.
    correction_ : Correction or Thresholds
        How many entries must be known at which tau: ``correction_.least_known(tau)``. With
        "learned", which score is asked for: ``correction_.threshold(tau)``.
    looks_ : (p,) array of int
        After how many samples the rows that correct the rule were looked at, and so are series by
        default; `n_timepoints_` is the last.
    calibration_ : Calibration
        After `calibrate`, which takes the place of the correction: what `reliability_` rests on.
    fitted_ : object
        All that decisions rest on, in one piece that nothing changes: streams and files share it.
    n_features_in_ : int
        Number of columns, d; of series ``n_channels_ * n_timepoints_``: all channels of the first
        sample, then all of the second, which is how the classifier sees them.
    n_channels_, n_timepoints_ : int
        Of series; 1 and d where `fit` was given rows.

    Raises
    ------
    ValueError
        If rows, labels or parameters are unfit, the rule takes discriminants that the classifier
        does not have, or the features are not affine (put such ones into a pipeline with the
        classifier).

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classifier": [HasMethods(["fit", "predict"])],
        "completion": [HasMethods(["fit", "condition", "condition_prefixes"]), None],
        "set": [StrOptions({"auto", "pairwise", *SETS, "ideal", "sampled", "learned"})],
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
        classifier: Any,
        completion: Any = None,
        set: str = "auto",
        reliability: float = 0.95,
        *,
        horizon: int | None = None,
        features: Any = None,
        tail: str = "chernoff",
        correct: Any = True,
        held_out: float | None = None,
        n_folds: int = 5,
        n_samples: Any = "auto",
        random_state: Any = 0,
        n_threads: int | None = None,
    ) -> None:
        self.classifier = classifier
        self.completion = completion
        self.set = set
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

    def fit(self, X: Any, y: Any) -> ReliableClassifier:
        """Fit features, classifier and completion.

        Parameters
        ----------
        X : (n, d) or (n, channels, samples) array-like, or list of series
            Complete rows, or series: one of shape (samples,) or (channels, samples) each, of any
            lengths (see `horizon`). Series may lack samples (NaN), which are filled by the
            completion. Of rows that is left to the caller: ``GaussianCompletion().fit(X)
            .transform(X)``.
        y : (n,) array-like
            Labels.

        Returns
        -------
        ReliableClassifier
            The estimator itself.
        """
        return self._fit_given(X, y, slice(None))

    def _fit_given(self, X: Any, y: Any, chosen: Any) -> ReliableClassifier:
        """Fit to some of the rows, whose series are laid out as all of them would be."""
        self._validate_params()
        check_samples(self.n_samples)
        with unchanged_on_error(self):
            found, y, layout = training_rows(self, X, y, self.horizon)
            found, y = found.some(chosen), y[chosen]
            check_classification_targets(y)
            self._forget_calibration()
            kept = self._kept_out(len(y))
            fresh = None if kept is None else found.some(kept)
            if kept is not None:
                found, y = found.some(~kept), y[~kept]
            self._fit_rows(found, y, layout)
            if self.correct is not False:
                self._correct(found, y, fresh)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of complete rows.

        Parameters
        ----------
        X : (n, d) or (n, channels, samples) array-like, or list of series
            Complete rows, which `decide` does not ask for; or series that have ended. Samples that
            series lack are filled by their conditional means.

        Returns
        -------
        (n,) array
        """
        core = self._core()
        rows = core.filled(whole_rows(self, X, core.layout).rows)
        return np.asarray(core.classifier.predict(core.features_of(rows)))

    def decide(self, X: Any, reliability: Any = None, *, target: Any = None) -> Decisions:
        """Decide rows, or let them wait.

        Parameters
        ----------
        X : (n, d) or (n, channels, samples) array-like, or list of series
            Rows, or what is known of series so far; NaN is missing.
        reliability : float or (n,) array-like, optional
            tau in (0, 1); that of the estimator by default.
        target : label, optional
            Ask for this class alone: rows are decided as it or wait.

        Returns
        -------
        Decisions
            Labels, and what is certain of them.
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

    def reliabilities(self, X: Any, *, target: Any = None) -> _Array:
        """The largest tau at which each row would be decided now.

        Parameters
        ----------
        X : (n, d) or (n, channels, samples) array-like, or list of series
            As in `decide`.
        target : label, optional
            As this class.

        Returns
        -------
        (n,) array
            0 where a row would be decided at none; 1 for complete rows.
        """
        core, rows = self._core(), self._rows(X)
        wanted = self._target(target)
        missing = np.isnan(rows).sum(axis=1)
        out = core.complete(rows, missing, wanted)[1].astype(float)
        for part in core.open_parts(missing):
            out[part] = core.rule.largest(core.case(rows[part]), wanted)[0]
        return out

    def predict_early(
        self, X: Any, reliability: Any = None, *, steps: Any = None, trace: bool = False
    ) -> EarlyDecisions:
        """Decide time series as early as may be; with all samples every row is decided.

        Parameters
        ----------
        X : (n, d) or (n, channels, samples) array-like, or list of series
            Series, of which no more is looked at than each time allows; at its own end each is
            decided. Only those of `fit`'s second and third kind may lack samples.
        reliability : float or (n,) array-like, optional
            tau; that of the estimator by default.
        steps : ascending integers in ``1..n_timepoints_``, optional
            When to look; the end is always among them. By default at `looks_`, for which a
            correction holds, and after every sample where the rule is not corrected.
        trace : bool, default=False
            Whether to return classes and largest taus at all times.

        Returns
        -------
        EarlyDecisions
            Labels, times and reliabilities.
        """
        core = self._core()
        layout = core.layout
        found = whole_rows(self, X, layout)
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
        together = 16 if core.rule.cost == 1 else 1  # times that may be looked at in vain
        for group in (np.flatnonzero(~holes), np.flatnonzero(holes)):
            for rows, at in batches(len(group), len(times) - 1, core.numbers(), together):
                run.advance(core.rule, core.early_case, group[rows], at, trace)
        return run.result(self.classes_, layout.channels)

    def _rows(self, X: Any) -> _Array:
        check_is_fitted(self)
        rows = known_rows(X, self.fitted_.layout)
        if rows is not None:
            return rows
        options = {"dtype": np.float64, "order": "C", "ensure_all_finite": "allow-nan"}
        return np.asarray(validate_data(self, X, reset=False, **options))

    def _core(self) -> Fitted:
        """What was fitted, with the threads of today."""
        check_is_fitted(self)
        return replace(self.fitted_, n_threads=self.n_threads)

    def _target(self, target: Any) -> int | None:
        if target is None:
            return None
        found = np.flatnonzero(self.classes_ == target)
        if not len(found):
            known = show(self.classes_.tolist())
            raise ValueError(f"target: expected one of {known}, got {show(target)}")
        return int(found[0])

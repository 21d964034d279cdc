"""How a classifier of incomplete rows is fitted: its parts, its rule, and what folds say of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state

from eigenfeat._base.validation import show
from eigenfeat.incomplete._classifiers.discriminants import (
    Discriminants,
    Linear,
    Opaque,
    discriminants_of,
)
from eigenfeat.incomplete._completion.affine import affine_of
from eigenfeat.incomplete._completion.models import GaussianCompletion
from eigenfeat.incomplete._completion.sets import SETS
from eigenfeat.incomplete._rules.calibration import lower_bound
from eigenfeat.incomplete._rules.cases import Cases, rule_for, scores_of
from eigenfeat.incomplete._rules.correction import CorrectedRule, Correction, Held, corrected
from eigenfeat.incomplete._rules.ideal import ClassCodes, IdealRule
from eigenfeat.incomplete._rules.learned import (
    LOOKS,
    LearnedRule,
    ThresholdRule,
    Thresholds,
    critical_of,
    learned,
)
from eigenfeat.incomplete._rules.pairwise import PairwiseRule
from eigenfeat.incomplete._rules.rule import Rule
from eigenfeat.incomplete._rules.sample_sizes import samples_of
from eigenfeat.incomplete._rules.sampled import SampledRule
from eigenfeat.incomplete._rules.set_rule import SetRule
from eigenfeat.incomplete._series.layout import Layout, Rows
from eigenfeat.incomplete._series.steps import spread_steps

__all__ = ["ASKING", "Fitting"]

_Array = NDArray[np.float64]

# Scores whose covariances are kept whole: up to here k^2 numbers a pattern are next to nothing.
MANY_SCORES = 64

CONFIDENCE = 0.9  # of corrections, where nothing else is asked for
RISK = 0.01  # of what is sampled

# Rules that take no discriminants: they ask the classifier.
ASKING = ("ideal", "sampled", "learned")


class Fitting(Cases):
    """Methods of `ReliableClassifier` that `fit` is made of."""

    classifier: Any
    completion: Any
    set: str
    reliability: float
    features: Any
    tail: str
    correct: Any
    held_out: float | None
    looks_: NDArray[np.int64]
    n_folds: int
    n_samples: Any
    n_samples_: int
    largest_reliability_: float
    random_state: Any
    n_channels_: int
    n_timepoints_: int
    _rule: Rule
    correction_: Correction | Thresholds

    def _fit_rows(self, found: Rows, y: NDArray[Any], layout: Layout) -> None:
        """Fit everything but the correction to rows that are checked; NaN is missing."""
        self.n_features_in_, self._layout = layout.width, layout
        self.n_channels_, self.n_timepoints_ = layout.channels, layout.length
        given = GaussianCompletion(n_threads=self.n_threads)
        completion = given if self.completion is None else clone(self.completion)
        self.completion_ = completion.fit(found.rows, y)
        X = self._filled(found.rows)
        self.features_ = None if self.features is None else clone(self.features).fit(X, y)
        self._affine = affine_of(self.features_, X.shape[1])
        inputs = self._features_of(X)
        self.classifier_ = clone(self.classifier).fit(inputs, y)
        self.classes_ = _classes_of(self.classifier_, y)
        self._discriminants = self._read(inputs)
        linear = isinstance(self._discriminants, Linear)
        self.set_ = self.set if self.set != "auto" else rule_for(self._discriminants)
        self._rule = self._make_rule(found, y)
        few = linear and self._discriminants.count <= MANY_SCORES
        self._scores = None
        if few and self.set_ in ("pairwise", "chebyshev", "mahalanobis"):
            self._scores = scores_of(self._discriminants, self._affine, X.shape[1])

    def _read(self, inputs: _Array) -> Discriminants:
        """The classifier's discriminants, where the rule needs any."""
        opaque = Opaque(np.arange(len(self.classes_)))
        if self.set in ASKING:
            return opaque
        plain = self.classifier_
        plain = plain.estimator if isinstance(plain, FrozenEstimator) else plain
        try:
            return discriminants_of(plain, inputs)
        except ValueError:
            if self.set != "auto":
                raise
            return opaque

    def _make_rule(self, found: Rows, y: NDArray[Any]) -> Rule:
        self.n_samples_, self.largest_reliability_ = 0, 1.0
        if self.set_ in SETS:
            return SetRule(SETS[self.set_])
        if self.set_ == "pairwise":
            return PairwiseRule(self.tail)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        predict = ClassCodes(self.classes_, self.classifier_)
        if self.set_ == "learned":
            return LearnedRule(predict, *learned(self, found, y, seed), seed)
        kind = SampledRule if self.set_ == "sampled" else IdealRule
        n = samples_of(self.n_samples, self.reliability, partial(kind.reach, risk=RISK))
        self.n_samples_, self.largest_reliability_ = n, kind.reach(n, RISK)
        return kind(predict, n, RISK, seed)

    def _kept_out(self, n: int) -> NDArray[np.bool_] | None:
        """(n,): which rows are kept from the fit; None if folds correct the rule, or nothing."""
        if self.held_out is None or self.correct is False:
            return None
        m = round(self.held_out * n)
        if not 1 <= m <= n - 2:
            raise ValueError(
                f"held_out: expected a share that leaves rows on both sides, got {self.held_out} "
                f"of {n} rows"
            )
        kept = np.zeros(n, dtype=bool)
        kept[check_random_state(self.random_state).permutation(n)[:m]] = True
        return kept

    def _correct(self, found: Rows, y: NDArray[Any], kept: Rows | None) -> None:
        """Hold the rule to what folds show, or rows that were kept from the fit."""
        confidence = {"average": 0.0, True: CONFIDENCE}.get(self.correct, self.correct)
        self.reliability_ = float(self.reliability)
        if isinstance(self._rule, LearnedRule):
            critical = self._rule.critical if kept is None else critical_of(self, kept)
            thresholds = Thresholds(critical, confidence)
            steps = spread_steps(self._layout.length, LOOKS)
            held = Held(thresholds.agreed(self.reliability_), thresholds.n)
            self.correction_, self._rule = thresholds, ThresholdRule(self._rule, thresholds)
        else:
            tau, folds = self.reliability, self.n_folds
            correction, held, steps = corrected(self, found, y, tau, folds, confidence, kept)
            self.correction_, self._rule = correction, CorrectedRule(self._rule, correction)
        self.looks_ = np.append(steps, self._layout.length)
        self.realised_, self.realised_bound_ = float("nan"), 0.0
        if held.n:
            self.realised_ = held.agreed / held.n
            self.realised_bound_ = float(lower_bound(held.agreed, held.n, CONFIDENCE))


def _classes_of(classifier: Any, y: NDArray[Any]) -> NDArray[Any]:
    classes = np.asarray(getattr(classifier, "classes_", np.unique(y)))
    if classes.ndim != 1 or not np.all(classes[:-1] < classes[1:]):
        raise ValueError(f"classifier: expected ascending classes_, got {show(classes.tolist())}")
    return classes

r"""Corrections of a rule by held-out samples, and the theorems about them.

The score of a decision is the largest tau at which the rule makes it; the number of known entries
breaks ties. A corrected rule decides a sample once the rule itself does and the score exceeds a
threshold. Held-out samples choose the threshold, so that the promise does not depend on the model
behind the score. With the rule "prefixes" the threshold alone decides. For promises by time the
number of known entries comes first: decisions begin at one time, at which many samples are decided.

**One threshold.** :math:`S` of a held-out sample is the largest score, over all times, of a label
other than the label of the complete sample. Above a threshold :math:`s \ge S` the sample is never
decided wrongly, whichever times are used.

*All samples* (``conditional=None``). :math:`s` is the smallest threshold at which the lower bound
(Clopper and Pearson) of :math:`P(S \le s)` reaches tau. As :math:`P(S \le s)` grows with s, the
promise fails only if the bound is wrong at one point, the largest s below the true quantile:
``P(early label = final label) >= tau`` with the confidence (a tolerance limit, Wilks 1941). On
average over held-out samples the share is at least j / (n + 1) for the j-th smallest S, since the
rank of a new sample's S among n others is uniform (conformal prediction, Vovk et al. 2005).

*By true class* (``"true"``). :math:`s` is the largest threshold of a class, each learned from the
samples of the class (Mondrian calibration, Vovk et al. 2005). With the confidence,
``P(early label = final label | Y = k) >= tau`` holds for all classes k simultaneously: s is at
least the threshold of the class with the largest true quantile, so that only the bound of this
class can break the promise. The samples of a class must be exchangeable; class frequencies may
change.

**Tests from strict to loose.** The other promises are about the time and the label of the decision,
which depend on s. Hypotheses "decisions above s break the promise" are tested from the largest s
downwards until a hypothesis is not rejected (fixed-sequence testing). A hypothesis is
rejected if the bounds of all of its cells reach tau. This needs no correction for the number of
cells: if a cell breaks the promise, a false rejection needs a wrong bound of this cell.

*By label* (``"predicted"``): ``P(final label = c | early label = c) >= tau`` for all classes c.

*By time* (``"time"``): ``P(early label = final label | decided after at most t values) >= tau`` for
all decision times t (accumulated accuracy gap, Ringel et al. 2024).

Several promises hold together if their tests reject together.

**Drawing.** Samples are held out at random from each class in proportion to its size. Given the
labels, held-out samples are then independent draws of their classes. The number of successes is a
sum of independent trials of unequal probabilities, whose upper tail is below that of a binomial
distribution (Hoeffding 1956). With folds instead of samples that are held out from the fit, the
models of the folds replace the final model, and the theorems hold approximately (cross-conformal
prediction, Vovk 2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Labels
from eigenfeat.early.rules import SLACK, clopper_pearson

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]
_Flags = NDArray[np.bool_]

# Weights of the share of known entries in the score: to break ties, and to put time first.
TIE_WEIGHT, TIME_FIRST_WEIGHT = 1e-6, 1e3
MIN_TAU = float(np.finfo(float).tiny)  # smallest tau of a decision


# ---- bounds


def _success_bounds(count: NDArray[np.int64], n: Any, confidence: float) -> _Array:
    """Lower bounds on a probability of success, from `count` successes in n trials.

    With confidence 0: count / (n + 1), which is a bound on average.
    """
    if confidence > 0:
        return clopper_pearson(count, n, 1.0 - confidence)
    return np.asarray(count / (n + 1))


def min_samples_for(tau: float, confidence: float) -> int:
    """Number of samples that support tau if all early labels are final."""
    if confidence > 0:
        return int(np.ceil(np.log1p(-confidence) / np.log(tau)))
    return int(np.ceil(tau / (1 - tau)))


# ---- decisions about held-out samples


@dataclass(frozen=True, eq=False)
class HeldOutDecisions:
    """Decisions about m samples at q times by rules that were not fitted to them."""

    score: _Array  # (m, q); infinite after the end of a series, which is then decided
    code: _Codes  # (m, q + 1) classes; the last column has the classes of the complete samples

    @classmethod
    def joined(cls, parts: Sequence[HeldOutDecisions]) -> HeldOutDecisions:
        """The samples of several folds."""
        scores = np.concatenate([part.score for part in parts])
        return cls(scores, np.concatenate([part.code for part in parts]))

    @property
    def largest_wrong(self) -> _Array:
        """Largest score (m,) of the wrong decisions about each sample; 0 if all are right."""
        wrong = self.code[:, :-1] != self.code[:, -1:]
        return np.where(wrong, self.score, 0.0).max(axis=1, initial=0.0)


# ---- promises


@dataclass(frozen=True, eq=False)
class ClassGroups:
    """Groups of classes: each class with enough samples, and a last group of the others."""

    classes: Labels  # (G,), sorted
    counts: NDArray[np.int64]  # (G,): numbers of held-out samples
    group: _Codes  # (G,)

    @classmethod
    def of(cls, classes: Labels, counts: NDArray[np.int64], min_count: int) -> ClassGroups:
        """Put all classes with fewer than `min_count` samples into one group."""
        large = counts >= min_count
        return cls(classes, counts, np.where(large, np.cumsum(large) - 1, large.sum()))

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.group.max()) + 1

    def all_have(self, min_count: int) -> bool:
        """Whether every group has at least `min_count` samples."""
        return bool((np.bincount(self.group, self.counts) >= min_count).all())

    def __call__(self, labels: Labels) -> _Codes:
        """Groups of labels, an array of any shape."""
        return np.asarray(self.group[np.searchsorted(self.classes, labels)])


def promised_shares(
    promise: str,
    decisions: HeldOutDecisions,
    thresholds: _Array,
    labels: Labels,
    groups: ClassGroups,
    classes: Labels,
    confidence: float,
) -> _Array:
    """Certified shares (r, q) of final labels in the cells of a promise, at each threshold.

    `labels` (m,) are the true labels of the held-out samples; `decisions.code` indexes `classes`.
    """
    if promise == "all":
        one_group = np.zeros(len(labels), dtype=np.intp)
        return _stable_shares(decisions, thresholds, one_group, 1, confidence)
    if promise == "true":
        return _stable_shares(decisions, thresholds, groups(labels), groups.n_groups, confidence)
    shares = [
        _label_shares(code, final, groups(classes), groups.n_groups, confidence)
        if promise == "predicted"
        else _time_shares(index, final, decisions.code.shape[1], confidence)
        for index, code, final in (_first_decisions(decisions, s) for s in thresholds)
    ]
    return np.stack(shares, axis=-1)


def _stable_shares(
    decisions: HeldOutDecisions, thresholds: _Array, group: _Codes, n_groups: int, confidence: float
) -> _Array:
    """Share of the samples of each group without wrong decisions above a threshold."""
    scores = [np.sort(decisions.largest_wrong[group == g]) for g in range(n_groups)]
    counts = [np.searchsorted(wrong, thresholds, "right") for wrong in scores]
    sizes = np.array([len(wrong) for wrong in scores])
    return _success_bounds(np.stack(counts), sizes[:, None], confidence)


def _first_decisions(
    decisions: HeldOutDecisions, threshold: float
) -> tuple[_Codes, _Codes, _Flags]:
    """First decision of each sample above a threshold: index of the time, class, and finality.

    The last index stands for decisions at the end of a series.
    """
    above = decisions.score > threshold
    index = np.where(above.any(axis=1), above.argmax(axis=1), above.shape[1])
    code = decisions.code[np.arange(len(index)), index]
    return index, code, code == decisions.code[:, -1]


def _label_shares(
    code: _Codes, final: _Flags, group: _Codes, n_groups: int, confidence: float
) -> _Array:
    """Share of final labels among the early labels of each group of classes."""
    total = np.bincount(group[code], minlength=n_groups)
    count = np.bincount(group[code[final]], minlength=n_groups)
    return np.where(total > 0, _success_bounds(count, total, confidence), 1.0)


def _time_shares(index: _Codes, final: _Flags, n_times: int, confidence: float) -> _Array:
    """Smallest share (1,) of final labels among samples that are decided up to a time."""
    total = np.cumsum(np.bincount(index, minlength=n_times))
    count = np.cumsum(np.bincount(index[final], minlength=n_times))
    shares = np.where(total > 0, _success_bounds(count, total, confidence), 1.0)
    return shares.min(keepdims=True)


def certified_by_class(
    decisions: HeldOutDecisions, labels: Labels, classes: Labels, correction: Correction, tau: float
) -> _Array:
    """Lower bounds (G,) on the share of final labels of each true class, at most tau.

    NaN for classes without held-out samples.
    """
    threshold = correction.threshold(tau)
    known, codes = np.unique(labels, return_inverse=True)
    shares = np.ones(len(known))  # if all samples are decided at their end
    if np.isfinite(threshold):
        arguments = threshold[None], codes, len(known), correction.confidence
        shares = _stable_shares(decisions, *arguments)[:, 0]
    share_of = dict(zip(known.tolist(), shares.tolist(), strict=True))
    return np.minimum([share_of.get(label, np.nan) for label in classes.tolist()], tau)


# ---- the corrected rule


@dataclass(frozen=True, eq=False)
class Correction:
    """Certified shares of final labels, by the score above which samples are decided.

    Attributes
    ----------
    thresholds : (q,) array
        Scores, ascending from 0.
    share : (q,) array
        Smallest certified share of all promises, if samples with larger scores are decided:
        `strictest` of the shares of all cells.
    confidence : float
        Confidence of the shares; 0 for shares on average.
    n : int
        Number of held-out samples.
    length : int
        Number of entries of complete samples.
    time_weight : float
        A score is the rule's largest tau plus this weight times the share of known entries.
    needs_tau : bool
        Whether the rule's largest tau must also reach the required tau.
    """

    thresholds: _Array
    share: _Array
    confidence: float
    n: int
    length: int
    time_weight: float = TIE_WEIGHT
    needs_tau: bool = True

    def threshold(self, tau: float | _Array) -> _Array:
        """Score that decisions at tau must exceed; infinite if samples wait for their end."""
        index = self.share.searchsorted(np.asarray(tau) - SLACK)
        last = len(self.share) - 1
        return np.where(index <= last, self.thresholds[np.minimum(index, last)], np.inf)

    def min_tau(self, tau: _Array, known: _Codes) -> _Array:
        """Smallest tau (m,) of the rule alone at which decisions are certified at tau (m,)."""
        least = self.threshold(tau) + SLACK - self.time_weight * known / self.length
        return np.maximum(least, tau if self.needs_tau else MIN_TAU)

    def certified(self, score: _Array) -> _Array:
        """Largest certified share (m,) of decisions with these scores; 0 below all thresholds."""
        below = np.searchsorted(self.thresholds, score) - 1
        return np.where(below >= 0, self.share[np.maximum(below, 0)], 0.0)

    def certified_tau(self, tau: _Array, known: _Codes) -> _Array:
        """Largest certified tau (m,) of decisions with a tau (m,) of the rule alone."""
        certified = self.certified(tau + self.time_weight * known / self.length)
        return np.minimum(tau, certified) if self.needs_tau else np.where(tau > 0, certified, 0.0)


def strictest(shares: _Array) -> _Array:
    """Smallest shares (q,) of all cells (r, q) at each threshold and at all larger thresholds."""
    return np.ascontiguousarray(np.minimum.accumulate(shares.min(axis=0)[::-1])[::-1])

"""A learned probability that the label now is the final one, and thresholds that folds confirm.

Every training row is looked at by a classifier that was fitted without its fold, at several times.
What is seen then is put into a few numbers, and a logistic regression learns from them whether the
label of the time is that of the complete row. That is an estimate, no bound.

The threshold is one: of a held-out row, `critical` is the largest score with which a label is
wrong, whenever it is looked at. The row is never decided wrongly at thresholds above it. A new
row's is as likely to have any rank among those of n held-out ones, so that the share of rows that
are never decided wrongly above the j-th smallest is at least j / (n + 1) on average (split
conformal prediction, Vovk, Gammerman and Shafer 2005) and at least Clopper and Pearson's lower
bound for j of n with its confidence (a tolerance limit, Wilks 1941): of rows that are looked at
after the same numbers of samples. Of rows that were kept from the fit this is a theorem; as across
folds models differ, there both hold as nearly as these are like the one that is used.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from eigenfeat._base.saved import Saved, fits
from eigenfeat._base.types import Labels
from eigenfeat.incomplete._completion.draws import completions
from eigenfeat.incomplete._rules.calibration import shown_share
from eigenfeat.incomplete._rules.fitted import LOOKS, ROWS, SLACK, held_out_fits
from eigenfeat.incomplete._rules.rule import Case, Judgement, Rule
from eigenfeat.incomplete._series.steps import spread_steps

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from eigenfeat.incomplete._rules.fitted import Fitted, Refit
    from eigenfeat.incomplete._rules.ideal import ClassCodes
    from eigenfeat.incomplete._series.layout import Layout, Rows

__all__ = ["LearnedRule", "ThresholdRule", "Thresholds", "critical_of", "learned"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

DRAWS = 32  # completions of a row
LARGEST = 30.0  # of a margin


class LearnedRule(Rule):
    """An estimate of P(the label now is that of the complete row | what is seen).

    Parameters
    ----------
    predict : ClassCodes
        Whose classifier is asked for labels and, where it has them, probabilities or scores.
    weights : (p + 1,) array
        Of what is seen, the last a constant.
    critical : (n,) array
        What folds showed: see `Thresholds`.
    seed : int
        Of the completions.
    """

    _saved: ClassVar[dict[str, str]] = {
        "predict": "of ClassCodes",
        "weights": "floats p",
        "critical": "numbers n",
        "seed": "count",
    }

    cost = DRAWS

    def __init__(self, predict: ClassCodes, weights: _Array, critical: _Array, seed: int) -> None:
        self.predict = predict
        self.weights = weights
        self.critical = critical
        self.seed = seed

    def largest(self, case: Case, target: int | None) -> tuple[_Array, _Codes]:
        seen, label = sights(case, self.predict, self.seed)
        score = scores_of(seen, self.weights)
        return score if target is None else np.where(label == target, score, 0.0), label

    def _check_loaded(self) -> None:
        fits(
            len(self.weights) in (1, 8) and not np.isnan(self.weights).any(), "LearnedRule.weights"
        )


@dataclass(frozen=True, eq=False)
class Thresholds(Saved):
    """Scores above which held-out rows were never decided wrongly.

    Attributes
    ----------
    critical : (n,) array
        By row, ascending; 0 for rows whose label was never wrong.
    confidence : float
        Of the bounds; 0 for shares on average.
    """

    _saved: ClassVar[dict[str, str]] = {"critical": "numbers p", "confidence": "number"}

    critical: _Array
    confidence: float

    @property
    def n(self) -> int:
        """How many rows were held out."""
        return len(self.critical)

    def share(self, score: ArrayLike) -> _Array:
        """What is shown of the agreement of rows that are decided at these scores."""
        below = np.searchsorted(self.critical, score, side="left")
        return shown_share(below, self.n, self.confidence)

    def threshold(self, tau: float) -> float:
        """Rows are decided at tau with scores above that; 1 if with none."""
        enough = self.share(np.append(self.critical, 1.0)) >= tau - SLACK
        if not enough.any():
            return 1.0
        first = int(enough.argmax())
        return float(self.critical[first - 1]) if first else 0.0

    def agreed(self, tau: float) -> int:
        """How many held-out rows are never decided wrongly at tau."""
        return int(np.sum(self.critical <= self.threshold(tau)))

    def _check_loaded(self) -> None:
        critical = self.critical
        sound = np.all(np.diff(critical) >= 0) and (not len(critical) or critical[0] >= 0)
        fits(sound and 0 <= self.confidence < 1, "Thresholds")


class ThresholdRule(Rule):
    """A rule whose scores are replaced by what held-out rows show of them."""

    _saved: ClassVar[dict[str, str]] = {"rule": "of LearnedRule", "correction": "of Thresholds"}

    def __init__(self, rule: Rule, correction: Thresholds) -> None:
        self.rule = rule
        self.correction = correction

    @property
    def cost(self) -> int:  # type: ignore[override]
        return self.rule.cost

    def least_known(self, tau: float) -> int:
        # Where no threshold is shown to hold nobody needs to look.
        return 0 if self.correction.threshold(tau) < 1 else int(np.iinfo(np.int64).max)

    def judge(self, case: Case, tau: _Array, target: int | None) -> Judgement:
        return super().judge(case, tau - SLACK, target)

    def largest(self, case: Case, target: int | None) -> tuple[_Array, _Codes]:
        score, label = self.rule.largest(case, target)
        return self.correction.share(score), label


def learned(
    refit: Refit, layout: Layout, given: Rows, y: Labels, n_folds: int, seed: int
) -> tuple[_Array, _Array]:
    """Learn from folds.

    Parameters
    ----------
    refit : callable
        Fits to all rows but those whose flags it is given.
    layout : Layout
    given, y
        Rows and labels.
    n_folds, seed : int

    Returns
    -------
    weights : (p + 1,) array
        Of a rule on all rows.
    critical : (n,) array
        Of held-out rows, by weights that were learned without their fold.
    """
    times = _times(layout)
    held = held_out_fits(refit, given, y, ROWS, n_folds) if len(times) else ()
    folds = [_record(fitted, rows, fitted.predict, times, seed) for fitted, rows in held]
    if not folds:
        warnings.warn(
            "rule: expected folds that the classifier can be fitted to, got none; rows are decided "
            "when they are complete",
            UserWarning,
            stacklevel=6,
        )
        return np.array([-np.inf]), np.empty(0)
    critical = []
    for k, (seen, right) in enumerate(folds):
        others = folds[:k] + folds[k + 1 :] or folds
        critical.append(_critical(seen, right, _weights(others)))
    return _weights(folds), np.sort(np.concatenate(critical))


def critical_of(core: Fitted, kept: Rows) -> _Array:
    """(n,) ascending: of rows that the model has not seen, by its own rule."""
    rule, times = core.rule, _times(core.layout)
    assert isinstance(rule, LearnedRule)
    if not len(times):
        return np.empty(0)
    return np.sort(_critical(*_record(core, kept, rule.predict, times, rule.seed), rule.weights))


def sights(case: Case, predict: ClassCodes, seed: int) -> tuple[_Array, _Codes]:
    """What is seen of rows, (n, p), and their labels now: those of most of their completions.

    How many completions have the label, whether the completed mean has it, the classifier's margin
    there, the share of entries that are known, and products with it.
    """
    known = case.known
    n, count = len(known.pattern), len(predict.classes)
    votes = np.zeros((n, count))
    for rows, drawn in completions(known, np.arange(n), seed, range(DRAWS)):
        codes = predict(drawn.reshape(-1, drawn.shape[2])).reshape(drawn.shape[:2])
        for g in range(count):
            votes[rows, g] += (codes == g).sum(axis=1)
    label = np.asarray(votes.argmax(axis=1))
    mean = np.ascontiguousarray(known.mean)
    agreed = logit((votes[np.arange(n), label] + 0.5) / (DRAWS + 1))
    margin = _margins(predict, mean) if n else np.empty(0)
    same = np.where(predict(mean) == label, 1.0, -1.0) if n else np.empty(0)
    missing = known.missing[known.pattern] / max(1, _length(case))
    columns = [agreed, same, margin, missing, missing**2, missing * agreed, missing * margin]
    return np.stack(columns, axis=1), label


def scores_of(seen: _Array, weights: _Array) -> _Array:
    """(n,): by logistic regression; 0 where there was nothing to learn from."""
    if len(weights) == 1:
        return np.full(len(seen), float(expit(weights[0])))
    return np.asarray(expit(np.einsum("ni,i->n", seen, weights[:-1]) + weights[-1]))


def _length(case: Case) -> int:
    gaussians = case.known.gaussians
    assert gaussians is not None
    return len(gaussians[0][0][0].mean) if gaussians else 1


def _margins(predict: ClassCodes, mean: _Array) -> _Array:
    """(n,): log odds of the first class against the second at the completed mean; 0 if unknown."""
    classifier = predict.classifier
    if len(predict.classes) < 2:
        return np.zeros(len(mean))
    if hasattr(classifier, "predict_proba"):
        values = np.log(np.maximum(np.asarray(classifier.predict_proba(mean)), np.exp(-LARGEST)))
    elif hasattr(classifier, "decision_function"):
        values = np.asarray(classifier.decision_function(mean), dtype=np.float64)
        values = np.stack([-values, values], axis=1) / 2 if values.ndim == 1 else values
    else:
        return np.zeros(len(mean))
    top = np.sort(values, axis=1)
    return np.asarray(np.clip(np.nan_to_num(top[:, -1] - top[:, -2]), 0.0, LARGEST))


def _weights(folds: list[tuple[_Array, NDArray[np.bool_]]]) -> _Array:
    seen = np.concatenate([one.reshape(-1, one.shape[2]) for one, _ in folds])
    right = np.concatenate([one.reshape(-1) for _, one in folds])
    if right.all() or not right.any():  # nothing to tell apart
        return np.array([logit((right.sum() + 0.5) / (len(right) + 1.0))])
    centre, spread = seen.mean(axis=0), seen.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    found = LogisticRegression(max_iter=500).fit((seen - centre) / spread, right)
    slopes = found.coef_[0] / spread
    return np.append(slopes, found.intercept_[0] - np.einsum("i,i->", slopes, centre))


def _record(
    fitted: Fitted, given: Rows, predict: ClassCodes, times: NDArray[np.int64], seed: int
) -> tuple[_Array, NDArray[np.bool_]]:
    """What is seen of rows (m, looks, p), and whether labels are final (m, looks)."""
    shown, final = fitted.held_out(given)
    cases = (fitted.early_case(shown, times[k : k + 1]) for k in range(len(times)))
    parts = [sights(case, predict, seed) for case in cases]
    seen = np.stack([part[0] for part in parts], axis=1)
    right = np.stack([part[1] for part in parts], axis=1) == final[:, None]
    # After its end a series is not looked at.
    return seen, right | (times >= given.ends[:, None])


def _critical(seen: _Array, right: NDArray[np.bool_], weights: _Array) -> _Array:
    """(m,): the largest score with which a row's label is wrong; 0 if it never is."""
    score = scores_of(seen.reshape(-1, seen.shape[2]), weights).reshape(right.shape)
    return np.asarray(np.where(right, 0.0, score).max(axis=1))


def _times(layout: Layout) -> NDArray[np.int64]:
    """After how many entries rows are looked at."""
    return spread_steps(layout.length, LOOKS) * layout.channels

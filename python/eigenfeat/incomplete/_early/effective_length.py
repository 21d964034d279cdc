"""The effective length of series, after which more samples do not improve the accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.multiclass import check_classification_targets

from eigenfeat._base.labels import plain_labels
from eigenfeat._base.threads import count_cores
from eigenfeat._base.validation import check_count, check_number, check_rows, show
from eigenfeat.incomplete._early.metrics import given_times
from eigenfeat.incomplete._series.folds import held_out

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["EffectiveLength", "effective_length"]

MANY_TIMES = 20


@dataclass(frozen=True, eq=False)
class EffectiveLength:
    """Result of `effective_length`.

    Attributes
    ----------
    length : int
        The least of `times` after which no later time is shown to be better.
    times : (p,) array of int
        Tested times; the last one is the whole series.
    accuracy : (p,) array
        Cross-validated accuracy at each time.
    p_value : (p,) array
        Smallest p-value among later times of McNemar's exact test that a later time is not better,
        times the number of later times (Bonferroni); 1 for the last.
    """

    length: int
    times: NDArray[np.int64]
    accuracy: NDArray[np.float64]
    p_value: NDArray[np.float64]


def effective_length(
    X: ArrayLike,
    y: ArrayLike,
    classifier: BaseEstimator = None,
    *,
    times: ArrayLike | None = None,
    level: float = 0.05,
    n_folds: int = 5,
) -> EffectiveLength:
    """Find the number of samples after which more samples do not improve the accuracy.

    For each candidate number, a classifier is fitted to the first samples and evaluated by
    cross-validation. Later samples help if a later time is right on rows where this one is wrong
    more often than the reverse, by McNemar's exact one-sided test. If no later time is shown to be
    better, this does not prove that none is: with few rows the test has little power.

    Parameters
    ----------
    X : (n, d) array-like
        Complete series.
    y : (n,) array-like
        Labels.
    classifier : estimator or None, default=None
        Classifier that is cloned; None: the nearest neighbour.
    times : ascending integers in 1..d or None, default=None
        Candidate numbers of samples; None: up to 20 evenly spaced ones.
    level : float in (0, 1), default=0.05
        Level of the test, for all later times together.
    n_folds : int >= 2, default=5
        Folds of the cross-validation.

    Returns
    -------
    EffectiveLength

    Raises
    ------
    ValueError
        If rows, labels or parameters are invalid.
    """
    if not 0 < check_number(level, "level", at_least=0.0) < 1:
        raise ValueError(f"level: expected a number in (0, 1), got {level}")
    check_count(n_folds, "n_folds", at_least=2)
    rows = check_rows(X, dtype=np.dtype(np.float64))
    if not isinstance(rows, np.ndarray):
        raise ValueError("X: expected a dense array, got a sparse matrix")
    if not np.isfinite(rows).all():
        i, j = np.argwhere(~np.isfinite(rows))[0].tolist()
        raise ValueError(f"X: expected finite numbers, got {rows[i, j]} in row {i}, column {j}")
    labels = np.asarray(plain_labels(y))
    if labels.shape != rows.shape[:1]:
        raise ValueError(f"y: expected {len(rows)} labels, one per row, got {show(y)}")
    if classifier is not None and (isinstance(classifier, type) or not hasattr(classifier, "fit")):
        raise ValueError(f"classifier: expected a classifier or None, got {show(classifier)}")
    check_classification_targets(labels)
    at = _times(times, rows.shape[1])
    count_cores()
    model = KNeighborsClassifier(1) if classifier is None else classifier
    right = np.zeros((len(at), len(rows)), dtype=bool)
    tried = np.zeros(len(rows), dtype=bool)
    for held in held_out(labels, n_folds):
        tried |= held
        for k, t in enumerate(at):
            fitted = clone(model).fit(rows[~held][:, :t], labels[~held])
            right[k, held] = fitted.predict(rows[held][:, :t]) == labels[held]
    right = right[:, tried]
    chance = np.ones(len(at))
    for k in range(len(at) - 1):
        gained = (right[k + 1 :] & ~right[k]).sum(axis=1)
        lost = (~right[k + 1 :] & right[k]).sum(axis=1)
        found = binom.sf(gained - 1, gained + lost, 0.5)
        chance[k] = min(1.0, float(found.min()) * len(found))
    enough = int(np.argmax(chance > level))
    return EffectiveLength(int(at[enough]), at, right.mean(axis=1), chance)


def _times(times: ArrayLike | None, d: int) -> NDArray[np.int64]:
    if times is None:
        return np.unique(np.ceil(np.linspace(0, d, min(d, MANY_TIMES) + 1)[1:])).astype(np.int64)
    return given_times(times, d)

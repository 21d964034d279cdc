"""How much of a series is of use: from when on the rest adds nothing that rows can show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.multiclass import check_classification_targets

from eigenfeat._base.cores import count_cores
from eigenfeat._base.validation import check_count, check_number, check_rows, show
from eigenfeat.incomplete._series.folds import held_out

__all__ = ["EffectiveLength", "effective_length"]

MANY_TIMES = 20


@dataclass(frozen=True, eq=False)
class EffectiveLength:
    """How many samples are of use.

    Attributes
    ----------
    length : int
        The least of `times` after which no later time is shown to be better.
    times : (p,) array of int
        That were tried; the last one is the whole series.
    accuracy : (p,) array
        Out of folds.
    p_value : (p,) array
        The least that a later time has of not being better than this one, by McNemar's exact test,
        times the number of later times (Bonferroni); 1 for the last.
    """

    length: int
    times: NDArray[np.int64]
    accuracy: NDArray[np.float64]
    p_value: NDArray[np.float64]


def effective_length(
    X: Any,
    y: Any,
    classifier: Any = None,
    *,
    times: Any = None,
    level: float = 0.05,
    n_folds: int = 5,
) -> EffectiveLength:
    """Find after how many samples the rest of series adds nothing.

    A classifier is fitted to the first samples, for each number of them, and tried on the rows of
    other folds. Later samples add something if a later time is right about rows that this one is
    wrong about more often than the reverse, by McNemar's exact one-sided test. That none is shown
    to is no proof that nothing is there: few rows show little.

    Parameters
    ----------
    X : (n, d) array-like
        Complete series.
    y : (n,) array-like
        Labels.
    classifier : estimator or None, default=None
        Cloned; None: the nearest neighbour.
    times : ascending integers in 1..d or None, default=None
        None: up to 20 evenly spread ones.
    level : float in (0, 1), default=0.05
        Of the test, for all later times together.
    n_folds : int >= 2, default=5

    Returns
    -------
    EffectiveLength

    Raises
    ------
    ValueError
        If rows, labels or parameters are unfit.
    """
    if not 0 < check_number(level, "level", at_least=0.0) < 1:
        raise ValueError(f"level: expected a number in (0, 1), got {level}")
    check_count(n_folds, "n_folds", at_least=2)
    rows = check_rows(X, dtype=np.dtype(np.float64))
    if not isinstance(rows, np.ndarray) or not np.isfinite(rows).all():
        raise ValueError("X: expected a dense array of finite numbers, got others")
    labels = np.asarray(y)
    if labels.shape != rows.shape[:1]:
        raise ValueError(f"y: expected {len(rows)} labels, one a row, got {show(y)}")
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


def _times(times: Any, d: int) -> NDArray[np.int64]:
    if times is None:
        return np.unique(np.ceil(np.linspace(0, d, min(d, MANY_TIMES) + 1)[1:])).astype(np.int64)
    at = np.atleast_1d(np.asarray(times))
    whole = at.ndim == 1 and at.size and at.dtype.kind in "iu"
    if not whole or at[0] < 1 or at[-1] > d or np.any(np.diff(at) <= 0):
        raise ValueError(f"times: expected ascending integers in 1..{d}, got {times}")
    return np.union1d(at, [d]).astype(np.int64)

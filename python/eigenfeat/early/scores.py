"""Scores of early decisions: reliability, accuracy and earliness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import check_rows, check_whole, listed_items, real_array, show
from eigenfeat.early.decisions import EarlyDecisions
from eigenfeat.early.reliable import ReliableClassifier
from eigenfeat.early.series import series_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class EarlyScores:
    r"""Scores of early decisions (Parrish 2012, section 5.6.1).

    Attributes
    ----------
    n : int
        Number of series.
    reliability : float or None
        Share of early labels that are the label of the complete series; None without labels of
        complete series.
    accuracy : float or None
        Share of early labels that are the true label; None without true labels.
    mean_time : float
        Mean time of decision, 1 to d.
    earliness : float
        Mean time of decision relative to the length, e: 1 is the latest possible.
    harmonic_mean : float or None
        Harmonic mean of accuracy a and 1 - e, :math:`2 a (1 - e) / (a + 1 - e)`; 0 where both are
        0, None without accuracy.
    """

    n: int
    reliability: float | None
    accuracy: float | None
    mean_time: float
    earliness: float
    harmonic_mean: float | None


def early_scores(
    early: EarlyDecisions,
    n_samples: int,
    *,
    complete: ArrayLike | None = None,
    y: ArrayLike | None = None,
) -> EarlyScores:
    """Score early decisions.

    Parameters
    ----------
    early : EarlyDecisions, or an object with `label` and `time`
        Result of an early classifier's `predict_early`.
    n_samples : int
        Number of values of a complete series, d.
    complete : (n,) array-like, optional
        Labels of the complete series, from `predict`.
    y : (n,) array-like, optional
        True labels.

    Returns
    -------
    EarlyScores
    """
    d = check_whole(n_samples, "n_samples", at_least=1)
    if not hasattr(early, "label") or not hasattr(early, "time"):
        raise ValueError(f"early: expected a result of predict_early, got {show(early)}")
    label, time = np.asarray(early.label), np.asarray(early.time)
    if label.ndim != 1 or not len(label) or time.shape != label.shape:
        raise ValueError(
            "early: expected at least one label and a time for each, got shapes "
            f"{label.shape} and {time.shape}"
        )
    if time.min() < 1 or time.max() > d:
        raise ValueError(f"early: expected times in 1..{d}, got {time.min()}..{time.max()}")
    accuracy = None if y is None else _agreement(label, y, "y")
    earliness = float(time.mean()) / d
    a, saved = accuracy or 0.0, 1.0 - earliness
    mean = 2.0 * a * saved / (a + saved) if a + saved > 0 else 0.0
    return EarlyScores(
        n=len(label),
        reliability=None if complete is None else _agreement(label, complete, "complete"),
        accuracy=accuracy,
        mean_time=float(time.mean()),
        earliness=earliness,
        harmonic_mean=None if accuracy is None else mean,
    )


def reliability_curve(
    model: BaseEstimator, X: ArrayLike, y: ArrayLike, tau: ArrayLike
) -> list[EarlyScores]:
    """Score a fitted `ReliableClassifier` at several reliabilities.

    Every series is evaluated once at each time, and decided at the first time at which its largest
    tau reaches the required tau.

    Parameters
    ----------
    model : ReliableClassifier or ReliableClassifierCV
        Fitted model. The best estimator of a search is scored.
    X : (n, d) array-like
        Complete series.
    y : (n,) array-like
        True labels.
    tau : (p,) array-like
        Ascending numbers in (0, 1).

    Returns
    -------
    list of EarlyScores
        Scores at each tau.
    """
    model = getattr(model, "best_estimator_", model)
    if not isinstance(model, ReliableClassifier):
        raise ValueError(f"model: expected a fitted ReliableClassifier, got {show(model)}")
    check_is_fitted(model)
    taus = checked_taus(tau)
    if series_of(listed_items(X)) is None:
        check_rows(X)
    complete = np.asarray(model.predict(X))
    traced: Any = model.predict_early(X, float(taus[-1]), trace=True)
    rows, scores = np.arange(len(traced)), []
    for value in taus:
        first = (traced.trace_reliability >= value).argmax(axis=1)
        early = EarlyDecisions(traced.trace_label[rows, first], traced.steps[first])
        scores.append(early_scores(early, model.n_timepoints_, complete=complete, y=y))
    return scores


def _agreement(label: NDArray[Any], others: Any, name: str) -> float:
    labels = np.asarray(others)
    if labels.shape != label.shape:
        raise ValueError(f"{name}: expected {len(label)} labels, got shape {labels.shape}")
    if isinstance(label[0], str) != isinstance(labels[0], str):
        raise ValueError(f"{name}: expected labels such as {show(label[0])}, got {show(labels[0])}")
    return float(np.mean(label == labels))


def checked_taus(tau: ArrayLike) -> _Array:
    """Ascending numbers in (0, 1), at least one."""
    taus = np.atleast_1d(real_array(tau, "tau", np.dtype(np.float64)))
    in_range = taus.ndim == 1 and taus.size and bool(np.all((taus > 0) & (taus < 1)))
    if not in_range or np.any(np.diff(taus) <= 0):
        raise ValueError(f"tau: expected ascending numbers in (0, 1), got {show(tau)}")
    return taus

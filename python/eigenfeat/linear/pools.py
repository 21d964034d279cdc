"""Weights of a pool of classifiers, from held-out log probabilities.

With held-out log probabilities of V classifiers, the pool (Genest and Zidek, "Combining
probability distributions", Statistical Science 1, 1986) is

    p(y | x) ~ exp(sum_v w_v log p_v(y | x)),  w_v >= 0.

The weights minimise the held-out log loss, which is convex in w, plus |w - prior|^2 / 2 with the
weight of `prior_samples`, on targets smoothed as in `logit_problem`. Their sum is an inverse
temperature. As each log p_v is a row of logits minus its normaliser, the pool of multinomial logits
is a multinomial logit on their features, side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from eigenfeat._base.types import Codes
from eigenfeat._base.validation import show
from eigenfeat.linear.logit_problem import LOG_FLOOR, loss_at_best

__all__ = [
    "MIN_SHARE",
    "PooledView",
    "asked_views",
    "log_probabilities",
    "pool_probabilities",
    "pool_weights",
]

_Array = NDArray[np.float64]

# `python bench/tables.py` shows the effect of `MIN_SHARE`.
MIN_SHARE = 0.08  # of the sum of weights; classifiers below it are left out
_MIN_SUM = 0.02  # of the weights: the inverse of the largest temperature
_MIN_DECREASE, _MIN_GRADIENT = 1e-12, 1e-7  # of the log loss, at the end of the search


@dataclass(frozen=True, eq=False)
class PooledView:
    """One view of a fitted pool.

    Attributes
    ----------
    name : str
        Name of the view.
    weight : float
        Weight in the pool; 0 for a view that is not used.
    score : float
        Score of the out-of-fold predictions, higher is better: the negative log loss of a
        classifier at its own temperature, the R² of a regressor (mean of the outputs). NaN if it
        was not computed.
    seconds : float
        Time of the fits of the view in seconds.
    n_features : int
        Number of features of the view's linear model; 0 for other models and unused views.
    penalty : float
        Penalty of the view's linear model; NaN for other models.
    temperature : float
        Divisor of the view's logits before they are weighted.
    note : str
        Why the view is not used; empty for a used view.
    model : View or None
        The fitted view; None if it is not used.
    """

    name: str
    weight: float
    score: float = np.nan
    seconds: float = 0.0
    n_features: int = 0
    penalty: float = np.nan
    temperature: float = 1.0
    note: str = ""
    model: Any = field(default=None, repr=False)

    @property
    def log_loss(self) -> float:
        """Mean out-of-fold log loss of a classifier at its own temperature."""
        return -self.score


def asked_views(
    given: Any, known: Sequence[str], kind: str, is_kind: Callable[[Any], bool]
) -> tuple[list[str], dict[str, Any]]:
    """Split the parameter `views` into names and estimators.

    `given` is "auto", a name, or a list of names and estimators; names are returned in the order of
    `known`, in which they are tried. Estimators are named by their classes; a second estimator of a
    class has the number 2, and so on. `is_kind` tells whether an object may be a view;
    messages call these objects `kind`. ValueError if nothing is given, a name is unknown or
    repeated, or an estimator is of another kind.
    """
    asked = known if isinstance(given, str) and given == "auto" else given
    asked = [asked] if isinstance(asked, str) else list(asked)
    names = [view for view in asked if isinstance(view, str)]
    if not asked or not {*names} <= {*known} or len({*names}) < len(names):
        raise ValueError(
            f"views: expected 'auto' or distinct names out of {', '.join(known)}, got {given!r}"
        )
    estimators: dict[str, Any] = {}
    for view in asked:
        if isinstance(view, str):
            continue
        if not hasattr(view, "fit") or isinstance(view, type) or not is_kind(view):
            raise ValueError(f"views: expected names or {kind}, got {show(view)}")
        name = type(view).__name__
        count = sum(other.partition(" ")[0] == name for other in estimators)
        estimators[f"{name} {count + 1}" if count else name] = view
    return [name for name in known if name in names], estimators


def pool_weights(
    logits: Sequence[_Array],
    codes: Codes,
    weight: _Array | None,
    prior: _Array | None = None,
    prior_samples: float = 5.0,
    min_share: float = MIN_SHARE,
) -> _Array:
    """Weights (V,) of classifiers, from their logits (m, k) of the same samples.

    A penalty with the weight of `prior_samples` samples pulls the weights to `prior` (V,), of sum
    1; equal shares by default. Classifiers with less than `min_share` of the sum of weights, or
    with equal probabilities for all samples, get 0. If no classifier is better than equal
    probabilities, the best one has weight 0.02.
    """
    L = np.stack([log_probabilities(z) for z in logits])
    prior = np.full(len(L), 1.0 / len(L)) if prior is None else prior
    keep = np.ptp(L, axis=2).max(axis=1) > 1e-6  # probabilities that differ beyond rounding
    w = np.zeros(len(L))
    while keep.any():
        w[:] = 0.0
        w[keep] = _weights(L[keep], codes, weight, prior[keep] / prior[keep].sum(), prior_samples)
        small = keep & (w < min_share * w.sum())
        if not small.any():
            break
        keep &= ~small
    if not w.any():
        best = int(np.argmin([loss_at_best(z, codes, weight)[0] for z in logits]))
        w[best] = _MIN_SUM
    return w


def pool_probabilities(logits: Sequence[_Array], weights: _Array) -> _Array:
    """Probabilities (m, k) of the pool of classifiers with these logits (m, k) and weights (V,)."""
    z = _combined(weights, np.stack([log_probabilities(z) for z in logits]))
    return np.asarray(softmax(z, axis=1))


def _combined(w: _Array, L: _Array) -> _Array:
    """Weighted sum of logits, in the order of the classifiers, without BLAS for equal bits."""
    out: _Array = w[0] * L[0]
    for weight, logits in zip(w[1:], L[1:], strict=True):
        out += weight * logits
    return out


def log_probabilities(logits: _Array) -> _Array:
    """Log probabilities (n, k) of logits (n, k), at least -30, to limit the loss of a sample."""
    return np.maximum(log_softmax(logits, axis=1), LOG_FLOOR)


def _weights(
    L: _Array, codes: Codes, weight: _Array | None, prior: _Array, prior_samples: float
) -> _Array:
    count, n, k = L.shape
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    samples = float(n) if weight is None else 1.0 / float((share * share).sum())
    wrong = 1.0 / ((samples + 2.0) * (k - 1.0))  # the target of each other label
    T = np.full((n, k), wrong)
    T[np.arange(n), codes] = 1.0 - (k - 1.0) * wrong
    T *= share[:, None]
    aimed = np.einsum("vnk,nk->v", L, T)
    pull = prior_samples / samples

    def terms(w: _Array) -> tuple[float, _Array]:
        z = _combined(w, L)
        largest = z.max(axis=1)
        P = np.exp(z - largest[:, None])
        sums = P.sum(axis=1)
        P *= (share / sums)[:, None]
        away = w - prior
        value = share @ (largest + np.log(sums)) - w @ aimed + 0.5 * pull * (away @ away)
        return float(value), np.einsum("vnk,nk->v", L, P) - aimed + pull * away

    bounds = [(0.0, None)] * count
    accuracy = {"ftol": _MIN_DECREASE, "gtol": _MIN_GRADIENT}
    found = minimize(terms, prior, jac=True, method="L-BFGS-B", bounds=bounds, options=accuracy)
    weights: _Array = found.x
    return weights

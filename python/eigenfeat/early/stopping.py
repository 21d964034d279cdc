r"""Optimal stopping: backward induction over the expected savings of waiting.

At the last time, the value of a series is the cost of deciding it. At an earlier time t, the
difference between the later value and the cost of deciding now is regressed on the classifier's
probabilities at t. If waiting is expected to cost less, the value at t is the later value.
Longstaff and Schwartz (2001) use least squares; Bilski and Jastrzebska (2023) use a kernel ridge
for early classification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from eigenfeat._base.state import OmitsCaches
from eigenfeat._base.threads import one_blas_thread
from eigenfeat.moments.columns import deviations

__all__ = ["Policy", "Regression", "fitted_policy", "stops_of_prices", "views_of"]

_Array = NDArray[np.float64]

RIDGE = 1.0
MAX_SAMPLES = 1500  # per regression, drawn at random


def views_of(probability: _Array) -> _Array:
    """Regressors (n, G + 2): the probabilities, the largest one, and its lead."""
    top = np.sort(probability, axis=1)[:, -2:]
    return np.column_stack([probability, top[:, -1], top[:, -1] - top[:, 0]])


class Regression(OmitsCaches):
    """Kernel ridge regression about the mean, with one factor for any number of targets.

    Parameters
    ----------
    views : (n, q) array
    """

    _caches = frozenset({"chosen", "_factor"})  # `predict` needs neither

    @one_blas_thread()
    def __init__(self, views: _Array) -> None:
        drawn = np.random.default_rng(0).permutation(len(views))[:MAX_SAMPLES]
        self.chosen = np.sort(drawn)
        self.mean = views.mean(axis=0)
        spread = deviations(views)
        self.scale = np.where(spread > 0, spread, 1.0)
        self.known = (views[self.chosen] - self.mean) / self.scale
        kernel = self._kernel(self.known)
        kernel[np.diag_indices_from(kernel)] += RIDGE
        self._factor = cho_factor(kernel, lower=True)

    @one_blas_thread()
    def fit(self, target: _Array) -> tuple[_Array, Any]:
        """Coefficients and means of a target (n,), or of the columns of a target (n, P)."""
        chosen = target[self.chosen]
        mean = chosen.mean(axis=0)
        return np.asarray(cho_solve(self._factor, chosen - mean)), mean

    @one_blas_thread()
    def predict(self, views: _Array, fitted: tuple[_Array, Any]) -> _Array:
        """Predictions (m,) or (m, P) at other regressors."""
        return np.asarray(self._kernel((views - self.mean) / self.scale) @ fitted[0] + fitted[1])

    def _kernel(self, views: _Array) -> _Array:
        """Kernel (m, n) of standardised regressors with the fitted regressors."""
        squares = (views**2).sum(axis=1)[:, None] + (self.known**2).sum(axis=1)
        squares = np.maximum(squares - 2 * views @ self.known.T, 0.0)
        return np.asarray(np.exp(-squares / self.known.shape[1]))


@dataclass(frozen=True, eq=False)
class Policy:
    """Regressions of the expected savings of waiting, for each time but the last."""

    regressions: Sequence[Regression]
    fitted: list[tuple[_Array, float]]

    def saving(self, k: int, probability: _Array) -> _Array:
        """Expected savings (n,) of waiting at the k-th time."""
        return -self.regressions[k].predict(views_of(probability), self.fitted[k])


def fitted_policy(probabilities: Sequence[_Array], costs: _Array) -> Policy:
    """Learn when to stop from out-of-fold probabilities.

    Probabilities (n, G) are by time; costs (T, n) are of deciding each series at each time.
    """
    regressions, fitted = _induced(probabilities, costs)
    return Policy(regressions, [(coefficients, float(mean)) for coefficients, mean in fitted])


def stops_of_prices(
    known: Sequence[_Array], fresh: Sequence[_Array], costs: _Array
) -> NDArray[np.intp]:
    """Times of decision (m, P) of the `fresh` series by P policies learned from the `known` ones.

    Probabilities of known (n, G) and fresh series (m, G) are by time; costs (T, n, P) are of
    deciding each known series at each time, by price of waiting.
    """
    regressions, fitted = _induced(known, costs)
    out = np.full((len(fresh[0]), costs.shape[2]), len(fitted), dtype=np.intp)
    waiting = np.ones(out.shape, dtype=bool)
    for k, (one, of) in enumerate(zip(regressions, fitted, strict=True)):
        stop = waiting & (one.predict(views_of(fresh[k]), of) >= 0)
        out[stop] = k
        waiting &= ~stop
    return out


def _induced(
    probabilities: Sequence[_Array], costs: _Array
) -> tuple[list[Regression], list[tuple[_Array, Any]]]:
    """Regress the extra cost of waiting at each time but the last."""
    regressions: list[Regression] = []
    fitted: list[tuple[_Array, Any]] = []
    value = costs[-1].copy()
    for probability, cost in zip(probabilities[-2::-1], costs[-2::-1], strict=True):
        views = views_of(probability)
        regressions.append(one := Regression(views))
        fitted.append(one.fit(value - cost))
        value = np.where(one.predict(views, fitted[-1]) < 0, value, cost)
    return regressions[::-1], fitted[::-1]

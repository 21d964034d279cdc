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

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.spatial.distance import cdist

from eigenfeat._base.threads import one_blas_thread
from eigenfeat.moments.columns import deviations

_Array = NDArray[np.float64]

RIDGE = 1.0  # added to the kernel's diagonal, which is 1
MAX_SAMPLES = 1500  # samples of a regression, drawn at random


def regressors_of(probability: _Array) -> _Array:
    """Regressors (n, G + 2): the probabilities, the largest, and its lead over the second."""
    top = np.sort(probability, axis=1)[:, -2:]
    return np.column_stack([probability, top[:, -1], top[:, -1] - top[:, 0]])


class Regression:
    """Kernel ridge regression of a target (n,) on regressors (n, q).

    Attributes
    ----------
    mean : (q,) array
        Means of the regressors.
    scale : (q,) array
        Standard deviations of the regressors; 1 for constant regressors.
    fitted : (m, q) array
        Standardised regressors of the fit.
    weights : (m,) array
        Coefficients of the kernels at `fitted`.
    level : float
        Mean of the target, added to the predictions.
    """

    @one_blas_thread()
    def __init__(self, regressors: _Array, target: _Array) -> None:
        chosen = np.sort(np.random.default_rng(0).permutation(len(regressors))[:MAX_SAMPLES])
        self.mean = regressors.mean(axis=0)
        spread = deviations(regressors)
        self.scale = np.where(spread > 0, spread, 1.0)
        self.fitted = (regressors[chosen] - self.mean) / self.scale
        self.level = float(target[chosen].mean())
        kernel = self._kernel(self.fitted) + RIDGE * np.eye(len(chosen))
        self.weights = solve(kernel, target[chosen] - self.level, assume_a="pos")

    @one_blas_thread()
    def predict(self, regressors: _Array) -> _Array:
        """Predictions (n,) at other regressors."""
        standard = (regressors - self.mean) / self.scale
        return np.asarray(self._kernel(standard) @ self.weights + self.level)

    def _kernel(self, regressors: _Array) -> _Array:
        """Kernel (m, n) of standardised regressors with the fitted regressors."""
        return np.exp(-cdist(regressors, self.fitted, "sqeuclidean") / self.fitted.shape[1])


@dataclass(frozen=True, eq=False)
class Policy:
    """Regressions of later costs minus the costs of deciding now, for each time but the last."""

    regressions: Sequence[Regression]

    def saving(self, k: int, probability: _Array) -> _Array:
        """Expected savings (n,) of waiting at the k-th time."""
        return -self.regressions[k].predict(regressors_of(probability))


def fitted_policy(probabilities: Sequence[_Array], costs: _Array) -> Policy:
    """Learn when to stop from out-of-fold probabilities, by backward induction.

    Each time has probabilities (n, G); `costs` (T, n) has the costs of deciding each series at each
    time.
    """
    regressions: list[Regression] = []
    value = costs[-1].copy()
    for probability, cost in zip(probabilities[-2::-1], costs[-2::-1], strict=True):
        regressors = regressors_of(probability)
        regressions.append(Regression(regressors, value - cost))
        value = np.where(regressions[-1].predict(regressors) < 0, value, cost)
    return Policy(regressions[::-1])

"""Minimisation over moved samples and an SVM together: equation 7 of Wangni and Chen (2016).

Only the means m_n of the paper's Gaussians q are free. The objective is

    J(m, W) = 1/2 |W|^2 + sum_n |m_n - x_n|^2 / (2 sigma2)
              + sum_n C_n max_y (margin [y != y_n] + (w_y - w_{y_n})^T m_n).

For any W, `hinge_envelope` of the core computes the optimal m. Quasi-Newton steps minimise J over W
only. Minimising exactly over m and W alternately would stop at once for separable classes:
samples outside the margin have no loss and do not move, and W is optimal for samples that do not
move.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat._base.validation import show
from eigenfeat.maxmargin.svm import hinge_costs

_Array = NDArray[np.float64]
_GAP = 1e-9  # duality gap of a sample's quadratic program, relative to its cost
_MAX_STEPS = 1_000  # steps of a sample's quadratic program
_MAX_EXPONENT = 250  # largest exponent of the power of two by which samples are divided
_SIZE_RATIO = 1.05  # sizes of moves within this ratio count as equal
_MAX_TRIALS = 12  # values of sigma2 that are tried for one size
_FIRST_POWER = 0.25  # moves of separable samples grow with this power of sigma2


class JointMoves:
    """Means and weights at which J is stationary, for successive values of `sigma2`.

    The samples X (n, d) have labels y, and `weight` (n,) multiplies their losses. The parameters
    and classes of the fitted `svm` define J; the search starts at its `class_coef_` and
    `dual_coef_`. A minimisation takes at most `max_iter` steps, and stops when a step decreases J
    by less than the fraction `tol` of its first value.
    """

    def __init__(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        weight: _Array,
        svm: Any,
        max_iter: int,
        tol: float,
    ) -> None:
        n, d = X.shape
        size = float(np.sqrt(np.mean(np.square(X, dtype=np.float64)) * d)) if n else 0.0
        exponent = np.frexp(size)[1] if size > 0 and np.isfinite(size) else 0
        exponent = int(np.clip(exponent, -_MAX_EXPONENT, _MAX_EXPONENT))
        self._scale = s = float(np.ldexp(1.0, exponent))
        self._rows = X.astype(np.float64) / s
        self._d = d
        if svm.fit_intercept:
            self._rows = np.hstack([self._rows, np.full((n, 1), 1.0 / s)])
        self._codes = np.searchsorted(svm.classes_, y).astype(np.int32)
        self._costs = hinge_costs(svm, self._codes, weight) * s * s
        self._threads = threads.resolve(svm.n_threads)
        self._max_iter, self._tol = max_iter, tol
        self.start(svm.class_coef_, svm.dual_coef_)
        self.history: list[float] = []
        self.n_iter = 0

    def start(self, coef: _Array, duals: _Array) -> None:
        """Start the next minimisation at the weights (k, d) of an SVM with these duals."""
        weights = coef * self._scale
        if self._rows.shape[1] > self._d:
            weights = np.hstack([weights, self._scale * duals.sum(axis=0)[:, None]])
        self._weights = np.ascontiguousarray(weights, dtype=np.float64)
        self._duals = np.ascontiguousarray(duals * self._scale**2)

    def replace_rows(self, X: NDArray[Any]) -> None:
        """Replace the samples, and keep the current weights."""
        self._rows[:, : self._d] = X / self._scale

    def minimise(self, sigma2: float) -> None:
        """Minimise J from the current weights."""
        self.sigma2 = sigma2
        with np.errstate(over="ignore"):
            self._variance = sigma2 / self._scale**4
        if not np.isfinite(self._variance):
            raise ValueError(
                f"sigma2: expected a smaller scale for samples of this size, got {sigma2:g}"
            )
        first, _ = self._evaluate(self._weights)
        unit = max(first, np.finfo(float).tiny)
        self.history = [self.objective]
        result = minimize(
            lambda flat: self._normalised(flat, unit),
            self._weights.ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=lambda _: self.history.append(self.objective),
            options={"maxiter": self._max_iter, "ftol": self._tol, "gtol": 0.0, "maxls": 40},
        )
        self._weights = result.x.reshape(self._weights.shape)
        self._evaluate(self._weights)
        self.n_iter = int(result.nit)

    def reach(self, size: float, sigma2: float) -> bool:
        """Minimise at a sigma2 whose moves have about this size; return whether samples move.

        `sigma2` is the first value that is tried.
        """
        power, before = _FIRST_POWER, (0.0, 0.0)
        for _ in range(_MAX_TRIALS):
            self.minimise(sigma2)
            result = self.size
            if result == 0.0 or max(result / size, size / result) <= _SIZE_RATIO:
                break
            if before[0] > 0 and result != before[0] and sigma2 != before[1]:
                slope = np.log(result / before[0]) / np.log(sigma2 / before[1])
                power = float(np.clip(slope, 0.1, 2.0))
            before = result, sigma2
            sigma2 *= float(np.clip((size / result) ** (1.0 / power), 1e-6, 1e6))
        return self.size > 0

    @property
    def moves(self) -> _Array:
        """Difference of each mean from its sample, (n, d)."""
        out: _Array = self._scale * self._variance * (self._duals @ self._weights[:, : self._d])
        return out

    @property
    def size(self) -> float:
        """Root of the mean squared length of the moves."""
        return float(np.sqrt(np.mean(np.square(self.moves).sum(axis=1))))

    @property
    def objective(self) -> float:
        """J plus the gaps of the samples' programs: an upper bound on J at these means."""
        return (self._value + float(self._gaps.sum())) / self._scale**2

    @property
    def coef(self) -> _Array:
        """Weights (k, d) of the classes."""
        return self._weights[:, : self._d] / self._scale

    @property
    def intercept(self) -> _Array:
        """Intercepts (k,)."""
        if self._rows.shape[1] == self._d:
            return np.zeros(len(self._weights))
        return self._weights[:, self._d] / self._scale

    def _normalised(self, flat: _Array, unit: float) -> tuple[float, _Array]:
        value, gradient = self._evaluate(flat.reshape(self._weights.shape))
        return value / unit, gradient.ravel() / unit

    def _evaluate(self, weights: _Array) -> tuple[float, _Array]:
        """Return J minus the gaps of the samples' programs, and the gradient."""
        of_features = weights[:, : self._d]  # without the intercepts
        gram = np.ascontiguousarray(of_features @ of_features.T)
        envelopes = core.hinge_envelope(
            scores=np.ascontiguousarray(self._rows @ weights.T),
            gram=gram,
            labels=self._codes,
            costs=self._costs,
            margin=1.0,
            variance=self._variance,
            start=self._duals,
            tolerance=_GAP,
            max_steps=_MAX_STEPS,
            n_threads=self._threads,
        )
        self._duals, self._gaps = envelopes.duals, envelopes.gaps
        self._value = 0.5 * float(np.vdot(weights, weights)) + float(envelopes.values.sum())
        duals = self._duals
        gradient = weights - duals.T @ self._rows
        gradient[:, : self._d] -= self._variance * ((duals.T @ duals) @ of_features)
        return self._value, gradient


def spread(rows: NDArray[Any]) -> float:
    """Return the root mean square length of rows."""
    if not len(rows):
        return 0.0
    return float(np.sqrt(np.mean(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))))


def check_reach(moved: NDArray[Any], X: NDArray[Any], sigma2: float) -> None:
    """Raise ValueError if squares of moved samples overflow and squares of the samples do not."""
    with np.errstate(over="ignore", invalid="ignore"):
        length = spread(moved)
        bound = 1e-3 * np.sqrt(float(np.finfo(moved.dtype).max))
        too_far = not length < bound and spread(X) < bound
    if too_far:
        raise ValueError(
            "sigma2: expected a scale with which moved samples have finite squares in "
            f"{moved.dtype}, got {show(sigma2)}"
        )

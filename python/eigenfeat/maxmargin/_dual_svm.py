"""The dual solvers of `MulticlassSVM`, for samples of any scale.

Samples far from 1 are divided by a power of two, s, which is exact: with samples x / s, weights s W
and costs s^2 C, objective and duals are s^2 times as large.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.core import core
from eigenfeat._base.types import Rows
from eigenfeat._base.validation import CsrRows, RealArray, check_rows

SOLVERS = ("sequential", "frank_wolfe")

_Array = npt.NDArray[np.float64]
_BATCH = 16  # samples in a step of "frank_wolfe"
_MAX_UNSCALED = 2.0**20  # largest entries above this number, or below its inverse, are scaled


class DualSvm:
    """A multiclass SVM, solved epoch by epoch.

    The samples X (n, d) have classes `labels` (n,) in [0, n_classes), and positive `costs` (n,) by
    which their losses are multiplied. With `constant`, a last feature of ones is penalised like the
    others. `solver` is one of `SOLVERS`; `seed` draws the orders in which samples are visited.
    """

    def __init__(
        self,
        X: Rows,
        labels: npt.NDArray[np.int32],
        costs: _Array,
        n_classes: int,
        *,
        constant: bool,
        n_threads: int,
        solver: str,
        seed: int,
    ) -> None:
        rows = check_rows(X)
        self._constant, self._k, self._n_threads = constant, n_classes, n_threads
        self._scale = _scale(rows)
        with np.errstate(over="ignore", under="ignore"):
            scaled = costs * self._scale * self._scale
        if not (np.isfinite(scaled).all() and scaled.min() > np.finfo(float).tiny):
            raise ValueError(
                "X: expected samples whose squares times C fit float64, got entries up to "
                f"{_largest(rows):.1e} with C from {costs.min():.1e} to {costs.max():.1e}"
            )
        rows = _divided(rows, self._scale, wide=scaled.min() < 1e-25 or scaled.max() > 1e25)
        kind = core.CrammerSinger32 if rows.dtype == np.float32 else core.CrammerSinger64
        # Rounding errors hide an increase of the dual by less than this fraction of the primal.
        self.rounding = 1e-9 if rows.dtype == np.float32 else 1e-15
        self._solver: Any = kind(
            **(vars(rows) if isinstance(rows, CsrRows) else {"X": rows}),
            labels=labels,
            costs=scaled,
            n_classes=n_classes,
            constant=1.0 / self._scale if constant else 0.0,
            n_threads=n_threads,
            margin=1.0,
            solver=solver,
            batch=_BATCH,
            seed=seed,
        )

    def run_epoch(self, tolerance: float) -> bool:
        """Run an epoch and return True, or False if the gap is at most `tolerance` times primal."""
        return bool(self._solver.run(1, tolerance, self._n_threads))

    @property
    def primal(self) -> float:
        """The objective at the current weights."""
        return float(self._solver.primal / self._scale**2)

    @property
    def dual(self) -> float:
        """The dual objective, a lower bound on the optimum."""
        return float(self._solver.dual / self._scale**2)

    @property
    def gap(self) -> float:
        """Upper bound on the excess of the primal over its minimum."""
        return float(self._solver.gap / self._scale**2)

    @property
    def support(self) -> int:
        """Number of samples with nonzero duals."""
        return int(self._solver.support)

    def weights(self) -> tuple[_Array, _Array]:
        """Weights (k, d) and intercepts (k,)."""
        W: _Array = self._solver.weights(self._k) / self._scale
        if self._constant:
            return np.ascontiguousarray(W[:, :-1]), W[:, -1].copy()
        return W, np.zeros(self._k)

    def duals(self) -> _Array:
        """Duals a (n, k) with ``W = a^T X``; rows sum to 0."""
        out: _Array = self._solver.duals(self._k)
        if self._scale != 1.0:
            out /= self._scale**2
        return out


def _values(rows: RealArray | CsrRows) -> RealArray:
    return rows.data if isinstance(rows, CsrRows) else rows


def _largest(rows: RealArray | CsrRows) -> float:
    values = _values(rows)
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def _scale(rows: RealArray | CsrRows) -> float:
    """Return a power of two near the largest entry, or 1 if samples need no scaling."""
    largest = _largest(rows)
    if largest == 0.0 or 1.0 / _MAX_UNSCALED <= largest <= _MAX_UNSCALED:
        return 1.0
    with np.errstate(over="ignore", under="ignore"):
        return float(np.ldexp(1.0, int(np.frexp(largest)[1])))


def _divided(rows: RealArray | CsrRows, scale: float, *, wide: bool) -> RealArray | CsrRows:
    """Divide samples by the scale; in float64 if costs are out of the range of float32."""
    if scale == 1.0 and not (wide and rows.dtype == np.float32):
        return rows
    values = _values(rows)
    values = np.ascontiguousarray(values / scale, dtype=np.float64 if wide else values.dtype)
    if isinstance(rows, CsrRows):
        return CsrRows(values, rows.indices, rows.indptr, rows.n_columns)
    return values

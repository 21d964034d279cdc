"""The penalised multinomial logit on feature rows: objective, gradient and metric.

    f(W) = sum_i w_i loss_i(W)
           + penalty / 2 (1/2 sum_i w_i |z_i|^2 + ridge sqrt(n) sum_j r_j^2 |W_j|^2)
           + l2 / 2 sum_j |W_j|^2,        z_i = W^T phi_i

The second line is the energy of the logits, ``penalty / 2 tr(W^T H W)`` in the metric
``H = 1/2 Phi^T diag(w) Phi + ridge sqrt(n) D^2``, D = diag(r) the root mean squares of the
features, n the sum of the weights. It needs no Gram matrix: the logits are at hand in every pass.
The Gram matrix only preconditions, so that a sample of the rows will do. The constant feature is
in neither of the sums over j.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .features import core_rows, take_rows

__all__ = ["LogitProblem", "Penalty", "centred"]

_Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Penalty:
    """Weights of the penalties: logit energy (`penalty`, with `ridge` inside) and plain `l2`."""

    energy: float
    ridge: float
    l2: float


class LogitProblem:
    """Rows, labels and weights, and passes over them.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or ExpandedRows
    labels : (n,) int32 array in [0, k), or None
        None where only products are asked for.
    weights : (n,) float64 array, or None
    n_classes : int
    constant : bool
        Whether there is a last feature of ones (the intercept).
    n_threads : int
        As the core takes it.
    """

    def __init__(
        self,
        X: Any,
        labels: npt.NDArray[np.int32],
        weights: _Array | None,
        n_classes: int,
        *,
        constant: bool,
        n_threads: int,
    ) -> None:
        self.X, self.labels, self.weights = X, labels, weights
        self.constant, self.n_threads = constant, n_threads
        self.rows = core_rows(X, constant)
        self.shape = (self.rows.n_columns, n_classes)
        self.total = float(self.rows.n_rows if weights is None else weights.sum())
        _, squares = self.rows.sums(weights, n_threads)
        if not np.isfinite(squares).all():
            column = int(np.argmin(np.isfinite(squares)))
            raise ValueError(f"X: expected finite features, got others in feature {column}")
        self.mean_squares = squares / self.total
        positive = self.mean_squares > 0
        self.scale = 1.0 / np.sqrt(np.where(positive, self.mean_squares, 1.0))

    @classmethod
    def reader(cls, X: Any, n_threads: int) -> LogitProblem:
        """For scores alone: no pass over the rows is made beforehand."""
        made = cls.__new__(cls)
        made.X, made.rows, made.n_threads = X, core_rows(X, True), n_threads
        return made

    @property
    def varying(self) -> int:
        """Features but the constant."""
        return self.shape[0] - self.constant

    def quadratic(self, penalty: Penalty) -> _Array:
        """Coefficients (p,) of the plain squares |W_j|^2 / 2 in the objective."""
        out = penalty.energy * penalty.ridge * np.sqrt(self.total) * self.mean_squares + penalty.l2
        out[self.varying :] = 0.0
        return out

    def objective(self, W: _Array, penalty: Penalty) -> tuple[float, _Array]:
        """Objective and gradient at W (p, k)."""
        loss, energy, gradient = self.rows.gradient(
            self.labels, self.weights, 0.5 * penalty.energy, np.ascontiguousarray(W), self.n_threads
        )
        pull = self.quadratic(penalty)[:, None] * W
        gradient += pull
        value = loss + 0.25 * penalty.energy * energy + 0.5 * float(np.einsum("ij,ij->", W, pull))
        return float(value), gradient

    def loss(self, W: _Array) -> float:
        """Unpenalised mean loss."""
        terms = self.rows.gradient(
            self.labels, self.weights, 0.0, np.ascontiguousarray(W), self.n_threads
        )
        return float(terms[0]) / self.total

    def scores(self, W: _Array) -> npt.NDArray[Any]:
        """Logits (n, k)."""
        return self.rows.scores(np.ascontiguousarray(W, dtype=self.dtype), self.n_threads)

    def products(self, residuals: npt.NDArray[Any]) -> _Array:
        """``Phi^T residuals``, (p, k)."""
        out: _Array = self.rows.products(
            np.ascontiguousarray(residuals, dtype=self.dtype), self.n_threads
        )
        return out

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the features, in which tiles are computed."""
        return np.dtype(np.float32 if type(self.rows).__name__.endswith("32") else np.float64)

    def metric(
        self,
        penalty: Penalty,
        damping: float,
        sample: npt.NDArray[np.intp] | None,
        *,
        half: bool = False,
    ) -> Any:
        """Cholesky factor of ``1/2 Phi^T diag(w) Phi`` plus the penalty's plain squares.

        The Gram matrix is that of all rows or of a sample.

        Where rounding makes H indefinite the damping grows until it is not: the optimum does not
        depend on it.

        Parameters
        ----------
        penalty : Penalty
            Its plain squares, in the metric; not its energy's part of the Gram matrix.
        damping : float
            Least addition to the diagonal, where features have root mean square 1.
        sample : (m,) array of row numbers, or None
        half : bool
            Whether 8 bits of a feature are enough: a preconditioner's, where that is faster.
        """
        rows, weights, share = self.rows, self.weights, 1.0
        floor: _Array | float = 0.0
        if sample is not None:
            rows = core_rows(take_rows(self.X, sample), self.constant)
            weights = None if weights is None else weights[sample]
            kept = len(sample) if weights is None else float(weights.sum())
            share = self.total / kept
            floor = self._missing(rows, weights, share)
        # Rounding of a float32 Gram matrix whose diagonal is total / 2; of its trace in the dual.
        dual = rows.n_rows < rows.n_columns
        smallest = max(4, rows.n_columns * dual) * float(np.finfo(np.float32).eps) * self.total
        diagonal = np.maximum(self.quadratic(penalty) * self.scale**2, max(damping, smallest))
        for _ in range(20):
            metric = rows.metric(
                weights, self.scale, diagonal + floor, 0.5 * share, dual, half, self.n_threads
            )
            if metric.positive:
                return metric
            diagonal *= 10.0
        raise FloatingPointError("the Gram matrix of the features cannot be factorised")

    def _missing(self, rows: Any, weights: _Array | None, share: float) -> _Array:
        """What a sample's diagonal lacks: features that are rare may have no row in it."""
        squares = rows.sums(weights, self.n_threads)[1] * share
        lacking: _Array = 0.5 * np.maximum(self.total * self.mean_squares - squares, 0.0)
        return lacking * self.scale**2


def centred(X: Any, weight: Any) -> tuple[Any, _Array | None]:
    """Dense rows with those columns about their means whose means exceed ten deviations.

    With an intercept the loss's optimum is the same; its float32 metric is not. Such a column's
    mean square, in the energy's ridge, becomes its variance.
    """
    if not isinstance(X, np.ndarray):
        return X, None
    sums, squares = core_rows(X, False).sums(weight, 1)  # in float64, whatever X is
    total = len(X) if weight is None else weight.sum()
    mean = sums / total
    far = squares / total - mean**2 < 0.01 * mean**2
    if far.any():
        far &= X.min(axis=0) < X.max(axis=0)
    if not far.any():
        return X, None
    mean[~far] = 0.0
    return np.subtract(X, mean, out=np.empty_like(X), casting="same_kind"), mean

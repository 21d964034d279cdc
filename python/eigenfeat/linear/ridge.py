r"""Ridge regression with the penalty of the least leave-one-out error.

Features are centred, and divided by their weighted standard deviations or by a common one. With
the shares :math:`s_i` of the weights, the eigenvalues :math:`\lambda_j` of the weighted Gram
matrix, and the scores :math:`z_{ij}` of the samples on its eigenvectors, sample i has the leverage

.. math:: h_i = s_i \Bigl(1 + \sum_j \frac{z_{ij}^2}{\lambda_j + \mu}\Bigr),

and its residual without the sample is the residual divided by :math:`1 - h_i`, for a penalty
:math:`\mu` relative to the weight of all samples. Penalties are tried from the largest one until
the error rises: with as many features as samples it may fall again by chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Floats
from eigenfeat._base.validation import is_rounding
from eigenfeat.samples.labelled import Block

__all__ = ["Ridge", "fit_ridge"]

_Array = NDArray[np.float64]

_PENALTIES = np.logspace(2, -8, 41)
_RISE = 0.05  # relative rise of the error after which no smaller penalty is tried
_MIN_REMAINDER = 1e-10  # of 1 - h_i


@dataclass(frozen=True, eq=False)
class Ridge:
    """A fitted ridge regression of p features and q outputs."""

    coef: _Array  # (p, q) in the units of the features
    intercept: _Array  # (q,)
    penalty: float  # the chosen one

    def predict(self, features: Floats, n_threads: int | None = None) -> _Array:
        """Outputs (n, q) of features (n, p)."""
        if not len(self.coef):
            return np.tile(self.intercept, (len(features), 1))
        products = Block(features).scores(self.coef, False, n_threads)
        return np.asarray(products, dtype=np.float64) + self.intercept


def fit_ridge(
    features: Floats, targets: _Array, share: _Array, *, common_scale: bool = False
) -> tuple[Ridge, _Array]:
    """Fit a ridge regression of `targets` (n, q), with leave-one-out predictions (n, q).

    All targets share the penalty. `share` (n,) are positive weights of the samples, of sum 1.
    `common_scale` divides all features by one number, which keeps the metric of a kernel.
    Predictions are with the means and scales of all samples.
    """
    features = np.asarray(features, dtype=np.float64)
    centre, middle = share @ features, share @ targets
    size = np.sqrt(share @ (features - centre) ** 2)
    largest = np.abs(features).max(axis=0, initial=0.0)
    constant = is_rounding(size, largest, len(features))
    if common_scale:
        size = np.full_like(size, np.sqrt(np.mean(size**2)))
    size = np.where(constant, np.inf, size)
    residual = targets - middle
    basis, values, scores = _decompose((features - centre) / size, share)
    squares, sums = scores**2, (scores.T * share) @ residual

    def left_out(penalty: float) -> _Array:
        fitted = scores @ (sums / (values + penalty)[:, None])
        leverage = share * (1.0 + squares @ (1.0 / (values + penalty)))
        remainder = np.maximum(1.0 - leverage, _MIN_REMAINDER)
        out: _Array = (residual - fitted) / remainder[:, None]
        return out

    best, penalty = np.inf, float(_PENALTIES[0])
    for tried in _PENALTIES.tolist():
        error = float((share @ left_out(tried) ** 2).sum())
        if error < best:
            best, penalty = error, tried
        elif error > (1.0 + _RISE) * best:
            break
    coef = basis @ (sums / (values + penalty)[:, None]) / size[:, None]
    return Ridge(coef, middle - centre @ coef, penalty), targets - left_out(penalty)


def _decompose(rows: _Array, share: _Array) -> tuple[_Array, _Array, _Array]:
    """Eigenvectors (p, r) and eigenvalues (r,) of the weighted Gram matrix, and scores (n, r).

    They come from the smaller of the two Gram matrices, without its null space.
    """
    n, p = rows.shape
    if p == 0:
        return np.empty((0, 0)), np.empty(0), np.empty((n, 0))
    weighted = rows * np.sqrt(share)[:, None]
    gram = weighted.T @ weighted if p <= n else weighted @ weighted.T
    values, vectors = np.linalg.eigh(gram)
    nonzero = values > max(n, p) * np.finfo(np.float64).eps * max(float(values[-1]), 1e-300)
    values, vectors = values[nonzero], vectors[:, nonzero]
    basis = vectors if p <= n else weighted.T @ vectors / np.sqrt(values)
    return basis, values, rows @ basis

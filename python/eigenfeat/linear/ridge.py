r"""Ridge regression with the penalty of the smallest leave-one-out error.

Features are centred, and divided by their weighted standard deviations or by one number. With the
shares :math:`s_i` of the weights, the eigenvalues :math:`\lambda_j` of the weighted Gram
matrix, and the scores :math:`z_{ij}` of the samples on its eigenvectors, sample i has the leverage

.. math:: h_i = s_i \Bigl(1 + \sum_j \frac{z_{ij}^2}{\lambda_j + \mu}\Bigr),

and its residual without the sample is the residual divided by :math:`1 - h_i`, for a penalty
:math:`\mu` relative to the weight of all samples. Penalties are tried from the largest one until
the error rises: with as many features as samples it may fall again by chance.

Features are computed for a block of samples at a time: once for their second moments, once for the
leave-one-out errors of all penalties, and once for leave-one-out predictions. Errors of at most
20,000 samples, drawn at random, choose the penalty. Features of few samples are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from eigenfeat._base.subsamples import draw_subsample
from eigenfeat._base.types import Floats
from eigenfeat._base.validation import is_rounding
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.samples.labelled import Block

if TYPE_CHECKING:
    from eigenfeat._base.types import Codes

__all__ = ["Ridge", "fit_ridge", "solve_ridge"]

_Array = NDArray[np.float64]

_PENALTIES = np.logspace(2, -8, 41)  # tried in this order
_RISE = 0.05  # relative rise of the error after which no smaller penalty is tried
_MIN_REMAINDER = 1e-10  # smallest 1 - h_i
_MAX_JUDGED = 20_000  # samples whose errors choose the penalty
_ROWS_AT_ONCE = 2_048  # samples whose features are in memory
_PRODUCTS_AT_ONCE = 41  # penalties times outputs whose residuals are in memory


@dataclass(frozen=True, eq=False)
class Ridge:
    """A fitted ridge regression of p features and q outputs."""

    coef: _Array  # (p, q) in the units of the features
    intercept: _Array  # (q,)
    penalty: float  # chosen or given
    error: float = np.nan  # weighted mean square of leave-one-out residuals, added over outputs

    def predict(self, features: Floats, n_threads: int | None = None) -> _Array:
        """Outputs (n, q) of features (n, p)."""
        if not len(self.coef):
            return np.tile(self.intercept, (len(features), 1))
        products = Block(features).scores(self.coef, False, n_threads)
        return np.asarray(products, dtype=np.float64) + self.intercept


def fit_ridge(
    features: Callable[[Codes | slice], Floats],
    targets: _Array,
    share: _Array,
    *,
    common_scale: bool = False,
) -> tuple[Ridge, Callable[[Codes], _Array]]:
    """Fit a ridge regression of targets (n, q); also return its leave-one-out predictions.

    The predictions are returned as a function of the samples' indices. They use the means and
    scales of all samples. All targets share the penalty.

    Parameters
    ----------
    features : callable
        Computes features (m, p) of samples from their indices or a slice of them.
    targets : (n, q) array
        Finite targets of the samples.
    share : (n,) array
        Positive weights of the samples, of sum 1.
    common_scale : bool, default=False
        Divide all features by one number, which keeps the metric of a kernel.
    """
    n, middle = len(targets), share @ targets
    residual = targets - middle
    features = _kept_if_few(features, n)
    problem = _problem(features, residual, share, common_scale)
    centre, (basis, values, sums) = problem.centre, _decompose(problem)

    def left_out(rows: Codes, penalties: _Array) -> Iterator[_Array]:
        """Residuals (m, c, q) of samples by the regressions without them, c penalties at a time."""
        scores = (features(rows) - centre) @ basis
        squares = scores**2
        step = max(_PRODUCTS_AT_ONCE // residual.shape[1], 1)
        for first in range(0, len(penalties), step):
            factors = 1.0 / (values[:, None] + penalties[first : first + step])
            fitted = np.tensordot(scores, factors[:, :, None] * sums[:, None], axes=1)
            leverage = share[rows, None] * (1.0 + squares @ factors)
            remainder = np.maximum(1.0 - leverage, _MIN_REMAINDER)
            yield (residual[rows, None] - fitted) / remainder[:, :, None]

    judged, errors = draw_subsample(n, _MAX_JUDGED), np.zeros(len(_PENALTIES))
    for block in _blocks(len(judged)):
        rows = judged[block]
        parts = [share[rows] @ np.square(r).sum(axis=2) for r in left_out(rows, _PENALTIES)]
        errors += np.concatenate(parts)
    if len(judged) < n:
        errors /= share[judged].sum()
    best, penalty = np.inf, float(_PENALTIES[0])
    for tried, error in zip(_PENALTIES.tolist(), errors.tolist(), strict=True):
        if error < best:
            best, penalty = error, tried
        elif error > (1.0 + _RISE) * best:
            break
    coef = basis @ (sums / (values + penalty)[:, None])

    def predict(indices: Codes) -> _Array:
        out = targets[indices]
        for rows in _blocks(len(indices)):
            (residuals,) = left_out(indices[rows], np.array([penalty]))
            out[rows] -= residuals[:, 0]
        return out

    return Ridge(coef, middle - centre @ coef, penalty, best), predict


def solve_ridge(
    features: Callable[[Codes | slice], Floats],
    targets: _Array,
    share: _Array,
    penalty: float,
    *,
    common_scale: bool = False,
) -> Ridge:
    """Fit a ridge regression with a given penalty; the other parameters are as in `fit_ridge`."""
    middle = share @ targets
    residual = targets - middle
    features = _kept_if_few(features, len(targets))
    problem = _problem(features, residual, share, common_scale)
    factor = cho_factor(problem.gram + penalty * np.eye(len(problem.gram)), check_finite=False)
    if problem.rows is None:
        coef = cho_solve(factor, problem.products, check_finite=False)
    else:
        weighted = np.sqrt(share)[:, None] * residual
        coef = problem.rows.T @ cho_solve(factor, weighted, check_finite=False)
    coef = coef / problem.size[:, None]
    return Ridge(coef, middle - problem.centre @ coef, penalty)


def _kept_if_few(
    features: Callable[[Codes | slice], Floats], n: int
) -> Callable[[Codes | slice], Floats]:
    """Return `features`, or, for few samples, a look-up in features that are computed once."""
    if n <= max(_ROWS_AT_ONCE, features(slice(1)).shape[1]):
        kept: Floats = features(slice(None))
        return kept.__getitem__
    return features


def _blocks(n: int) -> Iterator[slice]:
    return (slice(first, first + _ROWS_AT_ONCE) for first in range(0, n, _ROWS_AT_ONCE))


class _Problem(NamedTuple):
    """Second moments of standardised features and of centred targets."""

    centre: _Array  # (p,) means of the features
    size: _Array  # (p,) scales of the features, infinite for constant features
    products: _Array  # (p, q) of features and targets
    gram: _Array  # the smaller of the two weighted Gram matrices
    rows: _Array | None  # (n, p) features times roots of the weights; only if p > n


def _problem(
    features: Callable[[slice], Floats], residual: _Array, share: _Array, common_scale: bool
) -> _Problem:
    n, p = len(residual), features(slice(1)).shape[1]
    root, rows = np.sqrt(share)[:, None], None
    if p > n:
        X = np.asarray(features(slice(None)), dtype=np.float64)
        centre, largest = share @ X, np.abs(X).max(axis=0)
        rows = root * (X - centre)
        squares, products = (rows**2).sum(axis=0), rows.T @ (root * residual)
    else:
        centre, largest, gram, products = _moments(features, residual, share)
        squares = gram.diagonal()
    size = np.sqrt(np.maximum(squares, 0.0))
    constant = is_rounding(size, largest, n)
    if common_scale:
        size = np.full_like(size, np.sqrt(np.mean(size**2)))
    size = np.where(constant, np.inf, size)
    if rows is None:
        gram = gram / size / size[:, None]
    else:
        rows /= size
        gram = rows @ rows.T
    return _Problem(centre, size, products / size[:, None], gram, rows)


def _decompose(problem: _Problem) -> tuple[_Array, _Array, _Array]:
    """Eigenvectors (p, r) divided by scales, eigenvalues (r,), and products (r, q) with targets.

    The eigenpairs belong to the weighted Gram matrix (p, p), without its null space.
    """
    values, vectors = np.linalg.eigh(problem.gram)
    larger = max(len(problem.gram), len(problem.size))
    nonzero = values > larger * np.finfo(np.float64).eps * values.max(initial=1e-300)
    values, vectors = values[nonzero], vectors[:, nonzero]
    basis = vectors if problem.rows is None else problem.rows.T @ vectors / np.sqrt(values)
    return basis / problem.size[:, None], values, basis.T @ problem.products


def _moments(
    features: Callable[[slice], Floats], residual: _Array, share: _Array
) -> tuple[_Array, _Array, _Array, _Array]:
    """Means and largest magnitudes (p,), Gram matrix (p, p), and products with residuals (p, q)."""
    moments, largest = ClassMoments(dtype=np.float64), np.zeros(())
    for rows in _blocks(len(share)):
        X = np.asarray(features(rows), dtype=np.float64)
        largest = np.maximum(largest, np.abs(X).max(axis=0))
        moments.update(np.hstack([X, residual[rows]]), np.zeros(len(X)), share[rows])
    p, second = len(largest), moments.covariance(0)
    return moments.mean(0)[:p], largest, second[:p, :p], second[:p, p:]

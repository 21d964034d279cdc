r"""Weights of a multinomial logit in closed form: Gaussian classes that share a covariance.

With means m_c, shares pi_c and the covariance S within classes of the features, all weighted,

.. math:: z_c(x) = m_c^T H^{-1} x - \tfrac12 m_c^T H^{-1} m_c + \log \pi_c,
          \qquad H = S + \rho D^2,

are the logits of Gaussian classes (Fisher 1936), with the covariance shrunk as in Friedman,
"Regularized discriminant analysis", 1989. D is diagonal: the features' deviations within classes
or, if `common`, the root of their mean square. A fit takes one Gram matrix, a Cholesky factor for
each rho and a solve for each class, without iterations over the samples.

rho and the temperature minimise the leave-one-out log loss, which needs no other fit. Let a sample
x of class c have the weight w, its class the weight W_c, and all samples the weight n, by which S
is divided also without x. With u = x - m_c, q = u^T H^-1 u and f = w W_c / (n (W_c - w)), the
Sherman-Morrison formula gives

.. math:: (x - m_b)^T H_-^{-1} (x - m_b) = (x - m_b)^T H^{-1} (x - m_b)
          + \frac{f}{1 - f q} \bigl(u^T H^{-1} (x - m_b)\bigr)^2

for the other classes b, and ``(W_c / (W_c - w))^2 q / (1 - f q)`` for the sample's own class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.core import core
from eigenfeat._base.labels import by_class, thinned
from eigenfeat._base.types import Floats
from eigenfeat.linear.logit_problem import (
    FeaturePasses,
    Logits,
    log_loss,
    positive_metric,
    scaled_gram,
    temperature,
)
from eigenfeat.samples.blocks import add
from eigenfeat.samples.labelled import Block

if TYPE_CHECKING:
    from eigenfeat.linear.logit_problem import LogitProblem
    from eigenfeat.samples.block_samples import LabelledSamples

__all__ = ["GaussianClasses", "Shrunk"]

_Array = NDArray[np.float64]

# Exponents j of the shrinkages 10^(j / 2): the first that is tried, the smallest and the largest.
_FIRST_EXPONENT, _MIN_EXPONENT, _MAX_EXPONENT = -2, -8, 4
# Number of left-out samples: a number of logits divided by the classes, within the bounds.
_MAX_LOGITS, _MIN_LEFT_OUT, _MAX_LEFT_OUT = 1_000_000, 1_000, 10_000
_MAX_CLASS_SHARE = 0.999  # samples with more of their class's weight are not left out
_PIECE = 1_024  # samples converted to a dense array at a time
_MIN_REMAINDER = 1e-6  # of 1 - f q, in float32
_MIN_DIAGONAL = 4 * float(np.finfo(np.float32).eps)  # of features of mean square 1


@dataclass(frozen=True, eq=False)
class Shrunk:
    """Weights and held-out loss of one shrinkage."""

    shrinkage: float
    loss: float  # of the left-out samples at their best temperature; inf without any
    temperature: float  # the best temperature; 1 without left-out samples
    W: _Array  # (p + 1, k); the constant is last
    logits: Logits  # of the left-out samples, each from the weights of all others


class GaussianClasses:
    """Gaussian classes on the features of samples in memory or in blocks.

    Parameters
    ----------
    problem : LogitProblem
        Its samples are read three times: for sums, for the Gram matrix and to draw samples.
    common : bool
        Whether the shrinkage takes one variance for all features.
    random : RandomState
        Draws the samples that are left out.

    Attributes
    ----------
    left_out : Block or None
        Samples that are left out; None if each class has one sample.
    """

    def __init__(self, problem: LogitProblem, common: bool, random: np.random.RandomState) -> None:
        rows, k = problem.rows, problem.shape[1]
        self._n_threads, self._core_threads = rows.n_threads, problem.n_threads
        self.total, varying = problem.total, problem.varying
        self.scale = problem.scale[:varying]
        sums, weights = rows.reduce(class_sums, add, k, rows.n_threads)
        self.weights = weights
        self.means = np.ascontiguousarray(sums / weights)  # (p, k)
        self.centre = (sums.sum(axis=1) / self.total)[:, None]
        self.means -= self.centre
        within = FeaturePasses(rows, False).sum(scaled_gram, self.scale, False)[0]
        self._within = within - self._of_means(self.means + self.centre)
        row = np.arange(varying)
        variances = np.maximum(self._within[row * (row + 3) // 2] / self.total, 0.0)
        if common:  # one variance in the units of the features
            used = self.scale > 0
            mean = np.mean(variances[used] / self.scale[used] ** 2) if used.any() else 0.0
            variances = mean * self.scale**2
        self._unit = variances
        self.left_out = self._drawn(rows, random)

    def chosen(self, stops: Callable[[], bool]) -> tuple[Shrunk, int]:
        """Weights of the shrinkage with the least loss, and the number of shrinkages tried.

        The search ends when the loss rises, or when `stops`, called after each shrinkage, is true.
        """
        exponent, tried = _FIRST_EXPONENT, 1
        best = self.shrunk(10.0 ** (exponent / 2))
        stopped = stops()
        for step in (1, -1):
            while not stopped and _MIN_EXPONENT <= exponent + step <= _MAX_EXPONENT:
                result, tried = self.shrunk(10.0 ** ((exponent + step) / 2)), tried + 1
                stopped = stops()
                if not result.loss < best.loss:
                    break
                best, exponent = result, exponent + step
            if exponent != _FIRST_EXPONENT:
                break
        return best, tried

    def shrunk(self, shrinkage: float) -> Shrunk:
        """Weights of a shrinkage, and their loss on the left-out samples."""
        how = {"factor": 1.0 / self.total, "n_threads": self._core_threads}
        factorise = partial(core.Metric.from_gram, self._within, self.scale, **how)
        metric = positive_metric(factorise, np.maximum(shrinkage * self._unit, _MIN_DIAGONAL))
        A = metric.solve(self.means, self._core_threads)
        # Centred means change the logits of a sample by a constant, and no probability.
        half = 0.5 * np.einsum("ij,ij->j", A, self.means)
        constant = np.log(self.weights / self.total) - half - (self.centre * A).sum(axis=0)
        logits = self._left_out_logits(metric, A)
        T = temperature(logits)
        return Shrunk(shrinkage, log_loss(logits, T), T, np.vstack([A, constant]), logits)

    def _left_out_logits(self, metric: core.Metric, A: _Array) -> Logits:
        """Logits of left-out samples, each from the weights of all other samples.

        `metric` is the factor of H, and `A` (p, k) are the weights of the features.
        """
        out: Logits = []
        if self.left_out is None:
            return out
        Q = Block(np.ascontiguousarray(self.means.T)).scores(A, False, self._n_threads)
        for first in range(0, len(self.left_out), _PIECE):
            piece = self.left_out.take(slice(first, first + _PIECE))
            out.append((self._piece_logits(metric, A, piece, Q), np.asarray(piece.y), piece.weight))
        return out

    def _of_means(self, means: _Array) -> _Array:
        """Packed Gram matrix of the class means, with weights and scales as for samples."""
        rows = Block(np.ascontiguousarray(means.T)).core(False)
        return rows.gram(self.weights, self.scale, False, self._core_threads)

    def _drawn(self, rows: LabelledSamples, random: Any) -> Block | None:
        """Draw samples to leave out, by class, without samples that dominate their class."""
        codes, k = rows.codes, len(self.weights)
        order = by_class(random.permutation(len(codes)), codes)
        order = order[(np.bincount(codes, minlength=k) > 1)[codes[order]]]
        if not len(order):
            return None
        most = int(np.clip(_MAX_LOGITS // k, _MIN_LEFT_OUT, _MAX_LEFT_OUT))
        result = rows.subset(thinned(order, most)).together()
        if result.weight is None:
            return result
        allowed = np.flatnonzero(result.weight <= _MAX_CLASS_SHARE * self.weights[result.y])
        return result.take(allowed) if len(allowed) else None

    def _piece_logits(self, metric: core.Metric, A: _Array, piece: Block, Q: Floats) -> _Array:
        X = piece.X.toarray() if hasattr(piece.X, "toarray") else piece.X
        moved = X.astype(np.float64).T - self.centre
        solved = metric.solve(np.ascontiguousarray(moved), self._core_threads)
        length = np.einsum("ij,ij->j", moved, solved)
        shifted = np.vstack([A, -(self.centre * A).sum(axis=0)])
        scores = piece.scores(shifted, True, self._n_threads).astype(np.float64)
        own = np.arange(len(piece)), np.asarray(piece.y)
        distances = length[:, None] - 2.0 * scores
        distances += np.diag(Q)
        crossed = Q[own[1]] - scores
        crossed += (length - scores[own])[:, None]
        weight = np.ones(len(piece)) if piece.weight is None else np.asarray(piece.weight)
        of_class = self.weights[own[1]]
        factor = weight * of_class / (of_class - weight) / self.total
        q = np.maximum(distances[own], 0.0)
        rest = np.maximum(1.0 - factor * q, _MIN_REMAINDER)
        crossed *= crossed
        crossed *= (factor / rest)[:, None]
        distances += crossed
        distances[own] = (of_class / (of_class - weight)) ** 2 * q / rest
        distances *= -0.5
        shares = self.weights / self.total
        distances += np.log(shares)
        distances[own] += np.log1p(-weight / of_class)
        return distances


def class_sums(block: Block, k: int, n_threads: int | None) -> tuple[_Array, _Array]:
    """Sums (p, k) of the features of each class, and the weights (k,); merged by `add`.

    Samples are sorted by class, so that each product involves few classes.
    """
    y = np.asarray(block.y)
    order = np.argsort(y, kind="stable")
    out = np.zeros((block.X.shape[1], k))
    dtype = np.float32 if block.X.dtype == np.float32 else np.float64
    for first in range(0, len(order), _PIECE):
        piece = block.take(order[first : first + _PIECE])
        present, local = np.unique(piece.y, return_inverse=True)
        of_class = np.zeros((len(piece), len(present)), dtype=dtype)
        of_class[np.arange(len(piece)), local] = 1.0 if piece.weight is None else piece.weight
        out[:, present] += piece.products(of_class, False, n_threads)
    return out, np.bincount(y, weights=block.weight, minlength=k).astype(np.float64)

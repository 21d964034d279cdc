"""The logit's metric: its diagonal where columns turn out well conditioned, else a Gram matrix.

Of n rows of p independent columns the correlation matrix has the spectrum of Marchenko and Pastur
(1967), and steps in its diagonal are hardly more than those in all of it: the Gram matrix, which
costs as much as p / (4 k) passes over the rows, then gains nothing. The first step tells. At W = 0
the loss has the Hessian ``(1/k) Phi^T Phi`` for weights whose sums over classes are zero, so that
the change y of the gradient in a step s has, in the metric D = diag(1/2 Phi^T Phi), a quotient
``y^T D^-1 y / y^T s`` of 2/k times a mean of the correlations' eigenvalues. With gradients of
random signs it is the third moment of the spectrum over its second, for independent columns
``(1 + 3 c + c^2) / (1 + c)``, c = p / n. Correlated columns show several times as much: 2.9 times
on redundant columns of scikit-learn's make_classification, 11 times on neighbours correlated at .9.

No step shows directions of little variance. A search that is still going after as many steps as
two Gram matrices cost takes the Gram matrix, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from eigenfeat.linear.lbfgs import Trial

if TYPE_CHECKING:
    from eigenfeat._base.core import core
    from eigenfeat.linear.logit_problem import LogitProblem, Penalty

__all__ = ["TriedMetric"]

_Array = npt.NDArray[np.float64]

_LEAST_PASSES = 10  # that a Gram matrix costs in operations, to be worth a trial
_MOST_COLUMNS = 0.25  # of the rows: with more even independent columns are ill conditioned
_TOLERATED = 1.3  # times what independent columns would show; they show up to 1.12 times
_STEPS = 2.0  # for each pass that a Gram matrix costs, whose operations run three times as fast


class TriedMetric:
    """Metric of a search or of several; the one with the Gram matrix is made when it is needed.

    Parameters
    ----------
    problem : LogitProblem
    build : callable
        Makes the metric of rows.
    """

    def __init__(self, problem: LogitProblem, build: Callable[[], core.Metric]) -> None:
        self._problem, self._build = problem, build
        self._made: core.Metric | None = None
        self._kept = False  # an earlier search has ended in the diagonal

    def solve(self, gradient: _Array) -> _Array:
        """H^-1 times a gradient, H with the Gram matrix."""
        if self._made is None:
            self._made = self._build()
        solved: _Array = self._made.solve(gradient, self._problem.n_threads)
        return solved

    def trial(self, penalty: Penalty, start: _Array) -> Trial | None:
        """The diagonal, if it may do for a search from this start."""
        if self._made is not None or not self._worth():
            return None
        if not self._kept and start.any():
            return None  # what the first step shows is known at zero alone
        problem = self._problem
        curvature, plain = 0.5 * problem.total * problem.mean_squares, problem.quadratic(penalty)
        diagonal = curvature + plain
        inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=~problem.flat)
        diagonal[diagonal == 0] = 1.0  # columns without spread
        share = float(np.mean(curvature / diagonal))
        p, k = problem.shape
        columns = p / problem.n_rows
        independent = (1 + 3 * columns + columns**2) / (1 + columns)
        most = _TOLERATED * (2.0 / k + penalty.energy) * share * independent + (1 - share)
        return Trial(
            lambda gradient: gradient * inverse[:, None],
            np.inf if self._kept else most,
            int(_STEPS * p / (4.0 * k)),
        )

    def done(self) -> None:
        """Let later searches start in the diagonal, if this one has ended in it."""
        self._kept = self._made is None

    def _worth(self) -> bool:
        rows, (p, k) = self._problem.rows, self._problem.shape
        return (
            rows.in_memory
            and rows.dense
            and p >= 4 * _LEAST_PASSES * k
            and p <= _MOST_COLUMNS * self._problem.n_rows
        )

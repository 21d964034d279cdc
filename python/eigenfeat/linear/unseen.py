"""Rows that had no part in a logit's weights: folds that its penalty and temperature come from.

Up to 1,000 rows each fold follows the whole path of penalties. Beyond, the first fold goes downhill
from a middle penalty, each search starting from the weights of its neighbour, and stops where the
log loss rises; other folds are fitted with the chosen penalty alone. The mean of the folds' weights
then is where the fit to all rows starts: it is near, but not the minimum.

Where there is one fold, of more than 5,000 rows, the fit starts from its weights with a given
penalty, too, and both searches have one metric if one of the fold's rows does for all.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.lazy import cached_property
from eigenfeat.linear.lbfgs import Solve, minimise
from eigenfeat.linear.temperature import (
    FEW,
    SOME,
    Logits,
    folds,
    held_out_logits,
    log_loss,
    temperature,
)

if TYPE_CHECKING:
    from eigenfeat._base.core import core
    from eigenfeat._base.types import Codes
    from eigenfeat.linear.logit_problem import LogitProblem, Penalty
    from eigenfeat.rows.memory import LabelledRows

__all__ = ["Choice", "Unseen"]

_Array = NDArray[np.float64]

_COARSE = 1e-2  # of a fold's minimum: with 1e-3, T is the same to 2%
_OF_NEIGHBOURS = 1e-3  # likewise, from a neighbour's weights: coarser, it may end where it begins
_WORTH = 0.02  # of the log loss, that a smaller penalty must gain: its fits take more steps
_MOST_STEPS = 30


@dataclass(frozen=True, eq=False)
class Choice:
    """The penalty of the least log loss.

    Attributes
    ----------
    number : int
        Its place in the path.
    temperature : float
    losses : dict of int to float
        Log losses of the places that were tried.
    start : (p, k) array or None
        Weights near those of all rows.
    """

    number: int
    temperature: float
    losses: dict[int, float]
    start: _Array | None


class _Fold:
    """Fits to the rows outside one fold, and their logits of the rows in it."""

    def __init__(
        self,
        rows: LabelledRows,
        problem_of: Callable[[LabelledRows], LogitProblem],
        solve_of: Callable[[LogitProblem], Solve],
        part: tuple[Codes, Codes],
        constant: bool,
    ) -> None:
        train, held = part
        self._problem = problem_of(rows.subset(train))
        self._rough, self._solve = self._problem.rough(), solve_of(self._problem)
        self._held, self._how = rows.subset(held), (constant, rows.n_threads)

    def fitted(
        self, penalty: Penalty, start: _Array | None, tolerance: float = _COARSE
    ) -> tuple[_Array, Logits]:
        """Weights, and logits of the rows that are held out."""
        problem, rough = self._problem, self._rough
        W = minimise(
            _objective(problem, penalty),
            self._solve,
            np.zeros(problem.shape) if start is None else start,
            tolerance=tolerance,
            max_iterations=_MOST_STEPS,
            noise=float(np.finfo(problem.dtype).eps),
            rough=None if rough is None else _objective(rough, penalty),
        ).point
        how = np.ascontiguousarray(W), *self._how
        return W, self._held.reduce(held_out_logits, operator.add, *how)


@dataclass
class Unseen:
    """Rows for penalty and temperature: folds of all rows, or those of early stopping.

    Attributes
    ----------
    problem : LogitProblem
        Of all rows.
    problem_of : callable
        The problem of the rows of a fold.
    metric : callable
        ``metric(problem, energy, tolerance)``, the factor of a fold's metric.
    held_out : LogitProblem or None
        Rows of early stopping.
    constant : bool
        Whether there is an intercept.
    random : RandomState
    """

    problem: LogitProblem
    problem_of: Callable[[LabelledRows], LogitProblem]
    metric: Callable[[LogitProblem, float, float], core.Metric]
    held_out: LogitProblem | None
    constant: bool
    random: np.random.RandomState

    @cached_property
    def parts(self) -> list[tuple[Codes, Codes]]:
        """Numbers of rows to train on and of rows to hold out, for each fold."""
        return folds(self.problem.rows.codes, self.problem.shape[1], self.random)

    def logits_by(self, W: _Array, penalty: Penalty) -> Logits:
        """Logits of the rows of early stopping by W (p, k), or of the folds."""
        if self.held_out is None:
            fits = [self._fold(part, penalty.energy).fitted(penalty, None) for part in self.parts]
            return [logits for _, fit in fits for logits in fit]
        how = np.ascontiguousarray(W[: self.problem.shape[0]]), self.constant
        rows = self.held_out.rows
        return rows.reduce(held_out_logits, operator.add, *how, rows.n_threads)

    @property
    def is_one_fold(self) -> bool:
        """Whether the rows held out are those of one fold of many rows."""
        return self.held_out is None and len(self.parts) == 1 and self.problem.n_rows > SOME

    def of_one_fold(self, penalty: Penalty, solve: Solve | None) -> tuple[_Array, Logits]:
        """Weights of the one fold, and logits of its rows; `solve` is as in `choose`."""
        return self._first_fold(penalty.energy, _COARSE, solve).fitted(penalty, None)

    def choose(
        self,
        penalties: Sequence[Penalty],
        first: int,
        fixed: float | None,
        solve: Solve | None = None,
    ) -> Choice:
        """The penalty, from large to small, of the least log loss, at a temperature if it is fixed.

        Beyond 1,000 rows the search goes downhill from the place `first`. `solve` is that of a
        metric for all rows, made without those that the first fold holds out; without it the fold
        has a metric of its own.
        """
        if self.problem.n_rows <= FEW or not self.parts:
            return self._of_path(penalties, fixed)
        fold = self._first_fold(penalties[first].energy, _OF_NEIGHBOURS, solve)
        weights, logits = fold.fitted(penalties[first], None, _OF_NEIGHBOURS)
        losses, best = {first: log_loss(logits, fixed or temperature(logits))}, first
        for step in (1, -1):
            while 0 <= best + step < len(penalties):
                found = fold.fitted(penalties[best + step], weights, _OF_NEIGHBOURS)
                losses[best + step] = log_loss(found[1], fixed or temperature(found[1]))
                if not losses[best + step] < (1 - _WORTH * (step > 0)) * losses[best]:
                    break
                best, (weights, logits) = best + step, found
            if best != first:
                break
        start = weights / len(self.parts)
        for part in self.parts[1:]:
            fold = self._fold(part, penalties[best].energy, _OF_NEIGHBOURS)
            W, others = fold.fitted(penalties[best], None, _OF_NEIGHBOURS)
            start += W / len(self.parts)
            logits = logits + others
        return Choice(best, fixed or temperature(logits), losses, start)

    def _of_path(self, penalties: Sequence[Penalty], fixed: float | None) -> Choice:
        """Of all penalties, in all folds."""
        found: list[Logits] = [[] for _ in penalties]
        for part in self.parts:
            fold, W = self._fold(part, max(one.energy for one in penalties)), None
            for i, penalty in enumerate(penalties):
                W, logits = fold.fitted(penalty, W)
                found[i] += logits
        T = [fixed or temperature(logits) for logits in found]
        losses = [log_loss(*one) for one in zip(found, T, strict=True)]
        best = int(np.argmin(losses))
        return Choice(best, T[best], dict(enumerate(losses)), None)

    def _first_fold(self, energy: float, tolerance: float, solve: Solve | None) -> _Fold:
        if solve is None:
            return self._fold(self.parts[0], energy, tolerance)

        def scaled(problem: LogitProblem) -> Solve:  # the metric is a sum over rows
            share = self.problem.total / problem.total
            return lambda gradient: share * solve(gradient)

        return _Fold(self.problem.rows, self.problem_of, scaled, self.parts[0], self.constant)

    def _fold(self, part: tuple[Codes, Codes], energy: float, tolerance: float = _COARSE) -> _Fold:
        def solve_of(problem: LogitProblem) -> Solve:
            return partial(_solved, self.metric(problem, energy, tolerance), problem.n_threads)

        return _Fold(self.problem.rows, self.problem_of, solve_of, part, self.constant)


def _solved(factor: core.Metric, n_threads: int, gradient: _Array) -> _Array:
    found: _Array = factor.solve(gradient, n_threads)
    return found


def _objective(problem: LogitProblem, penalty: Penalty) -> Callable[[_Array], tuple[float, _Array]]:
    return lambda W: problem.objective(W, penalty)

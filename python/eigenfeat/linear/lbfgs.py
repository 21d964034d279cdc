"""Limited-memory BFGS in a given metric, for convex functions with expensive evaluations.

SciPy's has no metric: its first steps follow the plain gradient. Here the inverse Hessian is built
on ``gamma H^-1`` (Nocedal and Wright 2006, algorithm 7.4), H being a bound on the Hessian whose
solves are cheap beside an evaluation. One solve an iteration: ``H^-1`` of gradient differences
comes from differences of solved gradients. The core has the pairs and the recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from eigenfeat._base.core import core

__all__ = ["NEARBY", "RECENT", "Minimum", "Progress", "Trial", "minimise"]

_Array = npt.NDArray[np.float64]
Evaluate = Callable[[_Array], "tuple[float, _Array]"]
Solve = Callable[[_Array], _Array]

_SUFFICIENT = 1e-4  # share of the predicted decrease that a step must bring
_MOST_HALVINGS = 30
# What an eighth of the steps, and two at least, have brought stands for what is to come. It is no
# bound: of 384 logits of the usual kind the excess was at most 4 times the estimate and seldom more
# than it; on plateaus of separable rows with hardly a penalty it was up to 200 times as large.
RECENT = 2
NEARBY = 3  # with a start near the minimum, where steps bring little from the first one on
_RECENT_SHARE = 8
_COARSE_GAP = 1e-6  # of the objective: gaps that float32 still tells from rounding
_FLOAT32 = float(np.finfo(np.float32).eps)
_CAUTION = 8.0  # before there is a step to learn from, the metric may be so much too large


@dataclass(frozen=True)
class Progress:
    """State after an iteration; `gap` estimates the objective's excess over the minimum."""

    iteration: int
    point: _Array
    objective: float
    gap: float
    gradient_norm: float  # in the metric's dual norm, sqrt(g^T H^-1 g)


@dataclass(frozen=True)
class Trial:
    """A cheaper metric, left where the first step shows more curvature, or after some steps."""

    solve: Solve
    most: float  # of y^T H^-1 y / y^T s, s the first step and y the change of the gradient
    steps: int


@dataclass
class Minimum:
    """Result of the search, and reason for stopping.

    ``reason``: "converged" (estimated gap within the tolerance), "precision" (no step decreases the
    objective in this arithmetic), "stopped" (by the callback) or "iterations".
    """

    point: _Array
    objective: float
    gap: float
    gradient_norm: float
    iterations: int
    evaluations: int
    reason: str
    history: list[float] = field(default_factory=list)


@dataclass
class _State:
    point: _Array
    objective: float
    gradient: _Array
    solved: _Array  # H^-1 gradient


def minimise(
    evaluate: Evaluate,
    solve: Solve,
    start: _Array,
    *,
    tolerance: float,
    max_iterations: int,
    memory: int = 10,
    noise: float = 1e-15,
    callback: Callable[[Progress], bool] | None = None,
    float32: Evaluate | None = None,
    trial: Trial | None = None,
    recent: int = RECENT,
) -> Minimum:
    """Minimise a smooth convex function.

    Parameters
    ----------
    evaluate : callable
        Objective and gradient at a point; a point where it is not finite is stepped back from.
    solve : callable
        ``H^-1`` times a gradient, H positive definite.
    start : array
        Finite objective there.
    tolerance : float
        Stops when the estimated gap is at most so much times the objective.
    max_iterations : int
        Most steps.
    memory : int
        Pairs to keep.
    noise : float
        Relative rounding of the objective: what no step can get below.
    callback : callable, optional
        Called after every iteration; True stops.
    float32 : callable, optional
        A cheaper `evaluate` in float32, for the steps down to a gap that float32 can tell. What is
        returned is of `evaluate`.
    trial : Trial, optional
        A metric to be tried before that of `solve`.
    recent : int
        Least number of steps whose decrease stands for what is to come.
    """
    current, in_float32 = (evaluate, False) if float32 is None else (float32, True)
    solved = solve if trial is None else trial.solve
    state = _evaluated(current, solved, start)
    pairs = core.Lbfgs(state.point.size, memory)
    evaluations, reason, iteration = 1, "iterations", 0
    history = [state.objective]

    def exactly() -> None:
        nonlocal current, in_float32, state, evaluations
        current, in_float32 = evaluate, False
        state = _evaluated(evaluate, solved, state.point)
        history[-1], evaluations = state.objective, evaluations + 1

    if in_float32 and not np.isfinite(state.objective):
        exactly()
    if not np.isfinite(state.objective):
        raise FloatingPointError(f"the objective at the start is {state.objective}")
    while True:
        direction, slope, square = pairs.direction(state.gradient, state.solved)
        norm = float(np.sqrt(max(square, 0.0)))
        gap = _gap(slope, history, recent)
        near = gap <= max(tolerance, _COARSE_GAP) * abs(state.objective)
        if in_float32 and (near or iteration == max_iterations):
            exactly()
            continue
        progress = Progress(iteration, state.point, state.objective, gap, norm)
        if callback is not None and callback(progress):
            reason = "stopped"
            break
        if gap <= tolerance * abs(state.objective):
            reason = "converged"
            break
        if iteration == max_iterations:
            break
        result, tried = _line_search(
            current, state, direction, slope, _FLOAT32 if in_float32 else noise
        )
        evaluations += tried
        if result is None and in_float32:
            exactly()
            continue
        if result is None and pairs.pairs:
            pairs.forget()  # the pairs may mislead; the metric alone does not
            result, tried = _line_search(current, state, -state.solved, -square, noise)
            evaluations += tried
        if result is None:  # what the steps before have brought says nothing any more
            reason = "precision"
            gap = max(-0.5 * slope, noise * abs(state.objective))
            break
        result.solved = solved(result.gradient)
        pairs.remember(
            state.point, result.point, state.gradient, result.gradient, state.solved, result.solved
        )
        state = result
        history.append(state.objective)
        iteration += 1
        if trial is not None and _fails(trial, iteration, pairs):
            trial, solved = None, solve
            state.solved = solve(state.gradient)
            for i in range(pairs.pairs):
                pairs.solve_again(i, solve(pairs.change(i).reshape(start.shape)))
    return Minimum(state.point, state.objective, gap, norm, iteration, evaluations, reason, history)


def _evaluated(evaluate: Evaluate, solve: Solve, point: _Array) -> _State:
    objective, gradient = evaluate(point)
    return _State(point, objective, gradient, solve(gradient))


def _fails(trial: Trial, iteration: int, pairs: core.Lbfgs) -> bool:
    if iteration == 1:
        return not (pairs.pairs and pairs.gamma * trial.most >= 1)
    return iteration == trial.steps


def _gap(slope: float, history: list[float], recent: int) -> float:
    """Excess over the minimum: that of the quadratic model, or what the last steps have brought."""
    model = -0.5 * slope
    steps = len(history) - 1
    if steps == 0:
        return _CAUTION * model
    recent = max(recent, steps // _RECENT_SHARE)
    return max(model, history[max(steps - recent, 0)] - history[-1])


def _line_search(
    evaluate: Evaluate, state: _State, direction: _Array, slope: float, noise: float
) -> tuple[_State | None, int]:
    """Halve, or interpolate, until the objective decreases enough."""
    if not slope < 0:
        return None, 0
    step = 1.0
    for tried in range(1, _MOST_HALVINGS + 1):
        point = state.point + step * direction
        objective, gradient = evaluate(point)
        if objective <= state.objective + _SUFFICIENT * step * slope:
            return _State(point, objective, gradient, gradient), tried
        if -step * slope <= noise * abs(state.objective):
            break
        shrink = 0.5
        if np.isfinite(objective):
            bend = objective - state.objective - step * slope
            shrink = float(np.clip(-step * slope / (2 * bend), 0.1, 0.5)) if bend > 0 else 0.5
        step *= shrink
    return None, tried

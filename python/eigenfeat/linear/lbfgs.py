"""Limited-memory BFGS in a given metric.

The inverse Hessian is built on ``gamma H^-1`` (Nocedal and Wright 2006, algorithm 7.4), where H
bounds the Hessian and its solves cost less than an evaluation. SciPy's L-BFGS has no metric; its
first steps follow the plain gradient. An iteration takes one solve: ``H^-1`` of a difference of
gradients is the difference of the solved gradients. The core stores the pairs and computes the
directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from eigenfeat._base.core import core

__all__ = ["Evaluate", "Minimum", "Progress", "Solve", "minimise"]

_Array = npt.NDArray[np.float64]
Evaluate = Callable[[_Array], "tuple[float, _Array]"]
Solve = Callable[[_Array], _Array]

_MEMORY = 10  # pairs of steps and changes of the gradient
_SUFFICIENT_DECREASE = 1e-4  # fraction of the predicted decrease, as usual
_MAX_HALVINGS = 30
# The decrease in the last eighth of the steps, two at least, estimates the decrease to come. In 384
# fits of the logit the excess over the minimum was at most 4 times the estimate; on separable
# samples with hardly a penalty it was up to 200 times.
_RECENT_SHARE, _MIN_RECENT = 8, 2
_ROUGH_GAP, _ROUGH_NOISE = 1e-6, float(np.finfo(np.float32).eps)  # of the objective in float32
_FIRST_GAP = 8.0  # factor of the first estimate, because the metric may be too large


@dataclass(frozen=True)
class Progress:
    """State after an iteration.

    Attributes
    ----------
    iteration : int
    objective : float
    gap : float
        Estimate of the objective's excess over the minimum.
    gradient_norm : float
        Norm of the gradient g in the dual of the metric, ``sqrt(g^T H^-1 g)``.
    """

    iteration: int
    objective: float
    gap: float
    gradient_norm: float


@dataclass
class Minimum:
    """Result of a search.

    Attributes
    ----------
    point : array
    objective, gap, gradient_norm : float
        As in `Progress`.
    iterations : int
    reason : {"converged", "precision", "stopped", "iterations"}
        The estimated gap is within the tolerance, rounding hides any decrease, the callback ended
        the search, or the maximum number of iterations is reached.
    history : list of float
        Objective at the start and after each iteration.
    """

    point: _Array
    objective: float
    gap: float
    gradient_norm: float
    iterations: int
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
    noise: float = 1e-15,
    callback: Callable[[Progress], bool] | None = None,
    rough: Evaluate | None = None,
) -> Minimum:
    """Minimise a smooth convex function.

    Parameters
    ----------
    evaluate : callable
        Objective and gradient at a point. Steps to points where the objective is not finite are
        shortened.
    solve : callable
        ``H^-1`` times a gradient, H positive definite.
    start : array
        Point with a finite objective.
    tolerance : float
        The search ends when the estimated gap is at most this fraction of the objective.
    max_iterations : int
    noise : float
        Relative rounding error of the objective.
    callback : callable, optional
        Called before the first and after every iteration; True ends the search.
    rough : callable, optional
        `evaluate` in float32, for the first steps.

    Returns
    -------
    Minimum
    """
    state = _evaluated(rough or evaluate, solve, start)
    if rough is not None and not np.isfinite(state.objective):
        rough, state = None, _evaluated(evaluate, solve, start)
    if not np.isfinite(state.objective):
        raise FloatingPointError(f"the objective at the start is {state.objective}")
    pairs = core.Lbfgs(start.size, _MEMORY)
    history = [state.objective]
    iteration = 0
    while True:
        direction, slope, square = pairs.direction(state.gradient, state.solved)
        norm = float(np.sqrt(max(square, 0.0)))
        gap = _gap(slope, history)
        result = None
        if rough is not None:
            near = gap <= max(tolerance, _ROUGH_GAP) * abs(state.objective)
            if not near and iteration < max_iterations:
                result = _line_search(rough, state, direction, slope, _ROUGH_NOISE)
            if result is None:  # continue with the exact objective
                rough, state = None, _evaluated(evaluate, solve, state.point)
                history[-1] = state.objective
                continue
        if callback is not None and callback(Progress(iteration, state.objective, gap, norm)):
            reason = "stopped"
            break
        if gap <= tolerance * abs(state.objective):
            reason = "converged"
            break
        if iteration == max_iterations:
            reason = "iterations"
            break
        result = result or _line_search(evaluate, state, direction, slope, noise)
        if result is None and pairs.pairs:
            pairs.forget()  # restart with the metric alone
            result = _line_search(evaluate, state, -state.solved, -square, noise)
        if result is None:
            reason = "precision"
            gap = max(-0.5 * slope, noise * abs(state.objective))
            break
        result.solved = solve(result.gradient)
        pairs.remember(
            state.point, result.point, state.gradient, result.gradient, state.solved, result.solved
        )
        state = result
        history.append(state.objective)
        iteration += 1
    return Minimum(state.point, state.objective, gap, norm, iteration, reason, history)


def _evaluated(evaluate: Evaluate, solve: Solve, point: _Array) -> _State:
    objective, gradient = evaluate(point)
    return _State(point, objective, gradient, solve(gradient))


def _gap(slope: float, history: list[float]) -> float:
    """Larger of the excess in the quadratic model and the decrease in the last steps."""
    model = -0.5 * slope
    steps = len(history) - 1
    if steps == 0:
        return _FIRST_GAP * model
    recent = max(_MIN_RECENT, steps // _RECENT_SHARE)
    return max(model, history[max(steps - recent, 0)] - history[-1])


def _line_search(
    evaluate: Evaluate, state: _State, direction: _Array, slope: float, noise: float
) -> _State | None:
    """Shorten the step until the objective decreases enough; None if it does not."""
    if not slope < 0:
        return None
    step = 1.0
    for _ in range(_MAX_HALVINGS):
        point = state.point + step * direction
        objective, gradient = evaluate(point)
        if objective <= state.objective + _SUFFICIENT_DECREASE * step * slope:
            return _State(point, objective, gradient, gradient)
        if -step * slope <= noise * abs(state.objective):
            return None
        shrink = 0.5
        bend = objective - state.objective - step * slope
        if np.isfinite(bend) and bend > 0:  # minimum of the parabola through both objectives
            shrink = float(np.clip(-step * slope / (2 * bend), 0.1, 0.5))
        step *= shrink
    return None

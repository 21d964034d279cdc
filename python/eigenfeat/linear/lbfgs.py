"""Minimum of a smooth convex function by L-BFGS in a metric.

L-BFGS (Nocedal and Wright 2006, algorithm 7.4) builds the inverse Hessian on
``gamma H^-1``, where H bounds the Hessian. The core stores the pairs and computes the directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.core import core

__all__ = ["Minimum", "minimise"]

_Array = NDArray[np.float64]

_MEMORY = 10  # pairs of steps and changes of the gradient
_SUFFICIENT_DECREASE = 1e-4  # fraction of the predicted decrease, as usual
_MAX_HALVINGS = 30
# The decrease in the last eighth of the steps, two at least, estimates the decrease to come. In 700
# fits of the logit the excess over the minimum was at most 7 times the estimate; on separable
# samples with hardly a penalty it was up to 200 times.
_RECENT_SHARE, _MIN_RECENT = 8, 2
_ROUGH_GAP, _ROUGH_NOISE = 1e-6, float(np.finfo(np.float32).eps)  # of the objective in float32
_FIRST_GAP = 8.0  # factor of the first estimates, because the metric may be too large


Evaluate = Callable[[_Array], "tuple[float, _Array]"]
Solve = Callable[[_Array], _Array]


@dataclass
class Minimum:
    """Result of a search, or its state after an iteration.

    Attributes
    ----------
    point : array
    objective : float
    gap : float
        Estimate of the objective's excess over the minimum.
    gradient_norm : float
        Norm of the gradient g in the dual of the metric, ``sqrt(g^T H^-1 g)``.
    iterations : int
    history : list of float
        Objective at the start and after each iteration.
    reason : {"", "converged", "precision", "stopped", "iterations"}
        The estimated gap is within the tolerance, rounding hides any decrease, the callback ended
        the search, or the maximum number of iterations is reached; empty during the search.
    """

    point: _Array
    objective: float
    gap: float
    gradient_norm: float
    iterations: int
    history: list[float]
    reason: str = ""


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
    callback: Callable[[Minimum], bool] | None = None,
    rough: Evaluate | None = None,
) -> Minimum:
    """Minimise a smooth convex function by L-BFGS in a metric H.

    `evaluate` returns objective and gradient, `solve` ``H^-1`` times a gradient; `noise` is the
    relative rounding error of the objective, `rough` is `evaluate` in float32, for the first steps.
    The search ends when the estimated gap is at most `tolerance` times the objective, or when
    `callback` returns True, which is called before the first iteration with `evaluate` and after
    each one. An iteration takes one solve: ``H^-1`` of a difference of gradients is the difference
    of the solved gradients.
    """
    state = _evaluated(rough or evaluate, solve, start)
    if rough is not None and not np.isfinite(state.objective):
        rough, state = None, _evaluated(evaluate, solve, start)
    if not np.isfinite(state.objective):
        raise FloatingPointError(f"the objective at the start is {state.objective}")
    pairs = core.Lbfgs(start.size, _MEMORY)
    history = [state.objective]
    while True:
        direction, slope, square = pairs.direction(state.gradient, state.solved)
        norm, gap = float(np.sqrt(max(square, 0.0))), _gap(slope, history)
        found = Minimum(state.point, state.objective, gap, norm, len(history) - 1, history)
        new = None
        if rough is not None:
            near = gap <= max(tolerance, _ROUGH_GAP) * abs(state.objective)
            if not near and found.iterations < max_iterations:
                new = _line_search(rough, state, direction, slope, _ROUGH_NOISE)
            if new is None:  # continue with the exact objective
                rough, state = None, _evaluated(evaluate, solve, state.point)
                history[-1] = state.objective
                continue
        if callback is not None and callback(found):
            found.reason = "stopped"
        elif gap <= tolerance * abs(state.objective):
            found.reason = "converged"
        elif found.iterations == max_iterations:
            found.reason = "iterations"
        if found.reason:
            return found
        new = new or _line_search(evaluate, state, direction, slope, noise)
        if new is None and pairs.pairs:
            pairs.forget()  # restart with the metric alone
            new = _line_search(evaluate, state, -state.solved, -square, noise)
        if new is None:
            found.gap, found.reason = max(-0.5 * slope, noise * abs(state.objective)), "precision"
            return found
        new.solved = solve(new.gradient)
        pairs.remember(
            state.point, new.point, state.gradient, new.gradient, state.solved, new.solved
        )
        state = new
        history.append(state.objective)


def _evaluated(evaluate: Evaluate, solve: Solve, point: _Array) -> _State:
    objective, gradient = evaluate(point)
    return _State(point, objective, gradient, solve(gradient))


def _gap(slope: float, history: list[float]) -> float:
    """Larger of the excess in the quadratic model and the decrease in the last steps."""
    model = -0.5 * slope
    steps = len(history) - 1
    if steps < _MIN_RECENT:
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
        step *= 0.5
    return None

r"""What the trapezoidal rule along a parabola is off by, for tails of weighted sums of chi-squares.

The integrand

.. math:: f(u) = \exp\{x s - \tfrac12 \sum_i \log(1 + 2 w_i s)\}\, s'(u) / s,
          \quad s(u) = p - \beta u^2 + i u,

is analytic in a strip :math:`|\Im u| < a` that keeps s away from 0 and from the branch points.
With :math:`\int |f(u + i b)| du \le M` for all |b| < a, the sum over all nodes of step h differs
from the integral by at most :math:`2 M / (e^{2 \pi a / h} - 1)` (Trefethen and Weideman 2014,
Theorem 5.1).

M is bounded disc by disc about the nodes, which cover the strip: where s moves by D,

.. math:: \log|f| \text{ grows by at most } |D| \Big|x - \tfrac12 \sum t_i\Big|
          + \tfrac14 \sum |t_i D|^2 / (1 - \max |t_i D|), \quad t_i = 2 w_i / (1 + 2 w_i s),

for ``log|1 + z| >= Re z - |z|^2 / (2 (1 - |z|))``. Beyond the last node, on the parabola and in the
strip, ``|1 + 2 w s|^2`` is a quadratic in u^2 whose minimum is known, and ``exp(x s)`` falls like
``exp(-x beta u^2)``: what is left there is a sum of Gaussian tails over rungs of a ladder.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["error_bound"]

_Array = NDArray[np.float64]
_Complex = NDArray[np.complex128]

EPS = float(np.finfo(float).eps)
HALF_WIDTHS = (1.5, 3.0)  # of strips that are tried, in steps
WIDEST = 0.05  # and this, as a share of the nodes
RUNGS = 36
RATIO = 1.2  # of u^2 from rung to rung
ENOUGH = 40.0  # an exponent below which nothing is left to be gained


def error_bound(
    w: _Array, x: _Array, p: _Array, bend: _Array, step: _Array, nodes: _Array, values: _Array
) -> _Array:
    """Bound of the error of ``sum |Im f| step / pi``, divided as `values` are.

    Parameters
    ----------
    w : (n, m) array
        At least 0.
    x : (n,) array
    p, bend, step : (n,) arrays
        Of the parabola and of the nodes ``(k + 1/2) step``.
    nodes : (N,) array
        k + 1/2.
    values : (n, N) array
        |f| at the nodes, divided by ``exp(x p - sum log(1 + 2 w p) / 2)``.

    Returns
    -------
    (n,) array
        Infinite where there is no strip.
    """
    u = step[:, None] * nodes
    s = p[:, None] - bend[:, None] * u**2 + 1j * u
    slope, curvature, largest = _expansion(w, s)
    slope = np.abs(x[:, None] - slope)
    end = step * len(nodes)
    # Nodes that are left out lie within the cells beyond the last one.
    left_out = 2 * _beyond(w, x, p, bend, end - step, np.zeros_like(p))
    best = np.full(len(w), np.inf)
    for width in sorted({*HALF_WIDTHS, WIDEST * len(nodes)}):
        a = width * step
        radius = np.hypot(a, 0.5 * step)[:, None]
        moved = radius * (1 + 2 * bend[:, None] * u + bend[:, None] * radius)
        with np.errstate(all="ignore"):
            turn = largest * moved
            growth = moved * slope + 0.25 * curvature * moved**2 / (1 - turn)
            along = 1 + 2 * bend[:, None] * radius / np.abs(1j - 2 * bend[:, None] * u)
            near = moved / np.abs(s)
            most = values * np.exp(growth) * along / (1 - near)
            fits = ((turn < 0.99) & (near < 0.99)).all(axis=1) & (4 * bend * a < 1)
            whole = 2 * step * most.sum(axis=1) + 2 * _beyond(w, x, p, bend, end - step, a)
            found = 2 * whole / np.expm1(2 * np.pi * a / step) / (2 * np.pi)
        best = np.where(fits & np.isfinite(found), np.minimum(best, found), best)
    # Each node's exponent is a sum of m logarithms and of x s.
    digits = 8 * EPS * (w.shape[1] + len(nodes) + np.abs(s).max(axis=1) * x)
    rounding = digits * (step * values.sum(axis=1)) / np.pi
    return np.asarray(best + left_out / np.pi + rounding)


def _expansion(w: _Array, s: _Complex) -> tuple[_Complex, _Array, _Array]:
    """Sums of t / 2 and |t|^2 and the largest |t|, (n, N) each."""
    half, square = np.zeros_like(s), np.zeros(s.shape)
    largest = np.zeros(s.shape)
    for start in range(0, w.shape[1], 64):
        part = w[:, None, start : start + 64]
        t = 2 * part / (1 + 2 * s[:, :, None] * part)
        size = t.real**2 + t.imag**2
        half += 0.5 * t.sum(axis=2)
        square += size.sum(axis=2)
        largest = np.maximum(largest, size.max(axis=2))
    return half, square, np.sqrt(largest)


def _beyond(w: _Array, x: _Array, p: _Array, bend: _Array, start: _Array, a: _Array) -> _Array:
    """Bound of the integral of |f(u + i b)| from `start` on, for all |b| <= a; relative as ever."""
    lowest = 1 + 2 * w * (p - a)[:, None]
    if np.any(lowest <= 0):
        lowest = np.maximum(lowest, 1e-300)  # no strip: the bound is next to infinite
    squeeze = ((1 - 2 * bend * a) ** 2)[:, None]
    with np.errstate(all="ignore"):
        r = np.minimum(w * squeeze / (bend[:, None] * lowest), 1.0)
        floor = np.where(w > 0, lowest * np.sqrt(r * (2 - r)), 1.0)
        at_saddle = np.log(1 + 2 * w * p[:, None]).sum(axis=1)
        total = np.zeros(len(w))
        square = start**2
        at_floor = 0.5 * (at_saddle - np.log(floor).sum(axis=1))
        for rung in range(RUNGS):
            top = square * RATIO
            u = np.sqrt(square)
            fall = x * (a + bend * a**2 - bend * square)
            last = rung == RUNGS - 1 or bool(np.all(fall + at_floor < -ENOUGH))
            product = at_floor
            if not last:
                low = np.maximum(floor, _least(w, bend, lowest, squeeze, square, top))
                product = 0.5 * (at_saddle - np.log(low).sum(axis=1))
            ratio = 1 / (u * np.sqrt(squeeze[:, 0])) * (1 + 2 * bend * (u + a))
            total += np.exp(fall + product) * ratio / (2 * x * bend * u)
            if last:
                break
            square = top
    return np.where(np.isfinite(total), total, np.inf)


def _least(
    w: _Array, bend: _Array, lowest: _Array, squeeze: _Array, low: _Array, high: _Array
) -> _Array:
    """Bound of |1 + 2 w s| from below for u^2 from low to high; 0 where it may turn within."""
    # (A - 2 w bend u^2)^2 + 4 w^2 u^2 squeeze falls until A - 2 w bend u^2 = w squeeze / bend. It
    # grows with A as long as that side is not negative.
    low_side = lowest - 2 * w * (bend * low)[:, None]
    high_side = lowest - 2 * w * (bend * high)[:, None]
    turn = w * squeeze / bend[:, None]
    first = np.sqrt(low_side**2 + 4 * w**2 * squeeze * low[:, None])
    last = np.sqrt(high_side**2 + 4 * w**2 * squeeze * high[:, None])
    found = np.where(high_side >= turn, last, np.where(low_side <= turn, first, 0.0))
    return np.asarray(np.where(high_side >= 0, found, 0.0))

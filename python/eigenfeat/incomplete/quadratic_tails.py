r"""Tails of Gaussian quadratic forms by inversion, with bounds of all errors (Davies 1973).

For ``D = c + sum_i a_i u_i^2 + 2 g_i u_i``, u standard normal, with
:math:`K(s) = \log E \exp(-s D)` and any :math:`\theta > 0` inside its domain,

.. math:: P(D < 0) = \frac{1}{2 \pi} \int \frac{\exp K(\theta + i y)}{\theta + i y} dy.

The trapezoidal sum of step h is, by Poisson's formula,
:math:`\sum_n e^{-2 \pi n \theta / h} P(D < 2 \pi n / h)` over all integers n: it is never below
P(D < 0), and what it is above is bounded by a geometric series on one side and by Chernoff's bound
on the other. Beyond the last node the integrand is below what its modulus there and the rate at
which that falls allow. The bound of Chernoff stands in wherever it is smaller.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["davies_bounds", "quadratic_tail"]

_Array = NDArray[np.float64]


def quadratic_tail(constant: _Array, curvatures: _Array, slopes: _Array) -> _Array:
    r"""P(D < 0) from above for ``D = c + sum_i a_i u_i^2 + 2 g_i u_i``, u standard normal.

    By `davies_bounds`: the probability and a bound of the error. Where that takes too many nodes,
    or is larger, it is Chernoff's bound :math:`\min_{\theta \ge 0} \exp K(\theta)`,
    :math:`K(\theta) = \log E \exp(-\theta D)`.

    Parameters
    ----------
    constant : (m,) array
    curvatures, slopes : (m, d) arrays

    Returns
    -------
    (m,) array
    """
    spread = (curvatures**2).sum(axis=1) + (slopes**2).sum(axis=1)
    mean = constant + curvatures.sum(axis=1)
    certain = spread == 0
    flipped = mean < 0
    sign = np.where(flipped, -1.0, 1.0)
    c, a = sign * constant, sign[:, None] * curvatures
    theta = _tilt(c, a, slopes)
    tail = _inverted(theta, _cumulant(theta, c, a, slopes), c, a, slopes, flipped)
    return np.where(certain, (constant < 0).astype(float), tail)


def _inverted(
    theta: _Array, k: _Array, c: _Array, a: _Array, g: _Array, flipped: NDArray[np.bool_]
) -> _Array:
    """P(D < 0) from above; of flipped ones 1 - P(D < 0)."""
    lowest = np.minimum(a.min(axis=1), 0.0)
    with np.errstate(divide="ignore"):
        pole = np.where(lowest < 0, -0.5 / lowest, np.inf)
        # Off the pole of 1 / s, where the mean is near 0.
        unit = 0.5 / np.sqrt((2 * a**2 + 4 * g**2).sum(axis=1))
    away = np.minimum(np.maximum(theta, unit), np.maximum(theta, 0.5 * pole))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        lower, upper = davies_bounds(c, a, g, away, pole)
    # Rounding of K, some eps times its terms, is covered by the factor.
    chernoff = np.minimum(1.0, np.exp(np.minimum(k, 0.0)) * (1 + 1e-10))
    return np.where(flipped, 1.0 - lower, np.minimum(upper, chernoff))


def _tilt(c: _Array, a: _Array, g: _Array, steps: int = 60) -> _Array:
    """The minimiser of K in [0, its pole), by bisection of K'."""
    lowest = np.minimum(a.min(axis=1), 0.0)
    with np.errstate(divide="ignore"):
        pole = np.where(lowest < 0, -0.5 / lowest, np.inf)
    scale = np.abs(c) + np.abs(a).sum(axis=1) + np.sqrt((g**2).sum(axis=1)) + 1e-300
    above = np.where(np.isfinite(pole), pole, 1.0 / scale)
    for _ in range(100):  # no pole: outward until K rises
        falls = ~np.isfinite(pole) & (_slope(above, c, a, g) < 0) & (above * scale < 1e12)
        if not falls.any():
            break
        above = np.where(falls, 4 * above, above)
    below = np.zeros_like(above)
    for _ in range(steps):
        middle = 0.5 * (below + above)
        rises = ~(_slope(middle, c, a, g) < 0)
        above, below = np.where(rises, middle, above), np.where(rises, below, middle)
    return below


def _slope(theta: _Array, c: _Array, a: _Array, g: _Array) -> _Array:
    t = theta[:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        b = 1.0 + 2.0 * t * a
        return np.asarray(-c + (-a / b + 4.0 * t * g**2 * (1.0 + t * a) / b**2).sum(axis=1))


def _cumulant(theta: _Array, c: _Array, a: _Array, g: _Array) -> _Array:
    t = theta[:, None]
    b = 1.0 + 2.0 * t * a
    return np.asarray(-theta * c + (-0.5 * np.log(b) + 2.0 * t**2 * g**2 / b).sum(axis=1))


WANTED = 1e-6  # bound of the error
NODES = 4096  # at most
BLOCK = 2**20


def davies_bounds(
    c: _Array, a: _Array, g: _Array, theta: _Array, pole: _Array
) -> tuple[_Array, _Array]:
    """Bounds of P(D < 0), from below and from above.

    With four or more components they are a few times 1e-6 apart. With fewer the integrand falls so
    slowly that the number of nodes limits them: typically 1e-5 apart with three components (at most
    some 1e-4), 1e-4 (at most some 1e-3) with two, and 1e-2 with one.

    Parameters
    ----------
    c : (m,) array
    a, g : (m, d) arrays
    theta : (m,) array
        Positive; best where ``K' = 0``.
    pole : (m,) array
        Where K ends, greater than theta; infinite for a >= 0.

    Returns
    -------
    lower, upper : (m,) arrays
    """
    step, alias = _steps(c, a, g, theta, pole)
    low, high = np.zeros_like(c), np.ones_like(c)
    left = np.flatnonzero(np.isfinite(step) & (step > 0))
    nodes = 32
    while len(left) and nodes <= NODES:
        beyond = _beyond(c, a, g, theta, step, left, nodes)
        ready = (beyond <= WANTED) | (2 * nodes > NODES)
        for part in _parts(left[ready], nodes * a.shape[1]):
            total = _sums(c, a, g, theta, step, part, nodes)
            past = _beyond(c, a, g, theta, step, part, nodes)
            rounding = 1e-13
            high[part] = np.minimum(total + past + rounding, 1.0)
            low[part] = np.maximum(total - past - alias[part] - rounding, 0.0)
        left = left[~ready]
        nodes *= 2
    return low, high


def _parts(rows: NDArray[np.intp], numbers: int) -> list[NDArray[np.intp]]:
    count = max(1, -(-len(rows) * numbers // BLOCK))
    return [part for part in np.array_split(rows, count) if len(part)]


def _log_moment(s: _Array, c: _Array, a: _Array, g: _Array) -> _Array:
    b = 1.0 + 2.0 * s[:, None] * a
    terms = -0.5 * np.log(b) + 2.0 * s[:, None] ** 2 * g**2 / b
    return np.asarray(-s * c + terms.sum(axis=1))


def _steps(c: _Array, a: _Array, g: _Array, theta: _Array, pole: _Array) -> tuple[_Array, _Array]:
    """Steps h at which what Poisson's formula adds is below `WANTED`, and its bound."""
    more = np.where(np.isfinite(pole), 0.5 * (theta + pole), 2 * theta)
    with np.errstate(all="ignore"):
        k = _log_moment(more, c, a, g)
        far = np.log(4 / WANTED)
        length = np.maximum(far / theta, (far + np.maximum(k, 0)) / (more - theta))
        right = np.exp(-theta * length)
        under = np.exp(k - (more - theta) * length)
        alias = right / (1 - right) + under / (1 - np.exp(-(more - theta) * length))
        return 2 * np.pi / length, alias


def _beyond(
    c: _Array, a: _Array, g: _Array, theta: _Array, step: _Array, rows: Any, nodes: int
) -> _Array:
    """Bound of the terms from the last node on.

    Each factor ``(1 + r^2 y^2)^(-1/4)``, and each ``exp(-q y^2)``, goes on to fall at least
    as fast as the power of 1/y that it falls by there.
    """
    a, g, at = a[rows], g[rows], theta[rows]
    last = (nodes - 1) * step[rows]
    b = 1.0 + 2.0 * at[:, None] * a
    square = (2.0 * a / b * last[:, None]) ** 2
    normal = 2.0 * g**2 / b**3 * last[:, None] ** 2
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        modulus = _log_moment(at, c[rows], a, g) - 0.25 * np.log1p(square).sum(axis=1)
        modulus -= (normal / (1 + square)).sum(axis=1)
        power = (0.5 * square / (1 + square) + np.where(a == 0, 2 * normal, 0.0)).sum(axis=1)
        return np.asarray(np.exp(modulus) / (np.pi * power))


def _sums(
    c: _Array, a: _Array, g: _Array, theta: _Array, step: _Array, rows: Any, nodes: int
) -> _Array:
    c, a, g = c[rows], a[rows], g[rows]
    s = theta[rows][:, None] + 1j * step[rows][:, None] * np.arange(nodes)
    exponent = -s * c[:, None]
    for i in range(a.shape[1]):
        b = 1.0 + 2.0 * s * a[:, i : i + 1]
        exponent += -0.5 * np.log(b) + 2.0 * s**2 * g[:, i : i + 1] ** 2 / b
    values = (np.exp(exponent) / s).real
    values[:, 0] *= 0.5
    return np.asarray(values.sum(axis=1) * step[rows] / np.pi)

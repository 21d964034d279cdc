"""How likely quadratics of Gaussian vectors are negative: bounds and approximations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from eigenfeat.incomplete._completion.davies import davies_bounds

__all__ = ["quadratic_tail"]

_Array = NDArray[np.float64]


def quadratic_tail(constant: _Array, curvatures: _Array, slopes: _Array, kind: str) -> _Array:
    r"""P(D < 0) for ``D = c + sum_i a_i u_i^2 + 2 g_i u_i``, u standard normal.

    With :math:`K(\theta) = \log E \exp(-\theta D)`, which is convex,

    - "chernoff": the bound :math:`\min_{\theta \ge 0} \exp K(\theta)`, never below the probability;
    - "davies": the probability by inversion, from above to within 1e-6 and a bound of the error
      that is added; where that takes too many nodes, up to Chernoff's bound;
    - "saddlepoint": Lugannani and Rice's approximation at the same theta, mostly within some per
      cent of it.

    Parameters
    ----------
    constant : (m,) array
    curvatures, slopes : (m, d) arrays
    kind : {"chernoff", "davies", "saddlepoint"}

    Returns
    -------
    (m,) array
    """
    spread = (curvatures**2).sum(axis=1) + (slopes**2).sum(axis=1)
    mean = constant + curvatures.sum(axis=1)
    certain = spread == 0
    flipped = (mean < 0) & (kind != "chernoff")
    sign = np.where(flipped, -1.0, 1.0)
    theta = _tilt(sign * constant, sign[:, None] * curvatures, slopes)
    k, bend = _cumulant(theta, sign * constant, sign[:, None] * curvatures, slopes)
    if kind == "chernoff":
        # Rounding of K, some eps times its terms, is covered by the factor.
        tail = np.minimum(1.0, np.exp(np.minimum(k, 0.0)) * (1 + 1e-10))
    elif kind == "davies":
        tail = _inverted(theta, k, sign * constant, sign[:, None] * curvatures, slopes, flipped)
    else:
        third = -_third_cumulant(theta, sign[:, None] * curvatures, slopes)
        tail = _lugannani_rice(theta, k, bend, third)
        tail = np.where(flipped, 1.0 - tail, tail)
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


def _cumulant(theta: _Array, c: _Array, a: _Array, g: _Array) -> tuple[_Array, _Array]:
    """K and its second derivative."""
    t = theta[:, None]
    b = 1.0 + 2.0 * t * a
    k = -theta * c + (-0.5 * np.log(b) + 2.0 * t**2 * g**2 / b).sum(axis=1)
    bend = (2.0 * a**2 / b**2 + 4.0 * g**2 / b**3).sum(axis=1)
    return k, bend


def _third_cumulant(theta: _Array, a: _Array, g: _Array) -> _Array:
    b = 1.0 + 2.0 * theta[:, None] * a
    return np.asarray((8.0 * a**3 / b**3 + 24.0 * a * g**2 / b**4).sum(axis=1))


def _lugannani_rice(theta: _Array, k: _Array, bend: _Array, third: _Array) -> _Array:
    w = np.sqrt(np.maximum(-2.0 * k, 0.0))
    u = theta * np.sqrt(bend)
    near = (w < 1e-4) | (u < 1e-4)
    root = np.sqrt(2.0 * np.pi)
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = ndtr(-w) + np.exp(-0.5 * w**2) / root * (1.0 / u - 1.0 / w)
        at_mean = 0.5 - third / (6.0 * root * bend**1.5)  # its limit, where both reciprocals cancel
    return np.asarray(np.clip(np.where(near, at_mean, tail), 0.0, 1.0))

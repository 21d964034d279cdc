r"""Weighted sums of chi-squares, ``Q = sum_i w_i z_i^2`` with z standard normal and w >= 0.

Upper tails are Laplace inversions

.. math:: P(Q > x) = -\frac{1}{2 \pi i} \int \prod_i (1 + 2 p w_i)^{-1/2} e^{p x} \frac{dp}{p}

(Imhof 1961), by the trapezoidal rule along the parabola of steepest descent through the saddle
point. The integrand does not oscillate there: the number of nodes does not depend on the weights.

A step of a third of the length cubes the error of the rule. The error is therefore estimated by the
cube of the difference from the rule with every third node. If the estimate exceeds `TOLERANCE`
times the tail, the bound of Laurent and Massart (2000, Lemma 1)

.. math:: P(Q > \sum w + 2 |w|_2 \sqrt{s} + 2 w_{max} s) \le e^{-s}

replaces the tail. It needs only three moments of the weights, and also serves for matrices that are
too large for eigenvalues.

References
----------
J. P. Imhof, "Computing the distribution of quadratic forms in normal variables", Biometrika 48,
1961. B. Laurent, P. Massart, "Adaptive estimation of a quadratic functional by model selection",
Annals of Statistics 28, 2000.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

_Array = NDArray[np.float64]

NODES = 60  # on half the parabola
TOLERANCE = 1e-6  # relative to the tail
BLOCK_NUMBERS = 2**20  # complex numbers in memory at a time


def moments_of(weights: _Array) -> _Array:
    """Sum, Euclidean length and maximum (..., 3) of weights (..., m)."""
    return np.stack(
        [weights.sum(axis=-1), np.sqrt((weights**2).sum(axis=-1)), weights.max(axis=-1, initial=0)],
        axis=-1,
    )


def tail(weights: _Array, x: _Array, limit: _Array | float = 1.0) -> _Array:
    """Tails P(Q > x) (n,) for ascending weights (n, m), to a relative accuracy of `TOLERANCE`.

    Upper bounds replace tails that are inaccurate or above `limit`. By ``Q >= w_j chi2_j``, with
    the j-th largest weight w_j and a chi-square of j degrees of freedom, many tails are known to be
    above `limit`.
    """
    out = bounded_tail(moments_of(weights), x)
    largest = weights.max(axis=1, initial=0.0)
    possible = (largest > 0) & (x > 0) & (out > 0)
    for j in 2 ** np.arange(weights.shape[1].bit_length()):
        with np.errstate(divide="ignore", invalid="ignore"):
            possible &= ~(chdtrc(j, x / weights[:, -j]) > limit)
    inverted = np.flatnonzero(possible)
    width = max(1, BLOCK_NUMBERS // (NODES * max(weights.shape[1], 1)))
    for begin in range(0, len(inverted), width):
        rows = inverted[begin : begin + width]
        scale = largest[rows]
        value, accurate = _inverted(weights[rows] / scale[:, None], x[rows] / scale)
        out[rows] = np.where(accurate, value, out[rows])
    return out


def bounded_tail(moments: _Array, x: _Array) -> _Array:
    """Laurent and Massart's bound on P(Q > x), from sum, length and largest weight."""
    excess, length, largest = x - moments[..., 0], moments[..., 1], moments[..., 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        # The positive root of 2 largest r^2 + 2 length r = excess.
        root = excess / (length + np.sqrt(length**2 + 2 * largest * np.maximum(excess, 0)))
        out = np.exp(-(root**2))
    return np.asarray(np.where(excess > 0, out, np.where(moments[..., 0] > 0, 1.0, 0.0)))


def _inverted(w: _Array, x: _Array) -> tuple[_Array, NDArray[np.bool_]]:
    """Tails (n,) and whether they are accurate (n,), for weights of maximum 1 and x > 0."""
    # The path passes the pole at 0 at a distance, which the length of the weights gives: on the
    # left for small tails, else on the right.
    unit = 1 / np.sqrt((w**2).sum(axis=1))
    p = _saddle(w, x)
    upper = p < -0.4 * unit
    p = np.where(upper, p, np.maximum(p, 0.6 * unit))
    ratio = w / (1 + 2 * p[:, None] * w)
    second, third = 2 * (ratio**2).sum(axis=1), 8 * (ratio**3).sum(axis=1)
    bend = third / (6 * second)
    # At the ends of the path the integrand is about exp(-34), 1e-15 times its largest value.
    reach = np.sqrt(34.0 / np.maximum(bend * x, 0.25 * second))
    nodes = np.arange(NODES) + 0.5
    y = (reach / NODES)[:, None] * nodes
    path = p[:, None] - bend[:, None] * y**2 + 1j * y
    tangent = 1j - 2 * bend[:, None] * y
    exponent = path * x[:, None] - 0.5 * _log_product(path, w)
    size = p * x - 0.5 * np.log1p(2 * p[:, None] * w).sum(axis=1)
    terms = (np.exp(exponent - size[:, None]) * tangent / path).imag
    terms = terms * (reach / NODES)[:, None] / np.pi
    total, every_third = terms.sum(axis=1), 3 * terms[:, 1::3].sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = total * np.exp(size)
        error = np.abs(every_third / total - 1)  # of the rule with every third node
    accurate = np.isfinite(error) & (error**3 <= TOLERANCE)
    value = np.where(upper, -value, 1.0 - value)
    return np.clip(value, 0.0, 1.0), accurate


def _log_product(path: NDArray[np.complex128], w: _Array) -> NDArray[np.complex128]:
    """Sums (n, nodes) of ``log(1 + 2 p w_i)`` over weights (n, m), at points p of the path.

    Arguments of the factors are in (0, pi). The argument of a partial product increases by less
    than pi with each factor: it passes a multiple of pi if the imaginary part changes sign.
    Logarithms are taken of products of up to 16 factors, which do not overflow.
    """
    total = np.zeros(path.shape, dtype=np.complex128)
    w = w[:, w.any(axis=0)]
    two_p = 2 * path
    n_factors = 16 if np.abs(two_p).max(initial=0.0) < 1e15 else 2
    for start in range(0, w.shape[1], n_factors):
        product = 1 + two_p * w[:, start, None]
        negative = np.zeros(path.shape, dtype=bool)  # whether the imaginary part is negative
        turns = np.zeros(path.shape, dtype=np.int8)
        for i in range(start + 1, min(start + n_factors, w.shape[1])):
            product *= 1 + two_p * w[:, i, None]
            is_negative = product.imag < 0
            turns += is_negative != negative
            negative = is_negative
        np.negative(product, out=product, where=negative)
        total += np.log(product)
        total.imag += np.pi * turns
    return total


def _saddle(w: _Array, x: _Array) -> _Array:
    """Approximate the p > -1/2 at which ``sum w / (1 + 2 p w) = x``, for weights of maximum 1.

    The logarithm of q = 1 / (1 + 2 p), the largest term of the sum, is bisected 14 times; any path
    near the saddle point gives the tail.
    """
    low, high = x / w.shape[1], x
    for _ in range(14):
        q = np.sqrt(low) * np.sqrt(high)
        above = (w * q[:, None] / (w + (1 - w) * q[:, None])).sum(axis=1) > x
        low, high = np.where(above, low, q), np.where(above, q, high)
    return np.asarray(0.5 * (1 / q - 1))

r"""Effect of sampling noise on the pencil of two classes, from their spectra and sample numbers.

The eigenvalues of the sample pencil :math:`\hat C_i v = \lambda (\hat C_j + r I) v` of two classes
with equal distributions still reach well above 1. Their largest value is estimated for Gaussian
samples of many columns. Seen through the denominator, the population of the numerator's class has
the eigenvalues :math:`t_a = \tau_a / (l_a + r)`, with l the eigenvalues of :math:`\hat C_j` and tau
the variances of new samples of the class along its eigenvectors. The largest eigenvalue of n
samples from such a population tends to the edge of its limiting spectrum (Silverstein and Choi
1995),

.. math:: \min_{z > \max t} \; z + \frac{z}{n} \sum_a \frac{t_a}{z - t_a}

The larger edge of two estimates of tau is used: Ledoit and Wolf's analytical shrinkage (Annals of
Statistics 48, 2020, eq. 4.9) with more samples than columns; and l times the factor of
leave-one-out estimates, ``1 / (1 - tr(C (C + r I)^-1) / n)``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

__all__ = ["MARGIN", "auto_ridge", "discriminant_ridge", "noise_edge", "spread_error"]

_Array = npt.NDArray[np.float64]

_CANDIDATE_RIDGES = (0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)  # of "auto"
MARGIN = 1.2  # the largest eigenvalue scatters, and estimated edges are about 10% too small

_MAX_NOISE = 3.0  # eigenvalue that noise may reach with the ridge "auto"
_DISCRIMINANT_RIDGES = 10.0 ** np.arange(-5.0, 3.5, 0.5)  # candidates of `discriminant_ridge`
_DEFAULT_RIDGE = 1e-3  # if the spectrum or the weights allow no estimate
_MIN_FREEDOM = 1e-3  # least q, and least share of the squared distance that is not by chance
_TINY = 1e-12  # keeps divisors positive


def noise_edge(spectrum: _Array, ridge: float, below: float, above: float) -> float:
    """Estimate the largest eigenvalue of noise alone, at least 1.

    `spectrum` (d,) has the eigenvalues of the denominator without its absolute `ridge`, ascending;
    `below` and `above` are the numbers of samples of the denominator and of the numerator.
    """
    below, above = max(below, _TINY), max(above, _TINY)
    size = float(spectrum[-1]) or ridge
    if not spectrum[0] + ridge > 0:
        return float("inf")
    spectrum, regularised = spectrum / size, (spectrum + ridge) / size
    if not spectrum[-1] > 0:
        return 1.0
    freedom = float(np.sum(spectrum / regularised))
    held_out = 1.0 / max(1.0 - freedom / below, 1.0 / below)
    populations = [spectrum / regularised * held_out]
    if below > len(spectrum):
        populations.append(_shrunk(spectrum, below) / regularised)
    return max(1.0, *(_edge(t, above) for t in populations))


def _edge(population: _Array, n: float) -> float:
    """Upper edge of the spectrum of n samples from a population of these eigenvalues."""
    top = float(population.max())
    if not top > 0:
        return 0.0
    t = population / top
    low, high = np.log(1e-9), np.log(10.0 + 10.0 * float(t.sum()) / n)

    def at(step: float) -> float:
        z = 1.0 + np.exp(step)
        return float(z + z / n * np.sum(t / (z - t)))

    # The function is convex in z, so it has one minimum.
    return top * float(minimize_scalar(at, bounds=(low, high), method="bounded").fun)


def _shrunk(spectrum: _Array, n: float) -> _Array:
    """Ledoit and Wolf's analytical nonlinear shrinkage, for fewer eigenvalues than samples.

    The largest eigenvalue is 1.
    """
    share = len(spectrum) / n
    size = np.maximum(spectrum, _TINY)
    width = n ** (-1.0 / 3.0) * size
    x = (size[:, None] - size) / width
    root = np.sqrt(5.0)
    bump = 1.0 - x**2 / 5.0
    density = 3.0 / (4.0 * root) * np.mean(np.maximum(bump, 0.0) / width, axis=1)
    ends = np.abs(np.abs(x) - root) < 1e-9
    safe = np.where(ends, 0.0, x)
    logarithm = np.where(ends, 0.0, np.log(np.abs((root - safe) / (root + safe))))
    hilbert = -3.0 / (10.0 * np.pi) * x + 3.0 / (4.0 * root * np.pi) * bump * logarithm
    transform = np.mean(hilbert / width, axis=1)
    square = (np.pi * share * size * density) ** 2
    shrunk: _Array = size / (square + (1.0 - share - np.pi * share * size * transform) ** 2)
    return shrunk


def auto_ridge(spectrum: _Array, n: float) -> float:
    """Return the smallest ridge of .03 to 1 at which noise alone has no eigenvalue above 3.

    The ridge is relative to the mean of `spectrum`; both classes have n samples. Returns 1 if no
    ridge is large enough.
    """
    unit = float(spectrum.mean())
    if not unit > 0:
        return _CANDIDATE_RIDGES[0]
    found = (r for r in _CANDIDATE_RIDGES if noise_edge(spectrum, r * unit, n, n) <= _MAX_NOISE)
    return next(found, _CANDIDATE_RIDGES[-1])


def discriminant_ridge(
    values: _Array, between: _Array, n: float, n_classes: int, n_columns: int
) -> tuple[float, float]:
    """Return the ridge of linear discriminants, relative to the mean eigenvalue, and a scale.

    With S the covariance within classes and B that of the class means, the ridge is the geometric
    mean of two estimates. The first minimises the expected error of S plus ridge, up to a factor,
    as a covariance of Gaussian samples (Chen, Wiesel, Eldar and Hero 2010, eq. 23). The second
    maximises ``a^2 / v``, where a and v are the squared distance between class means and the
    variance of new samples in the discriminants, whose metric is ``A = (S + ridge I)^-1``:

        a = tr(B A) - (k - 1) / n tr(A S) / q,   v = tr(B A S A) / q^2,   q = 1 - tr(A S) / (n - k),

    with q as in generalised cross-validation. In the logits of Gaussian classes, the covariance of
    new samples is S plus ridge, times the scale ``v / a``.

    `values` (r,) are the eigenvalues of S, and `between` (r,) the diagonal of B in its
    eigenvectors. If n does not exceed the number of classes, the ridge is 1e-3.
    """
    trace, df, d = float(values.sum()), n - n_classes, float(n_columns)
    if not (df > 0 and trace > _TINY**2 * between.sum()):
        return _DEFAULT_RIDGE, 1.0
    values, between = np.maximum(values, 0.0) * d / trace, between * d / trace
    squares = float(values @ values)
    error = (1.0 - 2.0 / d) * squares + d * d
    spread = (df + 1.0 - 2.0 / d) * (squares - d)
    least, most = _DISCRIMINANT_RIDGES[0], _DISCRIMINANT_RIDGES[-1]
    of_covariance = error / max(spread - error, error / most) if error > 0 else least

    def distance_and_variance(ridge: float, least: float) -> tuple[float, float]:
        inverse = 1.0 / (values + ridge)
        freedom = float(values @ inverse)
        q = max(1.0 - freedom / df, least)
        distance, variance = float(between @ inverse), float((between * values) @ inverse**2)
        by_chance = (n_classes - 1.0) / n * freedom / q
        return max(distance - by_chance, least * distance), variance / q**2

    tried = [distance_and_variance(ridge, _TINY) for ridge in _DISCRIMINANT_RIDGES]
    ratios = [a * a / max(v, _TINY * a) if a > 0 else 0.0 for a, v in tried]
    ridge = of_covariance
    if max(ratios) > _TINY:
        ridge = float(np.sqrt(ridge * _DISCRIMINANT_RIDGES[np.argmax(ratios)]))
    distance, variance = distance_and_variance(ridge, _MIN_FREEDOM)
    return ridge, max(variance / max(distance, _TINY), 1.0 / (1.0 + ridge))


def spread_error(spectrum: _Array, n: float) -> float:
    """Estimate the spectral norm of the error of a second moment of n Gaussian samples.

    ``|C| (2 sqrt(r / n) + r / n)`` with the effective rank ``r = tr C / |C|`` (Koltchinskii and
    Lounici 2017); the factors hold for equal eigenvalues (Bai and Yin).
    """
    norm = float(spectrum[-1])
    if not norm > 0:
        return 0.0
    share = float(spectrum.sum()) / norm / n
    return norm * float(2.0 * np.sqrt(share) + share)

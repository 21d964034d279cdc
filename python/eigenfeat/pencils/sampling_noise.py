r"""What sampling noise does to the pencil of two classes, from their matrices and numbers of rows.

If two classes had one distribution, the eigenvalues of their sample pencil
:math:`\hat C_i v = \lambda (\hat C_j + r I) v` would still reach well above 1. Where they end is
estimated for Gaussian rows of many columns: the rows above are a sample whose population, seen
through the denominator, has the eigenvalues :math:`t_a = \tau_a / (l_a + r)`, with l the
eigenvalues of :math:`\hat C_j` and tau the variances that new rows of the class have along its
eigenvectors; and the largest eigenvalue of a sample of n rows from such a population tends to the
edge of its limiting spectrum (Silverstein and Choi 1995),

.. math:: \min_{z > \max t} \; z + \frac{z}{n} \sum_a \frac{t_a}{z - t_a}

Two estimates of tau serve, and the larger edge counts: Ledoit and Wolf's analytical shrinkage
(Annals of Statistics 48, 2020, eq. 4.9), where rows are more than columns; and l itself, times
what leaving out one row at a time shows, ``1 / (1 - tr(C (C + r I)^-1) / n)``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["MARGIN", "noise_edge", "quiet_ridge", "spread_error"]

_Array = npt.NDArray[np.float64]

_RIDGES = (0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
MARGIN = 1.2  # largest eigenvalues scatter, and estimated edges are some 10% too small

_QUIET = 3.0  # what noise may reach
_TINY = 1e-12


def noise_edge(spectrum: _Array, ridge: float, below: float, above: float) -> float:
    """Where eigenvalues end that noise alone would give, at least 1.

    `spectrum` (d,) has the eigenvalues of the denominator without its absolute `ridge`, ascending;
    `below` and `above` are the rows of the denominator and of the numerator.
    """
    below, above = max(below, _TINY), max(above, _TINY)
    size = float(spectrum[-1]) or ridge
    if not spectrum[0] + ridge > 0:
        return float("inf")
    spectrum, selected = spectrum / size, (spectrum + ridge) / size
    if not spectrum[-1] > 0:
        return 1.0
    freedom = float(np.sum(spectrum / selected))
    held_out = 1.0 / max(1.0 - freedom / below, 1.0 / below)
    populations = [spectrum / selected * held_out]
    if below > len(spectrum):
        populations.append(_shrunk(spectrum, below) / selected)
    return max(1.0, *(_edge(t, above) for t in populations))


def _edge(population: _Array, n: float) -> float:
    """Upper edge of the spectrum of a sample of n rows from a population of these eigenvalues."""
    top = float(population.max())
    if not top > 0:
        return 0.0
    t = population / top
    low, high = np.log(1e-9), np.log(10.0 + 10.0 * float(t.sum()) / n)

    def at(step: float) -> float:
        z = 1.0 + np.exp(step)
        return float(z + z / n * np.sum(t / (z - t)))

    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    for _ in range(40):  # golden section: the function is convex in z, so it has one minimum
        first, second = high - ratio * (high - low), low + ratio * (high - low)
        if at(first) < at(second):
            high = second
        else:
            low = first
    return top * at((low + high) / 2)


def _shrunk(spectrum: _Array, n: float) -> _Array:
    """Ledoit and Wolf's analytical nonlinear shrinkage, for fewer eigenvalues than rows.

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


def quiet_ridge(spectrum: _Array, rows: float) -> float:
    """Smallest ridge, of .03 to 1, with which noise alone would give no eigenvalue above 3.

    Relative to the mean of `spectrum`; as many rows above as below. 1 if none is large enough.
    """
    unit = float(spectrum.mean())
    if not unit > 0:
        return _RIDGES[0]
    quiet = (r for r in _RIDGES if noise_edge(spectrum, r * unit, rows, rows) <= _QUIET)
    return next(quiet, _RIDGES[-1])


def spread_error(spectrum: _Array, n: float) -> float:
    """Spectral norm of what n Gaussian rows miss a second moment of this spectrum by, about.

    ``|C| (2 sqrt(r / n) + r / n)`` with the effective rank ``r = tr C / |C|`` (Koltchinskii and
    Lounici 2017); the factors are those of equal eigenvalues (Bai and Yin).
    """
    norm = float(spectrum[-1])
    if not norm > 0:
        return 0.0
    share = float(spectrum.sum()) / norm / n
    return norm * float(2.0 * np.sqrt(share) + share)

"""Sets that hold the complete row with a given probability (Parrish 2012, section 5.2).

Each is a ball or a box in units of standard deviations about the conditional mean; its radius
belongs to a reliability tau and to the number of degrees of freedom, which is that of the entries
not yet known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, chdtri, ndtr, ndtri

__all__ = ["SETS", "BoxSet", "ChebyshevSet", "ConfidenceSet", "QuadraticSet"]

_Array = NDArray[np.float64]

LIMIT = 1e150  # a radius that is as good as infinite


class ConfidenceSet(ABC):
    """A kind of sets about the conditional mean.

    Attributes
    ----------
    shape : {"ball", "box"}
    full_covariance : bool
        Whether the units are those of the whole covariance, or of each variance.
    """

    shape = "ball"
    full_covariance = False

    @abstractmethod
    def radius(self, tau: Any, degrees: Any) -> _Array:
        """The radius at which the set has probability tau; 0 without degrees of freedom."""

    @abstractmethod
    def reliability(self, radius: Any, degrees: Any) -> _Array:
        """The probability that belongs to a radius; 1 without degrees of freedom."""


class ChebyshevSet(ConfidenceSet):
    """``(x - m)^T R^-1 (x - m) <= ell / (1 - tau)``, whatever the distribution (5.3)."""

    full_covariance = True

    def radius(self, tau: Any, degrees: Any) -> _Array:
        """See `ConfidenceSet`."""
        with np.errstate(divide="ignore"):
            square = np.asarray(degrees, dtype=float) / (1.0 - np.asarray(tau, dtype=float))
        return _limited(np.sqrt(square), degrees)

    def reliability(self, radius: Any, degrees: Any) -> _Array:
        """See `ConfidenceSet`; 0 where the inequality says nothing."""
        with np.errstate(divide="ignore", invalid="ignore"):
            tau = 1.0 - np.asarray(degrees, dtype=float) / np.square(radius)
        return np.where(np.asarray(degrees) == 0, 1.0, np.maximum(tau, 0.0))


class QuadraticSet(ConfidenceSet):
    """``sum_i (x_i - m_i)^2 / R_ii`` up to the chi-square quantile of tau (5.4)."""

    def radius(self, tau: Any, degrees: Any) -> _Array:
        """See `ConfidenceSet`."""
        count = np.maximum(np.asarray(degrees, dtype=float), 1.0)
        with np.errstate(divide="ignore"):
            return _limited(np.sqrt(chdtri(count, 1.0 - np.asarray(tau, dtype=float))), degrees)

    def reliability(self, radius: Any, degrees: Any) -> _Array:
        """See `ConfidenceSet`."""
        count = np.maximum(np.asarray(degrees, dtype=float), 1.0)
        return np.where(np.asarray(degrees) == 0, 1.0, chdtr(count, np.square(radius)))


class BoxSet(ConfidenceSet):
    """``|x_i - m_i| <= z sqrt(R_ii)``, tau^(1/ell) for each entry (5.5)."""

    shape = "box"

    def radius(self, tau: Any, degrees: Any) -> _Array:
        """See `ConfidenceSet`."""
        count = np.maximum(np.asarray(degrees, dtype=float), 1.0)
        each = np.asarray(tau, dtype=float) ** (1.0 / count)
        return _limited(-ndtri(0.5 * (1.0 - each)), degrees)

    def reliability(self, radius: Any, degrees: Any) -> _Array:
        """See `ConfidenceSet`."""
        each = 1.0 - 2.0 * ndtr(-np.asarray(radius, dtype=float))
        return np.where(np.asarray(degrees) == 0, 1.0, each ** np.asarray(degrees, dtype=float))


def _limited(radius: Any, degrees: Any) -> _Array:
    return np.where(np.asarray(degrees) == 0, 0.0, np.minimum(radius, LIMIT))


SETS: dict[str, ConfidenceSet] = {
    "chebyshev": ChebyshevSet(),
    "quadratic": QuadraticSet(),
    "box": BoxSet(),
}

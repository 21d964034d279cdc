r"""Sets that hold the complete row with a given probability (Parrish 2012, section 5.2).

Each is a ball or a box in units of standard deviations about the conditional mean; its radius
belongs to a reliability tau and to what is known of the distribution. What each rests on:

- "chebyshev": Chebyshev's inequality in several dimensions, for whatever distribution;
- "quadratic": the distribution of a weighted sum of chi-squares, for Gaussians of any correlation;
- "mahalanobis": the chi-square distribution, for Gaussians of any correlation;
- "box": Sidak's inequality, for Gaussians of any correlation. Where each pair of classes has a box
  of its own, in axes of its own, Royen's Gaussian correlation inequality takes them together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, chdtri, ndtr, ndtri

from eigenfeat.incomplete._completion.chi_squares import bounded_quantile, bounded_tail, quantile
from eigenfeat.incomplete._completion.chi_squares import tails as chi_squares_tails

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from eigenfeat.incomplete._completion.conditional import Spectra

__all__ = ["SETS", "BoxSet", "ChebyshevSet", "ConfidenceSet", "MahalanobisSet", "QuadraticSet"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

LIMIT = 1e150  # a radius that is as good as infinite


class ConfidenceSet(ABC):
    """A kind of sets about the conditional mean.

    Attributes
    ----------
    shape : {"ball", "box"}
    full_covariance : bool
        Whether the units are those of the whole covariance, or of each variance.
    by_spectra : bool
        Whether radii depend on the eigenvalues of the correlation.
    any_distribution : bool
        Whether nothing is supposed of the distribution but its mean and covariance.
    """

    shape = "ball"
    full_covariance = False
    by_spectra = False
    any_distribution = False

    @abstractmethod
    def radius(
        self,
        tau: ArrayLike,
        degrees: ArrayLike,
        spectra: Spectra | None = None,
        pattern: NDArray[np.intp] | None = None,
    ) -> _Array:
        """The radius at which the set has probability tau; 0 without degrees of freedom.

        Parameters
        ----------
        tau : (n,) array
        degrees : (n,) array of int
            Components with a variance, or a bound of the covariance's rank.
        spectra : Spectra, optional
            Of single Gaussians; without it components count as uncorrelated.
        pattern : (n,) array of int
            Which of the spectra is meant.
        """

    @abstractmethod
    def reliability(
        self,
        radius: ArrayLike,
        degrees: ArrayLike,
        spectra: Spectra | None = None,
        pattern: NDArray[np.intp] | None = None,
    ) -> _Array:
        """The probability that belongs to a radius; 1 without degrees of freedom."""


class ChebyshevSet(ConfidenceSet):
    """``(x - m)^T R^-1 (x - m) <= ell / (1 - tau)``, whatever the distribution (5.3)."""

    full_covariance = True
    any_distribution = True

    def radius(
        self,
        tau: ArrayLike,
        degrees: ArrayLike,
        spectra: Spectra | None = None,
        pattern: NDArray[np.intp] | None = None,
    ) -> _Array:
        """See `ConfidenceSet`."""
        with np.errstate(divide="ignore"):
            square = np.asarray(degrees, dtype=float) / (1.0 - np.asarray(tau, dtype=float))
        return _limited(np.sqrt(square), degrees)

    def reliability(
        self,
        radius: ArrayLike,
        degrees: ArrayLike,
        spectra: Spectra | None = None,
        pattern: NDArray[np.intp] | None = None,
    ) -> _Array:
        """See `ConfidenceSet`; 0 where the inequality says nothing."""
        with np.errstate(divide="ignore", invalid="ignore"):
            tau = 1.0 - np.asarray(degrees, dtype=float) / np.square(radius)
        return np.where(np.asarray(degrees) == 0, 1.0, np.maximum(tau, 0.0))


class MahalanobisSet(ConfidenceSet):
    """``(x - m)^T R^-1 (x - m)`` up to the chi-square quantile of tau, exact for Gaussians."""

    full_covariance = True

    def radius(
        self,
        tau: ArrayLike,
        degrees: ArrayLike,
        spectra: Spectra | None = None,
        pattern: NDArray[np.intp] | None = None,
    ) -> _Array:
        """See `ConfidenceSet`."""
        count = np.maximum(np.asarray(degrees, dtype=float), 1.0)
        with np.errstate(divide="ignore"):
            return _limited(np.sqrt(chdtri(count, 1.0 - np.asarray(tau, dtype=float))), degrees)

    def reliability(
        self,
        radius: ArrayLike,
        degrees: ArrayLike,
        spectra: Spectra | None = None,
        pattern: NDArray[np.intp] | None = None,
    ) -> _Array:
        """See `ConfidenceSet`."""
        count = np.maximum(np.asarray(degrees, dtype=float), 1.0)
        return np.where(np.asarray(degrees) == 0, 1.0, chdtr(count, np.square(radius)))


class QuadraticSet(MahalanobisSet):
    """``sum_i (x_i - m_i)^2 / R_ii`` up to its quantile of tau (5.4).

    The sum is one of chi-squares weighted by the eigenvalues of the conditional correlation, whose
    quantile is computed, or bounded where there are no eigenvalues. Without spectra it is the
    thesis's chi-square, which holds for uncorrelated components alone.
    """

    full_covariance = False
    by_spectra = True

    def radius(
        self,
        tau: ArrayLike,
        degrees: ArrayLike,
        spectra: Spectra | None = None,
        pattern: NDArray[np.intp] | None = None,
    ) -> _Array:
        """See `ConfidenceSet`."""
        if spectra is None or pattern is None:
            return super().radius(tau, degrees)
        level = 1.0 - np.asarray(tau, dtype=float)
        levels, at_level = np.unique(np.broadcast_to(level, np.shape(pattern)), return_inverse=True)
        keys, back = np.unique(pattern * len(levels) + at_level, return_inverse=True)
        at, level = keys // len(levels), levels[keys % len(levels)]
        if spectra.values is None:
            square = bounded_quantile(spectra.moments[at, 0], level)
        else:
            square = quantile(spectra.values[at, 0], level)
        return _limited(np.sqrt(square)[back], degrees)

    def reliability(
        self,
        radius: ArrayLike,
        degrees: ArrayLike,
        spectra: Spectra | None = None,
        pattern: NDArray[np.intp] | None = None,
    ) -> _Array:
        """See `ConfidenceSet`."""
        if spectra is None or pattern is None:
            return super().reliability(radius, degrees)
        square = np.square(radius)
        if spectra.values is None:
            above = bounded_tail(spectra.moments[pattern, 0], square)
        else:
            above = chi_squares_tails(spectra.values[:, 0], pattern, square)
        return np.where(np.asarray(degrees) == 0, 1.0, 1.0 - above)


class BoxSet(ConfidenceSet):
    """``|x_i - m_i| <= z sqrt(R_ii)``, tau^(1/ell) for each entry (5.5).

    Sidak's inequality makes the probability at least tau for Gaussians of any correlation.
    """

    shape = "box"

    def radius(
        self,
        tau: ArrayLike,
        degrees: ArrayLike,
        spectra: Spectra | None = None,
        pattern: NDArray[np.intp] | None = None,
    ) -> _Array:
        """See `ConfidenceSet`."""
        count = np.maximum(np.asarray(degrees, dtype=float), 1.0)
        each = np.asarray(tau, dtype=float) ** (1.0 / count)
        return _limited(-ndtri(0.5 * (1.0 - each)), degrees)

    def reliability(
        self,
        radius: ArrayLike,
        degrees: ArrayLike,
        spectra: Spectra | None = None,
        pattern: NDArray[np.intp] | None = None,
    ) -> _Array:
        """See `ConfidenceSet`."""
        each = 1.0 - 2.0 * ndtr(-np.asarray(radius, dtype=float))
        return np.where(np.asarray(degrees) == 0, 1.0, each ** np.asarray(degrees, dtype=float))


def _limited(radius: Any, degrees: Any) -> _Array:
    return np.where(np.asarray(degrees) == 0, 0.0, np.minimum(radius, LIMIT))


SETS: dict[str, ConfidenceSet] = {
    "chebyshev": ChebyshevSet(),
    "mahalanobis": MahalanobisSet(),
    "quadratic": QuadraticSet(),
    "box": BoxSet(),
}

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
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, chdtri, ndtr, ndtri

from eigenfeat._base.saved import Saved
from eigenfeat.incomplete.chi_squares import bounded_quantile, bounded_tail, quantile
from eigenfeat.incomplete.chi_squares import tails as chi_squares_tails

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from eigenfeat.incomplete.mixture import Spectra

__all__ = ["SETS", "BoxSet", "ChebyshevSet", "ConfidenceSet", "MahalanobisSet", "QuadraticSet"]

_Array = NDArray[np.float64]

LIMIT = 1e150  # a radius that is as good as infinite


class ConfidenceSet(Saved, ABC):
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

    _saved: ClassVar[dict[str, str]] = {}

    shape = "ball"
    full_covariance = False
    by_spectra = False
    any_distribution = False

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
        asked, count = np.asarray(tau, dtype=float), np.asarray(degrees, dtype=float)
        if self.by_spectra and spectra is not None and pattern is not None:
            radius = _weighted_radius(asked, spectra, pattern)
        else:
            with np.errstate(divide="ignore"):
                radius = self._radius(asked, count)
        return np.where(count == 0, 0.0, np.minimum(radius, LIMIT))

    def reliability(
        self,
        radius: ArrayLike,
        degrees: ArrayLike,
        spectra: Spectra | None = None,
        pattern: NDArray[np.intp] | None = None,
    ) -> _Array:
        """The probability that belongs to a radius; 1 without degrees of freedom."""
        given, count = np.asarray(radius, dtype=float), np.asarray(degrees, dtype=float)
        if self.by_spectra and spectra is not None and pattern is not None:
            tau = _weighted_reliability(given, spectra, pattern)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                tau = self._reliability(given, count)
        return np.where(count == 0, 1.0, tau)

    @abstractmethod
    def _radius(self, tau: _Array, degrees: _Array) -> _Array:
        """The radius with degrees of freedom, of components that are uncorrelated or whitened."""

    @abstractmethod
    def _reliability(self, radius: _Array, degrees: _Array) -> _Array:
        """Its inverse."""


class ChebyshevSet(ConfidenceSet):
    """``(x - m)^T R^-1 (x - m) <= ell / (1 - tau)``, whatever the distribution (5.3).

    ell is the rank of R or a bound of it (`RuleInput.degrees`): for linear discriminants
    min(missing entries, classes - 1), the dimension of the differences of scores, and not d.

    The right choice for completions far from Gaussian: without a correction none of 21 sets is
    below a tau of .99 or less, at the price of deciding later than "mahalanobis".
    """

    full_covariance = True
    any_distribution = True

    def _radius(self, tau: _Array, degrees: _Array) -> _Array:
        return np.sqrt(degrees / (1.0 - tau))

    def _reliability(self, radius: _Array, degrees: _Array) -> _Array:
        # 0 where the inequality says nothing.
        return np.maximum(1.0 - degrees / np.square(radius), 0.0)


class MahalanobisSet(ConfidenceSet):
    """``(x - m)^T R^-1 (x - m)`` up to the chi-square quantile of tau, exact for Gaussians.

    The right choice for linear discriminants without a correction and with few samples: at a tau
    of .95 one of 21 sets is below it, with the pairwise rule seven.
    """

    full_covariance = True

    def _radius(self, tau: _Array, degrees: _Array) -> _Array:
        return np.sqrt(chdtri(np.maximum(degrees, 1.0), 1.0 - tau))

    def _reliability(self, radius: _Array, degrees: _Array) -> _Array:
        return np.asarray(chdtr(np.maximum(degrees, 1.0), np.square(radius)))


class QuadraticSet(MahalanobisSet):
    """``sum_i (x_i - m_i)^2 / R_ii`` up to its quantile of tau (5.4).

    The sum is one of chi-squares weighted by the eigenvalues of the conditional correlation, whose
    quantile is computed, or bounded where there are no eigenvalues. Without spectra it is the
    thesis's chi-square, which holds for uncorrelated components alone.

    The right choice for quadratic discriminants: on 21 sets naive Bayes and local QDA decide
    earlier than with boxes at every tau, and its checks are separable.
    """

    full_covariance = False
    by_spectra = True


class BoxSet(ConfidenceSet):
    """``|x_i - m_i| <= z sqrt(R_ii)``, tau^(1/ell) for each entry (5.5).

    Sidak's inequality makes the probability at least tau for Gaussians of any correlation. ell
    counts the components with a variance, q; quadratic discriminants, whose pairs have boxes in
    axes of their own, need (classes - 1) q intervals at once (Royen).

    The right choice for a tau of .999 without a correction: with LDA none of 21 sets is below it,
    and decisions come earlier than with Chebyshev's sets.
    """

    shape = "box"

    def _radius(self, tau: _Array, degrees: _Array) -> _Array:
        each = tau ** (1.0 / np.maximum(degrees, 1.0))
        return np.asarray(-ndtri(0.5 * (1.0 - each)))

    def _reliability(self, radius: _Array, degrees: _Array) -> _Array:
        return np.asarray((1.0 - 2.0 * ndtr(-radius)) ** degrees)


def _weighted_radius(tau: _Array, spectra: Spectra, pattern: NDArray[np.intp]) -> _Array:
    """Roots of quantiles of weighted chi-squares, each once for equal spectra and levels."""
    levels, at_level = np.unique(np.broadcast_to(1.0 - tau, np.shape(pattern)), return_inverse=True)
    keys, back = np.unique(pattern * len(levels) + at_level, return_inverse=True)
    at, level = keys // len(levels), levels[keys % len(levels)]
    if spectra.values is None:
        square = bounded_quantile(spectra.moments[at, 0], level)
    else:
        square = quantile(spectra.values[at, 0], level)
    return np.asarray(np.sqrt(square)[back])


def _weighted_reliability(radius: _Array, spectra: Spectra, pattern: NDArray[np.intp]) -> _Array:
    if spectra.values is None:
        above = bounded_tail(spectra.moments[pattern, 0], np.square(radius))
    else:
        above = chi_squares_tails(spectra.values[:, 0], pattern, np.square(radius))
    return 1.0 - above


SETS: dict[str, ConfidenceSet] = {
    "chebyshev": ChebyshevSet(),
    "mahalanobis": MahalanobisSet(),
    "quadratic": QuadraticSet(),
    "box": BoxSet(),
}

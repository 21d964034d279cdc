"""Conditional distributions of complete rows, or of their features, given incomplete rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Codes

if TYPE_CHECKING:
    from eigenfeat.regions.prefix_gaussian import PrefixGaussian

__all__ = ["Conditional", "PrefixConditional", "Spectra", "mixed"]

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spectra:
    """Eigenvalues of the correlations given what is known, by pattern and part of a mixture.

    Attributes
    ----------
    values : (q, G, ell) array or None
        Ascending; zeros stand for components without variance. None where there are too many.
    moments : (q, G, 3) array
        Their sum, Euclidean length and largest (or a bound of it).
    """

    values: _Array | None
    moments: _Array

    def part(self, g: int) -> Spectra:
        """Of one part alone."""
        values = None if self.values is None else self.values[:, g : g + 1]
        return Spectra(values, self.moments[:, g : g + 1])


@dataclass(frozen=True, eq=False)
class Conditional:
    """Conditional distributions of n rows: each a Gaussian, or a mixture of G Gaussians.

    Rows with the same entries missing share covariances: those of row i are at ``pattern[i]``.

    Attributes
    ----------
    weights : (n, G) array
        p(g | z); ones for a single Gaussian, G = 1.
    means : (n, G, ell) array
        Conditional means.
    variances : (q, G, ell) array
        Diagonals of the covariances.
    covariances : (q, G, ell, ell) array or None
        Conditional covariances, if requested.
    pattern : (n,) array of int
        Index of the pattern of missing entries of each row.
    missing : (q,) array of int
        Number of missing entries in each pattern.
    spectra : Spectra or None
        Spectra of the correlations, where they are needed.
    gaussians : list or None
        For each pattern, the factorised Gaussians of the parts and the number of their leading
        entries that are conditioned on, for drawing completions.
    """

    weights: _Array
    means: _Array
    variances: _Array
    covariances: _Array | None
    pattern: NDArray[np.intp]
    missing: NDArray[np.intp]
    spectra: Spectra | None = None
    gaussians: list[tuple[list[PrefixGaussian], int]] | None = None

    def part(self, g: int, rows: Codes) -> Conditional:
        """Return one Gaussian of the mixture, for some of the rows."""
        return Conditional(
            np.ones((len(rows), 1)),
            self.means[rows, g : g + 1],
            self.variances[:, g : g + 1],
            None if self.covariances is None else self.covariances[:, g : g + 1],
            self.pattern[rows],
            self.missing,
            None if self.spectra is None else self.spectra.part(g),
        )

    @property
    def mean(self) -> _Array:
        """(n, ell): E[Y | z]."""
        if self.means.shape[1] == 1:
            return self.means[:, 0]
        return np.asarray(np.einsum("ng,ngi->ni", self.weights, self.means))

    @property
    def variance(self) -> _Array:
        """(n, ell): the variances of Y given z, including those between a mixture's parts."""
        within = self.variances[self.pattern]
        if self.means.shape[1] == 1:
            return within[:, 0]
        apart = self.means - self.mean[:, None]
        return np.asarray(np.einsum("ng,ngi->ni", self.weights, within + apart**2))

    @property
    def covariance(self) -> _Array:
        """(n, ell, ell): the covariance of Y given z (Parrish 2012, Appendix C).

        Raises
        ------
        ValueError
            If covariances were not requested.
        """
        if self.covariances is None:
            raise ValueError("covariance: expected covariances that were asked for, got none")
        within = self.covariances[self.pattern]
        return mixed(self.weights, self.means, within)


def mixed(weights: _Array, means: _Array, covariances: _Array) -> _Array:
    """Covariances (n, ell, ell) of mixtures: sum_g p_g (R_g + (m_g - m)(m_g - m)^T)."""
    if means.shape[1] == 1:
        return covariances[:, 0]
    mean = np.einsum("ng,ngi->ni", weights, means)
    apart = means - mean[:, None]
    between = np.einsum("ng,ngi,ngj->nij", weights, apart, apart)
    return np.asarray(np.einsum("ng,ngij->nij", weights, covariances) + between)


@dataclass(frozen=True, eq=False)
class PrefixConditional:
    """Conditional distributions of n rows after each of p numbers of samples.

    Attributes
    ----------
    steps : (p,) array of int
        Numbers of known leading entries.
    weights : (n, p, G) array
        p(g | z_1..t).
    means : (n, p, G, ell) array
    variances : (p, G, ell) array
    covariances : (p, G, ell, ell) array or None
        Conditional covariances, which are the same for all rows.
    spectra : Spectra or None
        Spectra of the correlations, where they are needed.
    gaussians : list or None
        As in `Conditional`, for each step.
    """

    steps: NDArray[np.int64]
    weights: _Array
    means: _Array
    variances: _Array
    covariances: _Array | None
    spectra: Spectra | None = None
    gaussians: list[tuple[list[PrefixGaussian], int]] | None = None

    def at(
        self, k: int, rows: Codes | NDArray[np.bool_] | slice = slice(None), n_columns: int = 0
    ) -> Conditional:
        """Return the distributions after ``steps[k]`` samples, for some of the rows."""
        means = np.ascontiguousarray(self.means[rows, k])
        return Conditional(
            weights=self.weights[rows, k],
            means=means,
            variances=self.variances[k : k + 1],
            covariances=None if self.covariances is None else self.covariances[k : k + 1],
            pattern=np.zeros(len(means), dtype=np.intp),
            missing=np.array([n_columns - self.steps[k]], dtype=np.intp),
        )

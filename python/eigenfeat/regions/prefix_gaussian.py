"""Conditional Gaussians given the first entries, from one Cholesky factor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.core import core

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_Float64s = npt.NDArray[np.float64]
MAX_EIGENVALUES = 512  # with more features, eigenvalues are bounded instead of computed


@dataclass(frozen=True, eq=False)
class PrefixGaussian:
    """x ~ N(mean, L L^T) with permuted entries, and its features ``y = B^T x + b``.

    Given the first t permuted entries of x, y is Gaussian with mean
    ``feature_mean + gains[:t].T @ e`` and covariance ``gains[t:].T @ gains[t:]``, where ``e`` are
    innovations and ``gains = L^T B`` (Parrish 2012, (5.19); see prefix_gaussian.hpp).
    """

    factor: _Float64s  # (d, d) L, the Cholesky factor of the permuted covariance
    mean: _Float64s  # (d,) permuted
    gains: _Float64s  # (d, ell)
    feature_mean: _Float64s  # (ell,) mean of y
    n_threads: int
    _spectra: dict[int, _Float64s] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        mean: _Float64s,
        covariance: _Float64s,
        order: npt.NDArray[np.intp],
        n_threads: int,
    ) -> PrefixGaussian:
        """Factorise the covariance with its entries permuted by `order`; the features are y = x.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the covariance is not positive definite to working precision.
        """
        permuted = np.ascontiguousarray(covariance[np.ix_(order, order)])
        factor = core.factorise_covariance(permuted)
        if factor is None:
            raise np.linalg.LinAlgError(
                "ridge: expected a number that makes covariances positive definite, got less"
            )
        gains = np.empty_like(factor)
        gains[:, order] = factor.T
        return cls(factor, mean[order], gains, np.ascontiguousarray(mean), n_threads)

    def with_features(
        self, B: _Float64s, feature_mean: _Float64s, order: npt.NDArray[np.intp]
    ) -> PrefixGaussian:
        """This Gaussian with the features of B (d, ell), whose rows are in the order of x."""
        gains = core.prefix_gains(self.factor, np.ascontiguousarray(B[order]), self.n_threads)
        return replace(self, gains=gains, feature_mean=np.ascontiguousarray(feature_mean))

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, including the tables of variances and eigenvalues."""
        return int(self.factor.nbytes + 3 * self.gains.nbytes)

    def innovations(self, rows: _Float64s, t: int) -> _Float64s:
        """Innovations (n, t) of the first t entries of permuted samples (n, d)."""
        rows = np.ascontiguousarray(rows)
        return core.prefix_innovations(self.factor, self.mean, rows, t, self.n_threads)

    def further_innovations(self, innovations: _Float64s, entries: _Float64s) -> _Float64s:
        """Innovations (n, t - s) of entries s to t - 1, given those (n, s) of the first s."""
        s, t = innovations.shape[1], innovations.shape[1] + entries.shape[1]
        rest = entries - np.einsum("ns,ts->nt", innovations, self.factor[s:t, :s])
        block = np.ascontiguousarray(self.factor[s:t, s:t])
        return core.prefix_innovations(block, self.mean[s:t], rest, t - s, self.n_threads)

    def means(self, innovations: _Float64s, steps: ArrayLike) -> _Float64s:
        """Feature means (n, p, ell) after each of `steps` entries."""
        at = _steps(steps)
        return core.prefix_means(self.gains, self.feature_mean, innovations, at, self.n_threads)

    def log_densities(self, innovations: _Float64s, steps: ArrayLike) -> _Float64s:
        """Log densities (n, p) of the first entries."""
        return core.prefix_log_densities(self.factor, innovations, _steps(steps), self.n_threads)

    @cached_property
    def variance_table(self) -> _Float64s:
        """Variances (d + 1, ell) after any number of entries, computed once."""
        return self.variances(np.arange(len(self.mean) + 1))

    def correlation_spectrum(self, t: int) -> _Float64s:
        """Eigenvalues (ell,) of the features' correlation given t entries, ascending, cached.

        Features without variance have eigenvalue 0. With more than `MAX_EIGENVALUES` features: the
        sum, the Euclidean norm and an upper bound of the eigenvalues, (3,).
        """
        if t not in self._spectra:
            columns = np.flatnonzero(self.variance_table[t] > 0)
            covariance = self.covariances(t)[0][np.ix_(columns, columns)]
            spread = np.sqrt(np.diagonal(covariance))
            self._spectra[t] = self._spectrum(covariance / spread[:, None] / spread)
        return self._spectra[t]

    def _spectrum(self, correlation: _Float64s) -> _Float64s:
        """Like `correlation_spectrum`, for the correlation of the features that vary."""
        if len(self.feature_mean) > MAX_EIGENVALUES:
            norm = np.sqrt((correlation**2).sum())
            rows = np.abs(correlation).sum(axis=1).max(initial=0.0)  # Gershgorin
            return np.array([len(correlation), norm, min(norm, rows)])
        values = np.zeros(len(self.feature_mean))
        values[len(values) - len(correlation) :] = np.linalg.eigvalsh(correlation)
        return np.maximum(values, 0.0)

    def covariances(self, steps: ArrayLike) -> _Float64s:
        """Feature covariances (p, ell, ell)."""
        return core.prefix_covariances(self.gains, _steps(steps), self.n_threads)

    def variances(self, steps: ArrayLike) -> _Float64s:
        """Feature variances (p, ell)."""
        return core.prefix_variances(self.gains, _steps(steps))


def _steps(steps: Any) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(np.atleast_1d(steps), dtype=np.int64)

"""Conditional Gaussians given the first entries, from one Cholesky factor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.core import core

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["PrefixGaussian"]

_Float64s = npt.NDArray[np.float64]


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

    @classmethod
    def of(
        cls,
        mean: _Float64s,
        covariance: _Float64s,
        order: npt.NDArray[np.intp],
        n_threads: int,
    ) -> PrefixGaussian:
        """Factorise the covariance with its entries in an order; the features are y = x.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the covariance is not positive definite to working precision.
        """
        permuted = np.ascontiguousarray(covariance[np.ix_(order, order)])
        factor, positive = core.factorise_covariance(permuted)
        if not positive:
            raise np.linalg.LinAlgError(
                "ridge: expected one that makes covariances positive definite, got a smaller one"
            )
        gains = np.empty_like(factor)
        gains[:, order] = factor.T
        return cls(factor, mean[order], gains, np.ascontiguousarray(mean), n_threads)

    def with_features(
        self, B: _Float64s, feature_mean: _Float64s, order: npt.NDArray[np.intp]
    ) -> PrefixGaussian:
        """This Gaussian with other features, of B (d, ell) in the order of x."""
        gains = core.prefix_gains(self.factor, np.ascontiguousarray(B[order]), self.n_threads)
        return replace(self, gains=gains, feature_mean=np.ascontiguousarray(feature_mean))

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, including the tables of variances and eigenvalues."""
        return int(self.factor.nbytes + 3 * self.gains.nbytes)

    def innovations(self, rows: _Float64s, t: int) -> _Float64s:
        """Innovations (n, t) of permuted samples; entries from t on are not read."""
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

    def correlation_eigenvalues(self, t: int) -> _Float64s:
        """Eigenvalues (ell,) of the features' correlation given t entries, ascending, cached.

        Features without variance have eigenvalue 0.
        """
        if t not in self._eigenvalues:
            correlation = self._correlation(t)
            values = np.zeros(len(self.feature_mean))
            values[len(values) - len(correlation) :] = np.linalg.eigvalsh(correlation)
            self._eigenvalues[t] = np.maximum(values, 0.0)
        return self._eigenvalues[t]

    def correlation_moments(self, t: int) -> _Float64s:
        """Sum, Euclidean norm and an upper bound (3,) of the correlation's eigenvalues."""
        if t not in self._moments:
            correlation = self._correlation(t)
            norm = np.sqrt((correlation**2).sum())
            rows = np.abs(correlation).sum(axis=1).max(initial=0.0)  # Gershgorin
            self._moments[t] = np.array([len(correlation), norm, min(norm, rows)])
        return self._moments[t]

    @cached_property
    def _eigenvalues(self) -> dict[int, _Float64s]:
        return {}

    @cached_property
    def _moments(self) -> dict[int, _Float64s]:
        return {}

    def _correlation(self, t: int) -> _Float64s:
        """Correlation of the features that vary given t entries."""
        columns = np.flatnonzero(self.variance_table[t] > 0)
        covariance = self.covariances(t)[0][np.ix_(columns, columns)]
        spread = np.sqrt(np.diagonal(covariance))
        return np.asarray(covariance / spread[:, None] / spread)

    def covariances(self, steps: ArrayLike) -> _Float64s:
        """Feature covariances (p, ell, ell)."""
        return core.prefix_covariances(self.gains, _steps(steps), self.n_threads)

    def variances(self, steps: ArrayLike) -> _Float64s:
        """Feature variances (p, ell)."""
        return core.prefix_variances(self.gains, _steps(steps))


def _steps(steps: Any) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(np.atleast_1d(steps), dtype=np.int64)

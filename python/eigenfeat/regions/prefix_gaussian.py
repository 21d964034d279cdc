"""Nested conditional Gaussians: one Cholesky factor, and everything that prefixes need of it."""

from __future__ import annotations

from dataclasses import dataclass
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
    """x ~ N(mean, L L^T) in some order of its entries, and features ``y = B^T x + b`` of it.

    Given the first t entries of x in that order, y is Gaussian with mean
    ``feature_mean + gains[:t].T @ e`` and covariance ``gains[t:].T @ gains[t:]``, where ``e`` are
    innovations and ``gains = L^T B`` (Parrish 2012, (5.19); see prefix_gaussian.hpp).

    Attributes
    ----------
    factor : (d, d) array
        L, of the permuted covariance.
    mean : (d,) array
        Permuted.
    gains : (d, ell) array
    feature_mean : (ell,) array
    """

    factor: _Float64s
    mean: _Float64s
    gains: _Float64s
    feature_mean: _Float64s
    n_threads: int

    @classmethod
    def of(
        cls,
        mean: _Float64s,
        covariance: _Float64s,
        features: tuple[_Float64s, _Float64s] | None,
        order: npt.NDArray[np.intp] | None,
        n_threads: int,
    ) -> PrefixGaussian | None:
        """Factorise; None where the covariance is not positive definite to working precision.

        `features` are B (d, ell) and b (ell,), in the order of x; None means ``y = x``.
        """
        feature_mean = mean if features is None else _affine(features, mean)
        if order is not None:
            covariance = covariance[np.ix_(order, order)]
            mean = mean[order]
        factor, positive = core.factorise_covariance(np.ascontiguousarray(covariance))
        if not positive:
            return None
        model = cls(factor, np.ascontiguousarray(mean), factor.T, feature_mean, n_threads)
        if features is not None:
            return model.with_features(features[0], feature_mean, order)
        gains = np.empty_like(factor)
        gains[:, slice(None) if order is None else order] = factor.T
        return model.with_gains(gains, feature_mean)

    def with_features(
        self,
        B: _Float64s,
        feature_mean: _Float64s,
        order: npt.NDArray[np.intp] | None = None,
    ) -> PrefixGaussian:
        """The same Gaussian with other features."""
        columns = np.ascontiguousarray(B if order is None else B[order])
        gains = core.prefix_gains(self.factor, columns, self.n_threads)
        return self.with_gains(gains, feature_mean)

    def with_gains(self, gains: _Float64s, feature_mean: _Float64s) -> PrefixGaussian:
        """The same Gaussian with gains that are known."""
        mean = np.ascontiguousarray(feature_mean)
        return PrefixGaussian(self.factor, self.mean, gains, mean, self.n_threads)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, the tables of variances and eigenvalues among them."""
        return int(self.factor.nbytes + 3 * self.gains.nbytes)

    def innovations(self, rows: _Float64s, t: int) -> _Float64s:
        """(n, t) innovations of permuted rows; entries from t on are not read."""
        rows = np.ascontiguousarray(rows)
        return core.prefix_innovations(self.factor, self.mean, rows, t, self.n_threads)

    def means(self, innovations: _Float64s, steps: ArrayLike) -> _Float64s:
        """(n, p, ell) feature means after each of `steps` entries."""
        at = _steps(steps)
        return core.prefix_means(self.gains, self.feature_mean, innovations, at, self.n_threads)

    def log_densities(self, innovations: _Float64s, steps: ArrayLike) -> _Float64s:
        """(n, p) log densities of the first entries."""
        return core.prefix_log_densities(self.factor, innovations, _steps(steps), self.n_threads)

    @cached_property
    def variance_table(self) -> _Float64s:
        """(d + 1, ell): the variances after any number of entries, computed once."""
        return self.variances(np.arange(len(self.mean) + 1))

    def correlation_eigenvalues(self, t: int) -> _Float64s:
        """(ell,): of the features' correlation given t entries, ascending, computed once.

        Features without variance count as uncorrelated with all, of variance 0.
        """
        if t not in self._eigenvalues:
            variances = self.variance_table[t]
            some = np.flatnonzero(variances > 0)
            values = np.zeros(len(variances))
            if len(some):
                values[-len(some) :] = np.linalg.eigvalsh(self._correlation(t, some))
            self._eigenvalues[t] = np.maximum(values, 0.0)
        return self._eigenvalues[t]

    def correlation_moments(self, t: int) -> _Float64s:
        """(3,): the eigenvalues' sum, Euclidean length, and a bound of the largest."""
        if t not in self._moments:
            some = np.flatnonzero(self.variance_table[t] > 0)
            correlation = self._correlation(t, some)
            length = np.sqrt((correlation**2).sum())
            rows = np.abs(correlation).sum(axis=1).max(initial=0.0)  # Gershgorin
            self._moments[t] = np.array([len(some), length, min(length, rows)])
        return self._moments[t]

    @cached_property
    def _eigenvalues(self) -> dict[int, _Float64s]:
        return {}

    @cached_property
    def _moments(self) -> dict[int, _Float64s]:
        return {}

    def _correlation(self, t: int, some: npt.NDArray[np.intp]) -> _Float64s:
        covariance = self.covariances(t)[0][np.ix_(some, some)]
        spread = np.sqrt(np.diagonal(covariance))
        return np.asarray(covariance / spread[:, None] / spread)

    def step(
        self,
        t: int,
        samples: _Float64s,
        innovations: _Float64s,
        means: _Float64s,
        log_densities: _Float64s,
    ) -> None:
        """Entry t of n rows: moves their (n, d) innovations, (n, ell) means and (n,) densities."""
        state = innovations, means, log_densities
        core.prefix_step(self.factor, self.mean, self.gains, t, samples, *state, self.n_threads)

    def covariances(self, steps: ArrayLike) -> _Float64s:
        """(p, ell, ell) feature covariances."""
        return core.prefix_covariances(self.gains, _steps(steps), self.n_threads)

    def variances(self, steps: ArrayLike) -> _Float64s:
        """(p, ell): their diagonals."""
        return core.prefix_variances(self.gains, _steps(steps))


def _affine(features: tuple[_Float64s, _Float64s], mean: _Float64s) -> _Float64s:
    B, b = features
    # einsum adds up in an order of its own, whatever the number of BLAS threads
    return np.asarray(np.einsum("ij,i->j", B, mean) + b)


def _steps(steps: Any) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(np.atleast_1d(steps), dtype=np.int64)

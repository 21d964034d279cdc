"""Factors of the scatters between and within classes.

Parrish (2012), equations 2.5 and 2.6: ``S_b = H_b^T H_b`` between the means of classes and
``S_w = H_w^T H_w`` within classes, both divided by the number of samples; ``S_t = S_b + S_w``. The
factors keep digits that squares would lose. With fewer samples than columns, computations use a
basis of the samples' span instead of (d, d) matrices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.types import Labels
from eigenfeat._base.validation import RealArray
from eigenfeat.ldg._solving.coordinates import triangle_of
from eigenfeat.pencils.rayleigh_matrices import count_components, eigenpairs

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
_EPS32 = float(np.finfo(np.float32).eps)


@dataclass(frozen=True, eq=False)
class PrincipalBasis:
    """Principal directions of centred samples, and standard deviations along them, descending."""

    basis: Array  # (d, r) orthonormal directions, one per column
    sizes: Array  # (r,)

    @classmethod
    def of(
        cls,
        centred: Array,
        n_samples: int | None = None,
        total: float | None = None,
        rounding: Array | float = 0.0,
    ) -> PrincipalBasis:
        """Decompose centred samples (n, d), without directions of rounding errors.

        `n_samples` is the number of samples if `centred` is a smaller matrix with the same scatter.
        `total` is the sum of weights, by default the number of samples. `rounding` (d,) is the
        rounding error of the entries of each column.
        """
        n, d = n_samples or len(centred), centred.shape[1]
        if n >= d:
            _, sizes, turned = np.linalg.svd(triangle_of(centred))
            basis = turned.T
        else:
            frame, triangle = qr(centred.T, mode="economic", check_finite=False)
            rotation, sizes, _ = np.linalg.svd(triangle)
            basis = frame @ rotation
        basis = basis[:, : len(sizes)]
        varies = sizes > max(n, d) * EPS * sizes[0]
        sizes = sizes / np.sqrt(total or n)
        rounded = basis * np.broadcast_to(rounding, d)[:, None]
        varies &= sizes > np.linalg.norm(rounded, axis=0)
        varies[0] = True
        return cls(np.ascontiguousarray(basis[:, varies]), sizes[varies])


@dataclass(frozen=True, eq=False)
class ClassDeviations:
    """Samples sorted by class, as deviations from the means of their classes.

    Deviations are divided by `unit`, a power of two, so that squares neither overflow nor vanish. A
    column that is constant in a class is exactly 0 there.
    """

    within: Array  # (n, d) samples minus the mean of their class
    between: Array  # (k, d) means of classes minus the mean of all samples
    counts: NDArray[Any]  # (k,) samples, or weights, of each class
    classes: NDArray[Any]  # (k,) labels, sorted
    mean: Array  # (d,) of all samples, not divided by `unit`
    unit: float
    n_samples: int
    summed: bool  # whether `within` is a matrix with the same scatter: weights, or blocks
    rounding: Array  # (d,) largest rounding errors of float32 entries, over `unit`

    @classmethod
    def of(cls, X: RealArray, y: Labels, weight: Array | None = None) -> ClassDeviations:
        """Sort and centre finite samples X (n, d) with labels y (n,).

        With weights, deviations from weighted means are multiplied by the roots of the weights.
        """
        classes, codes = np.unique(y, return_inverse=True)
        check_two_labels(classes)
        origin = X[0].astype(np.float64)
        factors = Factors.of(X, codes, len(classes), origin, weight)
        return cls.scaled(factors, classes, origin, len(X), summed=weight is not None)

    @classmethod
    def scaled(
        cls, factors: Factors, classes: Labels, origin: Array, n_samples: int, *, summed: bool
    ) -> ClassDeviations:
        """Divide by a power of 2, the unit, so that entries are below 1.

        ValueError if all samples are equal, or differ too much for float64.
        """
        largest = np.maximum(np.abs(factors.means).max(), np.abs(factors.within).max())
        if largest == 0:
            raise ValueError("X: expected samples that differ, got equal samples")
        if not largest < np.finfo(np.float64).max / 2:  # NaN after an overflow
            raise ValueError("X: expected magnitudes below 1e307, whose sums fit float64, got more")
        exponent = int(np.frexp(largest)[1])
        mean, between = between_means(np.ldexp(factors.means, -exponent), factors.counts)
        return cls(
            np.ldexp(factors.within, -exponent),
            between,
            factors.counts,
            np.asarray(classes),
            origin + np.ldexp(mean, exponent),
            2.0**exponent,
            n_samples,
            summed,
            np.ldexp(factors.rounding, -exponent),
        )

    @property
    def total(self) -> float:
        """Sum of the weights; without weights the number of samples."""
        return float(self.counts.sum())

    @property
    def larger(self) -> int:
        """The larger of the numbers of samples and columns, which bounds rounding errors."""
        return max(self.n_samples, self.within.shape[1])

    def span(self) -> PrincipalBasis:
        """Return the principal directions of the samples."""
        return PrincipalBasis.of(self.centred, self.n_samples, self.total, self.rounding)

    @property
    def centred(self) -> Array:
        """Samples (n, d) minus their mean; if `summed`, a matrix with the same scatter."""
        if self.summed:
            return np.vstack([self.within, np.sqrt(self.counts)[:, None] * self.between])
        return self.within + np.repeat(self.between, self.counts, axis=0)

    @property
    def between_factor(self) -> Array:
        """Factor H_b (k, d) of S_b."""
        return np.sqrt(self.counts / self.total)[:, None] * self.between

    def scatters(self) -> tuple[Array, Array]:
        """Return S_b and S_w (d, d)."""
        H_b = self.between_factor
        return H_b.T @ H_b, (self.within.T @ self.within) / self.total

    def in_basis(self, basis: Array) -> ClassDeviations:
        """Return coordinates in an orthonormal basis (d, r); `mean` is unchanged."""
        within, between = self.within @ basis, self.between @ basis
        return replace(self, within=within, between=between)

    def compressed(self) -> tuple[ClassDeviations, Array | None]:
        """Return samples with at most as many columns as samples, and their basis, if any."""
        if self.within.shape[1] <= self.n_samples:
            return self, None
        basis = self.span().basis
        return self.in_basis(basis), basis


class Factors(NamedTuple):
    """Class means of samples minus an origin, and deviations from these means."""

    counts: NDArray[Any]  # (k,) samples or weights of each class
    means: Array  # (k, d)
    within: Array  # (n, d) deviations, sorted by class, or a smaller matrix of equal scatter
    rounding: Array  # (d,) largest rounding errors of float32 entries

    @classmethod
    def of(
        cls, X: RealArray, codes: Labels, n_classes: int, origin: Array, weight: Array | None
    ) -> Factors:
        """Subtract the means of the classes from samples X (n, d) less `origin`.

        With weights (n,), counts are their sums, and samples are multiplied by the roots of their
        weights. A column that is constant in a class is exactly 0 there.
        """
        order = np.argsort(codes, kind="stable")
        within, sizes = (X - origin)[order], np.bincount(codes, minlength=n_classes)
        counts = sizes if weight is None else np.bincount(codes, weight, n_classes)
        shares = np.ones(len(X)) if weight is None else weight[order]
        means, end = np.zeros((n_classes, X.shape[1])), 0
        for c in np.flatnonzero(sizes):
            rows = within[end : end + sizes[c]]
            first = rows[0].copy()
            rows -= first
            shift = shares[end : end + sizes[c]] / counts[c] @ rows
            rows -= shift
            means[c] = first + shift
            end += sizes[c]
        if weight is not None:
            within *= np.sqrt(shares)[:, None]
        rounding = np.zeros(X.shape[1])
        if X.dtype == np.float32:
            rounding = _EPS32 * np.abs(X).max(axis=0).astype(np.float64)
        return cls(counts, means, within, rounding)


def between_means(means: Array, counts: NDArray[Any]) -> tuple[Array, Array]:
    """Return the mean (d,) of all samples, and the class means (k, d) minus this mean."""
    mean = (counts / counts.sum()) @ means
    between = means - mean
    between[:, np.ptp(means, axis=0) == 0] = 0.0
    return mean, between


def largest_ratios(
    signal: Array, noise: Array, m: int, *, ridge: float, n_columns: int
) -> tuple[Array, Array]:
    """Return the m largest eigenvalues of ``signal v = lambda (noise + r I) v``, and vectors.

    ``r`` is `ridge` times trace(noise) / n_columns, or trace(signal) / n_columns if the noise is
    zero. Vectors (r, m) have unit noise, including the ridge. SingularDenominatorError names a
    sufficient ridge if the noise is singular and the ridge too small.
    """
    r = len(noise)
    trace = float(np.trace(noise))
    if not trace > 0:
        trace = float(np.trace(signal))
    unit = trace / n_columns
    denominator = noise.copy()
    denominator[np.arange(r), np.arange(r)] += ridge * unit
    return eigenpairs(signal, denominator, m, None, ridge, n_columns)


# ---- directions in which the means of classes differ ---------------------------------------------


def regularized_fisher(
    rows: ClassDeviations, n_components: int | None, ridge: float
) -> tuple[Array, Array]:
    """Return the eigenvalues (m,) and directions (d, m) of `RegularizedFisher`."""
    narrow, basis = rows.compressed()
    rank = between_rank(rows)
    m = count_components(n_components, rank, "rank of the scatter between classes")
    d = rows.within.shape[1]
    values, V = largest_ratios(*narrow.scatters(), m, ridge=ridge, n_columns=d)
    directions = V if basis is None else basis @ V
    return np.maximum(values, 0.0), directions / rows.unit


def fisher_directions(rows: RealArray, codes: Labels, ridge: float) -> Array:
    """Return the directions (d, m) of `RegularizedFisher`, made orthonormal in this order."""
    _, directions = regularized_fisher(ClassDeviations.of(rows, codes), None, ridge)
    return np.asarray(np.linalg.qr(directions)[0])


@dataclass(frozen=True, eq=False)
class Shares:
    """Directions (d, m) of unit variance over all samples, and shares (m,) of this variance."""

    directions: Array
    between: Array
    within: Array


def shares_of_variance(
    rows: ClassDeviations, span: PrincipalBasis, n_components: int | None
) -> Shares:
    """Return directions in a span, by descending share of the variance between classes.

    ValueError if class means differ in fewer than `n_components` directions, or in none.
    """
    white = span.basis / span.sizes
    _, alphas, turn = np.linalg.svd(rows.between_factor @ white, full_matrices=False)
    directions = white @ turn.T
    # Standard deviations of projections that rounding errors may cause.
    lengths = np.linalg.norm(directions, axis=0)
    rounding = rows.larger * EPS * span.sizes[0] * lengths
    nonzero = alphas > rounding
    alphas, directions, rounding = alphas[nonzero], directions[:, nonzero], rounding[nonzero]
    rank = check_means_differ(len(alphas))
    m = count_components(n_components, rank, "rank of the scatter between classes")
    betas = np.linalg.norm(rows.within @ directions, axis=0) / np.sqrt(rows.total)
    n_null = int(np.sum(betas <= rounding))  # directions without variance within classes
    directions[:, :n_null] = _spread_first(directions[:, :n_null])
    betas[:n_null] = 0.0
    return Shares(directions[:, :m], np.minimum(alphas[:m] ** 2, 1.0), betas[:m] ** 2)


def _spread_first(directions: Array) -> Array:
    """Rotate directions of equal variance to be orthogonal, the shortest first.

    The result stays white; short directions have the largest variance per unit of length.
    """
    if directions.shape[1] < 2:
        return directions
    return directions @ np.linalg.svd(directions, full_matrices=False)[2][::-1].T


def between_rank(rows: ClassDeviations) -> int:
    """Return the rank of the scatter between classes, at least 1; ValueError if it is 0."""
    sizes = np.linalg.svd(rows.between_factor, compute_uv=False)
    return check_means_differ(int(np.sum(sizes > means_rounding(rows))))


def means_rounding(rows: ClassDeviations) -> float:
    """Return a bound on singular values of H_b that rounding errors may cause."""
    deviation = np.linalg.norm(rows.within) / np.sqrt(rows.total)
    largest = float(deviation + np.linalg.norm(rows.between_factor))
    return max(len(rows.classes), rows.within.shape[1]) * EPS * largest


def check_means_differ(rank: int) -> int:
    """Return a rank of the scatter between classes; ValueError if it is 0."""
    if rank == 0:
        raise ValueError("X: expected classes with different means, got equal means")
    return rank

"""Discriminant directions by the generalized singular value decomposition.

Howland and Park (2004): with ``K = [H_b; H_w]`` two ordinary decompositions give X with
``X^T S_b X = diag(alpha^2)``, ``X^T S_w X = diag(beta^2)`` and ``alpha^2 + beta^2 = 1``, whether or
not any of the scatters is singular. As ``K^T K = S_t`` has the factor of the centred rows, too, the
first of them is that of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eigenfeat.ldg._solving.base import ClassReducer, Reduction, count_components
from eigenfeat.ldg._solving.scatters import EPS, Array, ClassRows, Span

__all__ = ["GSVDDiscriminant"]


class GSVDDiscriminant(ClassReducer):
    """Discriminant analysis by the generalized singular value decomposition (LDA/GSVD).

    The directions maximise the variance between classes over the variance within classes, which
    may be zero: neither a ridge nor PCA is needed. There are at most k - 1.

    Parameters
    ----------
    n_components : int or None, default=None
        Directions to keep; by default the rank of the scatter between classes.

    Attributes
    ----------
    components_ : (ell, d) array
        Directions, one a row, of unit variance over all rows. The entry of largest magnitude is
        positive.
    alphas_, betas_ : (ell,) arrays
        Generalized singular values: standard deviations between and within classes of the
        projections, with ``alphas_**2 + betas_**2 = 1``; alphas descending.
    mean_ : (d,) array
        Mean of the rows.
    classes_ : (k,) array
        Labels, sorted.
    n_features_in_ : int
        d.

    Raises
    ------
    ValueError
        If there are fewer than two classes, their means are equal, rows are sparse or not finite,
        or `n_components` is larger than the number of directions.

    Notes
    -----
    Directions with ``beta = 0`` are ordered by the variance of the rows, largest first. All
    directions have ``beta = 0`` when rows are fewer than columns and in general position.

    References
    ----------
    P. Howland and H. Park, "Generalizing discriminant analysis using the generalized singular
    value decomposition", IEEE PAMI 26, 2004. N. Parrish, thesis, 2012, section 3.5 (GDA).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat.ldg import GSVDDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> GSVDDiscriminant().fit(X, y).alphas_.round(2)
    array([0.98, 0.47])
    """

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def _reduce(self, rows: ClassRows) -> Reduction:
        found = shares_of_variance(rows, rows.span(), self.n_components)
        pairs = {"alphas_": np.sqrt(found.between), "betas_": np.sqrt(found.within)}
        return Reduction(found.directions / rows.unit, pairs)


@dataclass(frozen=True, eq=False)
class Shares:
    """Directions (d, m) of unit variance over all rows, and the shares (m,) of it."""

    directions: Array
    between: Array
    within: Array


def shares_of_variance(rows: ClassRows, span: Span, n_components: int | None) -> Shares:
    """Return the directions in a span whose variance lies between classes the most.

    Raises
    ------
    ValueError
        If there are no or not so many directions in which the means of classes differ.
    """
    white = span.basis / span.sizes
    _, alphas, turn = np.linalg.svd(rows.between_factor @ white, full_matrices=False)
    directions = white @ turn.T
    # Standard deviations that rounding alone may give to projections.
    lengths = np.linalg.norm(directions, axis=0)
    rounding = rows.larger * EPS * span.sizes[0] * lengths
    apart = alphas > rounding
    alphas, directions, rounding = alphas[apart], directions[:, apart], rounding[apart]
    rank = check_means_differ(len(alphas))
    m = count_components(n_components, rank, "rank of the scatter between classes")
    betas = np.linalg.norm(rows.within @ directions, axis=0) / np.sqrt(rows.n_rows)
    pure = int(np.sum(betas <= rounding))
    directions[:, :pure] = _spread_first(directions[:, :pure])
    betas[:pure] = 0.0
    return Shares(directions[:, :m], np.minimum(alphas[:m] ** 2, 1.0), betas[:m] ** 2)


def _spread_first(directions: Array) -> Array:
    """Turn directions of equal variance so that the shortest come first, all orthogonal.

    They stay white; the shortest are those of largest variance per unit of length.
    """
    if directions.shape[1] < 2:
        return directions
    return directions @ np.linalg.svd(directions, full_matrices=False)[2][::-1].T


def between_rank(rows: ClassRows) -> int:
    """Return the rank of the scatter between classes, at least 1.

    Raises
    ------
    ValueError
        If it is 0.
    """
    sizes = np.linalg.svd(rows.between_factor, compute_uv=False)
    return check_means_differ(int(np.sum(sizes > means_rounding(rows))))


def means_rounding(rows: ClassRows) -> float:
    """Return how large rounding may make singular values of H_b."""
    deviation = np.linalg.norm(rows.within) / np.sqrt(rows.n_rows)
    largest = float(deviation + np.linalg.norm(rows.between_factor))
    return max(len(rows.classes), rows.within.shape[1]) * EPS * largest


def check_means_differ(rank: int) -> int:
    """Return a rank of the scatter between classes; ValueError if it is 0."""
    if rank == 0:
        raise ValueError("X: expected classes with different means, got equal ones")
    return rank

"""Directions in which the means of classes differ: ratios and shares of variance, and ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eigenfeat.ldg._solving.scatters import (
    EPS,
    Array,
    ClassRows,
    Reduction,
    Span,
    count_components,
    largest_ratios,
)

__all__ = [
    "between_rank",
    "check_means_differ",
    "means_rounding",
    "regularized_fisher",
    "shares_of_variance",
]


def regularized_fisher(rows: ClassRows, n_components: int | None, ridge: float) -> Reduction:
    """Return the directions of `RegularizedFisher`."""
    narrow, basis = rows.compressed()
    rank = between_rank(rows)
    m = count_components(n_components, rank, "rank of the scatter between classes")
    d = rows.within.shape[1]
    values, V = largest_ratios(*narrow.scatters(), m, ridge=ridge, n_columns=d)
    directions = V if basis is None else basis @ V
    return Reduction(directions / rows.unit, {"eigenvalues_": np.maximum(values, 0.0)})


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
    betas = np.linalg.norm(rows.within @ directions, axis=0) / np.sqrt(rows.total)
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
    deviation = np.linalg.norm(rows.within) / np.sqrt(rows.total)
    largest = float(deviation + np.linalg.norm(rows.between_factor))
    return max(len(rows.classes), rows.within.shape[1]) * EPS * largest


def check_means_differ(rank: int) -> int:
    """Return a rank of the scatter between classes; ValueError if it is 0."""
    if rank == 0:
        raise ValueError("X: expected classes with different means, got equal ones")
    return rank

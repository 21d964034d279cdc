"""LDG's parameters where columns are as many as rows: chosen by rows that had no part.

With so many columns nearly every gamma separates the rows that it was found from, so that the
accuracies which these leave to each other say nothing (Parrish 2012, section 3.5.2, has the
candidates). Here rows are left out by folds. What folds share is done once: all rows have
coordinates in an orthonormal basis of their span, a fold's rows coordinates in a basis within it,
and the neighbours of the largest number hold those of the smaller ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from eigenfeat._base.types import Floats
from eigenfeat.ldg._solving.coordinates import span_of
from eigenfeat.ldg._solving.selection import N_VOTES, majority
from eigenfeat.ldg._solving.spectrum import SMALL, smallest_eigenpairs
from eigenfeat.neighbours.local_means import LocalScatters, local_neighbours, scatters_of_neighbours

__all__ = ["GAMMAS", "NEIGHBORS", "N_FOLDS", "FoldAccuracies", "fold_accuracies", "spread_out"]

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

GAMMAS = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9)  # section 3.5.2
NEIGHBORS = (1, 4, 16)  # section 5.6.1 has 1, 2, 4, ..., 128: each fourth power costs all gammas
N_FOLDS = 3
MOST_DISTANCES = 2**21  # that are held at a time


def spread_out(n_rows: int, n_columns: int) -> bool:
    """Whether there are so many columns that directions can tell every row from all others."""
    return n_columns >= n_rows - 1


@dataclass(frozen=True, eq=False)
class FoldAccuracies:
    """3-NN accuracies of rows left out, for all candidates together.

    Attributes
    ----------
    counts, gammas, dimensions : list
        The candidates, ascending.
    values : (counts, gammas, dimensions) array
    """

    counts: list[int]
    gammas: list[float]
    dimensions: list[int]
    values: Array

    def best(self) -> tuple[int, float, int]:
        """The number of neighbours, gamma and dimension of the highest accuracy.

        Of equal ones the most neighbours, then the largest gamma, then the fewest dimensions.
        """
        highest = self.values.max(axis=2)
        i, j = np.argwhere(highest == highest.max())[-1]
        return self.counts[i], self.gammas[j], self.dimensions[int(np.argmax(self.values[i, j]))]

    def results(self, n_neighbors: int, gamma: float) -> dict[str, Any]:
        """What `cv_results_` says: the best that each candidate comes to, the choices before it."""
        i, j = self.counts.index(n_neighbors), self.gammas.index(gamma)
        found: dict[str, Any] = {}
        for name, tried, values in (
            ("n_neighbors", self.counts, self.values.max(axis=(1, 2))),
            ("gamma", self.gammas, self.values[i].max(axis=1)),
            ("n_components", self.dimensions, self.values[i, j]),
        ):
            if len(tried) > 1:
                found |= {name: np.array(tried), f"{name}_accuracy": values}
        return found


def fold_accuracies(
    coordinates: Floats,
    codes: Codes,
    n_classes: int,
    counts: Sequence[int],
    gammas: Sequence[float],
    dimensions: Sequence[int],
    n_threads: int | None = None,
) -> FoldAccuracies:
    """Accuracies of all candidates on rows that had no part in the directions.

    Parameters
    ----------
    coordinates : (n, r) array
        Centred rows, in any orthonormal basis of their span.
    codes : (n,) array
    n_classes : int
    counts, gammas, dimensions : sequences
        Candidates; of a dimension that a fold's rows do not have, all that they have is taken.
    n_threads : int, optional
    """
    counts, gammas, dimensions = sorted(set(counts)), sorted(set(gammas)), sorted(set(dimensions))
    if coordinates.shape[1] >= len(coordinates):
        coordinates = span_of(coordinates)[1]
    hits = np.zeros((len(counts), len(gammas), len(dimensions)), dtype=np.int64)
    for fold in dealt(codes):
        known = ~fold
        rows, asked = _within(coordinates, known)
        near = local_neighbours(rows, codes[known], n_classes, counts[-1], n_threads=n_threads)
        for i, count in enumerate(counts):
            scatters = scatters_of_neighbours(
                rows, codes[known], np.ascontiguousarray(near[:, :, :count]), n_threads=n_threads
            )
            found = _directions(scatters, gammas, dimensions[-1])
            projected = [(rows @ vectors, asked @ vectors) for vectors in found]
            hits[i] += _hits(projected, codes[known], codes[fold], dimensions)
    return FoldAccuracies(counts, gammas, dimensions, hits / len(codes))


def dealt(codes: Codes) -> Iterator[NDArray[np.bool_]]:
    """Which rows are left out, fold by fold: each class dealt in turn, in the order of rows."""
    order = np.argsort(codes, kind="stable")
    for number in range(min(N_FOLDS, len(codes))):
        fold = np.zeros(len(codes), dtype=bool)
        fold[order[number::N_FOLDS]] = True
        yield fold


def _within(coordinates: NDArray[Any], known: NDArray[np.bool_]) -> tuple[NDArray[Any], Array]:
    """Coordinates of some rows in a basis of their span, and of the others' parts in it."""
    kept = coordinates[known].astype(np.float64)
    mean = kept.mean(axis=0)
    basis, rows = span_of(np.ascontiguousarray((kept - mean).astype(coordinates.dtype)))
    asked = coordinates[~known].astype(np.float64) - mean
    if basis.reflectors is not None:
        asked = asked @ basis.expand(np.eye(rows.shape[1]))
    return rows, asked


def _directions(scatters: LocalScatters, gammas: Sequence[float], count: int) -> list[Array]:
    """For each gamma the directions of the smallest eigenvalues, with any signs."""
    if len(scatters.within) >= SMALL:
        return [
            smallest_eigenpairs(scatters.within - gamma * scatters.weighted, count)[1]
            for gamma in gammas
        ]
    weights = np.array(gammas)[:, None, None]
    vectors = np.linalg.eigh(scatters.within - weights * scatters.weighted)[1]
    return list(vectors[:, :, :count])


def _hits(
    projected: Sequence[tuple[Array, Array]],
    codes: Codes,
    asked_codes: Codes,
    dimensions: Sequence[int],
) -> NDArray[np.int64]:
    """How many rows the 3 nearest of the others get right.

    Parameters
    ----------
    projected : m pairs of (n, r) and (q, r) arrays
        Rows, and rows that are asked.
    codes, asked_codes : (n,) and (q,) arrays
    dimensions : list of int
        Numbers of columns to look at, ascending.

    Returns
    -------
    (m, dimensions) array
    """
    shape = (len(projected), len(dimensions))
    found = np.zeros(shape, dtype=np.int64)
    ends = [min(dimension, projected[0][0].shape[1]) for dimension in dimensions]
    size = max(1, MOST_DISTANCES // (len(found) * len(ends) * len(codes)))
    for begin in range(0, len(asked_codes), size):
        some = slice(begin, begin + size)
        distances = np.empty((*shape, len(asked_codes[some]), len(codes)))
        for number, (rows, asked) in enumerate(projected):
            for place, (start, end) in enumerate(pairwise([0, *ends])):
                gaps = cdist(asked[some, start:end], rows[:, start:end], "sqeuclidean")
                before = distances[number, place - 1] if place else 0.0
                np.add(before, gaps, out=distances[number, place])
        near = np.full((*distances.shape[:3], N_VOTES), -1, dtype=np.int64)
        for vote in range(min(N_VOTES, len(codes))):
            near[..., vote] = np.argmin(distances, axis=3)
            np.put_along_axis(distances, near[..., vote, None], np.inf, axis=3)
        won = majority(near.reshape(-1, N_VOTES), codes).reshape(near.shape[:3])
        found += (won == asked_codes[some]).sum(axis=2)
    return found

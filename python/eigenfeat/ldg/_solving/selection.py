"""Choice of LDG's parameters (Parrish 2012, sections 3.4 and 3.5.2).

With as many columns as samples, almost every gamma separates the training samples, so that their
leave-one-out accuracy is meaningless; folds of held-out samples are used instead. Shared
computations are done once: all samples have coordinates in an orthonormal basis of their span, the
training samples of a fold in a basis within this span, and the nearest neighbours for the largest
number contain those for smaller numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.utils import gen_batches

from eigenfeat._base.labels import class_folds
from eigenfeat._base.types import Codes
from eigenfeat._base.validation import show
from eigenfeat.ldg._solving.coordinates import (
    AnyBasis,
    Columns,
    preferring,
    smallest_eigenpairs,
    span_of,
)
from eigenfeat.ldg._solving.scatters import Array, fisher_directions
from eigenfeat.moments.columns import mean_variance
from eigenfeat.neighbours.local_means import (
    N_VOTES,
    LocalScatters,
    knn_correct,
    local_discriminants,
    local_neighbours,
    local_scatters,
    majority,
    scatters_of_neighbours,
)
from eigenfeat.samples.block_samples import LabelledSamples

GAMMAS = (0.2, 0.4, 0.6, 0.8, 1.0)  # section 3.4
NEIGHBORS = (1, 2, 4, 8, 16, 32, 64, 128)  # section 5.6.1
GREEDY_LIMIT = 40  # section 3.4
_RIDGE = 1e-4  # relative to the mean variance, section 5.6.1
FOLD_GAMMAS = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9)  # section 3.5.2
# Section 5.6.1 has 1, 2, 4, ..., 128, but each candidate costs a solution for every gamma.
FOLD_NEIGHBORS = (1, 4, 16)
FISHER_RIDGES = (None, 0.01, 0.1, 1.0)  # candidates of `fisher_ridge`
N_FOLDS = 3  # folds of held-out samples where directions separate any labels
_MAX_DISTANCES = 2**21  # distances between samples in memory at a time


@dataclass(eq=False)
class Problem:
    """Training samples, the coordinates in which they are solved, and results of the selection."""

    samples: LabelledSamples
    rows: NDArray[Any]  # (n, varying columns), standardised; the coordinates of sparse samples
    coordinates: NDArray[Any]  # (n, r)
    basis: AnyBasis
    columns: Columns
    first: Array | None = None  # (r, m) orthonormal directions before the LDG directions
    results: dict[str, Any] = field(default_factory=dict)  # see `LDG.cv_results_`

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.samples.classes)

    @property
    def rank(self) -> int:
        """Largest number of directions."""
        return int(self.coordinates.shape[1])

    @property
    def separates_any_labels(self) -> bool:
        """Whether directions separate any labels, so that choices need held-out samples."""
        return len(self.columns.varying) >= len(self.rows) - 1

    def scatters(self, n_neighbors: int) -> LocalScatters:
        """Return V and A about the means of this number of neighbours, (3.9) and (3.10)."""
        given = self.coordinates, self.samples.codes, self.n_classes, n_neighbors
        return local_scatters(*given, n_threads=self.samples.n_threads)

    def solve(self, scatters: LocalScatters, gamma: float, count: int) -> tuple[Array, Array]:
        """Return ``v^T (V - gamma A) v`` of the directions v, and v: `first`, then eigenvectors."""
        matrix = scatters.within - gamma * scatters.weighted
        found, vectors = smallest_eigenpairs(preferring(matrix, self.first), min(count, self.rank))
        if self.first is not None:
            found = np.einsum("ij,ij->j", vectors, matrix @ vectors)
        return found, vectors

    def accuracy(self, vectors: Array) -> float:
        """Return the leave-one-out 3-NN accuracy of projected samples."""
        given = self.coordinates, self.samples.codes, vectors
        return float(knn_correct(*given, n_threads=self.samples.n_threads).mean())

    def record(self, name: str, tried: Any, accuracies: Any) -> None:
        """Add the candidates of a parameter, and their accuracies, to the results."""
        self.results |= {name: np.array(tried), f"{name}_accuracy": np.array(accuracies)}


def members(parameter: object, name: str, by_default: Sequence[float | None]) -> list[Any]:
    """Return a parameter's candidates: its value, its members, or for "cv" the defaults."""
    if isinstance(parameter, str):
        return list(by_default)
    members = np.asarray(parameter, dtype=object)  # keeps integers of any size
    if members.ndim > 1 or members.size == 0:
        raise ValueError(f"{name}: expected a number or a list of them, got {show(parameter)}")
    return np.atleast_1d(members).tolist()


def dimensions(n_classes: int, most: int) -> list[int]:
    """Return the candidates of section 3.5.2, limited to 1..most."""
    steps = (-1, 0, 1, 2, 4, 8, 16, 32)
    fitting = {min(max(n_classes + step, 1), most) for step in steps}
    return sorted(fitting)


def best_gamma(gammas: Iterable[float], accuracies: Iterable[float]) -> float:
    """Return the gamma of the highest accuracy; ties go to the largest."""
    return max(zip(accuracies, gammas, strict=True))[1]


def greedy_dimension(accuracy: Callable[[int], float], most: int) -> tuple[int, list[float]]:
    """Increase the dimension from 1 until the accuracy decreases, up to 40 or `most`.

    Returns the dimension, and the accuracies of the dimensions 1, 2, ... that were tried.
    """
    tried = [accuracy(1)]
    for dimension in range(2, min(most, GREEDY_LIMIT) + 1):
        tried.append(accuracy(dimension))
        if tried[-1] < tried[-2]:
            return dimension - 1, tried
    return len(tried), tried


def useful_counts(counts: Iterable[int], codes: Codes) -> list[int]:
    """Return the distinct useful numbers of neighbours, ascending.

    Numbers beyond the size of the largest class are equivalent; only the first is kept.
    """
    largest = int(np.bincount(codes).max()) - 1
    ascending = sorted(set(counts))
    within = [count for count in ascending if count < largest]
    return within + [count for count in ascending if count >= largest][:1]


def local_qda_accuracies(problem: Problem, counts: list[int], folds: Codes) -> Array:
    """Return cross-validated accuracies of local QDA for ascending `counts` of neighbours.

    Gaussians are estimated on the samples' columns with diagonal covariances, plus 1e-4 times the
    mean variance of the columns (1 in section 5.6.1). `folds` (n,) has the fold of each sample;
    neighbours and priors come from the other folds. Neighbours are found in the coordinates, which
    have equal distances.
    """
    rows, codes, n_classes = problem.rows, problem.samples.codes, problem.n_classes
    threads = problem.samples.n_threads
    neighbours = local_neighbours(
        problem.coordinates, codes, n_classes, counts[-1], groups=folds, n_threads=threads
    )
    scores = local_discriminants(
        rows, neighbours, counts, ridge=_RIDGE * mean_variance(rows), n_threads=threads
    )
    members = np.zeros((int(folds.max()) + 1, n_classes))
    np.add.at(members, (folds, codes), 1.0)
    others = members.sum(axis=0) - members
    with np.errstate(divide="ignore"):
        log_priors = np.log(others / np.maximum(others.sum(axis=1, keepdims=True), 1.0))
    decided = np.argmax(scores + log_priors[folds], axis=2)
    return np.asarray((decided == codes).mean(axis=1))


@dataclass(frozen=True, eq=False)
class FoldAccuracies:
    """3-NN accuracies on held-out samples, for all combinations of ascending candidates."""

    counts: list[int]
    gammas: list[float]
    dimensions: list[int]
    values: Array  # (counts, gammas, dimensions)

    def best(self) -> tuple[int, float, int]:
        """Return the number of neighbours, gamma and dimension of the highest accuracy.

        Ties go to the largest number of neighbours, the largest gamma, and the smallest dimension.
        """
        highest = self.values.max(axis=2)
        i, j = np.argwhere(highest == highest.max())[-1]
        return self.counts[i], self.gammas[j], self.dimensions[int(np.argmax(self.values[i, j]))]

    def results(self, n_neighbors: int, gamma: float) -> dict[str, Any]:
        """Return `cv_results_`: the best accuracy of each candidate, given the earlier choices."""
        i, j = self.counts.index(n_neighbors), self.gammas.index(gamma)
        result: dict[str, Any] = {}
        for name, tried, values in (
            ("n_neighbors", self.counts, self.values.max(axis=(1, 2))),
            ("gamma", self.gammas, self.values[i].max(axis=1)),
            ("n_components", self.dimensions, self.values[i, j]),
        ):
            if len(tried) > 1:
                result |= {name: np.array(tried), f"{name}_accuracy": values}
        return result


def fold_accuracies(
    problem: Problem,
    counts: Sequence[int],
    gammas: Sequence[float],
    dimensions: Sequence[int],
    fisher_ridge: float | None = None,
) -> FoldAccuracies:
    """Return accuracies of all candidates on held-out samples.

    A candidate dimension above the rank of a fold's samples is reduced to the rank. `fisher_ridge`
    is the ridge of Fisher's directions, if they come first.
    """
    coordinates, codes = problem.coordinates, problem.samples.codes
    threads = problem.samples.n_threads
    counts, gammas, dimensions = sorted(set(counts)), sorted(set(gammas)), sorted(set(dimensions))
    if coordinates.shape[1] >= len(coordinates):
        coordinates = span_of(coordinates)[1]
    hits = np.zeros((len(counts), len(gammas), len(dimensions)), dtype=np.int64)
    n_folds = min(N_FOLDS, len(codes))
    folds = class_folds(codes, n_folds)
    for number in range(n_folds):
        known = folds != number
        rows, held_out = _within(coordinates, known)
        labels = codes[known]
        first = None if fisher_ridge is None else fisher_directions(rows, labels, fisher_ridge)
        nearest = local_neighbours(rows, labels, problem.n_classes, counts[-1], n_threads=threads)
        for i, count in enumerate(counts):
            neighbours = nearest[:, :, :count]
            scatters = scatters_of_neighbours(rows, labels, neighbours, n_threads=threads)
            for j, gamma in enumerate(gammas):
                matrix = preferring(scatters.within - gamma * scatters.weighted, first)
                vectors = smallest_eigenpairs(matrix, dimensions[-1])[1]
                reduced, queries = rows @ vectors, held_out @ vectors
                hits[i, j] += _hits(reduced, labels, queries, codes[~known], dimensions)
    return FoldAccuracies(counts, gammas, dimensions, hits / len(codes))


def _within(coordinates: NDArray[Any], known: NDArray[np.bool_]) -> tuple[NDArray[Any], Array]:
    """Return `known` and other samples in a basis of the span of the `known` samples."""
    selected = coordinates[known].astype(np.float64)
    mean = selected.mean(axis=0)
    basis, rows = span_of(np.ascontiguousarray((selected - mean).astype(coordinates.dtype)))
    held_out = coordinates[~known].astype(np.float64) - mean
    if basis.reflectors is not None:
        held_out = held_out @ basis.expand(np.eye(rows.shape[1]))
    return rows, held_out


def _hits(
    rows: Array, codes: Codes, queries: Array, query_codes: Codes, dimensions: Sequence[int]
) -> Codes:
    """Count correct 3-NN predictions of queries in the leading columns, for each dimension."""
    hits = np.zeros(len(dimensions), dtype=np.int64)
    for batch in gen_batches(len(queries), max(1, _MAX_DISTANCES // len(rows))):
        part = queries[batch]
        squares, nearest = np.zeros((len(part), len(rows))), np.full((len(part), N_VOTES), -1)
        for i, (start, end) in enumerate(pairwise([0, *dimensions])):
            squares += cdist(part[:, start:end], rows[:, start:end], "sqeuclidean")
            remaining = squares.copy()
            for vote in range(min(N_VOTES, len(rows))):
                nearest[:, vote] = remaining.argmin(axis=1)
                remaining[np.arange(len(part)), nearest[:, vote]] = np.inf
            hits[i] += np.sum(majority(nearest, codes) == query_codes[batch])
    return hits

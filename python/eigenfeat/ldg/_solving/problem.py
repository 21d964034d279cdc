"""LDG's training rows in the coordinates that they are solved in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat.expansion.features import expand
from eigenfeat.ldg._solving.coordinates import Basis, Columns
from eigenfeat.ldg._solving.folds import FoldAccuracies, fold_accuracies, spread_out
from eigenfeat.ldg._solving.selection import knn_accuracy
from eigenfeat.ldg._solving.spectrum import smallest_eigenpairs
from eigenfeat.ldg._solving.wide import WideBasis, WideRows
from eigenfeat.neighbours.local_means import LocalScatters, local_scatters, scatters_of_neighbours

__all__ = ["Problem"]


@dataclass(eq=False)
class Problem:
    """Training rows in the coordinates that they are solved in, and what selection found."""

    rows: NDArray[Any]  # standardised, (n, kept columns)
    coordinates: NDArray[Any]  # (n, r)
    basis: Basis | WideBasis
    columns: Columns
    codes: NDArray[np.int64]
    n_classes: int
    n_threads: int | None
    wide: WideRows | None = None  # where the coordinates come from, if these have no columns
    results: dict[str, Any] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        """Most directions."""
        return int(self.coordinates.shape[1])

    @property
    def spread_out(self) -> bool:
        """Whether parameters are to be chosen by rows that had no part in the directions."""
        return spread_out(*self.rows.shape)

    def fold_accuracies(
        self, counts: Sequence[int], gammas: Sequence[float], dimensions: Sequence[int]
    ) -> FoldAccuracies:
        """Accuracies of candidates on rows left out."""
        return fold_accuracies(
            self.coordinates,
            self.codes,
            self.n_classes,
            counts,
            gammas,
            dimensions,
            self.n_threads,
        )

    def scatters(self, n_neighbors: int) -> LocalScatters:
        """V and A."""
        if self.wide is None:
            return local_scatters(
                self.coordinates, self.codes, self.n_classes, n_neighbors, n_threads=self.n_threads
            )
        near = self.wide.neighbours(self.codes, self.n_classes, n_neighbors)
        return scatters_of_neighbours(
            self.coordinates, self.codes, np.stack(near, axis=1), n_threads=self.n_threads
        )

    def solve(
        self, scatters: LocalScatters, gamma: float, count: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The smallest eigenvalues of ``V - gamma A``, and vectors."""
        matrix = scatters.within - gamma * scatters.weighted
        return smallest_eigenpairs(matrix, min(count, self.rank))

    def accuracy(self, vectors: NDArray[np.float64]) -> float:
        """Leave-one-out 3-NN accuracy of the rows' projections."""
        reduced = expand(self.coordinates, vectors, expansion="none", n_threads=self.n_threads)
        return knn_accuracy(reduced, self.codes, self.n_threads)

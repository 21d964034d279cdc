"""How LDG's parameters are chosen (Parrish 2012, sections 3.4 and 3.5.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.spread import mean_variance
from eigenfeat._base.types import Codes, Floats
from eigenfeat._base.validation import Generator, show
from eigenfeat.neighbours.local_means import local_discriminants, local_neighbours

__all__ = [
    "GAMMAS",
    "NEIGHBORS",
    "best_gamma",
    "dimensions",
    "greedy_dimension",
    "knn_accuracy",
    "local_qda_accuracies",
    "majority",
    "members",
    "stratified_folds",
    "useful_counts",
]

GAMMAS = (0.2, 0.4, 0.6, 0.8, 1.0)  # section 3.4
NEIGHBORS = (1, 2, 4, 8, 16, 32, 64, 128)  # section 5.6.1
GREEDY_LIMIT = 40  # section 3.4
_RIDGE = 1e-4  # of the mean variance, section 5.6.1
N_VOTES = 3  # neighbours of the k-NN classifier, sections 3.4 and 3.5.2


def members(parameter: object, name: str, by_default: Sequence[float]) -> list[Any]:
    """The candidates that a parameter stands for: itself, its members, or the given ones."""
    if isinstance(parameter, str):
        return list(by_default)
    members = np.asarray(parameter, dtype=object)  # integers of any size stay what they are
    if members.ndim > 1 or members.size == 0:
        raise ValueError(f"{name}: expected a number or a list of them, got {show(parameter)}")
    return np.atleast_1d(members).tolist()


def dimensions(n_classes: int, most: int) -> list[int]:
    """The candidates of section 3.5.2 that lie in 1..most."""
    steps = (-1, 0, 1, 2, 4, 8, 16, 32)
    fitting = {min(max(n_classes + step, 1), most) for step in steps}
    return sorted(fitting)


def knn_accuracy(rows: Floats, codes: Codes, n_threads: int | None = None) -> float:
    """Leave-one-out accuracy of the 3-NN classifier.

    Where no class has a majority, the nearest row decides.
    """
    together = np.zeros(len(rows), dtype=np.int64)
    found = local_neighbours(rows, together, 1, N_VOTES, n_threads=n_threads)[:, 0]
    return float(np.mean(majority(found, codes) == codes))


def majority(found: NDArray[np.int64], codes: Codes) -> Codes:
    """The class of most of three neighbours, nearest first; -1 is none, and the nearest decides."""
    votes = np.where(found >= 0, codes[found], -1)
    pair = (votes[:, 1] == votes[:, 2]) & (votes[:, 1] >= 0)
    winners: NDArray[np.integer[Any]] = np.where(pair, votes[:, 1], votes[:, 0])
    return winners


def best_gamma(gammas: Iterable[float], accuracies: Iterable[float]) -> float:
    """The gamma of the highest accuracy; of those tied, the largest."""
    return max(zip(accuracies, gammas, strict=True))[1]


def greedy_dimension(accuracy: Callable[[int], float], most: int) -> tuple[int, list[float]]:
    """Grow the dimension from 1 until one more lowers the accuracy, up to 40 or `most`.

    Returns
    -------
    dimension : int
    accuracies : list of float
        Those of dimensions 1, 2, ... that were looked at.
    """
    tried = [accuracy(1)]
    for dimension in range(2, min(most, GREEDY_LIMIT) + 1):
        tried.append(accuracy(dimension))
        if tried[-1] < tried[-2]:
            return dimension - 1, tried
    return len(tried), tried


def useful_counts(counts: Iterable[int], codes: Codes) -> list[int]:
    """The numbers of neighbours that differ for the largest class, ascending.

    Beyond its size all numbers mean the same, the global mean; the first such number stays.
    """
    largest = int(np.bincount(codes).max()) - 1
    ascending = sorted(set(counts))
    within = [count for count in ascending if count < largest]
    return within + [count for count in ascending if count >= largest][:1]


def stratified_folds(codes: Codes, n_folds: int, random: Generator) -> NDArray[np.int64]:
    """A fold for every row, each class spread evenly over folds."""
    folds = np.empty(len(codes), dtype=np.int64)
    dealt = 0
    for c in np.unique(codes):
        members = random.permutation(np.flatnonzero(codes == c))
        folds[members] = (dealt + np.arange(len(members))) % n_folds
        dealt += len(members)
    return folds


def local_qda_accuracies(
    rows: Floats,
    codes: Codes,
    counts: list[int],
    folds: NDArray[np.int64],
    *,
    coordinates: Floats | None = None,
    n_threads: int | None = None,
) -> NDArray[np.float64]:
    """Cross-validated accuracies of local QDA for several numbers of neighbours.

    Diagonal covariances plus 1e-4 times the mean variance of the columns, which is 1 in section
    5.6.1, and priors from the other folds.

    Parameters
    ----------
    rows : (n, d) array
        Rows, standardised or not, on which Gaussians are estimated.
    codes, folds : (n,) arrays
    counts : list of int
        Numbers of neighbours, ascending.
    coordinates : (n, r) array, optional
        Rows with the same distances, but fewer columns, in which neighbours are looked for.
    n_threads : int, optional

    Returns
    -------
    (counts,) array
    """
    n_classes = int(codes.max()) + 1
    space = rows if coordinates is None else coordinates
    neighbours = local_neighbours(
        space, codes, n_classes, counts[-1], groups=folds, n_threads=n_threads
    )
    ridge = _RIDGE * mean_variance(rows)
    scores = local_discriminants(rows, neighbours, counts, ridge=ridge, n_threads=n_threads)
    members = np.zeros((int(folds.max()) + 1, n_classes))
    np.add.at(members, (folds, codes), 1.0)
    others = members.sum(axis=0) - members
    with np.errstate(divide="ignore"):
        log_priors = np.log(others / np.maximum(others.sum(axis=1, keepdims=True), 1.0))
    decided = np.argmax(scores + log_priors[folds], axis=2)
    accuracies: NDArray[np.float64] = (decided == codes).mean(axis=1)
    return accuracies

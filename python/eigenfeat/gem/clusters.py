"""Events finer than classes: clusters within each class, and pairs of them across classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans
from sklearn.utils import check_random_state
from sklearn.utils.sparsefuncs import mean_variance_axis

from eigenfeat._base.threads import count_cores
from eigenfeat._base.types import Labels, RandomState, Rows
from eigenfeat._base.validation import in_order

__all__ = ["class_clusters", "cross_pairs"]

FEWEST_ROWS = 50  # of a cluster, on average: moments of fewer are mostly noise


def class_clusters(
    X: Rows,
    y: Labels,
    n_clusters: int,
    *,
    scaled: bool = False,
    random_state: RandomState = 0,
) -> tuple[NDArray[np.str_], list[list[str]]]:
    """Split every class into clusters by k-means.

    Section 5 of the paper conditions moments on events other than classes. A cluster is usually
    closer to a single shape than its class.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        Finite samples.
    y : (n,) array
        Labels.
    n_clusters : int >= 1
        Maximum number of clusters of a class; classes with fewer than 50 rows per cluster get
        fewer.
    scaled : bool
        Whether to divide columns by their standard deviations.
    random_state : int, RandomState or None
        Seed for k-means.

    Returns
    -------
    groups : (n,) array of str
        Names of the clusters, as in "3.0" for the first of class 3.
    of_classes : list of list of str
        The clusters of each class, in the order of the classes.
    """
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    checked = X if isinstance(X, np.ndarray) else in_order(X)
    count_cores()
    rows = _divided(checked) if scaled else checked
    groups = np.empty(len(y), dtype=object)
    of_classes = []
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        count = int(np.clip(len(members) // FEWEST_ROWS, 1, n_clusters))
        codes = np.zeros(len(members), dtype=np.intp)
        if count > 1:
            kmeans = MiniBatchKMeans(count, random_state=seed, n_init=3)
            codes = np.unique(kmeans.fit_predict(rows[members]), return_inverse=True)[1]
        names = [f"{label}.{code}" for code in range(codes.max() + 1)]
        groups[members] = np.array(names, dtype=object)[codes]
        of_classes.append(names)
    return groups.astype(str), of_classes


def cross_pairs(
    of_classes: list[list[str]], n_pairs: int | None, random_state: RandomState = 0
) -> list[tuple[str, str]]:
    """Ordered pairs of clusters of different classes.

    Parameters
    ----------
    of_classes : list of list of str
        Clusters from `class_clusters`, of at least two classes.
    n_pairs : int or None
        Number of pairs, drawn such that every cluster is equally often numerator; None means all.
    random_state : int, RandomState or None
        Seed for drawing pairs.

    Returns
    -------
    list of (numerator, denominator)
    """
    names = [(name, c) for c, group in enumerate(of_classes) for name in group]
    everything = [(a, b) for a, i in names for b, j in names if i != j]
    if n_pairs is None or n_pairs >= len(everything):
        return everything
    random = check_random_state(random_state)
    below = {a: [b for b, j in names if i != j] for a, i in names}
    orders = {a: random.permutation(len(others)) for a, others in below.items()}
    chosen: list[tuple[str, str]] = []
    for turn in range(max(len(others) for others in below.values())):
        for a, _ in (names[i] for i in random.permutation(len(names))):
            if turn < len(below[a]):
                chosen.append((a, below[a][orders[a][turn]]))
    # Every cluster must be in some pair, so that its moments are of use.
    return chosen[: max(n_pairs, len(names))]


def _divided(X: Any) -> Any:
    if isinstance(X, np.ndarray):
        deviation = X.std(axis=0, dtype=np.float64)
        return X / np.where(deviation > 0, deviation, 1.0).astype(X.dtype)
    deviation = np.sqrt(mean_variance_axis(X, axis=0)[1])
    factors = 1.0 / np.where(deviation > 0, deviation, 1.0)
    return X.multiply(factors.astype(X.dtype)).tocsr()

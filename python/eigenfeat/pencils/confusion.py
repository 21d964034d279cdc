"""Which classes are confused most: the arithmetic of `confusion_pairs` and its relatives.

An edge is an unordered pair of classes, as indices i < j.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import Codes
from eigenfeat._base.validation import check_whole, show

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from eigenfeat._base.labels import LabelTable
    from eigenfeat.moments.class_moments import ClassMoments

__all__ = ["closest_cover", "most_confused", "nearest_edges", "whitened_means"]

_Pairs = npt.NDArray[np.int64]
_Array = npt.NDArray[np.float64]

_BLOCK = 256  # classes whose distances to all others are held at a time


def whitened_means(
    moments: ClassMoments, labels: Sequence[Hashable], ridge: float, scale: _Array | None
) -> _Array:
    """Class means (k, d) in coordinates in which the pooled covariance is the identity."""
    weights = np.array([moments.weight(c) for c in labels])
    means = np.array([moments.mean(c) for c in labels])
    means -= weights / weights.sum() @ means
    pooled = np.zeros((means.shape[1], means.shape[1]))
    for share, c in zip(weights / weights.sum(), labels, strict=True):
        part = moments.covariance(c)
        part *= share
        pooled += part
    if scale is not None:
        means /= scale
        pooled /= scale[:, None] * scale
    unit = np.trace(pooled) / len(pooled)
    # One row a class, say: then plain distances are all there is.
    pooled[np.diag_indices_from(pooled)] += ridge * unit if unit > 0 else 1.0
    points: _Array = np.linalg.solve(np.linalg.cholesky(pooled), means.T).T
    return points


def nearest_edges(points: _Array, nearest: int) -> tuple[_Pairs, _Array]:
    """Pairs i < j, one of which is among the other's nearest, and their squared distances."""
    k = len(points)
    squares = (points**2).sum(axis=1)
    edges = []
    for first in range(0, k, _BLOCK):
        block = np.arange(first, min(first + _BLOCK, k))
        distances = squares - 2.0 * points[block] @ points.T
        distances[np.arange(len(block)), block] = np.inf
        others = np.argsort(distances, axis=1, kind="stable")[:, :nearest]
        edges.append(np.column_stack([np.repeat(block, nearest), others.ravel()]))
    distinct = np.unique(np.sort(np.concatenate(edges), axis=1), axis=0).astype(np.int64)
    gaps = [((points[i] - points[j]) ** 2).sum() for i, j in distinct]
    return distinct, np.array(gaps)


def closest_cover(edges: _Pairs, distances: _Array, k: int, n_pairs: int) -> _Pairs:
    """About n_pairs / 2 of the edges: first such that every class is in one, then the closest."""
    order = np.lexsort((edges[:, 1], edges[:, 0], distances))
    chosen = np.zeros(len(edges), dtype=bool)
    covered = np.zeros(k, dtype=bool)
    for lacking in (2, 1):  # pairs of two classes that have none yet, then what is left over
        for edge in order:
            if (~covered[edges[edge]]).sum() >= lacking:
                chosen[edge] = covered[edges[edge]] = True
    rest = order[~chosen[order]]
    chosen[rest[: max(0, -(-n_pairs // 2) - chosen.sum())]] = True
    return edges[chosen]


def most_confused(table: LabelTable, pairs: Codes, counts: _Array, n_pairs: int | None) -> _Pairs:
    """Edges between sorted classes, of `counts` of (true, predicted) indices in the table."""
    k = len(table)
    if k < 2:
        raise ValueError(f"classes: expected at least 2, got {show(list(table.labels))}")
    if n_pairs is not None:
        check_whole(n_pairs, "n_pairs", at_least=1, at_most=k * (k - 1))
    sorted_at = {label: place for place, label in enumerate(table.classes.tolist())}
    place = np.array([sorted_at[label] for label in table.labels])
    wrong = pairs[:, 0] != pairs[:, 1]
    ends = np.sort(place[pairs[wrong]], axis=1).reshape(-1, 2)
    edges, which = np.unique(ends, axis=0, return_inverse=True)
    total: _Array = np.zeros(len(edges))
    np.add.at(total, which.ravel(), counts[wrong])
    alone = np.setdiff1d(np.arange(k), edges)
    if len(alone) % 2:
        alone = np.append(alone, 0 if alone[0] else 1)
    added = np.sort(alone.reshape(-1, 2), axis=1)
    edges = np.concatenate([edges, added]).astype(np.int64)
    total = np.append(total, np.zeros(len(added)))
    chosen = edges if n_pairs is None else closest_cover(edges, -total, k, n_pairs)
    return chosen

"""Pairs of the classes that are confused most, by linear discriminants or by a classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from eigenfeat._base.labels import plain_labels
from eigenfeat._base.threads import one_blas_thread
from eigenfeat._base.validation import (
    check_number,
    check_vector,
    check_whole,
    show,
)
from eigenfeat.moments.class_moments import ClassMoments

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

__all__ = [
    "CONFUSION_RIDGE",
    "confusion_pairs",
    "confusion_pairs_from",
]

_Pairs = npt.NDArray[np.int64]
_Array = npt.NDArray[np.float64]
_BLOCK_CLASSES = 256  # rows of the distance matrix computed at a time
_NEIGHBOURS = 3  # nearest classes that a class is paired with by default
CONFUSION_RIDGE = 0.1  # relative to the mean variance


def whitened_means(
    moments: ClassMoments, labels: Sequence[Hashable], ridge: float, scale: _Array | None
) -> _Array:
    """Class means (k, d) in coordinates in which the pooled covariance is the identity."""
    weights, means = moments.weights_and_means(labels)
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
    # With one sample per class the pooled covariance is 0; points are then the means themselves.
    pooled[np.diag_indices_from(pooled)] += ridge * unit if unit > 0 else 1.0
    points: _Array = np.linalg.solve(np.linalg.cholesky(pooled), means.T).T
    return points


def nearest_edges(points: _Array, nearest: int) -> tuple[_Pairs, _Array]:
    """Pairs i < j with i among the nearest points of j or vice versa, and squared distances."""
    k = len(points)
    squares = (points**2).sum(axis=1)
    edges = []
    for first in range(0, k, _BLOCK_CLASSES):
        block = np.arange(first, min(first + _BLOCK_CLASSES, k))
        distances = squares - 2.0 * points[block] @ points.T
        distances[np.arange(len(block)), block] = np.inf
        others = np.argsort(distances, axis=1, kind="stable")[:, :nearest]
        edges.append(np.column_stack([np.repeat(block, nearest), others.ravel()]))
    distinct = np.unique(np.sort(np.concatenate(edges), axis=1), axis=0).astype(np.int64)
    gaps = [((points[i] - points[j]) ** 2).sum() for i, j in distinct]
    return distinct, np.array(gaps)


def closest_cover(edges: _Pairs, distances: _Array, k: int, n_pairs: int) -> _Pairs:
    """Select n_pairs / 2 edges: the closest that contain every class, then the closest others.

    More edges are selected if the classes need them.
    """
    order = np.lexsort((edges[:, 1], edges[:, 0], distances))
    chosen = np.zeros(len(edges), dtype=bool)
    covered = np.zeros(k, dtype=bool)
    for lacking in (2, 1):  # edges of two uncovered classes first, then edges of one
        for edge in order:
            if (~covered[edges[edge]]).sum() >= lacking:
                chosen[edge] = covered[edges[edge]] = True
    rest = order[~chosen[order]]
    chosen[rest[: max(0, -(-n_pairs // 2) - chosen.sum())]] = True
    return edges[chosen]


@one_blas_thread()
def confusion_pairs(
    moments: ClassMoments,
    n_pairs: int | None = None,
    *,
    ridge: float = CONFUSION_RIDGE,
    scale: ArrayLike | None = None,
) -> list[tuple[Hashable, Hashable]]:
    """Pairs of the classes that linear discriminants would confuse most: O(k) pairs, from moments.

    The distance of two classes is the Mahalanobis distance of their means, with the pooled
    covariance (plus a ridge). Two equally frequent Gaussian classes with that covariance are
    confused with probability Phi(-distance / 2).

    Parameters
    ----------
    moments : ClassMoments
        Moments of at least two classes of positive weight; classes without weight are ignored.
    n_pairs : int, optional
        Number of pairs. Every class is placed in some pair first, which may take more pairs; the
        nearest pairs follow. Rounded up to an even number. By default each class is paired with the
        three nearest classes.
    ridge : float >= 0, default=0.1
        Added to the diagonal of the pooled covariance, relative to the mean of the diagonal.
    scale : array-like of shape (d,), optional
        Positive column scales; distances are between means of x / scale.

    Returns
    -------
    list of (label, label)
        Each pair both ways, in lexicographic order; for `pair_directions` and `GEM`.

    Raises
    ------
    ValueError
        If there are fewer than two classes of positive weight, or an argument is out of range.
    numpy.linalg.LinAlgError
        If the pooled covariance is singular and `ridge` 0.
    """
    if not isinstance(moments, ClassMoments):
        raise ValueError(f"moments: expected ClassMoments, got {show(moments)}")
    labels = moments.active_classes.tolist()
    k = len(labels)
    if k < 2:
        raise ValueError(f"moments: expected at least 2 classes with samples, got {show(labels)}")
    nearest = _NEIGHBOURS
    if n_pairs is not None:
        check_whole(n_pairs, "n_pairs", at_least=1, at_most=k * (k - 1))
        nearest = -(-n_pairs // k)
    ridge = check_number(ridge, "ridge", at_least=0.0)
    if scale is not None:
        scale = check_vector(scale, moments.n_features_in_, "scale", positive=True)
    points = whitened_means(moments, labels, ridge, scale)
    edges, distances = nearest_edges(points, min(nearest, k - 1))
    chosen = edges if n_pairs is None else closest_cover(edges, distances, k, n_pairs)
    return _both_ways(chosen, labels)


def confusion_pairs_from(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, n_pairs: int | None = None
) -> list[tuple[Hashable, Hashable]]:
    """Pairs of the classes that a classifier confused most often.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels of samples, preferably held-out samples.
    y_pred : array-like of shape (n,)
        Predicted labels of these samples.
    n_pairs : int, optional
        Number of pairs. Every class that occurs is placed in some pair first, which may take more
        pairs; the pairs confused most often, in any order, follow. Rounded up to an even number.
        By default, all confused pairs.

    Returns
    -------
    list of (label, label)
        Each pair both ways, in lexicographic order. Classes that were never confused are paired
        with one another, or with the first class.

    Raises
    ------
    ValueError
        If lengths differ, fewer than two classes occur, or `n_pairs` is out of range.
    """
    truth, guesses = np.asarray(plain_labels(y_true, "y_true")), plain_labels(y_pred, "y_pred")
    if truth.ndim != 1 or np.shape(guesses) != truth.shape:
        raise ValueError(
            f"y_pred: expected {truth.size} labels, as many as y_true, got shape "
            f"{np.shape(guesses)}"
        )
    all_labels = plain_labels([*truth.tolist(), *np.asarray(guesses).tolist()], "y_pred")
    classes, codes = np.unique(all_labels, return_inverse=True)
    k = len(classes)
    if k < 2:
        raise ValueError(f"classes: expected at least 2, got {show(classes.tolist())}")
    if n_pairs is not None:
        check_whole(n_pairs, "n_pairs", at_least=1, at_most=k * (k - 1))
    ends = np.sort(codes.reshape(2, -1), axis=0).T
    edges, counts = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0, return_counts=True)
    unpaired = np.setdiff1d(np.arange(k), edges)
    if len(unpaired) % 2:
        unpaired = np.append(unpaired, 0 if unpaired[0] else 1)
    added = np.sort(unpaired.reshape(-1, 2), axis=1)
    edges = np.concatenate([edges, added]).astype(np.int64)
    if n_pairs is not None:
        times = np.append(counts, np.zeros(len(added))).astype(np.float64)
        edges = closest_cover(edges, -times, k, n_pairs)
    return _both_ways(edges, classes.tolist())


def _both_ways(edges: _Pairs, labels: list[Any]) -> list[tuple[Hashable, Hashable]]:
    pairs = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)
    return [(labels[i], labels[j]) for i, j in pairs]

"""Choice of the ordered pairs of classes.

The directions of a pair (numerator, denominator) have large projections of the numerator's samples
and small ones of the denominator's. Each kind of pairs contains every class at least once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from eigenfeat._base.labels import LabelTable, UnknownClassError
from eigenfeat._base.types import Codes, Labels, Pairs, Seed
from eigenfeat._base.validation import (
    Generator,
    check_number,
    check_vector,
    check_whole,
    random_generator,
    show,
)
from eigenfeat.moments.class_moments import ClassMoments, moments_of_groups
from eigenfeat.pencils.contrasts import KINDS, Contraction, Contrasts, class_tree, one_vs_rest

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from eigenfeat.pencils.class_matrices import PencilOptions, Span

__all__ = [
    "CONFUSION_RIDGE",
    "Problems",
    "class_pairs",
    "closest_cover",
    "confusion_pairs",
    "confusion_pairs_from",
    "nearest_edges",
    "problems_of",
    "whitened_means",
]

_Pairs = npt.NDArray[np.int64]
_Array = npt.NDArray[np.float64]
_BLOCK_CLASSES = 256  # rows of the distance matrix computed at a time
_MAX_PLACEMENTS = 1000  # of labels on the corners of a cube
_NEIGHBOURS = 3
CONFUSION_RIDGE = 0.1
_GROUPS_PER_PARTITION = 6
_MAX_GROUP_PAIRS, _MIN_GROUP_PAIRS = 600, 150
_PAIRS_TIMES_CLASSES = 150_000  # number of group pairs, times number of classes


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


def class_pairs(
    classes: ArrayLike,
    pairs: Pairs = "all",
    *,
    random_state: Seed = None,
) -> _Pairs:
    """Return ordered pairs of classes, as indices into `classes`.

    Parameters
    ----------
    classes : array-like of shape (k,)
        Distinct labels, at least two.
    pairs : {"all", "hypercube"} or sequence of (label, label)
        - ``"all"``: all k (k - 1) ordered pairs (Karampatziakis and Mineiro 2014, Algorithm 1).
        - ``"hypercube"``: the labels are placed at random on corners of a cube of ceil(log2 k)
          dimensions; neighbours (Hamming distance 1) are paired both ways (section 4.3). Placements
          are drawn until every class has a neighbour. O(k log k) pairs.
        - a sequence of (numerator, denominator) labels.
    random_state : None, int or NumPy generator
        For the corners of the cube.

    Returns
    -------
    ndarray of int64, shape (P, 2)
        Numerators and denominators in lexicographic order; an explicit list keeps its order.

    Raises
    ------
    ValueError
        If there are fewer than two classes, or if an explicit list has an unknown label, a pair of
        equal labels, a repeated pair, or leaves out a class (the message names it).
    """
    table = LabelTable.of(classes)
    k = len(table)
    if k < 2:
        raise ValueError(f"classes: expected at least 2 for pairs, got {show(classes)}")
    if not isinstance(pairs, str):
        return _explicit(LabelTable(tuple(np.asarray(classes).tolist()), table.dtype), pairs)
    if pairs == "all":
        return _all(k)
    if pairs == "hypercube":
        return _hypercube(k, random_generator(random_state))
    raise ValueError(
        f"pairs: expected 'all', 'hypercube' or a list of pairs of labels, got {show(pairs)}"
    )


def random_partitions(
    n_classes: int, n_features: int, n_pairs: int | None, random_state: Generator
) -> npt.NDArray[np.int64]:
    """Groups (R, k) of the classes in R random partitions, which together have `n_pairs` pairs.

    A partition has six groups, whose sizes differ by at most 1, and 30 ordered pairs of groups; R
    is rounded up. By default there are 600 pairs for up to 250 classes and 150,000 / k for more
    classes, but at least 150 and at least min(600, 2 n_features).
    """
    n_groups = min(_GROUPS_PER_PARTITION, n_classes)
    if n_pairs is None:
        share = _PAIRS_TIMES_CLASSES // n_classes
        least = max(_MIN_GROUP_PAIRS, min(2 * n_features, _MAX_GROUP_PAIRS))
        n_pairs = max(least, min(share, _MAX_GROUP_PAIRS))
    check_whole(n_pairs, "n_pairs", at_least=1)
    # Six classes or fewer have one partition, into single classes.
    count = -(-n_pairs // (n_groups * (n_groups - 1))) if n_classes > n_groups else 1
    places = np.arange(n_classes) % n_groups
    return np.array([random_state.permutation(places) for _ in range(count)], dtype=np.int64)


def _all(k: int) -> _Pairs:
    numerators, denominators = np.divmod(np.arange(k * k, dtype=np.int64), k)
    different = numerators != denominators
    return np.column_stack([numerators[different], denominators[different]])


def _hypercube(k: int, rng: Generator) -> _Pairs:
    dimensions = (k - 1).bit_length()
    for _ in range(_MAX_PLACEMENTS):
        corners = rng.permutation(2**dimensions)[:k]
        pairs = _neighbours(corners, dimensions)
        if len(np.unique(pairs[:, 0])) == k:
            return pairs
    # On the corners 0..k-1 every label has a neighbour: each corner but 0 has one with a bit less.
    return _neighbours(rng.permutation(k), dimensions)


def _neighbours(corners: npt.NDArray[Any], dimensions: int) -> _Pairs:
    """Pairs of labels, label i on corners[i], whose corners differ in one bit."""
    label_at = np.full(2**dimensions, -1, dtype=np.int64)
    label_at[corners] = np.arange(len(corners))
    flipped = corners[:, None] ^ (1 << np.arange(dimensions))
    numerators, axes = np.nonzero(label_at[flipped] >= 0)
    return _ordered(np.column_stack([numerators, label_at[flipped[numerators, axes]]]))


def _ordered(pairs: npt.NDArray[Any]) -> _Pairs:
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].astype(np.int64)


def _explicit(table: LabelTable, pairs: Any) -> _Pairs:
    try:
        listed = [(numerator, denominator) for numerator, denominator in pairs]
    except (TypeError, ValueError):
        raise ValueError(
            f"pairs: expected a kind or a list of (numerator, denominator), got {show(pairs)}"
        ) from None
    indices = np.empty((len(listed), 2), dtype=np.int64)
    for row, pair in enumerate(listed):
        try:
            indices[row] = table.index(pair[0]), table.index(pair[1])
        except UnknownClassError as error:
            raise ValueError(f"pairs: unknown class in pair {row}: {error}") from None
        if indices[row, 0] == indices[row, 1]:
            raise ValueError(f"pairs: expected two different classes, got {show(pair)}")
    _check_explicit(table, indices)
    return indices


def _check_explicit(table: LabelTable, indices: _Pairs) -> None:
    distinct, counts = np.unique(indices, axis=0, return_counts=True)
    if (counts > 1).any():
        twice = distinct[np.argmax(counts > 1)]
        pair = tuple(table.labels[i] for i in twice)
        raise ValueError(f"pairs: expected distinct pairs, got {show(pair)} twice")
    missing = np.setdiff1d(np.arange(len(table)), indices)
    if len(missing):
        names = [table.labels[i] for i in missing]
        raise ValueError(f"pairs: expected every class in some pair, got none with {show(names)}")


def confusion_pairs(
    moments: ClassMoments,
    neighbours: int | None = None,
    *,
    n_pairs: int | None = None,
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
        Moments of at least two classes with weight; classes without weight are ignored.
    neighbours : int, optional
        Number of nearest classes that each class is paired with, both ways; 3 by default, at most k
        - 1.
    n_pairs : int, optional
        Number of pairs, instead of `neighbours`. Every class is placed in some pair first, which
        may take more pairs; the nearest pairs follow. Rounded up to an even number.
    ridge : float >= 0
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
        If there are fewer than two classes with weight, or an argument is out of range.
    numpy.linalg.LinAlgError
        If the pooled covariance is singular and `ridge` 0.
    """
    if not isinstance(moments, ClassMoments):
        raise ValueError(f"moments: expected ClassMoments, got {show(moments)}")
    labels = moments.active_classes.tolist()
    k = len(labels)
    if k < 2:
        raise ValueError(f"moments: expected at least 2 classes with samples, got {show(labels)}")
    if neighbours is not None and n_pairs is not None:
        raise ValueError(f"n_pairs: expected None with neighbours, got {show(n_pairs)}")
    if n_pairs is not None:
        check_whole(n_pairs, "n_pairs", at_least=1, at_most=k * (k - 1))
        nearest = -(-n_pairs // k)
    else:
        nearest = check_whole(_NEIGHBOURS if neighbours is None else neighbours, "neighbours",
                              at_least=1)  # fmt: skip
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
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels of samples, preferably held-out samples.
    n_pairs : int, optional
        Number of pairs. Every class that occurs is placed in some pair first, which may take more
        pairs; the pairs confused most often, either way, follow. Rounded up to an even number. By
        default, all confused pairs.

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
    truth = np.asarray(y_true)
    codes, table = _encoded(LabelTable(), truth, len(truth) if truth.ndim else -1, "y_true")
    guesses, table = _encoded(table, y_pred, len(codes), "y_pred")
    pairs, counts = np.unique(np.column_stack([codes, guesses]), axis=0, return_counts=True)
    edges = _most_confused(table, pairs, counts.astype(np.float64), n_pairs)
    return _both_ways(edges, table.classes.tolist())


def _most_confused(table: LabelTable, pairs: Codes, counts: _Array, n_pairs: int | None) -> _Pairs:
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
    return edges if n_pairs is None else closest_cover(edges, -total, k, n_pairs)


def _encoded(
    table: LabelTable, labels: Any, n: int, name: str
) -> tuple[npt.NDArray[Any], LabelTable]:
    try:
        return table.encode(labels, n)
    except ValueError as error:
        text = str(error).replace("one per sample", "as many as y_true")
        raise ValueError(re.sub(r"^y: ", f"{name}: ", text)) from None


def _both_ways(edges: _Pairs, labels: list[Any]) -> list[tuple[Hashable, Hashable]]:
    pairs = _ordered(np.concatenate([edges, edges[:, ::-1]]))
    return [(labels[i], labels[j]) for i, j in pairs]


_COUNTED = ("confusion", "random_groups")  # kinds that take a number of pairs
_MAX_CLASSES_ALL = 50  # for "auto" to mean all pairs


@dataclass(frozen=True, eq=False)
class Problems:
    """P eigenproblems between G groups of classes."""

    moments: ClassMoments  # of `labels`
    labels: Sequence[Hashable]  # classes or, with `random_groups`, random unions of classes
    groups: list[Contraction]  # length G
    items: _Pairs  # (P, 2) indices of numerator and denominator
    names: Labels  # (P, 2)
    of_classes: bool  # whether every group is a single class, named by its label
    random_groups: bool = False

    def names_below(self, groups: list[int]) -> list[Hashable]:
        """Names of denominators: labels, or the first contrast with each denominator."""
        rows = [int(np.argmax(self.items[:, 1] == group)) for group in groups]
        if self.of_classes:
            return [self.names[row : row + 1, 1].tolist()[0] for row in rows]
        return [tuple(self.names[row].tolist()) for row in rows]


def problems_of(
    moments: ClassMoments,
    labels: Labels,
    options: PencilOptions,
    span: Span | None = None,
) -> Problems:
    """The problems of the option `pairs`, for the classes with weight, `labels`.

    With a span, problems are between the moments of its coordinates.
    """
    solved = moments if span is None else span.moments
    pairs, scale = options.pairs, options.scale
    kind, count = pairs, None
    if isinstance(pairs, tuple) and len(pairs) == 2 and isinstance(pairs[1], Integral):
        kind, count = pairs
        if not isinstance(kind, str) or kind not in _COUNTED:
            raise ValueError(f"pairs: expected one of {_COUNTED} with a number, got {show(pairs)}")
    if isinstance(kind, str) and kind not in KINDS:
        kinds = ", ".join(map(repr, KINDS))
        raise ValueError(
            f"pairs: expected {kinds}, a list of pairs of labels or Contrasts, got {show(pairs)}"
        )
    if isinstance(kind, str) and kind == "auto":
        kind = "all" if len(labels) <= _MAX_CLASSES_ALL else "random_groups"
    if isinstance(kind, str) and kind == "random_groups":
        d, seed = moments.n_features_in_, options.random_state
        return _of_random_groups(solved, labels, d, count, seed)
    if isinstance(kind, str) and kind == "one_vs_rest":
        kind = one_vs_rest(labels)
    elif isinstance(kind, str) and kind == "class_tree":
        kind = class_tree(moments, scale=scale)
    elif isinstance(kind, str) and kind == "confusion":
        how = {"scale": scale} if span is None else {"ridge": CONFUSION_RIDGE * span.share}
        kind, count = confusion_pairs(solved, n_pairs=count, **how), None
    if isinstance(kind, Contrasts):
        return _of_contrasts(solved, kind)
    items = class_pairs(labels, kind, random_state=options.random_state)
    groups = [Contraction(np.array([c]), np.ones(1)) for c in range(len(labels))]
    return Problems(solved, labels.tolist(), groups, items, labels[items], True)


def _of_random_groups(
    moments: ClassMoments, labels: Labels, d: int, n_pairs: int | None, random_state: Seed
) -> Problems:
    """All ordered pairs of groups in each of several random partitions of the classes."""
    partitions = random_partitions(len(labels), d, n_pairs, random_generator(random_state))
    n_groups = int(partitions.max()) + 1
    names = [f"group{r}.{g}" for r in range(len(partitions)) for g in range(n_groups)]
    all_labels = moments.classes_.tolist()
    # Classes without weight join group 0, which does not change it.
    groups = np.zeros((len(partitions), len(all_labels)), dtype=np.int64)
    active = set(labels.tolist())
    groups[:, [label in active for label in all_labels]] = partitions
    groups += n_groups * np.arange(len(partitions))[:, None]
    merged = moments_of_groups(moments, groups, names)
    within = np.array([(i, j) for i in range(n_groups) for j in range(n_groups) if i != j])
    items = np.concatenate([n_groups * r + within for r in range(len(partitions))])
    alone = [Contraction(np.array([g]), np.ones(1)) for g in range(len(names))]
    return Problems(merged, names, alone, items, np.array(names)[items], False, True)


def _of_contrasts(moments: ClassMoments, contrasts: Contrasts) -> Problems:
    """Problems of contrasts, without the classes that have no weight."""
    classes = contrasts.classes or tuple(moments.classes_.tolist())
    known_labels = set(moments.classes_.tolist())
    unknown = [c for c in classes if c not in known_labels]
    if unknown:
        raise ValueError(f"pairs: expected classes of the moments, got {show(unknown)}")
    if contrasts.n_classes != len(classes):
        raise ValueError(
            f"pairs: expected weights of {len(classes)} classes, got {contrasts.n_classes}"
        )
    weights = np.array([moments.weight(c) for c in classes])
    position = np.where(weights > 0, np.cumsum(weights > 0) - 1, -1)
    known: dict[int, int] = {}
    groups: list[Contraction] = []
    items = np.empty((len(contrasts), 2), dtype=np.int64)
    for row, sides in enumerate(zip(contrasts.above, contrasts.below, strict=True)):
        for column, side in enumerate(sides):
            if id(side) not in known:
                known[id(side)] = len(groups)
                groups.append(_present(side, weights, position, contrasts.names[row, column]))
            items[row, column] = known[id(side)]
    present = [c for c, weight in zip(classes, weights, strict=True) if weight > 0]
    return Problems(moments, present, groups, items, contrasts.names, False)


def _present(
    side: Contraction, weights: _Array, position: npt.NDArray[np.intp], name: str
) -> Contraction:
    if len(side.indices) and side.indices.max() >= len(weights):
        raise ValueError(
            f"pairs: expected indices below {len(weights)} in {show(name)}, "
            f"got {side.indices.max()}"
        )
    if not side.dense(len(weights)) @ weights > 0:
        raise ValueError(f"pairs: expected classes with samples in {show(name)}, got none")
    selected = position[side.indices] >= 0
    return Contraction(position[side.indices[selected]], side.weights[selected], side.others)

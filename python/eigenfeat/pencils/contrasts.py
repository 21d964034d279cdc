r"""Problems between groups of classes: contractions of the tensor of second moments.

Many classes have too many pairs to solve them all. A contraction of :math:`E[x x^T y]` with
nonnegative weights :math:`u` is a weighted average of the second moments of the classes
(Karampatziakis and Mineiro 2014, section 5):

.. math::

    C(u) = \sum_c u_c W_c C_c / \sum_c u_c W_c

where :math:`W_c` is the weight of class c. If :math:`u` has zeros and ones, :math:`C(u)` is the
second moment of the pooled samples of the classes with ones, and the covariance of the contraction
is their pooled covariance. Contractions are formed when needed and not stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from eigenfeat._base.labels import LabelTable
from eigenfeat._base.types import Labels
from eigenfeat._base.validation import Generator, check_vector, real_array, show
from eigenfeat.moments.class_moments import ClassMoments, moments_of_groups
from eigenfeat.moments.columns import signed

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = [
    "KINDS",
    "MAX_GROUP_PAIRS",
    "PAIRS_PER_PARTITION",
    "Contraction",
    "Contrasts",
    "class_tree",
    "one_vs_rest",
    "random_groups",
    "random_partitions",
    "without_empty_classes",
]

# Values of the parameter `pairs` of `pair_directions` and `GEM`.
KINDS = ("all", "hypercube", "confusion", "one_vs_rest", "class_tree", "random_groups", "auto")

_Array = npt.NDArray[np.float64]

_POWER_STEPS = 30  # steps of the power iteration for a principal axis
# Random groups of classes: number of groups in a partition, of ordered pairs of its groups, and
# limits of the number of pairs in all partitions by default.
_GROUPS_PER_PARTITION = 6
PAIRS_PER_PARTITION = _GROUPS_PER_PARTITION * (_GROUPS_PER_PARTITION - 1)
MAX_GROUP_PAIRS, _MIN_GROUP_PAIRS = 600, 150
_PAIRS_TIMES_CLASSES = 150_000  # number of group pairs, times number of classes


@dataclass(frozen=True, eq=False)
class Contraction:
    """Weights of classes: `weights` (n,) at `indices` (n,), and `others` for each other class."""

    indices: npt.NDArray[np.int64]
    weights: _Array
    others: float = 0.0

    def dense(self, n_classes: int) -> _Array:
        """All weights, shape (n_classes,)."""
        out = np.full(n_classes, self.others)
        out[self.indices] = self.weights
        return out


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Eigenproblems between groups of classes, for `pair_directions` and `GEM`.

    Create it with `one_vs_rest`, `class_tree`, or from given weights with `Contrasts.of`.

    Attributes
    ----------
    above : tuple of Contraction, length P
        Numerator of each problem.
    below : tuple of Contraction, length P
        Denominator of each problem.
    names : ndarray of str, shape (P, 2)
        Names of both sides, used as the pairs of `PairDirections` and `GEM`.
    classes : tuple of labels, or None
        Labels that the indices and "others" of the contractions refer to. None: the sorted classes
        of the moments that the problems are solved for.
    n_classes : int
        Number of classes.
    """

    above: tuple[Contraction, ...]
    below: tuple[Contraction, ...]
    names: npt.NDArray[np.str_]
    classes: tuple[Hashable, ...] | None
    n_classes: int

    @classmethod
    def of(
        cls,
        weights_above: ArrayLike,
        weights_below: ArrayLike,
        names: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Contrasts:
        """Create problems from given weights.

        Parameters
        ----------
        weights_above : array-like of shape (P, k)
            Nonnegative weights of the classes in the numerators; only their ratios matter.
        weights_below : array-like of shape (P, k)
            Weights of the classes in the denominators.
        names : array-like of str, shape (P, 2), optional
            Distinct pairs of names; by default "above0", "below0" and so on.
        classes : array-like of shape (k,), optional
            Labels of the columns; by default, the sorted classes of the moments.

        Returns
        -------
        Contrasts
            P problems.

        Raises
        ------
        ValueError
            If shapes do not match, a weight is negative or not finite, a row has no weight, or a
            pair of names is repeated.

        Examples
        --------
        >>> from eigenfeat.pencils.contrasts import Contrasts
        >>> Contrasts.of([[1, 1, 0]], [[0, 0, 1]], names=[("animals", "plants")])
        Contrasts(1 problem)
        """
        k = None if classes is None else len(LabelTable.of(classes))
        above, k = _contractions(weights_above, k, "weights_above")
        below, k = _contractions(weights_below, k, "weights_below")
        if len(above) != len(below):
            raise ValueError(
                f"weights_below: expected as many rows as above ({len(above)}), got {len(below)}"
            )
        labels = None if classes is None else tuple(np.asarray(classes).tolist())
        return cls(above, below, _names(names, len(above)), labels, k)

    def __len__(self) -> int:
        return len(self.above)

    def __repr__(self) -> str:
        return f"Contrasts({len(self)} problem{'s' if len(self) != 1 else ''})"

    def weights(self) -> tuple[_Array, _Array]:
        """Return the weights of the classes in each problem.

        Returns
        -------
        above : (P, k) array
            Weights in the numerators.
        below : (P, k) array
            Weights in the denominators.
        """
        k = self.n_classes
        above, below = (np.array([c.dense(k) for c in side]) for side in (self.above, self.below))
        return above, below

    def members(self, name: str) -> list[Hashable]:
        """Return the classes on one side of a problem.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        list
            Labels of the classes with positive weight; indices if `classes` is None.

        Raises
        ------
        ValueError
            If no side has this name.
        """
        sides = zip(self.names.ravel().tolist(), _alternating(self.above, self.below), strict=True)
        for result, contraction in sides:
            if result == name:
                inside: list[int] = np.flatnonzero(contraction.dense(self.n_classes)).tolist()
                return [self.classes[i] if self.classes else i for i in inside]
        raise ValueError(f"name: expected one of the contrasts' names, got {show(name)}")


def one_vs_rest(labels: ArrayLike) -> Contrasts:
    """Problems of each class against the rest, both ways: 2 k problems for k classes.

    Parameters
    ----------
    labels : array-like of shape (k,)
        Distinct labels, at least two.

    Returns
    -------
    Contrasts
        Named by labels and "rest"; two classes give their two ordered pairs.

    Raises
    ------
    ValueError
        If labels are not distinct or fewer than two.
    """
    classes = _classes(labels)
    if len(classes) == 2:
        names = [(str(classes[0]), str(classes[1]))]
        return _both_ways([(_members([0]), _members([1]))], names, classes)
    rest = _unused("rest", classes)
    sides = []
    for c in range(len(classes)):
        alone = _members([c])
        sides.append((alone, Contraction(alone.indices, np.zeros(1), others=1.0)))
    return _both_ways(sides, [(str(label), rest) for label in classes], classes)


def class_tree(moments: ClassMoments, *, scale: ArrayLike | None = None) -> Contrasts:
    """Problems of a binary tree of classes: left against right, both ways, at each node.

    The classes of positive weight are split along the principal axis of their means, at the widest
    gap that leaves at least a quarter of them on either side. Splitting continues down to single
    classes, which gives ``2 (k - 1)`` problems. The tree depends neither on the order nor on the
    sizes of classes.

    Parameters
    ----------
    moments : ClassMoments
        Moments of at least two classes of positive weight.
    scale : array-like of shape (d,), optional
        Positive column scales; the means are divided by them.

    Returns
    -------
    Contrasts
        Problems from the root down. A side with one class is named by its label; other sides are
        named "node1", "node2", ... by the node that splits them. `members` returns their classes.

    Raises
    ------
    ValueError
        If there are fewer than two classes of positive weight, or `scale` is invalid.
    """
    if not isinstance(moments, ClassMoments):
        raise ValueError(f"moments: expected ClassMoments, got {show(moments)}")
    classes = _classes(moments.active_classes.tolist(), "moments")
    means = np.array([moments.mean(c) for c in classes])
    if scale is not None:
        means = means / check_vector(scale, means.shape[1], "scale", positive=True)
    node = _unused("node", classes)
    sides, names, nodes = [], [], [np.arange(len(classes))]
    for members in nodes:  # in order of their numbers; the loop appends nodes
        pair, called = [], []
        for half in _split(means, members):
            pair.append(_members(half))
            called.append(str(classes[half[0]]) if len(half) == 1 else f"{node}{len(nodes)}")
            if len(half) > 1:
                nodes.append(half)
        sides.append((pair[0], pair[1]))
        names.append((called[0], called[1]))
    return _both_ways(sides, names, classes)


def _split(means: _Array, members: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return two halves of `members`, in order along the axis; each half is ascending."""
    centred = means[members] - means[members].mean(axis=0)
    along = centred @ _principal_axis(centred)
    order = np.argsort(along, kind="stable")
    n = len(members)
    smallest = max(1, n // 4)
    cuts = np.arange(smallest, n - smallest + 1)
    gaps = along[order][cuts] - along[order][cuts - 1]
    # Of equal gaps, take the most central one.
    cut = cuts[np.lexsort((np.abs(2 * cuts - n), -gaps))[0]]
    return np.sort(members[order[:cut]]), np.sort(members[order[cut:]])


def _principal_axis(centred: _Array) -> _Array:
    """Direction (d,) of largest variance, by power iteration from the mean farthest from zero."""
    size = np.abs(centred).max()
    means = centred / size if size > 0 else centred
    axis = means[np.argmax((means**2).sum(axis=1))]
    for _ in range(_POWER_STEPS):
        longer = (means @ axis) @ means
        norm = np.linalg.norm(longer)
        if not norm > 0:
            break
        axis = longer / norm
    return signed(axis[:, None])[:, 0]


def _classes(labels: Any, name: str = "labels") -> tuple[Any, ...]:
    if len(LabelTable.of(labels)) < 2:
        raise ValueError(f"{name}: expected at least 2 classes, got {show(labels)}")
    return tuple(np.asarray(labels).tolist())


def _unused(word: str, classes: tuple[Any, ...]) -> str:
    """Append underscores to `word` until no label begins with it."""
    while any(str(label).startswith(word) for label in classes):
        word += "_"
    return word


def _members(indices: Any) -> Contraction:
    chosen = np.asarray(indices, dtype=np.int64)
    return Contraction(chosen, np.ones(len(chosen)))


def _both_ways(
    sides: list[tuple[Contraction, Contraction]],
    names: list[tuple[str, str]],
    classes: tuple[Any, ...],
) -> Contrasts:
    first = [a for a, _ in sides]
    second = [b for _, b in sides]
    called = np.array([name for a, b in names for name in ((a, b), (b, a))], dtype=np.str_)
    above, below = _alternating(first, second), _alternating(second, first)
    return Contrasts(tuple(above), tuple(below), called, classes, len(classes))


def _alternating(first: Sequence[Contraction], second: Sequence[Contraction]) -> list[Contraction]:
    return [side for pair in zip(first, second, strict=True) for side in pair]


def _contractions(weights: Any, k: int | None, name: str) -> tuple[tuple[Contraction, ...], int]:
    """Check rows (P, k) of weights and return them with k; equal rows become a single object."""
    dense = np.asarray(real_array(weights, name), dtype=np.float64)
    if dense.ndim != 2 or (k is not None and dense.shape[1] != k):
        columns = "k" if k is None else k
        raise ValueError(f"{name}: expected shape (P, {columns}), got {dense.shape}")
    if not len(dense):
        raise ValueError(f"{name}: expected at least one row, got none")
    known: dict[bytes, Contraction] = {}
    result = []
    for row, values in enumerate(dense):
        good = np.isfinite(values) & (values >= 0)
        if not good.all():
            got = show(values[~good][0])
            raise ValueError(f"{name}: expected finite numbers >= 0, got {got} in row {row}")
        if not values.sum() > 0:
            raise ValueError(f"{name}: expected a weight > 0, got none in row {row}")
        indices = np.flatnonzero(values > 0)
        result.append(known.setdefault(values.tobytes(), Contraction(indices, values[indices])))
    return tuple(result), dense.shape[1]


def _names(names: Any, n: int) -> npt.NDArray[np.str_]:
    if names is None:
        return np.array([(f"above{p}", f"below{p}") for p in range(n)], dtype=np.str_)
    called = np.array([[str(name) for name in pair] for pair in names], dtype=np.str_)
    if called.shape != (n, 2):
        raise ValueError(f"names: expected shape ({n}, 2), got {called.shape}")
    if len(np.unique(called, axis=0)) != n:
        raise ValueError(f"names: expected distinct pairs, got {show(names)}")
    return called


# ---- contrasts of the classes of positive weight -------------------------------------------------


def without_empty_classes(
    contrasts: Contrasts, moments: ClassMoments
) -> tuple[list[Hashable], list[Contraction], npt.NDArray[np.int64]]:
    """Leave the classes without weight out of problems.

    Returns the classes with weight, their distinct contractions, and for each problem the indices
    (P, 2) of its two contractions.
    """
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
    return present, groups, items


def _present(
    side: Contraction, weights: _Array, position: npt.NDArray[np.intp], name: str
) -> Contraction:
    if not side.dense(len(weights)) @ weights > 0:
        raise ValueError(f"pairs: expected classes with samples in {show(name)}, got none")
    selected = position[side.indices] >= 0
    return Contraction(position[side.indices[selected]], side.weights[selected], side.others)


# ---- random groups of classes --------------------------------------------------------------------


def random_groups(
    moments: ClassMoments, labels: Labels, d: int, n_pairs: int | None, random_state: Generator
) -> tuple[ClassMoments, list[str], npt.NDArray[np.int64]]:
    """All ordered pairs of groups in each of several random partitions of the classes.

    Returns the moments of the groups, their names, and for each pair the indices (P, 2) of its
    groups.
    """
    partitions = random_partitions(len(labels), d, n_pairs, random_state)
    n_groups = int(partitions.max()) + 1
    names = [f"group{r}.{g}" for r in range(len(partitions)) for g in range(n_groups)]
    all_labels = moments.classes_.tolist()
    # Classes without weight join group 0, whose moments they do not change.
    groups = np.zeros((len(partitions), len(all_labels)), dtype=np.int64)
    active = set(labels.tolist())
    groups[:, [label in active for label in all_labels]] = partitions
    groups += n_groups * np.arange(len(partitions))[:, None]
    merged = moments_of_groups(moments, groups, names)
    within = np.array([(i, j) for i in range(n_groups) for j in range(n_groups) if i != j])
    items = np.concatenate([n_groups * r + within for r in range(len(partitions))])
    return merged, names, items


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
        least = max(_MIN_GROUP_PAIRS, min(2 * n_features, MAX_GROUP_PAIRS))
        n_pairs = max(least, min(share, MAX_GROUP_PAIRS))
    # Six classes or fewer have one partition, into single classes.
    count = -(-n_pairs // (n_groups * (n_groups - 1))) if n_classes > n_groups else 1
    places = np.arange(n_classes) % n_groups
    return np.array([random_state.permutation(places) for _ in range(count)], dtype=np.int64)

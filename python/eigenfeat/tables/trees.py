"""Sums of regression trees as arrays of nodes, predicted by NumPy.

Models keep these arrays in place of scikit-learn's trees, whose compiled code does not check the
indices of a loaded file. scikit-learn grows the trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.threads import resolve

__all__ = ["Nodes", "Trees", "boosting_threads", "unequal"]

_NODES_AT_ONCE = 1 << 18  # samples times trees
_MIN_THREADED = 50_000  # samples of boosting
_ROUNDING = 1e-6  # relative difference of values of a feature that is rounding
_BETWEEN = 0.618  # place of a threshold between two values


class Nodes(NamedTuple):
    """Nodes of one tree, the root first; `left` and `right` are negative in leaves."""

    left: NDArray[Any]
    right: NDArray[Any]
    feature: NDArray[Any]
    threshold: NDArray[Any]
    depth: int

    @classmethod
    def of_tree(cls, tree: Any) -> Nodes:
        """Nodes of a tree of scikit-learn's forests and gradient boosting."""
        left, right = tree.children_left, tree.children_right
        return cls(left, right, tree.feature, tree.threshold, int(tree.max_depth))

    @classmethod
    def of_predictor(cls, predictor: Any) -> Nodes:
        """Nodes of a tree of scikit-learn's histogram gradient boosting."""
        nodes = predictor.nodes
        leaf = nodes["is_leaf"].astype(bool)
        left, right = (
            np.where(leaf, -1, nodes[side].astype(np.intp)) for side in ("left", "right")
        )
        feature = nodes["feature_idx"].astype(np.intp)
        depth = int(predictor.get_max_depth())
        return cls(left, right, feature, nodes["num_threshold"], depth)


def unequal(weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """The weights, or None if all are equal: scikit-learn draws other samples with weights."""
    return None if weight is None or (weight == weight[0]).all() else weight


def boosting_threads(n_samples: int, n_threads: int | None) -> AbstractContextManager[Any]:
    """Limit the threads of scikit-learn's histogram gradient boosting.

    Few samples gain little by threads, which wait for each other where cores are busy.
    """
    from threadpoolctl import threadpool_limits

    threads = 1 if n_samples < _MIN_THREADED else resolve(n_threads) or None
    return threadpool_limits(threads, user_api="openmp")


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees with N nodes together, whose predictions add up.

    Attributes
    ----------
    roots : (T,) array of int
        First node of each tree.
    feature, threshold : (N,) arrays
        A sample goes to the left node where its feature is at most the threshold.
    left, right : (N,) arrays of int
        Nodes below each node; a leaf is below itself.
    values : (N, q) array
        Outputs of the leaves.
    depth : int
        Most steps from a root to a leaf.
    """

    roots: NDArray[np.intp]
    feature: NDArray[np.intp]
    threshold: NDArray[np.float64]
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    values: NDArray[np.float64]
    depth: int

    @classmethod
    def of(
        cls, trees: Sequence[Nodes], values: Sequence[NDArray[np.float64]], X: NDArray[np.float32]
    ) -> Trees:
        """Join trees, with the outputs (nodes, q) of the nodes of each tree.

        Each threshold moves to a place between the neighbouring values of the training samples `X`,
        which it separates as before: a mean of two values may itself be a value of new samples,
        whose side would then depend on rounding. Values that differ by rounding count as equal.
        """
        starts = np.cumsum([0, *(len(tree.left) for tree in trees)])
        feature, threshold, left, right = [], [], [], []
        for start, tree in zip(starts, trees, strict=False):
            nodes, leaf = np.arange(len(tree.left)), tree.left < 0
            left.append(start + np.where(leaf, nodes, tree.left))
            right.append(start + np.where(leaf, nodes, tree.right))
            feature.append(np.where(leaf, 0, tree.feature))
            threshold.append(np.where(leaf, np.inf, tree.threshold))
        features, thresholds = np.concatenate(feature), np.concatenate(threshold)
        for j in np.unique(features):
            known = np.unique(X[:, j]).astype(np.float64)
            apart = np.diff(known) > _ROUNDING * np.abs(known[[0, -1]]).max()
            first, last = known[np.append(True, apart)], known[np.append(apart, True)]
            nodes = np.flatnonzero((features == j) & np.isfinite(thresholds))
            below = np.maximum(np.searchsorted(last, thresholds[nodes], side="right") - 1, 0)
            inside = below < len(last) - 1
            low, high = last[below[inside]], first[below[inside] + 1]
            thresholds[nodes[inside]] = low + _BETWEEN * (high - low)
        return cls(
            starts[:-1],
            features,
            thresholds,
            np.concatenate(left),
            np.concatenate(right),
            np.concatenate(values),
            max(tree.depth for tree in trees),
        )

    @classmethod
    def of_forest(cls, forest: Any, X: NDArray[np.float32]) -> Trees:
        """Mean outputs of a forest of scikit-learn's that was grown from `X`."""
        grown = [one.tree_ for one in forest.estimators_]
        values = [tree.value.reshape(tree.node_count, -1) / len(grown) for tree in grown]
        return cls.of([Nodes.of_tree(tree) for tree in grown], values, X)

    @classmethod
    def of_boosting(
        cls, predictors: Iterable[tuple[int, Any]], n_outputs: int, X: NDArray[np.float32]
    ) -> Trees:
        """Sums of scikit-learn's histogram gradient boosting that was fitted to `X`.

        `predictors` are pairs of an output and a tree that adds to it.
        """
        nodes, values = [], []
        for output, predictor in predictors:
            nodes.append(Nodes.of_predictor(predictor))
            values.append(np.zeros((len(predictor.nodes), n_outputs)))
            values[-1][:, output] = predictor.nodes["value"]
        return cls.of(nodes, values, X)

    def predict(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Sums (n, q) of all trees' outputs."""
        X = np.ascontiguousarray(X, dtype=np.float32)  # as scikit-learn compares features
        out = np.empty((len(X), self.values.shape[1]))
        size = max(_NODES_AT_ONCE // len(self.roots), 1)
        for start in range(0, len(X), size):
            rows = X[start : start + size]
            values, begin = rows.ravel(), rows.shape[1] * np.arange(len(rows))[:, None]
            node = np.tile(self.roots, (len(rows), 1))
            for _ in range(min(self.depth, len(self.feature))):
                goes_left = values.take(self.feature.take(node) + begin) <= self.threshold.take(
                    node
                )
                node = np.where(goes_left, self.left.take(node), self.right.take(node))
            out[start : start + size] = self.values[node].sum(axis=1)
        return out

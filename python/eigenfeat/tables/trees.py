"""Sums of regression trees as arrays of nodes, predicted by NumPy.

Models keep these arrays in place of scikit-learn's trees, whose compiled code does not check the
indices of a loaded file. scikit-learn grows the trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Trees"]

_NODES_AT_ONCE = 1 << 20  # samples times trees


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
    def of(cls, trees: Sequence[tuple[Any, int | None]], n_outputs: int, factor: float) -> Trees:
        """Copy scikit-learn's trees, with all outputs times `factor`.

        Each tree comes with the number of its output, or None if it has all of them.
        """
        starts = np.cumsum([0, *(tree.node_count for tree, _ in trees)])
        values = np.zeros((starts[-1], n_outputs))
        features, thresholds, below = [], [], []
        for start, (tree, output) in zip(starts, trees, strict=False):
            nodes = np.arange(tree.node_count)
            leaf = tree.children_left < 0
            for children in (tree.children_left, tree.children_right):
                below.append(start + np.where(leaf, nodes, children))
            features.append(np.where(leaf, 0, tree.feature))
            thresholds.append(np.where(leaf, np.inf, tree.threshold))
            columns = slice(None) if output is None else slice(output, output + 1)
            values[start : start + len(nodes), columns] = factor * tree.value[:, :, 0]
        return cls(
            starts[:-1],
            np.concatenate(features),
            np.concatenate(thresholds),
            np.concatenate(below[::2]),
            np.concatenate(below[1::2]),
            values,
            max(int(tree.max_depth) for tree, _ in trees),
        )

    def predict(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Sums (n, q) of all trees' outputs."""
        X = np.ascontiguousarray(X, dtype=np.float32)  # as scikit-learn compares features
        out = np.empty((len(X), self.values.shape[1]))
        size = max(_NODES_AT_ONCE // len(self.roots), 1)
        for start in range(0, len(X), size):
            rows = X[start : start + size]
            at = np.arange(len(rows))[:, None]
            node = np.tile(self.roots, (len(rows), 1))
            for _ in range(min(self.depth, len(self.feature))):
                goes_left = rows[at, self.feature[node]] <= self.threshold[node]
                node = np.where(goes_left, self.left[node], self.right[node])
            out[start : start + size] = self.values[node].sum(axis=1)
        return out

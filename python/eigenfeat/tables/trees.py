"""Sums of regression trees as arrays of nodes, predicted by NumPy.

Models keep these arrays in place of scikit-learn's trees, whose compiled code does not check the
indices of a loaded file. scikit-learn grows the trees.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone

from eigenfeat._base.threads import resolve
from eigenfeat.tables.representations import BETWEEN

__all__ = ["CHOSEN", "SCREENED", "Trees", "chosen_features", "fit_forest", "grow", "unequal"]

_NODES_AT_ONCE = 1 << 18  # samples times trees
_MIN_THREADED = 50_000  # samples of boosting
_MIN_THREADED_FOREST = 16_384  # samples times features; fewer gain no time by threads
_ROUNDING = 1e-6  # relative difference of values of a feature that counts as rounding
_DRAWN_AT_ONCE = 100_000  # samples of all scikit-learn trees that are in memory
CHOSEN = 16  # number of features that trees read besides the required ones
SCREENED = 4_000  # samples of the short boosting that selects these features
_STEPS_OF_SCREEN, _MAX_LEAVES_OF_SCREEN = 40, 31  # iterations, and leaves of a tree


class Nodes(NamedTuple):
    """Nodes of one tree, the root first; `left` is negative in leaves."""

    left: NDArray[Any]
    right: NDArray[Any]
    feature: NDArray[Any]
    threshold: NDArray[Any]
    values: NDArray[np.float64]  # outputs (nodes, q)
    depth: int


def unequal(weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """The weights, or None if all are equal."""
    return None if weight is None or (weight == weight[0]).all() else weight


def chosen_features(
    boosting: Any,
    X: NDArray[np.float32],
    y: NDArray[Any],
    weight: NDArray[np.float64] | None,
    required: NDArray[np.bool_],
) -> NDArray[np.intp]:
    """The required features, and 16 other features with the largest gains in a short boosting."""
    leaves = min(boosting.max_leaf_nodes, _MAX_LEAVES_OF_SCREEN)
    short = clone(boosting).set_params(max_iter=_STEPS_OF_SCREEN, max_leaf_nodes=leaves)
    gains, others = np.zeros(len(required)), np.flatnonzero(~required)
    for tree in chain.from_iterable(grow(short, X, y, weight, np.arange(len(required)), 1)):
        np.add.at(gains, tree.nodes["feature_idx"], np.maximum(tree.nodes["gain"], 0.0))
    best = others[np.argsort(-gains[others], kind="stable")[:CHOSEN]]
    return np.sort(np.concatenate([np.flatnonzero(required), best]))


def grow(
    boosting: Any,
    X: NDArray[Any],
    y: NDArray[Any],
    weight: NDArray[np.float64] | None,
    read: NDArray[np.intp],
    n_threads: int | None,
) -> list[Any]:
    """Fit scikit-learn's histogram gradient boosting, and return the trees of each step.

    The trees read the features `read`. scikit-learn copies features that are not float64.
    """
    from threadpoolctl import threadpool_limits

    boosting.set_params(max_bins=_most_values(X, boosting.max_bins))
    # Threads save little time with few samples, and wait for each other on busy machines.
    threads = 1 if len(X) < _MIN_THREADED else resolve(n_threads) or None
    with threadpool_limits(threads, user_api="openmp"):
        boosting.fit(X if len(read) == X.shape[1] else X[:, read], y, weight)
    for tree in chain.from_iterable(boosting._predictors):
        tree.nodes["feature_idx"] = read[tree.nodes["feature_idx"]]
    steps: list[Any] = boosting._predictors
    return steps


def _most_values(X: NDArray[Any], limit: int) -> int:
    """Largest number of distinct values of a feature, at least 2 and at most `limit`.

    More bins do not change the trees, and scikit-learn takes time for the empty bins, too.
    """
    most = 2
    for feature in X.T:
        most = max(most, min(len(np.unique(feature)), limit))
        if most == limit:
            break
    return most


def fit_forest(
    forest: Any,
    X: NDArray[np.float32],
    y: NDArray[Any],
    weight: NDArray[np.float64] | None,
    held: NDArray[np.integer[Any]],
    n_outputs: int,
) -> tuple[Trees, NDArray[np.float64]]:
    """Fit scikit-learn's forest; return its trees, and out-of-bag means of the samples `held`.

    The means (len(held), n_outputs) of a sample are those of the trees that were grown without it.
    """
    total, count = np.zeros((len(held), n_outputs)), np.zeros((len(held), 1))

    def grown() -> Iterator[Any]:
        for tree, drawn in _forest_trees(forest, X, y, weight):
            out = ~np.isin(held, drawn)
            total[out] += tree.tree_.predict(X[held[out]]).reshape(-1, n_outputs)
            count[out] += 1.0
            yield tree

    trees = Trees.of_forest(grown(), X)
    return trees, total / np.maximum(count, 1.0)


def _forest_trees(
    forest: Any, X: NDArray[np.float32], y: NDArray[Any], weight: NDArray[np.float64] | None
) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Trees of scikit-learn's forest, each with the indices of the samples that it is grown from.

    Samples are drawn with equal probabilities, as in Breiman (2001), and their weights count in the
    splits. scikit-learn 1.9 draws them by their weights, so that a sample of large weight would be
    in all trees and have no out-of-bag prediction. Trees are grown a few at a time, because the
    nodes of all trees may take more memory than the samples.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    def grown(seed: int) -> tuple[Any, NDArray[Any]]:
        indices = np.random.RandomState(seed).randint(0, len(X), drawn)
        counts = np.bincount(indices, minlength=len(X)).astype(np.float64)
        tree = copy(unfitted)
        tree.random_state = seed
        with config_context(skip_parameter_validation=True):  # parameters are those of `forest`
            tree.fit(X, y, counts if weight is None else counts * weight, check_input=False)
        return tree, indices

    count, drawn = forest.n_estimators, forest.max_samples or len(X)
    n_jobs = forest.n_jobs if X.size >= _MIN_THREADED_FOREST else 1
    options = {name: getattr(forest, name) for name in forest.estimator_params}
    unfitted = clone(forest.estimator).set_params(**options)
    random = np.random.RandomState(forest.random_state)
    seeds = [random.randint(np.iinfo(np.int32).max) for _ in range(count)]
    step = max(4 * effective_n_jobs(n_jobs), _DRAWN_AT_ONCE // drawn)
    for first in range(0, count, step):
        some = (delayed(grown)(seed) for seed in seeds[first : first + step])
        yield from Parallel(n_jobs=n_jobs, prefer="threads")(some)


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees with N nodes together, whose predictions add up.

    Attributes
    ----------
    roots : (T,) array of int
        First node of each tree.
    feature : (N,) array of int
        Column that each node tests.
    threshold : (N,) array
        Samples whose entry in the column is at most the threshold go to the left node.
    left : (N,) array of int
        Left child of each node; a leaf is its own child.
    right : (N,) array of int
        Right child of each node; a leaf is its own child.
    values : (N, q) array
        Outputs of the leaves.
    depth : int
        Most steps from a root to a leaf.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    values: NDArray[np.float64]
    depth: int

    @classmethod
    def of(cls, trees: Iterable[Nodes], X: NDArray[Any]) -> Trees:
        """Join trees.

        Each threshold moves to a place between the neighbouring values of the training samples `X`,
        which it separates as before: a mean of two values may itself be a value of new samples,
        whose side would then depend on rounding. Values that differ by rounding count as equal.
        """
        roots, size, depth = [], 0, 0
        parts: dict[str, list[NDArray[Any]]] = defaultdict(list)
        for tree in trees:
            nodes, leaf = size + np.arange(len(tree.left)), tree.left < 0
            for name, below in (("left", tree.left), ("right", tree.right)):
                parts[name].append(np.where(leaf, nodes, size + below).astype(np.int32))
            parts["feature"].append(np.where(leaf, 0, tree.feature).astype(np.int32))
            parts["threshold"].append(np.where(leaf, np.inf, tree.threshold))
            parts["values"].append(tree.values)
            roots.append(size)
            size, depth = size + len(nodes), max(depth, tree.depth)
        # Each list is freed before the next one is joined.
        joined = {name: np.concatenate(parts.pop(name)) for name in list(parts)}
        features, thresholds = joined["feature"], joined.pop("threshold")
        for j in np.unique(features):
            ascending = np.sort(X[:, j]).astype(np.float64)
            known = ascending[np.append(True, np.diff(ascending) > 0)]  # faster than np.unique
            apart = np.diff(known) > _ROUNDING * np.abs(known[[0, -1]]).max()
            first, last = known[np.append(True, apart)], known[np.append(apart, True)]
            nodes = np.flatnonzero((features == j) & np.isfinite(thresholds))
            below = np.maximum(np.searchsorted(last, thresholds[nodes], side="right") - 1, 0)
            inside = below < len(last) - 1
            low, high = last[below[inside]], first[below[inside] + 1]
            thresholds[nodes[inside]] = low + BETWEEN * (high - low)
        # The largest float32 numbers not above the thresholds separate the same float32 values.
        rounded = thresholds.astype(np.float32)
        above = rounded > thresholds
        rounded[above] = np.nextafter(rounded[above], np.float32(-np.inf))
        return cls(np.array(roots, np.int32), threshold=rounded, depth=depth, **joined)

    @classmethod
    def of_forest(cls, trees: Iterable[Any], X: NDArray[np.float32]) -> Trees:
        """Mean outputs of scikit-learn's trees that were grown from `X`."""

        def nodes() -> Iterator[Nodes]:
            for tree in (one.tree_ for one in trees):
                values = tree.value.reshape(tree.node_count, -1)
                below = tree.children_left, tree.children_right
                yield Nodes(*below, tree.feature, tree.threshold, values.copy(), tree.max_depth)

        out = cls.of(nodes(), X)
        np.divide(out.values, len(out.roots), out=out.values)
        return out

    @classmethod
    def of_boosting(
        cls, predictors: Iterable[tuple[int, Any]], n_outputs: int, X: NDArray[Any]
    ) -> Trees:
        """Sums of scikit-learn's histogram gradient boosting that was fitted to `X`.

        `predictors` are pairs of an output and a tree that adds to it.
        """
        trees = []
        for output, predictor in predictors:
            nodes = predictor.nodes
            left, right, feature = (
                nodes[name].astype(np.intp) for name in ("left", "right", "feature_idx")
            )
            left[nodes["is_leaf"].astype(bool)] = -1
            values = np.zeros((len(nodes), n_outputs))
            values[:, output] = nodes["value"]
            depth = int(predictor.get_max_depth())
            trees.append(Nodes(left, right, feature, nodes["num_threshold"], values, depth))
        return cls.of(trees, X)

    def first(self, count: int) -> Trees:
        """The first `count` trees."""
        end = np.append(self.roots, len(self.left))[count]
        names = ("feature", "threshold", "left", "right", "values")
        nodes = {name: getattr(self, name)[:end] for name in names}
        return replace(self, roots=self.roots[:count], **nodes)

    def predict(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Sums (n, q) of all trees' outputs."""
        X = np.ascontiguousarray(X, dtype=np.float32)  # scikit-learn compares float32 features
        out = np.empty((len(X), self.values.shape[1]))
        size = max(_NODES_AT_ONCE // len(self.roots), 1)
        for start in range(0, len(X), size):
            rows = X[start : start + size]
            node = np.tile(self.roots, len(rows))
            begin = np.repeat(rows.shape[1] * np.arange(len(rows), dtype=np.int32), len(self.roots))
            values, leaf, going = rows.ravel(), node.copy(), np.arange(len(node))
            for _ in range(min(self.depth, len(self.feature))):
                goes_left = values.take(self.feature.take(node) + begin) <= self.threshold.take(
                    node
                )
                below = np.where(goes_left, self.left.take(node), self.right.take(node))
                leaf[going] = below
                inner = np.flatnonzero(below != node)
                node, begin, going = below[inner], begin[inner], going[inner]
            out[start : start + size] = self.values[leaf.reshape(len(rows), -1)].sum(axis=1)
        return out

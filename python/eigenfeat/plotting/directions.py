"""Directions of fitted models, by pairs of classes or as the components of a reduction."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import Floats
from eigenfeat._base.validation import check_whole, show
from eigenfeat.plotting.figures import is_sequence

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

Pair = tuple[Hashable, Hashable]


@dataclass(frozen=True, eq=False)
class ShownDirections:
    """Directions in a model's input space, of pairs of classes or of a reduction."""

    weights: Floats  # (d, m), one direction per column
    values: Floats  # (m,) eigenvalues; empty for a reduction
    pairs: NDArray[Any]  # (m, 2) numerators and denominators; empty for a reduction
    ranks: NDArray[Any]  # (m,) rank of each direction in its pair
    labels: list[Any]  # classes, or other names of numerators and denominators
    threshold: float | None  # smallest eigenvalue that the model keeps

    def columns(self, pair: Pair) -> NDArray[np.intp]:
        """Return the columns of `weights` of a pair, by rank."""
        columns = np.flatnonzero((self.pairs[:, 0] == pair[0]) & (self.pairs[:, 1] == pair[1]))
        if not len(columns):
            raise ValueError(f"pairs: expected pairs that have directions, got {tuple(pair)}")
        return columns[np.argsort(self.ranks[columns], kind="stable")]

    def leading_pairs(self, count: int | None = None) -> list[Pair]:
        """Return the `count` pairs with the largest eigenvalues, largest first."""
        first = np.flatnonzero(self.ranks == 0)
        order = first[np.argsort(-self.values[first], kind="stable")][:count]
        return [(self.pairs[c, 0], self.pairs[c, 1]) for c in order]


def parts_of(model: BaseEstimator) -> list[BaseEstimator]:
    """Return the model and its inner models: best estimator of a search, steps, extractors."""
    parts = [model]
    for part in parts:
        inner = [getattr(part, name, None) for name in ("best_estimator_", "extractor_")]
        inner += [step for _, step in getattr(part, "steps", ())]
        parts += [estimator for estimator in inner if hasattr(estimator, "get_params")]
    return parts


def directions_of(model: BaseEstimator, *, paired: bool = False) -> ShownDirections:
    """Return the directions of a fitted model; with `paired`, only of pairs of classes."""
    wanted = "GEM" if paired else "model with directions, such as GEM or LDG"
    if not hasattr(model, "fit"):
        raise ValueError(f"estimator: expected a fitted {wanted}, got {show(model)}")
    check_is_fitted(model)
    for part in parts_of(model):
        if hasattr(part, "views_") and not getattr(part, "layers_", ()):
            raise ValueError(
                "estimator: expected a classifier that uses GEM features of the columns, got a "
                "pool that gives them no weight; fit a GEMClassifier"
            )
        directions = _of_pairs(part) or (None if paired else _components(part))
        if directions is None:
            continue
        if not directions.weights.size:
            raise ValueError(
                "estimator: expected a model with directions, got none above its threshold"
            )
        return directions
    raise ValueError(f"estimator: expected a fitted {wanted}, got {show(model)}")


def _of_pairs(part: Any) -> ShownDirections | None:
    """Return the directions of a GEM, or of the first layer of a classifier; None without pairs."""
    layer = next(iter(getattr(part, "layers_", ())), None)
    if layer is None and not (hasattr(part, "pairs_") and hasattr(part, "ranks_")):
        return None
    weights, values, pairs, ranks = (
        getattr(part, f"{name}_") if layer is None else getattr(layer, name)
        for name in ("directions", "eigenvalues", "pairs", "ranks")
    )
    if not isinstance(weights, np.ndarray):  # a product of factors, in models of many columns
        return None
    labels = [label for label in np.asarray(part.classes_).tolist() if label in pairs]
    # Names of clusters and of groups of classes are not in `classes_`.
    labels += [name for name in dict.fromkeys(pairs.ravel().tolist()) if name not in labels]
    extractor = part.nested("gem") if hasattr(part, "gem") else part
    limit = getattr(extractor, "threshold", None)
    if getattr(part, "depth", 1) > 1 or not isinstance(limit, (int, float)):
        limit = None
    return ShownDirections(weights, values, pairs, ranks, labels, limit)


def _components(part: Any) -> ShownDirections | None:
    """Return the components of a reduction, such as LDG or scikit-learn's PCA, or None."""
    components = getattr(part, "components_", None)
    if components is None or hasattr(part, "layers_") or np.ndim(components) != 2:
        return None
    weights = np.asarray(components, dtype=np.float64).T
    no_pairs = np.empty(0), np.empty((0, 2), dtype=object)
    return ShownDirections(weights, *no_pairs, np.arange(weights.shape[1]), [], None)


def check_image_shape(d: int, shape: object) -> tuple[int, int]:
    """Return rows and columns of images of d pixels, square by default."""
    side = round(float(np.sqrt(d)))
    given: Any = (side, side) if shape is None else shape
    if not is_sequence(given) or len(given) != 2:
        raise ValueError(f"image_shape: expected rows and columns, got {show(shape)}")
    rows, columns = (check_whole(size, "image_shape", at_least=1) for size in given)
    if rows * columns != d:
        raise ValueError(f"image_shape: expected {d} pixels, got {rows} x {columns}")
    return rows, columns

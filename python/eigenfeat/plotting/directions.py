"""What pictures take from a fitted GEM: its directions by pairs of classes."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import check_whole, show

if TYPE_CHECKING:
    from collections.abc import Hashable

    from sklearn.base import BaseEstimator

    from eigenfeat.gem.gem import GEM

__all__ = [
    "check_image_shape",
    "check_pair",
    "check_pairs",
    "columns_of",
    "fitted_gem",
    "gem_to_draw",
    "leading_pairs",
]


def leading_pairs(gem: GEM | SimpleNamespace, count: int) -> list[tuple[Hashable, Hashable]]:
    """Return the `count` class pairs with the largest eigenvalues, largest first."""
    gem = fitted_gem(gem)
    check_whole(count, "count", at_least=1)
    first = np.flatnonzero(gem.ranks_ == 0)
    order = first[np.argsort(-gem.eigenvalues_[first], kind="stable")][:count]
    return [(gem.pairs_[c, 0], gem.pairs_[c, 1]) for c in order]


def columns_of(gem: GEM | SimpleNamespace, pair: tuple[Hashable, Hashable]) -> NDArray[np.intp]:
    """Return which columns of `directions_` belong to a pair, by rank."""
    of_pair = (gem.pairs_[:, 0] == pair[0]) & (gem.pairs_[:, 1] == pair[1])
    columns = np.flatnonzero(of_pair)
    if not len(columns):
        raise ValueError(f"pair: expected one that has directions, got {tuple(pair)}")
    return columns[np.argsort(gem.ranks_[columns], kind="stable")]


def check_image_shape(d: int, shape: tuple[int, int] | None) -> tuple[int, int]:
    """Rows and columns of the images that d pixels make, square by default."""
    side = round(float(np.sqrt(d)))
    if shape is None:
        shape = side, side
    elif not isinstance(shape, (Sequence, np.ndarray)) or len(shape) != 2:
        raise ValueError(f"image_shape: expected rows and columns, got {show(shape)}")
    rows, columns = (check_whole(size, "image_shape", at_least=1) for size in shape)
    if rows * columns != d:
        raise ValueError(f"image_shape: expected {d} pixels, got {rows} x {columns}")
    return rows, columns


def fitted_gem(gem: BaseEstimator | SimpleNamespace, name: str = "gem") -> GEM | SimpleNamespace:
    """A fitted GEM, or what stands for the first layer of a classifier."""
    if not hasattr(gem, "fit") and not isinstance(gem, SimpleNamespace):
        raise ValueError(f"{name}: expected a fitted GEM, got {show(gem)}")
    if hasattr(gem, "fit"):
        check_is_fitted(gem)
    if hasattr(gem, "layers_"):
        layer = gem.layers_[0]
        parts = ("eigenvalues", "pairs", "ranks", "offset")
        return SimpleNamespace(
            **{f"{part}_": getattr(layer, part) for part in parts},
            directions_=layer.directions,
            classes_=gem.classes_,
            n_features_in_=gem.n_features_in_,
            threshold=gem.threshold if gem.depth == 1 else None,
        )
    if not hasattr(gem, "pairs_") or not hasattr(gem, "directions_"):
        raise ValueError(f"{name}: expected a fitted GEM, got {show(gem)}")
    return gem


def gem_to_draw(gem: BaseEstimator | SimpleNamespace, name: str) -> GEM | SimpleNamespace:
    """A fitted GEM that has directions."""
    found = fitted_gem(gem, name)
    if not len(found.ranks_):
        raise ValueError(f"{name}: expected a GEM with directions, got none above its threshold")
    return found


def check_pairs(pairs: object) -> list[tuple[Hashable, Hashable]]:
    """Refuse what is no sequence of pairs of labels."""
    if not _is_sequence(pairs) or not len(pairs):
        raise ValueError(f"pairs: expected pairs of labels, got {show(pairs)}")
    return [check_pair(pair, "pairs") for pair in pairs]


def check_pair(pair: object, name: str) -> tuple[Hashable, Hashable]:
    """Refuse what is no pair of labels."""
    if not _is_sequence(pair) or len(pair) != 2 or any(np.ndim(label) for label in pair):
        raise ValueError(f"{name}: expected two labels in each, got {show(pair)}")
    return pair[0], pair[1]


def _is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes))

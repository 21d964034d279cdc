"""Weights of samples and of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenfeat._base.types import Labels
from eigenfeat._base.validation import check_some_weight, check_weights, usual_weights
from eigenfeat.expansion.features import take_rows

if TYPE_CHECKING:
    from collections.abc import Hashable

    from scipy.sparse import csr_array

    from eigenfeat._base.types import Floats, Targets
    from eigenfeat.expansion.features import ExpandedFeatures

__all__ = ["class_factors", "class_weighted", "row_weights", "weighted_rows"]

_Rows = TypeVar("_Rows", bound="Floats | csr_array | ExpandedFeatures | NDArray[np.intp]")
_Labels = TypeVar("_Labels", bound="Targets")


def row_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """Check weights (n,) and scale extreme ones, see `usual_weights`; ones for None.

    ValueError if weights are negative, not finite, too few or too many, or all 0.
    """
    weights = check_weights(sample_weight, n)
    if weights is None:
        return np.ones(n)
    check_some_weight(n == 0 or bool(weights.any()))
    return usual_weights(weights)


def weighted_rows(
    X: _Rows, y: _Labels, sample_weight: ArrayLike | None
) -> tuple[_Rows, _Labels, NDArray[np.float64] | None]:
    """Check weights and leave out samples of weight 0; without weights all samples remain.

    ValueError if weights are negative, not finite, too few or too many, or none is positive.
    """
    if sample_weight is None:
        return X, y, None
    weight = row_weights(sample_weight, X.shape[0])
    positive = weight > 0
    if positive.all():
        return X, y, weight
    some = cast("_Rows", take_rows(X, positive))
    return some, cast("_Labels", None if y is None else np.asarray(y)[positive]), weight[positive]


def class_factors(
    class_weight: dict[Hashable, float] | str, classes: Labels, sums: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Class weights (k,), by which sample weights are multiplied; `sums` are total weights W_c.

    A dict has weights by label, 1 for other labels. "balanced" is ``W / (k W_c)``, where W is the
    weight of all samples.

    Raises
    ------
    ValueError
        If a class weight is not positive and finite, or a label of the dict is not a class.
    """
    if isinstance(class_weight, str):
        factors = sums.sum() / (len(classes) * sums)
    else:
        known = classes.tolist()
        unknown = [label for label in class_weight if label not in known]
        if unknown:
            raise ValueError(f"class_weight: expected labels of y, got {unknown[0]!r}")
        factors = np.array([class_weight.get(label, 1.0) for label in known], dtype=np.float64)
    if not (np.isfinite(factors) & (factors > 0)).all():
        raise ValueError(f"class_weight: expected positive weights, got {class_weight!r}")
    return factors


def class_weighted(
    class_weight: dict[Hashable, float] | str | None, y: Labels, weight: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """Weights (n,) of samples times the weights of their classes; see `class_factors`.

    Without `class_weight`, the given weights are returned.
    """
    if class_weight is None:
        return weight
    classes, codes = np.unique(y, return_inverse=True)
    result = class_factors(class_weight, classes, np.bincount(codes, weight).astype(float))[codes]
    with np.errstate(over="ignore", under="ignore"):
        product = result if weight is None else result * weight
    if not (np.isfinite(product) & (product > 0)).all():
        raise ValueError(
            "class_weight: expected factors whose products with sample_weight fit float64, got "
            f"{class_weight!r}"
        )
    return usual_weights(product)

"""Sample weights: checked, and by class."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from eigenfeat._base.types import Labels
from eigenfeat._base.validation import check_unmasked, refuse_complex
from eigenfeat._base.weight_units import usual_weights
from eigenfeat.expansion.features import take_rows

if TYPE_CHECKING:
    from collections.abc import Hashable

    from scipy.sparse import csr_array

    from eigenfeat._base.types import Floats, Targets
    from eigenfeat.expansion.features import ExpandedRows

__all__ = [
    "class_weighted",
    "row_weights",
    "weighted_rows",
]

_Rows = TypeVar("_Rows", bound="Floats | csr_array | ExpandedRows | NDArray[np.intp]")
_Labels = TypeVar("_Labels", bound="Targets")
_USUAL = 2.0**64  # largest weights between its inverse and this are taken as they are
# Newer scikit-learn refuses weights that are all 0 in words of its own.
_ALLOW = "allow_all_zero_weights"
_ZEROS: dict[str, Any] = (
    {_ALLOW: True} if _ALLOW in inspect.signature(_check_sample_weight).parameters else {}
)
_LEAST = 2.0**-1000  # of weights that are divided


def row_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """Weights (n,) of rows, checked; ones for None.

    Weights of an extreme size are made usual, see `usual_weights`.

    Raises
    ------
    ValueError
        If weights are negative, not finite, too few or too many, or all 0.
    """
    given = check_unmasked(sample_weight, "sample_weight")
    refuse_complex(getattr(given, "dtype", None), "sample_weight")
    result: NDArray[np.float64] = _check_sample_weight(
        given,
        np.empty((n, 0)),
        dtype=np.float64,
        ensure_non_negative=True,
        **_ZEROS,
    )
    if len(result) and not result.any():
        raise ValueError("sample_weight: expected at least one positive weight, got only zeros")
    return usual_weights(result)


def weighted_rows(
    X: _Rows, y: _Labels, sample_weight: ArrayLike | None
) -> tuple[_Rows, _Labels, NDArray[np.float64] | None]:
    """Check weights and leave out the rows that have none.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or ExpandedRows
    y : (n,) array, or None
    sample_weight : array-like or None

    Returns
    -------
    X, y, weight
        The rows with positive weights; no weights if there were none.

    Raises
    ------
    ValueError
        If weights are negative, not finite, too few or too many, or none is positive.
    """
    if sample_weight is None:
        return X, y, None
    weight = row_weights(sample_weight, X.shape[0])
    positive = weight > 0
    if positive.all():
        return X, y, weight
    some = cast("_Rows", take_rows(X, positive))
    return some, cast("_Labels", None if y is None else np.asarray(y)[positive]), weight[positive]


def class_weighted(
    class_weight: dict[Hashable, float] | str | None, y: Labels, weight: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """Weights of rows times those of their classes.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Factors by label, 1 for those that are not there; or ``W / (k W_c)``, with W the weight of
        all rows and W_c that of class c's.
    y : (n,) array
        Labels.
    weight : (n,) array or None

    Returns
    -------
    (n,) array or None

    Raises
    ------
    ValueError
        If a factor is not positive and finite, or there are no rows of a label.
    """
    if class_weight is None:
        return weight
    classes, codes = np.unique(y, return_inverse=True)
    if isinstance(class_weight, str):
        sums = np.bincount(codes, weight)
        factors = sums.sum() / (len(classes) * sums)
    else:
        unknown = [label for label in class_weight if label not in classes.tolist()]
        if unknown:
            raise ValueError(f"class_weight: expected labels of y, got {unknown[0]!r}")
        factors = compute_class_weight(class_weight, classes=classes, y=y)
    if not (np.isfinite(factors) & (factors > 0)).all():
        raise ValueError(f"class_weight: expected positive weights, got {class_weight!r}")
    result = factors[codes]
    with np.errstate(over="ignore", under="ignore"):
        product = result if weight is None else result * weight
    if not (np.isfinite(product) & (product > 0)).all():
        raise ValueError(
            "class_weight: expected factors whose products with sample_weight fit float64, got "
            f"{class_weight!r}"
        )
    return usual_weights(product)

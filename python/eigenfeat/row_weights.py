"""Sample weights, as every estimator takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from eigenfeat.features import take_rows

__all__ = ["weighted_rows"]


def weighted_rows(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
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
    rows = np.empty((X.shape[0], 0))
    weight = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    kept = weight > 0
    if not kept.any():
        raise ValueError("sample_weight: expected at least one positive weight, got none")
    if kept.all():
        return X, y, weight
    return take_rows(X, kept), y if y is None else y[kept], weight[kept]

"""What a decision costs: for waiting, and for a class that is not the true one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenfeat._base.validation import real_array, show

__all__ = ["cost_tables"]

_Array = NDArray[np.float64]


def cost_tables(
    delay_cost: ArrayLike,
    misclassification_cost: ArrayLike | None,
    times: NDArray[np.int64],
    d: int,
    n_classes: int,
) -> _Array:
    """What it costs to decide at each time, by the true class and the class that is decided.

    Parameters
    ----------
    delay_cost : float, callable or array-like
        See `MinimumCostClassifier`.
    misclassification_cost : float, array-like or None
    times : (p,) array of int
    d : int
        Samples of a complete series.
    n_classes : int

    Returns
    -------
    (p, G, G) array
    """
    wrong = _misclassification(misclassification_cost, n_classes)
    return wrong + _delay(delay_cost, times, d, n_classes)


def _misclassification(given: Any, n_classes: int) -> _Array:
    table = real_array(1.0 if given is None else given, "misclassification_cost", np.dtype(float))
    if table.ndim == 0:
        table = np.where(np.eye(n_classes) > 0, 0.0, table)
    if table.shape != (n_classes, n_classes):
        raise ValueError(
            f"misclassification_cost: expected a number or shape {(n_classes, n_classes)}, got "
            f"{table.shape}"
        )
    return np.asarray(_finite(table, "misclassification_cost"))


def _delay(given: Any, times: NDArray[np.int64], d: int, n_classes: int) -> _Array:
    if callable(given):
        values = np.array([float(given(int(t))) for t in times])
        return _finite(values, "delay_cost")[:, None, None]
    table = real_array(given, "delay_cost", np.dtype(float))
    if table.ndim == 0:
        return _finite(float(table) * times / d, "delay_cost")[:, None, None]
    if table.shape not in ((d,), (d, n_classes, n_classes)):
        raise ValueError(
            f"delay_cost: expected a number, a function, or shape ({d},) or "
            f"{(d, n_classes, n_classes)}, got shape {table.shape}"
        )
    table = _finite(table, "delay_cost")[times - 1]
    return table if table.ndim == 3 else table[:, None, None]


def _finite(values: Any, name: str) -> _Array:
    array = np.asarray(values, dtype=float)
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: expected finite costs, got {show(array[~np.isfinite(array)])}")
    return array

"""Numbers of samples after which to look."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.validation import show

__all__ = ["ascending_steps", "spread_steps"]


def ascending_steps(steps: Any, length: int) -> NDArray[np.int64]:
    """Ascending integers in 0..length; None: 1, 2, ..., length."""
    if steps is None:
        return np.arange(1, length + 1)
    at = np.atleast_1d(np.asarray(steps))
    whole = at.ndim == 1 and at.size and at.dtype.kind in "iu"
    if not whole or at[0] < 0 or at[-1] > length or np.any(np.diff(at) <= 0):
        raise ValueError(f"steps: expected ascending integers in 0..{length}, got {show(steps)}")
    return at.astype(np.int64)


def spread_steps(length: int, most: int) -> NDArray[np.int64]:
    """At most so many numbers of samples in 1..length - 1, evenly spread; none for one sample."""
    if length < 2:
        return np.empty(0, dtype=np.int64)
    at = np.linspace(1, length - 1, min(length - 1, most))
    return np.unique(at.round().astype(np.int64))

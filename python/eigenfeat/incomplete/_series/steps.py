"""Numbers of samples after which to look, and with which reliability."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.validation import real_array, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

__all__ = ["ascending_steps", "looks_of", "spread_steps", "taus_of"]


def ascending_steps(steps: ArrayLike | None, length: int) -> NDArray[np.int64]:
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


def looks_of(model: BaseEstimator, steps: ArrayLike | None, length: int) -> NDArray[np.int64]:
    """After how many samples to look: None means where a fitted model's correction holds."""
    return ascending_steps(
        getattr(model, "decision_times_", None) if steps is None else steps, length
    )


def taus_of(model: BaseEstimator, reliability: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """(n,): a tau in (0, 1) for each row; None means that of a fitted model."""
    given = (
        getattr(model, "reliability_", model.reliability) if reliability is None else reliability
    )
    tau = real_array(given, "reliability", np.dtype(np.float64))
    if tau.ndim > 1 or (tau.ndim == 1 and len(tau) != n):
        raise ValueError(f"reliability: expected a number or shape ({n},), got {tau.shape}")
    if not np.all((tau > 0) & (tau < 1)):
        raise ValueError(f"reliability: expected numbers in (0, 1), got {show(given)}")
    return np.ascontiguousarray(np.broadcast_to(tau, (n,)))

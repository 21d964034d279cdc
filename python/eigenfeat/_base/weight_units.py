"""Sample weights of an extreme size, divided by a power of two."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["usual_weights", "weight_unit", "weights_in"]

_USUAL = 2.0**64  # largest weights between its inverse and this are taken as they are
_LEAST = 2.0**-1000  # of weights that are divided


def usual_weights(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights whose largest lies beyond 2^64 or below 2^-64, divided by a power of two near it.

    Sums and products of weights then neither overflow nor vanish. Such weights are no numbers of
    repetitions, so that their ratios are all that they say. No positive weight becomes 0.
    """
    return weights_in(weight, weight_unit(float(weight.max(initial=0.0))))


def weight_unit(most: float) -> float:
    """What weights are divided by whose largest is `most`: 1 unless that is extreme."""
    if most == 0.0 or 1.0 / _USUAL <= most <= _USUAL:
        return 1.0
    return float(np.ldexp(1.0, int(np.frexp(most)[1]) - 1))


def weights_in(weight: NDArray[np.float64], unit: float) -> NDArray[np.float64]:
    """Weights divided by a power of two; no positive one becomes 0."""
    if unit == 1.0:
        return weight
    with np.errstate(under="ignore"):
        return np.where(weight > 0, np.maximum(weight / unit, _LEAST), 0.0)

"""Random subsamples of bounded size, equal at every call."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.labels import by_class, thinned
from eigenfeat._base.types import Codes

__all__ = ["draw_subsample"]


def draw_subsample(
    n: int, max_count: int, codes: Codes | None = None, seed: int = 0
) -> NDArray[np.intp]:
    """Draw at most `max_count` of `n` samples without replacement; return ascending indices.

    With `codes` (n,), the number of samples of a class is in proportion to the size of the class.
    Samples are drawn at random, because the first samples, or evenly spaced samples, may all belong
    to one class, hour or subject.
    """
    if n <= max_count:
        return np.arange(n)
    random = np.random.default_rng(seed)
    if codes is None:
        return np.sort(random.choice(n, max_count, replace=False, shuffle=False))
    return np.asarray(thinned(by_class(random.permutation(n), codes), max_count), dtype=np.intp)

"""Random subsamples of bounded size, equal at every call."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.labels import by_class, thinned
from eigenfeat._base.types import Codes

__all__ = ["draw_subsample"]


def draw_subsample(
    n: int, most: int, codes: Codes | None = None, seed: int = 0
) -> NDArray[np.intp]:
    """Draw at most `most` of `n` samples without replacement; their indices are ascending.

    With `codes` (n,), each class is drawn from in proportion to its number of samples. Evenly
    spaced or first samples may all belong to one class, hour or subject.
    """
    if n <= most:
        return np.arange(n)
    random = np.random.default_rng(seed)
    if codes is None:
        return np.sort(random.choice(n, most, replace=False, shuffle=False))
    return np.asarray(thinned(by_class(random.permutation(n), codes), most), dtype=np.intp)

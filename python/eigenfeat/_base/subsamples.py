"""Random subsamples of bounded size, equal at every call."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Codes

__all__ = ["draw_subsample"]


def draw_subsample(
    n: int, most: int, codes: Codes | None = None, seed: int = 0
) -> NDArray[np.intp]:
    """Draw at most `most` of `n` samples without replacement.

    Evenly spaced samples, or the first samples, may all belong to one class, hour or subject if
    these alternate.

    Parameters
    ----------
    n : int
        Number of samples.
    most : int
        Maximum number of samples to draw.
    codes : (n,) array of integers, optional
        Draw from each class in proportion to its number of samples.
    seed : int
        Seed of the draw.

    Returns
    -------
    (min(n, most),) array of int
        Indices of the samples, ascending.
    """
    if n <= most:
        return np.arange(n)
    random = np.random.default_rng(seed)
    if codes is None:
        return np.sort(random.choice(n, most, replace=False, shuffle=False))
    drawn = random.permutation(n)
    by_class = drawn[np.argsort(codes[drawn], kind="stable")]
    return np.sort(by_class[np.linspace(0, n - 1, most).astype(np.intp)])

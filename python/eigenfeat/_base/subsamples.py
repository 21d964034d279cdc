"""Random subsamples of bounded size, the same at every call."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Codes

__all__ = ["draw_subsample"]


def draw_subsample(
    n: int, most: int, codes: Codes | None = None, seed: int = 0
) -> NDArray[np.intp]:
    """Draw at most `most` of `n` samples without replacement.

    Samples at equal distances, or the first ones, would depend on the order of the samples: where
    classes, hours or subjects come in turn, they are samples of one of them.

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

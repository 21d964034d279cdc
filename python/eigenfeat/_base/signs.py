"""The sign that vectors have which are determined but for their sign."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Floats

__all__ = ["signed"]


def signed(vectors: Floats) -> NDArray[np.float64]:
    """Vectors (d, m), one a column, each with a positive entry of largest magnitude."""
    top = np.argmax(np.abs(vectors), axis=0)
    signs = np.where(vectors[top, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(vectors * signs, dtype=np.float64)

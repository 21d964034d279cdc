"""The sign that vectors have which are determined but for their sign."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["signed"]


def signed(vectors: NDArray[Any]) -> NDArray[Any]:
    """Vectors (d, m), one a column, each with a positive entry of largest magnitude."""
    top = np.argmax(np.abs(vectors), axis=0)
    return vectors * np.where(vectors[top, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)

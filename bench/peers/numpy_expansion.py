"""The half-wave expansion in NumPy."""

from __future__ import annotations

import numpy as np


def expression(X: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Compute Algorithm 1, lines 6-7, as it is written in the paper."""
    P = X @ V
    return np.concatenate(
        [np.maximum(s * P, 0) ** np.float32(a / 2) for s in (1, -1) for a in (1, 2, 3)], axis=1
    )


def by_blocks(X: np.ndarray, V: np.ndarray, rows: int = 2048) -> np.ndarray:
    """Compute the features by square roots instead of powers, in blocks of rows of one array."""
    n, F = len(X), V.shape[1]
    out = np.empty((n, 6 * F), dtype=X.dtype)
    for start in range(0, n, rows):
        P = X[start : start + rows] @ V
        block = out[start : start + rows]
        for s, sign in enumerate((1, -1)):
            z = np.maximum(sign * P, 0)
            root = np.sqrt(z)
            first = 3 * s * F
            block[:, first : first + F] = root
            block[:, first + F : first + 2 * F] = z
            np.multiply(root, z, out=block[:, first + 2 * F : first + 3 * F])
    return out

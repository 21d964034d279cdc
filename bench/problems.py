"""What the runner times: real data where it is at hand, the same shapes at random elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

N_CLASSES = 10


@dataclass(frozen=True)
class Rows:
    """Labelled rows: ``X`` (n, d) float32, ``y`` (n,) integer classes, and where they come from."""

    X: np.ndarray
    y: np.ndarray
    source: str


def digits(data: Path | None) -> Rows:
    """MNIST's 60,000 x 784 training rows scaled to [0, 1], or random rows of that shape."""
    path = None if data is None else data / "mnist.npz"
    if path is not None and path.exists():
        with np.load(path) as archive:
            X = archive["X_train"].reshape(60_000, -1).astype(np.float32) / np.float32(255)
            return Rows(X, archive["y_train"].astype(np.int64), "MNIST")
    rng = np.random.default_rng(0)
    basis = rng.standard_normal((N_CLASSES, 40, 784)).astype(np.float32)
    y = rng.integers(N_CLASSES, size=60_000)
    X = np.empty((60_000, 784), dtype=np.float32)
    for c in range(N_CLASSES):
        rows = np.flatnonzero(y == c)
        X[rows] = rng.standard_normal((len(rows), 40)).astype(np.float32) @ basis[c]
    X += 0.3 * rng.standard_normal(X.shape, dtype=np.float32)
    return Rows(X, y, "random rows of MNIST's shape")


def class_second_moments(rows: Rows) -> np.ndarray:
    """Second moments (k, d, d), float64, by the obvious route."""
    moments = []
    for c in range(N_CLASSES):
        X = rows.X[rows.y == c].astype(np.float64)
        moments.append(X.T @ X / len(X))
    return np.array(moments)

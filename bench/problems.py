"""What the runner times: real data if the files exist, else random data of the same shapes."""

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

    def first(self, n: int | None) -> Rows:
        """At most `n` rows."""
        return self if n is None else Rows(self.X[:n], self.y[:n], f"{n:,} rows of {self.source}")


def digits(data: Path | None, part: str = "train") -> Rows:
    """MNIST's 60,000 x 784 training rows scaled to [0, 1], or random rows of that shape.

    With `part` "test", the 10,000 test rows of MNIST, or the same random rows.
    """
    path = None if data is None else data / "mnist.npz"
    if path is not None and path.exists():
        with np.load(path) as archive:
            y = archive[f"y_{part}"].astype(np.int64)
            X = archive[f"X_{part}"].reshape(len(y), -1).astype(np.float32) / np.float32(255)
            return Rows(X, y, "MNIST")
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
    """Second moments (k, d, d), float64, by plain products of matrices."""
    moments = []
    for c in range(N_CLASSES):
        X = rows.X[rows.y == c].astype(np.float64)
        moments.append(X.T @ X / len(X))
    return np.array(moments)


def dense_classification(dtype: str) -> Rows:
    """6,000 x 1,000 rows of ten classes, 60 columns informative and 100 redundant."""
    from sklearn.datasets import make_classification

    X, y = make_classification(
        6000, 1000, n_informative=60, n_redundant=100, n_classes=N_CLASSES, random_state=0
    )
    return Rows(np.ascontiguousarray(X, dtype=dtype), y, "make_classification, 6,000 x 1,000")


def gem_directions(rows: Rows, threads: int) -> np.ndarray:
    """The 1,822 directions (784, F), float32, of GEM with an eigenvalue above 0 on MNIST."""
    import eigenfeat as ef

    model = ef.GEM(
        ridge=0.5,
        n_directions=30,
        threshold=0.0,
        constant=False,
        scale="none",
        expansion="half_wave",
        powers=(1, 2, 3),
        n_threads=threads,
    )
    model.fit_moments(ef.ClassMoments().update(rows.X, rows.y))
    return np.ascontiguousarray(model.directions_[:, :1822].astype(np.float32))

"""Data sets of the dependencies, and random splits of them. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Images", "Split", "digits", "random_splits"]


@dataclass(frozen=True)
class Images:
    """Images as rows: `X` (n, d), labels `y` (n,), and the (rows, columns) of one image."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    shape: tuple[int, int]


@dataclass(frozen=True)
class Split:
    """Row numbers for training and for testing."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]


def digits() -> Images:
    """Return scikit-learn's bundled digits: 1,797 images of 8 x 8 pixels, 10 classes, in 0..1."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return Images(X / 16.0, y.astype(np.int64), (8, 8))


def random_splits(
    y: NDArray[np.int64], n_splits: int, test_share: float, seed: int
) -> Iterator[Split]:
    """Yield stratified random splits; the same ones for the same `seed`.

    Parameters
    ----------
    y : (n,) array
        Labels.
    n_splits : int
        Number of splits.
    test_share : float
        Share of the rows for testing, between 0 and 1.
    seed : int
        Seed of the random numbers.
    """
    from sklearn.model_selection import StratifiedShuffleSplit

    splitter = StratifiedShuffleSplit(n_splits, test_size=test_share, random_state=seed)
    for train, test in splitter.split(y[:, None], y):
        yield Split(train, test)

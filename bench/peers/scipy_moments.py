"""Class second moments with SciPy's BLAS."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas


def one_syrk(X: np.ndarray) -> np.ndarray:
    """A single rank-k update of all samples without classes, for a lower bound of the time."""
    syrk = blas.dsyrk if X.dtype == np.float64 else blas.ssyrk
    return syrk(1.0, X.T)


def gather_and_syrk(X: np.ndarray, y: np.ndarray, n_classes: int) -> list[np.ndarray]:
    """Gather the rows of each class, and apply one rank-k update per class."""
    syrk = blas.dsyrk if X.dtype == np.float64 else blas.ssyrk
    return [syrk(1.0, X[y == c].T) for c in range(n_classes)]

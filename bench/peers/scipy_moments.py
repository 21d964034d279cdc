"""Class second moments with SciPy's BLAS."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas


def one_syrk(X: np.ndarray) -> np.ndarray:
    """The machine's floor: a single rank-k update of the same shape, without any classes."""
    syrk = blas.dsyrk if X.dtype == np.float64 else blas.ssyrk
    return syrk(1.0, X.T)


def gather_and_syrk(X: np.ndarray, y: np.ndarray, n_classes: int) -> list[np.ndarray]:
    """Gather a class's rows, then one rank-k update."""
    syrk = blas.dsyrk if X.dtype == np.float64 else blas.ssyrk
    return [syrk(1.0, X[y == c].T) for c in range(n_classes)]

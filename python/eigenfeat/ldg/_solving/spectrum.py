"""The smallest eigenpairs of one symmetric matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from eigenfeat._base.signs import signed

__all__ = ["SMALL", "smallest_eigenpairs"]

SMALL = 200  # orders below which all eigenpairs by division take less time than some by bisection


def smallest_eigenpairs(
    matrix: NDArray[np.float64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find the `count` smallest eigenvalues, ascending, and orthonormal eigenvectors in columns.

    The entry of largest magnitude in each vector is positive, so that a sign never depends on the
    solver.
    """
    if len(matrix) == 1:  # where SciPy before 1.11 asks LAPACK for too little memory
        values, vectors = matrix[0].copy(), np.ones((1, 1))
    elif len(matrix) < SMALL:
        values, vectors = linalg.eigh(matrix, driver="evd", check_finite=False)
        values, vectors = values[:count], vectors[:, :count]
    else:
        values, vectors = linalg.eigh(
            matrix, subset_by_index=(0, count - 1), driver="evr", check_finite=False
        )
    return values, signed(vectors)

"""Generalized eigenproblems with SciPy: two dense drivers, and ARPACK on the reduced matrix."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.linalg import cholesky, eigh, lapack
from scipy.sparse.linalg import eigsh

Pair = tuple[int, int]


def ridged(moments: np.ndarray, j: int, ridge: float) -> np.ndarray:
    """C_j + ridge trace(C_j) / d I."""
    d = moments.shape[1]
    return moments[j] + ridge * np.trace(moments[j]) / d * np.eye(d)


def gvd(moments: np.ndarray, pairs: Iterable[Pair], ridge: float, m: int) -> list[np.ndarray]:
    """Every eigenpair by divide and conquer (sygvd); the m largest eigenvalues, descending."""
    return [
        eigh(moments[i], ridged(moments, j, ridge), driver="gvd", check_finite=False)[0][
            : -m - 1 : -1
        ]
        for i, j in pairs
    ]


def gvx(moments: np.ndarray, pairs: Iterable[Pair], ridge: float, m: int) -> list[np.ndarray]:
    """The m largest eigenpairs alone (sygvx)."""
    d = moments.shape[1]
    return [
        eigh(
            moments[i],
            ridged(moments, j, ridge),
            subset_by_index=(d - m, d - 1),
            check_finite=False,
        )[0][::-1]
        for i, j in pairs
    ]


def cholesky_eigsh(
    moments: np.ndarray, pairs: Iterable[Pair], ridge: float, m: int
) -> list[np.ndarray]:
    """One Cholesky factor per class, reduced matrices by sygst, their largest pairs by ARPACK."""
    factors: dict[int, np.ndarray] = {}
    values = []
    for i, j in pairs:
        if j not in factors:
            factors[j] = np.asfortranarray(cholesky(ridged(moments, j, ridge), lower=True))
        reduced, info = lapack.dsygst(moments[i], factors[j], lower=1)
        assert info == 0
        reduced = np.tril(reduced) + np.tril(reduced, -1).T
        start = np.ones(len(reduced))
        values.append(eigsh(reduced, k=m, which="LA", tol=1e-10, v0=start)[0][::-1])
    return values

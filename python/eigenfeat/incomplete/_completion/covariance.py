"""Covariances of few rows: shrinkage and a ridge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.moments.shrinkage import ledoit_wolf

__all__ = ["class_gaussians"]

_Array = NDArray[np.float64]


def class_gaussians(
    X: _Array,
    codes: NDArray[np.int32],
    shrinkage: float | str,
    ridge: float,
    n_threads: int | None,
    spread: _Array | None = None,
    weight: _Array | None = None,
) -> tuple[_Array, _Array, _Array]:
    """Means (G, d), covariances (G, d, d) and shrinkages (G,) of classes 0, ..., G - 1.

    The ridge is a multiple of the mean variance within classes, the same for all. `spread`
    (G, d, d) is added to the covariances before they are shrunk: of entries that were filled in.
    A row of weight w (n,) counts as w rows.
    """
    d = X.shape[1]
    moments = ClassMoments().update(X, codes, weight, n_threads=n_threads)
    classes = range(int(codes.max()) + 1)
    counts = np.bincount(codes, weight)
    means = np.stack([moments.mean(g) for g in classes])
    covariances = np.stack([moments.covariance(g) for g in classes])
    if spread is not None:
        covariances += spread
    traces = np.array([np.trace(R) for R in covariances])
    floor = ridge * float((counts * traces).sum() / counts.sum()) / d
    shrinkages = np.zeros(len(counts))
    for g in classes:
        if isinstance(shrinkage, str):
            own, rows = None, codes == g
            if weight is not None:
                own = weight[rows] / counts[g]
            count = None if own is None else float(counts[g])
            share = ledoit_wolf(X[rows] - means[g], covariances[g], own, count)
        else:
            share = shrinkage
        shrinkages[g] = share
        covariances[g] *= 1.0 - share
        covariances[g][np.diag_indices(d)] += share * traces[g] / d + floor
    return means, covariances, shrinkages

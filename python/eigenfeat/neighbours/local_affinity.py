"""Sums of scatters between neighbouring samples of a class, with locally scaled distances.

With ``A_ij = exp(-|x_i - x_j|^2 / (sigma_i sigma_j))`` for samples of a class, where sigma is the
distance to the k-th nearest other sample (Zelnik-Manor and Perona, 2004), ``L_c = D_c - A_c`` is
the Laplacian of a class; ``D_c`` is the diagonal of the row sums of A_c.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eigenfeat._base.core import core
from eigenfeat._base.threads import resolve

__all__ = ["affinity_sums"]

_Array = npt.NDArray[np.float64]


def affinity_sums(
    X: _Array,
    counts: npt.NDArray[np.intp],
    n_neighbors: int,
    *,
    laplacian: _Array,
    plain: _Array,
    n_threads: int | None = None,
) -> _Array:
    """Return ``sum_c X_c^T (laplacian[s, c] L_c + plain[s, c] I) X_c``, (d, d), for every s.

    X (n, d) has samples sorted by class, preferably minus the means of their classes, whose sizes
    are `counts` (k,). Sigma is the distance to neighbour `n_neighbors`, or to the farthest sample
    in smaller classes. `laplacian` and `plain` (m, k) weight the classes. Samples with at least
    `n_neighbors` equal samples, up to rounding, have no affinities.
    """
    return core.affinity_sums(
        np.ascontiguousarray(X, dtype=np.float64),
        np.ascontiguousarray(counts, dtype=np.int64),
        n_neighbors,
        np.ascontiguousarray(laplacian, dtype=np.float64),
        np.ascontiguousarray(plain, dtype=np.float64),
        resolve(n_threads),
    )

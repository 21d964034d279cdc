"""Discriminant directions by the generalized singular value decomposition.

Howland and Park (2004): with ``K = [H_b; H_w]`` two ordinary decompositions give X with
``X^T S_b X = diag(alpha^2)``, ``X^T S_w X = diag(beta^2)`` and ``alpha^2 + beta^2 = 1``, even if
scatters are singular. ``K^T K = S_t`` is also the scatter of the centred samples, so the first
decomposition is the singular value decomposition of the samples.
"""

from __future__ import annotations

import numpy as np

from eigenfeat.ldg._solving.base import WeightedReducer
from eigenfeat.ldg._solving.scatters import Array, ClassDeviations, shares_of_variance

__all__ = ["GSVDDiscriminant"]


class GSVDDiscriminant(WeightedReducer):
    """Discriminant analysis by the generalized singular value decomposition (LDA/GSVD).

    Use it with more features than samples and little noise. It has no parameter to tune. User
    guide: :doc:`/guide/lda`.

    The directions maximise the variance between classes over the variance within classes, which
    may be zero: neither a ridge nor PCA is needed. There are at most k - 1 directions.

    Parameters
    ----------
    n_components : int or None, default=None
        Directions to keep; by default the rank of the scatter between classes.

    Attributes
    ----------
    components_ : (ell, d) array
        Directions, one per row, of unit variance over all samples. The entry of largest
        magnitude is positive.
    alphas_ : (ell,) array
        Generalized singular values, descending: standard deviations of projections between classes.
    betas_ : (ell,) array
        Standard deviations of projections within classes; ``alphas_**2 + betas_**2 = 1``.
    mean_ : (d,) array
        Mean of the samples.
    classes_ : (k,) array
        Labels, sorted.

    See Also
    --------
    DirectLDA : Faster.
    RegularizedFisher : With a ridge; better with noise.

    Notes
    -----
    Directions with ``beta = 0`` are ordered by the variance of the samples, largest first. All
    directions have ``beta = 0`` when samples are fewer than features and in general position.

    References
    ----------
    P. Howland and H. Park, "Generalizing discriminant analysis using the generalized singular
    value decomposition", IEEE PAMI 26, 2004. N. Parrish, thesis, 2012, section 3.5 (GDA).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat.ldg import GSVDDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> GSVDDiscriminant().fit(X, y).alphas_.round(2)
    array([0.98, 0.47])
    """

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def _solve(self, rows: ClassDeviations) -> Array:
        result = shares_of_variance(rows, rows.span(), self.n_components)
        self.alphas_, self.betas_ = np.sqrt(result.between), np.sqrt(result.within)
        return result.directions / rows.unit

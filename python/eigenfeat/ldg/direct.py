"""Direct LDA: whiten the scatter between classes, then minimise the scatter within classes."""

from __future__ import annotations

import numpy as np

from eigenfeat.ldg._solving.base import WeightedReducer
from eigenfeat.ldg._solving.scatters import (
    Array,
    ClassDeviations,
    check_means_differ,
    means_rounding,
)
from eigenfeat.pencils.rayleigh_matrices import count_components

__all__ = ["DirectLDA"]


class DirectLDA(WeightedReducer):
    """Direct linear discriminant analysis, for many columns.

    Use it with far more features than samples. It has no parameter to tune. User guide:
    :doc:`/guide/lda`.

    The null space of S_b, which has no information about classes, is removed first. In the
    remaining space S_b is whitened, and the directions of smallest S_w are kept. The cost is
    O(n d k) for every shape.

    Parameters
    ----------
    n_components : int or None, default=None
        Directions to keep; by default the rank of the scatter between classes.

    Attributes
    ----------
    components_ : (ell, d) array
        Directions, one per row, in the span of the class means, of unit variance between
        classes. The entry of largest magnitude is positive.
    eigenvalues_ : (ell,) array
        Variance within classes of the projections, ascending.
    mean_ : (d,) array
        Mean of the samples.
    classes_ : (k,) array
        Labels, sorted.

    See Also
    --------
    RegularizedFisher : With a ridge; better with noise.
    GSVDDiscriminant : Exact in the null space.
    eigenfeat.rayleigh.FisherLDA : Also a classifier.

    References
    ----------
    H. Yu and J. Yang, "A direct LDA algorithm for high-dimensional data", Pattern Recognition 34,
    2001, without their last step, which divides by deviations that may be zero. N. Parrish, thesis,
    2012, section 3.5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat.ldg import DirectLDA
    >>> X, y = load_iris(return_X_y=True)
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(DirectLDA(), KNeighborsClassifier(3))
    >>> round(model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 2)
    0.83
    """

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def _solve(self, rows: ClassDeviations) -> Array:
        _, sizes, turned = np.linalg.svd(rows.between_factor, full_matrices=False)
        rank = check_means_differ(int(np.sum(sizes > means_rounding(rows))))
        m = count_components(self.n_components, rank, "rank of the scatter between classes")
        white = turned[:rank].T / sizes[:rank]
        _, deviations, turn = np.linalg.svd(rows.within @ white, full_matrices=False)
        directions = white @ turn[: -m - 1 : -1].T
        self.eigenvalues_ = deviations[: -m - 1 : -1] ** 2 / rows.total
        return np.asarray(directions / rows.unit)

"""The maximum margin criterion: scatter between classes less scatter within."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from eigenfeat.ldg._solving.base import WeightedReducer
from eigenfeat.ldg._solving.scatters import EPS, Array, ClassDeviations
from eigenfeat.pencils.rayleigh_matrices import count_components

__all__ = ["MaximumMarginCriterion"]


class MaximumMarginCriterion(WeightedReducer):
    """Orthonormal directions of the largest scatter between classes less scatter within.

    Use it for orthonormal directions with any number of features. Tune `n_components`. User guide:
    :doc:`/guide/lda`.

    The directions are the leading eigenvectors of ``S_b - S_w``. No matrix is inverted, so scatters
    may be singular. This is LDG at ``gamma = 1/3`` with all samples of a class, including the
    sample itself, in place of its neighbours: then ``V - gamma A = 2/3 n (S_w - S_b)``.

    Parameters
    ----------
    n_components : int or None, default=None
        Directions to keep, at most the rank of the samples. By default all directions
        with positive eigenvalues (fewer than classes), or one if no eigenvalue is positive.

    Attributes
    ----------
    components_ : (ell, d) array
        Orthonormal directions, one per row, in the span of the samples. The entry of largest
        magnitude is positive.
    eigenvalues_ : (ell,) array
        Variance between classes less variance within, descending.
    mean_ : (d,) array
        Mean of the samples.
    classes_ : (k,) array
        Labels, sorted.

    See Also
    --------
    RegularizedFisher : The ratio instead of the difference.
    LDG : Local means; more directions.

    Notes
    -----
    Directions outside the span of the centred samples, on which all samples are equal, have
    eigenvalue 0. They are left out, although 0 is larger than the negative eigenvalues.

    References
    ----------
    H. Li, T. Jiang and K. Zhang, "Efficient and robust feature extraction by maximum margin
    criterion", IEEE Trans. Neural Networks 17, 2006. N. Parrish, thesis, 2012, equation 3.33.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat.ldg import MaximumMarginCriterion
    >>> X, y = load_iris(return_X_y=True)
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(MaximumMarginCriterion(n_components=2), KNeighborsClassifier(3))
    >>> round(model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 2)
    0.92
    """

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def _solve(self, rows: ClassDeviations) -> Array:
        basis = rows.span().basis
        r = basis.shape[1]
        narrow = rows.in_basis(basis)
        m = count_components(self.n_components, r, "rank of the samples")
        if self.n_components is None:
            m = min(r, len(rows.classes) - 1)
        between, within = narrow.scatters()
        difference = between - within
        values, V = eigh(
            difference, subset_by_index=(r - m, r - 1), driver="evr", check_finite=False
        )
        values, V = values[::-1], V[:, ::-1]
        if self.n_components is None:
            m = max(1, int(np.sum(values > r * EPS * np.abs(difference).max())))
        with np.errstate(over="ignore", under="ignore"):
            self.eigenvalues_ = values[:m] * rows.unit * rows.unit
        return np.asarray(basis @ V[:, :m])

"""Fisher's discriminant for few samples: with a ridge, or after PCA.

Parrish (2012), section 3.5. With more samples than columns, `eigenfeat.rayleigh.FisherLDA`
computes the discriminant with a ridge from moments: it streams, and accepts sparse samples.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from eigenfeat.ldg._solving.base import ClassReducer, WeightedReducer
from eigenfeat.ldg._solving.scatters import (
    Array,
    ClassDeviations,
    PrincipalBasis,
    regularized_fisher,
    shares_of_variance,
)

__all__ = ["PCAFisher", "RegularizedFisher"]

LEAST_SHARE = 1e-8  # smallest share of a direction's variance within classes


class RegularizedFisher(WeightedReducer):
    """Fisher's discriminant directions with a ridge on the scatter within classes.

    Use it for LDA with more features than samples, before nearest neighbours. Tune `ridge`. User
    guide: :doc:`/guide/lda`.

    The directions v maximise ``v^T S_b v / v^T (S_w + ridge tr(S_w) / d I) v``; there are at most
    k - 1. `eigenfeat.rayleigh.FisherLDA` with this ridge and ``scale="none"`` has equal directions.
    With fewer samples than features they are computed in the span of the samples, which contains
    them: O(n^2 d) instead of O(d^3).

    Parameters
    ----------
    n_components : int or None, default=None
        Directions to keep; by default the rank of the scatter between classes.
    ridge : float >= 0, default=1e-3
        Multiple of the mean eigenvalue of S_w that is added to its diagonal. If S_w is zero,
        the mean eigenvalue of S_b is used.

    Attributes
    ----------
    components_ : (ell, d) array
        Directions, one per row, of unit variance within classes (the ridge counts as variance).
        The entry of largest magnitude is positive.
    eigenvalues_ : (ell,) array
        Variance between classes over variance within, descending.
    mean_ : (d,) array
        Mean of the samples.
    classes_ : (k,) array
        Labels, sorted.

    Raises
    ------
    SingularDenominatorError
        If S_w is singular and `ridge` too small; the message gives a sufficient ridge.

    See Also
    --------
    eigenfeat.rayleigh.FisherLDA : Also a classifier; takes batches and missing entries.
    PCAFisher : Principal components instead of a ridge.
    GSVDDiscriminant : No ridge.

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, equation 2.7 and section 3.5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat.ldg import RegularizedFisher
    >>> X, y = load_iris(return_X_y=True)
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(RegularizedFisher(ridge=0.01), KNeighborsClassifier(3))
    >>> round(model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 2)
    0.95
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **WeightedReducer._parameter_constraints,
        "ridge": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, n_components: int | None = None, *, ridge: float = 1e-3) -> None:
        self.n_components = n_components
        self.ridge = ridge

    def _solve(self, rows: ClassDeviations) -> Array:
        self.eigenvalues_, directions = regularized_fisher(rows, self.n_components, self.ridge)
        return directions


class PCAFisher(ClassReducer):
    """PCA followed by Fisher's discriminant ("Fisherfaces"), for fewer samples than features.

    Use it for images of few persons or spectra. It has no parameter to tune but `n_components`.
    User guide: :doc:`/guide/lda`.

    The samples are first reduced to n - k principal components, the largest possible rank of the
    scatter within classes. Fisher's directions, at most k - 1, are found among these components.

    Parameters
    ----------
    n_components : int or None, default=None
        Directions to keep; by default the rank of the scatter between classes after PCA.

    Attributes
    ----------
    components_ : (ell, d) array
        Directions, one per row, of unit variance within classes. Where the share of variance
        within classes is below 1e-8, the direction is scaled as for a share of 1e-8. The entry of
        largest magnitude is positive.
    eigenvalues_ : (ell,) array
        Variance between classes over variance within (at least a share of 1e-8), descending.
    pca_components_ : int
        Principal components of the first step: min(n - k, rank of the samples), at least one.
    mean_ : (d,) array
        Mean of the samples.
    classes_ : (k,) array
        Labels, sorted.

    See Also
    --------
    RegularizedFisher : A ridge instead of PCA; often better.
    DirectLDA : In the span of the class means.

    Notes
    -----
    The directions maximise the variance between classes over *all* variance. They equal Fisher's
    directions, but exist whether or not the scatter within classes is singular: directions without
    variance within classes come first, ordered by the variance of the samples.

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, section 3.5. P. Belhumeur, J. Hespanha and
    D. Kriegman, "Eigenfaces vs. Fisherfaces", IEEE PAMI 19, 1997.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat.ldg import PCAFisher
    >>> X, y = load_iris(return_X_y=True)
    >>> PCAFisher().fit(X[::20], y[::20]).components_.shape
    (2, 4)
    """

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def _solve(self, rows: ClassDeviations) -> Array:
        span = rows.span()
        p = self.pca_components_ = principal_count(rows, span)
        selected = PrincipalBasis(span.basis[:, :p], span.sizes[:p])
        result = shares_of_variance(rows, selected, self.n_components)
        within: Array = np.maximum(result.within, LEAST_SHARE)
        self.eigenvalues_ = result.between / within
        return np.asarray(result.directions / np.sqrt(within) / rows.unit)


def principal_count(rows: ClassDeviations, span: PrincipalBasis) -> int:
    """Return the largest possible rank of the scatter within classes, at least 1."""
    return max(1, min(rows.n_samples - len(rows.classes), len(span.sizes)))

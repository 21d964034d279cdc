"""Local Fisher discriminant analysis: classes may have several modes.

Sugiyama (2007); Parrish (2012), equations 2.8 and 2.9. With affinities ``A_ij`` of samples of the
same class, 0 for others, and the Laplacian ``L = D - A`` of a class of n_c samples,

    ``S_w = sum_c X_c^T L_c X_c / n_c``,
    ``S_b = sum_c (1/n - 1/n_c) X_c^T L_c X_c + S_t - sum_c (n_c / n) S_c``,

where the last two terms are the sum over pairs of samples of different classes, with weights 1/n:
S_t is the scatter of all samples about their mean, and S_c the scatter of a class about its mean.

Affinities are locally scaled (Zelnik-Manor and Perona, 2004):
``A_ij = exp(-|x_i - x_j|^2 / (sigma_i sigma_j))`` with sigma the distance to the k-th nearest
sample of the same class. Samples with k equal samples, up to rounding, have no affinities.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from eigenfeat._base.core import core
from eigenfeat._base.threads import resolve
from eigenfeat.ldg._solving.base import ClassReducer
from eigenfeat.ldg._solving.scatters import (
    EPS,
    Array,
    ClassDeviations,
    PrincipalBasis,
    largest_ratios,
)
from eigenfeat.ldg.fisher import principal_count
from eigenfeat.pencils.rayleigh_matrices import count_components

__all__ = ["LocalFisher"]


class LocalFisher(ClassReducer):
    """Local Fisher discriminant analysis (LFDA), with a ridge or after PCA.

    Use it for classes of several modes. Tune `ridge`, then `n_components`. User guide:
    :doc:`/guide/lda`.

    A variant of Fisher's discriminant that does not pull distant samples of a class together. The
    affinities use local scaling: ``A_ij = exp(-|x_i - x_j|^2 / (sigma_i sigma_j))`` with sigma the
    distance to the 7th nearest sample of the same class. Unlike Fisher's discriminant, it has as
    many directions as there are columns.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of directions; all by default.
    n_neighbors : int, default=7
        Sigma is the distance to this neighbour, or to the farthest one in smaller classes.
    ridge : float >= 0, default=1e-3
        Multiple of the mean eigenvalue of S_w that is added to its diagonal.
    pca_components : "auto" or None, default=None
        "auto" first reduces samples to the largest number of principal components, up to n - k, for
        which S_w is nonsingular up to rounding errors.

    Attributes
    ----------
    components_ : (ell, d) array
        Directions, one per row, scaled to unit local variance within classes and multiplied by the
        square root of the eigenvalue. The entry of largest magnitude is positive.
    eigenvalues_ : (ell,) array
        Local variance between classes over variance within, descending; may be negative.
    pca_components_ : int or None
        Number of principal components that were used.
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
    LDG : Needs no inverse.
    RegularizedFisher : Scatter of all samples of a class, near and far.

    References
    ----------
    M. Sugiyama, "Dimensionality reduction of multimodal labeled data by local Fisher discriminant
    analysis", JMLR 8, 2007. N. Parrish, thesis, University of Washington, 2012, sections 2.2.3 and
    3.5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat.ldg import LocalFisher
    >>> X, y = load_iris(return_X_y=True)
    >>> LocalFisher(n_components=3).fit_transform(X, y).shape
    (150, 3)
    """

    _in_blocks = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ClassReducer._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "pca_components": [StrOptions({"auto"}), None],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int = 7,
        ridge: float = 1e-3,
        pca_components: str | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.ridge = ridge
        self.pca_components = pca_components

    def _solve(self, rows: ClassDeviations) -> Array:
        n, d = rows.within.shape
        reason = "columns" if d <= n else "rank of the samples"
        self.pca_components_ = None
        if self.pca_components is None:
            narrow, basis = rows.compressed()
        else:
            basis = _nonsingular_part(rows)
            narrow, reason = rows.in_basis(basis), "pca_components"
            d = self.pca_components_ = basis.shape[1]
        m = count_components(self.n_components, narrow.within.shape[1], reason)
        between, within = _scatters(narrow, self.n_neighbors)
        if not np.trace(within) > 0:
            raise ValueError("X: expected samples that differ within classes, got equal samples")
        values, V = largest_ratios(between, within, m, ridge=self.ridge, n_columns=d)
        self.eigenvalues_ = values
        V = V / rows.unit * np.sqrt(np.maximum(values, 0.0))
        return V if basis is None else basis @ V


def _scatters(rows: ClassDeviations, n_neighbors: int) -> tuple[Array, Array]:
    """Return local S_b and S_w (d, d), both divided by the number of samples."""
    n, counts = len(rows.within), rows.counts
    H_b = rows.between_factor
    # Weights of X_c^T L_c X_c and of X_c^T X_c, for both scatters.
    laplacian = np.array([(1 / n - 1 / counts) / n, 1 / (n * counts)])
    plain = np.array([1 / n - counts / n**2, np.zeros(len(counts))])
    k = min(n_neighbors, n)
    X, sizes = np.ascontiguousarray(rows.within), counts.astype(np.int64)
    between, within = core.affinity_sums(X, sizes, k, laplacian, plain, resolve(None))
    return between + H_b.T @ H_b, within


def _nonsingular_part(rows: ClassDeviations) -> Array:
    """Return the leading principal components (d, p) with a nonsingular S_w.

    ValueError if S_w vanishes on the first component.
    """
    span = PrincipalBasis.of(rows.centred)
    most = principal_count(rows, span)
    basis, sizes = span.basis[:, :most], span.sizes[:most]
    # The part of each component, within classes, that earlier components do not explain.
    white = rows.within @ (basis / (sizes * np.sqrt(len(rows.within))))
    triangle = np.linalg.qr(white, mode="r")
    rounding = 10 * max(rows.within.shape) * EPS * sizes[0] / sizes
    singular = np.abs(np.diag(triangle)) <= rounding
    count = int(np.argmax(singular)) if singular.any() else most
    if count == 0:
        raise ValueError(
            "pca_components: expected samples that vary within classes along the first principal "
            "component, got none"
        )
    return basis[:, :count]

"""Relatives of GEM: directions that maximise a signal to noise ratio ``v^T S v / v^T N v``.

Karampatziakis and Mineiro (2014), section 3 and Table 1. S and N come from `ClassMoments`,
directions from `generalized_eigh`, scaled to ``v^T N v = 1``. The estimators differ only in S and
N:

======================== ============================ ===============================
estimator                signal S                     noise N
======================== ============================ ===============================
RayleighPCA              E[x x^T]                     I
VanishingComponents      I                            E[x x^T]
FisherLDA                E_y[E[x|y] E[x|y]^T]         E_y[Cov[x|y]]
SlicedInverseRegression  E_y[E[x|y] E[x|y]^T]         Cov[x]
OrientedPCA              E[x x^T]                     E[z z^T]
======================== ============================ ===============================
"""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from eigenfeat._base.types import Rows
from eigenfeat._base.validation import FLOATS, check_same_names, names_of, show
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils import rayleigh_matrices as matrices
from eigenfeat.rayleigh.base import UnsupervisedRayleigh
from eigenfeat.samples.estimator import check_array, given_blocks, unchanged_on_error
from eigenfeat.samples.out_of_core import grouped_moments, one_group

if TYPE_CHECKING:
    from eigenfeat.samples.blocks import RowBlocks

__all__ = ["OrientedPCA", "RayleighPCA", "VanishingComponents"]


class RayleighPCA(UnsupervisedRayleigh):
    """Directions of largest variance: S = Cov[x] or E[x x^T], N = I.

    Use it for PCA of batches, weighted or sparse samples, and files. Tune `n_components`. User
    guide: :doc:`/guide/reduction`.

    The subspace is that of scikit-learn's ``PCA``, computed from moments. Batches, weights, and
    sparse samples with centring are supported; memory is d * d for any number of samples. At most
    d / 2 samples with at least 200 columns are kept instead, and no (d, d) matrix is formed.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of directions to keep, at most d. By default, all directions whose variance exceeds
        rounding errors.
    center : bool, default=True
        Whether to use the covariance. If False, the second moment is used, without offset.
    scale : {"none", "columns"}, default="none"
        Whether to divide columns by their standard deviations before solving for directions.
        Directions are in the units of the input, and orthonormal in the scaled units.
    n_threads : int or None, default=None
        Number of threads; None means all OpenMP threads. Results do not depend on it.

    Attributes
    ----------
    directions_ : (d, m) array
        One direction per column; projections are ``X @ directions_ + offset_``.
    offset_ : (m,) array
        ``-mean_ @ directions_``.
    eigenvalues_ : (m,) array
        Variances of the projections, descending.
    mean_ : (d,) array
        Mean of the samples; zeros if `center` is False.
    column_scale_ : (d,) array
        Divisors of the features.
    moments_ : ClassMoments
        Moments that the directions are computed from.
    n_features_in_ : int
        Number of input features, d.

    See Also
    --------
    VanishingComponents : The other end of the spectrum.
    OrientedPCA : With a covariance of noise.
    sklearn.decomposition.PCA : Without weights; whitening, and randomised solvers.

    References
    ----------
    N. Karampatziakis and P. Mineiro, "Discriminative Features via Generalized Eigenvectors",
    ICML 2014, Table 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat.rayleigh import RayleighPCA
    >>> X, _ = load_iris(return_X_y=True)
    >>> RayleighPCA(n_components=2).fit(X).eigenvalues_.round(2)  # variances
    array([4.2 , 0.24])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **UnsupervisedRayleigh._parameter_constraints,
        "center": ["boolean"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        center: bool = True,
        scale: str = "none",
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.center = center
        self.scale = scale
        self.n_threads = n_threads

    def _pencil_of(self) -> matrices.PencilOf:
        return matrices.principal


class VanishingComponents(RayleighPCA):
    """Directions along which the samples (nearly) vanish: S = I, N = Cov[x] or E[x x^T].

    Use it to find linear relations between columns. Tune `n_components`. User guide:
    :doc:`/guide/reduction`.

    These are the linear polynomials of vanishing component analysis: the directions of smallest
    variance, PCA with signal and noise swapped. They have unit length, not unit noise, and are
    computed as the eigenvectors of N with the smallest eigenvalues. N may be singular. The basis is
    a function of the null space alone if all of the null space is kept, or with few samples.
    scikit-learn has no counterpart.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of directions to keep; all d by default.
    center : bool, default=True
        As in `RayleighPCA`. With centring, a linear polynomial may have a constant term.
    scale : {"none", "columns"}, default="none"
        As in `RayleighPCA`.
    n_threads : int or None, default=None
        Number of threads; None means all OpenMP threads. Results do not depend on it.

    Attributes
    ----------
    eigenvalues_ : (m,) array
        Mean squares of the projections, ascending; 0 for directions along which all samples
        vanish.
    directions_ : (d, m) array
        One direction per column; projections are ``X @ directions_ + offset_``.
    offset_ : (m,) array
        ``-mean_ @ directions_``.
    mean_ : (d,) array
        Mean of the samples; zeros if `center` is False.
    column_scale_ : (d,) array
        Divisors of the features.
    moments_ : ClassMoments
        Moments that the directions are computed from.

    See Also
    --------
    RayleighPCA : Directions of largest variance.
    eigenfeat.gem.ClassComponents : Vanishing components of each class.

    References
    ----------
    N. Karampatziakis and P. Mineiro (ICML 2014), Table 1. R. Livni et al., "Vanishing component
    analysis", ICML 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.rayleigh import VanishingComponents
    >>> X = [[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]]  # x2 = 2 x1 + 1
    >>> np.abs(VanishingComponents(n_components=1).fit_transform(X)).max() < 1e-7
    np.True_
    """

    def _pencil_of(self) -> matrices.PencilOf:
        return matrices.vanishing


class OrientedPCA(UnsupervisedRayleigh):
    """Directions of large signal and small noise: S = Cov[x] or E[x x^T], N = E[z z^T].

    Use it with samples of the noise or of distortions. Tune `ridge`, then `n_components`. User
    guide: :doc:`/guide/reduction`.

    The noise is given by samples `z` in `fit` and `partial_fit`, such as differences between
    distorted samples and their originals. Without noise, N = I and the result is PCA. scikit-learn
    has no counterpart.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of directions to keep, at most d. By default, all directions whose signal exceeds
        rounding errors.
    ridge : float >= 0, default=1e-3
        Multiple of the mean eigenvalue of N that is added to its diagonal. 0 needs more
        independent noise samples than features.
    center : bool, default=True
        Whether S is the covariance. If False, it is the second moment, without offset. Noise is
        never centred: the mean of a distortion is part of the noise.
    scale : {"none", "columns"}, default="none"
        Whether to divide columns by the standard deviations of the samples `x` first.
    n_threads : int or None, default=None
        Number of threads; None means all.

    Attributes
    ----------
    directions_ : (d, m) array
        One direction per column, with ``v^T N v = 1``.
    eigenvalues_ : (m,) array
        Ratio of signal to noise, descending.
    noise_moments_ : ClassMoments or None
        Moments of the noise samples, if given.
    offset_ : (m,) array
        ``-mean_ @ directions_``.
    mean_ : (d,) array
        Mean of the samples; zeros if `center` is False.
    column_scale_ : (d,) array
        Divisors of the features.
    moments_ : ClassMoments
        Moments that the directions are computed from.

    Raises
    ------
    SingularDenominatorError
        If N is singular and `ridge` too small; the message gives a sufficient ridge.

    See Also
    --------
    RayleighPCA : Without noise.
    FisherLDA : The noise is the scatter within classes.

    References
    ----------
    N. Karampatziakis and P. Mineiro (ICML 2014), Table 1. K. I. Diamantaras and S. Y. Kung,
    "Principal Component Neural Networks", 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.rayleigh import OrientedPCA
    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.standard_normal((2, 500, 3)) * [[[1, 2, 3]], [[1, 1, 9]]]
    >>> int(np.abs(OrientedPCA(1).fit(X, noise=noise).directions_).argmax())
    1
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RayleighPCA._parameter_constraints,
        "ridge": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        ridge: float = 1e-3,
        center: bool = True,
        scale: str = "none",
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.ridge = ridge
        self.center = center
        self.scale = scale
        self.n_threads = n_threads

    def fit(
        self,
        X: Rows | RowBlocks,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        noise: Rows | RowBlocks | None = None,
    ) -> OrientedPCA:
        """Accumulate the moments of samples and noise, and solve for directions.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix
            Finite samples.
        y : object, default=None
            Not used.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.
        noise : (r, d) array-like, sparse matrix or RowBlocks, optional
            Any number of noise samples.

        Returns
        -------
        OrientedPCA
            The estimator itself.
        """
        with unchanged_on_error(self):
            self._accumulate(X, sample_weight, first=True, noise=noise)
            _ = self._solution
        return self

    def partial_fit(
        self,
        X: Rows,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        noise: Rows | RowBlocks | None = None,
    ) -> OrientedPCA:
        """Add a batch of samples and noise; directions are computed when they are next read.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix
            Finite samples.
        y : object, default=None
            Not used.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.
        noise : (r, d) array-like, sparse matrix or RowBlocks, optional
            Any number of noise samples; not needed in every batch.

        Returns
        -------
        OrientedPCA
            The estimator itself.
        """
        with unchanged_on_error(self):
            self._accumulate(X, sample_weight, first=not hasattr(self, "moments_"), noise=noise)
        return self

    def fit_moments(
        self, moments: ClassMoments, noise_moments: ClassMoments | None = None
    ) -> OrientedPCA:
        """Solve for directions from given moments.

        Parameters
        ----------
        moments : ClassMoments
            Moments, copied; the classes are merged.
        noise_moments : ClassMoments, optional
            Moments of the noise, copied.

        Returns
        -------
        OrientedPCA
            The estimator itself.
        """
        if noise_moments is not None:
            if not isinstance(noise_moments, ClassMoments):
                raise TypeError(f"noise_moments: expected ClassMoments, got {show(noise_moments)}")
            matrices.check_weight(noise_moments, "noise_moments")
            noise_moments = noise_moments.copy()
        with unchanged_on_error(self):
            self.noise_moments_ = noise_moments
            super().fit_moments(moments)
        return self

    def _accumulate(
        self, X: Any, sample_weight: ArrayLike | None, *, first: bool, noise: Any = None
    ) -> None:
        before = None if first else self.noise_moments_
        if not first:
            self.moments_ = self.moments_.copy()  # an error in the noise leaves the original
        super()._accumulate(X, sample_weight, first=first)
        self.noise_moments_ = before if noise is None else self._with_noise(before, noise)

    def _with_noise(self, before: ClassMoments | None, noise: Any) -> ClassMoments:
        """Return the moments of earlier noise and of more noise samples."""
        # Given moments may have any classes: noise is added to the first class.
        label = 0 if before is None else before.classes_[0]
        blocks = given_blocks(noise, None, estimator=None, labelled=False)
        if blocks is not None:
            blocks = blocks.prepared_for(self, fitted=True)
            added = grouped_moments(blocks, partial(one_group, label=label), self.n_threads)
        else:
            rows = check_array(
                noise, accept_sparse="csr", dtype=FLOATS, order="C", input_name="noise"
            )
            groups = np.full(rows.shape[0], label)
            added = ClassMoments().update(rows, groups, n_threads=self.n_threads)
        self._check_noise("noise", added.n_features_in_, names_of(noise))
        return added if before is None else before.copy().merge(added)

    def _check_noise(self, name: str, n_columns: int, columns: Any) -> None:
        """Raise ValueError for noise of other columns than the samples."""
        if n_columns != self.n_features_in_:
            raise ValueError(f"{name}: expected {self.n_features_in_} columns, got {n_columns}")
        check_same_names(getattr(self, "feature_names_in_", None), columns, name)

    def _pencil_of(self) -> matrices.PencilOf:
        noise = self.noise_moments_
        if noise is not None:
            names = getattr(noise, "feature_names_in_", None)
            self._check_noise("noise_moments", noise.n_features_in_, names)
        return partial(matrices.oriented, noise=noise)

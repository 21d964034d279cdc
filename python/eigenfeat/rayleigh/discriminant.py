"""Fisher's discriminant, and sliced inverse regression: directions from the means of classes.

Karampatziakis and Mineiro (2014), Table 1. S is the covariance of the means, N the covariance
within classes or of all samples.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import type_of_target

from eigenfeat._base.types import Floats, Labels, Rows
from eigenfeat._base.validation import real_array
from eigenfeat.moments.class_moments import ClassMoments, shares_and_means
from eigenfeat.pencils import rayleigh_matrices as matrices
from eigenfeat.rayleigh.base import SupervisedRayleigh
from eigenfeat.samples.blocks import RowBlocks
from eigenfeat.samples.estimator import given_blocks, keep_columns
from eigenfeat.samples.labelled import Block
from eigenfeat.samples.out_of_core import (
    FromLogits,
    all_targets,
    grouped_moments,
    over_blocks,
)
from eigenfeat.samples.targets import assign_bins, bin_edges

__all__ = ["FisherLDA", "SlicedInverseRegression"]


class FisherLDA(FromLogits, ClassifierMixin, SupervisedRayleigh):
    """Linear discriminant analysis with a ridge: directions that separate class means, and labels.

    Use it for classes that differ in their means: with thousands of classes, collinear columns,
    more columns than samples, batches, sparse samples and missing entries. It needs no tuning. User
    guide: :doc:`/guide/lda`.

    S is the covariance between classes and N within classes; there are at most k - 1 directions.
    With ``ridge=0``, directions and predictions are those of scikit-learn's
    ``LinearDiscriminantAnalysis(solver="eigen")``, scaled to unit variance within classes.
    Priors of the classes are their shares of the weight.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of directions, at most min(d, k - 1). By default, all directions whose signal exceeds
        rounding errors.
    ridge : float >= 0 or "auto", default="auto"
        Multiple of the mean eigenvalue of N that is added to its diagonal. "auto" estimates it from
        the spectrum of N, the class means and the sum of weights, and scales N so that
        probabilities are calibrated. 0 makes projections invariant to invertible linear maps of the
        samples, and needs a nonsingular N.
    scale : {"none", "columns"}, default="columns"
        Whether to divide columns by their standard deviations first.
    n_threads : int or None, default=None
        Number of threads; None means all. Results do not depend on it.

    Attributes
    ----------
    directions_ : (d, m) array
        One direction per column, in the units of the input.
    eigenvalues_ : (m,) array
        Variance between classes divided by variance within classes, descending.
    ridge_ : float
        The given or chosen ridge.
    classes_ : (k,) array
        Labels, sorted.
    completion_ : GaussianImputer
        Gaussian that completes missing entries; only if the training samples have some.
    offset_ : (m,) array
        ``-mean_ @ directions_``.
    mean_ : (d,) array
        Mean of the samples.
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
    eigenfeat.QuadraticDiscriminant : Classes with different covariances.
    eigenfeat.ldg.RegularizedFisher : More columns than samples; a transformer.
    eigenfeat.ldg.LDG : More than k - 1 directions.
    sklearn.discriminant_analysis.LinearDiscriminantAnalysis : Shrinks each class's covariance.

    References
    ----------
    N. Karampatziakis and P. Mineiro (ICML 2014), Table 1; here N weighs the classes as S does. Y.
    Chen et al., IEEE Trans. Signal Processing 58, 2010 (a factor of the ridge).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat import FisherLDA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = FisherLDA().fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2), model.transform(X).shape
    (0.96, (150, 2))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SupervisedRayleigh._parameter_constraints,
        "ridge": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        ridge: float | str = "auto",
        scale: str = "columns",
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.ridge = ridge
        self.scale = scale
        self.n_threads = n_threads

    @property
    def ridge_(self) -> float:
        """The given or chosen ridge."""
        return float(self._solution.ridge)

    @over_blocks
    def decision_function(self, X: Rows | RowBlocks) -> Floats:
        """Logits of Gaussian classes with a common covariance, N plus ridge, and priors by weight.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples, with missing entries only if the training samples had missing entries. For
            blocks, an iterator over the results of the blocks is returned.

        Returns
        -------
        (n, k) array, or (n,) with two classes
            With two classes, the logit of the second class over the first. A class without samples
            has minus infinity.
        """
        projections = self.transform(X)
        labels, shares, means = shares_and_means(self.moments_)
        centres = (means - self.mean_) @ self.directions_
        constants = np.log(shares) - np.sum(centres**2, axis=1) / 2
        dtype = projections.dtype
        scores = np.full((len(projections), len(self.classes_)), -np.inf, dtype)
        logits = projections @ centres.T.astype(dtype) + constants.astype(dtype)
        scores[:, np.searchsorted(self.classes_, labels)] = logits
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _pencil_of(self) -> matrices.PencilOf:
        return matrices.fisher


class SlicedInverseRegression(SupervisedRayleigh):
    """Sliced inverse regression: S = between-slice covariance of the means, N = Cov[x].

    Use it to reduce dimensions before a regression. Tune `ridge`, then `n_slices`. User guide:
    :doc:`/guide/regression`.

    Directions are those along which the mean of the whitened samples depends on y. Slices are
    classes, or bins of a continuous target. With classes and ``ridge=0``, the directions are those
    of `FisherLDA` with another scale, and the eigenvalues are ``lambda / (1 + lambda)``.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of directions to keep, at most min(d, slices - 1); by default as in `FisherLDA`.
    n_slices : int >= 2, default=10
        Maximum number of slices of a continuous target, of equal weights. The first batch of
        `partial_fit` determines them; with blocks, all targets are held in memory.
    target : {"auto", "classes", "continuous"}, default="auto"
        "auto" divides a target of floats that are not all integers into slices. Use "continuous"
        for counts and other integers.
    ridge : float >= 0, default=1e-3
        Multiple of the mean eigenvalue of the covariance that is added to its diagonal.
    scale : {"none", "columns"}, default="columns"
        Whether to divide columns by their standard deviations first.
    n_threads : int or None, default=None
        Number of threads; None means all. Results do not depend on it.

    Attributes
    ----------
    directions_ : (d, m) array
        One direction per column. Projections are centred and, with ``ridge=0``, white.
    eigenvalues_ : (m,) array
        Fraction of the variance of a projection between slices, in [0, 1], descending.
    slice_edges_ : (slices - 1,) array or None
        Lower ends of all slices but the first; None for classes.
    classes_ : (slices,) array
        Labels, or numbers of the slices.
    offset_ : (m,) array
        ``-mean_ @ directions_``.
    mean_ : (d,) array
        Mean of the samples.
    column_scale_ : (d,) array
        Divisors of the features.
    moments_ : ClassMoments
        Moments that the directions are computed from.

    Raises
    ------
    SingularDenominatorError
        If the covariance is singular and `ridge` too small; the message gives a sufficient ridge.

    See Also
    --------
    FisherLDA : Classes.
    eigenfeat.TableRegressor : Predicts the target, even where no mean depends on it.

    References
    ----------
    N. Karampatziakis and P. Mineiro (ICML 2014), Table 1. K.-C. Li, "Sliced inverse regression for
    dimension reduction", JASA 86, 1991.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.rayleigh import SlicedInverseRegression
    >>> X = np.random.default_rng(0).standard_normal((1000, 4))
    >>> y = np.exp(X @ [0.6, 0.8, 0.0, 0.0])
    >>> v = SlicedInverseRegression(n_components=1).fit(X, y).directions_[:, 0]
    >>> np.allclose(np.abs(v), [0.6, 0.8, 0.0, 0.0], atol=0.1)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SupervisedRayleigh._parameter_constraints,
        "ridge": [Interval(Real, 0, None, closed="left")],
        "n_slices": [Interval(Integral, 2, None, closed="left")],
        "target": [StrOptions({"auto", "classes", "continuous"})],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_slices: int = 10,
        target: str = "auto",
        ridge: float = 1e-3,
        scale: str = "columns",
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_slices = n_slices
        self.target = target
        self.ridge = ridge
        self.scale = scale
        self.n_threads = n_threads

    def fit_moments(self, moments: ClassMoments) -> SlicedInverseRegression:
        """Solve for directions from moments of slices.

        Parameters
        ----------
        moments : ClassMoments
            Moments of the samples by slices of the target, or by classes.

        Returns
        -------
        SlicedInverseRegression
            The estimator itself.
        """
        super().fit_moments(moments)
        self.slice_edges_: Any = None
        return self

    def _pencil_of(self) -> matrices.PencilOf:
        return matrices.sliced

    def _groups(self, y: Any, weight: Any, classes: Any, first: bool) -> Any:
        if first:
            self._choose_slices(y, weight)
        if self.slice_edges_ is None:
            return super()._groups(y, weight, classes, first)
        if classes is not None:
            raise ValueError("classes: expected None for a continuous y, got labels")
        return assign_bins(real_array(y, "y", np.dtype(np.float64)), self.slice_edges_)

    def _choose_slices(self, y: Any, weight: Any) -> None:
        """Set the edges of the slices of a continuous y, or None."""
        self.slice_edges_ = None
        if self._is_continuous(y):
            numbers = real_array(y, "y", np.dtype(np.float64))
            self.slice_edges_ = bin_edges(numbers, self.n_slices, weight)

    def _fit_moments(self, X: Any, y: Any, sample_weight: Any) -> None:
        blocks = given_blocks(X, y, sample_weight, estimator=self)
        if blocks is None:
            self._accumulate(X, y, None, sample_weight, first=True)
            return
        # Edges are quantiles of all targets, which are read into memory.
        targets, weight = all_targets(blocks)
        self._choose_slices(targets, weight)
        if self.slice_edges_ is None:
            super()._fit_moments(blocks, None, None)
            return
        slices = partial(_slices, edges=self.slice_edges_)
        moments = grouped_moments(blocks, slices, self.n_threads)
        keep_columns(self, blocks, moments.n_features_in_)
        self._keep_moments(moments)

    def _is_continuous(self, y: Any) -> bool:
        if self.target == "auto":
            return str(type_of_target(y, input_name="y")) == "continuous"
        return self.target == "continuous"


def _slices(block: Block, edges: Any) -> Labels:
    """Slices of the targets of a block; `edges` are the lower ends of all slices but the first."""
    return assign_bins(np.asarray(block.y, dtype=np.float64), edges)

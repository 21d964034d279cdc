"""Quadratic discriminants: Gaussian classes with covariances shrunk to the pooled covariance.

With class covariances S_c and the pooled covariance S, both about class means, and columns divided
by their scales,

    C_c = (1 - s_c) S_c + s_c S + r I,     r = ridge * trace(S) / d,

and the discriminants are ``log pi_c - (log det C_c + (x - m_c)^T C_c^-1 (x - m_c)) / 2``:
Friedman (1989), eq. 17, with shares in place of his weighted sums, and a ridge in place of eq. 18.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.types import Floats, Labels, Rows
from eigenfeat._base.validation import is_rounding, show
from eigenfeat.expansion.features import expand
from eigenfeat.moments.class_moments import shares_and_means
from eigenfeat.pencils import rayleigh_matrices as matrices
from eigenfeat.pencils.fitted_directions import settle_scale
from eigenfeat.pencils.problems import SingularDenominatorError
from eigenfeat.pencils.span import Span, span_of
from eigenfeat.rayleigh.base import FromClassMoments
from eigenfeat.samples.out_of_core import FromLogits, over_blocks

if TYPE_CHECKING:
    from eigenfeat.moments.class_moments import ClassMoments
    from eigenfeat.samples.blocks import RowBlocks

__all__ = ["QuadraticDiscriminant"]

Array = matrices.Array


@dataclass(frozen=True, eq=False)
class ClassGaussians:
    """Gaussians of the k classes of positive weight, by the maps that whiten their samples.

    ``(x - means[c]) @ whiteners[c]`` has covariance I in class c; the Jacobian is
    ``exp(log_whiteners[c])``, up to a common factor. With fewer samples than features, whiteners
    (d, r) map to the span of the samples. All classes have equal densities outside the span and in
    constant columns, where whiteners are 0.
    """

    classes: Labels  # (k,)
    log_priors: Array  # (k,)
    means: Array  # (k, d)
    whiteners: Array  # (k, d, r)
    log_whiteners: Array  # (k,)
    shrinkage: Array  # (k,)


class QuadraticDiscriminant(FromLogits, ClassifierMixin, FromClassMoments):
    """Quadratic discriminant analysis from moments, regularised towards a common covariance.

    Use it for nearly Gaussian classes of different covariances. It needs no tuning; `shrinkage` and
    `ridge` are the parameters to try. User guide: :doc:`/guide/lda`.

    Classes are Gaussian, with covariances ``(1 - s) S_c + s S + r I``: S_c is the covariance of
    class c, S the pooled covariance, s the shrinkage, and r the ridge. With shrinkage 1 the
    classifier is `FisherLDA`; without shrinkage and ridge, scikit-learn's
    ``QuadraticDiscriminantAnalysis``. Batches, weights, sparse samples, missing entries and given
    moments are supported. Priors of the classes are their shares of the weight.

    Parameters
    ----------
    shrinkage : float in [0, 1] or "auto", default="auto"
        Share of the pooled covariance. "auto": for each class, the estimated squared error of S_c
        for Gaussian classes, over its squared distance from S; 1 for a class of one sample.
    ridge : float >= 0, default=1e-3
        Multiple of the mean eigenvalue of S that is added to all diagonals. 0 makes predictions
        invariant to invertible linear maps of the samples, and needs nonsingular covariances.
    scale : {"none", "columns"}, default="columns"
        Whether to divide columns by their standard deviations first.
    n_threads : int or None, default=None
        Number of threads; None means all. Results do not depend on it.

    Attributes
    ----------
    shrinkage_ : (k,) array
        Shrinkage of each class.
    classes_ : (k,) array
        Labels, sorted.
    moments_ : ClassMoments
        Moments of the classes.
    completion_ : GaussianImputer
        Gaussian that completes missing entries; only if the training samples have some.

    Raises
    ------
    SingularDenominatorError
        If a class's matrix is singular; the message names the class.

    See Also
    --------
    FisherLDA : One covariance for all classes.
    eigenfeat.GEMClassifier : Learns the weights of squared projections.
    sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis : No pooled covariance.

    References
    ----------
    J. H. Friedman, "Regularized discriminant analysis", JASA 84, 1989. O. Ledoit and M. Wolf, J.
    Multivariate Analysis 88, 2004 (the share). Y. Chen et al., IEEE Trans. Signal Processing 58,
    2010 (the squared error).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from eigenfeat.rayleigh import QuadraticDiscriminant
    >>> X, y = load_wine(return_X_y=True)
    >>> model = QuadraticDiscriminant().fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.98
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "shrinkage": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "scale": [StrOptions({"none", "columns"})],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        *,
        shrinkage: float | str = "auto",
        ridge: float = 1e-3,
        scale: str = "columns",
        n_threads: int | None = None,
    ) -> None:
        self.shrinkage = shrinkage
        self.ridge = ridge
        self.scale = scale
        self.n_threads = n_threads

    @property
    def shrinkage_(self) -> Array:
        """(k,) shrinkage of each class; 0 for classes without weight."""
        result: ClassGaussians = self._solution
        shrinkage = np.zeros(len(self.classes_))
        shrinkage[np.searchsorted(self.classes_, result.classes)] = result.shrinkage
        return shrinkage

    @over_blocks
    def decision_function(self, X: Rows | RowBlocks) -> Floats:
        """Logarithms of the classes' densities and priors, up to a number common to all classes.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples, with missing entries only if the training samples had missing entries. For
            blocks, an iterator over the results of the blocks is returned.

        Returns
        -------
        (n, k) array, or (n,) with two classes; float32 if `X` is float32, else float64
            With two classes, the logit of the second class over the first. A class without samples
            has minus infinity.
        """
        check_is_fitted(self)
        rows, result = self._rows(X), self._solution
        scores = np.full((rows.shape[0], len(self.classes_)), -np.inf, rows.dtype)
        constants = (result.log_priors + result.log_whiteners).astype(scores.dtype)
        places = np.searchsorted(self.classes_, result.classes)
        for c, place in enumerate(places):
            whitener, offset = result.whiteners[c], -(result.means[c] @ result.whiteners[c])
            white = expand(rows, whitener, offset, expansion="none", n_threads=self.n_threads)
            scores[:, place] = np.einsum("ij,ij->i", white, white) / -2 + constants[c]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _options(self) -> tuple[float | str, float, str]:
        return self.shrinkage, self.ridge, self.scale

    def _solve(
        self, moments: ClassMoments, settings: tuple[float | str, float, str]
    ) -> ClassGaussians:
        return class_gaussians(moments, *settings)


def class_gaussians(
    moments: ClassMoments, shrinkage: float | str, ridge: float, scale: str
) -> ClassGaussians:
    """Return the Gaussians of the classes; SingularDenominatorError for singular covariances."""
    check_two_labels(moments.active_classes)
    column_scale = settle_scale(moments, scale, None).column_scale
    span = span_of(moments, column_scale, about_mean=True)
    if span is None:
        return _class_gaussians(moments, shrinkage, ridge, column_scale)
    # Solve in coordinates of the span; outside the span, all covariances are the ridge.
    inner = _class_gaussians(span.moments, shrinkage, ridge, np.ones(span.basis.shape[1]), span)
    _, _, means = shares_and_means(moments)
    return replace(
        inner, means=means, whiteners=span.basis / column_scale[:, None] @ inner.whiteners
    )


def _class_gaussians(
    moments: ClassMoments,
    shrinkage: float | str,
    ridge: float,
    column_scale: Array,
    span: Span | None = None,
) -> ClassGaussians:
    pooled = matrices.pool(moments)
    labels, shares, means = shares_and_means(moments)
    within = pooled.within / column_scale / column_scale[:, None]
    within = _without_rounding(within, np.abs(means).max(axis=0) / column_scale)
    r = len(within)
    d = r if span is None else len(span.origin)
    unit = matrices.noise_unit(within, pooled, column_scale) / d
    if not unit > 0:
        raise SingularDenominatorError("X: expected a column that varies, got constant columns")
    common = within + ridge * unit * np.eye(r)
    root = _root(common, "the pooled", ridge) if shrinkage == "auto" else None
    whiteners, log_whiteners = np.zeros((len(labels), r, r)), np.zeros(len(labels))
    chosen = np.full(len(labels), 0.0 if isinstance(shrinkage, str) else float(shrinkage))
    for c, label in enumerate(labels.tolist()):
        own = moments.covariance(label) / column_scale / column_scale[:, None]
        own = _without_rounding(own, np.abs(means[c]) / column_scale)
        own[pooled.constant] = own[:, pooled.constant] = 0.0
        if root is not None:
            chosen[c] = _share(own, moments.weight(label), root, d)
        mixed = (1 - chosen[c]) * own + chosen[c] * within + ridge * unit * np.eye(r)
        factor = _root(mixed, f"class {show(label)}'s", ridge)
        inverse = solve_triangular(factor, np.eye(r), lower=True)
        inverse[:, pooled.constant] = 0.0  # all classes have equal densities in constant columns
        whiteners[c] = inverse.T / column_scale[:, None]
        log_whiteners[c] = -np.log(np.diag(factor)).sum()
    return ClassGaussians(labels, np.log(shares), means, whiteners, log_whiteners, chosen)


def _without_rounding(covariance: Array, size: Array) -> Array:
    """Set the covariance of columns that are constant up to rounding to zero."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    rounding = is_rounding(deviation, size)
    return np.where(rounding | rounding[:, None], 0.0, covariance)


def _share(own: Array, weight: float, root: Array, d: int) -> float:
    """Return the share of the pooled covariance that minimises the expected squared error.

    In the coordinates that `root` whitens, the pooled covariance is I. With n Gaussian samples of
    covariance T, the expected squared error of their covariance A is ``(tr(T)^2 + tr(T^2)) / n``.
    T is unknown. A underestimates it with few samples, and I underestimates it if the class has a
    larger covariance; the larger of both errors is used. Matrices are (d, d), and A is zero outside
    the span of the samples.
    """
    half = solve_triangular(root, own, lower=True)
    white = solve_triangular(root, half.T, lower=True)
    squares = float(np.sum(white**2))
    trace = float(np.trace(white))
    distance = squares - 2 * trace + d
    error = max(trace**2 + squares, d * (d + 1)) / weight
    return 1.0 if error >= distance else error / distance


def _root(matrix: Array, whose: str, ridge: float) -> Array:
    """Return the Cholesky factor; an error if columns are dependent up to rounding."""
    variances = np.diag(matrix)
    try:
        factor: Array = np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        factor = np.zeros_like(matrix)
    least = 10 * len(matrix) * np.finfo(np.float64).eps
    if not np.all(np.diag(factor) ** 2 > least * variances):
        raise SingularDenominatorError(
            f"ridge: expected a number that makes {whose} covariance matrix positive definite, got "
            f"{ridge:g}; 1e-3 suffices, if samples of a class differ"
        )
    return factor

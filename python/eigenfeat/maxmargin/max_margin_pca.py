"""Principal components and a multiclass SVM of their features, fitted together."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import CrossValidation, Floats, Rows, Targets, Weights
from eigenfeat._base.validation import MOST, warn_caller
from eigenfeat.maxmargin._joint import check_reach, spread
from eigenfeat.maxmargin._movers import MovedSamples
from eigenfeat.maxmargin._scale_search import SCALES, ScaleSearch
from eigenfeat.maxmargin.svm import MulticlassSVM
from eigenfeat.moments.columns import signed
from eigenfeat.samples.blocks import RowBlocks
from eigenfeat.samples.estimator import unchanged_on_error
from eigenfeat.samples.out_of_core import over_blocks

__all__ = ["MaxMarginPCA"]

_COARSE_TOL, _COARSE_SWEEPS = 1e-2, 20  # limits of fits that only compare scales
_INNER_STEPS, _INNER_TOL = 20, 1e-12  # limits of the minimisation over the weights in a sweep

_Array = NDArray[np.float64]


class MaxMarginPCA(ClassNamePrefixFeaturesOutMixin, ScaleSearch):
    """Components that reconstruct the samples and separate their classes by an SVM.

    Use it to reduce dimensions before an SVM; try ``MaxMarginShift(PCA())`` first, which is faster.
    Set `n_components` first. User guide: :doc:`/guide/reduction`; the objective J and its
    minimisation: :doc:`/guide/objectives`.

    Parameters
    ----------
    n_components : int >= 1, default=2
        Number of components, at most the number of samples and of columns.
    sigma2 : float >= 0 or "cv", default="cv"
        Variance of the samples about their reconstruction. Larger values give the labels more
        influence; 0 means PCA. "cv": chosen as by `MaxMarginShift`.
    svm : MulticlassSVM or None, default=None
        Parameters of the SVM; None means ``MulticlassSVM()``.
    scales : sequence of float >= 0, default=(0, .1, .2, .3, .5, .7, 1, 1.5, 2, 3)
        For "cv": sizes of the moves of `MaxMarginShift`, relative to the spread of the samples;
        each determines a `sigma2`.
    cv : int or splitter, default=5
        Folds for "cv".
    scale : {"auto", "none", "columns"}, default="auto"
        "columns" standardises columns before the SVM. "auto" standardises columns of different
        units, if `svm` and `sigma2` have their defaults.
    max_iter : int >= 1, default=100
        Maximum number of sweeps.
    tol : float > 0, default=1e-5
        The fit stops when a sweep changes the components by less than this fraction of their
        Frobenius norm.

    Attributes
    ----------
    components_ : (n_components, d) array
        Components, one per row: orthonormal in scaled columns, and rotated so that features of the
        samples are uncorrelated, the largest variance first.
    mean_ : (d,) array
        Mean of the samples.
    feature_coef_ : (k, n_components) array
        Weights of the SVM of the features.
    feature_intercept_ : (k,) array
        Intercepts of the SVM of the features.
    svm_ : MulticlassSVM
        SVM of the samples; the components of the samples that it moves are the initial components.
    sigma2_ : float
        The given or chosen value.
    relative_shift_ : float
        Root mean square of features minus projections, relative to the spread of the samples.
    objective_ : float
        J; NaN if `sigma2_` is 0.
    objective_history_ : list of float
        J after every sweep.
    n_iter_ : int
        Number of sweeps.
    column_mean_ : (d,) array
        Means that are subtracted from the columns before the SVM.
    column_scale_ : (d,) array
        Divisors of columns before the SVM.
    cv_results_ : dict
        With "cv", all results, as in ``GridSearchCV``.
    best_score_ : float
        With "cv", the score of the chosen scale, which need not be the largest.
    best_index_ : int
        With "cv", the index of the chosen scale.

    Warns
    -----
    ConvergenceWarning
        If the components changed by more than `tol` in the last of `max_iter` sweeps.

    See Also
    --------
    MaxMarginShift : Any extractor, one step.

    References
    ----------
    J. Wangni and N. Chen, "Nonlinear Feature Extraction with Max-Margin Data Shifting", AAAI 2016,
    equations 12 to 15.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat.maxmargin import MaxMarginPCA
    >>> X, y = load_iris(return_X_y=True)
    >>> MaxMarginPCA(2, sigma2=1.0).fit_transform(X, y).shape
    (150, 2)
    """

    _extracts_from_units: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, MOST, closed="both")],
        **ScaleSearch._parameter_constraints,
        "max_iter": [Interval(Integral, 1, MOST, closed="both")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_components: int = 2,
        sigma2: float | str = "cv",
        svm: MulticlassSVM | None = None,
        scales: Sequence[float] = SCALES,
        cv: CrossValidation = 5,
        scale: str = "auto",
        max_iter: int = 100,
        tol: float = 1e-5,
    ) -> None:
        self.n_components = n_components
        self.sigma2 = sigma2
        self.svm = svm
        self.scales = scales
        self.cv = cv
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol

    def fit(
        self, X: Rows | RowBlocks, y: Targets = None, sample_weight: Weights = None
    ) -> MaxMarginPCA:
        """Fit components and SVM.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples. Rows of files are read into memory.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights, multiplied into the costs C_n. A sample of weight 0 has no class.

        Returns
        -------
        MaxMarginPCA
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            result = self._fit_scale(X, y, sample_weight).features(self.sigma2_)
            self.components_ = result.components.astype(result.X.dtype, copy=False)
            self.mean_ = self._in_input_units(result.mean.astype(result.X.dtype, copy=False))
            self.feature_coef_, self.feature_intercept_ = result.coef, result.intercept
            self.relative_shift_ = result.relative_shift
            self.objective_history_ = result.history
            self.objective_ = result.history[-1] if result.history else np.nan
            self.n_iter_ = max(len(result.history), 1)
            if not result.converged:
                warn_caller(
                    f"MaxMarginPCA: {self.max_iter} sweeps were not enough; raise max_iter or tol",
                    ConvergenceWarning,
                )
        return self

    @over_blocks
    def transform(self, X: Rows | RowBlocks) -> Floats:
        """Project samples on the components.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples. For blocks the result is an iterator over blocks.

        Returns
        -------
        (n, n_components) array
        """
        check_is_fitted(self, "components_")
        rows = self._rows(X)
        rows = rows.toarray() if sp.issparse(rows) else rows
        centred = rows - self.mean_
        if self._has_units:
            centred = centred / self.column_scale_
        return np.asarray(centred @ self.components_.T, dtype=rows.dtype)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _mover(self, X: Any, y: Any, weight: Any, svm: MulticlassSVM, coarse: bool) -> Any:
        if self.n_components > min(X.shape):
            raise ValueError(
                f"n_components: expected at most {min(X.shape)}, the smaller of the numbers of "
                f"samples and features, got {self.n_components}"
            )
        sweeps = min(int(self.max_iter), _COARSE_SWEEPS) if coarse else int(self.max_iter)
        tol = max(float(self.tol), _COARSE_TOL) if coarse else float(self.tol)
        return _Components(X, y, weight, svm, int(self.n_components), sweeps, tol)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _Components(MovedSamples):
    """Block coordinate descent over weights, features and components."""

    def __init__(
        self, X: Any, y: Any, weight: Any, svm: Any, n_components: int, sweeps: int, tol: float
    ) -> None:
        super().__init__(X, y, weight, svm, lambda rows: rows)
        self.mean = X.mean(axis=0, dtype=np.float64)
        self._centred = X - self.mean
        self._m, self._sweeps, self._tol = n_components, sweeps, tol

    def features(self, sigma2: float) -> _Components:
        """Compute the components for a sigma2; sweeps start at those of the moved samples."""
        centred, m = self._centred, self._m
        with np.errstate(over="ignore", invalid="ignore"):
            moved = centred + sigma2 * self.moves
        check_reach(moved, centred, sigma2)
        W = _principal(moved - moved.mean(axis=0), m)
        k = self.svm.class_coef_.shape[0] if self.unit > 0 else 1
        self.history: list[float] = []
        self.coef, self.intercept = np.zeros((k, m)), np.zeros(k)
        self.relative_shift, self.converged = 0.0, True
        if sigma2 > 0 and self.unit > 0:
            W = self._sweep(W, sigma2)
        turn = np.linalg.svd(centred @ W.T, full_matrices=False)[2]
        turn = signed((turn @ W).T).T @ W.T
        self.components, self.coef = turn @ W, self.coef @ turn.T
        return self

    def transform(self, X: Any) -> _Array:
        return np.asarray((X - self.mean) @ self.components.T)

    def _sweep(self, W: _Array, sigma2: float) -> _Array:
        X, known = self._centred, self.known
        total = float(np.vdot(X, X))
        joint = self.joint_moves(X @ W.T, max_iter=_INNER_STEPS, tol=_INNER_TOL)
        joint.start(self.svm.class_coef_ @ W.T, self.svm.dual_coef_)
        self.converged = False
        for _ in range(self._sweeps):
            Z = X @ W.T
            joint.replace_rows(Z[known])
            joint.minimise(sigma2)
            rest = max(total - float(np.vdot(Z, Z)), 0.0) / (2.0 * sigma2)
            self.history.append(joint.objective + rest)
            self.coef, self.intercept, moves = joint.coef, joint.intercept, joint.moves
            self.relative_shift = spread(moves) / self.around
            Z[known] += moves
            left, _, right = np.linalg.svd(Z.T @ X, full_matrices=False)
            before, W = W, left @ right
            if np.linalg.norm(W - before) <= self._tol * np.sqrt(len(W)):
                self.converged = True
                break
        return before


def _principal(rows: _Array, m: int) -> _Array:
    """Return the m leading right singular vectors (m, d) of rows."""
    n, d = rows.shape
    if d <= n:
        vectors = np.linalg.eigh(rows.T @ rows)[1]
        return np.ascontiguousarray(vectors[:, ::-1][:, :m].T)
    return np.asarray(np.linalg.svd(rows, full_matrices=False)[2][:m])

"""Max-margin data shifting: an SVM moves samples before an extractor is fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.decomposition import PCA
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import CrossValidation, Estimator, Floats, RandomState, Rows, Targets
from eigenfeat._base.validation import MOST
from eigenfeat.maxmargin._joint import check_reach
from eigenfeat.maxmargin._movers import COARSE_TOL, CorruptedSamples, JointlyMoved, MovedSamples
from eigenfeat.maxmargin._scale_search import SCALES, ScaleSearch
from eigenfeat.maxmargin.svm import MulticlassSVM
from eigenfeat.samples.blocks import RowBlocks
from eigenfeat.samples.estimator import unchanged_on_error
from eigenfeat.samples.out_of_core import over_blocks

__all__ = ["MaxMarginShift"]


class MaxMarginShift(MetaEstimatorMixin, ScaleSearch):
    r"""Fit any feature extractor to samples that an SVM has moved towards their classes.

    Use it to make PCA, NMF, k-means or an autoencoder discriminative. Choose `extractor` first;
    cross-validation chooses the length of the moves. User guide: :doc:`/guide/reduction`.

    Sample x of class y moves to :math:`x + \sigma^2 \sum_c a_c \eta_c`, with the weights and the
    dual variables of a multiclass SVM. `transform` needs no labels and moves nothing. Equations:
    :doc:`/guide/objectives`.

    Parameters
    ----------
    extractor : transformer or None, default=None
        Extractor to fit to the moved samples; None means `PCA()`.
    sigma2 : float >= 0 or "cv", default="cv"
        Scale of the moves. "cv": the best of `scales` by the accuracy of an SVM like `svm` on
        held-out folds. If 0 is one of them, another scale must gain more than two standard errors.
    svm : MulticlassSVM or None, default=None
        Parameters of the SVM; None means ``MulticlassSVM()``.
    scales : sequence of float >= 0, default=(0, .1, .2, .3, .5, .7, 1, 1.5, 2, 3)
        For "cv": root mean squares of the moves, relative to the spread of the samples.
    cv : int or splitter, default=5
        Folds for "cv".
    scale : {"auto", "none", "columns"}, default="auto"
        "columns" standardises columns before the SVM. "auto" standardises columns of different
        units, if `svm` and `sigma2` have their defaults.
    moves : {"once", "joint", "corrupted"}, default="once"
        "joint": samples and SVM minimise an objective together. "corrupted": corrupted copies.
    n_copies : int >= 1, default=10
        For "corrupted": copies of each sample.
    random_state : int, RandomState or None, default=0
        For "corrupted": seed.
    max_iter : int >= 1, default=200
        For "joint": maximum number of steps.
    tol : float > 0, default=1e-9
        For "joint": least decrease of the objective in a step, relative to its first value.

    Attributes
    ----------
    extractor_ : transformer
        The extractor, fitted to the moved samples.
    svm_ : MulticlassSVM
        The SVM, fitted to the centred and scaled samples.
    sigma2_ : float
        The given or chosen `sigma2`.
    relative_shift_ : float
        Root mean square of the moves, relative to the spread of the samples.
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
    class_coef_ : (k, d) array
        With "joint", the weights of the SVM of the moved samples.
    intercept_ : (k,) array
        With "joint", the intercepts of this SVM.
    objective_ : float
        With "joint", the objective at the end.
    objective_history_ : list of float
        With "joint", the objective after every step; it never increases.
    n_iter_ : int
        With "joint", the number of steps.

    See Also
    --------
    MaxMarginPCA : Components and SVM together; slower.
    MulticlassSVM : The SVM that moves the samples.
    eigenfeat.ldg.LDG : Supervised directions without an extractor.

    References
    ----------
    J. Wangni and N. Chen, "Nonlinear Feature Extraction with Max-Margin Data Shifting", AAAI 2016,
    equations 4, 5, 7, 9 and 11.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.decomposition import PCA
    >>> from eigenfeat.maxmargin import MaxMarginShift
    >>> X, y = load_iris(return_X_y=True)
    >>> MaxMarginShift(PCA(1), sigma2=1.0).fit(X, y).transform(X).shape
    (150, 1)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "extractor": [HasMethods(["fit", "transform"]), None],
        **ScaleSearch._parameter_constraints,
        "moves": [StrOptions({"once", "joint", "corrupted"})],
        "n_copies": [Interval(Integral, 1, MOST, closed="both")],
        "max_iter": [Interval(Integral, 1, MOST, closed="both")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        extractor: Estimator | None = None,
        sigma2: float | str = "cv",
        svm: MulticlassSVM | None = None,
        scales: Sequence[float] = SCALES,
        cv: CrossValidation = 5,
        scale: str = "auto",
        moves: str = "once",
        n_copies: int = 10,
        max_iter: int = 200,
        tol: float = 1e-9,
        random_state: RandomState = 0,
    ) -> None:
        self.extractor = extractor
        self.sigma2 = sigma2
        self.svm = svm
        self.scales = scales
        self.cv = cv
        self.scale = scale
        self.moves = moves
        self.n_copies = n_copies
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(
        self, X: Rows | RowBlocks, y: Targets = None, sample_weight: ArrayLike | None = None
    ) -> MaxMarginShift:
        """Fit the SVM, move the samples, and fit the extractor to them.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples. Rows of files are read into memory.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the hinge losses. A sample of weight 0 has no class and does not
            move. The extractor ignores weights.

        Returns
        -------
        MaxMarginShift
            The estimator itself.
        """
        with unchanged_on_error(self):
            moved = self._moved(X, y, sample_weight)
            self.extractor_ = self._extracted(moved)
        return self

    def shift(
        self, X: Rows | RowBlocks, y: Targets = None, sample_weight: ArrayLike | None = None
    ) -> Floats:
        """Return the samples moved by an SVM that is fitted to them, without fitting an extractor.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples. Rows of files are read into memory.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the hinge losses. A sample of weight 0 does not move.

        Returns
        -------
        (n, d) array
            Moved samples, float32 for float32 samples. With ``moves="corrupted"``, the shape is
            (n * n_copies, d), with the copies of each sample in succession.
        """
        return clone(self)._moved(X, y, sample_weight)

    @over_blocks
    def transform(self, X: Rows | RowBlocks) -> Floats:
        """Extract features of the original samples.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples. For blocks the result is an iterator over blocks.

        Returns
        -------
        (n, m) array
            Features from the extractor.
        """
        check_is_fitted(self, "extractor_")
        return self.extractor_.transform(self._rows(X))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Return the names of the extractor's features.

        Parameters
        ----------
        input_features : (d,) array-like of str, optional
            Not used; features are named after the extractor.

        Returns
        -------
        (m,) array of str
        """
        check_is_fitted(self, "extractor_")
        return self.extractor_.get_feature_names_out()

    def _extracted(self, moved: NDArray[Any]) -> Any:
        """Return the extractor, fitted to moved samples."""
        extractor = PCA() if self.extractor is None else clone(self.extractor)
        # PCA divides by the variance, which is 0 if all samples are equal.
        equal = not len(moved) or bool((moved == moved[0]).all())
        with np.errstate(invalid="ignore" if equal else None):
            return extractor.fit(moved)

    def _mover(self, X: Any, y: Any, weight: Any, svm: MulticlassSVM, coarse: bool) -> MovedSamples:
        given = (X, y, weight, svm, lambda moved: self._extracted(self._in_input_units(moved)))
        if self.moves == "joint":
            tol = max(COARSE_TOL, self.tol) if coarse else self.tol
            return JointlyMoved(*given, max_iter=int(self.max_iter), tol=float(tol))
        if self.moves == "corrupted":
            copies, state = int(self.n_copies), self.random_state
            return CorruptedSamples(*given, n_copies=copies, random_state=state)
        return MovedSamples(*given)

    def _moved(self, X: Any, y: Any, sample_weight: Any) -> NDArray[Any]:
        """Fit the SVM, choose the size of the moves, and move the samples."""
        mover = self._fit_scale(X, y, sample_weight)
        moved = mover.rows(self.sigma2_)
        check_reach(moved, mover.X, self.sigma2_)
        self.relative_shift_ = mover.relative_size(moved)
        self.n_iter_ = 1
        if isinstance(mover, JointlyMoved):
            self._keep_joint(mover)
        return self._in_input_units(moved)

    def _keep_joint(self, mover: JointlyMoved) -> None:
        moving = mover.joint if self.sigma2_ > 0 else None
        self.n_iter_ = max(moving.n_iter, 1) if moving else 1
        self.objective_ = moving.objective if moving else np.nan
        self.objective_history_ = list(moving.history) if moving else []
        self.class_coef_ = moving.coef if moving else self.svm_.class_coef_
        own = self.svm_.dual_coef_.sum(axis=0) if self.svm_.fit_intercept else 0.0
        self.intercept_ = moving.intercept if moving else np.zeros(len(self.class_coef_)) + own

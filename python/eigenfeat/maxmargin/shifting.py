"""Max-margin data shifting: rows moved along the weights of an SVM before features are learnt."""

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

from eigenfeat._base.types import CrossValidation, Estimator, Floats, RandomState, Rows
from eigenfeat._base.validation import MOST
from eigenfeat.maxmargin._joint import check_reach
from eigenfeat.maxmargin._movers import COARSE_TOL, CorruptedRows, JointlyMoved, MovedRows
from eigenfeat.maxmargin._scale_search import SCALES, ScaleSearch
from eigenfeat.maxmargin.svm import MulticlassSVM
from eigenfeat.rows.estimator import unchanged_on_error

__all__ = ["MaxMarginShift"]


class MaxMarginShift(MetaEstimatorMixin, ScaleSearch):
    r"""Fit any feature extractor to samples that an SVM has moved apart.

    Use it to make PCA, NMF, k-means or an autoencoder discriminative. Choose `extractor` first; how
    far samples move is chosen by default. User guide: :doc:`/guide/reduction`.

    A multiclass SVM with weights :math:`\eta_y` and multipliers :math:`\alpha_n^y` moves every
    sample towards its own class,

    .. math::

        T[x_n] = x_n + \sigma^2 \sum_y \alpha_n^y (\eta_{y_n} - \eta_y)
               = x_n + \sigma^2 \sum_y a_n^y \eta_y ,

    where a is the `dual_coef_` of `MulticlassSVM`, whose samples sum to 0. The extractor is fitted
    to the moved samples and transforms the original ones: labels are needed only for training.

    Parameters
    ----------
    extractor : transformer or None, default=None
        Extractor that is fitted to the moved samples; None means `PCA()`.
    sigma2 : float >= 0 or "cv", default="cv"
        Scale of the moves. "cv" evaluates each of `scales` by cross-validation: an SVM moves the
        samples of the training folds, the extractor is fitted to these and `classifier` to their
        features, and its accuracy is measured on the held-out fold. Where 0 is among `scales`, it
        is chosen unless the mean gain over it exceeds twice its standard error.
    svm : MulticlassSVM or None, default=None
        None means ``MulticlassSVM()``.
    scales : sequence of float >= 0
        For "cv": root mean squares of the moves, relative to that of the labelled samples about
        their mean. The moves at `sigma2` of 1 are often a hundredth of the samples. Moves are
        within 5% of them where `moves` is "joint"; where it is "corrupted" the noise has this size.
    classifier : classifier or None, default=None
        For "cv"; None means a `MulticlassSVM` like `svm`, solved with a loose tolerance.
    cv : int or splitter, default=5
        For "cv"; never more folds than the smallest class has samples.
    unlabeled : int or None, default=-1
        Label of samples without a class, which are not moved. None: there are none.
    scale : {"auto", "none", "columns"}, default="auto"
        "columns": the samples are centred, and columns are divided by their standard deviations
        before the SVM. "auto", with the default `svm` and `sigma2`, does so unless the columns are
        of one unit (the largest deviation is at most 5 times the median, and no mean exceeds 10
        deviations). Columns of one unit are left as they are if the root of their mean variance is
        between 1/8 and 8, the size that a `C` of 1 is meant for, and otherwise divided by it. With
        a given `svm` or `sigma2`, "auto" is "none".
    moves : {"once", "joint", "corrupted"}, default="once"
        "once": by the SVM of the samples as they are, as above. "joint": the moved samples and the
        SVM minimise one objective together. "corrupted": the extractor is fitted to corrupted
        copies of the samples. See the notes.
    n_copies : int >= 1, default=10
        Copies of each sample, for "corrupted".
    max_iter : int >= 1, default=200
        Maximum number of steps, for "joint". There is no warning when it is reached.
    tol : float > 0, default=1e-9
        For "joint": stops when a step reduces the objective by less than this fraction of its
        first value.
    random_state : int, RandomState or None, default=0
        For "corrupted".

    Attributes
    ----------
    svm_ : MulticlassSVM
        SVM fitted to the labelled samples, centred and scaled.
    column_mean_, column_scale_ : (d,) arrays
        What columns are centred by and divided by: zeros and ones where samples are left as they
        are. `sigma2`, moves, `svm_` and `class_coef_` are in these units; the extractor is fitted
        to moved samples in the columns' own.
    extractor_ : transformer
        Extractor fitted to the moved samples.
    sigma2_ : float
        The scale that was given or chosen.
    relative_shift_ : float
        Root mean square of the moves relative to that of the labelled samples about their mean.
    cv_scores_ : (m,) array
        With "cv", the mean accuracy for each of `scales`, sorted; NaN where the extractor failed.
    cv_results_ : dict
        With "cv", the same by column, as ``GridSearchCV`` of scikit-learn has it: "params" (of the
        scale), "split0_test_score", "mean_test_score", "std_test_score" and "rank_test_score".
    best_score_, best_index_ : float, int
        With "cv", the mean accuracy of the scale that was chosen, and its place. It is not the
        largest where no gain over 0 was shown.
    objective_ : float
        With "joint", J at the moved samples; NaN where `sigma2_` is 0.
    objective_history_ : list of float
        With "joint", J at the start and after every step. It never rises.
    n_iter_ : int
        Steps of the minimisation; 1 where there is none.
    class_coef_, intercept_ : (k, d) and (k,) arrays
        With "joint", weights of the SVM of the moved samples; those of `svm_` where none moves.
    n_features_in_ : int

    Raises
    ------
    ValueError
        If fewer than two classes have labelled samples, or samples or parameters are invalid. With
        "corrupted", if `sigma2` is so large that copies are hardly ever accepted.

    See Also
    --------
    MaxMarginPCA : Components and SVM together; slower.
    MulticlassSVM : The SVM that moves the samples.
    eigenfeat.ldg.LDG : Supervised directions without an extractor.

    Notes
    -----
    Sparse samples become dense. For nonlinear features put a kernel approximation first, as in
    ``make_pipeline(RBFSampler(), MaxMarginShift(PCA(10)))``: equation 11 of the paper.

    With ``moves="joint"`` the samples' means m and the weights minimise the objective of equation
    7,

    .. math::

        J(m, \eta) = \tfrac12 |\eta|^2 + \sum_n \frac{|m_n - x_n|^2}{2 \sigma^2}
            + \sum_n C_n \max_y \bigl( \ell\,[y \ne y_n] + (\eta_y - \eta_{y_n})^T m_n \bigr) ,

    with intercepts as `svm` has them. The paper says that a rigorous solution iterates over both,
    and takes the first step only. Minimising exactly over m and over :math:`\eta` in turn never
    raises J, but stops at once where the classes are separable: no sample has a loss to repay. So m
    is eliminated (for each sample a quadratic program in k multipliers), and L-BFGS goes on over
    :math:`\eta` alone, from the SVM of the samples as they are. Its line search never raises J. J
    is not convex: it is a stationary point that is found, at which :math:`\eta` is an SVM of the
    moved samples and :math:`m_n = x_n + \sigma^2 \sum_y a_n^y \eta_y` with the same a. At the same
    `sigma2` these moves are smaller than those of "once": for separable samples they grow with its
    fourth root.

    With ``moves="corrupted"`` the extractor is fitted to independent draws from the density of
    equations 4 and 5,

    .. math::

        p(x \mid x_n, y_n) \propto N(x; x_n, \sigma^2 I) \exp\bigl( -C_n \max_y ( \ell\,[y \ne y_n]
            + (\eta_y - \eta_{y_n})^T x ) \bigr) ,

    by rejection from the Gaussian about its mode. Equation 9 replaces their mean.

    References
    ----------
    J. Wangni and N. Chen, "Nonlinear Feature Extraction with Max-Margin Data Shifting", AAAI 2016,
    equations 4, 5, 7, 9 and 11.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.decomposition import PCA
    >>> from eigenfeat.maxmargin import MaxMarginShift
    >>> X, y = load_digits(return_X_y=True)
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(MaxMarginShift(PCA(5), sigma2=1.0), KNeighborsClassifier(3))
    >>> round(model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 2)
    0.9
    """

    _saved: ClassVar[dict[str, str]] = {
        "extractor_": "estimator",
        "svm_": "estimator?",
        "column_mean_": "numbers d",
        "column_scale_": "numbers d",
    }

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
        classifier: Estimator | None = None,
        cv: CrossValidation = 5,
        unlabeled: int | None = -1,
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
        self.classifier = classifier
        self.cv = cv
        self.unlabeled = unlabeled
        self.scale = scale
        self.moves = moves
        self.n_copies = n_copies
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None) -> MaxMarginShift:
        """Fit the SVM, move the samples, and fit the extractor to them.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix
            Finite samples.
        y : (n,) array-like
            Labels; `unlabeled` for samples without a class.
        sample_weight : (n,) array-like, optional
            Nonnegative factors of the C of the samples' hinge losses. A sample of weight 0 is one
            without a class. The extractor is given every sample once, whatever its weight.

        Returns
        -------
        MaxMarginShift
            The estimator itself.
        """
        with unchanged_on_error(self):
            moved = self._moved(X, y, sample_weight)
            self.extractor_ = self._extracted(moved)
        return self

    def shift(self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Floats:
        """Return the samples moved by an SVM that is fitted to them, without fitting an extractor.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        (n, d) array
            T[X], float32 for float32 samples. With ``moves="corrupted"`` (n * n_copies, d): all
            copies of the first sample, then those of the second.
        """
        return clone(self)._moved(X, y, sample_weight)

    def transform(self, X: Rows) -> Floats:
        """Extract features of the original samples.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix

        Returns
        -------
        (n, m) array
            Features from the extractor.
        """
        check_is_fitted(self, "extractor_")
        return self.extractor_.transform(self._rows(X, reset=False))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Return the names of the extractor's features."""
        check_is_fitted(self, "extractor_")
        return self.extractor_.get_feature_names_out()

    def _extracted(self, moved: NDArray[Any]) -> Any:
        """The extractor, fitted to moved rows."""
        extractor = PCA() if self.extractor is None else clone(self.extractor)
        # PCA divides by the variance, which is none where all rows are equal.
        equal = not len(moved) or bool((moved == moved[0]).all())
        with np.errstate(invalid="ignore" if equal else None):
            return extractor.fit(moved)

    def _learner(self, X: Any, y: Any, weight: Any, svm: MulticlassSVM, coarse: bool) -> MovedRows:
        given = (X, y, weight, svm, lambda moved: self._extracted(self._as_given(moved)))
        if self.moves == "joint":
            tol = max(COARSE_TOL, self.tol) if coarse else self.tol
            return JointlyMoved(*given, max_iter=int(self.max_iter), tol=float(tol))
        if self.moves == "corrupted":
            copies, state = int(self.n_copies), self.random_state
            return CorruptedRows(*given, n_copies=copies, random_state=state)
        return MovedRows(*given)

    def _moved(self, X: Any, y: Any, sample_weight: Any) -> NDArray[Any]:
        """Fit the SVM, settle how far rows move, and move them."""
        learner = self._settled(X, y, sample_weight)
        moved = learner.rows(self.sigma2_)
        self.relative_shift_ = learner.relative_size(self.sigma2_)
        check_reach(moved, learner.X, self.sigma2_)
        self.n_iter_ = 1
        if isinstance(learner, JointlyMoved):
            self._keep_joint(learner)
        return self._as_given(moved)

    def _keep_joint(self, learner: JointlyMoved) -> None:
        moving = learner.joint if self.sigma2_ > 0 else None
        self.n_iter_ = max(moving.n_iter, 1) if moving else 1
        self.objective_ = moving.objective if moving else np.nan
        self.objective_history_ = list(moving.history) if moving else []
        self.class_coef_ = moving.coef if moving else self.svm_.class_coef_
        own = self.svm_.dual_coef_.sum(axis=0) if self.svm_.fit_intercept else 0.0
        self.intercept_ = moving.intercept if moving else np.zeros(len(self.class_coef_)) + own

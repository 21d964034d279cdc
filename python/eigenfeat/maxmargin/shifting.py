"""Max-margin data shifting: rows moved along the weights of an SVM before features are learnt."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from eigenfeat._base.text_columns import naming_text
from eigenfeat._base.types import Floats, Rows
from eigenfeat._base.validation import FLOATS, show
from eigenfeat.maxmargin._components import fitted_components
from eigenfeat.maxmargin.svm import MulticlassSVM
from eigenfeat.rows.cv_results import cv_results
from eigenfeat.rows.estimator import BaseEstimator
from eigenfeat.rows.splits import checked_splitter

__all__ = ["MaxMarginShift"]

ROUGHLY = 1e-2  # gap of the SVMs by which scales are compared
SCALES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)


class MaxMarginShift(TransformerMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Fit any feature extractor to rows that an SVM has moved apart.

    A multiclass SVM with weights :math:`\eta_y` and multipliers :math:`\alpha_n^y` moves every
    row towards its own class,

    .. math::

        T[x_n] = x_n + \sigma^2 \sum_y \alpha_n^y (\eta_{y_n} - \eta_y)
               = x_n + \sigma^2 \sum_y a_n^y \eta_y ,

    where a is the `dual_coef_` of `MulticlassSVM`, whose rows sum to 0. The extractor is fitted to
    the moved rows and transforms the original ones: labels are needed only for training.

    Parameters
    ----------
    extractor : transformer or None, default=None
        Extractor that is fitted to the moved rows; None means `PCA()`, which Ctrl-C can interrupt.
    sigma2 : float >= 0 or "cv", default="cv"
        Scale of the moves. "cv" evaluates each of `scales` by cross-validation: an SVM moves the
        rows of the training folds, the extractor is fitted to these and `classifier` to their
        features, and its accuracy is measured on the held-out fold. Where 0 is among `scales`, it
        is chosen unless the mean gain over it exceeds twice its standard error.
    svm : MulticlassSVM or None, default=None
        None means ``MulticlassSVM()``.
    scales : sequence of float >= 0
        For "cv": root mean squares of the moves, relative to that of the labelled rows about
        their mean. The moves at `sigma2` of 1 are often a hundredth of the rows.
    classifier : classifier or None, default=None
        For "cv"; None means a `MulticlassSVM` like `svm`, solved with a loose tolerance.
    cv : int or splitter, default=5
        For "cv"; never more folds than the smallest class has rows.
    unlabeled : int or None, default=-1
        Label of rows without a class, which are not moved. None: there are none.

    Attributes
    ----------
    svm_ : MulticlassSVM
        SVM fitted to the labelled rows.
    extractor_ : transformer
        Extractor fitted to the moved rows.
    sigma2_ : float
        The scale that was given or chosen.
    relative_shift_ : float
        Root mean square of the moves relative to that of the labelled rows about their mean.
    cv_scores_ : (m,) array
        With "cv", the mean accuracy for each of `scales`, sorted; NaN where the extractor failed.
    cv_results_ : dict
        With "cv", the same by column, as ``GridSearchCV`` of scikit-learn has it: "params" (of the
        scale), "split0_test_score", "mean_test_score", "std_test_score" and "rank_test_score".
    best_score_, best_index_ : float, int
        With "cv", the mean accuracy of the scale that was chosen, and its place. It is not the
        largest where no gain over 0 was shown.
    n_features_in_ : int

    Raises
    ------
    ValueError
        If fewer than two classes have labelled rows, or rows or parameters are invalid.

    Notes
    -----
    Sparse rows become dense. For nonlinear features put a kernel approximation first, as in
    ``make_pipeline(RBFSampler(), MaxMarginShift(PCA(10)))``: equation 11 of the paper.

    References
    ----------
    J. Wangni and N. Chen, "Nonlinear Feature Extraction with Max-Margin Data Shifting", AAAI 2016,
    equations 9 and 11.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.decomposition import PCA
    >>> from eigenfeat.maxmargin import MaxMarginShift
    >>> X, y = load_digits(return_X_y=True)
    >>> MaxMarginShift(PCA(5), sigma2=1.0).fit(X, y).transform(X).shape
    (1797, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "extractor": [HasMethods(["fit", "transform"]), None],
        "sigma2": [Interval(Real, 0, np.inf, closed="left"), StrOptions({"cv"})],
        "svm": [MulticlassSVM, None],
        "scales": ["array-like"],
        "classifier": [HasMethods(["fit", "score"]), None],
        "cv": ["cv_object"],
        "unlabeled": [Integral, None],
    }

    def __init__(
        self,
        extractor: Any = None,
        sigma2: float | str = "cv",
        svm: MulticlassSVM | None = None,
        scales: Sequence[float] = SCALES,
        classifier: Any = None,
        cv: Any = 5,
        unlabeled: int | None = -1,
    ) -> None:
        self.extractor = extractor
        self.sigma2 = sigma2
        self.svm = svm
        self.scales = scales
        self.classifier = classifier
        self.cv = cv
        self.unlabeled = unlabeled

    def fit(self, X: Rows, y: ArrayLike) -> MaxMarginShift:
        """Fit the SVM, move the rows, and fit the extractor to them.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix
            Finite rows.
        y : (n,) array-like
            Labels; `unlabeled` for rows without a class.

        Returns
        -------
        MaxMarginShift
            The estimator itself.
        """
        before = self.__dict__.copy()
        try:
            moved = self._moved(X, y)
            self.extractor_ = self._extracted(moved)
        except (Exception, KeyboardInterrupt):
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def shift(self, X: Rows, y: ArrayLike) -> Floats:
        """Return the rows moved by an SVM that is fitted to them, without fitting an extractor.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        (n, d) array
            T[X], float32 for float32 rows.
        """
        return clone(self)._moved(X, y)

    def transform(self, X: Rows) -> Floats:
        """Extract features of the original rows.

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
        if self.extractor is None:
            return fitted_components(moved)
        return clone(self.extractor).fit(moved)

    def _rows(self, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
        options = {"accept_sparse": "csr", "dtype": FLOATS, "order": "C", "reset": reset}
        with naming_text(X):
            return validate_data(self, X, y, **options)

    def _moved(self, X: Any, y: Any) -> NDArray[Any]:
        """Fit the SVM, settle how far rows move, and move them."""
        self._validate_params()
        scales = _check_scales(self.scales)
        X, y = self._rows(X, reset=True, y=y)
        check_classification_targets(y)
        known = _labelled(y, self.unlabeled)
        if (n_classes := len(np.unique(y[known]))) < 2:
            raise ValueError(
                "y: expected labelled rows of at least two classes, got "
                f"{n_classes} class{'' if n_classes == 1 else 'es'} (rows labelled "
                f"{self.unlabeled!r} have none)"
            )
        self.svm_ = clone(MulticlassSVM() if self.svm is None else self.svm)
        self.svm_.fit(X[known], y[known])
        X = X.toarray() if sp.issparse(X) else X
        moves = np.zeros(X.shape)
        moves[known] = self.svm_.dual_coef_ @ self.svm_.class_coef_
        unit = _spread(moves[known]) / max(_spread(X[known] - X[known].mean(axis=0)), 1e-300)
        if isinstance(self.sigma2, str):
            self.sigma2_ = self._chosen(X, y, known, unit, scales)
        else:
            self.sigma2_ = float(self.sigma2)
        self.relative_shift_ = self.sigma2_ * unit
        with np.errstate(over="ignore", invalid="ignore"):
            moved = (X + self.sigma2_ * moves).astype(X.dtype, copy=False)
            length = _spread(moved)
            bound = 1e-3 * np.sqrt(float(np.finfo(X.dtype).max))  # squares are going to be summed
            too_far = not length < bound and _spread(X) < bound
        if too_far:
            raise ValueError(
                f"sigma2: expected a scale with which moved rows have finite squares in {X.dtype}, "
                f"got {show(self.sigma2_)}"
            )
        return moved

    def _chosen(
        self, X: Any, y: Any, known: Any, unit: float, scales: NDArray[np.float64]
    ) -> float:
        """Return the scale that rows which had no part in the moves prefer."""
        if unit == 0.0:
            self.cv_scores_ = np.zeros(len(scales))
            self._tabulate(scales, self.cv_scores_[:, None], 0)
            return 0.0
        labelled = np.flatnonzero(known)
        splits = list(self._folds(y[known]).split(X[known], y[known]))
        scores = np.full((len(scales), len(splits)), np.nan)
        errors: list[Exception] = []
        for fold, (train, test) in enumerate(splits):
            held = np.ones(len(y), dtype=bool)
            held[labelled[test]] = False
            moves = self._moves_of_fold(X, y, labelled[train])[held]
            for s, scale in enumerate(scales):
                moved = (X[held] + scale * moves).astype(X.dtype, copy=False)
                try:
                    scores[s, fold] = self._score(moved, X, y, labelled[train], labelled[test])
                except (ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
                    errors.append(error)
        self.cv_scores_ = scores.mean(axis=1)
        if np.isnan(self.cv_scores_).all():
            raise errors[0]
        chosen = _surest(scales, scores)
        self._tabulate(scales, scores, chosen)
        return float(scales[chosen] / unit)

    def _tabulate(self, scales: Any, scores: NDArray[np.float64], chosen: int) -> None:
        self.cv_results_ = cv_results([{"scale": scale} for scale in scales.tolist()], scores)
        self.best_index_ = int(chosen)
        self.best_score_ = float(self.cv_results_["mean_test_score"][chosen])

    def _moves_of_fold(self, X: Any, y: Any, train: NDArray[np.intp]) -> NDArray[np.float64]:
        """Moves (n, d) by an SVM of some rows, of the size of these about their mean."""
        moves = np.zeros(X.shape)
        if len(np.unique(y[train])) < 2:
            return moves
        svm = clone(self.svm_)
        svm.set_params(tol=max(svm.tol, ROUGHLY))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            svm.fit(X[train], y[train])
        moves[train] = svm.dual_coef_ @ svm.class_coef_
        size = _spread(moves[train])
        if size > 0:
            moves *= _spread(X[train] - X[train].mean(axis=0)) / size
        return moves

    def _score(self, moved: Any, X: Any, y: Any, train: Any, test: Any) -> float:
        """Accuracy on rows `test`, of features learnt from the moved rows of the others."""
        extractor = self._extracted(moved)
        classifier = clone(self.svm_ if self.classifier is None else self.classifier)
        if self.classifier is None:
            classifier.set_params(tol=max(classifier.tol, ROUGHLY))
        with warnings.catch_warnings():
            # Scales are compared: a fit that is nearly done will do.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = classifier.fit(extractor.transform(X[train]), y[train])
        return float(model.score(extractor.transform(X[test]), y[test]))

    def _folds(self, y: NDArray[Any]) -> Any:
        folds = self.cv
        if isinstance(folds, Integral):
            folds = min(int(folds), int(np.unique(y, return_counts=True)[1].min()))
            if folds < 2:
                raise ValueError("y: expected two rows of every class for sigma2='cv', got one")
        return checked_splitter(5 if folds is None else folds, y, len(y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags


def _surest(scales: NDArray[np.float64], scores: NDArray[np.float64]) -> int:
    """The scale of the best mean score, of equals the smallest; 0 if nothing is surely better.

    Surely: by more than twice the standard error of the gain over the folds.
    """
    best = int(np.nanargmax(scores.mean(axis=1)))
    gains = scores[best] - scores[0]
    if scales[0] > 0 or not np.isfinite(gains).all():
        return best
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return best if gains.mean() > 2 * error else 0


def _check_scales(scales: Any) -> NDArray[np.float64]:
    """Scales in rising order."""
    try:
        checked = np.asarray(scales, dtype=np.float64)
    except (TypeError, ValueError):
        checked = np.empty(0)
    if checked.ndim != 1 or checked.size == 0 or not (np.isfinite(checked) & (checked >= 0)).all():
        raise ValueError(f"scales: expected finite numbers >= 0, got {show(scales)}")
    return np.unique(checked)


def _labelled(y: NDArray[Any], unlabeled: int | None) -> NDArray[np.bool_]:
    if unlabeled is None or y.dtype.kind not in "iuf":
        return np.ones(len(y), dtype=bool)
    return np.asarray(y != unlabeled)


def _spread(rows: NDArray[Any]) -> float:
    """Root of the mean squared length of rows."""
    return float(np.sqrt(np.mean(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))))

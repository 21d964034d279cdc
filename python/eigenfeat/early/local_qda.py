"""Local QDA: quadratic discriminants from the nearest samples of each class."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import Codes, Floats, Rows, Targets
from eigenfeat._base.validation import MOST
from eigenfeat.early.series import blocks
from eigenfeat.moments.columns import mean_variance
from eigenfeat.neighbours.local_means import local_discriminants, local_gaussians, local_neighbours
from eigenfeat.samples.blocks import RowBlocks
from eigenfeat.samples.estimator import BaseEstimator, prepare, unchanged_on_error, validate_data
from eigenfeat.samples.out_of_core import FromLogits, over_blocks

__all__ = ["LocalQDA"]

_Array = NDArray[np.float64]


class LocalQDA(FromLogits, ClassifierMixin, BaseEstimator):
    r"""Quadratic discriminants from the nearest training samples of each class.

    Use it where the boundary is curved and each class has hundreds of samples. Tune `n_neighbors`,
    which cross-validation chooses by default. User guide: :doc:`/guide/early`.

    For a sample x, the mean :math:`\mu_g` and diagonal variances :math:`s_g^2` of class g are
    computed from the `n_neighbors` training samples of class g that are nearest to x. With
    `variance_floor` added to the variances, the discriminants are

    .. math::

        f_g(x) = \log p_g - \tfrac12 \sum_i (x_i - \mu_{gi})^2 / s_{gi}^2
                 - \tfrac12 \sum_i \log s_{gi}^2

    (Parrish 2012, sections 2.1.2 and 5.6.1, up to the factor 2).

    Parameters
    ----------
    n_neighbors : int or "cv", default="cv"
        Neighbours in each class; smaller classes use all samples. "cv" chooses the number among
        1, 2, 4, ..., 128 with the fewest errors in cross-validation, the smallest in a tie.
    variance_floor : float > 0, default=1e-4
        Added to the variances, as a fraction of the mean variance of the training samples' columns;
        constant columns do not count. The thesis adds it to variances of standardised columns.
    n_folds : int >= 2, default=5
        Folds of the cross-validation, stratified by class.
    n_threads : int or None, default=None
        Threads for distances; None uses all OpenMP threads. Results do not depend on it.

    Attributes
    ----------
    classes_ : (G,) array
        Labels, sorted.
    n_neighbors_ : int
        The number of neighbours that is used.
    cv_errors_ : dict of int to float
        With "cv", the error rate for each number of neighbours.
    priors_ : (G,) array
        Frequencies of the classes in the training samples.
    n_features_in_ : int
        Number of columns, d.

    See Also
    --------
    eigenfeat.QuadraticDiscriminant : One Gaussian for each class.

    References
    ----------
    N. Parrish, "Supervised Dimensionality Reduction for Different Learning Architectures", PhD
    thesis, University of Washington, 2012. E. K. Garcia et al., "Completely lazy learning",
    IEEE TKDE 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from eigenfeat.early import LocalQDA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LocalQDA().fit(X, y)
    >>> model.n_neighbors_, model.score(X, y) > 0.95
    (8, True)
    """

    CANDIDATES: ClassVar[tuple[int, ...]] = (1, 2, 4, 8, 16, 32, 64, 128)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, MOST, closed="both"), StrOptions({"cv"})],
        "variance_floor": [Interval(Real, 0, None, closed="neither")],
        "n_folds": [Interval(Integral, 2, MOST, closed="both")],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_neighbors: int | str = "cv",
        *,
        variance_floor: float = 1e-4,
        n_folds: int = 5,
        n_threads: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.variance_floor = variance_floor
        self.n_folds = n_folds
        self.n_threads = n_threads

    def fit(self, X: ArrayLike | RowBlocks, y: Targets = None) -> LocalQDA:
        """Keep the training samples, and choose the number of neighbours.

        Parameters
        ----------
        X : (n, d) array-like or RowBlocks
            Finite samples. Rows of files are read into memory.
        y : (n,) array-like
            Labels; None with blocks, which contain labels.

        Returns
        -------
        LocalQDA
            The estimator itself.
        """
        self._validate_params()
        with unchanged_on_error(self):
            samples = prepare(self, X, y, in_memory=True, dense=True)
            rows = samples.together().X.astype(np.float64, copy=False)
            self.classes_, codes = samples.classes, samples.codes
            self.priors_ = np.bincount(codes) / len(codes)
            floor = float(self.variance_floor) * mean_variance(rows)
            self._floor = max(floor, float(np.finfo(np.float64).tiny))
            self._rows, self._codes = rows, codes
            self.__dict__.pop("cv_errors_", None)
            if self.n_neighbors == "cv":
                self.cv_errors_ = self._cross_validated_errors(rows, codes)
                self.n_neighbors_ = min(self.cv_errors_, key=lambda m: (self.cv_errors_[m], m))
            else:
                self.n_neighbors_ = int(self.n_neighbors)
        return self

    @over_blocks
    def decision_function(self, X: Rows | RowBlocks) -> Floats:
        """Return the discriminants.

        Parameters
        ----------
        X : (n, d) array-like or RowBlocks
            Finite samples. For blocks the result is an iterator over blocks.

        Returns
        -------
        (n, G) array, or (n,) with two classes
            :math:`f_g`; with two classes, the second minus the first.
        """
        rows = self._checked(X)
        scores = np.empty((len(rows), len(self.classes_)))
        for part in blocks(len(rows), self._numbers_per_row()):
            scores[part] = self._scores(rows[part], [self.n_neighbors_], self._rows, self._codes)[0]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def local_gaussians(self, points: ArrayLike) -> tuple[_Array, _Array]:
        """Return means and variances of the neighbours in each class.

        Parameters
        ----------
        points : (n, d) array-like
            Finite samples, such as the means of completed samples.

        Returns
        -------
        means : (n, G, d) array
            Local means.
        variances : (n, G, d) array
            Local variances, with the floor.
        """
        rows = self._checked(points)
        shape = (len(rows), len(self.classes_), rows.shape[1])
        means, variances = np.empty(shape), np.empty(shape)
        for part in blocks(len(rows), self._numbers_per_row()):
            neighbours = self._neighbours(rows[part], self.n_neighbors_, self._rows, self._codes)
            found = local_gaussians(
                self._rows,
                neighbours,
                ridge=self._floor,
                queries=rows[part],
                n_threads=self.n_threads,
            )
            means[part], variances[part] = found.means, found.variances
        return means, variances

    def offsets(self, variances: _Array) -> _Array:
        """Return the part of the discriminants that does not depend on x, (n, G).

        Parameters
        ----------
        variances : (n, G, d) array
            From `local_gaussians`.

        Returns
        -------
        (n, G) array
        """
        check_is_fitted(self)
        return np.asarray(np.log(self.priors_) - 0.5 * np.log(variances).sum(axis=2))

    def _neighbours(
        self, points: _Array, count: int, rows: _Array, codes: Codes
    ) -> NDArray[np.int64]:
        return local_neighbours(
            rows, codes, len(self.classes_), count, queries=points, n_threads=self.n_threads
        )

    def _scores(self, points: _Array, counts: list[int], rows: _Array, codes: Codes) -> _Array:
        """Discriminants (c, n, G) for c ascending numbers of neighbours, from one search."""
        neighbours = self._neighbours(points, counts[-1], rows, codes)
        scores = local_discriminants(
            rows, neighbours, counts, ridge=self._floor, queries=points, n_threads=self.n_threads
        )
        return np.asarray(scores + np.log(self.priors_))

    def _checked(self, X: Any) -> _Array:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, order="C", reset=False))

    def _numbers_per_row(self) -> int:
        return len(self.classes_) * (self.n_neighbors_ + 3 * self.n_features_in_)

    def _cross_validated_errors(self, X: _Array, codes: Codes) -> dict[int, float]:
        """Error rate of each number of neighbours."""
        largest = int(np.bincount(codes).max())
        counts = [m for m in self.CANDIDATES if m <= largest]
        folds = np.empty(len(codes), dtype=np.intp)
        for g in range(len(self.classes_)):
            members = np.flatnonzero(codes == g)
            folds[members] = np.arange(len(members)) % self.n_folds
        wrong = np.zeros(len(counts))
        for fold in range(min(self.n_folds, len(codes))):
            test = np.flatnonzero(folds == fold)
            train = np.flatnonzero(folds != fold)
            if not len(test) or not len(train):
                continue
            X_train, codes_train = X[train], codes[train]
            numbers = len(self.classes_) * (counts[-1] + len(counts))
            for part in blocks(len(test), numbers):
                rows = test[part]
                scores = self._scores(X[rows], counts, X_train, codes_train)
                wrong += (scores.argmax(axis=2) != codes[rows]).sum(axis=1)
        return {m: float(w) / len(codes) for m, w in zip(counts, wrong, strict=True)}

"""Discriminants from the nearest rows of each class, such as the nearest neighbour."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.saved import fits
from eigenfeat._base.types import Labels
from eigenfeat._base.validation import MOST
from eigenfeat.incomplete._classifiers.local_qda import LocalQDA
from eigenfeat.incomplete._series.classifier import RowClassifier

__all__ = ["ClassNearest"]

_Array = NDArray[np.float64]


class ClassNearest(RowClassifier):
    r"""Predict the class whose `n_neighbors` nearest rows are nearest on average.

    Use it with `ReliableClassifier` for nearest neighbours. Tune `n_neighbors`. User guide:
    :doc:`/guide/early`.

    Use it with `ReliableClassifier` for nearest neighbours. Tune `n_neighbors`. User guide:
    :doc:`/guide/early`.

    .. math:: f_g(x) = -\frac{1}{2 k} \sum_{i \in N_g(x)} |x - x_i|^2,

    where N_g(x) are the k rows of class g that are nearest to x. With one neighbour this is the
    nearest neighbour classifier, (5.7) of Parrish (2012). In `ReliableClassifier` sets use the
    neighbours of the completed row, one discriminant for each class. This is the simpler method of
    section 5.3, which the thesis calls not strictly conservative, as the complete row may have
    other neighbours. The conservative method is ``KNeighborsClassifier(1)``, where every row is a
    class of its own; ``rule="ideal"``, the default, tests the label of the complete row itself.

    Parameters
    ----------
    n_neighbors : int, default=1
        k; classes with fewer rows use all of them.
    n_threads : int or None, default=None
        Number of threads; None uses all OpenMP threads. Results do not depend on it.

    Attributes
    ----------
    classes_ : (G,) array
        Labels, sorted.
    n_features_in_ : int
        Number of columns, d.

    Raises
    ------
    ValueError
        If rows, labels or parameters are invalid.

    See Also
    --------
    LocalQDA : With variances.
    sklearn.neighbors.KNeighborsClassifier : Votes of the nearest samples of all classes.

    Examples
    --------
    >>> from eigenfeat.incomplete import ClassNearest
    >>> ClassNearest().fit([[0.0], [1.0], [4.0]], ["a", "a", "b"]).predict([[1.9], [3.0]])
    array(['a', 'b'], dtype='<U1')
    """

    _saved: ClassVar[dict[str, str]] = {"classes_": "labels k", "_near": "of LocalQDA"}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, MOST, closed="both")],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(self, n_neighbors: int = 1, *, n_threads: int | None = None) -> None:
        self.n_neighbors = n_neighbors
        self.n_threads = n_threads

    def _learn(self, X: _Array, y: Labels, codes: NDArray[np.intp]) -> None:
        self._near = LocalQDA(int(self.n_neighbors), n_threads=self.n_threads).fit(X, y)

    def _labels(self, rows: _Array) -> Labels:
        means, offsets = self.local_means(rows)
        scores = offsets - 0.5 * ((rows[:, None] - means) ** 2).sum(axis=2)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def local_means(self, points: _Array) -> tuple[_Array, _Array]:
        """Return means (m, G, d) of the nearest rows of each class, and offsets (m, G) of ``f``.

        Parameters
        ----------
        points : (m, d) array

        Returns
        -------
        means, offsets
            ``f_g(x) = offset_g - |x - mean_g|^2 / 2`` at each point.
        """
        check_is_fitted(self)
        means, variances = self._near.local_gaussians(points)
        return means, -0.5 * variances.sum(axis=2)

    def _check_loaded(self) -> None:
        fits(np.array_equal(self._near.classes_, self.classes_), "ClassNearest._near")
        fits(self._near.n_features_in_ == self.n_features_in_, "ClassNearest._near")

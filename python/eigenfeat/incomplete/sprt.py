"""Wald's sequential probability ratio test between two classes."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval

from eigenfeat._base.saved import fits
from eigenfeat._base.types import Labels
from eigenfeat.incomplete.decisions import EarlyLabels
from eigenfeat.incomplete.series_classifier import SeriesClassifier
from eigenfeat.moments.class_moments import is_rounding

__all__ = ["SPRT"]

_Array = NDArray[np.float64]

FLOOR = 1e-9  # of variances, as a share of a column's


class SPRT(SeriesClassifier):
    r"""The sequential probability ratio test of two classes whose samples are independent.

    Use it for two classes whose values are independent over time. Set `error`. User guide:
    :doc:`/guide/early_costs`.

    .. math:: S_k = S_{k-1} + \log p(x_k | y_1) - \log p(x_k | y_2),

    which is (5.21) of Parrish (2012) with equal priors. A series is decided as the first class as
    soon as S is at least ``log((1 - error[1]) / error[0])``, as the second as soon as it is at most
    ``log(error[1] / (1 - error[0]))``, and by its sign after the last sample. Each sample is
    Gaussian, with a mean and a variance of its time and class.

    The right choice for independent, identically distributed samples of two known densities: no
    test with the same error rates takes fewer samples on average (Wald and Wolfowitz 1948).

    Parameters
    ----------
    error : float or (float, float) in (0, 0.5), default=0.05
        Allowed error rates: of series of the second class labelled as the first, and of the first
        labelled as the second. Wald's inequalities bound them by ``error[0] / (1 - error[1])`` and
        ``error[1] / (1 - error[0])`` where samples are independent, the two densities are the true
        ones, and the series does not end before the test does. Real series satisfy none of these
        conditions.

    Attributes
    ----------
    classes_ : (2,) array
        Labels, sorted.
    means_, variances_ : (2, d) arrays
        Means and variances by class and time.
    n_features_in_ : int
        Number of samples of a series, d.

    Raises
    ------
    ValueError
        If rows or labels are invalid, or there are not two classes.

    See Also
    --------
    ReliableClassifier : Dependent values, several classes.

    References
    ----------
    A. Wald, "Sequential analysis", Wiley, 1947. N. Parrish, "Supervised Dimensionality Reduction
    for Different Learning Architectures", PhD thesis, University of Washington, 2012, (5.21).

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.incomplete import SPRT
    >>> random = np.random.default_rng(0)
    >>> y = np.repeat(["low", "high"], 50)
    >>> X = random.standard_normal((100, 20)) + np.where(y == "high", 1.0, -1.0)[:, None]
    >>> bool(SPRT().fit(X, y).predict_early(X).time.mean() < 5)
    True
    """

    _saved: ClassVar[dict[str, str]] = {
        "classes_": "labels k",
        "means_": "numbers k d",
        "variances_": "numbers k d",
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "error": [Interval(Real, 0, 0.5, closed="neither"), "array-like"],
    }

    def __init__(self, error: float | tuple[float, float] = 0.05) -> None:
        self.error = error

    def _learn(self, X: _Array, y: Labels, codes: NDArray[np.intp]) -> None:
        self._bounds()
        if (count := len(self.classes_)) != 2:
            # scikit-learn's words, which its checks look for
            many = "Only binary classification is supported. " if count > 2 else ""
            raise ValueError(f"{many}y: expected two classes, got {count} class(es)")
        parts = [X[codes == g] for g in (0, 1)]
        self.means_ = np.stack([part.mean(axis=0) for part in parts])
        half_range = X.max(axis=0) / 2 - X.min(axis=0) / 2
        still = is_rounding(half_range, np.abs(X).max(initial=0.0), len(X))
        floor = np.maximum(FLOOR * X.var(axis=0), np.finfo(float).tiny)
        # About their own means, with all rows where a class has one alone.
        own = [part.var(axis=0) if len(part) > 1 else X.var(axis=0) for part in parts]
        self.variances_ = np.maximum(np.stack(own), floor)
        self.means_[:, still], self.variances_[:, still] = X[:, still].mean(axis=0), 1.0

    def decision_function(self, X: ArrayLike) -> _Array:
        """Return S after the last sample, positive for the second class as in scikit-learn.

        Parameters
        ----------
        X : (m, d) array-like
            Finite rows.

        Returns
        -------
        (m,) array
        """
        return -self._sums(self._checked(X))[:, -1]

    def _labels(self, rows: _Array) -> Labels:
        return self.classes_[(self._sums(rows)[:, -1] < 0).astype(int)]

    def predict_early(self, X: ArrayLike) -> EarlyLabels:
        """Decide each series as soon as S passes a threshold.

        Parameters
        ----------
        X : (m, d) array-like, or list of series
            Complete series; at each time only the samples up to it are used. A shorter one is
            decided at its own end.

        Returns
        -------
        EarlyLabels
            Labels and times.
        """
        rows, ends = self._series(X)
        sums = self._sums(rows)
        low, high = self._bounds()
        passed = (sums >= high) | (sums <= low)
        first = np.where(passed.any(axis=1), passed.argmax(axis=1), sums.shape[1] - 1)
        first = np.where(first < ends, first, sums.shape[1] - 1)  # else by all of a series
        at = sums[np.arange(len(sums)), first]
        return EarlyLabels(self.classes_[(at < 0).astype(int)], np.minimum(first + 1, ends))

    def _bounds(self) -> tuple[float, float]:
        """The thresholds of S."""
        error = np.asarray(self.error, dtype=float)
        if error.shape not in ((), (2,)) or not np.all((error > 0) & (error < 0.5)):
            raise ValueError(f"error: expected one or two numbers in (0, 0.5), got {self.error!r}")
        first, second = np.broadcast_to(error, (2,))
        return float(np.log(second / (1 - first))), float(np.log((1 - second) / first))

    def _sums(self, rows: _Array) -> _Array:
        # Log-likelihood ratios of samples, with no more than a float holds.
        apart = (rows[:, None, :] - self.means_) / np.sqrt(self.variances_)
        with np.errstate(over="ignore"):
            squares = np.minimum(apart**2, 1e300 / rows.shape[1])
        steps = 0.5 * (squares[:, 1] - squares[:, 0])
        steps += 0.5 * (np.log(self.variances_[1]) - np.log(self.variances_[0]))
        return np.asarray(np.cumsum(steps, axis=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _check_loaded(self) -> None:
        fits(len(self.classes_) == 2 and np.all(self.variances_ > 0), "SPRT.variances_")

r"""Target statistics: the mean target of each category, shrunk towards the mean of all samples.

With weight W_l and mean t_l of the samples of category l, and the mean t of all, its statistic is

.. math:: s_l = \frac{W_l t_l + m t}{W_l + m}, \qquad m = \sigma^2 / \tau^2,

where :math:`\sigma^2` is the variance of targets within categories and :math:`\tau^2` the variance
of the categories' means, by analysis of variance (empirical Bayes; Micci-Barreca, "A preprocessing
scheme for high-cardinality categorical attributes", 2001). The targets of classes are their
indicators, so that the statistics are frequencies.

The statistic of a training sample comes from the samples of the other folds, as in scikit-learn's
`TargetEncoder`, so that features do not contain the sample's own label. t and m come from all
samples: means of folds would reveal the labels of a fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Targets", "target_statistics"]

_MAX_TARGETS = 10  # statistics per column
_FOLDS = 5
_MIN_SHRINKAGE, _MAX_SHRINKAGE = 1.0, 1e9  # bounds of m, a number of samples

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets whose means encode categories.

    Attributes
    ----------
    values : (n, m) array
        Targets of the samples, or indicators of their classes.
    names : list of str
        Names of the columns of `values`.
    weight : (n,) array
        Weights of mean 1.
    folds : (n,) array of int
        Fold of each sample, stratified by the targets.
    """

    values: _Array
    names: list[str]
    weight: _Array
    folds: _Codes

    @classmethod
    def of(cls, y: Any, weight: _Array | None, *, continuous: bool) -> Targets:
        """Targets of checked labels (n,), or with `continuous` of numbers (n,) or (n, q).

        There is one column for two classes, and one column per class for three to ten classes. Of
        more classes, or more outputs, the ten with the largest variance have columns.
        """
        n = len(y)
        w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
        w = w * (n / w.sum())
        if continuous:
            values = np.asarray(y, dtype=np.float64).reshape(n, -1)
            names = (
                ["mean"] if values.shape[1] == 1 else [f"mean_{j}" for j in range(values.shape[1])]
            )
            order: NDArray[Any] = values[:, 0]
        else:
            labels, order = np.unique(y, return_inverse=True)
            values = (order[:, None] == np.arange(len(labels))).astype(np.float64)
            names = [str(label) for label in labels.tolist()]
            if len(labels) == 2:
                values, names = values[:, 1:], names[1:]
        centred = values - w @ values / n
        variance = w @ centred**2
        largest = np.sort(np.argsort(-variance, kind="stable")[:_MAX_TARGETS])
        names = [names[j] for j in largest.tolist()]
        return cls(values[:, largest], names, w, _stratified_folds(order))


def _stratified_folds(y: NDArray[Any]) -> _Codes:
    """Random folds of samples, stratified by the values of y."""
    n = len(y)
    drawn = np.random.RandomState(0).permutation(n)
    folds = np.empty(n, dtype=np.intp)
    folds[drawn[np.argsort(y[drawn], kind="stable")]] = np.arange(n) % _FOLDS
    return folds


def target_statistics(codes: _Codes, n_codes: int, targets: Targets) -> tuple[_Array, _Array]:
    """Statistics (n_codes, m) of all samples by code, and out of fold (n, m) of each sample."""
    sums = np.zeros((_FOLDS, n_codes, targets.values.shape[1]))
    weights = np.zeros((_FOLDS, n_codes))
    np.add.at(sums, (targets.folds, codes), targets.weight[:, None] * targets.values)
    np.add.at(weights, (targets.folds, codes), targets.weight)
    total, weight = sums.sum(axis=0), weights.sum(axis=0)
    mean = total.sum(axis=0) / weight.sum()
    m = _shrinkage(codes, total, weight, targets)
    statistics = (total + m * mean) / (weight[:, None] + m)
    left = weight - weights
    out_of_fold = (total - sums + m * mean) / (np.maximum(left, 0.0)[:, :, None] + m)
    return statistics, out_of_fold[targets.folds, codes]


def _shrinkage(codes: _Codes, total: _Array, weight: _Array, targets: Targets) -> _Array:
    """The shrinkage m of each target, a number of samples."""
    used = weight > 0
    means = total[used] / weight[used][:, None]
    place = np.cumsum(used) - 1
    n, n_used = len(codes), len(means)
    within = targets.weight @ (targets.values - means[place[codes]]) ** 2
    within = within / max(n - n_used, 1)
    overall = total.sum(axis=0) / n
    between = weight[used] @ (means - overall) ** 2 - (n_used - 1) * within
    between = between / max(n - (weight**2).sum() / n, 1.0)
    ratio = np.full(len(within), _MAX_SHRINKAGE)
    np.divide(within, between, out=ratio, where=between > within / _MAX_SHRINKAGE)
    return np.clip(ratio, _MIN_SHRINKAGE, _MAX_SHRINKAGE)

r"""Prediction intervals from out-of-fold residuals.

With the residuals :math:`r_i` of out-of-fold predictions, and a local spread :math:`s_{-i}(x_i)`
that a forest without sample i predicts for :math:`|r_i|`, the scores :math:`|r_i| / s_{-i}(x_i)`
have about the same distribution at all samples. The interval of a new sample is the prediction plus
and minus its spread times a quantile of the scores (normalised conformal prediction; Papadopoulos
et al. 2002, Lei et al. 2018).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor

from eigenfeat._base.subsamples import draw_subsample
from eigenfeat.tables.representations import Table
from eigenfeat.tables.trees import Trees, fit_forest
from eigenfeat.tables.views import Samples

__all__ = ["ResidualSpread"]

_Array = NDArray[np.float64]

_MAX_SAMPLES = 5_000  # most samples whose residuals are used
_TREES, _MIN_LEAF = 100, 10  # number of trees, and least number of samples in a leaf
_MAX_TRIED = 100  # columns that a split tries
_LEAST_SPREAD = 0.1  # relative to the mean absolute residual, added to each spread


@dataclass(frozen=True, eq=False)
class ResidualSpread:
    """Local spread of the residuals of q outputs, and scores of m samples.

    Attributes
    ----------
    trees : Trees
        Predict absolute residuals from the columns and the predictions.
    least : (q,) array
        Added to the predicted absolute residuals.
    scores : (m, q) array
        Absolute residuals divided by their spread, ascending.
    total : (m, q) array
        Sums of the weights, of mean 1, up to each score.
    """

    trees: Trees
    least: _Array
    scores: _Array
    total: _Array

    @classmethod
    def fit(cls, samples: Samples, out_of_fold: _Array) -> ResidualSpread:
        """Fit to the samples whose out-of-fold predictions (n, q) are not NaN."""
        known = np.flatnonzero(~np.isnan(out_of_fold).any(axis=1))
        known = known[draw_subsample(len(known), _MAX_SAMPLES, seed=samples.seed)]
        predicted, share = out_of_fold[known], samples.share[known]
        columns = _columns(samples.table.subset(known), predicted)
        residuals = np.abs(samples.targets[known] - predicted)
        forest = ExtraTreesRegressor(
            n_estimators=_TREES,
            min_samples_leaf=_MIN_LEAF,
            max_features=min(columns.shape[1], _MAX_TRIED),
            bootstrap=True,
            random_state=samples.seed,
        )
        rows = np.arange(len(known))
        trees, spread = fit_forest(forest, columns, residuals, None, rows, residuals.shape[1])
        least = np.maximum(_LEAST_SPREAD * residuals.mean(axis=0), np.finfo(np.float64).tiny)
        scores = residuals / (spread + least)
        order = np.argsort(scores, axis=0, kind="stable")
        total = np.cumsum((share / share.mean())[order], axis=0)
        return cls(trees, least, np.take_along_axis(scores, order, axis=0), total)

    def half_widths(self, table: Table, predicted: _Array, coverage: float) -> _Array:
        """Half widths (n, q) of the intervals of predicted outputs (n, q)."""
        spread = self.trees.predict(_columns(table, predicted)) + self.least
        return spread * self._quantiles(coverage)

    def _quantiles(self, coverage: float) -> _Array:
        """Quantiles (q,) of the scores and an infinite score of a new sample of weight 1."""
        # 1e-12 is more than the rounding errors of the sums.
        aim = coverage * (self.total[-1] + 1.0) * (1.0 - 1e-12)
        place = [np.searchsorted(total, one) for total, one in zip(self.total.T, aim, strict=True)]
        scores = np.vstack([self.scores, np.full(self.scores.shape[1], np.inf)])
        return scores[place, np.arange(len(place))]


def _columns(table: Table, predicted: _Array) -> NDArray[np.float32]:
    return np.hstack([table.columns, predicted]).astype(np.float32)

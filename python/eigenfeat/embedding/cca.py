"""Canonical correlation analysis of huge matrices, by few passes over the samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import FLOATS
from eigenfeat.embedding._cross_covariance import PairedSamples, Sketching, affine, leading_pairs
from eigenfeat.samples.estimator import (
    check_array,
    unchanged_on_error,
)

if TYPE_CHECKING:
    from eigenfeat._base.types import Floats, RandomState, Rows, Targets, Weights
    from eigenfeat.samples.blocks import RowBlocks

__all__ = ["RandomizedCCA"]


class RandomizedCCA(Sketching):
    r"""Canonical correlation analysis of dense or sparse matrices, in a few passes.

    Use it where scikit-learn's ``CCA`` needs too much time or memory. Tune `ridge`. User guide:
    :doc:`/guide/many_classes`.

    For centred X and Y with n rows, directions a and b maximise :math:`a^T X^T Y b / n` subject to
    :math:`a^T (X^T X / n + r_x I) a = b^T (Y^T Y / n + r_y I) b = 1`, and are orthogonal in these
    metrics to earlier directions.

    Parameters
    ----------
    n_components : int, default=2
        Number of pairs of directions, at most the ranks of X and Y.
    ridge : float >= 0, default=1e-3
        :math:`r_x` and :math:`r_y` as multiples of the mean variance of a column of X and of Y.
    n_oversamples : int, default=100
        Columns of the random sketches in addition to `n_components`. If X and Y have no more
        columns than a sketch, the result is exact.
    n_passes : int from 2 to 100, default=3
        Passes over the samples, half a power iteration each.
    random_state : int, RandomState instance or None, default=0
        Seed of the sketches.
    n_threads : int or None, default=None
        Number of threads, all by default. Results do not depend on it.

    Attributes
    ----------
    components_ : (m, d) array
        Directions a, one per row.
    target_components_ : (m, c) array
        Directions b, one per row.
    mean_ : (d,) array
        Means of X, which are subtracted before the projection.
    target_mean_ : (c,) array
        Means of Y, which are subtracted before the projection.
    canonical_correlations_ : (m,) array
        Correlations of the projections, with ``ridge=0``, descending.

    See Also
    --------
    LabelEmbedding : Only X is whitened; predicts labels.

    References
    ----------
    P. Mineiro and N. Karampatziakis, "A randomized algorithm for CCA", NIPS workshop on learning
    semantics, 2014 (arXiv:1411.3409).

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.embedding import RandomizedCCA
    >>> common, noise = np.random.default_rng(0).standard_normal((2, 1000, 3))
    >>> model = RandomizedCCA(1, ridge=0).fit(common, common[:, :1] + noise)
    >>> np.round(model.canonical_correlations_, 1)
    array([0.9])
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        ridge: float = 1e-3,
        n_oversamples: int = 100,
        n_passes: int = 3,
        random_state: RandomState = 0,
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.ridge = ridge
        self.n_oversamples = n_oversamples
        self.n_passes = n_passes
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(
        self, X: Rows | RowBlocks, y: Targets = None, sample_weight: Weights = None
    ) -> RandomizedCCA:
        """Compute the directions.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples.
        y : (n, c) or (n,) array-like or sparse matrix
            The matrix Y; None with blocks, which contain its rows.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

        Returns
        -------
        RandomizedCCA
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._validate_params()
            samples = PairedSamples.of(self, X, y, sample_weight)
            pairs = leading_pairs(samples, samples.n_targets, self, whiten_targets=True)
            self.mean_, self.target_mean_ = pairs.mean, pairs.target_mean
            self.components_ = np.ascontiguousarray(pairs.left.T)
            self.target_components_ = np.ascontiguousarray(pairs.right.T)
            self.canonical_correlations_ = pairs.values
        return self

    def transform_targets(self, y: Rows) -> Floats:
        """Project targets: ``(Y - target_mean_) @ target_components_.T``.

        Parameters
        ----------
        y : (n, c) or (n,) array-like or sparse matrix
            Finite targets.

        Returns
        -------
        (n, m) array, float32 if `y` is float32, else float64
        """
        check_is_fitted(self)
        rows = check_array(y, accept_sparse="csr", dtype=FLOATS, ensure_2d=False, input_name="y")
        rows = rows.reshape(-1, 1) if rows.ndim == 1 else rows
        if rows.shape[1] != len(self.target_mean_):
            raise ValueError(f"y: expected {len(self.target_mean_)} columns, got {rows.shape[1]}")
        offset = -self.target_components_ @ self.target_mean_
        return affine(rows, self.target_components_, offset, self.n_threads)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags

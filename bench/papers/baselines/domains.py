"""Baselines of the thesis for two domains (Parrish 2012, sections 4.5.2 and 4.5.3).

Each domain is standardised separately, the target by its labelled samples; columns that are
constant in either domain are left out. `fit` and `transform` are as in `TransferLDG`.
"""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA

from eigenfeat.ldg import RegularizedFisher
from eigenfeat.ldg.metric_learning import (
    features_of,
    learnt_metric,
    pair_count,
    pairs_of,
    ranked_by_information,
)


class TwoDomainReducer(BaseEstimator):
    """Projects standardised samples onto `directions_` (d', ell) of the columns that vary."""

    def fit(self, X, y, sample_domain):
        """Standardise both domains, and find the directions of the pooled samples."""
        X, y, of_source = np.asarray(X, dtype=np.float64), np.asarray(y), sample_domain > 0
        domains = X[of_source], X[~of_source]
        self.means_ = [X.mean(axis=0) for X in domains]
        self.scales_ = [X.std(axis=0) for X in domains]
        self.varying_ = np.min([np.ptp(X, axis=0) for X in domains], axis=0) > 0
        if not self.varying_.any():
            raise ValueError("X: expected a column that varies in every domain, got none")
        source, target = (self._standardised(X, number) for number, X in enumerate(domains))
        self.directions_ = self._directions(source, y[of_source], target, y[~of_source])
        return self

    def transform(self, X, sample_domain=None):
        """Standardise samples as those of one domain, by default of the target; project them."""
        of_target = sample_domain is None or np.max(sample_domain) < 0
        return self._standardised(np.asarray(X), int(of_target)) @ self.directions_

    def _standardised(self, X, domain):
        varying = self.varying_
        return (X[:, varying] - self.means_[domain][varying]) / self.scales_[domain][varying]

    def _directions(self, source, ys, target, yt):
        raise NotImplementedError


class PooledPCA(TwoDomainReducer):
    """PCA of the pooled samples."""

    def __init__(self, n_components=None):
        self.n_components = n_components

    def _directions(self, source, ys, target, yt):
        pca = PCA(self.n_components, svd_solver="full").fit(np.vstack([source, target]))
        return pca.components_.T


class PooledFisher(TwoDomainReducer):
    """Fisher's discriminant of the pooled samples."""

    def __init__(self, n_components=None, ridge=1e-3):
        self.n_components = n_components
        self.ridge = ridge

    def _directions(self, source, ys, target, yt):
        fisher = RegularizedFisher(self.n_components, ridge=self.ridge)
        return fisher.fit(np.vstack([source, target]), np.concatenate([ys, yt])).components_.T


class TransferITML(TwoDomainReducer):
    """ITML with pairs of a source sample and a target sample (Saenko et al. 2010).

    `n_components` features, best first by mutual information of the pooled samples with their
    labels; None keeps all, which is the whole metric `metric_` (d', d').
    """

    def __init__(
        self, n_components=None, n_pairs=None, slack=1.0, tol=1e-3, max_iter=1000, random_state=0
    ):
        self.n_components = n_components
        self.n_pairs = n_pairs
        self.slack = slack
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _directions(self, source, ys, target, yt):
        X, y = np.vstack([source, target]), np.concatenate([ys, yt])
        classes, codes = np.unique(y, return_inverse=True)
        d = X.shape[1]
        # With fewer samples than columns, the metric is the identity outside their span.
        basis = np.eye(d)
        if len(X) < d:
            _, sizes, axes = np.linalg.svd(X, full_matrices=False)
            basis = axes[sizes > 1e-12 * sizes[0]].T
        count = pair_count(self.n_pairs, len(classes), d)
        random = np.random.RandomState(self.random_state)
        first = random.randint(len(source), size=count)
        second = len(source) + random.randint(len(target), size=count)
        inside = X @ basis
        gaps, same, bounds = pairs_of(inside, codes, first, second)
        metric, self.n_iter_, _ = learnt_metric(
            gaps, same, bounds, slack=self.slack, tol=self.tol, max_iter=self.max_iter
        )
        self.metric_ = np.eye(d) + basis @ (metric - np.eye(len(metric))) @ basis.T
        directions = features_of(metric)
        m = d if self.n_components is None else self.n_components
        if m < d:
            kept = min(m, len(metric))
            selected = ranked_by_information(inside @ directions, codes, kept)
            directions = directions[:, selected]
        directions = basis @ directions
        if directions.shape[1] < m:  # append features that are equal for all samples
            outside = np.linalg.qr(basis, mode="complete")[0][:, basis.shape[1] : m]
            directions = np.hstack([directions, outside])
        return directions

"""ITML against the optimality conditions of its programme, its ranking, and NCA."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import mutual_info_classif
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.utils.estimator_checks import parametrize_with_checks

from eigenfeat.ldg import ITML, NCA
from eigenfeat.ldg.metric_learning import _information, learnt_metric, ranked_by_information


@parametrize_with_checks([ITML(max_iter=20, tol=0.5), NCA(max_iter=5)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("slack", [0.1, 1.0, 10.0])
def test_metric_is_optimal(rng, slack):
    """Stationarity, feasibility and complementarity of (2.11) with slack."""
    gaps = rng.standard_normal((24, 4)) * [1.0, 2.0, 0.5, 1.0]
    same = rng.random(24) < 0.5
    bounds = (1.0, 8.0)
    metric, sweeps, weights = learnt_metric(
        gaps, same, bounds, slack=slack, tol=1e-9, max_iter=4_000
    )
    assert sweeps <= 4_000
    assert np.all(weights >= 0)
    sign = np.where(same, 1.0, -1.0)
    inverse = np.eye(4) + (gaps.T * (sign * weights)) @ gaps
    assert_allclose(np.linalg.inv(metric), inverse, rtol=1e-6, atol=1e-8)
    held = 1 / (1 / np.where(same, *bounds) - sign * weights / slack)
    excess = sign * (np.einsum("ij,jk,ik->i", gaps, metric, gaps) - held) / held
    assert np.all(excess <= 1e-4)
    assert np.all(np.abs(excess[weights > 1e-4]) <= 1e-4)


def test_features_are_the_metrics_and_do_not_depend_on_units():
    X, y = load_iris(return_X_y=True)
    model = ITML().fit(X, y)
    reduced = model.transform(X)
    gap = X[3] - X[70]
    assert_allclose(((reduced[3] - reduced[70]) ** 2).sum(), gap @ model.metric_ @ gap, rtol=1e-9)
    scaled = ITML().fit(1e-120 * X, y)
    assert_allclose(scaled.metric_, model.metric_, rtol=1e-6)
    assert_allclose(scaled.bounds_, 1e-240 * model.bounds_, rtol=1e-9)
    kept = ITML(2).fit(X, y).components_
    for row in kept:
        assert np.abs(model.components_ - row).max(axis=1).min() < 1e-9


def test_ranking_is_relevance_less_redundancy(rng):
    codes = rng.integers(0, 3, 300)
    signal = (codes == 1) + 0.0
    other = (codes == 2) + 0.0
    features = np.column_stack([rng.standard_normal(300), signal, signal, other])
    ranked = ranked_by_information(features, codes, 4)
    assert ranked[0] in (1, 3)
    assert set(ranked[:2]) == {1, 3}  # the copy tells nothing new
    bits = features[:, :1] > features[:, 0].mean()
    expected = mutual_info_classif(bits, codes, discrete_features=True)
    assert_allclose(_information(bits.astype(int), codes), expected, atol=1e-12)


def test_nca_is_scikit_learns(rng):
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = NCA(2).fit(X, y)
    order = np.argsort(y, kind="stable")
    peer = NeighborhoodComponentsAnalysis(2, max_iter=50, random_state=0).fit(X[order], y[order])
    score = KNeighborsClassifier(3).fit(model.transform(X), y).score(model.transform(X), y)
    its = KNeighborsClassifier(3).fit(peer.transform(X), y).score(peer.transform(X), y)
    assert score >= its - 0.02
    assert_array_equal(NCA(2).fit(X, y).components_, model.components_)


def test_bad_parameters_and_warnings():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="quantiles: expected two numbers"):
        ITML(quantiles=(0.9, 0.1)).fit(X, y)
    with pytest.raises(ValueError, match="n_components: expected at most 4"):
        ITML(5).fit(X, y)
    with pytest.raises(ValueError, match="n_components: expected at most 4"):
        NCA(5).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="ITML: 1 sweeps were not enough"):
        ITML(max_iter=1, tol=1e-9).fit(X, y)

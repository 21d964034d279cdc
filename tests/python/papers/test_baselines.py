"""The papers' baselines against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from relatives_reference import leading, ridged, same_directions, scatters
from sklearn.decomposition import PCA

from bench.papers.baselines.autoencoder import Autoencoder, _objective, _parts
from bench.papers.baselines.domains import PooledFisher, PooledPCA, TransferITML
from bench.papers.baselines.pairs import random_pairs, stratified_pairs


@pytest.mark.parametrize("k", [2, 7, 10])
def test_drawn_pairs(k):
    random = np.random.RandomState(3)
    for n_pairs in ((k + 1) // 2, k, k * (k - 1)):
        pairs, even = (draw(k, n_pairs, random) for draw in (random_pairs, stratified_pairs))
        assert len(pairs) == n_pairs <= len(even) < n_pairs + k
        for one in (pairs, even):
            assert len(np.unique(one, axis=0)) == len(one)
            assert (one[:, 0] != one[:, 1]).all()
            assert set(one.ravel()) == set(range(k))
        for side in even.T:
            assert len(set(np.bincount(side, minlength=k))) == 1


@pytest.fixture(params=[5, 90], ids=["tall", "wide"])
def domains(request, rng):
    """Three classes in two domains of other units, and the standardised samples of both."""
    d = request.param
    ys, yt = np.repeat(range(3), 20), np.repeat(range(3), 5)
    means = rng.standard_normal((3, d))
    Xs, Xt = means[ys] + rng.standard_normal((60, d)), means[yt] + rng.standard_normal((15, d))
    Xs, Xt = 3 * Xs + 10, 0.1 * Xt - 4
    Z = [(X - X.mean(axis=0)) / X.std(axis=0) for X in (Xs, Xt)]
    constant = np.column_stack([Xs, np.ones(60)]), np.column_stack([Xt, rng.random(15)])
    return (constant[0], ys, constant[1], yt), Z


def test_pooled_samples(domains):
    given, Z = domains
    pooled, y = np.vstack(Z), np.concatenate([given[1], given[3]])
    pca = PooledPCA(3).fit_transfer(*given)
    same_directions(pca.directions_.T, PCA(3, svd_solver="full").fit(pooled).components_)
    fisher = PooledFisher(2, ridge=0.1).fit_transfer(*given)
    between, within = scatters(pooled, y)
    same_directions(fisher.directions_.T, leading(between, ridged(within, 0.1), 2)[1])
    for model in (pca, fisher):
        assert_allclose(model.transform(given[2]), Z[1] @ model.directions_, atol=1e-9)
        of_source = model.transform(given[0], sample_domain=np.ones(60))
        assert_allclose(of_source, Z[0] @ model.directions_, atol=1e-9)


def test_metric_across_domains(domains):
    given, Z = domains
    whole = TransferITML().fit_transfer(*given)
    assert_allclose(whole.directions_ @ whole.directions_.T, whole.metric_, atol=1e-7)
    ends = [Z[0].repeat(15, axis=0), np.tile(Z[1], (60, 1))]
    same = given[1].repeat(15) == np.tile(given[3], 60)
    gaps = ends[0] - ends[1]
    learnt, plain = ((gaps @ M * gaps).sum(axis=1) for M in (whole.metric_, np.eye(len(gaps[0]))))
    # The metric brings classes together across the domains.
    assert learnt[same].mean() / learnt[~same].mean() < plain[same].mean() / plain[~same].mean()
    few = TransferITML(2).fit_transfer(*given)
    assert few.transform(given[2]).shape == (15, 2)


def test_autoencoder(rng):
    X = rng.uniform(0.1, 0.9, (30, 6))
    flat = rng.standard_normal(3 * 6 + 3 + 6)
    value, gradient = _objective(X, *_parts(flat, 3, 6), 0.01)
    steps = 1e-6 * np.eye(len(flat))
    up, down = (
        [_objective(X, *_parts(flat + sign * e, 3, 6), 0.01)[0] for e in steps] for sign in (1, -1)
    )
    assert_allclose(gradient, (np.array(up) - down) / 2e-6, atol=1e-7 * abs(value) + 1e-7)
    line = np.outer(rng.standard_normal(50), rng.standard_normal(6))
    model = Autoencoder(1, alpha=0, max_iter=500).fit(line)
    error = model.inverse_transform(model.transform(line)) - line
    assert np.linalg.norm(error) < 0.35 * np.linalg.norm(line - line.mean(axis=0))

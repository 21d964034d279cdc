"""Completion of rows: against direct conditioning, pattern by pattern and prefix by prefix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.covariance import LedoitWolf, ledoit_wolf_shrinkage
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from eigenfeat.early import GaussianCompletion, MixtureCompletion
from eigenfeat.ldg import LDG


def direct(mean, covariance, row):
    """Conditional mean and covariance of a row, NaN where unknown."""
    known = ~np.isnan(row)
    gain = np.linalg.solve(covariance[np.ix_(known, known)], covariance[known]).T
    m = mean + gain @ (row[known] - mean[known])
    return m, covariance - gain @ covariance[known]


def with_missing(rng, X, share=0.4):
    X = X.copy()
    X[rng.random(X.shape) < share] = np.nan
    X[0], X[1] = np.nan, np.where(np.isnan(X[1]), 0.0, X[1])
    X[2, 3:] = np.nan
    return X


@pytest.fixture
def walks(rng):
    """Random walks, 60 rows of 9, of three classes."""
    y = np.arange(60) % 3
    return rng.standard_normal((60, 9)).cumsum(axis=1) + 2 * y[:, None], y


def test_any_pattern_equals_direct_conditioning(rng, walks):
    X, _ = walks
    model = GaussianCompletion().fit(X)
    rows = with_missing(rng, X)
    found = model.condition(rows)
    for i, row in enumerate(rows):
        m, R = direct(model.mean_, model.covariance_, row)
        assert_allclose(found.mean[i], m, rtol=0, atol=1e-10)
        assert_allclose(found.covariance[i], R, rtol=0, atol=1e-10)
        assert_allclose(found.variance[i], np.diag(R), rtol=0, atol=1e-10)
        assert found.missing[i] == np.isnan(row).sum()
    filled = model.transform(rows)
    assert_array_equal(filled[~np.isnan(rows)], rows[~np.isnan(rows)])
    assert_allclose(filled, found.mean, rtol=0, atol=1e-10)
    known = ~np.isnan(rows[2])
    assert np.all(found.variance[2, known] == 0)
    assert np.all(found.variance[2, ~known] > 0)


def test_prefixes_equal_patterns(walks):
    X, y = walks
    n_known = np.array([0, 1, 3, 8, 9])
    averaged = MixtureCompletion(overall=0.3)
    for model in (
        GaussianCompletion().fit(X),
        *(m.fit(X, y) for m in (MixtureCompletion(), averaged)),
    ):
        gaussians = model.mixture_.prefix_models(n_threads=1)
        found = model.mixture_.after(X, n_known, gaussians)
        rows = np.where(np.arange(9) < n_known[:, None], X[:, None], np.nan).reshape(-1, 9)
        expected = model.condition(rows)
        for name in ("weights", "mean", "variance", "covariance"):
            assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-11)
        assert_array_equal(found.missing, np.isnan(rows).sum(axis=1))


def test_mixtures_by_the_formulas_of_the_appendix(rng, walks):
    X, y = walks
    model = MixtureCompletion(shrinkage=0.1).fit(X, y)
    rows = with_missing(rng, X[:15])
    found = model.condition(rows)
    for i, row in enumerate(rows):
        known = ~np.isnan(row)
        log_weights, means, covariances = [], [], []
        for g in range(3):
            mean, covariance = model.means_[g], model.covariances_[g]
            density = 0.0
            if known.any():
                density = multivariate_normal.logpdf(
                    row[known], mean[known], covariance[np.ix_(known, known)]
                )
            log_weights.append(np.log(model.class_weights_[g]) + density)
            m, R = direct(mean, covariance, row)
            means.append(m)
            covariances.append(R)
        p = np.exp(np.array(log_weights) - max(log_weights))
        p /= p.sum()
        m = sum(p[g] * means[g] for g in range(3))
        R = sum(p[g] * (covariances[g] + np.outer(means[g], means[g])) for g in range(3))
        R -= sum(p[q] * p[h] * np.outer(means[q], means[h]) for q in range(3) for h in range(3))
        assert_allclose(found.weights[i], p, rtol=0, atol=1e-10)
        assert_allclose(found.mean[i], m, rtol=0, atol=1e-9)
        assert_allclose(found.covariance[i], R, rtol=0, atol=1e-8)


def test_gaussian_of_all_samples_keeps_its_weight(rng, walks):
    X, y = walks
    rows = with_missing(rng, X[:15])
    one = GaussianCompletion().fit(X).condition(rows)
    classes = MixtureCompletion().fit(X, y).condition(rows)
    found = MixtureCompletion(overall=0.3).fit(X, y).condition(rows)
    weights = np.column_stack([np.full(15, 0.3), 0.7 * classes.weights])
    assert_allclose(found.weights, weights, rtol=0, atol=1e-12)
    assert_allclose(found.mean, 0.3 * one.mean + 0.7 * classes.mean, rtol=0, atol=1e-12)


def test_shrinkage_is_ledoit_and_wolfs(walks):
    X, y = walks
    model = GaussianCompletion(ridge=0).fit(X)
    assert_allclose(model.shrinkage_, ledoit_wolf_shrinkage(X), rtol=1e-10)
    assert_allclose(model.covariance_, LedoitWolf().fit(X).covariance_, rtol=1e-10)
    mixture = MixtureCompletion(ridge=0).fit(X, y)
    for g in range(3):
        assert_allclose(mixture.shrinkages_[g], ledoit_wolf_shrinkage(X[y == g]), rtol=1e-10)
    plain = GaussianCompletion(shrinkage=0, ridge=0).fit(X)
    assert_allclose(plain.covariance_, np.cov(X.T, bias=True), rtol=1e-10)


def test_the_ridge_is_relative_to_the_mean_variance_of_all_samples(rng):
    y = np.repeat([0, 1], [80, 20])
    X = rng.standard_normal((100, 4)) * np.where(y == 0, 1.0, 10.0)[:, None]
    plain = MixtureCompletion(shrinkage=0, ridge=0).fit(X, y).covariances_
    traces = np.trace(plain, axis1=1, axis2=2)
    added = MixtureCompletion(shrinkage=0, ridge=0.5).fit(X, y).covariances_ - plain
    wanted = 0.5 * (0.8 * traces[0] + 0.2 * traces[1]) / 4 * np.eye(4)
    assert_allclose(added, np.stack([wanted, wanted]), atol=1e-12)


@pytest.mark.parametrize("kind", ["whitened", "pipeline", "ldg"])
def test_features_map_the_distribution(rng, walks, kind):
    X, y = walks
    features = {
        "whitened": PCA(3, whiten=True),
        "pipeline": make_pipeline(StandardScaler(), PCA(4)),
        "ldg": LDG(2, gamma=0.6, n_neighbors=4),  # standardises the columns
    }[kind].fit(X, y)
    B = features.transform(np.eye(9)) - features.transform(np.zeros((1, 9)))
    rows = with_missing(rng, X)
    for model in (GaussianCompletion().fit(X), MixtureCompletion().fit(X, y)):
        whole = model.condition(rows)
        found = model.condition(rows, features=features)
        assert_allclose(found.mean, features.transform(whole.mean), rtol=0, atol=1e-7)
        expected = np.einsum("ij,nik,kl->njl", B, whole.covariance, B)
        assert_allclose(found.covariance, expected, rtol=0, atol=1e-7)


def test_features_that_are_not_affine_are_refused(walks):
    X, _ = walks
    model = GaussianCompletion().fit(X)
    with pytest.raises(ValueError, match="features: expected an affine map"):
        model.condition(X, features=PolynomialFeatures(2).fit(X))
    with pytest.raises(ValueError, match="features: expected a fitted transformer"):
        model.condition(X, features=np.eye(9))
    with pytest.raises(ValueError, match="features: expected a map of 9 columns"):
        model.condition(X, features=PCA(2).fit(X[:, :5]))


def test_few_rows_many_columns_duplicates_and_units(rng):
    X = rng.standard_normal((5, 30))
    X = np.vstack([X, X])
    y = np.array([0] * 9 + [1])  # one row of a class
    for unit in (1e-120, 1.0, 1e120):
        for model in (GaussianCompletion(), MixtureCompletion(ridge=1e-2)):
            model.fit(unit * X, y)
            rows = unit * with_missing(rng, X)
            assert np.isfinite(model.transform(rows)).all()
            assert np.all(model.condition(rows).variance >= 0)
    single = GaussianCompletion().fit(X.astype(np.float32))
    assert_allclose(single.mean_, X.mean(axis=0), atol=1e-6)


def test_infinite_entries_are_refused(walks):
    model = GaussianCompletion().fit(walks[0])
    with pytest.raises(ValueError, match="got inf in row"):
        model.transform(np.where(walks[0] > 1, np.inf, walks[0]))

"""Weights of rows in completions: a weight is so many rows."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from eigenfeat.incomplete import GaussianCompletion, MixtureCompletion, ReliableClassifier

MODELS = {
    "gaussian": GaussianCompletion(),
    "gaussian, shrunk": GaussianCompletion(shrinkage=0.3, ridge=1e-3),
    "mixture": MixtureCompletion(),
}


@pytest.fixture
def rows(rng):
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 6)).cumsum(axis=1) + 2.0 * y[:, None]
    return X, y, rng.integers(0, 4, 90).astype(float)


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_repetitions(rng, rows, name):
    X, y, weight = rows
    X = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    times = weight.astype(int)
    model = sklearn.clone(MODELS[name]).fit(X, y, weight)
    expected = sklearn.clone(MODELS[name]).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_allclose(model.mixture_.weights, expected.mixture_.weights, rtol=1e-14)
    assert_allclose(model.mixture_.means, expected.mixture_.means, rtol=1e-10, atol=1e-12)
    size = np.abs(expected.mixture_.covariances).max()
    assert_allclose(
        model.mixture_.covariances, expected.mixture_.covariances, rtol=0, atol=1e-10 * size
    )
    assert model.n_iter_ == expected.n_iter_
    assert_allclose(model.log_likelihoods_, expected.log_likelihoods_, rtol=1e-10)


def test_they_are_routed_and_serve_weighted_decisions(rows):
    X, y, weight = rows
    with sklearn.config_context(enable_metadata_routing=True):
        one = GaussianCompletion().set_fit_request(sample_weight=True)
        pipe = make_pipeline(one, GaussianNB().set_fit_request(sample_weight=True))
        pipe.fit(X, y, sample_weight=weight)
    completion = GaussianCompletion().fit(X, sample_weight=weight)
    assert_array_equal(pipe[0].covariance_, completion.covariance_)
    model = ReliableClassifier(
        FrozenEstimator(GaussianNB().fit(X, y, weight)),
        FrozenEstimator(completion),
        correct=False,
    ).fit(X, y)
    times = weight.astype(int)
    repeated = ReliableClassifier(GaussianNB(), GaussianCompletion(), correct=False)
    repeated.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    holes = X.copy()
    holes[:, 3:] = np.nan
    assert_allclose(model.reliabilities(holes), repeated.reliabilities(holes), atol=1e-6)


def test_a_classifier_of_incomplete_rows_gives_them_to_its_parts(rows):
    X, y, weight = rows
    times = weight.astype(int)
    weighted = ReliableClassifier(GaussianNB(), correct=False).fit(X, y, weight)
    repeated = ReliableClassifier(GaussianNB(), correct=False)
    repeated.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    holes = X.copy()
    holes[:, 3:] = np.nan
    found, expected = weighted.reliabilities(holes), repeated.reliabilities(holes)
    assert_allclose(found, expected, atol=1e-6)
    plain = ReliableClassifier(GaussianNB(), correct=False).fit(X, y).reliabilities(holes)
    assert np.abs(found - plain).max() > 0.01
    assert_array_equal(weighted.classifier_.theta_, GaussianNB().fit(X, y, weight).theta_)


def test_the_correction_counts_held_out_rows_once(rows):
    """Scaled weights are the same models, and so the same counts, also in folds' models."""
    X, y, weight = rows
    weight = weight + 1
    for options in ({}, {"held_out": 0.3}, {"rule": "quadratic"}):
        given = {"reliability": 0.8, **options}
        model = ReliableClassifier(GaussianNB(), shared(X), **given).fit(X, y, 4 * weight)
        other = ReliableClassifier(GaussianNB(), shared(X), **given).fit(X, y, weight)
        assert model.held_out_agreement_ == other.held_out_agreement_
        assert model.held_out_agreement_bound_ == other.held_out_agreement_bound_
        assert_array_equal(model.decide(X).labels, other.decide(X).labels)
    ones = ReliableClassifier(GaussianNB()).fit(X, y, np.ones(len(y)))
    none = ReliableClassifier(GaussianNB()).fit(X, y)
    assert ones.held_out_agreement_ == none.held_out_agreement_


def shared(X):
    return FrozenEstimator(GaussianCompletion().fit(X))


def test_parts_that_take_no_weights_are_named(rows):
    X, y, weight = rows
    for given, name in (
        ({"classifier": LinearDiscriminantAnalysis()}, "classifier LinearDiscriminantAnalysis"),
        ({"classifier": GaussianNB(), "features": PCA(2)}, "features PCA"),
    ):
        model = ReliableClassifier(**given, correct=False).fit(X, y)
        before = dict(vars(model))
        with pytest.raises(ValueError, match=f"sample_weight: expected None, as the {name} takes"):
            model.fit(X, y, weight)
        assert vars(model) == before
    frozen = FrozenEstimator(LinearDiscriminantAnalysis().fit(X, y))
    assert ReliableClassifier(frozen, correct=False).fit(X, y, weight).rule_ == "pairwise"
    with pytest.raises(ValueError, match=r"[Ww]eight"):
        ReliableClassifier(GaussianNB()).fit(X, y, np.zeros(len(y)))

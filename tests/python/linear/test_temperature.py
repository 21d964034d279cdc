"""Temperatures: the least log loss of held-out logits, for all kinds of rows; same labels."""

import numpy as np
import pytest
from flat_gem import gem_classifier
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.datasets import load_digits

from eigenfeat import GEM, MultinomialLogit
from eigenfeat.expansion.features import as_layer, project_rows
from eigenfeat.linear.logistic import draw_folds
from eigenfeat.linear.logit_problem import log_loss, temperature

SMALL = {"n_directions": 2, "pairs": "hypercube", "scale": "none"}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:700].astype(np.float32), y[:700]


def smoothed_loss(beta, z, codes, weight):
    """The log loss on Platt's targets, from the definition."""
    n, k = z.shape
    targets = np.full((n, k), 1 / (n + 2) / (k - 1))
    targets[np.arange(n), codes] = (n + 1) / (n + 2)
    return -weight @ (targets * log_softmax(beta * z, axis=1)).sum(axis=1)


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])
def test_the_temperature_has_the_least_loss(rng, k, size):
    codes = rng.integers(0, k, 300)
    weight = rng.random(300) + 0.1
    z = size * (np.eye(k)[codes] + rng.standard_normal((300, k)))
    how = {"args": (z, codes, weight), "method": "bounded", "options": {"xatol": 1e-10}}
    best = minimize_scalar(smoothed_loss, bounds=(0.02, 50.0), **how).x
    parts = [(z[:100], codes[:100], weight[:100]), (z[100:], codes[100:], weight[100:])]
    assert temperature(parts) == pytest.approx(1 / best, rel=1e-4)


def test_extremes_stay_away_from_0_and_infinity():
    codes = np.arange(40) % 2
    right = np.eye(2)[codes]
    assert 0.02 <= temperature([(right, codes, None)]) < 1
    assert temperature([(-right, codes, None)]) == pytest.approx(50, rel=1e-4)
    assert temperature([(np.zeros((40, 2)), codes, None)]) == 1
    assert temperature([]) == 1


def test_classes_of_one_sample_have_no_fold():
    assert MultinomialLogit(temperature="auto").fit(np.eye(3), np.arange(3)).temperature_ == 1


@pytest.mark.parametrize("two", [False, True])
def test_the_temperature_divides_weights_and_keeps_labels(digits, two):
    X, y = digits
    y = y % 2 if two else y
    plain = gem_classifier(**SMALL, temperature=1.0).fit(X, y)
    model = gem_classifier(**SMALL).fit(X, y)
    assert model.temperature_ == model.logit_.temperature_ != 1
    assert plain.temperature_ == 1
    assert_array_equal(model.predict(X), plain.predict(X))
    assert_allclose(model.logit_.coef_ * model.temperature_, plain.logit_.coef_, rtol=1e-14)
    given = gem_classifier(**SMALL, temperature=model.temperature_).fit(X, y)
    assert_array_equal(given.predict_proba(X), model.predict_proba(X))


# ---- more than 5,000 samples: one fold -----------------------------------------------------------


@pytest.fixture(scope="module")
def many():
    """5,200 projected rows of five overlapping classes, 36 features."""
    random = np.random.default_rng(7)
    y = random.integers(0, 5, 5_200)
    X = random.standard_normal((5_200, 12)) + 0.8 * random.standard_normal((5, 12))[y]
    gem = GEM(n_directions=1, pairs="hypercube", scale="none").fit(X[:500], y[:500])
    return as_layer(gem).features(project_rows(X, [as_layer(gem)], None)), y


@pytest.mark.parametrize("weighted", [False, True])
def test_the_temperature_is_that_of_an_exact_fit_of_the_fold(many, weighted, rng):
    X, y = many
    weight = 0.1 + rng.random(len(y)) if weighted else None
    model = MultinomialLogit(temperature="auto").fit(X, y, weight)
    train, test = draw_folds(y, 5, np.random.RandomState(0))[0]
    some = None if weight is None else weight[train]
    exact = MultinomialLogit(tol=1e-7, max_iter=1_000).fit(X.take(train), y[train], some)
    z = exact.decision_function(X.take(test))
    aim = temperature([(z, y[test], None if weight is None else weight[test])])
    assert model.temperature_ == pytest.approx(aim, rel=0.03)


def test_no_single_sample_decides_a_log_loss(rng):
    z = rng.standard_normal((1000, 3))
    codes = rng.integers(3, size=1000)
    plain = log_loss([(z, codes, None)], 1.0)
    z[0, codes[0]] = -1e4
    assert log_loss([(z, codes, None)], 1.0) <= plain + 30 / 1000

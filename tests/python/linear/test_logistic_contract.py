"""MultinomialLogit as an estimator: scikit-learn's checks, errors that change nothing, copies."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from logit_problems import problem
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from eigenfeat.expansion.features import ExpandedRows
from eigenfeat.linear.logistic import MultinomialLogit


@pytest.fixture
def rows():
    return problem("wine")


@pytest.fixture
def expanded(rows, rng):
    X, y = rows
    return ExpandedRows(X, rng.standard_normal((13, 6))), y


def state(model):
    return pickle.dumps(sorted(model.__dict__.items()))


def test_probabilities(rows):
    X, y = rows
    model = MultinomialLogit().fit(X, y)
    probability = model.predict_proba(X)
    assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(np.exp(model.predict_log_proba(X)), probability, rtol=1e-12)
    assert_array_equal(model.classes_[probability.argmax(axis=1)], model.predict(X))
    assert_allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_, rtol=1e-9)
    two = MultinomialLogit().fit(X, y == 1)
    scores = two.decision_function(X)
    assert scores.shape == (len(X),)
    assert_allclose(two.predict_proba(X)[:, 1], 1 / (1 + np.exp(-scores)), rtol=1e-9)
    assert_array_equal(two.predict(X), scores > 0)
    # Logits beyond exp's range.
    model.coef_ = 1e4 * model.coef_
    assert np.isfinite(model.predict_log_proba(X)).all()


def nan_at(X, value=np.nan):
    X = X.copy()
    X[3, 5] = value
    return X


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X.take(np.arange(5)), y), "y: expected 5 labels, one per sample"),
        (lambda X, y: (X, y[:, None]), "y: expected 178 labels"),
        (lambda X, y: (X, None), "y"),
        (lambda X, y: (X, 0 * y), "y: expected samples of at least two classes"),
        (lambda X, y: (ExpandedRows(nan_at(X.X), X.directions), y), "X: expected finite features"),
    ],
)
def test_errors_of_expanded_rows(expanded, change, message):
    X, y = expanded
    model = MultinomialLogit().fit(X, y)
    before = state(model)
    with pytest.raises(ValueError, match=message):
        model.fit(*change(X, y))
    assert state(model) == before
    with pytest.raises(ValueError, match="X: expected 36 features, got 12"):
        model.predict(ExpandedRows(X.X, X.directions, powers=(1,)))


@pytest.mark.parametrize("penalties", [[], [0.1, -1.0], [0.1, np.nan], [np.inf], ["a"]])
def test_penalties_out_of_range(rows, penalties):
    model = MultinomialLogit().fit(*rows)
    before = state(model)
    with pytest.raises(ValueError, match="penalties: expected"):
        model.fit_path(*rows, penalties)
    assert state(model) == before


def test_a_model_without_all_rows_is_warned_about():
    X, y = problem("digits")
    model = MultinomialLogit(penalty=0, l2=1.0, max_iter=3)
    with pytest.warns(ConvergenceWarning, match="3 iterations left the objective") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    assert model.stop_reason_ == "iterations"
    assert model.n_iter_.tolist() == [3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MultinomialLogit().fit(X, y)


def test_warm_start_needs_the_same_problem(rows):
    X, y = rows
    model = MultinomialLogit(warm_start=True).fit(X, y)
    before = state(model)
    with pytest.raises(ValueError, match="expected the 3 classes and 13 features"):
        model.fit(X[:, :5], y)
    with pytest.raises(ValueError, match="expected the 3 classes and 13 features"):
        model.fit(X, y == 0)
    assert state(model) == before

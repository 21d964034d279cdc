"""MultinomialLogit as an estimator: scikit-learn's checks, errors that change nothing, copies."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
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


@pytest.mark.parametrize(
    "names", [["a", "b", "c"], [b"a", b"b", b"c"], [-3, 0, 8], [0.0, 1.0, 2.0], [2**40, 5, 7]]
)
def test_labels_of_any_kind(rows, names):
    X, y = rows
    expected = MultinomialLogit().fit(X, y)
    order = np.argsort(names)
    labels = np.array(names)[order][y]
    if labels.dtype.kind == "S":
        with pytest.raises((TypeError, ValueError)):
            MultinomialLogit().fit(X, labels)
        return
    model = MultinomialLogit().fit(X, labels)
    assert_array_equal(model.coef_, expected.coef_)
    assert_array_equal(model.predict(X), model.classes_[expected.predict(X)])
    listed = MultinomialLogit().fit(X.tolist(), labels.tolist())
    assert_array_equal(listed.coef_, expected.coef_)


def test_threads_do_not_matter(rows, expanded):
    for X, y in (rows, expanded, problem("digits")):
        expected = MultinomialLogit(n_threads=1).fit(X, y)
        for threads in (2, 7, None):
            model = MultinomialLogit(n_threads=threads).fit(X, y)
            assert model.coef_.tobytes() == expected.coef_.tobytes()
            assert model.decision_function(X).tobytes() == expected.decision_function(X).tobytes()


def nan_at(X, value=np.nan):
    X = X.copy()
    X[3, 5] = value
    return X


def sparse_nan(X):
    return sp.csr_matrix(nan_at(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, w: (nan_at(X), y, w), "NaN"),
        (lambda X, y, w: (nan_at(X, np.inf), y, w), "infinity"),
        (lambda X, y, w: (sparse_nan(X), y, w), "NaN"),
        (lambda X, y, w: (X, y[:-1], w), "inconsistent numbers of samples"),
        (lambda X, y, w: (X[:, 0], y, w), "2D array"),
        (lambda X, y, w: (X, np.zeros_like(y), w), r"y: expected samples of at least two classes"),
        (lambda X, y, w: (X, y + 0.5, w), "label type"),
        (lambda X, y, w: (X, np.where(y > 1, np.nan, y), w), "y: expected a label"),
        (lambda X, y, w: (X, None, w), "target y is None"),
        (lambda X, y, w: (X, np.column_stack([y, y]), w), "1d array|label type"),
        (lambda X, y, w: (X, y, w[:-1]), "sample_weight"),
        (lambda X, y, w: (X, y, -w), "sample_weight"),
        (lambda X, y, w: (X, y, np.full_like(w, np.nan)), "sample_weight|weight"),
        (lambda X, y, w: (X, y, 0 * w), "at least one"),
        (lambda X, y, w: (X, y, w * (y == 0)), r"y: expected samples of at least two classes"),
        (
            lambda X, y, w: (X.astype(str).astype(object) + "a", y, w),
            "X: expected numbers, got text in",
        ),
        (lambda X, y, w: (np.empty((0, 13)), y[:0], w[:0]), "0 sample"),
        (lambda X, y, w: (X[:, :0], y, w), "0 feature"),
    ],
)
def test_errors_leave_the_estimator_as_it_was(rows, change, message):
    X, y = rows
    weight = np.ones(len(y))
    model = MultinomialLogit().fit(X[:, :7], np.array(["a", "b", "c"])[y])
    before = state(model)
    with pytest.raises(ValueError, match=message):
        model.fit(*change(X, y, weight))
    assert state(model) == before
    model.predict(X[:, :7])


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


def test_a_path_of_any_sequence(rows):
    X, y = rows
    listed = MultinomialLogit().fit_path(X, y, [0.2, 0.1])
    array = MultinomialLogit().fit_path(X, y, np.array([0.2, 0.1]))
    assert_array_equal(listed[1].coef_, array[1].coef_)
    model = MultinomialLogit(penalty=0.7)
    path = model.fit_path(X, y, (0.2, 0.1))
    assert path[-1] is model
    assert path[0].get_params() == model.set_params(penalty=0.2).get_params()


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


def test_early_stopping_needs_rows_of_every_class(rows):
    X, y = rows
    lonely = np.where(np.arange(len(y)) == 7, 9, y)
    with pytest.raises(ValueError, match="class"):
        MultinomialLogit(early_stopping=True).fit(X, lonely)


def test_it_says_how_it_goes(rows, capsys):
    MultinomialLogit(verbose=1).fit(*rows)
    MultinomialLogit(verbose=1, early_stopping=True).fit(*rows)
    err = capsys.readouterr().err
    assert "[MultinomialLogit] metric: 14 features" in err
    assert "iteration 1: objective" in err
    assert "held-out loss" in err
    MultinomialLogit().fit(*rows)
    assert capsys.readouterr().err == ""

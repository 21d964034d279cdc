"""No Gram matrix where the first step shows columns to be well conditioned, and one elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eigenfeat.linear import logit_problem
from eigenfeat.linear.logistic import MultinomialLogit
from eigenfeat.linear.logit_problem import LogitProblem, Trial, minimise

COLUMNS, CLASSES = 120, 3


@pytest.fixture
def matrices(monkeypatch):
    """How many Gram matrices are made."""
    made = []
    original = LogitProblem.metric

    def metric(self, *args, **options):
        made.append(self.shape)
        return original(self, *args, **options)

    monkeypatch.setattr(LogitProblem, "metric", metric)
    return made


def columns(rng, kind, n=1000):
    X = rng.standard_normal((n, COLUMNS))
    if kind == "neighbours":
        for j in range(1, COLUMNS):
            X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(0.19) * X[:, j]
    if kind == "positive":
        X = rng.random((n, COLUMNS))
    if kind == "few":
        X = rng.standard_normal((n, 20)) @ rng.standard_normal((20, COLUMNS)) / 4 + 0.3 * X
    if kind == "units":
        X *= 10.0 ** np.linspace(-5, 5, COLUMNS)
    if kind == "zeros":
        X[:, ::7] = 0.0
    return X


def labels(rng, X, kind="drawn"):
    spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    scores = (X - X.mean(axis=0)) / spread @ rng.standard_normal((COLUMNS, CLASSES)) / 10
    if kind == "random":
        return rng.integers(0, CLASSES, len(X))
    return np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


@pytest.mark.parametrize(
    ("options", "dtype"), [({"penalty": 0, "l2": 1.0}, np.float64), ({}, np.float32)]
)
@pytest.mark.parametrize(
    ("kind", "needed"),
    [
        ("independent", False),
        ("units", False),
        ("zeros", False),
        ("neighbours", True),
        ("positive", True),
        ("few", True),
    ],
)
def test_which_columns_have_a_gram_matrix(rng, matrices, kind, needed, options, dtype):
    X = columns(rng, kind).astype(dtype)
    y = labels(rng, X)
    model = MultinomialLogit(**options).fit(X, y)
    assert bool(matrices) == needed
    assert model.stop_reason_ == "converged"
    best = MultinomialLogit(**options, tol=1e-6, max_iter=1000).fit(X.astype(np.float64), y)
    assert model.objective_ - best.objective_ <= 5e-4 * best.objective_


def test_weights_and_random_labels_end_in_the_same_minimum(rng, matrices, monkeypatch):
    X = columns(rng, "independent")
    y, weight = labels(rng, X, "random"), rng.random(len(X)) + 0.5
    options = {"penalty": 0, "l2": 1.0, "tol": 1e-9, "max_iter": 1000}
    plain = MultinomialLogit(**options).fit(X, y, weight)
    assert not matrices
    monkeypatch.setattr(logit_problem, "_LEAST_PASSES", 1e9)
    other = MultinomialLogit(**options).fit(X, y, weight)
    assert len(matrices) == 1
    assert plain.objective_ == pytest.approx(other.objective_, rel=1e-8)
    assert_allclose(plain.coef_, other.coef_, atol=1e-3 * np.abs(other.coef_).max())


def test_a_long_search_takes_the_matrix_in_the_end(rng, matrices, monkeypatch):
    monkeypatch.setattr(logit_problem, "_STEPS", 0.5)
    X = columns(rng, "independent")
    y = labels(rng, X)
    model = MultinomialLogit(penalty=0, l2=1.0, tol=1e-9).fit(X, y)
    assert len(matrices) == 1
    assert model.stop_reason_ in {"converged", "precision"}
    monkeypatch.setattr(logit_problem, "_LEAST_PASSES", 1e9)
    other = MultinomialLogit(penalty=0, l2=1.0, tol=1e-9).fit(X, y)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-8)


@pytest.mark.parametrize("most", [0.0, 1e9])
@pytest.mark.parametrize("steps", [3, 1000])
def test_either_metric_ends_in_the_minimum(rng, most, steps):
    scale, best = np.geomspace(1.0, 50.0, 12)[:, None], rng.standard_normal((12, 2))

    def evaluate(W):
        gradient = scale * (W - best)
        return 1.0 + 0.5 * float(np.vdot(W - best, gradient)), gradient

    used = []

    def solve(gradient):
        used.append(1)
        return gradient / scale

    trial = Trial(lambda gradient: gradient / 50.0, most, steps)
    found = minimise(
        evaluate, solve, np.zeros((12, 2)), tolerance=1e-12, max_iterations=200, trial=trial
    )
    assert found.reason in {"converged", "precision"}
    assert bool(used) == (most == 0.0 or steps == 3)
    assert_allclose(found.point, best, atol=1e-5)

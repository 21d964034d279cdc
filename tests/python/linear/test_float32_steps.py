"""First steps in float32 of float64 rows: the fit and its certificate are those of float64."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from eigenfeat.linear import logit_problem
from eigenfeat.linear.logistic import MultinomialLogit
from eigenfeat.linear.logit_problem import minimise


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setattr(logit_problem, "_LEAST_COPIED", 1)


def rows(rng, *, scale=1.0, separable=False, offset=0.0):
    X = rng.standard_normal((300, 20)) * scale + offset * scale
    scores = (X - X.mean(axis=0)) @ rng.standard_normal((20, 4)) / np.max(scale)
    noise = 0.0 if separable else rng.gumbel(size=scores.shape)
    return X, np.argmax(scores + noise, axis=1)


PROBLEMS = {
    "normal": {},
    "separable": {"separable": True},
    "far": {"offset": 1e6},
    "near": {"offset": 8.0},
    "mixed units": {"scale": 10.0 ** np.linspace(-8, 8, 20)},
    "float32 would overflow": {"scale": 1e60},
    "float32 would underflow": {"scale": 1e-60},
}


@pytest.mark.parametrize(
    ("name", "tol"), [*((name, 1e-9) for name in PROBLEMS), ("normal", 1e-3), ("far", 1e-3)]
)
def test_the_gap_is_that_of_float64(always, rng, name, tol):
    X, y = rows(rng, **PROBLEMS[name])
    weight = rng.random(len(y)) + 0.1 if tol < 1e-3 else None
    best = MultinomialLogit(tol=1e-12, max_iter=3000).fit(X, y, weight)
    model = MultinomialLogit(tol=tol, max_iter=1000).fit(X, y, weight)
    assert model.stop_reason_ == "converged"
    assert model.objective_ - best.objective_ <= 5 * tol * best.objective_
    assert model.gap_ <= tol * model.objective_
    assert model.objective_history_[-1] == model.objective_


def test_steps_are_in_float32_where_it_pays(rng, monkeypatch):
    seen = []
    original = logit_problem.LogitProblem.terms

    def terms(self, W, energy_weight):
        seen.append(self.dtype)
        return original(self, W, energy_weight)

    monkeypatch.setattr(logit_problem.LogitProblem, "terms", terms)
    X, y = rows(rng)
    MultinomialLogit().fit(X, y)
    assert set(seen) == {np.dtype(np.float64)}  # too few to copy them
    monkeypatch.setattr(logit_problem, "_LEAST_COPIED", 1)
    seen.clear()
    with pytest.warns(ConvergenceWarning):
        model = MultinomialLogit(max_iter=2).fit(X, y)
    assert [seen[0], seen[-1]] == [np.float32, np.float64]
    monkeypatch.setattr(logit_problem, "_LEAST_COPIED", 1000 * X.size)
    with pytest.warns(ConvergenceWarning):
        exact = MultinomialLogit(max_iter=2).fit(X, y)
    assert model.objective_ == pytest.approx(exact.objective_, rel=1e-6)
    assert model.objective_ != exact.objective_


def test_a_rough_start_that_is_not_finite_is_left_out():
    def exact(W):
        return float((W**2).sum()), 2 * W

    found = minimise(
        exact,
        lambda G: G / 2,
        np.ones((3, 2)),
        tolerance=1e-9,
        max_iterations=9,
        float32=lambda W: (np.inf, W),
    )
    assert found.objective == pytest.approx(0.0, abs=1e-12)

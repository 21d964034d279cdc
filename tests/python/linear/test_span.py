"""Searches in the span of few samples against those over their features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eigenfeat._base.core import core
from eigenfeat.linear import logistic
from eigenfeat.linear.logistic import MultinomialLogit
from eigenfeat.linear.logit_problem import LogitProblem, Penalty, minimise
from eigenfeat.linear.span import Span, SpanMetric
from eigenfeat.samples.labelled import MemorySamples


def samples(n=90, p=260, k=4, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.1, 10.0, p) + rng.normal(size=p)
    X[:, 5], X[:, 7] = 3.0, 0.0  # constant
    return X.astype(dtype), np.arange(n) % k, rng.uniform(0.1, 3.0, n)


@pytest.mark.parametrize(
    ("dtype", "weighted", "common", "constant"),
    [
        (np.float64, True, True, True),
        (np.float64, False, False, True),
        (np.float64, True, False, False),
        (np.float32, True, True, True),
        (np.float32, False, True, False),
    ],
)
def test_minimum_is_that_over_the_features(dtype, weighted, common, constant):
    X, y, w = samples(dtype=dtype)
    problem = LogitProblem(MemorySamples.of(X, y, w if weighted else None, 2), constant=constant)
    penalty = Penalty(0.03, 0.5, 2.0 if common else 0.0, common)
    span = Span.of(problem, penalty, 1e-9)
    metric = SpanMetric.of(span, replace(penalty, energy=0.1))
    result = span.minimise(penalty, metric, None, tolerance=1e-10, max_iterations=400)
    (W,) = span.weights(problem, [result.point])
    objective, gradient = problem.objective_of(penalty)(W)
    eps = float(np.finfo(dtype).eps)
    assert result.objective == pytest.approx(objective, rel=200 * eps)
    factor = problem.metric(penalty, 0.0, None)
    expected = minimise(
        problem.objective_of(penalty),
        lambda g: factor.solve(g, 2),
        np.zeros(problem.shape),
        tolerance=1e-10,
        max_iterations=400,
        noise=float(eps),
    )
    assert objective == pytest.approx(expected.objective, rel=max(1e-9, 200 * eps))
    gap = 0.5 * np.einsum("ij,ij->", gradient, factor.solve(gradient, 2))
    assert gap < max(1e-9, 1e3 * eps**2 * len(X)) * objective + 10 * eps * objective
    assert not W[problem.flat].any()


@pytest.mark.parametrize("coarse", [True, False])
def test_logits_of_other_samples(coarse):
    X, y, _ = samples()
    problem = LogitProblem(MemorySamples.of(X, y, None, 2), constant=True)
    penalty = Penalty(0.1, 0.5, 0.0, True)
    whole = Span.of(problem, penalty, 1e-2 if coarse else 1e-9)
    train, held = np.flatnonzero(np.arange(len(y)) % 3), np.flatnonzero(np.arange(len(y)) % 3 == 0)
    span = whole.take(train)
    part = LogitProblem(MemorySamples.of(X[train], y[train], None, 2), constant=True)
    assert span.pull(penalty) * span.unit == pytest.approx(part.quadratic(penalty)[0], rel=1e-6)
    metric = SpanMetric.of(span, penalty)
    point = span.minimise(penalty, metric, None, tolerance=1e-6, max_iterations=200).point
    (W,) = replace(span, block=whole.block.take(train)).weights(part, [point])
    expected = X[held] @ W[:-1] + W[-1]
    z = span.logits(whole.kernel[np.ix_(held, train)], point)
    np.testing.assert_allclose(z, expected, atol=(1e-3 if coarse else 1e-9) * np.abs(z).max())


@pytest.mark.parametrize("penalty", [0.03, "auto"])
@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_fit_is_that_over_the_features(monkeypatch, penalty, tol):
    X, y, w = samples(dtype=np.float32)
    given = {"penalty": penalty, "tol": tol, "temperature": "auto", "ridge_scale": "common"}
    model = MultinomialLogit(**given).fit(X, y, w)
    monkeypatch.setattr(logistic.Span, "of", lambda *_: None)
    expected = MultinomialLogit(**given).fit(X, y, w)
    assert model.penalty_ == expected.penalty_
    assert model.objective_ == pytest.approx(expected.objective_, rel=2 * tol)
    assert model.temperature_ == pytest.approx(expected.temperature_, rel=0.05)
    assert model.stop_reason_ == "converged"


def test_bits_do_not_depend_on_threads():
    X, y, w = samples(n=600, p=1300)
    fits = [
        MultinomialLogit(temperature="auto", ridge_scale="common", tol=1e-3, n_threads=n)
        .fit(X, y, w)
        .coef_
        for n in (1, 2, 7)
    ]
    assert np.array_equal(fits[0], fits[1])
    assert np.array_equal(fits[0], fits[2])


def test_samples_that_repeat():
    X, y, _ = samples(n=40)
    twice = np.vstack([X, X])
    model = MultinomialLogit(tol=1e-8).fit(twice, np.r_[y, y])
    weighted = MultinomialLogit(tol=1e-8).fit(X, y, np.full(len(y), 2.0))
    scores = weighted.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-3 * np.abs(scores).max())


def test_ridge_of_a_kernel():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(70, 90))
    K, y, w = half @ half.T, rng.normal(size=(70, 3)), rng.uniform(0.1, 2.0, 70)
    ridges = np.array([0.5, 20.0])
    A = core.kernel_ridge(K, w, y, ridges, 2)
    for ridge, one in zip(ridges, A, strict=True):
        expected = np.linalg.solve(w[:, None] * K + ridge * np.eye(70), w[:, None] * y)
        np.testing.assert_allclose(one, expected, rtol=1e-9, atol=1e-11)
    assert np.isnan(core.kernel_ridge(-K, None, y, ridges, 2)).all()
    with pytest.raises(ValueError, match="targets"):
        core.kernel_ridge(K, w, y[1:], ridges, 1)

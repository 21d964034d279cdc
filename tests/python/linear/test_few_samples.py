"""The logit of fewer samples than features, and metrics of a subsample."""

import numpy as np
import pytest
import scipy.sparse as sp
from logit_problems import wide_problem

from eigenfeat.linear.logistic import MultinomialLogit
from eigenfeat.linear.logit_problem import (
    LogitProblem,
    Penalty,
    minimise,
    sample_problem,
)
from eigenfeat.samples import ArrayBlocks
from eigenfeat.samples.labelled import MemorySamples


def samples(n=90, p=260, k=4, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.1, 10.0, p) + rng.normal(size=p)
    X[:, 5], X[:, 7] = 3.0, 0.0  # constant
    return X.astype(dtype), np.arange(n) % k, rng.uniform(0.1, 3.0, n)


def search(problem, penalty, metric=None, tolerance=1e-10):
    """Minimum in a metric, by default that of all samples."""
    metric = metric or problem.metric(penalty)
    return minimise(
        problem.objective_of(penalty),
        lambda gradient: metric.solve(gradient, 1),
        np.zeros(problem.shape),
        tolerance=tolerance,
        max_iterations=3000,
        noise=float(np.finfo(problem.dtype).eps),
    )


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
def test_the_reduced_problem_has_the_minimum_over_the_features(dtype, weighted, common, constant):
    X, y, w = samples(dtype=dtype)
    rows = MemorySamples.of(X, y, w if weighted else None, 2)
    problem = LogitProblem(rows, constant=constant, common=common)
    penalty = Penalty(0.03, 0.5, 2.0 if common else 0.0)
    reduced = sample_problem(problem, penalty, 1e-9)
    found, expected = search(reduced, penalty), search(problem, penalty)
    W = reduced.feature_weights(found.point)
    rel = 200 * float(np.finfo(dtype).eps)
    assert problem.objective_of(penalty)(W)[0] == pytest.approx(found.objective, rel=rel)
    assert found.objective == pytest.approx(expected.objective, rel=max(1e-9, rel))
    assert not W[problem.flat].any()


@pytest.mark.parametrize("ridge_scale", ["columns", "common"])
@pytest.mark.parametrize("seed", range(3))
def test_auto_penalty_of_sparse_rows_and_blocks_is_that_of_arrays(ridge_scale, seed):
    X, y = wide_problem(seed)
    given = {"penalty": "auto", "temperature": "auto", "ridge_scale": ridge_scale}
    model = MultinomialLogit(**given).fit(X, y)
    for other in ((sp.csr_array(X), y), (ArrayBlocks(X, y, block_rows=31), None)):
        found = MultinomialLogit(**given).fit(*other)
        assert found.penalty_ == model.penalty_
        assert found.objective_ == pytest.approx(model.objective_, rel=1e-3)
        assert found.temperature_ == pytest.approx(model.temperature_, rel=1e-3)


def test_bits_do_not_depend_on_threads():
    X, y, w = samples(n=600, p=1300)
    given = {"penalty": "auto", "temperature": "auto", "ridge_scale": "common", "tol": 1e-3}
    fits = [MultinomialLogit(**given, n_threads=n).fit(X, y, w).coef_ for n in (1, 2, 7)]
    assert np.array_equal(fits[0], fits[1])
    assert np.array_equal(fits[0], fits[2])


def test_samples_that_repeat():
    X, y, _ = samples(n=40)
    twice = np.vstack([X, X])
    for tol in (1e-8, 1e-3):
        model = MultinomialLogit(tol=tol).fit(twice, np.r_[y, y])
        weighted = MultinomialLogit(tol=tol).fit(X, y, np.full(len(y), 2.0))
        scores = weighted.decision_function(X)
        atol = max(tol, 1e-3) * 10 * np.abs(scores).max()
        np.testing.assert_allclose(model.decision_function(X), scores, atol=atol)


def test_samples_without_any_variation():
    y = np.arange(12) % 3
    model = MultinomialLogit("auto", temperature="auto").fit(np.ones((12, 40)), y)
    np.testing.assert_allclose(model.predict_proba(np.ones((1, 40))), 1 / 3, atol=1e-3)


# ---- metrics of a subsample ----------------------------------------------------------------------


def decaying(rng, *, n=800, p=450, k=3):
    """Samples whose spectrum decays like that of features of images."""
    basis = rng.standard_normal((p, p)) * (np.arange(1, p + 1) ** -0.7)[:, None]
    X = rng.standard_normal((n, p)) @ basis + 0.1
    logits = X @ rng.standard_normal((p, k)) / np.sqrt((X**2).sum(axis=1).mean())
    return X, np.argmax(logits + rng.gumbel(size=(n, k)), axis=1)


@pytest.mark.parametrize("size", [100, 700])  # fewer and more than the features
@pytest.mark.parametrize("kind", ["decaying", "zero", "large outside"])
def test_a_subsample_moves_no_minimum(rng, kind, size):
    X, y = decaying(rng)
    sample = np.arange(size)
    if kind == "zero":
        X[sample] = 0.0
    elif kind == "large outside":
        X[size::50, 5] *= 300.0
    problem = LogitProblem(MemorySamples.of(X, y, None, 1), constant=True)
    penalty = Penalty(0.02, 0.5, 0.0)
    metric = problem.metric(penalty, sample, coarse=True)
    found = search(problem, penalty, metric, 1e-6)
    expected = search(problem, penalty)
    assert found.objective == pytest.approx(expected.objective, rel=1e-4)

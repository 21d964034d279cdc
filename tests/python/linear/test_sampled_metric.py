"""The metric of few rows: the optimum is that of all rows, in few steps for many features."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from eigenfeat.linear.logistic import MultinomialLogit, fit_near, held_out_logits_of
from eigenfeat.samples.labelled import MemorySamples


def wide(rng, *, n=240, p=400, k=3, dtype=np.float64):
    """Rows whose spectrum decays, as features of images have it."""
    basis = rng.standard_normal((p, p)) * (np.arange(1, p + 1) ** -0.7)[:, None]
    X = rng.standard_normal((n, p)) @ basis + 0.1
    logits = X @ rng.standard_normal((p, k)) / np.sqrt((X**2).sum(axis=1).mean())
    return X.astype(dtype), np.argmax(logits + rng.gumbel(size=(n, k)), axis=1)


@pytest.mark.parametrize("rows", [100, 400])
def test_few_rows_cost_few_steps(rng, rows):
    """Some times the steps of the exact metric; undamped samples need hundreds."""
    X, y = wide(rng, n=800, p=450, k=3)
    parameters = {"penalty": 0.02, "tol": 1e-3, "max_iter": 1000}
    best = MultinomialLogit(gram_rows=None, **parameters).fit(X, y)
    model = MultinomialLogit(gram_rows=rows, **parameters).fit(X, y)
    assert model.stop_reason_ == "converged"
    assert model.objective_ <= best.objective_ * (1 + 5e-3)
    assert model.n_iter_[0] <= 15 * best.n_iter_[0] * 100 / rows


def test_the_damping_is_the_curvature_that_a_sample_leaves_open(rng):
    """Of independent columns all directions are alike, those in the sample or not."""
    X, y = rng.standard_normal((1500, 400)), rng.integers(3, size=1500)
    parameters = {"penalty": 0.02, "tol": 1e-4, "max_iter": 1000}
    best = MultinomialLogit(gram_rows=None, **parameters).fit(X, y)
    for rows in (40, 150, 350):
        model = MultinomialLogit(gram_rows=rows, **parameters).fit(X, y)
        assert model.n_iter_[0] <= 2 * best.n_iter_[0] + 5


def test_results_do_not_depend_on_threads_and_do_on_the_seed(rng):
    X, y = wide(rng, dtype=np.float32)
    fits = [MultinomialLogit(gram_rows=64, n_threads=t).fit(X, y) for t in (1, 2, 7)]
    for fit in fits[1:]:
        assert_array_equal(fit.coef_, fits[0].coef_)
    other = MultinomialLogit(gram_rows=64, random_state=1).fit(X, y)
    assert not np.array_equal(other.coef_, fits[0].coef_)


def test_rows_of_no_use(rng):
    """A sample of rows all alike, or all 0, still makes a metric."""
    X, y = wide(rng, n=200, p=220)
    X[:190] = X[0]
    y[:190] = np.arange(190) % 3
    exact = MultinomialLogit(gram_rows=None, tol=1e-10, max_iter=3000).fit(X, y)
    model = MultinomialLogit(gram_rows=20, tol=1e-10, max_iter=3000).fit(X, y)
    assert model.objective_ == pytest.approx(exact.objective_, rel=1e-8)
    X[:190] = 0
    model = MultinomialLogit(gram_rows=20, tol=1e-6, max_iter=5000).fit(X, y)
    assert np.isfinite(model.objective_)


# ---- fits that start from those of a fold --------------------------------------------------------


@pytest.mark.parametrize("whole", [False, True])
def test_a_feature_that_is_far_larger_outside_the_fold_does_not_end_the_search(rng, whole):
    n, p, k = 3000, 30, 3
    y = rng.integers(k, size=n)
    X = rng.standard_normal((n, p)) + 0.5 * np.eye(k, p)[y]
    X[:, 5] *= 1e-3
    X[1500::50, 5] = 300 * rng.standard_normal(30)
    samples = MemorySamples.of(X.astype(np.float32), y, None, 1)
    fold = samples.subset(np.arange(1000)), samples.subset(np.arange(1000, 1500))
    logit = MultinomialLogit(penalty=0.03)
    _, starts = held_out_logits_of(logit, *fold, [0.03], whole=samples if whole else None)
    near = fit_near(clone(logit), samples, 0.03, starts[0])
    exact = MultinomialLogit(penalty=0.03, tol=1e-8).fit(X.astype(np.float32), y)
    assert near.objective_ <= (1 + 1e-4) * exact.objective_

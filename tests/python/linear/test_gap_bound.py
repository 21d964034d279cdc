"""`MultinomialLogit.gap_bound` against the excess over float64 minima: a bound must be one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from eigenfeat import MultinomialLogit
from eigenfeat.expansion.features import ExpandedRows
from eigenfeat.linear.gap_bound import gap_bound
from eigenfeat.linear.logit_problem import Penalty
from eigenfeat.rows.blocks import as_blocks

PENALTIES = (
    {},
    {"penalty": 1e-3},
    {"penalty": 0.0, "l2": 1.0},
    {"penalty": 0.0, "l2": 0.01},
    {"penalty": 0.01, "l2": 0.1, "ridge": 0.0},
    {"penalty": 0.03, "ridge_scale": "common"},
)


def separable(seed, n=80, d=300, k=2):
    """float32 rows with more columns than rows, and columns of unequal means and scales."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.exp(rng.standard_normal(d)) + rng.standard_normal(d)
    X[:, 0] += 300  # far from 0: centred by the fit
    X[:, 1] = 0
    y = np.argmax(X[:, 2 : 2 + k] + rng.standard_normal((n, k)), axis=1)
    return X.astype(np.float32), y


def objective(model, X, y, weight=None):
    """The objective at the fitted weights, all in float64, from its definition."""
    X = X.astype(np.float64)
    w = np.ones(len(X)) if weight is None else weight
    W = model.coef_.T
    n = w.sum()
    W = np.hstack([-W, W]) / 2 if len(model.classes_) == 2 else W
    b = np.array([-0.5, 0.5]) * model.intercept_ if W.shape[1] == 2 else model.intercept_
    z = X @ W + b
    codes = np.searchsorted(model.classes_, y)
    top = z.max(axis=1)
    loss = np.log(np.exp(z - top[:, None]).sum(axis=1)) + top - z[np.arange(len(X)), codes]
    mean = w @ X / n
    squares = w @ X**2 / n
    far = squares - mean**2 < 0.01 * mean**2
    if model.fit_intercept:
        squares = np.where(far & (np.ptp(X, axis=0) > 0), w @ (X - mean) ** 2 / n, squares)
    if model.ridge_scale == "common":
        squares = np.full_like(squares, squares.mean())
    size = (W**2).sum(axis=1)
    energy = 0.5 * w @ (z**2).sum(axis=1) + model.ridge * np.sqrt(n) * squares @ size
    l2 = model.l2 * (2 if W.shape[1] == 2 else 1)
    return w @ loss + 0.5 * model.penalty * energy + 0.5 * l2 * size.sum()


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("parameters", PENALTIES)
def test_bounds_the_excess_of_separable_float32_rows(parameters, k):
    for seed in range(2):
        X, y = separable(seed, k=k)
        best = MultinomialLogit(tol=1e-13, max_iter=5000, gram_rows=None, **parameters)
        least = objective(best.fit(X.astype(np.float64), y), X, y)
        for tol in (1e-1, 1e-3, 1e-6):
            model = MultinomialLogit(tol=tol, max_iter=5000, **parameters).fit(X, y)
            excess = objective(model, X, y) - least
            bounds = [model.gap_bound(X, y, steps=steps) for steps in (0, 1, 10, 40)]
            assert min(bounds) >= excess - 1e-9 * least
            assert np.all(np.diff(bounds) <= 1e-12)  # more steps never widen it
        assert best.gap_bound(X, y, steps=40) <= 1e-4 * least  # and it goes to 0


@pytest.mark.parametrize("parameters", PENALTIES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_bounds_weights_that_are_far_off(parameters, fit_intercept):
    """At any weights, not only where a search ended."""
    rng = np.random.default_rng(5)
    X, y = separable(7, n=60, d=20, k=3)
    weight = rng.random(60) + 0.1
    options = parameters | {"fit_intercept": fit_intercept}
    best = MultinomialLogit(tol=1e-13, max_iter=5000, **options)
    least = objective(best.fit(X.astype(np.float64), y, weight), X, y, weight)
    model = MultinomialLogit(max_iter=1, tol=1.0, **options).fit(X, y, weight)
    for size in (0.0, 1e-6, 1e-3, 0.1):
        model.coef_ = best.coef_ + size * rng.standard_normal(best.coef_.shape)
        moved = size * rng.standard_normal(best.intercept_.shape) * fit_intercept
        model.intercept_ = best.intercept_ + moved
        excess = objective(model, X, y, weight) - least
        assert model.gap_bound(X, y, weight) >= excess - 1e-10 * least


def test_features_that_are_never_formed_and_sparse_rows():
    X, y = separable(3, d=30, k=3)
    directions = np.random.default_rng(0).standard_normal((30, 8))
    expanded = ExpandedRows(X, directions)
    model = MultinomialLogit(tol=1e-2, fit_intercept=False).fit(expanded, y)
    whole = ExpandedRows(X.astype(np.float64), directions).toarray()
    assert np.isclose(model.gap_bound(expanded, y), model.gap_bound(whole, y), rtol=1e-6)
    model.fit(X, y)
    as_sparse = model.gap_bound(sparse.csr_matrix(X), y, steps=1)
    assert np.isclose(as_sparse, model.gap_bound(X, y, steps=1), rtol=1e-9)


def test_is_infinite_without_a_penalty_and_refuses_what_it_cannot_read():
    X, y = separable(0, d=20, k=3)
    model = MultinomialLogit(penalty=0.0, max_iter=5, tol=0.5).fit(X, y)
    assert model.gap_bound(X, y) == np.inf
    model = MultinomialLogit().fit(X, y)
    with pytest.raises(ValueError, match="y: expected the 3 classes"):
        model.gap_bound(X[y < 2], y[y < 2])
    with pytest.raises(ValueError, match="X: expected 20 features, got 19"):
        model.gap_bound(X[:, :19], y)
    with pytest.raises(ValueError, match="X: expected rows in memory"):
        model.gap_bound(as_blocks(X, y), None)
    with pytest.raises(ValueError, match="steps: expected an integer >= 0"):
        model.gap_bound(X, y, steps=-1)


def test_does_not_depend_on_threads_or_the_size_of_blocks(monkeypatch):
    X, y = separable(1, k=3)
    model = MultinomialLogit(tol=1e-2).fit(X, y)
    found = [model.set_params(n_threads=t).gap_bound(X, y) for t in (1, 2, 5)]
    assert len(set(found)) == 1
    monkeypatch.setattr("eigenfeat.linear.gap_bound._BLOCK_BYTES", 8 * 300 * 7)
    assert np.isclose(model.gap_bound(X, y), found[0], rtol=1e-2)  # steps feel the rounding


def test_would_notice_a_gradient_of_float32():
    """Features whose products cancel: in float32 the gradient would miss the excess."""
    X, y = separable(2, n=60, d=200)
    weights = np.zeros((201, 2))
    penalty = Penalty(0.0, 0.5, 1e-3)
    options = {"constant": False, "steps": 0, "n_threads": 1}
    bound = gap_bound(X, y, None, weights, penalty, **options)
    G = X.astype(np.float64).T @ (0.5 - np.eye(2)[y])
    assert bound >= 0.5 * (G**2).sum() / 1e-3
    assert bound <= 0.5 * (G**2).sum() / 1e-3 * (1 + 1e-9)

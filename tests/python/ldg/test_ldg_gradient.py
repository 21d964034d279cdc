"""The discriminative Gaussian objective, the search for its minimum, and the estimator."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from eigenfeat.ldg import LDG, DiscriminativeGaussian
from eigenfeat.ldg._solving.descent import LocalGaussians, minimise
from eigenfeat.neighbours.local_means import local_neighbours

EPS = np.finfo(float).eps


@pytest.fixture
def rows(rng):
    """Three classes of two clusters each, 8 columns, and two columns of noise."""
    y = np.repeat([2, 5, 9], 40)
    centres = 1.5 * rng.standard_normal((6, 8))
    X = centres[np.repeat(range(6), 20)] + 0.7 * rng.standard_normal((120, 8))
    order = rng.permutation(120)
    return np.hstack([X, 2.0 * rng.standard_normal((120, 2))])[order], y[order]


def problem(X, y, n_neighbors=4):
    codes = np.unique(y, return_inverse=True)[1]
    k = codes.max() + 1
    neighbours = local_neighbours(X, codes, k, n_neighbors)
    priors = np.bincount(codes) / len(codes)
    return LocalGaussians(X, codes, neighbours, priors), (codes, neighbours, priors)


def orthonormal(rng, d, m):
    return np.linalg.qr(rng.standard_normal((d, m)))[0]


def objective_by_loops(X, B, codes, neighbours, priors):
    total = 0.0
    for i, x in enumerate(X):
        lists = [neighbours[i, j][neighbours[i, j] >= 0] for j in range(len(priors))]
        if not len(lists[codes[i]]):
            continue
        squares = [
            np.sum((B.T @ (x - X[near].mean(axis=0))) ** 2) if len(near) else np.inf
            for near in lists
        ]
        total += np.log(np.sum(priors * np.exp(-0.5 * np.array(squares))))
        total += 0.5 * squares[codes[i]]
    return total


@pytest.mark.parametrize(("scale", "alone"), [(1e-3, False), (0.5, False), (0.5, True)])
def test_objective_by_plain_loops(rows, rng, scale, alone):
    X, y = rows
    y = np.where((np.arange(120) == 7) & alone, 99, y)  # a row without neighbours of its class
    objective, parts = problem(scale * X, y)
    B = orthonormal(rng, 10, 3)
    expected = objective_by_loops(scale * X, B, *parts)
    assert_allclose(objective(B)[0], expected, rtol=1e4 * EPS, atol=10 * 120 * EPS)
    assert np.isfinite(objective(B)[1]).all()


@pytest.mark.parametrize("m", [1, 4])
def test_gradient_by_differences(rows, rng, m):
    X, y = rows
    objective, _ = problem(X, y)
    B = orthonormal(rng, 10, m)
    _, gradient = objective(B)
    for _ in range(5):
        direction = rng.standard_normal(B.shape)
        h = 1e-5
        difference = (objective(B + h * direction)[0] - objective(B - h * direction)[0]) / (2 * h)
        assert_allclose(difference, np.sum(gradient * direction), rtol=1e-6, atol=1e-6)
    # A function of B B^T: nothing changes along rotations of B.
    product = B.T @ gradient
    assert_allclose(product, product.T, atol=1e3 * EPS * np.abs(product).max())


def test_the_search_reaches_a_stationary_point(rows, rng):
    X, y = rows
    objective, _ = problem(X, y)
    options = {"max_iter": 3000, "log": lambda text: None}
    found = minimise(objective, orthonormal(rng, 10, 2), tol=1e-5, **options)
    assert found.reason == "converged"
    B = found.point
    assert_allclose(B.T @ B, np.eye(2), atol=100 * EPS)
    value, gradient = objective(B)
    assert value == found.objective == min(found.history)
    tangent = gradient - B @ (B.T @ gradient)
    assert np.linalg.norm(tangent) <= 2e-5 * np.linalg.norm(gradient) + 1e-5 * abs(value)
    nearby = [np.linalg.qr(B + 1e-2 * rng.standard_normal(B.shape))[0] for _ in range(20)]
    assert all(objective(other)[0] > value for other in nearby)


def test_rounding_ends_a_search_without_tolerance(rows, rng):
    X, y = rows
    objective, _ = problem(X, y)
    options = {"max_iter": 20000, "log": lambda text: None}
    found = minimise(objective, orthonormal(rng, 10, 1), tol=0.0, **options)
    assert found.reason == "precision"
    assert found.gradient_norm < 1e-6


def test_the_estimator_improves_on_its_start(rows):
    X, y = rows
    model = DiscriminativeGaussian(3, n_neighbors=4, gamma=0.8).fit(X, y)
    start = LDG(3, n_neighbors=4, gamma=0.8).fit(X, y)
    objective, _ = problem((X - start.mean_) / start.scale_, y)
    before = objective(start.components_.T)[0]
    assert_allclose(model.objective_history_[0], before, rtol=1e-12)
    value, gradient = objective(model.components_.T)
    assert_allclose(value, model.objective_, rtol=1e-12)
    assert model.objective_ < before
    assert model.stop_reason_ == "converged"
    assert model.gradient_norm_ <= 1e-4
    assert model.n_iter_ >= len(model.objective_history_) - 1
    assert_allclose(model.components_ @ model.components_.T, np.eye(3), atol=1e-13)
    # The basis in which B^T times the gradient is diagonal, ascending.
    product = model.components_ @ gradient
    size = np.abs(product).max()
    assert_allclose(product, np.diag(model.eigenvalues_), atol=1e5 * EPS * size)
    assert np.all(np.diff(model.eigenvalues_) >= 0)


def test_steps_and_overflow_end_a_search(rows):
    X, y = rows
    model = DiscriminativeGaussian(3, n_neighbors=4, gamma=0.8, standardize=False, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        model.fit(X, y)
    assert model.stop_reason_ == "iterations"
    with np.errstate(over="ignore", invalid="ignore"):
        assert model.fit(1e100 * X, y).stop_reason_ == "precision"
    assert np.isfinite(model.components_).all()


def test_one_sample_of_each_class_is_refused():
    X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]])
    with pytest.raises(ValueError, match="y: expected a class of two samples or more, got one"):
        DiscriminativeGaussian(n_components=1, gamma=1.0).fit(X, [0, 1])

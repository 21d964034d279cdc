"""LDG against its definition, its asymptotics, and its other algorithms."""

import numpy as np
import pytest
from scipy.stats import ortho_group
from sklearn.base import clone

from eigenfeat.ldg import LDG
from eigenfeat.neighbours.local_means import local_scatters

MEANS = np.array([[-0.1, -1.0], [0.1, 1.0]])  # section 3.2.1
DEVIATIONS = np.sqrt([0.01, 1.0])


def illustrative(rng, n):
    y = np.repeat([0, 1], n)
    return MEANS[y] + DEVIATIONS * rng.standard_normal((2 * n, 2)), y


def blobs(rng, n, d, n_classes, dtype=np.float64):
    y = np.arange(n) % n_classes
    centres = 3.0 * rng.standard_normal((n_classes, d)) / np.sqrt(d)
    return (centres[y] + rng.standard_normal((n, d))).astype(dtype), y


def angle(a, b):
    """Largest principal angle between the rows' spans."""
    cosines = np.linalg.svd(np.asarray(a, float) @ np.asarray(b, float).T)[1]
    return np.arccos(np.clip(cosines.min(), 0, 1))


@pytest.mark.parametrize(("gamma", "direction"), [(0.0, [1.0, 0.0]), (1.0, [0.0995, 0.995])])
def test_illustrative_experiment(rng, gamma, direction):
    """Section 3.2.1: gamma = 0 minimises the covariance, gamma = 1 separates the means."""
    for n, off in ((30, 0.15), (400, 0.05)):
        X, y = illustrative(rng, n)
        model = LDG(1, gamma=gamma, n_neighbors=n - 1, standardize=False).fit(X, y)
        assert angle(model.components_, [direction]) < off
    between = LDG(1, gamma=0.5, n_neighbors=n - 1, standardize=False).fit(X, y).components_
    # 0.5 diag(0.01, 1) - 0.5 * 0.5 * 4 [0.1, 1]^T [0.1, 1]: (3.22) for two classes of one half.
    Z = 0.5 * np.diag([0.01, 1.0]) - 0.5 * 2 * 0.25 * np.outer(2 * MEANS[1], 2 * MEANS[1])
    assert angle(between, np.linalg.eigh(Z)[1][:, :1].T) < 0.1


def test_components_minimise_the_trace(rng):
    """Proposition 1: no orthonormal B has a smaller trace of B^T (V - gamma A) B."""
    X, y = blobs(rng, 90, 6, 3)
    model = LDG(2, gamma=0.7, n_neighbors=4, standardize=False).fit(X, y)
    V, A, _ = local_scatters(X - X.mean(axis=0), y, 3, 4)
    Z, B = V - 0.7 * A, model.components_.T
    np.testing.assert_allclose(B.T @ B, np.eye(2), atol=1e-12)
    least = np.trace(B.T @ Z @ B)
    np.testing.assert_allclose(least, model.eigenvalues_.sum(), rtol=1e-10)
    np.testing.assert_allclose(model.eigenvalues_, np.linalg.eigvalsh(Z)[:2], rtol=1e-10)
    others = ortho_group.rvs(6, size=200, random_state=0)[:, :, :2]
    assert np.all(np.einsum("sik,ij,sjk->s", others, Z, others) >= least)


@pytest.mark.parametrize(("dtype", "repeated"), [(np.float32, False), (np.float64, True)])
def test_with_fewer_rows_than_columns_ldg_is_solved_in_the_span(rng, dtype, repeated):
    X, y = blobs(rng, 30, 50, 3, dtype)
    if repeated:  # rank well below n - 1
        X[20:] = X[:10]
        y[20:] = y[:10]
    model = LDG(4, gamma=0.9, n_neighbors=3).fit(X, y)
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    V, A, _ = local_scatters(rows.astype(np.float64), y, 3, 3)
    values, vectors = np.linalg.eigh(V - 0.9 * A)
    assert values[3] < 0  # so all four lie in the span
    off = 300 * np.finfo(dtype).eps * np.abs(values).max()
    np.testing.assert_allclose(model.eigenvalues_, values[:4], rtol=0, atol=off)
    assert angle(model.components_, vectors[:, :4].T) < np.sqrt(np.finfo(dtype).eps) * 10
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(4), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_directions_lie_in_the_span_of_dependent_columns(rng, dtype):
    """With gamma 0 a direction in which no samples differ has the smallest eigenvalue, 0."""
    X, y = blobs(rng, 60, 4, 3)
    X = np.column_stack([X, X[:, 0], X[:, 1] + X[:, 2], 1e7 * X[:, 3] + 3]).astype(dtype)
    for standardize in (False, True):
        model = LDG(gamma=0.0, n_neighbors=5, standardize=standardize)
        model.set_params(n_components=4).fit(X, y)
        assert model.eigenvalues_[0] > 1.0
        assert model.transform(X).std(axis=0).min() > 1e-2
        np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(4), atol=1e-12)
        with pytest.raises(ValueError, match="at most 4, the rank of the centred samples"):
            model.set_params(n_components=5).fit(X, y)


def test_columns_of_small_units_count(rng):
    X, y = blobs(rng, 60, 3, 3, np.float32)
    model = LDG(3, gamma=0.5, n_neighbors=5, standardize=False)
    assert model.fit(X * np.array([1e7, 1, 1e-3], np.float32), y).n_components_ == 3


@pytest.mark.parametrize("d", [2_000, 30_000])
def test_float32_keeps_small_variances_of_many_columns(rng, d):
    y = np.arange(40) % 3
    X = rng.standard_normal((40, 5)) @ rng.standard_normal((5, d))
    X += 0.05 * rng.standard_normal((40, d))
    X[:, :20] += y[:, None]
    model = LDG(3, gamma=0.5, n_neighbors=3)
    values = model.fit(X, y).eigenvalues_
    np.testing.assert_allclose(model.fit(X.astype(np.float32), y).eigenvalues_, values, rtol=1e-4)


def test_constant_columns_become_zero(rng):
    X, y = blobs(rng, 60, 5, 2)
    X[:, 2] = 0.1 + 1e9  # whose mean is rounded
    model = LDG(2, gamma=0.5, n_neighbors=3).fit(X, y)
    assert np.all(model.components_[:, 2] == 0)
    assert model.scale_[2] == 1
    other = X.copy()
    other[:, 2] = -5.0
    np.testing.assert_array_equal(model.transform(other), model.transform(X))
    without = LDG(2, gamma=0.5, n_neighbors=3).fit(np.delete(X, 2, axis=1), y)
    np.testing.assert_allclose(without.transform(np.delete(X, 2, axis=1)), model.transform(X))


@pytest.mark.parametrize("shape", [(150, 20), (40, 90)])
def test_selection_reports_all_candidates(rng, shape):
    X, y = blobs(rng, *shape, 3)
    model = LDG(random_state=0).fit(X, y)
    tried = model.cv_results_
    for name in ("n_components", "gamma", "n_neighbors"):
        accuracies = tried[f"{name}_accuracy"]
        assert accuracies.shape == tried[name].shape
        chosen = getattr(model, f"{name}_")
        assert accuracies[tried[name].tolist().index(chosen)] == accuracies.max()
    best = tried["gamma"][tried["gamma_accuracy"] == tried["gamma_accuracy"].max()]
    assert model.gamma_ == best.max()
    assert model.components_.shape == (model.n_components_, X.shape[1])


@pytest.mark.parametrize("shape", [(100, 12), (36, 50)])
def test_given_candidates_and_greedy_growth(rng, shape):
    X, y = blobs(rng, *shape, 3)
    model = LDG("greedy", gamma=[0.1, 0.9], n_neighbors=[3, 6], random_state=0).fit(X, y)
    assert model.gamma_ in (0.1, 0.9)
    assert model.n_neighbors_ in (3, 6)
    grown = model.cv_results_["n_components_accuracy"]
    assert np.all(np.diff(grown[:-1]) >= 0)
    assert model.n_components_ == len(grown) or grown[-1] < grown[-2]
    listed = LDG([2, 5], gamma=model.gamma_, n_neighbors=model.n_neighbors_).fit(X, y)
    assert listed.n_components_ in (2, 5)
    assert set(listed.cv_results_) == {"n_components", "n_components_accuracy"}
    assert clone(listed).get_params() == listed.get_params()

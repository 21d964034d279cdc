"""Fisher's directions first, then LDG's in their orthogonal complement."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg, sparse
from sklearn.neighbors import KNeighborsClassifier

from eigenfeat.ldg import LDG, RegularizedFisher
from eigenfeat.neighbours.local_means import local_scatters

GIVEN = {"gamma": 0.6, "n_neighbors": 4, "standardize": False, "fisher_ridge": 0.1}


@pytest.fixture
def samples(rng):
    y = np.arange(90) % 3
    return 2 * rng.standard_normal((3, 8))[y] + rng.standard_normal((90, 8)), y


def test_directions_are_fishers_and_those_of_the_complement(samples):
    X, y = samples
    model = LDG(5, **GIVEN).fit(X, y)
    fisher = RegularizedFisher(ridge=0.1).fit(X, y).components_
    for m in (1, 2):
        angles = linalg.subspace_angles(model.components_[:m].T, fisher[:m].T)
        assert_allclose(angles, 0, atol=1e-7)
    rest = linalg.null_space(model.components_[:2])
    scatters = local_scatters(X - X.mean(axis=0), y, 3, 4)
    matrix = scatters.within - 0.6 * scatters.weighted
    values, vectors = linalg.eigh(rest.T @ matrix @ rest)
    assert_allclose(model.eigenvalues_[2:], values[:3], rtol=1e-8)
    assert_allclose(np.abs(model.components_[2:] @ rest @ vectors[:, :3]), np.eye(3), atol=1e-7)
    assert_allclose(model.components_ @ model.components_.T, np.eye(5), atol=1e-12)


@pytest.mark.parametrize("n_components", [1, 2, 8])
def test_any_number_of_directions(samples, n_components):
    longest = LDG(8, **GIVEN).fit(*samples).components_
    found = LDG(n_components, **GIVEN).fit(*samples).components_
    assert_allclose(found, longest[:n_components], atol=1e-9)


def test_folds_choose_fishers_directions_where_they_help(rng):
    # Classes differ in a direction of little variance, which LDG does not weigh.
    y = np.arange(120) % 2
    X = rng.standard_normal((240, 6)) * [0.05, 1, 1, 1, 1, 1]
    X[:, 0] += 0.3 * np.tile(y, 2)
    given = {"gamma": 0.5, "n_components": 2, "n_neighbors": 5, "standardize": False}
    plain = LDG(**given).fit(X[:120], y)
    model = LDG(**given, fisher_ridge="cv").fit(X[:120], y)
    assert model.fisher_ridge_ is not None
    assert_allclose(model.cv_results_["fisher_ridge"], [np.nan, 0.01, 0.1, 1.0])
    assert model.cv_results_["fisher_ridge_accuracy"].argmax() > 0
    accuracies = [
        KNeighborsClassifier(3).fit(m.transform(X[:120]), y).score(m.transform(X[120:]), y)
        for m in (plain, model)
    ]
    assert accuracies[1] > accuracies[0]


def test_sparse_samples_of_many_columns(rng):
    X, y = rng.standard_normal((40, 90)), np.arange(40) % 3
    X[:, 0] += y
    found = [LDG(4, **GIVEN).fit(kind(X), y).components_ for kind in (np.asarray, sparse.csr_array)]
    assert_allclose(*found, atol=1e-8)
    model = LDG(fisher_ridge=[None, 0.01]).fit(X, y)
    best = model.cv_results_["fisher_ridge_accuracy"].argmax()
    assert model.fisher_ridge_ == [None, 0.01][best]


@pytest.mark.parametrize("value", [-1.0, 0.0, [0.1, 0.0], "best"])
def test_a_ridge_is_positive(samples, value):
    with pytest.raises(ValueError, match="fisher_ridge"):
        LDG(2, fisher_ridge=value).fit(*samples)

"""LDG's parameters for as many columns as rows, chosen by the accuracy on held-out rows."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import KNeighborsClassifier

from eigenfeat._base.labels import class_folds
from eigenfeat.ldg import LDG, KernelLDG, SparseLDG
from eigenfeat.ldg._solving.coordinates import span_of, standardise
from eigenfeat.ldg._solving.selection import Problem, fold_accuracies
from eigenfeat.samples.labelled import MemorySamples


def blobs(n, d, k, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    X = rng.standard_normal((n, d)) + 0.9 * rng.standard_normal((k, d))[y]
    return (X - X.mean(axis=0)).astype(dtype), y


@pytest.mark.parametrize("shape", [(25, 60), (40, 39), (210, 240)])
def test_accuracies_are_those_of_fits_to_the_other_rows(shape):
    X, y = blobs(*shape, 3)
    counts, gammas, dimensions = [1, 3], [0.1, 0.9], [2, 5]
    columns, rows = standardise(X, False)
    basis, coordinates = span_of(rows)
    samples = MemorySamples.of(X, y, None, 1)
    problem = Problem(samples, rows, coordinates, basis, columns)
    found = fold_accuracies(problem, counts, gammas, dimensions)
    expected = np.zeros((2, 2, 2))
    for number in range(3):
        fold = class_folds(y, 3) == number
        for i, count in enumerate(counts):
            for j, gamma in enumerate(gammas):
                for k, dimension in enumerate(dimensions):
                    model = LDG(dimension, gamma=gamma, n_neighbors=count, standardize=False)
                    rows = model.fit(X[~fold], y[~fold]).transform(X[~fold])
                    nearest = KNeighborsClassifier(1).fit(rows, y[~fold])
                    asked = model.transform(X[fold])
                    votes = y[~fold][nearest.kneighbors(asked, 3)[1]]
                    won = np.where(votes[:, 1] == votes[:, 2], votes[:, 1], votes[:, 0])
                    expected[i, j, k] += (won == y[fold]).sum()
    np.testing.assert_allclose(found.values, expected / len(y), rtol=0, atol=1e-12)


def test_distances_between_many_samples_are_not_stored():
    X, y = blobs(6000, 4, 2)
    tracemalloc.start()
    try:
        LDG(2, gamma=0.5, n_neighbors=2, fisher_ridge=[0.01, 0.1]).fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60e6  # all distances of a fold take 64 MB


def test_a_class_of_one_row_duplicates_and_two_rows():
    X, y = blobs(36, 50, 3, dtype=np.float32)
    y[0] = 9
    X[20:24], y[20:24] = X[24:28], y[24:28]
    with pytest.warns(RuntimeWarning, match="fewer of \\[9\\]"):
        listed = LDG([2, 3], gamma=[0.2, 0.6], n_neighbors=[2, 3]).fit(X, y)
    assert np.isfinite(listed.transform(X)).all()
    assert set(LDG(2, gamma=0.3).fit(X, y).cv_results_) == {"n_neighbors", "n_neighbors_accuracy"}
    assert LDG(gamma=[0.1, 0.9]).fit(X[:2], [0, 1]).n_components_ == 1


def test_sparse_rows_kernels_and_sparse_directions_use_the_same_folds():
    X, y = blobs(30, 45, 2)
    exact = LDG().fit(X, y)
    wide = LDG().fit(sparse.csr_matrix(X), y)
    kernel = KernelLDG().fit(X / X.std(axis=0), y)
    few = SparseLDG(1, tol=0.01).fit(X[:, :32], y)
    for model in (wide, kernel):
        assert (model.gamma_, model.n_neighbors_) == (exact.gamma_, exact.n_neighbors_)
        np.testing.assert_allclose(
            model.cv_results_["gamma_accuracy"], exact.cv_results_["gamma_accuracy"], atol=1e-12
        )
    assert few.cv_results_["gamma"].tolist() == [0.01, 0.1, 0.3, 0.5, 0.7, 0.9]

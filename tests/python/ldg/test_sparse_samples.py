"""LDG on sparse samples with more columns than samples, against the same samples made dense."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from eigenfeat.ldg import LDG


def rows(n=150, d=60, k=3, seed=0, density=0.3):
    """Sparse rows without ties between distances, one column empty and one constant."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    X = np.exp(rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((k, d))[y])
    X *= rng.random((n, d)) < density
    X[:, 3], X[:, 5] = 0.0, 2.0
    return sparse.csr_matrix(X), y


def assert_same(a, b, slack):
    assert_allclose(a.eigenvalues_, b.eigenvalues_, rtol=slack)
    cosines = np.abs((a.components_ * b.components_).sum(axis=1))
    assert_allclose(cosines, 1.0, rtol=0, atol=slack)
    assert_allclose(a.mean_, b.mean_, atol=1e-12)
    assert_allclose(a.scale_, b.scale_, rtol=1e-12)


@pytest.mark.parametrize("standardize", [True, False])
def test_agrees_with_dense_samples(standardize):
    X, y = rows(40, 200)
    for gamma in (0.4, 1.0):
        options = {"gamma": gamma, "n_neighbors": 4, "standardize": standardize}
        exact = LDG(4, **options).fit(X.toarray(), y)
        found = LDG(4, **options).fit(X, y)
        assert_same(found, exact, 1e-9)
        assert_allclose(found.components_ @ found.components_.T, np.eye(4), atol=1e-6)
        projected = np.abs(exact.transform(X))
        assert_allclose(np.abs(found.transform(X)), projected, atol=1e-6 * projected.max())


def test_chooses_with_little_memory():
    """30,000 columns: dense samples would take 240 MB, and V and A 14 GB."""
    rng = np.random.default_rng(1)
    n, d = 1000, 30_000
    y = rng.integers(0, 2, n)
    rank = (np.exp(rng.random((n, 40)) * np.log(d)) - 1).astype(int)
    terms = np.where(rng.random((n, 40)) < 0.4, (rank * 7919 + 101 * y[:, None]) % d, rank)
    X = sparse.csr_matrix((np.ones(n * 40), terms.ravel(), np.arange(n + 1) * 40), shape=(n, d))
    few = LDG(random_state=0).fit(X[:200], y[:200])
    assert few.n_neighbors_ in few.cv_results_["n_neighbors"]
    assert few.n_components_ in few.cv_results_["n_components"]
    tracemalloc.start()
    many = LDG(n_neighbors=8, n_components=2, gamma=1.0, standardize=False).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6
    assert many.transform(X).shape == (n, 2)


def test_hard_samples():
    """A class of one sample, duplicates, samples of zeros; equal samples are refused."""
    X, y = rows(30, 60)
    X = sparse.csr_matrix(sparse.vstack([X, X[:5], sparse.csr_matrix((3, 60))]))
    y = np.concatenate([y, y[:5], [0, 1, 9]])
    with pytest.warns(RuntimeWarning, match="n_neighbors: expected more than 3"):
        found = LDG(2, gamma=0.5, n_neighbors=3).fit(X, y)
    assert found.short_classes_.tolist() == [9]
    assert np.all(np.isfinite(found.transform(X)))
    with pytest.raises(ValueError, match="X: expected samples that differ"):
        LDG(1).fit(sparse.csr_matrix((6, 9)), [0, 0, 0, 1, 1, 1])

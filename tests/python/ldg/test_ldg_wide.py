"""LDG on sparse and memory-mapped rows that are never made dense, against the exact one."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from eigenfeat.ldg import LDG, linear


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


@pytest.mark.parametrize(
    ("most", "shape", "standardize"),
    [(2000, (150, 60), True), (10, (150, 60), False), (10, (40, 200), True)],
)
def test_agrees_with_the_exact_one(most, shape, standardize, monkeypatch, tmp_path):
    monkeypatch.setattr(linear, "MOST_COORDINATES", most)
    X, y = rows(*shape)
    np.save(tmp_path / "rows.npy", X.toarray())
    on_disk = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for gamma in (0.4, 1.0):
        options = {"gamma": gamma, "n_neighbors": 4, "standardize": standardize}
        exact = LDG(4, solver="exact", **options).fit(X, y)
        for Z in (X, on_disk):
            wide = LDG(4, solver="randomized", random_state=0, **options).fit(Z, y)
            assert_same(wide, exact, 1e-9 if most > len(y) else 1e-6)
            assert_allclose(wide.components_ @ wide.components_.T, np.eye(4), atol=1e-6)
            projected = np.abs(exact.transform(X))
            assert_allclose(np.abs(wide.transform(Z)), projected, atol=1e-4 * projected.max())


def test_chooses_by_itself_and_selects(monkeypatch):
    """30,000 columns: rows would take 240 MB dense, and V and A 14 GB."""
    rng = np.random.default_rng(1)
    n, d = 1000, 30_000
    y = rng.integers(0, 2, n)
    rank = (np.exp(rng.random((n, 40)) * np.log(d)) - 1).astype(int)
    terms = np.where(rng.random((n, 40)) < 0.4, (rank * 7919 + 101 * y[:, None]) % d, rank)
    X = sparse.csr_matrix((np.ones(n * 40), terms.ravel(), np.arange(n + 1) * 40), shape=(n, d))
    few = LDG(random_state=0).fit(X[:200], y[:200])
    assert few.n_neighbors_ in few.cv_results_["n_neighbors"]
    assert few.n_components_ in few.cv_results_["n_components"]
    monkeypatch.setattr(linear, "MOST_COORDINATES", 500)
    tracemalloc.start()
    many = LDG(n_neighbors=8, n_components=2, gamma=1.0, standardize=False, random_state=0)
    many.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6
    assert many.cv_results_["residuals"].max() <= 1e-6
    with pytest.raises(ValueError, match="n_neighbors: expected a number for so many samples"):
        LDG(gamma=1.0, n_components=2).fit(X, y)


def test_hard_rows(monkeypatch):
    """A class of one row, duplicates, rows of zeros; constant rows are refused."""
    X, y = rows(40, 30)
    X = sparse.csr_matrix(sparse.vstack([X, X[:5], sparse.csr_matrix((3, 30))]))
    y = np.concatenate([y, y[:5], [0, 1, 9]])
    for most in (2000, 10):
        monkeypatch.setattr(linear, "MOST_COORDINATES", most)
        with pytest.warns(RuntimeWarning, match="n_neighbors: expected more than 3"):
            wide = LDG(2, gamma=0.5, n_neighbors=3, solver="randomized").fit(X, y)
        assert wide.short_classes_.tolist() == [9]
        assert np.all(np.isfinite(wide.transform(X)))
    monkeypatch.setattr(linear, "MOST_COORDINATES", 2000)
    with pytest.raises(ValueError, match="X: expected samples that differ"):
        LDG(1, solver="randomized").fit(sparse.csr_matrix((6, 4)), [0, 0, 0, 1, 1, 1])

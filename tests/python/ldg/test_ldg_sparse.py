"""Sparse LDG: both deflations, certificates, the thesis's figures on Wine, errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine

from eigenfeat.ldg import LDG, SparseLDG
from eigenfeat.ldg.sparse import orthonormally_deflated, sparsely_deflated
from eigenfeat.neighbours.local_means import local_scatters

EPS = np.finfo(float).eps
DEFLATIONS = ("sparse", "orthonormal")


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


def matrix_of(model, X, y):
    Z = (X - model.mean_) / model.scale_
    codes = np.unique(y, return_inverse=True)[1]
    V, A, _ = local_scatters(Z, codes, codes.max() + 1, model.n_neighbors_)
    return V - model.gamma_ * A


@pytest.mark.parametrize("deflation", DEFLATIONS)
def test_every_direction_is_certified(wine, deflation):
    X, y = wine
    model = SparseLDG(5, n_neighbors=8, gamma=0.8, deflation=deflation).fit(X, y)
    assert model.components_.shape == (5, 13)
    assert_allclose(np.linalg.norm(model.components_, axis=1), 1, atol=1e-14)
    assert_array_equal(model.sparsity_, np.count_nonzero(model.components_, axis=1))
    assert np.all((model.gap_ >= -1e-12) & (model.gap_ < 1e-3))
    assert np.all((model.leading_ > 0) & (model.leading_ <= 1 + 1e-12))
    assert model.residuals_.max() <= model.tol
    assert model.n_iter_ > 1
    Z = matrix_of(model, X, y)
    values = np.einsum("ij,jk,ik->i", model.components_, Z, model.components_)
    assert_allclose(model.eigenvalues_, values, atol=1e-10 * np.abs(Z).max())
    peaks = np.argmax(np.abs(model.components_), axis=1)
    assert np.all(model.components_[np.arange(5), peaks] > 0)
    reduced = model.transform(X)
    assert_allclose(reduced, (X - model.mean_) / model.scale_ @ model.components_.T, atol=1e-12)


def test_figures_3_6_and_3_7(wine):
    X, y = wine
    options = {"n_neighbors": 8, "gamma": 0.8}
    dense = LDG(6, **options).fit(X, y)
    sparse = SparseLDG(6, **options).fit(X, y)
    orthonormal = SparseLDG(6, deflation="orthonormal", **options).fit(X, y)
    assert np.count_nonzero(dense.components_) == 6 * 13
    assert sparse.components_[0].tobytes() == orthonormal.components_[0].tobytes()
    assert sparse.sparsity_.mean() < orthonormal.sparsity_.mean() < 13
    gram = orthonormal.components_ @ orthonormal.components_.T
    assert_allclose(gram, np.eye(6), atol=100 * EPS)
    assert np.abs(sparse.components_ @ sparse.components_.T - np.eye(6)).max() > 1e-3


def test_smaller_s_is_sparser_and_large_s_is_ldg(wine):
    X, y = wine
    counts = []
    for sparsity in (1, 2, 4, 8):
        model = SparseLDG(1, n_neighbors=8, gamma=0.8, sparsity=sparsity).fit(X, y)
        counts.append(int(model.sparsity_[0]))
    assert counts[0] == 1
    assert counts == sorted(counts)
    assert counts[-1] > 4
    options = {"n_neighbors": 8, "gamma": 0.8}
    dense = LDG(3, **options).fit(X, y)
    for deflation in DEFLATIONS:
        model = SparseLDG(3, sparsity=13, deflation=deflation, **options).fit(X, y)
        assert_allclose(np.abs(np.diag(model.components_ @ dense.components_.T)), 1, atol=1e-9)
        assert_allclose(model.eigenvalues_, dense.eigenvalues_, rtol=1e-9)
        assert model.n_iter_ == 1
        assert_array_equal(model.gap_, 0)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_deflated_directions_are_not_found_again(rng, sign):
    # With eigenvalues of one sign, directions that are deflated to 0 could be the best again.
    rows = rng.standard_normal((30, 9))
    Z = sign * (rows.T @ rows)
    for deflate in (sparsely_deflated, orthonormally_deflated):
        solutions, directions = deflate(Z, 9, 2.0, tol=1e-5, max_iter=5000)
        assert max(found.residuals.max() for found in solutions) <= 1e-5
        overlaps = np.abs(directions.T @ directions) - np.eye(9)
        assert overlaps.max() < 0.9
        assert np.linalg.matrix_rank(directions, tol=1e-2) == 9


def test_copies_of_columns_in_any_order():
    """The difference of copies and a deflated direction both have value 0, and must not mix."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    one, other = rng.standard_normal((2, 60)) + y
    X = np.column_stack([one, one, other])
    known = None
    for order in ([0, 1, 2], [0, 2, 1], [2, 0, 1], [2, 1, 0]):
        model = SparseLDG(3, gamma=1.0, n_neighbors=4, sparsity=3.0).fit(X[:, order], y)
        features = np.abs(model.transform(X[:, order]))
        known = features if known is None else known
        assert_allclose(features, known, rtol=0, atol=1e-6 * known.max())

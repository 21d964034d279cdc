"""Estimators that need moments only, on blocks of rows, against the same rows in memory."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from block_support import FarBlocks

from eigenfeat.rayleigh.rayleigh import (
    FisherLDA,
    OrientedPCA,
    RayleighPCA,
    SlicedInverseRegression,
    VanishingComponents,
)
from eigenfeat.samples import ArrayBlocks

MODELS = [
    RayleighPCA(3),
    RayleighPCA(center=False, scale="columns"),
    VanishingComponents(2),
    OrientedPCA(2),
    FisherLDA(),
    SlicedInverseRegression(),
    SlicedInverseRegression(2, target="continuous", n_slices=4),
]


@pytest.fixture
def rows(rng):
    y = np.arange(500) % 4
    X = rng.standard_normal((500, 6)) * np.arange(1, 7) + np.eye(6)[y] * 9
    return X, y, rng.integers(0, 3, 500) / 2.0


def check(found, memory, X):
    np.testing.assert_allclose(found.eigenvalues_, memory.eigenvalues_, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(found.directions_, memory.directions_, rtol=1e-7, atol=1e-9)
    parts = list(found.transform(ArrayBlocks(X, block_rows=200)))
    np.testing.assert_allclose(np.concatenate(parts), memory.transform(X), rtol=1e-7, atol=1e-7)
    assert found.n_features_in_ == 6


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_blocks_give_the_directions_of_all_rows(rows, model):
    X, y, w = rows
    place = MODELS.index(model)
    X, w = sp.csr_matrix(X) if place % 2 else X, w if place % 3 else None
    memory = type(model)(**model.get_params()).fit(X, y, w)
    check(type(model)(**model.get_params()).fit(FarBlocks(X, y, w, block_rows=77)), memory, X)


def test_a_continuous_target_is_sliced_by_the_quantiles_of_all(rows, rng):
    X, _, w = rows
    y = np.exp(X @ np.arange(6.0) / 20) + rng.random(500)
    memory = SlicedInverseRegression(n_slices=7).fit(X, y, w)
    found = SlicedInverseRegression(n_slices=7).fit(FarBlocks(X, y, w, block_rows=60))
    np.testing.assert_array_equal(found.slice_edges_, memory.slice_edges_)
    check(found, memory, X)


@pytest.mark.parametrize("later", [False, True])
def test_noise_may_come_in_blocks(rows, later):
    X, _, _ = rows
    noise = np.random.RandomState(1).randn(300, 6) * [1, 1, 5, 1, 1, 9]
    memory = OrientedPCA().fit(X, noise=noise)
    found = OrientedPCA().fit(FarBlocks(X, block_rows=99), noise=ArrayBlocks(noise, block_rows=31))
    if later:
        memory.partial_fit(X[:9], noise=noise[:50])
        found.partial_fit(X[:9], noise=ArrayBlocks(noise[:50], block_rows=31))
    check(found, memory, X)
    with pytest.raises(ValueError, match=r"noise: expected 6 columns, got 5"):
        found.fit(X, noise=ArrayBlocks(noise[:, 1:]))

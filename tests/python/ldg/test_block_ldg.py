"""Relatives of LDG that need scatters only, on blocks of rows, against the same rows in memory."""

from __future__ import annotations

import numpy as np
import pytest
from block_support import FarBlocks

from eigenfeat.ldg import (
    DirectLDA,
    GSVDDiscriminant,
    MaximumMarginCriterion,
    PCAFisher,
    RegularizedFisher,
)
from eigenfeat.samples import ArrayBlocks

MODELS = [
    RegularizedFisher(2, ridge=0.5),
    PCAFisher(),
    DirectLDA(),
    GSVDDiscriminant(),
    MaximumMarginCriterion(4),
]


def copy(model):
    return type(model)(**model.get_params())


def check(found, memory, X, rtol=1e-8):
    size = np.abs(memory.components_).max(axis=1, keepdims=True)
    assert found.components_.shape == memory.components_.shape
    assert np.all(np.abs(found.components_ - memory.components_) <= rtol * size)
    np.testing.assert_allclose(found.mean_, memory.mean_, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found.classes_, memory.classes_)
    for name in ("eigenvalues_", "alphas_", "betas_"):
        if hasattr(memory, name):
            largest = np.abs(getattr(memory, name)).max()
            np.testing.assert_allclose(
                getattr(found, name), getattr(memory, name), atol=1e-9 * largest
            )
    parts = np.concatenate(list(found.transform(ArrayBlocks(X, block_rows=99))))
    np.testing.assert_allclose(parts, found.transform(X), rtol=1e-6, atol=1e-10)


@pytest.fixture
def rows(rng):
    y = np.arange(400) % 4
    return rng.standard_normal((400, 7)) * np.arange(1, 8) + np.eye(7)[y] * 5, y


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_blocks_give_the_components_of_all_rows(rows, model):
    X, y = rows
    for n, size in ((400, 33), (40, 1)):
        memory = copy(model).fit(X[:n], y[:n])
        check(copy(model).fit(FarBlocks(X[:n], y[:n], block_rows=size)), memory, X[:n])


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_units_and_constant_columns(rows, model):
    X, y = rows
    X = np.hstack([X + 1e6, np.full((400, 1), 3.3), (y[:, None] == 1) * 2.5]) * 1e-150
    memory, found = copy(model).fit(X, y), copy(model).fit(FarBlocks(X, y, block_rows=50))
    check(found, memory, X, 1e-6)
    if not isinstance(model, DirectLDA):
        assert np.all(found.components_[:, 7] == 0)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_columns_that_depend_on_each_other_and_few_rows(rng, model):
    y = np.arange(120) % 4
    X = rng.standard_normal((120, 5)) @ rng.standard_normal((5, 9)) + np.eye(4, 9)[y]
    memory = copy(model).fit(X, y)
    check(copy(model).fit(FarBlocks(X, y, block_rows=11)), memory, X, 1e-6)
    X = rng.standard_normal((20, 50)) + np.eye(4, 50)[y[:20]]
    memory = copy(model).fit(X, y[:20])
    check(copy(model).fit(FarBlocks(X, y[:20], block_rows=7)), memory, X)

"""Weights of rows in the relatives of LDG that are made of scatters: a weight is so many rows."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from relatives_reference import same_directions

from eigenfeat.ldg import (
    DirectLDA,
    GSVDDiscriminant,
    LocalFisher,
    MaximumMarginCriterion,
    PCAFisher,
    RegularizedFisher,
)
from eigenfeat.rows import ArrayBlocks

MEMBERS = {
    "ridge": RegularizedFisher(2),
    "direct": DirectLDA(2),
    "gsvd": GSVDDiscriminant(2),
    "margin": MaximumMarginCriterion(2),
}


def copy(name):
    return sklearn.clone(MEMBERS[name])


def make(rng, n, d):
    y = np.arange(n) % 3
    X = rng.standard_normal((n, d)) + 2.0 * rng.standard_normal((3, d))[y] + 5.0
    return X, np.array(["a", "b", "c"])[y], rng.integers(0, 4, n).astype(float)


def same(found, expected, rtol=1e-9):
    same_directions(found.components_, expected.components_, rtol)
    assert_allclose(
        np.linalg.norm(found.components_, axis=1),
        np.linalg.norm(expected.components_, axis=1),
        rtol=rtol,
    )
    assert_allclose(found.mean_, expected.mean_, rtol=1e-12)
    for values in ("eigenvalues_", "alphas_", "betas_"):
        if hasattr(expected, values):
            size = np.abs(getattr(expected, values)).max()
            assert_allclose(getattr(found, values), getattr(expected, values), atol=rtol * size)


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("shape", [(90, 5), (20, 60)], ids=["tall", "wide"])
def test_weights_are_repetitions(rng, name, shape):
    X, y, weight = make(rng, *shape)
    times = weight.astype(int)
    repeated = copy(name).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    same(copy(name).fit(X, y, weight), repeated)
    # Nothing but their ratios counts, however large they are.
    for scale in (1e-280, 0.3, 1e290):
        same(copy(name).fit(X, y, weight * scale), repeated)
    blocks = ArrayBlocks(X, y, weight * 1e150, block_rows=7)
    same(copy(name).fit(blocks), repeated)


def test_columns_that_are_constant_stay_out(rng):
    X, y, weight = make(rng, 60, 4)
    X[:, 2] = 0.1
    X[:, 3] = np.where(y == "a", 7.7, 3.3)
    model = RegularizedFisher(2).fit(X, y, weight * np.pi)
    assert_array_equal(model.components_[:, 2], 0.0)


def test_those_without_weights_refuse_blocks_with_some(rng):
    X, y, weight = make(rng, 60, 4)
    with pytest.raises(ValueError, match="sample_weight: expected blocks without weights"):
        PCAFisher().fit(ArrayBlocks(X, y, weight))
    for member in (PCAFisher, LocalFisher):
        with pytest.raises(TypeError, match="sample_weight"):
            member().fit(X, y, sample_weight=weight)

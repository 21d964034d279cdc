"""Columns that are reduced a part at a time."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD

import eigenfeat as ef
from eigenfeat.ldg import LDG, MaximumMarginCriterion, PartitionedReducer, RegularizedFisher

LOCAL = LDG(2, gamma=0.5, n_neighbors=3)


def rows(rng, n=60, d=20, dtype=np.float64):
    y = np.arange(n) % 3
    X = rng.standard_normal((n, d)) + y[:, None] * rng.standard_normal(d)
    return X.astype(dtype), y


@pytest.mark.parametrize(
    ("reducer", "dtype"),
    [(LOCAL, np.float64), (RegularizedFisher(), np.float32), (PCA(2), np.float64)],
)
def test_it_is_a_column_transformer_of_neighbouring_columns(rng, reducer, dtype):
    X, y = rows(rng, dtype=dtype)
    model = PartitionedReducer(reducer, part_size=6).fit(X, y)
    sizes = [len(part) for part in model.parts_]
    assert sizes == [5, 5, 5, 5]
    given = [(str(k), clone(reducer), part) for k, part in enumerate(model.parts_)]
    other = ColumnTransformer(given).fit(X, y)
    found = model.transform(X)
    assert found.dtype == dtype
    # Its slices have their columns one after the other, which PCA multiplies in another order.
    assert_allclose(found, other.transform(X), atol=1e4 * np.finfo(dtype).eps)
    assert found.shape == (60, 8)


def test_random_parts(rng):
    X, y = rows(rng)
    model = PartitionedReducer(LOCAL, part_size=7, partition="random", random_state=3).fit(X, y)
    assert_array_equal(np.sort(np.concatenate(model.parts_)), np.arange(20))
    assert any(np.any(np.diff(part) > 1) for part in model.parts_)
    again = clone(model).fit(X, y)
    assert all(map(np.array_equal, again.parts_, model.parts_))
    other = clone(model).set_params(random_state=4).fit(X, y)
    assert not all(map(np.array_equal, other.parts_, model.parts_))


def test_parts_that_are_given(rng):
    X, y = rows(rng, d=6)
    labels = ["b", "a", "b", "a", "a", "b"]
    model = PartitionedReducer(LOCAL, part_size=1, partition=labels).fit(X, y)
    assert [part.tolist() for part in model.parts_] == [[1, 3, 4], [0, 2, 5]]


def test_columns_of_one_value_are_in_no_part(rng):
    X, y = rows(rng)
    X[:, [0, 1, 2, 3, 4, 11]] = 7.0
    model = PartitionedReducer(LOCAL, part_size=5).fit(X, y)
    assert_array_equal(np.concatenate(model.parts_), [5, 6, 7, 8, 9, 10, *range(12, 20)])
    with pytest.raises(ValueError, match="X: expected columns that vary, got none"):
        PartitionedReducer(LOCAL).fit(np.ones((6, 4)), y[:6])


def test_sparse_rows(rng):
    kind = sparse.csc_matrix
    X, y = rows(rng)
    X[rng.random(X.shape) < 0.6] = 0.0
    model = PartitionedReducer(LOCAL, part_size=6).fit(X, y)
    other = PartitionedReducer(LOCAL, part_size=6).fit(kind(X), y)
    assert_allclose(other.transform(kind(X)), model.transform(X), atol=1e-12)


@pytest.mark.parametrize("reducer", [RegularizedFisher(2), TruncatedSVD(2, random_state=0)])
def test_reducers_need_not_take_sparse_rows(rng, reducer):
    X, y = rows(rng)
    found = PartitionedReducer(reducer, part_size=10).fit_transform(sparse.csr_array(X), y)
    expected = PartitionedReducer(reducer, part_size=10).fit_transform(X, y)
    assert_allclose(found, expected, atol=1e-8)


def test_blocks_and_mapped_rows(rng, tmp_path):
    X, y = rows(rng, n=90)
    model = PartitionedReducer(LOCAL, part_size=6).fit(X, y)
    blocks = ef.samples.ArrayBlocks(X, y, block_rows=17)
    other = PartitionedReducer(LOCAL, part_size=6).fit(blocks)
    expected = model.transform(X)
    # Local means take products of rows in another order in memory.
    assert_allclose(np.concatenate(list(other.transform(blocks))), expected, atol=1e-10)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    other = PartitionedReducer(LOCAL, part_size=6).fit(mapped, y)
    assert_allclose(other.transform(mapped), expected, atol=1e-10)
    other = PartitionedReducer(PCA(2), part_size=6).fit(mapped)
    assert other.transform(X).shape == (90, 8)
    with pytest.raises(ValueError, match="X: expected blocks without weights"):
        PartitionedReducer(LOCAL).fit(ef.samples.ArrayBlocks(X, y, np.ones(90)))
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="X: expected finite numbers"):
        PartitionedReducer(LOCAL).fit(ef.samples.ArrayBlocks(X, y))


@pytest.mark.long
def test_memory_is_by_the_part(tmp_path):
    """Rows of bytes in a file: neither all of them as floats nor a matrix of all columns."""
    n, d, size = 400, 20_000, 200
    rng = np.random.default_rng(0)
    X = rng.integers(0, 255, (n, d), dtype=np.uint8)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    reducer = MaximumMarginCriterion(2)
    PartitionedReducer(reducer, part_size=size).fit(X[:, :400], np.arange(n) % 2)
    tracemalloc.start()
    blocks = ef.samples.ArrayBlocks(mapped, np.arange(n) % 2)
    PartitionedReducer(reducer, part_size=size).fit(blocks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A block of bytes; a part in float64 with what the reducer makes of it; ranges of columns.
    assert peak < n * d + 8 * n * size * 8 + 100 * d + 8 * size**2 * 8
    assert peak < 8 * n * d / 2


def test_names_of_features(rng):
    names = PartitionedReducer(LOCAL, part_size=10).fit(*rows(rng, d=40)).get_feature_names_out()
    assert names.tolist() == [f"part{p}_ldg{k}" for p in range(4) for k in range(2)]

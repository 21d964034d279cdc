"""Rows that come as columns: moments with the bits of rows, from arrays and from files."""

from __future__ import annotations

import numpy as np
import pytest
from table_files import FORMATS, arrow_modules, write_rows, write_table

from eigenfeat import ClassMoments, open_rows
from eigenfeat.tables.flow import Buffers


def spread(X):
    """The same rows in an array whose columns are contiguous, with gaps between them."""
    columns = np.full((X.shape[1], len(X) + 5), np.nan, dtype=X.dtype).T
    columns[: len(X)] = X
    return columns[: len(X)]


LAYOUTS = {
    "Fortran": np.asfortranarray,
    "gaps": spread,
    "backwards": lambda X: np.asfortranarray(X[:, ::-1])[:, ::-1],
    "every other row": lambda X: np.asfortranarray(np.repeat(X, 2, axis=0))[::2],
    "misaligned": lambda X: np.frombuffer(
        b"." + np.asfortranarray(X).tobytes("F"), dtype=X.dtype, offset=1
    ).reshape(X.shape, order="F"),
    "a subclass": lambda X: np.asfortranarray(X).view(np.recarray),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_columns_give_the_bits_of_rows(rng, layout, dtype):
    for n, d in ((1, 3), (40, 1), (300, 35), (5000, 18)):
        X = rng.standard_normal((n, d)).astype(dtype) * 10 ** rng.uniform(-6, 6, d).astype(dtype)
        y, weight = rng.integers(0, 3, n), rng.uniform(0, 2, n)
        expected = ClassMoments().update(X, y).update(X, y, weight)
        columns = LAYOUTS[layout](X)
        np.testing.assert_array_equal(columns, X)
        for n_threads in (1, 2, 7):
            found = ClassMoments().update(columns, y, n_threads=n_threads)
            assert found.update(columns, y, weight, n_threads=n_threads) == expected


def test_scratch_that_is_used_again_does_not_show(rng):
    """Batches of more than 4 MB, whose scratch is kept, of falling and of rising size."""
    y = rng.integers(0, 4, 24000)
    rows, columns = ClassMoments(), ClassMoments()
    for n in (24000, 15000, 23000, 700, 24000):
        X = rng.standard_normal((n, 96), dtype=np.float32)
        rows.update(X, y[:n])
        columns.update(np.asfortranarray(X), y[:n])
        assert rows == columns


def test_a_bad_entry_of_a_column_leaves_the_moments_as_they_were(rng):
    X, y = np.asfortranarray(rng.standard_normal((500, 20))), rng.integers(0, 3, 500)
    moments = ClassMoments().update(X, y)
    before = moments.copy()
    X[321, 7] = np.inf
    with pytest.raises(ValueError, match=r"^X: expected finite numbers.* in row 321, column 7"):
        moments.update(X, y)
    with pytest.raises(ValueError, match=r"^X: expected 20 columns, got 19"):
        moments.update(X[:, :19], y)
    assert moments == before


def test_buffers_by_columns():
    for rows, dtype in ((1, np.float32), (7, np.float64), (160, np.float32), (512, np.float64)):
        pool = Buffers(rows, 5, np.dtype(dtype), by_columns=True)
        found = pool.take()
        assert found.shape == (rows, 5)
        assert found.strides[0] == found.itemsize
        assert found.strides[1] % 128 == 64
        found[:] = np.arange(5)
        place = found.ctypes.data
        del found
        assert pool.take().ctypes.data == place


@pytest.mark.parametrize("name", FORMATS)
def test_raw_blocks_have_the_same_rows(tmp_path, rng, name):
    if not name.endswith(("npy", "npz", "svm", "svm.gz")):
        arrow_modules()
    X, y = rng.standard_normal((1000, 6)).astype(np.float32), rng.integers(0, 3, 1000)
    path, options = write_rows(tmp_path, name, X, y)
    found = open_rows(path, block_rows=170, **options)
    checked, raw = list(found.blocks()), list(found.blocks(raw=True))
    assert [position for _, position in raw] == [position for _, position in checked]
    by_columns = not name.endswith(("npy", "npz", "svm", "svm.gz"))
    expected, moments = ClassMoments(), ClassMoments()
    for (block, _), (same, place) in zip(checked, raw, strict=True):
        assert same.start == block.start
        assert getattr(same.X, "flags", np.empty((2, 2)).flags).c_contiguous != by_columns
        expected.update(block.X, block.y)
        moments.update(same.X, same.y)
        again = next(found.blocks(place, raw=True), None)
        assert again is None or again[0].start == block.start + len(block)
    assert moments == expected


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "stream.arrow", "a.feather"])
def test_columns_of_other_types_are_converted(tmp_path, name, rng):
    pa = arrow_modules()
    n = 400
    columns = {
        "small": rng.integers(-9, 9, n).astype(np.int8),
        "half": rng.standard_normal(n).astype(np.float16),
        "single": rng.standard_normal(n).astype(np.float32),
        "large": rng.integers(0, 1 << 40, n),
        "truth": rng.integers(0, 2, n).astype(bool),
    }
    text = pa.array(rng.choice(["ä", "b", "long"], n)).dictionary_encode()
    table = pa.table(columns | {"kind": text})
    write_table(tmp_path / name, table, rows=150)
    X = np.column_stack([column.astype(np.float64) for column in columns.values()])
    y = np.array(text.to_pylist())
    expected, moments = ClassMoments(), ClassMoments()
    for start in range(0, n, 110):
        expected.update(X[start : start + 110], y[start : start + 110])
    for block, _ in open_rows(tmp_path / name, "kind", block_rows=110).blocks(raw=True):
        moments.update(block.X, block.y)
    assert moments == expected

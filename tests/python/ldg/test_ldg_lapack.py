"""Eigenpairs by a call of LAPACK without Python's lock, against SciPy's with it."""

import numpy as np
import pytest
from scipy.linalg import eigh

from eigenfeat.ldg._solving.lapack import eigenpairs_between


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 5), (590, 599), (17, 40)])
def test_pairs_are_scipys(first, last):
    root = np.random.default_rng(0).standard_normal((600, 400))
    matrix = root @ root.T - 3 * np.eye(600)
    before = matrix.copy()
    values, vectors = eigenpairs_between(matrix, first, last)
    expected, _ = eigh(matrix, subset_by_index=(first, last), driver="evr")
    size = np.abs(matrix).max()
    assert values.shape == (last - first + 1,)
    assert vectors.shape == (600, last - first + 1)
    np.testing.assert_allclose(values, expected, atol=1e-11 * size)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=1e-12)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-11 * size)
    assert np.array_equal(matrix, before)


def test_other_layouts_and_types():
    root = np.random.default_rng(1).standard_normal((520, 520))
    matrix = root + root.T
    values, vectors = eigenpairs_between(matrix, 0, 3)
    for same in (np.asfortranarray(matrix), matrix[::-1][::-1], np.tile(matrix, 2)[:, :520]):
        again, _ = eigenpairs_between(same, 0, 3)
        assert np.array_equal(again, values)
    assert vectors.flags.c_contiguous

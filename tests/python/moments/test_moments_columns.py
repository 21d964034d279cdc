"""Rows that come as columns: moments with the bits of rows."""

import numpy as np
import pytest

from eigenfeat import ClassMoments


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


@pytest.mark.parametrize(
    ("layout", "dtype"),
    [*((name, np.float64) for name in LAYOUTS), ("gaps", np.float32), ("backwards", np.float32)],
)
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

"""Half waves multiplied as they are made, and projections of rows that are mostly 0."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from eigenfeat.expansion.features import ExpandedFeatures, core_rows, expand
from eigenfeat.linear.logistic import MultinomialLogit

DTYPES = [np.float32, np.float64]


def expanded(rng, n, F, expansion, dtype, *, stored=True, filled=1.0):
    """Rows (n, 24) of which a share is not 0, on F directions with an offset."""
    X = rng.standard_normal((n, 24)) * (rng.random((n, 24)) < filled)
    V, offset = rng.standard_normal((24, F)) / 5, rng.standard_normal(F) / 5
    rows = ExpandedFeatures(X.astype(dtype), V.astype(dtype), offset.astype(dtype), expansion)
    return rows.stored() if stored else rows


def formed(rows):
    """The features and a constant, in float64."""
    phi = rows.toarray().astype(float)
    return np.hstack([phi, np.ones((len(phi), 1))])


def assert_near(got, exact, sizes, dtype):
    """Within rounding of sums whose terms' absolute values sum to `sizes`."""
    assert np.all(np.abs(got - exact) <= 40 * np.finfo(dtype).eps * (sizes + 1e-30))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("expansion", ["half_wave", "shifted"])
@pytest.mark.parametrize(("n", "F"), [(1, 16), (63, 17), (64, 40), (65, 8), (200, 131)])
def test_products_with_formed_features(rng, dtype, expansion, n, F):
    rows = expanded(rng, n, F, expansion, dtype)
    core, phi = core_rows(rows, True), formed(rows)
    for k in (1, 2, 3, 5, 6, 10, 11, 26, 64, 65):
        W = rng.standard_normal((phi.shape[1], k)).astype(dtype)
        R = rng.standard_normal((n, k)).astype(dtype)
        assert_near(core.scores(W, 2), phi @ W, phi @ np.abs(W), dtype)
        assert_near(core.products(R, 2), phi.T @ R, phi.T @ np.abs(R), dtype)


@pytest.mark.parametrize("stored", [True, False])
def test_every_number_of_threads_gives_the_same_bits(rng, stored):
    rows = expanded(rng, 1500, 70, "half_wave", np.float32, stored=stored, filled=0.2)
    y = rng.integers(7, size=1500)
    core = core_rows(rows, True)
    W = rng.standard_normal((421, 7)).astype(np.float32)
    weights = [MultinomialLogit(n_threads=t).fit(rows, y).coef_ for t in (1, 2, 7)]
    for other, threads in zip(weights[1:], (2, 7), strict=True):
        assert_array_equal(other, weights[0])
        assert_array_equal(core.scores(W, threads), core.scores(W, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("filled", [0.0, 0.05, 0.3, 0.34, 0.36])
@pytest.mark.parametrize("F", [7, 16, 150])
def test_projections_of_rows_that_are_mostly_zero(rng, dtype, filled, F):
    X = (rng.standard_normal((700, 60)) * (rng.random((700, 60)) < filled)).astype(dtype)
    V = rng.standard_normal((60, F)).astype(dtype)
    for offset in (None, rng.standard_normal(F).astype(dtype)):
        exact = X.astype(float) @ V + (0 if offset is None else offset)
        sizes = np.abs(X).astype(float) @ np.abs(V) + (0 if offset is None else np.abs(offset))
        got = expand(X, V, offset, expansion="none", n_threads=2)
        assert_near(got, exact, sizes, dtype)
        assert_array_equal(expand(X, V, offset, expansion="none", n_threads=7), got)

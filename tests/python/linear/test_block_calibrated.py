"""Calibrated least squares on blocks of rows against the same rows in memory."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from block_support import FarBlocks, mapped
from logit_problems import problem

from eigenfeat import CalibratedLeastSquares
from eigenfeat.rows import ArrayBlocks, GeneratedBlocks

N_ITERATIONS = CalibratedLeastSquares().n_iterations


@pytest.fixture(scope="module")
def digits():
    return problem("digits")


def agree(found, memory, X, rtol):
    ours, theirs = found.predict_proba(X), memory.predict_proba(X)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=rtol)
    np.testing.assert_allclose(found.error_history_, memory.error_history_, rtol=rtol)
    np.testing.assert_allclose(found.validation_history_, memory.validation_history_, rtol=rtol)
    np.testing.assert_array_equal(found.classes_, memory.classes_)
    assert (found.n_iter_, found.n_features_in_) == (memory.n_iter_, memory.n_features_in_)
    assert found.n_rows_ == pytest.approx(memory.n_rows_, rel=1e-12)


@pytest.mark.parametrize(
    ("size", "kind", "dtype"),
    [
        (1, np.asarray, np.float64),
        (64, np.asarray, np.float32),
        (64, sp.csr_matrix, np.float64),
        (600, sp.csr_matrix, np.float32),
    ],
)
def test_blocks_of_any_size_give_the_fit_in_memory(digits, dtype, kind, size):
    X, y = kind(digits[0].astype(dtype)), digits[1]
    if size == 1:
        X, y = X[:30], y[:30]
    blocks = FarBlocks(X, y, block_rows=size)
    found = CalibratedLeastSquares().fit(blocks)
    # Steps are solved in a float32 metric, of rows that come in another order; with 30 of them
    # some BLAS kernels leave errors of 1e-3 3e-6 apart.
    single = 5e-3 if size == 1 else 2e-3
    agree(found, CalibratedLeastSquares().fit(X, y), X, single if dtype == np.float32 else 1e-4)
    assert blocks.passes <= 5 + 3 * (N_ITERATIONS + 1)


@pytest.mark.parametrize(
    "options",
    [
        {"fit_intercept": False},
        {"early_stopping": True, "n_iterations": 12},
        {"gram_rows": 300},
        {"gram_rows": None},
        {"calibration_powers": 1},
        {"n_iterations": 0},
        {"ridge": 0.01},
    ],
    ids=str,
)
def test_options_mean_the_same_on_blocks(digits, options):
    X, y = digits
    weight = np.random.RandomState(0).randint(0, 3, len(y)) / 2.0  # some rows have none
    memory = CalibratedLeastSquares(**options).fit(X, y, weight)
    found = CalibratedLeastSquares(**options).fit(FarBlocks(X, y, weight, block_rows=77))
    agree(found, memory, X, 1e-3)


def test_threads_change_no_bit_and_mapped_rows_are_blocks(digits, tmp_path):
    X, y = digits
    fits = [
        CalibratedLeastSquares(n_threads=n).fit(ArrayBlocks(X, y, block_rows=200))
        for n in (1, 2, 7)
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.coef_, fits[0].coef_)
        np.testing.assert_array_equal(other.calibration_.weights, fits[0].calibration_.weights)
    on_disk = CalibratedLeastSquares().fit(mapped(tmp_path / "X", X), y)
    whole = CalibratedLeastSquares().fit(ArrayBlocks(X, y))
    np.testing.assert_array_equal(on_disk.coef_, whole.coef_)


def test_errors_leave_the_estimator_as_it_was(digits):
    X, y = digits
    model = CalibratedLeastSquares().fit(X[:300], y[:300])
    before = dict(vars(model))
    passes = iter(range(100))

    def changing():
        rows = X + next(passes) * 1e-3
        return iter([(rows[:500], y[:500]), (rows[500:], y[500:])])

    for blocks, text in (
        (GeneratedBlocks(changing), "the blocks have changed"),
        (ArrayBlocks(X, np.zeros(len(y), int)), "at least two classes"),
        (ArrayBlocks(X), "expected the labels of the samples from 0 on"),
        ([(X, y), (X, y)], "GeneratedBlocks"),
    ):
        with pytest.raises(ValueError, match=text):
            model.fit(blocks)
        assert vars(model) == before
    with pytest.raises(ValueError, match="expected None with blocks"):
        model.fit(ArrayBlocks(X, y), y)

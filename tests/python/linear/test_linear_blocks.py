"""The logit and calibrated least squares give equal fits to rows in blocks and in memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from block_support import FarBlocks
from logit_problems import problem

from eigenfeat import CalibratedLeastSquares, MultinomialLogit
from eigenfeat.samples import ArrayBlocks


def logit(**options):
    return MultinomialLogit(**{"tol": 1e-11, "max_iter": 500} | options)


@pytest.fixture(scope="module")
def digits():
    return problem("digits")


def agree(found, memory, X, rtol):
    """Compare scores, as coefficients of rare columns are hardly determined."""
    scores, expected = found.decision_function(X), memory.decision_function(X)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=rtol * np.abs(expected).max())
    np.testing.assert_array_equal(found.classes_, memory.classes_)
    assert found.n_features_in_ == memory.n_features_in_
    for name in ("objective_", "error_history_", "n_rows_"):
        if hasattr(memory, name):
            np.testing.assert_allclose(getattr(found, name), getattr(memory, name), rtol=rtol)


@pytest.mark.parametrize(
    ("make", "size", "kind", "dtype", "rtol"),
    [
        (logit, 1, sp.csr_array, np.float32, 1e-3),
        (logit, 64, np.asarray, np.float32, 1e-3),
        (logit, 64, sp.csr_matrix, np.float64, 1e-5),
        # Steps are solved in a float32 metric, of rows that come in another order.
        (CalibratedLeastSquares, 1, np.asarray, np.float64, 1e-4),
        (CalibratedLeastSquares, 64, sp.csr_matrix, np.float64, 1e-4),
        (CalibratedLeastSquares, 600, sp.csr_matrix, np.float32, 2e-3),
    ],
)
def test_blocks_of_any_size_give_the_fit_in_memory(digits, make, size, kind, dtype, rtol):
    X, y = kind(digits[0].astype(dtype)), digits[1]
    if size == 1:
        X, y = X[:30], y[:30]
    found = make().fit(FarBlocks(X, y, block_rows=size))
    agree(found, make().fit(X, y), X, rtol)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (logit, {"fit_intercept": False}),
        (logit, {"ridge_scale": "common"}),
        (logit, {"l2": 0.5, "penalty": 0.0}),
        (CalibratedLeastSquares, {"n_iterations": 0}),
    ],
)
def test_fits_with_options_on_blocks_are_those_in_memory(digits, make, options):
    X, y = digits
    weight = np.random.RandomState(0).randint(0, 3, len(y)) / 2.0  # some are 0
    memory = make(**options).fit(X, y, weight)
    found = make(**options).fit(FarBlocks(X, y, weight, block_rows=77))
    agree(found, memory, X, 1e-4 if make is logit else 1e-3)


def test_a_path_of_penalties_on_blocks(digits):
    X, y = digits
    blocks = FarBlocks(X, y, block_rows=200)
    memory = list(logit().iterate_path(X, y, [0.3, 0.03]))
    found = list(logit().iterate_path(blocks, None, [0.3, 0.03]))
    for model, expected in zip(found, memory, strict=True):
        agree(model, expected, X, 1e-5)


# ---- errors --------------------------------------------------------------------------------------


class Changing(FarBlocks):
    """Blocks whose samples `change` changes before pass number `at`."""

    def __init__(self, X, y, at, change):
        super().__init__(X, y, block_rows=100)
        self.samples, self.at, self.change = (X, y), at, change

    def reduce(self, *arguments):
        if self.passes == self.at:
            self.inner = ArrayBlocks(*self.change(*self.samples), block_rows=100)
        return super().reduce(*arguments)


def spoil(X, y):
    X = X.copy()
    X[250, 3] += 1
    return X, y


def shorten(X, y):
    return X[:-1], y[:-1]


def narrow(X, y):
    return X[:, :-1], y


def relabel(X, y):
    y = y.copy()
    y[5] = 77
    return X, y


def interrupt(X, y):
    raise KeyboardInterrupt


@pytest.mark.parametrize("make", [MultinomialLogit, CalibratedLeastSquares])
@pytest.mark.parametrize(
    ("change", "at", "error", "message"),
    [
        (spoil, 1, ValueError, "X: expected the 600 samples of the first .* got 600 with other"),
        (spoil, 4, ValueError, "X: expected the 600 samples of the first .* got 600 with other"),
        (shorten, 1, ValueError, "X: expected the 600 samples of the first pass .* got 599: the"),
        (narrow, 4, ValueError, r"X: expected 64 columns, got 63 in the block from row \d+ on"),
        (relabel, 4, ValueError, r"y: expected labels in \[0, 1, .*\], got 77"),
        (interrupt, 4, KeyboardInterrupt, None),
    ],
)
def test_blocks_that_change_leave_the_model_as_it_was(digits, make, change, at, error, message):
    model = make().fit(*digits)
    before = dict(vars(model))
    with pytest.raises(error, match=message):
        model.fit(Changing(*digits, at, change))
    assert vars(model) == before

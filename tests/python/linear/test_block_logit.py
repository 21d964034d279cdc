"""The logit on blocks of rows against the same rows in memory."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from block_support import FarBlocks, mapped
from logit_problems import problem

from eigenfeat import CalibratedLeastSquares, MultinomialLogit
from eigenfeat.linear.logit_problem import LogitProblem, Penalty
from eigenfeat.rows import ArrayBlocks, GeneratedBlocks
from eigenfeat.rows.labelled import MemoryRows, scan_blocks

TIGHT = {"tol": 1e-11, "max_iter": 500}


@pytest.fixture(scope="module")
def digits():
    return problem("digits")


def agree(found, memory, X, rtol):
    """Rare columns' coefficients are hardly determined, so that logits are compared."""
    ours, theirs = found.decision_function(X), memory.decision_function(X)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=rtol * np.abs(theirs).max())
    np.testing.assert_array_equal(found.classes_, memory.classes_)
    assert found.n_features_in_ == memory.n_features_in_


@pytest.mark.parametrize(
    ("size", "kind", "dtype"),
    [
        (1, sp.csr_array, np.float32),
        (64, np.asarray, np.float32),
        (64, sp.csr_matrix, np.float64),
        (600, sp.csr_array, np.float64),
    ],
)
def test_blocks_of_any_size_give_the_fit_in_memory(digits, dtype, kind, size):
    X, y = kind(digits[0].astype(dtype)), digits[1]
    if size == 1:
        X, y = X[:60], y[:60]
    memory = MultinomialLogit(**TIGHT).fit(X, y)
    found = MultinomialLogit(**TIGHT).fit(FarBlocks(X, y, block_rows=size))
    agree(found, memory, X, 1e-3 if dtype == np.float32 else 1e-5)
    np.testing.assert_allclose(found.objective_, memory.objective_, rtol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"fit_intercept": False},
        {"gram_rows": 300},
        {"gram_rows": None},
        {"gram_rows": 20},
        {"l2": 0.5, "penalty": 0.0},
    ],
    ids=str,
)
def test_options_mean_the_same_on_blocks(digits, options):
    X, y = digits
    weight = np.random.RandomState(0).randint(0, 3, len(y)) / 2.0  # some rows have none
    memory = MultinomialLogit(**TIGHT | options).fit(X, y, weight)
    found = MultinomialLogit(**TIGHT | options).fit(FarBlocks(X, y, weight, block_rows=77))
    agree(found, memory, X, 1e-4)


def test_columns_far_from_zero_are_centred_alike(digits):
    X, y = digits[0] + 1000.0 * (np.arange(64) % 2), digits[1]
    memory = MultinomialLogit(**TIGHT).fit(X, y)
    found = MultinomialLogit(**TIGHT).fit(FarBlocks(X, y, block_rows=100))
    Z = X - X.mean(axis=0)
    scores = [m.decision_function(X) for m in (memory, found)]
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-4 * np.abs(Z).max())
    np.testing.assert_allclose(found.objective_, memory.objective_, rtol=1e-9)


def test_a_path_and_a_warm_start_go_by_blocks(digits):
    X, y = digits
    blocks = FarBlocks(X, y, block_rows=200)
    memory = MultinomialLogit(**TIGHT).fit_path(X, y, [0.3, 0.03])
    found = MultinomialLogit(**TIGHT).fit_path(blocks, None, [0.3, 0.03])
    for ours, theirs in zip(found, memory, strict=True):
        agree(ours, theirs, X, 1e-5)
    again = found[-1].set_params(warm_start=True).fit(blocks)
    assert again.n_iter_[0] <= 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_summed_gram_matrix_makes_the_metric_of_rows_in_memory(digits, dtype):
    X, y = digits[0].astype(dtype), digits[1]
    rows = scan_blocks(ArrayBlocks(X, y, block_rows=97))
    ours = LogitProblem(rows, constant=True)
    theirs = LogitProblem(MemoryRows.of(X, y, None, n_threads=1), constant=True)
    G = np.random.RandomState(1).randn(65, 10)
    penalty = Penalty(0.03, 0.5, 0.0)
    assert 600 * 64 > 65 * 66  # the matrix is smaller than the rows
    for sample in (None, np.arange(0, 600, 2), np.arange(40)):
        solved = [p.metric(penalty, 1.0, sample, coarse=True).solve(G, 1) for p in (ours, theirs)]
        np.testing.assert_allclose(*solved, atol=1e-3 * np.abs(solved[1]).max())


class Changing(FarBlocks):
    """Something is done to the rows before the pass of this number."""

    def __init__(self, X, y, at, change):
        super().__init__(X.copy(), y.copy(), block_rows=100)
        self.at, self.change = at, change

    def reduce(self, *arguments):
        if self.passes == self.at:
            self.change(self.inner)
        return super().reduce(*arguments)


def spoil(inner):
    inner.X[250, 3] += 1


def shorten(inner):
    inner.X, inner.y = inner.X[:-1], inner.y[:-1]


def narrow(inner):
    inner.X = inner.X[:, :-1]


def relabel(inner):
    inner.y[5] = 77


@pytest.mark.parametrize("at", [1, 4])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            spoil,
            r"X: expected the 600 samples of the first pass in every pass, got 600 with other",
        ),
        (
            shorten,
            r"X: expected the 600 samples of the first pass in every pass, got 599: the bloc",
        ),
        (narrow, r"X: expected 64 columns, got 63 in the block from row \d+ on"),
        (relabel, r"y: expected labels in \[0, 1, .*\], got 77"),
    ],
)
def test_blocks_that_change_are_noticed(digits, at, change, message):
    model = MultinomialLogit(gram_rows=100).fit(*digits)
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match=message):
        model.fit(Changing(*digits, at, change))
    assert model.__dict__ == before


def interrupt(inner):
    raise KeyboardInterrupt


def test_an_interrupted_fit_leaves_the_model_as_it_was(digits):
    model = MultinomialLogit().fit(*digits)
    before = dict(model.__dict__)
    with pytest.raises(KeyboardInterrupt):
        model.fit(Changing(*digits, 5, interrupt))
    assert model.__dict__ == before


def parts_with(X, y, weight=None):
    columns = (X, y) if weight is None else (X, y, weight)
    return [tuple(c[i : i + 100] for c in columns) for i in range(0, len(y), 100)]


def test_bad_values_are_named_by_row_and_column(digits):
    X, y = digits[0].copy(), digits[1]
    for bad in (np.nan, np.inf):
        X[417, 9] = bad
        for kind in (np.asarray, sp.csr_matrix):
            with pytest.raises(ValueError, match=r"X: expected finite.* in row 417, column 9"):
                MultinomialLogit().fit(ArrayBlocks(kind(X), y, block_rows=100))
    weight = np.ones(600)
    weight[333] = -1
    with pytest.raises(ValueError, match=r"sample_weight: .* got -1.0 in row 333"):
        MultinomialLogit().fit(GeneratedBlocks(parts_with(*digits, weight)))
    labels = y.astype(float)
    labels[555] = np.nan
    text = r"y: expected a label for every sample, got 1 missing value, the first in row 555"
    with pytest.raises(ValueError, match=text):
        MultinomialLogit().fit(GeneratedBlocks(parts_with(digits[0], labels)))


def test_calibrated_scores_come_block_by_block(digits, tmp_path):
    X, y = digits
    model = CalibratedLeastSquares().fit(X, y)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        parts = list(getattr(model, method)(ArrayBlocks(X, block_rows=250)))
        whole = getattr(model, method)(X)
        np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-9, atol=1e-12)
        of_file = getattr(model, method)(mapped(tmp_path / method, X))
        np.testing.assert_allclose(of_file, whole, rtol=1e-9, atol=1e-12)


def test_a_survey_knows_rows_by_their_numbers(digits):
    X, y = digits
    weight = (np.arange(600) % 3 > 0) * 2.0
    rows = scan_blocks(FarBlocks(X, y, weight, block_rows=101))
    kept = np.flatnonzero(weight)
    np.testing.assert_array_equal(rows.classes[rows.codes], y[kept])
    wanted = np.array([7, 3, 399, 0, 7])[:4]
    drawn = rows.take(wanted)
    np.testing.assert_array_equal(drawn.X, X[kept[wanted]])
    np.testing.assert_array_equal(drawn.y, y[kept[wanted]])
    half = rows.subset(np.arange(0, 400, 2))
    np.testing.assert_array_equal(half.codes, y[kept[::2]])
    np.testing.assert_array_equal(half.subset([5, 9]).take([1]).X[0], X[kept[18]])

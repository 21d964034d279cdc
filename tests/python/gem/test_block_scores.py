"""Accuracy of a model on blocks of rows equals that on the same rows in memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from flat_gem import gem_classifier

import eigenfeat as ef
from eigenfeat.samples import ArrayBlocks, GeneratedBlocks

CLASSIFIERS = (
    gem_classifier(n_directions=2),
    ef.GEMEnsemble(gem_classifier(n_directions=1), n_members=2),
    ef.GEMClassifierCV(grid={"logit__penalty": [0.1, 1.0]}, cv=2),
    ef.MultinomialLogit(),
    ef.CalibratedLeastSquares(n_iterations=2),
)


@pytest.fixture
def problem(rng):
    y = np.array(["ant", "bee", "moth"])[np.arange(300) % 3]
    return rng.standard_normal((300, 4)) * (1 + np.arange(300)[:, None] % 3) + 0.3, y


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda one: type(one).__name__)
def test_scores_of_blocks_are_those_of_rows(model, problem, rng, tmp_path):
    X, y = problem
    model.fit(X[:200], y[:200])
    weight = rng.integers(0, 4, 300) * 0.5
    expected = np.mean(model.predict(X) == y)
    weighted = np.average(model.predict(X) == y, weights=weight)
    parts = [(X[:7], y[:7]), (X[7:8], y[7:8]), (X[8:8], y[8:8]), (X[8:], y[8:])]
    for blocks in (
        ArrayBlocks(X, y, block_rows=64),
        ArrayBlocks(sp.csr_matrix(X), y, block_rows=64),
        GeneratedBlocks(parts),
        iter(parts),
        lambda: iter(parts),
    ):
        assert model.score(blocks) == pytest.approx(expected, abs=1e-15)
    assert model.score(X, y) == pytest.approx(expected, abs=1e-15)
    found = model.score(ArrayBlocks(X, y, weight, block_rows=50))
    assert found == pytest.approx(weighted, abs=1e-14)
    assert model.score(X, y, sample_weight=weight) == pytest.approx(weighted, abs=1e-14)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert model.score(mapped, y) == pytest.approx(expected, abs=1e-15)
    rows = ef.open_rows(tmp_path / "X.npy", block_rows=100)
    with pytest.raises(
        ValueError, match=r"^y: expected the labels of the samples from 0 on, got No"
    ):
        model.score(rows)
    with pytest.raises(
        ValueError, match=r"^y: expected None with blocks of samples, which contain it"
    ):
        model.score(ArrayBlocks(X, y), y)
    with pytest.raises(ValueError, match=r"^y: expected the labels of the samples, got None$"):
        model.score(X)
    with pytest.raises(ValueError, match=r"^sample_weight: expected at least one positive weight"):
        model.score(ArrayBlocks(X, y, np.zeros(300)))
    with pytest.raises(ValueError, match=r"^X: expected 4 columns, got 3 in the block from row 0"):
        model.score(ArrayBlocks(X[:, :3], y))
    bad = X.copy()
    bad[120, 1] = np.nan
    with pytest.raises(ValueError, match=r"row 120, column 1"):
        model.score(ArrayBlocks(bad, y, block_rows=50))

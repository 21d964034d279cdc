"""Predictions of FisherLDA are those of linear discriminant analysis."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat import FisherLDA
from eigenfeat.rows import ArrayBlocks


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("scale", ["none", "columns"])
def test_they_are_scikit_learns(load, scale):
    X, y = load(return_X_y=True)
    X, y = X[:-20], y[:-20]  # so that priors differ
    ours = FisherLDA(ridge=0.0, scale=scale).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, y) == theirs.score(X, y)


def test_labels_weights_batches_and_blocks():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    model = FisherLDA().fit(X, names, weight)
    repeated = FisherLDA().fit(np.repeat(X, weight, 0), np.repeat(names, weight))
    assert_allclose(model.predict_proba(X), repeated.predict_proba(X), atol=1e-9)
    assert set(model.predict(X)) == {"a", "b", "c"}
    stream = FisherLDA().partial_fit(X[::2], y[::2], classes=[0, 1, 2, 3])
    stream.partial_fit(X[1::2], y[1::2])
    found = stream.predict_proba(X)
    assert_allclose(found[:, :3], FisherLDA().fit(X, y).predict_proba(X), atol=1e-9)
    assert_array_equal(found[:, 3], 0.0)
    blocks = FisherLDA().fit(ArrayBlocks(X, y, block_rows=40))
    parts = list(blocks.predict(ArrayBlocks(X, y, block_rows=40)))
    assert_array_equal(np.concatenate(parts), FisherLDA().fit(X, y).predict(X))


def test_float32_stays():
    X, y = load_iris(return_X_y=True)
    assert FisherLDA().fit(X, y).predict_proba(X.astype(np.float32)).dtype == np.float32

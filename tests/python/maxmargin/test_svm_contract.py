"""MulticlassSVM as an estimator: scikit-learn's checks, errors that change nothing, copies."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

from eigenfeat.maxmargin import MulticlassSVM


@pytest.fixture(scope="module")
def rows():
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def state(model):
    return pickle.dumps(sorted(model.__dict__.items()))


def test_a_warm_start_needs_the_same_rows(rows):
    X, y = rows
    model = MulticlassSVM(warm_start=True).fit(X, y)
    before = state(model)
    with pytest.raises(ValueError, match="expected the 178 samples and 3 classes"):
        model.fit(X[:100], y[:100])
    assert state(model) == before


def test_what_is_left_is_warned_about(rows):
    X, y = rows
    with pytest.warns(
        ConvergenceWarning, match="2 epochs left a gap of .* raise max_iter"
    ) as caught:
        MulticlassSVM(tol=1e-12, max_iter=2).fit(X, y)
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match="give float64 samples") as caught:
        MulticlassSVM(tol=1e-14, C=0.1).fit(X.astype(np.float32), y)

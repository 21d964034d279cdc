"""Contributions of views and pairs add up to the logits."""

import numpy as np
import pandas as pd
import pytest
from flat_gem import gem_classifier
from sklearn.datasets import load_breast_cancer, load_wine

from eigenfeat import TableClassifier
from eigenfeat.tables import contributions


def logits(model, X):
    out = model.decision_function(X)
    if out.ndim == 1:
        out = out[:, None] * [-0.5, 0.5]
    return out - out.mean(axis=1, keepdims=True)


def assert_sums(model, X, background=None):
    found = contributions(model, X, background)
    total = found.baseline + found.by_view.sum(axis=1)
    size = np.abs(total).max()
    np.testing.assert_allclose(total, logits(model, X), atol=2e-5 * size)
    gem = [i for i, name in enumerate(found.views) if name.startswith("gem")]
    np.testing.assert_allclose(
        found.by_pair.sum(axis=1), found.by_view[:, gem].sum(axis=1), atol=1e-9 * size
    )
    zero = contributions(model, X if background is None else background, background)
    np.testing.assert_allclose(zero.by_view.mean(axis=0), 0, atol=1e-9 * size)
    return found


@pytest.mark.parametrize("views", ["gem", ["columns", "splines", "gem", "kernel"]])
def test_they_add_up_to_the_logits(views):
    X, y = load_wine(return_X_y=True)
    model = TableClassifier(views=views).fit(X[::2], y[::2])
    found = assert_sums(model, X[1::2], X[::2])
    used = [view.name for view in model.views_ if view.weight > 0]
    assert found.views == (["gem"] if views == "gem" else used)
    if views == "gem":
        assert {tuple(pair) for pair in found.pairs} <= {
            (a, b) for a in range(3) for b in range(3) if a != b
        }


@pytest.mark.parametrize("options", [{"include_input": True}, {"depth": 2}])
def test_layers_and_columns_beside_gem(options):
    X, y = load_wine(return_X_y=True)
    model = gem_classifier(**options).fit(X, y)
    found = contributions(model, X)
    total = found.baseline + found.by_view.sum(axis=1)
    np.testing.assert_allclose(total, logits(model, X), atol=2e-5 * np.abs(total).max())


def test_two_classes_in_a_frame_with_gaps():
    X, y = load_breast_cancer(return_X_y=True)
    frame = pd.DataFrame(X[:200, :5], columns=list("abcde"))
    frame["kind"] = np.where(X[:200, 6] > 0.1, "high", "low")
    frame.loc[::7, "a"] = np.nan
    model = TableClassifier().fit(frame, y[:200])
    found = assert_sums(model, frame)
    assert found.by_view.shape == (200, len(found.views), 2)
    np.testing.assert_allclose(found.by_view.sum(axis=2), 0, atol=1e-9)

"""Contributions of views, pairs and columns add up to the logits and predictions."""

import numpy as np
import pandas as pd
import pytest
from flat_gem import gem_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from eigenfeat import GEM, TableClassifier, TableRegressor
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
def test_contributions_add_up_to_the_logits(views):
    X, y = load_wine(return_X_y=True)
    model = TableClassifier(views=views).fit(X[::2], y[::2])
    found = assert_sums(model, X[1::2], X[::2])
    used = [view.name for view in model.views_ if view.weight > 0]
    assert found.views == (["gem"] if views == "gem" else used)
    additive = [i for i, name in enumerate(found.views) if name in ("columns", "splines")]
    sums = found.by_view[:, additive].sum(axis=1)
    np.testing.assert_allclose(found.by_column.sum(axis=1), sums, atol=1e-4)
    if views == "gem":
        assert {tuple(pair) for pair in found.pairs} <= {
            (a, b) for a in range(3) for b in range(3) if a != b
        }


@pytest.mark.parametrize("options", [{"expansion": "with_input"}, {"depth": 2}])
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


def table(n):
    """A frame with categories and gaps, and a target of single columns."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(n), "b": rng.standard_normal(n)})
    frame["kind"] = rng.choice(["low", "mid", "high"], n)
    frame["c"] = rng.standard_normal(n)
    y = np.sin(2 * frame["a"]) + (frame["kind"] == "mid") + 0.3 * frame["c"]
    frame.loc[rng.random(n) < 0.1, "b"] = np.nan
    return frame, y.to_numpy()


def test_contributions_add_up_to_the_predictions_of_a_regressor():
    frame, y = table(400)
    model = TableRegressor(["columns", "splines", "gem_ranks", "kernel", "forest"]).fit(frame, y)
    found = contributions(model, frame[:50], background=frame)
    assert found.classes is None
    assert found.views == [view.name for view in model.views_ if view.weight > 0]
    total = found.baseline + found.by_view.sum(axis=1)
    np.testing.assert_allclose(total[:, 0], model.predict(frame[:50]), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.baseline[0], model.predict(frame).mean())
    assert found.by_pair.shape == (50, 0, 1)


@pytest.mark.parametrize("views", ["columns", "splines", ["columns", "splines"]])
def test_columns_add_up_to_additive_predictions(views):
    frame, y = table(400)
    model = TableRegressor(views).fit(frame, np.column_stack([y, -2 * y]))
    found = contributions(model, frame)
    assert list(found.columns) == ["a", "b", "kind", "c"]
    rest = found.baseline + found.by_column.sum(axis=1) - model.predict(frame)
    shift = np.median(rest, axis=0)  # comes from the samples whose predictions are clipped
    assert np.abs(shift).max() < 0.01
    assert (np.abs(rest - shift).max(axis=1) < 1e-5).mean() > 0.95
    np.testing.assert_allclose(found.by_column[:, :, 1], -2 * found.by_column[:, :, 0], atol=1e-6)
    for name in ("kind", "c"):
        part = found.by_column[:, list(frame).index(name), 0]
        truth = {"kind": (frame["kind"] == "mid") * 1.0, "c": 0.3 * frame["c"]}[name]
        assert np.corrcoef(part, truth)[0, 1] > 0.95
    same = frame.copy()
    same["a"] = same["a"].iloc[0]
    constant = contributions(model, same, background=frame).by_column[:, 0]
    np.testing.assert_allclose(constant, np.broadcast_to(constant[:1], constant.shape), atol=1e-9)


def test_models_without_a_pool_have_no_parts_of_columns():
    X, y = load_diabetes(return_X_y=True)
    assert not contributions(TableRegressor("kernel").fit(X, y), X).by_column.any()
    with pytest.raises(ValueError, match="model: expected a fitted TableClassifier, TableRegress"):
        contributions(GEM().fit(X, y > 100), X)

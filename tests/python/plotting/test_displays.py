"""Displays keep what they draw, and draw on the axes that they are given."""

from __future__ import annotations

import numpy as np
import pytest
from every_estimator import X, Y

import eigenfeat as ef
from eigenfeat.plotting import EmbeddingDisplay, ReliabilityDisplay

pytest.importorskip("matplotlib")


def new_axes():
    from matplotlib.figure import Figure

    return Figure().subplots()


def test_an_embedding():
    model = ef.LDG(n_components=2, gamma=0.5, n_neighbors=5).fit(X, Y)
    ax = new_axes()
    display = EmbeddingDisplay.from_estimator(model, X, Y, ax=ax, title="rows")
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_title() == "rows"
    drawn = np.concatenate([points.get_offsets() for points in ax.collections])
    expected = np.concatenate([model.transform(X)[label == Y] for label in range(3)])
    assert np.allclose(drawn, expected)
    assert np.allclose(np.concatenate([one.get_offsets() for one in display.points_]), expected)
    assert display.plot().ax_ is not ax
    again = EmbeddingDisplay.from_predictions(Y, model.transform(X))
    assert np.array_equal(again.features, display.features)


def test_reliability_against_plain_loops():
    model = ef.MultinomialLogit().fit(X, Y)
    ax = new_axes()
    display = ReliabilityDisplay.from_estimator(model, X, Y, n_bins=5, ax=ax)
    assert display.ax_ is ax
    chances = model.predict_proba(X)
    found = 0
    for k in range(5):
        sure = chances.max(axis=1)
        inside = (sure > k / 5) & (sure <= (k + 1) / 5)
        if inside.any():
            right = model.classes_[chances[inside].argmax(axis=1)] == Y[inside]
            assert display.counts[found] == inside.sum()
            assert display.accuracy[found] == pytest.approx(right.mean())
            assert display.confidence[found] == pytest.approx(sure[inside].mean())
            found += 1
    assert found == len(display.counts)
    line, _, _ = display.errorbar_
    assert np.array_equal(line.get_xydata(), np.c_[display.confidence, display.accuracy])
    again = ReliabilityDisplay.from_estimator(model, X, Y, color="black")
    assert again.errorbar_[0].get_color() == "black"


def test_wrong_arguments_are_named():
    model = ef.LDG(n_components=2, gamma=0.5, n_neighbors=5).fit(X, Y)
    with pytest.raises(ValueError, match="estimator: expected one with predict_proba"):
        ReliabilityDisplay.from_estimator(model, X, Y)
    with pytest.raises(ValueError, match="estimator: expected a transformer"):
        EmbeddingDisplay.from_estimator(ef.MultinomialLogit().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match=r"chances: expected shape \(60, 3\), got \(60, 2\)"):
        ReliabilityDisplay.from_predictions(Y, np.ones((60, 2)) / 2, [0, 1, 2])

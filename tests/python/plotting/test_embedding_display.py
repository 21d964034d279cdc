"""Embeddings: what is drawn is what was given, and classes are distinct."""

from __future__ import annotations

import numpy as np
import pytest
from every_estimator import X, Y
from matplotlib.figure import Figure
from sklearn.naive_bayes import GaussianNB

import eigenfeat as ef
from eigenfeat.plotting import EmbeddingDisplay

pytest.importorskip("matplotlib")


def test_an_embedding():
    model = ef.LDG(n_components=2, gamma=0.5, n_neighbors=5).fit(X, Y)
    ax = Figure().subplots()
    display = EmbeddingDisplay.from_estimator(model, X, Y, ax=ax, title="samples")
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_title() == "samples"
    drawn = np.concatenate([points.get_offsets() for points in ax.collections])
    expected = np.concatenate([model.transform(X)[label == Y] for label in range(3)])
    assert np.allclose(drawn, expected)
    assert np.allclose(np.concatenate([one.get_offsets() for one in display.points_]), expected)
    assert display.plot().ax_ is not ax


@pytest.mark.parametrize("m", [1, 2, 5])
def test_every_sample_is_drawn_by_class(m, rng, tmp_path):
    features, y = rng.standard_normal((30, m)), np.repeat(["a", "b", "c"], 10)
    display = EmbeddingDisplay(features, y).plot(title="wine")
    display.figure_.savefig(tmp_path / "picture.png")
    axes = display.ax_
    drawn = np.concatenate([one.get_offsets() for one in axes.collections])
    np.testing.assert_allclose(drawn[:, 0], features[:, 0])
    if m > 1:
        np.testing.assert_allclose(drawn[:, 1], features[:, 1])
        names = [text.get_text() for text in axes.get_legend().get_texts()]
        assert names == ["a", "b", "c"]
    else:
        np.testing.assert_array_equal(np.round(drawn[:, 1]), np.repeat([0, 1, 2], 10))
        assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b", "c"]
    given = Figure().subplots()
    assert EmbeddingDisplay(features, y).plot(given, legend=False).ax_ is given
    assert given.get_legend() is None


def test_many_classes_are_named_at_their_medians(rng):
    centres = rng.standard_normal((26, 2)) * 9
    y = np.repeat(list("abcdefghijklmnopqrstuvwxyz"), 11)
    features = np.repeat(centres, 11, axis=0) + rng.standard_normal((286, 2))
    display = EmbeddingDisplay(features, y).plot()
    assert display.ax_.get_legend() is None
    for text, label in zip(display.ax_.texts, np.unique(y), strict=True):
        assert text.get_text() == label
        np.testing.assert_allclose(text.get_position(), np.median(features[y == label], axis=0))
    looks = {
        (one.get_paths()[0].vertices.tobytes(), one.get_facecolor().tobytes())
        for one in display.points_
    }
    assert len(looks) == 26  # colour and marker together


def test_the_legend_covers_no_data(rng):
    display = EmbeddingDisplay(rng.standard_normal((70, 2)), np.arange(70) % 7).plot(title="seven")
    figure = display.figure_
    figure.draw_without_rendering()
    legend = display.ax_.get_legend().get_window_extent()
    assert legend.y0 >= display.ax_.bbox.y1 - 1
    assert legend.y1 <= display.ax_.title.get_window_extent().y0 + 1
    assert legend.x1 <= figure.bbox.x1


def test_wrong_arguments_are_named():
    X = np.zeros((4, 2))
    for call, message in (
        (lambda: EmbeddingDisplay(X, [0, 1]).plot(), "features: expected samples with at least"),
        (lambda: EmbeddingDisplay(X * np.nan, [0] * 4).plot(), "features: expected finite"),
        (
            lambda: EmbeddingDisplay.from_estimator(GaussianNB().fit(X + 1, [0, 0, 1, 1]), X, X),
            "estimator: expected a transformer",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()

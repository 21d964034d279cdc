"""Pictures: what is drawn is what was computed; nothing needs a window system."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from eigenfeat import GEM
from eigenfeat.plotting import FiltersDisplay, ProjectionsDisplay, SpectrumDisplay, plot_errors


@pytest.fixture
def images(rng):
    """Three classes of images of 3 x 4 pixels, each bright somewhere else."""
    y = np.repeat(["a", "b", "c"], 60)
    X = rng.standard_normal((180, 12))
    for place, label in enumerate("abc"):
        X[y == label, 4 * place] *= 6
    return X, y


@pytest.fixture
def gem(images):
    return GEM(n_directions=4, threshold=0.1, scale="none").fit(*images)


def is_drawn(figure, tmp_path):
    figure.savefig(tmp_path / "picture.png")
    return (tmp_path / "picture.png").stat().st_size > 2000


def test_filters_are_the_directions(gem, tmp_path):
    options = {"pairs": [("a", "b"), ("c", "a")], "n_filters": 2, "image_shape": (3, 4)}
    figure = FiltersDisplay.from_estimator(gem, **options).figure_
    assert is_drawn(figure, tmp_path)
    assert figure.axes[0].get_ylabel() == "a against b"
    shown = figure.axes[0].images[0].get_array()
    expected = gem.directions_[:, 0].reshape(3, 4)
    np.testing.assert_allclose(shown, expected / np.abs(expected).max())
    assert sum(bool(ax.images) for ax in figure.axes) == 4


def test_filters_of_the_largest_pairs_by_default(gem, tmp_path):
    figure = FiltersDisplay.from_estimator(gem, image_shape=(3, 4)).figure_
    assert is_drawn(figure, tmp_path)
    best = gem.pairs_[np.argmax(gem.eigenvalues_)]
    assert figure.axes[0].get_ylabel() == f"{best[0]} against {best[1]}"


def test_projections_are_grouped_by_class(gem, images, tmp_path):
    X, y = images
    axes = ProjectionsDisplay.from_estimator(gem, X, y, pair=("b", "c"), rank=0).ax_
    assert is_drawn(axes.figure, tmp_path)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b", "c"]
    column = int(np.flatnonzero(np.all(gem.pairs_ == ["b", "c"], axis=1))[0])
    value = np.median((X @ gem.directions_ + gem.offset_)[y == "a", column])
    flat = [line.get_ydata() for line in axes.lines if len(line.get_ydata()) == 2]
    assert any(np.allclose(ends, value) for ends in flat)
    assert "against" in axes.get_title()


def test_projections_on_given_axes(gem, images):
    axes = Figure().subplots()
    assert ProjectionsDisplay.from_estimator(gem, *images, ax=axes).ax_ is axes


def test_spectrum_shows_every_pair(gem, tmp_path):
    figure = SpectrumDisplay.from_estimator(gem).figure_
    assert is_drawn(figure, tmp_path)
    curves, matrix = figure.axes[:2]
    assert sum(len(line.get_xdata()) == 4 for line in curves.lines) == 6
    shown = np.ma.filled(matrix.images[0].get_array(), np.nan)
    assert np.isnan(np.diag(shown)).all()
    assert np.nanmax(shown) == gem.eigenvalues_.max()


def test_errors_show_means_and_splits(tmp_path):
    errors = {"pixels": [0.04, 0.05], "GEM": [0.01, 0.02]}
    axes = plot_errors(errors, best="GEM")
    assert is_drawn(axes.figure, tmp_path)
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([1.5, 4.5])
    assert [text.get_text() for text in axes.get_yticklabels()] == ["GEM", "pixels"]
    assert plot_errors({"one": [0.1]}, ax=axes) is axes


def test_misuse_is_said_clearly(gem, images):
    with pytest.raises(ValueError, match="pair: expected one that has directions"):
        FiltersDisplay.from_estimator(gem, pairs=[("a", "z")], image_shape=(3, 4))
    with pytest.raises(ValueError, match="image_shape: expected 12 pixels, got 3 x 3"):
        FiltersDisplay.from_estimator(gem)
    with pytest.raises(ValueError, match="rank: expected 0 to"):
        ProjectionsDisplay.from_estimator(gem, *images, pair=("a", "b"), rank=99)

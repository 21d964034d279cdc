"""Displays of a fitted GEM: artists have the model's numbers, on new axes and on given ones."""

from __future__ import annotations

import numpy as np
import pytest
from every_estimator import X, Y
from sklearn.exceptions import NotFittedError

import eigenfeat as ef
from eigenfeat.plotting import (
    FiltersDisplay,
    ProjectionsDisplay,
    SpectrumDisplay,
)

pytest.importorskip("matplotlib")

DISPLAYS = [FiltersDisplay, ProjectionsDisplay, SpectrumDisplay]


@pytest.fixture(scope="module")
def gem():
    return ef.GEM(n_directions=3, threshold=0.1).fit(X, Y)


def draw(display, model, **options):
    if display is ProjectionsDisplay:
        return display.from_estimator(model, X, Y, **options)
    if display is FiltersDisplay:
        return display.from_estimator(model, image_shape=(1, X.shape[1]), **options)
    return display.from_estimator(model, **options)


def two_axes(layout="constrained"):
    from matplotlib.figure import Figure

    return Figure(layout=layout).subplots(1, 2)


@pytest.mark.parametrize("display", DISPLAYS)
def test_new_axes_and_given_ones(display, gem, tmp_path):
    first = draw(display, gem)
    assert first.ax_.figure is first.figure_
    given, other = two_axes()
    second = draw(display, gem, ax=given)
    assert second.figure_ is given.figure
    second.figure_.savefig(tmp_path / "given.png")
    # The picture stays in the place of its axes, and nothing is drawn on the axes beside it.
    assert not other.has_data()
    middle = second.figure_.bbox.width / 2
    panels = np.ravel(getattr(second, "axes_", second.ax_))
    assert all(0 <= ax.bbox.x0 < ax.bbox.x1 <= middle for ax in panels)
    again = second.plot()
    assert again is second
    assert second.figure_ is not given.figure


@pytest.mark.parametrize("display", DISPLAYS)
def test_another_estimator_is_refused(display, gem):
    with pytest.raises(ValueError, match="estimator: expected a fitted GEM, got LDG"):
        draw(display, ef.LDG(n_components=2, gamma=0.5, n_neighbors=5).fit(X, Y))
    with pytest.raises(ValueError, match="estimator: expected a fitted GEM, got 3"):
        draw(display, 3)
    with pytest.raises(ValueError, match="estimator: expected a GEM with directions, got none"):
        draw(display, ef.GEM(threshold=1e9).fit(X, Y))
    with pytest.raises(NotFittedError):
        draw(display, ef.GEM())
    with pytest.raises(ValueError, match="ax: expected Matplotlib's axes or None, got 3"):
        draw(display, gem, ax=3)


@pytest.mark.parametrize("display", [FiltersDisplay, SpectrumDisplay])
def test_panels_need_axes_of_a_grid(display, gem):
    from matplotlib.figure import Figure

    free = Figure().add_axes((0, 0, 1, 1))
    with pytest.raises(ValueError, match="ax: expected axes of a grid"):
        draw(display, gem, ax=free)


@pytest.mark.parametrize("display", DISPLAYS)
def test_of_a_classifier_the_first_layer(display, gem):
    model = ef.GEMClassifier(n_directions=3, threshold=0.1).fit(X, Y)
    assert draw(display, model).figure_ is not None


def test_filters_are_directions(gem):
    pairs = [(0, 1), (2, 0)]
    display = draw(FiltersDisplay, gem, pairs=pairs, n_filters=2, cmap="viridis")
    assert display.axes_.shape == (2, 2)
    for pair, images, values in zip(pairs, display.images_, display.eigenvalues, strict=True):
        columns = np.flatnonzero(np.all(gem.pairs_ == pair, axis=1))
        columns = columns[np.argsort(gem.ranks_[columns])][:2]
        assert len(images) == len(columns)
        np.testing.assert_array_equal(values, gem.eigenvalues_[columns])
        for image, column in zip(images, columns, strict=True):
            weights = gem.directions_[:, column]
            shown = np.ravel(image.get_array())
            np.testing.assert_allclose(shown, weights / np.abs(weights).max())
            assert image.get_cmap().name == "viridis"
    assert display.colorbar_.ax.get_ylabel().startswith("weight of the pixel")


def test_projections_are_quartiles_of_the_rows(gem):
    pair = 1, 2
    display = draw(ProjectionsDisplay, gem, pair=pair, rank=1, whis=(0, 100))
    at = np.all(gem.pairs_ == pair, axis=1) & (gem.ranks_ == 1)
    (column,) = np.flatnonzero(at)
    values = X @ gem.directions_[:, column] + gem.offset_[column]
    np.testing.assert_allclose(display.projections, values)
    for label, box in enumerate(display.boxes_["boxes"]):
        heights = box.get_path().vertices[:, 1]
        quartiles = np.percentile(values[label == Y], [25, 75])
        np.testing.assert_allclose([heights.min(), heights.max()], quartiles)
    ends = [line.get_ydata()[1] for line in display.boxes_["whiskers"]]
    extremes = [[values[label == Y].min(), values[label == Y].max()] for label in range(3)]
    np.testing.assert_allclose(ends, np.ravel(extremes))
    given, _ = two_axes()
    again = ProjectionsDisplay.from_predictions(Y, values, pair=pair, rank=1, ax=given)
    assert again.ax_ is given
    assert given.get_title() == display.ax_.get_title()


def test_wrong_projections_are_named():
    with pytest.raises(ValueError, match="projections: expected finite numbers in one dimension"):
        ProjectionsDisplay.from_predictions(Y, X, pair=(0, 1))
    with pytest.raises(ValueError, match="y: expected 3 labels, one per row"):
        ProjectionsDisplay.from_predictions(Y, [1.0, 2.0, 3.0], pair=(0, 1))
    with pytest.raises(ValueError, match="pair: expected two labels"):
        ProjectionsDisplay.from_predictions(Y, X[:, 0], pair=(0, 1, 2))


def test_a_spectrum_has_every_pair(gem):
    display = draw(SpectrumDisplay, gem, n_named=2, ls=":")
    assert len(display.lines_) == 6
    image = np.ma.filled(display.image_.get_array(), np.nan)
    for (above, below), line in display.lines_.items():
        columns = np.flatnonzero(np.all(gem.pairs_ == [above, below], axis=1))
        expected = gem.eigenvalues_[columns[np.argsort(gem.ranks_[columns])]]
        np.testing.assert_array_equal(line.get_ydata(), expected)
        assert line.get_linestyle() == ":"
        assert image[above, below] == expected[0]
    assert display.threshold == 0.1
    assert len(display.ax_.get_legend().get_texts()) == 2


def test_a_spectrum_without_names(gem):
    assert draw(SpectrumDisplay, gem, n_named=0).ax_.get_legend() is None


def test_what_is_no_gem_is_named():
    with pytest.raises(ValueError, match="estimator: expected a fitted GEM"):
        SpectrumDisplay.from_estimator(3)
    with pytest.raises(ValueError, match="estimator: expected a fitted GEM"):
        FiltersDisplay.from_estimator("x")

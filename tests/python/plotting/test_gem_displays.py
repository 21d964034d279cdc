"""Displays of directions: artists have the model's numbers, on new and on given axes."""

import numpy as np
import pytest
from every_estimator import X, Y
from flat_gem import gem_classifier
from matplotlib import rc_context
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import eigenfeat as ef
from eigenfeat.plotting import FiltersDisplay, SpectrumDisplay

DISPLAYS = [FiltersDisplay, SpectrumDisplay]


@pytest.fixture(scope="module")
def gem():
    return ef.GEM(n_directions=3, threshold=0.1).fit(X, Y)


def draw(display, model, **options):
    if display is FiltersDisplay:
        return display.from_estimator(model, image_shape=(1, X.shape[1]), **options)
    return display.from_estimator(model, **options)


def two_axes(layout="constrained"):
    from matplotlib.figure import Figure

    return Figure(layout=layout).subplots(1, 2)


@pytest.mark.parametrize("display", DISPLAYS)
def test_new_and_given_axes(display, gem, tmp_path):
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
def test_panels_need_axes_of_a_grid(display, gem):
    from matplotlib.figure import Figure

    free = Figure().add_axes((0, 0, 1, 1))
    with pytest.raises(ValueError, match="ax: expected axes of a grid"):
        draw(display, gem, ax=free)


@pytest.mark.parametrize("within", ["classifier", "pipeline", "search"])
def test_the_first_directions_within_a_model(within):
    model = gem_classifier(n_directions=3, threshold=0.1)
    if within == "pipeline":
        model = make_pipeline(StandardScaler(), ef.GEM(n_directions=3), GaussianNB())
    elif within == "search":
        model = GridSearchCV(model, {"logit__penalty": [0.1, 1.0]}, cv=2)
    model.fit(X, Y)
    for display in DISPLAYS:
        assert draw(display, model).figure_ is not None


def test_filters_are_directions(gem):
    pairs = [(0, 1), (2, 0)]
    display = draw(FiltersDisplay, gem, pairs=pairs, n_filters=2, cmap="viridis")
    assert display.axes_.shape == (2, 2)
    assert [ax.get_ylabel() for ax in display.axes_[:, 0]] == ["0 against 1", "2 against 0"]
    for line, pair, images in zip(display.axes_, pairs, display.images_, strict=True):
        columns = np.flatnonzero(np.all(gem.pairs_ == pair, axis=1))
        columns = columns[np.argsort(gem.ranks_[columns])][:2]
        assert len(images) == len(columns)
        for ax, image, column in zip(line, images, columns, strict=True):
            assert ax.get_title() == f"\u03bb = {gem.eigenvalues_[column]:.3g}"
            weights = gem.directions_[:, column]
            shown = np.ravel(image.get_array())
            np.testing.assert_allclose(shown, weights / np.abs(weights).max())
            assert image.get_cmap().name == "viridis"
    assert display.colorbar_.ax.get_xlabel().startswith("weight of a pixel")


def test_filters_beside_means_of_classes(gem):
    display = FiltersDisplay.from_estimator(
        gem, X, Y, pairs=[(2, 0)], n_filters=1, image_shape=(2, 2)
    )
    first, second, direction = display.axes_[0]
    for ax, label in ((first, 2), (second, 0)):
        assert ax.get_title() == f"mean of {label}"
        np.testing.assert_allclose(ax.images[0].get_array().ravel(), X[label == Y].mean(axis=0))
    assert [*direction.images] == display.images_[0]
    with pytest.raises(ValueError, match="y: expected 60 labels, one per sample"):
        FiltersDisplay.from_estimator(gem, X, Y[:3], image_shape=(2, 2))


def test_components_of_a_reduction():
    model = ef.LDG(n_components=3, gamma=0.5, n_neighbors=5).fit(X, Y)
    display = FiltersDisplay.from_estimator(model, n_filters=2, image_shape=(2, 2))
    assert display.axes_.shape == (2, 2)
    titles = [ax.get_title() for ax in display.axes_.flat]
    assert titles == ["component 1", "component 2", "component 3", ""]
    weights = model.components_[2]
    shown = np.ravel(display.images_[1][0].get_array())
    np.testing.assert_allclose(shown, weights / np.abs(weights).max())
    assert FiltersDisplay.from_estimator(PCA(2).fit(X), image_shape=(2, 2)).axes_.shape == (1, 2)
    with pytest.raises(ValueError, match="estimator: expected a fitted GEM, got LDG"):
        SpectrumDisplay.from_estimator(model)


def test_a_spectrum_has_every_pair(gem):
    display = draw(SpectrumDisplay, gem, ls=":")
    assert len(display.lines_) == 6
    image = np.ma.filled(display.image_.get_array(), np.nan)
    for (above, below), line in display.lines_.items():
        columns = np.flatnonzero(np.all(gem.pairs_ == [above, below], axis=1))
        expected = gem.eigenvalues_[columns[np.argsort(gem.ranks_[columns])]]
        np.testing.assert_array_equal(line.get_ydata(), expected)
        assert line.get_linestyle() == ":"
        assert image[above, below] == expected[0]
    assert display.threshold == 0.1
    assert len(display.ax_.get_legend().get_texts()) == 3


def test_long_names_stay_inside(tmp_path):
    """Labels with many letters are cut, and titles and legends end within the figure."""
    names = np.array(["a very long name of a class", "b" * 60, "$c_"])[Y]
    model = ef.GEM(n_directions=2).fit(X, names)
    with rc_context({"text.parse_math": False}):
        for display in DISPLAYS:
            means = {"X": X, "y": names, "image_shape": (2, 2)}
            options = means if display is FiltersDisplay else {}
            figure = display.from_estimator(model, **options).figure_
            figure.savefig(tmp_path / "picture.png")
            box = figure.get_tightbbox().padded(-0.02)
            width, height = figure.get_size_inches()
            assert box.x0 >= 0
            assert box.y0 >= 0
            assert box.x1 <= width
            assert box.y1 <= height


def test_wrong_arguments_are_named(gem):
    none = ef.GEM(threshold=1e9).fit(X, Y)
    filters = FiltersDisplay.from_estimator
    for call, message in (
        (lambda: SpectrumDisplay.from_estimator(3), "estimator: expected a fitted"),
        (lambda: filters(gem, pairs=3), "pairs: expected"),
        (lambda: filters(gem, pairs=[(0, 1, 2)]), "pairs: expected pairs of labels"),
        (lambda: filters(gem, n_filters=0), "n_filters: expected"),
        (lambda: filters(gem, image_shape=3), "image_shape: expected rows and columns"),
        (lambda: filters(gem, image_shape=(3, 3)), "image_shape: expected 4 pixels, got 3 x 3"),
        (lambda: filters(none, image_shape=(2, 2)), "expected a model with directions, got none"),
        (lambda: SpectrumDisplay.from_estimator(gem, ax=3), "ax: expected Matplotlib axes"),
    ):
        with pytest.raises(ValueError, match=message):
            call()

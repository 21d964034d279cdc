"""Pictures of reductions: what is drawn is what was given; nothing needs a window system."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from eigenfeat import plotting
from eigenfeat.plotting import EmbeddingDisplay

CURVES = {
    "LDG": {1: [0.5, 0.7], 2: [0.8, 0.9], 3: [0.9, 0.9]},
    "PCA": {1: [0.4, 0.4], 2: [0.5, 0.6]},
    "all columns": {13: [0.7, 0.8]},
}


def is_drawn(figure, tmp_path):
    figure.savefig(tmp_path / "picture.png")
    return (tmp_path / "picture.png").stat().st_size > 2000


def test_accuracy_is_means_with_bands_of_deviations(tmp_path):
    axes = plotting.plot_accuracy(CURVES, title="wine", whole=["all columns"])
    assert is_drawn(axes.figure, tmp_path)
    first, second, flat = axes.lines
    np.testing.assert_allclose(first.get_xydata(), [[1, 60], [2, 85], [3, 90]])
    np.testing.assert_allclose(second.get_ydata(), [40, 55])
    assert list(flat.get_ydata()) == pytest.approx([75, 75])
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    deviation = 100 * np.std([0.5, 0.7], ddof=1)
    assert heights.min() == pytest.approx(60 - deviation)
    assert (axes.get_title(), axes.get_ylabel()) == ("wine", "test accuracy in %")
    (legend,) = axes.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "LDG", "PCA", "all columns",
    ]  # fmt: skip
    assert axes.get_xlim() == (0.5, 3.5)
    assert len({to_hex(line.get_color()) for line in axes.lines}) == 3


def test_a_curve_of_one_dimension_is_a_point_and_bands_end_at_100():
    axes = plotting.plot_accuracy({"FDA": {1: [0.6, 0.8]}, "LDG": {1: [0.9, 1.0], 2: [1.0, 0.9]}})
    np.testing.assert_allclose(axes.lines[0].get_xydata(), [[1, 70]])
    bar, band = (one.get_paths()[0].vertices[:, 1] for one in axes.collections)
    deviation = 100 * np.std([0.6, 0.8], ddof=1)
    np.testing.assert_allclose(np.sort(bar), [70 - deviation, 70 + deviation])
    assert band.max() == 100


def test_panels_share_a_legend_that_covers_no_data(tmp_path):
    panels = {"one": CURVES, "two": {"PCA": CURVES["PCA"]}, "three": CURVES, "four": CURVES}
    figure = plotting.plot_accuracies(panels, "sets", ["all columns"])
    assert is_drawn(figure, tmp_path)
    assert [ax.get_title() for ax in figure.axes if ax.get_title()] == list(panels)
    # A method has its colour in every panel.
    assert figure.axes[1].lines[0].get_color() == figure.axes[0].lines[1].get_color()
    (legend,) = figure.legends
    renderer = FigureCanvasAgg(figure).get_renderer()
    box = legend.get_window_extent(renderer)
    assert not any(box.overlaps(ax.get_tightbbox(renderer)) for ax in figure.axes)


def test_sparsity_counts_columns(tmp_path):
    counts = {"LDG": [4, 4, 4], "SparseLDG": [[1, 2, 3], [1, 2, 4]]}
    axes = plotting.plot_sparsity(counts, 4)
    assert is_drawn(axes.figure, tmp_path)
    np.testing.assert_allclose(axes.lines[1].get_xydata(), [[1, 1], [2, 2], [3, 3.5]])
    assert list(axes.lines[2].get_ydata()) == [4, 4]
    assert axes.get_ylim()[0] == 0


@pytest.mark.parametrize("m", [1, 2, 5])
def test_embeddings_show_every_row_by_class(m, rng, tmp_path):
    rows, y = rng.standard_normal((30, m)), np.repeat(["a", "b", "c"], 10)
    axes = EmbeddingDisplay(rows, y).plot(title="wine").ax_
    assert is_drawn(axes.figure, tmp_path)
    drawn = np.concatenate([one.get_offsets() for one in axes.collections])
    np.testing.assert_allclose(drawn[:, 0], rows[:, 0])
    if m > 1:
        np.testing.assert_allclose(drawn[:, 1], rows[:, 1])
    else:
        np.testing.assert_array_equal(np.round(drawn[:, 1]), np.repeat([0, 1, 2], 10))
        assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b", "c"]
    given = Figure().subplots()
    assert EmbeddingDisplay(rows, y).plot(given, legend=False).ax_ is given
    assert not given.figure.legends


def test_comparison_sorts_sets_and_marks_the_printed_figure(tmp_path):
    found = {"easy": {"LDG": [0.9, 1.0], "PCA": [0.5, 0.6]}, "hard": {"LDG": [0.4], "PCA": [0.6]}}
    figure = plotting.plot_comparison(found, "LDG", {"easy": 96.0, "hard": 41.0}, "sets")
    assert is_drawn(figure, tmp_path)
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["hard", "easy"]
    printed = axes.lines[-1]
    np.testing.assert_allclose(printed.get_xydata(), [[41, 0], [96, 1]])
    assert is_drawn(plotting.plot_comparison(found, "LDG"), tmp_path)


def test_misuse_is_said_clearly(rng):
    with pytest.raises(ValueError, match="curves: expected a method at least"):
        plotting.plot_accuracy({})
    with pytest.raises(ValueError, match="panels: expected a data set at least"):
        plotting.plot_accuracies({}, "none")
    with pytest.raises(ValueError, match="features: expected rows of a column at least"):
        EmbeddingDisplay(rng.standard_normal((5, 2)), np.zeros(4)).plot()

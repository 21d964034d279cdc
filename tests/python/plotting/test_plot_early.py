"""Pictures of early decisions: what is drawn is what was computed."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.incomplete import MixtureCompletion, ReliableClassifier, calibrate, reliability_curve
from eigenfeat.plotting import EarlyCalibrationDisplay, EarlyCurvesDisplay, EarlyDecisionDisplay


@pytest.fixture
def series(rng):
    y = rng.integers(0, 2, 200)
    X = rng.standard_normal((200, 16)).cumsum(axis=1) / 3 + y[:, None] * np.linspace(0, 2, 16)
    return X, np.array(["down", "up"])[y]


@pytest.fixture
def model(series):
    X, y = series
    return ReliableClassifier(LinearDiscriminantAnalysis(), MixtureCompletion()).fit(X[:80], y[:80])


def decision(model, row, **options):
    return EarlyDecisionDisplay.from_estimator(model, row, **options).figure_


def is_drawn(figure, tmp_path):
    figure.savefig(tmp_path / "picture.png")
    return (tmp_path / "picture.png").stat().st_size > 5000


def test_curves_are_times_and_figures(model, series, tmp_path):
    X, y = series
    curve = reliability_curve(model, X[80:], y[80:], [0.5, 0.9, 0.99])
    axes = EarlyCurvesDisplay({"ours": curve, "other": ([3, 9], [0.5, 0.8])}, 16).plot().ax_
    assert is_drawn(axes.figure, tmp_path)
    assert_allclose(axes.lines[0].get_xdata(), curve.mean_time)
    assert_allclose(axes.lines[0].get_ydata(), curve.reliability)
    assert_allclose(axes.lines[1].get_xydata(), [[3, 0.5], [9, 0.8]])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ours", "other"]
    assert {text.get_text() for text in axes.texts} == {"0.5", "0.9", "0.99"}
    for figure in ("accuracy", "harmonic_mean"):
        own = Figure().subplots()
        display = EarlyCurvesDisplay({"ours": curve}).plot(own, score=figure, named=0)
        assert display.ax_ is own
        assert_allclose(own.lines[0].get_ydata(), getattr(curve, figure))
        assert not own.texts


def test_taus_that_would_cover_each_other_are_left_out(model, series):
    X, y = series
    curve = reliability_curve(model, X[80:], y[80:], np.linspace(0.9, 0.91, 40))
    assert 1 <= len(EarlyCurvesDisplay({"ours": curve}).plot().ax_.texts) < 40


def test_a_decision_shows_what_is_known_and_what_is_expected(model, series, tmp_path):
    row = series[0][90]
    early = model.predict_early(row[None], 0.9, trace=True)
    figure = decision(model, row, reliability=0.9, times=[2, int(early.time[0])])
    assert is_drawn(figure, tmp_path)
    first, last, below = figure.axes
    lines = {line.get_label(): line for line in first.lines}
    assert_allclose(lines["known"].get_xydata(), [[1, row[0]], [2, row[1]]])
    expected = model.completion_.transform([np.where(np.arange(16) < 2, row, np.nan)])[0]
    assert_allclose(lines["completion: mean"].get_ydata(), expected[1:])
    assert "wait" in first.get_title()
    assert f"decided\nas \u201c{early.label[0]}\u201d" in last.get_title()
    assert_allclose(below.lines[0].get_ydata(), early.trace_reliability[0])
    assert is_drawn(decision(model, row), tmp_path)


def test_a_decision_of_channels_has_a_row_for_each(model, series, tmp_path):
    X, y = series
    channels = np.stack([X[:, ::2], X[:, 1::2]], axis=1)
    fitted = clone(model).fit(channels[:80], y[:80])
    figure = decision(fitted, channels[90], reliability=0.9, times=[2, 5])
    assert is_drawn(figure, tmp_path)
    assert len(figure.axes) == 5
    expected = fitted.completion_.transform([np.where(np.arange(16) < 4, X[90], np.nan)])[0]
    for channel, first in enumerate(figure.axes[0:4:2]):
        lines = {line.get_label(): line for line in first.lines}
        assert_allclose(lines["known"].get_ydata(), channels[90, channel, :2])
        assert_allclose(lines["completion: mean"].get_ydata(), expected[channel::2][1:])
        assert first.get_ylabel() == f"channel {channel}"


def test_a_calibration_shows_its_choice(model, series, tmp_path):
    found = calibrate(model, series[0][80:], agreement=0.8)
    axes = EarlyCalibrationDisplay(found).plot().ax_
    assert is_drawn(axes.figure, tmp_path)
    assert_allclose(axes.lines[0].get_ydata(), found.realised)
    assert_allclose(axes.lines[1].get_ydata(), found.lower)
    (chosen,) = (line for line in axes.lines if line.get_label().startswith("chosen"))
    assert chosen.get_ydata()[0] == found.lower[found.chosen]
    none = calibrate(model, series[0][80:], agreement=0.999)
    assert none.chosen == -1
    lines = EarlyCalibrationDisplay(none).plot().ax_.lines
    assert not any("chosen" in str(line.get_label()) for line in lines)


def test_misuse(model):
    with pytest.raises(ValueError, match="score: expected one of reliability, accuracy"):
        EarlyCurvesDisplay({"a": ([1], [1])}).plot(score="speed")
    with pytest.raises(ValueError, match="curves: expected at least one, got none"):
        EarlyCurvesDisplay({}).plot()
    with pytest.raises(ValueError, match=r"row: expected shape \(16,\), got \(15,\)"):
        decision(model, np.zeros(15))

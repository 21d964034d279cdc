"""Displays of early decisions: artists have the model's numbers, on new axes and on given ones."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError

from eigenfeat.incomplete import (
    GaussianCompletion,
    ReliableClassifier,
    ReliableClassifierCV,
    calibrate,
    reliability_curve,
)
from eigenfeat.plotting import (
    EarlyCalibrationDisplay,
    EarlyCurvesDisplay,
    EarlyDecisionDisplay,
)

pytest.importorskip("matplotlib")

RNG = np.random.default_rng(3)
D = 12
CLASSES = RNG.integers(0, 2, 200)
SERIES = RNG.standard_normal((200, D)).cumsum(axis=1) / 3 + CLASSES[:, None] * np.linspace(0, 2, D)
LABELS = np.array(["down", "up"])[CLASSES]
TAUS = [0.5, 0.9, 0.99]
DISPLAYS = [EarlyCalibrationDisplay, EarlyCurvesDisplay, EarlyDecisionDisplay]


@pytest.fixture(scope="module")
def model():
    plain = ReliableClassifier(LinearDiscriminantAnalysis(), GaussianCompletion())
    return plain.fit(SERIES[:80], LABELS[:80])


def draw(display, model, **options):
    if display is EarlyCalibrationDisplay:
        return display.from_estimator(model, SERIES[80:], agreement=0.8, **options)
    if display is EarlyCurvesDisplay:
        return display.from_estimator(model, SERIES[80:], LABELS[80:], tau=TAUS, **options)
    return display.from_estimator(model, SERIES[90], reliability=0.9, **options)


def two_axes():
    from matplotlib.figure import Figure

    return Figure(figsize=(10, 5), layout="constrained").subplots(1, 2)


@pytest.mark.parametrize("display", DISPLAYS)
def test_new_axes_and_given_ones(display, model, tmp_path):
    first = draw(display, model)
    assert first.ax_.figure is first.figure_
    given, other = two_axes()
    second = draw(display, model, ax=given)
    assert second.figure_ is given.figure
    second.figure_.savefig(tmp_path / "given.png")
    assert not other.has_data()
    panels = np.ravel(getattr(second, "axes_", second.ax_))
    middle = second.figure_.bbox.width / 2
    assert all(0 <= ax.bbox.x0 < ax.bbox.x1 <= middle for ax in panels)
    assert second.plot() is second
    assert second.figure_ is not given.figure


@pytest.mark.parametrize("display", DISPLAYS)
def test_another_estimator_is_refused(display, model):
    wrong = LinearDiscriminantAnalysis().fit(SERIES, LABELS)
    with pytest.raises(
        ValueError, match="estimator: expected a fitted ReliableClassifier, got Lin"
    ):
        draw(display, wrong)
    with pytest.raises(NotFittedError):
        draw(display, clone(model))
    with pytest.raises(ValueError, match="ax: expected Matplotlib's axes or None, got 3"):
        draw(display, model, ax=3)


@pytest.mark.parametrize("display", DISPLAYS)
def test_of_a_search_the_best(display, model):
    search = ReliableClassifierCV({"one": clone(model)}, tau=[0.8, 0.9], n_folds=2)
    search.fit(SERIES[:80], LABELS[:80])
    assert draw(display, search).figure_ is not None


def test_a_calibration_on_rows_or_the_models_own(model):
    display = draw(EarlyCalibrationDisplay, model, color="black")
    found = calibrate(model, SERIES[80:], agreement=0.8)
    assert_array_equal(display.realised_line_.get_ydata(), found.realised)
    assert_array_equal(display.lower_line_.get_ydata(), found.lower)
    assert_allclose(display.lower_line_.get_xdata(), np.log(found.tau / (1 - found.tau)), atol=1e-9)
    assert display.realised_line_.get_color() == "black"
    assert display.chosen_point_.get_ydata()[0] == found.lower[found.chosen]
    assert not hasattr(model, "calibration_")
    with pytest.raises(ValueError, match="estimator: expected a model whose method calibrate was"):
        EarlyCalibrationDisplay.from_estimator(model)
    carried = clone(model).fit(SERIES[:80], LABELS[:80]).calibrate(SERIES[80:], agreement=0.8)
    assert EarlyCalibrationDisplay.from_estimator(carried).calibration is carried.calibration_
    none = calibrate(model, SERIES[80:100], agreement=0.999)
    assert EarlyCalibrationDisplay(none).plot().chosen_point_ is None
    with pytest.raises(ValueError, match="calibration: expected a Calibration, got 3"):
        EarlyCalibrationDisplay(3).plot()


@pytest.mark.parametrize("score", ["reliability", "accuracy", "harmonic_mean"])
def test_curves_are_times_and_scores(model, score):
    display = draw(EarlyCurvesDisplay, model, score=score, name="ours", ls=":")
    curve = reliability_curve(model, SERIES[80:], LABELS[80:], TAUS)
    line = display.lines_["ours"]
    assert_array_equal(line.get_xdata(), curve.mean_time)
    assert_array_equal(line.get_ydata(), getattr(curve, score))
    assert line.get_linestyle() == ":"
    assert display.ax_.get_xlim() == (0, D)
    both = EarlyCurvesDisplay({"ours": curve, "other": ([1, 2], [0.5, 0.6])}).plot(score=score)
    assert_array_equal(both.lines_["other"].get_xydata(), [[1, 0.5], [2, 0.6]])


def test_a_wrong_score_is_named(model):
    with pytest.raises(ValueError, match="score: expected one of reliability, accuracy"):
        draw(EarlyCurvesDisplay, model, score="speed")


@pytest.mark.parametrize("channels", [1, 2])
def test_a_decision_has_known_samples_and_completions(model, channels):
    X = SERIES if channels == 1 else np.stack([SERIES[:, ::2], SERIES[:, 1::2]], axis=1)
    fitted = clone(model).fit(X[:80], LABELS[:80])
    display = EarlyDecisionDisplay.from_estimator(fitted, X[90], times=[2, 4], color="black")
    length = D // channels
    assert display.axes_.shape == (channels, 2)
    for k, t in enumerate([2, 4]):
        incomplete = np.where(np.arange(length) < t, np.atleast_2d(X[90]), np.nan)
        completed = fitted.completion_.transform(incomplete.T.reshape(1, D))
        completed = completed.reshape(length, channels).T
        for channel in range(channels):
            known = display.known_lines_[channel, k]
            assert_array_equal(known.get_ydata(), np.atleast_2d(X[90])[channel, :t])
            assert known.get_color() == "black"
            mean = display.mean_lines_[channel, k]
            assert_array_equal(mean.get_xdata(), np.arange(t, length + 1))
            assert_allclose(mean.get_ydata(), completed[channel, t - 1 :])
    traced = fitted.predict_early(X[90][None], trace=True)
    assert_allclose(display.trace_line_.get_ydata(), traced.trace_reliability[0])


def test_what_is_no_classifier_is_named():
    with pytest.raises(ValueError, match="estimator: expected a fitted ReliableClassifier, got 3"):
        EarlyDecisionDisplay.from_estimator(3, SERIES[0])

"""Displays of early decisions: artists have the model's numbers, on new and on given axes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.early import (
    GaussianCompletion,
    MinimumCostClassifier,
    ReliableClassifier,
    ReliableClassifierCV,
)
from eigenfeat.plotting import EarlyDecisionDisplay, EarlyTimesDisplay

RNG = np.random.default_rng(3)
D = 12
CLASSES = RNG.integers(0, 2, 200)
SERIES = RNG.standard_normal((200, D)).cumsum(axis=1) / 3 + CLASSES[:, None] * np.linspace(0, 2, D)
LABELS = np.array(["down", "up"])[CLASSES]


@pytest.fixture(scope="module")
def model():
    plain = ReliableClassifier(LinearDiscriminantAnalysis(), GaussianCompletion())
    return plain.fit(SERIES[:80], LABELS[:80])


def two_axes():
    from matplotlib.figure import Figure

    return Figure(figsize=(10, 5), layout="constrained").subplots(1, 2)


@pytest.mark.parametrize("with_y", [False, True])
def test_times_against_plain_loops(model, with_y, tmp_path):
    rows, truth = SERIES[80:], LABELS[80:]
    ax, _ = two_axes()
    y = truth if with_y else None
    display = EarlyTimesDisplay.from_estimator(model, rows, y, reliability=0.7, ax=ax)
    assert display.ax_ is ax
    early, final = model.predict_early(rows, 0.7), model.predict(rows)
    group = truth if with_y else final
    expected = sorted(range(len(rows)), key=lambda i: (group[i], early.time[i], i))
    assert display.order_.tolist() == expected
    image = np.asarray(display.image_.get_array())
    for line, i in enumerate(expected):
        code = 1 + ["down", "up"].index(early.label[i])
        want = [0 if t < early.time[i] else code for t in range(D)]
        assert image[line].tolist() == want
    wrong = [k for k, i in enumerate(expected) if early.label[i] != final[i]]
    assert wrong
    assert display.crosses_.get_ydata().tolist() == [k + 0.5 for k in wrong]
    assert display.crosses_.get_xdata().tolist() == [early.time[expected[k]] for k in wrong]
    share = np.mean(early.label == final)
    assert ax.get_title() == f"required reliability 0.7: {share:.1%} of early labels are final"
    assert [text.get_text() for text in ax.get_yticklabels()] == ["down", "up"]
    assert ax.get_ylabel() == ("true class" if with_y else "label of complete series")
    display.figure_.savefig(tmp_path / "picture.png")


def test_searches_show_the_reliability_that_they_chose(model):
    search = ReliableClassifierCV({"LDA": model}).fit(SERIES[:80], LABELS[:80])
    display = EarlyDecisionDisplay.from_estimator(search, SERIES[90])
    assert display.reliability == search.reliability_
    title = EarlyTimesDisplay.from_estimator(search, SERIES[80:]).ax_.get_title()
    assert title.startswith(f"required reliability {search.reliability_:g}: ")


def test_times_of_other_early_classifiers_and_of_results():
    priced = MinimumCostClassifier(LinearDiscriminantAnalysis(), n_times=4).fit(
        SERIES[:30], LABELS[:30]
    )
    assert (
        "of early labels are final"
        in EarlyTimesDisplay.from_estimator(priced, SERIES[80:]).ax_.get_title()
    )
    plain = EarlyTimesDisplay([3, 1, 2], ["b", "a", "b"], 4).plot()
    assert plain.order_.tolist() == [1, 2, 0]
    assert plain.crosses_ is None
    assert plain.ax_.get_title() == ""
    reliable = EarlyTimesDisplay([3, 1], [0, 1], 4, reliability=0.9).plot()
    assert reliable.ax_.get_title() == "required reliability 0.9"
    many = EarlyTimesDisplay(1 + np.arange(9000) % 7, np.arange(9000) % 3, 7).plot()
    assert many.image_.get_array().shape == (3000, 7)


def test_wrong_times_are_named():
    with pytest.raises(ValueError, match=r"time: expected integers in 1\.\.4, got"):
        EarlyTimesDisplay([0, 5], ["a", "b"], 4).plot()
    with pytest.raises(ValueError, match="time: expected integers in one dimension"):
        EarlyTimesDisplay([0.5], ["a"], 4).plot()
    with pytest.raises(ValueError, match="final: expected 2 labels"):
        EarlyTimesDisplay([1, 2], ["a", "b"], 4, final=["a"]).plot()
    with pytest.raises(ValueError, match="estimator: expected a classifier with predict_early"):
        EarlyTimesDisplay.from_estimator(LinearDiscriminantAnalysis(), SERIES)
    priced = MinimumCostClassifier(LinearDiscriminantAnalysis(), n_times=2).fit(SERIES, LABELS)
    with pytest.raises(ValueError, match=r"reliability: expected None with MinimumCost.*0\.9$"):
        EarlyTimesDisplay.from_estimator(priced, SERIES, reliability=0.9)


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


def test_a_decision_says_what_is_known(model):
    early = model.predict_early(SERIES[90][None], 0.9, trace=True)
    time = int(early.time[0])
    given, other = two_axes()
    display = EarlyDecisionDisplay.from_estimator(
        model, SERIES[90], reliability=0.9, times=[1, time], ax=given
    )
    assert display.figure_ is given.figure
    assert not other.has_data()
    first, last = display.axes_[0]
    assert first.get_title().startswith("1 sample: no decision\n")
    assert last.get_title() == f"{time} samples: decision\n{early.label[0]}"
    names = [text.get_text() for text in display.trace_ax_.get_legend().get_texts()]
    assert "required: 0.9" in names
    with pytest.raises(ValueError, match=r"row: expected shape \(12,\), got \(11,\)"):
        EarlyDecisionDisplay.from_estimator(model, SERIES[90][:11])


def test_wrong_arguments_are_named(model):
    decision = EarlyDecisionDisplay.from_estimator
    for call, message in (
        (
            lambda: decision(MinimumCostClassifier(), SERIES[0]),
            "estimator: expected a fitted ReliableClassifier",
        ),
        (lambda: decision(model, SERIES[0], times=[]), r"times: expected integers in 1\.\.12"),
        (lambda: decision(model, SERIES[0], times=[13]), "times: expected"),
        (lambda: decision(model, SERIES[0], reliability=2.0), "reliability: expected"),
    ):
        with pytest.raises(ValueError, match=message):
            call()

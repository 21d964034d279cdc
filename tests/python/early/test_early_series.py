"""Series of several channels, of unequal lengths and with missing samples."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import eigenfeat as ef
from eigenfeat.early import (
    MinimumCostClassifier,
    MixtureCompletion,
    ReliableClassifier,
    ReliableClassifierCV,
    Sampled,
)

T, CHANNELS = 9, 3


def sensors(random, n, samples=T):
    """Series (n, channels, samples) of diverging classes, and labels."""
    y = random.integers(0, 3, n)
    X = random.standard_normal((n, CHANNELS, samples)).cumsum(axis=2) / 2
    X += y[:, None, None] * np.linspace(0, 2, samples) * np.array([1.0, -0.5, 0.2])[:, None]
    return X, np.array(["down", "flat", "up"])[y]


def lda(**options):
    options = {"correct": False, "reliability": 0.8, **options}
    return ReliableClassifier(LinearDiscriminantAnalysis(), **options)


def minimum_cost():
    return MinimumCostClassifier(LinearDiscriminantAnalysis(), delay_cost=0.01)


def check_streams(model, series, early):
    """Streams decide as `early`; `finish` is called at the end of each series."""
    streams = model.streams(len(series))
    for t in range(model.n_timepoints_):
        at = np.array([i for i, one in enumerate(series) if one.shape[1] > t])
        streams.push(np.array([series[i][:, t] for i in at]), at)
        streams.finish([i for i in at if series[i].shape[1] == t + 1])
    assert_array_equal(streams.time, early.time)
    running = early.time < [one.shape[1] for one in series]
    assert_array_equal(streams.labels[running], early.label[running])
    assert_allclose(streams.reliability[running], early.reliability[running], atol=1e-6)
    # With its last sample a series may be decided before it has ended.
    same = ~running & np.isclose(streams.reliability, early.reliability, atol=1e-6)
    assert_array_equal(streams.labels[same], early.label[same])
    assert np.all(streams.reliability[~running & ~same] < early.reliability[~running & ~same])


@pytest.mark.parametrize(
    "model",
    [lda(completion=MixtureCompletion()), lda(rule=Sampled(64)), lda(correct="average")],
    ids=["mixture", "sampled", "corrected"],
)
def test_channels(rng, model):
    X, y = sensors(rng, 150)
    model = clone(model).fit(X[:110], y[:110])
    assert (model.n_channels_, model.n_timepoints_, model.n_features_in_) == (3, T, 27)
    series = X[110:]
    early = model.predict_early(series)
    assert early.steps[-1] == T
    assert early.time.max() <= T
    assert early.time.mean() < T - 0.5
    check_streams(model, series, early)
    for t in (2, 5, 8):
        found = model.decide(series[:, :, :t])
        assert_array_equal(found.missing, (T - t) * CHANNELS)
        assert_array_equal(found.decided & (early.time >= t), early.time == t)
        holes = series.copy()
        holes[:, :, t:] = np.nan
        assert_array_equal(model.decide(holes).reliability, found.reliability)
    assert_array_equal(early.label[early.time == T], model.predict(series)[early.time == T])
    early = model.predict_early(series, steps=[3, 6])
    assert set(early.time) <= {3, 6, T}
    curve = ef.early.reliability_curve(model, series, y[110:], [0.7, 0.9])
    assert all(0 < score.earliness <= 1 for score in curve)


def unequal(random, X):
    return [one[:, : random.integers(4, T + 1)] for one in X]


class Converted:
    """An object that NumPy converts to an array of epochs."""

    def __init__(self, data):
        self.data = data

    def __array__(self, dtype=None, copy=None):
        return np.array(self.data, dtype=dtype)


class Epochs(Converted):
    """A sequence of arrays (channels, times) that is not an array, as MNE's Epochs."""

    def __len__(self):
        return len(self.data)

    def __iter__(self):
        return iter(self.data)


@pytest.mark.parametrize(
    "model",
    [
        lda(),
        MinimumCostClassifier(LinearDiscriminantAnalysis()),
        ReliableClassifierCV({"lda": lda()}, tau=[0.5, 0.9]),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("Epochs", [Converted, Epochs])
def test_epochs_of_other_libraries_are_read_as_arrays(rng, model, Epochs):
    X, y = sensors(rng, 60)
    model = clone(model).fit(Epochs(X), y)
    expected = clone(model).fit(X, y)
    found, early = model.predict_early(Epochs(X)), expected.predict_early(X)
    assert_array_equal(found.time, early.time)
    assert_array_equal(found.label, early.label)
    assert_array_equal(model.predict(Epochs(X)), expected.predict(X))
    with pytest.raises(ValueError, match="expected 3 channels, got 2"):
        model.predict_early(Epochs(X[:, :2]))


def test_unequal_lengths(rng):
    X, y = sensors(rng, 160)
    series = unequal(rng, X)
    model = lda(correct="average").fit(series[:110], y[:110])
    assert (model.n_channels_, model.n_timepoints_) == (CHANNELS, T)
    fresh = series[110:]
    lengths = np.array([one.shape[1] for one in fresh])
    early = model.predict_early(fresh, trace=True)
    assert np.all(early.time <= lengths)
    last = early.time == lengths
    assert_array_equal(early.label[last], model.predict(fresh)[last])
    assert_array_equal(early.reliability[last], 1.0)  # a series that has ended is complete
    held = [np.pad(one, ((0, 0), (0, T - one.shape[1])), mode="edge") for one in fresh]
    assert_array_equal(model.predict(fresh), model.predict(held))
    plain = model.predict_early(fresh)
    assert_array_equal(plain.time, early.time)
    check_streams(model, fresh, plain)
    so_far = model.decide([one[:, :3] for one in fresh])
    assert np.all(so_far.missing >= (T - 3) * CHANNELS)


def test_missing_samples(rng):
    X, y = sensors(rng, 220)
    holes = X.copy()
    holes[rng.uniform(size=X.shape) < 0.1] = np.nan
    model = lda(reliability=0.9).fit(holes[:160], y[:160])
    filled = model.completion_.transform(holes[:160].transpose(0, 2, 1).reshape(160, -1))
    expected = LinearDiscriminantAnalysis().fit(filled, y[:160])
    assert_allclose(model.classifier_.coef_, expected.coef_)
    fresh = holes[160:]
    early = model.predict_early(fresh)
    check_streams(model, fresh, early)
    whole = ~np.isnan(fresh).any(axis=(1, 2))
    assert not whole.all()
    unsure = (early.time == T) & ~whole
    assert np.all(early.reliability[(early.time == T) & whole] == 1)
    assert np.mean(early.reliability[unsure] < 0.999) > 0.5
    # A decision depends on the values up to its time.
    for i in range(20):
        seen = fresh[i, :, : early.time[i]]
        found = model.decide([seen, X[0]])
        assert found.decided[0] or early.time[i] == T
        if early.time[i] < T:
            assert found.label[0] == early.label[i]
    corrected = clone(model).set_params(correct="average").fit(holes[:160], y[:160])
    assert corrected.correction_.n == 160


def test_missing_samples_are_pushed_as_nan_or_skipped_by_time(rng):
    X, y = sensors(rng, 120)
    model = lda(reliability=0.999).fit(X[:, :1], y)
    row = X[7, 0]
    one, other = model.stream(), model.stream()
    for value in (row[0], np.nan, np.nan, row[3]):
        assert one.push(value) is None
    other.push(row[0])
    other.push(row[3], time=4)
    assert one.seen == other.seen == 4
    assert one.outlook() == other.outlook()
    known = np.full((1, T), np.nan)
    known[0, [0, 3]] = row[[0, 3]]
    assert one.outlook().reliability == model.decide(known).reliability[0]
    before = pickle.dumps(one)
    for time, got in ((4, 4), (0, 0), (T + 1, T + 1)):
        with pytest.raises(ValueError, match=f"time: expected 5..{T} for series 0, got {got}"):
            one.push(0.1, time=time)
    with pytest.raises(ValueError, match="time: expected an integer"):
        one.push(0.1, time=5.5)
    assert pickle.dumps(one) == before
    decision = one.finish()
    assert decision.time == 4
    one.reset()
    assert [one.push(value) for value in row[:3]] == [None] * 3
    assert one.outlook().reliability == pytest.approx(
        model.decide(np.r_[row[:3], np.full(T - 3, np.nan)][None]).reliability[0]
    )
    with pytest.raises(ValueError, match="finish: expected at least one known sample"):
        model.stream().finish()


def test_without_known_values_the_prior_decides(rng):
    X, y = sensors(rng, 200)
    model = lda(reliability=0.9).fit(X, y)
    nothing = np.full((2, CHANNELS, T), np.nan)
    found = model.decide(nothing)
    assert not found.decided.any()
    stream = model.stream()
    for _ in range(T - 1):
        assert stream.push([np.nan] * CHANNELS) is None
    end = stream.push([np.nan] * CHANNELS)
    assert end.label == model.predict(nothing)[0]
    assert end.reliability == found.reliability[0] < 0.9


@pytest.mark.parametrize("kind", [lda, minimum_cost])
def test_series_of_a_list_end_and_series_with_nan_at_the_end_go_on(rng, kind):
    """`ConvolutionClassifier` reads both as ended series."""
    X, y = sensors(rng, 90)
    model = kind().fit(X, y)
    ended = [x[:, :3] for x in X]
    missing = np.where(np.arange(T) < 3, X, np.nan)
    assert model.predict_early(ended).time.max() <= 3
    assert model.predict_early(missing).time.max() == T
    convolutions = ef.signals.ConvolutionClassifier(84, intervals=False, random_state=0).fit(X, y)
    assert_array_equal(convolutions.predict_proba(ended), convolutions.predict_proba(missing))


@pytest.mark.parametrize("kind", [lda, minimum_cost])
@pytest.mark.parametrize("given", [np.array, list, lambda X: X[:, None]])
def test_shorter_series_of_one_channel_in_a_list_or_with_an_axis_of_channels(rng, kind, given):
    X, y = sensors(rng, 90)
    X = X[:, 0]
    model = kind().fit(given(X), y)
    expected = model.predict_early(X[:, None, :4])
    assert expected.time.max() == 4
    for series in (list(X[:, :4]), X[:, :4].tolist(), tuple(X[:, :4])):
        found = model.predict_early(series)
        assert_array_equal(found.time, expected.time)
        assert_array_equal(found.label, expected.label)
        assert_array_equal(model.predict(series), model.predict(X[:, None, :4]))
    with pytest.raises(
        ValueError, match=r"^X has 4 feat.* input; pass shorter series as X\[:, None"
    ):
        model.predict_early(X[:, :4])
    if kind is lda:
        running = np.where(np.arange(T) < 4, X, np.nan)
        found = model.decide(list(X[:, :4]))
        assert_array_equal(found.reliability, model.decide(running).reliability)
        with pytest.raises(ValueError, match=r"^X has 4 .* pass shorter series as X\[:, None\]$"):
            model.decide(X[:, :4])


def test_nested_frames_are_refused(rng):
    X, y = sensors(rng, 12)
    nested = pd.DataFrame({c: [pd.Series(x[c]) for x in X] for c in range(3)})
    for model in (lda(), minimum_cost()):
        with pytest.raises(ValueError, match="got a table with series in its cells; pass"):
            model.fit(nested, y)


def test_misuse_leaves_models_unchanged(rng):
    X, y = sensors(rng, 60)
    model = lda().fit(X, y)
    before = model.decide(X[:, :, :4]).reliability
    ragged = [X[0], X[1, :2], X[2]]
    for call in (model.predict, model.predict_early, model.decide):
        with pytest.raises(ValueError, match=r"X\[1\]: expected 3 channels, got 2"):
            call(ragged)
        with pytest.raises(ValueError, match=rf"X\[2\]: expected at most {T} samples, got {T + 2}"):
            call([X[0], X[1], np.zeros((3, T + 2))])
        with pytest.raises(ValueError, match=r"X\[1\]: expected finite samples, or NaN, got inf"):
            call([X[0], np.where(X[1] > 0, np.inf, X[1]), X[2][:, :3]])
        with pytest.raises(
            ValueError, match=r"X: expected series of shape \(n, 3, times\) as in fit"
        ):
            call(X[0])  # one series is not a table of samples
        with pytest.raises(ValueError, match=rf"as in fit, got shape \(60, {3 * T}\)"):
            call(X.reshape(60, -1))  # times and channels could be in either order
    for X_bad, y_bad, message in (
        (ragged, y[:3], r"X\[1\]: expected 3 channels, got 2"),
        (X, y[:5], "X: expected at least two series and a label for each, got 60 series and 5"),
        (np.where(np.arange(60)[:, None, None] == 4, np.nan, X), y, "X: .* known values"),
        ([X[0], X[1][:, :0]], y[:2], r"X\[1\]: expected shape \(channels, samples\)"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X_bad, y_bad)
    never = X.copy()
    never[:, 1, 4] = np.nan
    message = (
        "X: expected a known value of each channel .*, got only NaN in channel 1, sample 4; pass"
    )
    with pytest.raises(ValueError, match=message):
        model.fit(never, y)
    assert_array_equal(model.decide(X[:, :, :4]).reliability, before)
    streams = model.streams(2)
    with pytest.raises(ValueError, match=r"values: expected shape \(2, 3\), got \(2, 2\)"):
        streams.push(X[:2, :2, 1])
    with pytest.raises(ValueError, match=r"value: expected shape \(3,\), got shape \(\)"):
        model.stream().push(0.1)


class Failing(LinearDiscriminantAnalysis):
    """A classifier that fails on demand."""

    fails = False

    def predict(self, X):
        if Failing.fails:
            raise RuntimeError("out of order")
        return super().predict(X)


def test_an_error_during_a_push_leaves_streams_unchanged(rng):
    X, y = sensors(rng, 80)
    model = ReliableClassifier(Failing(), rule=Sampled(64), correct=False, reliability=0.8).fit(
        X, y
    )
    streams = model.streams(4)
    streams.push(X[:4, :, 0])
    streams.push(X[:2, :, 1], [0, 1])  # the next push has series at two times
    state = pickle.dumps(streams)
    Failing.fails = True
    with pytest.raises(RuntimeError, match="out of order"):
        streams.push(X[:4, :, 2])
    Failing.fails = False
    assert pickle.dumps(streams) == state
    streams.push(X[:4, :, 2])
    assert_array_equal(streams.seen[~streams.decided][:1], [3][: (~streams.decided).sum()])

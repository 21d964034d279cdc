"""Streams against decisions of complete series, in any order, from any thread, and pickled."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)

from eigenfeat.early import (
    LocalQDA,
    MixtureCompletion,
    ReliableClassifier,
    Sampled,
    Stream,
    Streams,
)
from eigenfeat.regions.prefix_gaussian import PrefixGaussian

D = 14


@pytest.fixture
def series(rng):
    """Random walks of three diverging classes, with labels that are strings."""
    y = rng.integers(0, 3, 130)
    X = rng.standard_normal((130, D)).cumsum(axis=1) / 3 + y[:, None] * np.linspace(0, 2, D)
    return X, np.array(["down", "flat", "up"])[y]


def model_of(kind):
    lda, qda = LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
    return {
        "pairwise": lambda: ReliableClassifier(lda()),
        "mixture": lambda: ReliableClassifier(lda(), MixtureCompletion()),
        "features": lambda: ReliableClassifier(lda(), features=PCA(4)),
        "box": lambda: ReliableClassifier(LocalQDA(8), rule="box", reliability=0.5),
        "qda": lambda: ReliableClassifier(qda(reg_param=0.1), features=PCA(3), reliability=0.5),
        "sampled": lambda: ReliableClassifier(lda(), rule=Sampled(64), reliability=0.8),
        "prefixes": lambda: ReliableClassifier(lda(), rule="prefixes", reliability=0.8),
        "by time": lambda: ReliableClassifier(
            lda(), conditional=("predicted", "time"), reliability=0.8
        ),
        "sampled by time": lambda: ReliableClassifier(
            lda(), rule=Sampled(64), conditional="time", reliability=0.8
        ),
        "target": lambda: ReliableClassifier(lda(), target="up", reliability=0.8),
    }[kind]()


KINDS = (
    *("pairwise", "mixture", "features", "box", "qda", "sampled", "prefixes"),
    *("by time", "sampled by time", "target"),
)


@pytest.fixture
def fitted(series):
    X, y = series
    return ReliableClassifier(LinearDiscriminantAnalysis()).fit(X[:100], y[:100]), X[100:]


def agree(streams, early):
    assert streams.decided.all()
    assert_array_equal(streams.time, early.time)
    assert_array_equal(streams.labels, early.label)
    assert_allclose(streams.reliability, early.reliability, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_streams_decide_as_predict_early(series, kind):
    X, y = series
    model = model_of(kind).fit(X[:100], y[:100])
    rows = X[100:]
    early = model.predict_early(rows)
    streams = model.streams(len(rows))
    for t in range(D):
        fresh = streams.push(rows[:, t])
        assert_array_equal(fresh, np.flatnonzero(early.time == t + 1))
    agree(streams, early)
    assert 1 < early.time.mean() < D
    assert len(streams) == len(rows)


def test_steps_and_a_reliability_for_each_series(fitted, rng):
    model, rows = fitted
    tau = rng.uniform(0.5, 0.99, len(rows))
    steps = [2, 5, 9]
    streams = model.streams(len(rows), tau, steps=steps)
    for t in range(D):
        streams.push(rows[:, t])
    agree(streams, model.predict_early(rows, tau, steps=steps))
    assert set(streams.time) <= {2, 5, 9, D}


def test_one_series(fitted):
    model, rows = fitted
    early = model.predict_early(rows[:10], 0.9)
    for i, row in enumerate(rows[:10]):
        stream = model.stream(0.9)
        answers = [stream.push(value) for value in row]
        first = answers[early.time[i] - 1]
        assert answers[: early.time[i] - 1] == [None] * (early.time[i] - 1)
        assert answers[early.time[i] - 1 :] == [first] * (D + 1 - early.time[i])
        assert (first.label, first.time) == (early.label[i], early.time[i])
        assert first.reliability == pytest.approx(early.reliability[i])
        assert stream.decision == first
        assert stream.seen == first.time
        stream.reset()
        assert stream.decision is None
        assert [stream.push(value) for value in row] == answers


def test_outlook_equals_the_trace(fitted):
    model, rows = fitted
    traced = model.predict_early(rows, 0.999, trace=True)
    streams = model.streams(len(rows), 0.999)
    for t in range(6):
        streams.push(rows[:, t])
        label, reliability = streams.outlook()
        waiting = ~streams.decided
        assert_array_equal(label[waiting], traced.trace_label[waiting, t])
        assert_allclose(reliability[waiting], traced.trace_reliability[waiting, t], atol=1e-9)
        assert_array_equal(label[~waiting], streams.labels[~waiting])
    before = Stream(model).outlook()  # nothing is known
    known = model.decide(np.full((1, D), np.nan))
    assert (before.label, before.time) == (known.label[0], 0)


@pytest.mark.parametrize("kind", ["pairwise", "mixture"])
def test_pickled_half_way(series, kind):
    X, y = series
    model = model_of(kind).fit(X[:100], y[:100])
    rows = X[100:]
    streams = model.streams(len(rows))
    for t in range(4):
        streams.push(rows[:, t])
    again = pickle.loads(pickle.dumps(streams))
    assert_array_equal(again.labels, streams.labels)
    for t in range(4, D):
        streams.push(rows[:, t])
        again.push(rows[:, t])
    agree(again, model.predict_early(rows))
    agree(streams, model.predict_early(rows))
    one = pickle.loads(pickle.dumps(model.stream()))
    assert one.push(rows[0, 0]) == model.stream().push(rows[0, 0])


def test_fitting_the_model_again_does_not_change_open_streams(series):
    X, y = series
    model = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X[:100], y[:100])
    early = model.predict_early(X[100:])
    streams = model.streams(30)
    for t in range(D):
        if t == 3:
            model.fit(-X[:100, :9], y[:100])
        streams.push(X[100:, t])
    agree(streams, early)


def test_many_threads_push_into_streams_of_one_model_and_into_one_stream(fitted):
    model, rows = fitted
    early = model.predict_early(rows)

    def run(i):
        stream = model.stream()
        return next(filter(None, map(stream.push, rows[i])))

    shared = model.streams(len(rows))

    def feed(i):
        for value in rows[i]:
            shared.push([value], [i])

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(run, range(len(rows))))
        list(pool.map(feed, range(len(rows))))
    assert [one.time for one in found] == list(early.time)
    assert [one.label for one in found] == list(early.label)
    agree(shared, early)


@pytest.mark.parametrize(
    ("values", "at", "message"),
    [
        ([1.0], None, r"values: expected shape \(3,\), got \(1,\)"),
        ([1.0, np.inf], [0, 2], "values: expected finite numbers or NaN, got inf for series 2"),
        ([1.0], [3], r"at: expected distinct integers in 0..2, got \[3\]"),
        ([1.0, 2.0], [1, 1], "at: expected distinct integers"),
    ],
)
def test_misuse_pushes_nothing(fitted, values, at, message):
    model, _ = fitted
    streams = Streams(model, 3)
    streams.push([0.1, 0.2, 0.3])
    before = pickle.dumps(streams)
    with pytest.raises(ValueError, match=message):
        streams.push(values, at)
    assert pickle.dumps(streams) == before
    assert_array_equal(streams.seen, [1, 1, 1])


@pytest.mark.parametrize("method", ["outlook", "push"])
def test_interrupted_methods_change_nothing(fitted, monkeypatch, method):
    model, rows = fitted
    streams = model.streams(len(rows), steps=[2, 6])
    for t in range(5):
        streams.push(rows[:, t])
    arguments = (rows[:, 5],) if method == "push" else ()
    compute, calls = PrefixGaussian.further_innovations, iter(range(2))

    def interrupted(*entries):
        if next(calls):
            raise KeyboardInterrupt
        return compute(*entries)

    with monkeypatch.context() as patch:
        patch.setattr(PrefixGaussian, "further_innovations", interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(streams, method)(*arguments)
    for t in range(5, D):
        streams.push(rows[:, t])
    agree(streams, model.predict_early(rows, steps=[2, 6]))

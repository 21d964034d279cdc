"""Minimum-cost decisions: channels, unequal lengths, missing samples, streams, classifiers."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import RidgeClassifierCV
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

from eigenfeat import TableClassifier
from eigenfeat.demo.early import signals
from eigenfeat.early import MinimumCostClassifier
from eigenfeat.early.stages import held_out_stages


def lda():
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def two_channels(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X, y = signals(n, rng)
    return np.stack([X, rng.standard_normal(X.shape) + np.arange(X.shape[1]) / 10], axis=1), y


@pytest.fixture(scope="module")
def fitted():
    X, y = two_channels()
    return MinimumCostClassifier(lda(), 0.3, n_times=8, n_folds=3).fit(X, y)


def test_one_channel_is_the_same_in_every_form():
    X, y = signals(50, np.random.default_rng(0))
    rows = MinimumCostClassifier(lda(), 0.3, n_times=3, n_folds=2).fit(X, y)
    found = rows.predict_early(X)
    for form in (X[:, None], [x[None] for x in X]):
        model = MinimumCostClassifier(lda(), 0.3, n_times=3, n_folds=2).fit(form, y)
        again = model.predict_early(form)
        assert_array_equal(again.label, found.label)
        assert_array_equal(again.time, found.time)
        assert_array_equal(again.cost, found.cost)
        assert_array_equal(rows.predict_early(form).time, found.time)
        assert (model.n_channels_, model.n_timepoints_) == (1, X.shape[1])
        assert_array_equal(model.predict(form), rows.predict(X))


def test_channels_are_used(fitted):
    N, t = two_channels(40, 1)
    found = fitted.predict_early(N)
    assert np.mean(found.label == t) > 0.8
    assert (fitted.n_channels_, fitted.n_timepoints_) == N.shape[1:]
    assert fitted.n_features_in_ == N.shape[1] * N.shape[2]
    late = N.copy()
    late[np.arange(N.shape[2]) >= found.time[:, None, None] * np.ones((1, 2, 1))] = 1e6
    again = fitted.predict_early(late)  # nothing after the decision is used
    assert_array_equal(again.label, found.label)
    assert_array_equal(again.time, found.time)
    with pytest.raises(ValueError, match=r"^X\[0\]: expected 2 channels, got 3"):
        fitted.predict_early(np.zeros((2, 3, 60)))


def test_missing_samples_become_the_last_known_value(fitted):
    N, _ = two_channels(20, 2)
    holes = N.copy()
    holes[3, 0, 5:9] = np.nan
    holes[4, 1, :4] = np.nan
    holes[5] = np.nan  # nothing known: the training mean
    filled = N.copy()
    filled[3, 0, 5:9] = N[3, 0, 4]
    X, _ = two_channels()
    filled[4, 1, :4] = X[:, 1, :4].mean(axis=0)
    filled[5] = X.mean(axis=0)
    found, wanted = fitted.predict_early(holes), fitted.predict_early(filled)
    assert_array_equal(found.label, wanted.label)
    assert_array_equal(found.time, wanted.time)
    assert_allclose(found.cost, wanted.cost)


def test_training_series_with_holes_and_several_lengths():
    X, y = two_channels()
    given = [x[:, : x.shape[1] - i % 7].copy() for i, x in enumerate(X)]
    given[3][0, 5:9] = np.nan
    model = MinimumCostClassifier(lda(), 0.05, n_times=4, n_folds=2).fit(given, y)
    held = np.array([np.pad(x, ((0, 0), (0, 60 - x.shape[1])), mode="edge") for x in given])
    held[3, 0, 5:9] = held[3, 0, 4]
    wanted = MinimumCostClassifier(lda(), 0.05, n_times=4, n_folds=2).fit(held, y)
    found, other = model.predict_early(given), wanted.predict_early(held)
    assert_array_equal(found.label, other.label)
    ends = np.array([x.shape[1] for x in given])
    assert_array_equal(found.time, np.minimum(other.time, ends))
    empty = [*given[:-1], np.full((2, 9), np.nan)]
    with pytest.raises(ValueError, match=r"^X: expected series with known .* series 59"):
        model.fit(empty, y)


def test_a_stream_decides_as_predict_early_does(fitted):
    N, _ = two_channels(25, 3)
    N[3, :, 2:20] = np.nan
    N[4, 1, :9] = np.nan
    found = fitted.predict_early(N)
    stream = fitted.stream()
    for i, one in enumerate(N):
        stream.reset()
        assert stream.decision is None
        for t, value in enumerate(one.T, 1):
            if i == 3 and 2 < t <= 20:
                continue  # skipped samples are missing
            decision = stream.push(value, time=t)
            if decision is not None:
                break
        assert (decision.label, decision.time) == (found.label[i], found.time[i])
        assert_allclose(decision.cost, found.cost[i])
        assert stream.push([np.inf, 0.0]) is decision
        assert stream.seen == decision.time


def test_a_stream_that_ends(fitted):
    N, _ = two_channels(10, 4)
    for end in (1, 4, 17, *fitted.times_[:-1].tolist()):
        short = [x[:, :end] for x in N]
        found = fitted.predict_early(short)
        for i, one in enumerate(short):
            stream = fitted.stream()
            for value in one.T:
                stream.push(value)
            decision = stream.finish()
            assert (decision.label, decision.time) == (found.label[i], found.time[i])
            assert_allclose(decision.cost, found.cost[i])
    stream = fitted.stream()
    with pytest.raises(ValueError, match="finish: expected at least one known sample"):
        stream.finish()
    for value, message in ((1.0, "value: expected shape"), ([np.inf, 0], "value: expected finite")):
        with pytest.raises(ValueError, match=message):
            stream.push(value)
    stream.push([0.0, 0.0])
    for time in (1, 61, 2.5, True):
        with pytest.raises(ValueError, match=r"time: expected an integer in 2\.\.60"):
            stream.push([0.0, 0.0], time=time)
    assert stream.seen == 1


class _Failing(GaussianNB):
    """Classifier that fails on demand."""

    fails = False

    def predict_proba(self, X):
        if _Failing.fails:
            raise RuntimeError("out of order")
        return super().predict_proba(X)


def test_an_error_during_a_push_leaves_a_stream_unchanged(monkeypatch):
    X, y = signals(60, np.random.default_rng(0))
    model = MinimumCostClassifier(_Failing(), 0.01, times=[3, 30, 60], n_folds=2).fit(X, y)
    stream = model.stream()
    for value in X[0, :2]:
        stream.push(value)
    before = pickle.dumps(vars(stream) | {"_model": None})
    monkeypatch.setattr(_Failing, "fails", True)
    for time in (None, 40):
        with pytest.raises(RuntimeError, match="out of order"):
            stream.push(X[0, 2], time=time)
        assert pickle.dumps(vars(stream) | {"_model": None}) == before
    monkeypatch.setattr(_Failing, "fails", False)
    decision = next(filter(None, map(stream.push, X[0, 2:])))
    found = model.predict_early(X[:1])
    assert (decision.label, decision.time) == (found.label[0], found.time[0])


class _Picky(ClassifierMixin, BaseEstimator):
    """Classifier that needs at least 7 columns."""

    def fit(self, X, y):
        if X.shape[1] < 7:
            raise ZeroDivisionError("too short")
        self.model_ = GaussianNB().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def test_times_at_which_a_classifier_cannot_be_fitted_are_skipped():
    X, y = signals(60, np.random.default_rng(0))
    model = MinimumCostClassifier(_Picky(), n_folds=2).fit(X, y)
    assert_array_equal(model.times_, np.arange(9, 61, 3))
    assert model.predict_early(X).time.min() >= 9
    with pytest.warns(
        UserWarning, match=r"^times: left out \[2, 6\], at which .*: too short \(with"
    ):
        model = MinimumCostClassifier(_Picky(), times=[2, 6, 10]).fit(X, y)
    assert model.times_.tolist() == [10, 60]
    with pytest.raises(ValueError, match=r"^classifier: expected a classifier that can be fitted"):
        MinimumCostClassifier(_Picky(), n_folds=2).fit(X[:, :5], y)


@pytest.mark.parametrize("classifier", [RidgeClassifierCV(), SVC()])
def test_classifiers_with_scores_alone(classifier):
    X, y = signals(60, np.random.default_rng(0))
    N, t = signals(60, np.random.default_rng(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MinimumCostClassifier(classifier, 0.2, times=[15, 30, 60]).fit(X, y)
    found = model.predict_early(N)
    assert np.mean(found.label == t) > 0.7
    probability = model.classifiers_[-1].predict_proba(N)
    assert_allclose(probability.sum(axis=1), 1.0)
    assert_array_equal(model.classifiers_[-1].predict(N), model.predict(N))
    loss = -np.log(probability[np.arange(60), np.searchsorted(model.classes_, t)]).mean()
    assert loss < 0.9  # equal probabilities of the three classes would have log 3 = 1.1


def test_a_pool_of_views_provides_its_own_out_of_fold_probabilities():
    rng = np.random.default_rng(0)
    X, y = signals(60, rng)
    model = MinimumCostClassifier(
        TableClassifier(views=["columns", "gem"]), delay_cost=0.5, n_times=2
    ).fit(X, y)
    assert len(model.times_) == 2
    held = held_out_stages(
        TableClassifier(views=["columns", "gem"]), X[:, None], y, model.classes_, model.times_, 5
    )
    for k, one in enumerate(model.classifiers_):
        assert_array_equal(held.probabilities[0, k], one.out_of_fold_proba_)

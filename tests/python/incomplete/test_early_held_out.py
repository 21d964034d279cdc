"""Samples that are held out from the fit: the promise is a theorem's, at the decision times."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import eigenfeat as ef
from eigenfeat.incomplete import ReliableClassifier, Sampled


def waves(random, n, d=12):
    """Walks that turn back: the first samples mislead a Gaussian about the last ones."""
    y = random.integers(0, 2, n)
    X = random.standard_t(3, (n, d)).cumsum(axis=1) / 3 + y[:, None] * np.linspace(0, 2, d)
    X[:, d // 2 :] += np.where(np.abs(X[:, [1]]) > 0.6, -2.0, 1.0) * X[:, : d - d // 2]
    return X, y


class Remembers(ClassifierMixin, BaseEstimator):
    """The label of the nearest known row; a class attribute has the rows of the last fit."""

    rows: np.ndarray

    def fit(self, X, y):
        self.classes_, self.X_, self.y_ = np.unique(y), np.array(X), np.array(y)
        type(self).rows = self.X_
        return self

    def predict(self, X):
        apart = ((np.asarray(X)[:, None] - self.X_) ** 2).sum(axis=2)
        return self.y_[apart.argmin(axis=1)]


@pytest.mark.parametrize(
    ("rule", "tau"), [("quadratic", 0.9), pytest.param("pairwise", 0.8, marks=pytest.mark.long)]
)
def test_the_promise_holds_as_often_as_it_says(rule, tau):
    """With 30 rows to fit on, models of folds would differ much from that of all rows."""
    kept, early, runs = 0, [], 20
    for seed in range(runs):
        random = np.random.default_rng([seed, 8])
        X, y = waves(random, 90)
        fresh, _ = waves(random, 400)
        model = ReliableClassifier(
            LinearDiscriminantAnalysis(),
            rule=rule,
            reliability=tau,
            correct=0.8,
            held_out=2 / 3,
            random_state=seed,
        ).fit(X, y)
        assert model.correction_.n == 60
        found = model.predict_early(fresh)
        kept += np.mean(found.label == model.predict(fresh)) >= tau
        early.append(found.time.mean())
    assert binom.cdf(kept, runs, 0.8) >= 1e-3
    assert np.mean(early) < 11.8


def test_what_is_held_out_is_not_fitted(rng):
    X, y = waves(rng, 80, 6)
    options = {"rule": Sampled(64), "reliability": 0.8}
    model = ReliableClassifier(Remembers(), held_out=0.4, **options).fit(X, y)
    assert model.classifier_.X_.shape == (48, 6)
    assert model.correction_.n == 32
    seen = (X[:, None] == model.classifier_.X_).all(axis=2).any(axis=1)
    assert seen.sum() == 48
    again = clone(model).fit(X, y)
    assert_array_equal(again.classifier_.X_, model.classifier_.X_)
    assert clone(model).set_params(correct=False).fit(X, y).classifier_.X_.shape == (80, 6)
    other = clone(model).set_params(random_state=3).fit(X, y)
    assert not np.array_equal(other.classifier_.X_, model.classifier_.X_)


@pytest.mark.parametrize(("rule", "held_out"), [("pairwise", 5), ("mahalanobis", 0.5)])
def test_decision_times_are_those_of_the_correction(rng, rule, held_out, tmp_path):
    """Between the decision times of the folds nothing is known of the rule."""
    X, y = waves(rng, 120, 70)
    options = {"rule": rule, "reliability": 0.7, "held_out": held_out}
    model = ReliableClassifier(LinearDiscriminantAnalysis(), **options).fit(X[:80], y[:80])
    assert len(model.decision_times_) == 49
    assert model.decision_times_[-1] == 70
    early = model.predict_early(X[80:])
    assert np.isin(early.time, model.decision_times_).all()
    assert len(np.unique(early.time)) > 1
    streams = model.streams(40)
    for column in X[80:].T:
        streams.push(column)
    assert_array_equal(streams.time, early.time)
    assert_array_equal(model.predict_early(X[80:], steps=model.decision_times_).time, early.time)
    anywhere = model.predict_early(X[80:], steps=np.arange(1, 71))
    assert np.all(anywhere.time <= early.time)
    raw = model.uncorrected()
    assert not hasattr(raw, "decision_times_")
    assert len(raw.predict_early(X[80:], trace=True).steps) == 70
    ef.save(model, tmp_path / "model.npz")
    assert_array_equal(ef.load(tmp_path / "model.npz").decision_times_, model.decision_times_)


def test_channels_have_common_decision_times(rng):
    X, y = waves(rng, 100, 120)
    series = np.stack([X[:, ::2], X[:, 1::2]], axis=1)
    model = ReliableClassifier(LinearDiscriminantAnalysis(), reliability=0.8).fit(series, y)
    assert model.decision_times_[-1] == model.n_timepoints_ == 60
    assert np.isin(model.predict_early(series).time, model.decision_times_).all()

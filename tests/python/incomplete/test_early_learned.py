"""The learned rule: thresholds that folds confirm keep what they promise, whatever the data."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import eigenfeat as ef
from eigenfeat.incomplete import ReliableClassifier
from eigenfeat.incomplete._rules.calibration import lower_bound
from eigenfeat.incomplete._rules.learned import Thresholds


def bent(random, n, d=14):
    """Walks with jumps and waves, which are not Gaussian, and labels."""
    y = random.integers(0, 2, n)
    X = random.standard_t(3, (n, d)).cumsum(axis=1) / 4
    X += np.where(y == 1, 0.8, -0.8)[:, None] * np.linspace(0, 1.5, d)
    X[:, d // 2 :] += np.sin(3 * X[:, d // 2 :])
    return X, np.array(["down", "up"])[y]


def model_of(**options):
    options = {"rule": "learned", "reliability": 0.9, **options}
    return ReliableClassifier(LinearDiscriminantAnalysis(), **options)


def test_thresholds_are_ranks():
    critical = np.array([0.0, 0.0, 0.3, 0.7])
    mean, bound = Thresholds(critical, 0.0), Thresholds(critical, 0.8)
    scores = np.array([0.0, 0.1, 0.3, 0.31, 0.7, 0.9])
    assert_allclose(mean.share(scores), np.array([0, 2, 2, 3, 3, 4]) / 5)
    assert_allclose(bound.share(scores), lower_bound([0, 2, 2, 3, 3, 4], 4, 0.8))
    assert mean.threshold(0.4) == 0.0
    assert mean.threshold(0.6) == 0.3
    assert mean.threshold(0.8) == 0.7
    assert mean.threshold(0.81) == 1.0
    assert [mean.agreed(tau) for tau in (0.4, 0.6, 0.8, 0.81)] == [2, 3, 4, 4]
    for tau in (0.4, 0.6, 0.8):
        above = np.nextafter(mean.threshold(tau), 1)
        assert mean.share(above) >= tau - 1e-12 > mean.share(mean.threshold(tau)) - 1e-9
    assert Thresholds(np.empty(0), 0.9).threshold(0.5) == 1.0


@pytest.mark.parametrize("tau", [0.8, pytest.param(0.95, marks=pytest.mark.long)])
def test_with_a_confidence_it_is_kept_that_often(tau):
    """Over training sets; folds' models are a little worse than the one on all rows."""
    kept, early, runs = 0, [], 25
    for seed in range(runs):
        random = np.random.default_rng([seed, 3])
        X, y = bent(random, 90)
        fresh, _ = bent(random, 500)
        model = model_of(reliability=tau).fit(X, y)
        found = model.predict_early(fresh)
        kept += np.mean(found.label == model.predict(fresh)) >= tau
        early.append(found.time.mean())
    assert binom.cdf(kept, runs, 0.9) >= 1e-3
    assert np.mean(early) < 13.5


def test_on_average_it_is_kept_on_average():
    agreed, early = [], []
    for seed in range(16):
        random = np.random.default_rng([seed, 4])
        X, y = bent(random, 60)
        fresh, _ = bent(random, 300)
        model = model_of(correct="average").fit(X, y)
        found = model.predict_early(fresh)
        agreed.append(np.mean(found.label == model.predict(fresh)))
        early.append(found.time.mean())
    assert np.mean(agreed) >= 0.9 - 2 * np.std(agreed) / 4
    assert np.mean(early) < 12.5


def test_the_estimate_is_near_what_happens(rng):
    X, y = bent(rng, 400)
    fresh, _ = bent(rng, 1500)
    model = model_of(correct=False).fit(X, y)
    final = model.predict(fresh)
    for t in (4, 9):
        seen = fresh.copy()
        seen[:, t:] = np.nan
        found = model.decide(seen)
        right = found.label == final
        for low, high in ((0.5, 0.8), (0.8, 0.95), (0.95, 1.0)):
            some = (found.reliability >= low) & (found.reliability < high)
            if some.sum() > 60:
                assert abs(right[some].mean() - found.reliability[some].mean()) < 0.12


@pytest.mark.parametrize(
    "classifier",
    [
        ef.GEMClassifier(),
        make_pipeline(StandardScaler(), SVC()),
        RandomForestClassifier(5, random_state=0),
        QuadraticDiscriminantAnalysis(reg_param=0.2),
    ],
    ids=["gem", "svc", "forest", "qda"],
)
@pytest.mark.parametrize("correct", [False, 0.5])
def test_all_ways_of_asking_agree(rng, classifier, correct, tmp_path):
    X, y = bent(rng, 90, 8)
    model = ReliableClassifier(classifier, rule="learned", reliability=0.8, correct=correct)
    model.fit(X, y)
    rows, _ = bent(rng, 20, 8)
    early = model.predict_early(rows)
    streams = model.streams(len(rows))
    for column in rows.T:
        streams.push(column)
    assert_array_equal(streams.time, early.time)
    assert_array_equal(streams.labels, early.label)
    for t in (2, 6):
        seen = rows.copy()
        seen[:, t:] = np.nan
        found = model.decide(seen)
        assert_array_equal(found.decided & (early.time >= t), early.time == t)
        assert_array_equal(found.reliability, model.reliabilities(seen))
        for target in model.classes_:
            assert set(model.decide(seen, target=target).labels) <= {target, None}
    assert_array_equal(clone(model).fit(X, y).reliabilities(seen), model.reliabilities(seen))
    if correct:
        assert 0 < model.held_out_agreement_bound_ < model.held_out_agreement_ <= 1
        assert model.correction_.n == 90
        raw = model.uncorrected()
        assert raw.predict_early(rows).time.mean() <= early.time.mean() + 2
    if not isinstance(classifier, RandomForestClassifier) and "svc" not in str(classifier).lower():
        ef.save(model, tmp_path / "model.npz")
        again = ef.load(tmp_path / "model.npz")
        assert_array_equal(again.reliabilities(seen), model.reliabilities(seen))


def test_few_rows_wait(rng):
    X, y = bent(rng, 30, 8)
    model = model_of(reliability=0.99).fit(X, y)
    assert model.correction_.threshold(0.99) == 1.0
    assert_array_equal(model.predict_early(X).time, 8)
    qda = ReliableClassifier(
        QuadraticDiscriminantAnalysis(), rule="learned", features=PCA(1), reliability=0.5
    )
    some = np.r_[np.flatnonzero(y == "up")[:2], np.flatnonzero(y == "down")[:2]]
    with pytest.warns(UserWarning, match="rule: expected folds"):
        qda.fit(X[some], y[some])
    assert np.isnan(qda.held_out_agreement_)
    assert_array_equal(qda.predict_early(X).time, 8)


def test_calibrate_and_channels(rng):
    X, y = bent(rng, 300, 12)
    series = np.stack([X[:, ::2], X[:, 1::2]], axis=1)
    model = model_of().fit(series[:150], y[:150])
    early = model.predict_early(series[150:])
    assert np.mean(early.label == model.predict(series[150:])) >= 0.9 - 0.05
    model.calibrate(series[150:], agreement=0.9)
    assert 0 < model.reliability_ < 1
    assert not hasattr(model, "correction_")

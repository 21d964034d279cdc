"""Figures of early decisions; calibration: its bounds, and its promise with a wrong model."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from scipy.stats import binom
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.early import (
    EarlyLabels,
    LocalQDA,
    NotCertifiedError,
    ReliableClassifier,
    calibrate,
    early_scores,
    reliability_curve,
)
from eigenfeat.early.calibration import last_rejected
from eigenfeat.early.rules import lower_bounds
from eigenfeat.early.scores import runs


def test_figures_by_hand():
    early = EarlyLabels(np.array(["a", "a", "b", "b"]), np.array([1, 2, 3, 6]))
    found = early_scores(early, 6, complete=list("aabb"), y=list("abbb"))
    assert (found.n, found.reliability, found.accuracy) == (4, 1.0, 0.75)
    assert (found.mean_time, found.earliness) == (3.0, 0.5)
    assert found.harmonic_mean == pytest.approx(2 * 0.75 * 0.5 / 1.25)
    late = early_scores(EarlyLabels(np.array(["a"]), np.array([6])), 6, y=["b"])
    assert late.harmonic_mean == 0.0
    bare = early_scores(early, 6)
    assert bare.reliability is bare.accuracy is bare.harmonic_mean is None


@pytest.mark.parametrize(
    ("classifier", "rule"), [(LinearDiscriminantAnalysis(), "pairwise"), (LocalQDA(8), "box")]
)
def test_a_curve_has_the_figures_of_single_runs(rng, classifier, rule):
    y = rng.integers(0, 3, 150)
    X = rng.standard_normal((150, 12)).cumsum(axis=1) / 3 + y[:, None] * np.linspace(0, 2, 12)
    model = ReliableClassifier(classifier, rule=rule, correct=False).fit(X[:90], y[:90])
    rows, truth = X[90:], y[90:]
    tau = np.linspace(0.05, 0.99, 9)
    curve = reliability_curve(model, rows, truth, tau)
    assert len(curve) == 9
    complete = model.predict(rows)
    assert curve.complete_accuracy == np.mean(complete == truth)
    for k in (0, 4, 8):
        found = early_scores(model.predict_early(rows, tau[k]), 12, complete=complete, y=truth)
        assert curve.mean_time[k] == found.mean_time
        assert curve.reliability[k] == found.reliability
        assert curve.accuracy[k] == found.accuracy
        assert curve.harmonic_mean[k] == found.harmonic_mean
    assert np.all(np.diff(curve.mean_time) >= 0)


@pytest.mark.parametrize(("n", "confidence"), [(1, 0.9), (7, 0.999), (200, 0.5)])
def test_bounds_are_exact(n, confidence):
    """At the bound, as many successes or more have probability 1 - confidence."""
    k = np.arange(1, n + 1)
    bound = lower_bounds(n, 1 - confidence)[k]
    assert_allclose(binom.sf(k - 1, n, bound), 1 - confidence, rtol=1e-6)
    assert lower_bounds(n, 1 - confidence)[0] == 0
    assert np.all(np.diff(bound) > 0)
    assert_allclose(lower_bounds(n, 1 - confidence)[n], (1 - confidence) ** (1 / n))


def test_the_sequence_stops_at_the_first_failure():
    assert last_rejected(np.array([0.9, 0.99, 0.2, 0.95, 0.99]), 0.9) == 3
    assert last_rejected(np.array([0.9, 0.99]), 0.9) == 0
    assert last_rejected(np.array([0.9, 0.99]), 0.995) == -1
    assert last_rejected(np.array([0.9, 0.1]), 0.5) == -1


def test_figures_are_those_of_early_decisions(rng):
    y = rng.integers(0, 2, 200)
    X = rng.standard_normal((200, 10)) + y[:, None]
    model = ReliableClassifier(LinearDiscriminantAnalysis(), correct=False).fit(X[:80], y[:80])
    held, truth = X[80:], y[80:]
    found = calibrate(model, held, truth, agreement=0.8, tau=np.linspace(0.5, 0.99, 12))
    for k in (0, 5, 11):
        early = model.predict_early(held, found.tau[k])
        assert found.held_out_agreement[k] == np.mean(early.label == model.predict(held))
        assert found.accuracy[k] == np.mean(early.label == truth)
        assert found.mean_time[k] == pytest.approx(early.time.mean())
    agreed = np.round(120 * found.held_out_agreement).astype(int)
    assert_allclose(found.lower, lower_bounds(120, 0.1)[agreed])
    assert found.n == 120
    assert found.lower[found.chosen] >= 0.8
    assert found.chosen == 0 or found.lower[found.chosen - 1] < 0.8
    assert f"tau {found.reliability:.6g}" in str(found)
    assert calibrate(model, held, agreement=0.8).accuracy is None


def test_a_calibrated_classifier_uses_its_tau(rng):
    y = rng.integers(0, 2, 300)
    X = rng.standard_normal((300, 10)) + y[:, None]
    model = ReliableClassifier(LinearDiscriminantAnalysis(), reliability=0.999).fit(X[:80], y[:80])
    before = model.predict_early(X[200:])
    assert model.calibrate(X[80:200], y[80:200], agreement=0.9) is model
    tau = model.reliability_
    assert tau == model.calibration_.reliability < 0.999
    early = model.predict_early(X[200:])
    assert_array_equal(early.time, model.predict_early(X[200:], tau).time)
    assert early.time.mean() < before.time.mean()
    assert not hasattr(clone(model), "reliability_")
    assert not hasattr(model, "correction_")  # of which calibration takes the place
    assert model.fit(X[:80], y[:80]).reliability_ == 0.999
    assert not hasattr(model, "calibration_")
    assert_array_equal(model.predict_early(X[200:]).time, before.time)


def test_too_few_rows_certify_nothing(rng):
    y = rng.integers(0, 2, 100)
    X = rng.standard_normal((100, 6)) + 3 * y[:, None]
    model = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X[:60], y[:60])
    before = vars(model).copy()
    with pytest.raises(NotCertifiedError, match="not shown by 40 samples") as caught:
        model.calibrate(X[60:], agreement=0.99)  # log 0.1 / log 0.99 = 229.1
    assert caught.value.calibration.chosen == -1
    assert np.isnan(caught.value.calibration.reliability)
    assert vars(model) == before
    assert pickle.loads(pickle.dumps(caught.value)).calibration.n == 40


def test_calibrations_hold_as_often_as_their_confidence_says():
    """200 draws of held-out rows, with a model that is wrong: far too sure of itself."""
    random = np.random.default_rng(5)
    means = np.array([[0.0] * 8, [0, 0, 0, 0, 1, 1, 1, 1], [0.5, -0.5] * 4])

    def draw(n):
        y = random.integers(0, 3, n)
        heavy = random.standard_t(3, (n, 8)) * np.exp(0.5 * random.standard_normal((n, 1)))
        return means[y] + np.cumsum(heavy, axis=1) / 3, y

    model = ReliableClassifier(LinearDiscriminantAnalysis(), correct=False).fit(*draw(25))
    fresh, _ = draw(20_000)
    complete = model.predict(fresh)
    grid = expit(np.linspace(-2, 8, 24))
    truth = np.array([np.mean(early.label == complete) for early in runs(model, fresh, grid)])
    assert truth[grid < 0.9].min() < 0.8  # tau alone does not hold
    held, certified = 0, 0
    for _ in range(200):
        found = calibrate(model, draw(120)[0], agreement=0.9, confidence=0.9, tau=grid)
        certified += found.chosen >= 0
        held += found.chosen < 0 or truth[found.chosen] >= 0.9
    assert certified >= 150
    assert held >= 180

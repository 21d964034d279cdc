"""Figures of early decisions, by hand and against single runs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.incomplete import (
    EarlyLabels,
    LocalQDA,
    ReliableClassifier,
    early_scores,
    harmonic_mean_score,
    reliability_curve,
)


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


@pytest.fixture
def series(rng):
    y = rng.integers(0, 3, 150)
    X = rng.standard_normal((150, 12)).cumsum(axis=1) / 3 + y[:, None] * np.linspace(0, 2, 12)
    return X, y


@pytest.mark.parametrize(
    ("classifier", "rule"),
    [(LinearDiscriminantAnalysis(), "pairwise"), (LocalQDA(8), "quadratic"), (LocalQDA(8), "box")],
)
def test_many_reliabilities_are_single_runs(series, classifier, rule):
    X, y = series
    model = ReliableClassifier(classifier, rule=rule, correct=False).fit(X[:90], y[:90])
    rows, truth = X[90:], y[90:]
    tau = np.linspace(0.05, 0.99, 25)
    curve = reliability_curve(model, rows, truth, tau)
    assert len(curve) == 25
    complete = model.predict(rows)
    assert curve.complete_accuracy == np.mean(complete == truth)
    for k in (0, 7, 12, 24):
        early = model.predict_early(rows, tau[k])
        found = early_scores(early, 12, complete=complete, y=truth)
        assert curve.mean_time[k] == found.mean_time
        assert curve.reliability[k] == found.reliability
        assert curve.accuracy[k] == found.accuracy
        assert curve.harmonic_mean[k] == found.harmonic_mean
    assert np.all(np.diff(curve.mean_time) >= 0)
    model.reliability = tau[24]
    assert harmonic_mean_score(model, rows, truth) == curve.harmonic_mean[24]
    few = reliability_curve(model, rows, truth, tau[[0, 7, 24]])
    assert_array_equal(few.mean_time, curve.mean_time[[0, 7, 24]])
    assert_array_equal(few.reliability, curve.reliability[[0, 7, 24]])

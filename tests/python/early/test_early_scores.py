"""Scores of early decisions, and Clopper-Pearson bounds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.early import (
    EarlyDecisions,
    LocalQDA,
    MinimumCostClassifier,
    ReliableClassifier,
    ReliableClassifierCV,
    early_scores,
    reliability_curve,
)
from eigenfeat.early.rules import lower_bounds


def test_scores_by_hand():
    early = EarlyDecisions(np.array(["a", "a", "b", "b"]), np.array([1, 2, 3, 6]))
    found = early_scores(early, 6, complete=list("aabb"), y=list("abbb"))
    assert (found.n, found.reliability, found.accuracy) == (4, 1.0, 0.75)
    assert (found.mean_time, found.earliness) == (3.0, 0.5)
    assert found.harmonic_mean == pytest.approx(2 * 0.75 * 0.5 / 1.25)
    late = early_scores(EarlyDecisions(np.array(["a"]), np.array([6])), 6, y=["b"])
    assert late.harmonic_mean == 0.0
    with pytest.raises(ValueError, match="y: expected labels such as 'a', got 0"):
        early_scores(early, 6, y=[0, 0, 1, 1])
    bare = early_scores(early, 6)
    assert bare.reliability is bare.accuracy is bare.harmonic_mean is None


@pytest.mark.parametrize(
    ("classifier", "rule"), [(LinearDiscriminantAnalysis(), "pairwise"), (LocalQDA(8), "box")]
)
def test_a_curve_has_the_scores_of_single_runs(rng, classifier, rule):
    y = rng.integers(0, 3, 150)
    X = rng.standard_normal((150, 12)).cumsum(axis=1) / 3 + y[:, None] * np.linspace(0, 2, 12)
    model = ReliableClassifier(classifier, rule=rule, correct=False).fit(X[:90], y[:90])
    rows, truth = X[90:], y[90:]
    tau = np.linspace(0.05, 0.99, 9)
    curve = reliability_curve(model, rows, truth, tau)
    complete = model.predict(rows)
    for k in (0, 4, 8):
        early = model.predict_early(rows, tau[k])
        assert curve[k] == early_scores(early, 12, complete=complete, y=truth)
    assert np.all(np.diff([one.mean_time for one in curve]) >= 0)


def test_a_curve_accepts_a_search_and_refuses_other_models(rng):
    y = np.arange(60) % 2
    X = rng.standard_normal((60, 5)) + y[:, None]
    lda = LinearDiscriminantAnalysis()
    search = ReliableClassifierCV({"lda": ReliableClassifier(lda)}, n_folds=2).fit(X, y)
    expected = reliability_curve(search.best_estimator_, X, y, [0.9])
    assert reliability_curve(search, X, y, [0.9]) == expected
    other = MinimumCostClassifier(lda, n_times=2).fit(X, y)
    with pytest.raises(ValueError, match="model: expected a fitted ReliableClassifier, got Min"):
        reliability_curve(other, X, y, [0.9])


@pytest.mark.parametrize(("n", "confidence"), [(1, 0.9), (7, 0.999), (200, 0.5)])
def test_bounds_are_exact(n, confidence):
    """At the bound, k or more successes have probability 1 - confidence."""
    k = np.arange(1, n + 1)
    bound = lower_bounds(n, 1 - confidence)[k]
    assert_allclose(binom.sf(k - 1, n, bound), 1 - confidence, rtol=1e-6)
    assert lower_bounds(n, 1 - confidence)[0] == 0
    assert np.all(np.diff(bound) > 0)
    assert_allclose(lower_bounds(n, 1 - confidence)[n], (1 - confidence) ** (1 / n))

"""ReliableClassifierCV: the choice is that of plain loops, and an estimator."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.early import (
    LocalQDA,
    MixtureCompletion,
    ReliableClassifier,
    ReliableClassifierCV,
    early_scores,
)
from eigenfeat.early.series import fold_masks

LDA = ReliableClassifier(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), correct=False)
LOCAL = ReliableClassifier(LocalQDA(4), rule="quadratic", correct=False)


@pytest.fixture(scope="module")
def series():
    """Three templates and noise, 12 samples: rows, labels."""
    random = np.random.default_rng(11)
    templates = 2.0 * random.standard_normal((3, 12)).cumsum(axis=1)
    y = np.array(["a", "b", "c"])[random.integers(0, 3, 120)]
    rows = templates[np.searchsorted(["a", "b", "c"], y)]
    return rows + 4.0 * random.standard_normal(rows.shape), y


def test_the_choice_is_that_of_plain_loops(series):
    X, y = series
    tau = [0.05, 0.3, 0.6, 0.9]
    candidates = {"local": LOCAL, "lda": LDA}
    model = ReliableClassifierCV(candidates, tau=tau, n_folds=3).fit(X, y)
    for name, candidate in candidates.items():
        expected = np.zeros(len(tau))
        for held in fold_masks(y, 3):
            candidate.fit(X[~held], y[~held])
            for k, value in enumerate(tau):
                early = candidate.predict_early(X[held], value)
                scores = early_scores(early, 12, y=y[held])
                expected[k] += scores.harmonic_mean * held.sum() / len(y)
        assert_allclose(model.harmonic_means_[name], expected, rtol=1e-12)
    best = max(model.harmonic_means_, key=lambda name: model.harmonic_means_[name].max())
    assert model.best_candidate_ == best
    assert model.reliability_ == tau[int(model.harmonic_means_[best].argmax())]
    again = candidates[best].fit(X, y)
    early, expected = model.predict_early(X), again.predict_early(X, model.reliability_)
    assert_array_equal(early.label, expected.label)
    assert_array_equal(early.time, expected.time)
    assert_array_equal(model.predict(X), again.predict(X))
    holes = np.where(np.arange(12) < 5, X, np.nan)
    decided = again.decide(holes, model.reliability_)
    assert_array_equal(model.decide(holes).labels, decided.labels)


def test_a_candidate_that_cannot_be_fitted_is_left_out(series):
    X, y = series
    singular = ReliableClassifier(LDA.classifier, MixtureCompletion(shrinkage=0, ridge=0))
    X = np.c_[X, X[:, :1]]  # twice the same column: no density without a ridge
    model = ReliableClassifierCV({"singular": singular, "lda": LDA}).fit(X, y)
    assert model.best_candidate_ == "lda"
    assert np.isnan(model.harmonic_means_["singular"]).all()
    with pytest.raises(ValueError, match="ridge: expected one that makes"):
        ReliableClassifierCV({"singular": singular}).fit(X, y)


@pytest.mark.parametrize("unequal", [False, True])
def test_series_of_channels_are_searched_like_their_rows(series, unequal):
    X, y = series
    channels = [np.stack([row[::2], row[1::2]]) for row in X]
    if unequal:  # the longest may be in any fold
        channels = [one[:, : 6 - (i % 5 > 0)] for i, one in enumerate(channels)]
    tau = [0.5, 0.8, 0.95]
    given = channels if unequal else np.array(channels)
    model = ReliableClassifierCV({"lda": LDA}, tau=tau, n_folds=3).fit(given, y)
    assert (model.n_channels_, model.n_timepoints_, model.n_features_in_) == (2, 6, 12)
    early = model.predict_early(given)
    again = clone(LDA).set_params(correct=False, reliability=model.reliability_).fit(given, y)
    assert_array_equal(early.time, again.predict_early(given).time)
    assert_array_equal(model.predict(given), again.predict(given))
    assert early.time.max() <= 6
    if unequal:
        assert np.isfinite(model.harmonic_means_["lda"]).all()
        return
    expected = np.zeros(3)
    for held in fold_masks(y, 3):
        fitted = clone(again).fit(given[~held], y[~held])
        for k, value in enumerate(tau):
            scores = early_scores(fitted.predict_early(given[held], value), 6, y=y[held])
            expected[k] += scores.harmonic_mean * held.sum() / len(y)
    assert_allclose(model.harmonic_means_["lda"], expected, rtol=1e-12)
    with pytest.raises(ValueError, match="expected 2 channels, got 3"):
        model.predict(np.zeros((2, 3, 6)))
    with pytest.raises(ValueError, match="expected at least two series and as many labels"):
        model.fit(given, y[:-1])
    assert_array_equal(model.predict_early(given).time, early.time)

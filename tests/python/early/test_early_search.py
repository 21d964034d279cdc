"""`ReliableClassifierCV` chooses as plain loops do, and is an estimator."""

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
    Streams,
    early_scores,
)
from eigenfeat.early.series import fold_masks

LDA = ReliableClassifier(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), correct=False)
LOCAL = ReliableClassifier(LocalQDA(4), rule="quadratic", correct=False)


@pytest.fixture(scope="module")
def series():
    """Rows of 12 samples, each one of three templates plus noise, and their labels."""
    random = np.random.default_rng(11)
    templates = 2.0 * random.standard_normal((3, 12)).cumsum(axis=1)
    y = np.array(["a", "b", "c"])[random.integers(0, 3, 120)]
    rows = templates[np.searchsorted(["a", "b", "c"], y)]
    return rows + 4.0 * random.standard_normal(rows.shape), y


def test_the_choice_equals_that_of_plain_loops(series):
    X, y = series
    tau = [0.05, 0.3, 0.6, 0.9]
    candidates = {"local": LOCAL, "lda": LDA}
    model = ReliableClassifierCV(candidates, tau=tau, n_folds=3).fit(X, y)
    expected = {}
    for name, candidate in candidates.items():
        fold_scores = []
        for held in fold_masks(y, 3):
            candidate.fit(X[~held], y[~held])
            early = [candidate.predict_early(X[held], value) for value in tau]
            fold_scores.append([early_scores(one, 12, y=y[held]).harmonic_mean for one in early])
        expected |= {
            (name, t): mean for t, mean in zip(tau, np.mean(fold_scores, axis=0), strict=True)
        }
    assert_allclose(model.cv_results_["mean_test_score"], list(expected.values()), rtol=1e-12)
    best, reliability = max(expected, key=expected.get)
    assert (model.best_candidate_, model.reliability_) == (best, reliability)
    again = candidates[best].fit(X, y)
    early, expected = model.predict_early(X), again.predict_early(X, model.reliability_)
    assert_array_equal(early.label, expected.label)
    assert_array_equal(early.time, expected.time)
    assert_array_equal(Streams(model, len(X)).push(X[:, 0]), np.flatnonzero(early.time == 1))
    assert_array_equal(model.predict(X), again.predict(X))
    holes = np.where(np.arange(12) < 5, X, np.nan)
    decided = again.decide(holes, model.reliability_)
    assert_array_equal(model.decide(holes).labels, decided.labels)


def test_a_candidate_that_cannot_be_fitted_is_left_out(series):
    X, y = series
    singular = ReliableClassifier(LDA.classifier, MixtureCompletion(shrinkage=0, ridge=0))
    X = np.c_[X, X[:, :1]]  # equal columns have no density without a ridge
    model = ReliableClassifierCV({"singular": singular, "lda": LDA}).fit(X, y)
    assert model.best_candidate_ == "lda"
    failed = np.array(model.cv_results_["param_candidate"]) == "singular"
    assert_array_equal(np.isnan(model.cv_results_["mean_test_score"]), failed)
    with pytest.raises(ValueError, match="ridge: expected a number that makes"):
        ReliableClassifierCV({"singular": singular}).fit(X, y)


@pytest.mark.parametrize("unequal", [False, True])
def test_series_of_channels_are_searched_like_their_rows(series, unequal):
    X, y = series
    channels = [np.stack([row[::2], row[1::2]]) for row in X]
    if unequal:  # the longest series may be in any fold
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
    assert np.isfinite(model.best_score_)


def test_many_classes_have_no_gaussians_of_their_own():
    """Covariances would take several times 8 k d^2 bytes: 10 GB for 52 classes, 2,000 columns."""
    y = np.repeat(np.arange(33), 6)
    X = np.random.default_rng(0).standard_normal((198, 4)) + y[:, None]
    model = ReliableClassifierCV(tau=[0.5], n_folds=2).fit(X, y)
    assert model.cv_results_["params"] == [{"candidate": "LDA", "reliability": 0.5}]
    few = ReliableClassifierCV(tau=[0.5], n_folds=2).fit(X[:60], y[:60])
    assert len(few.cv_results_["params"]) == 2

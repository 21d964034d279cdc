"""Corrections by held-out samples keep the promise where the model is wrong."""

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
from sklearn.neighbors import KNeighborsClassifier

from eigenfeat.early import (
    GaussianCompletion,
    ReliableClassifier,
    Sampled,
)
from eigenfeat.early.rules import lower_bounds


def walks(random, n, d=30):
    """Random walks that drift by class."""
    y = random.integers(0, 2, n)
    drift = np.where(y == 1, 0.8, -0.8)[:, None] * np.linspace(0, 1, d)
    return random.standard_normal((n, d)).cumsum(axis=1) / 3 + drift, y


def lda(**options):
    """An overconfident model: without shrinkage, fitted to few more rows than columns."""
    completion = GaussianCompletion(shrinkage=0)
    return ReliableClassifier(LinearDiscriminantAnalysis(), completion, **options)


@pytest.mark.parametrize(
    "tau", [0.9, *(pytest.param(tau, marks=pytest.mark.long) for tau in (0.8, 0.95))]
)
def test_the_correction_restores_a_promise_that_the_model_breaks(tau):
    """The promise holds on average over training sets, as in conformal prediction."""
    raw, corrected, early = [], [], []
    for seed in range(15):
        random = np.random.default_rng(seed)
        X, y = walks(random, 60)
        fresh, _ = walks(random, 300)
        model = lda(reliability=tau, correct="average").fit(X, y)
        complete = model.predict(fresh)
        found = model.predict_early(fresh)
        corrected.append(np.mean(found.label == complete))
        early.append(found.time.mean())
        raw.append(np.mean(model.uncorrected().predict_early(fresh).label == complete))
    assert np.mean(raw) < tau - 0.02
    error = np.std(corrected) / np.sqrt(len(corrected))
    assert np.mean(corrected) >= tau - 2 * error - 1e-3
    assert np.mean(early) < 29.5


def test_the_promise_holds_with_its_confidence():
    kept = 0
    for seed in range(24):
        random = np.random.default_rng([seed, 9])
        X, y = walks(random, 60)
        fresh, _ = walks(random, 600)
        model = lda(reliability=0.9).fit(X, y)
        kept += np.mean(model.predict_early(fresh).label == model.predict(fresh)) >= 0.9
    assert kept >= 24 * 0.9 - 2 * np.sqrt(24 * 0.09)


@pytest.mark.parametrize("rule", ["pairwise", "quadratic", Sampled(64)], ids=str)
def test_without_the_correction_the_rule_decides_alone(rng, rule):
    X, y = walks(rng, 40, 20)
    model = lda(rule=rule, reliability=0.8).fit(X, y)
    fresh, _ = walks(rng, 30, 20)
    assert model.correction_.threshold(0.8) > 0
    rows = np.where(np.arange(20) < 8, fresh, np.nan)
    raw = model.uncorrected()
    assert np.all(model.decide(rows).reliability <= raw.decide(rows).reliability + 1e-12)
    plain = clone(model).set_params(correct=False).fit(X, y)
    assert not hasattr(plain, "correction_")
    assert_array_equal(plain.predict_early(fresh).time, raw.predict_early(fresh).time)


@pytest.mark.parametrize("rule", ["pairwise", "quadratic", Sampled(64)], ids=str)
def test_the_threshold_is_the_largest_score_of_a_wrong_decision(rng, rule):
    """The share of wrong decisions that tau allows is left out."""
    X, y = walks(rng, 90, 12)
    model = lda(rule=rule, reliability=0.7, correct=False).fit(X[:30], y[:30])
    held_out = X[30:]
    traced = model.predict_early(held_out, trace=True)
    wrong = traced.trace_label != model.predict(held_out)[:, None]
    largest = np.sort(np.where(wrong, traced.trace_reliability, 0.0).max(axis=1))
    model.set_params(conditional=None).calibrate(held_out, y[30:])
    enough = largest[lower_bounds(60, 0.1)[1:] >= 0.7]
    assert_allclose(model.correction_.threshold(0.7), enough[0], atol=2e-6)
    assert model.correction_.n == 60
    assert wrong.any()


def test_few_rows_wait(rng):
    X, y = walks(rng, 30, 8)
    model = lda(reliability=0.99).fit(X, y)  # needs 230 rows
    assert model.correction_.threshold(0.99) == np.inf
    assert_array_equal(model.predict_early(X).time, 8)
    qda = QuadraticDiscriminantAnalysis()
    some = np.r_[np.flatnonzero(y == 0)[:2], np.flatnonzero(y == 1)[:2]]
    with pytest.warns(UserWarning, match="correct: expected folds"):
        alone = ReliableClassifier(qda, features=PCA(1)).fit(X[some], y[some])
    assert alone.correction_.n == 0
    assert_array_equal(alone.predict_early(X).time, 8)


def overtures(random, n, d=40):
    """Waves of random phase: the frequency depends on the class, as does a level at the end."""
    y = random.integers(0, 2, n)
    clock = np.arange(d)
    phase = random.uniform(0, 6, (n, 1))
    X = np.sin((0.6 + 0.5 * y[:, None]) * clock + phase) + 0.1 * random.standard_normal((n, d))
    X[:, -5:] += 6.0 * y[:, None]
    return X, y


@pytest.mark.parametrize(("held_out", "target"), [(5, None), (0.5, 1)])
def test_prefix_classifiers_see_differences_that_a_gaussian_does_not(rng, held_out, target):
    X, y = overtures(rng, 120)
    fresh, truth = overtures(rng, 120)
    options = {"held_out": held_out, "reliability": 0.9, "target": target}
    classifier = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    late = ReliableClassifier(classifier, **options).fit(X, y).predict_early(fresh)
    model = ReliableClassifier(classifier, rule="prefixes", **options).fit(X, y)
    early, wanted = model.predict_early(fresh), truth == 1
    assert late.time[wanted].mean() > 30
    assert early.time[wanted].mean() < 20
    assert np.mean(early.label == model.predict(fresh)) >= 0.9
    if target is not None:
        assert_array_equal(early.time[early.label == 0], 40)
    rows = np.where(np.arange(40) < early.time[:, None], fresh, np.nan)
    assert_array_equal(model.decide(rows).labels, early.label)


def test_prefix_classifiers_take_values_up_to_the_last_known_value(rng):
    X, y = overtures(rng, 120)
    classifier = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    model = ReliableClassifier(classifier, rule="prefixes", reliability=0.8).fit(X, y)
    X[:, 2:12] = np.nan
    early = model.predict_early(X[:, None], steps=[16, 40], trace=True)
    found = model.decide(np.where(np.arange(40) < 16, X, np.nan))
    assert_allclose(found.reliability, early.trace_reliability[:, 0], rtol=1e-9)


def test_prefix_classifiers_with_channels_gaps_and_promises_by_time(rng):
    X, y = overtures(rng, 120)
    X = np.stack([X, rng.standard_normal(X.shape)], axis=1)
    X[3, 0, 8:11] = np.nan
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    for conditional in ("predicted", "time"):
        model = ReliableClassifier(lda, rule="prefixes", conditional=conditional, reliability=0.8)
        early = model.fit(X[:80], y[:80]).predict_early(X)
        assert np.mean(early.label == model.predict(X)) >= 0.8
        streams = model.streams(len(X))
        for values in X.transpose(2, 0, 1):
            streams.push(values)
        assert_array_equal(streams.time, early.time)
    with pytest.raises(ValueError, match=r"^X: expected series that differ before their last"):
        model.fit(X[:, :, -1:], y)


def test_prefix_classifiers_wait_before_the_first_time_and_for_the_target(rng):
    y = np.arange(120) % 2
    X = rng.standard_normal((120, 12)) + 6.0 * y[:, None]
    X[:, :3] = 0.0
    options = {"rule": "prefixes", "reliability": 0.8}
    model = ReliableClassifier(LinearDiscriminantAnalysis(), **options).fit(X, y)
    rows = np.where(np.arange(12) < 2, X, np.nan)  # before the first prefix classifier
    assert not model.decide(rows).decided.any()
    assert model.predict_early(X, steps=[2, 12]).time.min() == 12
    options["target"] = 1
    model = ReliableClassifier(LinearDiscriminantAnalysis(), **options).fit(X, y)
    rows = np.where(np.arange(12) < 6, X, np.nan)
    assert_array_equal(model.decide(rows).decided, y == 1)


# ---- samples that are held out from the fit ------------------------------------------------------


def test_enough_samples_are_tested_for_a_high_reliability(rng):
    y = np.arange(5000) % 2
    X = rng.standard_normal((len(y), 4)) + np.outer(y, [20, 0, 0, 0])
    model = lda(reliability=0.9993, conditional=None, held_out=2).fit(X, y)
    assert_array_equal(model.predict_early(X[:20]).time, 1)


def test_parameters_may_be_numpy_scalars(rng):
    X, y = walks(rng, 60, d=8)
    for name, value, scalar in (
        ("correct", True, np.True_),
        ("correct", False, np.False_),
        ("correct", 0.75, np.float32(0.75)),
        ("held_out", 0.5, np.float32(0.5)),
    ):
        plain, same = (lda(**{name: one}).fit(X, y).predict_early(X) for one in (value, scalar))
        assert_array_equal(same.time, plain.time)


def waves(random, n, d=12):
    """Walks that turn back: the first values mislead a Gaussian about the last values."""
    y = random.integers(0, 2, n)
    X = random.standard_t(3, (n, d)).cumsum(axis=1) / 3 + y[:, None] * np.linspace(0, 2, d)
    X[:, d // 2 :] += np.where(np.abs(X[:, [1]]) > 0.6, -2.0, 1.0) * X[:, : d - d // 2]
    return X, y


@pytest.mark.parametrize(
    ("rule", "tau"), [("quadratic", 0.9), pytest.param("pairwise", 0.8, marks=pytest.mark.long)]
)
def test_the_promise_of_held_out_samples_holds_with_its_confidence(rule, tau):
    """With 30 instead of 90 series, models of folds would differ much from that of all series."""
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


def late_difference(random, n):
    """Series sorted by class; the rare class differs in the last five values only."""
    y = (np.arange(n) >= 0.95 * n).astype(int)
    X = 0.3 * random.standard_normal((n, 20))
    X[:, 15:] += 3.0 * y[:, None]
    return X, y


@pytest.mark.parametrize("held_out", [5, 0.5])
def test_the_order_of_the_samples_does_not_matter(held_out):
    """More samples are held out than the correction evaluates."""
    random = np.random.default_rng(0)
    X, y = late_difference(random, 7000)
    fresh, _ = late_difference(random, 2000)
    lda = LinearDiscriminantAnalysis()
    model = ReliableClassifier(lda, reliability=0.98, held_out=held_out).fit(X, y)
    assert np.mean(model.predict_early(fresh).label == model.predict(fresh)) >= 0.98


def test_a_rare_class_stays_in_the_fit():
    for seed in range(20):
        y = np.arange(100) % 2
        y[[3, 50, 90]] = 5
        y[7] = 9
        X = np.random.default_rng(seed).standard_normal((100, 4)) + y[:, None]
        lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1)
        model = ReliableClassifier(lda, held_out=0.5, random_state=seed, reliability=0.8)
        assert_array_equal(model.fit(X, y).classes_, [0, 1, 5, 9])


def test_held_out_samples_are_not_fitted(rng):
    X, y = waves(rng, 80, 6)
    options = {"rule": Sampled(64), "reliability": 0.8, "held_out": 0.4}
    model = ReliableClassifier(KNeighborsClassifier(1), **options).fit(X, y)

    def fitted_to(**changes):
        found = clone(model).set_params(**changes).fit(X, y)
        return found.classifier_.kneighbors(X)[0][:, 0] == 0

    assert fitted_to().sum() == 48
    assert model.correction_.n == 32
    assert_array_equal(fitted_to(), fitted_to())
    assert not np.array_equal(fitted_to(random_state=3), fitted_to())
    assert fitted_to(correct=False).all()


@pytest.mark.parametrize(("rule", "held_out"), [("pairwise", 5), ("mahalanobis", 0.5)])
def test_decision_times_are_those_of_the_correction(rng, rule, held_out):
    """The rule is not tested between the decision times of the correction."""
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
    anywhere = model.predict_early(X[80:], steps=np.arange(1, 71))
    assert np.all(anywhere.time <= early.time)
    raw = model.uncorrected()
    assert not hasattr(raw, "decision_times_")
    assert len(raw.predict_early(X[80:], trace=True).steps) == 70

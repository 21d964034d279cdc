"""Promises by class and by time: they hold with their confidence, also for rare classes."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import binom
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.early import ReliableClassifier, Sampled
from eigenfeat.early.correction import (
    ClassGroups,
    HeldOutDecisions,
    promised_shares,
    strictest,
)
from eigenfeat.early.rules import lower_bounds

CONFIDENCE = 0.9


def lda():
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def rare_events(random, counts, d=10):
    """Random walks; the second and third class leave the first class at random late times."""
    y = np.repeat(np.arange(len(counts)), counts)
    X = 0.5 * random.standard_normal((len(y), d)).cumsum(axis=1)
    onset = random.integers(d // 2, d - 1, len(y))
    X += np.where(np.arange(d) >= onset[:, None], np.array([0.0, 4.0, -4.0])[y][:, None], 0.0)
    order = random.permutation(len(y))
    return X[order], y[order]


def fitted(X, y, tau, seed=0, **options):
    options = {"held_out": 0.5, "random_state": seed, **options}
    return ReliableClassifier(lda(), reliability=tau, **options).fit(X, y)


def agreement(model, X):
    early = model.predict_early(X)
    return early, early.label == model.predict(X)


def min_samples(tau):
    return int(np.ceil(np.log(1 - CONFIDENCE) / np.log(tau)))


# ---- the promises hold with their confidence -----------------------------------------------------

RUNS = 20
TAUS = [0.9, *(pytest.param(tau, marks=pytest.mark.long) for tau in (0.5, 0.7, 0.95, 0.99))]


@pytest.mark.parametrize("tau", TAUS)
def test_every_class_keeps_its_promise(tau):
    """Class frequencies 16:1. A promise for all series holds, but not for the rare class alone."""
    rare = max(4 * min_samples(tau), 40)
    kept, broken, early_share = 0, 0, []
    for seed in range(RUNS):
        random = np.random.default_rng([seed, 1])
        X, y = rare_events(random, [16 * rare, rare])
        new, truth = rare_events(random, [2000, 2000])
        early, agrees = agreement(fitted(X, y, tau, seed), new)
        kept += all(agrees[truth == k].mean() >= tau for k in (0, 1))
        early_share.append(np.mean(early.time < 10))
        _, agrees = agreement(fitted(X, y, tau, seed, conditional=None), new)
        shares = [agrees[truth == k].mean() for k in (0, 1)]
        assert (16 * shares[0] + shares[1]) / 17 >= tau - 0.02
        broken += shares[1] < tau - 0.05
    assert binom.cdf(kept, RUNS, CONFIDENCE) >= 1e-3
    assert np.mean(early_share) > 0.2
    if tau < 0.95:
        assert broken > RUNS / 2


@pytest.mark.parametrize("tau", [0.8, pytest.param(0.95, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "conditional",
    ["predicted", "time", pytest.param(("predicted", "time"), marks=pytest.mark.long)],
)
def test_labels_and_times_keep_their_promises(tau, conditional):
    kept, early_share = 0, []
    for seed in range(RUNS):
        random = np.random.default_rng([seed, 2])
        X, y = rare_events(
            random, [16 * min_samples(tau), 6 * min_samples(tau), 6 * min_samples(tau)]
        )
        new, _ = rare_events(random, [4000, 1500, 1500])
        model = fitted(X, y, tau, seed, conditional=conditional)
        early, agrees = agreement(model, new)
        cells = []
        if "predicted" in conditional:
            cells += [early.label == k for k in range(3)]
        if "time" in conditional:
            cells += [early.time <= t for t in np.unique(early.time)]
        kept += all(agrees[cell].mean() >= tau for cell in cells if cell.any())
        early_share.append(np.mean(early.time < 10))
    assert binom.cdf(kept, RUNS, CONFIDENCE) >= 1e-3
    assert np.mean(early_share) > 0.2


# ---- certified shares ----------------------------------------------------------------------------


def test_shares_by_label_and_time_equal_plain_loops(rng):
    m, q = 80, 5
    code, score = rng.integers(0, 3, (m, q + 1)), rng.random((m, q))
    decisions = HeldOutDecisions(score, code)
    groups = ClassGroups.of(np.arange(3), np.full(3, 30), 9)
    thresholds = np.array([0.0, 0.5, 0.9])
    given = (decisions, thresholds, code[:, -1], groups, np.arange(3), CONFIDENCE)
    by_label, by_time = (promised_shares(one, *given) for one in ("predicted", "time"))
    for k, threshold in enumerate(thresholds):
        time = np.array([next((t for t in range(q) if row[t] > threshold), q) for row in score])
        early = code[np.arange(m), time]
        agrees = early == code[:, -1]
        for c in range(3):
            bounds = lower_bounds(int((early == c).sum()), 1 - CONFIDENCE)
            assert by_label[c, k] == bounds[agrees[early == c].sum()]
        expected = [
            lower_bounds(int((time <= t).sum()), 1 - CONFIDENCE)[agrees[time <= t].sum()]
            for t in np.unique(time)
        ]
        assert by_time[0, k] == min(expected)
    falling = rng.random((2, 9))  # a larger threshold may have a smaller share
    assert_array_equal(strictest(falling), [falling[:, k:].min() for k in range(9)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conditional": "time", "correct": "average"}, "with correct='average', got 'time'"),
        ({"conditional": "true", "correct": False}, "with correct=False, got 'true'"),
        ({"conditional": ("true", "true")}, "conditional: expected 'auto', None, or some of"),
        ({"target": 7}, r"target: expected labels among \[0, 1\], got 7"),
    ],
)
def test_promises_that_cannot_be_given_are_refused(rng, options, message):
    with pytest.raises(ValueError, match=message):
        fitted(*rare_events(rng, [40, 40]), 0.8, **options)


def test_classes_with_few_samples_are_named(rng):
    X, y = rare_events(rng, [120, 6, 80])
    y = np.array(["usual", "odd", "other"])[y]
    few = r"conditional: expected at least 22 held-out samples of each class.* got 6 of class 'odd'"
    with pytest.warns(UserWarning, match=few + "; the promise holds for all"):
        model = fitted(X, y, 0.9, held_out=5)
    plain = fitted(X, y, 0.9, held_out=5, conditional=None)
    assert_array_equal(model.correction_.share, plain.correction_.share)
    with pytest.warns(UserWarning, match=few + ".* and all samples wait for their end"):
        waiting = fitted(X, y, 0.9, held_out=5, conditional="true")
    assert_array_equal(waiting.predict_early(X).time, 10)
    X, y = rare_events(rng, [120, 12, 13])
    with pytest.warns(UserWarning, match="got 12 of class 1, 13 of class 2; these .* one promise$"):
        pooled = fitted(X, y, 0.9, held_out=5, conditional="true")
    assert pooled.predict_early(X).time.mean() < 10
    assert pooled.reliability_by_class_[0] == 0.9
    assert (pooled.reliability_by_class_[1:] < 0.9).all()


def test_a_warning_names_no_more_than_five_classes():
    y = np.repeat(np.arange(9), 8)
    X = np.random.default_rng(0).standard_normal((72, 4)) + y[:, None]
    named = "got " + ", ".join(f"8 of class {k}" for k in range(5)) + ", and too few of 4 more c"
    for conditional in ("auto", "true"):
        with pytest.warns(UserWarning, match=named):
            fitted(X, y, 0.9, held_out=5, conditional=conditional)


class Counted(LinearDiscriminantAnalysis):
    """Counts the samples that it predicts."""

    count = 0

    def predict(self, X):
        Counted.count += len(X)
        return super().predict(X)


def test_too_few_samples_for_any_promise_warn_and_wait_without_predictions(rng):
    X, y = rare_events(rng, [8, 7, 6])
    with pytest.warns(UserWarning, match=r"holds for all samples .*, and all samples wait for"):
        fitted(X, y, 0.9, held_out=5)
    model = ReliableClassifier(Counted(), rule=Sampled(64), conditional=None, reliability=0.9)
    few = "correct: expected at least 22 held-out samples for a reliability of 0.9, got 21; all"
    with pytest.warns(UserWarning, match=few):
        model.fit(X, y)
    for tau in (0.9, np.full(21, 0.95)):
        Counted.count = 0
        early = model.predict_early(X, tau)
        assert_array_equal(early.time, 10)
        assert Counted.count == 21  # at the ends only
    stream, Counted.count = model.stream(), 0
    assert stream.push(X[0, 0]) is None
    assert Counted.count == 0
    assert (model.predict_early(X, 0.5).time < 10).any()
    assert model.predict_early(X, trace=True).trace_reliability[:, :-1].any()


# ---- a class of interest -------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["pairwise", "quadratic", Sampled(64)], ids=str)
@pytest.mark.parametrize("correct", [True, False])
def test_only_the_target_is_decided_before_the_end(rng, rule, correct):
    X, y = rare_events(rng, [90, 60, 60])
    new, _ = rare_events(rng, [40, 40, 40])
    options = {"rule": rule, "correct": correct, "held_out": 5}
    model = fitted(X, y, 0.8, target=1, **options)
    early, agrees = agreement(model, new)
    assert np.all(early.label[early.time < 10] == 1)
    assert (early.time < 10).any()
    assert np.mean(agrees[early.time < 10]) > 0.7
    both = fitted(X, y, 0.8, target=pd.Series([1, 2]), **options).predict_early(new)
    assert set(np.unique(both.label[both.time < 10])) == {1, 2}
    partly = np.where(np.arange(10) < 8, new, np.nan)
    found = model.decide(partly)
    assert np.all(found.label[found.decided] == 1)
    assert np.all(found.reliability[found.label != 1] == 0)


# ---- calibration ---------------------------------------------------------------------------------


def test_further_samples_replace_the_correction():
    kept, together = 0, []
    for seed in range(RUNS):
        random = np.random.default_rng([seed, 4])
        X, y = rare_events(random, [300, 60])
        held_out, labels = rare_events(random, [1600, 100])
        new, truth = rare_events(random, [1000, 1000])
        model = ReliableClassifier(lda(), reliability=0.8, correct=False).fit(X, y)
        model.calibrate(held_out, labels)
        _, agrees = agreement(model, new)
        kept += all(agrees[truth == k].mean() >= 0.8 for k in (0, 1))
        model.set_params(conditional=None).calibrate(held_out, labels)
        _, agrees = agreement(model, new)
        together.append(agrees[truth == 1].mean())
    assert binom.cdf(kept, RUNS, CONFIDENCE) >= 1e-3
    assert np.mean(together) < 0.75
    assert model.correction_.n == 1700
    before = dict(vars(model))
    with pytest.raises(ValueError, match="y: expected 1700 labels, got 3"):
        model.calibrate(held_out, labels[:3])
    with pytest.raises(ValueError, match=r"y: expected labels among \[0, 1\], got \['0', '1'\]"):
        model.calibrate(held_out, labels.astype(str))
    with pytest.raises(ValueError, match=r"agreement: expected a number in \(0, 1\), got 1.5"):
        model.calibrate(held_out, labels, agreement=1.5)
    assert vars(model) == before
    stricter = clone(model).set_params(reliability=0.95).fit(X, y).calibrate(held_out, labels)
    model.calibrate(held_out, labels, agreement=0.95)
    assert model.reliability_ == 0.95
    assert_array_equal(model.correction_.share, stricter.correction_.share)
    assert_array_equal(model.predict_early(new).time, stricter.predict_early(new).time)
    assert not hasattr(model.fit(X, y), "correction_")

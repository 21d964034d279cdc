"""What `fit` learns out of folds: corrected rules keep their promise where the model is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.naive_bayes import GaussianNB

from eigenfeat.demo.early import signals
from eigenfeat.incomplete import (
    GaussianCompletion,
    MixtureCompletion,
    ReliableClassifier,
    Sampled,
)
from eigenfeat.incomplete.reliable import correct_rule
from eigenfeat.incomplete.rules import Correction, lower_bounds
from eigenfeat.incomplete.series import training_rows


def walks(random, n, d=30):
    """Random walks that drift by class."""
    y = random.integers(0, 2, n)
    drift = np.where(y == 1, 0.8, -0.8)[:, None] * np.linspace(0, 1, d)
    return random.standard_normal((n, d)).cumsum(axis=1) / 3 + drift, y


def lda(**options):
    """A model that is too sure of itself, with little more rows than columns to learn from."""
    completion = GaussianCompletion(shrinkage=0)
    return ReliableClassifier(LinearDiscriminantAnalysis(), completion, **options)


def test_shares_are_ranks():
    stable_from = np.array([[0, 2, 5, 9], [0, 0, 2, 5]])
    found = Correction(np.array([1e-12, 0.9]), stable_from, 10, 0.0)
    assert found.n == 4
    tau, known = np.array([0.5, 0.5, 0.95, 0.95]), np.array([1, 5, 1, 5])
    assert_allclose(found.share(tau, known), np.array([1, 3, 2, 4]) / 5)
    assert found.least_known(0.2) == 0
    assert found.least_known(0.6) == 5
    assert found.least_known(0.9) == 10  # 4 rows show no more than 0.8
    bound = Correction(found.tau, stable_from, 10, 0.8)
    assert_allclose(bound.share(tau, known), lower_bounds(4, 0.2)[[1, 3, 2, 4]])
    assert_allclose(
        found.cap(np.array([0.7, 0.7, 0.5, 0.0]), np.array([1, 5, 5, 5])), [0.2, 0.6, 0.5, 0]
    )
    assert_allclose(found.cap(np.array([0.7, 1.0]), np.array([10, 10])), [0.7, 1.0])


@pytest.mark.parametrize(
    "tau", [0.9, *(pytest.param(tau, marks=pytest.mark.long) for tau in (0.8, 0.95))]
)
def test_the_correction_restores_a_promise_that_the_model_breaks(tau):
    """On average over training sets, as conformal prediction has it."""
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


def test_with_a_confidence_the_promise_holds_that_often():
    kept = 0
    for seed in range(24):
        random = np.random.default_rng([seed, 9])
        X, y = walks(random, 60)
        fresh, _ = walks(random, 600)
        model = lda(reliability=0.9).fit(X, y)
        kept += np.mean(model.predict_early(fresh).label == model.predict(fresh)) >= 0.9
    assert kept >= 24 * 0.9 - 2 * np.sqrt(24 * 0.09)


def test_where_the_model_is_right_nothing_is_lost(rng):
    y = rng.integers(0, 2, 1200)
    X = rng.standard_normal((1200, 12)) + 0.8 * y[:, None]
    model = lda(reliability=0.9).fit(X[:400], y[:400])
    found, raw = model.predict_early(X[400:]), model.uncorrected().predict_early(X[400:])
    assert found.time.mean() <= raw.time.mean() + 1
    assert model.reliability_ == 0.9
    assert model.correction_.n == 400


def test_a_looser_reliability_is_not_later(rng):
    """At reliabilities other than the one that was given to `fit`, too."""
    X, y = signals(200, np.random.default_rng(0))
    fresh, _ = signals(100, np.random.default_rng(1))
    classifier = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    model = ReliableClassifier(classifier, MixtureCompletion(), reliability=0.95).fit(X, y)
    times = [model.predict_early(fresh, reliability=tau).time.mean() for tau in (0.6, 0.75, 0.8)]
    assert times == sorted(times)


@pytest.mark.parametrize("rule", ["pairwise", "quadratic", Sampled(64)], ids=str)
def test_all_ways_of_asking_agree(rng, rule):
    X, y = walks(rng, 40, 20)
    model = lda(rule=rule, reliability=0.8).fit(X, y)
    fresh, _ = walks(rng, 30, 20)
    early = model.predict_early(fresh)
    gate = model.correction_.least_known(0.8)
    assert gate > 1 or rule != "pairwise"
    assert np.all(early.time >= gate)
    streams = model.streams(len(fresh))
    for column in fresh.T:
        streams.push(column)
    assert_array_equal(streams.time, early.time)
    assert_array_equal(streams.labels, early.label)
    for t in (2, max(gate - 1, 1), max(gate, 1), 19):
        rows = fresh.copy()
        rows[:, t:] = np.nan
        found = model.decide(rows)
        assert_array_equal(found.decided & (early.time >= t), early.time == t)
        # Held-out rows may support a larger tau with fewer known entries than 0.8.
        assert np.all(found.decided <= (found.reliability >= 0.8))
        largest = model.reliabilities(rows)
        assert np.all(largest[found.decided] >= 0.8 - 1e-6)
        assert np.all(largest <= model.uncorrected().reliabilities(rows) + 1e-12)
    same = clone(model).fit(X, y)
    assert_array_equal(same.correction_.stable_from, model.correction_.stable_from)
    plain = clone(model).set_params(correct=False).fit(X, y)
    assert not hasattr(plain, "correction_")
    assert_array_equal(
        plain.predict_early(fresh).time, model.uncorrected().predict_early(fresh).time
    )


RULES = {
    "pairwise": lda,
    "quadratic": lambda **options: ReliableClassifier(GaussianNB(), **options),
    "mixture": lambda **options: ReliableClassifier(
        QuadraticDiscriminantAnalysis(reg_param=0.1),
        MixtureCompletion(),
        features=PCA(3),
        rule="quadratic",
        **options,
    ),
    "sampled": lambda **options: lda(rule=Sampled(64), **options),
}


@pytest.mark.parametrize(
    ("name", "correct"), [*((name, True) for name in RULES), ("pairwise", "average")]
)
def test_it_is_that_of_all_decisions(rng, name, correct):
    """Of held-out samples only those of other labels are evaluated; here all are, one by one."""
    X, y = walks(rng, 90, 12)
    held_out, held_out_y = X[:60], y[:60]
    X, y = X[60:], y[60:]
    tau, times = 0.7, np.arange(1, 12)
    plain = RULES[name](reliability=tau, correct=False).fit(X, y)
    model = RULES[name](reliability=tau, correct=correct, held_out=2).fit(X, y)
    rows, _, _ = training_rows(plain, held_out, held_out_y)
    correction, steps = correct_rule(plain.set_params(correct=correct), None, None, rows)
    assert_array_equal(steps, times)
    assert_array_equal(correction.tau, model.correction_.tau)
    final = plain.predict(held_out)
    at = int(np.searchsorted(correction.tau, tau))
    wrong = np.empty((60, 11), dtype=bool)
    for t in times:
        now = plain.decide(np.where(np.arange(12) < t, held_out, np.nan), tau)
        wrong[:, t - 1] = now.decided & (now.label != final)
    stable = np.where(wrong.any(axis=1), 12 - wrong[:, ::-1].argmax(axis=1), 0)
    assert_array_equal(correction.stable_from[at], np.sort(stable))
    assert wrong.any()


def test_few_rows_wait(rng):
    X, y = walks(rng, 30, 8)
    model = lda(reliability=0.99).fit(X, y)  # 99 rows are the fewest that can show 0.99
    assert model.correction_.least_known(0.99) == 8
    assert_array_equal(model.predict_early(X).time, 8)
    qda = QuadraticDiscriminantAnalysis()
    some = np.r_[np.flatnonzero(y == 0)[:2], np.flatnonzero(y == 1)[:2]]
    with pytest.warns(UserWarning, match="correct: expected folds"):
        alone = ReliableClassifier(qda, features=PCA(1)).fit(X[some], y[some])
    assert alone.correction_.n == 0
    assert_array_equal(alone.predict_early(X).time, 8)

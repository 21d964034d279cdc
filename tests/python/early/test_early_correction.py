"""What `fit` learns out of folds: corrected rules keep their promise where the model is wrong."""

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
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from eigenfeat.demo.early import signals
from eigenfeat.early import (
    GaussianCompletion,
    MixtureCompletion,
    ReliableClassifier,
    Sampled,
)
from eigenfeat.early.correction import Correction, stable_shares
from eigenfeat.early.reliable import correct_rule
from eigenfeat.early.rules import lower_bounds
from eigenfeat.early.series import training_rows


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
    # By tau, sample and time (2, 5, 9): wrong decisions.
    wrong = np.zeros((2, 4, 3), dtype=bool)
    wrong[0, 1:] = [[1, 0, 0], [0, 1, 0], [1, 0, 1]]
    wrong[1, 2:] = [[1, 0, 0], [0, 1, 0]]
    times, tau = np.array([1, 2, 5]), np.array([1e-12, 0.9])
    everyone = np.zeros(4, dtype=int)
    (shares,) = stable_shares(wrong, everyone, 1, 0.0)
    assert_allclose(5 * shares, [[1, 1, 2, 3], [2, 2, 3, 4]])
    found = Correction.of_shares([shares[None]], tau, times, 10, 0.0, 4)
    asked, known = np.array([0.5, 0.5, 0.95, 0.95]), np.array([1, 5, 1, 5])
    assert_allclose(found.supported(asked, known), np.array([1, 3, 2, 4]) / 5)
    assert found.least_known(0.2) == 0
    assert found.least_known(0.6) == 5
    assert found.least_known(0.9) == 10  # 4 samples show no more than 0.8
    (bounds,) = stable_shares(wrong, everyone, 1, 0.8)
    assert_allclose(bounds, lower_bounds(4, 0.2)[[[1, 1, 2, 3], [2, 2, 3, 4]]])
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
    assert_array_equal(same.correction_.share, model.correction_.share)
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
    plain.set_params(conditional=None)
    model = RULES[name](reliability=tau, correct=correct, held_out=2).fit(X, y)
    rows, _, _ = training_rows(plain, held_out, held_out_y)
    correction, steps, _ = correct_rule(
        plain.set_params(correct=correct), None, None, (rows, held_out_y)
    )
    assert_array_equal(steps, times)
    assert_array_equal(correction.tau, model.correction_.tau)
    final = plain.predict(held_out)
    at = int(np.searchsorted(correction.tau, tau))
    wrong = np.empty((60, 11), dtype=bool)
    for t in times:
        now = plain.decide(np.where(np.arange(12) < t, held_out, np.nan), tau)
        wrong[:, t - 1] = now.decided & (now.label != final)
    stable = np.where(wrong.any(axis=1), 12 - wrong[:, ::-1].argmax(axis=1), 0)
    expected = [np.mean(stable <= t) for t in (0, *times)]
    if correct is True:
        expected = lower_bounds(60, 0.1)[np.rint(60 * np.array(expected)).astype(int)]
    assert_allclose(correction.share[at], np.array(expected) * (1 if correct is True else 60 / 61))
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


# ---- samples that are held out from the fit ------------------------------------------------------


def waves(random, n, d=12):
    """Walks that turn back: the first samples mislead a Gaussian about the last ones."""
    y = random.integers(0, 2, n)
    X = random.standard_t(3, (n, d)).cumsum(axis=1) / 3 + y[:, None] * np.linspace(0, 2, d)
    X[:, d // 2 :] += np.where(np.abs(X[:, [1]]) > 0.6, -2.0, 1.0) * X[:, : d - d // 2]
    return X, y


@pytest.mark.parametrize(
    ("rule", "tau"), [("quadratic", 0.9), pytest.param("pairwise", 0.8, marks=pytest.mark.long)]
)
def test_the_promise_of_held_out_samples_holds_as_often_as_it_says(rule, tau):
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


def late_difference(random, n):
    """Series sorted by class; the rare class shows itself in the last five values."""
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
    assert model.correction_.least_known(0.98) >= 15
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


def test_what_is_held_out_is_not_fitted(rng):
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
    anywhere = model.predict_early(X[80:], steps=np.arange(1, 71))
    assert np.all(anywhere.time <= early.time)
    raw = model.uncorrected()
    assert not hasattr(raw, "decision_times_")
    assert len(raw.predict_early(X[80:], trace=True).steps) == 70

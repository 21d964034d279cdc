"""The choice of a completion by the reliability that held-out rows realise."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import binom
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import eigenfeat as ef
from eigenfeat.incomplete import GaussianCompletion, MixtureCompletion, ReliableClassifier

LDA = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def crossing(random, n, d=12):
    """The second half follows the first one with one sign in a class, with the other in the other.

    One Gaussian of all rows sees no correlation there; Gaussians of classes know it all.
    """
    y = random.integers(0, 2, n)
    first = random.standard_normal((n, d // 2)).cumsum(axis=1) + np.where(y, 1.0, -1.0)[:, None]
    second = np.where(y, 1.0, -1.0)[:, None] * first + 0.1 * random.standard_normal(first.shape)
    return np.concatenate([first, second], axis=1), y


def walks(random, n, d=12):
    """Of both classes with one covariance."""
    y = random.integers(0, 2, n)
    X = random.standard_normal((n, d)).cumsum(axis=1) + y[:, None] * np.linspace(0, 3, d)
    return X, y


def plain_scores(completion, X, y, tau, n_folds, confidence):
    """Agreement and mean share of entries by loops over folds, rows and looks."""
    turn = np.empty(len(y), dtype=int)
    turn[np.argsort(y, kind="stable")] = np.arange(len(y))
    d = X.shape[1]
    records, sinces = [], []
    for fold in range(n_folds):
        held = turn % n_folds == fold
        model = ReliableClassifier(LDA, completion, reliability=tau, correct=False)
        model.fit(X[~held], y[~held])
        for row in X[held]:
            final, looks = model.predict(row[None])[0], []
            for known in range(1, d):
                seen = np.where(np.arange(d) < known, row, np.nan)
                label = model.decide(seen[None]).labels[0]
                looks.append((label is not None, label is not None and label != final))
            wrong = [known for known, (_, bad) in enumerate(looks, 1) if bad]
            sinces.append(max(wrong) + 1 if wrong else 0)
            records.append(looks)
    least = 0
    if confidence is not None:
        n = len(sinces)
        for least in range(d + 1):
            j = sum(since <= least for since in sinces)
            # P(at least j of n) if tau were the share: Clopper and Pearson by its definition
            if least == d or binom.sf(j - 1, n, tau) <= 1 - confidence:
                break
    agreed, times = [], []
    for looks in records:
        at = [k for k, (yes, _) in enumerate(looks, 1) if yes and k >= least]
        times.append(at[0] if at else d)
        agreed.append(not (at and looks[at[0] - 1][1]))
    return np.mean(agreed), np.mean(times) / d


@pytest.mark.parametrize(("correct", "held_out"), [(False, None), (True, None), (0.8, 0.3)])
def test_scores_are_those_of_loops(rng, correct, held_out):
    X, y = walks(rng, 70, 8)
    given = [GaussianCompletion(), MixtureCompletion(), GaussianCompletion(shrinkage=1.0)]
    options = {"reliability": 0.8, "correct": correct, "held_out": held_out, "n_folds": 3}
    model = ReliableClassifier(LDA, given, **options).fit(X, y)
    confidence = None if not correct else 0.9 if correct is True else correct
    if held_out is None and confidence is not None:
        confidence = 1 - (1 - confidence) / 3
    if held_out is not None:
        order = np.random.RandomState(0).permutation(70)
        rest = np.sort(order[21:])
        X, y = X[rest], y[rest]
    for completion, result in zip(given, model.completion_results_, strict=True):
        agreed, time = plain_scores(completion, X, y, 0.8, 3, confidence)
        assert result["completion"] == repr(completion)
        assert result["agreement"] == pytest.approx(agreed, abs=1e-12)
        assert result["time"] == pytest.approx(time, abs=1e-12)


def test_the_earlier_one_is_taken(rng):
    X, y = crossing(rng, 300)
    model = ReliableClassifier(LDA, "auto", reliability=0.9).fit(X, y)
    gaussian, mixture = model.completion_results_
    assert isinstance(model.completion_, MixtureCompletion)
    assert mixture["time"] < gaussian["time"]
    fresh, _ = crossing(rng, 1000)
    other = ReliableClassifier(LDA, reliability=0.9).fit(X, y).predict_early(fresh)
    early = model.predict_early(fresh)
    assert early.time.mean() < other.time.mean()
    assert np.mean(early.label == model.predict(fresh)) >= 0.88

    X, y = walks(rng, 60)  # each class has too few rows for a covariance of its own
    model = ReliableClassifier(LDA, "auto", reliability=0.9).fit(X, y)
    assert isinstance(model.completion_, GaussianCompletion)


def test_it_is_the_model_of_the_chosen_completion(rng):
    """Only the confidence, shared by the candidates, is another one than without a choice."""
    X, y = crossing(rng, 200)
    model = ReliableClassifier(LDA, "auto", reliability=0.9, correct=0.8).fit(X, y)
    alone = ReliableClassifier(LDA, model.completion_, reliability=0.9, correct=0.9).fit(X, y)
    assert model.correction_.confidence == pytest.approx(0.9, abs=1e-12)
    assert_array_equal(model.correction_.since, alone.correction_.since)
    assert_array_equal(model.predict_early(X).time, alone.predict_early(X).time)
    assert model.held_out_agreement_bound_ < alone.held_out_agreement_bound_
    kept = {"reliability": 0.9, "correct": 0.8, "held_out": 0.5}
    model = ReliableClassifier(LDA, "auto", **kept).fit(X, y)
    alone = ReliableClassifier(LDA, model.completion_, **kept).fit(X, y)
    assert model.correction_.confidence == 0.8
    assert_array_equal(model.correction_.since, alone.correction_.since)
    assert model.held_out_agreement_bound_ == alone.held_out_agreement_bound_


def test_rows_that_correct_do_not_choose(rng):
    X, y = crossing(rng, 120)
    options = {"reliability": 0.8, "correct": "average", "held_out": 0.5}
    model = ReliableClassifier(LDA, "auto", **options).fit(X, y)
    kept = np.zeros(120, dtype=bool)
    kept[np.random.RandomState(0).permutation(120)[:60]] = True
    X[kept] = rng.standard_normal((60, 12))
    again = ReliableClassifier(LDA, "auto", **options).fit(X, y)
    assert again.completion_results_ == model.completion_results_
    assert_array_equal(again.completion_.means_, model.completion_.means_)


@pytest.mark.parametrize(
    ("held_out", "rule"),
    [(0.6, "pairwise"), pytest.param(None, "pairwise", marks=pytest.mark.long)],
)
def test_the_promise_survives_the_choice(held_out, rule):
    """Many candidates, so that the best of their bounds would be too large."""
    given = [GaussianCompletion(shrinkage=share) for share in (0.0, 0.3, 0.6, 0.9, 1.0)]
    kept, early, runs, tau, confidence = 0, [], 40, 0.8, 0.8
    for seed in range(runs):
        random = np.random.default_rng([seed, 17])
        X, y = walks(random, 90)
        X[:, 6:] += np.where(np.abs(X[:, [1]]) > 0.6, -2.0, 1.0) * X[:, :6]
        fresh, _ = walks(random, 600)
        fresh[:, 6:] += np.where(np.abs(fresh[:, [1]]) > 0.6, -2.0, 1.0) * fresh[:, :6]
        options = {"correct": confidence, "held_out": held_out, "random_state": seed}
        model = ReliableClassifier(LDA, given, rule, tau, **options).fit(X, y)
        found = model.predict_early(fresh)
        kept += np.mean(found.label == model.predict(fresh)) >= tau
        early.append(found.time.mean())
    assert binom.cdf(kept, runs, confidence) >= 1e-3
    assert np.mean(early) < 11.8


def test_completions_that_cannot_be_fitted_are_not_taken(rng):
    X, y = walks(rng, 40)
    broken = GaussianCompletion(shrinkage=0.0, ridge=0.0)  # singular, as columns are repeated
    given = [broken, GaussianCompletion()]
    model = ReliableClassifier(LDA, given, reliability=0.8, n_folds=2)
    model.fit(np.repeat(X, 2, axis=1), y)
    assert np.isnan(model.completion_results_[0]["time"])
    assert model.completion_.shrinkage == "ledoit-wolf"


@pytest.mark.parametrize("rule", ["pairwise", "quadratic", "learned", "sampled"])
def test_every_rule(rng, rule, tmp_path):
    X, y = walks(rng, 60, 6)
    model = ReliableClassifier(LDA, "auto", rule, 0.7, n_folds=2, n_samples=64).fit(X, y)
    assert len(model.completion_results_) == 2
    again = clone(model).fit(X, y)
    assert again.completion_results_ == model.completion_results_
    path = tmp_path / "model.efm"
    ef.save(model, path)
    loaded = ef.load(path)
    assert loaded.completion_results_ == model.completion_results_
    assert_array_equal(loaded.predict_early(X).time, model.predict_early(X).time)
    again.set_params(completion=None).fit(X, y)
    assert not hasattr(again, "completion_results_")


def test_series_of_several_lengths(rng):
    X, y = crossing(rng, 80)
    series = [row[: 12 - k % 3].reshape(1, -1) for k, row in enumerate(X)]
    model = ReliableClassifier(LDA, "auto", reliability=0.7, n_folds=2).fit(series, y)
    assert all(0 < result["time"] <= 1 for result in model.completion_results_)
    assert len(model.predict_early(series).time) == 80


def test_messages(rng):
    X, y = walks(rng, 30)
    for given in ([], [LDA], [GaussianCompletion(), "auto"]):
        with pytest.raises(ValueError, match="completion: expected completions, at least one, got"):
            ReliableClassifier(LDA, given).fit(X, y)
    with pytest.raises(ValueError, match="'completion' parameter"):
        ReliableClassifier(LDA, "mixture").fit(X, y)
    with pytest.raises(ValueError, match="correct: expected a confidence, or held_out"):
        ReliableClassifier(LDA, "auto", correct="average").fit(X, y)

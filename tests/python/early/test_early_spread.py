"""Corrected pairwise decisions are ordered by how far the known entries are from the model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.early import GaussianCompletion, MixtureCompletion, ReliableClassifier
from eigenfeat.early.rules import DEGREES


def noisy_walks(random, n, d=24):
    """Random walks that drift by class; half of them are four times as noisy as the others."""
    y = random.integers(0, 2, n)
    noise = np.where(random.random(n) < 0.5, 0.3, 1.2)[:, None]
    drift = np.where(y == 1, 0.8, -0.8)[:, None] * np.linspace(0, 1, d)
    return noise * random.standard_normal((n, d)).cumsum(axis=1) / 2 + drift, y


def fitted(X, y, completion=None, **options):
    return ReliableClassifier(LinearDiscriminantAnalysis(), completion, **options).fit(X, y)


@pytest.mark.parametrize("completion", [GaussianCompletion(), MixtureCompletion(overall=0.5)])
def test_scores_are_those_of_plain_loops(rng, completion):
    X, y = noisy_walks(rng, 120, 8)
    new, _ = noisy_walks(rng, 12, 8)
    model = fitted(X, y, completion, reliability=0.6, conditional=None).fitted_
    mixture, t = model.completion.mixture_, 5
    rule_input = model.prefix_input(new, np.array([t]))
    best = model.rule.best_classes(rule_input)
    tau = model.tau(rule_input, best)
    n_parts = len(mixture.weights)
    owners = {1: [X], 3: [X, X[y == 0], X[y == 1]]}[n_parts]
    scores = tau.copy()
    slope = model.scores.B[:, 1] - model.scores.B[:, 0]
    offset = model.scores.b[1] - model.scores.b[0]

    def distance(rows, g):
        apart = rows[:, :t] - mixture.means[g, :t]
        inverse = np.linalg.inv(mixture.covariances[g][:t, :t])
        return np.einsum("ni,ij,nj->n", apart, inverse, apart)

    usual = [distance(owner, g).mean() for g, owner in enumerate(owners)]
    for i in np.flatnonzero(tau >= 0.6):
        weights = rule_input.conditional.weights[i]
        far = sum(w * distance(new[[i]], g)[0] for g, w in enumerate(weights))
        spread = (DEGREES + far) / (DEGREES + weights @ usual)
        total = 0.0
        for g, w in enumerate(weights):
            mean, R = mixture.means[g], mixture.covariances[g]
            gain = R[t:, :t] @ np.linalg.inv(R[:t, :t])
            rest = mean[t:] + gain @ (new[i, :t] - mean[:t])
            ahead = slope @ np.r_[new[i, :t], rest] + offset
            variance = slope[t:] @ (R[t:, t:] - gain @ R[:t, t:]) @ slope[t:]
            sign = 1 if best[i] == 1 else -1
            total += w * norm.cdf(-sign * ahead / np.sqrt(spread * variance))
        scores[i] = 0.6 + 0.4 * (1 - total)
    assert (tau >= 0.6).any()
    assert (tau < 0.6).any()
    assert_allclose(model.rule.score(rule_input, best, tau), scores, rtol=0, atol=1e-9)


def turning(random, n, d=24):
    """Levels by class; a tenth of the series are noisy and turn round in the middle."""
    y = random.integers(0, 2, n)
    turns = (random.random(n) < 0.1)[:, None]
    level = np.where(turns & (np.arange(d) >= d // 2), -1.2, 0.6)
    noise = np.where(turns, 1.5, 0.5) * random.standard_normal((n, d))
    return np.where(y == 1, 1.0, -1.0)[:, None] * level + noise, y


def test_strange_series_wait_so_that_others_are_decided_earlier():
    kept, times = 0, []
    for seed in range(8):
        random = np.random.default_rng([seed, 3])
        X, y = turning(random, 150)
        held_out, labels = turning(random, 150)
        new, _ = turning(random, 600)
        options = {"reliability": 0.95, "conditional": None}
        ordered = fitted(X, y, GaussianCompletion(), **options)
        # Calibrated after a fit without a correction, the rule's tau is the score.
        plain = fitted(X, y, GaussianCompletion(), **options, correct=False)
        for model in (ordered, plain.set_params(correct=True)):
            early = model.calibrate(held_out, labels).predict_early(new)
            kept += np.mean(early.label == model.predict(new)) >= 0.95
            times.append(early.time.mean())
    assert kept >= 16 * 0.9 - 2 * np.sqrt(16 * 0.09)
    assert np.mean(times[::2]) < np.mean(times[1::2]) - 0.5


def test_streams_and_larger_reliabilities_decide_alike(rng):
    X, y = noisy_walks(rng, 200)
    new, _ = noisy_walks(rng, 40)
    model = fitted(X, y, reliability=0.8)
    for tau in (0.7, 0.8, 0.9):
        early, streams = model.predict_early(new, tau), model.streams(len(new), tau)
        for column in new.T:
            streams.push(column)
        assert_array_equal(streams.time, early.time)
        assert_array_equal(streams.labels.astype(int), early.label)
        assert np.all(early.reliability >= tau - 1e-9)

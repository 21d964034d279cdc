"""If the model is right, early labels at tau are final with a frequency of at least tau."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom, chi2
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from eigenfeat.early import GaussianCompletion, MixtureCompletion, ReliableClassifier, Sampled
from eigenfeat.early.chi_squares import bounded_tail, moments_of, tail


def agreement(model, completed, seen, tau):
    """Share of final labels among the decided rows, and number of decided rows."""
    rows = completed.copy()
    rows[:, ~seen] = np.nan
    found = model.decide(rows, tau)
    same = found.label[found.decided] == model.predict(completed)[found.decided]
    return same.mean() if len(same) else 1.0, len(same)


def right_model(random, correlation, mixture, d=8, k=3, n=1500):
    """A completion, labelled rows, and a function that draws rows from its mixture."""
    y = random.integers(0, k, n)
    scale = np.linspace(0.6, 1.6, k)[:, None] if mixture else np.ones((k, 1))
    means = random.standard_normal((k, d)) * 0.7
    rows = np.sqrt(correlation) * random.standard_normal((n, 1))
    rows = rows + np.sqrt(1 - correlation) * random.standard_normal((n, d))
    X = means[y] + scale[y] * rows
    kind = MixtureCompletion if mixture else GaussianCompletion
    completion = kind(shrinkage=0).fit(X, y)

    def draw(m):
        part = random.choice(len(completion.mixture_.weights), m, p=completion.mixture_.weights)
        roots = np.linalg.cholesky(completion.mixture_.covariances)
        normal = random.standard_normal((m, d))
        return completion.mixture_.means[part] + np.einsum("nij,nj->ni", roots[part], normal)

    return completion, X, y, draw


def one_factor(random, n, d, share):
    """Rows of unit variances, all of whose entries but the first share one latent variable."""
    rows = np.sqrt(share) * random.standard_normal((n, 1))
    rows = rows + np.sqrt(1 - share) * random.standard_normal((n, d))
    rows[:, 0] = random.standard_normal(n)
    return rows


@pytest.fixture(scope="module")
def latent():
    """Naive Bayes whose log odds are 2 (2.7 x_0 + 0.02 sum_i x_i), rows, and rows to decide."""
    random, d = np.random.default_rng(5), 101
    means = np.outer([-1.0, 1.0], np.r_[2.7, np.full(d - 1, 0.02)])
    y = np.arange(200) % 2
    classifier = GaussianNB().fit(means[y] + random.standard_normal((len(y), d)), y)
    classifier.theta_, classifier.var_ = means, np.ones_like(means)
    X = one_factor(random, 20000, d, 0.8)
    return classifier, X, one_factor(random, 4000, d, 0.8)


@pytest.mark.parametrize("rule", ["auto", "box"])
def test_a_hundred_missing_entries_that_share_a_latent_variable(latent, rule):
    classifier, X, fresh = latent
    model = ReliableClassifier(
        FrozenEstimator(classifier), GaussianCompletion(shrinkage=0), rule=rule, correct=False
    ).fit(X, classifier.predict(X))
    seen = np.arange(X.shape[1]) == 0
    for tau in (0.9, 0.99, 0.999):
        realised, count = agreement(model, fresh, seen, tau)
        assert realised >= tau - 2 * np.sqrt(tau * (1 - tau) / max(count, 1)), tau
        assert count > 20 or rule == "box"


CLASSIFIERS = {
    "linear": LinearDiscriminantAnalysis(),
    "bayes": GaussianNB(),
    "qda": QuadraticDiscriminantAnalysis(reg_param=0.1),
}
TAUS = (0.5, 0.9, 0.99, 0.999)


OFTEN = [("linear", True, 0.8), ("bayes", False, 0.8), ("qda", True, 0.8)]
CASES = [(name, *case) for name in CLASSIFIERS for case in product((False, True), (0.0, 0.8))]


@pytest.mark.parametrize(
    ("name", "mixture", "correlation"),
    [case if case in OFTEN else pytest.param(*case, marks=pytest.mark.long) for case in CASES],
)
def test_tau_holds_where_the_model_is_right(name, mixture, correlation):
    random = np.random.default_rng([int(100 * correlation), mixture, len(name)])
    completion, X, y, draw = right_model(random, correlation, mixture)
    fresh = draw(100 if mixture else 400)
    d = X.shape[1]
    masks = [np.arange(d) < 3, random.permutation(d) < 5]
    decided = {}
    rules = {
        "linear": ("pairwise", "mahalanobis", "box", "chebyshev"),
        "bayes": ("box", "chebyshev"),
        "qda": (Sampled(512),),
    }[name]
    for rule in ("quadratic", *rules):
        model = ReliableClassifier(CLASSIFIERS[name], completion, rule=rule, correct=False)
        model.fit(X, y)
        for mask in masks:
            for tau in TAUS:
                realised, count = agreement(model, fresh, mask, tau)
                # By chance, a few of about 250 shares are two standard errors below tau.
                chance = binom.cdf(round(realised * count), count, tau)
                assert chance >= 1e-3, (rule, mask, tau, realised, count)
                decided[rule] = decided.get(rule, 0) + count
    assert min(decided.values()) > 0


def test_weighted_chi_squares(rng):
    levels = np.array([1 - 1e-6, 0.999, 0.9, 0.7, 0.5, 0.4, 0.3, 0.1, 1e-2, 1e-3, 1e-6, 1e-12])
    for m in (1, 2, 5, 100, 1000):
        weights = np.full((len(levels), m), 3.0)
        assert_allclose(tail(weights, 3 * chi2.isf(levels, m)), levels, rtol=1e-6)
    for weights in (
        np.r_[80.2, np.full(99, 0.2)],
        10.0 ** -np.arange(10),
        rng.exponential(size=30),
        np.r_[1.0, 1e-9, 0.0],
    ):
        draws = (rng.standard_normal((30000, len(weights))) ** 2) @ weights
        wanted = np.array([0.99, 0.5, 0.1, 0.01, 0.001])
        x = np.quantile(draws, 1 - wanted)
        found = tail(np.repeat(weights[None], 5, axis=0), x)
        assert np.all(np.abs(found - wanted) <= 4 * np.sqrt(wanted * (1 - wanted) / len(draws)))
        assert np.all(bounded_tail(moments_of(weights), x) >= found)  # Laurent and Massart
        ascending = np.repeat(np.sort(weights)[None], 5, axis=0)
        rough = tail(ascending, x, 0.2)  # tails above 0.2 may be bounds
        assert_allclose(rough[found <= 0.2], found[found <= 0.2], rtol=1e-6)
        assert np.all(rough >= (1 - 1e-6) * found)
    assert_array_equal(tail(np.zeros((1, 3)), np.ones(1)), 0.0)
    assert_array_equal(tail(np.ones((2, 3)), np.array([0.0, 1e18])), [1.0, 0.0])

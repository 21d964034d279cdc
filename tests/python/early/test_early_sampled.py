"""The sampled rule: any classifier, and a bound that holds at whichever stage the test stops."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import binom, norm
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import eigenfeat as ef
from eigenfeat.early import (
    GaussianCompletion,
    LocalQDA,
    ReliableClassifier,
    Sampled,
)
from eigenfeat.early.sampling import SampledRule

D = 10
CLASSIFIERS = {
    "bayes": GaussianNB(),
    "qda": QuadraticDiscriminantAnalysis(reg_param=0.1),
    "local": LocalQDA(8),
    "gem": ef.GEMClassifier(),
    "pipeline": make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()),
    "forest": RandomForestClassifier(4, random_state=0),
    "svc": SVC(),
}


def walks(random, n, d=D):
    y = random.integers(0, 3, n)
    X = random.standard_normal((n, d)).cumsum(axis=1) / 2 + y[:, None] * np.linspace(0, 3, d)
    return X, np.array(["down", "flat", "up"])[y]


class Slices(ClassifierMixin, BaseEstimator):
    """Classifier: the number of edges below the second column."""

    def __init__(self, edges=(0.0,)):
        self.edges = edges

    def fit(self, X, y):
        self.classes_ = np.arange(len(self.edges) + 1)
        return self

    def predict(self, X):
        return np.searchsorted(self.edges, X[:, 1])


@pytest.mark.parametrize(
    "shares", [[0.5, 0.5], [0.03, 0.97], [1 / 16] * 16], ids=["even", "clear", "many"]
)
def test_the_largest_bound_of_all_stages_holds(shares, monkeypatch):
    """Over seeds, the largest bound is too large with probability at most RISK."""
    monkeypatch.setattr("eigenfeat.early.sampling.RISK", 0.1)
    corners = np.array([[-1.0, -1], [1, -1], [-1, 1], [1, 1]])
    known = GaussianCompletion(shrinkage=0, ridge=1e-9).fit(corners)
    classifier = Slices(tuple(norm.ppf(np.cumsum(shares[:-1]))))
    model = ReliableClassifier(classifier, known, rule=Sampled(256), correct=False)
    rule = model.fit(corners, [0, 0, 1, 1]).fitted_.rule
    rule_input, too_large, n = model.fitted_.rule_input(np.array([[0.0, np.nan]])), 0, 500
    for seed in range(n):
        fresh = SampledRule(rule.predict, rule.n_samples, seed)
        (best,) = fresh.best_classes(rule_input)  # from completions that the bound does not count
        too_large += fresh.bound(rule_input, np.array([best]))[0] > shares[best]
    assert binom.sf(too_large - 1, n, 0.1) > 1e-3
    assert too_large > 0  # the bound is not much too small


@pytest.mark.parametrize("name", ["local", "gem", "forest"])
def test_methods_agree_for_any_classifier(rng, name):
    X, y = walks(rng, 90)
    model = ReliableClassifier(
        CLASSIFIERS[name], rule=Sampled(64), reliability=0.7, correct=False
    ).fit(X, y)
    rows, _ = walks(rng, 12)
    early = model.predict_early(rows, trace=True)
    assert_array_equal(early.label[early.time == D], model.predict(rows)[early.time == D])
    assert early.time.mean() < D
    for t in (2, 7):
        seen = rows.copy()
        seen[:, t:] = np.nan
        found = model.decide(seen)
        assert_array_equal(found.decided & (early.time >= t), early.time == t)
        assert_array_equal(found.decided, found.reliability >= 0.7)
        assert_array_equal(found.reliability, early.trace_reliability[:, t - 1])
    holes = np.where(rng.uniform(size=rows.shape) < 0.4, np.nan, rows)
    assert model.decide(holes).decided.any()
    again = clone(model).fit(X, y)
    assert_array_equal(again.decide(holes).reliability, model.decide(holes).reliability)


def test_auto_is_sampled_where_there_are_no_discriminants(rng):
    X, y = walks(rng, 60)
    for name in ("gem", "pipeline", "forest", "svc"):
        model = ReliableClassifier(CLASSIFIERS[name], correct=False).fit(X, y)
        assert model.rule_ == "sampled"
        assert model.fitted_.discriminants is None
    assert ReliableClassifier(LogisticRegression(), correct=False).fit(X, y).rule_ == "pairwise"
    assert ReliableClassifier(LocalQDA(4), correct=False).fit(X, y).rule_ == "sampled"
    frozen = FrozenEstimator(CLASSIFIERS["forest"].fit(X, y))
    assert ReliableClassifier(frozen, correct=False).fit(X, y).rule_ == "sampled"


class Continuous(ClassifierMixin, LinearRegression):
    """A classifier that predicts numbers other than labels."""


def test_wrong_classifiers_and_predictions_are_named(rng):
    X, y = walks(rng, 60)
    with pytest.raises(ValueError, match="classifier: expected predict to return labels in"):
        ReliableClassifier(Continuous(), rule="sampled", correct=False).fit(
            X, (y == "up").astype(int)
        ).decide(np.where(X > 0, X, np.nan))

    class Odd(Slices):
        def predict(self, X):
            return np.zeros((len(X), 2))

    model = ReliableClassifier(Odd(), rule="sampled", correct=False).fit(X, y)
    with pytest.raises(ValueError, match="classifier: expected predict to return 32 labels"):
        model.decide([[np.nan] * D])
    with pytest.raises(ValueError, match="'classifier' parameter"):
        ReliableClassifier(StandardScaler()).fit(X, y)


# ---- numbers of samples --------------------------------------------------------------------------


def ramps(random, n):
    y = random.integers(0, 2, n)
    return random.standard_normal((n, 6)) + 6 * y[:, None], y


def lda(rule, **options):
    return ReliableClassifier(LinearDiscriminantAnalysis(), rule=rule, **options)


def test_the_largest_reliability(rng):
    X, y = ramps(rng, 60)
    model = lda(Sampled(8192), reliability=0.999, correct=False).fit(X, y)
    reach = (0.01 / 9) ** (1 / 8192)
    assert model.largest_reliability_ == pytest.approx(reach, abs=1e-12)
    seen = X[:4].copy()
    seen[:, 4:] = np.nan
    assert model.decide(seen).reliability.max() == pytest.approx(reach, abs=1e-12)
    assert model.decide(seen).decided.all()
    assert not model.decide(seen, model.largest_reliability_ + 1e-6).decided.any()
    exact = lda("pairwise", reliability=0.999, correct=False).fit(X, y)
    assert exact.largest_reliability_ == 1.0


@pytest.mark.parametrize("tau", [0.5, 0.999])
def test_auto_reaches_the_required_reliability(rng, tau):
    X, y = ramps(rng, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = lda("sampled", reliability=tau, correct=False).fit(X, y)
    assert model.largest_reliability_ >= (1 + tau) / 2
    assert model.fitted_.rule.cost >= 1024


def test_too_few_samples_warn(rng):
    X, y = ramps(rng, 60)
    with pytest.warns(UserWarning, match=r"n_samples: expected at least 1024 for .* got 256"):
        model = lda(Sampled(256), reliability=0.99, correct=False).fit(X, y)
    assert model.largest_reliability_ < 0.99
    assert np.all(model.predict_early(X).time == 6)
    with pytest.warns(UserWarning, match="n_samples: expected a smaller reliability"):
        lda("sampled", reliability=1 - 1e-9, correct=False).fit(X[:20], y[:20])
    for given in (1000, "many", 0):
        with pytest.raises(ValueError, match=r"n_samples: expected a power of two in 2\.\.104857"):
            Sampled(n_samples=given)

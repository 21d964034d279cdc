"""Sets, rules and `ReliableClassifier`: promised and observed reliabilities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

from eigenfeat import MultinomialLogit
from eigenfeat.early import (
    GaussianCompletion,
    LocalQDA,
    MixtureCompletion,
    ReliableClassifier,
    Sampled,
)
from eigenfeat.early.rules import Linear, discriminants_of
from eigenfeat.early.set_rules import SETS, SetRule, largest_radii

RULES = ("pairwise", "chebyshev", "mahalanobis", "quadratic", "box", "sampled")
MARKED_RULES = [
    rule if rule in ("pairwise", "quadratic") else pytest.param(rule, marks=pytest.mark.long)
    for rule in RULES
]
CLASSIFIERS = {
    "lda": LinearDiscriminantAnalysis(),
    "logit": MultinomialLogit(),
    "qda": QuadraticDiscriminantAnalysis(reg_param=0.1),
    "bayes": GaussianNB(),
    "local": LocalQDA(32),
}

# Classifiers that a rule supports; other rules support all classifiers.
SUPPORTED = {"pairwise": ("lda",), "mahalanobis": ("lda",), "box": ("lda", "bayes")}


@pytest.fixture(scope="module")
def series():
    """Function that draws n Gaussian series of d values, of k classes of equal covariance."""
    random = np.random.default_rng(7)

    def draw(n, d=12, k=3, apart=0.6):
        means = np.random.default_rng(k).standard_normal((k, d)) * apart
        root = np.linalg.cholesky(0.9 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))))
        y = random.integers(0, k, n)
        return means[y] + random.standard_normal((n, d)) @ root.T, y

    return draw


def with_samples(rule, n):
    return Sampled(n) if rule == "sampled" else rule


def with_missing(X, share=0.4, seed=0):
    rows = X.copy()
    rows[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return rows


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        *(("lda", "mahalanobis"), ("lda", "box"), ("bayes", "box"), ("bayes", "chebyshev")),
        *(("bayes", "quadratic"), ("lda", "quadratic"), ("qda", "quadratic")),
    ],
)
def test_radii_are_the_largest_on_which_a_class_dominates(series, rng, name, rule):
    X, y = series(300, d=6)
    rows, _ = series(20, d=6)
    rows[:, 3:] = np.nan
    model = ReliableClassifier(CLASSIFIERS[name], rule=rule, correct=False).fit(X, y)
    case, kind = model.fitted_.rule_input(rows), SETS[rule]
    radii = largest_radii(case, kind, SetRule(kind).best_classes(case), np.zeros(20))
    known = model.completion_.condition(rows)
    edge = rng.standard_normal((10_000, 3))
    edge /= np.linalg.norm(edge, axis=1, ord=np.inf if rule == "box" else 2)[:, None]
    for mean, R, radius in zip(known.mean, known.covariance[:, 3:, 3:], radii, strict=True):
        S = np.linalg.cholesky(R) if kind.full_covariance else np.diag(np.sqrt(np.diag(R)))
        apart = np.pad(edge @ S.T, [(0, 0), (3, 0)])
        label, *inside = model.predict(mean + 0.999 * radius * np.vstack([0 * apart[:1], apart]))
        assert set(inside) == {label}
        assert radius > 9 or set(model.predict(mean + 1.03 * radius * apart)) != {label}
    assert np.ptp(radii) > 0.5


@pytest.mark.parametrize("rule", MARKED_RULES)
def test_early_decisions_are_those_of_the_prefixes(series, rule):
    X, y = series(200)
    T, _ = series(12)
    for name in SUPPORTED.get(rule, ("lda", "bayes", "qda")):
        model = ReliableClassifier(CLASSIFIERS[name], rule=with_samples(rule, 64), reliability=0.7)
        model.fit(X, y)
        early = model.predict_early(T, trace=True)
        assert_array_equal(early.steps, np.arange(1, 13))
        for t in range(1, 13):
            rows = T.copy()
            rows[:, t:] = np.nan
            found = model.decide(rows)
            assert_allclose(early.trace_reliability[:, t - 1], found.reliability, atol=2e-6)
            assert_array_equal(early.trace_label[:, t - 1], found.label)
            assert_array_equal(found.decided & (early.time >= t), early.time == t)
            assert_array_equal(early.label[early.time == t], found.label[early.time == t])
        assert np.all(early.reliability >= 0.7 - 1e-6)
        plain = model.predict_early(T)
        assert plain.trace_label is None
        assert_array_equal(plain.time, early.time)
        few = model.predict_early(T, steps=[4, 8])
        assert set(few.time) <= {4, 8, 12}
        at_four = early.trace_reliability[:, 3] >= 0.7
        assert_array_equal(few.time == 4, at_four)


def test_first_decisions_of_long_series_stay_in_a_trace(series):
    X, y = series(200, 40, apart=0.3)
    model = ReliableClassifier(CLASSIFIERS["lda"], reliability=0.8).fit(X, y)
    plain, traced = model.predict_early(X), model.predict_early(X, trace=True)
    assert (plain.time < 16).any()
    assert_array_equal(traced.time, plain.time)
    assert_array_equal(traced.label, plain.label)
    assert_array_equal(traced.reliability, plain.reliability)


def test_linear_discriminants_average_two_completions(series):
    X, y = series(120)
    rows = series(20)[0]
    rows[:, 5:] = np.nan
    parts = [GaussianCompletion(), MixtureCompletion(), None]
    one, classes, default = (
        ReliableClassifier(LinearDiscriminantAnalysis(), part, correct=False).fit(X, y).decide(rows)
        for part in parts
    )
    alike = one.label == classes.label
    mean = (one.reliability + classes.reliability) / 2
    assert_allclose(default.reliability[alike], mean[alike], rtol=0, atol=1e-12)
    assert np.ptp(one.reliability - classes.reliability) > 0.01


def test_default_completion_of_other_samples_is_one_gaussian(series):
    X, y = series(66)
    series_with_gaps = X[:, None].copy()
    series_with_gaps[3, 0, 2] = np.nan
    equal_in_class = np.repeat(np.eye(3, 12), 22, axis=0)
    for samples, labels, classifier in (
        (X, y, GaussianNB()),
        (series_with_gaps, y, LinearDiscriminantAnalysis()),
        (equal_in_class, np.repeat([0, 1, 2], 22), RidgeClassifier()),
        (X, np.arange(66) % 33, LinearDiscriminantAnalysis()),
    ):
        model = ReliableClassifier(classifier, correct=False).fit(samples, labels)
        assert isinstance(model.completion_, GaussianCompletion)


def test_two_classes_and_linear_discriminants_are_exact(series, rng):
    X, y = series(400, k=2)
    model = ReliableClassifier(LinearDiscriminantAnalysis(), GaussianCompletion()).fit(X, y)
    assert model.rule_ == "pairwise"
    rows = with_missing(series(20, k=2)[0])
    known = model.completion_.condition(rows)
    decided = model.decide(rows)
    label, largest = decided.label, decided.reliability
    for i in range(20):
        draws = rng.multivariate_normal(known.mean[i], known.covariance[i], 20000)
        share = (model.predict(draws) == label[i]).mean()
        assert abs(share - largest[i]) <= 4 * np.sqrt(0.25 / 20000)


def test_rules_that_do_not_support_a_classifier_name_other_rules(series):
    X, y = series(100)
    for name, rule in (("bayes", "pairwise"), ("qda", "mahalanobis"), ("qda", "box")):
        with pytest.raises(ValueError, match=rf"^rule: expected 'quadratic'.*got '{rule}'"):
            ReliableClassifier(CLASSIFIERS[name], rule=rule).fit(X, y)


def test_complete_rows_are_decided_as_predicted(series):
    X, y = series(200)
    T, _ = series(20)
    for name in ("lda", "logit", "qda", "local"):
        classifier = CLASSIFIERS[name]
        model = ReliableClassifier(classifier, reliability=0.9, correct=name == "lda").fit(X, y)
        found = model.decide(T)
        assert_array_equal(found.labels, model.predict(T), err_msg=name)
        assert_array_equal(found.reliability, 1.0)
        assert_array_equal(found.missing, 0)
        rows = T.copy()
        rows[3] = np.nan
        mixed = model.decide(rows)
        assert mixed.missing[3] == 12
        assert_array_equal(mixed.label[4:], found.label[4:])
        assert_array_equal(model.predict(T), classifier.fit(X, y).predict(T))


@pytest.mark.parametrize(("name", "rule"), [("lda", "pairwise"), ("bayes", "quadratic")])
def test_features(series, name, rule):
    X, y = series(120)
    rows = with_missing(series(20)[0], 0.2)
    model = ReliableClassifier(CLASSIFIERS[name], rule=rule, features=PCA(4), reliability=0.5)
    model.fit(X, y)
    reduced = model.features_.transform(X)
    assert_array_equal(model.predict(X), clone(model.classifier).fit(reduced, y).predict(reduced))
    assert model.decide(rows).decided.any()
    frozen = FrozenEstimator(PCA(4).fit(X))
    classifier = FrozenEstimator(LocalQDA(8).fit(frozen.transform(X), y))
    model = ReliableClassifier(classifier, features=frozen).fit(X[:50], y[:50])
    assert_array_equal(model.predict(X), classifier.predict(frozen.transform(X)))


def test_threads_and_tau_by_row(series):
    X, y = series(150)
    rows = with_missing(series(60)[0])
    for name in ("lda", "local", "qda"):
        options = {"reliability": 0.9, "rule": Sampled(64) if name == "local" else "auto"}
        options["correct"] = name == "lda"
        expected = ReliableClassifier(CLASSIFIERS[name], n_threads=1, **options).fit(X, y)
        first = expected.decide(rows).reliability
        other = ReliableClassifier(CLASSIFIERS[name], n_threads=2, **options).fit(X, y)
        assert other.decide(rows).reliability.tobytes() == first.tobytes()
        taus = np.linspace(0.01, 0.99, 60)
        found = expected.decide(rows, taus)
        assert np.all((first >= taus - 1e-5) >= found.decided)


def test_errors_of_decisions(series):
    X, y = series(100)
    model = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X, y)
    with pytest.raises(ValueError, match="reliability: expected numbers in"):
        model.decide(X, 1.5)
    with pytest.raises(ValueError, match="reliability: expected a number or shape"):
        model.decide(X, [0.5, 0.6])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(with_missing(X))
    with pytest.raises(ValueError, match="NaN"):
        model.predict_early(with_missing(X))
    with pytest.raises(ValueError, match="got inf in row"):
        model.decide(np.where(X > 1, np.inf, X))
    with pytest.raises(ValueError, match="steps: expected ascending"):
        model.predict_early(X, steps=[3, 2])


# ---- linear classifiers --------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(),
        Perceptron(),
        RidgeClassifier(fit_intercept=False),
        LinearSVC(multi_class="crammer_singer"),
        SVC(kernel="linear"),
        MultinomialLogit(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_discriminants_of_linear_classifiers(rng, classifier):
    for k, d in ((2, 1), (2, 5), (3, 2), (4, 5)):
        codes = np.arange(20 * k) % k
        X = np.abs(rng.standard_normal((len(codes), d)))
        X[np.arange(len(codes)), codes % d] += 3 + codes // d
        model = clone(classifier).fit(X, np.array(["u", "v", "w", "x"])[codes])
        if isinstance(model, SVC) and k > 2:  # one discriminant for each pair of classes
            with pytest.raises(ValueError, match=r"^classifier: expected linear or q"):
                discriminants_of(model, X)
            continue
        found = discriminants_of(model, X)
        assert isinstance(found, Linear)
        assert found.slopes.shape == (k, d)
        predicted = model.classes_[found.scores(X).argmax(axis=1)]
        assert np.mean(predicted == model.predict(X)) > 0.98  # predictions may differ in ties


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_of_float32_samples(series, name):
    X, y = series(80)
    models = [
        ReliableClassifier(FrozenEstimator(clone(CLASSIFIERS[name]).fit(rows, y)), correct=False)
        for rows in (X, X.astype(np.float32))
    ]
    double, single = (model.fit(X, y).predict_early(X, reliability=0.8) for model in models)
    assert np.mean(single.time == double.time) > 0.9


def test_regressors_are_no_classifiers(rng):
    rows, y = rng.standard_normal((60, 5)), np.arange(60) % 2
    for labels in (y, np.where(y, "a", "b")):
        with pytest.raises(ValueError, match="classifier: expected a classifier, got Ridge"):
            ReliableClassifier(Ridge()).fit(rows, labels)


def test_series_of_one_entry_have_nothing_to_correct(rng):
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 1)) + 2 * y[:, None]
    model = ReliableClassifier(LinearDiscriminantAnalysis(), rule="sampled").fit(X, y)
    assert_array_equal(model.predict_early(X).time, 1)
    assert model.score(X, y) > 0.6

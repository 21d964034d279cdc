"""The pool of views of `TableClassifier`: each view against plain definitions, and their pool."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, mutual_info_score
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from eigenfeat import GEMClassifier, TableClassifier, TableRegressor
from eigenfeat.linear.pools import pool_weights
from eigenfeat.tables.classification_views import VIEWS
from eigenfeat.tables.estimator import table_of
from eigenfeat.tables.representations import Kernel, TableStatistics, bin_tables, ranked_pairs
from eigenfeat.tables.trees import grow
from eigenfeat.tables.views import Samples

EPS = np.finfo(np.float64).eps


def columns(seed=0, n=200):
    random = np.random.RandomState(seed)
    X = np.column_stack(
        [
            random.randn(n),
            np.exp(2 * random.randn(n)),
            random.randint(0, 2, n),
            random.randint(0, 5, n),
            np.full(n, 0.1),
        ]
    )
    return X.astype(np.float64)


@pytest.fixture(scope="module")
def pool():
    """A fitted pool of all views, and its samples."""
    X, y = load_wine(return_X_y=True)
    return TableClassifier().fit(X, y), X


def test_samples_are_predicted_in_parts_by_any_number_of_threads():
    X, y = load_wine(return_X_y=True)
    model = TableClassifier(["columns", "gem", "kernel"]).fit(X, y)
    rows = np.tile(X, (50, 1))
    found = [model.set_params(n_threads=t).decision_function(rows) for t in (None, 1, 2, 7)]
    expected = np.tile(model.decision_function(X), (50, 1))
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-4)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


# ---- what is learned without labels --------------------------------------------------------------


def test_statistics_are_those_of_repeated_samples():
    X = columns()
    weight = np.random.RandomState(1).randint(1, 4, len(X))
    weighted = TableStatistics.fit(X, weight.astype(float))
    repeated = TableStatistics.fit(np.repeat(X, weight, axis=0), None)
    for name in ("mean", "scale", "quantiles"):
        np.testing.assert_allclose(
            getattr(weighted, name), getattr(repeated, name), rtol=100 * EPS, atol=100 * EPS
        )


def test_a_column_without_spread_is_in_no_view():
    X = columns()
    table = TableStatistics.fit(X, None).table(X)
    assert table.statistics.scale[4] == 0.0
    assert table.columns.shape[1] == table.ranks.shape[1] == 4
    assert table.bins.shape[1] == 4


def hard_columns():
    """Ties, steps, two values, tails, huge and tiny numbers, and samples beyond the others."""
    random = np.random.RandomState(0)
    n = 300
    seen = np.column_stack(
        [
            random.randn(n),
            np.exp(2 * random.randn(n)),
            random.randint(0, 2, n),
            random.randint(0, 9, n),
            random.randn(n).round(1),
            np.where(random.rand(n) < 0.6, 0, random.randn(n)),
            1e30 * random.randn(n),
            1e-30 * random.randn(n),
        ]
    )
    statistics = TableStatistics.fit(seen, None)
    beyond = 2 * seen[:50]
    return statistics, np.vstack([seen, beyond, -beyond, statistics.quantiles])


def plain_distribution(q, x):
    """Share of the way through the quantiles, linear between different quantiles."""
    values = np.unique(q)
    shares = [np.flatnonzero(q == value).mean() / (len(q) - 1) for value in values]
    return np.interp(x, values, shares)


def test_ranks_are_those_of_plain_loops():
    statistics, X = hard_columns()
    expected = np.empty(X.shape)
    for j, two in enumerate(statistics.indicator):
        q, x = statistics.quantiles[:, j], X[:, j]
        if two:
            expected[:, j] = (x - q[0]) / (q[-1] - q[0])
        else:
            expected[:, j] = np.sqrt(12) * (plain_distribution(q, x) - 0.5)
    eps = np.finfo(np.float32).eps
    for n_threads in (1, 2, 7):
        ranks = statistics.table(X, n_threads).ranks
        assert ranks.dtype == np.float32
        np.testing.assert_allclose(ranks, expected, rtol=0, atol=4 * eps)
    one_by_one = [statistics.table(X[[i]]).ranks[0] for i in range(len(X))]
    np.testing.assert_array_equal(one_by_one, ranks)


def test_splines_are_those_of_scipy():
    statistics, X = hard_columns()
    expected = [
        basis(np.clip(X[:, j], basis.t[3], basis.t[-4]))
        for j, basis in zip(statistics.numeric, statistics.splines, strict=True)
    ]
    assert len(expected) == 7
    for n_threads in (1, 2, 7):
        splines = statistics.table(X, n_threads).splines
        ours = splines[:, : -len(statistics.others)]
        np.testing.assert_allclose(ours, np.hstack(expected), rtol=0, atol=np.finfo(np.float32).eps)


def test_kernel_features_have_the_kernel_of_all_samples_as_products():
    ranks = TableStatistics.fit(columns(), None).table(columns()).ranks
    kernel = Kernel.fit(ranks, np.random.RandomState(0))
    features = kernel.features(ranks).astype(float)
    A = ranks.astype(float)
    squares = ((A[:, None] - A[None]) ** 2).sum(axis=2)
    expected = np.exp(-squares / A.var(axis=0).sum())
    np.testing.assert_allclose(features @ features.T, expected, atol=1e-4)


def test_samples_that_repeat_others_are_no_landmarks():
    ranks = TableStatistics.fit(columns(n=60), None).table(columns(n=60)).ranks
    once, repeated = (
        Kernel.fit(samples, np.random.RandomState(0))
        for samples in (ranks, np.concatenate([ranks, ranks, ranks[:7]]))
    )
    assert len(repeated.landmarks) == len(once.landmarks) == 60
    assert len(np.unique(repeated.landmarks, axis=0)) == 60
    assert len(Kernel.fit(ranks[[5] * 9], np.random.RandomState(0)).landmarks) == 1


# ---- interactions --------------------------------------------------------------------------------


def entropy_gain(a, b, y):
    """``n (H(y|a) + H(y|b) - H(y) - H(y|a,b))`` in plain mutual information."""
    both = a * 1000 + b
    own = mutual_info_score(a, y) + mutual_info_score(b, y)
    return len(y) * (mutual_info_score(both, y) - own)


def test_pairs_are_ranked_by_their_gain():
    random = np.random.RandomState(0)
    n = 400
    X = random.randint(0, 3, size=(n, 5)).astype(float)
    y = ((X[:, 1] + X[:, 3]) % 2 == 0).astype(np.int32)
    table = TableStatistics.fit(X, None).table(X)
    counts = table.statistics.bin_counts
    tables = bin_tables(table.bins, counts, y, 2, None)
    for c in range(2):
        B = np.hstack([table.bins[:, [j]] == np.arange(counts[j]) for j in range(5)]).astype(float)
        np.testing.assert_array_equal(tables[c], B[y == c].T @ B[y == c])
    found = ranked_pairs(tables, np.asarray(counts))
    assert found[0][:2] == (3, 1)
    scores = []
    for i, j, occupied in found:
        a, b = table.bins[:, i], table.bins[:, j]
        assert occupied == len(set(zip(a.tolist(), b.tolist(), strict=True)))
        freedom = max(occupied - len(set(a.tolist())) - len(set(b.tolist())) + 1, 1)
        scores.append((2 * entropy_gain(a, b, y) - freedom) / np.sqrt(2 * freedom))
    assert (np.diff(scores) <= 1e-9).all()


# ---- folds and weights ---------------------------------------------------------------------------


def logits(seed, count=3, n=150, k=4):
    random = np.random.RandomState(seed)
    y = random.randint(0, k, n)
    good = np.eye(k)[y] * 2.0
    L = [good * s + random.randn(n, k) for s in (1.0, 0.5, 0.0)][:count]
    return L, y


def test_weights_below_the_least_share_are_left_out():
    L, y = logits(0)
    prior = np.array([0.9, 0.05, 0.05])
    kept = pool_weights(L, y, None, prior, 1e7, min_share=0.04)
    np.testing.assert_allclose(kept, prior, atol=1e-3)
    np.testing.assert_allclose(pool_weights(L, y, None, prior, 1e7), [1, 0, 0], atol=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_pool_weights_minimise_the_penalised_log_loss(weighted):
    L, y = logits(0)
    prior = np.array([0.2, 0.5, 0.3])
    n, k = L[0].shape
    weight = np.random.RandomState(3).uniform(0.5, 2.0, n) if weighted else None
    share = np.full(n, 1 / n) if weight is None else weight / weight.sum()
    samples = 1 / (share @ share)
    wrong = 1 / ((samples + 2) * (k - 1))
    targets = np.full((n, k), wrong)
    targets[np.arange(n), y] = 1 - (k - 1) * wrong
    stacked = np.stack([np.maximum(log_softmax(one, axis=1), -30) for one in L])
    w = pool_weights(L, y, weight, prior)
    used = np.flatnonzero(w > 0)  # small weights are left out
    stacked, count, start = stacked[used], len(used), prior[used] / prior[used].sum()
    assert count >= 2

    def objective(w):
        z = log_softmax(np.tensordot(w, stacked, 1), axis=1)
        return -share @ (targets * z).sum(axis=1) + 5 * ((w - start) ** 2).sum() / (2 * samples)

    best = minimize(objective, start, bounds=[(0, None)] * count, method="L-BFGS-B").fun
    assert (w >= 0).all()
    assert objective(w[used]) <= best + 1e-7


# ---- the classifier ------------------------------------------------------------------------------


def test_logits_are_weighted_sums_of_log_probabilities(pool):
    model, X = pool
    assert [view.name for view in model.views_] == list(VIEWS)
    table = model.statistics_.table(X)
    expected = sum(
        view.weight * np.maximum(log_softmax(view.model.outputs(table), axis=1), -30.0)
        for view in model.views_
        if view.weight > 0
    )
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("classes", [pytest.param(2, marks=pytest.mark.long), 3])
def test_trees_are_those_of_scikit_learn(classes):
    kinds = {"n_classes": classes, "n_clusters_per_class": 1, "class_sep": 1.5}
    given, y = make_classification(1100, 2, n_redundant=0, **kinds, random_state=0)
    parts = {}
    for name in ("forest", "boosting"):
        model = TableClassifier(name, random_state=0).fit(given[:1000], y[:1000])
        parts[name] = model.views_[0].model
    X = table_of(model, given).columns
    seed = np.random.RandomState(0).randint(2**31 - 1)
    forest = RandomForestClassifier(200, random_state=seed).fit(X[:1000], y[:1000])
    share = (200 * forest.predict_proba(X[:1000]) + 1 / classes) / 201
    table = table_of(model, given[:1000])
    found = softmax(parts["forest"].outputs(table), axis=1)
    assert np.isclose(found, share, atol=1e-12).mean() > 0.98
    boosting = HistGradientBoostingClassifier(
        max_iter=len(parts["boosting"].trees.roots) // {2: 1, 3: 3}[classes],
        max_leaf_nodes=8,
        learning_rate=0.2,
        min_samples_leaf=5,
        l2_regularization=1.0,
        max_features=0.5,
        early_stopping=False,
        random_state=seed,
    ).fit(X[:1000], y[:1000])
    found = softmax(parts["boosting"].outputs(table), axis=1)
    # scikit-learn may separate values that differ by rounding; this package does not.
    assert np.isclose(found, boosting.predict_proba(X[:1000]), atol=1e-9).mean() > 0.98


def test_out_of_bag_losses_of_heavy_samples_are_those_of_new_samples(rng):
    X = rng.standard_normal((4_000, 6))
    y = (rng.random(4_000) < 1 / (1 + np.exp(5 - 2 * X[:, 0] - X[:, 1] * X[:, 2]))).astype(int)
    weight = np.where(y == 1, 1 / y.mean(), 1.0)  # about 20
    model = TableClassifier(["forest"]).fit(X[:2_000], y[:2_000], weight[:2_000])
    out_of_bag = log_loss(y[:2_000], model.out_of_fold_proba_, sample_weight=weight[:2_000])
    new = log_loss(y[2_000:], model.predict_proba(X[2_000:]), sample_weight=weight[2_000:])
    assert 0.7 < out_of_bag / new < 1.4
    target = X[:, 0] * X[:, 1] + 3.0 * y
    model = TableRegressor(["forest"]).fit(X[:2_000], target[:2_000], weight[:2_000])
    predicted = np.append(model.out_of_fold_prediction_, model.predict(X[2_000:]))
    out_of_bag, new = np.split(weight * (predicted - target) ** 2, 2)
    assert 0.7 < out_of_bag.mean() / new.mean() < 1.4


@pytest.mark.parametrize("outputs", [1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_levels_are_numbered_by_the_principal_axis_of_their_means(rng, outputs, weighted):
    level = rng.integers(0, 8, 500)  # 7 is unknown: no indicator is 1
    X = np.column_stack([rng.standard_normal(500), level[:, None] == np.arange(7)]).astype(float)
    Y = rng.standard_normal((8, outputs))[level] + rng.standard_normal((500, outputs))
    weight = rng.uniform(0.5, 2, 500) if weighted else np.ones(500)
    statistics = TableStatistics.fit(X, weight, np.array([0, *[1] * 7]))
    found = statistics.levels_by(X, Y, weight if weighted else None)
    assert found.shape == (8, 1)
    assert found[0, 0] == 0
    w = weight / weight.mean()
    mean = (w[:, None] * Y).sum(axis=0) / w.sum()
    count = np.array([w[level == i].sum() for i in range(7)]) + 10
    means = [(w[:, None] * (Y - mean))[level == i].sum(axis=0) for i in range(7)] / count[:, None]
    _, vectors = np.linalg.eigh((count[:, None] * means).T @ means)
    scores = means @ vectors[:, -1]
    scores = scores if np.corrcoef(scores, found[1:, 0])[0, 1] > 0 else -scores
    order = np.argsort(scores)
    assert (np.diff(found[1:, 0][order]) > 0).all()
    np.testing.assert_array_equal(np.sign(found[1:, 0]), np.sign(scores))
    assert np.abs(found).max() <= 7


@pytest.mark.parametrize("kind", [TableClassifier, TableRegressor])
def test_boosting_separates_categories_in_any_order_of_their_names(rng, kind):
    level = rng.integers(0, 40, 4_000)
    high = rng.permutation(40)[level] < 20
    y = (high ^ (rng.uniform(size=4_000) < 0.1)).astype(float)
    X = pd.DataFrame({"city": [f"c{i:02}" for i in level], "noise": rng.standard_normal(4_000)})
    train, test = slice(0, 2_000), slice(2_000, None)
    plain = kind(["boosting"]).fit(X[train], y[train])
    assert plain.score(X[test], y[test]) > (0.88 if kind is TableClassifier else 0.6)
    X.loc[2_000, "city"] = "somewhere else"
    assert np.isfinite(plain.predict(X[test])).all()


def test_levels_say_nothing_of_labels_that_are_noise(rng):
    X = pd.DataFrame({"word": rng.choice([f"w{i}" for i in range(45)], 1_200)})
    y = rng.integers(0, 2, 1_200)
    model = TableClassifier(["boosting"]).fit(X, y)
    assert model.views_[0].score < -0.99 * np.log(2)


def test_a_forest_grows_from_four_samples():
    model = TableClassifier(["columns", "forest"]).fit(np.arange(4.0)[:, None], [0, 0, 1, 1])
    assert all(np.isfinite(view.score) for view in model.views_)


@pytest.mark.parametrize(("n_columns", "tried"), [(20, 8), (47, 12), (94, 12)])
def test_forests_of_many_samples_try_at_most_twelve_columns(n_columns, tried):
    statistics = SimpleNamespace(without_levels=np.arange(n_columns))
    table = SimpleNamespace(statistics=statistics, n_threads=1)
    view = VIEWS["forest"]()
    view.levels = np.zeros((n_columns, 0))
    forest = view.unfitted(Samples(None, table, np.zeros(60_000), 0, 60_000))
    share = forest.max_features
    assert (share if isinstance(share, int) else int(share * n_columns)) == tried


def test_trees_of_columns_with_few_values_need_few_bins(rng):
    X = rng.integers(0, [3, 7, 12], (500, 3)).astype(np.float64)
    y = (X[:, 0] + rng.standard_normal(500) > X[:, 1] % 2).astype(int)
    boosting = HistGradientBoostingClassifier(max_iter=10, early_stopping=False)
    expected = boosting.fit(X, y)._predictors
    few = clone(boosting)
    for (found,), (tree,) in zip(grow(few, X, y, None, np.arange(3), 1), expected, strict=True):
        np.testing.assert_array_equal(found.nodes["num_threshold"], tree.nodes["num_threshold"])
        np.testing.assert_array_equal(found.nodes["value"], tree.nodes["value"])
    assert few.max_bins == 12


def test_boosting_of_few_samples_takes_few_columns_and_no_pairs(rng):
    X = rng.standard_normal((300, 151))
    y = X[:, 0] > 0
    for width, n, note in ((150, 300, ""), (151, 300, "columns times classes"), (9, 299, "fewer")):
        views = ["columns", "boosting", "boosting_pairs"]
        _, plain, paired = TableClassifier(views).fit(X[:n, :width], y[:n]).views_
        assert plain.note.startswith(note) if note else np.isfinite(plain.score)
        assert paired.note == "fewer than 1,000 samples"


def test_boosting_reads_at_most_sixteen_indicators_of_gaps(rng):
    X, y = rng.standard_normal((1_200, 20)), rng.integers(0, 2, 1_200)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[(y == 1) & (rng.random(1_200) < 0.9), 7] = np.nan
    model = TableClassifier(["boosting"]).fit(X[:1_000], y[:1_000])
    view = model.views_[0].model
    required = view.required(model.statistics_)
    assert (np.count_nonzero(required), len(required)) == (20, 40)
    read = np.unique(view.trees.feature[np.isfinite(view.trees.threshold)])
    assert np.count_nonzero(~required[read]) <= 16
    assert 27 in read  # whether column 7 is missing
    assert model.score(X[1_000:], y[1_000:]) > 0.8


def test_boosting_of_pairs_sees_differences_of_columns(rng):
    X = rng.standard_normal((1_400, 3)) ** 3  # differences of ranks differ from those of values
    y = np.cbrt(X[:, 0]) > np.cbrt(X[:, 1]) + 0.05 * rng.standard_normal(1_400)
    model = TableClassifier(["boosting", "boosting_pairs"]).fit(X[:1_000], y[:1_000])
    plain, paired = model.views_
    assert paired.score > 0.8 * plain.score
    assert model.score(X[1_000:], y[1_000:]) > 0.93


def test_boosting_of_pairs_takes_the_place_of_boosting_for_many_samples(rng):
    X, y = rng.standard_normal((5_100, 20)), np.arange(5_100) % 2
    for names in (["columns", "boosting", "boosting_pairs"], ["columns", "boosting"]):
        for width in (3, 20):  # pairs are read of at most 16 numeric columns
            model = TableClassifier(names, time_limit=1e-9).fit(X[:, :width], y)
            notes = {view.name: view.note for view in model.views_}
            replaced = notes["boosting"] == "boosting_pairs reads the same columns"
            assert replaced == (width == 3 and "boosting_pairs" in names)


def test_classifiers_of_other_libraries_are_views():
    X, y = load_breast_cancer(return_X_y=True)
    model = TableClassifier(["columns", GaussianNB(), GaussianNB(var_smoothing=0.1)])
    model.fit(X[:300], np.array(["a", "b"])[y[:300]])
    assert [view.name for view in model.views_] == ["columns", "GaussianNB", "GaussianNB 2"]
    assert all(view.score > -1 for view in model.views_)
    assert model.score(X[300:], np.array(["a", "b"])[y[300:]]) > 0.93
    with pytest.raises(ValueError, match="views: expected names or classifiers with predict_proba"):
        TableClassifier([LinearSVC()]).fit(X, y)


@pytest.mark.parametrize("value", [np.nan, -0.5])
def test_classifiers_without_probabilities_are_left_out(value):
    class Broken(DummyClassifier):
        def predict_proba(self, X):
            return np.full((len(X), 3), value)

    X, y = load_wine(return_X_y=True)
    with pytest.warns(UserWarning, match="Broken is left out"):
        model = TableClassifier(["columns", Broken()]).fit(X, y)
    assert "expected probabilities" in model.views_[1].note


class LogitOfColumn(ClassifierMixin, BaseEstimator):
    """Takes a column as the logit; cannot be fitted to `most` samples."""

    def __init__(self, column, most=np.inf):
        self.column, self.most = column, most

    def fit(self, X, y):
        if len(X) >= self.most:
            raise RuntimeError("too many samples")
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return softmax(np.column_stack([0 * X[:, 0], X[:, self.column]]), axis=1)


def test_a_view_that_helps_only_a_failing_view_is_left_out(rng):
    y = np.arange(400) % 2
    noise, signal = 3 * rng.standard_normal(400), 4.0 * y - 2 + rng.standard_normal(400)
    X = np.column_stack([noise, signal - noise, signal + 2 * rng.standard_normal(400)])
    asked = [LogitOfColumn(0), LogitOfColumn(1, most=400), LogitOfColumn(2)]
    with pytest.warns(UserWarning, match=r"LogitOfColumn 2 is left out, its fit raised Runtime"):
        views = TableClassifier(asked).fit(X, y).views_
    assert [view.weight > 0 for view in views] == [False, False, True]
    assert [view.note for view in views] == [
        "adds nothing to the others",
        "RuntimeError: too many samples",
        "",
    ]
    assert [view.model is None for view in views] == [True, True, False]


def test_a_view_without_features_predicts_the_shares_of_the_classes(rng):
    X, y = rng.standard_normal((100, 3)), np.arange(100) % 2  # no direction tells the classes apart
    model = TableClassifier("gem_ranks").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), 0.5, atol=1e-6)


def test_one_sample_of_each_class_has_no_folds(rng):
    X = rng.standard_normal((3, 4))
    model = TableClassifier().fit(X, ["a", "b", "c"])
    notes = {view.note for view in model.views_ if view.weight == 0}
    assert notes == {"no class has two samples, which folds need"}
    assert model.predict_proba(X).shape == (3, 3)


@pytest.mark.parametrize("kind", [TableClassifier, TableRegressor])
def test_a_time_limit_leaves_views_out_by_name(kind):
    X, y = load_iris(return_X_y=True)
    model = kind(time_limit=1e-9).fit(X, y)
    assert model.views_[0].weight > 0
    notes = [
        view.note for view in model.views_[1:] if not view.note.startswith(("fewer", "the target"))
    ]
    assert set(notes) == {"time limit of 1e-09 s"}


@pytest.mark.parametrize("model", [TableClassifier, TableRegressor])
def test_forests_are_equal_for_any_number_of_threads(rng, model):
    X = rng.standard_normal((2_100, 8))  # smaller forests are grown in one thread
    y = np.where(X[:, 0] > X[:, 1], 1, 0)
    one, two = (model("forest", n_threads=n).fit(X[:2_050], y[:2_050]) for n in (1, 2))
    method = "predict_proba" if model is TableClassifier else "predict"
    np.testing.assert_array_equal(*(getattr(fitted, method)(X) for fitted in (one, two)))


def test_boosting_of_many_samples_is_fitted_once(rng, monkeypatch):
    fit, sizes = HistGradientBoostingClassifier.fit, []

    def counted(self, X, *arguments):
        sizes.append(len(X))
        return fit(self, X, *arguments)

    monkeypatch.setattr(HistGradientBoostingClassifier, "fit", counted)
    X = rng.standard_normal((31_000, 2))
    y = X[:, 0] * X[:, 1] > 0.3 * rng.standard_normal(len(X))
    model = TableClassifier("boosting").fit(X[:30_500], y[:30_500])
    assert sizes == [25_500]
    assert log_loss(y[30_500:], model.predict_proba(X[30_500:])) < 1.1 * model.views_[0].log_loss


def test_logits_of_many_samples_are_fitted_to_equal_parts_by_any_number_of_threads(rng):
    X = rng.standard_normal((36_000, 2))
    y = (X[:, 0] * X[:, 1] > rng.standard_normal(len(X))).astype(int)
    y[7] = 2  # the only sample of a class
    names = ["columns", "kernel"]
    one, two = (TableClassifier(names, n_threads=i).fit(X[:35_000], y[:35_000]) for i in (1, 2))
    P = one.predict_proba(X[35_000:])
    np.testing.assert_array_equal(P, two.predict_proba(X[35_000:]))
    assert np.isfinite(P).all()
    held_out = max(view.score for view in one.views_)
    assert log_loss(y[35_000:], P, labels=[0, 1, 2]) < 1.05 * -held_out


def test_logits_of_many_samples_read_a_sample_with_most_of_the_weight(rng):
    y = np.where(np.arange(40_000) < 20_002, 0, 2)
    y[7] = 1  # every second sample by class would leave it out
    X = rng.standard_normal((len(y), 8)) + y[:, None] / 4
    weight = np.where(y == 1, 1e5, 1.0)
    assert TableClassifier(["kernel"]).fit(X, y, weight).predict(X[[7]]) == 1


@pytest.mark.long
def test_boosting_of_many_samples_and_classes_is_stable(rng):
    X = rng.integers(0, 8, (6_100, 4)).astype(float)
    y = (np.abs(X[:, 0] - X[:, 1]) + np.maximum(X[:, 2], X[:, 3])).astype(int)  # 15 classes
    model = TableClassifier(["boosting"]).fit(X[:5_100], y[:5_100])
    assert len(model.views_[0].model.trees.roots) <= 2_000
    assert log_loss(y[5_100:], model.predict_proba(X[5_100:])) < 0.8


def test_forty_samples_of_a_linear_truth_cost_no_more_than_logistic_regression():
    ours, linear = [], []
    views = [name for name in VIEWS if name not in ("forest", "boosting", "boosting_pairs")]
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((1_040, 10))
        y = X[:, :4] @ [1.0, 0.7, -0.7, 0.5] + 0.5 * rng.logistic(size=len(X)) > 0
        for losses, model in ((ours, TableClassifier(views)), (linear, LogisticRegression())):
            model.fit(X[:40], y[:40])
            losses.append(log_loss(y[40:], model.predict_proba(X[40:])))
    assert np.mean(ours) <= np.mean(linear)


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_few_samples_keep_all_views_with_weights_near_the_prior(load):
    X, y = load(return_X_y=True)
    some = np.random.RandomState(0).permutation(len(y))[:30]
    weights = [view.weight for view in TableClassifier().fit(X[some], y[some]).views_]
    served = weights[:7]  # boosting needs more samples
    np.testing.assert_allclose(served, [0.6, *6 * [0.4 / 6]], atol=0.07)
    assert min(served) > 0


@pytest.mark.parametrize("kind", [TableClassifier, TableRegressor])
@pytest.mark.parametrize("views", [["trees"], ["columns", "columns"], [], ["columns", "words"]])
def test_unknown_views_are_refused(kind, views):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="views: expected 'auto' or distinct names out of columns"):
        kind(views).fit(X, y)


def test_views_that_do_not_apply_are_refused_by_name_or_left_out():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="views: expected 'auto' or 'gem'"):
        TableClassifier(views=["columns"]).fit(csr_array(X), y)
    model = TableClassifier().fit(csr_array(X), y)
    assert [view.name for view in model.views_ if view.weight > 0] == ["gem"]
    assert all("sparse" in view.note for view in model.views_ if view.weight == 0)
    binary = TableClassifier().fit((X.mean(axis=0) < X).astype(float), y)
    note = {view.name: view.note for view in binary.views_}
    assert note["splines"] == "no numeric column"


@pytest.mark.parametrize("n", [50, 6_000])
def test_views_none_of_which_applies_are_refused_with_the_reason(rng, n):
    X = rng.standard_normal((n, 1))
    with pytest.raises(ValueError, match=r"views: expected a view .* got interactions: too many"):
        TableClassifier(views=["interactions"]).fit(X, np.arange(n) % 2)


def test_constant_columns_are_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"views: .* gem: no column with spread"):
        TableClassifier().fit(np.ones((40, 2)), np.arange(40) % 2)


def test_the_pool_does_not_depend_on_the_order_of_views():
    X, y = load_wine(return_X_y=True)
    a = TableClassifier(["columns", "gem", "kernel"]).fit(X, y)
    b = TableClassifier(["kernel", "columns", "gem"]).fit(X, y)
    np.testing.assert_array_equal(a.decision_function(X), b.decision_function(X))


def test_the_pool_of_many_samples_is_better_than_its_best_view(rng):
    X = rng.standard_normal((7_000, 6))
    curved = np.exp(-((X[:, :2] ** 2).sum(axis=1)) / 2) - 0.4 + np.tanh(X[:, 2] * X[:, 3])
    z = 4.0 * curved + (X[:, 4] > 0) * np.sign(X[:, 5])
    y = (z + rng.logistic(size=7_000) / 2 > 0).astype(int)
    names = ["columns", "splines", "gem", "kernel", "interactions"]
    model = TableClassifier(names).fit(X[:5_500], y[:5_500])
    used = [-view.score for view in model.views_ if view.weight > 0]
    assert len(used) > 1
    assert log_loss(y[5_500:], model.predict_proba(X[5_500:])) < min(used)


def test_a_refit_forgets_the_pool():
    X, y = load_iris(return_X_y=True)
    model = TableClassifier(views=["columns", "gem"]).fit(X, y)
    model.set_params(views="gem").fit(X, y)
    assert [view.name for view in model.views_] == ["gem"]
    assert model.out_of_fold_proba_ is None
    assert not hasattr(model, "statistics_")
    expected = GEMClassifier().fit(X, y).decision_function(X)
    np.testing.assert_array_equal(model.decision_function(X), expected)


def test_missing_entries_are_a_bin_and_an_indicator_of_their_own():
    random = np.random.RandomState(0)
    X = random.randn(300, 3)
    y = (X[:, 0] > 0).astype(int)
    X[y == 1, 1] = np.where(random.rand((y == 1).sum()) < 0.8, np.nan, X[y == 1, 1])
    X[:, 0] = random.randn(300)
    model = TableClassifier(["columns", "interactions"]).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.8


def test_out_of_fold_probabilities(rng):
    """The pool of a fold has views and weights that were fitted without the fold."""
    y = np.arange(120) % 3
    X = rng.standard_normal((120, 4)) + y[:, None] * [1.5, 0, 0, 0]
    X, y = np.vstack([X, [[9.0, 9, 9, 9]]]), np.append(y, 3)
    weight = np.append(rng.integers(0, 3, 120), 1)
    model = TableClassifier(["columns", "splines", "gem"]).fit(X, y, sample_weight=weight)
    found, labels = model.out_of_fold_proba_, y[weight > 0]
    assert found.shape == (np.count_nonzero(weight), 4)
    assert np.isnan(found[-1]).all()
    np.testing.assert_allclose(found[:-1].sum(axis=1), 1, rtol=1e-12)
    accuracy = np.mean(found[:-1].argmax(axis=1) == labels[:-1])
    N = rng.standard_normal((900, 4)) + (np.arange(900) % 3)[:, None] * [1.5, 0, 0, 0]
    assert abs(accuracy - model.score(N, np.arange(900) % 3)) < 0.12
    assert TableClassifier().fit(csr_array(X), y).out_of_fold_proba_ is None


def test_views_are_pooled_out_of_fold_by_weights_of_the_other_folds(rng):
    """A sample's weight affects the weights of the views, except in the sample's own fold."""
    y = np.arange(200) % 2
    X = (2 * y - 1)[:, None] + 2 * rng.standard_normal((200, 2))
    weight = np.ones(200)
    views = [LogitOfColumn(0), LogitOfColumn(1)]  # fixed logits, without a fit
    even = TableClassifier(views).fit(X, y, weight).out_of_fold_proba_
    weight[7] = 60.0
    heavy = TableClassifier(views).fit(X, y, weight).out_of_fold_proba_
    same = np.isclose(heavy, even, rtol=1e-9).all(axis=1)
    assert same[7]
    assert same.mean() < 0.5


def test_out_of_fold_probabilities_say_nothing_of_noise(rng):
    X, y = rng.standard_normal((60, 8)), np.arange(60) % 2
    found = TableClassifier().fit(X, y).out_of_fold_proba_
    assert -np.log(found[np.arange(60), y]).mean() > 0.6


def test_ranks_of_indicators_are_no_view_of_their_own(rng):
    X = (rng.random((90, 6)) < 0.3).astype(float)
    y = (X[:, 0] + X[:, 1] + rng.random(90) > 1.0).astype(int)
    model = TableClassifier(["columns", "gem", "gem_ranks"])
    notes = {view.name: view.note for view in model.fit(X, y).views_}
    assert notes["gem_ranks"] == "ranks of indicators are the columns themselves"
    X[:, 3] = rng.standard_normal(90)
    notes = {view.name: view.note for view in model.fit(X, y).views_}
    assert "indicators" not in notes["gem_ranks"]


@pytest.mark.parametrize("views", ["auto", ["interactions"], ["gem_ranks", "kernel"]])
def test_rounding_moves_no_sample_across_an_edge(rng, views):
    """Edges lie between the values of samples: k * 0.1 and k / 10 are one value, float32 too."""
    k = np.column_stack([rng.integers(0, 40, 300), rng.integers(-3, 4, 300), rng.poisson(0.5, 300)])
    y = (k[:, 0] + 9 * k[:, 1] + rng.normal(size=300) > 20).astype(int)
    model = TableClassifier(views).fit(2 * k / 10, y)  # new values lie in the middle of these
    expected = model.predict_proba(k / 10)
    for rounded in (k * 0.1, (k / 10).astype(np.float32)):
        np.testing.assert_allclose(model.predict_proba(rounded), expected, atol=1e-3)


def test_the_two_numbers_that_code_a_column_with_gaps_do_not_matter(rng):
    X = rng.integers(0, 2, (500, 3)).astype(float)
    y = (X[:, 0] != X[:, 1]).astype(int)
    X[rng.random(X.shape) < 0.002] = np.nan  # so few that the column is not numeric
    X[:3, :2] = np.nan
    model = TableClassifier(["interactions"])
    scores = [model.fit(codes[:300], y[:300]).score(codes[300:], y[300:]) for codes in (X, X + 1)]
    assert scores[0] == scores[1] > 0.9
    X[rng.random(X.shape) < 0.1] = np.nan
    scores = [model.fit(codes[:300], y[:300]).score(codes[300:], y[300:]) for codes in (X, X + 1)]
    assert scores[0] == scores[1] > 0.75


@pytest.mark.parametrize(
    "model", [TableClassifier(["columns", "gem"]), TableRegressor(["columns", "kernel_learned"])]
)
def test_columns_that_vary_in_one_fold_alone(model):
    """Outside that fold there is no direction to be found."""
    X, y = np.zeros((140, 1)), np.arange(140) % 2
    X[3] = 1.0
    fitted = model.fit(X, y)
    np.testing.assert_allclose(fitted.predict(X[4:]), fitted.predict(X[4:5])[0])


class Failing(BaseEstimator):
    """Raises in `fit`; both a classifier and a regressor."""

    def fit(self, X, y):
        raise RuntimeError("out of luck")

    def predict(self, X):
        raise NotImplementedError

    predict_proba = predict


@pytest.mark.parametrize("kind", [TableClassifier, TableRegressor])
def test_views_that_raise_errors_are_left_out_with_a_warning(rng, kind):
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 2
    with pytest.warns(UserWarning, match="views: Failing is left out, its fit raised RuntimeError"):
        model = kind([Failing(), "columns"]).fit(X, y)
    assert model.views_[1].note == "RuntimeError: out of luck"
    with pytest.raises(RuntimeError, match="out of luck"):
        kind([Failing()]).fit(X, y)
    with (
        pytest.warns(UserWarning, match=r"Failing( 2)? is left out"),
        pytest.raises(
            ValueError, match="views: expected a view that can be fitted, got Failing: Run"
        ),
    ):
        kind([Failing(), Failing()]).fit(X, y)


def test_boosting_adds_steps_while_they_lower_the_held_out_loss(rng):
    X = rng.uniform(size=(1_200, 4))
    rule = (4.0 * X[:, :2]).astype(int).sum(axis=1) % 2  # a chessboard
    noise = rng.random(1_200) < 0.5

    def steps(y, X=X):
        return TableClassifier("boosting").fit(X, y).views_[0].model.steps

    assert steps(rule) > 300
    assert steps(noise) <= 150
    wide = np.hstack([X, rng.uniform(size=(1_200, 26))])
    assert steps(rule, wide) <= 200  # 4 samples / columns is less

"""Regression of tables: the pool of views, several outputs, weights, gaps, and saved models."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from eigenfeat import TableRegressor
from eigenfeat.io import open_rows
from eigenfeat.samples import ArrayBlocks, supervised_contractions
from eigenfeat.tables import regression_views
from eigenfeat.tables.regression_views import VIEWS
from eigenfeat.tables.regressor import mixture_weights
from eigenfeat.tables.trees import Trees

FAST = ["columns", "splines", "gem_ranks", "kernel"]


def quadratic(rng, n=800, d=10):
    """A target that the samples' second moments show and their means do not."""
    X = rng.standard_normal((n, d))
    v = rng.standard_normal(d)
    return X, (X @ v / np.linalg.norm(v)) ** 2 + 0.1 * rng.standard_normal(n)


def test_boosting_of_many_samples_is_fitted_once_without_the_held_out_samples(monkeypatch):
    monkeypatch.setattr(regression_views.BoostingRegressorView, "max_refitted", 5_000)
    monkeypatch.setattr(TableRegressor, "_folds", ())  # one fold
    X, y = make_friedman1(5_400, noise=1.0, random_state=0)
    model = TableRegressor("boosting").fit(X, y)
    held = np.isfinite(model.out_of_fold_prediction_)
    assert held.sum() == 5_000
    assert_array_equal(model.predict(X[held]), model.out_of_fold_prediction_[held])


def skewed(rng, n=600):
    """Positive targets of lognormal noise, such as prices, whose mean is the returned one."""
    X = rng.standard_normal((n, 4))
    logs = 1.2 * X[:, 0] + np.sin(2.0 * X[:, 1])
    mean = 50.0 * np.exp(logs)
    return X, mean * np.exp(0.5 * rng.standard_normal(n) - 0.125), mean


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_predicts_new_samples_as_well_as_left_out_ones(view):
    X, y = make_friedman1(900, noise=1.0, random_state=0)
    y += 5.0  # positive
    model = TableRegressor(view).fit(X[:400], y[:400])
    assert [(one.name, one.weight, one.note) for one in model.views_] == [(view, 1.0, "")]
    score = model.score(X[400:], y[400:])
    assert score > 0.65
    assert abs(score - model.views_[0].score) < 0.1
    residual = y[:400] - model.out_of_fold_prediction_
    assert_allclose(1 - np.mean(residual**2) / y[:400].var(), model.views_[0].score, rtol=1e-9)


def test_the_pool_is_as_good_as_its_best_view():
    X, y = make_friedman1(900, noise=1.0, random_state=0)
    model = TableRegressor().fit(X[:400], y[:400])
    assert [view.name for view in model.views_] == list(VIEWS)
    assert_allclose(sum(view.weight for view in model.views_), 1.0)
    views = [view for view in model.views_ if not view.name.endswith("_log")]
    assert all(view.note == "adds nothing to the others" for view in views if view.weight == 0)
    best = max(view.score for view in views)
    assert model.score(X[400:], y[400:]) > best - 0.02


def test_logarithms_are_fitted_like_a_regression_of_logarithms(rng):
    X, y, _ = skewed(rng)
    logs = np.log(y)
    for view in ("splines", "boosting"):
        model = TableRegressor(f"{view}_log").fit(X, y)
        plain = TableRegressor(view).fit(X, logs)
        out_of_fold = np.exp(plain.out_of_fold_prediction_)
        factor = y.sum() / out_of_fold.sum()
        expected = np.minimum(factor * out_of_fold, y.max() + y.std())
        assert_allclose(model.out_of_fold_prediction_, expected, rtol=1e-6)
        inside = np.abs(X).max(axis=1) < 2.0
        expected = factor * np.exp(plain.predict(X[inside]))
        assert_allclose(model.predict(X[inside]), expected, rtol=1e-6)


def test_skewed_positive_targets_are_predicted_better_by_their_logarithms(rng):
    X, y, mean = skewed(rng, 1200)
    model = TableRegressor().fit(X[:400], y[:400])
    used = {view.name: view.weight for view in model.views_}
    assert used["splines_log"] + used["boosting_log"] > 0.3
    plain = TableRegressor([view for view in VIEWS if not view.endswith("_log")])
    plain.fit(X[:400], y[:400])
    ours, theirs = (np.sum((one.predict(X[400:]) - mean[400:]) ** 2) for one in (model, plain))
    assert ours < 0.7 * theirs
    low, high = model.predict_interval(X[400:]).T
    assert 0.85 < np.mean((low <= y[400:]) & (y[400:] <= high)) < 0.95


def test_the_variance_of_residuals_bounds_the_factor_of_predictions(rng):
    bounded = 0
    for _ in range(6):
        X = rng.standard_normal((60, 1))
        y = np.exp(3.0 * (X[:, 0] + 0.7 * rng.standard_normal(60)))
        factor = TableRegressor("splines_log").fit(X, y).views_[0].model.factor[0]
        residual = np.log(y) - TableRegressor("splines").fit(X, np.log(y)).out_of_fold_prediction_
        assert abs(np.log(factor)) <= np.mean(residual**2) * 1.001
        bounded += abs(np.log(factor)) > np.mean(residual**2) * 0.999
    assert bounded < 6


def test_logarithms_need_positive_skewed_targets(rng):
    X, y, _ = skewed(rng, 200)

    def notes(targets):
        model = TableRegressor(["splines", "splines_log", "boosting_log"]).fit(X, targets)
        return [view.note for view in model.views_[1:]]

    assert "the target is not positive" not in notes(y)
    assert notes(y - y.min()) == ["the target is not positive"] * 2
    assert notes(np.column_stack([y, -y])) == ["the target is not positive"] * 2
    assert notes(np.log(y) + 9.0)[0] == "the skewness of the target is less than 0.5"
    assert notes(y + 1e4 * y.std()) == ["the target varies by less than 10% of its mean"] * 2
    assert "the target is not positive" not in notes(np.exp(9.0 * X[:, 0]))
    with pytest.raises(ValueError, match="splines_log: the target is not positive"):
        TableRegressor("splines_log").fit(X, -y)


def test_the_pool_fits_a_target_that_linear_regression_cannot_fit(rng):
    X, y = quadratic(rng)
    assert TableRegressor("gem_ranks").fit(X[:500], y[:500]).score(X[500:], y[500:]) > 0.85
    assert LinearRegression().fit(X[:500], y[:500]).score(X[500:], y[500:]) < 0.1


@pytest.mark.parametrize("n", [30, pytest.param(60, marks=pytest.mark.long)])
def test_few_samples(n):
    X, y = load_diabetes(return_X_y=True)
    ratios = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(y))
        some, rest = order[:n], order[n:]
        ours = TableRegressor(FAST).fit(X[some], y[some]).predict(X[rest])
        theirs = RidgeCV().fit(X[some], y[some]).predict(X[rest])
        ratios.append(np.linalg.norm(ours - y[rest]) / np.linalg.norm(theirs - y[rest]))
    assert np.exp(np.mean(np.log(ratios))) < 1.1
    assert max(ratios) < 1.3


def test_predictions_stay_within_a_deviation_of_the_range_of_the_target(rng):
    X = rng.standard_normal((60, 2))
    y = X[:, 0] ** 3
    model = TableRegressor(FAST).fit(X, y)
    far = model.predict(1e6 * rng.standard_normal((50, 2)))
    assert far.min() >= y.min() - y.std()
    assert far.max() <= y.max() + y.std()


def test_a_target_without_negative_values_has_no_negative_predictions(rng):
    X = rng.standard_normal((120, 2))
    Y = np.stack([np.exp(2 * X[:, 0]).round(), X[:, 0]], axis=1)
    found = TableRegressor(FAST).fit(X, Y).predict(3 * X)
    assert found[:, 0].min() > -1e-9
    assert found[:, 1].min() < X[:, 0].min()


@pytest.mark.parametrize(("n", "deviations"), [(30, 2), (99, 2), (100, 1)])
def test_a_line_is_extrapolated_by_a_deviation_or_two_with_few_samples(n, deviations):
    X = np.linspace(-1, 1, n)[:, None]
    model = TableRegressor("columns").fit(X, 3 * X[:, 0])
    near = np.array([[-1.4], [1.4]])
    assert_allclose(model.predict(near), 3 * near[:, 0], rtol=0.01)
    end = np.array([[1 + deviations * X.std()]])
    assert_allclose(model.predict(end), 3 * end[:, 0], rtol=0.01)
    assert_allclose(model.predict([[9.0]]), model.predict(end))


def test_mixture_weights_minimise_the_squared_error(rng):
    y = rng.standard_normal((500, 1))
    noise = rng.standard_normal((3, 500, 1)) * np.array([0.2, 0.4, 5.0])[:, None, None]
    share = np.full(500, 1 / 500)
    weights = mixture_weights(y + noise, y, share, np.full(3, 1 / 3))
    assert_allclose(weights, [0.8, 0.2, 0.0], atol=0.05)
    assert_allclose(weights.sum(), 1.0)
    same = mixture_weights(np.stack([y, y]), y, share, np.array([0.7, 0.3]))
    assert_allclose(same, [0.7, 0.3])


def test_poor_views_have_little_weight_with_few_samples(rng):
    """Poor views have the errors of the first view plus errors of their own."""
    first, share = [], np.full(30, 1 / 30)
    for _ in range(20):
        y, noise = rng.standard_normal((2, 30, 1))
        beside = rng.standard_normal((4, 30, 1)) * np.array([0.0, 0.6, 0.6, 0.6])[:, None, None]
        predictions = y + 0.2 * noise + beside
        prior = np.array([0.4, 0.2, 0.2, 0.2])
        first.append(mixture_weights(predictions, y, share, prior)[0])
    assert np.mean(first) > 0.82


@pytest.mark.parametrize("several", [False, True])
def test_trees_are_those_of_scikit_learn(several):
    X, y = make_friedman1(200, random_state=0)
    X = X.astype(np.float32)
    targets = np.column_stack([y, -y]) if several else y
    forest = RandomForestRegressor(10, random_state=0).fit(X, targets)
    trees = Trees.of_forest(forest.estimators_, X)
    assert_allclose(trees.predict(X).squeeze(), forest.predict(X))
    assert not np.isin(trees.threshold, X).any()


def test_boosting_adds_trees_while_they_lower_the_held_out_error(rng):
    X = rng.uniform(size=(600, 4))
    smooth = np.sin(9.0 * X[:, 0]) * X[:, 1] + X[:, 2] * X[:, 3]

    def n_trees(y):
        trees = TableRegressor("boosting").fit(X, y).views_[0].model.trees
        return len(trees.roots)

    assert n_trees(smooth) == 800
    assert n_trees(np.column_stack([smooth, smooth + X[:, 0]])) == 1600
    assert n_trees(rng.standard_normal(600)) <= 100
    assert n_trees(np.ones(600)) <= 100


def test_boosting_is_that_of_scikit_learn():
    X, y = make_friedman1(200, random_state=0)
    boosting = HistGradientBoostingRegressor(max_iter=10, early_stopping=False).fit(X, y)
    trees = Trees.of_boosting([(0, one) for (one,) in boosting._predictors], 1, X)
    stages = list(boosting.staged_predict(X))
    for steps in (1, 4, 10):
        found = trees.first(steps).predict(X)[:, 0] + boosting._baseline_prediction[0, 0]
        assert_allclose(found, stages[steps - 1], rtol=1e-6)


def test_several_outputs(rng):
    X, y = quadratic(rng)
    Y = np.column_stack([y + 3, rng.standard_normal(len(y)), X[:, 0], np.full(len(y), 2.0)])
    model = TableRegressor(FAST).fit(X[:500], Y[:500])
    found = model.predict(X[500:])
    assert found.shape == (300, 4)
    assert model.out_of_fold_prediction_.shape == (500, 4)
    assert_allclose(found[:, 3], 2.0)
    for column, least in ((0, 0.8), (2, 0.95)):
        rest = np.mean((found[:, column] - Y[500:, column]) ** 2) / Y[500:, column].var()
        assert 1 - rest > least


@pytest.mark.parametrize("factor", [-1.0, 1.0, 2.0])
def test_outputs_that_depend_on_each_other(rng, factor):
    X, y = quadratic(rng, 200, 5)
    assert supervised_contractions(X, np.column_stack([y, factor * y])).shape == (1, 2)
    found = TableRegressor(FAST).fit(X, np.column_stack([y, factor * y])).predict(X)
    assert_allclose(found[:, 1], factor * found[:, 0], atol=1e-6)
    assert np.corrcoef(found[:, 0], y)[0, 1] > 0.9


def test_units_of_the_target_do_not_matter(rng):
    X, y = quadratic(rng, 100, 4)
    expected = TableRegressor(FAST).fit(X, y).predict(X)
    for factor, shift in ((1e12, 0.0), (1e-12, 0.0), (1e200, 0.0), (1.0, 1e6)):
        found = TableRegressor(FAST).fit(X, factor * y + shift).predict(X)
        assert_allclose((found - shift) / factor, expected, atol=1e-4)


def test_supervised_contractions_of_weighted_samples(rng):
    X, Y = rng.standard_normal((2, 600, 2))
    first = np.arange(600) < 200
    Y[first, 0] = X[first, 0]
    Y[~first, 1] = X[~first, 1]
    weight = np.where(first, 3, 1)
    found = supervised_contractions(X, Y, sample_weight=weight)
    copies = np.repeat(np.arange(600), weight)
    # The ridge depends on the number of samples.
    assert_allclose(found, supervised_contractions(X[copies], Y[copies]), rtol=0.05, atol=0.02)
    found = supervised_contractions(X, Y, sample_weight=first * 1.0)
    assert_allclose(found, supervised_contractions(X[first], Y[first]), rtol=1e-9)


def test_supervised_contractions_find_what_can_be_predicted(rng):
    X, y = quadratic(rng)
    mixing = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    Y = np.column_stack([(y - y.mean()) / y.std(), rng.standard_normal((len(y), 7))]) @ mixing
    u = supervised_contractions(X, Y, 3)
    assert u.shape == (3, 8)
    assert abs(np.corrcoef(Y @ u[0], y)[0, 1]) > 0.95
    assert_allclose(np.var(Y @ u.T, axis=0), 1.0, rtol=1e-3)
    units = 10.0 ** np.arange(-3, 5)
    scaled = supervised_contractions(X, Y * units + 5, 3)
    assert_allclose(np.abs(scaled * units), np.abs(u), rtol=1e-5, atol=1e-7)
    model = TableRegressor("gem_ranks").fit(X[:500], Y[:500])
    signal = np.corrcoef(model.predict(X[500:]) @ u[0], y[500:])[0, 1]
    assert abs(signal) > 0.85


def test_outputs_without_contractions_are_refused(rng):
    Y = rng.standard_normal((50, 3))
    with pytest.raises(ValueError, match="y: expected an output that varies"):
        supervised_contractions(Y, np.ones((50, 2)))
    with pytest.raises(ValueError, match="X: expected 50 samples, one per target"):
        supervised_contractions(Y[:40], Y)
    with pytest.raises(ValueError, match="NaN"):
        supervised_contractions(np.where(Y > 1, np.nan, Y), Y)
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        supervised_contractions(Y[:, :0], Y)


def test_constant_targets_and_columns(rng):
    X = np.column_stack([rng.standard_normal((40, 2)), np.full(40, 7.0)])
    model = TableRegressor().fit(X, np.full(40, 3.0))
    assert_allclose(model.predict(X), 3.0)
    columns, *others = model.views_  # nothing else is fitted
    assert columns.weight == 1
    assert {view.note for view in others} == {"the target is constant"}
    assert_allclose(TableRegressor("splines").fit(X, np.full(40, 3.0)).predict(X), 3.0)
    assert np.isfinite(TableRegressor().fit(X, X[:, 0]).predict(X)).all()
    constant = TableRegressor().fit(np.ones((40, 2)), X[:, 0])
    assert_allclose(constant.predict(np.ones((1, 2))), X[:, 0].mean(), atol=0.1)
    with pytest.raises(ValueError, match=r"views: .* got splines: no column with spread"):
        TableRegressor("splines").fit(np.ones((40, 2)), X[:, 0])


@pytest.mark.parametrize("view", [3, LogisticRegression(), LinearRegression, StandardScaler()])
def test_views_that_are_no_regressors_are_refused(rng, view):
    X = rng.standard_normal((30, 4))
    with pytest.raises(ValueError, match="views: expected names or regressors with predict, got "):
        TableRegressor(["columns", view]).fit(X, X[:, 0])


def test_regressors_of_the_user_are_views(rng):
    X, y = quadratic(rng, 300, 4)
    weight = rng.uniform(0.5, 2.0, 300)
    near = KNeighborsRegressor()  # takes no weights
    model = TableRegressor(["columns", SVR(), near, SVR(C=10.0)]).fit(X, y, weight)
    assert [view.name for view in model.views_] == [
        *("columns", "SVR", "KNeighborsRegressor", "SVR 2")
    ]
    assert not hasattr(near, "n_features_in_")
    assert model.score(X, y) > 0.8
    alone = TableRegressor([SVR(C=10.0)]).fit(X, y)
    scale = y.std()
    expected = SVR(C=10.0).fit(X, (y - y.mean()) / scale).predict(X) * scale + y.mean()
    expected = np.clip(expected, y.min() - scale, y.max() + scale)
    assert_allclose(alone.predict(X), expected, rtol=1e-4, atol=1e-4)
    both = TableRegressor(["columns", SVR(C=10.0)]).fit(X, np.column_stack([y, X[:, 0]]))
    assert both.predict(X).shape == (300, 2)


def test_targets_whose_sums_overflow_are_refused(rng):
    X, y = quadratic(rng, 60, 4)
    with pytest.raises(ValueError, match=r"y: expected magnitudes up to 1e\+300, got 1.5e\+308"):
        TableRegressor("columns").fit(X, np.where(y > 1, 1.5e308, -1.0))
    assert np.isfinite(TableRegressor("columns").fit(X, y * 1e298).predict(X)).all()


class Divergent(LinearRegression):
    """A regression that predicts no numbers."""

    def predict(self, X):
        return np.full(len(X), np.nan)


def test_regressors_without_finite_predictions_are_left_out(rng):
    X, y = quadratic(rng, 60, 4)
    with pytest.warns(UserWarning, match="Divergent is left out.*expected finite predictions"):
        model = TableRegressor(["columns", Divergent()]).fit(X, y)
    assert [view.weight for view in model.views_] == [1.0, 0.0]


def test_views_that_do_not_apply_are_left_out_with_the_reason(rng):
    X = rng.standard_normal((40, 3))
    _, boosting = TableRegressor(["columns", "boosting"]).fit(X, X[:, 0]).views_
    assert (boosting.name, boosting.note) == ("boosting", "fewer than 100 samples")


def test_targets_of_text_are_named(rng):
    X = rng.standard_normal((30, 4))
    words = np.array(["low", "high"] * 15)
    for y in (words, words.astype(object), words.tolist(), pd.Series(words)):
        with pytest.raises(ValueError, match=r"^y: expected numbers, got 'low'; use TableClassif"):
            TableRegressor().fit(X, y)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_fewest_samples(rng, n):
    X, y = rng.standard_normal((n, 2)), rng.standard_normal(n)
    found = TableRegressor().fit(X, y).predict(X)
    assert y.min() <= found.min() <= found.max() <= y.max()
    with pytest.raises(ValueError, match="X: expected at least two samples with weight"):
        TableRegressor().fit(X, y, [1.0] + [0.0] * (n - 1))


def test_samples_without_weight_have_no_out_of_fold_prediction(rng):
    X, y = quadratic(rng, 100, 3)
    weight = np.arange(100) % 4.0
    model = TableRegressor(FAST).fit(X, y, weight)
    assert_array_equal(np.isnan(model.out_of_fold_prediction_), weight == 0)
    less = TableRegressor(FAST).fit(X[weight > 0], y[weight > 0], weight[weight > 0])
    assert_array_equal(model.predict(X), less.predict(X))


def test_missing_entries_are_completed(rng):
    X, y = quadratic(rng, 900, 6)
    X[:, 1] = X[:, 0] + 0.1 * rng.standard_normal(900)
    gaps = X.copy()
    gaps[rng.random(X.shape) < 0.05] = np.nan
    model = TableRegressor(FAST).fit(gaps[:600], y[:600])
    assert model.score(gaps[600:], y[600:]) > 0.5
    assert_array_equal(model.gaps_, np.arange(6))
    complete = TableRegressor(FAST).fit(X[:600], y[:600])
    assert not hasattr(complete, "completion_")
    with pytest.raises(ValueError, match="expected complete"):
        complete.predict(gaps[600:])


def test_outliers_and_units_of_columns(rng):
    X = np.exp(1.5 * rng.standard_normal((900, 5)))  # heavy tails
    y = np.sin(np.log(X[:, 0])) + np.log(X[:, 1]) + 0.1 * rng.standard_normal(900)
    model = TableRegressor(FAST).fit(X[:600], y[:600])
    assert model.score(X[600:], y[600:]) > 0.95
    moved = TableRegressor(FAST).fit(1e6 * X[:600] - 3, y[:600])
    assert_allclose(moved.predict(1e6 * X - 3), model.predict(X), rtol=1e-3, atol=1e-3)


def test_rows_of_files_and_blocks(tmp_path, rng):
    X, y = quadratic(rng, 150, 3)
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["kind"] = rng.choice(["x", "y"], 150)
    frame.loc[::7, "a"] = np.nan
    frame.assign(price=y).to_csv(tmp_path / "prices.csv", index=False)
    expected = TableRegressor(FAST).fit(frame, y).predict(frame)

    def rows(target="price"):
        return open_rows(tmp_path / "prices.csv", target, block_rows=70)

    model = TableRegressor(FAST).fit(rows())
    assert_allclose(model.predict(frame), expected, rtol=1e-9, atol=1e-9)
    assert_allclose(np.concatenate(list(model.predict(rows()))), expected, rtol=1e-4, atol=1e-4)
    ends = np.concatenate(list(model.predict_interval(rows(), coverage=0.8)))
    assert_allclose(ends, model.predict_interval(frame, 0.8), rtol=1e-4, atol=1e-4)
    assert_allclose(model.score(rows()), model.score(frame, y), rtol=1e-6)
    with pytest.raises(ValueError, match=r"y: expected numbers, got '[xy]'; use TableCl"):
        TableRegressor(FAST).fit(rows("kind"))
    large = rows()
    large.memory = 0.0
    blocks = ArrayBlocks(X, y)
    for given, name in ((large, "FileRows"), (blocks, "ArrayBlocks")):
        with pytest.raises(
            ValueError, match=f"X: expected samples that fit into memory, got {name}"
        ):
            TableRegressor(FAST).fit(given)
    numbers = TableRegressor(FAST).fit(X, y)
    found = np.concatenate(list(numbers.predict(ArrayBlocks(X, block_rows=100))))
    assert_allclose(found, numbers.predict(X), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="y: expected targets in all blocks"):
        numbers.score(ArrayBlocks(X))


@pytest.mark.parametrize("several", [False, True])
def test_dask_collections_are_predicted_lazily(rng, several):
    dask_array = pytest.importorskip("dask.array")
    X, y = quadratic(rng, 200, 3)
    y = np.column_stack([y, X[:, 0]]) if several else y
    model = TableRegressor(FAST).fit(X, y)
    lazy = dask_array.from_array(X, chunks=(90, 3))
    for method in (model.predict, model.predict_interval):
        found = method(lazy)
        assert found.shape == method(X).shape
        assert_allclose(found.compute(), method(X), rtol=1e-4, atol=1e-4)
    found = model.predict_interval(lazy, coverage=0.5).compute()
    assert_allclose(found, model.predict_interval(X, 0.5), rtol=1e-4, atol=1e-4)


def test_targets_that_are_no_numbers_are_named():
    X = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match=r"^y: expected numbers, got 'low'; use TableClassifier"):
        TableRegressor().fit(X, np.array(["1", "2.5", "low", "4", "5", "6"], dtype=object))
    days = np.arange(6).astype("datetime64[D]")
    for dates in (days, days - days[0]):
        with pytest.raises(ValueError, match=r"^y: expected numbers, got dates or durations; con"):
            TableRegressor().fit(X, dates)


@pytest.mark.parametrize("d", [3, 10])
def test_thirty_samples_of_a_linear_truth_cost_little_over_ridge_regression(d):
    for seed in range(2):
        rng = np.random.default_rng([seed, d])
        X = rng.standard_normal((530, d))
        coef = rng.standard_normal(d)
        y = X @ coef / np.linalg.norm(coef) + 0.1 * rng.standard_normal(len(X))
        errors = []
        for model in (TableRegressor(), RidgeCV(np.logspace(-3, 3, 13))):
            model.fit(X[:30], y[:30])
            errors.append(np.sqrt(np.mean((model.predict(X[30:]) - y[30:]) ** 2)))
        assert errors[0] <= 1.1 * errors[1]


@pytest.mark.parametrize("view", ["kernel", "kernel_learned"])
def test_kernels_predict_each_sample_as_among_others(view):
    X, y = make_friedman1(300, random_state=0)
    model = TableRegressor([view]).fit(X, y)
    together, alone = model.predict(X), [model.predict(X[[i]])[0] for i in range(len(X))]
    assert_allclose(alone, together, rtol=0, atol=1e-9)

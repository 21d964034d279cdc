"""GEM for continuous targets, the contractions of several outputs, and scikit-learn's contract."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

from eigenfeat import GEMRegressor, load, save
from eigenfeat.samples import supervised_contractions, target_groups


def quadratic(rng, n=800, d=10):
    """A target that the rows' second moments show and their means do not."""
    X = rng.standard_normal((n, d))
    v = rng.standard_normal(d)
    return X, (X @ v / np.linalg.norm(v)) ** 2 + 0.1 * rng.standard_normal(n)


def test_it_sees_what_linear_regression_does_not(rng):
    X, y = quadratic(rng)
    model = GEMRegressor().fit(X[:500], y[:500])
    assert model.score(X[500:], y[500:]) > 0.85
    assert Ridge().fit(X[:500], y[:500]).score(X[500:], y[500:]) < 0.1


def test_the_regression_is_ridge_and_its_errors_are_left_out(rng):
    X, y = quadratic(rng, 60, 3)
    model = GEMRegressor(n_bins=2, n_directions=1, powers=(1,), penalty=0.1).fit(X, y)
    features = model._features(X)
    size = features.std(axis=0)
    ridge = Ridge(alpha=0.1 * len(X)).fit(features / size, y)
    assert_allclose(model.coef_, ridge.coef_ / size, rtol=1e-8)
    assert_allclose(model.predict(X), ridge.predict(features / size))
    left = []
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        # scikit-learn's leave-one-out formula, too, keeps the columns' means and sizes
        one = Ridge(alpha=0.1 * len(X)).fit((features / size)[rest], y[rest])
        left.append(y[i] - one.predict((features / size)[i : i + 1])[0])
    assert_allclose(model.loo_error_, np.mean(np.square(left)) / y.var(), rtol=1e-8)


@pytest.mark.parametrize("n", [30, 400])
def test_more_features_than_rows_or_fewer(rng, n):
    X, y = quadratic(rng, n, 8)
    model = GEMRegressor(penalty=0.3).fit(X, y)
    features = model._features(X)
    size = np.where(features.std(axis=0) > 0, features.std(axis=0), np.inf)
    ridge = Ridge(alpha=0.3 * n, solver="svd").fit(features / size, y)
    assert_allclose(model.predict(X), ridge.predict(features / size), rtol=1e-6, atol=1e-8)


def test_several_outputs(rng):
    X, y = quadratic(rng)
    Y = np.column_stack([y + 3, rng.standard_normal(len(y)), X[:, 0], np.full(len(y), 2.0)])
    model = GEMRegressor().fit(X[:500], Y[:500])
    found = model.predict(X[500:])
    assert found.shape == (300, 4)
    assert_allclose(found[:, 3], 2.0)
    for column, least in ((0, 0.85), (2, 0.99)):
        rest = np.mean((found[:, column] - Y[500:, column]) ** 2) / Y[500:, column].var()
        assert 1 - rest > least


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
    model = GEMRegressor(n_contractions=1).fit(X[:500], Y[:500])
    signal = np.corrcoef(model.predict(X[500:]) @ u[0], y[500:])[0, 1]
    assert abs(signal) > 0.9


@pytest.mark.parametrize("factor", [-1.0, 1.0, 2.0])
def test_outputs_that_depend_on_each_other(rng, factor):
    X, y = quadratic(rng, 400)
    assert supervised_contractions(X, np.column_stack([y, factor * y])).shape == (1, 2)
    found = GEMRegressor().fit(X, np.column_stack([y, factor * y])).predict(X)
    assert_allclose(found[:, 1], factor * found[:, 0], atol=1e-6)
    assert np.corrcoef(found[:, 0], y)[0, 1] > 0.9


def test_contractions_that_are_given(rng):
    Y = rng.standard_normal((50, 3))
    groups = target_groups(Y, 4, contractions=[[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    assert groups.shape == (2, 50)
    assert_array_equal(groups[0], target_groups(Y[:, 0], 4)[0])
    with pytest.raises(ValueError, match=r"contractions: expected shape \(g, q\)"):
        target_groups(Y, contractions=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="contraction"):
        target_groups(Y, contractions=[[1.0, 2.0]])
    with pytest.raises(ValueError, match="y: expected an output that varies"):
        supervised_contractions(Y, np.ones((50, 2)))
    with pytest.raises(ValueError, match="X: expected 50 finite samples"):
        supervised_contractions(Y[:40], Y)


def test_constant_targets_and_columns(rng):
    X = np.column_stack([rng.standard_normal((40, 2)), np.full(40, 7.0)])
    assert_allclose(GEMRegressor().fit(X, np.full(40, 3.0)).predict(X), 3.0)
    assert np.isfinite(GEMRegressor().fit(X, X[:, 0]).predict(X)).all()


def test_targets_of_text_are_named(rng):
    X = rng.standard_normal((30, 4))
    with pytest.raises(ValueError, match=r"^y: expected numbers, got "):
        GEMRegressor().fit(X, np.array(["low", "high"] * 15))


def test_missing_entries_are_completed(tmp_path, rng):
    X, y = quadratic(rng, 1500, 6)
    X[:, 1] = X[:, 0] + 0.1 * rng.standard_normal(1500)
    gaps = X.copy()
    gaps[rng.random(X.shape) < 0.05] = np.nan
    model = GEMRegressor().fit(gaps[:1000], y[:1000])
    assert model.score(gaps[1000:], y[1000:]) > 0.5
    filled = model.completion_.filled(gaps[1000:])
    assert_array_equal(model.predict(filled), model.predict(gaps[1000:]))
    save(model, tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").predict(gaps), model.predict(gaps))
    whole = model.fit(X[:1000], y[:1000])
    assert not hasattr(whole, "completion_")
    with pytest.raises(ValueError, match="expected complete"):
        whole.predict(gaps[1000:])


def test_views_are_chosen_by_the_leave_one_out_error(tmp_path, rng):
    X = np.exp(1.5 * rng.standard_normal((1200, 5)))  # heavy tails
    y = np.sin(np.log(X[:, 0])) + np.log(X[:, 1]) + 0.1 * rng.standard_normal(1200)
    models = {view: GEMRegressor(views=view).fit(X[:800], y[:800]) for view in ("gem", "splines")}
    auto = GEMRegressor().fit(X[:800], y[:800])
    errors = {view: model.loo_error_ for view, model in models.items()}
    assert auto.view_ == min(errors, key=errors.get) == "splines"
    assert auto.loo_error_ == errors["splines"]
    assert_array_equal(auto.predict(X), models["splines"].predict(X))
    assert auto.score(X[800:], y[800:]) > 0.95
    save(auto, tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").predict(X), auto.predict(X))
    moved = GEMRegressor(views="splines").fit(1e6 * X[:800] - 3, y[:800])
    assert_allclose(moved.predict(1e6 * X - 3), auto.predict(X), rtol=1e-3, atol=1e-3)
    linear = GEMRegressor().fit(X[:60], X[:60] @ np.arange(5.0))
    assert linear.view_ == "gem"
    assert not hasattr(linear, "statistics_")

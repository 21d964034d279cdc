"""Columns and features whose variance is at most rounding error get no weight."""

import numpy as np
import pytest
import scipy.sparse as sp
from flat_gem import gem_classifier
from numpy.testing import assert_allclose
from sklearn.preprocessing import StandardScaler

import eigenfeat as ef
from eigenfeat import CalibratedLeastSquares, MultinomialLogit, TableClassifier

MODELS = {
    "columns": MultinomialLogit(),
    "common": MultinomialLogit(ridge_scale="common"),
    "l2": MultinomialLogit(penalty=0.0, l2=1.0),
    "auto": MultinomialLogit("auto", temperature="auto"),
    "gaussian": MultinomialLogit(solver="gaussian"),
    "least squares": CalibratedLeastSquares(),
}


def genes(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20)) + 4.0
    X[: n // 2, :3] += 2.5
    return X, np.repeat(["a", "b"], n // 2)


def constants():
    """Columns that vary by rounding alone, as they are and after StandardScaler."""
    rng = np.random.default_rng(4)
    floor = np.full(80, np.log2(20))
    parts = rng.choice([1.0, 1 - 2.0**-53, 1 + 2.0**-52], 80)
    out = {"constant": floor, "total of parts": parts, "large": np.full(80, 1e9), "zero": 0 * floor}
    for name in ("constant", "total of parts"):
        out[f"{name}, standardised"] = StandardScaler().fit_transform(out[name][:, None])[:, 0]
    return out


@pytest.mark.parametrize(
    ("name", "column"),
    [
        *((name, column) for name in ("columns", "least squares") for column in constants()),
        *((name, "total of parts, standardised") for name in MODELS),
    ],
)
def test_constant_columns_have_no_weight_and_change_no_other_weight(name, column):
    X, y = genes(80, 1)
    X = StandardScaler().fit_transform(X)
    given = np.insert(X, 10, constants()[column], axis=1)
    model = MODELS[name].fit(given, y)
    assert not model.coef_[:, 10].any()
    rest = np.delete(model.coef_, 10, axis=1)
    expected = MODELS[name].fit(X, y).coef_
    assert_allclose(rest, expected, rtol=0, atol=5e-3 * np.abs(expected).max())


@pytest.mark.parametrize("kind", [sp.csr_array, np.float32, ef.samples.ArrayBlocks])
def test_other_kinds_of_rows(kind):
    X, y = genes(80, 1)
    X[:, 10] = 0.1
    if kind is ef.samples.ArrayBlocks:
        model = MultinomialLogit().fit(ef.samples.ArrayBlocks(X, y, block_rows=7))
    else:
        model = MultinomialLogit().fit(X.astype(kind) if kind is np.float32 else kind(X), y)
    assert not model.coef_[:, 10].any()
    assert np.abs(model.coef_).max() < 100


@pytest.mark.parametrize(
    "model", [MODELS["columns"], MODELS["least squares"], gem_classifier(expansion="with_input")]
)
def test_new_values_of_constant_columns_change_no_prediction(model):
    X, y = genes(80, 1)
    T, t = genes(200, 2)
    X[:, 10] = np.log2(20)
    T[:, 10] = np.log2(20) + np.random.default_rng(3).exponential(size=200)
    scaler = StandardScaler().fit(X)
    found = model.fit(scaler.transform(X), y)
    assert found.score(scaler.transform(T), t) > 0.85


def test_without_an_intercept_ones_are_a_feature():
    X, y = genes(80, 1)
    free = {"tol": 1e-9, "max_iter": 2000}
    model = MultinomialLogit(fit_intercept=False, **free).fit(np.insert(X, 0, 1.0, axis=1), y)
    assert abs(model.coef_[0, 0]) > 0.1
    residue = MultinomialLogit(fit_intercept=False).fit(np.insert(X, 0, 1e-16, axis=1), y)
    assert residue.coef_[0, 0] == 0.0


def test_columns_of_small_units_are_not_constant():
    """A column of a small unit counts as much as in any other unit."""
    X, y = genes(80, 1)
    units = np.where(np.arange(20) == 1, 1e-20, 1.0)
    free = {"tol": 1e-9, "max_iter": 1000}
    known, other = (MultinomialLogit(**free).fit(rows, y).coef_ for rows in (X, X * units))
    assert_allclose(other * units, known, rtol=0, atol=1e-4 * np.abs(known).max())


@pytest.mark.parametrize(("dtype", "large"), [(np.float64, 1.7e18), (np.float32, 1e6)])
@pytest.mark.parametrize(
    "model",
    [
        MultinomialLogit(),
        CalibratedLeastSquares(),
        TableClassifier(["columns", "splines", "gem", "gem_ranks"]),
    ],
)
def test_indicators_added_to_nanoseconds_are_not_constant(model, dtype, large):
    """An indicator that is smaller than the last digit of a column of times in nanoseconds."""
    rng = np.random.default_rng(0)
    X, y = np.zeros((80, 3), dtype=dtype), np.arange(80) % 2
    X[:, 0] = large * (1 + 0.1 * rng.standard_normal(80))
    X[:, 1] = rng.random(80) < 0.2 + 0.6 * y
    X[:, 2] = rng.poisson(3 + 2 * y) / 2
    alone = model.fit(X[:, 1:], y).score(X[:, 1:], y)
    assert alone > 0.7
    assert model.fit(X, y).score(X, y) > alone - 0.05


INDICATORS = [[1, 0, 0, 0, 0], [0, 0, 0, 1, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0]]
INDICATORS += [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 1, 0]]


@pytest.mark.parametrize(
    "model",
    [
        gem_classifier(penalty="auto", temperature=1.0),
        gem_classifier(expansion="shifted"),
        ef.GEMEnsemble(),
    ],
)
def test_folds_without_some_categories_have_finite_predictions(model):
    X, y = np.array(INDICATORS, dtype=float), np.array([0, 0, 2, 2, 0, 2, 1, 1, 1])
    assert np.isfinite(model.fit(X, y).predict_proba(X)).all()


@pytest.mark.parametrize("ridge_scale", ["columns", "common"])
@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_columns_with_a_large_penalty(ridge_scale, l2):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 3)), np.arange(90) % 3
    X[:, 0] += y
    model = MultinomialLogit(l2=l2, ridge_scale=ridge_scale)
    small = model.fit(X * [1, 1, 1e-22], y).predict_proba(X * [1, 1, 1e-22])
    if l2 or ridge_scale == "common":
        alone = model.fit(X[:, :2], y).predict_proba(X[:, :2])
        assert_allclose(small, alone, rtol=0, atol=0.05)


@pytest.mark.parametrize("solver", ["lbfgs", "gaussian"])
@pytest.mark.parametrize(("unit", "what"), [(1e200, "overflow"), (1e-200, "vanish")])
def test_values_whose_squares_do_not_fit(solver, unit, what):
    X, y = genes(40, 1)
    column = X[:, 7].copy()
    X[:, 7] = unit * column
    for model in (MultinomialLogit(solver=solver), CalibratedLeastSquares()):
        with pytest.raises(ValueError, match=f"X: expected finite features .* {what} in feature 7"):
            model.fit(X, y)
    for fine in (1e140, 1e-140):
        X[:, 7] = fine * column
        assert MultinomialLogit(solver=solver).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("scale", [1e-155, 1e-160])
def test_squares_that_are_denormal_are_refused(rng, scale):
    X, y = scale * rng.standard_normal((14, 2)), np.arange(14) % 3
    with pytest.raises(ValueError, match="squares that vanish in feature"):
        MultinomialLogit().fit(X, y)

"""Missing entries: conditional Gaussians, expected moments, and estimators that take NaN."""

import warnings

import numpy as np
import pandas as pd
import pytest
from flat_gem import gem_classifier
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_iris

from eigenfeat import (
    GEM,
    ClassMoments,
    FisherLDA,
    GEMClassifier,
    TableClassifier,
    TableRegressor,
)
from eigenfeat.rayleigh import QuadraticDiscriminant
from eigenfeat.samples import ArrayBlocks, GeneratedBlocks
from eigenfeat.samples.completion import GaussianImputer

EPS = np.finfo(np.float64).eps


def gaussian(d=7, seed=0):
    """A Gaussian with a covariance of condition below 100 in columns of different units."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((d, d)) + 2 * np.eye(d)
    covariance = A @ A.T
    unit = np.sqrt(np.diag(covariance))
    scale = 10.0 ** rng.integers(-3, 4, d)
    mean = scale * rng.standard_normal(d)
    standard = covariance / np.outer(unit, unit)
    return GaussianImputer(mean, scale, np.zeros(d), standard, 1, np.zeros(d, bool))


def full_covariance(model):
    return model.covariance * np.outer(model.scale, model.scale)


def conditional(model, x):
    """Mean of the whole row and covariance R (d, d), by the textbook's formula."""
    S, M = full_covariance(model), np.isnan(x)
    mean = model.mean + model.scale * model.shift
    out, R = x.astype(np.float64), np.zeros_like(S)
    if M.all():
        return mean, S
    gain = np.linalg.solve(S[np.ix_(~M, ~M)], S[np.ix_(~M, M)]).T
    out[M] = mean[M] + gain @ (x[~M] - mean[~M])
    R[np.ix_(M, M)] = S[np.ix_(M, M)] - gain @ S[np.ix_(~M, M)]
    return out, R


def incomplete(X, share, seed=0):
    """The rows with entries missing completely at random."""
    out = np.array(X, dtype=np.float64)
    out[np.random.default_rng(seed).random(out.shape) < share] = np.nan
    return out


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return incomplete(X, 0.3), y


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entries_are_conditional_means(dtype):
    model = gaussian()
    rng = np.random.default_rng(1)
    rows = rng.multivariate_normal(model.mean, full_covariance(model), 60)
    X = incomplete(rows, 0.5).astype(dtype)
    X[0], X[1] = np.nan, rows[1]
    filled = model.filled(X)
    assert filled.dtype == dtype
    eps = np.finfo(dtype).eps
    for x, found in zip(X, filled, strict=True):
        expected = conditional(model, x)[0]
        np.testing.assert_allclose(found / model.scale, expected / model.scale, atol=1e3 * eps)
        np.testing.assert_array_equal(found[~np.isnan(x)], x[~np.isnan(x)])


def test_spread_is_the_sum_of_conditional_covariances():
    model = gaussian()
    X = incomplete(np.zeros((50, 7)), 0.5, seed=2)
    X[0] = np.nan
    rng = np.random.default_rng(3)
    codes, weight = rng.integers(0, 3, 50), rng.random(50)
    expected = np.zeros((3, 7, 7))
    for x, code, w in zip(X, codes, weight, strict=True):
        expected[code] += w * conditional(model, x)[1]
    found = model.spread(np.isnan(X), codes, 3, weight)
    unit = np.outer(model.scale, model.scale)
    np.testing.assert_allclose(found / unit, expected / unit, atol=1e4 * EPS)


def test_moments_are_those_of_the_expected_products():
    X, y = load_iris(return_X_y=True)
    X = incomplete(X, 0.4)
    gem = GEM(scale="none").fit(X, y)
    for label in (0, 1, 2):
        rows = [conditional(gem.completion_, x) for x in X[y == label]]
        products = np.mean([np.outer(m, m) + R for m, R in rows], axis=0)
        np.testing.assert_allclose(gem.moments_.second_moment(label), products, rtol=1e-9)


def test_mean_and_covariance_are_most_likely():
    """With one incomplete column the likelihood has a maximum in closed form: a regression."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((1900, 3)) @ [[1, 0.5, 0.8], [0, 1, -0.6], [0, 0, 0.7]]
    X = Z.copy()
    X[rng.random(1900) < 1 / (1 + np.exp(-2 * Z[:, 0])), 2] = np.nan  # at random, given column 0
    known = ~np.isnan(X[:, 2])
    slope, *_ = np.linalg.lstsq(
        np.column_stack([X[known, :2], np.ones(known.sum())]), X[known, 2], rcond=None
    )
    mean = slope[:2] @ X[:, :2].mean(axis=0) + slope[2]
    model = GaussianImputer.fit(X, tol=1e-8, max_iter=1000)
    found = model.mean + model.scale * model.shift
    np.testing.assert_allclose(found[:2], X[:, :2].mean(axis=0), atol=1e-9)
    assert abs(found[2] - mean) < 0.02
    assert abs(np.nanmean(X[:, 2]) - mean) > 0.2  # what the mean of known entries would be
    filled = model.filled(X)[~known, 2]
    expected = X[~known, :2] @ slope[:2] + slope[2]
    # Shrinkage, which every iteration applies, takes some per cent.
    assert np.abs(filled - expected).max() < 0.05 * np.abs(expected).max()


def test_constant_columns_stay_constant():
    X = incomplete(np.random.default_rng(0).standard_normal((80, 4)), 0.3)
    X[:, 2] = np.where(np.isnan(X[:, 2]), np.nan, 0.1)
    model = GaussianImputer.fit(X)
    np.testing.assert_array_equal(model.filled(X)[:, 2], 0.1)
    assert not model.spread(np.isnan(X), np.zeros(80, int), 1)[0, 2].any()
    same = np.where(np.isnan(X), np.nan, 0.1)
    np.testing.assert_array_equal(GaussianImputer.fit(same).filled(same), 0.1)


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X = incomplete(rng.standard_normal((20, 3)) @ rng.standard_normal((3, 60)), 0.2)
    filled = GaussianImputer.fit(X).filled(X)
    assert np.isfinite(filled).all()
    assert np.abs(filled).max() < 3 * np.nanmax(np.abs(X))


def test_units_and_weights_by_a_factor_change_nothing():
    X = incomplete(load_iris(return_X_y=True)[0], 0.3)
    weight = np.random.default_rng(1).random(len(X))
    unit = np.array([1e-6, 1.0, 2.0**20, 1e6])
    model = GaussianImputer.fit(X, weight)
    other = GaussianImputer.fit(X * unit, 64 * weight)
    np.testing.assert_allclose(other.covariance, model.covariance, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(other.filled(X * unit) / unit, model.filled(X), rtol=1e-7)


def test_complete_rows_have_no_completion():
    X, y = load_iris(return_X_y=True)
    for model in (GEM(), GEMClassifier(), FisherLDA()):
        model.fit(incomplete(X, 0.1), y)
        assert hasattr(model, "completion_")
        assert not hasattr(model.fit(X, y), "completion_")


@pytest.mark.parametrize(
    "make",
    [lambda: gem_classifier(), FisherLDA, QuadraticDiscriminant],
    ids=["GEM", "LDA", "QDA"],
)
def test_blocks_give_what_arrays_give(make, digits):
    X, y = digits
    X, y = X[:300], y[:300]
    weight = np.random.default_rng(0).random(300)
    whole = make().fit(X, y, weight)
    blocks = make().fit(ArrayBlocks(X, y, weight, block_rows=170))
    scale = np.abs(whole.decision_function(X)).max()
    gap = np.abs(blocks.decision_function(X) - whole.decision_function(X)).max()
    assert gap < 1e-2 * scale
    parts = list(blocks.predict(ArrayBlocks(X, block_rows=100)))
    np.testing.assert_array_equal(np.concatenate(parts), blocks.predict(X))


def test_some_blocks_may_be_complete(digits):
    X, y = digits
    whole = np.nan_to_num(X[:200])
    parts = [(whole, y[:200]), (X[200:400], y[200:400])]
    model = GEM().fit(GeneratedBlocks(parts))
    together = GEM().fit(np.vstack([whole, X[200:400]]), y[:400])
    for label in range(10):
        np.testing.assert_allclose(
            model.moments_.second_moment(label),
            together.moments_.second_moment(label),
            rtol=1e-8,
            atol=1e-8,
        )


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [GEM, GEMClassifier, FisherLDA, QuadraticDiscriminant])
def test_errors_name_what_is_wrong(make):
    X, y = load_iris(return_X_y=True)
    infinite = incomplete(X, 0.2)
    infinite[3, 1] = np.inf
    for rows, message in (
        ((np.full_like(X, np.nan), y), "expected a known entry, got NaN only"),
        ((infinite, y), "got inf in row 3, column 1"),
        ((ArrayBlocks(infinite, y, block_rows=50),), "got inf in row 3, column 1"),
    ):
        with pytest.raises(ValueError, match=message):
            make().fit(*rows)


@pytest.mark.parametrize(
    "model",
    [
        *(GEM(), GEMClassifier(), FisherLDA(), QuadraticDiscriminant()),
        *(TableClassifier(views="columns"), TableRegressor(views="columns")),
    ],
    ids=lambda model: type(model).__name__,
)
def test_gaps_in_columns_that_were_complete_in_the_fit_are_named(model):
    X, y = load_iris(return_X_y=True, as_frame=True)
    call = "transform" if hasattr(model, "transform") else "predict"
    for rows in [X.assign(kind=["a", "b"] * 75)] if hasattr(model, "views") else [X, X.to_numpy()]:
        fitted, gaps = model.fit(rows, y), rows[:5].copy()
        getattr(gaps, "iloc", gaps)[2, 3] = np.nan
        name = "3" if isinstance(rows, np.ndarray) else r"'petal width \(cm\)'"
        with pytest.raises(ValueError, match=f"in row 2, column {name}; fit to samples with"):
            getattr(fitted, call)(gaps)


def test_batches_and_sparse_rows_have_to_be_complete():
    X, y = load_iris(return_X_y=True)
    X[4, 1] = np.nan
    for model in (GEM(), FisherLDA()):
        with pytest.raises(ValueError, match="complete samples in partial_fit, got NaN in row 4"):
            model.fit(X, y).partial_fit(X, y)
    with pytest.raises(ValueError, match="in sparse samples, got NaN in row 4, column 1"):
        GEM().fit(csr_array(X), y)


def test_a_class_without_an_entry_in_a_column_is_named():
    X, y = load_iris(return_X_y=True)
    X[y == 1, 2] = np.nan
    with pytest.warns(UserWarning, match="no sample of class 1 has an entry in column 2"):
        model = GEMClassifier().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.predict_proba(X)).all()


def test_classes_without_an_entry_in_a_column_share_a_warning():
    X, y = load_iris(return_X_y=True)
    X[y == 1, 2] = X[y == 2, 3] = X[y == 2, 1] = np.nan
    with pytest.warns(UserWarning, match="no sample of class") as found:
        GEMClassifier().fit(X, y)
    (message,) = [str(one.message) for one in found]
    assert message == (
        "X: no sample of class 1 has an entry in column 2, and 1 other class has such columns; the "
        "samples of other classes complete them"
    )


def test_scatter_is_added_to_one_class():
    X, y = load_iris(return_X_y=True)
    moments = ClassMoments().update(X, y)
    before, other = moments.covariance(1), moments.covariance(2)
    added = np.diag([1.0, 2.0, 3.0, 4.0])
    mean = moments.mean(1)
    assert moments.add_scatter(1, added) is moments
    np.testing.assert_allclose(moments.covariance(1), before + added / 50, rtol=1e-14)
    np.testing.assert_array_equal(moments.covariance(2), other)
    np.testing.assert_array_equal(moments.mean(1), mean)
    for bad, message in ((np.eye(3), r"shape \(4, 4\)"), (np.full((4, 4), np.nan), "finite")):
        with pytest.raises(ValueError, match=message):
            moments.add_scatter(1, bad)
    with pytest.raises(ValueError, match="class"):
        moments.add_scatter(7, added)


def test_the_order_of_many_samples_does_not_matter():
    """Classes in turn: samples at equal distances would all be of one class."""
    rng = np.random.default_rng(0)
    n, d = 4000, 6
    y = np.arange(n) % 2

    def draw():
        X = rng.standard_normal((n, d)) + 3.0 * y[:, None] * np.linspace(0.3, 1, d)
        return incomplete(X, 0.5, seed=rng.integers(1000))

    X, new = draw(), draw()
    orders = np.arange(n), rng.permutation(n)
    in_turn, shuffled = (FisherLDA().fit(X[rows], y[rows]).score(new, y) for rows in orders)
    assert in_turn > shuffled - 0.015


EMPTY = [GEM(), TableClassifier(views=["columns", "gem"]), FisherLDA(), QuadraticDiscriminant()]
REGRESSOR = TableRegressor(["columns", "splines", "gem_ranks"])


@pytest.mark.parametrize("estimator", [*EMPTY, REGRESSOR], ids=lambda e: type(e).__name__)
def test_a_column_without_values_is_left_out_by_name(rng, estimator):
    X = pd.DataFrame(rng.standard_normal((120, 3)), columns=list("abc"))
    X.iloc[::7, 1] = np.nan
    y = (X["a"] > 0).astype(int)
    method = "transform" if isinstance(estimator, GEM) else "predict"
    constant = X.assign(e=0.0)[["e", *"abc"]]
    expected = getattr(estimator.fit(constant, y), method)(constant)
    void = X.assign(e=np.nan)[["e", *"abc"]]
    with pytest.warns(UserWarning, match=r"columns without any value \('e'\) are left out"):
        estimator.fit(void, y)
    for later in (void, void.assign(e=1e3 * rng.standard_normal(120))):
        found = getattr(estimator, method)(later)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("estimator", EMPTY[:1] + EMPTY[2:], ids=lambda e: type(e).__name__)
def test_a_column_without_values_in_sparse_samples(rng, estimator):
    X = rng.standard_normal((120, 3))
    y = (X[:, 0] > 0).astype(int)
    with pytest.warns(UserWarning, match="columns without any value"):
        estimator.fit(np.insert(X, 1, np.nan, axis=1), y)
    later = np.insert(X, 1, 1e3, axis=1)
    method = getattr(estimator, "transform" if hasattr(estimator, "transform") else "predict")
    np.testing.assert_allclose(method(csr_array(later)), method(later), rtol=1e-12)
    later[5, 2] = np.nan
    with pytest.raises(ValueError, match="in sparse samples, got NaN in row 5, column 2"):
        method(csr_array(later))


def test_a_column_without_values_in_blocks(rng):
    X = rng.standard_normal((120, 3))
    y = (X[:, 0] > 0).astype(int)
    X[::5, 1] = np.nan
    void = np.insert(X, 1, np.nan, axis=1)
    blocks = ArrayBlocks(void, y, block_rows=50)
    with pytest.warns(UserWarning, match=r"columns without any value \(1\)"):
        model = FisherLDA().fit(blocks)
    constant = np.insert(X, 1, 0.0, axis=1)
    expected = FisherLDA().fit(constant, y).transform(constant)
    np.testing.assert_allclose(np.vstack([*model.transform(blocks)]), expected, rtol=1e-6)

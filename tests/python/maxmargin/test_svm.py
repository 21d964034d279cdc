"""MulticlassSVM: optimum, duals, gap, and invariances."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from svm_reference import class_weights, dual_objective, objective

from eigenfeat.expansion.features import ExpandedFeatures
from eigenfeat.maxmargin import MaxMarginPCA, MaxMarginShift, MulticlassSVM
from eigenfeat.samples import ArrayBlocks

TIGHT = {"tol": 1e-9, "max_iter": 20_000}


def blobs(rng, n=60, d=5, k=4, spread=1.5, dtype=np.float64):
    codes = np.arange(n) % k
    X = rng.standard_normal((k, d))[codes] + spread * rng.standard_normal((n, d))
    return X.astype(dtype), codes


def check_certificate(model, X, codes, costs, margin=1.0, intercept=True, rtol=1e-9):
    """Objective, gap and duals fulfil their definitions in float64."""
    W, b = class_weights(model)
    value = objective(X, codes, costs, W, b, margin)
    a = model.dual_coef_
    dual = dual_objective(X, codes, a, margin, intercept)
    assert_allclose(model.objective_, value, rtol=rtol)
    assert_allclose(model.duality_gap_, value - dual, rtol=0, atol=10 * rtol * value)
    assert_allclose(a.sum(axis=1), 0, atol=1e-13 * costs.max())
    own = a[np.arange(len(codes)), codes]
    assert (own >= 0).all()
    assert (own <= costs * (1 + 1e-12)).all()
    assert (np.where(np.arange(a.shape[1]) == codes[:, None], 0, a) <= 0).all()
    assert_allclose(model.class_coef_, a.T @ X, atol=1e-6 * np.abs(X).max() * costs.sum())
    assert model.n_support_ == np.count_nonzero(own)
    assert_array_equal(np.sign(np.diff(model.dual_history_) + 1e-12 * value), 1)
    assert len(model.objective_history_) == model.n_iter_ == len(model.dual_history_)
    assert model.objective_history_[-1] == model.objective_


@pytest.mark.parametrize(("k", "C"), [(2, 1.0), (3, 0.05), (5, 1.0)])
def test_a_gap_of_zero_proves_the_optimum(rng, k, C):
    X, codes = blobs(rng, n=30, d=3, k=k)
    costs = C * rng.uniform(0.5, 2.0, len(X))
    model = MulticlassSVM(**TIGHT).fit(X, codes, sample_weight=costs)
    assert model.duality_gap_ <= 1e-8 * max(1.0, model.objective_)
    check_certificate(model, X, codes, costs)


@pytest.mark.parametrize(("k", "intercept"), [(2, True), (10, False)])
def test_the_optimum_is_liblinears(k, intercept):
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16, y[:600] % k
    model = MulticlassSVM(C=0.1, fit_intercept=intercept, tol=1e-7).fit(X, y)
    peer = LinearSVC(
        multi_class="crammer_singer", C=0.1, fit_intercept=intercept, tol=1e-8, max_iter=100_000
    ).fit(X, y)
    costs = np.full(len(y), 0.1)
    values = [objective(X, y, costs, *class_weights(m)) for m in (model, peer)]
    assert_allclose(values[0], values[1], rtol=1e-6)
    assert_allclose(model.coef_, peer.coef_, atol=3e-3)
    assert np.mean(model.predict(X) == peer.predict(X)) > 0.99
    assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-2)
    check_certificate(model, X, y, costs, intercept=intercept)


def test_frank_wolfe_finds_the_same_weights(rng):
    X, y = blobs(rng)
    best = MulticlassSVM(C=0.02, **TIGHT).fit(X, y)
    model = MulticlassSVM(C=0.02, solver="frank_wolfe", tol=1e-3, max_iter=5000)
    model.fit(X, y)
    assert best.objective_ <= model.objective_ <= best.objective_ * (1 + 1e-3)
    assert model.duality_gap_ >= model.objective_ - best.objective_ - 1e-12
    check_certificate(model, X, y, np.full(len(y), 0.02))


@pytest.mark.parametrize(
    ("solver", "dtype"), [("sequential", np.float32), ("frank_wolfe", np.float64)]
)
def test_sparse_dense_and_compressed_rows_agree(rng, solver, dtype):
    X, y = blobs(rng, n=80, d=40, dtype=dtype)
    X[rng.uniform(size=X.shape) < 0.8] = 0  # compressed inside
    options = {"C": 0.1, "solver": solver, "tol": 0.01 if solver == "frank_wolfe" else 1e-5}
    dense = MulticlassSVM(max_iter=5000, **options).fit(X, y)
    csr = MulticlassSVM(max_iter=5000, **options).fit(sp.csr_matrix(X), y)
    # The squares of rows are summed in another order.
    assert_allclose(csr.coef_, dense.coef_, atol=1e-7)
    assert_allclose(csr.dual_coef_, dense.dual_coef_, atol=1e-7)
    shifted = X + dtype(1)  # no zeros: not compressed
    model = MulticlassSVM(max_iter=5000, **options).fit(shifted, y)
    check_certificate(
        model, shifted, y, np.full(len(y), 0.1), rtol=1e-5 if dtype == np.float32 else 1e-9
    )
    assert csr.decision_function(sp.csr_matrix(X)).dtype == dtype


def test_labels_of_blocks_are_those_of_their_samples(rng):
    for k in (2, 4):
        X, y = blobs(rng, k=k)
        model = MulticlassSVM(C=0.1).fit(X, y)
        found = np.concatenate(list(model.predict(ArrayBlocks(X, block_rows=7))))
        assert_array_equal(found, model.predict(X))


def test_class_weights_are_weights_of_samples(rng):
    X, y = blobs(rng)
    classes = MulticlassSVM(C=0.1, class_weight={0: 2.0, 1: 1, 2: 1, 3: 0.5}, **TIGHT).fit(X, y)
    same = MulticlassSVM(C=0.1, **TIGHT).fit(X, y, np.array([2.0, 1, 1, 0.5])[y])
    assert_array_equal(classes.coef_, same.coef_)
    with pytest.raises(ValueError, match="class_weight: expected labels of y, got 'a'"):
        MulticlassSVM(class_weight={"a": 2.0}).fit(X, y)


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e25, 1e140])
def test_rows_of_any_scale(rng, scale):
    X, y = blobs(rng)
    plain = MulticlassSVM(C=0.1, fit_intercept=False, tol=1e-6).fit(X, y)
    power = 2.0 ** round(np.log2(scale))
    model = MulticlassSVM(C=0.1 / power**2, fit_intercept=False, tol=1e-6).fit(X * power, y)
    assert_allclose(model.coef_ * power, plain.coef_, rtol=1e-3, atol=1e-3)
    assert_array_equal(model.predict(X * power), plain.predict(X))
    if 1e-30 < scale < 1e30:
        single = MulticlassSVM(C=0.1 / power**2, fit_intercept=False, tol=1e-4)
        single.fit((X * power).astype(np.float32), y)
        assert_allclose(single.coef_ * power, plain.coef_, rtol=0.1, atol=0.02)


def test_expanded_rows(rng):
    X, y = blobs(rng)
    rows = ExpandedFeatures(X, rng.standard_normal((5, 4)))
    model = MulticlassSVM(C=0.1).fit(rows, y)
    formed = MulticlassSVM(C=0.1).fit(rows.toarray(), y)
    assert_array_equal(model.coef_, formed.coef_)
    assert_allclose(model.decision_function(rows), formed.decision_function(rows.toarray()))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_constant_columns_are_the_intercepts(kind):
    """Otherwise constant columns would take most epochs of the solver."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 3
    X[:, 0] += y
    known = MulticlassSVM().fit(kind(X), y)
    for constant in (0.1, 255.0, 1e9):
        found = MulticlassSVM().fit(kind(np.insert(X, 1, constant, axis=1)), y)
        assert not found.coef_[:, 1].any()
        assert_array_equal(np.delete(found.coef_, 1, axis=1), known.coef_)
        assert found.n_iter_ == known.n_iter_
    ones = MulticlassSVM(fit_intercept=False).fit(kind(np.insert(X, 1, 1.0, axis=1)), y)
    assert_allclose(ones.coef_[:, 1], known.intercept_, rtol=0, atol=0.05)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_columns_of_rounding_errors_are_constant(kind):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 3
    known = MulticlassSVM().fit(kind(np.insert(X, 1, 1e9, axis=1)), y)
    rounded = np.insert(X, 1, np.nextafter(1e9, 1e9 + np.arange(60) % 2), axis=1)
    assert_array_equal(MulticlassSVM().fit(kind(rounded), y).coef_, known.coef_)


def test_a_column_that_varies_in_one_sample_is_not_constant():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 2)), np.arange(300) % 2
    X = np.insert(X, 1, 5.0, axis=1)
    X[1, 1] = 5.5  # beside the samples that are looked at first
    assert MulticlassSVM(C=100.0).fit(X, y).class_coef_[:, 1].any()
    X[1, 1] = 5.0
    assert not MulticlassSVM(C=100.0).fit(X, y).class_coef_[:, 1].any()


@pytest.mark.parametrize("model", [MaxMarginShift(PCA(2), sigma2=0.5), MaxMarginPCA(2, sigma2=0.5)])
def test_constant_columns_do_not_scale_others(model):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 2
    X[:, 0] += y
    known = model.fit(X, y).transform(X)
    for constant in (0.1, 2024.0):
        rows = np.insert(X, 3, constant, axis=1)
        found = model.fit(rows, y).transform(rows)
        assert_allclose(np.abs(found), np.abs(known), rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def test_a_gap_that_remains_is_warned_about(wine):
    X, y = wine
    with pytest.warns(
        ConvergenceWarning, match="2 epochs left a gap of .* raise max_iter"
    ) as caught:
        MulticlassSVM(tol=1e-12, max_iter=2).fit(X, y)
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match="give float64 samples"):
        MulticlassSVM(tol=1e-14, C=0.1).fit(X.astype(np.float32), y)

"""Few samples of many columns are solved in their span, with the results of whole matrices."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from eigenfeat import GEM, ClassMoments
from eigenfeat.gem import ClassComponents
from eigenfeat.pencils.pencils import pair_directions
from eigenfeat.pencils.problems import SingularDenominatorError
from eigenfeat.rayleigh import RayleighPCA, VanishingComponents
from eigenfeat.rayleigh.discriminant import FisherLDA, SlicedInverseRegression
from eigenfeat.rayleigh.quadratic import QuadraticDiscriminant

N, D, K = 90, 240, 4


@pytest.fixture
def samples(rng):
    y = np.arange(N) % K
    X = rng.standard_normal((N, D)) * rng.uniform(0.2, 5.0, D) + 3.0
    X[:, :20] *= 1.0 + y[:, None]
    X[:, 20:30] += 2.0 * y[:, None]
    return X, y


def both(X, y, weight=None):
    """Return moments that keep the samples, and equal moments that have formed matrices."""
    few, formed = ClassMoments().update(X, y, weight), ClassMoments().update(X, y, weight)
    formed.covariance(0)
    assert few.few_samples() is not None
    assert formed.few_samples() is None
    return few, formed


@pytest.mark.parametrize(
    ("form", "dtype"),
    [(np.asarray, np.float64), (sp.csr_array, np.float32), (np.asfortranarray, np.float64)],
)
def test_matrices_formed_late_and_at_once_are_bit_for_bit_equal(samples, rng, form, dtype):
    X, y = samples
    X, weight = X.astype(dtype), rng.uniform(0.0, 2.0, N)
    parts = [slice(0, 30), slice(30, 50), slice(50, N)]
    one = ClassMoments()
    formed = ClassMoments()
    for part in parts:
        one.update(form(X[part]), y[part], weight[part])
        formed.update(form(X[part]), y[part], weight[part]).covariance(0)
    assert one.copy() == formed
    other = ClassMoments().update(form(X[:20]), y[:20] + 2)
    one.merge(other)
    other.covariance(2)
    formed.merge(other)
    assert one.few_samples() is not None
    assert len(one.few_samples()[0]) == N + 20
    assert one.weight(3) == pytest.approx(formed.weight(3), rel=1e-14)
    np.testing.assert_allclose(one.mean(3), formed.mean(3), rtol=1e-13)
    variance = np.diag(formed.covariance(3))
    rtol = 1e-11 if dtype is np.float64 else 1e-5
    np.testing.assert_allclose(one.variance(3), variance, rtol=rtol)
    np.testing.assert_array_equal(formed.variance(3), variance)
    copy = one.copy()
    np.testing.assert_allclose(copy.covariance(3), formed.covariance(3), rtol=rtol, atol=rtol)
    assert copy.few_samples() is None
    assert one.few_samples() is not None
    assert pickle.loads(pickle.dumps(one)) == copy


def test_samples_are_copied_and_many_samples_are_replaced_by_matrices(samples):
    X, y = samples
    mine = X.copy()
    moments = ClassMoments().update(mine, y)
    mine[:] = 0.0
    assert moments == ClassMoments().update(X, y)
    moments = ClassMoments().update(X, y).update(X[:40], y[:40])
    assert moments.few_samples() is None
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="row 3, column 1"):
        ClassMoments().update(X, y)


@pytest.mark.parametrize(
    "options",
    [
        {"constant": False},
        {"constant": True},
        {"constant": True, "ridge": "auto", "threshold": "auto"},
        {"denominator": "covariance", "threshold": 1.2},
        {"constant": True, "pairs": "confusion"},
        {"constant": True, "pairs": "class_tree"},
        {"constant": True, "pairs": "one_vs_rest"},
        {"constant": True, "pairs": ("random_groups", 30), "random_state": 3},
    ],
)
def test_directions_agree_with_those_of_the_matrices(samples, rng, options):
    X, y = samples
    if options.get("pairs", ("", 0))[0] == "random_groups":
        y = np.arange(N) % 8
    scale = None if len(options) == 1 else X.std(axis=0)
    weight = rng.uniform(0.5, 2.0, N)
    few, formed = both(X, y, weight)
    options = {"ridge": 0.1, "n_directions": 3, "threshold": 1.1} | options
    mine = pair_directions(few, scale=scale, **options)
    theirs = pair_directions(formed, scale=scale, **options)
    np.testing.assert_array_equal(mine.pairs, theirs.pairs)
    assert len(mine.pairs)
    np.testing.assert_allclose(mine.eigenvalues, theirs.eigenvalues, rtol=1e-10)
    size = np.abs(theirs.vectors).max(axis=0)
    np.testing.assert_allclose(mine.vectors / size, theirs.vectors / size, atol=1e-7)
    if mine.offset is not None:
        np.testing.assert_allclose(mine.offset, theirs.offset, atol=1e-6)


def test_the_error_suggests_a_ridge_if_a_class_does_not_fill_the_span(samples):
    X, y = samples
    for moments in both(X, y):
        with pytest.raises(SingularDenominatorError, match=r"ridge=.* suffices"):
            pair_directions(moments, ridge=0.0)


def test_bits_do_not_depend_on_the_threads_of_blas(rng):
    y = np.arange(400) % 8
    moments = ClassMoments().update(rng.standard_normal((400, 1500)), y)
    results = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            results.append(pair_directions(moments, [(c, (c + 1) % 8) for c in range(8)]))
    np.testing.assert_array_equal(results[0].vectors, results[1].vectors)


def test_equal_and_collinear_samples(samples):
    X, y = samples
    X[1::2] = X[::2]
    few, formed = both(X, y)
    mine, theirs = (pair_directions(m, n_directions=1, ridge=0.1) for m in (few, formed))
    np.testing.assert_allclose(mine.eigenvalues, theirs.eigenvalues, rtol=1e-9)


@pytest.mark.parametrize(
    ("kind", "center", "n"),
    [
        ("principal", "class", 3),
        ("principal", "all", D),
        ("vanishing", "all", 3),
        ("vanishing", "class", D),
    ],
)
def test_components_of_each_class_agree_with_those_of_the_matrices(samples, kind, center, n):
    few, formed = both(*samples)
    model = ClassComponents(kind, n, center=center, expansion="none")
    mine, theirs = (clone(model).fit_moments(m) for m in (few, formed))
    top = np.max(theirs.eigenvalues_)
    np.testing.assert_array_equal(mine.pairs_, theirs.pairs_)
    np.testing.assert_allclose(mine.eigenvalues_, theirs.eigenvalues_, rtol=1e-9, atol=1e-12 * top)
    projections = theirs.transform(samples[0])
    size = np.abs(projections).max()
    np.testing.assert_allclose(mine.transform(samples[0]), projections, atol=1e-7 * size)


@pytest.mark.parametrize("kind", ["principal", "vanishing"])
def test_components_of_very_wide_samples(rng, kind):
    """The matrix (columns, columns), which would take 3 GB, is not formed."""
    X, y = rng.standard_normal((20, 20_000)), np.arange(20) % 2
    model = ClassComponents(kind, 2, expansion="none").fit(X, y)
    squares = model.transform(X) ** 2
    own = np.array([squares[y == c, 2 * c : 2 * c + 2].mean(axis=0) for c in (0, 1)])
    np.testing.assert_allclose(own.ravel(), model.eigenvalues_, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("center", [False, True])
def test_a_whole_null_space_agrees_with_that_of_the_matrices(samples, center):
    few, formed = both(*samples)
    model = VanishingComponents(D - N + center, center=center, scale="columns")
    mine, theirs = (clone(model).fit_moments(m) for m in (few, formed))
    np.testing.assert_allclose(mine.directions_, theirs.directions_, atol=1e-8)
    some = VanishingComponents(7, center=center, scale="columns").fit_moments(few)
    np.testing.assert_allclose(some.directions_, theirs.directions_[:, :7], atol=1e-8)
    scaled = some.directions_ * some.column_scale_[:, None]
    np.testing.assert_allclose(scaled.T @ scaled, np.eye(7), atol=1e-14)
    assert np.abs(some.transform(samples[0])).max() < 1e-12


@pytest.mark.parametrize(
    "model",
    [
        RayleighPCA(5),
        RayleighPCA(5, scale="columns"),
        RayleighPCA(),
        RayleighPCA(4, center=False),
        RayleighPCA(120),
        VanishingComponents(3),
        FisherLDA(),
        FisherLDA(scale="none", ridge=0.1),
        SlicedInverseRegression(ridge=0.1),
    ],
    ids=repr,
)
def test_rayleigh_quotients_agree_with_those_of_the_matrices(samples, model):
    X, y = samples
    few, formed = both(X, y)
    mine = model.fit_moments(few)
    values, shape = mine.eigenvalues_, mine.directions_.shape
    projections, mean = mine.transform(X), mine.mean_
    scores = mine.decision_function(X) if hasattr(mine, "decision_function") else 0.0
    theirs = model.fit_moments(formed)
    assert shape == theirs.directions_.shape
    top = values[0]
    np.testing.assert_allclose(values, theirs.eigenvalues_, rtol=1e-9, atol=1e-10 * top + 1e-12)
    large = values > 1e-9 * top
    np.testing.assert_allclose(mean, theirs.mean_, atol=1e-12)
    if large.all():
        size = np.abs(theirs.transform(X)).max(axis=0)
        np.testing.assert_allclose(projections / size, theirs.transform(X) / size, atol=1e-7)
    if hasattr(model, "decision_function"):
        np.testing.assert_allclose(scores, theirs.decision_function(X), rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("shrinkage", ["auto", 0.0, 0.3, 1.0])
def test_quadratic_discriminants_agree_with_those_of_the_matrices(samples, rng, shrinkage):
    X, y = samples
    few, formed = both(X, y)
    other = X + rng.standard_normal(X.shape)
    mine, theirs = (
        QuadraticDiscriminant(shrinkage=shrinkage, ridge=0.01).fit_moments(m) for m in (few, formed)
    )
    np.testing.assert_allclose(mine.shrinkage_, theirs.shrinkage_, rtol=1e-8)
    scores = theirs.decision_function(other)
    differences = scores - scores[:, :1]
    found = mine.decision_function(other)
    np.testing.assert_allclose(found - found[:, :1], differences, atol=1e-8 * np.abs(scores).max())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(mine)).decision_function(other), found)


def test_samples_are_kept_until_a_matrix_is_needed(samples):
    X, y = samples
    model = GEM(n_directions=3).fit(X, y)
    assert model.moments_.few_samples() is not None
    model.partial_fit(X, y)
    assert model.moments_.few_samples() is None


def test_as_many_columns_as_a_gene_chip_has_form_no_matrix(rng):
    X, y = rng.standard_normal((20, 60_000)), np.arange(20) % 2
    model = FisherLDA().fit(X, y)
    assert model.moments_.few_samples() is not None
    assert (model.predict(X) == y).all()
    pooled = rng.standard_normal((20, 1)) @ np.ones((1, 60_000))
    assert GEM(n_directions=1, threshold=None).fit(pooled, y).directions_.shape == (60_000, 2)

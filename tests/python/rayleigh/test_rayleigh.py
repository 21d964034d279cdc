"""The family of Table 1 against scikit-learn, SciPy and plain NumPy, on rows of every kind."""

import numpy as np
import pandas as pd
import pytest
from block_support import FarBlocks
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh, subspace_angles
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from eigenfeat import ClassMoments
from eigenfeat.exceptions import SingularDenominatorError
from eigenfeat.gem import ClassComponents
from eigenfeat.rayleigh import (
    FisherLDA,
    OrientedPCA,
    QuadraticDiscriminant,
    RayleighPCA,
    SlicedInverseRegression,
    VanishingComponents,
)
from eigenfeat.samples import ArrayBlocks
from eigenfeat.samples.targets import discretize_target

EPS = np.finfo(float).eps
SUPERVISED = (FisherLDA, SlicedInverseRegression)
FAMILY = (RayleighPCA, VanishingComponents, OrientedPCA, *SUPERVISED)


@pytest.fixture
def rows(rng):
    """Four classes of 60 rows with different means, 6 correlated columns, far from the origin."""
    y = np.repeat([3, 5, 7, 9], 60)
    X = rng.standard_normal((240, 6)) @ (rng.standard_normal((6, 6)) + 2 * np.eye(6))
    order = rng.permutation(240)
    return (X + 3 * rng.standard_normal((4, 6))[(y - 3) // 2] + 5.0)[order], y[order]


def assert_same_subspace(V, W, matrix, gap, slack=200.0):
    """Principal angles up to rounding of the matrices, over the gap between eigenvalues."""
    assert V.shape == W.shape
    tolerance = slack * EPS * len(V) * np.linalg.norm(matrix, 2) / gap
    assert subspace_angles(V, W).max() < tolerance


# ---- the members against their references --------------------------------------------------------


@pytest.mark.parametrize(
    ("m", "center", "scale"), [(1, True, "none"), (6, True, "columns"), (2, False, "none")]
)
def test_pca_is_the_svd(rows, m, center, scale):
    X = rows[0] * [1.0, 10.0, 100.0, 1e3, 1e-3, 1e5] if scale == "columns" else rows[0]
    Z = X / X.std(axis=0) if scale == "columns" else X
    Z = Z - Z.mean(axis=0) if center else Z
    _, values, right = np.linalg.svd(Z, full_matrices=False)
    ours = RayleighPCA(m, center=center, scale=scale).fit(X)
    assert_allclose(ours.eigenvalues_, values[:m] ** 2 / 240, rtol=1e-10)
    assert_allclose(np.abs(ours.transform(X)), np.abs(Z @ right[:m].T), atol=1e-9)
    assert ours.offset_.any() == center


@pytest.mark.parametrize("center", [True, False])
def test_vca_spans_the_smallest_eigenvectors(rows, center):
    X, _ = rows
    matrix = np.cov(X.T, bias=True) if center else X.T @ X / len(X)
    values, vectors = np.linalg.eigh(matrix)
    ours = VanishingComponents(3, center=center).fit(X)
    assert_same_subspace(ours.directions_, vectors[:, :3], matrix, values[3] - values[2])
    assert_allclose(ours.eigenvalues_, values[:3], rtol=1e-10)
    assert_allclose(np.mean(ours.transform(X) ** 2, axis=0), values[:3], rtol=1e-8)


def test_vca_gives_a_null_space_the_same_basis_whatever_the_rounding(rng):
    X = rng.standard_normal((5, 9))
    first, again = (VanishingComponents().fit(rows) for rows in (X, np.tile(X[::-1], (3, 1))))
    assert first.eigenvalues_[4] < 1e-14 < 0.01 < first.eigenvalues_[5]
    assert_allclose(again.directions_, first.directions_, atol=1e-12)
    assert_allclose(first.directions_.T @ first.directions_, np.eye(9), atol=1e-13)
    assert np.abs(first.transform(X)[:, :5]).max() < 1e-13


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_class_far_away_does_not_hide_the_others(rng, dtype):
    """Means of classes are not rounded to float32, so that small differences of means count."""
    y = rng.integers(0, 3, 600)
    X = rng.standard_normal((600, 20))
    X[:, 0] += 3.0 * (y == 1)
    X[:, 1] += 1e4 * (y == 2)
    model = FisherLDA(scale="none").fit(X.astype(dtype), y)
    assert model.eigenvalues_.shape == (2,)
    assert model.score(X.astype(dtype), y) > 0.95


def test_directions_without_signal_need_n_directions(rng):
    X = rng.standard_normal((5, 9))
    for member in (RayleighPCA, OrientedPCA):
        assert member().fit(X).directions_.shape == (9, 4)
        assert member(7).fit(X).directions_.shape == (9, 7)
    X = np.arange(60.0).reshape(30, 2) % 7 + 10 * np.repeat([0, 1, 2], 10)[:, None]
    X[:10] = X[10:20] - 10
    X[20:] = X[10:20] + 10
    y = np.repeat([0, 1, 2], 10)
    assert FisherLDA().fit(X, y).directions_.shape == (2, 1)  # the means are on a line


def test_fisher_has_the_subspace_of_scikit_learn(rows):
    X, y = rows
    ours = FisherLDA(ridge=0).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    within = sum(np.cov(X[y == c].T) for c in np.unique(y))
    gap = np.linalg.eigvalsh(within)[0]
    assert_same_subspace(ours.directions_, theirs.scalings_[:, :3], within, gap)
    expected = theirs.transform(X - X.mean(axis=0))  # solver="eigen" does not centre
    assert_allclose(np.abs(ours.transform(X)), np.abs(expected), atol=1e-9)
    ratio = ours.eigenvalues_ / ours.eigenvalues_.sum()
    assert_allclose(ratio, theirs.explained_variance_ratio_, rtol=1e-10)


def test_the_ridge_is_a_multiple_of_the_noises_mean_eigenvalue(rows):
    X, y = rows
    ours = FisherLDA(ridge=0.3, scale="none").fit(X, y)
    means = np.array([X[y == c].mean(axis=0) for c in np.unique(y)])
    within = np.mean([np.cov(X[y == c].T, bias=True) for c in np.unique(y)], axis=0)
    noise = within + 0.3 * np.trace(within) / 6 * np.eye(6)
    values = eigh(np.cov(means.T, bias=True), noise, eigvals_only=True)
    assert_allclose(ours.eigenvalues_, values[::-1][:3], rtol=1e-10)


def whitened_slices(X, labels):
    """Eigenpairs of the slice means' second moment after whitening, as in the 1991 paper."""
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    root = vectors / np.sqrt(values) @ vectors.T
    Z = (X - X.mean(axis=0)) @ root
    means = [
        np.mean(labels == c) * np.outer(m, m)
        for c in np.unique(labels)
        for m in [Z[labels == c].mean(axis=0)]
    ]
    values, vectors = np.linalg.eigh(sum(means))
    return values[::-1], root @ vectors[:, ::-1]


@pytest.mark.parametrize("continuous", [False, True])
def test_sir_is_what_numpy_makes_of_slices(rows, rng, continuous):
    X, y = rows
    target = X @ [1.0, 2.0, 0, 0, -1.0, 0] + rng.standard_normal(240) if continuous else y
    labels = discretize_target(target, 5) if continuous else y
    ours = SlicedInverseRegression(3, n_slices=5, ridge=0).fit(X, target)
    values, directions = whitened_slices(X, labels)
    assert_allclose(ours.eigenvalues_, values[:3], rtol=1e-9)
    assert np.all((ours.eigenvalues_ >= 0) & (ours.eigenvalues_ <= 1 + 10 * EPS))
    assert_allclose(np.abs(ours.directions_), np.abs(directions[:, :3]), atol=1e-8)
    scores = ours.transform(X)
    assert_allclose(scores.T @ scores / 240, np.eye(3), atol=1e-10)
    assert (ours.slice_edges_ is not None) == continuous


def test_sir_takes_integers_for_classes_by_default():
    X, y = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60) % 6
    assert len(SlicedInverseRegression(n_slices=3).fit(X, y).classes_) == 6
    sliced = SlicedInverseRegression(n_slices=3, target="continuous").fit(X, y)
    assert sliced.classes_.tolist() == [0, 1, 2]
    assert sliced.slice_edges_.tolist() == [2.0, 4.0]


def test_oriented_pca_is_scipy_on_the_two_matrices(rows, rng):
    X, _ = rows
    Z = 0.5 + rng.standard_normal((90, 6)) * np.arange(1, 7)
    values, vectors = eigh(np.cov(X.T, bias=True), Z.T @ Z / 90)
    ours = OrientedPCA(ridge=0).fit(X, noise=Z)
    assert_allclose(ours.eigenvalues_, values[::-1], rtol=1e-10)
    assert_allclose(np.abs(ours.directions_), np.abs(vectors[:, ::-1]), atol=1e-9)


def test_oriented_pca_takes_noise_in_batches_and_as_moments(rows, rng):
    X, y = rows
    Z = rng.standard_normal((50, 6)) * np.arange(1, 7)
    whole = OrientedPCA().fit(X, noise=Z)
    parts = OrientedPCA().partial_fit(X[:90], noise=csr_matrix(Z[:20])).partial_fit(X[90:200])
    parts.partial_fit(X[200:], noise=Z[20:])
    moments, noise = ClassMoments().update(X, y), ClassMoments().update(Z, np.arange(50) % 3)
    for other in (parts, OrientedPCA().fit_moments(moments, noise)):
        assert_allclose(other.transform(X), whole.transform(X), atol=1e-9)
    assert noise.weight(0) == 17
    named = ClassMoments().update(Z[:20], ["hum"] * 20)
    further = OrientedPCA().fit_moments(moments, named).partial_fit(X[:9], noise=Z[20:])
    assert further.noise_moments_.weight("hum") == 50
    assert OrientedPCA().fit(X).noise_moments_ is None


# ---- rows of every kind --------------------------------------------------------------------------


def fitted(member, X, y, sample_weight=None, **parameters):
    return member(**parameters).fit(X, y, sample_weight=sample_weight)


def test_the_first_batch_fixes_the_slices(rows, rng):
    X, _ = rows
    y = rng.standard_normal(240)
    sir = SlicedInverseRegression(n_slices=4).partial_fit(X[:120], y[:120])
    edges = sir.slice_edges_.copy()
    sir.partial_fit(X[120:], y[120:] + 100)
    assert sir.slice_edges_.tolist() == edges.tolist()
    assert sir.moments_.weight(3) == 150
    assert sir.fit_moments(ClassMoments().update(X, rows[1])).slice_edges_ is None


def test_slices_have_equal_weight(rows, rng):
    X, y, weights = rows[0], rng.standard_normal(240), rng.integers(0, 4, 240)
    weighted = SlicedInverseRegression().fit(X, y, weights)
    repeated = SlicedInverseRegression().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.slice_edges_.tolist() == repeated.slice_edges_.tolist()
    assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-8)


@pytest.mark.parametrize("member", FAMILY)
@pytest.mark.parametrize("spoil", ["combination", "duplicates"])
def test_singular_covariances_are_no_obstacle(rows, member, spoil):
    X, y = rows
    if spoil == "combination":
        X[:, 2] = X[:, 0] - X[:, 5]
    else:
        X = X[[0, 1, 2, 3]][(y - 3) // 2]
    model = fitted(member, X, y)
    assert np.isfinite(model.transform(X)).all()
    assert np.all(model.eigenvalues_ >= 0)
    others = fitted(member, X, y, n_components=2)
    assert_allclose(others.eigenvalues_, model.eigenvalues_[:2], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("member", "exponent"),
    [(RayleighPCA, 460), (VanishingComponents, -460), (OrientedPCA, 460), (FisherLDA, -460)],
)
def test_rows_may_be_of_any_size(rows, member, exponent):
    X, y = rows
    expected = fitted(member, X, y)
    model = fitted(member, np.ldexp(X, exponent), y)
    unit_free = member in SUPERVISED
    values = np.ldexp(expected.eigenvalues_, 0 if unit_free else 2 * exponent)
    directions = np.ldexp(expected.directions_, -exponent if unit_free else 0)
    assert_allclose(model.eigenvalues_, values, rtol=1e-10)
    assert_allclose(model.directions_, directions, rtol=1e-8)


def test_equal_rows_have_no_variance(rows):
    X = np.tile(rows[0][0], (50, 1))
    assert RayleighPCA().fit(X).eigenvalues_.max() < 1e-25
    with pytest.raises(SingularDenominatorError, match="the noise matrix is zero, so is the sig"):
        FisherLDA(scale="none").fit(np.zeros((4, 2)), [0, 1, 0, 1])


# 3 columns are fewer than the 24 samples; with 30, the problem is solved in the samples' span.
@pytest.mark.parametrize(("columns", "constant", "unit"), [(3, 1e6, 1.0), (30, 0.1, 2.0**40)])
def test_constant_columns_have_no_part_in_directions(columns, constant, unit):
    """Rounding errors of their means are not differences of classes."""
    rng = np.random.default_rng(1)
    y = np.arange(24) % 3
    X = unit * (rng.standard_normal((24, columns)) + y[:, None])
    given, weight = np.insert(X, 1, unit * constant, axis=1), rng.random(24)
    for kind in (FisherLDA, SlicedInverseRegression, RayleighPCA):
        known, found = (kind().fit(rows, y, sample_weight=weight) for rows in (X, given))
        assert not found.directions_[1].any()
        assert_allclose(found.eigenvalues_[:2], known.eigenvalues_[:2], rtol=0.05)
    components = ClassComponents(n_directions=2).fit(given, y, sample_weight=weight)
    assert components.directions_.shape == (columns + 1, 6)


# ---- predictions of FisherLDA --------------------------------------------------------------------


@pytest.mark.parametrize(("load", "scale"), [(load_wine, "none"), (load_breast_cancer, "columns")])
def test_predictions_are_scikit_learns(load, scale):
    X, y = load(return_X_y=True)
    X, y = X[:-20], y[:-20]  # so that priors differ
    ours = FisherLDA(ridge=0.0, scale=scale).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, y) == theirs.score(X, y)


@pytest.mark.parametrize("classifier", [FisherLDA, QuadraticDiscriminant])
def test_a_declared_class_without_samples_has_no_probability(classifier):
    X, y = load_iris(return_X_y=True)
    y[y == 2] = 3
    whole, stream = classifier().fit(X, y), classifier()
    stream.partial_fit(X[::2], y[::2], classes=[0, 1, 2, 3]).partial_fit(X[1::2], y[1::2])
    found = stream.predict_proba(X)
    assert_allclose(found[:, [0, 1, 3]], whole.predict_proba(X), atol=1e-9)
    assert_array_equal(found[:, 2], 0.0)
    if classifier is QuadraticDiscriminant:
        assert_allclose(stream.shrinkage_, np.insert(whole.shrinkage_, 2, 0.0), rtol=1e-6)


# ---- the ridge that FisherLDA chooses ------------------------------------------------------------


def digits_with_collinear_columns():
    X, y = load_digits(return_X_y=True)
    return np.hstack([X, X[:, 20:30], X.sum(axis=1, keepdims=True)]), y


@pytest.mark.parametrize("size", [60, 150, 1200])
def test_chosen_ridge_is_as_accurate_as_shrinkage_and_better_calibrated(size):
    X, y = digits_with_collinear_columns()
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    scores = []
    for seed in range(3):
        parts = train_test_split(X, y, train_size=size, stratify=y, random_state=seed)
        for model in (FisherLDA(), peer):
            model.fit(parts[0], parts[2])
            loss = log_loss(parts[3], model.predict_proba(parts[1]))
            scores.append((model.score(parts[1], parts[3]), loss))
    ours, theirs = np.mean(np.reshape(scores, (3, 2, 2)), axis=0)
    assert ours[0] > theirs[0] - 0.02
    assert ours[1] < theirs[1] + 0.01


def test_chosen_ridge_suits_more_columns_than_samples(rng):
    y = np.arange(1080) % 2
    X = np.cumsum(rng.standard_normal((1080, 300)), axis=1)
    X[:, 150:] += 1.5 * y[:, None]
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X[:80], y[:80])
    model = FisherLDA().fit(X[:80], y[:80])
    assert model.score(X[80:], y[80:]) > peer.score(X[80:], y[80:]) - 0.02
    losses = [log_loss(y[80:], one.predict_proba(X[80:])) for one in (model, peer)]
    assert losses[0] < losses[1]


def test_chosen_ridge_keeps_probabilities_of_spherical_classes(rng):
    y = np.arange(1020) % 2
    X = rng.standard_normal((1020, 3))
    X[:, 0] += 3.0 * y
    model = FisherLDA().fit(X[:20], y[:20])
    assert log_loss(y[20:], model.predict_proba(X[20:])) < 0.3


def test_chosen_ridge_depends_on_the_samples_alone(rows, rng):
    X, y = rows
    weight = rng.integers(0, 4, len(X))
    model = FisherLDA().fit(X, y, weight)
    given = FisherLDA(ridge=model.ridge_).fit(X, y, weight)
    assert given.ridge_ == model.ridge_
    ratio = model.directions_ / given.directions_  # another scale, for the probabilities
    assert_allclose(ratio, ratio[0, 0], rtol=1e-6)
    shares = FisherLDA().fit(X, y, weight / weight.sum())  # no numbers of samples
    assert shares.ridge_ == 1e-3
    assert_allclose(
        shares.predict_proba(X), FisherLDA(ridge=1e-3).fit(X, y, weight).predict_proba(X)
    )
    wide, labels = rng.standard_normal((40, 250)), np.arange(40) % 3  # solved in the span
    few = FisherLDA().fit(wide, labels)
    moments = ClassMoments().update(wide, labels)
    moments.covariance(0)  # forms the matrices
    assert_allclose(FisherLDA().fit_moments(moments).ridge_, few.ridge_, rtol=1e-6)


# ---- misuse --------------------------------------------------------------------------------------


def test_a_batch_of_one_class_may_come_first(rows):
    X, y = rows
    lda = FisherLDA().partial_fit(X[y == 3], y[y == 3])
    with pytest.raises(ValueError, match="expected samples of at least two classes, got 1 class"):
        lda.transform(X)
    lda.partial_fit(X[y != 3], y[y != 3])
    assert_allclose(lda.transform(X), FisherLDA().fit(X, y).transform(X), atol=1e-9)


def test_slices_in_blocks_have_the_quantiles_of_all(rows, rng):
    X, weight = rows[0], rng.integers(0, 3, 240) / 2.0
    y = np.exp(X @ np.arange(6.0) / 20) + rng.random(240)
    memory = SlicedInverseRegression(n_slices=7).fit(X, y, weight)
    found = SlicedInverseRegression(n_slices=7).fit(FarBlocks(X, y, weight, block_rows=60))
    assert_array_equal(found.slice_edges_, memory.slice_edges_)
    assert_allclose(found.transform(X), memory.transform(X), atol=1e-7)


@pytest.mark.parametrize("later", [False, True])
def test_noise_may_come_in_blocks(rows, rng, later):
    X, noise = rows[0], rng.standard_normal((300, 6)) * [1, 1, 5, 1, 1, 9]
    memory = OrientedPCA().fit(X, noise=noise)
    found = OrientedPCA().fit(FarBlocks(X, block_rows=99), noise=ArrayBlocks(noise, block_rows=31))
    if later:
        memory.partial_fit(X[:9], noise=noise[:50])
        found.partial_fit(X[:9], noise=ArrayBlocks(noise[:50], block_rows=31))
    assert_allclose(found.eigenvalues_, memory.eigenvalues_, rtol=1e-10)
    assert_allclose(found.transform(X), memory.transform(X), atol=1e-7)
    with pytest.raises(ValueError, match=r"noise: expected 6 columns, got 5"):
        found.fit(X, noise=ArrayBlocks(noise[:, 1:]))


def test_targets_of_the_wrong_kind_are_refused(rows, rng):
    X, y = rows
    with pytest.raises(ValueError, match="Unknown label type"):
        FisherLDA().fit(X, rng.standard_normal(240))
    with pytest.raises(ValueError, match="y: expected at least two distinct values"):
        SlicedInverseRegression(target="continuous").fit(X, np.ones(240))
    with pytest.raises(ValueError, match="classes: expected None for a continuous y"):
        SlicedInverseRegression().partial_fit(X, rng.standard_normal(240), classes=[0, 1])
    with pytest.raises(ValueError, match="y: expected an array of real numbers"):
        SlicedInverseRegression(target="continuous").fit(X, y.astype(str))


def test_wrong_noise_is_named(rows):
    X, y = rows
    moments = ClassMoments().update(X, y)
    with pytest.raises(ValueError, match="noise_moments: expected 6 columns, got 5"):
        OrientedPCA().fit_moments(moments, ClassMoments().update(X[:, 1:], y))
    with pytest.raises(TypeError, match="noise_moments: expected ClassMoments"):
        OrientedPCA().fit_moments(moments, X)
    with pytest.raises(SingularDenominatorError, match="suffices"):
        OrientedPCA(ridge=0).fit(X, noise=X[:3])
    assert np.isfinite(OrientedPCA().fit(X, noise=X[:3]).directions_).all()


def test_noise_has_the_columns_of_the_samples(rows):
    frame = pd.DataFrame(rows[0], columns=list("abcdef"))
    other = frame[list("bacdef")]
    both = OrientedPCA().fit(frame, noise=frame)
    message = "noise.*: expected 'a' as column 0, got 'b'"
    with pytest.raises(ValueError, match=message):
        OrientedPCA().fit(frame, noise=other)
    with pytest.raises(ValueError, match=message):
        both.partial_fit(frame, noise=other)
    known, swapped = (ClassMoments().update(X, rows[1]) for X in (frame, other))
    with pytest.raises(ValueError, match=message):
        OrientedPCA().fit_moments(known, swapped)
    with pytest.raises(ValueError, match="expected 'a' as column 0, got 'b'"):
        OrientedPCA().fit(frame, noise=lambda: iter([other]))
    both.partial_fit(frame, noise=frame)
    assert both.noise_moments_.weight(0) == both.moments_.weight(0) == 480

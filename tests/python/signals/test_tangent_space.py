"""Tangent space: its definition by scipy.linalg, means, invariance, spans, sessions, bad epochs."""

import warnings

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from recordings import recording
from sklearn.covariance import oas

from eigenfeat import TangentSpace
from eigenfeat._base.core import core


def epochs(rng, n=40, channels=6, times=80):
    """Epochs of mixed sources of two classes."""
    return recording(rng, n, channels, times, k=2, strength=2.0)[0]


def covariances(X):
    X = X - X.mean(axis=2, keepdims=True)
    return X @ X.swapaxes(1, 2) / X.shape[2]


def vectors(matrices):
    rows, columns = np.triu_indices(matrices.shape[1])
    return matrices[:, rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))


def logarithms(C):
    with warnings.catch_warnings():  # SciPy warns where logarithms are less exact
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.array([scipy.linalg.logm(c).real for c in C])


def tangent(C, G):
    root = np.linalg.inv(scipy.linalg.sqrtm(G).real)
    return vectors(logarithms(root @ C @ root))


@pytest.mark.parametrize(
    ("r", "form"),
    [(1, np.asarray), (2, np.triu), (3, np.diag), (7, np.asarray), (16, np.triu), (33, np.diag)],
)
def test_logarithms_agree_with_scipy(rng, r, form):
    X = rng.standard_normal((7, r, 2 * r + 3))
    C = X @ X.swapaxes(1, 2)
    W = form(rng.standard_normal((r, r)) + 3 * np.eye(r))
    W = np.diag(W) if W.ndim == 1 else W
    found = core.mean_tangent_vector(C, np.ones(7), W, 1)
    inner = W.T @ C @ W
    assert not found.status.any()
    values = np.linalg.eigvalsh(inner)
    tol = 1e-13 * r * (values[:, -1] / values[:, 0]).max()
    assert_allclose(core.tangent_vectors(C, W, 1), vectors(logarithms(inner)), atol=tol)
    assert_allclose(found.extremes, values[:, [0, -1]], rtol=1e-2)


@pytest.mark.parametrize("condition", [1.0, 1.3, 8.0, 60.0, 1e3, 1e6, 1e13])
def test_logarithms_of_each_condition(condition):
    """Each condition number has its own rule, whose error shows in diagonal matrices."""
    values = np.exp(np.linspace(-0.5, 0.5, 40) * np.log(condition))
    got = core.tangent_vectors(np.diag(values)[None], np.eye(40), 1)
    assert_allclose(got, vectors(np.diag(np.log(values))[None]), atol=4e-14)


def test_mean_of_tangent_vectors(rng):
    X = rng.standard_normal((301, 9, 20))
    C, W = X @ X.swapaxes(1, 2), np.eye(9)
    share = rng.random(301)
    found = core.mean_tangent_vector(C, share, W, 1)
    tol = 8 * np.finfo(float).eps * share.sum()
    assert_allclose(found.mean, share @ core.tangent_vectors(C, W, 1), rtol=0, atol=9 * tol)
    assert not found.status.any()
    for n_threads in (2, 7):
        again = core.mean_tangent_vector(C, share, W, n_threads)
        assert_array_equal(again.mean, found.mean)
        assert_array_equal(again.extremes, found.extremes)
    C[7] = -C[7]
    assert_array_equal(np.flatnonzero(core.mean_tangent_vector(C, share, W, 1).status), [7])


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((1, 1, 1), np.float32), ((5, 6, 3), np.float64), ((40, 9, 83), np.float32)],
)
def test_covariances_of_epochs(rng, shape, dtype):
    X = (rng.standard_normal(shape) + 100.0).astype(dtype)
    got = core.epoch_covariances(X, 1)
    assert_allclose(got, covariances(X.astype(np.float64)), atol=1e-12)
    assert_array_equal(got, got.swapaxes(1, 2))
    for n_threads in (2, 7):
        assert_array_equal(core.epoch_covariances(X, n_threads), got)


@pytest.mark.parametrize("kind", ["diagonal", "multiple", "graded", "clustered", "tiny", "huge"])
def test_logarithms_of_unusual_matrices(rng, kind):
    r = 12
    values = {
        "diagonal": np.arange(1.0, r + 1),
        "multiple": np.repeat([1.0, 4.0], r // 2),
        "graded": np.logspace(0, 10, r),
        "clustered": 1.0 + 1e-9 * np.arange(r),
        "tiny": 1e-200 * np.arange(1.0, r + 1),
        "huge": 1e200 * np.arange(1.0, r + 1),
    }[kind]
    Q = np.eye(r) if kind == "diagonal" else np.linalg.qr(rng.standard_normal((r, r)))[0]
    C = np.array([(Q * values) @ Q.T] * 3 + [np.eye(r)])
    got = core.tangent_vectors((C + C.swapaxes(1, 2)) / 2, np.eye(r), 1)
    expected = vectors(((Q * np.log(values)) @ Q.T)[None])[0]
    condition = values.max() / values.min()
    assert_allclose(got[:3], np.tile(expected, (3, 1)), atol=1e-14 * r * max(condition, 500.0))
    assert_allclose(got[3], 0.0, atol=1e-14)


def test_a_matrix_does_not_depend_on_its_neighbours(rng):
    X = rng.standard_normal((37, 9, 20))
    C = X @ X.swapaxes(1, 2)
    whole = core.tangent_vectors(C, np.eye(9), 1)
    for i in (0, 5, 36):
        assert_array_equal(core.tangent_vectors(C[i : i + 1], np.eye(9), 1)[0], whole[i])
    many = np.tile(C, (80, 1, 1))
    one, seven = (core.tangent_vectors(many, np.eye(9), t) for t in (1, 7))
    assert_array_equal(one, seven)
    assert_array_equal(one[:37], whole)


def test_matrices_that_are_not_positive_definite_have_no_logarithm():
    bad = np.array([np.eye(3), np.diag([1.0, 1.0, 0.0]), -np.eye(3), np.diag([2.0, 1.0, -1e-3])])
    got = core.tangent_vectors(bad, np.eye(3), 1)
    found = core.mean_tangent_vector(bad, np.ones(4), np.eye(3), 1)
    assert_array_equal(found.status, [0, 1, 1, 1])
    assert_allclose(got[0], 0.0, atol=1e-14)
    assert np.isnan(got[1:]).all()


def test_features_by_definition(rng):
    X = epochs(rng)
    model = TangentSpace(shrinkage=None).fit(X)
    C = covariances(X)
    assert_allclose(tangent(C, model.reference_).mean(axis=0), 0.0, atol=1e-8)
    assert_allclose(model.transform(X), tangent(C, model.reference_), atol=1e-10)
    assert_allclose(model.transform(X), model.fit_transform(X), atol=0)
    assert list(model.get_feature_names_out()[:2]) == ["tangentspace0", "tangentspace1"]


@pytest.mark.parametrize("rank", [6, 5])
def test_channels_of_several_units(rng, rank):
    units = np.array([1.0, 1e-6, 1e3, 1, 1, 1])[:, None]
    X = epochs(rng)
    if rank == 5:
        X[:, 5] = X[:, 3] - X[:, 4]
    model = TangentSpace(shrinkage=None).fit(units * X)
    assert model.rank_ == rank
    ours, plain = model.transform(units * X), TangentSpace(shrinkage=None).fit_transform(X)
    assert_allclose(ours @ ours.T, plain @ plain.T, atol=1e-6)
    reference = TangentSpace(shrinkage=None).fit(X).reference_
    assert_allclose(model.reference_, units * reference * units.T, rtol=1e-6, atol=1e-9)


def test_shrinkage_is_that_of_scikit_learn(rng):
    X = epochs(rng, n=12, times=30)
    for name, weight in (("oas", lambda x: oas(x.T)[1]), (0.3, lambda x: 0.3)):
        shrunk = []
        for epoch, c in zip(X, covariances(X), strict=True):
            share = weight(epoch)
            shrunk.append((1 - share) * c + share * np.trace(c) / 6 * np.eye(6))
        model = TangentSpace(shrinkage=name).fit(X)
        expected = tangent(np.array(shrunk), model.reference_)
        assert_allclose(model.transform(X), expected, atol=1e-8)
    constant = np.zeros((3, 2, 50))
    constant[:] = np.cos(np.arange(50) * np.pi)
    constant[:, 1] = np.sin(np.arange(50) * np.pi / 2 + np.pi / 4) * np.sqrt(2)
    assert np.isfinite(TangentSpace().fit_transform(constant)).all()


def test_sessions_are_centred_each_by_its_own_mean(rng):
    X = epochs(rng, n=120)
    session = np.repeat(["a", "b", "c"], 40)
    moved = X.copy()
    for name in "abc":
        moved[session == name] = rng.standard_normal((6, 6)) @ X[session == name]
    model = TangentSpace(shrinkage=None, align="session").fit(moved, groups=session)
    assert_array_equal(model.alignment_.names, ["a", "b", "c"])
    features = model.transform(moved, session)
    for name in "abc":
        rows = session == name
        alone = TangentSpace(shrinkage=None).fit_transform(moved[rows])
        assert_allclose(features[rows], alone, atol=1e-7)
    # Sessions of the fit keep their means, and a new session has its own mean.
    assert_allclose(model.transform(moved[:3], session[:3]), features[:3], atol=1e-10)
    new = rng.standard_normal((6, 6)) @ X[:40]
    features_of_new = model.transform(new, np.full(40, "d"))
    assert_allclose(features_of_new.mean(axis=0), 0.0, atol=1e-8)
    with pytest.warns(UserWarning, match="^groups: expected the sessions of the epochs, as in fit"):
        assert_allclose(model.transform(new), features_of_new, atol=0)
    assert_allclose(model.fit_transform(moved, groups=session), features, atol=0)


@pytest.mark.parametrize(
    ("scale", "times", "shrinkage", "message"),
    [
        (1e160, 80, "oas", "magnitudes below 1e150, whose squares stay finite, got"),
        (1e-160, 80, "oas", "X: expected channels that vary"),
        (1.0, 4, None, "singular covariance of epoch 0; set shrinkage"),
    ],
)
def test_covariances_that_have_no_logarithm(rng, scale, times, shrinkage, message):
    with pytest.raises(ValueError, match=message):
        TangentSpace(shrinkage=shrinkage).fit(scale * epochs(rng)[:, :, :times])


def test_an_epoch_without_power_is_named(rng):
    X = epochs(rng)
    model, message = TangentSpace().fit(X), "X: expected epochs that vary .* in epoch 3"
    X[3] = 1.0
    for use in (model.fit, model.transform):
        with pytest.raises(ValueError, match=message):
            use(X)


def test_weights_are_repetitions_where_channels_are_rescaled():
    """Units, rank and shrinkage are those of the weighted epochs."""
    rng = np.random.default_rng(4)
    units = np.array([1e-3, 1.0, 1e2, 3.0])
    X = rng.standard_normal((30, 4, 12)) * np.exp(rng.standard_normal((30, 4, 1))) * units[:, None]
    X[:, 3] = X[:, 1] + X[:, 0]
    count = rng.integers(0, 5, 30)
    one = TangentSpace().fit(X, sample_weight=1e-3 * count)
    other = TangentSpace().fit(np.repeat(X, count, axis=0))
    assert one.rank_ == other.rank_
    np.testing.assert_allclose(one.transform(X), other.transform(X), atol=1e-6)


@pytest.mark.parametrize("unit", [1e-140, 1e-80, 1e80, 1e140])
def test_units_change_nothing(rng, unit):
    X = epochs(rng)
    assert_allclose(TangentSpace().fit_transform(unit * X), TangentSpace().fit_transform(X))

"""Common spatial patterns: their definition, degenerate recordings, streams and bad epochs."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from recordings import recording
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline

from eigenfeat import SpatialFilters


def centred(X):
    return X - X.mean(axis=2, keepdims=True)


def class_covariance(X, y, c):
    samples = np.hstack(list(centred(X)[y == c]))
    return samples @ samples.T / samples.shape[1]


def test_two_classes_are_csp_by_definition(rng):
    X, y, _ = recording(rng, k=2)
    model = SpatialFilters(n_filters=8, ridge=0.0).fit(X, y)
    A, B = class_covariance(X, y, 0), class_covariance(X, y, 1)
    values, vectors = scipy.linalg.eigh(A, A + B)
    order = [7, 0, 6, 1, 5, 2, 4, 3]
    assert_allclose(model.evals_, values[order])
    signs = np.sign(np.sum(model.filters_ * vectors.T[order], axis=1))
    assert_allclose(model.filters_, signs[:, None] * vectors.T[order], rtol=1e-6, atol=1e-9)
    assert_allclose(model.patterns_, np.linalg.pinv(model.filters_).T, atol=1e-9)
    assert_allclose(
        np.einsum("fc,cd,fd->f", model.filters_, A, model.filters_), model.evals_, atol=1e-12
    )
    assert_array_equal(model.pairs_, [[0, 1]] * 8)
    power = (centred(model.filters_ @ X) ** 2).mean(axis=2)
    assert_allclose(model.transform(X), np.log(power))
    assert np.isfinite(model.transform(np.zeros((1, 8, 5)))).all()


@pytest.mark.parametrize(("pairs", "normalize"), [("one_vs_rest", True), ("all", False)])
def test_sources_are_found(rng, pairs, normalize):
    X, y, mixing = recording(rng)
    model = SpatialFilters(2, pairs=pairs, normalize=normalize).fit(X, y)
    assert model.filters_.shape == model.patterns_.shape == (6, 8)
    assert model.evals_.shape == (6,)
    for f, pair in enumerate(model.pairs_.tolist()):
        if model.evals_[f] > 0.5:  # where the class has most power
            source = mixing[:, pair[0]]
            cosine = source @ model.patterns_[f]
            cosine /= np.linalg.norm(source) * np.linalg.norm(model.patterns_[f])
            assert abs(cosine) > 0.97
    whole = make_pipeline(clone(model), LinearDiscriminantAnalysis()).fit(X[:30], y[:30])
    assert whole.score(X[30:], y[30:]) > 0.9
    assert list(model.get_feature_names_out()[:2]) == ["spatialfilters0", "spatialfilters1"]


def test_batches_agree_with_all_at_once(rng):
    X, y, _ = recording(rng)
    weight = rng.integers(0, 3, len(X))
    model = SpatialFilters().fit(X, y, weight)
    stream = SpatialFilters()
    for part in np.array_split(np.arange(len(X)), 7):
        stream.partial_fit(X[part], y[part], classes=[0, 1, 2], sample_weight=weight[part])
    assert_allclose(stream.evals_, model.evals_, rtol=1e-9)
    assert_allclose(stream.transform(X), model.transform(X), atol=1e-8)


def test_batches_of_epochs_of_another_length(rng):
    X, y, _ = recording(rng)
    model = SpatialFilters().partial_fit(X, y).partial_fit(X[..., :50], y)
    assert model.transform(X[..., :30]).shape == (60, 12)


def test_pairs_have_the_labels(rng):
    X, y, _ = recording(rng)
    names = np.array(["left", "right", "feet"])[y]
    one = SpatialFilters(pairs="one_vs_rest").fit(X, names)
    assert SpatialFilters().fit(X, names).pairs_.tolist()[::4] == [
        ["feet", "left"],
        ["feet", "right"],
        ["left", "right"],
    ]
    assert set(one.pairs_[:, 0]) == {"left", "right", "feet"}
    assert set(one.pairs_[:, 1]) == {"rest"}


def test_other_channels_and_labels(rng):
    X, y, _ = recording(rng)
    model = SpatialFilters().fit(X, y)
    filters = model.filters_
    with pytest.raises(ValueError, match="X: expected 8 channels, got 7"):
        model.partial_fit(X[:, :7], y)
    with pytest.raises(ValueError, match="label"):
        SpatialFilters().partial_fit(X, y, classes=[0, 1]).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y: expected 60 labels, one per epoch, got shape \(5,\)"):
        model.fit(X, y[:5])
    with pytest.raises(ValueError, match="at least two classes"):
        model.fit(X, np.zeros(60))
    assert model.filters_ is filters


def test_bands_have_filters_of_their_own(rng):
    X, y, _ = recording(rng, times=200)
    options = {"bands": [(4.0, 12.0), (20.0, 30.0)], "sfreq": 100.0}
    model = SpatialFilters(2, **options).fit(X, y)
    assert model.filter_bands_.tolist() == [0] * 6 + [1] * 6
    halves = SpatialFilters(2, **options).partial_fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
    assert_allclose(halves.evals_, model.evals_, rtol=1e-8)


@pytest.mark.parametrize("reference", [False, True])
def test_sessions_are_whitened_each_by_its_own_mean(rng, reference):
    X, y, _ = recording(rng, n=120, k=2)
    session = np.repeat(["a", "b", "c"], 40)
    moved = X.copy()
    for name in "abc":
        gains = np.diag(rng.uniform(0.2, 5.0, 8))
        moved[session == name] = gains @ X[session == name]
    if reference:
        moved -= moved.mean(axis=1, keepdims=True)
    model = SpatialFilters(align="session").fit(moved, y, groups=session)
    features = model.transform(moved, session)
    assert_allclose(model.fit_transform(moved, y, groups=session), features, atol=0)
    known = model.transform(moved[:2], session[:2])
    assert_allclose(known, features[:2], atol=1e-9)
    lda = LinearDiscriminantAnalysis().fit(features, y)
    gains = np.diag(rng.uniform(0.2, 5.0, 8))
    new = gains @ X[:40]
    if reference:
        new -= new.mean(axis=1, keepdims=True)
    assert lda.score(model.transform(new, np.full(40, "d")), y[:40]) > 0.85
    stream = SpatialFilters(align="session")
    for name in "abc":
        rows = session == name
        stream.partial_fit(moved[rows], y[rows], groups=session[rows])
    assert_allclose(stream.evals_, model.evals_, rtol=1e-8)
    assert_array_equal(stream.alignment_.names, ["a", "b", "c"])
    with pytest.raises(ValueError, match="at least 2 epochs of each session, got 1 of session 'b'"):
        model.fit(moved[:41], y[:41], groups=session[:41])
    assert_allclose(model.transform(moved, session), features, atol=0)


def test_a_pair_of_classes_that_lacks_power():
    """The pair is solved in the span of its own epochs; classes without power have no filters."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 6)
    X = rng.standard_normal((24, 3, 50))
    X[y <= 1, 2] = 0.0
    model = SpatialFilters(n_filters=4, pairs="all", ridge=0.0).fit(X, y)
    assert np.isfinite(model.transform(X)).all()
    counts = {tuple(pair): 3 for pair in model.pairs_.tolist()} | {(0, 1): 2}
    assert len(model.filters_) == sum(counts.values())
    X[y <= 1] = 0.0
    model = SpatialFilters(n_filters=4, pairs="all", ridge=0.0).fit(X, y)
    assert np.isfinite(model.transform(X)).all()
    assert (0, 1) not in {tuple(pair) for pair in model.pairs_.tolist()}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_more_filters_than_channels(rng, dtype):
    """The powers equal mean squares of the filtered epochs, also for dependent channels."""
    y = np.arange(80) % 8
    X = rng.normal(size=(80, 6, 100)) + 0.2
    X[np.arange(80), y % 6] *= 1.5
    X[:, 5] = X[:, :5].mean(axis=1)
    model = SpatialFilters(4).fit(X.astype(dtype), y)
    assert len(model.filters_) > 12
    expected = np.log(np.square(centred(model.filters_ @ X)).mean(axis=2))
    atol = 1e-4 if dtype == np.float32 else 1e-9
    assert_allclose(model.transform(X.astype(dtype)), expected, atol=atol)

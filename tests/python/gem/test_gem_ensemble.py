"""GEMEnsemble: members fitted one by one, and the geometric mean of their probabilities."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from flat_gem import gem_classifier, with_params
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from eigenfeat import GEMEnsemble
from eigenfeat.samples import ArrayBlocks

SMALL = gem_classifier(pairs="hypercube", n_directions=2)
FOURIER = make_pipeline(
    RBFSampler(gamma=5e-4, n_components=60),
    gem_classifier(n_directions=2, scale="none"),
)


def geometric_mean(members, X):
    """Probabilities from the product of the members', in float64."""
    product = np.prod([m.predict_proba(X).astype(float) for m in members], axis=0)
    mean = product ** (1 / len(members))
    return mean / mean.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900], y[:900]


@pytest.fixture(scope="module")
def model(digits):
    """Four members on 600 rows."""
    X, y = digits
    return GEMEnsemble(SMALL, n_members=4).fit(X[:600], y[:600])


def test_probabilities_are_geometric_means(digits, model):
    X, y = digits[0][600:], digits[1][600:]
    expected = geometric_mean(model.members_, X)
    assert_allclose(model.predict_proba(X), expected, rtol=1e-4)
    assert_allclose(model.predict_log_proba(X), np.log(expected), atol=1e-4)
    assert_array_equal(model.predict(X), expected.argmax(axis=1))
    assert model.decision_function(X).shape == (300, 10)
    assert model.score(X, y) > 0.93


@pytest.mark.parametrize(
    ("options", "form", "weighted"),
    [
        ({"scale": "columns"}, np.asarray, True),
        ({"depth": 2, "hidden_directions": 1}, np.asarray, False),
        ({"expansion": "with_input"}, sp.csr_array, False),
    ],
    ids=str,
)
def test_members_equal_models_fitted_alone(digits, rng, options, form, weighted):
    X, y = form(digits[0][:600]), digits[1][:600]
    weight = rng.random(600) * (rng.random(600) < 0.7) if weighted else None
    estimator = with_params(clone(SMALL), **options)
    model = GEMEnsemble(estimator, n_members=2, random_state=3).fit(X, y, weight)
    for member in model.members_:
        alone = clone(member).fit(X, y, weight)
        assert_array_equal(alone.predict_proba(X), member.predict_proba(X))
        assert_array_equal(alone.layers_[0].directions, member.layers_[0].directions)
        assert set(member.layers_[0].pairs.ravel()) == set(range(10))
    first = clone(estimator).set_params(random_state=model.members_[0].random_state)
    assert_array_equal(first.fit(X, y, weight).predict_proba(X), model.members_[0].predict_proba(X))


def test_members_differ_and_depend_on_the_seed(digits, model):
    X, y = digits
    for i, member in enumerate(model.members_):
        for other in model.members_[:i]:
            assert member.layers_[0].pairs.tolist() != other.layers_[0].pairs.tolist()
            assert not np.array_equal(member.predict_proba(X), other.predict_proba(X))
    same = GEMEnsemble(SMALL, n_members=4).fit(X[:600], y[:600])
    assert same.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    other = GEMEnsemble(SMALL, n_members=4, random_state=1).fit(X[:600], y[:600])
    assert not np.array_equal(other.predict_proba(X), model.predict_proba(X))
    fewer = GEMEnsemble(SMALL, n_members=2).fit(X[:600], y[:600])
    for member, twin in zip(fewer.members_, model.members_, strict=False):
        assert_array_equal(member.predict_proba(X), twin.predict_proba(X))


# ---- members with random features of their own ---------------------------------------------------


@pytest.fixture(scope="module")
def fourier(digits):
    X, y = digits
    return GEMEnsemble(FOURIER, n_members=3).fit(X[:600], y[:600])


def test_pipelines_draw_features_of_their_own(digits, fourier):
    X, y = digits[0][600:], digits[1][600:]
    weights = [member[0].random_weights_ for member in fourier.members_]
    assert not any(np.array_equal(weights[0], other) for other in weights[1:])
    seeds = [
        seed
        for member in fourier.members_
        for seed in (member[0].random_state, member[1].random_state)
    ]
    assert len(set(seeds)) == 6
    expected = geometric_mean(fourier.members_, X)
    assert_allclose(fourier.predict_proba(X), expected, rtol=1e-4)
    assert_array_equal(fourier.predict(X), expected.argmax(axis=1))
    losses = [log_loss(y, member.predict_proba(X)) for member in fourier.members_]
    assert log_loss(y, fourier.predict_proba(X)) < min(losses)
    assert fourier.n_features_in_ == 64


def test_pipelines_equal_pipelines_fitted_alone(digits, rng, fourier):
    X, y = digits
    weight = rng.random(900)
    weighted = GEMEnsemble(FOURIER, n_members=2).fit(X, y, weight)
    for member in weighted.members_:
        alone = clone(member).fit(X, y, gemclassifier__sample_weight=weight)
        assert_array_equal(alone.predict_proba(X), member.predict_proba(X))
    again = GEMEnsemble(FOURIER, n_members=3, n_threads=1).fit(X[:600], y[:600])
    assert again.members_[0][-1].n_threads == 1
    assert again.predict_proba(X).tobytes() == fourier.predict_proba(X).tobytes()
    assert FOURIER[0].random_state is None
    assert not hasattr(FOURIER[0], "random_weights_")


def test_pipelines_take_frames_maps_and_blocks_to_predict(digits, tmp_path):
    X, y = digits[0][:400], digits[1][:400]
    frame = pd.DataFrame(X).add_prefix("c")
    pipeline = make_pipeline(StandardScaler(), *[step for _, step in FOURIER.steps])
    model = GEMEnsemble(pipeline, n_members=2).fit(frame, y)
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    twin = GEMEnsemble(pipeline, n_members=2).fit(mapped, y)
    expected = model.predict_proba(frame)
    assert_array_equal(twin.predict_proba(X), expected)
    found = np.concatenate(list(twin.predict_proba(ArrayBlocks(X, block_rows=256))))
    assert_allclose(found, expected, rtol=1e-4)


def test_errors_of_pipelines(digits):
    X, y = digits
    other = make_pipeline(StandardScaler(), LogisticRegression())
    with pytest.raises(ValueError, match=r"estimator: expected a GEMClass.*LogisticRegression"):
        GEMEnsemble(other).fit(X, y)
    with pytest.raises(ValueError, match=r"estimator: expected a GEMClass.*ends with None"):
        GEMEnsemble(Pipeline([])).fit(X, y)
    with pytest.raises(ValueError, match="X: expected an array with a pipeline"):
        GEMEnsemble(FOURIER).fit(ArrayBlocks(X, y))
    bad = clone(FOURIER).set_params(gemclassifier__gem__ridge=-1)
    with pytest.raises(ValueError, match="'ridge' parameter of GEM"):
        GEMEnsemble(bad).fit(X, y)
    with pytest.raises(ValueError, match="y: expected samples of at least two classes"):
        GEMEnsemble(FOURIER).fit(X, np.ones(900))

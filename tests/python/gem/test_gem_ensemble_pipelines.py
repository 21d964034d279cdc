"""GEMEnsemble of pipelines: members with random features of their own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from ensemble_reference import geometric_mean
from flat_gem import gem_classifier
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import eigenfeat
from eigenfeat import GEMEnsemble
from eigenfeat.rows import ArrayBlocks

FOURIER = make_pipeline(
    RBFSampler(gamma=5e-4, n_components=60),
    gem_classifier(n_directions=2, scale="none"),
)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900], y[:900]


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


def test_pipelines_are_as_if_fitted_alone(digits, fourier):
    X, y = digits
    for member in fourier.members_:
        alone = clone(member).fit(X[:600], y[:600])
        assert_array_equal(alone.predict_proba(X), member.predict_proba(X))
    again = GEMEnsemble(FOURIER, n_members=3, n_threads=1).fit(X[:600], y[:600])
    assert again.members_[0][-1].n_threads == 1
    assert again.predict_proba(X).tobytes() == fourier.predict_proba(X).tobytes()
    other = GEMEnsemble(FOURIER, n_members=3, random_state=1).fit(X[:600], y[:600])
    assert not np.array_equal(other.predict_proba(X), fourier.predict_proba(X))
    assert FOURIER[0].random_state is None
    assert not hasattr(FOURIER[0], "random_weights_")


def test_weights_and_events_reach_the_pipelines(digits, rng):
    X, y = digits
    weight, events = rng.random(900), y // 2
    model = GEMEnsemble(FOURIER, n_members=2).fit(X, y, weight, events=events)
    for member in model.members_:
        given = {"gemclassifier__sample_weight": weight, "gemclassifier__events": events}
        alone = clone(member).fit(X, y, **given)
        assert_array_equal(alone.predict_proba(X), member.predict_proba(X))


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


def test_members_that_do_not_fit_are_refused(digits, tmp_path):
    X, y = digits[0][:100], digits[1][:100]
    model = GEMEnsemble(FOURIER, n_members=2).fit(X, y)
    model.members_[1] = clone(model.members_[1]).fit(X[:, :60], y)
    with pytest.raises(ValueError, match=r"^GEMEnsemble\.members_ does not fit"):
        eigenfeat.save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()

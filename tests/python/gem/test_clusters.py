"""Clusters within classes as events, and pairs across classes."""

from __future__ import annotations

import numpy as np
import pytest
from flat_gem import gem_classifier
from scipy.sparse import csr_array
from sklearn.datasets import load_digits

from eigenfeat import GEMClassifier, GEMClassifierCV, GEMEnsemble
from eigenfeat.gem.clusters import class_clusters, cross_pairs


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


def test_clusters_lie_within_classes_and_follow_the_blobs():
    random = np.random.RandomState(0)
    centres = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0], [50.0, 50.0]])
    blob = np.repeat(np.arange(4), 100)
    X = centres[blob] + random.standard_normal((400, 2))
    y = np.where(blob < 2, "a", "b")
    groups, of_classes = class_clusters(X, y, 2)
    assert of_classes == [["a.0", "a.1"], ["b.0", "b.1"]]
    assert len({(g, b) for g, b in zip(groups, blob, strict=True)}) == 4
    assert all(group[0] == label for group, label in zip(groups, y, strict=True))


def test_small_classes_get_fewer_clusters():
    X = np.random.RandomState(0).standard_normal((180, 3))
    y = np.repeat([0, 1, 2], [10, 110, 60])
    _, of_classes = class_clusters(X, y, 4)
    assert [len(names) for names in of_classes] == [1, 2, 1]


def test_scaled_clusters_do_not_depend_on_units(digits):
    X, y = digits
    units = np.linspace(0.1, 10, 64)
    plain, _ = class_clusters(X, y, 3, scaled=True)
    other, _ = class_clusters(X * units, y, 3, scaled=True)
    sparse, _ = class_clusters(csr_array(X), y, 3, scaled=True)
    assert np.mean(plain == other) > 0.99
    assert np.mean(plain == sparse) > 0.99


@pytest.mark.parametrize("n_pairs", [None, 5, 6, 20, 10_000])
def test_pairs_cross_classes_and_reach_every_cluster(n_pairs):
    of_classes = [["a.0", "a.1"], ["b.0"], ["c.0", "c.1", "c.2"]]
    pairs = cross_pairs(of_classes, n_pairs, 3)
    assert len(set(pairs)) == len(pairs)
    assert all(above[0] != below[0] for above, below in pairs)
    assert {above for above, _ in pairs} == {name for names in of_classes for name in names}
    assert len(pairs) == min(22, max(6, n_pairs or 22))


def test_classifier_with_clusters(digits):
    X, y = digits
    options = {"n_clusters": 2, "n_directions": 3, "pairs": ("random", 60), "penalty": 0.01}
    model = gem_classifier(**options).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.95
    assert model.layers_[0].pairs[0, 0].count(".") == 1
    assert len(np.unique(model.layers_[0].pairs, axis=0)) <= 60
    again = gem_classifier(**options, n_threads=1).fit(X[:1000], y[:1000])
    assert np.array_equal(model.predict_proba(X), again.predict_proba(X))


def test_search_and_ensemble_pass_clusters_on(digits):
    X, y = digits
    base = gem_classifier(n_directions=2, pairs=("random", 40), scale="none")
    search = GEMClassifierCV(base, grid={"n_clusters": [2, 3]}, cv=2)
    search.fit(X[:800], y[:800])
    assert len(search.results_) == 2
    assert search.score(X[800:], y[800:]) > 0.9
    ensemble = GEMEnsemble(base.set_params(n_clusters=2), n_members=2).fit(X[:800], y[:800])
    assert ensemble.score(X[800:], y[800:]) > 0.9


def test_depth_goes_on_with_classes(digits):
    X, y = digits
    options = {"n_clusters": 2, "depth": 2, "hidden_directions": 2, "n_directions": 3}
    model = gem_classifier(pairs=("random", 60), **options).fit(X[:800], y[:800])
    assert set(np.unique(model.layers_[1].pairs)) == set(range(10))


@pytest.mark.parametrize("pairs", ["hypercube", ("random", 0), ("stratified", 9), [(0, 1)]])
def test_unfit_pairs_are_named(digits, pairs):
    with pytest.raises(ValueError, match="pairs: expected 'all' or"):
        gem_classifier(n_clusters=2, pairs=pairs).fit(*digits)


def test_events_and_clusters_exclude_each_other(digits):
    X, y = digits
    with pytest.raises(ValueError, match="events: expected None with n_clusters"):
        GEMClassifier(views="gem", n_clusters=2).fit(X, y, events=y)

"""The relatives of LDG as estimators: scikit-learn's checks, types, names, errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from eigenfeat.ldg import (
    DirectLDA,
    GSVDDiscriminant,
    LocalFisher,
    MaximumMarginCriterion,
    PCAFisher,
    PooledFisher,
    PooledPCA,
    RegularizedFisher,
)

SUPERVISED = (
    RegularizedFisher,
    PCAFisher,
    DirectLDA,
    GSVDDiscriminant,
    MaximumMarginCriterion,
    LocalFisher,
    PooledFisher,
)
FISHERS = (RegularizedFisher, PCAFisher, DirectLDA, GSVDDiscriminant, PooledFisher)
POOLED = (PooledPCA, PooledFisher)
FAMILY = (*SUPERVISED, PooledPCA)


@pytest.fixture
def rows(rng):
    """Three classes, of 4 columns."""
    y = np.repeat([7, 8, 9], 20)
    X = rng.standard_normal((60, 4)) + 2 * rng.standard_normal((3, 4))[y - 7] + 5.0
    order = rng.permutation(60)
    return X[order], y[order]


@pytest.mark.parametrize("member", FAMILY)
def test_copies_pickles_and_names(rows, member):
    X, y = rows
    model = member(n_components=2).fit(X, y)
    for twin in (pickle.loads(pickle.dumps(model)), clone(model).fit(X, y)):
        assert twin.transform(X).tobytes() == model.transform(X).tobytes()
    name = member.__name__.lower()
    assert model.get_feature_names_out().tolist() == [f"{name}0", f"{name}1"]
    frame = load_iris(as_frame=True)
    output = member(n_components=2).set_output(transform="pandas").fit(frame.data, frame.target)
    assert list(output.transform(frame.data).columns) == [f"{name}0", f"{name}1"]
    assert model.components_.shape == (2, 4)
    assert_allclose(model.mean_, X.mean(axis=0))
    with pytest.raises(NotFittedError):
        member().transform(X)


@pytest.mark.parametrize("member", FAMILY)
def test_float32_stays_and_loses_little(rows, member):
    X, y = rows
    X32 = X.astype(np.float32)
    model = member(2).fit(X32, y)
    single, double = model.transform(X32), member(2).fit(X32.astype(float), y).transform(X32)
    assert single.dtype == np.float32
    assert model.transform(X32.astype(float)).dtype == np.float64
    assert_allclose(single, double, atol=1e-5 * np.abs(double).max())


@pytest.mark.parametrize("member", FAMILY)
def test_what_comes_out_is_centred_and_projected(rows, member):
    X, y = rows
    model = member(2).fit(X, y)
    scale = getattr(model, "scale_", 1.0)
    assert_allclose(model.transform(X), (X - model.mean_) / scale @ model.components_.T, atol=1e-10)
    assert_allclose(model.transform(X).mean(axis=0), 0, atol=1e-10)


@pytest.mark.parametrize("member", SUPERVISED)
def test_it_searches_in_pipelines(rows, member):
    X, y = rows
    search = GridSearchCV(
        make_pipeline(member(), KNeighborsClassifier(3)),
        {f"{member.__name__.lower()}__n_components": [1, 2]},
        cv=2,
    )
    assert search.fit(X, y).best_score_ > 0.6


def attributes(model):
    return {name: np.asarray(value).tobytes() for name, value in vars(model).items()}


@pytest.mark.parametrize("member", SUPERVISED)
def test_bad_input_leaves_the_object(rows, member):
    X, y = rows
    model = member(2).fit(X, y)
    before = attributes(model)
    bad = X.copy()
    bad[3, 1] = np.nan
    wider = np.hstack([X, X])
    for rows_, labels, error in (
        (bad, y, "NaN"),
        (wider, np.zeros(60, dtype=int), r"expected rows of at least two classes, got 1 class"),
        (wider, y + 0.5, "Unknown label type"),
        (wider, y[:-1], "inconsistent"),
        (np.ones_like(wider), y, "X: expected"),
        (wider[0], y, "2D array"),
    ):
        with pytest.raises(ValueError, match=error):
            model.fit(rows_, labels)
        assert attributes(model) == before
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        model.fit(csr_array(wider), y)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        model.transform(csr_array(X))
    assert attributes(model) == before
    model.n_components = 99
    with pytest.raises(ValueError, match=r"n_components: expected at most [0-9]+ .*got 99"):
        model.fit(wider, y)
    model.n_components = 2
    assert attributes(model) == before
    for name, value in (("n_components", 0), ("ridge", -1.0), ("n_neighbors", 0)):
        if name in model.get_params():
            with pytest.raises(ValueError, match=name):
                clone(model).set_params(**{name: value}).fit(X, y)


@pytest.mark.parametrize("member", FISHERS)
def test_how_many_components_fishers_have(rows, member):
    X, y = rows
    with pytest.raises(
        ValueError, match=r"expected at most 2 \(rank of the scatter between classes\), got 3"
    ):
        member(3).fit(X, y)
    assert len(member().fit(X, y).components_) == 2
    assert len(member().fit(X[:, :1], y).components_) == 1
    equal = np.vstack([X, X, X])
    with pytest.raises(ValueError, match="X: expected classes with different means"):
        member().fit(equal, np.repeat([0, 1, 2], 60))
    line = np.outer([-1.0, 0.0, 1.0], [1.0, 2.0, 0.0, 0.0])[y - 7]  # means on a line
    noise = np.tile(X[:20] - X[:20].mean(axis=0), (3, 1))[np.argsort(np.argsort(y, kind="stable"))]
    assert len(member().fit(line + noise, y).components_) == 1


def test_one_row_a_class_but_for_one(rng):
    X, y = rng.standard_normal((4, 9)), [0, 1, 2, 2]
    for member in FAMILY:
        model = member().fit(X, y)
        assert np.isfinite(model.transform(X)).all()
    assert PCAFisher().fit(X, y).pca_components_ == 1


def test_only_rows_that_differ_within_classes_have_neighbours():
    X, y = np.arange(12.0).reshape(4, 3), [0, 1, 2, 3]
    with pytest.raises(ValueError, match="X: expected rows that differ within classes"):
        LocalFisher().fit(X, y)
    for member in (RegularizedFisher, PCAFisher, DirectLDA, GSVDDiscriminant):
        assert len(member().fit(X, y).components_) == 1
    assert len(MaximumMarginCriterion().fit(X, y).components_) == 1


def test_errors_of_principal_components(rows):
    X, y = rows
    for member in (PCAFisher, LocalFisher):
        with pytest.raises(
            ValueError, match=r"pca_components: expected at most 4 \(rank of the rows\), got 5"
        ):
            member(pca_components=5).fit(X, y)
    with pytest.raises(
        ValueError, match=r"n_components: expected at most 2 \(pca_components\), got 3"
    ):
        LocalFisher(3, pca_components=2).fit(X, y)
    steep = np.column_stack([100.0 * y, X])  # the first component is the class itself
    with pytest.raises(ValueError, match="pca_components: expected rows that vary within classes"):
        LocalFisher(pca_components="auto").fit(np.column_stack([100.0 * y, 0 * y]), y)
    assert PCAFisher().fit(steep, y).eigenvalues_[0] > 1e4


@pytest.mark.parametrize("member", POOLED)
def test_domains_of_pooled(rows, member):
    X, y = rows
    model = member(2).fit(X, y, np.where(np.arange(60) < 40, 1, -1))
    before = attributes(model)
    for domain, error in (
        (np.ones(59), r"sample_domain: expected shape \(60,\), got \(59,\)"),
        (np.zeros(60), "sample_domain: expected .* got 0.0 in row 0"),
        (np.ones(60), "sample_domain: .* got no row of the target"),
        (np.where(np.arange(60) < 59, 1, -1), "X: expected a column that varies in every domain"),
    ):
        with pytest.raises(ValueError, match=error):
            model.fit(np.hstack([X, X]), y, sample_domain=domain)
        assert attributes(model).keys() == before.keys()
        assert attributes(model)["components_"] == before["components_"]
    with pytest.raises(ValueError, match=r"sample_domain: expected .* got 0 in row 1"):
        model.transform(X[:2], sample_domain=[1, 0])
    assert_array_equal(model.transform(X[:3], [-1, -1, -1]), model.transform(X[:3]))
    with pytest.raises(ValueError, match="Xt: expected 4 columns, got 3"):
        model.fit_transfer(X, y, X[:, 1:], y)
    alone = member(2).fit(X, y)  # one domain
    assert_array_equal(alone.transform(X), alone.transform(X, np.ones(60)))
    assert PooledPCA(2).fit_transfer(X, None, X + 3, None).components_.shape == (2, 4)

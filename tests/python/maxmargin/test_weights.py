"""Weights of rows' hinge losses in `MaxMarginShift` and `MaxMarginPCA`."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.decomposition import PCA

from eigenfeat.maxmargin import MaxMarginPCA, MaxMarginShift, MulticlassSVM

SVM = MulticlassSVM(C=0.1, tol=1e-9, max_iter=5000)
MODELS = {
    "single": MaxMarginShift(PCA(2), sigma2=1.0, svm=SVM),
    "joint": MaxMarginShift(PCA(2), sigma2=1.0, svm=SVM, moves="joint", tol=1e-12),
    "corrupted": MaxMarginShift(PCA(2), sigma2=0.1, svm=SVM, moves="corrupted", n_copies=3),
    "components": MaxMarginPCA(2, sigma2=2.0, svm=SVM, max_iter=1000),
}


@pytest.fixture
def rows(rng):
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 5)) + rng.standard_normal((3, 5))[y]
    return X, y, rng.integers(0, 4, 90).astype(float)


def features(model, X):
    return np.abs(model.transform(X))  # signs of components are free


@pytest.mark.parametrize("name", MODELS)
def test_a_constant_weight_is_another_C(name, rows):
    X, y, _ = rows
    other = clone(MODELS[name]).set_params(svm=clone(SVM).set_params(C=0.2)).fit(X, y)
    found = clone(MODELS[name]).fit(X, y, np.full(90, 2.0))
    assert_allclose(features(found, X), features(other, X), atol=1e-4)
    plain = clone(MODELS[name]).fit(X, y)
    assert np.abs(features(found, X) - features(plain, X)).max() > 1e-3
    assert_array_equal(features(clone(plain).fit(X, y, np.ones(90)), X), features(plain, X))
    if name in ("joint", "components"):
        assert_allclose(found.objective_, other.objective_, rtol=1e-6)


def test_the_moves_are_those_of_a_weighted_svm(rows):
    """Equation 9 with a cost C_n of each row, which the row's multipliers do not exceed."""
    X, y, weight = rows
    svm = clone(SVM).fit(X, y, weight)
    moved = clone(MODELS["single"]).shift(X, y, weight)
    assert_allclose(moved, X + svm.dual_coef_ @ svm.class_coef_, atol=1e-12)
    joint = clone(MODELS["joint"]).fit(X, y, weight)
    length = np.linalg.norm(clone(joint).shift(X, y, weight) - X, axis=1)
    coef = joint.class_coef_
    widest = max(np.linalg.norm(a - b) for a in coef for b in coef)
    assert (length <= 0.1 * weight * widest * (1 + 1e-9)).all()
    assert length[weight == 0].max() == 0.0


def test_scales_are_compared_by_weighted_accuracy(rows):
    """Wrongly labelled rows of tiny weight do not change the accuracy."""
    X, y, _ = rows
    wrong = np.arange(90) % 5 == 0
    labels = np.where(wrong, (y + 1) % 3, y)
    model = MaxMarginShift(PCA(2), svm=SVM, scales=(0.0, 1.0), cv=3)
    weighted = clone(model).fit(X, labels, np.where(wrong, 1e-9, 1.0))
    absent = clone(model).fit(X, labels)
    assert weighted.best_score_ > absent.best_score_ + 0.05
    PCA_like = MaxMarginPCA(2, svm=SVM, scales=(0.0, 0.5), cv=3, tol=1e-3, max_iter=1000)
    found = PCA_like.fit(X, labels, np.where(wrong, 1e-9, 1.0))
    assert found.best_score_ > absent.best_score_

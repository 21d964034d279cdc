"""Predictions of FisherLDA are those of linear discriminant analysis."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat import FisherLDA


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("scale", ["none", "columns"])
def test_they_are_scikit_learns(load, scale):
    X, y = load(return_X_y=True)
    X, y = X[:-20], y[:-20]  # so that priors differ
    ours = FisherLDA(ridge=0.0, scale=scale).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, y) == theirs.score(X, y)


def test_a_declared_class_without_samples_has_no_probability():
    X, y = load_iris(return_X_y=True)
    stream = FisherLDA().partial_fit(X[::2], y[::2], classes=[0, 1, 2, 3])
    stream.partial_fit(X[1::2], y[1::2])
    found = stream.predict_proba(X)
    assert_allclose(found[:, :3], FisherLDA().fit(X, y).predict_proba(X), atol=1e-9)
    assert_array_equal(found[:, 3], 0.0)


def test_float32_stays():
    X, y = load_iris(return_X_y=True)
    assert FisherLDA().fit(X, y).predict_proba(X.astype(np.float32)).dtype == np.float32

"""The family of Table 1 as estimators: scikit-learn's checks, copies, names, errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eigenfeat import ClassMoments
from eigenfeat.exceptions import SingularDenominatorError
from eigenfeat.rayleigh.rayleigh import (
    FisherLDA,
    OrientedPCA,
    RayleighPCA,
    SlicedInverseRegression,
    VanishingComponents,
)

SUPERVISED = (FisherLDA, SlicedInverseRegression)
FAMILY = (RayleighPCA, VanishingComponents, OrientedPCA, *SUPERVISED)


@pytest.fixture
def rows(rng):
    """Four classes of 60 rows with different means, 6 correlated columns, far from the origin."""
    y = np.repeat([3, 5, 7, 9], 60)
    X = rng.standard_normal((240, 6)) @ (rng.standard_normal((6, 6)) + 2 * np.eye(6))
    order = rng.permutation(240)
    return (X + 3 * rng.standard_normal((4, 6))[(y - 3) // 2] + 5.0)[order], y[order]


@pytest.mark.parametrize("member", FAMILY)
def test_solvers_do_not_matter(rows, member):
    X, y = rows
    expected = member(2).fit(X, y)
    for solver in ("full", "subset", "krylov"):
        other = member(2, solver=solver).fit(X, y)
        assert_allclose(other.transform(X), expected.transform(X), atol=1e-8)


def test_a_batch_of_one_class_may_come_first(rows):
    X, y = rows
    lda = FisherLDA().partial_fit(X[y == 3], y[y == 3])
    with pytest.raises(ValueError, match="expected samples of at least two classes, got 1 class"):
        lda.transform(X)
    lda.partial_fit(X[y != 3], y[y != 3])
    assert_allclose(lda.transform(X), FisherLDA().fit(X, y).transform(X), atol=1e-9)


def test_targets_of_the_wrong_kind(rows, rng):
    X, y = rows
    with pytest.raises(ValueError, match="Unknown label type"):
        FisherLDA().fit(X, rng.standard_normal(240))
    with pytest.raises(ValueError, match="y: expected at least two distinct values"):
        SlicedInverseRegression(target="continuous").fit(X, np.ones(240))
    with pytest.raises(ValueError, match="classes: expected None for a continuous y"):
        SlicedInverseRegression().partial_fit(X, rng.standard_normal(240), classes=[0, 1])
    with pytest.raises(ValueError, match="y: expected an array of real numbers"):
        SlicedInverseRegression(target="continuous").fit(X, y.astype(str))


def test_noise_errors(rows):
    X, y = rows
    moments = ClassMoments().update(X, y)
    with pytest.raises(ValueError, match=r"noise_matrix: expected shape \(6, 6\), got \(5, 5\)"):
        OrientedPCA(noise_matrix=np.eye(5)).fit(X)
    with pytest.raises(ValueError, match="noise_matrix: expected symmetric"):
        OrientedPCA(noise_matrix=np.triu(np.ones((6, 6)))).fit(X)
    with pytest.raises(ValueError, match="noise: expected None beside a noise_matrix"):
        OrientedPCA(noise_matrix=np.eye(6)).fit(X, noise=X)
    with pytest.raises(ValueError, match="noise_moments: expected 6 columns, got 5"):
        OrientedPCA().fit_moments(moments, ClassMoments().update(X[:, 1:], y))
    with pytest.raises(TypeError, match="noise_moments: expected ClassMoments"):
        OrientedPCA().fit_moments(moments, X)
    with pytest.raises(SingularDenominatorError, match="would do"):
        OrientedPCA(ridge=0).fit(X, noise=X[:3])
    assert np.isfinite(OrientedPCA().fit(X, noise=X[:3]).directions_).all()

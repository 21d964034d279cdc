"""The relatives of LDG as estimators: scikit-learn's checks, types, names, errors."""

from __future__ import annotations

import numpy as np
import pytest

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
FAMILY = (*SUPERVISED, PooledPCA)


@pytest.fixture
def rows(rng):
    """Three classes, of 4 columns."""
    y = np.repeat([7, 8, 9], 20)
    X = rng.standard_normal((60, 4)) + 2 * rng.standard_normal((3, 4))[y - 7] + 5.0
    order = rng.permutation(60)
    return X[order], y[order]


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
    with pytest.raises(ValueError, match="X: expected samples that differ within classes"):
        LocalFisher().fit(X, y)
    for member in (RegularizedFisher, PCAFisher, DirectLDA, GSVDDiscriminant):
        assert len(member().fit(X, y).components_) == 1
    assert len(MaximumMarginCriterion().fit(X, y).components_) == 1


def test_errors_of_principal_components(rows):
    X, y = rows
    for member in (PCAFisher, LocalFisher):
        with pytest.raises(
            ValueError, match=r"pca_components: expected at most 4 \(rank of the samples\), got 5"
        ):
            member(pca_components=5).fit(X, y)
    with pytest.raises(
        ValueError, match=r"n_components: expected at most 2 \(pca_components\), got 3"
    ):
        LocalFisher(3, pca_components=2).fit(X, y)
    steep = np.column_stack([100.0 * y, X])  # the first component is the class itself
    with pytest.raises(
        ValueError, match="pca_components: expected samples that vary within classes"
    ):
        LocalFisher(pca_components="auto").fit(np.column_stack([100.0 * y, 0 * y]), y)
    assert PCAFisher().fit(steep, y).eigenvalues_[0] > 1e4

"""Completions fitted to incomplete rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat.early import GaussianCompletion, MixtureCompletion


@pytest.fixture
def holes(rng):
    """Gaussian rows (80, 5), complete and with 30% of the entries missing."""
    X = rng.standard_normal((80, 5)) @ rng.standard_normal((5, 5)) + [0, 1, -2, 3, 100]
    return X, np.where(rng.random(X.shape) < 0.3, np.nan, X)


def test_gaussians_of_incomplete_and_complete_samples_agree(rng):
    root = rng.standard_normal((5, 5))
    X = rng.standard_normal((2000, 5)) @ root + [0, 1, -2, 3, 100]
    incomplete = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    incomplete[:, 4] = np.where(X[:, 0] > 0, incomplete[:, 4], np.nan)  # missing at random
    whole, found = GaussianCompletion(0, 0).fit(X), GaussianCompletion(0, 0).fit(incomplete)
    deviations = np.sqrt(np.diag(whole.covariance_))
    assert_allclose(found.mean_, whole.mean_, rtol=0, atol=0.1 * deviations.max())
    error = (found.covariance_ - whole.covariance_) / np.outer(deviations, deviations)
    assert np.abs(error).max() < 0.1
    filled = found.transform(incomplete)
    missing = np.isnan(incomplete)
    naive = np.where(missing, np.nanmean(incomplete, axis=0), incomplete)
    assert np.square(filled - X)[missing].sum() < 0.7 * np.square(naive - X)[missing].sum()


def test_empty_rows_and_threads_change_nothing(holes):
    incomplete = holes[1]
    empty = np.full((3, 5), np.nan)
    first = GaussianCompletion().fit(incomplete)
    again = GaussianCompletion().fit(np.concatenate([empty, incomplete]))
    assert_array_equal(again.mean_, first.mean_)
    assert_array_equal(again.covariance_, first.covariance_)
    for threads in (1, 2, 7):
        other = GaussianCompletion(n_threads=threads).fit(incomplete)
        assert_array_equal(other.covariance_, first.covariance_)


def test_classes_are_estimated_separately_with_one_ridge(holes):
    X = np.concatenate([holes[1], 5 + 2 * holes[1][::-1]])
    y = np.repeat(["a", "b"], 80)
    model = MixtureCompletion(0.1, 0.0).fit(X, y)
    for k, label in enumerate("ab"):
        alone = GaussianCompletion(0.1, 0.0).fit(X[y == label])
        assert_allclose(model.means_[k], alone.mean_, rtol=0.01, atol=0.05)
        assert_allclose(model.covariances_[k], alone.covariance_, rtol=0, atol=0.1)
    # A column without known values in a class takes the mean over all rows.
    X[y == "a", 2] = np.nan
    partly = MixtureCompletion(0.1).fit(X, y)
    assert_allclose(partly.means_[0, 2], np.nanmean(X[:, 2]), rtol=1e-6)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X.__setitem__((slice(None), 3), np.nan), "NaN only in column 3"),
        (lambda X: X.__setitem__(slice(0, 40), np.nan), "NaN only in class 0$"),
        (lambda X: X.__setitem__((0, 0), np.inf), "got inf in row 0, column 0"),
    ],
)
def test_errors_leave_the_estimator_as_it_was(holes, spoil, message):
    X, incomplete = holes
    y = np.repeat([0, 1], 40)
    model = MixtureCompletion().fit(X, y)
    before = model.means_.copy()
    spoil(incomplete)
    with pytest.raises(ValueError, match=message):
        model.fit(incomplete, y)
    assert_array_equal(model.means_, before)
    with pytest.raises(ValueError, match="ridge"):
        GaussianCompletion(ridge=-1).fit(X)
    with pytest.raises(ValueError, match="samples that differ, got equal samples"):
        GaussianCompletion().fit([[1.0, np.nan], [1.0, 2.0], [np.nan, 2.0]])
    with pytest.raises(ValueError, match="ridge: expected a number that makes"):
        GaussianCompletion(0, 0).fit(np.where(np.eye(3, 9) > 0, np.nan, X[:3, [0] * 9]))

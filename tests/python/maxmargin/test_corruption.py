"""Corrupted copies of rows have the density of equations 4 and 5."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA

from eigenfeat.maxmargin import MaxMarginShift, MulticlassSVM


def rows(n=12):
    rng = np.random.default_rng(3)
    y = np.arange(n) % 3
    return rng.standard_normal((n, 2)) + 1.5 * np.array([[0, 1], [1, -1], [-1, -1]])[y], y


def grid_moments(x, label, svm, sigma2):
    """Mean and covariance of one row's density, summed over a grid."""
    side = np.linspace(-7, 7, 241) * np.sqrt(sigma2)
    at = x + np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    scores = at @ svm.class_coef_.T + svm.dual_coef_.sum(axis=0)
    margins = scores + (np.arange(3) != label)
    loss = margins.max(axis=1) - scores[:, label]
    log = -((at - x) ** 2).sum(axis=1) / (2 * sigma2) - svm.C * loss
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean = weight @ at
    return mean, (at - mean).T @ (weight[:, None] * (at - mean))


@pytest.mark.parametrize(("C", "sigma2"), [(3.0, 0.6), (0.1, 30.0)])
def test_copies_have_the_papers_density(C, sigma2):
    X, y = rows()
    svm = MulticlassSVM(C=C, tol=1e-8, max_iter=5000)
    n_copies = 6000
    shift = MaxMarginShift(PCA(1), sigma2=sigma2, svm=svm, moves="corrupted", n_copies=n_copies)
    copies = shift.shift(X, y).reshape(12, n_copies, 2)
    fitted = shift.fit(X, y).svm_
    for row in range(12):
        mean, covariance = grid_moments(X[row], y[row], fitted, sigma2)
        found = np.cov(copies[row].T, bias=True)
        deviation = np.sqrt(np.diag(covariance) / n_copies)
        assert (np.abs(copies[row].mean(axis=0) - mean) <= 5 * deviation).all()
        assert_allclose(found, covariance, atol=8 * covariance.max() / np.sqrt(n_copies))


def test_copies_of_a_mislabelled_sample_are_accepted():
    X, y = rows()
    X[0] = X[1]  # a sample of another class, whose copies all have a large loss
    svm = MulticlassSVM(C=10.0)
    shift = MaxMarginShift(PCA(1), sigma2=0.01, svm=svm, moves="corrupted", n_copies=4)
    copies = shift.shift(X, y).reshape(12, 4, 2)
    assert np.abs(copies - X[:, None]).max() < 1.0


def test_seeds_and_scales():
    X, y = rows(30)
    given = {"svm": MulticlassSVM(C=0.5), "moves": "corrupted", "n_copies": 4}
    copies, again, other = (
        MaxMarginShift(sigma2=0.1, random_state=seed, **given).shift(X, y) for seed in (0, 0, 1)
    )
    assert_array_equal(again, copies)
    assert (other != copies).all()
    forced = MaxMarginShift(PCA(1), scales=(0.5,), cv=3, **given).fit(X, y)
    assert 0.3 < forced.relative_shift_ < 0.7

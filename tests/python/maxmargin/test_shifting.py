"""MaxMarginShift: the paper's identities, its conventions, and that it helps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from svm_reference import class_weights

from eigenfeat.maxmargin import (
    Autoencoder,
    MaxMarginPCA,
    MaxMarginShift,
    MulticlassSVM,
)

SVM = MulticlassSVM(C=0.1, tol=1e-6, max_iter=5000)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16, y[:400]


def scatter(X):
    return X.T @ X / len(X)


def test_the_covariance_identity_of_two_classes(digits):
    """S(T[X]) = S(X) + (2 s + s^2 sum a_n^2) eta eta^T / N, before equation 17, with s = sigma2.

    eta = sum_n a_n y_n x_n is a two-class SVM without offset; its rows move by s a_n y_n eta.
    """
    X, y = digits[0], digits[1] % 2
    svm = clone(SVM).set_params(fit_intercept=False)
    for sigma2 in (0.3, 1.0, 40.0):
        shift = MaxMarginShift(PCA(2), sigma2=sigma2, svm=svm).fit(X, y)
        moved = shift.shift(X, y)
        alpha = np.abs(shift.svm_.dual_coef_[:, 1])
        eta = (np.where(y == 1, 1, -1) * alpha) @ X
        # Our weights are (-eta, eta), so that their difference, and the move, is 2 eta.
        assert_allclose(shift.svm_.coef_[0], 2 * eta, rtol=1e-8, atol=1e-10)
        s = 2 * sigma2
        expected = scatter(X) + (2 * s + s**2 * (alpha**2).sum()) * np.outer(eta, eta) / len(X)
        assert_allclose(scatter(moved), expected, rtol=1e-9, atol=1e-9 * expected.max())


def test_the_covariance_identity_of_many_classes(digits):
    """X^T (I + sigma2 A A^T)^2 X = X^T X + 2 sigma2 W^T W + sigma2^2 W^T A^T A W, W = A^T X."""
    X, y = digits
    shift = MaxMarginShift(PCA(2), sigma2=7.0, svm=clone(SVM).set_params(fit_intercept=False))
    shift.fit(X, y)
    W, A = shift.svm_.class_coef_, shift.svm_.dual_coef_
    expected = X.T @ X + 14.0 * W.T @ W + 49.0 * W.T @ (A.T @ A) @ W
    assert_allclose(len(X) * scatter(shift.shift(X, y)), expected, rtol=1e-8)


def test_rows_move_as_equation_9_says(digits):
    X, y = digits
    shift = MaxMarginShift(PCA(2), sigma2=3.0, svm=SVM).fit(X, y)
    moved = shift.shift(X, y)
    eta, _ = class_weights(shift.svm_)
    for n in range(0, 400, 13):
        alpha = -shift.svm_.dual_coef_[n]
        alpha[y[n]] = 0
        assert (alpha >= 0).all()
        by = sum(alpha[c] * (eta[y[n]] - eta[c]) for c in range(10))
        assert_allclose(moved[n] - X[n], 3.0 * by, atol=1e-12)
        # A row's lead over the classes that it moved away from has grown.
        lead = eta[y[n]] - eta[alpha > 0]
        assert ((lead @ moved[n] - lead @ X[n]) @ alpha[alpha > 0] >= 0).all()


def test_two_classes_are_the_papers_binary_case(digits):
    """A pair of weights (-v/2, v/2) is the SVM of the hinge loss at twice the cost, and rows move
    by the multiplier along v: the two-class rule, with half of its multipliers.
    """
    X, y = digits[0], digits[1] % 2
    peer = LinearSVC(C=0.2, loss="hinge", fit_intercept=False, tol=1e-9, max_iter=1_000_000)
    v = peer.fit(X, y).coef_[0]
    svm = clone(SVM).set_params(fit_intercept=False, tol=1e-9)
    shift = MaxMarginShift(PCA(1), sigma2=2.0, svm=svm).fit(X, y)
    assert_allclose(shift.svm_.coef_[0], v, atol=1e-4)
    alpha = np.abs(shift.svm_.dual_coef_[:, 0])
    signs = np.where(y == 1, 1, -1)
    assert_allclose(2 * (alpha * signs) @ X, v, atol=1e-4)
    moves = shift.shift(X, y) - X
    assert_allclose(moves, 2.0 * np.outer(alpha * signs, v), atol=1e-4)


def test_unlabelled_rows_stay(digits):
    X, y = digits
    partly = y.copy()
    partly[::3] = -1
    shift = MaxMarginShift(PCA(3), sigma2=20.0, svm=SVM).fit(X, partly)
    moved = shift.shift(X, partly)
    known = partly != -1
    assert_array_equal(moved[~known], X[~known])
    assert_allclose(moved[known], MaxMarginShift(sigma2=20.0, svm=SVM).shift(X[known], y[known]))
    assert_allclose(shift.extractor_.mean_, moved.mean(axis=0))
    # -1 is a label like others where that is said.
    signs = np.where(y > 4, 1, -1)
    with pytest.raises(ValueError, match=r"got 1 class \(samples labelled -1 have none\)"):
        MaxMarginShift(PCA(3), sigma2=1.0).fit(X, signs)
    model = MaxMarginShift(PCA(3), sigma2=1.0, svm=SVM, unlabeled=None).fit(X, signs)
    assert_array_equal(model.svm_.classes_, [-1, 1])


def test_kinds_of_rows_agree(digits):
    X, y = digits
    model = MaxMarginShift(PCA(3), sigma2=20.0, svm=SVM).fit(X, y)
    sparse = MaxMarginShift(PCA(3), sigma2=20.0, svm=SVM).fit(sp.csr_matrix(X), y)
    assert_allclose(np.abs(sparse.transform(X)), np.abs(model.transform(X)), atol=1e-4)
    single = MaxMarginShift(PCA(3), sigma2=20.0, svm=clone(SVM).set_params(tol=1e-4))
    assert single.shift(X.astype(np.float32), y).dtype == np.float32
    named = MaxMarginShift(PCA(3), sigma2=1.0).fit(X, np.array(list("abcdefghij"))[y])
    assert named.get_feature_names_out().tolist() == ["pca0", "pca1", "pca2"]
    assert named.set_output(transform="default").transform(X).shape == (400, 3)


def test_it_helps(digits):
    """Principal components of pixels, and factors of a kernel's features, three of each."""
    X, y = digits
    kernel = RBFSampler(gamma=0.03, n_components=150, random_state=0)
    svm = MulticlassSVM(C=0.1)
    for features, extractor in (("passthrough", PCA(3)), (kernel, FactorAnalysis(3))):
        shift = MaxMarginShift(extractor, sigma2="cv", svm=svm, scales=(0, 0.7, 1.0), cv=3)
        score = [
            cross_val_score(make_pipeline(features, e, MulticlassSVM()), X, y, cv=3).mean()
            for e in (extractor, shift)
        ]
        assert score[1] > score[0] + 0.04


class OnlyNear(PCA):
    """Fails for rows that are far out."""

    def fit(self, X, y=None):
        if np.abs(X).max() > 3:
            raise ValueError("far out")
        return super().fit(X)


def test_scales_at_which_the_extractor_fails_are_not_chosen(digits):
    X, y = digits
    shift = MaxMarginShift(OnlyNear(3), svm=SVM, scales=(0.1, 50.0), cv=2).fit(X, y)
    assert_array_equal(np.isnan(shift.cv_scores_), [False, True])
    assert_allclose(shift.relative_shift_, 0.1)
    with pytest.raises(ValueError, match="far out"):
        MaxMarginShift(OnlyNear(3), svm=SVM, scales=(50.0, 60.0), cv=2).fit(X, y)


def test_the_scale_is_chosen_with_an_svm_a_fold(digits, monkeypatch):
    X, y = digits
    fits = []
    original = MulticlassSVM.fit
    monkeypatch.setattr(
        MulticlassSVM, "fit", lambda self, X, y, w=None: fits.append(1) or original(self, X, y, w)
    )
    classifier = KMeansOfClasses()
    shift = MaxMarginShift(PCA(3), svm=MulticlassSVM(C=0.1), classifier=classifier, cv=3)
    shift.fit(X, y)
    assert len(fits) == 1 + 3
    assert shift.cv_scores_.shape == (len(shift.scales),)
    best = np.argmax(shift.cv_scores_)
    assert_allclose(shift.relative_shift_, shift.scales[best])
    moves = shift.shift(X, y) - X
    spread = np.linalg.norm(X - X.mean(axis=0))
    assert_allclose(np.linalg.norm(moves) / spread, shift.relative_shift_, rtol=1e-8)
    # It does not depend on the units of the rows.
    rough = MaxMarginShift(PCA(3), svm=MulticlassSVM(C=0.1 / 2**10), classifier=classifier, cv=3)
    assert_allclose(rough.fit(32 * X, y).relative_shift_, shift.relative_shift_)
    listed = MaxMarginShift(PCA(3), cv=StratifiedKFold(2), scales=[1.0]).fit(X, y)
    assert_allclose(listed.relative_shift_, 1.0)


def test_rows_stay_where_moving_gains_nothing_for_sure(digits):
    """Labels that say nothing: whatever scale is best by chance, none is surely better."""
    X, _ = digits
    moved = []
    for seed in range(4):
        y = np.random.default_rng(seed).integers(0, 3, len(X))
        shift = MaxMarginShift(PCA(3), svm=MulticlassSVM(C=0.1), scales=(0, 0.5, 1.0), cv=4)
        moved.append(shift.fit(X, y).relative_shift_ > 0)
    assert sum(moved) <= 2


class KMeansOfClasses(KMeans):
    """The nearest class mean."""

    def fit(self, X, y=None):
        self.classes_ = np.unique(y)
        self.cluster_centers_ = np.array([X[y == c].mean(axis=0) for c in self.classes_])
        return self

    def score(self, X, y=None):
        gaps = ((X[:, None] - self.cluster_centers_) ** 2).sum(axis=2)
        return np.mean(self.classes_[gaps.argmin(axis=1)] == y)


def test_the_only_row_of_a_class_is_in_no_fold(digits):
    X, y = digits
    y = np.where(np.arange(len(y)) == 5, 77, y)
    model = MaxMarginShift(PCA(2)).fit(X, y)
    labelled = np.arange(len(y))
    for train, test in model._splits(X, y, labelled):
        assert 5 in train
        assert_array_equal(np.sort(np.concatenate([train, test])), labelled)
    with pytest.raises(
        ValueError, match="y: expected a class of two samples or more for sigma2='cv'"
    ):
        model.fit(X[:3], np.arange(3))
    MaxMarginShift(PCA(2), sigma2=1.0).fit(X[:3], np.arange(3))


@pytest.mark.parametrize("model", [MaxMarginShift(), MaxMarginShift(PCA(2)), MaxMarginPCA(2)])
def test_rows_that_are_all_equal(model):
    X, y = np.full((20, 3), 0.1), np.arange(20) % 2
    assert np.ptp(model.fit(X, y).transform(X)) < 1e-15


@pytest.mark.parametrize("tied", [True, False])
def test_the_autoencoders_gradient_and_optimum(rng, tied):
    from eigenfeat.maxmargin.autoencoder import _objective, _parts

    X = rng.uniform(0.1, 0.9, (30, 6))
    shapes = [(3, 6), (3,), (6,)] + ([] if tied else [(6, 3)])
    flat = rng.standard_normal(sum(int(np.prod(s)) for s in shapes))
    value, gradient = _objective(X, _parts(flat, shapes), 0.01)
    steps = 1e-6 * np.eye(len(flat))
    slopes = [
        (
            _objective(X, _parts(flat + e, shapes), 0.01)[0]
            - _objective(X, _parts(flat - e, shapes), 0.01)[0]
        )
        / 2e-6
        for e in steps
    ]
    assert_allclose(gradient, slopes, atol=1e-7 * abs(value) + 1e-7)
    line = np.outer(rng.standard_normal(50), rng.standard_normal(6))
    model = Autoencoder(1, tied=tied, alpha=0, max_iter=500).fit(line)
    assert model.encoder_.shape == (1, 6) == model.decoder_.T.shape
    assert np.array_equal(model.decoder_, model.encoder_.T) == tied
    error = model.inverse_transform(model.transform(line)) - line
    assert np.linalg.norm(error) < 0.35 * np.linalg.norm(line - line.mean(axis=0))
    again = Autoencoder(1, tied=tied, alpha=0, max_iter=500).fit(line)
    assert_array_equal(again.encoder_, model.encoder_)


def test_choosing_a_scale_does_not_warn_of_fits_that_only_compare():
    X, y = load_digits(return_X_y=True)
    svm = MulticlassSVM(C=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        shift = MaxMarginShift(PCA(3), svm=svm, cv=2, scales=(0.0, 1.0)).fit(X[:600], y[:600])
    assert np.isfinite(shift.cv_scores_).all()


def test_the_default_extractor_is_pca():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((130, 20)), np.arange(130) % 3
    X[:, 0] += 2 * y
    svm = MulticlassSVM(C=0.1, max_iter=50, tol=1e-2)
    default = MaxMarginShift(sigma2=3.0, svm=svm).fit(X, y)
    assert type(default.extractor_) is PCA
    expected = MaxMarginShift(PCA(), sigma2=3.0, svm=svm).fit(X, y)
    assert_array_equal(default.transform(X), expected.transform(X))

"""MaxMarginShift: the paper's identities, conventions, and gains of accuracy."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC
from svm_reference import class_weights

from eigenfeat.maxmargin import (
    MaxMarginPCA,
    MaxMarginShift,
    MulticlassSVM,
)

SVM = MulticlassSVM(C=0.1, tol=1e-6, max_iter=5000)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16, y[:400]


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
    """Weights (-v/2, v/2) of two classes are the two-class SVM of v at twice the cost.

    Rows move along v, by half the multipliers of the two-class SVM.
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


def test_samples_without_weight_stay(digits):
    X, y = digits
    known = np.arange(len(y)) % 3 > 0
    shift = MaxMarginShift(PCA(3), sigma2=20.0, svm=SVM).fit(X, np.where(known, y, 77), known)
    moved = shift.shift(X, y, known)
    assert_array_equal(moved[~known], X[~known])
    assert_allclose(moved[known], MaxMarginShift(sigma2=20.0, svm=SVM).shift(X[known], y[known]))
    assert_allclose(shift.extractor_.mean_, moved.mean(axis=0))
    assert_array_equal(shift.svm_.classes_, np.arange(10))
    with pytest.raises(ValueError, match="y: expected samples of at least two classes"):
        shift.fit(X, y, y == 3)


@pytest.mark.parametrize("moves", ["once", "joint", "corrupted"])
def test_samples_of_weight_0_or_sigma2_of_0_do_not_move(digits, moves):
    X, y = digits[0][:60], digits[1][:60]
    count = 3 if moves == "corrupted" else 1
    shift = MaxMarginShift(sigma2=0.5, moves=moves, n_copies=3, svm=MulticlassSVM(C=0.1))
    known = np.arange(60) % 3 > 0
    copies = shift.shift(X, y, known).reshape(60, count, 64)
    assert_array_equal(copies[~known], np.repeat(X[~known, None], count, axis=1))
    assert (copies[known] != X[known, None]).any(axis=2).mean() > 0.5
    assert shift.shift(X.astype(np.float32), y).dtype == np.float32
    still = shift.set_params(sigma2=0.0).fit(X, y)
    assert_array_equal(still.shift(X, y), np.repeat(X, count, axis=0))
    assert still.relative_shift_ == 0.0


def test_kinds_of_rows_agree(digits):
    X, y = digits
    model = MaxMarginShift(PCA(3), sigma2=20.0, svm=SVM).fit(X, y)
    sparse = MaxMarginShift(PCA(3), sigma2=20.0, svm=SVM).fit(sp.csr_matrix(X), y)
    assert_allclose(np.abs(sparse.transform(X)), np.abs(model.transform(X)), atol=1e-4)
    named = MaxMarginShift(PCA(3), sigma2=1.0).fit(X, np.array(list("abcdefghij"))[y])
    assert named.get_feature_names_out().tolist() == ["pca0", "pca1", "pca2"]


class OnlyNear(PCA):
    """Fails for rows that are far out."""

    def fit(self, X, y=None):
        if np.abs(X).max() > 3:
            raise ValueError("far out")
        return super().fit(X)


def test_scales_at_which_the_extractor_fails_are_not_chosen(digits):
    X, y = digits
    shift = MaxMarginShift(OnlyNear(3), svm=SVM, scales=(0.1, 50.0), cv=2).fit(X, y)
    assert_array_equal(np.isnan(shift.cv_results_["mean_test_score"]), [False, True])
    assert_allclose(shift.relative_shift_, 0.1)
    with pytest.raises(ValueError, match="far out"):
        MaxMarginShift(OnlyNear(3), svm=SVM, scales=(50.0, 60.0), cv=2).fit(X, y)


def test_the_scale_is_chosen_by_folds(digits):
    X, y = digits
    given = {"scales": (0.3, 1.0, 3.0), "cv": 3}
    shift = MaxMarginShift(PCA(3), svm=MulticlassSVM(C=0.1), **given).fit(X, y)
    assert shift.cv_results_["mean_test_score"].shape == (len(shift.scales),)
    best = np.argmax(shift.cv_results_["mean_test_score"])
    assert shift.best_index_ == best
    assert shift.best_score_ == shift.cv_results_["mean_test_score"][best]
    assert_allclose(shift.relative_shift_, shift.scales[best])
    moves = shift.shift(X, y) - X
    spread = np.linalg.norm(X - X.mean(axis=0))
    assert_allclose(np.linalg.norm(moves) / spread, shift.relative_shift_, rtol=1e-8)
    # The chosen scale does not depend on the units of the rows.
    rough = MaxMarginShift(PCA(3), svm=MulticlassSVM(C=0.1 / 2**10), **given)
    assert_allclose(rough.fit(32 * X, y).relative_shift_, shift.relative_shift_)
    listed = MaxMarginShift(PCA(3), cv=StratifiedKFold(2), scales=[1.0]).fit(X, y)
    assert_allclose(listed.relative_shift_, 1.0)


@pytest.mark.parametrize("moves", ["once", "joint", "components"])
def test_held_out_samples_have_no_part_in_their_score(rng, moves):
    """Labels are noise: only moves and an SVM fitted to them could predict them."""
    X, y = rng.standard_normal((80, 40)), np.arange(80) % 2
    given = {"scales": (0.0, 1.0), "cv": 4}
    model = MaxMarginShift(PCA(30), **given, moves="once" if moves == "components" else moves)
    if moves == "components":
        model = MaxMarginPCA(30, **given, max_iter=5)
    assert model.fit(X, y).cv_results_["mean_test_score"].max() < 0.7


def test_the_only_row_of_a_class_is_in_no_fold(digits):
    X, y = digits
    y = np.where(np.arange(len(y)) == 5, 77, y)
    model = MaxMarginShift(PCA(2)).fit(X, y)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    with pytest.raises(
        ValueError, match="y: expected a class of two samples or more for sigma2='cv'"
    ):
        model.fit(X[:3], np.arange(3))
    MaxMarginShift(PCA(2), sigma2=1.0).fit(X[:3], np.arange(3))


@pytest.mark.parametrize("model", [MaxMarginShift(PCA(2)), MaxMarginPCA(2)])
def test_rows_that_are_all_equal(model):
    X, y = np.full((20, 3), 0.1), np.arange(20) % 2
    assert np.ptp(model.fit(X, y).transform(X)) < 1e-15


def test_choosing_a_scale_does_not_warn_of_fits_that_only_compare():
    X, y = load_digits(return_X_y=True)
    svm = MulticlassSVM(C=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        shift = MaxMarginShift(PCA(3), svm=svm, cv=2, scales=(0.0, 1.0)).fit(X[:600], y[:600])
    assert np.isfinite(shift.cv_results_["mean_test_score"]).all()

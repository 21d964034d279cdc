"""QuadraticDiscriminant: its densities, scikit-learn's, shrinkage, and classes of few rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.utils.extmath import softmax

from eigenfeat import FisherLDA, generalized_eigh
from eigenfeat.exceptions import SingularDenominatorError
from eigenfeat.rayleigh import QuadraticDiscriminant

PLAIN = {"shrinkage": 0.0, "ridge": 0.0}


def slow_scores(X, y, Z, shrinkage, ridge, scale):
    """The module's equations, by determinants and inverses."""
    classes = np.unique(y)
    scale = X.std(axis=0) if scale == "columns" else np.ones(X.shape[1])
    X, Z = X / scale, Z / scale
    own = [np.cov(X[y == c].T, bias=True) for c in classes]
    within = sum(np.mean(y == c) * S for c, S in zip(classes, own, strict=True))
    scores = []
    for c, S in zip(classes, own, strict=True):
        C = (1 - shrinkage) * S + shrinkage * within
        C += ridge * np.trace(within) / len(within) * np.eye(len(within))
        apart = Z - X[y == c].mean(axis=0)
        distance = np.einsum("ij,jk,ik->i", apart, np.linalg.inv(C), apart)
        scores.append(np.log(np.mean(y == c)) - (np.linalg.slogdet(C)[1] + distance) / 2)
    return np.column_stack(scores)


@pytest.mark.parametrize(
    ("load", "scale", "shrinkage", "ridge"),
    [
        (load_iris, "none", 0.0, 0.01),
        (load_wine, "columns", 0.3, 0.0),
        (load_breast_cancer, "columns", 0.5, 0.1),
    ],
)
def test_scores_are_those_of_the_equations(load, scale, shrinkage, ridge):
    X, y = load(return_X_y=True)
    X, y, Z = X[:-20], y[:-20], X[-30:]
    ours = QuadraticDiscriminant(shrinkage=shrinkage, ridge=ridge, scale=scale).fit(X, y)
    slow = slow_scores(X, y, Z, shrinkage, ridge, scale)
    assert_allclose(ours.predict_proba(Z), softmax(slow), atol=1e-7)
    assert_array_equal(ours.predict(Z), ours.classes_[slow.argmax(axis=1)])


@pytest.mark.parametrize(("load", "scale"), [(load_iris, "none"), (load_wine, "columns")])
def test_without_shrinkage_results_are_those_of_scikit_learn(load, scale):
    X, y = load(return_X_y=True)
    X, y = X[:-20], y[:-20]
    theirs = QuadraticDiscriminantAnalysis().fit(X, y)
    for c, scaling in enumerate(theirs.scalings_):  # older versions divide by n - 1
        scaling *= X[y == c].var(axis=0).sum() / scaling.sum()
    ours = QuadraticDiscriminant(**PLAIN, scale=scale).fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, y) == theirs.score(X, y)


def test_shrinkage_of_one_is_linear():
    X, y = load_wine(return_X_y=True)
    for ridge in (0.0, 0.01):
        ours = QuadraticDiscriminant(shrinkage=1, ridge=ridge).fit(X[10:], y[10:])
        linear = FisherLDA(ridge=ridge).fit(X[10:], y[10:])
        assert_allclose(ours.predict_proba(X), linear.predict_proba(X), atol=1e-8)


def test_a_logit_is_a_sum_over_generalized_eigenpairs(rng):
    A, B = (rng.standard_normal((5, 5)) for _ in range(2))
    X = np.vstack([rng.standard_normal((60, 5)) @ A, rng.standard_normal((40, 5)) @ B])
    y = np.repeat([0, 1], [60, 40])
    for c in (0, 1):
        X[y == c] -= X[y == c].mean(axis=0)
    S = [np.cov(X[y == c].T, bias=True) for c in (0, 1)]
    found = generalized_eigh(S[1], S[0], 5)
    squares = (X @ found.vectors) ** 2
    terms = (1 - 1 / found.eigenvalues) * squares - np.log(found.eigenvalues)
    logit = terms.sum(axis=1) / 2 + np.log(40 / 60)
    ours = QuadraticDiscriminant(**PLAIN).fit(X, y)
    assert_allclose(ours.decision_function(X), logit, rtol=1e-8, atol=1e-8)


# ---- shrinkage -----------------------------------------------------------------------------------


def test_the_shrinkage_is_large_if_covariances_agree_and_small_if_they_differ(rng):
    y = np.repeat([0, 1], 400)
    same = rng.standard_normal((800, 10))
    assert QuadraticDiscriminant().fit(same, y).shrinkage_.min() > 0.5
    apart = same * np.where(y, 3.0, 1 / 3)[:, None]
    assert QuadraticDiscriminant().fit(apart, y).shrinkage_.max() < 0.15


def test_the_share_is_invariant_to_linear_maps(rng):
    X, y = load_wine(return_X_y=True)
    model = QuadraticDiscriminant(ridge=0.0).fit(X, y)
    Z = (X / X.std(axis=0)) @ rng.standard_normal((13, 13)) + 5
    mapped = QuadraticDiscriminant(ridge=0.0).fit(Z, y)
    assert_allclose(mapped.shrinkage_, model.shrinkage_, rtol=1e-6)
    assert_allclose(mapped.predict_proba(Z), model.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_the_shares_are_those_of_the_equations(ridge):
    X, y = load_wine(return_X_y=True)
    Z = X / X.std(axis=0)
    own = [np.cov(Z[y == c].T, bias=True) for c in range(3)]
    within = sum(np.mean(y == c) * S for c, S in enumerate(own))
    target = within + ridge * np.trace(within) / 13 * np.eye(13)
    expected = []
    for c, S in enumerate(own):
        A = np.linalg.solve(target, S)
        trace, squares = np.trace(A), np.trace(A @ A)
        error = max(trace**2 + squares, 13 * 14) / np.sum(y == c)
        expected.append(min(1.0, error / (squares - 2 * trace + 13)))
    model = QuadraticDiscriminant(ridge=ridge, scale="columns").fit(X, y)
    assert_allclose(model.shrinkage_, expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_changes_of_constant_columns_do_not_matter(dtype):
    """All classes have the same density in such a column, which must not hide their differences."""
    X, y = load_wine(return_X_y=True)
    X = np.column_stack([X, np.full(len(X), 1e6)]).astype(dtype)
    changed = X + np.array([0] * 13 + [1e9], dtype)
    for shrinkage in ("auto", 0.3):
        model = QuadraticDiscriminant(shrinkage=shrinkage).fit(X, y)
        assert_allclose(model.predict_proba(changed), model.predict_proba(X), atol=1e-6)


def test_classes_of_few_rows_and_constant_columns():
    X, y = load_digits(return_X_y=True)
    few = np.concatenate([np.flatnonzero(y == c)[: 1 if c == 3 else 20] for c in range(10)])
    model = QuadraticDiscriminant().fit(X[few], y[few])  # 64 columns, some of them constant
    assert model.shrinkage_[3] == 1
    others = np.setdiff1d(np.arange(len(y)), few)
    linear = FisherLDA().fit(X[few], y[few])
    assert model.score(X[others], y[others]) > linear.score(X[others], y[others]) - 0.02
    assert np.isfinite(model.predict_log_proba(X)).all()
    with pytest.raises(
        SingularDenominatorError, match="ridge: expected a number that makes class 0's"
    ):
        QuadraticDiscriminant(**PLAIN).fit(X[few], y[few])


def test_classes_of_equal_samples():
    """If all classes are constant, the ridge is relative to the scatter of their means."""
    X, y = load_iris(return_X_y=True)
    X[y == 0] = X[0]
    assert QuadraticDiscriminant().fit(X, y).score(X, y) > 0.95
    y = np.arange(30) % 3
    for X in (y[:, None] * 1e-9, np.column_stack([y, y == 1, np.full(30, 7.0)]) * 1e6 + 3e9):
        assert QuadraticDiscriminant().fit(X, y).score(X, y) == 1.0
    with pytest.raises(SingularDenominatorError, match="X: expected a column that varies"):
        QuadraticDiscriminant().fit(np.full((30, 2), 0.1), y)


def test_covariances_that_are_only_rounding_count_as_zero():
    """Such covariances are not inverted without a ridge, and add nothing to a ridge."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 8)
    X = np.array([1.0, 2.0, 3.0]) * (1 + y[:, None])
    X += rng.integers(-1, 2, X.shape) * 2.0**-52
    assert QuadraticDiscriminant().fit(X, y).score(X, y) == 1.0
    one = X.copy()
    one[y == 1] += rng.standard_normal((8, 3))
    for samples, whose in ((X, "the pooled|class 0's"), (one, "class 0's")):
        for shrinkage in (0.0, "auto") if samples is X else (0.0,):
            with pytest.raises(SingularDenominatorError, match=whose):
                QuadraticDiscriminant(ridge=0.0, shrinkage=shrinkage).fit(samples, y)

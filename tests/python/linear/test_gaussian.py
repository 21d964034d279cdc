"""Gaussian classes of one covariance: closed form, leave-one-out, and when "auto" chooses them."""

import numpy as np
import pytest
import scipy.sparse as sp
from flat_gem import gem_classifier
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, softmax

from eigenfeat import MultinomialLogit, load, save
from eigenfeat.linear.gaussian import GaussianClasses
from eigenfeat.linear.logit_problem import LogitProblem
from eigenfeat.samples import ArrayBlocks
from eigenfeat.samples.labelled import MemorySamples

GAUSSIAN = {"solver": "gaussian", "temperature": "auto"}


@pytest.fixture
def classes(rng):
    """Rows of seven classes in columns of unequal deviations, labels, and weights."""
    y = np.r_[np.arange(7), rng.integers(0, 7, 153)]
    X = (
        rng.standard_normal((160, 9)) * rng.uniform(0.5, 3, 9)
        + 1.5 * rng.standard_normal((7, 9))[y]
    )
    return X + rng.standard_normal(9), y, rng.uniform(0.2, 2, 160)


def many(rng, k=105, n=6, d=12):
    """Rows of many classes."""
    y = np.repeat(np.arange(k), n)
    return (2 * rng.standard_normal((k, d))[y] + rng.standard_normal((k * n, d))), y


def reference(X, y, weight, common, shrinkage, without=None):
    """Means, H and weights of the classes by definition. D^2 and n are those of all rows."""
    total, k = weight.sum(), y.max() + 1

    def moments(kept):
        means = np.array(
            [
                np.average(X[kept & (y == c)], axis=0, weights=weight[kept & (y == c)])
                for c in range(k)
            ]
        )
        apart = X[kept] - means[y[kept]]
        return means, sum(
            w * np.outer(u, u) for w, u in zip(weight[kept], apart, strict=True)
        ) / total

    every = np.ones(len(y), dtype=bool)
    diagonal = np.diag(moments(every)[1])
    kept = every.copy()
    if without is not None:
        kept[without] = False
    means, S = moments(kept)
    D2 = np.full(len(diagonal), diagonal.mean()) if common else diagonal
    sums = np.array([weight[kept & (y == c)].sum() for c in range(k)])
    return means, S + shrinkage * np.diag(D2), np.log(sums / total)


def logits(x, means, H, log_shares):
    return np.array([-0.5 * (x - m) @ np.linalg.solve(H, x - m) for m in means]) + log_shares


def gaussian_classes(X, y, weight, common):
    rows = MemorySamples.of(X, y, weight, 2)
    return GaussianClasses(LogitProblem(rows, constant=True), common, np.random.RandomState(0))


@pytest.mark.parametrize(("common", "weighted"), [(False, True), (True, False)])
def test_weights_agree_with_the_definition(classes, common, weighted):
    X, y, weight = classes
    weight = weight if weighted else np.ones(len(y))
    found = gaussian_classes(X, y, weight if weighted else None, common).shrunk(0.1)
    expected = [logits(x, *reference(X, y, weight, common, 0.1)) for x in X]
    assert_allclose(
        log_softmax(X @ found.W[:-1] + found.W[-1], axis=1),
        log_softmax(expected, axis=1),
        atol=2e-3,
    )


@pytest.mark.parametrize(("common", "weighted"), [(False, True), (True, False)])
def test_left_out_logits_are_those_of_refits(classes, common, weighted):
    X, y, weight = classes
    weight = weight if weighted else np.ones(len(y))
    gaussian = gaussian_classes(X, y, weight if weighted else None, common)
    found = gaussian.shrunk(0.01)
    left = np.vstack([part[0] for part in found.logits])
    assert len(left) == len(X)
    expected = [logits(X[i], *reference(X, y, weight, common, 0.01, i)) for i in range(len(X))]
    assert_allclose(log_softmax(left, axis=1), log_softmax(expected, axis=1), atol=2e-3)
    cold = log_softmax(left / found.temperature, axis=1)[np.arange(len(y)), y]
    assert found.loss == pytest.approx(-np.average(cold, weights=weight), rel=1e-4)


def test_the_shrinkage_has_the_least_loss(classes):
    X, y, weight = classes
    model = MultinomialLogit(**GAUSSIAN).fit(X, y, weight)
    gaussian = gaussian_classes(X, y, weight, False)
    losses = {j: gaussian.shrunk(10 ** (j / 2)).loss for j in range(-8, 5)}
    best = min(losses, key=losses.get)
    assert model.penalty_ == pytest.approx(10 ** (best / 2))
    assert model.stop_reason_ == "closed form"
    assert np.isnan(model.objective_)


def test_blocks_sparse_rows_and_threads(classes):
    X, y, weight = classes
    X[:, 3] *= X[:, 3] > 1
    full = MultinomialLogit(**GAUSSIAN).fit(X, y, weight)
    blocks = ArrayBlocks(X, y, weight, block_rows=50)
    for other in (blocks, sp.csr_array(X)):
        labels = () if other is blocks else (y, weight)
        found = MultinomialLogit(**GAUSSIAN).fit(other, *labels)
        assert_allclose(found.predict_proba(X), full.predict_proba(X), atol=2e-3)
    one = MultinomialLogit(**GAUSSIAN, n_threads=1).fit(X, y, weight)
    three = MultinomialLogit(**GAUSSIAN, n_threads=3).fit(X, y, weight)
    assert_array_equal(one.coef_, three.coef_)
    assert one.temperature_ == three.temperature_


@pytest.mark.parametrize(("dtype", "scale"), [(np.float32, 1e-6), (np.float64, 1e6)])
def test_units_do_not_matter(classes, dtype, scale):
    X, y, _ = classes
    plain = MultinomialLogit(**GAUSSIAN).fit(X, y)
    scaled = MultinomialLogit(**GAUSSIAN).fit((X * scale).astype(dtype), y)
    assert_allclose(
        scaled.predict_proba((X * scale).astype(dtype)), plain.predict_proba(X), atol=5e-3
    )


def test_rows_that_define_no_covariance(rng):
    X, y = many(rng, k=6, n=5, d=4)
    X = np.hstack([X, X, np.ones((30, 1)), np.zeros((30, 1)), y[:, None]])  # dependent, constant
    for rows, labels in ((X, y), (np.vstack([X, X]), np.r_[y, y]), (X[::5], y[::5])):
        model = MultinomialLogit(**GAUSSIAN).fit(rows, labels)
        assert np.isfinite(model.coef_).all()
        assert model.score(rows, labels) == 1
    narrow = MultinomialLogit(**GAUSSIAN).fit(X[:4], y[[0, 0, 0, 5]])  # a class of one row
    assert np.isfinite(narrow.predict_proba(X)).all()


def test_far_columns(classes):
    X, y, _ = classes
    near = MultinomialLogit(**GAUSSIAN).fit(X, y)
    far = MultinomialLogit(**GAUSSIAN).fit(X + 1e5, y)
    assert_allclose(far.predict_proba(X + 1e5), near.predict_proba(X), atol=2e-2)


def test_two_classes(classes):
    X, y, _ = classes
    model = MultinomialLogit(**GAUSSIAN).fit(X, y > 3)
    assert model.coef_.shape == (1, 9)
    logit = X @ model.coef_[0] + model.intercept_[0]
    assert_allclose(model.predict_proba(X), softmax(np.c_[np.zeros(160), logit], axis=1), rtol=1e-5)


def test_unsupported_arguments_are_refused(classes):
    X, y, _ = classes
    with pytest.raises(ValueError, match="fit_intercept: expected True with solver='gaussian'"):
        MultinomialLogit(solver="gaussian", fit_intercept=False).fit(X, y)
    with pytest.raises(ValueError, match="penalties: expected None with solver='gaussian'"):
        list(MultinomialLogit(solver="gaussian").iterate_path(X, y, [0.1]))


def test_auto_is_gaussian_with_many_classes(rng):
    X, y = many(rng, n=3)
    auto = MultinomialLogit(solver="auto")
    assert auto.fit(X, y).stop_reason_ == "closed form"
    assert auto.fit(X[y < 100], y[y < 100]).stop_reason_ == "converged"
    for asked in ({"l2": 1.0}, {"penalty": 0.1}):
        assert MultinomialLogit(solver="auto", **asked).fit(X, y).stop_reason_ != "closed form"


def test_gem_classifier_of_many_classes(rng, tmp_path):
    X, y = many(rng)
    options = {"pairs": ("random_groups", 60)}
    model = gem_classifier(**options).fit(X, y)
    assert model.logit_.stop_reason_ == "closed form"
    assert model.score(X, y) > 0.9
    save(model, tmp_path / "many.efm")
    assert_array_equal(load(tmp_path / "many.efm").predict_proba(X), model.predict_proba(X))
    blocks = gem_classifier(**options).fit(ArrayBlocks(X, y, block_rows=100))
    assert np.mean(blocks.predict(X) == model.predict(X)) > 0.98

"""Class moments for any type, split and order of the samples, and any number of threads."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from eigenfeat import ClassMoments
from problems import EPS, EPS32, assert_agrees, sample

FORMS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "columns": np.asfortranarray,
    "columns with gaps": lambda X: np.asfortranarray(np.vstack([X, X]))[: len(X)],
    "columns backwards": lambda X: np.asfortranarray(X[:, ::-1])[:, ::-1],
    "every other row": lambda X: np.asfortranarray(np.repeat(X, 2, axis=0))[::2],
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "list": lambda X: X.tolist(),
    "frame": pd.DataFrame,
    "int8": lambda X: np.rint(X).astype(np.int8),
    "uint8": lambda X: np.rint(np.abs(10 * X)).astype(np.uint8),
    "columns of uint8": lambda X: np.asfortranarray(np.rint(np.abs(10 * X)).astype(np.uint8)),
    "float16": lambda X: X.astype(np.float16),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [5, 300])  # the samples of many columns are kept
@pytest.mark.parametrize("form", FORMS)
def test_every_dense_form_agrees_with_the_reference(rng, form, d, weighted):
    """The core's own tests compare bits of columns and bytes."""
    X, y = sample(rng, n=200 if d == 5 else 40, d=d, scale=3.0)
    weights = rng.uniform(0, 2, len(y)) if weighted else None
    rows = FORMS[form](X)
    moments = ClassMoments().update(rows, y, weights)
    eps = EPS32 if form == "float32" else EPS
    assert_agrees(moments, np.asarray(rows), y, weights, eps=eps)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("density", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("indices", [np.int32, np.int64])
def test_sparse_rows_agree_with_the_reference(rng, dtype, density, indices):
    X, y = sample(rng, n=120, d=40)
    X[rng.random(X.shape) > density] = 0
    rows = sp.csr_array(X.astype(dtype))
    rows.indices, rows.indptr = rows.indices.astype(indices), rows.indptr.astype(indices)
    weights = rng.uniform(0, 2, len(y))
    eps = EPS32 if dtype == np.float32 else EPS
    for w in (None, weights):
        moments = ClassMoments().update(rows, y, w)
        assert_agrees(moments, X.astype(dtype), y, w, eps=eps)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(cuts=st.lists(st.integers(0, 60), max_size=6), loc=st.sampled_from([0.0, 1e3, -1e6]))
def test_splitting_rows_changes_rounding_only(cuts, loc):
    rng = np.random.default_rng(5)
    X, y = sample(rng, n=60, d=4, loc=loc)
    whole, parts, merged = ClassMoments().update(X, y), ClassMoments(), ClassMoments()
    for part in np.split(np.arange(60), sorted(cuts)):
        parts.update(X[part], y[part])
        merged += ClassMoments().update(X[part], y[part])
    for c in range(3):
        for other in (parts, merged):
            assert other.weight(c) == whole.weight(c)
            assert_allclose(other.mean(c), whole.mean(c), rtol=8 * EPS, atol=8 * EPS)
            assert_allclose(other.covariance(c), whole.covariance(c), rtol=0, atol=1e3 * EPS)


def test_merge_joins_classes_by_label_and_leaves_the_other_alone(rng):
    X, y = sample(rng)
    names = np.array(["c", "a", "b"])[y]
    first, second = names != "b", names != "a"
    half = rng.random(len(y)) < 0.5
    a = ClassMoments().update(X[half & first], names[half & first])
    b = ClassMoments().update(X[~half & second], names[~half & second])
    before = b.copy()
    total = a + b
    assert b == before
    used = (half & first) | (~half & second)
    assert total.classes_.tolist() == ["a", "b", "c"]
    assert_agrees(total, X[used], names[used])


def test_merge_edges(rng):
    X, y = sample(rng)
    moments = ClassMoments().update(X, y)
    assert ClassMoments() + moments == moments
    assert moments + ClassMoments() == moments
    assert sum([moments, moments], start=ClassMoments()).weight(0) == 2 * moments.weight(0)
    doubled = moments.copy()
    doubled.merge(doubled)
    assert doubled == moments + moments
    assert_allclose(doubled.covariance(1), moments.covariance(1), rtol=1e-12)
    with pytest.raises(ValueError, match="other: expected 5 columns, got 4"):
        moments.merge(ClassMoments().update(X[:, :4], y))
    with pytest.raises(ValueError, match="other: expected ClassMoments"):
        moments.merge(X)
    with pytest.raises(ValueError, match=r"expected labels in .*got 2"):
        ClassMoments(classes=[0, 1]).merge(moments)
    with pytest.raises(TypeError):
        moments + 3


@pytest.mark.parametrize("d", [2, 400])  # with many columns, samples are kept
def test_classes_without_samples_are_merged(d):
    moments = ClassMoments().update(np.eye(2, d), ["a", "b"])
    if d == 2:
        moments.covariance("a")
    moments.merge(ClassMoments(classes=["b", "c"]))
    assert moments.classes_.tolist() == ["a", "b", "c"]
    assert moments.active_classes.tolist() == ["a", "b"]
    assert moments.weight("c") == 0
    assert moments == moments.copy()
    moments.update(np.eye(2, d), ["c", "d"])
    assert [moments.weight(c) for c in "abcd"] == [1, 1, 1, 1]


def test_zero_weights(rng):
    X, y = sample(rng, k=2)
    moments = ClassMoments().update(X, y, (y == 0).astype(float))
    assert moments.classes_.tolist() == [0, 1]
    assert moments.weight(1) == 0
    with pytest.raises(ValueError, match="positive weight, got 1"):
        moments.second_moment(1)
    assert moments.update(X[y == 1], y[y == 1]).weight(1) == (y == 1).sum()
    assert_allclose(moments.covariance(1), np.cov(X[y == 1].T, bias=True), atol=1e-13)


def test_one_row_one_class_and_no_rows():
    moments = ClassMoments().update([[3.0, -4.0]], ["only"])
    assert moments.mean("only").tolist() == [3.0, -4.0]
    assert moments.covariance("only").tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert moments.second_moment("only").tolist() == [[9.0, -12.0], [-12.0, 16.0]]
    before = moments.copy()
    assert moments.update(np.empty((0, 2)), []) == before
    assert moments.update(sp.csr_array((0, 2)), np.array([], dtype=str)) == before
    assert repr(moments) == "ClassMoments(1 class, 2 features, weight 1)"


@pytest.mark.parametrize("d", [3, 300])  # samples of many columns are kept
def test_variances_of_several_classes(rng, d):
    assert ClassMoments().variances([]) == []
    X, y = rng.standard_normal((40, d)), np.arange(40) % 3
    found = ClassMoments().update(X, y).variances([2, 0])
    assert_allclose(found, [X[y == c].var(axis=0) for c in (2, 0)])


def test_dtype_is_the_type_of_the_products(rng):
    X, y = sample(rng, n=3000)
    rows = X.astype(np.float32)
    wide = ClassMoments(dtype="float64").update(rows, y)
    assert wide == ClassMoments().update(rows.astype(float), y)
    narrow = ClassMoments(dtype=np.float32).update(X, y)
    assert narrow == ClassMoments().update(rows, y)
    assert narrow != wide
    assert (narrow.dtype, ClassMoments().dtype) == (np.float32, None)
    with pytest.raises(ValueError, match="X: expected values that fit float32, got 1e\\+300"):
        ClassMoments(dtype="float32").update([[1e300]], [0])
    for bad in (int, "float16", "nonsense", object()):
        with pytest.raises(ValueError, match="dtype: expected None, float32 or float64"):
            ClassMoments(dtype=bad)


def test_active_classes_have_weight():
    moments = ClassMoments(["a", "b", "c"])
    assert moments.active_classes.tolist() == ClassMoments().active_classes.tolist() == []
    moments.update(np.eye(4), ["a", "c", "c", "b"], [1.0, 2.0, 0.0, 0.0])
    assert moments.active_classes.tolist() == ["a", "c"]
    assert moments.classes_.tolist() == ["a", "b", "c"]

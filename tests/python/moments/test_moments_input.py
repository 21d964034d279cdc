"""Class moments: equality, errors, given classes, and the type of products."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import eigenfeat as ef
from eigenfeat import ClassMoments
from problems import sample


def test_equality_ignores_the_order_of_arrival(rng):
    X, y = sample(rng, n=6, k=3)
    parts = [(X[y == c], y[y == c]) for c in range(3)]
    forward, backward = ClassMoments(), ClassMoments()
    for part in parts:
        forward.update(*part)
    for part in parts[::-1]:
        backward.update(*part)
    assert forward == backward
    assert forward != backward.update(X, y)
    assert ClassMoments() == ClassMoments()
    assert ClassMoments() != forward
    assert forward != "something else"
    with pytest.raises(TypeError):
        hash(forward)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", ["float64", "float32", "columns", "csr", "csr32"])
def test_a_bad_entry_is_located_and_changes_nothing(rng, value, form):
    X, y = sample(rng, n=300, d=7)
    moments = ClassMoments().update(X, y)
    before = moments.copy()
    X[211, 4] = value
    y[5] = 77  # a new label in the refused batch
    rows = X.astype(np.float32) if form.endswith("32") else X
    rows = np.asfortranarray(rows) if form == "columns" else rows
    rows = sp.csr_array(rows) if form.startswith("csr") else rows
    with pytest.raises(ValueError, match=r"row 211\b.*column 4\b"):
        moments.update(rows, y)
    assert moments == before
    assert moments.classes_.tolist() == [0, 1, 2]
    assert (moments + moments).weight(0) == 2 * before.weight(0)
    moments.update(X[:100], y[:100])  # the accumulator still works
    assert 77 in moments.classes_


def test_a_bad_first_batch_leaves_an_empty_accumulator():
    moments = ClassMoments()
    with pytest.raises(ValueError, match="row 0"):
        moments.update([[np.nan]], [1])
    assert moments == ClassMoments()
    assert not hasattr(moments, "n_features_in_")
    assert repr(moments) == "ClassMoments(no samples yet)"


def test_misuse_is_named(rng):
    X, y = sample(rng)
    n = len(y)
    moments = ClassMoments().update(X, y)
    before = moments.copy()
    cases = [
        ((X[:, :4], y), {}, "X: expected 5 columns, got 4"),
        ((X[0], y), {}, "X: expected a 2-D array"),
        ((X[:, :, None], y), {}, "X: expected a 2-D array"),
        ((X[:, :0], y), {}, "X: expected at least one column"),
        (([["a", "b"]], [0]), {}, "X: expected an array of real numbers"),
        (([[1, 2], [3]], [0, 1]), {}, "X: expected an array of real numbers"),
        ((X, y[:-1]), {}, f"y: expected {n} labels, one per sample, got {n - 1}"),
        ((X, X), {}, "y: expected a 1-D array"),
        ((X, np.array(["a"] * n)), {}, "y: expected labels that can be ordered.*int, str"),
        ((X, np.zeros(n, dtype="M8[s]")), {}, "y: expected numbers or strings"),
        (
            (X, y, -np.ones(n)),
            {},
            r"sample_weight: expected finite numbers >= 0, got -1.0 in row 0",
        ),
        ((X, y, np.full(n, np.nan)), {}, "sample_weight: expected finite numbers"),
        ((X, y, np.ones(n - 1)), {}, f"sample_weight: expected shape \\({n},\\)"),
        ((X, y), {"n_threads": 0}, "n_threads: expected None or an integer >= 1, got 0"),
    ]
    for arguments, options, message in cases:
        with pytest.raises(ValueError, match=message):
            moments.update(*arguments, **options)
        assert moments == before


def test_given_classes():
    moments = ClassMoments(classes=["b", "a", "c"])
    assert moments.classes_.tolist() == ["a", "b", "c"]
    moments.update([[1.0], [2.0]], ["a", "b"])
    before = moments.copy()
    with pytest.raises(ValueError, match=r"y: expected labels in \['a', 'b', 'c'\], got 'z'"):
        moments.update([[1.0]], ["z"])
    assert moments == before
    assert moments.weight("c") == 0
    with pytest.raises(
        ValueError, match="class: expected a class with samples of positive weight, got 'c'"
    ):
        moments.mean("c")
    for bad in (["a", "a"], [], [["a"]], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="classes: expected"):
            ClassMoments(classes=[bad] if bad == [["a"]] else bad)


def test_unknown_class_is_a_value_error_and_a_key_error():
    moments = ClassMoments().update([[1.0], [2.0]], [0, 1])
    for kind in (ValueError, KeyError):
        with pytest.raises(kind, match=r"class: expected one of \[0, 1\], got 5") as info:
            moments.covariance(5)
    assert not str(info.value).startswith('"')
    with pytest.raises(ValueError, match="class: expected one of"):
        moments.weight([0])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_values_whose_squares_overflow_are_refused(rng, form):
    X, y = sample(rng)
    moments = ClassMoments().update(X, y)
    before = moments.copy()
    X[3, 1] = -1e155
    with pytest.raises(ValueError, match=r"X: expected magnitudes below 1e150.*row 3, column 1"):
        moments.update(form(X), y)
    assert moments == before


def test_too_many_classes_is_an_error_before_memory_is_taken():
    moments = ClassMoments()
    with pytest.raises(MemoryError, match=r"take 8,000,000,000,000,000 bytes"):
        moments.update(sp.csr_array((10, 10**7)), np.arange(10))
    assert moments == ClassMoments()
    kept = ClassMoments(classes=np.arange(100_000)).update(np.zeros((1, 20_000)), [0])
    with pytest.raises(MemoryError, match="but the machine has"):  # not before a matrix is needed
        kept.covariance(0)
    assert kept.weight(0) == 1


def test_products_in_float32_survive_saving(rng, tmp_path):
    X, y = sample(rng)
    assert ClassMoments().update(X.astype(np.float64), y).product_dtype == np.float64
    assert ClassMoments().update(X.astype(np.uint8), y).product_dtype == np.float64
    single = ClassMoments().update(X.astype(np.float32), y)
    assert ClassMoments(dtype="float32").update(sp.csr_array(X), y).product_dtype == np.float32
    ef.save(single, tmp_path / "moments")
    for other in (
        single.copy(),
        pickle.loads(pickle.dumps(single)),
        ef.load(tmp_path / "moments"),
        ClassMoments() + single,
        single.copy().update(X.astype(np.float64), y),
    ):
        assert other.product_dtype == np.float32

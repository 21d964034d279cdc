"""Pairs of classes: pairs of each kind are distinct and have every class."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eigenfeat import ClassMoments
from eigenfeat.pencils import class_pairs, pair_directions
from eigenfeat.pencils.confusion import confusion_pairs, confusion_pairs_from

KINDS = ["all", "hypercube"]


def assert_sound(pairs, k):
    assert pairs.dtype == np.int64
    assert pairs.shape[1] == 2
    assert np.all(pairs[:, 0] != pairs[:, 1])
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    assert set(pairs.ravel().tolist()) == set(range(k))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(k=st.integers(2, 70), seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(KINDS))
def test_every_class_occurs(k, seed, kind):
    assert_sound(class_pairs(np.arange(k), kind, random_state=seed), k)


def test_all_gives_every_pair():
    assert class_pairs(["x", "y", "z"]).tolist() == [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]


@pytest.mark.parametrize("k", [2, 3, 4, 5, 8, 9, 33, 183])
def test_hypercube_pairs_come_both_ways_and_are_few(k):
    for seed in range(20 if k < 50 else 1):
        pairs = class_pairs(np.arange(k), "hypercube", random_state=seed)
        assert_sound(pairs, k)
        both = {tuple(p) for p in pairs.tolist()}
        assert both == {(b, a) for a, b in both}
        assert len(pairs) <= k * np.ceil(np.log2(k))
        # Neighbours differ in one bit, so that the graph has no odd cycle: two-colour it.
        colour = {}
        for start in range(k):
            stack = [(start, colour.get(start, 0))]
            while stack:
                node, c = stack.pop()
                if colour.setdefault(node, c) != c:
                    raise AssertionError("neighbours of the same parity")
                stack += [(b, 1 - c) for a, b in both if a == node and b not in colour]


def test_a_full_cube_has_all_its_edges():
    assert len(class_pairs(np.arange(16), "hypercube", random_state=0)) == 2 * 32
    assert len(class_pairs(np.arange(2), "hypercube")) == 2


@pytest.mark.parametrize("kind", KINDS[1:])
def test_random_state_determines_the_pairs(kind):
    labels = np.arange(20)
    first = class_pairs(labels, kind, random_state=4)
    assert np.array_equal(first, class_pairs(labels, kind, random_state=4))
    assert np.array_equal(first, class_pairs(labels, kind, random_state=np.random.RandomState(4)))
    assert not np.array_equal(first, class_pairs(labels, kind, random_state=5))
    generators = [np.random.default_rng(1) for _ in range(2)]
    one, two = (class_pairs(labels, kind, random_state=g) for g in generators)
    assert np.array_equal(one, two)
    assert_sound(class_pairs(labels, kind), 20)


def test_explicit_pairs_keep_their_order():
    labels = np.array(["b", "a", "c"])
    pairs = class_pairs(labels, [("c", "a"), ("a", "b")])
    assert labels[pairs].tolist() == [["c", "a"], ["a", "b"]]
    assert class_pairs([3, 1], np.array([[3, 1]])).tolist() == [[0, 1]]


# ---- confusion


def cloud(rng, k=7, d=4, n=50):
    y = np.arange(k * n) % k
    maps = rng.standard_normal((d, d))
    return (rng.standard_normal((k, d))[y] * 2 + rng.standard_normal((k * n, d))) @ maps, y


def squared_distances(X, y, ridge, scale=1.0):
    """Mahalanobis distances of class means, by plain loops."""
    X, labels = X / scale, np.unique(y)
    within = np.concatenate([X[y == c] - X[y == c].mean(axis=0) for c in labels])
    pooled = within.T @ within / len(X)
    pooled += ridge * np.trace(pooled) / len(pooled) * np.eye(len(pooled))
    means = np.array([X[y == c].mean(axis=0) for c in labels])
    gaps = means[:, None] - means[None]
    return np.einsum("ija,ab,ijb->ij", gaps, np.linalg.inv(pooled), gaps)


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_confusion_takes_the_nearest_classes(rng, ridge):
    X, y = cloud(rng)
    scale = np.array([1.0, 2.0, 0.1, 5.0])
    for divisors in (None, scale):
        found = confusion_pairs(ClassMoments().update(X, y), ridge=ridge, scale=divisors)
        distances = squared_distances(X, y, ridge, 1.0 if divisors is None else divisors)
        np.fill_diagonal(distances, np.inf)
        nearest = np.argsort(distances, axis=1)[:, :3]
        edges = {(i, int(j)) for i in range(7) for j in nearest[i]}
        assert found == sorted(edges | {(j, i) for i, j in edges})


@settings(max_examples=40, deadline=None, derandomize=True)
@given(k=st.integers(2, 30), seed=st.integers(0, 1000), share=st.floats(0, 1))
def test_confusion_with_a_budget_covers_every_class(k, seed, share):
    rng = np.random.default_rng(seed)
    moments = ClassMoments().update(*cloud(rng, k, n=2))
    n_pairs = max(1, round(share * k * (k - 1)))
    found = confusion_pairs(moments, n_pairs=n_pairs)
    assert_sound(np.array(found), k)
    assert {(b, a) for a, b in found} == set(found)
    assert len(found) <= max(n_pairs + 1, 2 * (k - 1))
    assert len(found) >= n_pairs


def test_confusion_takes_labels_and_leaves_out_classes_without_rows(rng):
    X, y = cloud(rng, k=4)
    names = np.array(["w", "x", "y", "z"])
    plain = confusion_pairs(ClassMoments().update(X, y), 4)
    found = confusion_pairs(ClassMoments(classes=[*"vwxyz"]).update(X, names[y]), 4)
    assert found == [(names[i], names[j]) for i, j in plain]
    one_row_each = ClassMoments().update(X[:4], y[:4])
    assert_sound(np.array(confusion_pairs(one_row_each)), 4)


def test_confused_pairs_of_predictions():
    true = ["a", "a", "a", "b", "b", "c", "c", "d", "e"]
    guess = ["a", "b", "c", "a", "b", "a", "c", "d", "e"]
    both = [("a", "b"), ("a", "c"), ("b", "a"), ("c", "a"), ("d", "e"), ("e", "d")]
    assert confusion_pairs_from(true, guess) == both
    true += ["c"] * 3 + ["b"]
    guess += ["b"] * 3 + ["b"]
    wide = confusion_pairs_from(true, guess, 8)
    assert wide == sorted([*both, ("b", "c"), ("c", "b")])
    least = confusion_pairs_from(true, guess, 1)  # b and c first, then a with b: all are covered
    assert least == [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("d", "e"), ("e", "d")]
    perfect = confusion_pairs_from([0, 1, 2], [0, 1, 2])
    assert_sound(np.array(perfect), 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: confusion_pairs(3), "moments: expected ClassMoments, got 3"),
        (lambda m: confusion_pairs(m, n_pairs=43), r"n_pairs: expected an integer in 1\.\.42"),
        (lambda m: confusion_pairs(m, ridge=-1), "ridge: expected a number >= 0"),
        (lambda m: confusion_pairs(m, scale=[1, 2]), r"scale: expected shape \(4,\)"),
        (lambda m: confusion_pairs(ClassMoments().update([[1.0]], [1])), "moments: expected at"),
        (
            lambda m: confusion_pairs_from([0, 1], [0]),
            "y_pred: expected 2 labels, as many",
        ),
        (lambda m: confusion_pairs_from([0, 0], [0, 0]), "classes: expected at least 2"),
        (lambda m: confusion_pairs_from([0, 1], [0, 1], 3), r"n_pairs: .* in 1\.\.2, got 3"),
    ],
)
def test_misuse_of_confusion_is_named(rng, call, message):
    moments = ClassMoments().update(*cloud(rng))
    with pytest.raises(ValueError, match=message):
        call(moments)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ([(0, 1)], r"expected every class in some pair, got none with \[2\]"),
        ([(0, 1), (1, 9)], "unknown class in pair 1.*got 9"),
        ([(0, 0), (1, 2)], r"expected two different classes, got \(0, 0\)"),
        ([(0, 1), (1, 2), (0, 1)], r"got \(0, 1\) twice"),
        ([(0, 1, 2)], "expected a kind or a list"),
        (7, "expected a kind or a list"),
        ([], "got none with"),
        ("neighbours", "expected 'all', 'hypercube'"),
    ],
)
def test_misuse_is_named(kind, message):
    with pytest.raises(ValueError, match=message):
        class_pairs([0, 1, 2], kind)


@pytest.mark.parametrize(
    ("pairs", "bound"),
    [
        (("confusion", 43), r"in 1\.\.42"),
        (("random_groups", 0), ">= 1"),
        (("confusion", 0), "in 1"),
    ],
)
def test_a_wrong_number_of_pairs_names_the_parameter_pairs(rng, pairs, bound):
    moments = ClassMoments().update(*cloud(rng))
    with pytest.raises(ValueError, match=f"^pairs: expected an integer {bound}"):
        pair_directions(moments, pairs)

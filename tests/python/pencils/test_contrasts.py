"""Problems between groups of classes: every matrix against sums over rows."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from eigenfeat import GEM, ClassMoments
from eigenfeat.exceptions import SingularDenominatorError
from eigenfeat.pencils import pair_directions
from eigenfeat.pencils.contrasts import Contraction, Contrasts, class_tree, one_vs_rest
from eigenfeat.pencils.problems import Unions


def sample(rng, n=300, d=5, k=4, loc=2.0):
    """Rows, labels and weights; classes with covariances, means and sizes of their own."""
    y = np.concatenate([np.arange(k), np.arange(k), rng.integers(0, k, n - 2 * k) ** 2 % k])
    maps = rng.standard_normal((k, d, d))
    X = np.einsum("nij,nj->ni", maps[y], rng.standard_normal((n, d)))
    return X + loc * rng.standard_normal((k, d))[y], y, rng.random(n) + 0.1


def row_moments(X, factors):
    """Mean, second moment and covariance of rows with these factors, by plain sums."""
    total = factors.sum()
    mean = sum(f * x for f, x in zip(factors, X, strict=True)) / total
    second = sum(f * np.outer(x, x) for f, x in zip(factors, X, strict=True)) / total
    centred = X - mean
    covariance = sum(f * np.outer(x, x) for f, x in zip(factors, centred, strict=True)) / total
    return mean, second, covariance


def expected_pencil(X, row_weights, above, below, *, denominator, ridge, constant, scale):
    """The two matrices from rows; `above` and `below` are the rows' class weights u."""
    d = X.shape[1]
    centre = row_weights @ X / row_weights.sum() if constant else np.zeros(d)
    rows = (X - centre) / scale
    mean_a, second_a, _ = row_moments(rows, row_weights * above)
    mean_b, second_b, covariance_b = row_moments(rows, row_weights * below)
    lower = second_b if denominator == "second_moment" else covariance_b
    lower = lower + ridge * np.trace(lower) / d * np.eye(d)
    if denominator == "covariance":  # both about the mean below
        return row_moments(rows - mean_b, row_weights * above)[1], lower
    if not constant:
        return second_a, lower
    one = np.ones((1, 1))
    return (
        np.block([[second_a, mean_a[:, None]], [mean_a[None], one]]),
        np.block([[lower, mean_b[:, None]], [mean_b[None], one]]),
    )


def directions_of(found, problem):
    return np.flatnonzero((found.pairs == found.solved_pairs[problem]).all(axis=1))


@pytest.mark.parametrize(
    ("denominator", "constant", "scaled"),
    [
        ("second_moment", False, False),
        ("second_moment", True, True),
        ("covariance", False, True),
        ("covariance", True, False),
    ],
)
def test_a_contraction_averages_the_rows_of_its_classes(rng, denominator, constant, scaled):
    X, y, weights = sample(rng)
    moments = ClassMoments().update(X, y, weights)
    above, below = rng.random((2, 6, 4)) * (rng.random((2, 6, 4)) < 0.7)
    above[:, 0] += 0.1
    below[:, 3] += 0.1
    scale = np.array([1.0, 0.1, 3.0, 7.0, 20.0]) if scaled else None
    options = {"denominator": denominator, "ridge": 0.2, "constant": constant}
    contrasts = Contrasts.of(above, below)
    found = pair_directions(moments, contrasts, n_directions=3, scale=scale, **options)
    assert found.solved_pairs.tolist()[5] == ["above5", "below5"]
    for p in range(6):
        factors = {"above": above[p][y], "below": below[p][y]}
        A, B = expected_pencil(X, weights, scale=1.0 if scale is None else scale,
                               **factors, **options)  # fmt: skip
        values = scipy.linalg.eigh(A, B, eigvals_only=True)[::-1][:3]
        columns = directions_of(found, p)
        assert_allclose(found.eigenvalues[columns], values, rtol=1e-9)
        responses = X @ found.vectors[:, columns]
        if found.offset is not None:
            responses += found.offset[columns]
        got = (weights * factors["above"]) @ responses**2 / (weights @ factors["above"])
        assert_allclose(got, values, rtol=1e-9)
        if denominator == "covariance":  # footnote 1: both matrices are about the mean below
            assert_allclose((weights * factors["below"]) @ responses, 0.0, atol=1e-9)


@pytest.mark.parametrize("denominator", ["second_moment", "covariance"])
def test_one_vs_rest_is_pairs_of_relabelled_rows(rng, denominator):
    X, y, weights = sample(rng, k=5)
    options = {"denominator": denominator, "constant": True, "n_directions": 2, "ridge": 0.1}
    found = pair_directions(ClassMoments().update(X, y, weights), "one_vs_rest", **options)
    names = [[a, b] for c in "01234" for a, b in ((c, "rest"), ("rest", c))]
    assert found.solved_pairs.tolist() == names
    for c in range(5):
        two = ClassMoments().update(X, np.where(y == c, "one", "rest"), weights)
        for p, pair in ((2 * c, ("one", "rest")), (2 * c + 1, ("rest", "one"))):
            expected = pair_directions(two, "all", **options)
            mine = directions_of(found, p)
            theirs = np.flatnonzero((expected.pairs == pair).all(axis=1))
            assert_allclose(found.eigenvalues[mine], expected.eigenvalues[theirs], rtol=1e-10)
            assert_allclose(found.vectors[:, mine], expected.vectors[:, theirs], atol=1e-8)
            assert_allclose(found.offset[mine], expected.offset[theirs], atol=1e-8)


@pytest.mark.parametrize("kind", ["one_vs_rest", "class_tree"])
def test_two_classes_make_the_plain_pairs(rng, kind):
    moments = ClassMoments().update(*sample(rng, k=2))
    plain = pair_directions(moments, "all", 0.2, constant=True)
    found = pair_directions(moments, kind, 0.2, constant=True)
    same = {tuple(pair): p for p, pair in enumerate(found.solved_pairs.tolist())}
    assert set(same) == {("0", "1"), ("1", "0")}
    for pair in ((0, 1), (1, 0)):
        theirs = np.flatnonzero((plain.pairs == pair).all(axis=1))
        mine = directions_of(found, same[tuple(map(str, pair))])
        assert_array_equal(found.eigenvalues[mine], plain.eigenvalues[theirs])
        assert_array_equal(found.vectors[:, mine], plain.vectors[:, theirs])


def test_only_the_ratios_of_weights_matter(rng):
    moments = ClassMoments().update(*sample(rng))
    above, below = rng.random((2, 3, 4))
    reference = pair_directions(moments, Contrasts.of(above, below), 0.1, 2)
    for factor in (1e-200, 4.0, 1e200):
        found = pair_directions(moments, Contrasts.of(factor * above, below / factor), 0.1, 2)
        assert_allclose(found.eigenvalues, reference.eigenvalues, rtol=1e-12)


def test_weights_of_no_rows_and_classes_without_rows(rng):
    X, y, _ = sample(rng)
    moments = ClassMoments(classes=[0, 1, 2, 3, 7]).update(X, y)
    reference = pair_directions(ClassMoments().update(X, y), "one_vs_rest", 0.1, 2)
    found = pair_directions(moments, "one_vs_rest", 0.1, 2)
    assert_array_equal(found.vectors, reference.vectors)
    found = pair_directions(moments, one_vs_rest([0, 1, 2, 3]), 0.1, 2)
    assert_array_equal(found.vectors, reference.vectors)
    with pytest.raises(ValueError, match="pairs: expected classes with samples in '7', got none"):
        pair_directions(moments, one_vs_rest([0, 1, 2, 3, 7]))
    with pytest.raises(ValueError, match=r"pairs: expected classes of the moments, got \[9\]"):
        pair_directions(moments, one_vs_rest([0, 1, 9]))
    some = pair_directions(moments, one_vs_rest([0, 1, 3]), 0.1, 1)  # the rest of these three
    two = ClassMoments().update(X[y != 2], np.where(y == 3, 3, 0)[y != 2])
    assert_allclose(some.eigenvalues[-1], pair_directions(two, [(0, 3)], 0.1, 1).eigenvalues[0])


def test_the_rest_of_a_huge_class_keeps_its_digits(rng):
    """The moments of small classes would be lost in a difference from the total."""
    X, y, _ = sample(rng, k=9)
    X[y == 4] *= 1e12
    moments = ClassMoments().update(X, y)
    unions = Unions(moments, list(range(9)))
    rest = Contraction(np.array([4]), np.zeros(1), others=1.0)
    mean, covariance = unions.of(rest)
    expected_mean, _, expected = row_moments(X, (y != 4).astype(float))
    assert_allclose(mean, expected_mean, rtol=1e-11)
    assert_allclose(covariance, expected, rtol=1e-11, atol=1e-12 * np.abs(expected).max())
    assert_array_equal(covariance, covariance.T)


@pytest.mark.parametrize("constant", [False, True])
def test_a_feature_without_variance_in_a_union_is_singular(rng, constant):
    X, y, _ = sample(rng, k=6)
    X[:, 2] = 0.1 + (y == 5)  # varies in no union without class 5
    moments = ClassMoments().update(X, y)
    options = {"denominator": "covariance", "constant": constant, "n_directions": 2}
    contrasts = Contrasts.of([[0, 0, 0, 0, 0, 1]], [[1, 1, 1, 1, 1, 0]], [("last", "others")])
    message = r"denominator of contrast \('last', 'others'\) is .* ridge=0; ridge=.* suffices"
    with pytest.raises(SingularDenominatorError, match=message) as info:
        pair_directions(moments, contrasts, 0.0, **options)
    ridge = float(str(info.value).split("ridge=")[-1].split(" ")[0])
    assert pair_directions(moments, contrasts, ridge, **options).status.tolist() == [0]


# ---- the tree


def clusters(rng, k=12, d=4):
    """Three groups of classes far apart, each with pairs of classes near each other."""
    far = np.repeat(100.0 * np.eye(3, d), k // 3, axis=0)
    near = np.repeat(5.0 * rng.standard_normal((k // 2, d)), 2, axis=0)
    y = np.repeat(np.arange(k), 10)
    means = far + near + 0.5 * rng.standard_normal((k, d))
    return means[y] + 0.1 * rng.standard_normal((len(y), d)), y


def test_the_tree_splits_all_classes_down_to_single_classes(rng):
    X, y = clusters(rng)
    tree = class_tree(ClassMoments().update(X, y))
    above, below = tree.weights()
    assert len(tree) == 22
    assert_array_equal(above[0::2], below[1::2])
    assert_array_equal(above[1::2], below[0::2])
    groups = {frozenset(np.flatnonzero(a + b).tolist()) for a, b in zip(above, below, strict=True)}
    sides = {frozenset(np.flatnonzero(a).tolist()) for a in above}
    assert groups - sides == {frozenset(range(12))}
    assert {s for s in sides if len(s) == 1} == {frozenset([c]) for c in range(12)}
    assert {s for s in sides if len(s) > 1} == groups - {frozenset(range(12))}
    far = [frozenset(range(first, first + 4)) for first in (0, 4, 8)]
    assert set(far) <= groups  # no split goes through a cluster before all clusters are apart
    for (one, other), a, b in zip(tree.names.tolist(), above, below, strict=True):
        assert tree.members(one) == np.flatnonzero(a).tolist()
        assert tree.members(other) == np.flatnonzero(b).tolist()
    with pytest.raises(ValueError, match="name: expected one of the contrasts' names, got 'node0'"):
        tree.members("node0")


def test_the_tree_depends_on_means_only(rng):
    X, y = clusters(rng)
    moments = ClassMoments().update(X, y)
    tree = class_tree(moments)
    again = class_tree(moments.copy())
    assert_array_equal(tree.names, again.names)
    assert_array_equal(tree.weights()[0], again.weights()[0])
    renamed = rng.permutation(12)
    other = class_tree(ClassMoments().update(X, renamed[y], np.exp(y / 3.0)))
    sets = {frozenset(np.flatnonzero(a).tolist()) for a in other.weights()[0]}
    assert sets == {frozenset(renamed[np.flatnonzero(a)].tolist()) for a in tree.weights()[0]}
    scaled = class_tree(ClassMoments().update(X * 7, y), scale=np.full(4, 7.0))
    assert_array_equal(scaled.names, tree.names)
    with pytest.raises(ValueError, match="scale: expected shape"):
        class_tree(moments, scale=[1.0])


def test_the_tree_is_balanced_whatever_the_means():
    k = 200
    X = np.exp(np.arange(k) / 10.0)[:, None] * np.ones((1, 2))  # gaps grow: widest at the end
    tree = class_tree(ClassMoments().update(X, np.arange(k)))
    assert sum(len(c.indices) for c in tree.above) <= k * np.log(k) / np.log(4 / 3)
    equal = class_tree(ClassMoments().update(np.ones((64, 2)), np.arange(64)))
    assert sum(len(c.indices) for c in equal.above) == 64 * 6
    rows = np.arange(5)[:, None] * [[1e-200, 1e-190]]
    assert len(class_tree(ClassMoments().update(rows, np.arange(5)))) == 8


# ---- misuse


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 0]], [[0, 1], [1, 0]]), r"weights_below: expected as many rows as above \(1\), got"),
        (([[1, 0]], [[0, 1, 1]]), r"weights_below: expected shape \(P, 2\), got \(1, 3\)"),
        (([1, 0], [0, 1]), r"weights_above: expected shape \(P, k\), got \(2,\)"),
        (([[1, -1]], [[0, 1]]), "weights_above: expected finite numbers >= 0, got -1.0 in row 0"),
        (([[1, 0]], [[np.nan, 1]]), "weights_below: expected finite numbers >= 0"),
        (([[1, 0]], [[0, 0]]), "weights_below: expected a weight > 0, got none in row 0"),
        (([["x", 1]], [[0, 1]]), "weights_above: expected an array of real numbers"),
        ((np.empty((0, 2)), np.empty((0, 2))), "weights_above: expected at least one row"),
        (([[1, 0]], [[0, 1]], ["ab", "cd"]), r"names: expected shape \(1, 2\), got \(2, 2\)"),
        (([[1, 0]] * 2, [[0, 1]] * 2, ["ab", "ab"]), "names: expected distinct pairs"),
        (([[1, 0]], [[0, 1]], None, [1, 1]), "classes: expected distinct labels"),
    ],
)
def test_misuse_of_weights_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Contrasts.of(*arguments)


# ---- GEM


@pytest.mark.parametrize("kind", ["one_vs_rest", "class_tree", "confusion", ("confusion", 8)])
def test_gem_end_to_end(rng, kind):
    X, y, weights = sample(rng, k=6)
    names = np.array(["ant", "bee", "cat", "dog", "eel", "fox"])[y]
    gem = GEM(pairs=kind, threshold=None, n_directions=2, scale="none")
    gem.fit(X, names, sample_weight=weights)
    found = pair_directions(gem.moments_, kind, 0.2, 2, constant=True)
    assert_array_equal(gem.directions_, found.vectors)
    assert_array_equal(gem.pairs_, found.pairs)
    features = gem.transform(X)
    stems = list(gem.get_feature_names_out())
    assert features.shape == (len(X), len(stems))
    assert len(set(stems)) == len(stems)
    if kind == "one_vs_rest":
        assert "gem_dog_vs_rest_rank0_pos_pow1" in stems
        assert "gem_rest_vs_dog_rank1_neg_pow3" in stems
    if kind == "class_tree":
        assert {tuple(p) for p in gem.pairs_} == {tuple(p) for p in class_tree(gem.moments_).names}


def test_gem_takes_contrasts(rng):
    X, y, _ = sample(rng)
    own = Contrasts.of([[1, 1, 0, 0]], [[0, 0, 1, 1]], names=[("low", "high")], classes=range(4))
    gem = GEM(pairs=own, threshold=None, n_directions=1, powers=(1,)).fit(X, y)
    assert gem.get_feature_names_out().tolist() == [
        "gem_low_vs_high_rank0_pos_pow1",
        "gem_low_vs_high_rank0_neg_pow1",
    ]
    again = clone(gem).fit(X, y)
    assert_array_equal(again.directions_, gem.directions_)
    assert "Contrasts(1 problem)" in repr(gem)

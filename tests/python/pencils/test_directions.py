"""Directions of class pairs: the paper's equations, its degenerate cases, and batches of pairs."""

import warnings

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat import ClassMoments
from eigenfeat._base import validation
from eigenfeat.exceptions import SingularDenominatorError
from eigenfeat.pencils import class_pairs, pair_directions
from eigenfeat.pencils import pencils as _pencils


def sample(rng, n=400, d=6, k=3):
    """Classes with covariances and means of their own."""
    y = np.arange(n) % k
    maps = rng.standard_normal((k, d, d))
    X = np.einsum("nij,nj->ni", maps[y], rng.standard_normal((n, d)))
    return X + 2 * rng.standard_normal((k, d))[y], y


@pytest.fixture
def moments(rng):
    return ClassMoments().update(*sample(rng))


def ridged(matrix, ridge):
    d = len(matrix)
    return matrix + ridge * np.trace(matrix) / d * np.eye(d)


def of_pair(found, pair):
    return np.flatnonzero((found.pairs == np.asarray(pair)).all(axis=1))


@pytest.mark.parametrize("solver", ["full", "subset", "tridiagonal", "krylov", "auto"])
@pytest.mark.parametrize("denominator", ["second_moment", "covariance"])
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_directions_solve_equation_3(moments, solver, denominator, ridge):
    found = pair_directions(moments, "all", ridge, 4, denominator=denominator, solver=solver)
    assert found.vectors.shape == (6, 24)
    assert (found.offset is None) == (denominator == "second_moment")
    assert found.status.tolist() == [0] * 6
    assert np.all(found.residuals <= 1e-10)
    for i, j in found.solved_pairs.tolist():
        columns = of_pair(found, (i, j))
        assert found.ranks[columns].tolist() == [0, 1, 2, 3]
        below = ridged(getattr(moments, denominator)(j), ridge)
        above = moments.second_moment(i)
        if denominator == "covariance":  # both about the mean of class j
            between = moments.mean(i) - moments.mean(j)
            above = moments.covariance(i) + np.outer(between, between)
        values, V = scipy.linalg.eigh(above, below, driver="gvd")
        assert_allclose(found.eigenvalues[columns], values[::-1][:4], rtol=1e-9)
        mine = found.vectors[:, columns]
        assert_allclose(np.abs(mine), np.abs(V[:, ::-1][:, :4]), atol=1e-7 * np.abs(V).max())
        assert_allclose(mine.T @ below @ mine, np.eye(4), atol=1e-9)


def test_threshold_drops_directions_and_may_drop_all(moments):
    every = pair_directions(moments, ridge=0.1, n_directions=6)
    found = pair_directions(moments, ridge=0.1, n_directions=6, threshold=1.5)
    kept = every.eigenvalues >= 1.5
    assert 0 < kept.sum() < len(kept)
    assert_allclose(found.eigenvalues, every.eigenvalues[kept], rtol=1e-10)
    assert_array_equal(found.pairs, every.pairs[kept])
    assert_array_equal(found.ranks, every.ranks[kept])
    nothing = pair_directions(moments, ridge=0.1, threshold=1e12, constant=True)
    assert nothing.vectors.shape == (6, 0)
    assert nothing.pairs.shape == (0, 2)
    assert nothing.offset.shape == (0,)


def test_drawn_pairs_are_those_of_class_pairs(rng):
    kind = "hypercube"
    X, y = sample(rng, k=6)
    moments = ClassMoments().update(X, np.array(list("uvwxyz"))[y])
    found = pair_directions(moments, kind, n_directions=1, random_state=8)
    expected = class_pairs(moments.classes_, kind, random_state=8)
    assert_array_equal(found.solved_pairs, moments.classes_[expected])
    again = pair_directions(moments, kind, n_directions=1, random_state=8)
    assert_array_equal(again.vectors, found.vectors)


def test_classes_without_weight_take_no_part(rng):
    X, y = sample(rng)
    moments = ClassMoments(classes=[0, 1, 2, 3]).update(X, y)
    found = pair_directions(moments)
    assert set(found.pairs.ravel().tolist()) == {0, 1, 2}
    with pytest.raises(ValueError, match=r"unknown class in pair 0.*got 3"):
        pair_directions(moments, [(3, 0), (1, 2)])


def suggestion(error):
    return float(str(error).split("ridge=")[-1].split(" ")[0])


def degenerate_sets(rng):
    X, y = sample(rng, n=60)
    duplicated, constant, few, one_row, scales = (X.copy() for _ in range(5))
    duplicated[:, 5] = duplicated[:, 0]
    constant[:, 3] = 0.0
    scales *= 10.0 ** np.linspace(-8, 8, 6)
    scales[:, 5] = scales[:, 4]
    alone = y.copy()
    alone[1:] = np.where(alone[1:] == 1, 0, alone[1:])
    return {
        "duplicated": (duplicated, y),
        "zero column": (constant, y),
        "few rows": (few[:9], y[:9]),
        "one row": (one_row, alone),
        "scales": (scales, y),
        "one hot": (np.eye(6)[rng.integers(0, 5, 60)], y),
    }


@pytest.mark.parametrize(
    "name", ["duplicated", "zero column", "few rows", "one row", "scales", "one hot"]
)
@pytest.mark.parametrize("denominator", ["second_moment", "covariance"])
@pytest.mark.parametrize("constant", [False, True])
def test_a_singular_denominator_names_a_ridge_that_works(rng, name, denominator, constant):
    X, y = degenerate_sets(rng)[name]
    if name == "one row":
        y[:1] = 1
    moments = ClassMoments().update(X, y)
    options = {"denominator": denominator, "constant": constant, "n_directions": 3}
    with pytest.raises(
        SingularDenominatorError, match=r"class .*ridge=0; ridge=.* suffices"
    ) as info:
        pair_directions(moments, ridge=0.0, **options)
    assert isinstance(info.value, ValueError)
    assert isinstance(info.value, np.linalg.LinAlgError)
    ridge = suggestion(info.value)
    assert 0 < ridge <= 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # residuals may exceed the tolerance
        found = pair_directions(moments, ridge=ridge, **options)
    assert np.all(found.status != 1)
    assert np.isfinite(found.vectors).all()
    if ridge > 1e-13:  # the suggested ridge is nearly minimal
        with pytest.raises(SingularDenominatorError):
            pair_directions(moments, ridge=ridge / 10, **options)
    sound = pair_directions(moments, ridge=0.1, **options)
    assert sound.status.tolist() == [0] * len(sound.status)


def test_only_the_singular_classes_are_named(rng):
    X, y = sample(rng)
    names = np.array(["good", "bad", "fine"])[y]
    X[names == "bad", 2] = 0
    moments = ClassMoments().update(X, names)
    with pytest.raises(SingularDenominatorError, match="denominator of class 'bad' is singular"):
        pair_directions(moments, ridge=0.0)
    pair_directions(moments, [("bad", "good"), ("bad", "fine")], ridge=0.0)  # a numerator


def test_a_class_of_zeros_takes_the_mean_trace(rng):
    X, y = sample(rng, k=2)
    X[y == 1] = 0
    moments = ClassMoments().update(X, y)
    found = pair_directions(moments, [(0, 1)], ridge=0.5, n_directions=2)
    r = 0.5 * np.trace(moments.second_moment(0)) / 2 / 6
    expected = np.linalg.eigvalsh(moments.second_moment(0))[::-1][:2] / r
    assert_allclose(found.eigenvalues, expected, rtol=1e-10)
    nothing = ClassMoments().update(np.zeros((4, 2)), [0, 0, 1, 1])
    with pytest.raises(SingularDenominatorError, match="all samples are zero or equal"):
        pair_directions(nothing, ridge=0.5)


def test_a_class_of_one_row_below_a_covariance(rng):
    """The covariance of one row is 0: its ridge follows the mean trace over the classes."""
    X, y = sample(rng, k=2)
    X, y = np.vstack([X, 0.1 * np.ones((50, 6))]), np.append(y, np.full(50, 2))
    moments = ClassMoments().update(X, y)
    found = pair_directions(moments, ridge=0.5, n_directions=1, denominator="covariance")
    r = 0.5 * sum(np.trace(moments.covariance(c)) for c in (0, 1)) / 3 / 6
    between = moments.mean(0) - moments.mean(2)
    expected = np.linalg.eigvalsh(moments.covariance(0) + np.outer(between, between))[-1] / r
    assert_allclose(found.eigenvalues[of_pair(found, (0, 2))], [expected], rtol=1e-9)


@pytest.mark.parametrize(("k", "kind"), [(50, "all"), (51, "random_groups")])
def test_automatic_pairs(rng, k, kind):
    X, y = rng.standard_normal((3 * k, 3)), np.arange(3 * k) % k
    moments = ClassMoments().update(X, y)
    options = {"n_directions": 1, "ridge": 1.0, "random_state": 0}
    found = pair_directions(moments, "auto", **options)
    expected = pair_directions(moments, kind, **options)
    assert_array_equal(found.solved_pairs, expected.solved_pairs)
    assert_array_equal(found.vectors, expected.vectors)


# ---- batches of bounded memory -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "denominator"),
    [
        ("all", "covariance"),
        ("one_vs_rest", "second_moment"),
        ("class_tree", "covariance"),
        ("confusion", "second_moment"),
    ],
)
def test_many_batches_give_the_directions_of_one(rng, monkeypatch, pairs, denominator):
    moments = ClassMoments().update(*sample(rng, n=300, d=5, k=8))
    options = {"denominator": denominator, "constant": True, "n_directions": 2, "ridge": 0.1}
    one = pair_directions(moments, pairs, **options)
    monkeypatch.setattr(_pencils, "_MIN_MATRICES", 4)
    monkeypatch.setattr(_pencils, "_MAX_BYTES", 1)
    monkeypatch.setattr(_pencils, "_MAX_SHARED_BYTES", 1)
    many = pair_directions(moments, pairs, **options)
    for name in ("pairs", "ranks", "solved_pairs", "status", "solver"):
        assert_array_equal(getattr(one, name), getattr(many, name))
    for name in ("eigenvalues", "vectors", "offset"):
        assert_allclose(getattr(many, name), getattr(one, name), rtol=1e-9, atol=1e-9)
    threaded = [pair_directions(moments, pairs, n_threads=t, **options) for t in (1, 2, 7)]
    for found in threaded:
        assert_array_equal(found.vectors, many.vectors)


def test_memory_is_checked_before_it_is_taken(rng, monkeypatch):
    moments = ClassMoments().update(*sample(rng, n=300, d=5, k=8))
    monkeypatch.setattr(validation, "physical_memory", lambda: 3000)
    with pytest.raises(MemoryError, match=r"pair_directions: \d+ matrices of 6 x 6 take"):
        pair_directions(moments, "one_vs_rest", constant=True)


def bordered(second, mean):
    return np.block([[second, mean[:, None]], [mean[None, :], np.ones((1, 1))]])


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_constant_appends_a_column_of_ones(rng, ridge):
    X, y = sample(rng)
    moments = ClassMoments().update(X, y)
    found = pair_directions(moments, ridge=ridge, n_directions=3, constant=True)
    centred = ClassMoments().update(X - X.mean(axis=0), y)
    for i, j in found.solved_pairs.tolist():
        columns = of_pair(found, (i, j))
        above = bordered(centred.second_moment(i), centred.mean(i))
        below = bordered(ridged(centred.second_moment(j), ridge), centred.mean(j))
        values = scipy.linalg.eigh(above, below, eigvals_only=True)[::-1][:3]
        assert_allclose(found.eigenvalues[columns], values, rtol=1e-9)
        response = X[y == i] @ found.vectors[:, columns] + found.offset[columns]
        assert_allclose((response**2).mean(axis=0), values, rtol=1e-9)


@pytest.mark.parametrize(
    ("constant", "ridge", "scaled"),
    [(False, 0.0, True), (True, 0.3, True), (False, 0.3, False), (True, 0.0, False)],
)
def test_the_pencil_is_about_the_denominators_mean(rng, constant, ridge, scaled):
    X = rng.standard_normal((400, 5)) @ rng.standard_normal((5, 5)) + 7.0
    y = np.arange(400) % 3
    X += 2 * rng.standard_normal((3, 5))[y]
    scale = np.array([1.0, 0.1, 3.0, 7.0, 20.0]) if scaled else np.ones(5)
    moments = ClassMoments().update(X, y)
    options = {"denominator": "covariance", "constant": constant, "scale": scale}
    found = pair_directions(moments, "all", ridge, 3, **options)
    for i, j in found.solved_pairs.tolist():
        columns = of_pair(found, (i, j))
        mean = X[y == j].mean(axis=0)
        above, below = ((X[y == c] - mean) / scale for c in (i, j))
        A, B = above.T @ above / len(above), below.T @ below / len(below)
        B += ridge * np.trace(B) / 5 * np.eye(5)
        values = scipy.linalg.eigh(A, B, eigvals_only=True)[::-1][:3]
        assert_allclose(found.eigenvalues[columns], values, rtol=1e-9)
        assert_allclose(found.offset[columns], -mean @ found.vectors[:, columns], rtol=1e-9)
        response = X @ found.vectors[:, columns] + found.offset[columns]
        assert_allclose((response[y == i] ** 2).mean(axis=0), values, rtol=1e-9)
        assert_allclose(response[y == j].mean(axis=0), 0.0, atol=1e-9)

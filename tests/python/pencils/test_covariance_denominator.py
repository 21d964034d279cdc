"""GEM's footnote 1: the covariance below, and both matrices about the denominator's mean."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat import GEM, ClassMoments
from eigenfeat.pencils import Contrasts, pair_directions


def far_third(rng, n=3000, d=4, distance=30.0):
    """Two classes of the same rows, and one that is far from both."""
    half = rng.standard_normal((n // 3, d))
    far = rng.standard_normal((n // 3, d)) + distance / np.sqrt(d)
    return np.concatenate([half, half, far]), np.repeat([0, 1, 2], n // 3)


def of_pair(found, pair):
    return np.flatnonzero((found.pairs == np.asarray(pair)).all(axis=1))


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("origin", [0.0, 50.0])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_equal_classes_have_no_discriminative_direction(rng, constant, origin, ridge):
    """However far other classes, or the origin, are: 1, less what the ridge takes away."""
    X, y = far_third(rng)
    moments = ClassMoments().update(X + origin, y)
    found = pair_directions(
        moments, [(0, 1), (1, 2)], ridge, 4, denominator="covariance", constant=constant
    )
    values = found.eigenvalues[of_pair(found, (0, 1))]
    expected = np.linalg.eigvalsh(np.cov(X[y == 0].T, bias=True))[::-1]
    assert_allclose(values, expected / (expected + ridge * expected.mean()), rtol=1e-7)
    response = (X[y == 0] + origin) @ found.vectors + found.offset
    mean_squares = (response[:, of_pair(found, (0, 1))] ** 2).mean(axis=0)
    assert_allclose(mean_squares, values, rtol=1e-7)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("scaled", [False, True])
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


def test_the_constant_changes_nothing(rng):
    X, y = far_third(rng, n=300)
    moments = ClassMoments().update(X, y)
    one, other = (
        pair_directions(moments, denominator="covariance", constant=c) for c in (False, True)
    )
    for name in ("vectors", "offset", "eigenvalues"):
        assert_array_equal(getattr(one, name), getattr(other, name))


def test_groups_of_classes(rng):
    """The mean is that of the rows of the whole group below, by weight."""
    X, y = far_third(rng, n=300)
    weights = rng.random(300) + 0.5
    moments = ClassMoments().update(X, y, weights)
    contrasts = Contrasts.of([[1, 0, 0]], [[0, 2, 1]], [("one", "others")])
    found = pair_directions(moments, contrasts, 0.1, 2, denominator="covariance")
    mean = np.average(X, axis=0, weights=weights * np.array([0.0, 2.0, 1.0])[y])
    assert_allclose(found.offset, -mean @ found.vectors, rtol=1e-9)
    rest = pair_directions(moments, "one_vs_rest", 0.1, 2, denominator="covariance")
    columns = of_pair(rest, ("0", "rest"))
    mean = np.average(X, axis=0, weights=weights * (y != 0))
    assert_allclose(rest.offset[columns], -mean @ rest.vectors[:, columns], rtol=1e-9)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("solver", ["auto", "randomized"])
def test_gem_uses_the_offset(rng, constant, solver):
    X, y = far_third(rng, n=600)
    options = {"ridge": 0.1, "scale": "none", "threshold": None, "solver": solver}
    gem = GEM(
        denominator="covariance", constant=constant, expansion="none", n_directions=2, **options
    ).fit(X, y)
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    expected = -(means[gem.pairs_[:, 1]] * gem.directions_.T).sum(axis=1)
    assert_allclose(gem.offset_, expected, rtol=0, atol=1e-5)
    assert_array_equal(gem.transform(X), gem.set_params(constant=not constant).transform(X))
    mean_squares = [(gem.transform(X[y == i])[:, f] ** 2).mean() for f, i in
                    enumerate(gem.pairs_[:, 0])]  # fmt: skip
    assert_allclose(mean_squares, gem.eigenvalues_, rtol=1e-5)
    equal = np.isin(gem.pairs_, (0, 1)).all(axis=1)
    assert gem.eigenvalues_[equal].max() <= 1.0

"""Crawford numbers against plain search, and their bounds against random perturbations."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from eigenfeat import GEM, ClassMoments
from eigenfeat.pencils import crawford_number, eigenvalue_bounds, pair_directions
from eigenfeat.pencils.pencils import measure_pairs
from eigenfeat.pencils.problems import PencilOptions
from problems import pencil


def by_search(A, B):
    """Largest smallest eigenvalue over a fine grid of angles, at least 0."""
    angles = np.linspace(-np.pi, np.pi, 20001)
    matrices = np.cos(angles)[:, None, None] * A + np.sin(angles)[:, None, None] * B
    return max(0.0, np.linalg.eigvalsh(matrices)[:, 0].max())


def symmetric(rng, d, norm):
    E = rng.standard_normal((d, d))
    E = E + E.T
    return E * (norm / np.linalg.norm(E, 2))


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("indefinite", [False, True])
def test_crawford_numbers_agree_with_a_search(rng, d, indefinite):
    for _ in range(2):
        A, B = pencil(rng, d, indefinite=indefinite)
        found = crawford_number(A, B)
        assert 0 <= found.lower <= found.upper
        expected = by_search(A, B)
        assert_allclose(found.lower, expected, rtol=3e-6)
        assert found.upper >= expected


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="needs a longer float")
def test_the_number_is_not_less_than_its_bound_by_rounding(rng):
    """At the angle, the smallest eigenvalue in more digits is at least the lower bound."""
    for _ in range(100):
        A, B = pencil(rng, 2)
        found = crawford_number(A, B)
        turned = [f(np.longdouble(found.angle)) for f in (np.cos, np.sin)]
        (a, b), (_, c) = turned[0] * A + turned[1] * B
        assert found.lower <= (a + c - np.hypot(a - c, 2 * b)) / 2


def test_pencils_that_are_not_definite_have_a_crawford_number_of_0():
    A = np.diag([1.0, -1.0, 0.5])
    for B in (A, -A, np.diag([0.0, 0.0, 1.0]), np.zeros((3, 3))):
        found = crawford_number(A, B)
        assert found.lower == 0.0
        assert found.upper < 1e-12
    assert crawford_number(np.zeros((2, 2)), np.zeros((2, 2))).upper == 0.0


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("d", [2, 3, 8])
def test_perturbations_stay_within_the_bounds(rng, share, d):
    """Stewart's theorem: random and adverse perturbations, as large as it allows."""
    for trial in range(20):
        A, B = pencil(rng, d)
        c = crawford_number(A, B)
        epsilon = share * c.lower
        if trial % 2:  # along the direction in which the pencil is least definite
            M = np.cos(c.angle) * A + np.sin(c.angle) * B
            x = np.linalg.eigh(M)[1][:, :1]
            E, F = -epsilon * np.cos(c.angle) * x @ x.T, -epsilon * np.sin(c.angle) * x @ x.T
        else:
            part = rng.uniform(0, np.pi / 2)
            E, F = symmetric(rng, d, np.cos(part)), symmetric(rng, d, np.sin(part))
            E, F = epsilon * E, epsilon * F
        if np.linalg.eigvalsh(B + F)[0] <= 0:
            continue
        before = scipy.linalg.eigh(A, B, eigvals_only=True)
        after = scipy.linalg.eigh(A + E, B + F, eigvals_only=True)
        bounds = eigenvalue_bounds(before, c.lower, epsilon)
        slack = 1e-9 * (1 + np.abs(after))
        assert (bounds[:, 0] <= after + slack).all()
        assert (after - slack <= bounds[:, 1]).all()


def test_bounds_are_reached():
    """In one dimension, the perturbation that turns the pencil most reaches the bound."""
    a = b = 2.0
    c = crawford_number([[a]], [[b]])
    assert_allclose(c.lower, np.hypot(a, b), rtol=1e-9)
    epsilon = 0.5 * c.lower
    turned = np.pi / 4 + np.arcsin(0.5)
    length = np.sqrt(c.lower**2 - epsilon**2)
    A, B = length * np.sin(turned), length * np.cos(turned)
    assert_allclose(np.hypot(A - a, B - b), epsilon)
    assert_allclose(eigenvalue_bounds([1.0], c.lower, epsilon)[0, 1], A / B, rtol=1e-6)


def test_bounds_of_perturbations_as_large_as_the_number_are_infinite():
    assert eigenvalue_bounds([2.0], 1.0, 1.0).tolist() == [[-np.inf, np.inf]]
    assert eigenvalue_bounds([], 1.0, 0.5).shape == (0, 2)
    assert eigenvalue_bounds([1e9], 1.0, 0.5)[0, 1] == np.inf


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0, 2.0]], np.eye(2)), r"A: expected shape \(d, d\)"),
        ((np.eye(2), np.eye(3)), r"B: expected A's shape \(2, 2\), got \(3, 3\)"),
        (([[0.0, 1.0], [0.0, 0.0]], np.eye(2)), "A"),
        ((np.eye(2), np.full((2, 2), np.nan)), "B"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        crawford_number(*arguments)


@pytest.mark.parametrize("options", [{}, {"constant": True}, {"denominator": "covariance"}])
def test_conditions_are_those_of_the_pencils_that_are_solved(rng, options):
    y = np.repeat([0, 1, 2], 50)
    X = rng.standard_normal((150, 4)) * (1 + y[:, None])
    moments = ClassMoments().update(X, y)
    found = measure_pairs(moments, PencilOptions(ridge=0.3, **options))
    assert found.pairs.shape == (6, 2)
    if not options:
        A, B = moments.second_moment(0), moments.second_moment(1)
        B = B + 0.3 * np.trace(B) / 4 * np.eye(4)
        row = found.pairs.tolist().index([0, 1])
        assert_allclose(found.crawford[row], crawford_number(A, B).lower)
    assert (found.crawford > 0).all()
    directions = pair_directions(moments, ridge=0.3, **options)
    bounds = found.bounds(directions.pairs, directions.eigenvalues)
    assert (bounds[:, 0] <= directions.eigenvalues).all()
    assert (directions.eigenvalues <= bounds[:, 1]).all()


@pytest.mark.parametrize("sizes", [(20_000, 20_000), (20_000, 1000), (1000, 20_000)], ids=str)
def test_bounds_of_an_estimator_hold_for_its_population(rng, sizes):
    """Eigenvalues of two Gaussian populations are within the bounds, if either sample is small."""
    scales = np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 1.5]])
    y = np.repeat([0, 1], sizes)
    X = rng.standard_normal((len(y), 3)) * scales[y]
    model = GEM(ridge=0.0, threshold=None, scale="none", constant=False).fit(X, y)
    bounds = model.eigenvalue_bounds_
    ratios = (scales[0] / scales[1]) ** 2
    population = np.concatenate([np.sort(ratios)[::-1], np.sort(1 / ratios)[::-1]])
    assert ((bounds[:, 0] <= population) & (population <= bounds[:, 1])).all()
    if min(sizes) == 20_000:
        assert (bounds[:, 1] < 3 * population).all()
    found = measure_pairs(model.moments_, PencilOptions(ridge=0.0))
    for pair, error in zip(found.pairs, found.sampling_error, strict=True):
        gaps = [model.moments_.second_moment(c) - np.diag(scales[c] ** 2) for c in pair]
        assert 0.7 < error / np.hypot(*(np.linalg.norm(gap, 2) for gap in gaps)) < 4

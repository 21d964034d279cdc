"""Minima of quadratics over balls, and signs that are certain: the public functions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import region_reference as reference
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat.regions import certified_sign, trust_region_minimum

KINDS = ("indefinite", "positive", "rank one", "zero", "hard", "scalar")


def random_problem(rng, kind, d):
    """A, g and a radius; the constant part of the scale is g's or A's."""
    A = rng.standard_normal((d, d))
    A = A + A.T
    g = rng.standard_normal(d) * 10.0 ** rng.integers(-3, 3)
    if kind == "positive":
        A = A @ A
    elif kind == "rank one":
        A = np.outer(A[0], A[0])
    elif kind == "zero":
        A = 0 * A
    elif kind == "scalar":
        A, g = -np.eye(d), 0 * g
    elif kind == "hard":
        values, Q = np.linalg.eigh(A)
        g = Q[:, 1:] @ (Q[:, 1:].T @ g) * 1e-3
        A = A - (values[0] + 1) * np.eye(d)
    return A, g, 10.0 ** rng.uniform(-2, 2)


def bisected(A, g, radius):
    """Minimum by eigenvectors and bisection of the secular equation."""
    a, Q = np.linalg.eigh(A)
    slopes = Q.T @ g
    base = max(a[0], 0.0) - a[0]

    def terms(mu):
        keep = slopes != 0
        with np.errstate(divide="ignore"):
            x = slopes[keep] / (a[keep] + mu)
        return (slopes[keep] * x).sum(), (x**2).sum()

    if not np.any(slopes) or terms(base)[1] <= radius**2:
        return -(terms(base)[0] if np.any(slopes) else 0.0) - base * radius**2
    below, above = base, base + np.linalg.norm(slopes) / radius
    for _ in range(200):
        middle = (below + above) / 2
        below, above = (middle, above) if terms(middle)[1] > radius**2 else (below, middle)
    return -terms(above)[0] - above * radius**2


def size(A, g, radius):
    return np.linalg.norm(A) * radius**2 + 2 * np.linalg.norm(g) * radius


@pytest.mark.parametrize("d", [1, 2, 31, 32, 33, 131])
def test_dense_sizes_about_whole_lines(rng, d):
    for grade in (0.0, 4.0, 250.0):  # the last columns are far below the square root of tiny
        A, g, radius = random_problem(rng, "indefinite", d)
        falling = 10.0 ** -np.linspace(0.0, grade, d)
        A = A * falling[:, None] * falling
        found = trust_region_minimum(A, g, radius)
        error = 20 * d * np.finfo(float).eps * size(A, g, radius)
        assert_allclose(found.value, bisected(A, g, radius), rtol=0, atol=error)
        assert_allclose(found.x @ A @ found.x + 2 * g @ found.x, found.value, rtol=0, atol=error)
        assert found.residual <= 1e-13


def test_a_matrix_too_large_for_a_pass_a_column(rng):
    d = 2049
    A = np.diag(rng.standard_normal(d))
    v = rng.standard_normal(d) / np.sqrt(d)
    A += np.outer(v, v)
    found = trust_region_minimum(A, v, 3.0)
    assert abs(found.gap) <= 1e-12 * abs(found.value)
    assert found.residual <= 1e-13
    assert_allclose(np.linalg.norm(found.x), 3.0, rtol=1e-12)


def test_hard_cases(rng):
    for d in (2, 5, 30):
        A, g, _ = random_problem(rng, "hard", d)
        found = trust_region_minimum(A, g, 50.0)
        assert found.hard_case
        assert_allclose(found.multiplier, 1.0, rtol=1e-11)
        assert_allclose(np.linalg.norm(found.x), 50.0, rtol=1e-12)
    assert_allclose(trust_region_minimum(-np.eye(3), np.zeros(3), 2.0).value, -4, rtol=1e-14)
    assert not trust_region_minimum(np.eye(3), np.zeros(3), 2.0).hard_case


def test_one_matrix_for_many_is_the_same_as_a_matrix_each(rng):
    A = rng.standard_normal((12, 12))
    A = A + A.T
    g, radius = rng.standard_normal((30, 12)), rng.uniform(0.1, 3, 30)
    shared = trust_region_minimum(A, g, radius)
    each = trust_region_minimum(np.broadcast_to(A, (30, 12, 12)), g, radius)
    assert_allclose(shared.value, each.value, rtol=1e-12)
    assert_allclose(shared.x, each.x, rtol=0, atol=1e-11)
    a, Q = np.linalg.eigh(A)
    diagonal = trust_region_minimum(a, g @ Q, radius, diagonal=True)
    assert_allclose(diagonal.value, shared.value, rtol=1e-12)
    assert_allclose(diagonal.multiplier, shared.multiplier, rtol=1e-11)


def test_a_sign_at_zero_is_not_guessed(rng):
    """Where the minimum is 0 to rounding a sign may be given only if it is right: by exact sums."""
    from fractions import Fraction

    for _ in range(200):
        g = rng.standard_normal(3)
        radius = float(rng.uniform(0.5, 2))
        constant = float(2 * radius * np.linalg.norm(g))
        got = certified_sign(np.zeros(3), g, constant, radius, diagonal=True).sign
        exact = Fraction(constant) ** 2 - 4 * Fraction(radius) ** 2 * sum(
            Fraction(float(x)) ** 2 for x in g
        )
        assert got == 0 or (got == 1) == (exact >= 0)


def test_signs_are_right_to_the_last_digit(rng):
    """Minima known exactly: with integers a, mu and x, |x| = 25, all else is whole, too."""
    triples = [(7, 24, 0), (15, 20, 0), (0, 25, 0), (12, 15, 16), (9, 12, 20)]
    for _ in range(300):
        x = rng.permutation(triples[rng.integers(5)]) * rng.choice([-1, 1], 3)
        a = rng.integers(-9, 9, 3)
        mu = max(0, -int(a.min())) + int(rng.integers(0, 4))
        g = -(a + mu) * x
        least = int((a * x * x + 2 * g * x).sum())
        for constant in (-least, np.nextafter(-least, np.inf), np.nextafter(-least, -np.inf)):
            result = certified_sign(a.astype(float), g, float(constant), 25.0, diagonal=True)
            minimum = float(constant) + least  # exact: the two are next to each other
            assert result.sign in (0, 1 if minimum >= 0 else -1)
            assert result.lower <= minimum <= result.upper
        for step, sign in ((1e-12, 1), (-1e-12, -1)):
            constant = -least + step * max(abs(least), 1) * 10
            got = certified_sign(a.astype(float), g, constant, 25.0, diagonal=True).sign
            assert got == sign


def test_a_radius_of_zero_and_huge_and_tiny_units(rng):
    found = trust_region_minimum(np.eye(2), [1.0, 0.0], 0.0, 3.0)
    assert found.value == 3.0
    assert found.multiplier == np.inf
    assert_array_equal(found.x, 0.0)
    A, g, radius = random_problem(rng, "indefinite", 6)
    base = trust_region_minimum(A, g, radius)
    for unit in (2.0**-700, 2.0**400):
        scaled = trust_region_minimum(A * unit, g * unit, radius)
        assert scaled.value == base.value * unit
        assert_array_equal(scaled.x, base.x)


def test_threads_do_not_matter(rng):
    A = rng.standard_normal((40, 50, 50))
    A, g = A + A.transpose(0, 2, 1), rng.standard_normal((40, 50))
    for args in ((A, g), (A[0], g)):
        expected = trust_region_minimum(*args, 1.0, n_threads=1)
        signs = certified_sign(*args, 20.0, 1.0, n_threads=1)
        for threads in (2, 7, None):
            got = trust_region_minimum(*args, 1.0, n_threads=threads)
            assert got.value.tobytes() == expected.value.tobytes()
            assert got.x.tobytes() == expected.x.tobytes()
            other = certified_sign(*args, 20.0, 1.0, n_threads=threads)
            assert other.lower.tobytes() == signs.lower.tobytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": np.ones((2, 3))}, r"A: expected shape \(d, d\) or \(n, d, d\)"),
        ({"A": [[1.0, 2.0], [0.0, 1.0]]}, "A: expected symmetric matrices"),
        ({"A": [[np.nan, 0.0], [0.0, 1.0]]}, "A: expected finite numbers"),
        ({"g": np.ones(3)}, r"g: expected shape \(2,\) or \(n, 2\)"),
        ({"radius": -1.0}, "radius: expected numbers >= 0, got -1"),
        ({"radius": [1.0, 1.0], "g": np.ones((3, 2))}, "radius: expected 3 items"),
        ({"radius": np.ones((1, 1))}, "radius, constant: expected numbers"),
        ({"A": np.stack([np.eye(2)] * 2), "g": np.ones((3, 2))}, "A: expected 3 items"),
    ],
)
def test_errors(change, message):
    arguments = {"A": np.eye(2), "g": np.zeros(2), "constant": 0.0, "radius": 1.0} | change
    for function in (trust_region_minimum, certified_sign):
        with pytest.raises(ValueError, match=message):
            function(**arguments)


# ---- every family against long double ------------------------------------------------------------


EPS = np.finfo(float).eps
WAYS = ("each", "shared", "diagonal")


def held_against_long_double(problem, rng):
    A, single = problem.A, problem.way == "diagonal"
    A = np.einsum("nii->ni", A) if single else A[0] if problem.way == "shared" else A
    n, d = problem.g.shape
    right, size = reference.minima(problem), problem.size
    doubt = 4e-18 * d * size
    found = trust_region_minimum(A, problem.g, problem.radius, diagonal=single)
    assert np.all(np.abs(found.value - right) <= found.gap + doubt)
    assert np.all(np.abs(reference.values_at(problem, found.x) - right) <= found.gap + doubt)
    assert np.all(found.gap <= 1e-12 * size)
    assert np.all(found.residual <= (64 + 2 * d) * EPS)
    assert np.all(np.linalg.norm(found.x, axis=1) <= problem.radius * (1 + 1e-13 * np.sqrt(d)))
    margin = rng.choice([0.0, 1e-16, 1e-14, 1e-11, 1e-8, 1.0], n) * rng.choice([-1, 1], n)
    constant = (margin * size - right).astype(float)
    got = certified_sign(A, problem.g, constant, problem.radius, diagonal=single)
    minimum = constant + right
    assert not np.any((got.sign > 0) & (minimum < -doubt))
    assert not np.any((got.sign < 0) & (minimum > doubt))
    assert np.all(got.lower <= minimum + doubt)
    assert np.all(got.upper >= minimum - doubt)
    far = np.abs(minimum) > 1e-9 * size
    assert_array_equal(got.sign[far], np.where(minimum[far] > 0, 1, -1))


@pytest.mark.skipif(not reference.HAS_LONG_DOUBLE, reason="long double has no more digits here")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", list(reference.FAMILIES))
def test_every_family_against_long_double(family, way):
    rng = np.random.default_rng([list(reference.FAMILIES).index(family), WAYS.index(way)])
    for d in (1, 2, 3, 4, 5, 7, 9, 16, 26):
        n = 40 if d < 10 else 8
        held_against_long_double(reference.draw(rng, family, n, d, way), rng)


def test_a_large_residual_is_found():
    """Far beyond what doubles hold there is no convergence, and no silence either."""
    rng = np.random.default_rng(5)
    for family in reference.FAMILIES:
        for way in WAYS:
            problem = reference.draw(rng, family, 24, 3, way)
            for unit in (1e-150, 1e150, 1e-300):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    A = problem.A[0] if way == "shared" else problem.A
                    found = trust_region_minimum(A * unit, problem.g * unit, problem.radius)
                assert caught or np.all(found.residual <= (64 + 2 * 3) * EPS)


@pytest.mark.parametrize("diagonal", [False, True])
def test_signs_at_the_edge_of_the_numbers(diagonal):
    """Squares that underflow, and constants that overflow in the problem's units."""
    as_given = (lambda a: a) if diagonal else (lambda a: np.diag(a))
    cases = [
        # a, g, constant, radius, the sign that is right
        ([1.0, 0.0], [0.0, 1e-200], 1e-205, 1.0, -1),
        ([1.0, 0.0], [0.0, 1e-200], 3e-200, 1.0, 1),
        ([1.0, -1e-300], [0.0, 0.0], 0.0, 1e-50, -1),
        ([1.0, 0.0], [0.0, 1e-160], 1.9999e-160, 1.0, -1),
        ([1.0, 0.0], [0.0, 1e-162], 2.0001e-162, 1.0, 1),
        ([1e-300, -1e-300], [0.0, 0.0], 1e300, 1.0, 1),
        ([1e-300, -1e-300], [0.0, 0.0], -1e300, 1.0, -1),
        ([1e200, -1e200], [0.0, 0.0], 1e200, 1e-120, 1),
    ]
    for a, g, constant, radius, sign in cases:
        got = certified_sign(as_given(np.array(a)), g, constant, radius, diagonal=diagonal)
        assert got.sign in (0, sign)
        assert got.lower <= got.upper
        if sign > 0:
            assert got.upper >= 0
        else:
            assert got.lower <= 0
        assert got.lower <= constant


@pytest.mark.long
def test_large_dense_matrices_allow_for_a_blocked_reduction():
    """From d = 2,049 on LAPACK reduces by blocks, whose rounding has a larger bound."""
    d = 2049
    diagonal = 1.0 + np.arange(d) / d
    g = np.ones(d)
    found = certified_sign(np.diag(diagonal), g, 1e4, 1e3)
    minimum = 1e4 - float((g / diagonal).sum())
    allowed = 128 * 4 * d * (d + 20) * EPS * float(np.linalg.norm(diagonal))
    assert found.sign == 1
    assert found.lower <= minimum - 0.9 * allowed * 1e6  # |A|'s rounding, by radius^2
    assert minimum <= found.upper

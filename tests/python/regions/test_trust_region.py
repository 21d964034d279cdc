"""Minima of quadratics over balls, and signs that are certain: the public functions."""

from __future__ import annotations

import numpy as np
import pytest
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


@pytest.mark.parametrize("kind", KINDS)
def test_minima_against_bisection_and_against_points(rng, kind):
    for d in (1, 2, 3, 8, 20):
        A, g, radius = random_problem(rng, kind, d)
        found = trust_region_minimum(A, g, radius)
        error = 20 * d * np.finfo(float).eps * size(A, g, radius)
        assert_allclose(found.value, bisected(A, g, radius), rtol=0, atol=error)
        x = found.x
        assert np.linalg.norm(x) <= radius * (1 + 1e-14 * d)
        assert_allclose(x @ A @ x + 2 * g @ x, found.value, rtol=0, atol=error)
        assert abs(found.gap) <= max(1e-12 * abs(found.value), error)
        assert found.residual <= 1e-13
        assert found.multiplier >= 0
        # No point of the ball is lower.
        points = rng.standard_normal((2000, d))
        points *= radius * rng.random((2000, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
        values = np.einsum("ni,ij,nj->n", points, A, points) + 2 * points @ g
        assert values.min() >= found.value - error


def test_the_gap_is_small_where_the_minimum_is_not(rng):
    A = rng.standard_normal((50, 60, 60))
    found = trust_region_minimum(A + A.transpose(0, 2, 1), rng.standard_normal((50, 60)), 2.0)
    assert np.all(np.abs(found.gap) <= 1e-12 * np.abs(found.value))
    assert not found.hard_case.any()
    assert found.iterations.max() < 20


@pytest.mark.parametrize("d", [31, 32, 33, 64, 100, 131])
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


@pytest.mark.parametrize("diagonal", [False, True])
def test_signs_near_zero(rng, diagonal):
    for kind in KINDS:
        for d in (1, 4, 25):
            A, g, radius = random_problem(rng, kind, d)
            if diagonal:
                A = np.diag(A)
            full = np.diag(A) if diagonal else A
            least = trust_region_minimum(A, g, radius, diagonal=diagonal).value
            step = 1e-10 * abs(least) + 1e-13 * d * size(full, g, radius)
            constants = np.array([step, -step, 0.3 * abs(least), -1.0]) - least
            sign = certified_sign(
                A if diagonal else full,
                np.broadcast_to(g, (4, d)),
                constants,
                radius,
                diagonal=diagonal,
            )
            minima = constants + least
            assert_array_equal(sign.sign[:2], [1, -1] if step else [1, 1])
            assert np.all(sign.sign[2:] == np.where(minima[2:] >= 0, 1, -1))
            assert np.all(sign.lower <= minima + step)
            assert np.all(sign.upper >= minima - step)


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


def test_linear_functions_have_the_closed_form(rng):
    """Parrish (2012), Proposition 2: min beta^T x over an ellipsoid is b - r |R^(1/2) beta|."""
    beta, m = rng.standard_normal(6), rng.standard_normal(6)
    root = rng.standard_normal((6, 6))
    slope = root.T @ beta / 2  # of u, x = m + root u
    found = trust_region_minimum(np.zeros((6, 6)), slope, 1.7, beta @ m)
    expected = beta @ m - 1.7 * np.linalg.norm(root.T @ beta)
    assert_allclose(found.value, expected, rtol=1e-13)
    u = -1.7 * slope / np.linalg.norm(slope)
    assert_allclose(found.x, u, rtol=0, atol=1e-13)
    assert_allclose(beta @ (m + root @ u), expected, rtol=1e-12)
    for step, sign in ((1e-12, 1), (-1e-12, -1)):
        constant = 1.7 * np.linalg.norm(2 * slope) * (1 + step)
        assert certified_sign(np.zeros(6), slope, constant, 1.7, diagonal=True).sign == sign


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
        ({"A": np.ones(2)}, "A: expected shape"),
        ({"A": [[1.0, 2.0], [0.0, 1.0]]}, "A: expected symmetric matrices"),
        ({"A": [[np.nan, 0.0], [0.0, 1.0]]}, "A: expected finite numbers"),
        ({"g": np.ones(3)}, r"g: expected shape \(2,\) or \(n, 2\)"),
        ({"g": [np.inf, 0.0]}, "g: expected finite"),
        ({"radius": -1.0}, "radius: expected numbers >= 0, got -1"),
        ({"radius": [1.0, 1.0], "g": np.ones((3, 2))}, "radius: expected 3 items"),
        ({"radius": np.ones((1, 1))}, "radius, constant: expected numbers"),
        ({"A": np.stack([np.eye(2)] * 2), "g": np.ones((3, 2))}, "A: expected 3 items"),
        ({"constant": "a"}, "constant: expected an array of real numbers"),
        ({"n_threads": 0}, "n_threads"),
    ],
)
def test_errors(change, message):
    arguments = {"A": np.eye(2), "g": np.zeros(2), "constant": 0.0, "radius": 1.0} | change
    for function in (trust_region_minimum, certified_sign):
        with pytest.raises(ValueError, match=message):
            function(**arguments)

"""Minima and signs where rounding is all that matters: every family against long double.

`bench/trust_region_attack.py` does the same a million times.
"""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
import region_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat.regions import certified_sign, trust_region_minimum

EPS = np.finfo(float).eps
WAYS = ("each", "shared", "diagonal")


def on_a_grid():
    """b b^T, -b, and a radius below that of the free minimiser, which is any of a line."""
    side = np.arange(1, 30) / 10
    b = np.stack(np.meshgrid(side, side), axis=2).reshape(-1, 2)
    b = np.concatenate([b, b])
    factor = np.repeat([0.5, 0.9], len(b) // 2)
    return b, factor, factor / np.linalg.norm(b, axis=1)


def test_singular_matrices_with_the_slope_in_their_range():
    b, factor, radius = on_a_grid()
    A = b[:, :, None] * b[:, None, :]
    least = factor**2 - 2 * factor  # of (b^T x)^2 - 2 b^T x, where b^T x <= factor
    found = trust_region_minimum(A, -b, radius)
    assert len(least) == 1682
    assert_allclose(found.value, least, rtol=1e-13)
    assert_allclose(found.x, factor[:, None] * b / (b**2).sum(axis=1)[:, None], rtol=1e-12)
    assert found.residual.max() <= 1e-14
    assert np.all(np.abs(found.value - least) <= found.gap + 1e-15)
    assert found.gap.max() <= 1e-13
    for step in (1e-2, 1e-6, 1e-12):
        assert_array_equal(certified_sign(A, -b, -least + step, radius).sign, 1)
        assert_array_equal(certified_sign(A, -b, -least - step, radius).sign, -1)


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


# --- the thesis's own solver ----------------------------------------------------------------------


def projected_gradient(A, g, radius, start, steps):
    """Parrish (2012), Appendix B: a step of 1 / rho down the gradient, then back into the ball."""
    # No less than the largest eigenvalue; more only where that is next to nothing.
    rho = max(np.abs(np.linalg.eigvalsh(A)).max(), 1e-3 * np.linalg.norm(g) / radius, 1e-300)
    z = start
    for _ in range(steps):
        z = z - (A @ z + g) / rho
        length = np.linalg.norm(z)
        z = z * min(1.0, radius / length) if length > 0 else z
    return z


numbers = st.integers(-3, 3).map(float)


@st.composite
def small_problems(draw):
    d = draw(st.integers(1, 4))
    lower = draw(arrays(float, (d, d), elements=numbers))
    kind = draw(st.sampled_from(["symmetric", "gram", "rank one"]))
    A = {
        "symmetric": np.tril(lower) + np.tril(lower, -1).T,
        "gram": lower @ lower.T,
        "rank one": np.outer(lower[0], lower[0]),
    }[kind]
    g = draw(arrays(float, d, elements=numbers))
    if draw(st.booleans()):
        g = A @ g  # in the range of A
    return A, g, draw(st.sampled_from([0.125, 0.5, 1.0, 1.5, 4.0]))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(small_problems())
def test_the_secular_equation_against_projected_gradients(problem):
    A, g, radius = problem
    d = len(g)
    found = trust_region_minimum(A, g, radius)
    size = np.linalg.norm(A) * radius**2 + 2 * np.linalg.norm(g) * radius

    def value(x):
        return x @ A @ x + 2 * g @ x

    rng = np.random.default_rng(0)
    starts = [found.x, np.zeros(d), *rng.standard_normal((6, d))]
    ends = [projected_gradient(A, g, radius, start, 600) for start in starts]
    # From the minimum the gradient leads nowhere, and from elsewhere nowhere lower.
    assert value(ends[0]) >= found.value - 1e-14 * size
    assert_allclose(value(ends[0]), found.value, rtol=0, atol=1e-13 * size)
    least = min(value(end) for end in ends[1:])
    assert least >= found.value - found.gap - 1e-14 * size
    assert least <= found.value + 0.02 * size
    # A sign beside either's minimum is the same.
    if size > 0:
        assert certified_sign(A, g, 1e-12 * size - found.value, radius).sign == 1
        assert certified_sign(A, g, -1e-12 * size - found.value, radius).sign == -1
        assert certified_sign(A, g, -1e-12 * size - least, radius).sign == -1


@settings(max_examples=60, deadline=None, derandomize=True)
@given(small_problems())
def test_no_point_disproves_a_sign_in_exact_arithmetic(problem):
    """Whole numbers and points on a grid: q is exact in fractions."""
    A, g, radius = problem
    found = trust_region_minimum(A, g, radius)
    rng = np.random.default_rng(1)
    points = rng.integers(-64, 65, (200, len(g))) / 64 * radius
    points = points[(points**2).sum(axis=1) <= radius**2]
    for constant in (-found.value, np.nextafter(-found.value, np.inf), 0.0):
        sign = certified_sign(A, g, constant, radius).sign
        if sign != 1:
            continue
        exact = [
            sum(
                Fraction(x[i]) * Fraction(A[i, j]) * Fraction(x[j])
                for i in range(len(g))
                for j in range(len(g))
            )
            + 2 * sum(Fraction(a) * Fraction(b) for a, b in zip(g, x, strict=True))
            for x in points[:20]
        ]
        assert all(value + Fraction(float(constant)) >= 0 for value in exact)


def test_large_dense_matrices_allow_for_a_blocked_reduction():
    """From d = 2,049 on LAPACK reduces by blocks, whose rounding has a larger bound."""
    d = 2049
    diagonal = 1.0 + np.arange(d) / d
    g = np.ones(d)
    found = certified_sign(np.diag(diagonal), g, 1e4, 1e3)
    minimum = 1e4 - float((g / diagonal).sum())
    allowed = 128 * 4 * d * (d + 20) * np.finfo(float).eps * float(np.linalg.norm(diagonal))
    assert found.sign == 1
    assert found.lower <= minimum - 0.9 * allowed * 1e6  # |A|'s rounding, by radius^2
    assert minimum <= found.upper

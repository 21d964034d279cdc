"""What holds of minima over balls and boxes for any quadratic."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from eigenfeat.regions import certified_sign, trust_region_minimum
from eigenfeat.regions.dominance import box_minimum

few = settings(max_examples=40, deadline=None, derandomize=True)


@st.composite
def quadratics(draw):
    """Indefinite, singular, with or without a slope: x^T A x + 2 g^T x over |x| <= radius."""
    d = draw(st.integers(1, 10))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    values = rng.standard_normal(d) * (rng.random(d) < draw(st.sampled_from([0.4, 1.0])))
    g = rng.standard_normal(d) * draw(st.sampled_from([0.0, 1e-9, 1.0, 1e3]))
    return Q * values @ Q.T, g, float(draw(st.sampled_from([1e-3, 1.0, 50.0]))), Q, values, rng


def size_of(A, g, radius):
    return np.linalg.norm(A, 2) * radius**2 + 2 * np.linalg.norm(g) * radius + 1e-300


@few
@given(quadratics(), st.integers(-100, 100))
def test_units_and_rotations(problem, exponent):
    A, g, radius, Q, values, _ = problem
    found = trust_region_minimum(A, g, radius)
    atol = 1e-10 * size_of(A, g, radius)
    factor = 2.0**exponent
    scaled = trust_region_minimum(A * factor, g * factor, radius)
    assert_allclose(scaled.value / factor, found.value, rtol=0, atol=atol)
    longer = trust_region_minimum(A / factor**2, g / factor, radius * factor)
    assert_allclose(longer.value, found.value, rtol=0, atol=atol)
    own = trust_region_minimum(values, g @ Q, radius, diagonal=True)
    assert_allclose(own.value, found.value, rtol=0, atol=atol)


@few
@given(quadratics())
def test_no_point_is_lower_and_a_larger_ball_is_not_higher(problem):
    A, g, radius, _, _, rng = problem
    found = trust_region_minimum(A, g, radius)
    points = rng.standard_normal((200, len(g)))
    points *= radius * rng.random((200, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    values = ((points @ A) * points).sum(axis=1) + 2 * points @ g
    slack = 1e-12 * size_of(A, g, radius)
    assert found.value <= min(values.min(), 0.0) + found.gap + slack
    assert trust_region_minimum(A, g, 2 * radius).value <= found.value + found.gap + slack
    attained = found.x @ A @ found.x + 2 * g @ found.x
    assert_allclose(attained, found.value, rtol=0, atol=100 * slack)


@few
@given(quadratics(), st.floats(0.01, 2))
def test_a_sign_is_certified_only_if_the_minimum_has_it(problem, share):
    A, g, radius, _, _, _ = problem
    found = trust_region_minimum(A, g, radius)
    margin = share * size_of(A, g, radius)
    above = certified_sign(A, g, -found.value + margin, radius)
    below = certified_sign(A, g, -found.value - margin, radius)
    assert (above.sign, below.sign) == (1, -1)


@few
@given(st.integers(0, 2**31), st.integers(1, 6))
def test_a_box_is_the_sum_of_its_sides(seed, d):
    rng = np.random.default_rng(seed)
    a, g, h = rng.standard_normal((4, d)), rng.standard_normal((4, d)), rng.random((4, d))
    whole = box_minimum(a, g, h, 1)
    sides = sum(box_minimum(a[:, j : j + 1], g[:, j : j + 1], h[:, j : j + 1], 1) for j in range(d))
    assert_allclose(whole, sides, rtol=1e-12, atol=1e-14)
    ends = [a * x**2 + 2 * g * x for x in (-h, h, np.clip(-g / a, -h, h))]
    assert_allclose(whole, np.minimum.reduce(ends).sum(axis=1), rtol=1e-12, atol=1e-14)

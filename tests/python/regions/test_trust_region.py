"""Minima of quadratics over balls, and certified signs: the public functions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat.regions import certified_sign, trust_region_minimum

EPS = np.finfo(float).eps


@pytest.mark.parametrize("kind", ["indefinite", "positive", "singular", "hard"])
@pytest.mark.parametrize("way", ["each", "shared", "diagonal"])
def test_minima_meet_the_optimality_conditions_and_determine_signs(rng, kind, way):
    """A + mu I has no negative eigenvalue, (A + mu I) x = -g, and mu > 0 on the sphere alone."""
    n, d = 20, 9
    values = rng.standard_normal(d) if kind in ("indefinite", "hard") else rng.exponential(size=d)
    values[0] = {"singular": 0.0, "hard": -4.0}.get(kind, values[0])
    Q = np.eye(d) if way == "diagonal" else np.linalg.qr(rng.standard_normal((d, d)))[0]
    slopes, radius = rng.standard_normal((n, d)), 10.0 ** rng.uniform(-1, 1, n)
    slopes[:, 0] *= kind != "hard"
    A, g, single = (Q * values) @ Q.T, slopes @ Q.T, way == "diagonal"
    given = {"each": np.stack([A + A.T] * n) / 2, "shared": (A + A.T) / 2, "diagonal": values}[way]
    found = trust_region_minimum(given, g, radius, diagonal=single)
    x, mu, length = found.x, found.multiplier, np.linalg.norm(found.x, axis=1)
    size = np.linalg.norm(A) * radius**2 + 2 * np.linalg.norm(g, axis=1) * radius
    assert np.all(mu >= np.maximum(0, -values.min()) - 1e-13)
    assert_allclose(x @ A + mu[:, None] * x, -g, rtol=0, atol=1e-11)
    assert_allclose(length[mu > 0], radius[mu > 0], rtol=1e-12)
    assert np.all(length <= radius * (1 + 1e-12))
    value = np.einsum("ni,ij,nj->n", x, A, x) + 2 * (g * x).sum(axis=1)
    assert np.all(np.abs(found.value - value) <= 1e-13 * size)
    for shift in (1e-9, -1e-9):
        signs = certified_sign(given, g, shift * size - value, radius, diagonal=single).sign
        assert_array_equal(signs, np.sign(shift))


def test_a_matrix_that_lapack_reduces_by_blocks(rng):
    d = 2049
    A = np.diag(rng.standard_normal(d))
    v = rng.standard_normal(d) / np.sqrt(d)
    A += np.outer(v, v)
    found = trust_region_minimum(A, v, 3.0)
    assert abs(found.gap) <= 1e-12 * abs(found.value)
    assert found.residual <= 1e-13
    assert_allclose(np.linalg.norm(found.x), 3.0, rtol=1e-12)


def test_no_items_return_empty_arrays():
    found = trust_region_minimum(np.empty((0, 3, 3)), np.ones(3), 1.0)
    assert (found.x.shape, found.value.shape) == ((0, 3), (0,))


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
def test_bad_arguments_are_named(change, message):
    arguments = {"A": np.eye(2), "g": np.zeros(2), "constant": 0.0, "radius": 1.0} | change
    for function in (trust_region_minimum, certified_sign):
        with pytest.raises(ValueError, match=message):
            function(**arguments)


@pytest.mark.parametrize("diagonal", [False, True])
def test_signs_near_underflow_and_overflow(diagonal):
    """Squares that underflow, and constants that overflow in the problem's units."""
    as_given = (lambda a: a) if diagonal else (lambda a: np.diag(a))
    cases = [
        # a, g, constant, radius, correct sign
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
    assert found.lower <= minimum - 0.9 * allowed * 1e6  # rounding of A times radius^2
    assert minimum <= found.upper

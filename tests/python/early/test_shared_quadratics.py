"""Quadratic discriminants over sets: one eigendecomposition for all samples of a pattern."""

import numpy as np

from eigenfeat._base.core import core
from eigenfeat.regions import certified_sign, trust_region_minimum


def problem(rng, d=9, m=4, n=60, t=5):
    """Forms, widths with zeros, items in groups, and levels of ascending radii."""
    forms = rng.standard_normal((3, d, d))
    forms += forms.transpose(0, 2, 1)
    widths = rng.uniform(0.0, 2.0, (2, d)) * (rng.random((2, d)) > 0.3)
    groups = np.stack([rng.integers(0, 3, m), rng.integers(0, 2, m)], axis=1)
    of_item = np.sort(rng.integers(0, m, n))
    begins = np.searchsorted(of_item, np.arange(m + 1))
    slopes = rng.standard_normal((n, d))
    radii = np.sort(rng.uniform(0.0, 2.0, (n, t)), axis=1)
    constants = rng.uniform(0.0, 40.0, (n, 1)) - np.arange(t)
    limits = rng.integers(0, t + 1, n)
    return forms, widths, groups, begins, slopes, constants, radii, limits, of_item


def test_levels_are_those_of_single_certificates(rng):
    forms, widths, groups, begins, slopes, constants, radii, limits, of_item = problem(rng)
    found = core.proved_levels(forms, widths, groups, begins, slopes, constants, radii, limits, 2)
    for other in (1, 7):
        again = core.proved_levels(
            forms, widths, groups, begins, slopes, constants, radii, limits, other
        )
        np.testing.assert_array_equal(again, found)
    counts = set()
    for i, g in enumerate(of_item):
        w = widths[groups[g, 1]]
        A = forms[groups[g, 0]] * np.outer(w, w)
        signs = [
            certified_sign(A, w * slopes[i], constants[i, k], radii[i, k]).sign
            for k in range(limits[i])
        ]
        expected = next((k for k, sign in enumerate(signs) if sign < 1), limits[i])
        assert found[i] == expected
        counts.add(expected)
    assert len(counts) > 3


def test_a_level_at_zero_to_rounding_is_not_proved(rng):
    d = 6
    form = np.diag([1.0, -2.0, 3.0, 0.5, -1.0, 0.0])
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    form = Q @ form @ Q.T
    form = (form + form.T) / 2
    g = rng.standard_normal(d)
    least = trust_region_minimum(form, g, 1.5).value
    shift = np.array([1e-3, 0.0, -1e-3])
    levels = core.proved_levels(
        form[None],
        np.ones((1, d)),
        np.zeros((1, 2), dtype=np.int64),
        np.array([0, 3]),
        np.tile(g, (3, 1)),
        (shift - least)[:, None],
        np.full((3, 1), 1.5),
        np.ones(3, dtype=np.int64),
        1,
    )
    np.testing.assert_array_equal(levels, [1, 0, 0])

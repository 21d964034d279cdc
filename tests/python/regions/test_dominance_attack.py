"""The dominance process and the rules on top of it, compared with long double."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import region_reference as reference
from dominance_reference import EPS, KINDS, attack_dominance, attack_rule, known_to
from numpy.testing import assert_array_equal

from eigenfeat._base.core import core
from eigenfeat.early.discriminants import Linear
from eigenfeat.early.rules import RuleInput
from eigenfeat.early.set_rules import SETS, SetRule, largest_radii

long_double = pytest.mark.skipif(
    not reference.HAS_LONG_DOUBLE, reason="long double has no more digits here"
)


@long_double
@pytest.mark.parametrize("shape", ["ball", "box"])
def test_a_class_that_dominates_does(shape):
    rng = np.random.default_rng([shape == "ball", 1])
    counts = sum((attack_dominance(rng, 25, shape) for _ in range(20)), Counter())
    assert counts["wrong"] == counts["missed"] == 0
    assert counts["decided"] > 60


def test_scores_that_overflow_decide_nothing():
    huge = np.array([[1e308, 1e308, -1e308, -1e308, 1e308]])
    slopes = np.concatenate([huge, 0 * huge])
    x, classes = np.array([[1.5, 1.5, 1.5, 1.5, -1.0]]), (np.zeros((1, 2)), slopes, None, None)
    for shape in ("ball", "box"):
        for radius in (1e-6, 1.0, 1e150):
            limit = np.array([radius])
            assert core.dominance_radii(x, np.ones((1, 5)), limit, *classes, shape, 1) == 0


@pytest.mark.parametrize("shape", ["ball", "box"])
def test_squares_of_widths_that_underflow(shape):
    """w^2 is below the smallest number, and radius^2 w^2 is 1."""
    precisions, centres = np.array([[[3.0], [1.0]]]), np.zeros((1, 2, 1))
    classes = np.array([[0.5, 0.0]]), None, precisions, centres
    limit = np.array([1e170])
    found = core.dominance_radii(
        np.zeros((1, 1)), np.full((1, 1), 1e-170), limit, *classes, shape, 1
    )
    assert found < limit  # 0.5 - 3 x^2 + x^2 < 0 at x = 1


@long_double
@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in SETS for kind in KINDS if (name, kind) != ("box", "quadratic")],
)
def test_a_class_dominates_on_the_largest_set_in_long_double(name, kind):
    rng = np.random.default_rng([list(SETS).index(name), len(kind)])
    counts = sum((attack_rule(rng, name, kind) for _ in range(100)), Counter())
    assert counts["wrong"] == counts["missed"] == 0
    assert counts["decided"] > 3
    assert counts["clear"] > 0


def test_ties_are_left_open_whatever_the_units():
    """The same functions twice: no row may be decided but where nothing is unknown."""
    rng = np.random.default_rng(3)
    for far in (1.0, 1e4, 1e8):
        slope = rng.standard_normal(6) * far
        functions = Linear(np.stack([slope, slope]), np.array([0.0, -1e-3 * EPS]))
        known = known_to(rng, np.zeros(6), 1.0, 10, 6)
        case, kind = RuleInput(functions, known, 6, False, 1), SETS["quadratic"]
        best = SetRule(kind).best_classes(case)
        assert_array_equal(largest_radii(case, kind, best), 0.0)

"""Decisions about regions stay right for numbers at the ends of the range of float64."""

import numpy as np
import pytest

from eigenfeat._base.core import core


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
